"""One waiting claim with everything that was found about it, and the acts on it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.responses import Response

from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.review.pages.changes import changes_between
from vouchgate.review.pages.queue import QueueListing
from vouchgate.review.pages.reasons import CANNED, kind_of_item
from vouchgate.review.pages.votes import votes_view
from vouchgate.review.pages.wording.diff import word_diff
from vouchgate.review.pages.wording.text import is_whole, opening_pieces, pieces
from vouchgate.review.reading import parse_decision
from vouchgate.server import rulings as acts
from vouchgate.server.state import service_of
from vouchgate.service import Service
from vouchgate.storage.claims import decisions
from vouchgate.storage.queue import pending
from vouchgate.web.listing import listing_of
from vouchgate.web.pages import PageProblem, gone, html
from vouchgate.web.pane import read_item
from vouchgate.web.queue import MOST_REASON, parse_over, parse_reason, parse_supersede, redirect_with_result
from vouchgate.web.session import Form, SignedIn, Visitor, form, own_path, see_other, waiting_for
from vouchgate.web.told import ActResult, describe_result, find_notice

router = APIRouter(include_in_schema=False)

MOST_CONTENT = 8192  # characters, as of every claim; the policy may allow fewer


@dataclass(frozen=True, slots=True)
class FormInput:
    """What a visitor had put into the forms, so that an act that fails loses none of it."""

    content: str | None = None
    note: str = ""
    canned: str = ""
    reason: str = ""
    supersede: bool | None = None


@dataclass(frozen=True, slots=True)
class ActProblem:
    """Why an act was not done."""

    title: str
    says: object  # pieces of text
    memory_id: str | None


@router.get("/review/items/{item_id}")
def item(request: Request, visitor: SignedIn, item_id: str) -> Response:
    """One item, whatever became of it; of another owner of the visitor's, among that owner's pages."""
    whose = None if len(visitor.owners) == 1 else _owner_of(service_of(request), visitor, item_id)
    if whose is not None and whose != visitor.owner_id:
        query = request.url.remove_query_params("owner").query
        request.state.visitor = visitor.of(whose)
        return see_other(request, own_path(request.url.path + (f"?{query}" if query else "")))
    return _page(request, visitor, item_id, listing_of(request.query_params))


@router.get("/review/items/{item_id}/pane")
def pane(request: Request, visitor: SignedIn, item_id: str) -> Response:
    """The part of one item that is shown beside the list."""
    service, now = service_of(request), datetime.now(UTC)
    shown = service.queue.get_by_id(visitor.principal, item_id)
    if shown is None:
        with service.store.read() as connection:
            raise gone(connection, item_id, frozenset(visitor.owners), "There is no such claim.")
    listing = listing_of(request.query_params)
    read = read_item(service, shown, now, me=visitor.principal.id)
    return html(
        request,
        "_pane.html",
        item=read.view,
        attention=read.attention,
        kind=kind_of_item(shown),
        cut=not is_whole(opening_pieces(shown.content), shown.content),
        href=listing.href(f"/review/items/{item_id}"),
    )


@router.post("/review/items/{item_id}/opened")
async def opened(request: Request, visitor: SignedIn, item_id: str) -> Response:
    """Keeps that the visitor has the claim before them: the script says so of what was in sight beside the list."""
    _, visitor = await form(request, visitor)
    queue = service_of(request).queue
    shown = await run_in_threadpool(queue.get_by_id, visitor.principal, item_id)
    if shown is None:
        raise PageProblem(404, "There is no such claim.")
    await run_in_threadpool(queue.note_opened, visitor.principal, shown, datetime.now(UTC))
    return Response(status_code=204)


@router.post("/review/items/{item_id}/approve")
async def approve(request: Request, visitor: SignedIn, item_id: str) -> Response:
    """Stores the claim, or the visitor's own wording of it."""
    (fields, visitor), service = await form(request, visitor), service_of(request)
    version, note, content = version_of(fields), fields.get("note", "").strip(), fields.get("content")
    supersede = parse_supersede(fields)
    unusable = _edit_problem(note, content)
    if unusable is not None:
        typed = FormInput(content=content, note=note, supersede=supersede)
        return await _answer(request, visitor, _left(item_id, unusable), fields, typed)
    seen = await run_in_threadpool(service.queue.get_by_id, visitor.principal, item_id)
    # Who opens the form and changes nothing wants the claim as it is.
    own = content if seen is not None and content is not None and content != _as_typed(seen.content) else None
    row = acts.Approve(
        item_id, version, note=note or None, supersede=supersede, content=own, over=parse_over(fields)
    )
    (answer,) = await acts.apply_acts(service, visitor.principal, [row])
    typed = FormInput(content=own, note=note, supersede=supersede)
    return await _answer(request, visitor, describe_result(item_id, answer, service.policy), fields, typed)


