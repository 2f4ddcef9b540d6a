"""Bounds in seconds of the processor, as they are on a machine that is much slower or busier than a server is."""

from __future__ import annotations

from vouchgate.storage.dedup import contradicting, index

SECONDS = 0.5  # for what takes some milliseconds; the bounds on numbers of texts stay as they are


def be_patient() -> None:
    """From now on a claim is compared in this process however long the machine takes for it."""
    index.COMPARING_SECONDS = contradicting.COMPARING_SECONDS = SECONDS
    contradicting.SECONDS_IN_TRANSACTION = SECONDS
