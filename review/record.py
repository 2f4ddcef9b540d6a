"""What acts of reviewers, and of the service on what waits, leave in the owner's log."""

from __future__ import annotations

from vouchgate.storage.log import chain

entry = chain.append


def digest(**about: str | None) -> str:
    """Of what a log entry is about."""
    return chain.digest_of(about)
