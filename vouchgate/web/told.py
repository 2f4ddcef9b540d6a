"""What an act came to, in words for the one who did it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vouchgate.gate.incoming import ClaimRefused
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.policy import Policy
from vouchgate.review.answers import (
    AlreadyDecided,
    ApprovalRefused,
    Approved,
    ItemChanged,
    NotFound,
    NotUndoable,
    Objected,
    Rejected,
    Removed,
    Undone,
    Voted,
)
from vouchgate.review.pages.wording.text import plain_line
from vouchgate.server.rulings import ActOutcome
from vouchgate.service import Service
from vouchgate.storage.claims import memories
from vouchgate.storage.errors import RecordUnreadable, StorageError, StoreUnknown
from vouchgate.web.session import Visitor

_WHICH_HOLDS = (
    "It conflicts with a stored memory: say whether it replaces that one, or whether both are kept."
)
_DECIDED = {
    ReviewStatus.PENDING: "It waits.",
    ReviewStatus.APPROVED: "It is approved already.",
    ReviewStatus.REJECTED: "It is rejected already.",
    ReviewStatus.EXPIRED: "Its time is over: it has expired.",
    ReviewStatus.LET_GO: "It was let go.",
    ReviewStatus.PROMOTED: "It is stored already: its citation was verified meanwhile.",
}


@dataclass(frozen=True, slots=True)
class ActResult:
    """What one act came to. `outcome` is a word, `message` a sentence; `undo_version` is set where it can be
    taken back; `status` is that of a page about it alone; `asks`: nothing but a word on what becomes of the memory
    that it conflicts with is missing."""

    id: str
    outcome: str
    message: str
    done: bool
    status: int
    undo_version: int | None = None
    memory_id: str | None = None  # that stands in the way
    asks: bool = False

    @property
    def mark(self) -> str:
        """How it is coloured."""
        return "good" if self.done else "doubt"

    @property
    def as_json(self) -> dict[str, Any]:
        """For the page's script."""
        return {
            "id": self.id,
            "outcome": self.outcome,
            "message": self.message,
            "done": self.done,
            "undo_version": self.undo_version,
            "asks": self.asks,
        }


def describe_result(item_id: str, answer: ActOutcome, policy: Policy) -> ActResult:
    """An answer in words. Nothing tells an item of another owner from one that does not exist."""
    match answer:
        case Approved() | Removed() | Voted() | Rejected() | Objected() | Undone():
            return _done(item_id, answer, policy)
        case ClaimRefused() | StorageError():
            return _failed(item_id, answer)
        case NotFound() | ItemChanged() | AlreadyDecided() | ApprovalRefused() | NotUndoable():
            return _not_done(item_id, answer)


def _done(
    item_id: str, answer: Approved | Removed | Voted | Rejected | Objected | Undone, policy: Policy
) -> ActResult:
    undo = answer.item.version if policy.queue.undo_minutes else None
    match answer:
        case Approved():
            replaced = " It replaced the stored memory." if answer.superseded else ""
            sentence = f"Approved: {_short(answer.memory.content)}.{replaced}"
            return ActResult(item_id, "approved", sentence, True, 200, undo)
        case Removed():
            sentence = f"Approved: {_short(answer.item.content)} is to be removed."
            return ActResult(item_id, "approved", sentence, True, 200)
        case Rejected():
            sentence = f"Rejected: {_short(answer.item.content)}."
            return ActResult(item_id, "rejected", sentence, True, 200, undo)
        case Voted():
            sentence = (
                f"Approved by {answer.given} of {answer.needed}: {_short(answer.item.content)} waits on."
            )
            return ActResult(item_id, "voted", sentence, True, 200, answer.item.version)
        case Objected():
            sentence = f"Returned to the queue: {_short(answer.item.content)}. Approvals are given anew."
            return ActResult(item_id, "objected", sentence, True, 200)
        case Undone():
            sentence = f"Taken back: {_short(answer.item.content)}. It waits again."
            return ActResult(item_id, "waits again", sentence, True, 200)


def _not_done(
    item_id: str, answer: NotFound | ItemChanged | AlreadyDecided | ApprovalRefused | NotUndoable
) -> ActResult:
    match answer:
        case NotFound():
            return ActResult(item_id, "not found", "There is no such claim.", False, 404)
        case ItemChanged():
            sentence = (
                f"It has changed since you looked: {plain_line(answer.current.reason, 200)}. Look again."
            )
            return ActResult(item_id, "changed", sentence, False, 409)
        case AlreadyDecided():
            return ActResult(item_id, "decided before", _DECIDED[answer.current.status], False, 409)
        case ApprovalRefused():
            standing, asks = answer.conflicting_memory_id, answer.code == "conflict_unresolved"
            sentence = _WHICH_HOLDS if asks else answer.message  # that one names what a call of the API says
            return ActResult(item_id, "left waiting", sentence, False, 409, memory_id=standing, asks=asks)
        case NotUndoable():
            return ActResult(item_id, "not taken back", answer.message, False, 409)


def _failed(item_id: str, error: ClaimRefused | StorageError) -> ActResult:
    if isinstance(error, ClaimRefused):
        return ActResult(item_id, "left waiting", f"This cannot be looked at: {error}.", False, 422)
    if isinstance(error, RecordUnreadable):
        sentence = (
            "The record of its decision cannot be read, so this cannot be done. Ask whoever runs the service."
        )
        return ActResult(item_id, "not kept", sentence, False, 409)
    if isinstance(error, StoreUnknown):
        sentence = "The database broke off; this may have been kept. Look again before you repeat it."
        return ActResult(item_id, "not known", sentence, False, 503)
    sentence = "The database did not take this now; nothing was kept. Do it again."
    return ActResult(item_id, "not kept", sentence, False, 503)


def _short(content: str) -> str:
    return f"“{plain_line(content, 80)}”"


@dataclass(frozen=True, slots=True)
class ActNotice:
    """The act that led to a page, told on it."""

    id: str
    sentence: str
    claim: str
    undo_version: int | None


def find_notice(service: Service, visitor: Visitor, item_id: str | None, now: datetime) -> ActNotice | None:
    """What is told of the item that an address says was acted on just now; None when there is none."""
    item = None if item_id is None else service.queue.get_by_id(visitor.principal, item_id)
    if item is None:
        return None
    waits = "It waits again:"
    if item.sent_back_at is not None:
        waits = "Sent back to its agent:"
    elif item.snoozed_until is not None and item.snoozed_until > now:
        waits = "Snoozed:"
    words = {
        ReviewStatus.LET_GO: "Let go:",
        ReviewStatus.APPROVED: "Approved:",
        ReviewStatus.REJECTED: "Rejected:",
        ReviewStatus.PENDING: waits,
    }.get(item.status)
    if words is None:
        return None
    until = service.queue.undo_until(item)
    cast = service.queue.votes_of(item, now) if item.status is ReviewStatus.PENDING else None
    given = () if cast is None else cast.given
    if cast is not None and given:
        words, until = f"Approved by {len(given)} of {cast.required.approvals}:", item.expires_at
    claim = item.content
    if item.memory_id is not None:  # an owner may have approved it in words of their own
        with service.store.read() as connection:
            memory = memories.get(connection, item.memory_id, now, owners=frozenset({item.owner_id}))
        claim = item.content if memory is None else memory.content
    return ActNotice(item.id, words, claim, item.version if until is not None and now < until else None)
