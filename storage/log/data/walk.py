"""The whole walk: each owner in a read transaction of its own, so that the service goes on writing meanwhile."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from sqlalchemy import Connection, Table, select, union

from vouchgate.storage.claims import records
from vouchgate.storage.erasing import tombstones
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.log.data import claims, erased, identity, items, own, told
from vouchgate.storage.log.data.differences import (
    DECISION,
    LOG,
    MEMORY,
    PENDING,
    Check,
    Difference,
    Kind,
    Look,
)
from vouchgate.storage.tables.claims import PolicyRow

POLICY: Table = PolicyRow.metadata.tables["policy"]
# What was erased, and then the decisions first: what follows rests on what they say.
_OF_OWNER: tuple[Check, ...] = (
    erased.erasures,
    own.salts,
    claims.decisions,
    claims.memories,
    items.items,
    own.publishers,
    own.switched,
    own.spot_checks,
    own.rulings,
    told.webhooks,
    told.deliveries,
    own.kept_records,
    own.counts,
)
_OF_SERVICE: tuple[Check, ...] = (own.salts, identity.identity, own.switched, own.total)
_OWNED = (
    DECISION,
    claims.LINEAGE,
    MEMORY,
    PENDING,
    own.TRUST,
    own.SWITCH,
    own.SPOT,
    own.RULING,
    told.WEBHOOK,
    tombstones.TABLE,
    claims.DELIVERY,
    records.TABLE,
)


class Walk:
    """One walk. `uncovered` counts by reason what no entry commits to, `seen` the rows and entries looked at; both are
    whole once `differences` is at its end."""

    def __init__(
        self,
        read: Callable[[], AbstractContextManager[Connection]],
        owner_id: str | None = None,
        progress: Callable[[int], None] = lambda seen: None,
    ) -> None:
        """`read` begins a read transaction (`Store.read`); `owner_id` None: every owner, and who may call."""
        self._read = read
        self._owner_id = owner_id
        self._progress = progress
        self.uncovered: Counter[str] = Counter()
        self.seen = 0

    def differences(self) -> Iterator[Difference]:
        """Every difference, as it is found."""
        with self._read() as connection:
            policies, bad = _policies(connection)
            owners = [self._owner_id] if self._owner_id is not None else _owners(connection)
        yield from bad
        for owner_id in owners:
            checks = _OF_SERVICE if owner_id == SERVICE_OWNER else _OF_OWNER
            with self._read() as connection:
                look = Look(connection, owner_id, policies, self.uncovered)
                for check in checks:
                    before = look.seen
                    _run(look, check)
                    self.seen += look.seen - before
                    self._progress(self.seen)
                    yield from look.differences
                    look.differences.clear()


def _run(look: Look, check: Check) -> None:
    """What cannot be read at all was altered, too: nothing writes it so."""
    try:
        check(look)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        why = f"something in it cannot be read, and what comes after it was not looked at: {error!r:.200}"
        look.note(Kind.ALTERED, check.__name__, "?", why=why)


def _policies(connection: Connection) -> tuple[dict[str, str], list[Difference]]:
    """The policies that are what their digest says, and differences of the others."""
    good, bad = {}, []
    for row in connection.execute(select(POLICY.c.digest, POLICY.c.document)):
        if hashlib.sha256(str(row.document).encode()).hexdigest() == row.digest:
            good[row.digest] = row.document
        else:
            bad.append(Difference(Kind.ALTERED, "policy", SERVICE_OWNER, row.digest, "document"))
    return good, bad


def _owners(connection: Connection) -> list[str]:
    """Everybody whom a row or an entry names, the service first: also who has no row of an owner any more."""
    names = union(
        select(own.OWNER.c.owner_id), select(LOG.c.owner_id), *(select(t.c.owner_id) for t in _OWNED)
    )
    return sorted({SERVICE_OWNER, *connection.scalars(names)})
