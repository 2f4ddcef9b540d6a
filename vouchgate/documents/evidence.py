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
) -> tuple[list[Document], dict[str, SourceReading], dict[str, Citation]]:
    """The documents, whose claims without a reference refer to the official source that was found for them; what was
    read, by citation key; and what was found, by the text of the claim. A document never vouches for itself, which lies
    in one of `roots` or in a copy of one."""
    readings: dict[str, SourceReading] = {}
    cited_for: dict[str, Citation] = {}
    found: list[Document] = []
    for document in documents:
        own = path_in(document.name, work_tree_of(document.name, roots))
        claims: list[DocumentClaim] = []
        for claim in document.claims:
            reading = None if claim.references else await _official(claim, searches, source, policy, own)
            if reading is None:
                claims.append(claim)
                continue
            cited = cited_for[claim.text] = reading.citation
            readings[cited.key] = reading
            reference = Reference(claim.start, claim.start, cited.value, cited)
            claims.append(replace(claim, references=(reference,)))
        found.append(replace(document, claims=tuple(claims)))
    return found, readings, cited_for


async def _official(
    claim: DocumentClaim, searches: Sequence[Harvest], source: SourceReader, policy: Policy, own: str | None
) -> Found | None:
    """The first official source that the searches name for a claim."""
    for search in searches:
        citations, *_ = await search.find(claim.text, policy.deadline_seconds)
        for citation in citations:
            (reading,) = await gather(source, (citation,), policy.deadline_seconds, fresh=False)
            if is_itself(citation, own, reading):
                continue
            if isinstance(reading, Found) and is_official(reading, policy):
                return reading
    return None
