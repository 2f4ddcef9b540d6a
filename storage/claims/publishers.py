"""What owners say of publishers, each for their own memories: whom they trust and whom they ban, and until when.

Which of it bears on a claim is read when the claim is examined, and kept in the evidence of what follows.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, Table, bindparam, delete, func, not_, or_, select

from vouchgate.ingest.claims.trust import OwnPublishers, PublisherTrust, Trust
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.sql import BulkInsert, PreparedSelect, among, limited_to
from vouchgate.storage.tables.claims import PublisherTrustRow

TABLE: Table = PublisherTrustRow.metadata.tables["publisher_trust"]
_ROWS = BulkInsert(TABLE)
_IN_FORCE = TABLE.c.until > bindparam("now", type_=UtcTime)
_OF = PreparedSelect(
    select(TABLE.c.publisher, TABLE.c.trust)
    .where(TABLE.c.owner_id == bindparam("of_owner"), among(TABLE.c.publisher, "names"), _IN_FORCE)
    .order_by(TABLE.c.publisher)
)
_REMOVE = delete(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.publisher == bindparam("named")
)
_FORGET = delete(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"), or_(TABLE.c.publisher == bindparam("named"), not_(_IN_FORCE))
)
_COUNT = select(func.count()).where(TABLE.c.owner_id == bindparam("of_owner"), _IN_FORCE)


def said_of(connection: Connection, owner_id: str, names: Collection[str], now: datetime) -> OwnPublishers:
    """What an owner says, at this time, of publishers with these names (`ingest.scoring.reputation.publishers_of`)."""
    if not names:
        return OwnPublishers()
    found = _OF.rows(connection, {"of_owner": owner_id, "names": sorted(names), "now": now})
    trusted, banned = ([name for name, said in found if said == trust] for trust in Trust)
    return OwnPublishers(trusted=tuple(trusted), banned=tuple(banned))


def listing(connection: Connection, owners: frozenset[str] | None, now: datetime) -> list[PublisherTrust]:
    """All that these owners (None: all) say at this time, by name."""
    wanted = limited_to(owners, select(TABLE).where(_IN_FORCE), TABLE)
    rows = connection.execute(wanted.order_by(TABLE.c.publisher, TABLE.c.owner_id), {"now": now}).mappings()
    return [PublisherTrust.model_validate(dict(row)) for row in rows]


def count(connection: Connection, owner_id: str, now: datetime) -> int:
    """Of how many publishers an owner says anything at this time."""
    return connection.scalar(_COUNT, {"of_owner": owner_id, "now": now}) or 0


def put(connection: Connection, said: PublisherTrust) -> None:
    """Notes it in place of what its owner said of this publisher before, and forgets what is over. The caller holds the
    owner's lock."""
    connection.execute(_FORGET, {"of_owner": said.owner_id, "named": said.publisher, "now": said.created_at})
    _ROWS.write(connection, [said.model_dump()])


def clear(connection: Connection, owner_id: str, publisher: str) -> bool:
    """Takes it back; whether there was anything. The caller holds the owner's lock."""
    return connection.execute(_REMOVE, {"of_owner": owner_id, "named": publisher}).rowcount > 0
