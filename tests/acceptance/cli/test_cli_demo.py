"""`vouchgate demo`, and what every command has in common: help, version, usage errors."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest

from tests.acceptance.cli_program import PROGRAM, TOKEN, clean_environment, cli, complaint
from tests.running.processes import Program
from vouchgate.cli.demo.samples import SAMPLES

COMMANDS = [
    *(
        "serve",
        "demo",
        "check",
        "detect",
        "support",
        "verify",
        "replay",
        "token create",
        "token list",
        "token link",
        "token revoke",
    ),
    *("review list", "review show", "review approve", "review reject", "log verify", "db upgrade"),
    *("policy show", "index status", "index build", "index verify", "index repair", "expire"),
]


COLOUR = re.compile(r"\x1b\[[\d;]*3[1-3]m")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("demo")
    done = cli("demo", "--once", cwd=folder, env={"TMPDIR": str(folder), "COLUMNS": "300"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(folder.iterdir()) == []  # nothing is left behind
    return done.stdout.decode()


def test_every_sample_is_in_the_table_with_its_outcome(shown: str) -> None:
    outcomes = re.findall(r"^(stored|queued|blocked) ", shown, re.MULTILINE)
    assert len(outcomes) == len(SAMPLES) == 28
    assert (outcomes.count("stored"), outcomes.count("queued"), outcomes.count("blocked")) == (8, 15, 5)
    assert "8 stored, 15 queued, 5 blocked; 28 claims, median" in shown


@pytest.mark.parametrize(
    "words",
    [
        "[ADR-003]",
        "[ADR-042]",
        "[ADR-002]",
        "[refunds need no approval.]",
        "[parcels are tracked by polling.]",
        "[06:30]",
        "[I think]",
        "[I th\u0456nk]",
        "[Maybe we could]",
        "[may]",
    ],
)
def test_the_words_that_decided_stand_out(words: str, shown: str) -> None:
    assert words in shown


@pytest.mark.parametrize(
    "reason",
    [
        "Stated by its source",
        "is not covered by what the claim cites",
        "weighed and did not choose",
        "From trusted source",
        "Decision stated in conversation",
        "Conflicts with existing memory",
        "Duplicate of existing memory",
        "No ADR-042 exists",
        "ADR-002 is not in force",
        "was reverted by",
        "Citation could not be checked yet",
        "does not exist (HTTP status 404)",
        "does not speak of what the claim says",
        "where the claim says",
        "Contains personal speculation",
        "Contains technical hedges",
        "Ungrounded assertion needs verification",
        "Already waiting for review",
    ],
)
def test_every_rule_is_seen(reason: str, shown: str) -> None:
    assert reason in shown


def test_a_pipe_gets_no_escape_codes_and_no_line_over_the_width(shown: str) -> None:
    is_plain(shown, 300)


def is_plain(text: str, width: int) -> None:
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width


def test_a_terminal_gets_styles(tmp_path: Path) -> None:
    theirs, ours = pty.openpty()
    with Path(os.devnull).open() as nothing, tempfile.TemporaryFile() as errors:
        program = Program(
            ["demo", "--once"],
            directory=tmp_path,
            environment=clean_environment({"COLUMNS": "100", "TERM": "xterm-256color"}),
            streams=(nothing, ours, errors),
        )
        os.close(ours)
        written = read_all(theirs)
        assert program.wait(120) == 0
        errors.seek(0)
        assert errors.read() == b""
    assert COLOUR.search(written)
    assert "\x1b[1" in written


def read_all(descriptor: int) -> str:
    pieces = []
    try:
        while piece := os.read(descriptor, 65_536):
            pieces.append(piece)
    except OSError:  # how Linux says that the other end of a terminal is closed
        pass
    os.close(descriptor)
    return b"".join(pieces).decode()


def test_it_keeps_serving_with_a_reviewer_s_token_until_it_is_stopped(tmp_path: Path) -> None:
    """In a terminal that shows no colours."""
    theirs, ours = pty.openpty()
    settings = {"COLUMNS": "80", "TERM": "xterm-256color", "NO_COLOR": "1"}
    with (
        subprocess.Popen(
            [*PROGRAM, "demo"],
            cwd=tmp_path,
            env=clean_environment(settings),
            stdout=ours,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        os.fdopen(theirs, newline="") as terminal,
    ):
        os.close(ours)
        try:
            printed = ""
            while "review show" not in printed:
                printed += terminal.readline()
            assert "\x1b[1" in printed
            assert not COLOUR.search(printed)
            printed = re.sub(r"\x1b\[[\d;]*m", "", printed).replace("\r\n", "\n")
            is_plain(printed.partition("Look further")[0], 80)
            address = re.search(r"http://127\.0\.0\.1:\d+", printed)
            token = TOKEN.search(printed)
            url = re.search(r"sqlite:///\S+", printed)
            assert address and token and url
            assert f"{address[0]}/review\n" in printed
            link = re.search(rf"{address[0]}/review/sign-in/[\w-]{{43}}\n", printed)
            assert link
            assert "Sign in with this link" in httpx.get(link[0].strip(), trust_env=False).text
            headers = {"Authorization": f"Bearer {token[0]}"}
            waiting = httpx.get(f"{address[0]}/v1/reviews", headers=headers, trust_env=False)
            assert waiting.status_code == 200
            listed = cli("review", "list", "--database-url", url[0], "--token", token[0], cwd=tmp_path)
            # The one about the carrier is promoted after half a minute, which a slow machine may take until here.
            assert listed.stdout.decode().count("rev_") in (13, 14)
        except BaseException:
            process.kill()  # or the end of this block waits for it
            raise
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")


def test_the_demo_s_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port}" in complaint(cli("demo", "--once", "--port", port, cwd=tmp_path))


def test_the_demo_without_git_says_so(tmp_path: Path) -> None:
    assert "git" in complaint(cli("demo", "--once", cwd=tmp_path, env={"PATH": str(tmp_path)}))


SAYS = {
    "token list": "There is no token yet.",
    "review list --token x": "this token is not known",
    "review digest --token x": "this token is not known",
    "log verify": "The log is unbroken.",
    "verify ADR-3": "No git repository",
    "webhook list": "There is no webhook.",
}
# In forks of one interpreter, which has loaded what every command is read out of, and the store that most of them open.
ALONE = """
import os, sys
import vouchgate.storage.store
from vouchgate.cli import app, main
for command in sys.argv[1:]:
    if not os.fork():
        sys.argv[1:] = command.split()
        os.dup2(1, 2)
        main()
    os.wait()
    print("---", flush=True)
