"""`vouchgate import` as a program: what becomes of a file's rows, going on after a stop, and the report."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.sqlite import SqliteStore
from sqlalchemy import select

from tests.acceptance.cli_program import cli, complaint, lines
from tests.conftest import THRESHOLD
from tests.memories import ROWS
from tests.reviews import reviewer
from tests.running.service import make_token
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import Outcome, ValidationResult
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.review.attending import attention
from vouchgate.review.queue import ReviewQueue
from vouchgate.storage.claims import decisions
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import LogRow

_LOG = LogRow.metadata.tables["log_entry"]
NODE = Path(sys.executable).parent / "node"
SERVER = Path(sys.prefix) / "node/node_modules/@modelcontextprotocol/server-memory/dist/index.js"
KEY = (
    "ghp_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA3bC6"
)  # put together here, so that no scanner takes it for one


def answers(url: str) -> list[ValidationResult]:
    """Every decision in the database, in the order in which they fell, owner by owner. The log must be whole."""
    store = Store.open(url, threshold=THRESHOLD)
    try:
        with store.read() as connection:
            assert log.verify(connection) == []
            rows = connection.execute(select(_LOG.c.subject_id).order_by(_LOG.c.owner_id, _LOG.c.seq))
            found = [decisions.get(connection, subject, owners=None) for subject in rows.scalars()]
    finally:
        store.close()
    return [ValidationResult.model_validate_json(document) for document in found if document is not None]


def agent(url: str, *owners: str, sources: Sequence[Source] = (Source.USER,)) -> dict[str, str]:
    """The environment of an agent for these owners, for any when there are none."""
    token = make_token(url, Role.AGENT, owners, any_owner=not owners, sources=frozenset(sources))
    return {"VOUCHGATE_TOKEN": token, "VOUCHGATE_DATABASE_URL": url, "VOUCHGATE_OFFLINE": "true"}


def imported(file: Path, env: Mapping[str, str], *options: str | Path, status: int = 0) -> dict[str, int]:
    """The closing table of an import, by outcome."""
    done = cli("import", file, *options, cwd=file.parent, env=env)
    assert done.returncode == status, done.stderr.decode()
    return table(done.stdout)


def _cells(row: str) -> tuple[str, str]:
    match = re.match(r"([a-z]+(?: [a-z]+)?)\s+([\d,]+)\s", row)
    return (match[1], match[2]) if match else ("", "0")


def table(output: bytes) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in output.decode().splitlines()[1:]:
        outcome, number = _cells(row)
        found[outcome] += int(number.replace(",", ""))
    return dict(found)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The rows as JSON lines."""
    path = tmp_path / "memories.jsonl"
    path.write_text(lines(ROWS))
    return path


def test_rows_are_decided_in_order_once_however_often_it_is_run(
    database_url: str, file: Path, tmp_path: Path
) -> None:
    env = agent(database_url)
    options = ("--owner", "ada", "--source", "user")
    first = imported(file, env, *options)
    assert first == {"stored": 4, "queued": 2, "blocked": 2}
    found = answers(database_url)
    assert [(answer.outcome, answer.rule) for answer in found if answer.evidence.claim.owner_id == "ada"] == [
        (Outcome.STORED, "trusted_source"),
        (Outcome.STORED, "trusted_source"),
        (Outcome.BLOCKED, "duplicate"),
        (Outcome.BLOCKED, "speculation"),
        (Outcome.STORED, "trusted_source"),
        (Outcome.QUEUED, "conflict"),
        (Outcome.QUEUED, "technical_hedge"),
    ]
    assert [
        answer.evidence.metadata["id"] for answer in found if answer.evidence.claim.owner_id == "bob"
    ] == [8]

    moved = tmp_path / "elsewhere.jsonl"
    moved.write_text(lines([{"text": "A new one in front.", "id": 0}, *ROWS, ROWS[0]]))
    again = imported(moved, env, *options)
    assert again == {"stored": 1, "blocked": 1, "done before": 8}
    assert len(answers(database_url)) == 10


def test_other_options_ask_for_another_decision(file: Path, migrated_url: str) -> None:
    env = agent(migrated_url, "ada")
    file.write_text(lines(ROWS[:2]))
    assert imported(file, env) == {"queued": 2}
    assert imported(file, env, "--memory-type", "preference", "--source", "user") == {"stored": 2}


@pytest.fixture
def migrated_url(migrated_file: Path, tmp_path: Path) -> str:
    """A SQLite database: for what no database changes."""
    path = tmp_path / "gate.db"
    path.write_bytes(migrated_file.read_bytes())
    return f"sqlite:///{path}"


