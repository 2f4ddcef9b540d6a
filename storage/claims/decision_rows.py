"""The rows that follow from the decisions of one transaction, noted one by one and written together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, update

from vouchgate.ingest.claims.decision import Tier, ValidationResult
from vouchgate.ingest.claims.likeness import ItemKind
from vouchgate.ingest.claims.waiting import Lane
from vouchgate.ingest.pipeline import Examined
from vouchgate.storage.claims import decisions, known_keys, lineage, memories, source_texts, standing_rulings
from vouchgate.storage.dedup import similar, vectors
from vouchgate.storage.queue import pending, rechecks, spot_checks
from vouchgate.storage.sql import BulkInsert

_MEMORIES = BulkInsert(memories.TABLE)
_PENDING = BulkInsert(pending.TABLE)
_DECISIONS = BulkInsert(decisions.TABLE)
_KEYS = BulkInsert(known_keys.TABLE)
_SEEN_AGAIN = (
    update(pending.TABLE)
    .where(pending.TABLE.c.owner_id == bindparam("of_owner"), pending.TABLE.c.id == bindparam("of_id"))
    .values(seen=pending.TABLE.c.seen + bindparam("times"))
)

Rows = list[dict[str, Any]]


@dataclass(slots=True)
class DecisionRows:
    """What is to be written. `seen` counts, by owner and item, the claims that repeat what waits already; `log` is
    written with the owners' rows, by who locked them."""

    memories: Rows = field(default_factory=list)
    pending: Rows = field(default_factory=list)
    vectors: Rows = field(default_factory=list)
    rechecks: Rows = field(default_factory=list)
    spot_checks: Rows = field(default_factory=list)
    texts: Rows = field(default_factory=list)
    decisions: Rows = field(default_factory=list)
    lineage: Rows = field(default_factory=list)
    ruling_acts: Rows = field(default_factory=list)
    idempotency: Rows = field(default_factory=list)
    log: Rows = field(default_factory=list)
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add_decision(
        self, examined: Examined, answer: ValidationResult, json: str, principal_id: str
    ) -> None:
        """Notes a decision, of which `json` is the text, and what it rests on."""
        owner_id, at = examined.claim.owner_id, examined.capture_time
        self.decisions.append(decisions.row_of(answer, json, principal_id=principal_id, at=at))
        self.lineage += lineage.rows_of(answer)
        self.ruling_acts += standing_rulings.act_rows(answer)
        if answer.tier is not Tier.BLOCKED:
            self.texts += source_texts.rows_of(owner_id, examined.readings, examined.policy, at)

    def add_memory(
        self,
        examined: Examined,
        answer: ValidationResult,
        bands: tuple[int, ...],
        commitment: str,
        principal_id: str,
    ) -> None:
        """Notes the memory that a principal's claim becomes: `bands` are its keys in the similar index, `commitment`
        is that of the log entry to the decision."""
        decision_id, memory_id = str(answer.decision_id), str(answer.memory_id)
        owner_id, at = examined.claim.owner_id, examined.capture_time
        row = memories.row_from_answer(answer, decision_id=decision_id, memory_id=memory_id, created_at=at)
        self.memories.append(row | {"bands": similar.pack(bands)})
        self.vectors += vectors.rows_of(owner_id, ItemKind.MEMORY, memory_id, examined.embedding)
        self._schedule(
            rechecks.memory_row(
                examined.policy,
                owner_id,
                memory_id,
                examined.readings,
                at,
                memory_type=examined.claim.memory_type,
            )
        )
        self.spot_checks += spot_checks.rows_of(answer, commitment, examined.policy, principal_id, at)

    def add_unvouched(self, answer: ValidationResult) -> None:
        """Notes the memory of a claim that was let through. It is looked at by nobody and checked by nothing: it waits
        to be put before its owner."""
        row = memories.row_from_answer(
            answer,
            decision_id=str(answer.decision_id),
            memory_id=str(answer.memory_id),
            created_at=answer.evidence.capture_time,
        )
        self.memories.append(row | {"bands": None})

    def add_item(
        self, examined: Examined, answer: ValidationResult, principal_id: str, words_digest: str, lane: Lane
    ) -> None:
        """Notes the item in which a claim waits for its owner."""
        policy, owner_id, at = examined.policy, examined.claim.owner_id, examined.capture_time
        item_id = str(answer.queue_id)
        item = pending.from_answer(
            answer, item_id=item_id, submitted_by=principal_id, limits=policy.queue, lane=lane
        )
        self.pending.append(pending.row_of(item, words_digest))
        if examined.claim.removes:
            return
        self.vectors += vectors.rows_of(owner_id, ItemKind.PENDING, item_id, examined.embedding)
        self._schedule(rechecks.waiting_row(policy, answer, item_id, at))

    def _schedule(self, row: dict[str, Any] | None) -> None:
        """Notes when sources are to be read again; None: they are not."""
        self.rechecks += [] if row is None else [row]

    def write(self, connection: Connection) -> None:
        """Writes all but the log, one statement a table."""
        # Sorted, so that two processes that use the same keys for different owners wait in one order.
        self.idempotency.sort(key=lambda row: (row["principal_id"], row["key"]))
        for table, rows in (
            (_MEMORIES, self.memories),
            (_PENDING, self.pending),
            (vectors.ROWS, self.vectors),
            (rechecks.ROWS, self.rechecks),
            (spot_checks.ROWS, self.spot_checks),
            (_DECISIONS, self.decisions),
            (lineage.ROWS, self.lineage),
            (standing_rulings.ACTS, self.ruling_acts),
            (_KEYS, self.idempotency),
        ):
            table.write(connection, rows)
        source_texts.write(connection, self.texts)
        if self.seen:
            seen = self.seen.items()
            repeated = [{"of_owner": owner, "of_id": item, "times": times} for (owner, item), times in seen]
            connection.execute(_SEEN_AGAIN, repeated)
