"""Which of the stored memories their owners are asked about afterwards, and what their answers show. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from vouchgate.ingest.claims.decision import Evidence
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.claims.trust import Track, TrackRecord
from vouchgate.ingest.policy import Policy, SpotChecks

_HEX = 64  # digits of a sha256
_BITS = 64  # of the digest: a rate is met to one part in 2^64
# Verdicts on one subject that count, the latest: who was right a thousand times and turns, is seen in tens of them.
WINDOW = 100
NOTHING = "none"  # as the kind of what a claim cites: it cites nothing
_Z = 1.96  # standard deviations: of 20 intervals 19 hold what is so


def interval(record: TrackRecord) -> tuple[float, float]:
    """Between which shares the true share of right claims lies, at 95 % (Wilson's score interval, which is sound for
    few verdicts and for shares near 1); 0 to 1 where nobody judged any."""
    times = record.right + record.wrong
    if not times:
        return 0.0, 1.0
    share, spread = record.right / times, _Z * _Z / times
    middle = share + spread / 2
    around = _Z * sqrt((share * (1 - share) + spread / 4) / times)
    return (max(0.0, (middle - around) / (1 + spread)), min(1.0, (middle + around) / (1 + spread)))


def cited_first(readings: Sequence[SourceReading]) -> tuple[str, str | None]:
    """The kind of the first thing that a claim cites, or NOTHING, and its publisher, if it is a page of one."""
    if not readings:
        return NOTHING, None
    first = readings[0]
    return first.citation.type, (first.site or None) if isinstance(first, Found) else None


def rate_of(evidence: Evidence, policy: Policy, *, by_owner: bool) -> float:
    """The share of claims like this one that are drawn; of those `by_owner`, that a standing ruling
    stored, at least the share of these."""
    track, (_, publisher) = evidence.track or Track(), cited_first(evidence.sources)
    records = [track.agent, track.kind, *([track.publisher] if publisher else [])]
    return max(
        rate_for(policy.spot_checks, records), policy.standing_rulings.spot_checks if by_owner else 0.0
    )


def rate_for(said: SpotChecks, records: Sequence[TrackRecord]) -> float:
    """The share of claims of these that are drawn: the higher one as long as one of them is not shown to be right."""
    unsure = any(interval(record)[0] < said.known_at for record in records)
    return max(said.rate, said.new_rate or 0.0) if unsure else said.rate


def is_sampled(commitment: str, rate: float) -> bool:
    """Whether the memory that a decision stored is put on the list of spot checks, of which so large a share is (0 to
    1). `commitment` is that of the log entry to the decision as it was written: whoever has log and policy can draw
    again. Nobody who sends a claim can choose it, for it covers a salt, an id and times that the gate makes."""
    return int(commitment[-_HEX:][: _BITS // 4], 16) < rate * (1 << _BITS)
