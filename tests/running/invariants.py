"""What must hold in a database whatever happened to the processes that wrote it: nothing half written."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from tests.running.service import THRESHOLD
from vouchgate.ingest.claims.decision import Outcome, ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.dedup.template import is_member, member_keys, restore_template
from vouchgate.ingest.language.words import tokens
from vouchgate.review.undo import TAKEN_BACK
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import (
    DecisionRow,
    DedupKeyRow,
    DedupTemplateRow,
    ErasedRow,
    IdempotencyRow,
    LogRow,
    MemoryRow,
    OwnerRow,
    PendingRow,
    QueueTotalRow,
)

_CLAIM_ACTION = {
    Outcome.STORED: {Action.CLAIM_STORED, Action.CLAIM_PROMOTED},
    Outcome.QUEUED: {Action.CLAIM_QUEUED, Action.CLAIM_REPEATED, Action.CLAIM_RECHECKED},
    Outcome.BLOCKED: {Action.CLAIM_BLOCKED, Action.CLAIM_RECHECKED},
}
_ENDED = {
    Action.REVIEW_APPROVED: ReviewStatus.APPROVED,
    Action.REVIEW_REJECTED: ReviewStatus.REJECTED,
    Action.REVIEW_EXPIRED: ReviewStatus.EXPIRED,
}

_ID = re.compile(r"\b(?:mem|rev|dec)_\w+")
_REPLACED = (Action.MEMORY_SUPERSEDED, Action.MEMORY_RESTORED)


@dataclass(frozen=True)
class Kept:
    """Every row of one state of a database, by id."""

    memories: dict[str, Any]
    pending: dict[str, Any]
    decisions: dict[str, Any]
    answers: dict[str, ValidationResult]
    log: list[Any]
    idempotency: dict[tuple[str, str], Any]
    keys: list[Any]
    templates: list[Any]
    owners: dict[str, Any]
    total: int
    gone: frozenset[str]  # what was erased, and decisions on other claims that showed some of it


def everything(connection: Connection) -> Kept:
    """Reads all of it."""

    def rows(model: Any) -> list[Any]:
        return list(connection.execute(select(model.__table__)))

    decisions, entries = {row.id: row for row in rows(DecisionRow)}, rows(LogRow)
    return Kept(
        memories={row.id: row for row in rows(MemoryRow)},
        pending={row.id: row for row in rows(PendingRow)},
        decisions=decisions,
        answers={
            key: ValidationResult.model_validate_json(row.answer)
            for key, row in decisions.items()
            if row.answer
        },
        log=entries,
        idempotency={(row.principal_id, row.key): row for row in rows(IdempotencyRow)},
        keys=rows(DedupKeyRow),
        templates=rows(DedupTemplateRow),
        owners={row.owner_id: row for row in rows(OwnerRow)},
        total=sum(row.pending for row in rows(QueueTotalRow)),
        gone=frozenset(
            [row.item_id for row in rows(ErasedRow)]
            + [entry.subject_id for entry in entries if entry.action == Action.MEMORY_ERASED]
        ),
    )


def look(database_url: str) -> tuple[Kept, list[str]]:
    """What a database holds, and one sentence for everything in it that is not whole, but for what was erased."""
    store = Store.open(database_url, threshold=THRESHOLD)
    try:
        with store.read() as connection:
            kept = everything(connection)
            broken = log.verify(connection)
    finally:
        store.close()
    for problems in (_decisions, _memories, _pending, _counters, _dedup_keys, _log, _twice):
        broken += problems(kept)
    return kept, [sentence for sentence in broken if kept.gone.isdisjoint(_ID.findall(sentence))]


def _decisions(kept: Kept) -> Iterator[str]:
    for decision_id, answer in kept.answers.items():
        owner = kept.decisions[decision_id].owner_id
        if answer.decision_id != decision_id or answer.evidence.claim.owner_id != owner:
            yield f"{decision_id}: its answer is about another decision or owner"
        if answer.outcome is Outcome.STORED and answer.memory_id not in kept.memories:
            yield f"{decision_id}: its memory {answer.memory_id} is not there"
        if answer.outcome is Outcome.QUEUED and answer.queue_id not in kept.pending:
            yield f"{decision_id}: its item {answer.queue_id} is not there"
    for name, row in kept.idempotency.items():
        if row.decision_id not in kept.decisions:
            yield f"key {name}: its decision {row.decision_id} is not there"


def _memories(kept: Kept) -> Iterator[str]:
    vouched = {item.memory_id: item for item in kept.pending.values() if item.memory_id is not None}
    for memory_id, memory in kept.memories.items():
        answer = kept.answers.get(memory.decision_id)
        if answer is None:
            yield f"{memory_id}: its decision {memory.decision_id} is not there"
            continue
        claim = answer.evidence.claim
        if (claim.owner_id, claim.content) != (memory.owner_id, memory.content):
            yield f"{memory_id}: its decision is about another claim"
        if answer.memory_id != memory_id and memory.retracted_reason != TAKEN_BACK:
            item = vouched.get(memory_id)
            if memory.approved_by is None or item is None or item.decision_id != memory.decision_id:
                yield f"{memory_id}: neither its decision nor an approval stored it"
        if memory.status == MemoryStatus.SUPERSEDED and memory.superseded_by not in kept.memories:
            yield f"{memory_id}: the memory that replaced it is not there"


def _pending(kept: Kept) -> Iterator[str]:
    of_item = {name: answer.queue_id for name, answer in kept.answers.items()}
    again = {entry.subject_id for entry in kept.log if entry.action == Action.CLAIM_RECHECKED}
    times = Counter(item_id for name, item_id in of_item.items() if name not in again)
    changes = Counter(of_item[name] for name in again)
    # Each decision that was taken back was a change, and so was the taking back.
    undone = Counter(entry.subject_id for entry in kept.log if entry.action == Action.REVIEW_UNDONE)
    for item_id, item in kept.pending.items():
        answer = kept.answers.get(item.decision_id)
        promoted = item.status == ReviewStatus.PROMOTED
        if answer is None or (answer.memory_id != item.memory_id if promoted else answer.queue_id != item_id):
            yield f"{item_id}: the decision that it rests on is not there"
        elif answer.evidence.claim.content != item.content:
            yield f"{item_id}: its decision is about another claim"
        if item.seen != times[item_id]:
            yield f"{item_id}: counts {item.seen} submits, but {times[item_id]} decisions name it"
        stored = item.status in (ReviewStatus.APPROVED, ReviewStatus.PROMOTED)
        if stored != (item.memory_id in kept.memories):
            yield f"{item_id}: is {item.status}, its memory is {item.memory_id}"
        made = changes[item_id] + 2 * undone[item_id] + (item.status != ReviewStatus.PENDING)
        if item.version != 1 + made:
            yield f"{item_id}: is {item.status} in version {item.version}"


def _counters(kept: Kept) -> Iterator[str]:
    waiting = Counter(i.owner_id for i in kept.pending.values() if i.status == ReviewStatus.PENDING)
    for owner_id, owner in kept.owners.items():
        if owner.pending != waiting[owner_id]:
            yield f"owner {owner_id}: counts {owner.pending} waiting items, {waiting[owner_id]} wait"
    if kept.total != waiting.total():
        yield f"the queue counts {kept.total} waiting items, {waiting.total()} wait"


def _dedup_keys(kept: Kept) -> Iterator[str]:
    """Each item in force is under each of its keys or, where one is closed, under one of its templates."""
    templates: defaultdict[tuple[str, int], list[Any]] = defaultdict(list)
    for row in kept.templates:
        templates[row.owner_id, row.key].append(row)
    found = {(row.owner_id, row.key, row.item_id) for row in kept.keys}
    allowed = set()
    for rows, status in ((kept.memories, MemoryStatus.ACTIVE), (kept.pending, ReviewStatus.PENDING)):
        for row in rows.values():
            if row.status != status:
                continue
            keys = signature_keys(tokens(row.content), row.memory_type, THRESHOLD)
            for key in keys.stored:
                ways = [{key}]
                for kept_as in templates[row.owner_id, key]:
                    template = restore_template(
                        kept_as.id, frozenset(json.loads(kept_as.words)), keys.own.parts
                    )
                    if is_member(template, keys.words):
                        ways.append(set(member_keys(template, keys.words)))
                if not any(all((row.owner_id, one, row.id) in found for one in way) for way in ways):
                    yield f"{row.id}: cannot be found by its dedup key {key}"
                allowed |= {(row.owner_id, one, row.id) for way in ways for one in way}
    for _, key, item_id in found - allowed:
        yield f"{item_id}: dedup key {key} should not be there"


def _ends(entries: list[Any]) -> list[ReviewStatus]:
    """What ended an item's wait by its log, without what was taken back."""
    ends: list[ReviewStatus] = []
    for entry in entries:
        if entry.action == Action.REVIEW_UNDONE:
            ends.pop()
        elif entry.action != Action.MEMORY_ERASED:
            ends.append(_ENDED[entry.action])
    return ends


