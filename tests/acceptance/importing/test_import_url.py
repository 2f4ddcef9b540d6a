"""`vouchgate import --url`: rows that go through a running service, stop politely, and are stored once."""

from __future__ import annotations

import json
import shlex
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.acceptance.cli_program import cli, complaint, lines
from tests.acceptance.importing.test_import import KEY, answers, table
from tests.running.service import Running, make_token, serve
from vouchgate.client import Client
from vouchgate.importing.formats import RowFile
from vouchgate.importing.remote import RemoteImport
from vouchgate.importing.rows import Defaults
from vouchgate.importing.run import ImportStopped
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role

POLICY = "[queue]\nper_agent = 3\n"
NOTES = [
    {"text": "Tea is at four."},
    {"text": "The hall is cold.", "user_id": "ada"},
    {"text": "Tea is at four."},
    {"text": "I think the roof leaks."},
    {"note": "no text"},
    {"text": "The lift is small.", "user_id": "eve"},
]


@pytest.fixture(scope="module")
def gate(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    """A service, and the URL of its database."""
    folder = tmp_path_factory.mktemp("gate")
    shutil.copy(migrated_file, folder / "gate.db")
    (folder / "policy.toml").write_text(POLICY)
    url = f"sqlite:///{folder / 'gate.db'}"
    with serve(url, policy=folder / "policy.toml") as running:
        yield running, url


def agent(url: str, owner: str = "ada") -> dict[str, str]:
    return {"VOUCHGATE_TOKEN": make_token(url, Role.AGENT, [owner], sources=frozenset({Source.USER}))}


def memories(running: Running, env: Mapping[str, str]) -> list[str]:
    with closing(running.client(env["VOUCHGATE_TOKEN"])) as client:
        return sorted(item["content"] for item in client.get("/v1/memories").json()["items"])


def go_on(stderr: bytes) -> list[str]:
    """The words of the command that an import says to go on with."""
    (said,) = [line for line in stderr.decode().splitlines() if line.startswith("Go on with: ")]
    return shlex.split(said.removeprefix("Go on with: vouchgate "))


def test_rows_are_sent_once_however_often_it_is_run(gate: tuple[Running, str], tmp_path: Path) -> None:
    running, url = gate
    env, file = agent(url), tmp_path / "notes.jsonl"
    options = ("--url", running.url, "--source", "user")
    file.write_text(lines([*NOTES, {"text": f"The key is {KEY}."}]))
    first = cli("import", file, *options, cwd=tmp_path, env=env)
    assert first.returncode == 1, first.stderr
    told = first.stderr.decode().splitlines()
    assert [line.split(":")[0] for line in told] == ["line 5", "line 6"]
    assert "is refused" in told[1]
    assert table(first.stdout) == {"stored": 2, "blocked": 3, "bad": 2}
    decided = len(answers(url))
    again = cli("import", file, *options, cwd=tmp_path, env=env)
    assert table(again.stdout) == table(first.stdout)
    assert len(answers(url)) == decided == 5
    rest = cli("import", file, *options, "--after", "2", "--limit", "1", cwd=tmp_path, env=env)
    assert table(rest.stdout) == {"blocked": 1}  # a request of its own, in which it is a duplicate
    assert memories(running, env) == ["Tea is at four.", "The hall is cold."]
    file.write_text(
        lines([{"text": "A new one in front."}, *NOTES])
    )  # other requests: what they repeat is known
    assert table(cli("import", file, *options, cwd=tmp_path, env=env).stdout) == {
        "stored": 1,
        "blocked": 4,
        "bad": 2,
    }
    assert memories(running, env) == ["A new one in front.", "Tea is at four.", "The hall is cold."]
    kept = b"".join(
        path.read_bytes() for path in Path(url.removeprefix("sqlite:///")).parent.glob("gate.db*")
    )
    assert KEY.encode() not in kept + first.stdout + first.stderr


def test_a_full_queue_stops_it_and_the_command_it_says_goes_on(
    gate: tuple[Running, str], tmp_path: Path
) -> None:
    running, url = gate
    env, file = agent(url, "bob"), tmp_path / "rooms of bob.jsonl"
    file.write_text(lines([{"body": f"The tap in room {number} drips."} for number in range(5)]))
    (tmp_path / "map.toml").write_text('text = "body"\n')
    done = cli("import", file.name, "--url", running.url, "--map", "map.toml", cwd=tmp_path, env=env)
    assert done.returncode == 1
    assert table(done.stdout) == {"queued": 3, "not sent": 2}
    assert (
        "vouchgate: 3 claims of this agent wait for their owner, which is the limit" in done.stderr.decode()
    )
    command = go_on(done.stderr)
    assert command[:2] == ["import", file.name]
    assert command[-2:] == ["--after", "0"]
    stopped = cli(*command, cwd=tmp_path, env=env)
    assert table(stopped.stdout) == {"queued": 3, "not sent": 2}
    reviewer = {"VOUCHGATE_TOKEN": make_token(url, Role.REVIEWER, ["bob"]), "VOUCHGATE_DATABASE_URL": url}
    cleared = cli("review", "approve", "--filter", "tap", "--yes", cwd=tmp_path, env=reviewer)
    assert cleared.returncode == 0, cleared.stderr
    rest = cli(*command, cwd=tmp_path, env=env)
    assert (rest.returncode, table(rest.stdout)) == (0, {"queued": 5})
    assert len([answer for answer in answers(url) if answer.evidence.claim.owner_id == "bob"]) == 5


def test_what_is_not_taken_now_stops_it_and_says_how_to_go_on(
    gate: tuple[Running, str], tmp_path: Path
) -> None:
    running, url = gate
    env, file = agent(url, "cem"), tmp_path / "many.jsonl"
    file.write_text(lines([{"text": f"Door {number} is green."} for number in range(5)]))
    options = ("--url", running.url, "--source", "user")
    assert table(cli("import", file, *options, "--limit", "1", cwd=tmp_path, env=env).stdout) == {"stored": 1}
    operator = {"VOUCHGATE_DATABASE_URL": url}
    assert cli("stop", "--owner", "cem", "--reason", "test", cwd=tmp_path, env=operator).returncode == 0
    more = ("--after", "1", "--limit", "3", "--repo", tmp_path)
    stopped = cli("import", file, *options, *more, cwd=tmp_path, env=env)
    assert (stopped.returncode, stopped.stdout) == (1, b"")
    assert b"stopped" in stopped.stderr.splitlines()[-1]
    command = go_on(stopped.stderr)
    assert command[-6:] == ["--limit", "3", "--repo", str(tmp_path), "--after", "1"]
    assert cli("resume", "--owner", "cem", "--reason", "test", cwd=tmp_path, env=operator).returncode == 0
    on = cli(*command, cwd=tmp_path, env=env)
    assert (on.returncode, table(on.stdout)) == (0, {"stored": 3})


class Refusing(BaseHTTPRequestHandler):
    """A service that takes nothing for an hour: the first request in a path is limited, the next is not answered."""

    said = (429, "rate_limited"), (503, "unavailable")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, code = self.said[int(self.path.split("/")[1])]
        self.send_response(status)
        self.send_header("Retry-After", "3600")
        self.send_header("Content-Type", "application/problem+json")
        self.end_headers()
        self.wfile.write(json.dumps({"status": status, "code": code, "detail": "Later."}).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_rate_limit_that_lasts_and_a_service_that_is_gone_stop_it_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text(lines([{"text": f"Door {number} is green."} for number in range(3)]))
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for where, says, retries in (
            (f"{url}/0", "rate_limited: Later", 4),
            (f"{url}/1", "unavailable: Later", 4),
            ("http://127.0.0.1:9", "Nothing answers", 0),
        ):
            with Client(where, "vg_token", retries=retries) as client, RowFile(str(file)) as rows:
                one = RemoteImport(client, "vg_token", Defaults("ada"), print, lambda *_: None)
                with pytest.raises(ImportStopped, match=says):
                    one.run(rows, lambda: False, after=1, limit=None)
                assert (one.done, one.tally.rows) == (1, 0)
        server.shutdown()


def test_what_it_cannot_begin_with_is_one_line(gate: tuple[Running, str], tmp_path: Path) -> None:
    running, url = gate
    env, file = agent(url), tmp_path / "notes.jsonl"
    file.write_text(lines(NOTES[:1]))
    reviewer = {"VOUCHGATE_TOKEN": make_token(url, Role.REVIEWER, ["ada"])}
    for told, options, variables in (
        ("set VOUCHGATE_TOKEN", ("--url", running.url), {}),
        ("401", ("--url", running.url), {"VOUCHGATE_TOKEN": env["VOUCHGATE_TOKEN"][:-1] + "-"}),
        ("is a token of a reviewer", ("--url", running.url), reviewer),
        ("may not assert", ("--url", running.url, "--source", "manual"), env),
        ("may not act for the owner", ("--url", running.url, "--owner", "bob"), env),
        ("http://", ("--url", "gate.example"), env),
        ("Nothing answers", ("--url", "http://127.0.0.1:9"), env),
    ):
        assert told in complaint(cli("import", file, *options, cwd=tmp_path, env=variables))
    handed = ("import", file, "--dry-run", "--offline", "--url", running.url)
    assert "--role reviewer" in complaint(cli(*handed, cwd=tmp_path))
    assert "The role agent may not do this" in complaint(cli(*handed, cwd=tmp_path, env=env))
    assert "--after" in complaint(cli(*handed, "--after", "1", cwd=tmp_path, env=reviewer), 2)
    assert "--url" in complaint(cli("import", file, "--after", "3", cwd=tmp_path), 2)
    file.write_text(json.dumps({"body": "Tea"}))
    for command in (("import", "--url", running.url), ("audit",), ("import",)):
        unknown = cli(
            command[0], file, *command[1:], cwd=tmp_path, env={**env, "VOUCHGATE_DATABASE_URL": url}
        )
        assert unknown.returncode == 1
        assert b'text = "body"  # what is claimed' in unknown.stderr
        assert b"give it with --map" in unknown.stderr.splitlines()[-1]
