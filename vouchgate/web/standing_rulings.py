"""Standing rulings of the visitor, and the form for one more."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from vouchgate.ingest.claims.standing_rulings import RulingDraft
from vouchgate.ingest.claims.trust import RulingVerdict
from vouchgate.ingest.language.validation import plain_message
from vouchgate.review.answers import NotFound
from vouchgate.review.pages import standing_rulings as views
from vouchgate.review.pages.standing_rulings import PATH, NewRulingView
from vouchgate.review.trust.standing_rulings import MOST_NAME, RulingRefused
from vouchgate.review.trust.taking_back import RulingEnded, Then, take_back
from vouchgate.server import rulings as acts
from vouchgate.server.state import service_of
from vouchgate.storage.identity import tokens
from vouchgate.storage.identity.names import valid_name
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import BULK_BYTES, SignedIn, Visitor, form, require_recent, see_other, waiting_for
from vouchgate.web.told import describe_result

router = APIRouter(include_in_schema=False)


@router.get(PATH)
def listing(request: Request, visitor: SignedIn) -> Response:
    """The visitor's standing rulings; of an item that is named, a new one with its preview."""
    return _page(request, visitor)


def _page(request: Request, visitor: Visitor, ended: RulingEnded | None = None) -> Response:
    service, now = service_of(request), datetime.now(UTC)
    found = [
        each
        for each in service.standing_rulings.listing(visitor.principal)
        if each[0].owner_id == visitor.owner_id
    ]
    with service.store.read() as connection:
        known = {ruling.confirmed_by for ruling, _ in found} | {
            ruling.terms.agent or "" for ruling, _ in found
        }
        names = tokens.names(connection, known)
    made = service.standing_rulings.waiting(visitor.principal, request.query_params.get("made", ""), now)
    most = service.policy.standing_rulings.days
    return html(
        request,
        "standing_rulings.html",
        here="standing-rulings",
        waiting=waiting_for(request, visitor),
        new=_new(request, visitor, now) if "item" in request.query_params else None,
        made=None if isinstance(made, NotFound) else made,
        ended=ended and views.ended_sentence(ended),
        days=[days for days in views.CHOICES if days < most] + [most],
        ruled=views.RULED,
        verdicts=views.VERDICTS,
        rows=[views.ruling_view(ruling, did, names, now) for ruling, did in found],
    )


def _new(request: Request, visitor: Visitor, now: datetime) -> NewRulingView:
    """The standing ruling that the ruling on an item suggests, or as the visitor asks for it, with what it would have
    done."""
    rulings, asked = service_of(request).standing_rulings, request.query_params
    proposal = rulings.propose(visitor.principal, asked["item"])
    if isinstance(proposal, NotFound):
        raise PageProblem(404, "There is no such claim.")
    with rulings.store.read() as connection:
        names = tokens.names(connection, {proposal.terms.agent or ""})
    called, ticked = views.name_of(proposal), frozenset(asked.getlist("term"))
    if "verdict" not in asked:
        return NewRulingView(proposal, views.term_views(proposal.terms, names, views.AT_FIRST), called)
    template = asked.get("template") or proposal.terms.template
    shown = views.term_views(proposal.terms.model_copy(update={"template": template}), names, ticked)
    verdict = _verdict(asked["verdict"])
    try:
        draft = _draft(verdict, {term.name: term.value for term in shown if term.ticked})
    except PageProblem as problem:
        return NewRulingView(proposal, shown, called, problem=problem.sentence)
    seen = rulings.preview(visitor.principal, visitor.owner_id, draft, now)
    return NewRulingView(proposal, shown, called, verdict, seen, views.sentences_of(verdict, seen))


