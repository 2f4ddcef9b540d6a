"""`groundgate review`: the owner's queue, straight from the database, with the same rules as over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import assert_never

from groundgate.cli.database import open_store
from groundgate.cli.output import Failure, one_line, say, write_json
from groundgate.settings import Settings
from ingest.policy import load_policy
from ingest.types import PendingMemory, Principal, ReviewStatus, ValidationResult, Verdict
from review.answers import AlreadyDecided, Approved, NotFound, Refused, Rejected, Stale
from review.queue import ReviewQueue
from review.rules import Act, may
from storage import tokens
from storage.store import Store

CONFLICT_HELP = "add --supersede to replace the stored memory, or --keep-both"


@dataclass(frozen=True, slots=True)
class _Desk:
    """A reviewer before an open queue."""

    store: Store
    queue: ReviewQueue
    principal: Principal


@contextmanager
def _desk(settings: Settings) -> Iterator[_Desk]:
    """Raises Failure unless a reviewer's token is given, by --token or GROUNDGATE_TOKEN."""
    if settings.token is None:
        raise Failure(
            "a reviewer's token is needed: give --token or set GROUNDGATE_TOKEN; "
            "groundgate token create --role reviewer --owner ID makes one"
        )
    policy = load_policy(settings.policy)
    with open_store(settings) as store:
        with store.read() as connection:
            principal = tokens.authenticate(connection, settings.token.get_secret_value(), datetime.now(UTC))
        if principal is None:
            raise Failure("this token is not known in this database, or it is revoked or expired")
        if not may(principal, Act.REVIEW):
            raise Failure(
                f"only an owner's reviewer may do this; this token is for the role {principal.role}"
            )
        yield _Desk(store, ReviewQueue(store, policy), principal)


def listing(settings: Settings, *, status: ReviewStatus, after: str | None, limit: int, as_json: bool) -> int:
    """Items of the reviewer's own queue, oldest first."""
    with _desk(settings) as desk:
        items = desk.queue.get_pending(desk.principal, after=after, limit=limit, status=status)
    if as_json:
        for item in items:
            write_json(item.model_dump(mode="json"))
        return 0
    if not items:
        say(f"Nothing is {status}." if after is None else "Nothing more.")
        return 0
    for item in items:
        say(f"{item.id}  version {item.version}  since {item.created_at:%Y-%m-%d}")
        say(f"  claim   {one_line(item.content)}")
        say(f"  reason  {one_line(item.reason)}")
    if len(items) == limit:
        say(f"There may be more: --after {items[-1].id}")
    return 0


def show(settings: Settings, item_id: str, *, as_json: bool) -> int:
    """One item with why it waits, and the version that an act on it must name."""
    with _desk(settings) as desk:
        item = _get(desk, item_id)
        decision = desk.queue.decision_of(item)
        next_check = desk.queue.next_check(item)
    if as_json:
        document = None if decision is None else decision.model_dump(mode="json")
        write_json({"item": item.model_dump(mode="json"), "decision": document})
        return 0
    say(_described(item, decision, next_check))
    return 0


def _described(item: PendingMemory, decision: ValidationResult | None, next_check: datetime | None) -> str:
    lines = [
        f"id        {item.id}",
        f"version   {item.version}",
        f"status    {item.status}",
        f"claim     {one_line(item.content)}",
        f"type      {item.memory_type}, from {item.source}",
        f"reason    {one_line(item.reason)}",
    ]
    lines += [
        f"          {finding.verdict} {one_line(finding.message)}"
        for finding in (() if decision is None else decision.findings)
        if finding.verdict is not Verdict.PASS
    ]
    if item.conflicting_memory_id is not None:
        lines.append(f"conflict  {item.conflicting_memory_id}; to approve, {CONFLICT_HELP}")
        lines += [f"          stored: {one_line(text)}" for text in _stored(item, decision)]
    lines += [f"similar   {line}" for line in _similar(decision)]
    repeated = f", {item.seen} times by now" if item.seen > 1 else ""
    lines.append(f"sent      {item.created_at:%Y-%m-%d %H:%M}Z by {item.submitted_by}{repeated}")
    if next_check is not None:
        lines.append(f"checked   again by itself at {next_check:%Y-%m-%d %H:%M:%S}Z")
    lines.append(f"expires   {item.expires_at:%Y-%m-%d %H:%M}Z")
    if item.decided_at is not None:
        lines.append(f"decided   {item.decided_at:%Y-%m-%d %H:%M}Z by {item.decided_by}")
    if item.note:
        lines.append(f"note      {one_line(item.note)}")
    if item.memory_id is not None:
        lines.append(f"memory    {item.memory_id}")
    return "\n".join(lines)


