"""The keys of the log, and what they sign: checkpoints of the tree, and promises.

Secrets lie outside of the database, in a file or a variable. What was signed last is noted beside the file as well, so
that a database which was restored from a backup is not signed as if nothing had been.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from vouchgate.ingest.claims.log import Promise
from vouchgate.ingest.transparency.note import (
    SigningKey,
    make_signing_key,
    parse_signing_key,
    write_signing_key,
)
from vouchgate.ingest.transparency.promises import Commit
from vouchgate.ingest.transparency.verifier import Checkpoint, Malformed, parse_checkpoint, parse_note
from vouchgate.settings import PREFIX, Settings, database_to_open, plain
from vouchgate.storage.disk.check import database_file
from vouchgate.storage.disk.files import open_private
from vouchgate.storage.disk.lines import append_line
from vouchgate.storage.errors import StorageError
from vouchgate.storage.log import keys as known_keys
from vouchgate.storage.log import tree
from vouchgate.storage.log.tree import TreeBroken
from vouchgate.storage.store import Store

_LOOK = "Run `vouchgate log verify`, and compare with a backup; nothing is signed meanwhile"
_MOST = 65_536  # bytes of a key file


class LogKeyError(StorageError):
    """The log cannot be signed as it stands; the message says why and what to do."""


def key_file(settings: Settings) -> Path | None:
    """Where the keys are: as set, or beside a SQLite database. None when a setting holds the key itself, or for
    PostgreSQL without one."""
    given = plain(settings.log_key)
    if given is not None:
        return None if given.startswith("PRIVATE+KEY+") else Path(given)
    database = database_file(database_to_open(settings))
    return None if database is None else Path(f"{database}.log-key")


def read_keys(settings: Settings) -> list[SigningKey]:
    """Every key that is set, one a line; none when there is no file. Raises LogKeyError."""
    path, given = key_file(settings), plain(settings.log_key)
    try:
        lines = (given or "") if path is None else path.read_text("utf-8", "replace")[:_MOST]
        return [parse_signing_key(line) for line in lines.split("\n") if line.strip()]
    except FileNotFoundError:
        return []
    except (OSError, Malformed) as error:
        raise LogKeyError(
            f"the key of the log in {path or PREFIX + 'LOG_KEY'} cannot be read: {error}"
        ) from error


def add_key(settings: Settings, origin: str) -> SigningKey:
    """A new key, in the file beside those that are there. Raises LogKeyError."""
    path = key_file(settings)
    if path is None:
        raise LogKeyError(f"set {PREFIX}LOG_KEY to the file that is to hold the key of the log")
    made = make_signing_key(origin)
    try:
        if not path.exists():
            write_signing_key(path, made)
        else:
            append_line(path, made.secret_text())
    except OSError as error:
        raise _unwritable(path, error) from error
    return made


def _make_first(path: Path, origin: str) -> SigningKey:
    """The first key of a log, in a new file. Raises LogKeyError, and FileExistsError where another process made it."""
    made = make_signing_key(origin)
    try:
        write_signing_key(path, made)
    except FileExistsError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from error
    return made


def _unwritable(path: Path, error: OSError) -> LogKeyError:
    return LogKeyError(
        f"the key of the log cannot be written to {path}: {error.strerror}; "
        f"set {PREFIX}LOG_KEY to a file outside of the database"
    )


def open_signer(settings: Settings, store: Store, now: datetime) -> LogSigner | None:
    """What signs the log, with a key that is made at the first start; None where no setting says where that is to be.
    Raises LogKeyError when a key that is in use is not there, or the database is not the one that was signed."""
    # The file last: of a start at the same moment a key is there before the database knows it.
    with store.read() as connection:
        known, origin = known_keys.known(connection), known_keys.origin(connection)
    path = key_file(settings)
    missing = None if path is None or os.path.lexists(path) else path
    given = read_keys(settings)
    retired = {each.id for each in known if each.retired_at is not None}
    given = [key for key in given if key.key.key_id.hex() not in retired]
    if lost := sorted({each.id for each in known} - retired - {key.key.key_id.hex() for key in given}):
        raise LogKeyError(
            f"the key {lost[0]} of the log is not in {path or PREFIX + 'LOG_KEY'}: put it back. If it is lost, end it "
            f"with `vouchgate log keys --add` and `vouchgate log keys --retire {lost[0]}`, which everybody will see"
        )
    if not given and path is None:
        return None
    wanted = (
        origin
        or settings.log_origin
        or (given[0].key.name if given else f"vouchgate/{secrets.token_hex(16)}")
    )
    if settings.log_origin not in (None, wanted) or any(key.key.name != wanted for key in given):
        raise LogKeyError(f"the log is called {wanted}, and a log cannot change its name: look at {PREFIX}LOG_ORIGIN "
                          "and the names in its keys")  # fmt: skip
    if not given:
        try:
            given = [add_key(settings, wanted) if missing is None else _make_first(missing, wanted)]
        except FileExistsError:  # by a start at the same moment
            return open_signer(settings, store, now)
    signer = LogSigner(wanted, tuple(given), path)
    signer.check(store)  # before anything is written: a start that is refused leaves all as it was
    for each in given:
        known_keys.add(store, each.key, actor="service", now=now)
    return signer


def missing_of_signed(settings: Settings, store: Store) -> str | None:
    """What the database lacks of what was signed last, as it is noted beside the key, in a sentence; None where it
    lacks nothing, or where nothing that may be read is noted."""
    path = key_file(settings)
    if path is None or not all(os.access(each, os.R_OK) for each in (path, _state(path))):
        return None
    with store.read() as connection:
        origin = known_keys.origin(connection)
    try:
        LogSigner(origin or "", (), path).check(store)
        noted, kept = _noted(_state(path))
    except LogKeyError as error:
        return str(error)
    with store.read() as connection:
        last = tree.last_checkpoint(connection, published=False)
    if noted.origin != origin or (0 if last is None else last[0]) >= kept:
        return None
    return f"Checkpoints: the one of {kept} entries, or a later one, was in the database, and none is there any more."


@dataclass(frozen=True, slots=True)
class LogSigner:
    """Signs what only added to what was signed before. `file` holds the keys, if a file does; beside
    it is noted what was signed last."""

    origin: str
    keys: tuple[SigningKey, ...]
    file: Path | None

    def promise(self, commit: Commit, index: int) -> Promise:
        """That an entry of a commit will be in the tree."""
        return commit.promise(index, self.origin, self._sign)

    def check(self, store: Store) -> None:
        """That the tree has all that was signed. Raises LogKeyError."""
        with self._alone(), store.read() as connection:
            try:
                self._head(connection)
            except TreeBroken as error:
                raise LogKeyError(f"the tree of the log is broken. {_LOOK}") from error

    def _head(self, connection: Connection) -> Checkpoint:
        """The head of the tree as it stands, if it has all that was signed. Raises LogKeyError and TreeBroken."""
        head = Checkpoint(self.origin, tree.size_of(connection), tree.read_edge(connection).root)
        last = tree.last_checkpoint(connection, published=False)
        signed = [] if last is None else [parse_checkpoint(parse_note(last[1].encode()).text)]
        if self.file is not None and _state(self.file).exists():
            signed.append(_noted(_state(self.file))[0])
        for each in signed:
            if each.origin != self.origin:
                continue
            if each.size > head.size:
                raise LogKeyError(
                    f"the log was signed with {each.size} entries and the database has {head.size}: it was restored "
                    "from a backup, or something removed them. Nothing is signed, as it would be another log under "
                    "the same name: bring back the newer database, or see docs/operations.md for a new name"
                )
            same = head.root if each.size == head.size else tree.root_at(connection, each.size)
            if each.root != same:
                raise LogKeyError(
                    f"the first {each.size} entries of the log are not those that were signed. {_LOOK}"
                )
        return head

    def sign(self, store: Store) -> tuple[int, str]:
        """Size and note of the tree as it stands, noted beside the key before anybody gets it. Raises LogKeyError."""
        with self._alone(), store.read() as connection:
            head = self._head(connection)
            if self.file is not None:
                last = tree.last_checkpoint(connection, published=False)
                _note(_state(self.file), head, 0 if last is None else last[0])
        text = str(head)
        return head.size, f"{text}\n{self._sign(text)}"

    def _sign(self, text: str) -> str:
        return "".join(key.sign_note(text) for key in self.keys)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time, so that an older head is never noted over a newer one."""
        if self.file is None:
            yield
            return
        with self.file.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _state(file: Path) -> Path:
    return file.with_name(file.name + ".signed")


def _note(path: Path, head: Checkpoint, kept: int) -> None:
    """Notes a head that is about to be signed, and the size of the newest checkpoint that the database has by then."""
    made = path.with_name(path.name + ".new")
    try:
        with os.fdopen(open_private(made), "w") as file:
            json.dump({"checkpoint": str(head), "kept": kept}, file)
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    except OSError as error:
        raise LogKeyError(
            f"what was signed last is noted in {path}, which cannot be written: {error.strerror}"
        ) from error


def _noted(path: Path) -> tuple[Checkpoint, int]:
    try:
        read = json.loads(path.read_text())
        return parse_checkpoint(read["checkpoint"]), int(read.get("kept", 0))
    except (ValueError, KeyError, TypeError, Malformed) as error:
        raise LogKeyError(
            f"{path}, which notes what was signed last, cannot be read: put it back from a copy"
        ) from error
