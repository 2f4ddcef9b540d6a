"""The gate's side: a checkpoint is published once enough witnesses cosigned it, and mirrored; and whoever kept one
finds a log that was put back, rewritten or split."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import Connection

from tests.conftest import THRESHOLD
from tests.web import Answer, Asked, WebServer, web_server
from vouchgate.gate.signing import LogSigner
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.transparency.note import signing_key
from vouchgate.ingest.transparency.verifier import COSIGNATURE, Checkpoint, main, open_checkpoint
from vouchgate.server.witness import Witness
from vouchgate.service import open_service
from vouchgate.settings import Settings, SettingsError, load_settings
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.log import chain, tree
from vouchgate.storage.store import Store
from vouchgate.workers.log_mirror import LogMirror, MirrorError
from vouchgate.workers.sequencer import Sequencer
from vouchgate.workers.witnesses import WitnessAt, Witnesses, WitnessResult

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = signing_key("gate.example/log", b"L" * 32)
SIGNER = LogSigner("gate.example/log", (KEY,), None)


class Gate:
    """The log of a store, and the clock of whoever works on it."""

    def __init__(self, store: Store, *witnesses: WitnessAt, needed: int = 0, now: datetime = NOW) -> None:
        self.store, self.now = store, now
        outbound = Outbound(allow_networks=[ip_network("127.0.0.0/8")], per_host=8, spacing_seconds=0)
        self.sequencer = Sequencer(store, SIGNER, publish=not witnesses)
        self.witnesses = Witnesses(store, outbound, witnesses, needed, clock=lambda: self.now)

    def grow(self, count: int, what: str = "x") -> dict[WitnessResult, int]:
        """So many more entries, in the tree and shown to the witnesses, a minute later."""

        def add(connection: Connection) -> None:
            for number in range(count):
                about = chain.document_of({what: number})
                chain.append(
                    connection,
                    SERVICE_OWNER,
                    Action.LOG_KEY_ADDED,
                    "k",
                    about,
                    by="me",
                    now=self.now,
                )

        self.store.writer.run([SERVICE_OWNER], add).result(60)
        self.now += timedelta(minutes=1)
        asyncio.run(self.sequencer.job.run_once(self.now))
        return self.show()

    def show(self) -> dict[WitnessResult, int]:
        self.now += timedelta(seconds=20)
        return dict(asyncio.run(self.witnesses.job.run_once(self.now)))

    def published(self) -> tuple[Checkpoint, dict[str, int]] | None:
        """The newest published checkpoint, and who cosigned it."""
        with self.store.read() as connection:
            last = tree.last_checkpoint(connection, published=True)
        keys = [each.key for each in self.witnesses._witnesses]
        return None if last is None else open_checkpoint(last[1].encode(), [KEY.key], keys)


@contextmanager
def serving(folder: Path, name: str) -> Iterator[tuple[WebServer, Witness, WitnessAt]]:
    """A witness of its own, at an address of its own."""
    witness = Witness(folder, [KEY.key], name)

    def answer(asked: Asked) -> Answer:
        made = witness.add_checkpoint(asked.body)
        return Answer(bytes(made.body), made.status_code)

    with closing(witness), web_server({"/add-checkpoint": answer}) as site:
        yield site, witness, WitnessAt(site.url, witness.key)


def test_a_checkpoint_is_published_once_enough_cosigned(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as opened:
        (site, first, one), (_, _, two), (down, _, three) = (
            opened.enter_context(serving(tmp_path / name, f"{name}.example")) for name in ("a", "b", "c")
        )
        answers = dict(down.routes)
        down.routes.clear()
        gate = Gate(store, one, two, three, needed=2)
        assert gate.grow(3) == {WitnessResult.PUBLISHED: 1} and gate.show() == {}
        checkpoint, seen = gate.published() or (None, {})
        assert checkpoint is not None and (checkpoint.size, set(seen)) == (3, {"a.example", "b.example"})
        assert caplog.text.count("HTTP status 404") == 1
        # Another process, which does not know what they saw.
        assert Gate(store, one, two, three, needed=2, now=gate.now).grow(300) == {WitnessResult.PUBLISHED: 1}
        assert site.asked[-2].body.startswith(b"old 0\n") and site.asked[-1].body.startswith(b"old 3\n")
        # Too few: nothing is published, what is written goes on, and after a minute readyz tells.
        strict = Gate(store, one, two, three, needed=3, now=gate.now + timedelta(hours=1))
        assert strict.grow(1) == strict.grow(1) == {WitnessResult.WAITS: 1}
        assert (gate.published() or (None,))[0] == (strict.published() or (None,))[0]
        with store.read() as connection:
            assert tree.size_of(connection) == 305
        assert "for 3 of 3 witnesses" in strict.witnesses.problems()[0]
        down.routes.update(answers)
        assert strict.show() == {WitnessResult.PUBLISHED: 1}
        assert strict.witnesses.problems() == ()
        checkpoint, seen = strict.published() or (None, {})
        assert checkpoint is not None and (checkpoint.size, len(seen)) == (305, 3)
        # A witness that answers with something else, under a key that is another's, or endlessly.
        for odd in (
            Answer("nonsense"),
            Answer("12x\n", 409),
            Answer("— a b\n"),
            Answer("x" * 100_000),
            Answer("", 302),
        ):
            down.routes["/add-checkpoint"] = odd
            assert strict.grow(1) == {WitnessResult.WAITS: 1}
        stranger = signing_key("c.example", b"S" * 32, COSIGNATURE)
        with store.read() as connection:
            last = tree.last_checkpoint(connection, published=False)
        assert last is not None
        down.routes["/add-checkpoint"] = Answer(stranger.sign_note(last[1].partition("\n\n")[0] + "\n", at=1))
        assert strict.show() == {WitnessResult.WAITS: 1} and "of another key" in caplog.text
    # Whoever needs no witnesses any more publishes what waited for them.
    assert Gate(store, now=strict.now).show() == {WitnessResult.PUBLISHED: 1}
    assert first.checkpoint("")


@pytest.mark.on("sqlite")
def test_a_log_that_was_put_back_rewritten_or_split_is_found(
    store: Store,
    database_url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the witness, by the mirror, and by somebody who kept one checkpoint and has the log as it is now."""
    mirror = LogMirror(store, tmp_path / "mirror")
    subprocess.run(["git", "init", "-q", str(tmp_path / "mirror")], check=True)
    kept, arguments = tmp_path / "kept", ["--key", str(KEY.key)]

    def verify(folder: Path) -> tuple[int, str]:
        called = ["checkpoint", str(kept), str(folder / "checkpoint"), "--proof", str(folder), *arguments]
        return main(called), "".join(capsys.readouterr())

    with serving(tmp_path / "witness", "auditor.example") as (_, _, witness):
        gate = Gate(store, witness, needed=1)
        gate.grow(5)
        with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as connection:
            connection.execute("VACUUM INTO ?", [str(tmp_path / "backup.db")])
        gate.grow(295)
        mirror.write()
        kept.write_bytes((tmp_path / "mirror" / "checkpoint").read_bytes())
        gate.grow(300)
        lock = tmp_path / "mirror" / ".git" / "index.lock"
        lock.touch()  # as a git that was killed leaves it
        for _ in range(2):  # the folder has the checkpoint by now, and the repository has not
            assert asyncio.run(mirror.step()) and "index.lock" in mirror.problems()[0]
        lock.unlink()
        assert asyncio.run(mirror.step()) and not mirror.problems()
        status, told = verify(tmp_path / "mirror")
        assert status == 0 and "kept its first 300 entries as they were, and has 600 now" in told
        listed = ["git", "-C", str(tmp_path / "mirror"), "log", "--format=%s"]
        assert (
            subprocess.run(listed, check=True, capture_output=True, text=True).stdout
            == "600 entries\n300 entries\n"
        )
        left = ["git", "-C", str(tmp_path / "mirror"), "status", "--porcelain"]
        assert subprocess.run(left, check=True, capture_output=True, text=True).stdout == "?? .lock\n"
        for name, count, said in (
            ("rolled", 2, "rolled back"),
            ("split", 295, "a split view"),
            ("rewritten", 700, "was rewritten"),
        ):
            # The operator puts a backup back, and goes on otherwise, as if nothing had been.
            url = tmp_path / f"{name}.db"
            url.write_bytes((tmp_path / "backup.db").read_bytes())
            other = Store.open(f"sqlite:///{url}", threshold=THRESHOLD)
            caplog.clear()
            shown = Gate(other, witness, needed=1, now=gate.now)
            assert shown.grow(count, "y") == {WitnessResult.WAITS: 1}
            assert ("put back" if name != "rewritten" else "ANOTHER VERSION") in caplog.text
            assert Gate(other, now=shown.now).show() == {
                WitnessResult.PUBLISHED: 1
            }  # without a witness it can
            with pytest.raises(MirrorError, match="HOLDS ANOTHER LOG"):
                LogMirror(other, tmp_path / "mirror").write()
            LogMirror(other, tmp_path / name).write()
            status, told = verify(tmp_path / name)
            assert status == 1 and said in told
            other.close()
        loud = LogMirror(store, kept.parent)
        assert asyncio.run(loud.step()) and "holds other things" in loud.problems()[0]
    assert verify(tmp_path / "mirror")[0] == 0  # nobody wrote there


