"""What reviewers ask: the requests of the review queue, as values. Pure. Each is a method of `Reviews` and
`AsyncReviews`."""

from __future__ import annotations

from vouchgate.client import answers
from vouchgate.client.calls import ClaimMapping, as_json, path_id, without_none
from vouchgate.client.models import HandedOver, Page, Review, Ruling
from vouchgate.client.steps import Call, Value
from vouchgate.ingest.claims.waiting import PendingMemory

_RULING = answers.body_reader(Ruling)


def list_items(
    *,
    status: str = "pending",
    order: str = "priority",
    q: str | None = None,
    user_id: str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> Call[Page[PendingMemory]]:
    """A page of what waits, what presses most first. `q` is a query, see docs/review.md; `order` is `"priority"`,
    `"oldest"` or `"newest"`."""
    named: dict[str, Value] = {"status": status, "order": order, "q": q, "user_id": user_id}
    parameters = without_none({**named, "limit": limit, "after": after})
    return Call("GET", "/v1/reviews", answers.body_reader(Page[PendingMemory]), parameters=parameters)


def show(item_id: str) -> Call[Review]:
    """One item, with what a reviewer wants to know of it. `item_id` is the `queue_id` of a verdict."""
    return Call("GET", _path(item_id), answers.body_reader(Review))


def approve(
    item: PendingMemory, *, note: str | None = None, supersede: bool | None = None, over: str | None = None
) -> Call[Ruling]:
    """Stores the claim of an item that was looked at, or counts the approval where more than one is needed. Its sources
    are read again first. `supersede` says what becomes of a memory that it conflicts with: True replaces it, False
    keeps both; `over` is the id of one that says nearly the same, and that it replaces."""
    return _act(item, "approve", {"note": note, "supersede": supersede, "over": over})


def edit(
    item: PendingMemory, content: str, *, note: str | None = None, supersede: bool | None = None
) -> Call[Ruling]:
    """Approves in the reviewer's own words: `content` goes through the checks and is stored instead."""
    return _act(item, "approve", {"content": content, "note": note, "supersede": supersede})


def reject(item: PendingMemory, reason: str) -> Call[Ruling]:
    """Keeps the claim out. Its agent is told the reason."""
    return _act(item, "reject", {"reason": reason})


def undo(item: PendingMemory) -> Call[Ruling]:
    """Takes an approval or a rejection back, for as long as the policy says: the item waits again. `item` is the one of
    the ruling."""
    return _act(item, "undo", {})


def hand_over(audit: ClaimMapping) -> Call[HandedOver]:
    """Hands rows of an audit of a memory over, to be cleared on its page; see docs/api.md."""
    return Call("POST", "/v1/memory-audits", answers.body_reader(HandedOver), body=as_json(audit))


def _act(item: PendingMemory, act: str, said: dict[str, Value]) -> Call[Ruling]:
    if not isinstance(item, PendingMemory):  # a verdict, say, which nobody has looked at as a reviewer
        raise TypeError(f"give an item that `list` or `show` gave, not {type(item).__name__}")
    body = as_json({"version": item.version, **without_none(said)})
    return Call("POST", f"{_path(item.id)}/{act}", _RULING, body=body)


def _path(item_id: str) -> str:
    return f"/v1/reviews/{path_id(item_id, 'review')}"
