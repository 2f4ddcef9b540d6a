"""Places in the review queue: limited for each agent of an owner, for each owner, for each token over all its owners,
and in all. Imports have a lane of their own, with limits of its own, and take no place of an agent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, select, text, update

from vouchgate.ingest.claims.waiting import Lane
from vouchgate.ingest.policy import QueueLimits
from vouchgate.storage.identity.owners import OwnerState
from vouchgate.storage.sql import fetch
from vouchgate.storage.tables.claims import QueueTotalRow

_TOTAL: Table = QueueTotalRow.metadata.tables["queue_total"]
_OF_AGENTS = _TOTAL.c.pending - _TOTAL.c.imported
_READ_TOTAL = select(_OF_AGENTS, _TOTAL.c.imported).where(_TOTAL.c.id == 1)
_LOCK_TOTAL = _READ_TOTAL.with_for_update()
_COUNT_TOTAL = text(
    "INSERT INTO queue_total (id, pending, imported) SELECT 1, coalesce(sum(pending), 0), coalesce(sum(imported), 0) "
    "FROM owner WHERE true ON CONFLICT DO NOTHING"
)
_ADD_TO_TOTAL = (
    update(_TOTAL)
    .where(_TOTAL.c.id == 1, _OF_AGENTS <= bindparam("most"), _TOTAL.c.imported <= bindparam("most_imported"))
    .values(pending=_TOTAL.c.pending + bindparam("more"), imported=_TOTAL.c.imported + bindparam("imports"))
)
# Counted no further than to the limit, in an index that has no import. SQLite knows another that fits, and is told.
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM pending"
_OF_AGENT = {
    "sqlite": f"{_COUNT} INDEXED BY pending_places WHERE owner_id = ?1 AND submitted_by = ?2 AND status = 'pending'"
    " AND lane = 'agent' LIMIT ?3)",
    "postgresql": f"{_COUNT} WHERE owner_id = %s AND submitted_by = %s AND status = 'pending' AND lane = 'agent'"
    " LIMIT %s) AS places",
}
_OF_TOKEN = {
    "sqlite": f"{_COUNT} INDEXED BY pending_places WHERE submitted_by = ?1 AND status = 'pending'"
    " AND lane = 'agent' LIMIT ?2)",
    "postgresql": f"{_COUNT} WHERE submitted_by = %s AND status = 'pending' AND lane = 'agent' LIMIT %s) AS places",
}
# Places left in the whole queue below which its count is locked before it is relied on. Other processes take at
# most a group's worth at the same moment, each.
_NEARLY_FULL = 1000
_ANY = 2**31 - 1  # more than ever wait: what bounds the lane that a group does not use


class QueueLimit(StrEnum):
    """Which limit is reached: the name of the policy's setting."""

    PER_AGENT = "per_agent"
    PER_OWNER = "per_owner"
    PER_TOKEN = "per_token"  # noqa: S105  (a setting's name)
    TOTAL = "total"
    IMPORTS_PER_OWNER = "imports_per_owner"
    IMPORTS_TOTAL = "imports_total"

    @property
    def whose(self) -> str:
        """What waits in so many places, to be said in a sentence."""
        match self:
            case QueueLimit.PER_AGENT:
                return "claims of this agent wait for their owner"
            case QueueLimit.PER_OWNER:
                return "claims wait for this owner"
            case QueueLimit.PER_TOKEN:
                return "claims of this token wait, of all the owners it sends for"
            case QueueLimit.TOTAL:
                return "claims wait in the whole queue, of all owners"
            case QueueLimit.IMPORTS_PER_OWNER:
                return "imported claims wait for this owner"
            case QueueLimit.IMPORTS_TOTAL:
                return "imported claims wait, of all owners"

    @property
    def in_all(self) -> bool:
        """Whether it is one over several owners."""
        return self in (QueueLimit.PER_TOKEN, QueueLimit.TOTAL, QueueLimit.IMPORTS_TOTAL)

    @property
    def of_sender(self) -> bool:
        """Whether it is one of a sender, so that what others sent may have room."""
        return self in (QueueLimit.PER_AGENT, QueueLimit.PER_TOKEN)


@dataclass(frozen=True, slots=True)
class QueueFull:
    """No room to wait, by the limit that is named. Nothing was written."""

    which: QueueLimit
    limit: int
    retry_after_seconds: int

    @property
    def sentence(self) -> str:
        """What is full, as the part of a sentence."""
        return f"{self.limit:,} {self.which.whose}, which is the limit"


class QueueFilledMeanwhile(Exception):
    """Other processes filled the queue while this group was decided. Roll back and write again with
    `lock_total`."""