@router.post(PATH)
async def confirm(request: Request, visitor: SignedIn) -> Response:
    """Makes a standing ruling, as it was previewed."""
    fields, visitor = await form(request, visitor)
    service, now = service_of(request), datetime.now(UTC)
    draft = _draft(
        _verdict(fields.get("verdict", "")), {name: fields.get(name) or None for name in views.LABELS}
    )
    who, owner_id, item_id = visitor.principal, visitor.owner_id, fields.get("item", "")
    name, days = fields.get("name", "").strip(), fields.get("days", "")
    require_recent(visitor, _preview_address(draft, item_id))
    if not 0 < len(name) <= MOST_NAME or not name.isprintable():
        raise PageProblem(422, f"A standing ruling is called something, in {MOST_NAME} characters at most.")
    if not valid_name(item_id):
        raise PageProblem(422, "A standing ruling is made of the ruling on a claim.")
    if not (days.isascii() and days.isdecimal() and 0 < int(days[:5])):
        raise PageProblem(422, "A standing ruling lasts for a number of days that the page offers.")
    made = await run_in_threadpool(
        lambda: service.standing_rulings.confirm(
            who, owner_id, draft, name=name, days=int(days[:5]), item_id=item_id, now=now
        )
    )
    if isinstance(made, RulingRefused):
        raise PageProblem(409, made.message)
    return see_other(request, f"{PATH}?made={made.id}")


@router.post(f"{PATH}/{{ruling_id}}/waiting")
async def rule_on_waiting(request: Request, visitor: SignedIn, ruling_id: str) -> Response:
    """The visitor's own ruling on what the page listed as waiting, as the standing ruling would have it: one act, which
    one undo takes back."""
    fields, visitor = await form(request, visitor, limit=BULK_BYTES)
    service = service_of(request)
    found = await run_in_threadpool(
        service.standing_rulings.waiting, visitor.principal, ruling_id, datetime.now(UTC)
    )
    if isinstance(found, NotFound):
        raise PageProblem(404, "There is no such standing ruling.")
    ruling, shown = found[0], set(fields.getlist("row"))
    items = {item.id: item for item in found[1] if f"{item.id}:{item.version}" in shown}
    stores, reason = ruling.verdict is RulingVerdict.STORE, f"Standing ruling: {ruling.name}"
    rows = [
        acts.Approve(item.id, item.version) if stores else acts.Reject(item.id, item.version, reason)
        for item in items.values()
    ]
    answers = await acts.apply_acts(service, visitor.principal, rows)
    told = [describe_result(row.id, one, service.policy) for row, one in zip(rows, answers, strict=True)]
    return html(
        request,
        "results.html",
        here="standing-rulings",
        waiting=await run_in_threadpool(waiting_for, request, visitor),
        summary=f"{sum(one.done for one in told)} of {len(shown)} ruled on",
        results=[{**one.as_json, "mark": one.mark, "claim": items[one.id].content} for one in told],
        back="/review",
    )


@router.post(f"{PATH}/{{ruling_id}}")
async def end(request: Request, visitor: SignedIn, ruling_id: str) -> Response:
    """Takes a standing ruling back, with what it did if the visitor says so."""
    fields, visitor = await form(request, visitor)
    rulings, now = service_of(request).standing_rulings, datetime.now(UTC)
    require_recent(visitor, PATH)
    if (then := fields.get("then", "")) not in tuple(Then):
        raise PageProblem(422, "What a standing ruling did is kept, goes to the queue, or is retracted.")
    ended = await run_in_threadpool(take_back, rulings, visitor.principal, ruling_id, Then(then), now)
    if isinstance(ended, NotFound):
        raise PageProblem(404, "There is no such standing ruling.")
    return await run_in_threadpool(_page, request, visitor, ended)


def _preview_address(draft: RulingDraft, item_id: str) -> str:
    """The form with the preview of this draft."""
    given = draft.terms.model_dump(exclude_none=True)
    template = {"template": given["template"]} if "template" in given else {}
    asked = {"item": item_id, "verdict": draft.verdict.value, "term": list(given), **template}
    return f"{PATH}?{urlencode(asked, doseq=True)}"


def _verdict(said: str) -> RulingVerdict:
    if said not in tuple(RulingVerdict):
        raise PageProblem(422, "A standing ruling stores or rejects.")
    return RulingVerdict(said)


def _draft(verdict: RulingVerdict, terms: dict[str, str | None]) -> RulingDraft:
    """Raises PageProblem."""
    try:
        return RulingDraft.model_validate({"verdict": verdict, "terms": terms})
    except ValidationError as error:
        said = plain_message(error.errors()[0])
        raise PageProblem(422, f"{said[:1].upper()}{said[1:]}.") from error
