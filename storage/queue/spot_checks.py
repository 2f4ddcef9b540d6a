"""The list of spot checks: memories that a rule stored as INFERENCE, drawn at random for their owners to judge.

A memory is drawn in the transaction that stores it, and only then. What its owner says changes nothing about it: it
tells how often a rule is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Table, bindparam, exists, func, select, text, update

from vouchgate.ingest.claims.decision import Label, ValidationResult
from vouchgate.ingest.claims.waiting import SpotCheck, SpotVerdict
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.sampling import cited_first, is_sampled, rate_of
from vouchgate.storage.claims import memories
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.identity.owners import note_said
from vouchgate.storage.sql import BulkInsert, limited_to
from vouchgate.storage.tables.claims import SpotCheckRow

TABLE: Table = SpotCheckRow.metadata.tables["spot_check"]
ROWS = BulkInsert(TABLE)
_BY_MEMORY = select(TABLE).where(TABLE.c.memory_id == bindparam("wanted"))
_ANSWER = (
    update(TABLE)
    .where(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.memory_id == bindparam("of_memory"))
    .values(verdict=bindparam("says"), decided_at=bindparam("at"), decided_by=bindparam("by"))
)
_MEMORY = memories.TABLE
_REMEMBERED = exists().where(
    _MEMORY.c.owner_id == TABLE.c.owner_id, _MEMORY.c.id == TABLE.c.memory_id, memories.THERE
)
_COUNTS = select(TABLE.c.rule, TABLE.c.verdict, func.count().label("times")).group_by(
    TABLE.c.rule, TABLE.c.verdict
)

Open = Literal["open"]
OPEN: Open = "open"  # nobody has said anything yet
VerdictCounts = Mapping[Rule, Mapping[str, int]]  # by rule, of every SpotVerdict and OPEN


def rows_of(
    answer: ValidationResult, commitment: str, policy: Policy, agent: str, at: datetime
) -> list[dict[str, Any]]:
    """The row of a decision on a claim of this agent's that stored a memory, when it is drawn; `commitment` is that of
    the log entry to the decision."""
    evidence = answer.evidence
    rate = rate_of(evidence, policy, by_owner=answer.rule == Rule.STANDING_RULING)
    if evidence.label is not Label.INFERENCE or not is_sampled(commitment, rate):
        return []
    kind, publisher = cited_first(evidence.sources)
    row = {"owner_id": evidence.claim.owner_id, "memory_id": answer.memory_id, "rule": answer.rule}
    row |= {"agent": agent, "kind": kind, "publisher": publisher}
    return [row | {"created_at": at, "verdict": None, "decided_at": None, "decided_by": None}]


def get(connection: Connection, memory_id: str, *, owners: frozenset[str]) -> SpotCheck | None:
    """The spot check of a memory; None when none of `owners` has one of it."""
    if not valid_name(memory_id):
        return None
    row = connection.execute(limited_to(owners, _BY_MEMORY, TABLE), {"wanted": memory_id}).mappings().first()
    return None if row is None else SpotCheck.model_validate(dict(row))


def search(
    connection: Connection,
    owners: frozenset[str],
    *,
    verdict: SpotVerdict | Open,
    after: str | None,
    limit: int,
) -> Sequence[SpotCheck]:
    """Those of this verdict, but for erased memories, the newest first; `after` is the memory of the last one of the
    page before."""
    # The condition in words where nothing was said: only so do both databases see that the index fits.
    said = text("verdict IS NULL") if verdict == OPEN else TABLE.c.verdict == verdict.value
    statement = select(TABLE).where(TABLE.c.owner_id.in_(owners), said, _REMEMBERED)
    if after is not None:
        statement = statement.where(TABLE.c.memory_id < after)
    rows = connection.execute(statement.order_by(TABLE.c.memory_id.desc()).limit(limit)).mappings()
    return [SpotCheck.model_validate(dict(row)) for row in rows]


def answer(
    connection: Connection, of: SpotCheck, verdict: SpotVerdict, *, by: str, at: datetime
) -> SpotCheck:
    """Notes what its owner says, in place of what was said before. The caller holds the owner's lock."""
    named = {"of_owner": of.owner_id, "of_memory": of.memory_id}
    connection.execute(_ANSWER, named | {"says": verdict.value, "at": at, "by": by})
    note_said(connection, of.owner_id)
    return of.model_copy(update={"verdict": verdict, "decided_at": at, "decided_by": by})


def counts(connection: Connection, owners: frozenset[str] | None) -> VerdictCounts:
    """How often which rule was said to be right, by rules of which something was drawn; None: of all owners."""
    found: dict[Rule, dict[str, int]] = {}
    for rule, verdict, times in connection.execute(limited_to(owners, _COUNTS, TABLE)):
        none = {OPEN: 0, **dict.fromkeys((each.value for each in SpotVerdict), 0)}
        found.setdefault(rule, none)[verdict or OPEN] = times
    return found