"""


def test_a_command_loads_what_it_needs_by_itself(upgraded: Path) -> None:
    """The other tests start the other commands in a process that has loaded all of them."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *SAYS],
        cwd=upgraded,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    told = done.stdout.split("---\n")[:-1]
    assert [says in said for says, said in zip(SAYS.values(), told, strict=True)] == [True] * len(SAYS), told


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, tmp_path: Path) -> None:
    done = cli(*command.split(), "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    example = re.search(r"Example: (.*)", done.stdout.decode(), re.DOTALL)
    assert example
    assert f"vouchgate {command}" in " ".join(example[1].split())


def test_the_version_and_the_list_of_commands(tmp_path: Path) -> None:
    assert re.fullmatch(rb"vouchgate \d+\.\d+\.\d+\n", cli("--version", cwd=tmp_path).stdout)
    listed = cli("--help", cwd=tmp_path).stdout.decode()
    assert all(f"\n  {command.split()[0]} " in listed for command in COMMANDS)
    bare = cli(cwd=tmp_path)
    assert (bare.returncode, bare.stdout, bare.stderr.decode()) == (2, b"", listed)


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("serv",),  # it is asked what was meant
        ("token",),
        ("detect", "--fast"),
        ("serve", "--port", "x"),
        ("serve", "--port", "70000"),
        ("verify",),
    ],
)
def test_wrong_use_is_one_line_and_status_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    said = complaint(cli(*arguments, cwd=tmp_path), status=2)
    assert re.search(r"[^.?](\.|\?) Try: vouchgate( \w+)* --help\n", said), said
    assert "Input should" not in said  # what pydantic says of a number