@pytest.mark.on("sqlite")
def test_a_mirror_only_ever_gets_more(store: Store, tmp_path: Path) -> None:
    gate, mirror = Gate(store), LogMirror(store, tmp_path / "m")
    mirror.write()
    assert not (tmp_path / "m").exists()  # nothing is published yet
    for count in (200, 100, 1):
        gate.grow(count)
        mirror.write()
    files = {str(each.relative_to(tmp_path / "m")) for each in (tmp_path / "m").rglob("*") if each.is_file()}
    assert files == {
        ".lock",
        "checkpoint",
        "tile/0/000",
        "tile/0/001.p/44",
        "tile/0/001.p/45",
        "tile/1/000.p/1",
    }
    (tmp_path / "m" / "tile/0/001.p/46").write_bytes(b"x" * 46 * 32)
    gate.grow(1)
    with pytest.raises(MirrorError, match="other hashes"):
        LogMirror(store, tmp_path / "m").write()
    (tmp_path / "m" / "checkpoint").write_text("nothing")
    with pytest.raises(MirrorError, match="cannot be read"):
        LogMirror(store, tmp_path / "m").write()


def test_settings_of_witnesses_are_read_at_the_start() -> None:
    witness = f"https://w.example {signing_key('w.example', b'W' * 32, COSIGNATURE).key}"
    other = f"https://v.example {signing_key('v.example', b'V' * 32, COSIGNATURE).key}"
    found = load_settings({}, witnesses=f"{witness}, {other}", witnesses_needed=1)
    assert found.witnesses == (witness, other)
    for said, given in (
        ("a witness reads", {"witnesses": "w.example"}),
        ("A key reads", {"witnesses": "https://w.example"}),
        ("of a log", {"witnesses": f"https://w.example {KEY.key}"}),
        ("mistyped", {"witnesses": witness[:-1] + "A"}),
        ("1 different", {"witnesses": f"{witness},{witness}"}),
        ("more are needed", {"witnesses": witness, "witnesses_needed": 2}),
        ("^VOUCHGATE_WITNESSES_NEEDED is for .* none are given$", {"witnesses_needed": 1}),
        ("OFFLINE", {"witnesses": witness, "offline": True}),
    ):
        with pytest.raises(SettingsError, match=said):
            load_settings({}, **given)


@pytest.mark.on("sqlite")
def test_what_waits_for_witnesses_degrades_the_service(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    nobody = f"http://127.0.0.1:9 {signing_key('w.example', b'W' * 32, COSIGNATURE).key}"
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "letter").touch()
    settings = Settings(
        database_url=database_url,
        witnesses=(nobody,),
        log_mirror=tmp_path / "mirror",
        log_key=SecretStr(KEY.secret_text()),
    )
    before = datetime.now(UTC) - timedelta(minutes=2)
    gate = Gate(store, now=before)
    with open_service(settings) as service:
        assert service.problems() == ()
        gate.grow(1)
        assert service.log_mirror is not None and asyncio.run(service.log_mirror.step())
        signed = KEY.sign_checkpoint(9, b"r" * 32)
        keep = partial(tree.put_checkpoint, size=9, note=signed, now=before, publish=False)
        store.writer.run((), keep).result(60)
        waits, mirror = service.problems()
        assert "for 1 of 1 witnesses" in waits and "holds other things (letter)" in mirror
