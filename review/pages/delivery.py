"""What stores behind the gate were told of a memory, as its page shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.review.pages.wording.text import Piece, pieces
from vouchgate.review.pages.wording.times import Moment, moment
from vouchgate.storage.outgoing.deliveries import DeliveryRecord, DeliveryState


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """One delivery: a chip (`kind`, `word`), what was to be done where, since or until when, and what went wrong."""

    kind: str
    word: str
    doing: str
    sink: tuple[Piece, ...]
    place: tuple[Piece, ...]
    at_word: str
    at: Moment
    tries: str
    error: tuple[Piece, ...]


def delivery_views(records: Sequence[DeliveryRecord], now: datetime) -> tuple[DeliveryView, ...]:
    """The deliveries in the order given."""
    return tuple(_view(record, now) for record in records)


def _view(record: DeliveryRecord, now: datetime) -> DeliveryView:
    kind, word = _chip(record)
    at_word, at = _when(record)
    failed = record.attempts
    return DeliveryView(
        kind=kind,
        word=word,
        doing="to be written to" if record.op is DeliveryOp.PUT else "to be removed from",
        sink=pieces(record.sink),
        # A webhook has one place for each memory, which says nothing here.
        place=() if record.place == record.memory_id else pieces(record.place),
        at_word=at_word,
        at=moment(at, now),
        tries="" if not failed else "failed once" if failed == 1 else f"failed {failed} times",
        error=pieces(record.last_error or ""),
    )


def _chip(record: DeliveryRecord) -> tuple[str, str]:
    match record.state:
        case DeliveryState.WAITING:
            return ("doubt", "is tried again") if record.attempts else ("unknown", "waits")
        case DeliveryState.DELIVERED:
            return "good", "delivered"
        case DeliveryState.DEAD:
            return "bad", "given up"
        case DeliveryState.SKIPPED:
            return "plain", "not needed"


def _when(record: DeliveryRecord) -> tuple[str, datetime]:
    if record.delivered_at is not None:
        return "since", record.delivered_at
    if record.due_at is not None and record.attempts:
        return "next try", record.due_at
    return "noted", record.created_at
