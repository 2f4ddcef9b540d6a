"""The one transaction of an erasure, under the owner's lock: every place that a plan names is emptied, rows stay, and
the log says so."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, Table, and_, delete, insert, select, update

from vouchgate.ingest.checks.echo import echo_key
from vouchgate.ingest.claims.likeness import ItemKind
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.language.words import tokens
from vouchgate.storage.claims import (
    decisions,
    known_keys,
    lineage,
    memories,
    records,
    source_cache,
    source_texts,
    word_index,
)
from vouchgate.storage.dedup import index, similar, vectors
from vouchgate.storage.erasing import scrub, tombstones
from vouchgate.storage.erasing.plan import RULING, Plan
from vouchgate.storage.erasing.tombstones import TABLE as ERASED
from vouchgate.storage.identity.owners import note_said
from vouchgate.storage.log import chain
from vouchgate.storage.outgoing.deliveries import TABLE as DELIVERY
from vouchgate.storage.outgoing.outbox import Outbox
from vouchgate.storage.queue import audits, documents, pending, rechecks
from vouchgate.storage.queue.spot_checks import TABLE as SPOT
from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import EchoRow
from vouchgate.storage.tables.people import VoteRow

STATUS = "erased"  # of a memory's row, and of an item's that waited: no read finds either
_ECHO: Table = EchoRow.metadata.tables["echo"]
_VOTE: Table = VoteRow.metadata.tables["vote"]
_LOG = chain.TABLE
_MEMORY: dict[str, Any] = {
    **dict.fromkeys(("source_id", "superseded_by", "retracted_reason", "stale_since", "stale_reason")),
    **dict.fromkeys(("lowered_at", "lowered_reason", "confirmed_despite", "validity_horizon", "bands")),
    "content": "",
    "details": {},
    "status": STATUS,
}
_ITEM: dict[str, Any] = {
    **dict.fromkeys(("note", "question", "cited", "words_digest", "rejected_before")),
    "content": "",
    "reason": "",
    "details": {},
    "validity_horizon": None,
}


def still_holds(connection: Connection, plan: Plan) -> bool:
    """Whether nothing was written since the plan was made that bears on it."""
    if tombstones.known(connection, plan.owner_id, plan.ids):
        return False
    new = select(_LOG.c.subject_id, _LOG.c.action).where(
        _LOG.c.owner_id == plan.owner_id, _LOG.c.seq > plan.seq
    )
    rows = connection.execute(new).all()
    subjects = {row.subject_id for row in rows}
    if not subjects.isdisjoint(plan.ids | plan.shown_in.keys() | plan.rulings | plan.worded):
        return False
    if any(row.action == Action.STANDING_RULING_CONFIRMED for row in rows):  # it may have the words
        return False
    made = select(decisions.TABLE.c.answer).where(
        decisions.TABLE.c.owner_id == plan.owner_id, among(decisions.TABLE.c.id, "subjects")
    )
    return not any(map(plan.concerns, connection.scalars(made, {"subjects": list(subjects)})))


def apply(connection: Connection, plan: Plan, *, erasure_id: str, basis: str, by: str, now: datetime) -> None:
    """Erases what the plan names. The caller holds the owner's lock, and has seen that the plan `still_holds`."""
    with scrub.overwriting(connection):
        _Work(connection, plan, by, now).run(erasure_id, basis)
        scrub.note_due(connection, now)


def committed(basis: str, ids: Iterable[str]) -> dict[str, Any]:
    """What the log entry of an erasure commits to."""
    return {"basis": basis, "items": sorted(ids)}


def left_of(decision_id: str, answer: str) -> dict[str, Any]:
    """What the log entry commits to of a decision on another claim, which showed what was erased."""
    return {"decision": decision_id, "answer": hashlib.sha256(answer.encode()).hexdigest()}


