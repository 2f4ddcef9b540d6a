"""The page on which an owner clears what an audit found in a memory, and has what is left sent to the gate."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response, StreamingResponse

from vouchgate.importing.batches import Batch, PreparedRow, claim_of
from vouchgate.importing.labels import RowLabel
from vouchgate.importing.rows import BadRow, Defaults, ImportRow
from vouchgate.importing.run import Importer, ImportStopped
from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.answers import NotFound
from vouchgate.review.audit import clearing
from vouchgate.review.pages.wording.diff import word_diff
from vouchgate.review.pages.wording.times import moment
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.storage.claims import known_keys
from vouchgate.storage.claims.submit import Decided, Idempotency
from vouchgate.storage.identity import tokens
from vouchgate.storage.queue import audits
from vouchgate.storage.queue.audits import AT_ONCE, Audit, RowState
from vouchgate.storage.store import Store
from vouchgate.web.audit.access import auditing
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import BULK_BYTES, Anybody, SignedIn, Visitor, form

router = APIRouter(include_in_schema=False)

PATH = "/review/memory-audits"
PAGE = 50
SENT = 100  # rows that one press sends to the gate
MOST_SHOWN = 1000  # characters of a row, of which 50 pairs are held against each other in some 0.1 seconds
_VERBS = {"clear": RowState.CLEARED, "keep": RowState.KEPT, "undo": RowState.OPEN}


async def _reading(request: Request, visitor: Anybody) -> Visitor:
    """A dependency: the reviewer or auditor who is signed in."""
    return await auditing(request, visitor) if visitor.audits else visitor


Reader = Annotated[Visitor, Depends(_reading)]


@router.get(PATH)
@router.get(f"{PATH}/{{audit_id}}")
def show(request: Request, visitor: Reader, audit_id: str = "") -> Response:
    """An audit, the newest unless one is named: rows with one label or in one state, and what can be done with them."""
    return _page(request, visitor, audit_id)


def _page(
    request: Request, visitor: Visitor, audit_id: str, said: str = "", *, going: bool = False
) -> Response:
    asked, now, store = request.query_params, datetime.now(UTC), service_of(request).store
    every = clearing.listing(store, visitor.principal)
    shown: dict[str, Any] = {"audit": _one(request, visitor, audit_id) if every or audit_id else None}
    if audit := shown["audit"]:
        with store.browse() as connection:
            counts = audits.counts(connection, audit)
            labels = [each.value for each in RowLabel if each in counts]
            first = next((each for each in labels if counts[each]["open"]), "")
            label, state = asked.get("label", "" if "state" in asked else first), asked.get("state", "open")
            after = asked.get("after", "0")
            if not {label, state} <= {"", *labels, *RowState} or not (
                after.isascii() and after[:9].isdecimal()
            ):
                raise PageProblem(422, "This address names rows that there are not.")
            rows = audits.search(connection, audit, [state], label, after=int(after[:9]), limit=PAGE)
            others = audits.named(connection, audit, [row.other for row in rows if row.other])
            acts = audits.acts(connection, audit, 10)
            names = tokens.names(connection, {each.acted_by for each in acts})
            became = _answers(connection, audit, rows)
            shown |= {"taken": audits.taken(connection, audit)}
        diffs = {row.position: _diff(others[row.other], row) for row in rows if row.other in others}
        at = [moment(datetime.fromtimestamp(each.act / 1_000_000, UTC), now) for each in acts]
        shown |= {
            "counts": counts,
            "labels": labels,
            "label": label,
            "state": state,
            "rows": rows,
            "most": MOST_SHOWN,
        }
        shown |= {"diffs": diffs, "became": became, "acts": list(zip(acts, at, strict=True)), "names": names}
        shown |= {"next": rows[-1].position if len(rows) == PAGE else None, "states": [*RowState]}
    return html(
        request, "memory_audits.html", here="memory-audits", every=every, said=said, going=going, **shown
    )


def _one(request: Request, visitor: Visitor, audit_id: str, act: Act = Act.READ_RULINGS) -> Audit:
    """Of those that the visitor may do this with, the one that is named, or the newest."""
    for each in clearing.listing(service_of(request).store, visitor.principal, act):
        if audit_id in ("", each.id):
            return each
    raise PageProblem(404, "There is no such audit, or its 30 days are over.")


def _diff(earlier: Any, row: Any) -> Any:
    return word_diff(earlier.text[:MOST_SHOWN], row.text[:MOST_SHOWN])


@router.get(f"{PATH}/{{audit_id}}/{{what}}.jsonl")
def download(request: Request, visitor: Reader, audit_id: str, what: str) -> Response:
    """The memory without what was cleared, or what was: JSON lines that `vouchgate import` reads."""
    audit, cleared = _one(request, visitor, audit_id), what == "cleared"
    states = [each.value for each in RowState if (each is RowState.CLEARED) == cleared]

    def lines() -> Iterator[str]:
        rows: Any = [None] * AT_ONCE
        after = 0
        while len(rows) == AT_ONCE:
            with service_of(request).store.browse() as connection:
                rows = audits.search(connection, audit, states, after=after, limit=AT_ONCE)
            for row in rows:
                after, beside = (
                    row.position,
                    {key: value for key, value in row.claim.items() if key != "metadata"},
                )
                given = {**row.claim.get("metadata", {}), "content": row.text, **beside}
                about = {
                    "row": row.name,
                    "label": row.label,
                    "reason": row.reason,
                    "cleared_by": row.acted_by,
                }
                yield json.dumps({**about, **given} if cleared else given, ensure_ascii=False) + "\n"

    headers = {"Content-Disposition": f'attachment; filename="{"cleared" if cleared else "cleaned"}.jsonl"'}
    return StreamingResponse(lines(), headers=headers, media_type="application/x-ndjson")


@router.post(f"{PATH}/{{audit_id}}")
async def act(request: Request, visitor: SignedIn, audit_id: str) -> Response:
    """Clears or keeps the rows that are ticked, or all open ones with a label; or takes an act back."""
    fields = await form(request, visitor, limit=BULK_BYTES)
    verb, _, which = fields.get("do", "").partition(":")
    numbers = ([which] if verb == "undo" else fields.getlist("row"))[:PAGE]
    if verb not in _VERBS or not all(
        each.isascii() and each.isdecimal() and len(each) < 18 for each in numbers
    ):
        raise PageProblem(422, "This form asks for nothing that can be done here.")
    chosen: dict[str, Any] = {"act" if verb == "undo" else "position": [int(each) for each in numbers]}
    if which == "all":
        chosen = {"label": [fields.get("label", "")], "state": [RowState.OPEN.value]}
    store, who, now = service_of(request).store, visitor.principal, datetime.now(UTC)
    done = await run_in_threadpool(lambda: clearing.move(store, who, audit_id, _VERBS[verb], chosen, now=now))
    if isinstance(done, NotFound):
        raise PageProblem(404, "There is no such audit, or its 30 days are over.")
    back = {name: fields[name] for name in ("label", "state") if fields.get(name)}
    return RedirectResponse(f"{PATH}/{audit_id}?{urlencode(back)}", 303)


@router.post(f"{PATH}/{{audit_id}}/feed")
async def feed(request: Request, visitor: SignedIn, audit_id: str) -> Response:
    """Sends the next rows that are left to the gate, as an import would; none twice, as each has a key of its own. A
    browser with script goes on by itself."""
    await form(request, visitor)
    service = service_of(request)
    audit = await run_in_threadpool(_one, request, visitor, audit_id, Act.CLEAR)
    agent = Principal(id=audit.token_id, name=audit.name, role=Role.AGENT, owners=frozenset({audit.owner_id}))

    def read() -> Batch:
        batch = Batch()
        with service.store.read() as connection:
            rows.extend(audits.search(connection, audit, audits.LEFT, limit=SENT))
        for row in rows:
            claim = claim_of(
                service.gate.examiner, agent, ImportRow(str(row.position), row.text, **row.claim), Defaults()
            )
            if isinstance(claim, BadRow):
                batch.bad.append(claim)
            else:
                key = Idempotency(_key(audit, row), audit.id)
                batch.ready.append(PreparedRow(str(row.position), None, None, claim, key))
        return batch

    async def once() -> AsyncIterator[Batch]:
        yield await run_in_threadpool(read)

    rows, bad, said = list[Any](), list[BadRow](), ""
    importer = Importer(service.gate, service.gate.examiner, agent, tell_bad=bad.append,
                        report=lambda *_: None, again=_as_decided)  # fmt: skip
    try:
        await importer.run(once(), lambda: False)
    except ImportStopped as error:
        said = f"{error}."
    if importer.tally.limit is not None:
        said = (
            f"The queue has no room: {importer.tally.limit.sentence}. Rule on what waits, then send the rest."
        )
    await run_in_threadpool(_note, service.store, audit, rows, [int(each.place) for each in bad])
    going = bool(rows) and not said
    said = said or (
        f"{len(rows)} more rows are at the gate." if rows else "All that was left is at the gate."
    )
    return await run_in_threadpool(_page, request, visitor, audit_id, said, going=going)


def _note(store: Store, audit: Audit, rows: Sequence[Any], refused: list[int]) -> None:
    """Notes what the gate answered, whatever was done with the rows meanwhile."""
    became = {state: list[int]() for state in RowState} | {RowState.REFUSED: refused}
    with store.read() as connection:
        for position, answer in _answers(connection, audit, rows).items():
            became[RowState(answer["outcome"])].append(position)

    def work(connection: Connection) -> None:
        for state, positions in became.items():
            audits.move(connection, audit, state, {"position": positions})

    store.writer.run([audit.owner_id], work).result()


def _answers(connection: Connection, audit: Audit, rows: Sequence[Any]) -> dict[int, Any]:
    """What the gate answered to those of the rows that it was sent, by their positions; not what was erased."""
    keys = {_key(audit, row): row.position for row in rows}
    found = known_keys.answered(connection, audit.token_id, list(keys))
    return {keys[each.key]: json.loads(each.answer) for each in found if each.answer}


def _key(audit: Audit, row: Any) -> str:
    return f"{audit.id}-{row.position}"


async def _as_decided(_claim: Claim, decided: Decided, _key: str) -> Decided:
    """Nobody was asked for a source for what an agent that is new sends."""
    return decided
