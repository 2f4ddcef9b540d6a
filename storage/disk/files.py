"""The files of a SQLite database: private from their creation on, and still those that this process has open.

SQLite goes on writing into a write-ahead log that was removed or replaced, and all that was committed since is gone
with the process. The path is therefore looked at before every transaction, and after every commit before anybody is
told. A file of SQLite's is never opened here: closing it would end the locks that SQLite holds on it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from threading import Lock

from vouchgate.storage.errors import StorageError

BESIDE = ("-wal", "-shm")
_PRIVATE = 0o600
_EVERYBODY = 0o007
_Files = tuple[tuple[int, int] | None, ...]  # device and inode of the database, its log, and the log's index


def open_private(path: Path) -> int:
    """A descriptor of an empty file that only its owner may read, to write to. Raises OSError."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _PRIVATE)


def tighten(*paths: Path) -> None:
    """Takes files that everybody may read from them, as nobody meant that: an ordinary umask made them so. A mode for a
    group was somebody's choice, and stays. Raises OSError."""
    for each in paths:
        if each.exists() and (found := each.stat()).st_mode & _EVERYBODY and found.st_uid == os.geteuid():
            each.chmod(_PRIVATE)


def make_private(path: Path) -> None:
    """Creates the database's file so that only its owner may read it, and tightens it with what lies beside it when it
    is there. SQLite gives what it puts beside it the same mode. Raises OSError."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE))
    tighten(path, *(Path(f"{path}{end}") for end in BESIDE))


class FileWatch:
    """Which files the connections of an engine have open. Safe to share between threads."""

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)  # SQLite's own files lie beside what a link points at
        self._lock = Lock()
        self._open = 0  # connections
        self._seen: _Files | None = None
        self._lost: str | None = None
        self._saved = False

    def opened(self) -> None:
        """Notes a new connection, which has read, and with it the files. While none is open, SQLite may have taken the
        log away and made another; what the database's own name leads to never changes. Raises StorageError."""
        with self._lock:
            self._open += 1
            if self._open == 1 and (self._seen is None or self._seen[0] == _identity(self._path)):
                self._seen = self._now()
        self.look()

    def closed(self) -> None:
        """Notes that a connection was closed."""
        with self._lock:
            self._open -= 1

    def look(self, connection: sqlite3.Connection | None = None) -> None:
        """That the files are those that were opened. Raises StorageError from then on when one is not; what lies only
        in a log that was removed is first written into the database through `connection`, which has it open."""
        if self._lost is None and not (self._open and self._now() != self._seen):
            return
        with self._lock:
            now = self._now()
            if self._lost is None and not (self._open and now != self._seen):
                return  # the last connection was closed meanwhile, or the first one opened
            if self._lost is None or not self._saved:
                self._lost = self._sentence(now, connection)
        raise StorageError(self._lost)

    def _now(self) -> _Files:
        return tuple(_identity(self._path + end) for end in ("", *BESIDE))

    def _sentence(self, now: _Files, connection: sqlite3.Connection | None) -> str:
        seen, name = self._seen or now, Path(self._path).name
        ends = [end for end, old, new in zip(("", *BESIDE), seen, now, strict=True) if old != new]
        said = f"{' and '.join(name + end for end in ends)} was removed or replaced under the running service"
        # Nobody has begun another log, so this one may still be brought home.
        alone = "" not in ends and not has_text(Path(f"{self._path}-wal"))
        self._saved = alone and connection is not None and _checkpoint(connection)
        if self._saved:
            return f"{said}; all that was answered is in {name} by now: restart every process that uses it"
        return (
            f"{said}, and what was written last may be lost: stop every process that uses the database, then put "
            "a backup back with `vouchgate restore`"
        )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  (before every transaction: a Path is three times as slow)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def has_text(path: Path) -> bool:
    """Whether there is a file, and something in it."""
    return path.exists() and path.stat().st_size > 0


def _checkpoint(connection: sqlite3.Connection) -> bool:
    """Whether the whole log that the connection has open was written into the database; it waits for nobody."""
    try:
        busy, frames, written = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error:
        return False
    return not busy and frames == written
