"""Backing up a gate and bringing it back: the database, and what belongs to it that lies beside it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from vouchgate.cli.database import open_store
from vouchgate.cli.output import ended_as_by_hand
from vouchgate.gate.signing import LogKeyError, LogSigner, key_file
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.review.ending.erasing import Erasing
from vouchgate.review.vouching.loading import load_rules
from vouchgate.settings import Settings, database_to_open, erasures_file
from vouchgate.storage.disk.backup import (
    DATABASE,
    ERASURES,
    LOG_KEY,
    Manifest,
    back_up,
    fill_postgresql,
    set_aside,
    sqlite_url,
    unpack,
)
from vouchgate.storage.disk.check import check_file, database_file
from vouchgate.storage.disk.files import has_text, open_private
from vouchgate.storage.engine import needs_migration, open_engine
from vouchgate.storage.erasing import listed
from vouchgate.storage.errors import StorageError
from vouchgate.storage.log import keys, tree
from vouchgate.storage.store import Store

Tell = Callable[[str], None]
Verify = Callable[[Store], bool]  # tells what it finds; whether all is well


def make_backup(settings: Settings, target: Path, *, with_key: bool, now: datetime) -> Manifest:
    """Writes a backup to `target`; with the keys that sign the log only if asked. Raises StorageError."""
    beside = {}
    erasures, key = erasures_file(settings), key_file(settings)
    if erasures is not None and erasures.exists():
        beside[ERASURES] = erasures
    if with_key:
        if key is None or not key.exists():
            raise StorageError("there is no file with the key of the log here")
        beside[LOG_KEY] = key
    with ended_as_by_hand():
        return back_up(database_to_open(settings), target, beside, version=version("vouchgate"), now=now)


def restore_backup(
    settings: Settings, file: Path, *, replace: bool, tell: Tell, verify: Verify, now: datetime
) -> None:
    """Brings a backup to where the settings say the database is: whole and verified, or, with SQLite, not at all. Tells
    what it sees, and what the log needs before it is signed again. Raises StorageError."""
    database = database_file(database_to_open(settings))
    if not replace:
        _refuse_to_replace(database)
    aside: Path | None = None
    try:
        beside = tempfile.TemporaryDirectory(prefix=".vouchgate-", dir=database and database.parent)
        with ended_as_by_hand(), beside as folder:
            manifest = unpack(file, Path(folder))
            restoring = _Restoring(settings, Path(folder), manifest, tell, verify, now)
            tell(
                f"{file}: of {manifest.made_at:%Y-%m-%d %H:%M} UTC, vouchgate {manifest.version}. Its digests hold."
            )
            if manifest.kind != ("postgresql" if database is None else "sqlite"):
                raise StorageError(f"it is of a {manifest.kind} database: name one with --database-url")
            copy = Path(folder) / DATABASE
            if database is None:
                fill_postgresql(settings.database_url, copy)
                restoring.look(settings)
            else:
                check_file(copy, always=True)
                restoring.look(settings.model_copy(update={"database_url": sqlite_url(copy)}))
                if has_text(Path(f"{copy}-wal")):  # SQLite keeps it where it could not write all of it in
                    raise StorageError(f"there is no room for what is in {file} in {database.parent}")
                if not replace:  # a service may have made one meanwhile
                    _refuse_to_replace(database)
                aside = set_aside(database, now)
                copy.rename(database)  # at once: nobody who reads what is told can come between
            restoring.keep_what_is_beside()
    except BrokenPipeError:  # nobody reads any more what is told
        raise
    except OSError as error:
        raise StorageError(f"it could not be restored: {error}") from error
    if aside is not None:
        tell(f"What was there is {aside} now; delete it when you need it no more.")
    tell(f"Restored to {database or 'the database'}.")
    _tell_of_log(settings, tell)


def _refuse_to_replace(database: Path | None) -> None:
    """Raises StorageError where a SQLite database, or a link, is already."""
    if database is not None and (database.exists() or database.is_symlink()):
        raise StorageError(
            f"{database} is there: say --replace, which gives it another name, or name another"
        )


@dataclass(frozen=True, slots=True)
class _Restoring:
    """`settings` of the place it comes to; the parts of the backup are in `folder`."""

    settings: Settings
    folder: Path
    manifest: Manifest
    tell: Tell
    verify: Verify
    now: datetime

    def look(self, theirs: Settings) -> None:
        """Brings the database that `theirs` name up to date, erases again what either list of erasures names, and holds
        it against its log. Raises StorageError."""
        engine = open_engine(theirs.database_url)
        try:
            if needs_migration(engine):
                self.tell(f"Its tables, of revision {self.manifest.revision}, are brought up to date.")
        finally:
            engine.dispose()
        live, head = erasures_file(self.settings), self.manifest.log
        with open_store(theirs) as store:
            if head is not None:
                with store.read() as connection:
                    root = tree.root_at(connection, head.size).hex()
                if root != head.root:
                    raise StorageError("its log is not the one that its manifest tells of; do not use it")
                self.tell(
                    f"The log's tree has {head.size:,} entries and the root {root}, as its manifest says."
                )
            policy, rules = load_policy(self.settings.policy), load_rules(self.settings.owner_rules)
            lists = [self.folder / ERASURES, *([] if live is None else [live])]
            erasing, again, waiting = Erasing(store, policy, rules), 0, dict[str, None]()
            for path in lists:
                again += erasing.again(self.now, path)
                waiting |= dict.fromkeys(erasing.problems())
            if again:
                self.tell(f"Erased again: {again}.")
            for problem in waiting:
                self.tell(problem)
            if not self.verify(store):
                raise StorageError("it does not agree with its own log; do not use it")

    def keep_what_is_beside(self) -> None:
        """Adds to the list of erasures what it lacks; puts the keys of the log where they belong, if the backup has any
        and nothing is there. Raises StorageError and OSError."""
        if (live := erasures_file(self.settings)) is not None:
            known = {one.erasure_id for one in listed.read(live)}
            for one in listed.read(self.folder / ERASURES):
                if one.erasure_id not in known:
                    listed.add(live, one)
        path, kept = key_file(self.settings), self.folder / LOG_KEY
        if path is None or not kept.exists():
            return
        if path.exists():
            self.tell(f"The key of the log in {path} was left as it is.")
            return
        with os.fdopen(open_private(path), "wb") as file:
            file.write(kept.read_bytes())
        self.tell(f"The key of the log is in {path}.")


def _tell_of_log(settings: Settings, tell: Tell) -> None:
    """What the next start would say of the log's key, and of what was signed since the backup."""
    path = key_file(settings)
    with open_store(settings) as store:
        with store.read() as connection:
            origin = keys.origin(connection)
        if origin is None:
            return
        if path is None or not path.exists():
            where = "" if path is None else f", at {path}"
            tell(
                f"The log is called {origin}; its key is not here: put it back before the service starts{where}."
            )
            return
        try:
            LogSigner(origin, (), path).check(store)
        except LogKeyError as error:
            tell(
                f"The service does not start yet: {error}.\nTo go on from here: vouchgate log keys --rename NAME"
            )
        else:
            tell("Nothing that was signed is missing: the log goes on under its name.")
