"""`vouchgate backup` and `vouchgate restore`: what was answered comes back, and what is damaged does not."""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
import shutil
import signal
import sqlite3
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tests.acceptance.cli_program import cli
from tests.acceptance.site import without_promises
from tests.claims import NOW, examined, policy, submission_of
from tests.conftest import THRESHOLD, Postgresql
from tests.integration.storage.test_earlier_database import EARLIER, KEPT
from tests.running.invariants import look
from tests.running.load import Caller, GaveUpError, Reply, Where, claim
from tests.running.service import make_token, serve
from vouchgate.cli.app import run
from vouchgate.cli.records.backups import restore_backup
from vouchgate.gate.signing import open_signer
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.review.ending.erasing import BY_OPERATOR, Erased, Erasing
from vouchgate.service import open_service
from vouchgate.settings import Settings
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.disk.backup import unpack
from vouchgate.storage.errors import StorageError
from vouchgate.storage.store import Store
from vouchgate.workers.sequencer import Sequencer

SAID = "Gate number {} is closed."


@pytest.fixture
def two_urls(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, str]]:
    """A database with all tables, and the place of another, where nothing is."""
    if database_url.startswith("sqlite"):
        yield database_url, f"sqlite:///{tmp_path}/restored.db"
        return
    server: Postgresql = request.getfixturevalue("postgresql")
    monkeypatch.setenv("PATH", f"{server._server.bin_path}{os.pathsep}{os.environ['PATH']}")
    name = f"restored_{uuid.uuid4().hex}"
    server.run(f"CREATE DATABASE {name}")
    yield database_url, server.url(name)
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_what_was_answered_before_a_backup_under_load_comes_back(
    two_urls: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, other = two_urls
    file, where, answered = tmp_path / "monday.backup", Where(), list[Reply]()
    sources = frozenset({Source.USER})
    callers = [Caller(where, make_token(url, Role.AGENT, any_owner=True, sources=sources)) for _ in range(2)]

    def go_on(caller: Caller, first: int) -> None:
        try:
            for number in itertools.count(first):
                answered.append(
                    caller.ask("POST", "/v1/claims", claim(number, "ann", "user"), key=f"k{number}")
                )
        except GaveUpError:
            return

    threads = [threading.Thread(target=go_on, args=(caller, 10_000 * n)) for n, caller in enumerate(callers)]
    with serve(url) as running:
        where.set(running.url)
        for thread in threads:
            thread.start()
        while len(answered) < 30:
            threads[0].join(0.01)
        before = len(answered)
        assert run(["backup", str(file), "--database-url", url, *(["--key"] if "sqlite" in url else [])]) == 0
        during = len(answered)
        while len(answered) < during + 10:
            threads[0].join(0.01)
        if url.startswith("sqlite"):
            done = cli("restore", file, "--replace", "--database-url", url, cwd=tmp_path)
            assert "open: stop it first" in done.stderr.decode()
        running.process.kill()
        running.process.wait(60)
        where.set(None)
        where.abandon()
        for thread in threads:
            thread.join(60)
    where.close()
    capsys.readouterr()
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("VOUCHGATE_ERASURES", str(tmp_path / "erasures.jsonl"))
    assert run(["restore", str(file), "--data", "--database-url", other]) == 0
    said = capsys.readouterr().out
    assert "Its digests hold." in said
    assert "The log is unbroken." in said
    assert ": no differences" in said
    with serve(other):
        kept, broken = look(other)
    assert broken == []
    stored = [reply for reply in answered if reply.status == 201]
    assert len(stored) == len(answered) >= before + 10
    for reply in stored[:before]:
        assert kept.decisions[reply.json["decision_id"]].answer == without_promises(reply.body)
    assert len(kept.decisions) < len(answered)  # it is of a moment, and load went on after it


def claims(store: Store, *numbers: int) -> list[Decided]:
    """One stored memory for each number."""
    sent = [store.writer.submit(submission_of(examined(SAID.format(number)))) for number in numbers]
    return [answer for each in sent if isinstance(answer := each.result(60), Decided)]


def sign(settings: Settings, store: Store) -> None:
    """Takes what is new into the tree, and signs it."""
    signer = open_signer(settings, store, NOW)
    for seconds in (0, 2, 4):
        asyncio.run(Sequencer(store, signer).job.run_once(NOW + timedelta(seconds=seconds)))


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> str:
    capsys.readouterr()
    assert run([str(each) for each in arguments]) == status
    said = capsys.readouterr()
    return said.err if status else said.out


def texts(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as connection:
        return {row[0] for row in connection.execute("SELECT content FROM memory WHERE content != ''")}


def test_what_came_after_a_backup_is_erased_again_and_signed_under_another_name(
    tmp_path: Path, migrated_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, backup = shutil.copyfile(migrated_file, tmp_path / "gate.db"), tmp_path / "gate.backup"
    url = f"sqlite:///{file}"
    settings, place = Settings(database_url=url, offline=True), ("--database-url", url)
    store = Store.open(url, threshold=THRESHOLD)
    stored = claims(store, 1, 2)
    sign(settings, store)
    assert "key of the log" not in told(capsys, "backup", backup, *place)
    erasing = Erasing(store, policy(), path=Path(f"{url.removeprefix('sqlite:///')}.erasures.jsonl"))
    gone = [str(stored[0].answer.memory_id)]
    assert isinstance(erasing.erase(["ann"], gone, "GDPR Art. 17", BY_OPERATOR, NOW), Erased)
    claims(store, 3)
    told(capsys, "log", "keys", "--add", *place)  # a key that the backup does not know
    sign(settings, store)
    store.close()
    assert "is there: say --replace" in told(capsys, "restore", backup, *place, status=1)
    assert texts(file) == {SAID.format(2), SAID.format(3)}
    said = told(capsys, "restore", backup, "--replace", *place)
    assert "Erased again: 1." in said
    assert "The service does not start yet: the log was signed with" in said
    assert texts(file) == {SAID.format(2)}
    assert run(["log", "verify", *place]) == 1
    assert "something removed them" in capsys.readouterr().out  # what was signed last is noted beside the key
    (aside,) = tmp_path.glob("gate.db.before-*")
    assert texts(aside) == {SAID.format(2), SAID.format(3)}
    assert f"What was there is {aside} now" in said
    assert not list(tmp_path.glob(".vouchgate-*"))
    with pytest.raises(StorageError, match="restored from a backup"), open_service(settings):
        pass
    with closing(sqlite3.connect(file)) as connection:
        ((known, verifier),) = connection.execute("SELECT count(*), min(verifier) FROM log_key")
    assert known == 1  # a start that is refused has written nothing
    for name in ("Acme log 2", "", str(verifier).partition("+")[0]):
        assert "name" in told(capsys, "log", "keys", "--rename", name, *place, status=2)
    assert "in use" not in told(capsys, "log", "keys", "--rename", "gate.example/log2", *place)
    with open_service(settings) as service:
        assert service.signer is not None
        assert service.signer.origin == "gate.example/log2"
    assert "unbroken" in told(capsys, "log", "verify", *place)


def test_checkpoints_that_were_removed_are_missed_and_one_that_was_never_kept_is_not(
    tmp_path: Path, migrated_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = shutil.copyfile(migrated_file, tmp_path / "gate.db")
    settings, place = (
        Settings(database_url=f"sqlite:///{file}", offline=True),
        ("--database-url", f"sqlite:///{file}"),
    )
    store = Store.open(settings.database_url, threshold=THRESHOLD)
    try:
        for number in (1, 2):
            claims(store, number)
            sign(settings, store)
        claims(store, 3)
        signer = open_signer(settings, store, NOW)
        assert signer is not None
        asyncio.run(Sequencer(store, None).job.run_once(NOW + timedelta(minutes=1)))
        signer.sign(store)  # and its process is gone before it is kept
        assert "unbroken" in told(capsys, "log", "verify", *place)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(
                "DELETE FROM log_checkpoint WHERE size = (SELECT max(size) FROM log_checkpoint)"
            )
        assert run(["log", "verify", *place]) == 1
        assert "none is there any more" in capsys.readouterr().out
        asyncio.run(Sequencer(store, signer).job.run_once(NOW + timedelta(minutes=2)))
        assert "unbroken" in told(capsys, "log", "verify", *place)
    finally:
        store.close()


def test_a_key_and_a_list_come_along_where_there_is_none(
    tmp_path: Path, migrated_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, backup = shutil.copyfile(migrated_file, tmp_path / "gate.db"), tmp_path / "gate.backup"
    url, other = f"sqlite:///{file}", tmp_path / "else" / "gate.db"
    other.parent.mkdir()
    settings, store = Settings(database_url=url, offline=True), Store.open(url, threshold=THRESHOLD)
    (one,) = claims(store, 1)
    sign(settings, store)
    basis, gone = "GDPR Art. 17", [str(one.answer.memory_id)]
    erasing = Erasing(store, policy(), path=Path(f"{file}.erasures.jsonl"))
    assert isinstance(erasing.erase(["ann"], gone, basis, BY_OPERATOR, NOW), Erased)
    store.close()
    said = told(capsys, "backup", backup, "--key", "--database-url", url)
    assert all(part in said for part in ("database (", "erasures.jsonl (", "log-key ("))
    assert "is there already" in told(capsys, "backup", backup, "--database-url", url, status=1)
    place = ("--database-url", f"sqlite:///{other}")
    assert "Nothing that was signed is missing" in told(capsys, "restore", backup, *place)
    assert Path(f"{other}.log-key").read_text() == Path(f"{file}.log-key").read_text()
    assert Path(f"{other}.erasures.jsonl").read_text() == Path(f"{file}.erasures.jsonl").read_text()
    assert {each.stat().st_mode & 0o777 for each in other.parent.iterdir()} == {0o600}
    assert "nothing that was written" not in told(capsys, "log", "verify", "--data", *place)


def test_what_is_ended_or_finds_no_room_leaves_nothing_behind(
    tmp_path: Path, migrated_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup, folder, said = tmp_path / "gate.backup", tmp_path / "to", list[str]()
    file = shutil.copyfile(migrated_file, tmp_path / "a.db")
    told(capsys, "backup", backup, "--database-url", f"sqlite:///{file}")
    folder.mkdir()

    def end(_: Store) -> bool:
        assert list(folder.glob(".vouchgate-*/database"))
        os.kill(os.getpid(), signal.SIGTERM)
        return False

    settings = Settings(database_url=f"sqlite:///{folder}/b.db", offline=True)
    former = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt):
            restore_backup(settings, backup, replace=False, tell=said.append, verify=end, now=NOW)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, former)
    assert not list(folder.iterdir())
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, most[1]))
    try:
        with pytest.raises(StorageError, match="there is no room"):
            unpack(backup, folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)


def test_what_finds_no_room_at_the_very_end_is_not_put_in_place(
    tmp_path: Path, migrated_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup, folder = tmp_path / "gate.backup", tmp_path / "to"
    file = shutil.copyfile(migrated_file, tmp_path / "a.db")
    told(capsys, "backup", backup, "--database-url", f"sqlite:///{file}")
    folder.mkdir()
    most = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(store: Store) -> bool:
        claims(store, *range(50))  # as what is brought up to date, and erased again
        (copy,) = folder.glob(".vouchgate-*/database")
        resource.setrlimit(resource.RLIMIT_FSIZE, (copy.stat().st_size, most[1]))
        return True

    settings = Settings(database_url=f"sqlite:///{folder}/b.db", offline=True)
    try:
        with pytest.raises(StorageError, match="there is no room"):
            restore_backup(settings, backup, replace=False, tell=lambda _: None, verify=fill, now=NOW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert not list(folder.iterdir())


def test_a_restore_is_whole_whoever_comes_between_or_stops_reading(
    tmp_path: Path, migrated_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup, target = tmp_path / "gate.backup", tmp_path / "to" / "b.db"
    file = shutil.copyfile(migrated_file, tmp_path / "a.db")
    told(capsys, "backup", backup, "--database-url", f"sqlite:///{file}")
    target.parent.mkdir()
    settings = Settings(database_url=f"sqlite:///{target}", offline=True)

    def restore(tell: Callable[[str], None], *, replace: bool) -> None:
        restore_backup(settings, backup, replace=replace, tell=tell, verify=lambda _: True, now=NOW)

    def begin(_: str) -> None:
        target.write_text("of a service that began meanwhile")

    with pytest.raises(StorageError, match="say --replace"):
        restore(begin, replace=False)
    assert target.read_text() == "of a service that began meanwhile"

    def stop_reading(said: str) -> None:
        if said.startswith("What was there"):
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        restore(stop_reading, replace=True)
    restored, aside = sorted(target.parent.iterdir())
    assert restored == target
    assert restored.read_bytes().startswith(b"SQLite format 3")
    assert aside.read_text() == "of a service that began meanwhile"


def test_what_is_no_whole_backup_is_refused(
    tmp_path: Path, migrated_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup, folder = tmp_path / "gate.backup", tmp_path / "out"
    told(
        capsys,
        "backup",
        backup,
        "--database-url",
        f"sqlite:///{shutil.copyfile(migrated_file, tmp_path / 'a.db')}",
    )
    whole, other = backup.read_bytes(), tmp_path / "other"
    folder.mkdir()
    manifest = unpack(backup, folder)
    content = (folder / "database").read_bytes()
    with zipfile.ZipFile(backup) as packed:
        start = packed.getinfo("manifest.json").header_offset  # what stands before it is the database's

    def refused(data: bytes) -> str | None:
        """What is said of it; None when it is read as what was written."""
        other.write_bytes(data)
        try:
            assert unpack(other, folder) == manifest
            assert (folder / "database").read_bytes() == content
        except StorageError as error:
            return str(error)
        return None

    # In a compressed stream some changes mean the same: then the same comes out. Nothing else ever does.
    flips = range(100, start, 97)
    assert sum(
        refused(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]) is not None for at in flips
    ) > (len(flips) // 2)
    for at in range(start, len(whole), 5):  # what says where things are: read right, or not at all
        refused(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        assert refused(whole[:length])
    with zipfile.ZipFile(
        other, "w"
    ) as packed:  # all of it well formed, and one letter of the database another
        packed.writestr("manifest.json", manifest.model_dump_json())
        packed.writestr("database", content.replace(b"CREATE TABLE memory", b"CREATE TABLE mEmory"))
    assert "its database is not what was written" in str(refused(other.read_bytes()))
    with zipfile.ZipFile(other, "w") as packed:
        packed.writestr("manifest.json", '{"product": "other backup"}')
    assert "that this version reads" in str(refused(other.read_bytes()))
    assert refused(b"SQLite format 3\x00" + bytes(4096))
    backup.write_bytes(whole[:-100])
    place = ("--database-url", f"sqlite:///{tmp_path}/b.db")
    assert "is damaged, cut off, or no backup" in told(capsys, "restore", backup, *place, status=1)
    assert not (tmp_path / "b.db").exists()
    assert "could not be read" in told(capsys, "restore", tmp_path / "none", *place, status=1)
    assert "could not be copied" in told(capsys, "backup", other.with_name("c"), *place, status=1)
    backup.write_bytes(whole)
    far = ("--database-url", f"sqlite:///{tmp_path}/no/such/b.db")
    assert "could not be restored" in told(capsys, "restore", backup, *far, status=1)


def test_a_backup_of_earlier_tables_is_brought_up_to_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, backup = tmp_path / "earlier.db", tmp_path / "earlier.backup"
    with closing(sqlite3.connect(file)) as made:
        made.executescript(EARLIER.read_text("utf-8"))
    before = file.read_bytes()
    told(capsys, "backup", backup, "--database-url", f"sqlite:///{file}")
    assert file.read_bytes() == before
    restored = tmp_path / "restored.db"
    said = told(capsys, "restore", backup, "--data", "--database-url", f"sqlite:///{restored}")
    assert "are brought up to date" in said
    assert set(KEPT) <= texts(restored)


def test_a_backup_whose_log_is_broken_is_not_put_in_place(
    tmp_path: Path, migrated_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, backup, restored = (
        shutil.copyfile(migrated_file, tmp_path / "a.db"),
        tmp_path / "b",
        tmp_path / "c.db",
    )
    store = Store.open(f"sqlite:///{file}", threshold=THRESHOLD)
    claims(store, 1)
    store.close()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE memory SET content = 'Gate number 1 is open.'")
    place = ("--database-url", f"sqlite:///{restored}")
    told(capsys, "backup", backup, "--database-url", f"sqlite:///{file}")
    assert "does not agree with its own log" in told(capsys, "restore", backup, "--data", *place, status=1)
    assert not restored.exists()
