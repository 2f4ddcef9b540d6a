"""Opening the database for a command that is not the service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from vouchgate.cli.output import USAGE, Failure
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.language.spelling import did_you_mean
from vouchgate.settings import Settings, database_to_open
from vouchgate.storage.dedup.builds import builds
from vouchgate.storage.disk.check import database_file
from vouchgate.storage.engine import has_tables, migrate, open_engine, reading
from vouchgate.storage.identity import owners
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.store import Store

_MOST_NAMED = 3  # databases beside the one that is not there
_MOST_OWNERS = 10_000  # whose names a mistyped one is compared with


def open_existing(settings: Settings) -> Engine:
    """The database that a gate has made, brought up to date: what only works on one must not make an empty one where a
    name was mistyped. Raises Failure where there is none, and StorageError."""
    url = database_to_open(settings)
    file = database_file(url)
    if file is not None and not file.exists():
        beside = sorted(each.name for each in file.parent.glob("*.db"))[:_MOST_NAMED]
        there = f" (in its folder: {', '.join(beside)})" if beside else ""
        raise _none_yet(f"there is no database at {file}{there}")
    engine = open_engine(url)
    try:
        if not has_tables(engine):
            shown = engine.url.render_as_string(hide_password=True)
            raise _none_yet(f"the database {shown} holds no tables of vouchgate")
        migrate(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def refuse_unknown_owner(connection: Connection, owner: str | None) -> None:
    """Raises Failure for an owner that there is not; None is every owner."""
    if owner == SERVICE_OWNER or (owner is not None and not owners.is_known(connection, owner)):
        meant = did_you_mean(owner, owners.names(connection, "", _MOST_OWNERS))
        raise Failure(f"there is no owner {owner!r}{meant}; vouchgate owners list shows them")


def _none_yet(what: str) -> Failure:
    hint = "give the right one with --database-url or VOUCHGATE_DATABASE_URL"
    return Failure(f"{what}: {hint}; `vouchgate serve` and `vouchgate db upgrade` make one", USAGE)


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """The store, migrated when needed; its dedup index stays as the service built it.

    A command run without the service's policy must not rebuild the index for another threshold, because the
    running service could then find no duplicates. Raises Failure where there is none, StorageError, PolicyError.
    """
    engine = open_existing(settings)
    try:
        with reading(engine) as connection:
            built = builds(connection).built
    finally:
        engine.dispose()
    threshold = load_policy(settings.policy).threshold if built is None else built.threshold
    store = Store.open(settings.database_url, threshold=threshold, read_url=settings.read_url)
    try:
        yield store
    finally:
        store.close()
