"""The witness: what it signs, what it refuses, and that nothing makes it sign two versions of a log."""

from __future__ import annotations

import inspect
import json
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from tests.trees import Log
from vouchgate.cli import app as cli
from vouchgate.ingest.net.addresses import PORTS
from vouchgate.ingest.transparency.note import signing_key
from vouchgate.ingest.transparency.verifier import (
    MAX_PROOF_BYTES,
    Key,
    NotProven,
    check_consistency,
    leaf_hash,
    open_checkpoint,
    parse_checkpoint,
    parse_key,
    parse_note,
)
from vouchgate.server.witness import MOST_SPLITS, Witness, WitnessError, create_witness

GATE = signing_key("gate.example/log", b"L" * 32)
OTHER = signing_key("other.example/log", b"O" * 32)
STRANGER = signing_key("gate.example/log", b"S" * 32)


def cosigned(log: Log, size: int, answer: str, witness: Key) -> None:
    """Whether this is a cosignature of that checkpoint."""
    assert open_checkpoint((log.checkpoint(GATE, size) + answer).encode(), [GATE.key], [witness], 1)[1]


def test_it_signs_what_grew_and_nothing_else(tmp_path: Path) -> None:
    log, fork = Log(5, 4, 300), Log(5, 4, 300, entry=b"fork %d")
    witness = Witness(tmp_path, [GATE.key, OTHER.key], "auditor.example", clock=lambda: 1_763_870_400.9)
    sized = "text/x.tlog.size; charset=utf-8"
    with closing(witness), TestClient(create_witness(witness)) as client:

        def send(body: str | bytes) -> tuple[int, str]:
            answer = client.post("/add-checkpoint", content=body)
            if answer.status_code == 409:
                assert answer.headers["content-type"] == sized
            return answer.status_code, answer.text

        assert client.get("/checkpoint").status_code == 404
        status, line = send(log.shown(GATE, 0, 5))
        assert status == 200
        cosigned(log, 5, line, witness.key)
        assert send(log.shown(GATE, 5, 5))[0] == 200  # asked again, because the answer got lost
        grown = log.shown(GATE, 5, 9)
        for expected, said, body in (
            (409, "5\n", log.shown(GATE, 0, 9)),  # it does not know what was seen
            (409, "5\n", fork.shown(GATE, 5, 5)),  # a split view
            (409, "5\n", log.shown(GATE, 3, 3)),  # a rollback
            (422, "changed, removed", fork.shown(GATE, 5, 9)),  # a fork
            (422, "hashes", grown.replace("\n", "\n" + "A" * 43 + "=\n", 1)),
            (400, "larger", grown.replace("old 5", "old 10")),
            (403, "not signed", log.shown(STRANGER, 5, 9)),
            (403, "forged", grown.replace("\n9\n", "\n8\n")),
            (404, "does not know", log.shown(signing_key("unknown.example", b"U" * 32), 5, 9)),
            (400, "old size", "old five\n\n" + log.checkpoint(GATE, 9)),
            (400, "hashes", "old 5\n" + "x\n" * 64 + f"\n{log.checkpoint(GATE, 9)}"),
            (400, "base64", f"old 5\n%%%%\n\n{log.checkpoint(GATE, 9)}"),
            (400, "old size", ""),
            (400, "signed note is UTF-8", b"old 5\n\n\xff\x00"),
            (413, "too large", "x" * (MAX_PROOF_BYTES + 1)),
        ):
            status, told = send(body)
            assert (status, said in told) == (expected, True), (expected, said, status, told)
        assert len(list(tmp_path.glob("split-*"))) == 1  # kept: the log's key signed both
        for number in range(MOST_SPLITS + 3):
            assert send(f"old 5\n\n{GATE.sign_checkpoint(5, leaf_hash(b'%d' % number))}")[0] == 409
        assert len(list(tmp_path.glob("split-*"))) == MOST_SPLITS
        for old, new in ((5, 9), (9, 309)):
            status, line = send(log.shown(GATE, old, new))
            assert status == 200
            cosigned(log, new, line, witness.key)
        assert send(Log(2).shown(OTHER, 0, 2))[0] == 200  # each log by itself
        assert client.get("/checkpoint").status_code == 404  # which of the two?
        kept = client.get("/checkpoint", params={"origin": "gate.example/log"}).content
    # Whoever asks the witness for what it keeps can hold any other checkpoint against it.
    checkpoint, seen = open_checkpoint(kept, [GATE.key], [witness.key], 1)
    assert (checkpoint.size, seen) == (309, {"auditor.example": 1_763_870_400})


