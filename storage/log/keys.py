"""Which keys sign or signed the log, and its name. The database has their public halves alone."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, Table, bindparam, insert, select, update

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.transparency.verifier import Key, Malformed, parse_key
from vouchgate.storage.errors import RecordUnreadable
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.log import chain
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import MetaRow
from vouchgate.storage.tables.tree import LogKeyRow

TABLE: Table = LogKeyRow.metadata.tables["log_key"]
_META: Table = MetaRow.metadata.tables["meta"]
_ORIGIN = "log_origin"
_RETIRE = (
    update(TABLE)
    .where(TABLE.c.id == bindparam("wanted"), TABLE.c.retired_at.is_(None))
    .values(retired_at=bindparam("at"))
)


class KnownKey(NamedTuple):
    """A key that the log was signed with, and since and until when."""

    id: str
    key: Key
    added_at: datetime
    retired_at: datetime | None


def known(connection: Connection) -> list[KnownKey]:
    """Every key, oldest first. Raises RecordUnreadable where one was altered."""
    try:
        rows = connection.execute(select(TABLE).order_by(TABLE.c.added_at, TABLE.c.id)).all()
        return [KnownKey(row.id, parse_key(row.verifier), row.added_at, row.retired_at) for row in rows]
    except (Malformed, ValueError, TypeError) as error:
        raise RecordUnreadable(
            f"a key of the log was altered in the database and cannot be read: {error} Compare with a backup;"
            " `vouchgate log verify --data` says which"
        ) from error


def verifiers(connection: Connection) -> list[tuple[str, Key | None]]:
    """Every key by its id, None of one that was altered so that it cannot be read."""
    found: list[tuple[str, Key | None]] = []
    for row in connection.execute(select(TABLE.c.id, TABLE.c.verifier)):
        try:
            found.append((row.id, parse_key(row.verifier)))
        except (Malformed, TypeError):
            found.append((row.id, None))
    return found


def origin(connection: Connection) -> str | None:
    """The name of the log; None as long as it was never signed."""
    return connection.scalar(select(_META.c.value).where(_META.c.name == _ORIGIN))


def add(store: Store, key: Key, *, actor: str, now: datetime) -> None:
    """Notes a key, whose name is that of the log from now on. One that is known changes nothing."""
    row = {"id": key.key_id.hex(), "verifier": str(key), "added_at": now}

    def work(connection: Connection) -> None:
        if row["id"] in {each.id for each in known(connection)}:
            return
        if origin(connection) is None:
            connection.execute(insert(_META), {"name": _ORIGIN, "value": key.name})
        connection.execute(insert(TABLE), row)
        document = chain.document_of({"key": str(key)})
        action = Action.LOG_KEY_ADDED
        chain.append(connection, SERVICE_OWNER, action, str(row["id"]), document, by=actor, now=now)

    store.writer.run([SERVICE_OWNER], work).result()


def rename(store: Store, name: str, *, actor: str, now: datetime) -> None:
    """Gives the log another name, as after entries were lost for good: whoever knows it by the old one sees that it
    ends. Its keys end with it, and the next start makes one."""

    def work(connection: Connection) -> None:
        for each in known(connection):
            if each.retired_at is None:
                _end(connection, each.key, actor, now)
        connection.execute(update(_META).where(_META.c.name == _ORIGIN), {"value": name})

    store.writer.run([SERVICE_OWNER], work).result()


def retire(store: Store, key_id: str, *, actor: str, now: datetime) -> None:
    """Ends a key: it signs nothing any more, and what it signed stays valid. Raises ValueError for one that is not in
    use, and for the last one."""

    def work(connection: Connection) -> None:
        in_use = {each.id: each.key for each in known(connection) if each.retired_at is None}
        if key_id not in in_use:
            raise ValueError(f"No key {key_id[:20]!a} is in use; vouchgate log keys shows them.")
        if len(in_use) == 1:
            raise ValueError("It is the only key: add another one first, with vouchgate log keys --add.")
        _end(connection, in_use[key_id], actor, now)

    store.writer.run([SERVICE_OWNER], work).result()


def _end(connection: Connection, key: Key, actor: str, now: datetime) -> None:
    key_id, document = key.key_id.hex(), chain.document_of({"key": str(key)})
    connection.execute(_RETIRE, {"wanted": key_id, "at": now})
    chain.append(connection, SERVICE_OWNER, Action.LOG_KEY_RETIRED, key_id, document, by=actor, now=now)
