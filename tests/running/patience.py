"""Bounds in seconds, as they are on a machine that is much slower or busier than a server is; and waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from vouchgate.storage.dedup import contradicting, index

SECONDS = 0.5  # for what takes some milliseconds; the bounds on numbers of texts stay as they are


def be_patient() -> None:
    """From now on a claim is compared in this process however long the machine takes for it."""
    index.COMPARING_SECONDS = contradicting.COMPARING_SECONDS = SECONDS
    contradicting.SECONDS_IN_TRANSACTION = SECONDS


def until(look: Callable[[], Any], seconds: float = 120) -> Any:
    """What `look` gives, once that is something."""
    end = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return seen