@router.post("/review/items/{item_id}/reject")
async def reject(request: Request, visitor: SignedIn, item_id: str) -> Response:
    """Keeps the claim out, with the reason."""
    (fields, visitor), service = await form(request, visitor), service_of(request)
    version, typed = (
        version_of(fields),
        FormInput(canned=fields.get("canned", ""), reason=fields.get("reason", "")),
    )
    try:
        row = acts.Reject(item_id, version, reason=parse_reason(fields))
    except PageProblem as problem:
        return await _answer(request, visitor, _left(item_id, problem.sentence), fields, typed)
    (answer,) = await acts.apply_acts(service, visitor.principal, [row])
    return await _answer(request, visitor, describe_result(item_id, answer, service.policy), fields, typed)


@router.post("/review/items/{item_id}/undo")
async def undo(request: Request, visitor: SignedIn, item_id: str) -> Response:
    """Takes an approval or a rejection back: the claim waits again."""
    (fields, visitor), service = await form(request, visitor), service_of(request)
    (answer,) = await acts.apply_acts(service, visitor.principal, [acts.Undo(item_id, version_of(fields))])
    result = describe_result(item_id, answer, service.policy)
    if result.done:
        return see_other(request, f"/review/items/{item_id}?done={item_id}")
    return await _answer(request, visitor, result, fields, FormInput())


def _owner_of(service: Service, visitor: Visitor, item_id: str) -> str | None:
    with service.store.read() as connection:
        found = pending.get(connection, item_id, owners=frozenset(visitor.owners))
    return None if found is None else found.owner_id


def version_of(fields: Form) -> int:
    """The version that a form is about. Raises PageProblem (422)."""
    version = fields.get("version", "")
    if not (version.isascii() and version.isdecimal() and 0 < len(version) <= 9):
        raise PageProblem(422, "This form does not say which version of the claim it is about.")
    return int(version)


def _edit_problem(note: str, content: str | None) -> str | None:
    """What is wrong with what was typed for an approval."""
    if len(note) > MOST_REASON:
        return f"A note has at most {MOST_REASON} characters."
    if content is not None and not (content.strip() and len(content) <= MOST_CONTENT):
        return f"Your wording must have 1 to {MOST_CONTENT} characters."
    return None


def _as_typed(text: str) -> str:
    """A text as a form gives it back that nobody touched: browsers have one kind of line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _left(item_id: str, sentence: str) -> ActResult:
    return ActResult(item_id, "left waiting", sentence, False, 422)


async def _answer(
    request: Request, visitor: Visitor, result: ActResult, fields: Form, typed: FormInput
) -> Response:
    """To the next item of the listing when it was done; else the item again, with why it was not."""
    back = own_path(fields.get("back"))
    if result.done:
        return redirect_with_result(request, own_path(fields.get("next") or back), result)
    listing, seen = listing_of(QueryParams(urlsplit(back).query)), fields.get("seen")
    return await run_in_threadpool(
        lambda: _page(request, visitor, result.id, listing, failed=result, typed=typed, seen=seen)
    )


def _page(
    request: Request,
    visitor: Visitor,
    item_id: str,
    listing: QueueListing,
    *,
    failed: ActResult | None = None,
    typed: FormInput | None = None,
    seen: str | None = None,
) -> Response:
    service, now = service_of(request), datetime.now(UTC)
    shown = service.queue.get_by_id(visitor.principal, item_id)
    if shown is None:
        with service.store.read() as connection:
            raise gone(connection, item_id, frozenset(visitor.owners), "There is no such claim.")
    service.queue.note_opened(visitor.principal, shown, now)
    read = read_item(service, shown, now, me=visitor.principal.id)
    wanted = listing.as_filter()
    following = None if wanted is None else service.queue.neighbours(visitor.principal, shown.id, wanted)
    earlier, seen = None, seen if failed is not None else shown.asked_decision
    if seen and seen != shown.decision_id:
        earlier = _decision(service, seen, visitor.owner_id)
    return html(
        request,
        "item.html",
        200 if failed is None else failed.status,
        here="queue",
        waiting=waiting_for(request, visitor),
        item=read.view,
        kind=kind_of_item(shown),
        done=find_notice(service, visitor, request.query_params.get("done"), now),
        problem=failed and ActProblem("It was not done.", pieces(failed.message), failed.memory_id),
        changes=changes_between(earlier, read.answer),
        attention=read.attention,
        edited=word_diff(shown.content, read.became) if read.became not in (None, shown.content) else None,
        typed=typed or FormInput(),
        votes=votes_view(shown, service.queue.votes_of(shown, now), visitor.principal.person, now),
        barred=service.queue.barred(visitor.principal, shown, now),
        back=listing.href(),
        next_href=listing.href(f"/review/items/{following}") if following else None,
        canned_reasons=CANNED,
    )


def _decision(service: Service, decision_id: str, owner_id: str) -> ValidationResult | None:
    """A decision that a page of this visitor showed before."""
    with service.store.read() as connection:
        return parse_decision(decisions.get(connection, decision_id, owners=frozenset({owner_id})))
