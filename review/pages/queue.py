"""The queue page, decided: which rows, in which groups, under which addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlencode

from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.dedup.alike import Alike, Likeness, Span, find_alike
from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.policy import HeadStart
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import NEAR_EXPIRY, explain, span, span_left
from vouchgate.review.pages.reasons import ReasonKind, kind_of, kind_of_item
from vouchgate.review.pages.wording.diff import CHANGED
from vouchgate.review.pages.wording.text import (
    MarkedSpan,
    Piece,
    Pieces,
    is_whole,
    opening_pieces,
    pieces,
    plain_line,
)
from vouchgate.storage.queue.overview import Facets
from vouchgate.storage.queue.pending import Order, QueueFilter
from vouchgate.storage.queue.query import NO_QUERY, Query
from vouchgate.storage.queue.views import SavedView

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
    q: str | None = None  # a query, as it was typed
    terms: Query | None = NO_QUERY  # of `q`; None when it cannot be understood
    fault: str = ""  # what is wrong with it then, as a sentence
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

    def as_filter(self, *, after: str | None = None, limit: int = 1) -> QueueFilter | None:
        """The items of it, from `after` on; None when nobody can tell which they are."""
        if self.terms is None:
            return None
        return QueueFilter(
            rule=self.rule,
            sender=self.sender,
            cited=self.cited,
            memory_type=self.memory_type,
            query=self.terms,
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
class RowMember:
    """One of several claims that are a row: `named` is its id and version, `claim` has marked what differs."""

    named: str
    claim: Pieces
    href: str


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One waiting item in the list, or several that are ruled on as one: then all else is of the first of `members`,
    and `differs` says in a few words what is not the same in all."""

    id: str
    version: int
    rule: str
    kind: ReasonKind
    conflict: bool  # approving it asks what becomes of a stored memory
    removal: bool  # approving it cannot be taken back, so it is asked first
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
    likeness: str = ""  # a Likeness, where there are several
    members: tuple[RowMember, ...] = ()
    differs: str = ""

    @property
    def named(self) -> str:
        """Id and version of every item of it, as a form names them."""
        return ",".join(one.named for one in self.members) or f"{self.id}:{self.version}"


# Each of these is looked at by itself, whatever it is like.
_ALONE = frozenset({Rule.HIDDEN_TEXT, Rule.INSTRUCTION, Rule.PLACE_CHANGE, Rule.REMOVAL})
_DIFFERING = 4  # values that a row names


def rows_of(
    items: Sequence[PendingMemory],
    listing: QueueListing,
    *,
    senders: Mapping[str, str],
    head_start: HeadStart,
    now: datetime,
    words: ValueWords | None = None,
) -> list[QueueRow]:
    """The items as rows. `senders` has the names of their tokens, by id; with the policy's `words`, what is alike is
    one row, at the place of the first of it."""
    only = QueueListing(order=listing.order)
    # Many rows share these: an address is made once.
    rules = {rule: replace(only, rule=rule).href() for rule in {item.rule for item in items}}
    agents = {one: replace(only, sender=one).href() for one in {item.submitted_by for item in items}}
    things = {one: replace(only, cited=one).href() for one in {item.cited for item in items}}

    def row(item: PendingMemory) -> QueueRow:
        hrefs = (rules[item.rule], agents[item.submitted_by], things[item.cited])
        return _row(item, listing, senders, head_start=head_start, now=now, hrefs=hrefs)

    if words is None:
        return [row(item) for item in items]
    first: dict[int, QueueRow] = {}
    others: set[int] = set()
    for alike in _groups(items, words):
        texts = [(items[place], spans) for place, spans in zip(alike.members, alike.differs, strict=True)]
        of_kind = next((item for item, _ in texts if item.rule != Rule.CONFLICT), texts[0][0])
        made = replace(
            row(texts[0][0]),
            kind=kind_of_item(of_kind),
            likeness=alike.likeness.value,
            members=tuple(_member(item, spans, listing) for item, spans in texts),
            differs=_differs(alike.likeness, texts),
        )
        others.update(alike.members)
        first[min(alike.members)] = made
    return [
        first[place] if place in first else row(item)
        for place, item in enumerate(items)
        if place in first or place not in others
    ]


