"""What auditors read: decisions found by anything, one with its whole story, and the log."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError
from starlette.responses import JSONResponse, RedirectResponse, Response

from vouchgate.ingest.claims.decision import Tier
from vouchgate.review.audit.story import HAS_STORY, PATH, entry_rows, found_rows, story_view
from vouchgate.server.state import service_of
from vouchgate.storage.claims import decisions
from vouchgate.storage.claims.memories import storable
from vouchgate.storage.identity import tokens
from vouchgate.storage.log import chain, keys, story, tree
from vouchgate.storage.log.data.walk import Walk
from vouchgate.storage.log.story import DecisionFilter
from vouchgate.storage.log.tree import Receipt
from vouchgate.storage.outgoing import deliveries
from vouchgate.web.audit.access import Auditing, owners_of
from vouchgate.web.history import day_of
from vouchgate.web.pages import PageProblem, gone, html
from vouchgate.web.session import Visitor

router = APIRouter(include_in_schema=False)

MOST_TEXT = 200  # characters of a field
PAGE = 100  # entries of the log
MOST_CHECKED = 50_000  # entries of a chain that a page looks at: seconds, with all rows
MOST_ALARMS = 100
TIERS = {tier.name.lower(): tier for tier in Tier}
_FIELDS = ("q", "owner", "agent", "tier", "since", "until")

EntryNumber = Annotated[int | None, Query(ge=0, le=2**63 - 1)]  # as many as a database counts


@router.get(PATH)
def listing(request: Request, visitor: Auditing) -> Response:
    """Decisions that match the address, the newest first. An id leads to its story."""
    query = {name: request.query_params.get(name, "").strip() for name in _FIELDS}
    if any(len(value) > MOST_TEXT or not storable(value) for value in query.values()):
        raise PageProblem(422, f"A field of a search has at most {MOST_TEXT} characters.")
    service, now = service_of(request), datetime.now(UTC)
    wanted = _filter(query, visitor, request.query_params.get("after"))
    with service.store.browse() as connection:
        named = HAS_STORY.fullmatch(query["q"])
        if named and story.story_of(connection, query["q"], now, owners=wanted.owners) is not None:
            return RedirectResponse(f"{PATH}/{query['q']}", 303)
        found, more = story.search(connection, wanted)
        names = tokens.names(connection, {row.principal_id for row in found})
    given = {name: value for name, value in query.items() if value}
    return html(
        request,
        "audit.html",
        here="audit",
        query=query,
        tiers=list(TIERS),
        rows=found_rows(found, names, now),
        next_href=None if more is None else f"{PATH}?{urlencode({**given, 'after': more})}",
    )


def _filter(query: dict[str, str], visitor: Visitor, after: str | None) -> DecisionFilter:
    try:
        return DecisionFilter(
            owners=owners_of(visitor, query["owner"]),
            text=query["q"] or None,
            agent=query["agent"] or None,
            tier=TIERS[query["tier"]] if query["tier"] else None,
            since=day_of(query["since"]),
            until=day_of(query["until"], later=1),
            after=after,
        )
    except (KeyError, ValidationError) as error:
        raise PageProblem(422, "This address names a choice that there is not.") from error


@router.get(f"{PATH}/log")
def log_page(
    request: Request, visitor: Auditing, owner: str = "", before: EntryNumber = None, check: bool = False
) -> Response:
    """The entries of one owner's chain, the newest first; without one the service's own, for who may read all. Says
    whether the chain is whole and, with `check`, whether the rows are what it committed to."""
    if not owner and not visitor.principal.any_owner:
        owner = next(iter(visitor.owners), "-")
    if len(owner) > MOST_TEXT or not storable(owner):
        raise PageProblem(404, "There is no such owner for you.")
    owners_of(visitor, owner)
    service, now = service_of(request), datetime.now(UTC)
    with service.store.browse() as connection:
        entries = story.latest(connection, owner, before=before, limit=PAGE + 1)
        entries, more = entries[:PAGE], len(entries) > PAGE
        names = tokens.names(connection, {entry.actor for entry in entries})
        checkpoint = tree.last_checkpoint(connection, published=True)
        long = bool(entries) and entries[0].seq > MOST_CHECKED
        alarms = [*service.sequencer.problems(), *(() if long else chain.verify(connection, owner))]
    if check and not long:
        alarms += [str(each) for each in islice(Walk(service.store.read, owner).differences(), MOST_ALARMS)]
    asked = {"owner": owner, "before": entries[-1].seq} if more else None
    return html(
        request,
        "audit_log.html",
        here="audit-log",
        owner=owner,
        rows=entry_rows(entries, names, now),
        checkpoint=checkpoint,
        alarms=alarms,
        long=long,
        checked=check and not long,
        next_href=None if asked is None else f"{PATH}/log?{urlencode(asked)}",
    )


@router.get(f"{PATH}/receipts/{{decision_id}}")
def receipt(request: Request, visitor: Auditing, decision_id: str) -> Response:
    """What the browser needs to see for itself that the log is bound to a decision; nulls as long as it is not."""
    owners = owners_of(visitor)
    with service_of(request).store.browse() as connection:
        answer = decisions.get(connection, decision_id, owners=owners)
        found = tree.receipt(connection, decision_id, owners=owners)
        known = [str(each.key) for each in keys.known(connection)]
        if not answer:
            sentence = "There is no such decision, or it is not yours to see."
            raise gone(connection, decision_id, owners, sentence)
    proven = dict.fromkeys(Receipt._fields) if found is None else found.fields()
    return JSONResponse({"answer": answer, "keys": known} | proven)


@router.get(f"{PATH}/{{wanted}}")
def one_story(request: Request, visitor: Auditing, wanted: str) -> Response:
    """Everything about a decision, a waiting claim or a memory of this id."""
    service, now, owners = service_of(request), datetime.now(UTC), owners_of(visitor)
    with service.store.browse() as connection:
        found = story.story_of(connection, wanted, now, owners=owners)
        if found is None:
            raise gone(connection, wanted, owners, "There is nothing of this id, or it is not yours to see.")
        names = tokens.names(connection, {entry.actor for entry in found.entries})
        told = (
            ()
            if found.memory is None
            else deliveries.of_memories(connection, [found.memory])[found.memory.id]
        )
    view = story_view(found, names=names, policy=service.policy, deliveries=told, now=now)
    return html(request, "audit_story.html", here="audit", story=view)
