"""Whole documents: what in them is a claim, and which references are to vouch for it. Nothing is looked up here."""

from vouchgate.ingest.documents.types import (
    LARGEST,
    Block,
    BlockKind,
    Document,
    DocumentClaim,
    Finding,
    Reason,
    Reference,
    Slip,
    Unreadable,
)

__all__ = [
    "LARGEST",
    "Block",
    "BlockKind",
    "Document",
    "DocumentClaim",
    "Finding",
    "Reason",
    "Reference",
    "Slip",
    "Unreadable",
    "read_document",
]


def read_document(name: str, content: bytes) -> Document:
    """See `reading.read_document`, which is loaded for the first document: that takes long, with Markdown's parser and
    the words of two languages, and a gate may never see one."""
    from vouchgate.ingest.documents import reading  # noqa: PLC0415

    return reading.read_document(name, content)
