"""A whole database in one file, copied while it is used, that shows when it is not what was written.

The file is a zip of the copy, of what belongs to it, and of a manifest that has the digest of each.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import lzma
import os
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Literal

from pydantic import ValidationError
from sqlalchemy import URL, Connection, func, make_url, select, text
from sqlalchemy.exc import DBAPIError

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.language.validation import plain_message
from vouchgate.storage.disk.check import check_file, database_file
from vouchgate.storage.disk.files import BESIDE, open_private
from vouchgate.storage.engine import needs_migration, open_engine, reading
from vouchgate.storage.errors import StorageError
from vouchgate.storage.log import tree

DATABASE, ERASURES, LOG_KEY = "database", "erasures.jsonl", "log-key"  # the names of the parts
_MANIFEST = "manifest.json"
_MOST_MANIFEST = 65_536  # bytes
# What reading a zip raises that is none, or that something was changed in.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk, what one may have of it, a file
_NO_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    KeyError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
_CHUNK = 2**20  # bytes that are copied at a time
_LOCK_PAGE = (
    0x40000000  # where SQLite's locks begin, of which 510 bytes from the third on are those of who reads
)


class Part(Frozen):
    """A file of a backup; the digest is SHA-256 in hexadecimal."""

    bytes: int
    sha256: str


class LogHead(Frozen):
    """The log's tree in a database: how many entries it has, and its root in hexadecimal."""

    size: int
    root: str


class Manifest(Frozen):
    """What a backup is. `revision` is of the tables, `log` None where these are older than the program."""

    product: Literal["vouchgate backup"] = "vouchgate backup"
    form: Literal[1] = 1
    version: str
    made_at: datetime
    kind: Literal["sqlite", "postgresql"]
    revision: str
    log: LogHead | None
    parts: dict[str, Part]


def head_of(connection: Connection) -> LogHead:
    """Of the tree as it stands."""
    return LogHead(size=tree.size_of(connection), root=tree.read_edge(connection).root.hex())


def back_up(url: str, target: Path, beside: Mapping[str, Path], *, version: str, now: datetime) -> Manifest:
    """Writes `target` whole or not at all, readable for its owner alone. `beside` are the other parts, by name. Needs
    the room of the database twice. Raises StorageError."""
    with _room_beside(target) as folder:
        copy = folder / DATABASE
        if (file := database_file(url)) is not None:
            _copy_sqlite(file, copy)
        revision, head = _described(sqlite_url(copy)) if file is not None else _described(url, copy)
        made = folder / "backup"
        with os.fdopen(open_private(made), "wb") as out:
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
                parts = {name: _pack(packed, name, path) for name, path in {DATABASE: copy, **beside}.items()}
                manifest = Manifest(
                    version=version,
                    made_at=now,
                    kind="postgresql" if file is None else "sqlite",
                    revision=revision,
                    log=head,
                    parts=parts,
                )
                packed.writestr(_MANIFEST, manifest.model_dump_json(indent=1))
            out.flush()
            os.fsync(out.fileno())
        made.rename(target)
    return manifest


def sqlite_url(path: Path) -> str:
    """That of a file, whatever its name."""
    return URL.create("sqlite", database=str(path)).render_as_string()


def _described(url: str, dump: Path | None = None) -> tuple[str, LogHead | None]:
    """The revision of the tables and the head of the log; of one state of the database with what goes to `dump`."""
    engine = open_engine(url)
    try:
        old = needs_migration(engine)
        with reading(engine) as connection:
            revision = str(connection.scalar(text("SELECT version_num FROM alembic_version")))
            head = None if old else head_of(connection)
            if dump is not None:
                snapshot = connection.scalar(select(func.pg_export_snapshot()))
                _run_postgresql(url, "pg_dump", "--format=custom", f"--snapshot={snapshot}", f"--file={dump}")
    except DBAPIError as error:
        raise StorageError(f"it is no database of vouchgate: {error.orig}") from error
    finally:
        engine.dispose()
    return revision, head


def _copy_sqlite(path: Path, copy: Path) -> None:
    """One state of the database in one step, so that nobody who writes has it begin anew, and nobody waits for it."""
    os.close(open_private(copy))
    try:
        source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        with closing(source), closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    except sqlite3.Error as error:
        raise StorageError(f"the database {path} could not be copied: {error}") from error
    check_file(copy, always=True)


def _pack(packed: zipfile.ZipFile, name: str, path: Path) -> Part:
    with path.open("rb") as file, packed.open(name, "w", force_zip64=True) as entry:
        return _copy(file, entry)


