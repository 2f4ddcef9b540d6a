"""What acts of reviewers, and of the service on what waits, leave in the owner's log."""

from __future__ import annotations

from vouchgate.storage.log import chain

Document = chain.Document
entry = chain.append


def document(form: int = 1, /, **about: str | None) -> chain.Document:
    """What a log entry is about, in this form of its document."""
    return chain.document_of(about, form=form)
