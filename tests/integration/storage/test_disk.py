"""The files of a database: who may read them, that they are still there, that they are whole."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.claims import NOW, examined, submission_of
from tests.conftest import THRESHOLD
from vouchgate.cli.app import run
from vouchgate.gate.signing import open_signer
from vouchgate.settings import Settings
from vouchgate.storage.claims.submit import Decided, Submission
from vouchgate.storage.disk import check
from vouchgate.storage.disk.check import check_file
from vouchgate.storage.errors import StorageError, StoreUnknown
from vouchgate.storage.store import Store

SAVED, MAYBE_LOST = "all that was answered is in gate.db", "what was written last may be lost"


def _claim(number: int) -> Submission:
    return submission_of(examined(f"Gate number {number} is closed."))


@contextmanager
def opened(file: Path) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{file}", threshold=THRESHOLD)
    try:
        yield store
    finally:
        store.close()


def in_a_new_process(file: Path, folder: Path) -> int:
    """How many memories the next start finds, as the files are now: copied, as after a kill."""
    for each in file.parent.glob(f"{file.name}*"):
        shutil.copyfile(each, folder / each.name)
    with closing(sqlite3.connect(folder / file.name)) as connection:
        return int(connection.execute("SELECT count(*) FROM memory").fetchone()[0])


def _end(name: str) -> Callable[[Path], None]:
    return lambda file: Path(f"{file}{name}").unlink()


def _replace(name: str) -> Callable[[Path], None]:
    def act(file: Path) -> None:
        other = file.with_name("other")
        shutil.copyfile(f"{file}{name}", other)
        other.replace(f"{file}{name}")

    return act


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (_end("-wal"), SAVED),
        (_end("-shm"), MAYBE_LOST),  # somebody else may write under other locks by now
        (_replace("-wal"), MAYBE_LOST),
        (_replace(""), MAYBE_LOST),
        (_end(""), MAYBE_LOST),
    ],
    ids=[
        "the log is removed",
        "its index is removed",
        "the log is replaced",
        "the database is replaced",
        "removed",
    ],
)
def test_nothing_is_answered_into_files_that_are_gone(
    act: Callable[[Path], None], sentence: str, tmp_path: Path, migrated_file: Path
) -> None:
    file = shutil.copyfile(migrated_file, tmp_path / "gate.db")
    with opened(file) as store:
        assert isinstance(store.writer.submit(_claim(1)).result(60), Decided)
        store.probe()
        act(file)
        for number in (2, 3):
            with pytest.raises(StorageError, match=sentence):
                store.writer.submit(_claim(number)).result(60)
        for look in (store.probe, lambda: store.read().__enter__()):
            with pytest.raises(StorageError, match=sentence):
                look()
        if sentence == SAVED:
            folder = tmp_path / "later"
            folder.mkdir()
            assert in_a_new_process(file, folder) == 1


def test_what_was_committed_when_the_log_went_is_not_answered_as_kept(
    tmp_path: Path, migrated_file: Path
) -> None:
    file = shutil.copyfile(migrated_file, tmp_path / "gate.db")
    with opened(file) as store:
        assert isinstance(store.writer.submit(_claim(1)).result(60), Decided)
        with pytest.raises(StoreUnknown, match=SAVED):
            store.writer.run((), lambda connection: Path(f"{file}-wal").unlink()).result(60)


def test_files_that_sqlite_makes_anew_are_no_loss(tmp_path: Path, migrated_file: Path) -> None:
    """With the last connection of all processes SQLite takes the log away."""
    file = shutil.copyfile(migrated_file, tmp_path / "gate.db")
    with opened(file) as store:
        before = Path(f"{file}-wal").stat().st_ino
        store.writer.run((), lambda connection: connection.invalidate()).exception(60)
        store._engine.dispose()
        assert not Path(f"{file}-wal").exists()
        assert isinstance(store.writer.submit(_claim(1)).result(60), Decided)
        assert Path(f"{file}-wal").stat().st_ino != before
        store.scrub()
        store.probe()


def test_a_database_beside_the_log_of_another_is_not_served(
    tmp_path: Path, migrated_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = shutil.copyfile(migrated_file, tmp_path / "gate.db")
    with opened(file) as store:
        for number in range(40):
            store.writer.submit(_claim(number)).result(60)
        shutil.copyfile(f"{file}-wal", tmp_path / "kept")
    backup = shutil.copyfile(file, tmp_path / "backup.db")
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute("VACUUM")  # the same rows on other pages
    shutil.copyfile(backup, file)
    shutil.copyfile(tmp_path / "kept", f"{file}-wal")
    before = file.read_bytes(), Path(f"{file}-wal").read_bytes()
    assert run(["serve", "--port", "0", "--database-url", f"sqlite:///{file}"]) == 1
    said = capsys.readouterr().err
    assert "is damaged" in said
    assert "beside gate.db-wal, the log of another database" in said
    assert "vouchgate restore FILE --replace" in said
    assert (file.read_bytes(), Path(f"{file}-wal").read_bytes()) == before


def test_how_much_of_a_database_is_looked_at(
    tmp_path: Path, migrated_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = shutil.copyfile(migrated_file, tmp_path / "gate.db")
    check_file(file)
    check_file(tmp_path / "none")
    with file.open("r+b") as pages:
        pages.seek(4096 * 3)
        pages.write(b"\xff" * 4096)
    with pytest.raises(StorageError, match="is damaged"):
        check_file(file)
    monkeypatch.setattr(check, "SMALL_BYTES", 4096)
    check_file(file)  # a large one that was closed well is not read through at every start
    for how in ("always", "beside a log"):
        if how == "beside a log":
            Path(f"{file}-wal").write_bytes(b"x")
        with pytest.raises(StorageError, match="is damaged"):
            check_file(file, always=how == "always")


def test_what_cannot_be_looked_at_is_not_called_damaged(tmp_path: Path, migrated_file: Path) -> None:
    with pytest.raises(StorageError, match="is a folder"):
        check_file(tmp_path)
    file = shutil.copyfile(migrated_file, tmp_path / "gate.db")
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match=r"cannot be read: database is locked$"):
            check_file(file)


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    before = os.umask(0o022)
    try:
        file = tmp_path / "gate.db"
        with opened(file) as store:
            settings = Settings(database_url=f"sqlite:///{file}")
            signer = open_signer(settings, store, NOW)
            assert signer is not None
            signer.sign(store)
            found = {each.name: mode(each) for each in tmp_path.iterdir()}
        assert found == dict.fromkeys(
            ("gate.db", "gate.db-shm", "gate.db-wal", "gate.db.log-key", "gate.db.log-key.signed"), 0o600
        )
        for old, new in (
            (0o644, 0o600),
            (0o604, 0o600),
            (0o640, 0o640),
        ):  # for a group it was somebody's choice
            file.chmod(old)
            with opened(file) as store, store.read() as connection:
                connection.execute(text("SELECT 1"))
                assert (mode(file), mode(Path(f"{file}-wal"))) == (new, new)
    finally:
        os.umask(before)