@dataclass(frozen=True, slots=True)
class _Work:
    connection: Connection
    plan: Plan
    by: str
    now: datetime

    def run(self, erasure_id: str, basis: str) -> None:
        plan, owner_id = self.plan, self.plan.owner_id
        self.leave_indexes()
        self.tell_sinks()
        self.set(memories.TABLE.c.id, plan.memories, _MEMORY)
        self.set(pending.TABLE.c.id, plan.items, _ITEM)
        asked_away = and_(pending.TABLE.c.status == "approved", pending.TABLE.c.memory_id.is_(None))
        self.set(pending.TABLE.c.id, plan.items, {"removal_of": None}, ~asked_away)
        self.set(decisions.TABLE.c.id, plan.decisions, {"answer": ""})
        self.set(records.TABLE.c.id, plan.records, {**records.EMPTY})
        self.drop(lineage.TABLE.c.decision_id, plan.decisions, lineage.TABLE.c.owner_id == owner_id)
        for decision_id, answer in plan.shown_in.items():
            self.set(decisions.TABLE.c.id, [decision_id], {"answer": answer})
        self.set(_LOG.c.seq, plan.entries, {"salt": None})
        self.set(_VOTE.c.item_id, plan.items, {"note": None})
        self.set(RULING.c.id, plan.rulings | plan.worded, {"name": STATUS, "terms": {"agent": STATUS}})
        self.set(SPOT.c.memory_id, plan.memories, {"kind": None, "publisher": None})
        self.drop(SPOT.c.memory_id, plan.memories, SPOT.c.owner_id == owner_id, SPOT.c.verdict.is_(None))
        note_said(self.connection, owner_id)
        texts, echoes = source_texts.TABLE.c, {echo_key(tokens(text), kind) for text, kind in plan.texts}
        self.drop(texts.digest, plan.source_texts, texts.owner_id == owner_id)
        self.drop(_ECHO.c.key, echoes, _ECHO.c.owner_id == owner_id)
        self.drop(source_cache.TABLE.c.key, plan.readings)
        for principal_id, key in plan.keys:
            self.drop(known_keys.TABLE.c.key, [key], known_keys.TABLE.c.principal_id == principal_id)
        for audit_id, position, whole in plan.audited:
            to = {"reason": "", "text": "", "claim": {}} if whole else {"reason": ""}
            self.set(audits.ROW.c.position, [position], to, audits.ROW.c.audit_id == audit_id)
        for document_id in plan.documents:
            sent = documents.remove(self.connection, owner_id, document_id)
            self.log(Action.DOCUMENT_DELETED, document_id, {"document": document_id, "sent": sent})
        same = {"owner_id": owner_id, "erasure_id": erasure_id, "at": self.now, "by": self.by, "basis": basis}
        self.connection.execute(insert(ERASED), [same | {"item_id": each} for each in sorted(plan.ids)])
        self.log(Action.MEMORY_ERASED, erasure_id, committed(basis, plan.ids))
        for decision_id, answer in sorted(plan.shown_in.items()):
            self.log(Action.MEMORY_ERASED, decision_id, left_of(decision_id, answer))
        for ruling_id in sorted(plan.worded):
            self.log(Action.MEMORY_ERASED, ruling_id, {"ruling": ruling_id})

    def leave_indexes(self) -> None:
        owner_id = self.plan.owner_id
        for memory_id in self.plan.memories:
            index.remove(self.connection, owner_id, ItemKind.MEMORY, memory_id)
            similar.remove(self.connection, owner_id, memory_id)
        word_index.remove(self.connection, owner_id, self.plan.memories)
        for item_id in self.plan.items:
            item = pending.get(self.connection, item_id, owners=frozenset({owner_id}))
            if item is not None and item.status is ReviewStatus.PENDING:
                pending.finish(self.connection, item, status=ReviewStatus.LET_GO, at=self.now, by=self.by)
                self.set(pending.TABLE.c.id, [item_id], {"status": STATUS})
        for each in self.plan.memories | self.plan.items:
            vectors.remove(self.connection, owner_id, each)
            rechecks.remove(self.connection, owner_id, each)

    def tell_sinks(self) -> None:
        """Who was told of it is told that it is to go, also who was before; what was told is emptied."""
        outbox, gone = Outbox(self.connection), self.plan.memories
        for memory_id in gone:
            outbox.note_erased(self.plan.owner_id, memory_id, self.now)
        of_hook = DELIVERY.c.sink.startswith("sink_", autoescape=True)  # whose place is the memory's id
        self.set(DELIVERY.c.memory_id, gone, {"data": {}, "last_error": None})
        self.set(DELIVERY.c.memory_id, gone, {"place": ""}, ~of_hook)
        ended = {"state": "skipped", "lease": None, "last_error": "Its memory was erased."}
        self.set(DELIVERY.c.memory_id, gone, ended, DELIVERY.c.state.in_(["waiting", "dead"]))
        outbox.write()

    def log(self, action: Action, subject: str, about: dict[str, Any]) -> None:
        owner_id, document = self.plan.owner_id, chain.document_of(about)
        chain.append(self.connection, owner_id, action, subject, document, by=self.by, now=self.now)

    def set(self, column: Column[Any], values: Collection[Any], to: dict[str, Any], *where: Any) -> None:
        if values:
            rows = update(column.table).where(
                column.table.c.owner_id == self.plan.owner_id, among(column, "of"), *where
            )
            self.connection.execute(rows.values(**to), {"of": list(values)})

    def drop(self, column: Column[Any], values: Collection[str], *where: Any) -> None:
        if values:
            self.connection.execute(
                delete(column.table).where(among(column, "of"), *where), {"of": list(values)}
            )