def test_bad_rows_are_told_and_spoil_no_other(file: Path, migrated_url: str) -> None:
    bad = [
        '{"text": "half',
        '{"id": 3}',
        json.dumps({"text": "x" * 9000}),
        json.dumps({"text": "x", "citations": [7]}),
        *(
            json.dumps({"text": "x", name: "half \ud800"})
            for name in ("note", "text", "user_id", "created_at")
        ),
        json.dumps({"text": "x", "metadata": {"\udfff": [{"a": "\ud800"}]}}),
    ]
    file.write_text(lines(ROWS[:1]) + "\n".join(bad) + "\n" + lines(ROWS[1:2]))
    done = cli("import", file, cwd=file.parent, env=agent(migrated_url, "ada"))
    assert done.returncode == 1
    told = done.stderr.decode().splitlines()
    assert [line.split(":")[0] for line in told] == [f"line {number}" for number in range(2, 11)]
    assert "half a character" in told[4]
    assert table(done.stdout) == {"queued": 2, "bad": 9}
    assert [answer.evidence.claim.content for answer in answers(migrated_url)] == [
        "Tea is at four.",
        "The hall is cold.",
    ]


def test_a_full_queue_is_told_and_what_was_not_sent_is_sent_when_there_is_room(
    file: Path, migrated_url: str
) -> None:
    (file.parent / "small.toml").write_text("[queue]\nimports_per_owner = 3\n")
    (file.parent / "large.toml").write_text("[queue]\nimports_per_owner = 900\n")
    rows = [{"text": f"The tap in room {number} drips."} for number in range(600)]
    rows[550] = {"text": "I think the roof leaks."}
    file.write_text(lines(rows))
    env = agent(migrated_url, "ada")
    done = cli("import", file, "--policy", "small.toml", cwd=file.parent, env=env)
    assert done.returncode == 1
    assert table(done.stdout) == {"queued": 3, "blocked": 1, "not sent": 596}
    told = done.stderr.decode()
    assert "The review queue of ada has no place left for imports (the limit is 3)" in told
    assert "[queue] imports_per_owner" in told
    again = cli("import", file, "--policy", "large.toml", cwd=file.parent, env=env)
    assert table(again.stdout) == {"queued": 596, "done before": 4}
    assert again.returncode == 0
    found = answers(migrated_url)
    assert len(found) == 600
    assert {answer.evidence.claim.content for answer in found} == {row["text"] for row in rows}


def test_a_credential_is_kept_nowhere(file: Path, migrated_url: str) -> None:
    file.write_text(
        lines([{"text": f"The deploy token is {KEY}.", "agent_id": KEY}, {"text": "Tea is at four."}])
    )
    env = agent(migrated_url, "ada")
    done = cli("import", file, cwd=file.parent, env=env)
    assert table(done.stdout) == {"blocked": 1, "queued": 1}
    audited = cli("import", file, "--dry-run", cwd=file.parent, env=env)
    for path in file.parent.iterdir():
        if path != file:
            assert KEY.encode() not in path.read_bytes(), path
    assert KEY.encode() not in done.stdout + done.stderr + audited.stdout + audited.stderr


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("no token", "set VOUCHGATE_TOKEN"),
        ("unknown token", "is no token of the database"),
        ("reviewer", "is a token of a reviewer"),
        ("source", "may not assert the source manual"),
        ("other owner", "may not act for the owner"),
        ("no owner", "give --owner"),
        ("stopped", "is stopped: stocktaking; run it again later, and it goes on where it stopped"),
        ("no file", "cannot be read"),
        ("circle", "circle.jsonl: cannot be read"),
        ("no folder", "--report"),
    ],
)
def test_what_stops_it_is_one_line_and_nothing_is_sent(
    case: str, says: str, file: Path, migrated_url: str
) -> None:
    env = agent(migrated_url, *([] if case == "no owner" else ["ada"]))
    arguments: list[str | Path] = ["import", file]
    match case:
        case "no token":
            del env["VOUCHGATE_TOKEN"]
        case "unknown token":
            env["VOUCHGATE_TOKEN"] = env["VOUCHGATE_TOKEN"][:-1] + "-"
        case "reviewer":
            env["VOUCHGATE_TOKEN"] = make_token(migrated_url, Role.REVIEWER, ["ada"])
        case "source":
            arguments += ["--source", "manual"]
        case "other owner":
            arguments += ["--owner", "bob"]
        case "stopped":
            stop = ["stop", "--owner", "ada", "--reason", "stocktaking"]
            assert cli(*stop, cwd=file.parent, env=env).returncode == 0
            arguments += ["--limit", "2"]
        case "no file":
            arguments = ["import", "none.jsonl"]
        case "circle":
            (file.parent / "circle.jsonl").symlink_to("circle.jsonl")
            arguments = ["import", "circle.jsonl"]
        case "no folder":
            arguments += ["--dry-run", "--report", file / "below a file"]
    done = cli(*arguments, cwd=file.parent, env=env)
    assert says in complaint(done)
    assert done.stdout == b""
    assert answers(migrated_url) == []