def _stored(item: PendingMemory, decision: ValidationResult | None) -> list[str]:
    facts = None if decision is None else decision.evidence.dedup
    items = facts.items if facts is not None and facts.kind == "neighbours" else ()
    return [neighbour.content for neighbour in items if neighbour.id == item.conflicting_memory_id]


def _similar(decision: ValidationResult | None) -> list[str]:
    """What the owner had stored that is near the claim, nearest first."""
    if decision is None or decision.similar is None:
        return ["not known"]
    return [
        f"{round(near.similarity * 10_000) // 100} % {near.memory_id}: {one_line(near.content)}"
        for near in decision.similar
    ] or ["nothing found"]


def _get(desk: _Desk, item_id: str) -> PendingMemory:
    item = desk.queue.get_by_id(desk.principal, item_id)
    if item is None:
        raise _no_such(item_id)
    return item


def _no_such(item_id: str) -> Failure:
    return Failure(f"there is no item {item_id!r} in your queue; groundgate review list shows what waits")


def approve(
    settings: Settings, item_id: str, *, version: int | None, note: str | None, supersede: bool | None
) -> int:
    """Stores the item's claim; `version` None means the one it has now. Raises Failure when it is not done."""
    with _desk(settings) as desk:
        seen = _get(desk, item_id).version if version is None else version
        answer = desk.queue.approve(
            desk.principal, item_id, version=seen, note=note, supersede=supersede, now=datetime.now(UTC)
        )
    match answer:
        case Approved():
            replaced = "" if answer.superseded is None else f" It replaces {answer.superseded}."
            say(f"Approved: stored as {answer.memory.id}.{replaced}")
            return 0
        case Refused():
            more = f"; {CONFLICT_HELP}" if answer.code == "conflict_unresolved" else ""
            raise Failure(f"not approved ({answer.code}): {answer.message.rstrip('.')}{more}")
        case NotFound() | Stale() | AlreadyDecided():
            raise _not_done(item_id, answer)
        case _:
            assert_never(answer)


def reject(settings: Settings, item_id: str, *, version: int | None, reason: str) -> int:
    """Ends the item's wait without a memory. Raises Failure when it is not done."""
    with _desk(settings) as desk:
        seen = _get(desk, item_id).version if version is None else version
        try:
            answer = desk.queue.reject(
                desk.principal, item_id, version=seen, reason=reason, now=datetime.now(UTC)
            )
        except ValueError as error:
            raise Failure(str(error)) from error
    match answer:
        case Rejected():
            say(f"Rejected: {item_id} will not be stored.")
            return 0
        case NotFound() | Stale() | AlreadyDecided():
            raise _not_done(item_id, answer)
        case _:
            assert_never(answer)


def _not_done(item_id: str, answer: NotFound | Stale | AlreadyDecided) -> Failure:
    match answer:
        case NotFound():
            return _no_such(item_id)
        case Stale():
            return Failure(
                f"the item has changed: it is in version {answer.current.version} now; "
                f"look at it again with groundgate review show {item_id}"
            )
        case AlreadyDecided():
            return Failure(f"the item does not wait any more: it is {answer.current.status}")
