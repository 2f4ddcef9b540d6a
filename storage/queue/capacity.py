"""Places in the review queue, which is limited for each owner and in all."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Table, bindparam, select, update

from vouchgate.ingest.policy import QueueLimits
from vouchgate.storage.identity.owners import OwnerState
from vouchgate.storage.tables.claims import QueueTotalRow

_TOTAL: Table = QueueTotalRow.metadata.tables["queue_total"]
_READ_TOTAL = select(_TOTAL.c.pending).where(_TOTAL.c.id == 1)
_LOCK_TOTAL = _READ_TOTAL.with_for_update()
_ADD_TO_TOTAL = (
    update(_TOTAL)
    .where(_TOTAL.c.id == 1, _TOTAL.c.pending <= bindparam("most"))
    .values(pending=_TOTAL.c.pending + bindparam("more"))
)
# Places left in the whole queue below which its count is locked before it is relied on. Other processes take at
# most a group's worth at the same moment, each.
_NEARLY_FULL = 1000


@dataclass(frozen=True, slots=True)
class QueueFull:
    """No room to wait: this owner's queue or, when not `per_owner`, the whole one. Nothing was written."""

    per_owner: bool
    limit: int
    retry_after_seconds: int


class QueueFilledMeanwhile(Exception):
    """Other processes filled the queue while this group was decided. Roll back and write again with
    `lock_total`."""


class QueueCapacity:
    """The places that a group of claims takes. The caller holds the owners' locks."""

    def __init__(self, connection: Connection, *, lock_total: bool) -> None:
        self._connection = connection
        self._lock_total = lock_total
        self._limit = 0
        self._taken = 0
        self._before: int | None = None  # how many waited in all; read when the first claim has to wait

    def reserve(self, owner: OwnerState, limits: QueueLimits) -> QueueFull | None:
        """Counts one more that waits, or says which queue is full."""
        if owner.pending >= limits.per_owner:
            return QueueFull(True, limits.per_owner, limits.retry_after_seconds)
        if self._before is None:
            self._before, self._limit = self._read_total(limits.total), limits.total
        if self._before + self._taken >= limits.total:
            return QueueFull(False, limits.total, limits.retry_after_seconds)
        owner.pending += 1
        self._taken += 1
        return None

    def _read_total(self, limit: int) -> int:
        """How many wait in all. Far from the limit without the lock, so that owners do not wait for one
        another while their claims are decided; then `write` sees whether it still holds."""
        if not self._lock_total:
            total: int = self._connection.execute(_READ_TOTAL).scalar_one()
            if limit - total > _NEARLY_FULL:
                return total
        locked: int = self._connection.execute(_LOCK_TOTAL).scalar_one()
        return locked

    def write(self) -> None:
        """Adds to the count of all. The last statement of a transaction: owners that queue something wait for
        one another from here to the commit. Raises QueueFilledMeanwhile."""
        if not self._taken:
            return
        parameters = {"more": self._taken, "most": self._limit - self._taken}
        if self._connection.execute(_ADD_TO_TOTAL, parameters).rowcount != 1:
            raise QueueFilledMeanwhile
