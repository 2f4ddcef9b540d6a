"""Opening the database for a command that is not the service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.settings import Settings, database_to_open
from vouchgate.storage.dedup.builds import builds
from vouchgate.storage.engine import migrate, open_engine, reading
from vouchgate.storage.store import Store


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """The store, made or migrated when needed; its dedup index stays as the service built it.

    A command run without the service's policy must not rebuild the index for another threshold, because the
    running service could then find no duplicates. Raises StorageError, PolicyError.
    """
    engine = open_engine(database_to_open(settings))
    try:
        migrate(engine)
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
