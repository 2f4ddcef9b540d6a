"""Does a document pass? Counts of verdicts against the policy's thresholds. Pure."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from vouchgate.ingest.documents.types import BlockKind, Document, Finding, Slip
from vouchgate.ingest.documents.verdict import CheckedClaim, ClaimVerdict
from vouchgate.ingest.policy import DocumentPolicy, Policy

PASSED, FAILED, OPEN = 0, 1, 3  # exit statuses; 2 is usage, or a document that cannot be read
WRONG = (ClaimVerdict.FALSE, ClaimVerdict.BROKEN_CITATION)
UNVERIFIED = (ClaimVerdict.UNCITED, ClaimVerdict.PARTIAL)
# What a document can be asked to fail on, by the names of `--fail-on`.
KINDS = ("false", "broken", "unknown", "unverified", "verified", "score", "no_claims")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A claim that is known not to hold up, and let pass until a day, for a reason."""

    fingerprint: str
    reason: str
    until: date


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """A document with the verdict on each of its claims, in its order. `accepted` are those that a baseline lets
    pass, by fingerprint."""

    document: Document
    claims: tuple[CheckedClaim, ...]
    accepted: dict[str, Accepted]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with its references, whatever their sources say."""
        return self.document.findings

    @property
    def counted(self) -> tuple[CheckedClaim, ...]:
        """Claims that count for the gate: those that a baseline lets pass do not."""
        if not self.accepted:
            return self.claims
        return tuple(one for one in self.claims if self.fingerprint_of(one) not in self.accepted)

    def fingerprint_of(self, one: CheckedClaim) -> str:
        """A name of a claim with its verdict that holds while neither changes, wherever the claim moves. What leads in
        to an item is part of what it says."""
        words = f"{one.claim.lead} {one.claim.text}"
        said = f"{self.document.name}\n{' '.join(words.split())}\n{one.verdict}"
        return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:20]

    @property
    def loose(self) -> tuple[Finding, ...]:
        """References to entries that are missing, outside of every claim: those within one make its verdict."""
        claims = [(block.start, block.end) for block in self.document.blocks if block.kind is BlockKind.CLAIM]
        starts = [start for start, _ in claims]

        def inside(offset: int) -> bool:
            at = bisect_right(starts, offset) - 1
            return at >= 0 and offset < claims[at][1]

        dangling = (each for each in self.findings if each.slip is Slip.DANGLING)
        return tuple(each for each in dangling if not inside(each.start))

    @property
    def lowest_score(self) -> float | None:
        """Of the sources of what counts that were read, the worst; None when none was."""
        scores = (source.score for one in self.counted for source in one.sources)
        return min((score for score in scores if score is not None), default=None)


@dataclass(frozen=True, slots=True)
class Gated:
    """The answer. `reasons` say why it did not pass, a phrase each, the gravest first."""

    status: int
    reasons: tuple[str, ...]
    counts: dict[str, int]

    @property
    def passed(self) -> bool:
        """Whether every threshold held."""
        return self.status == PASSED


def gate(
    documents: Sequence[CheckedDocument],
    policy: Policy,
    *,
    fail_on: Collection[str] = KINDS,
    allow_no_claims: bool = False,
) -> Gated:
    """The documents as one: 1 with any claim that is FALSE or has a BROKEN_CITATION, else 3 with any UNKNOWN, else 1
    where a threshold is missed. Raises ValueError for a kind to fail on that there is not."""
    if unknown := set(fail_on) - set(KINDS):
        raise ValueError(f"{', '.join(sorted(unknown))}: there are {', '.join(KINDS)}")
    counted = [one for document in documents for one in document.counted]
    counts = Counter(one.verdict for one in counted)
    loose = sum(len(document.loose) for document in documents)
    wrong = [reason for kind, reason in _wrong(counts, loose) if kind in fail_on]
    open_ = counts[ClaimVerdict.UNKNOWN] if "unknown" in fail_on else 0
    missed = [
        reason
        for kind, reason in _missed(documents, counts, policy, allow_no_claims=allow_no_claims)
        if kind in fail_on
    ]
    reasons = [*wrong, *([f"{open_} could not be found out"] if open_ else ()), *missed]
    status = FAILED if wrong else OPEN if open_ else FAILED if missed else PASSED
    return Gated(status, tuple(reasons), {verdict.value: counts[verdict] for verdict in ClaimVerdict})


def _wrong(counts: Counter[ClaimVerdict], loose: int) -> Iterator[tuple[str, str]]:
    if false := counts[ClaimVerdict.FALSE]:
        yield "false", f"{false} false"
    if broken := counts[ClaimVerdict.BROKEN_CITATION]:
        yield "broken", f"{broken} with a broken citation"
    if loose:
        yield "broken", f"{loose} outside of claims to an entry that is missing"


def _missed(
    documents: Sequence[CheckedDocument],
    counts: Counter[ClaimVerdict],
    policy: Policy,
    *,
    allow_no_claims: bool,
) -> Iterator[tuple[str, str]]:
    rules: DocumentPolicy = policy.documents
    checkable = sum(counts.values()) - counts[ClaimVerdict.EXEMPT]
    accepted = any(document.accepted for document in documents)
    if not checkable:
        if not allow_no_claims and not accepted:
            yield "no_claims", "nothing in it could be checked, which is not a pass"
        return
    unverified = [one for document in documents for one in document.counted if one.verdict in UNVERIFIED]
    if marked := sum(1 for one in unverified if one.claim.marked):
        yield "unverified", f"{marked} not verified where the writer asks for a source"
    if len(unverified) > rules.unverified:
        yield "unverified", f"{len(unverified)} not verified, at most {rules.unverified} may be"
    least = min(rules.verified, checkable)
    if (verified := counts[ClaimVerdict.VERIFIED]) < least:
        yield "verified", f"{verified} verified, at least {least} must be"
    scores = [document.lowest_score for document in documents]
    lowest = min((score for score in scores if score is not None), default=None)
    if lowest is not None and lowest < policy.confidence_floor:
        floor = policy.confidence_floor
        yield "score", f"the worst of its sources scores {lowest:.2f}, under {floor:.2f}"
