"""`serve`, `token`, `review`, `log`, `db`, `replay` as programs, over one real database."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.cli_program import (
    TOKEN,
    Serving,
    clean_environment,
    cli,
    complaint,
    json_lines,
    serving,
)
from tests.running.patience import until
from tests.running.processes import Program
from vouchgate.settings import DATABASE, EARLIER_DATABASE

# 25 different words, so that two which differ in one of them are 24/26 alike, over the threshold.
LONG = (
    "the report job reads forty tables in order and writes one file for each of them to shelf two"
    " at {} sharp every day"
)


@dataclass(frozen=True)
class Desk:
    """A folder with a database in which three claims were decided, and the tokens of a first start."""

    folder: Path
    agent: str
    reviewer: str

    def review(self, *arguments: str) -> Any:
        return cli("review", *arguments, cwd=self.folder, env={"VOUCHGATE_TOKEN": self.reviewer})

    def waiting(self) -> list[dict[str, Any]]:
        return json_lines(self.review("list", "--json").stdout)


def submit(service: Serving, token: str, content: str, **more: Any) -> httpx.Response:
    body = {"content": content, "memory_type": "fact", "source": "ai_synthesis", **more}
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{service.address}/v1/claims", json=body, headers=headers, trust_env=False)


LINK = r"http://\S+/review/sign-in/[\w-]{43}"


def signs_in(link: str) -> bool:
    """Opens the link, presses its button, and says whether somebody is signed in then."""
    with httpx.Client(trust_env=False) as browser:
        page = browser.get(link)
        csrf = re.search(r'name="csrf" value="(\w+)"', page.text)
        assert csrf is not None
        browser.post(link, data={"csrf": csrf[1]})
        return browser.get(httpx.URL(link).join("/review")).status_code == 200


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("desk")
    with serving(cwd=folder) as service:
        agent, user, reviewer = dict.fromkeys(TOKEN.findall(service.first_start()))
        assert submit(service, user, LONG.format("05:30"), source="user").status_code == 201
        assert submit(service, user, LONG.format("06:30"), source="user").status_code == 202
        assert submit(service, agent, "The hall is cold").status_code == 202
        assert submit(service, agent, "I think the hall is cold").status_code == 422
        assert service.stop() == (0, "")
    return Desk(folder, agent, reviewer)


@pytest.fixture
def desk(decided: Desk, tmp_path: Path) -> Iterator[Desk]:
    """A copy that a test may change."""
    shutil.copytree(decided.folder, tmp_path / "copy")
    yield Desk(tmp_path / "copy", decided.agent, decided.reviewer)


def sends_what_is_shown(shown: str) -> httpx.Response:
    """Sends the request that a first start shows as a line of curl."""
    line = re.search("curl .*", shown.replace("\r", "").replace("\\\n", ""))
    assert line is not None
    _, address, *options = shlex.split(line[0])
    assert options[::2] == ["-H", "-H", "-d"]
    headers = dict(header.split(": ") for header in options[1:5:2])
    return httpx.post(address, headers=headers, content=options[5], trust_env=False)


def test_a_first_start_in_a_terminal_shows_tokens_there_and_a_request_that_is_stored(tmp_path: Path) -> None:
    master, slave = os.openpty()
    theirs, ours = os.pipe()
    with os.fdopen(theirs, encoding="utf-8") as output, Path(os.devnull).open() as nothing:
        program = Program(
            ["serve", "--port", "0"],
            directory=tmp_path,
            environment=clean_environment(),
            streams=(nothing, ours, slave),
        )
        os.close(ours)
        os.close(slave)
        try:
            first = output.readline()
            shown = ""
            while "/docs" not in shown:
                shown += os.read(master, 10_000).decode()
            assert first.startswith("listening on http://"), first
            assert len(set(TOKEN.findall(shown))) == 3
            answer = sends_what_is_shown(shown)
            assert (answer.status_code, answer.json()["outcome"]) == (201, "stored")
            assert [file.name for file in tmp_path.iterdir() if file.suffix == ".txt"] == []
        finally:
            program.kill()
            program.wait(120)
            os.close(master)


def test_a_first_start_without_a_terminal_leaves_them_in_a_file_of_its_operator_alone(tmp_path: Path) -> None:
    with serving(cwd=tmp_path) as service:
        (file,) = tmp_path.glob("vouchgate-first-start-*.txt")
        assert str(file) in service.printed
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        shown = service.first_start()
        assert len(set(TOKEN.findall(shown))) == 3
        assert f"{service.address}/docs" in shown
        answer = sends_what_is_shown(shown)
        assert (answer.status_code, answer.json()["outcome"]) == (201, "stored")
        (link,) = re.findall(LINK, shown)
        assert link.startswith(f"{service.address}/")
        assert signs_in(link)
        assert not signs_in(link)
        assert httpx.get(f"{service.address}/healthz", trust_env=False).status_code == 200
        status, said = service.stop(signal.SIGINT)
        assert (status, said) == (0, "")
        for secret in (link, *TOKEN.findall(shown)):
            assert secret not in service.printed
    assert (tmp_path / "vouchgate.db").exists()
    with serving(cwd=tmp_path) as service:
        assert service.printed == f"listening on {service.address}\n"


def test_a_first_start_that_is_told_to_stop_meanwhile_leaves_all_of_its_tokens(
    tmp_path: Path, migrated_file: Path
) -> None:
    with closing(sqlite3.connect(shutil.copyfile(migrated_file, tmp_path / DATABASE))) as database:
        database.executescript(  # a token takes a while
            "CREATE VIEW many AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) "
            "SELECT i FROM n; CREATE TRIGGER slow BEFORE INSERT ON token BEGIN SELECT count(*) FROM many; END;"
        )
    with Path(os.devnull).open("w") as nothing:
        program = Program(
            ["serve", "--port", "0"],
            directory=tmp_path,
            environment=clean_environment(),
            streams=(nothing, nothing, nothing),
        )
        try:
            (file,) = until(lambda: [*tmp_path.glob("vouchgate-first-start-*")])
            program.send_signal(signal.SIGTERM)
            program.wait(120)
        finally:
            program.kill()
    assert len(set(TOKEN.findall(file.read_text()))) == 3


def test_a_first_start_that_cannot_make_all_tokens_says_what_to_do(
    tmp_path: Path, migrated_file: Path
) -> None:
    """As on a disk that becomes full: of those that were made nobody has the text, and a later start makes none."""
    file = shutil.copyfile(migrated_file, tmp_path / "gate.db")
    with closing(sqlite3.connect(file)) as database:
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON token WHEN NEW.role = 'reviewer' "
            "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
        database.commit()
    done = cli("serve", "--port", "0", "--database-url", f"sqlite:///{file}", cwd=tmp_path)
    assert done.returncode == 1
    said = done.stderr.decode().splitlines()[-1]
    assert said.startswith("vouchgate: the first tokens could not all be made: ")
    assert "the disk is full" in said
    assert "vouchgate token create, for an agent and for a reviewer" in said
    assert list(tmp_path.glob("vouchgate-first-start-*")) == []


@pytest.mark.parametrize(
    "arguments", [("serve", "--port", "0"), ("token", "list"), ("db", "upgrade"), ("index", "status")]
)
def test_a_database_by_its_earlier_name_stops_every_command_that_would_make_another(
    arguments: tuple[str, ...], desk: Desk
) -> None:
    (desk.folder / DATABASE).rename(desk.folder / EARLIER_DATABASE)
    said = complaint(cli(*arguments, cwd=desk.folder), 2)
    assert EARLIER_DATABASE in said
    assert f"rename it to {DATABASE}" in said
    assert not (desk.folder / DATABASE).exists()
    named = cli("token", "list", "--database-url", f"sqlite:///{EARLIER_DATABASE}", cwd=desk.folder)
    assert named.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--repo", "."), "is not a git repository"),
        (("--database-url", "sqlite:///no/such/folder/x.db"), "cannot open the database"),
        (("--database-url", "oracle://x"), "postgresql://"),
        (("--policy", "none.toml"), "none.toml"),
        (("--host", "203.0.113.7"), "cannot listen on 203.0.113.7"),
        (("--database-url", f"sqlite:///{'x' * 300}"), f"{'x' * 300}.log-key: File name too long"),
    ],
)
def test_what_stops_the_start_is_one_line(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    assert says in complaint(cli("serve", "--port", "0", *arguments, cwd=tmp_path))


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = complaint(cli("serve", "--port", port, cwd=tmp_path))
    assert f"port {port}" in said
    assert "--port 0" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [("serve",), ("token", "list"), ("check",), ("log", "verify"), ("policy", "show")]
)
def test_an_unknown_setting_stops_every_command_with_its_name(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    said = complaint(cli(*arguments, cwd=tmp_path, env={"VOUCHGATE_DATABSE_URL": "x"}))
    assert "VOUCHGATE_DATABSE_URL" in said
    (tmp_path / "vouchgate.toml").write_text("colour = 1\n")
    assert "COLOUR" in complaint(cli(*arguments, cwd=tmp_path))


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "vouchgate.db").write_text("Dear diary, " * 200)
    assert "not a database" in complaint(cli("token", "list", cwd=tmp_path))


def test_a_damaged_database_is_one_line(desk: Desk) -> None:
    change(desk, "ALTER TABLE log_entry RENAME COLUMN digest TO sum")
    assert "no such column" in complaint(cli("log", "verify", cwd=desk.folder))


def test_no_command_makes_an_empty_database_where_a_name_was_mistyped(tmp_path: Path) -> None:
    """Those that are meant to make one are `serve`, `demo`, `restore` and `db upgrade`."""
    (tmp_path / "gate.db").touch()
    (tmp_path / "old.jsonl").write_text('{"content": "x"}\n')
    mistyped, empty = ("--database-url", "sqlite:///gaet.db"), ("--database-url", "sqlite:///gate.db")
    commands = (
        *(("token", "list"), ("token", "create", "--role", "agent", "--owner", "me"), ("person", "list")),
        *(
            ("delivery", "list"),
            ("webhook", "list"),
            ("review", "list"),
            ("numbers",),
            ("log", "verify"),
            ("expire",),
        ),
        *(("index", each) for each in ("status", "build", "verify", "repair")),
        *(
            ("db", "doctor", "--distributed"),
            ("db", "partition", "--into", "2"),
            ("db", "scrub"),
            ("replay", "--all"),
        ),
        *(("check", "We use Redis"), ("import", "old.jsonl", "--owner", "me")),
    )
    for command in commands:
        said = complaint(cli(*command, *mistyped, cwd=tmp_path, env={"VOUCHGATE_TOKEN": "vg_x"}), 2)
        assert "there is no database at gaet.db (in its folder: gate.db)" in said, command
        assert "--database-url" in said
    assert "could not be copied" in complaint(cli("backup", "a.backup", *mistyped, cwd=tmp_path))
    said = complaint(cli("token", "list", *empty, cwd=tmp_path), 2)
    assert "holds no tables of vouchgate" in said
    assert "vouchgate db upgrade" in said
    assert {each.name for each in tmp_path.iterdir()} <= {
        "gate.db",
        "gate.db-wal",
        "gate.db-shm",
        "old.jsonl",
    }
    assert cli("db", "upgrade", *mistyped, cwd=tmp_path).returncode == 0
    assert cli("token", "list", *mistyped, cwd=tmp_path).returncode == 0


def test_a_new_token_is_alone_on_standard_output(tmp_path: Path) -> None:
    assert cli("db", "upgrade", cwd=tmp_path).returncode == 0
    done = cli(
        "token",
        "create",
        "--role",
        "auditor",
        "--any-owner",
        "--expires",
        "2w",
        "--name",
        "eve",
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert TOKEN.fullmatch(done.stdout.decode().removesuffix("\n"))
    (listed,) = json_lines(cli("token", "list", "--json", cwd=tmp_path).stdout)
    assert (listed["role"], listed["name"], listed["any_owner"]) == ("auditor", "eve", True)
    assert listed["expires_at"] is not None
    assert done.stdout.decode().split("_")[1] == listed["id"]
    assert done.stdout.decode().strip() not in cli("token", "list", cwd=tmp_path).stdout.decode()


def test_a_link_is_alone_on_standard_output(desk: Desk) -> None:
    token_id = desk.reviewer.split("_")[1]
    done = cli("token", "link", token_id, cwd=desk.folder)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)
    assert re.fullmatch(r"http://127\.0\.0\.1:8080/review/sign-in/[\w-]{43}\n", done.stdout.decode())
    assert "acts as this token" in done.stderr.decode()
    assert "signs in once" in done.stderr.decode() and "VOUCHGATE_PUBLIC_URL" in done.stderr.decode()
    public = {"VOUCHGATE_PUBLIC_URL": "https://gate.example.org/", "VOUCHGATE_PORT": "9"}
    named = cli("token", "link", token_id, "--expires", "7d", cwd=desk.folder, env=public)
    assert named.stdout.startswith(b"https://gate.example.org/review/sign-in/")
    assert "VOUCHGATE_PUBLIC_URL" not in named.stderr.decode()


def test_a_printed_link_signs_in_to_the_running_service(desk: Desk) -> None:
    with serving(cwd=desk.folder) as service:
        made = cli(
            "token", "link", desk.reviewer.split("_")[1], "--public-url", service.address, cwd=desk.folder
        )
        assert signs_in(made.stdout.decode().strip())


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("{agent}",), 1, "of role agent; only reviewers and auditors"),
        (("nobody",), 1, "There is no token 'nobody'"),
        (("{reviewer}", "--expires", "soon"), 2, "90d"),
        (("{reviewer}", "--expires", "8d"), 2, "7 days at most"),
        (("{reviewer}", "--public-url", "https://gate.example.org/review"), 1, "VOUCHGATE_PUBLIC_URL"),
    ],
)
def test_a_link_for_nobody_is_not_made(
    desk: Desk, arguments: tuple[str, ...], status: int, says: str
) -> None:
    ids = {"agent": desk.agent.split("_")[1], "reviewer": desk.reviewer.split("_")[1]}
    done = cli("token", "link", *(each.format(**ids) for each in arguments), cwd=desk.folder)
    assert says in complaint(done, status=status)
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--role"),
        (("--role", "boss", "--owner", "me"), "agent, recorder, reviewer, auditor, admin"),
        (("--role", "agent", "--owner", "me", "--source", "blog"), "user, documentation, adr"),
        (("--role", "agent", "--owner", "me", "--expires", "soon"), "90d"),
        (("--role", "reviewer"), "for owners by name"),
        (("--role", "reviewer", "--any-owner"), "for owners by name"),
        (("--role", "agent", "--owner", "me", "--new-owners"), "may name new ones"),
        (("--role", "agent"), "needs at least one owner to act for (--owner), or any (--any-owner)"),
    ],
)
def test_a_grant_that_makes_no_sense_is_a_usage_error(
    arguments: tuple[str, ...], says: str, upgraded: Path
) -> None:
    done = cli("token", "create", *arguments, cwd=upgraded)
    assert says in complaint(done, status=2)
    assert done.stdout == b""


def test_a_revoked_token_opens_nothing(desk: Desk) -> None:
    token_id = desk.reviewer.split("_")[1]
    assert desk.review("list").returncode == 0
    assert cli("token", "revoke", token_id, cwd=desk.folder).returncode == 0
    assert "revoked" in complaint(desk.review("list"))
    assert "no token 'nobody'" in complaint(cli("token", "revoke", "nobody", cwd=desk.folder))
    assert "revoked" in cli("token", "list", cwd=desk.folder).stdout.decode()


def test_the_queue_opens_to_its_reviewer_alone(desk: Desk) -> None:
    assert "VOUCHGATE_TOKEN" in complaint(cli("review", "list", cwd=desk.folder))
    assert "agent" in complaint(cli("review", "list", "--token", desk.agent, cwd=desk.folder))
    assert "not known" in complaint(cli("review", "list", "--token", "vg_x", cwd=desk.folder))
    item = desk.waiting()[0]["id"]
    other = (
        cli("token", "create", "--role", "reviewer", "--owner", "you", cwd=desk.folder)
        .stdout.decode()
        .strip()
    )
    for act in (
        ("show", item),
        ("approve", item, "--latest"),
        ("reject", item, "--latest", "--reason", "no"),
        ("undo", item, "--latest"),
    ):
        foreign = complaint(cli("review", *act, "--token", other, cwd=desk.folder))
        unknown = complaint(cli("review", act[0], "nothing", *act[2:], "--token", other, cwd=desk.folder))
        assert foreign.replace(item, "nothing") == unknown
    assert len(desk.waiting()) == 2


def test_list_and_show_say_why_an_item_waits(desk: Desk) -> None:
    conflict, plain = desk.waiting()
    listed = desk.review("list").stdout.decode()
    assert conflict["id"] in listed and plain["id"] in listed
    assert "The hall is cold" in listed
    shown = desk.review("show", conflict["id"]).stdout.decode()
    assert LONG.format("05:30") in shown and LONG.format("06:30") in shown
    assert "--supersede" in shown
    document = json.loads(desk.review("show", plain["id"], "--json").stdout)
    assert document["item"] == plain
    assert document["decision"]["decision_id"] == plain["decision_id"]


def test_the_digest_is_a_mail_for_the_owner_alone(desk: Desk) -> None:
    done = desk.review("digest", "--public-url", "https://gate.example.org")
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert re.match(r"2 claims wait for you\. The oldest has waited \d+ minutes?\.\n", text)
    assert "1 stored, 1 blocked, 2 queued." in text
    assert "Conflict, waits" in text and "“The hall is cold”" in text
    assert text.endswith("Clear the queue: https://gate.example.org/review\n")
    document = json.loads(desk.review("digest", "--json", "--hours", "1").stdout)
    assert [one["id"] for one in document["first"]] == [one["id"] for one in desk.waiting()]
    assert (document["owner_id"], document["hours"], document["page"]) == ("me", 1, None)
    other = cli("token", "create", "--role", "reviewer", "--owner", "you", cwd=desk.folder).stdout
    empty = cli("review", "digest", "--token", other.decode().strip(), cwd=desk.folder)
    assert (empty.returncode, empty.stdout) == (0, b"Nothing waits for you: the queue is clear.\n")
    assert "agent" in complaint(cli("review", "digest", "--token", desk.agent, cwd=desk.folder))
    assert "--hours" in complaint(desk.review("digest", "--hours", "0"), status=2)


def test_an_act_names_the_version_it_saw(desk: Desk) -> None:
    item = desk.waiting()[1]["id"]
    assert "--latest" in complaint(desk.review("approve", item), status=2)
    assert "version 1 now" in complaint(desk.review("approve", item, "--version", "2"))
    assert "version 1 now" in complaint(desk.review("reject", item, "--version", "3", "--reason", "no"))
    approved = desk.review("approve", item, "--version", "1", "--note", "I felt it")
    assert approved.returncode == 0
    assert "stored as mem_" in approved.stdout.decode()
    assert "it is approved" in complaint(desk.review("reject", item, "--latest", "--reason", "no"))
    (gone,) = json_lines(desk.review("list", "--status", "approved", "--json").stdout)
    assert (gone["id"], gone["note"], gone["version"]) == (item, "I felt it", 2)


def test_a_decision_is_taken_back(desk: Desk) -> None:
    conflict, plain = (item["id"] for item in desk.waiting())
    assert "(waiting)" in complaint(desk.review("undo", plain, "--latest"))
    assert "--latest" in complaint(desk.review("undo", plain), status=2)
    assert desk.review("approve", conflict, "--latest", "--supersede").returncode == 0
    assert "undo      can be taken back until" in desk.review("show", conflict).stdout.decode()
    assert "version 2 now" in complaint(desk.review("undo", conflict, "--version", "1"))
    undone = desk.review("undo", conflict, "--version", "2").stdout.decode()
    assert "waits again, in version 3. mem_" in undone
    assert "is retracted. mem_" in undone and "is in force again." in undone
    assert [item["id"] for item in desk.waiting()] == [conflict, plain]
    assert cli("log", "verify", cwd=desk.folder).returncode == 0


def test_the_list_has_an_order_and_reasons(desk: Desk) -> None:
    conflict, plain = (item["id"] for item in desk.waiting())
    for options, expected in (
        (("--order", "oldest"), [conflict, plain]),
        (("--order", "newest"), [plain, conflict]),
        (("--reason", "conflict"), [conflict]),
        (("--reason", "ungrounded"), [plain]),
        (("--reason", "hedge"), []),
    ):
        listed = json_lines(desk.review("list", "--json", *options).stdout)
        assert [item["id"] for item in listed] == expected
    assert "ungrounded" in complaint(desk.review("list", "--reason", "taste"), status=2)
    assert "oldest" in complaint(desk.review("list", "--order", "best"), status=2)
    shown = desk.review("show", conflict).stdout.decode()
    assert "order     conflicts with a stored memory: counts as 14 days of waiting; waits" in shown


def test_a_conflict_is_approved_only_when_said_what_becomes_of_the_other(desk: Desk) -> None:
    item = desk.waiting()[0]["id"]
    assert "--supersede" in complaint(desk.review("approve", item, "--latest"))
    done = desk.review("approve", item, "--latest", "--supersede")
    assert done.returncode == 0, done.stderr
    assert "It replaces mem_" in done.stdout.decode()


def test_a_rejection_needs_a_reason_and_keeps_it(desk: Desk) -> None:
    item = desk.waiting()[1]["id"]
    assert "--reason" in complaint(desk.review("reject", item, "--latest"), status=2)
    complaint(desk.review("reject", item, "--latest", "--reason", "  "))
    assert desk.review("reject", item, "--version", "1", "--reason", "it was warm").returncode == 0
    assert "it was warm" in desk.review("show", item).stdout.decode()
    assert len(desk.waiting()) == 1


def test_the_log_is_unbroken_until_somebody_changes_it(desk: Desk) -> None:
    assert cli("log", "verify", cwd=desk.folder).returncode == 0
    change(desk, "UPDATE log_entry SET actor = 'nobody' WHERE action = 'claim.stored'")
    broken = cli("log", "verify", cwd=desk.folder)
    complaint(broken)
    assert broken.stdout


def test_every_decision_can_be_made_again(desk: Desk) -> None:
    done = cli("replay", "--all", cwd=desk.folder)
    assert done.returncode == 0, done.stdout
    assert "4 decisions: 4 the same" in done.stdout.decode()


def test_a_decision_that_was_changed_is_found(desk: Desk) -> None:
    change(desk, 'UPDATE decision SET answer = replace(answer, \'"rule":"ungrounded"\', \'"rule":8\')')
    item = desk.waiting()[1]
    done = cli("replay", item["decision_id"], cwd=desk.folder)
    assert done.returncode == 1
    assert f"{item['decision_id']}: rule: was citation_verified, is now ungrounded" in done.stdout.decode()
    assert cli("replay", "--all", cwd=desk.folder).returncode == 1


def test_replay_wants_to_know_what(desk: Desk) -> None:
    complaint(cli("replay", cwd=desk.folder), status=2)
    done = cli("replay", "nothing", cwd=desk.folder)
    assert done.returncode == 1
    assert "no such decision" in done.stdout.decode()


def change(desk: Desk, statement: str) -> None:
    """What somebody does who can write the file: the triggers that keep rows as they are go first."""
    with sqlite3.connect(desk.folder / "vouchgate.db") as connection:
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        assert connection.execute(statement).rowcount != 0
    connection.close()


def test_db_upgrade_makes_the_tables_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    assert "brought up to date" in cli("db", "upgrade", "--database-url", url, cwd=tmp_path).stdout.decode()
    again = cli("db", "upgrade", "--database-url", url, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, b"The database is up to date.\n")


def test_a_command_without_the_service_s_policy_leaves_its_index_alone(tmp_path: Path) -> None:
    (tmp_path / "loose.toml").write_text("duplicate_threshold = 0.75\n")
    with serving("--policy", "loose.toml", cwd=tmp_path) as service:
        token = TOKEN.findall(service.first_start())[0]
        assert submit(service, token, "tea is at four in the big hall").status_code == 202
        assert cli("token", "list", cwd=tmp_path).returncode == 0
        assert cli("log", "verify", cwd=tmp_path).returncode == 0
        assert cli("replay", "--all", cwd=tmp_path).returncode == 0
        near = submit(service, token, "tea is also at four in the big hall").json()
    assert near["rule"] == "already_pending"


def test_a_database_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in ("absent", "file"):
        said = complaint(cli("db", "upgrade", "--database-url", f"sqlite:///{folder}/g.db", cwd=tmp_path))
        assert "cannot open the database" in said


def test_a_rule_is_made_of_a_ruling_and_taken_back(desk: Desk) -> None:
    def say(*arguments: str) -> str:
        done = desk.review("standing", *arguments)
        assert (done.returncode, done.stderr) == (0, b""), done.stderr
        return str(done.stdout.decode())

    item = desk.waiting()[0]["id"]
    assert say() == "You have no standing rulings.\n"
    made_of = ("--item", item, "--reject", "--term", "agent")
    assert "Nothing was changed" in say(*made_of)
    rule = say(*made_of, "--name", "no more").splitlines()[-1].split()[0]
    assert rule in say()
    (told,) = json_lines(desk.review("standing", "--json").stdout)
    assert (told["ruling"]["verdict"], told["ruling"]["item_id"], told["did"]["open"]) == ("reject", item, 0)
    assert "names an agent" in complaint(
        desk.review("standing", "--item", item, "--store", "--term", "agent"), status=2
    )
    assert say("--end", rule, "--then", "queue").startswith("Taken back: 0 to the queue")
    assert "no standing ruling" in complaint(desk.review("standing", "--end", "ruling_1"))
    assert "could be made" in complaint(desk.review("standing", "--item", "rev_1", "--store"))
    for wrong in (("--item", item), ("--store",), ("--end", rule, "--then", "burn")):
        assert "--item" in complaint(desk.review("standing", *wrong), status=2)


def test_a_publisher_is_trusted_banned_and_taken_back(desk: Desk) -> None:
    def say(*arguments: str) -> str:
        done = desk.review("publisher", *arguments)
        assert (done.returncode, done.stderr) == (0, b"")
        return str(done.stdout.decode())

    assert say() == "You trust or ban no publisher.\n"
    assert say("Example.com", "--trust", "--days", "2").startswith("example.com is trusted until 2")
    assert say("example.com", "--ban").startswith("example.com is banned until 2")
    assert say().startswith("example.com is banned until 2")
    (said,) = json_lines(desk.review("publisher", "--json").stdout)
    assert (said["publisher"], said["trust"], said["owner_id"]) == ("example.com", "banned", "me")
    assert "Taken back" in say("example.com", "--clear")
    assert "nothing is said" in complaint(desk.review("publisher", "example.com", "--clear"))
    assert "example.com" in complaint(desk.review("publisher", "docs.example.com", "--ban"), status=2)
    assert "--owner" in complaint(desk.review("publisher", "example.com", "--ban", "--owner", "you"))
    for wrong in (("example.com",), ("--ban",), ("example.com", "--ban", "--trust")):
        assert "--trust" in complaint(desk.review("publisher", *wrong), status=2)
    agent = cli("review", "publisher", "example.com", "--trust", "--token", desk.agent, cwd=desk.folder)
    assert "agent" in complaint(agent)
