"""What the gate itself found for a claim that cites nothing, or whose citations could not be read: does it state the
claim, and whose word is it? Where the sources are official and all there is, `statements` says it already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from vouchgate.ingest.check import Check, Findings, ReadClaim
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.source import Found
from vouchgate.ingest.scoring.score import are_apart, are_two_texts, is_listed, is_official
from vouchgate.ingest.support.holding import states_all

CHECK = "corroboration"
_SAYS = {
    "official": (Verdict.PASS, "An official source that the gate found states it."),
    "independent": (Verdict.PASS, "Independent sources that the gate found state it."),
    "alone": (Verdict.DOUBT, "What the gate found for it is not official, and stands alone."),
}


def _judge(read: ReadClaim, findings: Findings) -> Iterator[Finding]:
    found = [reading for reading in read.readings if reading.citation.harvested]
    if not found:
        return
    stating = [source for source in found if isinstance(source, Found) and _states(source)]
    official = any(is_official(source, read.policy) for source in stating)
    if official and len(found) == len(read.readings):
        return
    listed = [source for source in stating if is_listed(source, read.policy)]
    code = "official" if official else "independent" if _two_voices(listed) else "alone"
    verdict, message = _SAYS[code]
    yield Finding(check=CHECK, verdict=verdict, code=code, message=message)


def _states(source: Found) -> bool:
    return source.vouches and states_all(source)


def _two_voices(sources: Sequence[Found]) -> bool:
    """Whether two of them are different people's words: of two publishers, or of two repositories or folders."""
    return any(_are_two(one, other) for one, other in combinations(sources, 2))


def _are_two(one: Found, other: Found) -> bool:
    if one.site and other.site:
        return are_apart(one, other)
    return (one.site, one.project) != (other.site, other.project) and are_two_texts(one, other)


CHECKS = (
    Check(
        name=CHECK,
        title="What the gate found",
        codes={code: verdict for code, (verdict, _) in _SAYS.items()},
        order=56,
        judge_findings=_judge,
    ),
)
