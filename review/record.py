"""What acts of reviewers, and of the service on what waits, leave in the owner's log."""

from __future__ import annotations

from vouchgate.storage.log import chain

entry = chain.append


def digest(form: int = 1, /, **about: str | None) -> str:
    """Of what a log entry is about, in this form of its document."""
    return chain.digest_of(about, form=form)