def test_its_folder_is_its_own_and_what_was_lost_is_never_made_up(tmp_path: Path) -> None:
    folder = tmp_path / "witness"
    first = Witness(folder, [GATE.key], "auditor.example")
    assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600
    with pytest.raises(WitnessError, match="another witness"):
        Witness(folder, [GATE.key], "auditor.example")
    key = first.key
    assert first.add_checkpoint(Log(5).shown(GATE, 0, 5).encode()).status_code == 200
    first.close()
    (folder / "state.json.new").write_text('{"gate')  # killed while it wrote
    again = Witness(folder, [GATE.key], "another name")
    assert again.key == key
    assert again.add_checkpoint(Log(9).shown(GATE, 0, 9).encode()).body == b"5\n"
    again.close()
    state = (folder / "state.json").read_bytes()
    (folder / "state.json").unlink()
    with pytest.raises(WitnessError, match="begin in a new folder"):
        Witness(folder, [GATE.key], "auditor.example")
    (folder / "state.json").write_bytes(state)
    (folder / "key").unlink()
    with pytest.raises(WitnessError, match="begin in a new folder"):
        Witness(folder, [GATE.key], "auditor.example")
    (folder / "state.json").write_bytes(b"[1]")
    with pytest.raises(WitnessError, match="cannot be read"):
        Witness(folder, [GATE.key], "auditor.example")


PROGRAM = """
import sys, uvicorn
from pathlib import Path
from vouchgate.ingest.transparency.verifier import parse_key
from vouchgate.server.witness import MOST_SPLITS, Witness, create_witness
witness = Witness(Path(sys.argv[1]), [parse_key(sys.argv[2])], "auditor.example")
config = uvicorn.Config(create_witness(witness), port=0, log_level="critical")
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], witness.key, flush=True)
Server(config).run()
"""


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str, Key]]:
    """A witness in a process of its own, which is killed at the end: its address and its key."""
    arguments = [sys.executable, "-c", PROGRAM, str(folder), str(GATE.key)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port, key = process.stdout.readline().split()
            yield process, f"http://127.0.0.1:{port}/add-checkpoint", parse_key(key)
        finally:
            process.kill()


def test_killed_at_any_moment_it_forks_nothing(tmp_path: Path) -> None:
    """Two versions of one log are sent at once, while the process is killed again and again: after an answer, and while
    it writes. Whatever it signed, and what it says that it saw, is of one version, and nothing of it is forgotten."""
    logs = [Log(200), Log(1, 199, entry=b"fork %d")]
    signed: dict[tuple[int, bytes], str] = {}
    keys, writing = set[str](), tmp_path / "state.json.new"

    def send(log: Log, address: str, process: subprocess.Popen[str], most: int) -> None:
        seen, size, answered = 0, 1, 0
        with httpx.Client(trust_env=False) as client:
            while size <= 200:
                if answered == most:
                    process.kill()
                try:
                    answer = client.post(address, content=log.shown(GATE, seen, size))
                except httpx.HTTPError:
                    return  # it was killed
                answered += 1
                if answer.status_code == 200:
                    signed[size, log.root(size)] = answer.text
                    seen, size = size, size + 1
                elif answer.status_code == 409 and int(answer.text) < 200:
                    seen = int(answer.text)
                    size = max(size, seen + 1)
                else:
                    return  # it holds to the other version

    def kill_as_it_writes(process: subprocess.Popen[str], senders: list[threading.Thread]) -> None:
        while any(each.is_alive() for each in senders):  # who holds to the other version ends by itself
            if signed and writing.exists():
                process.kill()

    for most in (3, 20, 1_000, 1_000):
        with running(tmp_path) as (process, address, key):
            keys.add(str(key))
            work = [threading.Thread(target=send, args=(log, address, process, most)) for log in logs]
            if most == 1_000:
                work.append(threading.Thread(target=kill_as_it_writes, args=(process, [*work])))
            for each in work:
                each.start()
            for each in work:
                each.join()
    assert len(keys) == 1 and signed
    state = json.loads((tmp_path / "state.json").read_bytes())
    last = parse_checkpoint(parse_note(state["gate.example/log"].encode()).text)
    ours = next(log for log in logs if log.root(last.size) == last.root)
    for (size, root), line in signed.items():
        assert size <= last.size and root == ours.root(size)
        cosigned(ours, size, line, key)
    other = next(log for log in logs if log is not ours)
    with pytest.raises(NotProven):  # and who kept a checkpoint of the other version sees it
        check_consistency(1, last.size, other.root(1), last.root, [])


def test_a_gate_may_ask_it_where_it_listens_unless_it_is_told_another_port() -> None:
    assert inspect.signature(cli.witness).parameters["port"].default in PORTS
