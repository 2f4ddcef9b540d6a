"""The history page, decided: what became of claims that waited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.priority import span_left
from vouchgate.review.acts import SERVICE
from vouchgate.review.pages.wording.diff import word_diff
from vouchgate.review.pages.wording.text import Piece, opening_pieces, pieces
from vouchgate.review.pages.wording.times import Moment, moment
from vouchgate.review.undo import undo_deadline as undo_until

PATH = "/review/history"
_OPENING = 600  # characters of each of two texts that a list shows beside one another

_MARKS = {
    ReviewStatus.APPROVED: "good",
    ReviewStatus.PROMOTED: "good",
    ReviewStatus.REJECTED: "bad",
    ReviewStatus.EXPIRED: "doubt",
    ReviewStatus.LET_GO: "doubt",
    ReviewStatus.PENDING: "plain",
}


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One claim that does not wait any more. `undo` says for how long the act can be taken back; empty: it
    cannot."""

    id: str
    version: int
    status: str
    mark: str
    decided: Moment
    by: str
    claim: tuple[Piece, ...]
    edited: bool  # approved in its owner's words: `claim` shows both
    note: tuple[Piece, ...]
    memory_id: str | None
    undo: str


@dataclass(frozen=True, slots=True)
class FilterChoice:
    """A filter of the page."""

    label: str
    href: str
    chosen: bool


def href(query: Mapping[str, str], **more: str) -> str:
    """The address of the page with these fields."""
    fields = {name: value for name, value in {**query, **more}.items() if value}
    return f"{PATH}?{urlencode(fields)}" if fields else PATH


def filter_choices(chosen: ReviewStatus | None, query: Mapping[str, str]) -> list[FilterChoice]:
    """Every ending, and all of them together, with what else the query asks for."""
    endings = [status for status in ReviewStatus if status is not ReviewStatus.PENDING]
    return [
        FilterChoice("all", href(query, status=""), chosen is None),
        *(FilterChoice(s.value.replace("_", " "), href(query, status=s.value), chosen is s) for s in endings),
    ]


def rows_of(
    items: Sequence[PendingMemory],
    *,
    names: Mapping[str, str],
    stored: Mapping[str, Memory],
    policy: Policy,
    now: datetime,
) -> list[HistoryRow]:
    """The items as rows. `names` has what the reviewers' tokens are called, `stored` the memories that items became,
    each by id."""
    return [_row(item, names, stored.get(item.memory_id or ""), policy, now) for item in items]


def _row(
    item: PendingMemory, names: Mapping[str, str], stored: Memory | None, policy: Policy, now: datetime
) -> HistoryRow:
    by = item.decided_by or SERVICE
    until = undo_until(item, policy)
    edited = stored is not None and stored.content != item.content
    claim = opening_pieces(item.content)
    if stored is not None and edited:
        claim = word_diff(item.content[:_OPENING], stored.content[:_OPENING]).merged
    return HistoryRow(
        id=item.id,
        version=item.version,
        status=item.status.value,
        mark=_MARKS[item.status],
        decided=moment(item.decided_at or item.created_at, now),
        by="by itself" if by == SERVICE else f"by {names.get(by, by)}",
        claim=claim,
        edited=edited,
        note=pieces(item.note or ""),
        memory_id=item.memory_id,
        undo=f"for {span_left(until - now)} more" if until is not None and until > now else "",
    )