def _copy(source: IO[bytes], target: IO[bytes]) -> Part:
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
        target.write(chunk)
    return Part(bytes=size, sha256=digest.hexdigest())


@contextmanager
def _room_beside(target: Path) -> Iterator[Path]:
    """A folder on the same file system, which is taken away again. Raises StorageError where something is already, and
    when it cannot be written."""
    if target.exists() or target.is_symlink():
        raise StorageError(f"{target} is there already; name a file that is not")
    try:
        folder = Path(tempfile.mkdtemp(prefix=".vouchgate-", dir=target.parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
    except OSError as error:
        raise StorageError(f"{target} could not be written: {error}") from error


def unpack(file: Path, folder: Path) -> Manifest:
    """Every part of a backup as a file in `folder`, once its digest was found right. Raises StorageError for one that
    is damaged, cut off, or not of ours."""
    try:
        with zipfile.ZipFile(file) as packed:
            if _MANIFEST not in packed.namelist() or packed.getinfo(_MANIFEST).file_size > _MOST_MANIFEST:
                raise StorageError(f"{file} is no backup that `vouchgate backup` made")
            manifest = Manifest.model_validate_json(packed.read(_MANIFEST))
            for name, part in manifest.parts.items():
                if name not in (DATABASE, ERASURES, LOG_KEY) or packed.getinfo(name).file_size != part.bytes:
                    raise StorageError(f"{file} is damaged: its {name[:40]!a} is not what was written")
                with packed.open(name) as entry, os.fdopen(open_private(folder / name), "wb") as target:
                    if _copy(entry, target) != part:
                        raise StorageError(f"{file} is damaged: its {name} is not what was written")
    except ValidationError as error:
        raise StorageError(
            f"{file} is no backup that this version reads: {plain_message(error.errors()[0])}"
        ) from error
    except _NO_ZIP as error:
        raise StorageError(f"{file} is damaged, cut off, or no backup: {error}") from error
    except OSError as error:
        what = (
            f"there is no room for {file} in {folder}"
            if error.errno in _FULL
            else f"{file} could not be read"
        )
        raise StorageError(f"{what}: {error}") from error
    if DATABASE not in manifest.parts:
        raise StorageError(f"{file} is damaged: it has no database")
    return manifest


def set_aside(database: Path, now: datetime) -> Path | None:
    """Gives a SQLite database, with what lies beside it, another name; None when there is none. Raises StorageError
    while some process has it open."""
    if not database.exists():
        for end in BESIDE:  # of one that is gone; SQLite would lay it over what comes
            if (left := Path(f"{database}{end}")).exists():
                left.rename(f"{database}.before-{now:%Y%m%dT%H%M%S}{end}")
        return None
    with database.open("r+b") as file:
        try:  # who has a database open holds this, also while it does nothing
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, _LOCK_PAGE + 2)
        except OSError as error:
            raise StorageError(f"some process has {database} open: stop it first") from error
        aside = Path(f"{database}.before-{now:%Y%m%dT%H%M%S}")
        for end in (*BESIDE, ""):  # the database last: it is never there without its log
            if (old := Path(f"{database}{end}")).exists():
                old.rename(f"{aside}{end}")
    return aside


def fill_postgresql(url: str, dump: Path) -> None:
    """Brings a dump into an empty database, in one transaction. Raises StorageError."""
    engine = open_engine(url)
    try:
        with reading(engine) as connection:
            there = connection.scalar(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"))
    finally:
        engine.dispose()
    if there:
        raise StorageError("the database has tables: make an empty one with `createdb`, and name that")
    _run_postgresql(url, "pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", str(dump))


def _run_postgresql(url: str, program: str, *arguments: str) -> None:
    """One of PostgreSQL's own programs. The password goes where other users of the machine do not see it."""
    parsed = make_url(url)
    plain = parsed.set(drivername="postgresql", password=None).render_as_string()
    environment = {**os.environ, **({"PGPASSWORD": str(parsed.password)} if parsed.password else {})}
    try:
        subprocess.run(
            [program, f"--dbname={plain}", *arguments], env=environment, check=True, capture_output=True
        )
    except FileNotFoundError as error:
        raise StorageError(
            f"{program} was not found: install PostgreSQL's programs of the server's version here, or run this where "
            "they are"
        ) from error
    except subprocess.CalledProcessError as error:
        raise StorageError(
            f"{program} failed: {error.stderr.decode(errors='replace').strip()[:500]}"
        ) from error
