"""Evidence that nobody cited, for claims of documents that cite nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vouchgate.documents.beside import is_itself, path_in, work_tree_of
from vouchgate.gate.examiner import Harvest
from vouchgate.gate.gathering import SourceReader, gather
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.documents.types import Document, DocumentClaim, Reference
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.score import is_official


async def harvested(
    documents: Sequence[Document],
    searches: Sequence[Harvest],
    source: SourceReader,
    policy: Policy,
    roots: Sequence[Path],
) -> tuple[list[Document], dict[str, SourceReading], dict[str, tuple[Citation, ...]]]:
    """The documents, whose claims without a reference refer to the official source that was found for them; what was
    read, by citation key; and what was found, by the text of the claim and in the order of the search. A document never
    vouches for itself, which lies in one of `roots` or in a copy of one, so that of two that say the same each may have
    another source."""
    readings: dict[str, SourceReading] = {}
    found_for: dict[str, tuple[Citation, ...]] = {}
    found: list[Document] = []
    for document in documents:
        own = path_in(document.name, work_tree_of(document.name, roots))
        claims: list[DocumentClaim] = []
        for claim in document.claims:
            asked = () if claim.references else searches
            reading, seen = await _official(claim, asked, source, policy, own)
            if reading is None:
                claims.append(claim)
                continue
            found_for[claim.text] = max(found_for.get(claim.text, ()), seen, key=len)
            cited = reading.citation
            readings[cited.key] = reading
            reference = Reference(claim.start, claim.start, cited.value, cited)
            claims.append(replace(claim, references=(reference,)))
        found.append(replace(document, claims=tuple(claims)))
    return found, readings, found_for


async def _official(
    claim: DocumentClaim, searches: Sequence[Harvest], source: SourceReader, policy: Policy, own: str | None
) -> tuple[Found | None, tuple[Citation, ...]]:
    """The first official source that the searches name for a claim, and all that they name up to it."""
    seen: list[Citation] = []
    for search in searches:
        citations, *_ = await search.find(claim.text, policy.deadline_seconds)
        for citation in citations:
            seen.append(citation)
            (reading,) = await gather(source, (citation,), policy.deadline_seconds, fresh=False)
            if is_itself(citation, own, reading):
                continue
            if isinstance(reading, Found) and is_official(reading, policy):
                return reading, tuple(seen)
    return None, ()
