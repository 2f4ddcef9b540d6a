"""The page on which an owner clears what an audit found in a memory, and has what is left sent to the gate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from vouchgate.importing.batches import Batch, PreparedRow, claim_of
from vouchgate.importing.labels import RowLabel
from vouchgate.importing.rows import KNOWN, ORIGIN_FIELDS, BadRow, Defaults, ImportRow
from vouchgate.importing.run import Importer, ImportStopped
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.answers import NotFound
from vouchgate.review.audit import clearing
from vouchgate.review.pages.wording.diff import word_diff
from vouchgate.review.pages.wording.times import Moment, moment
from vouchgate.server.state import service_of
from vouchgate.storage.claims import known_keys
from vouchgate.storage.claims.submit import Idempotency
from vouchgate.storage.identity import tokens
from vouchgate.storage.queue import audits
from vouchgate.storage.queue.audits import AT_ONCE, Audit, RowState
from vouchgate.web.audit.access import auditing
from vouchgate.web.pages import PageProblem, html
from vouchgate.web.session import BULK_BYTES, Anybody, SignedIn, Visitor, form, see_other, waiting_for

router = APIRouter(include_in_schema=False)

PATH = "/review/memory-audits"
PAGE = 50
SENT = 100  # rows that one press sends to the gate
MOST_SHOWN = 1000  # characters of a row, of which 50 pairs are held against each other in some 0.1 seconds
_DIGITS = 17  # of the numbers of rows and acts
_VERBS = {"clear": RowState.CLEARED, "keep": RowState.KEPT, "undo": RowState.OPEN}


async def _reading(request: Request, visitor: Anybody) -> Visitor:
    """A dependency: the reviewer or auditor who is signed in."""
    return await auditing(request, visitor) if visitor.audits else visitor


Reader = Annotated[Visitor, Depends(_reading)]


def _find(request: Request, visitor: Visitor, audit_id: str) -> Audit:
    for each in clearing.listing(service_of(request).store, visitor.principal):
        if each.id == audit_id:
            return each
    raise PageProblem(404, "There is no such audit, or its 30 days are over.")


@router.get(PATH)
@router.get(f"{PATH}/{{audit_id}}")
def show(request: Request, visitor: Reader, audit_id: str = "") -> Response:
    """Rows of an audit, the newest unless one is named, with one label or in one state, and what can be done."""
    every = clearing.listing(service_of(request).store, visitor.principal)
    if not audit_id and not every:
        waiting = waiting_for(request, visitor)
        return html(request, "memory_audits.html", here="memory-audits", waiting=waiting, audit=None)
    return _page(request, visitor, audit_id or every[0].id)


def _page(
    request: Request, visitor: Visitor, audit_id: str, said: str = "", *, going: bool = False
) -> Response:
    audit, store, asked = _find(request, visitor, audit_id), service_of(request).store, request.query_params
    with store.browse() as connection:
        counts = audits.counts(connection, audit)
        labels = [each.value for each in RowLabel if each in counts]
        first = next((each for each in labels if counts[each]["open"]), "")
        label, state = asked.get("label", "" if "state" in asked else first), asked.get("state", "open")
        after = asked.get("after", "0")
        known = label in ("", *labels) and state in tuple(RowState) and after.isascii() and after.isdecimal()
        if not known or len(after) > _DIGITS:
            raise PageProblem(422, "This address names rows that there are not.")
        rows = audits.search(connection, audit, [state], label, after=int(after), limit=PAGE + 1)
        rows, more = rows[:PAGE], len(rows) > PAGE
        acts = audits.acts(connection, audit, 10)
        others = audits.others(connection, audit, [row.position for row in rows])
        names = tokens.names(connection, {each.acted_by for each in acts})
        became = _answers(connection, audit, rows)
    every = clearing.listing(store, visitor.principal)
    shown: dict[str, Any] = {
        **{"audit": audit, "every": every, "counts": counts, "labels": labels, "states": [*RowState]},
        **{"label": label, "state": state, "rows": rows, "others": others, "became": became, "acts": acts},
        **{"names": names, "most": MOST_SHOWN, "diff": word_diff, "at": _moment, "said": said},
        "going": going,
        "next": rows[-1].position if more else None,
        "waiting": waiting_for(request, visitor),
    }
    return html(request, "memory_audits.html", here="memory-audits", **shown)


def _moment(act: int) -> Moment:
    """When an act was done, whose number says it."""
    return moment(datetime.fromtimestamp(act / 1_000_000, UTC), datetime.now(UTC))


@router.get(f"{PATH}/{{audit_id}}/{{what}}.jsonl")
def download(request: Request, visitor: Reader, audit_id: str, what: str) -> Response:
    """The memory without what was cleared, or what was: JSON lines that `vouchgate import` reads."""
    if what not in ("cleaned", "cleared"):
        raise PageProblem(404, "An audit has no such file.")
    audit, cleared = _find(request, visitor, audit_id), what == "cleared"
    states = [each.value for each in RowState if (each is RowState.CLEARED) == cleared]

    def lines() -> Iterator[str]:
        after: int | None = 0
        while after is not None:
            with service_of(request).store.browse() as connection:
                rows = audits.search(connection, audit, states, after=after, limit=AT_ONCE)
            for row in rows:
                about = {"row": row.name, "label": row.label, "reason": row.reason}
                about["cleared_by"] = row.acted_by
                given = {**_shown_of(row.claim.get("metadata", {})), "content": row.text, **row.claim}
                given["user_id"] = audit.owner_id
                yield json.dumps(about | given if cleared else given, ensure_ascii=False) + "\n"
            after = rows[-1].position if rows else None

    headers = {"Content-Disposition": f'attachment; filename="{"cleared" if cleared else "cleaned"}.jsonl"'}
    return StreamingResponse(lines(), headers=headers, media_type="application/x-ndjson")


def _shown_of(metadata: dict[str, Any]) -> dict[str, Any]:
    """Takes out of it when a memory was saved, and by whom, which an import only shows. Of all else it would take a
    field for what the row asserts: whose it is, what vouches for it."""
    return {name: metadata.pop(name) for name in (*KNOWN.time, *ORIGIN_FIELDS) if name in metadata}


@router.post(f"{PATH}/{{audit_id}}")
async def act(request: Request, visitor: SignedIn, audit_id: str) -> Response:
    """Clears or keeps the rows that are ticked, or all open ones with a label; or takes an act back."""
    fields, visitor = await form(request, visitor, limit=BULK_BYTES)
    verb, _, which = fields.get("do", "").partition(":")
    numbers = ([which] if verb == "undo" else fields.getlist("row"))[:PAGE]
    if verb not in _VERBS or not all(
        each.isascii() and each.isdecimal() and len(each) <= _DIGITS for each in numbers
    ):
        raise PageProblem(422, "This form asks for nothing that can be done here.")
    chosen: dict[str, Any] = {"act" if verb == "undo" else "position": [int(each) for each in numbers]}
    if which == "all":
        label = fields.get("label", "")
        # Of an update that was cleared, as a later one replaces it, the row that it replaces is to go, too.
        again = ["cleared"] if (verb, label) == ("clear", RowLabel.UPDATE) else []
        chosen = {"label": [label], "state": ["open", *again]}
    move = partial(clearing.move, service_of(request).store, visitor.principal, audit_id)
    if isinstance(await run_in_threadpool(move, _VERBS[verb], chosen, now=datetime.now(UTC)), NotFound):
        raise PageProblem(404, "There is no such audit, or its 30 days are over.")
    back = {name: fields[name] for name in ("label", "state") if fields.get(name)}
    return see_other(request, f"{PATH}/{audit_id}?{urlencode(back)}")


@router.post(f"{PATH}/{{audit_id}}/feed")
async def feed(request: Request, visitor: SignedIn, audit_id: str) -> Response:
    """Sends the next rows that are left to the gate, as an import would; none twice, as each has a key of its own. A
    browser with script goes on by itself."""
    _, visitor = await form(request, visitor)
    gate, store = service_of(request).gate, service_of(request).store
    audit = await run_in_threadpool(_find, request, visitor, audit_id)
    agent = Principal(id=audit.token_id, name=audit.name, role=Role.AGENT, owners=frozenset({audit.owner_id}))
    rows, bad = list[Any](), list[BadRow]()

    def read() -> Batch:
        batch = Batch()
        with store.read() as connection:
            rows.extend(audits.search(connection, audit, audits.LEFT, limit=SENT))
        for row in rows:
            said = ImportRow(str(row.position), row.text, **row.claim)
            claim = claim_of(gate.examiner, agent, said, Defaults())
            if isinstance(claim, BadRow):
                batch.bad.append(claim)
            else:
                key = Idempotency(_key(audit, row), audit.id)
                batch.ready.append(PreparedRow(said.place, None, None, claim, key))
        return batch

    async def once() -> AsyncIterator[Batch]:
        yield await run_in_threadpool(read)

    def note(connection: Connection) -> None:
        became = {RowState.REFUSED: [int(each.place) for each in bad]}
        for position, answer in _answers(connection, audit, rows).items():
            became.setdefault(RowState(answer["outcome"]), []).append(position)
        for state, positions in became.items():
            audits.move(connection, audit, state, {"position": positions})

    importer, stopped = Importer(gate, gate.examiner, agent, tell_bad=bad.append), ""
    try:
        await importer.run(once(), lambda: False)
    except ImportStopped as error:
        stopped = f"{error}."
    if (full := importer.tally.limit) is not None:
        stopped = f"The queue has no room: {full.sentence}. Rule on what waits, then send the rest."
    await asyncio.wrap_future(store.writer.run([audit.owner_id], note))
    going = len(rows) == SENT and not stopped
    said = stopped or (f"{SENT} more rows are at the gate." if going else "All that was left is at the gate.")
    return await run_in_threadpool(_page, request, visitor, audit_id, said, going=going)


def _answers(connection: Connection, audit: Audit, rows: Sequence[Any]) -> dict[int, Any]:
    """What the gate answered to those of the rows that it was sent, by their positions; not what was erased."""
    keys = {_key(audit, row): row.position for row in rows}
    found = known_keys.answered(connection, audit.token_id, list(keys))
    return {keys[each.key]: json.loads(each.answer) for each in found if each.answer}


def _key(audit: Audit, row: Any) -> str:
    return f"{audit.id}-{row.position}"