class QueueCapacity:
    """The places that a group of claims takes. The caller holds the owners' locks. `at_once`: each is written right
    after it was reserved, so that the database counts it, too."""

    def __init__(self, connection: Connection, *, lock_total: bool, at_once: bool = False) -> None:
        self._connection = connection
        self._lock_total = lock_total
        self._at_once = at_once
        self._taken: Counter[Lane] = Counter()
        self._totals: dict[
            Lane, tuple[int, int]
        ] = {}  # limit, and how many waited before, of lanes asked for
        self._waiting: dict[
            tuple[str, ...], int
        ] = {}  # before, of an owner's agent or a token, where that was counted
        self._by_agent: Counter[tuple[str, str]] = Counter()  # places that this group takes
        self._by_token: Counter[str] = Counter()

    def reserve(self, owner: OwnerState, limits: QueueLimits, agent: str, lane: Lane) -> QueueFull | None:
        """Counts one more that waits, sent by the principal `agent`, or says which limit is reached."""
        full = self._full(owner, limits, agent, lane)
        if full is not None:
            return QueueFull(*full, limits.retry_after_seconds)
        owner.pending += 1
        owner.imported += lane is Lane.IMPORT
        self._taken[lane] += 1
        self._by_agent[owner.owner_id, agent] += lane is Lane.AGENT
        self._by_token[agent] += lane is Lane.AGENT
        return None

    def _full(
        self, owner: OwnerState, limits: QueueLimits, agent: str, lane: Lane
    ) -> tuple[QueueLimit, int] | None:
        of_agents = owner.pending - owner.imported
        match lane:
            case Lane.IMPORT:
                each, in_all = QueueLimit.IMPORTS_PER_OWNER, QueueLimit.IMPORTS_TOTAL
                most, of_lane = limits.imports_per_owner or limits.per_owner, owner.imported
                total = limits.imports_total or limits.total
            case Lane.AGENT:
                each, in_all, most, of_lane = (
                    QueueLimit.PER_OWNER,
                    QueueLimit.TOTAL,
                    limits.per_owner,
                    of_agents,
                )
                total = limits.total
                # While fewer wait in all, an agent cannot have so many: most claims are not counted.
                mine = limits.per_agent
                if mine and of_agents >= mine and self._of_agent(owner.owner_id, agent, mine) >= mine:
                    return QueueLimit.PER_AGENT, mine
        if of_lane >= most:
            return each, most
        if lane not in self._totals:
            self._totals[lane] = total, self._read_total(lane, total)
        waiting = self._totals[lane][1] + self._taken[lane]
        if waiting >= total:
            return in_all, total
        # Here, too, most are not counted. Other processes may write for other owners meanwhile: they pass it by their
        # groups, and not the limit over all.
        share = limits.per_token
        if lane is Lane.AGENT and share and waiting >= share and self._of_token(agent, share) >= share:
            return QueueLimit.PER_TOKEN, share
        return None

    def _of_agent(self, owner_id: str, agent: str, most: int) -> int:
        """How many places this agent has, counted to `most`, with those that this group takes."""
        pair = owner_id, agent
        return self._counted(_OF_AGENT, pair, most) + (0 if self._at_once else self._by_agent[pair])

    def _of_token(self, token_id: str, most: int) -> int:
        """How many it has for all its owners, counted to `most`, with those that this group takes."""
        return self._counted(_OF_TOKEN, (token_id,), most) + (
            0 if self._at_once else self._by_token[token_id]
        )

    def _counted(self, statements: dict[str, str], whose: tuple[str, ...], most: int) -> int:
        if self._at_once or whose not in self._waiting:
            statement = statements[self._connection.dialect.name]
            self._waiting[whose] = fetch(self._connection, statement, (*whose, most))[0][0]
        return self._waiting[whose]

    def _read_total(self, lane: Lane, limit: int) -> int:
        """How many wait in all in this lane. Far from the limit without the lock, so that owners do not wait for one
        another while their claims are decided; then `write` sees whether it still holds."""
        if not self._lock_total:
            total = self._of_lane(lane, _READ_TOTAL)
            if limit - total > _NEARLY_FULL:
                return total
        return self._of_lane(lane, _LOCK_TOTAL)

    def _of_lane(self, lane: Lane, statement: Select[Any]) -> int:
        row = self._connection.execute(statement).one_or_none()
        if (
            row is None
        ):  # somebody deleted it: it is counted anew, from the owners' rows as they were before this group
            self._connection.execute(_COUNT_TOTAL)
            row = self._connection.execute(statement).one()
        of_agents, imported = row
        return int(imported if lane is Lane.IMPORT else of_agents)

    def write(self) -> None:
        """Adds to the count of all. The last statement of a transaction: owners that queue something wait for
        one another from here to the commit. Raises QueueFilledMeanwhile."""
        if not self._taken:
            return
        agents, imports = self._taken[Lane.AGENT], self._taken[Lane.IMPORT]
        most = {lane: total - self._taken[lane] for lane, (total, _) in self._totals.items()}
        parameters = {
            "more": agents + imports,
            "imports": imports,
            "most": most.get(Lane.AGENT, _ANY),
            "most_imported": most.get(Lane.IMPORT, _ANY),
        }
        if self._connection.execute(_ADD_TO_TOTAL, parameters).rowcount != 1:
            raise QueueFilledMeanwhile
