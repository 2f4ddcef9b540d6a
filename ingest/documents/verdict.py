"""What the sources of a document do to each of its claims. Pure: the same readings give the same verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from vouchgate.ingest.citations import label_of
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.claim import Claim, Finding, MemoryType, Source, Verdict
from vouchgate.ingest.claims.source import Found, SourceReading, Stance, Unreachable
from vouchgate.ingest.corroboration.hits import quotation_of, stance_of
from vouchgate.ingest.documents.types import Document, DocumentClaim
from vouchgate.ingest.pipeline import Inspected, examine
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.reputation import is_banned
from vouchgate.ingest.scoring.score import is_official, source_score
from vouchgate.ingest.support.holding import by_statement
from vouchgate.ingest.support.prepared import PreparedTexts
from vouchgate.ingest.support.scope import said_by

NOBODY = "document"  # whose claims these are: no owner's
MOST_QUOTED = 600  # characters of a quotation
_NAMED = 6  # missing words that a message names


class ClaimVerdict(StrEnum):
    """What a claim of a document comes to."""

    VERIFIED = "VERIFIED"  # what it cites states all of it
    PARTIAL = "PARTIAL"  # what it cites could be read, and does not state all of it
    FALSE = "FALSE"  # a source of it says otherwise
    BROKEN_CITATION = (
        "BROKEN_CITATION"  # what it cites does not exist, is not in force, or vouches for nothing
    )
    UNCITED = "UNCITED"
    UNKNOWN = "UNKNOWN"  # it could not be found out
    EXEMPT = "EXEMPT"  # it says nothing beyond what it points at, and that is there


@dataclass(frozen=True, slots=True)
class SourceSeen:
    """One source of a claim as it was read. `quotation` is the place that decides, in the words of the source, and
    `place` where that stands in its text."""

    cited: str
    kind: str
    state: str  # found, missing, or unreachable: why
    detail: str
    address: str = ""  # where it was read in the end
    title: str = ""
    digest: str = ""
    dated: datetime | None = None
    stance: Stance | None = None
    score: float | None = None
    official: bool = False
    quotation: str = ""
    place: tuple[int, int] | None = None
    harvested: bool = False
    private: bool = False  # see `ingest.claims.source.Private`


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim with its verdict. `missing` are the words that no source of it has."""

    claim: DocumentClaim
    verdict: ClaimVerdict
    message: str
    missing: tuple[str, ...] = ()
    sources: tuple[SourceSeen, ...] = ()


def cited_by(claim: DocumentClaim) -> tuple[Citation, ...]:
    """What can be looked up for a claim, each thing once."""
    return tuple({ref.citation.key: ref.citation for ref in claim.references if ref.citation}.values())


def everything_cited(documents: Sequence[Document]) -> tuple[Citation, ...]:
    """What can be looked up for documents, each thing once, in their order."""
    every = (citation for document in documents for claim in document.claims for citation in cited_by(claim))
    return tuple({citation.key: citation for citation in every}.values())


def check_claim(
    claim: DocumentClaim,
    readings: Mapping[str, SourceReading],
    policy: Policy,
    now: datetime,
    texts: PreparedTexts | None = None,
) -> CheckedClaim:
    """The verdict on a claim, whose sources were read (`readings`, by citation key); one without a reading could not
    be found out. `texts` are those that other claims were held against. Linear in the texts."""
    texts = PreparedTexts() if texts is None else texts
    dangling = next((ref for ref in claim.references if ref.dangling), None)
    if dangling is not None:
        message = f"“{dangling.target}” names an entry that the document does not have."
        return CheckedClaim(claim, ClaimVerdict.BROKEN_CITATION, message)
    if not claim.references:
        return CheckedClaim(claim, ClaimVerdict.UNCITED, "It cites nothing.")
    cited = cited_by(claim)
    read = [
        reading.model_copy(update={"citation": citation})
        if (reading := readings.get(citation.key)) is not None
        else _unread(citation)
        for citation in cited
    ]
    seen = _held(claim, read, policy, now, texts)
    sources = tuple(
        _seen(reading, texts.of(was).text if isinstance(was, Found) else "", policy, now)
        for was, reading in zip(read, seen.readings, strict=True)
    )
    verdict, message, missing = _verdict(claim, seen, policy, now, texts)
    return CheckedClaim(claim, verdict, message, missing, sources)


@dataclass(frozen=True, slots=True)
class _Held:
    """A claim held against what was read, and what the checks say of that."""

    readings: tuple[SourceReading, ...]
    findings: tuple[Finding, ...]

    def of(self, *codes: str) -> Finding | None:
        return next((finding for finding in self.findings if finding.code in codes), None)


