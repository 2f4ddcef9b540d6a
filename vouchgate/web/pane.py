"""One claim as it is shown: on a page of its own, and beside the list. There is one way of reading it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.review.pages.attention import attention_notes
from vouchgate.review.pages.item import ItemView, item_view
from vouchgate.review.pages.wording.text import Pieces
from vouchgate.service import Service
from vouchgate.storage.claims import memories
from vouchgate.storage.identity import tokens


@dataclass(frozen=True, slots=True)
class ReadItem:
    """An item with its decision, None when that cannot be read, the text of the memory that it became, and what is
    told of who looks at it, is to rule on it, or was asked."""

    view: ItemView
    answer: ValidationResult | None
    became: str | None
    attention: tuple[Pieces, ...]


def read_item(service: Service, shown: PendingMemory, now: datetime, *, me: str) -> ReadItem:
    """All that a page shows of an item which the queue gave to its visitor, whose id is `me`."""
    queue = service.queue
    answer = queue.decision_of(shown)
    similar = None if answer is None else answer.similar
    if answer is not None and shown.status is ReviewStatus.PENDING and shown.removal_of is None:
        similar = queue.similar_to(shown, now)
    with service.store.read() as connection:
        memory = memories.get(connection, shown.memory_id or "", now, owners=frozenset({shown.owner_id}))
        named = (shown.submitted_by, shown.decided_by, shown.viewer, shown.assigned_to)
        names = tokens.names(connection, {each for each in named if each})
    view = item_view(
        shown,
        answer,
        conflict=queue.memory_to_compare(shown, now),
        similar=similar,
        sender=names.get(shown.submitted_by),
        decider=names.get(shown.decided_by or ""),
        next_check=queue.next_check(shown),
        rejected=queue.rejected_before(shown),
        policy=service.policy,
        now=now,
        undo_until=queue.undo_until(shown),
        approvals=queue.required_of(shown, now).approvals,
    )
    attention = attention_notes(shown, names, me=me, now=now)
    return ReadItem(view, answer, None if memory is None else memory.content, attention)
