"""Whether a SQLite file is whole, looked at before a service serves it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from vouchgate.storage.disk.files import has_text
from vouchgate.storage.errors import StorageError

# A file of this size is looked through in a tenth of a second; a gigabyte in one, and as long as reading it takes.
# A larger one is only looked through when a log lies beside it: after a crash, and where somebody put a database beside
# the log of another.
SMALL_BYTES = 64 * 1024 * 1024
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def check_file(path: Path, *, always: bool = False) -> None:
    """Runs SQLite's quick_check if the file is small or has a log beside it, or `always`; nothing is written. Raises
    StorageError with what is wrong and what to do."""
    log = Path(f"{path}-wal")
    has_log = has_text(log)
    if not path.exists() or not (always or has_log or path.stat().st_size <= SMALL_BYTES):
        return
    if path.is_dir():
        raise StorageError(f"{path} is a folder; name a file in it")
    found = _quick_check(path)
    if found != "ok":
        log_too = (
            f" It may be that it was put beside {log.name}, the log of another database." if has_log else ""
        )
        raise StorageError(
            f"the database {path} is damaged: {found}.{log_too} Nothing was changed. Put a backup in its place with "
            "`vouchgate restore FILE --replace`, which sets these files aside"
        )


def _quick_check(path: Path) -> str:
    """`ok`, or the first thing that is wrong, on one line. Raises StorageError where that cannot be seen."""
    try:
        # Only reading: whoever closes a database last otherwise writes the log into it, for good.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF not in _DAMAGED:
            raise StorageError(f"the database {path} cannot be read: {error}") from error
        return str(error)
    return " ".join(str(found[0]).split())[:200]


def database_file(url: str) -> Path | None:
    """Where the database of this URL lies; None when that is no file, or no URL."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # whoever opens it says what is wrong with it
        return None
    return Path(parsed.database) if parsed.get_backend_name() == "sqlite" and parsed.database else None