def _held(
    claim: DocumentClaim, read: Sequence[SourceReading], policy: Policy, now: datetime, texts: PreparedTexts
) -> _Held:
    lead = f"{claim.lead} " if claim.lead else ""
    held = Claim(
        content=lead + claim.text,
        memory_type=MemoryType.FACT,
        asserted_source=Source.AI_SYNTHESIS,
        source=Source.AI_SYNTHESIS,
        owner_id=NOBODY,
        context=len(lead),
    )
    inspected = Inspected(held, (), tuple(reading.citation for reading in read))
    examined = examine(inspected, read, policy, now, texts=texts)
    return _Held(examined.readings, examined.findings.every)


_BROKEN = ("citation_missing", "citation_banned", "citation_ambiguous", "citation_not_in_force")


def _verdict(
    claim: DocumentClaim, held: _Held, policy: Policy, now: datetime, texts: PreparedTexts
) -> tuple[ClaimVerdict, str, tuple[str, ...]]:
    if (broken := held.of(*_BROKEN)) is not None:
        return ClaimVerdict.BROKEN_CITATION, broken.message, ()
    if (refuted := held.of("support_conflict")) is not None:
        return ClaimVerdict.FALSE, refuted.message, ()
    unlooked = [ref.target for ref in claim.references if ref.citation is None]
    found = [reading for reading in held.readings if isinstance(reading, Found)]
    if unlooked or len(found) < len(held.readings):
        # Those that could be read are enough if they state all of it.
        if found and _held(claim, found, policy, now, texts).of("stated", "unlisted") is not None:
            return ClaimVerdict.VERIFIED, "What could be read of its sources states it.", ()
        unread = next((r.detail for r in held.readings if isinstance(r, Unreachable)), "")
        return ClaimVerdict.UNKNOWN, unread or f"Nothing here can look up “{unlooked[0][:200]}”.", ()
    return _of_all(claim, held, found)


def _points(claim: DocumentClaim) -> bool:
    """Whether it says nothing beyond what it points at. A reader of "See the log" sees no address: it counts as written
    behind it."""
    target = claim.references[0].target
    said = said_by(f"{claim.text.rstrip('.')} ({target}).")
    return not claim.lead and all(
        any(start <= one.start < end for start, end in said.pointing) for one in said.statements
    )


def _of_all(
    claim: DocumentClaim, held: _Held, found: Sequence[Found]
) -> tuple[ClaimVerdict, str, tuple[str, ...]]:
    if held.of("stated", "unlisted") is not None:
        return ClaimVerdict.VERIFIED, "Its sources state it.", ()
    if held.of("pointer") is not None or (_points(claim) and not any(source.unsaid for source in found)):
        return ClaimVerdict.EXEMPT, "It says nothing beyond what it points at, and that is there.", ()
    if (unknown := next(filter(_is_open, held.findings), None)) is not None:
        return ClaimVerdict.UNKNOWN, unknown.message, ()
    missing = tuple(dict.fromkeys(_missing(found)))
    if (said := held.of("uncovered", "support_off_topic")) is not None:
        return ClaimVerdict.PARTIAL, said.message, missing
    named = ", ".join(f"“{word}”" for word in missing[:_NAMED])
    without = f" No source has {named}." if named else ""
    return ClaimVerdict.PARTIAL, f"Its sources speak of it, and do not state all of it.{without}", missing


def _is_open(finding: Finding) -> bool:
    return finding.verdict is Verdict.UNKNOWN and finding.citation is not None


def _missing(found: Sequence[Found]) -> Iterator[str]:
    """Words of statements that no source states, and that none of them has."""
    for pairs in by_statement(found):
        held = [one for one, _ in pairs]
        if not any(one.stance is Stance.STATES for one in held):
            nowhere = set[str].intersection(*(set(one.missing) for one in held))
            yield from (word for word in held[0].missing if word in nowhere)


def _unread(citation: Citation) -> Unreachable:
    return Unreachable(citation=citation, code="error", detail=f"{citation.value} was not read.")


def _seen(reading: SourceReading, text: str, policy: Policy, now: datetime) -> SourceSeen:
    """A source as it was read, whose own words are `text`."""
    citation = reading.citation
    seen = SourceSeen(
        cited=citation.value,
        kind=label_of(citation.type),
        state=reading.code if isinstance(reading, Unreachable) else reading.kind,
        detail=reading.detail,
        harvested=citation.harvested,
        private=reading.private,
    )
    if not isinstance(reading, Found):
        return seen
    held = reading.held or ()
    stance = stance_of(held)
    place = next((one.place for one in held if one.stance is stance and one.place is not None), None)
    usable = reading.vouches and not is_banned(reading, policy.banned)
    return replace(
        seen,
        address=reading.source_id,
        title=reading.title,
        digest=reading.text_digest or reading.digest,
        dated=reading.dated,
        stance=stance,
        score=source_score(reading, policy, now) if usable else 0.0,
        official=is_official(reading, policy),
        quotation=quotation_of(held, stance, text)[:MOST_QUOTED] if reading.packed else "",
        place=place,
    )