def _log(kept: Kept) -> Iterator[str]:
    entries: defaultdict[str, list[Any]] = defaultdict(list)
    for entry in kept.log:
        entries[entry.subject_id].append(entry)
    for decision_id in kept.decisions.keys() - kept.gone:
        row, found = kept.decisions[decision_id], entries[decision_id]
        if len(found) != 1:
            yield f"{decision_id}: the log has {len(found)} entries for it"
        elif (
            found[0].content_digest != "1s:" + hashlib.sha256(found[0].salt + row.answer.encode()).hexdigest()
        ):
            yield f"{decision_id}: the log has the digest of another answer"
        elif found[0].action not in _CLAIM_ACTION[kept.answers[decision_id].outcome]:
            yield f"{decision_id}: the log says {found[0].action}"
        elif found[0].owner_id != row.owner_id:
            yield f"{decision_id}: is in the log of {found[0].owner_id}"
    for item_id, item in kept.pending.items():
        ends = _ends(entries[item_id])
        undecided = (ReviewStatus.PENDING, ReviewStatus.PROMOTED)  # a promotion is logged as its decision
        if ends != ([] if item.status in undecided else [item.status]):
            yield f"{item_id}: is {item.status}, the log says {ends}"
    for memory_id, memory in kept.memories.items():
        changed = [e.action for e in entries[memory_id] if e.action in _REPLACED]
        replaced = changed[-1:] == [Action.MEMORY_SUPERSEDED]
        if replaced != (memory.status == MemoryStatus.SUPERSEDED):
            yield f"{memory_id}: is {memory.status}, the log disagrees"
    subjects = kept.decisions.keys() | kept.pending.keys() | kept.memories.keys()
    for entry in kept.log:
        if entry.owner_id and entry.subject_id not in subjects and _ID.match(entry.subject_id):
            yield f"log of {entry.owner_id}, entry {entry.seq}: {entry.subject_id} is not there"


def _twice(kept: Kept) -> Iterator[str]:
    in_force = [m for m in kept.memories.values() if m.status == MemoryStatus.ACTIVE]
    in_force += [i for i in kept.pending.values() if i.status == ReviewStatus.PENDING]
    for (owner_id, content), count in Counter((row.owner_id, row.content) for row in in_force).items():
        if count > 1:
            yield f"owner {owner_id} has {count} times: {content}"