def _groups(items: Sequence[PendingMemory], words: ValueWords) -> list[Alike]:
    """What is alike and waits for one reason. A claim that conflicts with another waiting one is of the reason of those
    that it is like: which of them came first is chance."""
    may = [
        place
        for place, item in enumerate(items)
        if item.conflicting_memory_id is None
        and item.rejected_before is None
        and item.rule not in _ALONE
        and is_whole(opening_pieces(item.content), item.content)
    ]
    found = []
    for alike in find_alike([(items[place].memory_type, items[place].content) for place in may], words):
        places = [may[at] for at in alike.members]
        rules = Counter(items[place].rule for place in places if items[place].rule != Rule.CONFLICT)
        rule = rules.most_common(1)[0][0] if rules else Rule.CONFLICT
        kept = [at for at, place in enumerate(places) if items[place].rule in (rule, Rule.CONFLICT)]
        enough = len(kept) > 1 and (alike.likeness is Likeness.TEMPLATE or kept[0] == 0)
        if enough:
            found.append(
                replace(
                    alike,
                    members=tuple(places[at] for at in kept),
                    differs=tuple(alike.differs[at] for at in kept),
                )
            )
    return found


def _member(item: PendingMemory, spans: Sequence[Span], listing: QueueListing) -> RowMember:
    marked = [MarkedSpan(start, end, CHANGED) for start, end in spans]
    href = listing.href(f"{PATH}/items/{item.id}")
    return RowMember(f"{item.id}:{item.version}", pieces(item.content, marked), href)


def _differs(likeness: Likeness, texts: Sequence[tuple[PendingMemory, Sequence[Span]]]) -> str:
    match likeness:
        case Likeness.WORDINGS:
            return f"{len(texts)} wordings of one claim"
        case Likeness.TEMPLATE:
            values = dict.fromkeys(item.content[slice(*spans[0])] for item, spans in texts)
            named = ", ".join(plain_line(value, 24) for value in list(values)[:_DIFFERING])
            return f"{named}{', …' if len(values) > _DIFFERING else ''}"


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
        kind=kind_of_item(item),
        conflict=item.conflicting_memory_id is not None,
        removal=item.removal_of is not None,
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
        expiring=f"expires in {span_left(left)}" if left <= NEAR_EXPIRY else "",
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


@dataclass(frozen=True, slots=True)
class ViewLink:
    """A query that the reviewer kept, as a link; `chosen` when it is what the list shows."""

    name: str
    href: str
    chosen: bool


def view_links(saved: Sequence[SavedView], listing: QueueListing) -> list[ViewLink]:
    """The reviewer's own queries, by name."""
    return [ViewLink(view.name, QueueListing(q=view.query).href(), view.query == listing.q) for view in saved]


# What no list has unless it is asked for, and what is one's own. Not counted: a snooze ends by the clock alone.
SET_ASIDE = tuple(
    (label, QueueListing(q=q).href())
    for label, q in (
        ("Snoozed", "is:snoozed"),
        ("Sent back", "is:sent-back"),
        ("Answered", "is:answered"),
        ("Assigned to me", "assigned:me"),
    )
)


def matching(listing: QueueListing, facets: Facets) -> str:
    """How many items a listing has, where that is counted: of one group, or of all. Empty where it is not."""
    given = {name for name, _ in listing.query} - {"order"}
    match sorted(given):
        case []:
            return str(facets.waiting)
        case ["rule"] if listing.rule in facets.by_rule:
            return str(facets.by_rule[listing.rule])
        case ["sender"] if listing.sender in facets.by_sender:
            return str(facets.by_sender[listing.sender])
        case ["cited"] if listing.cited in facets.by_cited:
            return str(facets.by_cited[listing.cited])
        case _:
            return ""


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
