"""Stored memories: searched, shown with their evidence, taken out of force."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from vouchgate.ingest.claims.likeness import Embedding
from vouchgate.ingest.claims.memory import Memory
from vouchgate.review.answers import AlreadyGone, ApprovalRefused, NotFound, Retracted
from vouchgate.review.pages.memory import MemoryListQuery, memory_view, parse_query, rests_view, rows_of
from vouchgate.review.pages.publishers import impact_href
from vouchgate.review.reading import parse_decision
from vouchgate.review.trust import impact
from vouchgate.review.vouching.confirming import confirm
from vouchgate.server.state import service_of
from vouchgate.storage.claims import decisions, memories, searching
from vouchgate.storage.claims.memories import MemoryFilter, storable
from vouchgate.storage.identity import tokens
from vouchgate.storage.outgoing import deliveries
from vouchgate.web.pages import PageProblem, gone, html
from vouchgate.web.queue import MOST_REASON
from vouchgate.web.session import SignedIn, Visitor, form, see_other, waiting_for

router = APIRouter(include_in_schema=False)

PAGE = 50
MOST_TEXT = 200  # characters of a search


@router.get("/review/memories")
async def listing(request: Request, visitor: SignedIn) -> Response:
    """Memories that match the address: those that are searched for best first, else the newest."""
    chosen = parse_query(request.query_params)
    if len(chosen.q) > MOST_TEXT or not all(map(storable, (chosen.q, chosen.source))):
        raise PageProblem(422, f"A search has at most {MOST_TEXT} characters.")
    wanted = _filter(chosen.fields, visitor, request.query_params.get("after"))
    meaning = await service_of(request).gate.embed(wanted.q)
    return await run_in_threadpool(lambda: _listed(request, visitor, chosen, wanted, meaning))


def _listed(
    request: Request,
    visitor: Visitor,
    chosen: MemoryListQuery,
    wanted: MemoryFilter,
    meaning: Embedding | None,
) -> Response:
    service, now = service_of(request), datetime.now(UTC)
    with service.store.browse() as connection:
        found = searching.find(connection, wanted, now, meaning)
    more, found = len(found) > PAGE and wanted.q is None, found[:PAGE]
    rests = None
    if chosen.source:
        rests = rests_view(impact.impact_of(service.store, visitor.owner_id, chosen.source, now, found=found))
    return html(
        request,
        "memories.html",
        here="memories",
        waiting=waiting_for(request, visitor),
        chosen=chosen,
        selects=chosen.selects,
        filtered=chosen.filtered,
        sources=dict.fromkeys(one.source_id for one in found if one.source_id),
        rests=rests,
        rows=rows_of(found, now),
        next_href=chosen.href(after=found[-1].id) if more else None,
    )


def _filter(fields: dict[str, Any], visitor: Visitor, after: str | None) -> MemoryFilter:
    try:
        return MemoryFilter(owners=frozenset({visitor.owner_id}), after=after, limit=PAGE + 1, **fields)
    except ValidationError as error:
        raise PageProblem(422, "This address names a choice that there is not.") from error


@router.post("/review/memories/recheck")
async def read_again(request: Request, visitor: SignedIn) -> Response:
    """Has the sources of all that rests on one read again now."""
    fields, visitor = await form(request, visitor)
    source, store = fields.get("source", "").strip(), service_of(request).store
    if not source or not storable(source):
        raise PageProblem(422, "Say which source.")
    await run_in_threadpool(impact.recheck, store, visitor.owner_id, source, datetime.now(UTC))
    return see_other(request, impact_href(source))


@router.get("/review/memories/{memory_id}")
def memory(request: Request, visitor: SignedIn, memory_id: str) -> Response:
    """One memory with its evidence."""
    return _page(request, visitor, memory_id)


@router.post("/review/memories/{memory_id}/confirm")
async def still_holds(request: Request, visitor: SignedIn, memory_id: str) -> Response:
    """Says that a memory still holds."""
    _, visitor = await form(request, visitor)
    store, policy, now = service_of(request).store, service_of(request).policy, datetime.now(UTC)
    answer = await run_in_threadpool(lambda: confirm(store, visitor.principal, memory_id, policy, now))
    return await _done(request, visitor, memory_id, answer)


@router.post("/review/memories/{memory_id}/retract")
async def retract(request: Request, visitor: SignedIn, memory_id: str) -> Response:
    """Takes a memory out of force, with the reason."""
    (fields, visitor), service = await form(request, visitor), service_of(request)
    reason = fields.get("reason", "").strip()
    if not 0 < len(reason) <= MOST_REASON:
        raise PageProblem(
            422, f"Taking a memory out of force needs a reason of 1 to {MOST_REASON} characters."
        )
    answer = await run_in_threadpool(
        lambda: service.queue.retract(visitor.principal, memory_id, reason=reason, now=datetime.now(UTC))
    )
    return await _done(request, visitor, memory_id, answer)


async def _done(
    request: Request,
    visitor: Visitor,
    memory_id: str,
    answer: Memory | Retracted | NotFound | AlreadyGone | ApprovalRefused,
) -> Response:
    """Back to the page of a memory that was acted on, or why nothing was done."""
    match answer:
        case NotFound():
            raise PageProblem(404, "There is no such memory.")
        case ApprovalRefused():
            return await run_in_threadpool(lambda: _page(request, visitor, memory_id, answer.message))
        case AlreadyGone():
            problem = f"It was {answer.memory.status.value} before; nothing was done."
            return await run_in_threadpool(lambda: _page(request, visitor, memory_id, problem))
    return see_other(request, f"/review/memories/{memory_id}")


def _page(request: Request, visitor: Visitor, memory_id: str, problem: str | None = None) -> Response:
    service, now = service_of(request), datetime.now(UTC)
    owners = frozenset({visitor.owner_id})
    with service.store.browse() as connection:
        found = memories.get(connection, memory_id, now, owners=owners)
        if found is None:
            raise gone(connection, memory_id, owners, "There is no such memory.")
        text = decisions.get(connection, found.decision_id, owners=owners)
        names = tokens.names(connection, {found.approved_by or ""})
        told = deliveries.of_memories(connection, [found])[found.id]
    return html(
        request,
        "memory.html",
        200 if problem is None else 409,
        here="memories",
        waiting=waiting_for(request, visitor),
        memory=memory_view(
            found, parse_decision(text), names=names, policy=service.policy, now=now, deliveries=told
        ),
        problem=problem,
        wrong="wrong" in request.query_params,
    )
