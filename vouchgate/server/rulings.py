"""What reviewers do to items of their queue, from the API and from the pages alike: what must be looked up first,
outside of any transaction, and then the act itself. What an act comes to is an answer (`review.answers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.concurrency import run_in_threadpool

from vouchgate.gate.incoming import ClaimRefused
from vouchgate.ingest.claims.likeness import Embedding
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.pipeline import Examined
from vouchgate.review.answers import (
    AlreadyDecided,
    ApprovalRefused,
    Approved,
    ItemChanged,
    NotFound,
    NotUndoable,
    Objected,
    Rejected,
    Removed,
    Undone,
    Voted,
)
from vouchgate.review.rules import may_rule_on
from vouchgate.server.answering import decision_on
from vouchgate.service import Service
from vouchgate.storage.errors import StorageError


@dataclass(frozen=True, slots=True)
class Approve:
    """An owner's yes to one item. With `content`, the owner's own wording goes through the checks and is stored
    instead; `supersede` says what becomes of a memory that it conflicts with, and `over` names one that says nearly the
    same, see `ReviewQueue.approve`."""

    id: str
    version: int
    note: str | None = None
    supersede: bool | None = None
    content: str | None = None
    over: str | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """An owner's no to one item, and why."""

    id: str
    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class Undo:
    """The last of these taken back."""

    id: str
    version: int


ReviewAct = Approve | Reject | Undo
ApproveAnswer = Approved | Removed | Voted | ApprovalRefused | NotFound | ItemChanged | AlreadyDecided
UndoAnswer = Undone | NotUndoable | NotFound | ItemChanged
ReviewAnswer = ApproveAnswer | Rejected | Objected | UndoAnswer
ActOutcome = (
    ReviewAnswer | ClaimRefused | StorageError
)  # what was sent cannot be looked at, or nothing be written

MOST = 100  # acts in one call


async def apply_acts(
    service: Service, principal: Principal, rows: Sequence[ReviewAct], *, as_one: bool = False
) -> list[ActOutcome]:
    """Acts on items, in order; each stands for itself, and what goes wrong with one is its answer. The sources of all
    that are to be approved are looked at again together, in the time of one: where one has turned out otherwise, the
    answer is ItemChanged.

    `as_one`: they are claims of one template, which differ in their values and are all meant; or an approval and the
    rejections that follow from it, which are left out, with their answers, when it is refused. Each is decided a
    millionth of a second after the one before, all within one thousandth: what was done at once is known to be."""
    await _recheck_before_approval(service, principal, [row for row in rows if isinstance(row, Approve)])
    answers: list[ActOutcome] = []
    beside: set[str] = set()
    started = datetime.now(UTC)
    started = started.replace(microsecond=started.microsecond // 1000 * 1000)
    for number, row in enumerate(rows):
        if as_one and isinstance(row, Reject) and isinstance(rows[0], Approve) and not beside:
            break
        at = started + timedelta(microseconds=number)
        try:
            answer = await _act(service, principal, row, at, frozenset(beside))
        except (ClaimRefused, StorageError) as error:
            answers.append(error)
            continue
        answers.append(answer)
        if as_one and isinstance(answer, Approved):
            beside.add(answer.memory.id)
    return answers


async def _act(
    service: Service, principal: Principal, row: ReviewAct, at: datetime, beside: frozenset[str]
) -> ReviewAnswer:
    match row:
        case Approve():
            return await _approve(service, principal, row, at, beside)
        case Reject():
            if not row.reason.strip():
                raise ClaimRefused("reason_missing", "a rejection needs a reason")
            return await run_in_threadpool(
                lambda: service.queue.reject(
                    principal, row.id, version=row.version, reason=row.reason, now=at
                )
            )
        case Undo():
            return await _undo(service, principal, row)


async def _undo(service: Service, principal: Principal, row: Undo) -> UndoAnswer:
    texts = await run_in_threadpool(service.queue.to_embed, principal, row.id)
    embeddings: dict[str, Embedding] = {}
    for name, text in texts.items():
        if (made := await service.gate.embed(text)) is not None:
            embeddings[name] = made
    return await run_in_threadpool(
        lambda: service.queue.undo(
            principal, row.id, version=row.version, now=datetime.now(UTC), embeddings=embeddings
        )
    )


async def _approve(
    service: Service, principal: Principal, row: Approve, at: datetime, beside: frozenset[str]
) -> ApproveAnswer:
    edited: Examined | None = None
    if row.content is not None:
        item = await run_in_threadpool(service.queue.get_by_id, principal, row.id)
        if item is None:
            return NotFound()
        then = await run_in_threadpool(decision_on, service, item)
        edited = await service.gate.examine_edit(item, row.content, then.evidence.claim.citations)
    return await run_in_threadpool(
        lambda: service.queue.approve(
            principal,
            row.id,
            version=row.version,
            note=row.note,
            supersede=row.supersede,
            edited=edited,
            beside=beside,
            over=row.over,
            now=at,
        )
    )


async def _recheck_before_approval(service: Service, principal: Principal, rows: Sequence[Approve]) -> None:
    """Has the sources looked at of those items that would be approved as they are. Where that cannot be done,
    the approval itself says so, or does without."""
    as_sent = {row.id: row for row in rows if row.content is None}
    items = await run_in_threadpool(_approvable, service, principal, as_sent)
    await service.rechecker.before_approval(*items)


def _approvable(service: Service, principal: Principal, rows: Mapping[str, Approve]) -> list[PendingMemory]:
    """Items that wait, are this principal's to rule on, and are in the version named."""
    try:
        items = [service.queue.get_by_id(principal, name) for name in rows]
    except StorageError:
        return []
    return [
        item
        for item in items
        if item is not None
        and item.status is ReviewStatus.PENDING
        and item.version == rows[item.id].version
        and may_rule_on(principal, item)
    ]
