"""The history page, decided: what became of claims that waited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from vouchgate.ingest.claims.types import PendingMemory, ReviewStatus
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.priority import span
from vouchgate.review.acts import SERVICE
from vouchgate.review.pages.text import Piece, opening_pieces, pieces
from vouchgate.review.pages.times import Moment, moment
from vouchgate.review.undo import undo_deadline as undo_until

PATH = "/review/history"

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
    note: tuple[Piece, ...]
    memory_id: str | None
    undo: str


@dataclass(frozen=True, slots=True)
class FilterChoice:
    """A filter of the page."""

    label: str
    href: str
    chosen: bool


def filter_choices(chosen: ReviewStatus | None) -> list[FilterChoice]:
    """Every ending, and all of them together."""
    endings = [status for status in ReviewStatus if status is not ReviewStatus.PENDING]
    return [
        FilterChoice("all", PATH, chosen is None),
        *(FilterChoice(s.value.replace("_", " "), f"{PATH}?status={s.value}", chosen is s) for s in endings),
    ]


def rows_of(
    items: Sequence[PendingMemory], *, names: Mapping[str, str], policy: Policy, now: datetime
) -> list[HistoryRow]:
    """The items as rows. `names` has what the reviewers' tokens are called, by id."""
    return [_row(item, names, policy, now) for item in items]


def _row(item: PendingMemory, names: Mapping[str, str], policy: Policy, now: datetime) -> HistoryRow:
    by = item.decided_by or SERVICE
    until = undo_until(item, policy)
    return HistoryRow(
        id=item.id,
        version=item.version,
        status=item.status.value,
        mark=_MARKS[item.status],
        decided=moment(item.decided_at or item.created_at, now),
        by="by itself" if by == SERVICE else f"by {names.get(by, by)}",
        claim=opening_pieces(item.content),
        note=pieces(item.note or ""),
        memory_id=item.memory_id,
        undo=f"for {span(until - now)} more" if until is not None and until > now else "",
    )
