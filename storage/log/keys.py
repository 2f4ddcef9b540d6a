"""Which keys sign or signed the log, and its name. The database has their public halves alone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, Table, bindparam, insert, select, update

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.transparency.verifier import Key, Malformed, is_key_name, parse_key
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

    def work(connection: Connection) -> None:
        if key.key_id.hex() in {each.id for each in known(connection)}:
            return
        if origin(connection) is None:
            connection.execute(insert(_META), {"name": _ORIGIN, "value": key.name})
        _note(connection, key, actor, now)

    store.writer.run([SERVICE_OWNER], work).result()


def rename(store: Store, name: str, kept: Iterable[Key], *, actor: str, now: datetime) -> None:
    """Gives the log another name, as after entries were lost for good: whoever knows it by the old one sees that it
    ends. Its keys end with it, also those `kept` outside that a database from a backup does not know, and the next
    start makes one. Raises ValueError for what is no name, and for one that the log or a key has or had."""
    if not is_key_name(name):
        raise ValueError("The name of a log has 1 to 255 characters, without spaces and plus signs, as in"
                         " gate.example.org/log2.")  # fmt: skip

    def work(connection: Connection) -> None:
        before = known(connection)
        others = [key for key in kept if key.key_id.hex() not in {each.id for each in before}]
        if name in {origin(connection), *(each.key.name for each in before), *(key.name for key in others)}:
            raise ValueError(f"The log is or was called {name}: give it a name that it never had.")
        for key in others:
            _note(connection, key, actor, now)
        for key in [*(each.key for each in before if each.retired_at is None), *others]:
            _end(connection, key, actor, now)
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


def _note(connection: Connection, key: Key, actor: str, now: datetime) -> None:
    key_id, document = key.key_id.hex(), chain.document_of({"key": str(key)})
    connection.execute(insert(TABLE), {"id": key_id, "verifier": str(key), "added_at": now})
    chain.append(connection, SERVICE_OWNER, Action.LOG_KEY_ADDED, key_id, document, by=actor, now=now)


def _end(connection: Connection, key: Key, actor: str, now: datetime) -> None:
    key_id, document = key.key_id.hex(), chain.document_of({"key": str(key)})
    connection.execute(_RETIRE, {"wanted": key_id, "at": now})
    chain.append(connection, SERVICE_OWNER, Action.LOG_KEY_RETIRED, key_id, document, by=actor, now=now)
