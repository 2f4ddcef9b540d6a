"""The queue page, decided: which rows, in which groups, under which addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlencode

from vouchgate.ingest.claims.types import MemoryType, PendingMemory
from vouchgate.ingest.policy import HeadStart
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import NEAR_EXPIRY, explain, span
from vouchgate.review.pages.reasons import ReasonKind, kind_of
from vouchgate.review.pages.text import Piece, is_whole, opening_pieces, plain_line
from vouchgate.storage.queue.pending import Order, QueueFilter

ORDERS: tuple[tuple[Order, str], ...] = (
    ("priority", "Most pressing first"),
    ("oldest", "Oldest first"),
    ("newest", "Newest first"),
)
PATH = "/review"


@dataclass(frozen=True, slots=True)
class QueueListing:
    """Which part of the queue somebody looks at, and in which order."""

    rule: Rule | None = None
    sender: str | None = None
    cited: str | None = None
    memory_type: MemoryType | None = None
    q: str | None = None
    order: Order = "priority"

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """As the fields of an address; what says nothing is left out."""
        given = {
            "rule": self.rule,
            "sender": self.sender,
            "cited": self.cited,
            "type": self.memory_type,
            "q": self.q,
            "order": None if self.order == "priority" else self.order,
        }
        return tuple((name, str(value)) for name, value in given.items() if value not in (None, ""))

    def as_filter(self, *, after: str | None = None, limit: int = 1) -> QueueFilter:
        """The items of it, from `after` on."""
        return QueueFilter(
            rule=self.rule,
            sender=self.sender,
            cited=self.cited,
            memory_type=self.memory_type,
            text=self.q,
            order=self.order,
            after=after,
            limit=limit,
        )

    def href(self, path: str = PATH, **more: str) -> str:
        """The address of this listing, or of `path` as reached from it."""
        query = urlencode([*self.query, *more.items()])
        return f"{path}?{query}" if query else path


@dataclass(frozen=True, slots=True)
class FilterGroup:
    """A filter to choose, with how many items it has."""

    label: str
    count: int
    href: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One waiting item in the list."""

    id: str
    version: int
    rule: str
    kind: ReasonKind
    conflict: bool  # approving it asks what becomes of a stored memory
    cut: bool  # the list has not all of its text, so nobody approves it here
    content: str
    claim: tuple[Piece, ...]
    reason: str
    memory_type: str
    sender_id: str
    sender: str
    cited: str | None
    cited_shown: str
    waited: str
    expiring: str
    priority: str
    seen: int
    rejected_before: bool
    href: str
    rule_href: str
    sender_href: str
    cited_href: str


def rows_of(
    items: Sequence[PendingMemory],
    listing: QueueListing,
    *,
    senders: Mapping[str, str],
    head_start: HeadStart,
    now: datetime,
) -> list[QueueRow]:
    """The items as rows. `senders` has the names of their tokens, by id."""
    only = QueueListing(order=listing.order)
    # Many rows share these: an address is made once.
    rules = {rule: replace(only, rule=rule).href() for rule in {item.rule for item in items}}
    agents = {one: replace(only, sender=one).href() for one in {item.submitted_by for item in items}}
    things = {one: replace(only, cited=one).href() for one in {item.cited for item in items}}

    def row(item: PendingMemory) -> QueueRow:
        hrefs = (rules[item.rule], agents[item.submitted_by], things[item.cited])
        return _row(item, listing, senders, head_start=head_start, now=now, hrefs=hrefs)

    return [row(item) for item in items]


def _row(
    item: PendingMemory,
    listing: QueueListing,
    senders: Mapping[str, str],
    *,
    head_start: HeadStart,
    now: datetime,
    hrefs: tuple[str, str, str],
) -> QueueRow:
    left, claim = item.expires_at - now, opening_pieces(item.content)
    return QueueRow(
        id=item.id,
        version=item.version,
        rule=item.rule,
        kind=kind_of(item.rule),
        conflict=item.rule == Rule.CONFLICT or item.conflicting_memory_id is not None,
        cut=not is_whole(claim, item.content),
        content=item.content,
        claim=claim,
        reason=plain_line(item.reason, 300),
        memory_type=item.memory_type.value,
        sender_id=item.submitted_by,
        sender=plain_line(senders.get(item.submitted_by, item.submitted_by), 60),
        cited=item.cited,
        cited_shown=plain_line(_without_kind(item.cited), 80) if item.cited else "",
        waited=_waited(now - item.created_at),
        expiring=f"expires in {span(left)}" if left <= NEAR_EXPIRY else "",
        priority="; ".join(explain(item, head_start, now)),
        seen=item.seen,
        rejected_before=item.rejected_before is not None,
        href=listing.href(f"{PATH}/items/{item.id}"),
        rule_href=hrefs[0],
        sender_href=hrefs[1],
        cited_href=hrefs[2],
    )


def _waited(time: timedelta) -> str:
    return "just sent" if time < timedelta(minutes=1) else f"waits {span(time)}"


def _without_kind(key: str) -> str:
    """`https://…` for `url:https://…`; the keys of other things (`adr:3`) say best what they are."""
    return key.removeprefix("url:")


def by_reason(counts: Mapping[Rule, int], listing: QueueListing) -> list[FilterGroup]:
    """The reasons for which items wait, the most frequent first."""
    return [
        FilterGroup(
            kind_of(rule).label,
            count,
            QueueListing(rule=rule, order=listing.order).href(),
            listing.rule == rule,
        )
        for rule, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def by_sender(
    counts: Mapping[str, int], listing: QueueListing, senders: Mapping[str, str]
) -> list[FilterGroup]:
    """The agents whose items wait, the most frequent first."""
    return [
        FilterGroup(
            plain_line(senders.get(sender, sender), 60),
            count,
            QueueListing(sender=sender, order=listing.order).href(),
            listing.sender == sender,
        )
        for sender, count in counts.items()
    ]


def by_cited(counts: Mapping[str, int], listing: QueueListing) -> list[FilterGroup]:
    """What the waiting items cite first, the most frequent first; only what several cite makes a group."""
    return [
        FilterGroup(
            plain_line(_without_kind(cited), 60),
            count,
            QueueListing(cited=cited, order=listing.order).href(),
            listing.cited == cited,
        )
        for cited, count in counts.items()
        if count > 1 or listing.cited == cited
    ]


def filter_words(listing: QueueListing, senders: Mapping[str, str]) -> str:
    """What a listing is narrowed to, in words; empty when it is not."""
    parts = []
    if listing.rule is not None:
        parts.append(kind_of(listing.rule).label)
    if listing.sender is not None:
        parts.append(f"from {plain_line(senders.get(listing.sender, listing.sender), 40)}")
    if listing.cited is not None:
        parts.append(f"citing {plain_line(_without_kind(listing.cited), 60)}")
    if listing.memory_type is not None:
        parts.append(listing.memory_type.value)
    if listing.q:
        parts.append(f"with “{plain_line(listing.q, 40)}”")
    return ", ".join(parts)
