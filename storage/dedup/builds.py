"""Which dedup indexes there are: the one in use, and one that is being built beside it (`storage.dedup.reindex`).

Table `meta` says it. An index is good for one threshold and one version of the keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, select, text

from vouchgate.ingest.dedup.signature import VERSION
from vouchgate.storage.errors import StorageError
from vouchgate.storage.sql import PreparedSelect
from vouchgate.storage.tables.claims import MetaRow

META: Table = MetaRow.metadata.tables["meta"]
BUILT = "dedup_index"  # the row of `meta` for the index in use
NEXT = "dedup_index_next"  # the row for one that is being built; empty when none is
OLD = "dedup_index_old"  # the row for one that is being taken out; empty when none is

_BUILDS = select(META.c.name, META.c.value).where(META.c.name.in_([BUILT, NEXT]))
_HOLD = PreparedSelect(_BUILDS.with_for_update(read=True))
_LOCK_TABLE = text("LOCK TABLE meta IN EXCLUSIVE MODE")


class Build(NamedTuple):
    """What an index was built with. The generation tells its rows from those of another one."""

    threshold: Fraction
    generation: int

    def __str__(self) -> str:
        return f"{VERSION}:{self.threshold}:{self.generation}"


class Builds(NamedTuple):
    """The index in use, and the one that is being built. `built` is None when its keys are of another
    version of the program, or there is none yet."""

    built: Build | None
    next: Build | None

    def live(self) -> list[Build]:
        """Every index that a writer keeps up to date."""
        return [build for build in self if build is not None]


@lru_cache(maxsize=16)
def build_of(value: str | None) -> Build | None:
    """The build that a row of `meta` names; what follows a space is for the job that builds it."""
    version, threshold, generation = ((value or "").split(" ")[0] + "::").split(":")[:3]
    return Build(Fraction(threshold), int(generation)) if threshold and version == str(VERSION) else None


def builds(connection: Connection) -> Builds:
    """The indexes there are."""
    return _builds(tuple(row) for row in connection.execute(_BUILDS))


def hold(connection: Connection) -> Builds:
    """As `builds`, and keeps them as they are until this write transaction ends. Taken first, before the
    owners' locks."""
    return _builds(_HOLD.rows(connection, {}))


def hold_alone(connection: Connection) -> None:
    """Keeps every other writer out until this write transaction ends; readers go on.

    A lock on the table, for which PostgreSQL lets its turn come. On a row it would not: those who share the
    row's lock may be joined by others for ever.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK_TABLE)


def _builds(rows: Iterable[tuple[Any, ...]]) -> Builds:
    values: dict[str, str] = dict(rows)
    return Builds(build_of(values.get(BUILT)), build_of(values.get(NEXT)))


def in_use(connection: Connection) -> tuple[Build, Build | None]:
    """As `hold`, for a writer that cannot do without. Raises StorageError when no index is of this version."""
    found = hold(connection)
    if found.built is None:
        raise StorageError(
            "another version of vouchgate has rebuilt the dedup index; restart this one with that version"
        )
    return found.built, found.next
