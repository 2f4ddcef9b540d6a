"""Who ruled on what, when and after how long a look, read from the log: approvals, rejections, votes, what was let go.

What one act did together has times within one thousandth of a second, and what was not done together has not
(`vouchgate.server.rulings`, `review.attending.attention.let_go`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Any, Literal

from pydantic import computed_field
from sqlalchemy import Connection, Row, Select, Table, and_, bindparam, func, or_, select, text

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.rules import Rule
from vouchgate.storage.claims.memories import TABLE as MEMORY
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.identity.grants import TOKEN
from vouchgate.storage.log.chain import TABLE as LOG
from vouchgate.storage.queue.pending import TABLE as PENDING
from vouchgate.storage.queue.votes import TABLE as VOTE
from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import RULED
from vouchgate.storage.tables.people import OpeningRow, PersonRow

_AT_ONCE = 500  # rows in memory
_OPENING: Table = OpeningRow.metadata.tables["opening"]
_PERSON: Table = PersonRow.metadata.tables["person"]
_AGENT, _AGENTS_PERSON = TOKEN.alias("agent"), _PERSON.alias("agents_person")
_NOTE_OPENED = text(
    "INSERT INTO opening (owner_id, item_id, viewer, opened_at) VALUES (:owner, :item, :viewer, :at) "
    "ON CONFLICT DO NOTHING"
).bindparams(bindparam("at", type_=UtcTime))
_IS_OPENED = select(_OPENING.c.opened_at).where(
    _OPENING.c.owner_id == bindparam("owner"),
    _OPENING.c.item_id == bindparam("item"),
    _OPENING.c.viewer == bindparam("viewer"),
)
_VIEWER = func.coalesce(TOKEN.c.person_id, LOG.c.actor)
_RULINGS: Select[Any] = (
    select(
        LOG.c.owner_id,
        LOG.c.seq,
        LOG.c.at,
        LOG.c.action,
        LOG.c.subject_id.label("item_id"),
        LOG.c.actor.label("reviewer"),
        TOKEN.c.name.label("reviewer_name"),
        TOKEN.c.role,
        TOKEN.c.person_id.label("person"),
        _PERSON.c.name.label("person_name"),
        VOTE.c.acts_for.label("in_the_stead_of"),
        _OPENING.c.opened_at,
        PENDING.c.rule,
        PENDING.c.submitted_by.label("agent"),
        _AGENT.c.name.label("agent_name"),
        _AGENT.c.person_id.label("agents_person"),
        _AGENTS_PERSON.c.name.label("agents_person_name"),
        func.coalesce(VOTE.c.note, PENDING.c.note).label("note"),
        and_(PENDING.c.decided_by == LOG.c.actor, PENDING.c.decided_at == LOG.c.at).label("stands"),
        PENDING.c.memory_id,
        MEMORY.c.status.label("memory_status"),
        MEMORY.c.retracted_reason,
        (MEMORY.c.decision_id != PENDING.c.decision_id).label("edited"),
    )
    .select_from(
        LOG.outerjoin(TOKEN, TOKEN.c.id == LOG.c.actor)
        .outerjoin(_PERSON, _PERSON.c.id == TOKEN.c.person_id)
        .outerjoin(
            _OPENING,
            and_(
                _OPENING.c.owner_id == LOG.c.owner_id,
                _OPENING.c.item_id == LOG.c.subject_id,
                _OPENING.c.viewer == _VIEWER,
            ),
        )
        .outerjoin(PENDING, and_(PENDING.c.owner_id == LOG.c.owner_id, PENDING.c.id == LOG.c.subject_id))
        .outerjoin(_AGENT, _AGENT.c.id == PENDING.c.submitted_by)
        .outerjoin(_AGENTS_PERSON, _AGENTS_PERSON.c.id == _AGENT.c.person_id)
        .outerjoin(
            VOTE,
            and_(
                VOTE.c.owner_id == LOG.c.owner_id,
                VOTE.c.item_id == LOG.c.subject_id,
                VOTE.c.by == LOG.c.actor,
                VOTE.c.at == LOG.c.at,
            ),
        )
        .outerjoin(MEMORY, and_(MEMORY.c.owner_id == LOG.c.owner_id, MEMORY.c.id == PENDING.c.memory_id))
    )
    .where(text(f"log_entry.{RULED}"))
    .order_by(LOG.c.owner_id, LOG.c.at, LOG.c.seq)
)
_DONE_BY = (
    select(LOG.c.seq, LOG.c.at, LOG.c.action, LOG.c.subject_id)
    .where(LOG.c.owner_id == bindparam("of_owner"), LOG.c.actor == bindparam("of_by"))
    .order_by(LOG.c.seq)
)
_RULED_BY = _DONE_BY.where(LOG.c.at >= bindparam("from_at")).where(text(f"log_entry.{RULED}"))
_DONE_AFTER = _DONE_BY.where(LOG.c.seq > bindparam("after"))
_WHATS = {
    Action.REVIEW_APPROVED: "approved",
    Action.REVIEW_REJECTED: "rejected",
    Action.REVIEW_LET_GO: "let_go",
    Action.REVIEW_VOTED: "voted",
    Action.REVIEW_OBJECTED: "objected",
}


class Done(Frozen):
    """What somebody did, as the log has it: its number, when, what and to which."""

    seq: int
    at: datetime
    action: Action
    subject_id: str


class RulingFilter(Frozen):
    """Which rulings are meant. `owners` None is every owner; `since` is in it, `until` is not; `reviewer` is the name
    or id of a token or of a person; `after` the owner and time of the last ruling that was seen."""

    owners: frozenset[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    reviewer: str | None = None
    after: tuple[str, datetime] | None = None


class Ruling(Frozen):
    """One ruling, or one vote. None is what is not known, or is not there.

    `at` is the log's entry `seq`. `opened_at` is when the person first had the claim before them on a page: who rules
    over the API, or with a command, opens none. `together` is of how many claims the act was that this is one of.
    `in_the_stead_of` is known of votes, the id of a person. `taken_back`: it does not stand any more; of a vote, and of
    a claim that is gone, that is not known. `note`, `memory_id`, `memory_status` and `edited` (stored in words of the
    reviewer) are as they are now, and of what was taken back None; what was erased leaves its ids.
    """

    owner_id: str
    seq: int
    at: datetime
    what: str
    item_id: str
    reviewer: str
    reviewer_name: str | None
    role: str | None
    person: str | None
    person_name: str | None
    in_the_stead_of: str | None
    opened_at: datetime | None
    together: int
    rule: Rule | None
    agent: str | None
    agent_name: str | None
    agents_person: str | None
    agents_person_name: str | None
    note: str | None
    taken_back: bool | None
    memory_id: str | None
    memory_status: MemoryStatus | Literal["erased"] | None
    retracted_reason: str | None
    edited: bool | None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def look_seconds(self) -> float | None:
        """From when the claim was first opened until the ruling."""
        return None if self.opened_at is None else (self.at - self.opened_at).total_seconds()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def own_agent(self) -> bool | None:
        """Whether the person behind the ruling is behind the agent, too."""
        if self.person is None or self.agents_person is None:
            return None
        return self.person == self.agents_person


def is_opened(connection: Connection, owner_id: str, item_id: str, viewer: str) -> bool:
    """Whether this person, or token of nobody, had the item before them."""
    found = {"owner": owner_id, "item": item_id, "viewer": viewer}
    return connection.scalar(_IS_OPENED, found) is not None


def note_opened(connection: Connection, owner_id: str, item_id: str, viewer: str, at: datetime) -> None:
    """Keeps when that was, the first time."""
    connection.execute(_NOTE_OPENED, {"owner": owner_id, "item": item_id, "viewer": viewer, "at": at})


def ruled_by(connection: Connection, owner_id: str, by: str, since: datetime) -> list[Done]:
    """The rulings and votes of a principal since then, in order."""
    rows = connection.execute(_RULED_BY, {"of_owner": owner_id, "of_by": by, "from_at": since})
    return [Done.model_validate(dict(row)) for row in rows.mappings()]


def done_after(connection: Connection, owner_id: str, by: str, seq: int) -> list[Done]:
    """What a principal did after that entry of the log, in order."""
    rows = connection.execute(_DONE_AFTER, {"of_owner": owner_id, "of_by": by, "after": seq})
    return [Done.model_validate(dict(row)) for row in rows.mappings()]


def walk(connection: Connection, wanted: RulingFilter) -> Iterator[tuple[Ruling, ...]]:
    """The rulings by owner and time, those of one owner and thousandth of a second at a time."""
    statement, asked = _RULINGS, {}
    if wanted.owners is not None:
        statement, asked = statement.where(among(LOG.c.owner_id, "owners")), {"owners": sorted(wanted.owners)}
    if wanted.since is not None:
        statement = statement.where(LOG.c.at >= wanted.since)
    if wanted.until is not None:
        statement = statement.where(LOG.c.at < wanted.until)
    if wanted.reviewer is not None:
        named = (LOG.c.actor, TOKEN.c.name, TOKEN.c.person_id, _PERSON.c.name)
        statement = statement.where(or_(*(each == wanted.reviewer for each in named)))
    if wanted.after is not None:
        owner_id, at = wanted.after
        behind = and_(LOG.c.owner_id == owner_id, LOG.c.at > at)
        statement = statement.where(or_(LOG.c.owner_id > owner_id, behind))
    rows = connection.execute(statement, asked, execution_options={"yield_per": _AT_ONCE})
    for _, group in groupby(rows, key=lambda row: (row.owner_id, _millisecond(row.at))):
        together = list(group)
        counts = Counter(who for who, _ in {(row.reviewer, row.item_id) for row in together})
        yield tuple(_ruling(row, counts[row.reviewer]) for row in together)


def _ruling(row: Row[Any], together: int) -> Ruling:
    found = dict(row._mapping)
    what, stands = _WHATS[Action(found.pop("action"))], found.pop("stands")
    opened_at, edited = found.pop("opened_at"), found.pop("edited")
    vote = what in ("voted", "objected")
    if vote or not stands:
        found |= {"memory_id": None, "memory_status": None, "retracted_reason": None}
        found |= {} if vote and found["in_the_stead_of"] is not None else {"note": None}
    return Ruling(
        **found | {"in_the_stead_of": found["in_the_stead_of"] or None},
        what=what,
        together=together,
        taken_back=None if vote or row.agent is None else not stands,
        opened_at=opened_at if opened_at is not None and opened_at <= row.at else None,
        edited=bool(edited) if stands and what == "approved" and edited is not None else None,
    )


def _millisecond(at: datetime) -> datetime:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)
