"""All that the log and the rows have of one claim: its decisions, what waited and what was stored, and every entry
about them. For auditors, who begin with any of these, and do not know which others there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import Field
from pydantic_core import from_json, to_json
from sqlalchemy import Connection, Row, Table, and_, bindparam, or_, select

from vouchgate.ingest.citations import names
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.log import Action, LogEntry
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.storage.claims import decisions, lineage, memories
from vouchgate.storage.identity.grants import TOKEN
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.ids import decision_id, first_decision_id
from vouchgate.storage.log.chain import SHOWN
from vouchgate.storage.log.chain import TABLE as LOG
from vouchgate.storage.queue import pending, votes
from vouchgate.storage.queue.votes import Vote
from vouchgate.storage.sql import among

MOST_LOOKED_AT = 20_000  # decisions that one search holds its words against: some 80 MB of answers
MOST_ENTRIES = 1_000  # of a story, the latest of one that has more

_DECISION: Table = decisions.TABLE
_MADE_ANEW = (Action.CLAIM_RECHECKED.value, Action.CLAIM_PROMOTED.value, Action.REVIEW_EDITED.value)
_BY_IDS = select(_DECISION).where(
    _DECISION.c.owner_id == bindparam("of_owner"), among(_DECISION.c.id, "wanted")
)
# What was decided later of an item names it in its answer, and nowhere else.
_LATER = (
    select(_DECISION.c.id)
    .join(LOG, and_(LOG.c.owner_id == _DECISION.c.owner_id, LOG.c.subject_id == _DECISION.c.id))
    .where(
        _DECISION.c.owner_id == bindparam("of_owner"),
        LOG.c.action.in_(_MADE_ANEW),
        _DECISION.c.id >= bindparam("first"),
        _DECISION.c.answer.contains(bindparam("item")),
    )
)
_ABOUT = (
    select(*SHOWN)
    .where(LOG.c.owner_id == bindparam("of_owner"), among(LOG.c.subject_id, "wanted"))
    .order_by(LOG.c.seq.desc())
    .limit(MOST_ENTRIES)
)


@dataclass(frozen=True, slots=True)
class Story:
    """What is known of one claim. `decisions` have the columns of the table, the first one first."""

    owner_id: str
    decisions: tuple[Row[Any], ...]
    item: PendingMemory | None
    memory: Memory | None
    votes: tuple[Vote, ...]
    entries: tuple[LogEntry, ...]


def story_of(
    connection: Connection, wanted: str, now: datetime, *, owners: frozenset[str] | None
) -> Story | None:
    """The story that a decision, a waiting item or a memory of this id belongs to; None when none of `owners` has it
    (None: any owner)."""
    item = pending.get(connection, wanted, owners=owners)
    memory = memories.get(connection, wanted, now, owners=owners) if item is None else None
    start = memory.decision_id if memory is not None else item.decision_id if item is not None else wanted
    answer = from_json(decisions.get(connection, start, owners=owners) or "{}")
    if not answer:
        return None
    owner_id = answer["evidence"]["claim"]["owner_id"]
    own = frozenset({owner_id})
    if item is None and answer.get("queue_id"):
        item = pending.get(connection, answer["queue_id"], owners=own)
    stored = answer.get("memory_id") or (item.memory_id if item is not None else None)
    if memory is None and stored:
        memory = memories.get(connection, stored, now, owners=own)
    made = {start, wanted} | ({memory.decision_id} if memory is not None else set())
    if item is not None:
        first = decision_id(item.id.partition("_")[2])
        made |= {item.decision_id, first, item.asked_decision or first}
        asked = {"of_owner": owner_id, "first": first, "item": item.id}
        made |= set(connection.scalars(_LATER, asked))
    rows = connection.execute(_BY_IDS, {"of_owner": owner_id, "wanted": sorted(made)}).all()
    about = made | {one.id for one in (item, memory) if one is not None}
    entries = connection.execute(_ABOUT, {"of_owner": owner_id, "wanted": sorted(about)}).mappings().all()
    return Story(
        owner_id,
        tuple(sorted(rows, key=lambda row: row.id)),
        item,
        memory,
        () if item is None else tuple(votes.of_item(connection, owner_id, item.id)),
        entries_of(reversed(entries)),
    )


class DecisionFilter(Frozen):
    """Which decisions to list. What is None does not restrict; `owners` None means every owner. `agent` is the id or
    the name of a token; `text` is looked for in all that was answered, letters A to Z in either case, or is what it
    rests on, in any spelling."""

    owners: frozenset[str] | None
    text: str | None = None
    agent: str | None = None
    tier: Tier | None = None
    since: datetime | None = None
    until: datetime | None = None
    after: str | None = None  # id of the last one of the page before
    limit: int = Field(default=50, ge=1, le=200)


def search(connection: Connection, wanted: DecisionFilter) -> tuple[list[Row[Any]], str | None]:
    """The newest decisions that match, and after which id to go on; None when there are no more. At most
    MOST_LOOKED_AT are looked at, so a page may have few, and more come after it."""
    column = _DECISION.c
    conditions = []
    if wanted.owners is not None:
        conditions.append(among(column.owner_id, "of_owners"))
    if wanted.tier is not None:
        conditions.append(column.tier == wanted.tier.value)
    if wanted.agent is not None:
        tokens = select(TOKEN.c.id).where(or_(TOKEN.c.id == wanted.agent, TOKEN.c.name == wanted.agent))
        conditions.append(column.principal_id.in_(tokens))
    if wanted.since is not None:
        conditions.append(column.id >= first_decision_id(wanted.since))
    if wanted.until is not None:
        conditions.append(column.id < first_decision_id(wanted.until))
    if wanted.after is not None:
        if not valid_name(wanted.after):
            return [], None
        conditions.append(column.id < wanted.after)
    asked = {} if wanted.owners is None else {"of_owners": sorted(wanted.owners)}
    window = select(_DECISION).where(*conditions).order_by(column.id.desc())
    last = connection.scalar(window.with_only_columns(column.id).offset(MOST_LOOKED_AT - 1).limit(1), asked)
    if wanted.text:
        held = column.answer.icontains(_as_json(wanted.text), autoescape=True)
        rests = lineage.TABLE.c
        same = and_(rests.owner_id == column.owner_id, rests.decision_id == column.id)
        named = select(rests.name).where(same, lineage.named(names.wanted(wanted.text))).correlate(_DECISION)
        window = window.where(or_(held, named.exists()))
    if last is not None:
        window = window.where(column.id >= last)
    rows = list(connection.execute(window.limit(wanted.limit), asked))
    return rows, rows[-1].id if len(rows) == wanted.limit else last


def latest(connection: Connection, owner_id: str, *, before: int | None, limit: int) -> tuple[LogEntry, ...]:
    """The last entries of an owner's chain, the newest first; those before a number only."""
    statement = select(*SHOWN).where(LOG.c.owner_id == owner_id).order_by(LOG.c.seq.desc()).limit(limit)
    if before is not None:
        statement = statement.where(LOG.c.seq < before)
    return entries_of(connection.execute(statement).mappings())


def entries_of(rows: Iterable[Any]) -> tuple[LogEntry, ...]:
    """Rows of the log as entries."""
    return tuple(LogEntry.model_validate(dict(row)) for row in rows)


def _as_json(text: str) -> str:
    """As it stands within a text of an answer."""
    return to_json(text).decode()[1:-1]