@pytest.mark.parametrize("option", [("--format", "xlsx"), ("--memory-type", "rumour"), ("--source", "blog")])
def test_words_that_nobody_knows_are_usage_errors(option: tuple[str, str], file: Path) -> None:
    assert option[1] in complaint(cli("import", file, *option, cwd=file.parent), 2)
    assert "--dry-run" in complaint(cli("import", file, "--report", "x", cwd=file.parent), 2)


@contextmanager
def knowledge_graph(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The knowledge-graph memory server, which keeps what it is told in this file."""
    with subprocess.Popen(
        [NODE, SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"MEMORY_FILE_PATH": str(path)},
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def ask(
    process: subprocess.Popen[bytes], number: int, method: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    assert process.stdin is not None and process.stdout is not None
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    assert answer["id"] == number and "result" in answer, answer
    return answer


def test_what_the_knowledge_graph_server_wrote_is_imported(tmp_path: Path, migrated_url: str) -> None:
    path = tmp_path / "memory.jsonl"
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    people = [{"name": "Ada", "entityType": "person", "observations": ["likes tea", "reads at night"]}]
    archive = {"name": "Archive", "entityType": "place", "observations": []}
    with knowledge_graph(path) as server:
        ask(server, 1, "initialize", hello)
        call = {"name": "create_entities", "arguments": {"entities": [*people, archive]}}
        ask(server, 2, "tools/call", call)
        relations = [{"from": "Ada", "to": "Archive", "relationType": "runs"}]
        ask(server, 3, "tools/call", {"name": "create_relations", "arguments": {"relations": relations}})
    assert imported(path, agent(migrated_url, "ada"), "--source", "user") == {"stored": 3}
    assert [answer.evidence.claim.content for answer in answers(migrated_url)] == [
        "Ada (person): likes tea",
        "Ada (person): reads at night",
        "Ada runs Archive",
    ]


def test_the_other_formats_go_the_same_way(tmp_path: Path, migrated_url: str) -> None:
    env = agent(migrated_url, sources=[Source.USER])
    export = tmp_path / "export.json"
    memories = [
        {"id": "1", "memory": "Likes tea", "user_id": "ada"},
        {"id": "2", "memory": "Likes tea", "user_id": "ada"},
    ]
    export.write_text(json.dumps({"results": memories}, indent=1))
    assert imported(export, env, "--source", "user") == {"stored": 1, "blocked": 1}
    database = tmp_path / "store.db"
    with SqliteStore.from_conn_string(str(database)) as store:
        store.setup()
        store.put(("users", "ada"), "tea", {"text": "Likes tea"})
        store.put(("users", "ada"), "trip", {"to": "Porto", "days": 3})
    options = ("--owner", "ada", "--source", "user")
    assert imported(database, env, *options) == {"stored": 1, "blocked": 1}
    with sqlite3.connect(database) as kept:
        assert kept.execute("SELECT count(*) FROM store").fetchone() == (2,)
    kept.close()


def test_a_row_that_was_sent_back_and_cites_something_now_is_before_its_owner_again(
    tmp_path: Path, migrated_url: str
) -> None:
    env, file = agent(migrated_url, "acme"), tmp_path / "rows.jsonl"
    row: dict[str, Any] = {"content": "Deploys stop on Fridays at noon."}
    file.write_text(json.dumps(row))
    assert imported(file, env)["queued"] == 1
    store = Store.open(migrated_url, threshold=THRESHOLD)
    try:
        queue, bea = ReviewQueue(store, load_policy(None)), reviewer("acme")
        (item,) = queue.search(bea)
        now = datetime.now(UTC)
        attention.send_back(queue, bea, item.id, version=1, question="Who says so?", now=now)
        assert queue.search(bea) == []
        file.write_text(json.dumps(row | {"citations": ["ADR-7"]}))
        assert imported(file, env)["queued"] == 1
        (again,) = queue.search(bea)
        assert (again.id, again.cited, again.question) == (item.id, "adr:7", "Who says so?")
        assert "queued" not in imported(file, env)
    finally:
        store.close()
