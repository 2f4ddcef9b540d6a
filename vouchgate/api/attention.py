"""What reviewers say about items without ruling on them, their saved queries, and letting go of many items at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from vouchgate.api.base import JsonRoute, problem_responses
from vouchgate.api.problems import ProblemError
from vouchgate.api.reviews import Reviewer, ReviewReader, not_done, query_of
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.review.attending import attention, views
from vouchgate.review.attending.attention import MOST_LET_GO, Attended, AttentionAnswer, NotPossible
from vouchgate.review.attending.views import TooManyViews
from vouchgate.server.state import service_of
from vouchgate.storage.queue.query import QueryError
from vouchgate.storage.queue.views import MOST_VIEWS
from vouchgate.wire import AssignIn, LetGoIn, LookIn, SendBackIn, SnoozeIn, Text, ViewIn, WireOut

router = APIRouter(prefix="/v1/reviews", route_class=JsonRoute, tags=["reviews"])


class AttendedOut(WireOut):
    """The item as it now is."""

    item: PendingMemory


class LetGoOut(WireOut):
    """How many items the query found, how many of them were let go, and how many had changed in between."""

    found: int
    let_go: int
    left: int


class ViewOut(WireOut):
    """A query under a name."""

    name: str
    q: str


class ViewsOut(WireOut):
    """The caller's own views, by name."""

    views: list[ViewOut]


@router.get("/views", responses=problem_responses())
def list_views(request: Request, principal: ReviewReader) -> ViewsOut:
    """The caller's saved queries."""
    found = views.listing(service_of(request).store, principal)
    return ViewsOut(views=[ViewOut(name=view.name, q=view.query) for view in found])


@router.post("/views", responses=problem_responses(409, body=True))
def save_view(request: Request, sent: ViewIn, principal: Reviewer) -> ViewOut:
    """Keeps a query under a name, in place of what had the name."""
    try:
        view = views.save(service_of(request).store, principal, sent.name, sent.q, datetime.now(UTC))
    except QueryError as error:
        raise ProblemError(422, "invalid_query", str(error)) from error
    if isinstance(view, TooManyViews):
        raise ProblemError(409, "too_many_views", f"You have {MOST_VIEWS} views; delete one first.")
    return ViewOut(name=view.name, q=view.query)


@router.delete("/views", responses=problem_responses())
def delete_view(
    request: Request, name: Annotated[Text, Query(min_length=1, max_length=60)], principal: Reviewer
) -> ViewsOut:
    """Forgets a saved query, if there is one of this name. The answer has the others."""
    views.remove(service_of(request).store, principal, name)
    return list_views(request, principal)


@router.post("/let-go", responses=problem_responses(409, body=True))
def let_go(request: Request, sent: LetGoIn, principal: Reviewer) -> LetGoOut:
    """Ends the wait of all that a query finds: what can never be decided well. It says nothing of whether it is so, and
    can be taken back as a ruling can."""
    queue, now, query = service_of(request).queue, datetime.now(UTC), query_of(sent.q)
    if not query.terms:
        raise ProblemError(422, "invalid_query", "Say what is to be let go: this query finds everything.")
    found = list(attention.matching(queue, principal, query, now=now))
    if sent.dry_run:
        return LetGoOut(found=len(found), let_go=0, left=0)
    if sent.expect not in (None, len(found)):
        detail = f"The query finds {len(found)} items by now, not {sent.expect}. Look again."
        raise ProblemError(409, "other_number", detail, found=len(found))
    if len(found) > MOST_LET_GO:
        detail = f"The query finds {len(found)} items; at most {MOST_LET_GO} go at once. Narrow it."
        raise ProblemError(409, "too_many", detail, found=len(found))
    done = attention.let_go(queue, principal, found, reason=sent.reason, now=now)
    return LetGoOut(found=len(found), let_go=done.count, left=done.left)


@router.post("/{item_id}/snooze", responses=problem_responses(404, 409, body=True))
async def snooze(request: Request, item_id: str, sent: SnoozeIn, principal: Reviewer) -> AttendedOut:
    """Takes an item out of the list until a time; it keeps its place in the limits and expires when it would have."""
    queue, now = service_of(request).queue, datetime.now(UTC)
    return _told(
        await run_in_threadpool(attention.snooze, queue, principal, item_id, until=sent.until, now=now)
    )


@router.post("/{item_id}/resume", responses=problem_responses(404, 409))
async def resume(request: Request, item_id: str, principal: Reviewer) -> AttendedOut:
    """Has an item that is snoozed or sent back stand in the list again, at once."""
    queue = service_of(request).queue
    return _told(await run_in_threadpool(attention.resume, queue, principal, item_id, now=datetime.now(UTC)))


@router.post("/{item_id}/assign", responses=problem_responses(404, 409, body=True))
async def assign(request: Request, item_id: str, sent: AssignIn, principal: Reviewer) -> AttendedOut:
    """Says who is to rule on an item. Every other reviewer of the owner still can."""
    queue, now = service_of(request).queue, datetime.now(UTC)
    return _told(await run_in_threadpool(attention.assign, queue, principal, item_id, to=sent.to, now=now))


@router.post("/{item_id}/look", responses=problem_responses(404, 409, body=True))
async def look(request: Request, item_id: str, sent: LookIn, principal: Reviewer) -> AttendedOut:
    """Tells others for some minutes that the caller looks at an item. Where another said so first, the item names that
    one; nobody is kept from anything."""
    queue, now = service_of(request).queue, datetime.now(UTC)
    return _told(await run_in_threadpool(attention.look, queue, principal, item_id, now=now, stop=sent.stop))


@router.post("/{item_id}/send-back", responses=problem_responses(404, 409, body=True))
async def send_back(request: Request, item_id: str, sent: SendBackIn, principal: Reviewer) -> AttendedOut:
    """Asks an item's agent for what is missing. Until it answers, the item is out of the list."""
    queue, now = service_of(request).queue, datetime.now(UTC)
    version, question = sent.version, sent.question

    def work() -> AttentionAnswer:
        return attention.send_back(queue, principal, item_id, version=version, question=question, now=now)

    return _told(await run_in_threadpool(work))


def _told(answer: AttentionAnswer) -> AttendedOut:
    match answer:
        case Attended():
            return AttendedOut(item=answer.item)
        case NotPossible():
            raise ProblemError(409, answer.code, answer.message)
        case _:
            raise not_done(answer)
