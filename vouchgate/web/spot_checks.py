"""Memories that were drawn at random: shown with what their sources say, and judged."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from vouchgate.ingest.claims.waiting import SpotVerdict
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.support.rereading import digests_of
from vouchgate.review.answers import ApprovalRefused, NotFound
from vouchgate.review.pages.spot_checks import (
    PATH,
    WORDS,
    SpotCheckView,
    address,
    choices,
    count_rows,
    judged_rows,
    spot_check_view,
)
from vouchgate.review.reading import parse_decision
from vouchgate.review.trust import spot_checks
from vouchgate.review.trust.spot_checks import Drawn
from vouchgate.server.state import service_of
from vouchgate.storage.claims import decisions, source_texts
from vouchgate.storage.claims.memories import storable
from vouchgate.storage.identity import tokens
from vouchgate.storage.queue.spot_checks import OPEN
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import SignedIn, form, own_path, see_other, waiting_for

router = APIRouter(include_in_schema=False)

PAGE = 10  # each with all that it cites
_VERDICTS = tuple((verdict.value, WORDS[verdict.value]) for verdict in SpotVerdict)


@router.get(PATH)
def listing(request: Request, visitor: SignedIn) -> Response:
    """What was drawn of the visitor's memories, the newest first."""
    service, now = service_of(request), datetime.now(UTC)
    chosen, after = request.query_params.get("verdict", OPEN), request.query_params.get("after")
    if chosen not in WORDS or not storable(after or ""):
        raise PageProblem(422, "This address names a verdict that there is not.")
    judged = spot_checks.records(service.store, visitor.principal)
    found = spot_checks.search(
        service.store,
        visitor.principal,
        now,
        verdict=OPEN if chosen == OPEN else SpotVerdict(chosen),
        after=after,
        limit=PAGE + 1,
    )
    found, further = found[:PAGE], len(found) > PAGE
    with service.store.read() as connection:
        rows = [_view(connection, drawn, service.policy, now) for drawn in found]
        names = tokens.names(connection, {one.name for one in judged if one.of == "agent"})
    return html(
        request,
        "spot_checks.html",
        here="spot-checks",
        waiting=waiting_for(request, visitor),
        choices=choices(chosen),
        verdicts=_VERDICTS,
        rows=rows,
        judged=judged_rows(judged, names),
        counts=count_rows(spot_checks.counts(service.store, visitor.principal)),
        here_href=address(chosen, after),
        next_href=address(chosen, found[-1].memory.id) if further else None,
    )


def _view(connection: Connection, drawn: Drawn, policy: Policy, now: datetime) -> SpotCheckView:
    """With the decision that stored it, and what is kept of its sources' texts."""
    owner_id = drawn.memory.owner_id
    kept = decisions.get(connection, drawn.memory.decision_id, owners=frozenset({owner_id}))
    answer = parse_decision(kept)
    wanted = frozenset[str]() if answer is None else digests_of(answer.evidence)
    return spot_check_view(drawn, answer, source_texts.load(connection, owner_id, wanted), policy, now)


@router.post(f"{PATH}/{{memory_id}}")
async def answer(request: Request, visitor: SignedIn, memory_id: str) -> Response:
    """Notes what the visitor says of a memory, and goes back to where in the list that was. What is wrong can be taken
    out of force on its own page."""
    (fields, visitor), service = await form(request, visitor), service_of(request)
    said = fields.get("verdict", "")
    if said not in {verdict.value for verdict in SpotVerdict}:
        raise PageProblem(422, "A spot check is answered with right, wrong or cannot tell.")
    verdict = SpotVerdict(said)
    done = await run_in_threadpool(
        lambda: spot_checks.answer(
            service.store, visitor.principal, memory_id, verdict, datetime.now(UTC), policy=service.policy
        )
    )
    if isinstance(done, ApprovalRefused):
        raise PageProblem(409, done.message)
    if isinstance(done, NotFound):
        raise PageProblem(404, "There is no such spot check.")
    wrong = f"/review/memories/{done.memory.id}?wrong=1"
    return see_other(request, wrong if verdict is SpotVerdict.WRONG else own_path(fields.get("back", PATH)))
