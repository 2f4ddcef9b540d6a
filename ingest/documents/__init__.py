"""Whole documents: what in them is a claim, and which references are to vouch for it. Nothing is looked up here."""

from vouchgate.ingest.documents.reading import LARGEST, read_document
from vouchgate.ingest.documents.types import (
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
