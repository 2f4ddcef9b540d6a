"""The tree over the log: every entry once and in order, signed as long as it only grows, held against its chains."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import random
import resource
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection as PipeConnection
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from tests.claims import NOW, examined, submission_of
from tests.conftest import THRESHOLD
from tests.running.processes import FORKED
from vouchgate.gate import signing
from vouchgate.gate.signing import LogKeyError, LogSigner, open_signer
from vouchgate.ingest.claims.modes import Mode, ModeSwitch
from vouchgate.ingest.transparency.note import SigningKey, make_signing_key
from vouchgate.ingest.transparency.verifier import (
    NotProven,
    check_promise,
    check_proof,
    open_checkpoint,
)
from vouchgate.settings import Settings
from vouchgate.storage import modes
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.engine import writing
from vouchgate.storage.log import chain, keys, tree, tree_check
from vouchgate.storage.log.tree import TreeMoved
from vouchgate.storage.store import Store
from vouchgate.workers import runner, sequencer
from vouchgate.workers.sequencer import Sequencer, SequencerResult

SOON = timedelta(seconds=2)


def store_claims(store: Store, *words: str, owner_id: str = "ann") -> list[Decided]:
    """Claims that come in one transaction, if they may."""
    sent = [store.writer.submit(submission_of(examined(each, owner_id=owner_id))) for each in words]
    answers = [each.result(120) for each in sent]
    assert all(isinstance(each, Decided) for each in answers)
    return answers  # type: ignore[return-value]


def settings_of(store: Store, tmp_path: Path, **more: str) -> Settings:
    """With a key in a file."""
    return Settings(log_key=str(tmp_path / "key"), **more)  # type: ignore[arg-type]


def turn(store: Store, signer: LogSigner | None, at: object = NOW) -> dict[SequencerResult, int]:
    """One turn of the sequencer."""
    return dict(asyncio.run(Sequencer(store, signer).job.run_once(at)))  # type: ignore[arg-type]


def test_the_database_is_asked_after_something_was_written_and_now_and_then(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_claims(store, "The lamp is lit.")
    job, asked = Sequencer(store, None).job, []

    def due(connection: Connection) -> object:
        asked.append(True)
        return job.next_due(connection)

    watched = replace(job, next_due=due)  # type: ignore[arg-type]
    asyncio.run(watched.run_once(NOW))
    before = len(asked)
    asyncio.run(watched.run_once(NOW))
    asyncio.run(watched.run_once(NOW))
    assert len(asked) == before  # it is known that nothing is left
    monkeypatch.setattr(runner, "ANYWAY_SECONDS", 0.0)
    asyncio.run(watched.run_once(NOW))
    assert len(asked) == before + 1
    monkeypatch.undo()
    store_claims(store, "The lamp is out.")
    asyncio.run(watched.run_once(NOW + timedelta(seconds=5)))
    assert len(asked) > before + 1
    assert problems(store) == []


def problems(store: Store) -> list[str]:
    with store.read() as connection:
        return [*chain.verify(connection), *tree_check.verify(connection)]


def test_entries_become_leaves_with_receipts(store: Store, tmp_path: Path) -> None:
    store_claims(store, "Gate 1 is closed.", "Gate 2 is closed.")
    signer = open_signer(settings_of(store, tmp_path), store, NOW)  # which logs its key
    assert signer is not None
    first = store_claims(store, "Lamp 1 is red.", "Lamp 2 is blue.", "Lamp 3 is green.", owner_id="bob")
    with store.read() as connection:
        assert tree.receipt(connection, str(first[0].answer.decision_id), owners=None) is None
    assert turn(store, signer) == {SequencerResult.ADDED: 1, SequencerResult.SIGNED: 1}
    assert turn(store, signer, NOW + SOON) == {}  # nothing is new
    trust = [signer.keys[0].key]
    for decided in first:
        with store.read() as connection:
            receipt = tree.receipt(connection, str(decided.answer.decision_id), owners=frozenset({"bob"}))
            assert (
                tree.receipt(connection, str(decided.answer.decision_id), owners=frozenset({"eve"})) is None
            )
        assert receipt is not None
        check_proof(receipt.proof.encode(), receipt.leaf, trust)
        leaf = json.loads(receipt.leaf)
        assert leaf["commitment"] == chain.Document(decided.json.encode()).commitment(receipt.salt)
        assert (leaf["policy"], leaf["subject"]) == (decided.answer.policy_digest, decided.answer.decision_id)
        assert b"bob" not in receipt.leaf
        assert decided.commit is not None
        promise = signer.promise(decided.commit, decided.index).model_dump()
        check_promise(promise, trust)
        assert [promise[name] for name in ("owner", "seq", "digest")] == [
            leaf[n] for n in ("owner", "seq", "digest")
        ]
        for name, other in (("seq", 9), ("owner", "x"), ("digest", "0" * 64), ("index", 1 - decided.index)):
            with pytest.raises(NotProven):
                check_promise(promise | {name: other}, trust)
    assert problems(store) == []
    with writing(store._engine) as connection:  # the owner of a leaf stays unknown when the salts are gone
        connection.execute(text("UPDATE log_entry SET salt = NULL"))
        assert [*tree_check.verify(connection)] == []
        connection.rollback()


def test_the_tree_grows_while_an_owner_is_read_only(store: Store) -> None:
    store_claims(store, "Gate 1 is closed.")
    store_claims(store, "Gate 2 is closed.", owner_id="bob")
    halt = ModeSwitch(
        owner_id="ann", agent="", mode=Mode.READ_ONLY, reason="an audit", by="operator", since=NOW
    )
    store.writer.run(["ann"], lambda connection: modes.put(connection, halt), always=True).result(120)
    assert turn(store, None) == {SequencerResult.ADDED: 1}
    with store.read() as connection:
        assert tree.size_of(connection) == 3


def test_two_who_believe_they_hold_the_lease_add_nothing_twice(store: Store) -> None:
    store_claims(store, "Gate 1 is closed.", "Gate 2 is closed.")
    with store.read() as connection:
        batches = [tree.next_batch(connection, most) for most in (1, 5)]
    store.writer.run(["ann"], lambda connection: tree.add(connection, batches[0], NOW)).result(120)
    with pytest.raises(TreeMoved):
        store.writer.run(["ann"], lambda connection: tree.add(connection, batches[1], NOW)).result(120)
    leased = [store.writer.run((), lambda c: tree.lease(c, "a", NOW + SOON, 5)).result(120) for _ in range(2)]
    assert leased == [True, False]
    assert turn(store, None, NOW + 4 * SOON) == {SequencerResult.ADDED: 1}
    assert problems(store) == []
    with store.read() as connection:
        assert tree.size_of(connection) == 2


@pytest.mark.on("sqlite")
def test_a_tree_that_was_not_only_added_to_is_not_signed(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    settings = settings_of(store, tmp_path)
    store_claims(store, *(f"Gate {number} is closed." for number in range(300)))
    signer = open_signer(settings, store, NOW)
    turn(store, signer)
    with sqlite3.connect(database_url.removeprefix("sqlite:///")) as plain:
        plain.execute(f"VACUUM INTO '{tmp_path}/backup.db'")
    store_claims(store, "Lamp 1 is red.")
    turn(store, signer, NOW + SOON)
    restored = Store.open(f"sqlite:///{tmp_path}/backup.db", threshold=THRESHOLD)
    store_claims(restored, "Lamp 2 is blue.", "Lamp 3 is green.", "Lamp 4 is grey.")  # as many, and others
    assert turn(restored, signer, NOW + 2 * SOON)[SequencerResult.REFUSED] == 1
    with pytest.raises(LogKeyError, match=r"not those that were signed|restored"):
        open_signer(settings, restored, NOW)
    keys.rename(restored, "log.example/second", (), actor="operator", now=NOW)
    renamed = open_signer(settings, restored, NOW)
    assert renamed is not None
    assert (renamed.origin, len(renamed.keys)) == ("log.example/second", 1)
    assert SequencerResult.SIGNED in turn(restored, renamed, NOW + 4 * SOON)
    assert problems(restored) == []
    restored.close()
    with writing(store._engine) as connection:
        connection.execute(text("UPDATE log_tile SET hashes = zeroblob(32) WHERE level = 1"))
    watched = Sequencer(store, signer)
    store_claims(store, "Lamp 5 is white.")
    asyncio.run(watched.job.run_once(NOW + 4 * SOON))
    assert "not those that were signed" in watched.problems()[0]


@pytest.mark.on("sqlite")
def test_keys_change_and_none_is_lost_in_silence(store: Store, tmp_path: Path) -> None:
    settings, file = settings_of(store, tmp_path), tmp_path / "key"
    with pytest.raises(LogKeyError, match="cannot be written"):
        open_signer(Settings(log_key=str(tmp_path / "no" / "key")), store, NOW)
    first = open_signer(settings, store, NOW)
    assert first is not None
    assert file.stat().st_mode & 0o777 == 0o600
    keys.add(store, signing.add_key(settings, first.origin).key, actor="operator", now=NOW)
    both = open_signer(settings, store, NOW)
    assert both is not None
    turn(store, both)
    with store.read() as connection:
        last = tree.last_checkpoint(connection, published=True)
    for key in both.keys:
        open_checkpoint(last[1].encode(), [key.key])  # type: ignore[index]
    old = first.keys[0].key.key_id.hex()
    kept = file.read_text()
    file.write_text(kept.split("\n")[1])
    with pytest.raises(LogKeyError, match=old):
        open_signer(settings, store, NOW)
    keys.retire(store, old, actor="operator", now=NOW)
    again = open_signer(settings, store, NOW)
    assert again is not None
    assert [key.key for key in again.keys] == [both.keys[1].key]
    with pytest.raises(ValueError, match="only key"):
        keys.retire(store, again.keys[0].key.key_id.hex(), actor="operator", now=NOW)
    with pytest.raises(LogKeyError, match="cannot change its name"):
        open_signer(settings_of(store, tmp_path, log_origin="other.example"), store, NOW)
    file.write_text("nonsense")
    with pytest.raises(LogKeyError, match="cannot be read"):
        open_signer(settings, store, NOW)
    file.unlink()
    with pytest.raises(LogKeyError, match="put it back"):
        open_signer(settings, store, NOW)
    assert problems(store) == []


def test_starts_at_the_same_moment_have_one_key(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, both, make = settings_of(store, tmp_path), threading.Barrier(2), make_signing_key

    def make_together(origin: str) -> SigningKey:
        both.wait(30)  # neither has found a key
        return make(origin)

    monkeypatch.setattr(signing, "make_signing_key", make_together)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: open_signer(settings, store, NOW), range(2))
    assert first == second
    assert first is not None
    assert list(first.keys) == signing.read_keys(settings)
    assert open_signer(settings, store, NOW) == first
    assert [each.name for each in tmp_path.glob("key*")] == ["key"]


def test_a_key_is_added_on_a_line_of_its_own_or_not_at_all(tmp_path: Path) -> None:
    settings, file = Settings(log_key=str(tmp_path / "key")), tmp_path / "key"
    first = signing.add_key(settings, "log.example")
    file.write_text(file.read_text().strip())  # as an editor may leave it
    second = signing.add_key(settings, "log.example")
    assert signing.read_keys(settings) == [first, second]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(
            resource.RLIMIT_FSIZE, (file.stat().st_size + 20, before[1])
        )  # the disk has no more
        with pytest.raises(LogKeyError, match="cannot be written"):
            signing.add_key(settings, "log.example")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert signing.read_keys(settings) == [first, second]


WAYS = [
    (
        "UPDATE log_leaf SET data = replace(data, 'claim.stored', 'claim.queued') WHERE number = 1",
        "does not say",
    ),
    ("UPDATE log_leaf SET data = '{}' WHERE number = 1", "cannot be read"),
    ("UPDATE log_leaf SET decision_id = NULL WHERE number = 1", "found by its decision"),
    ("DELETE FROM log_leaf WHERE number = 1", "leaf 1 is missing"),
    ("DELETE FROM log_leaf WHERE number = 2", "said to have 3"),
    ("UPDATE owner SET sequenced = 2", "and 2 were added"),
    ("UPDATE owner SET pseudonym = 'x'", "does not say"),
    ("UPDATE tree SET size = 2", "said to have 2"),
    ("UPDATE log_tile SET hashes = '' WHERE level = 0", "does not have the hashes"),
    ("DELETE FROM log_tile", "tiles"),
    ("INSERT INTO log_tile VALUES (0, 7, '')", "2 tiles"),
    ("UPDATE log_checkpoint SET note = replace(note, 'vouchgate/', 'vouchgate/0')", "signed by no key"),
    ("UPDATE log_checkpoint SET note = replace(note, '— ', '')", "Checkpoint"),
    ("UPDATE log_checkpoint SET size = 2", "not of this tree"),
    ("DELETE FROM log_key", "signed by no key"),
    ("UPDATE log_key SET verifier = replace(verifier, '+', '')", "of the log: was altered"),
]
# What only SQLite lets be written.
UNREADABLE = [
    ("UPDATE log_checkpoint SET signed_at = 'garbage'", "Checkpoint of 3 entries: was altered"),
    (
        "UPDATE log_entry SET at = 'garbage' WHERE seq = 1",
        "Tree: was altered: something in it cannot be read",
    ),
    ("UPDATE log_leaf SET data = x'ff'", "Tree: was altered: something in it cannot be read"),
]


def test_no_way_of_altering_the_tree_passes(store: Store, tmp_path: Path) -> None:
    store_claims(store, "Gate 1 is closed.", "Gate 2 is closed.")
    turn(store, open_signer(settings_of(store, tmp_path), store, NOW))
    assert problems(store) == []
    for statement, says in [*WAYS, *(UNREADABLE if store.dialect == "sqlite" else ())]:
        with writing(store._engine) as connection:
            for trigger in (
                ("log_entry_no_update", "log_entry_no_delete") if says.startswith("Tree: was") else ()
            ):
                connection.execute(text(f"DROP TRIGGER {trigger}"))
            connection.execute(text(statement))
            found = [*tree_check.verify(connection)]
            connection.rollback()
        assert any(says in sentence for sentence in found), (statement, found)


def go_on(url: str, key: str, number: int, tell: PipeConnection) -> None:
    """Claims, and turns of the sequencer, for ever; says which checkpoints were published."""
    sequencer.LEASE_SECONDS, sequencer.PAUSE = 0.01, timedelta(0)
    store = Store.open(url, threshold=THRESHOLD)
    job = Sequencer(store, open_signer(Settings(log_key=key), store, datetime.now(UTC))).job
    for count in itertools.count():
        store_claims(store, f"Lamp {number}x{count} hangs there.")
        asyncio.run(job.run_once(datetime.now(UTC)))
        with store.read() as connection:
            last = tree.last_checkpoint(connection, published=True)
        assert last is not None
        tell.send(tuple(last[1].split("\n")[1:3]))  # one write: it is killed before or after it


@pytest.mark.on("sqlite")
def test_killed_at_any_moment_it_loses_and_forks_nothing(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    seen = set[tuple[str, str]]()
    for number in range(6):
        told, tell = FORKED.Pipe(duplex=False)
        process = FORKED.Process(target=go_on, args=(database_url, str(tmp_path / "key"), number, tell))
        process.start()
        tell.close()
        seen.add(told.recv())
        time.sleep(random.uniform(0, 0.1))  # noqa: S311
        process.kill()
        process.join()
        with told, suppress(EOFError):
            while True:
                seen.add(told.recv())
    assert len(seen) > 3
    at = NOW + timedelta(days=3_650)
    turn(store, open_signer(settings_of(store, tmp_path), store, at), at)
    assert problems(store) == []
    with store.read() as connection:
        assert tree.size_of(connection) == connection.scalar(text("SELECT count(*) FROM log_entry"))
        for size, root in seen:
            assert base64.b64encode(tree.root_at(connection, int(size))).decode() == root
