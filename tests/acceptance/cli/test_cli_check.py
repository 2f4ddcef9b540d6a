"""`vouchgate check` and `vouchgate verify` as programs, with real repositories and databases."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.cli_program import (
    PROGRAM,
    clean_environment,
    cli,
    complaint,
    json_lines,
    lines,
    serving,
)
from tests.repos import TestRepository

ACCEPTED = "# 3. Use a queue\n\n## Status\n\nAccepted\n"
SUPERSEDED = "# 2. Use a table\n\n## Status\n\nSuperseded by ADR-003\n"
# 25 different words, so that two which differ in one of them are 24/26 alike, over the threshold.
LONG = (
    "the report job reads forty tables in order and writes one file for each of them to shelf two"
    " at {} sharp every day"
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> TestRepository:
    made = TestRepository(tmp_path_factory.mktemp("shelf"))
    made.commit("Decide", {"docs/adr/0002-table.md": SUPERSEDED, "docs/adr/0003-queue.md": ACCEPTED})
    return made


def claim(content: str, **more: Any) -> dict[str, Any]:
    return {"content": content, "memory_type": "fact", "source": "ai_synthesis", **more}


def checked(rows: Sequence[Mapping[str, Any]], cwd: Path, *options: str | Path) -> list[dict[str, Any]]:
    done = cli("check", *options, stdin=lines(rows), cwd=cwd)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    return json_lines(done.stdout)


def test_answers_are_validation_results_in_order_with_the_id_of_the_line(
    tmp_path: Path, repository: TestRepository
) -> None:
    rows = [
        claim("We use a queue, see ADR-003.", id={"any": ["json"]}),
        claim("We use a queue."),
        {"content": "x", "id": None},  # a fact that a model made up its mind about
    ]
    answers = checked(rows, tmp_path, "--repo", repository.path)
    assert [answer.get("id", "none given") for answer in answers] == [{"any": ["json"]}, "none given", None]
    assert [(answer["outcome"], answer["rule"]) for answer in answers] == [
        ("stored", "stated"),
        ("stored", "corroborated"),
        ("queued", "ungrounded"),
    ]
    assert answers[0]["evidence"]["source_id"] == "ADR-003"
    assert answers[0]["evidence"]["claim"]["owner_id"] == "me"
    assert {answer[key] for answer in answers for key in ("decision_id", "memory_id", "queue_id")} == {None}
    assert list(tmp_path.iterdir()) == []


def test_claims_are_decided_as_if_sent_one_after_another(tmp_path: Path) -> None:
    rows = [
        claim(LONG.format("05:30"), source="user"),
        claim(LONG.format("05:30").upper(), source="user"),
        claim(LONG.format("06:30"), source="user"),
        claim(LONG.format("06:30")),
        claim(LONG.format("05:30"), memory_type="procedure"),
        claim(LONG.format("05:30"), user_id="somebody else"),
        claim("I think it holds"),
        claim("I think it holds"),
        claim("It holds water"),
        claim("it  holds water"),
    ]
    answers = checked(rows, tmp_path)
    assert [answer["rule"] for answer in answers] == [
        "trusted_source",
        "duplicate",
        "conflict",
        "already_pending",
        "ungrounded",
        "ungrounded",
        "speculation",
        "speculation",
        "ungrounded",
        "already_pending",
    ]
    assert answers[1]["conflicting_memory_id"] == "line-1"
    assert answers[2]["conflicting_memory_id"] == "line-1"


def test_an_earlier_claim_that_no_longer_holds_is_not_in_the_way(tmp_path: Path) -> None:
    row = claim("The sale runs until spring", source="user", validity_horizon="2020-03-01T00:00:00Z")
    assert [answer["rule"] for answer in checked([row, row], tmp_path)] == [
        "trusted_source",
        "trusted_source",
    ]


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"memory_type": "fact", "source": "user"}, "invalid_request"),
        (claim("x", colour="red"), "invalid_request"),
        (claim("   "), "invalid_request"),
        (claim("a\x00b"), "invalid_request"),
        (claim("a\ud800b"), "invalid_request"),
        (claim("x", memory_type="rumour"), "invalid_request"),
        (claim("x", source="blog"), "invalid_request"),
        ({**claim("x"), "content": 5}, "invalid_request"),
        (claim("x" * 8_193), "invalid_request"),
        (claim("x", metadata={"k": "v" * 5_000}), "metadata_too_large"),
        (claim("x", citations=["no citation at all"]), "citation_malformed"),
    ],
)
def test_a_bad_line_gets_an_error_object_in_its_place(bad: dict[str, Any], code: str, tmp_path: Path) -> None:
    done = cli(
        "check", stdin=lines([claim("It holds"), {**bad, "id": 9}, claim("It holds too")]), cwd=tmp_path
    )
    first, second, third = json_lines(done.stdout)
    assert done.returncode == 1
    assert (second["error"]["code"], second["line"], second["id"]) == (code, 2, 9)
    assert len(second["error"]["message"]) < 400
    assert (first["rule"], third["rule"]) == ("ungrounded", "ungrounded")


def test_stored_memories_and_waiting_items_count_with_a_database_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'gate.db'}"
    with serving("--database-url", url, cwd=tmp_path) as service:
        token = cli(
            "token",
            "create",
            "--role",
            "agent",
            "--owner",
            "me",
            "--source",
            "user",
            "--database-url",
            url,
            cwd=tmp_path,
        ).stdout.decode()
        for row in (claim("Tea is at four", source="user"), claim("The hall is cold")):
            post(service.address, token.strip(), row)
        rows = [
            claim("tea is at four"),
            claim("The hall is cold"),
            claim("Tea is at four", user_id="you"),
            claim("New here"),
            claim("New here"),
        ]
        first = checked(rows, tmp_path, "--database-url", url)
        second = checked(rows, tmp_path, "--database-url", url)
    for answers in (first, second):
        assert [answer["rule"] for answer in answers] == [
            "duplicate",
            "already_pending",
            "ungrounded",
            "ungrounded",
            "already_pending",
        ]
        assert answers[0]["conflicting_memory_id"].startswith("mem_")
    assert [answer["rule"] for answer in checked(rows, tmp_path)] == [
        "ungrounded",
        "ungrounded",
        "ungrounded",
        "ungrounded",
        "already_pending",
    ]


def post(address: str, token: str, body: Mapping[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    answer: dict[str, Any] = httpx.post(
        f"{address}/v1/claims", json=body, headers=headers, trust_env=False
    ).json()
    return answer


def test_the_policy_file_decides(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('trusted_sources = ["adr"]\n')
    row = claim("Tea is at four", source="user")
    (usual,), (mine,) = checked([row], tmp_path), checked([row], tmp_path, "--policy", "mine.toml")
    assert (usual["rule"], mine["rule"]) == ("trusted_source", "ungrounded")
    assert usual["policy_digest"] != mine["policy_digest"]
    shown = cli("policy", "show", "--policy", "mine.toml", cwd=tmp_path)
    assert json.loads(shown.stdout)["digest"] == mine["policy_digest"]


def test_what_cannot_be_looked_up_goes_to_review(tmp_path: Path) -> None:
    rows = [claim("Per ADR-003 we use a queue."), claim("It follows RFC 9110.")]
    for options in ((), ("--offline",)):
        assert [answer["rule"] for answer in checked(rows, tmp_path, *options)] == [
            "citation_unknown",
            "citation_unknown",
        ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--repo", "."), "--repo"),
        (("--policy", "none.toml"), "none.toml"),
        (("--database-url", "mysql://host/db"), "postgresql://"),
        (("none.jsonl",), "none.jsonl"),
        (("没有.jsonl",), "没有.jsonl"),
    ],
)
def test_what_stops_it_is_one_line(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    assert says in complaint(cli("check", *arguments, stdin=lines([claim("x")]), cwd=tmp_path))


def test_a_claim_is_a_text_a_line_a_file_or_standard_input(
    tmp_path: Path, repository: TestRepository
) -> None:
    text = "We use a queue, see ADR-003."
    (tmp_path / "my claims.jsonl").write_text(lines([{"content": text}]))
    line, read = lines([{"content": text}]), ("--repo", repository.path)
    for given, stdin in ((text, ""), (line, ""), ("my claims.jsonl", ""), ("-", line)):
        done = cli("check", given, *read, stdin=stdin, cwd=tmp_path)
        (answer,) = json_lines(done.stdout)
        claim = answer["evidence"]["claim"]
        assert (claim["content"], claim["memory_type"], claim["source"]) == (text, "fact", "ai_synthesis"), (
            given
        )
        assert (done.returncode, answer["rule"]) == (0, "stated")


def test_a_claim_in_a_script_without_spaces_is_a_text(tmp_path: Path) -> None:
    for text in ("我们使用PostgreSQL", "注文はPostgreSQLに保存される。"):
        (answer,) = json_lines(cli("check", text, cwd=tmp_path).stdout)
        assert answer["evidence"]["claim"]["content"] == text


def test_a_corpus_is_named_and_made_official_on_the_command_line(tmp_path: Path) -> None:
    claim = "Employees have 27 days of leave per year."
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/leave.md").write_text(f"# Leave\n\n{claim}\n")
    asked = ("check", "--offline", "--corpus", f"handbook={tmp_path}/pages")
    rules = []
    for official in ((), ("--official", "corpus:handbook")):
        done = cli(*asked, *official, cwd=tmp_path, stdin=lines([{"content": claim}]))
        (answer,) = json_lines(done.stdout)
        rules.append(answer["rule"])
    assert rules == ["ungrounded", "corroborated"]


def test_it_answers_line_by_line_and_ends_on_interrupt(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "check"],
        cwd=tmp_path,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(lines([claim("It holds, see ADR-1")]).encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["rule"] == "citation_unknown"
        process.send_signal(2)
        assert process.wait(120) == 130
        assert process.stderr.read() == b""


def test_verify_tells_each_citation_apart(tmp_path: Path, repository: TestRepository) -> None:
    head = repository.git("rev-parse", "HEAD")
    done = cli(
        "verify",
        "--json",
        "adr 3",
        "ADR-2",
        "ADR-99",
        head[:8],
        "RFC 9110",
        "--offline",
        "--repo",
        repository.path,
        cwd=tmp_path,
    )
    found = {row["citation"]["value"]: row["verdict"] for row in json_lines(done.stdout)}
    assert found == {
        "adr 3": "in force",
        "ADR-2": "superseded",
        "ADR-99": "missing",
        head[:8]: "in force",
        "RFC 9110": "UNKNOWN",
    }
    assert done.returncode == 1


def test_verify_is_content_only_when_everything_is_in_force(
    tmp_path: Path, repository: TestRepository
) -> None:
    good = cli("verify", "ADR-3", cwd=repository.path / "docs")  # the work tree around it
    assert good.returncode == 0
    assert "in force" in good.stdout.decode()
    for citation, says in (("ADR-2", "ADR-003"), ("CVE-2024-3094", "nothing else is asked here")):
        arguments = ("verify", "ADR-3", citation, "--offline", "--repo", repository.path)
        done = cli(*arguments, cwd=tmp_path, env={"COLUMNS": "200"})
        assert done.returncode == 1
        assert says in done.stdout.decode()
    assert cli("verify", "ADR-3", cwd=tmp_path).returncode == 1  # nothing to look in


def test_verify_takes_a_text_a_file_or_standard_input(tmp_path: Path, repository: TestRepository) -> None:
    text = "Queues, see ADR-003; the table of ADR-002 is gone, as ADR-003 says."
    (tmp_path / "notes.md").write_text(text)
    read = ("--json", "--offline", "--repo", repository.path)
    for given, stdin in ((text, ""), ("notes.md", ""), ("-", text)):
        done = cli("verify", given, *read, stdin=stdin, cwd=tmp_path)
        found = [(row["citation"]["value"], row["verdict"]) for row in json_lines(done.stdout)]
        assert found == [("ADR-003", "in force"), ("ADR-002", "superseded")], given
        assert done.returncode == 1
    for given, sent in (("Queues are long.", b""), ("-", b""), ("-", b"\xed\xa0\x80")):
        assert "cites nothing" in complaint(cli("verify", given, *read, stdin=sent, cwd=tmp_path), status=2)
    large = complaint(cli("verify", "-", *read, stdin="ADR-003 " * 200_000, cwd=tmp_path), status=2)
    assert "over 1,000,000 bytes" in large
    assert "more than 500 citations" in complaint(
        cli("verify", "-", *read, stdin=" ".join(f"ADR-{n}" for n in range(1, 600)), cwd=tmp_path), status=2
    )


def test_verify_says_what_is_no_citation_and_what_is_no_repository(tmp_path: Path) -> None:
    said = complaint(cli("verify", "./notes.md", cwd=tmp_path), status=2)
    assert "there is no file ./notes.md, and './notes.md' is not one citation" in said
    assert "--repo" in complaint(cli("verify", "ADR-3", "--repo", "nowhere", cwd=tmp_path))
