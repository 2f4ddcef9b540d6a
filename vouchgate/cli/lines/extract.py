"""`vouchgate extract`: what in documents is a claim, and which references are to vouch for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vouchgate.cli.output import USAGE, complain, hint, one_line, write_json
from vouchgate.documents.files import content_of
from vouchgate.ingest.documents import Document, Unreadable, read_document


def run(files: Sequence[str]) -> int:
    """Writes one line for every stretch of every document, in order; 2 when one of them could not be read."""
    status = 0
    for file in files:
        try:
            document = read_document(file, content_of(file))
        except Unreadable as error:
            complain(f"{file} cannot be read: {error}")
            status = USAGE
            continue
        for row in rows(document):
            write_json(row)
        for finding in document.findings:
            hint(one_line(f"{file}:{finding.start}: {finding.slip.value}: {finding.text[:80]}"))
        if not document.claims:
            hint(f"{file}: no claim was found, so nothing in it can be checked")
    return status


def rows(document: Document) -> Iterator[dict[str, Any]]:
    """Each stretch of a document; those that are claims with their references."""
    claims = {claim.start: claim for claim in document.claims}
    for block in document.blocks:
        claim = claims.get(block.start)
        row: dict[str, Any] = {
            "file": document.name,
            "start": block.start,
            "end": block.end,
            "kind": block.kind.value,
        }
        if block.reason is not None:
            row["reason"] = block.reason.value
        row["text"] = document.text[block.start : block.end]
        row["citations"] = [
            {"target": reference.target, "start": reference.start, "end": reference.end}
            for reference in (claim.references if claim else ())
        ]
        yield row
