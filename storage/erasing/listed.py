"""The list of erasures that is kept beside backups: one JSON line each, on disk before the erasure is, so that whoever
restores an older database erases again what it brings back. It has ids, and no word of what was erased."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy import Connection, select

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.storage.claims.decisions import TABLE as DECISION
from vouchgate.storage.claims.memories import TABLE as MEMORY
from vouchgate.storage.claims.records import TABLE as RECORD
from vouchgate.storage.disk.lines import append_line
from vouchgate.storage.erasing import tombstones
from vouchgate.storage.errors import StorageError
from vouchgate.storage.queue.pending import TABLE as PENDING
from vouchgate.storage.sql import among

_TEXTS = ((MEMORY, "content"), (PENDING, "content"), (DECISION, "answer"), (RECORD, "text"))


class Listed(Frozen):
    """One erasure."""

    erasure_id: str
    owner_id: str
    ids: tuple[str, ...]
    basis: str
    by: str
    at: datetime


def add(path: Path, one: Listed) -> None:
    """Adds a line, whole and on disk when this returns, or not at all. Raises StorageError."""
    try:
        append_line(path, one.model_dump_json())
    except OSError as error:
        raise StorageError(
            f"the list of erasures {path} cannot be written, so nothing is erased: {error}"
        ) from error


def read(path: Path) -> list[Listed]:
    """Every line; none of a file that is not there. Raises StorageError for one that cannot be read."""
    try:
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"the list of erasures {path} cannot be read: {error}") from error
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(Listed.model_validate_json(line))
        except ValidationError as error:
            raise StorageError(
                f"the list of erasures {path}, line {number}, cannot be read; mend it, or take it out if it is torn"
            ) from error
    return found


def missing(connection: Connection, listed: Iterable[Listed]) -> list[Listed]:
    """Those of which the database still has a text."""
    found = []
    for owner_id, of_owner in groupby(
        sorted(listed, key=attrgetter("owner_id", "at")), key=attrgetter("owner_id")
    ):
        every = list(of_owner)
        asked = {"ids": sorted({each for one in every for each in one.ids})}
        there: set[str] = set()
        for table, text in _TEXTS:
            holds = table.c.owner_id == owner_id, among(table.c.id, "ids"), table.c[text] != ""
            there |= set(connection.scalars(select(table.c.id).where(*holds), asked))
        there -= tombstones.known(connection, owner_id, there)
        found += [one for one in every if not there.isdisjoint(one.ids)]
    return found
