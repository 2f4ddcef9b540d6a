"""The queue: what waits for a reviewer, and acts on some of it without leaving the list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.review.attending import views
from vouchgate.review.pages.queue import (
    ORDERS,
    SET_ASIDE,
    by_cited,
    by_reason,
    by_sender,
    filter_words,
    matching,
    rows_of,
    view_links,
)
from vouchgate.review.pages.reasons import CANNED, KNOWN
from vouchgate.review.pages.wording.text import is_whole, opening_pieces, pieces, plain_line
from vouchgate.review.reading import BY_HAND
from vouchgate.server import rulings as acts
from vouchgate.server.state import service_of
from vouchgate.service import Service
from vouchgate.storage.identity import tokens
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.queue.pending import cursor_of
from vouchgate.storage.queue.rulings import Done
from vouchgate.web.listing import listing_of
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.pane import read_item
from vouchgate.web.session import BULK_BYTES, Form, SignedIn, Visitor, form, own_path, see_other
from vouchgate.web.told import ActResult, describe_result, find_notice

router = APIRouter(include_in_schema=False)

_TOO_LONG = "It is longer than the list shows. Read it, and approve it on its own page."
_FOR_GOOD = "It asks for a removal, which cannot be taken back. Approve it by itself."

PAGE = 100  # rows: as many as the built-in policy lets wait for one owner, and as one bulk act takes
MOST_REASON = 2000  # characters, as over the API


@router.get("/review")
def queue(request: Request, visitor: SignedIn) -> Response:
    """The list, or the part of it that the address names."""
    service, listing = service_of(request), listing_of(request.query_params)
    now = datetime.now(UTC)
    facets = service.queue.facets(visitor.principal)
    after = request.query_params.get("after")
    wanted = listing.as_filter(after=after, limit=PAGE + 1)  # one more: is there a next page?
    found = [] if wanted is None else service.queue.search(visitor.principal, wanted)
    items, more = found[:PAGE], len(found) > PAGE
    senders = _names(service, {*facets.by_sender, *(item.submitted_by for item in items)})
    head_start = service.policy.queue.head_start_days
    words = service.policy.values
    rows = rows_of(items, listing, senders=senders, head_start=head_start, now=now, words=words)
    chosen = next((item for item in items if rows and item.id == rows[0].id), None)
    read = None if chosen is None else read_item(service, chosen, now, me=visitor.principal.id)
    return html(
        request,
        "queue.html",
        422 if listing.fault else 200,
        here="queue",
        waiting=facets.waiting,
        away=facets.away,
        seq=facets.seq,
        done=find_notice(service, visitor, request.query_params.get("done"), now),
        banner=service.webhooks.problem(visitor.owner_id),
        chosen=filter_words(listing, senders),
        reasons=by_reason(facets.by_rule, listing),
        more_groups=(
            ("By agent", by_sender(facets.by_sender, listing, senders)),
            ("By what they cite", by_cited(facets.by_cited, listing)),
        ),
        kept=[(name, value) for name, value in listing.query if name not in ("q", "order")],
        q=listing.q or "",
        fault=pieces(listing.fault),
        order=listing.order,
        orders=ORDERS,
        rows=rows,
        listed=len(items),
        matching=matching(listing, facets) or (f"{PAGE}+" if more else str(len(items))),
        item=read and read.view,
        attention=read.attention if read else (),
        views=view_links(views.listing(service.store, visitor.principal), listing),
        set_aside=SET_ASIDE,
        here_href=listing.href(),
        next_href=listing.href(after=cursor_of(items[-1], listing.order)) if more else None,
        canned_reasons=CANNED,
    )


def _names(service: Service, token_ids: set[str]) -> dict[str, str]:
    with service.store.read() as connection:
        return tokens.names(connection, token_ids)


@dataclass(frozen=True, slots=True)
class _ActRequest:
    """What a form of the list asks for: one act on each of `rows`. `keep` approves the first and rejects the others,
    which say the same in other words; `as_one`: the rows are one row of the list. `instead`: why there are none."""

    verb: str  # approve, keep, reject or undo
    rows: tuple[tuple[str, int], ...]  # id and version
    several: bool
    as_one: bool = False
    instead: str = ""


@router.post("/review/act")
async def act(request: Request, visitor: SignedIn) -> Response:
    """One act on one row or on several. A stale, decided, foreign or unknown one spoils no other; of the last two
    nothing is said that tells them apart."""
    fields, visitor = await form(request, visitor, limit=BULK_BYTES)
    service = service_of(request)
    asked = _undo_request(service, visitor) if fields.get("do") == "undo-last" else _parse_request(fields)
    unread = await run_in_threadpool(_unread_results, service, visitor, asked)
    rows = [row for row in _parse_rows(asked, fields) if row.id not in unread]
    if asked.verb == "keep" and unread:
        rows = []
    answers = iter(await acts.apply_acts(service, visitor.principal, rows, as_one=asked.as_one))
    results = []
    for item_id, _ in asked.rows:
        if item_id in unread:
            results.append(unread[item_id])
        elif (
            answer := next(answers, None)
        ) is not None:  # what followed from an approval that failed has none
            results.append(describe_result(item_id, answer, service.policy))
    waiting = (await run_in_threadpool(service.queue.facets, visitor.principal)).waiting
    summary = asked.instead or _summary(asked.verb, results)
    if "application/json" in request.headers.get("accept", ""):
        shown = [result.as_json for result in results]
        return JSONResponse({"waiting": waiting, "summary": summary, "results": shown})
    back = own_path(fields.get("back"))
    if asked.several or not results[0].done:
        claims = await run_in_threadpool(_claims, service, visitor, results)
        shown = [
            {**result.as_json, "mark": result.mark, "claim": claims.get(result.id)} for result in results
        ]
        status = 200 if asked.several else results[0].status
        return html(
            request,
            "results.html",
            status,
            here="queue",
            waiting=waiting,
            summary=summary,
            results=shown,
            back=back,
        )
    return redirect_with_result(request, back, results[0])


def _unread_results(service: Service, visitor: Visitor, asked: _ActRequest) -> dict[str, ActResult]:
    """What is told of the claims that the list has shown in part only: nobody vouches for what they have not seen. And
    of removals among several: nobody does what cannot be taken back unasked."""
    if asked.verb not in ("approve", "keep"):
        return {}
    items = [service.queue.get_by_id(visitor.principal, item_id) for item_id, _ in asked.rows]
    waiting = [item for item in items if item is not None and item.status is ReviewStatus.PENDING]
    left = {
        item.id: _TOO_LONG for item in waiting if not is_whole(opening_pieces(item.content), item.content)
    }
    if asked.several:
        left |= {item.id: _FOR_GOOD for item in waiting if item.removal_of is not None}
    return {item_id: ActResult(item_id, "left waiting", why, False, 409) for item_id, why in left.items()}


def _claims(service: Service, visitor: Visitor, results: Sequence[ActResult]) -> dict[str, str]:
    """The claims of the rows that are this visitor's."""
    items = [service.queue.get_by_id(visitor.principal, result.id) for result in results]
    return {item.id: item.content for item in items if item is not None}


