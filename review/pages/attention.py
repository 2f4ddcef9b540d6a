"""What a page tells of an item beside its claim: who looks at it or is to rule on it, and what its agent was asked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.scoring.priority import span_left
from vouchgate.review.pages.wording.text import Pieces, pieces


def attention_notes(
    item: PendingMemory, names: Mapping[str, str], *, me: str, now: datetime
) -> tuple[Pieces, ...]:
    """A sentence each. `names` are those of tokens, `me` is who reads."""

    def who(token_id: str, you: str) -> str:
        return you if token_id == me else names.get(token_id, token_id)

    waits, found = item.status is ReviewStatus.PENDING, []
    if waits and item.viewer is not None and item.viewing_until is not None and item.viewing_until > now:
        found.append(
            "You are shown as looking at it." if item.viewer == me else f"{who(item.viewer, '')} is looking."
        )
    if waits and item.assigned_to is not None:
        found.append(f"Assigned to {who(item.assigned_to, 'you')}.")
    if waits and item.snoozed_until is not None and item.snoozed_until > now:
        found.append(f"Snoozed: it is back in the list in {span_left(item.snoozed_until - now)}.")
    if item.question is not None:
        answered = "It was answered." if item.sent_back_at is None else "It has not been answered yet."
        found.append(f"Its agent was asked: “{item.question}” {answered}")
    return tuple(map(pieces, found))
