"""Which waiting claim comes first, and why. Pure.

Items are ordered by age, with a head start for what is riskier: an item that conflicts with a stored memory stands
where one stands that came two weeks earlier. So nothing starves, what is about to expire comes to the top by
itself, and an item's place is one time, which only a new decision changes and a database can keep in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.policy import HeadStart
from vouchgate.ingest.rules import Rule

# Bytes of the key by which items that cite the same are grouped: an index holds it beside other columns, and
# PostgreSQL refuses an entry of over 2,700 bytes.
MOST_CITED = 400

_MINUTE = timedelta(minutes=1)
NEAR_EXPIRY = timedelta(days=3)  # from then on an item says that it is about to expire

# What has a head start, in words.
_RISKS: Mapping[str, str] = {
    Rule.CONFLICT: "conflicts with a stored memory",
    Rule.REFUTED: "cites something that does not hold",
    Rule.TECHNICAL_HEDGE: "is hedged",
}


def head_start(rule: str, policy: HeadStart) -> timedelta:
    """The days of waiting that the router's rule counts for."""
    days: dict[str, float] = {
        Rule.CONFLICT: policy.conflict,
        Rule.REFUTED: policy.citation,
        Rule.TECHNICAL_HEDGE: policy.hedge,
    }
    return timedelta(days=days.get(rule, 0.0))


def cited_key(key: str) -> str:
    """What items that cite the same are grouped by: the key of the citation; of a long one its beginning and its
    digest."""
    encoded = key.encode("utf-8", "replace")
    if len(encoded) <= MOST_CITED:
        return key
    digest = hashlib.sha256(encoded).hexdigest()[:16]
    return f"{encoded[: MOST_CITED - 20].decode('utf-8', 'ignore')}…{digest}"


def words_digest(content: str, memory_type: MemoryType) -> str:
    """sha256 hex that is equal for claims of one type with the same set of words, as the dedup check reads
    them."""
    return digest_of(tokens(content), memory_type.value)


def digest_of(words: frozenset[str], memory_type: str) -> str:
    """`words_digest` of a claim whose words are known."""
    text = "\n".join([memory_type, *sorted(words)])
    return hashlib.sha256(text.encode()).hexdigest()


def explain(item: PendingMemory, policy: HeadStart, now: datetime) -> Iterator[str]:
    """Why the item stands where it does, a phrase each, the weightiest first."""
    left = item.expires_at - now
    if left <= NEAR_EXPIRY:
        yield f"expires in {span_left(left)}"
    weight = head_start(item.rule, policy)
    if weight:
        both_wait = item.rule == Rule.CONFLICT and item.conflicting_memory_id is None
        risk = "conflicts with another claim that waits" if both_wait else _RISKS[item.rule]
        yield f"{risk}: counts as {span(weight)} of waiting"
    yield f"waits {span(now - item.created_at)}"


def span(time: timedelta) -> str:
    """A length of time in its largest unit: `3 days`, `1 hour`, `0 minutes`."""
    seconds = max(0, int(time.total_seconds()))
    for unit, size in (("day", 86_400), ("hour", 3_600)):
        if (count := seconds // size) > 0:
            return f"{count} {unit}{'s' if count != 1 else ''}"
    minutes = seconds // 60
    return f"{minutes} minute{'s' if minutes != 1 else ''}"


def span_left(time: timedelta) -> str:
    """`span` of what is left: a minute that has begun counts whole, so that three days that were just set are not two,
    and the last seconds not 0 minutes."""
    return span(-(-time // _MINUTE) * _MINUTE)