def _parse_request(fields: Form) -> _ActRequest:
    """Raises PageProblem (422) for what no button of the page asks for."""
    what = fields.get("do", "")
    verb, _, named = what.partition(":")
    if named and verb in ("approve", "keep", "reject", "undo"):
        rows = tuple(map(_parse_row, named.split(",")))
        return _ActRequest(verb, _not_too_many(rows), several=len(rows) > 1, as_one=len(rows) > 1)
    verb, _, which = what.partition("-")
    if verb in ("approve", "reject", "undo") and which in ("ticked", "listed"):
        rows = tuple(map(_parse_row, fields.getlist("row" if which == "ticked" else "listed")))
        if not rows:
            raise PageProblem(422, "Nothing is ticked, so nothing was done.")
        return _ActRequest(verb, _not_too_many(rows), several=True)
    raise PageProblem(422, "This form asks for nothing that can be done here.")


def _not_too_many(rows: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    if len(rows) > PAGE:
        raise PageProblem(422, f"At most {PAGE} at once; nothing was done.")
    return rows


def _undo_request(service: Service, visitor: Visitor) -> _ActRequest:
    """What this visitor did last, as the store knows it, to be taken back: the last first, which may have replaced
    what one before it stored. Where that was no ruling, nothing."""
    last = service.queue.last_act(visitor.principal, datetime.now(UTC))
    if last.since is not None:
        return _ActRequest("undo", (), several=True, instead=_instead(service, visitor, last.since))
    rows = tuple((item.id, item.version) for item in last.items)
    return _ActRequest("undo", rows, several=len(rows) != 1)


def _instead(service: Service, visitor: Visitor, done: Done) -> str:
    item = service.queue.get_by_id(visitor.principal, done.subject_id)
    which = "" if item is None else f" (“{plain_line(item.content, 80)}”)"
    away = done.action in (Action.REVIEW_SNOOZED, Action.REVIEW_SENT_BACK)
    how = "“In the list again” on its page ends that" if away else "That is changed on its own page"
    return (
        f"Nothing was taken back: what you did last is that you {BY_HAND[done.action]}{which}. {how}; "
        "rulings before it are taken back in the history."
    )


def _parse_row(text: str) -> tuple[str, int]:
    item_id, _, version = text.rpartition(":")
    if not (version.isdecimal() and version.isascii() and 0 < len(version) <= 9 and len(item_id) <= 100):
        raise PageProblem(422, "This form does not say which claim it is about, and in which version.")
    return item_id, int(version)


def _parse_rows(asked: _ActRequest, fields: Form) -> Iterator[acts.ReviewAct]:
    for item_id, version in asked.rows:
        match asked.verb:
            case "approve":
                over = parse_over(fields)
                yield acts.Approve(item_id, version, supersede=parse_supersede(fields), over=over)
            case "keep" if item_id == asked.rows[0][0]:
                yield acts.Approve(item_id, version)
            case "keep":
                yield acts.Reject(item_id, version, reason=KNOWN)
            case "reject":
                yield acts.Reject(item_id, version, reason=parse_reason(fields))
            case _:
                yield acts.Undo(item_id, version)


def parse_supersede(fields: Form) -> bool | None:
    """What a form says of a conflict. Raises PageProblem (422)."""
    known = {"": None, "true": True, "false": False}
    said = fields.get("supersede", "")
    if said not in known:
        raise PageProblem(422, "A conflict is resolved by replacing what is stored, or by keeping both.")
    return known[said]


def parse_over(fields: Form) -> str | None:
    """The memory that was shown as nearly the same, if one was. Raises PageProblem (422)."""
    over = fields.get("over") or None
    if over is not None and not valid_name(over):
        raise PageProblem(422, "This form does not say which memory is to be replaced.")
    return over


def parse_reason(fields: Form) -> str:
    """The reason of a rejection: the chosen one, own words, or both. Raises PageProblem (422)."""
    chosen, own = fields.get("canned", "").strip(), fields.get("reason", "").strip()
    reason = f"{chosen}: {own}" if chosen and own else chosen or own
    if not reason:
        raise PageProblem(422, "A rejection needs a reason: choose one, or say it in your own words.")
    if len(reason) > MOST_REASON:
        raise PageProblem(422, f"A reason has at most {MOST_REASON} characters; this one has {len(reason)}.")
    return reason


def _summary(verb: str, results: Sequence[ActResult]) -> str:
    if verb == "undo" and not results:
        return "There is nothing of yours to take back."
    done = sum(result.done for result in results)
    if verb == "keep" and done > 1:
        return f"1 approved, {done - 1} rejected as other words for it"
    past = {"approve": "approved", "keep": "approved", "reject": "rejected", "undo": "taken back"}[verb]
    if done == len(results):
        return f"{done} {past}"
    kinds: dict[str, int] = {}
    for result in results:
        if not result.done:
            kinds[result.outcome] = kinds.get(result.outcome, 0) + 1
    return f"{done} {past}, " + ", ".join(f"{count} {outcome}" for outcome, count in kinds.items())


def redirect_with_result(request: Request, back: str, result: ActResult) -> Response:
    """To where the visitor came from, where what was done is told."""
    joint = "&" if "?" in back else "?"
    return see_other(request, f"{back}{joint}done={result.id}")
