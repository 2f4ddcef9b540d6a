"""The hook before the memory files of coding agents: real calls of their harnesses, a served gate, real files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_program import clean_environment, cli, complaint
from tests.acceptance.site import Site, open_site
from tests.repos import TestRepository
from vouchgate.adapters.hook import run
from vouchgate.adapters.hook.harnesses import HARNESSES, Answer, Unsafe, changed
from vouchgate.adapters.hook.writes import Unreadable, added, after, writes_of
from vouchgate.ingest.claims.people import Role

RECORD = "# 1. Orders\n\nStatus: Accepted\n\n## Decision\n\nOrders are rows in PostgreSQL.\n"
VOUCHED = "Orders are rows in PostgreSQL, see ADR-1."
QUEUED = "The Porto warehouse keeps parcels for fourteen days."
BLOCKED = "I think the Faro branch may perhaps close in autumn."
BEFORE = (
    "# Notes\n\nThe mill delivers flour on Mondays\nand Thursdays.\n\n"
    "- Depot A opens at nine.\n- Depot B opens at ten.\n"
)


@dataclass
class Desk:
    """A project of an owner whose agent works in it, with the gate at `url`."""

    site: Site
    owner: str
    folder: Path
    environment: dict[str, str]

    def decide(self, tool: str, **given: Any) -> Answer:
        """The answer to one call."""
        call = {"tool_name": tool, "tool_input": given, "cwd": str(self.folder)}
        return run.decide(json.dumps(call).encode(), self.environment)

    def approve(self) -> None:
        """The owner's yes to all that waits."""
        reviewer = self.site.reviewer(self.owner)
        for item in reviewer.get("/v1/reviews").json()["items"]:
            answer = reviewer.post(f"/v1/reviews/{item['id']}/approve", json={"version": item["version"]})
            assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("hook")
    repository = TestRepository(folder / "repo")
    repository.commit("Orders", {"docs/adr/0001-orders.md": RECORD})
    shutil.copyfile(migrated_file, folder / "vouchgate.db")
    with open_site(f"sqlite:///{folder / 'vouchgate.db'}", repos=[repository.path]) as opened:
        yield opened


@pytest.fixture
def desk(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    owner = site.owner()
    token = site.token(Role.AGENT, owner)[1]
    monkeypatch.setenv("VOUCHGATE_URL", site.running.url)
    monkeypatch.setenv("VOUCHGATE_TOKEN", token)
    return Desk(site, owner, tmp_path, {"VOUCHGATE_URL": site.running.url})


def test_a_write_is_let_through_held_and_let_through_once_it_is_approved(desk: Desk) -> None:
    file = desk.folder / "CLAUDE.md"
    whole = f"# Notes\n\n- {VOUCHED}\n- {QUEUED}\n"
    assert desk.decide("Write", file_path="CLAUDE.md", content=f"# Notes\n\n- {VOUCHED}\n") == Answer()
    held = desk.decide("Write", file_path=str(file), content=whole)
    (waiting,) = desk.site.reviewer(desk.owner).get("/v1/reviews").json()["items"]
    place = f"{desk.site.running.url}/review"
    assert f"“{QUEUED}”: It waits for its owner" in held.agent
    assert f"{place}/items/{waiting['id']}" in held.agent
    assert VOUCHED not in held.agent  # stored before, and no news to the owner either
    assert "CLAUDE.md: 1 of 2 statements do not pass. 1 wait for their owner" in held.human
    assert place in held.human
    blocked = desk.decide("Edit", file_path="CLAUDE.md", old_string="", new_string=BLOCKED)
    assert "find out whether it is so" in blocked.agent
    assert "0 wait" in blocked.human
    desk.approve()
    assert desk.decide("Write", file_path=str(file), content=whole) == Answer()
    # What is alike is not what was approved.
    other = desk.decide("Write", file_path=str(file), content=f"{QUEUED[:-1]}!!\n")
    assert "the same is stored already" in other.agent
    file.write_text(whole)
    assert desk.decide("Write", file_path=str(file), content=f"{whole}\n---\n\n## Orders\n") == Answer()
    # A word that changes brings its sentence along, and what was said before does not excuse it.
    turned = desk.decide("Edit", file_path=str(file), old_string="fourteen", new_string="forty")
    assert "for forty days" in turned.agent
    file.unlink()


def test_what_is_memory_is_a_setting(desk: Desk) -> None:
    (desk.folder / "notes.txt").symlink_to("CLAUDE.md")
    (desk.folder / "sub").mkdir()
    for path in ("claude.md", "sub/../AGENTS.md", "memory-bank/a/b.md", "notes.txt", ".gemini/settings.json"):
        assert desk.decide("write_file", file_path=path, content=BLOCKED).agent, path
    for path in ("README.md", "src/claude.py"):
        assert desk.decide("write_file", file_path=path, content=BLOCKED) == Answer(), path
    desk.environment["VOUCHGATE_MEMORY_FILES"] = "notes/**/*.md, brain/"
    desk.environment["CLAUDE_PROJECT_DIR"] = str(desk.folder.parent)
    inner = f"../{desk.folder.name}"
    for path, asked in (
        ("notes/a/x.md", True),
        ("brain/y", True),
        ("CLAUDE.md", False),
        (f"{inner}/x.md", False),
    ):
        assert bool(desk.decide("Write", file_path=path, content=BLOCKED).agent) is asked, path
    del desk.environment["CLAUDE_PROJECT_DIR"]
    desk.environment["VOUCHGATE_MEMORY_FILES"] = "./NOTES.md, ./docs/"
    for path, asked in (("NOTES.md", True), ("docs/a.md", True), ("sub/NOTES.md", False)):
        assert bool(desk.decide("Write", file_path=path, content=BLOCKED).agent) is asked, path
    # Codex names no project: it is the repository around the call.
    (desk.folder / ".git").mkdir()
    desk.folder /= "sub"
    assert desk.decide("Write", file_path="../docs/a.md", content=BLOCKED).agent
    for wrong in ("~/notes/", "a//b", "./", "/home/me/NOTES.md"):
        desk.environment["VOUCHGATE_MEMORY_FILES"] = wrong
        with pytest.raises(ValueError, match="no pattern of paths"):
            desk.decide("Read", file_path="NOTES.md")


def test_no_agent_writes_the_settings_that_the_hook_stands_in(desk: Desk) -> None:
    """Whatever it takes out of them, wherever it is called from, and whichever files are memory."""
    (desk.folder / "sub").mkdir()
    for harness in HARNESSES.values():
        file = desk.folder / harness.project
        file.parent.mkdir()
        file.write_text("{}\n")
    desk.environment["VOUCHGATE_MEMORY_FILES"] = "NOTES.md"
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("Write", "", {"file_path": ".claude/settings.local.json", "content": ""}),
        ("Write", "sub", {"file_path": "../.GEMINI/settings.json", "content": "\n"}),
        ("Edit", "", {"file_path": "~/.claude/settings.json", "old_string": "{}", "new_string": ""}),
        (
            "apply_patch",
            "",
            {"command": "*** Begin Patch\n*** Delete File: .codex/hooks.json\n*** End Patch"},
        ),
        (
            "apply_patch",
            "sub",
            {"command": "*** Begin Patch\n*** Add File: ../.codex/config.toml\n*** End Patch"},
        ),
    )
    for tool, folder, given in calls:
        desk.folder = desk.folder / folder
        assert "in which its hook stands" in desk.decide(tool, **given).agent, given
        desk.folder = desk.folder.parent if folder else desk.folder
    with pytest.raises(Unreadable, match="a memory file"):
        desk.decide("mcp__disk__move_file", source=".codex", destination="away")


def test_every_call_that_cannot_be_decided_is_denied(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other is: what touches no memory goes on, whatever it is."""
    memory: dict[str, Any] = {"file_path": "CLAUDE.md"}
    edit, elsewhere = {"old_string": "", "new_string": BLOCKED}, patch("+x")["command"].replace("CLAUDE", "a")
    for tool, given, why in (
        ("Rewrite", {**memory, "text": "x"}, "no tool that is known"),
        ("mcp__disk__move_file", {"from": ["a"], "to": [{"path": "CLAUDE.md"}]}, "no tool that is known"),
        ("Write", memory, "it has no old_string"),
        ("Write", {**memory, "content": 3}, "not as a text"),
        ("MultiEdit", {**memory, "edits": ["x"]}, "it has no old_string"),
        ("Edit", {**memory, **edit, "content": ""}, "more than one kind"),
        ("Edit", {**memory, **edit, "edits": []}, "more than one kind"),
        ("mcp__fs__edit_file", {"path": "CLAUDE.md", "edits": [edit], "content": ""}, "more than one kind"),
        ("Write", {**memory, "content": BLOCKED, "input": elsewhere}, "more than one kind"),
        (
            "mcp__fs__patch",
            {"path": "CLAUDE.md", "text": BLOCKED, "input": elsewhere},
            "no tool that is known",
        ),
        (
            "apply_patch",
            {"command": "*** Begin Patch\n*** Update the file CLAUDE.md\n+x"},
            "no line says which",
        ),
        ("apply_patch", patch(" x", " *** Update File: a.md", "+y"), "may be one of the file"),
        ("apply_patch", {"patch": patch("+x")["command"]}, "no patch where one is known"),
        ("apply_patch", {"input": "*** Update File: CLAUDE.md\n@@\n+x"}, "no patch where one is known"),
        ("Edit", {**memory, "old_string": "absent", "new_string": "x"}, "does not stand in the file"),
        (
            "apply_patch",
            {"command": "*** Begin Patch\n*** Update File: a\n*** Move to: CLAUDE.md\n"},
            "moves a file",
        ),
        ("Write", {**memory, "content": "\n\n".join(f"Line {n} is new." for n in range(101))}, "at most 100"),
    ):
        with pytest.raises(Unreadable, match=why):
            desk.decide(tool, **given)
    for tool, given in (
        ("Read", memory),
        ("Bash", {"command": "echo x > ./CLAUDE.md"}),
        ("Rewrite", {"file_path": "src/main.py", "text": "x"}),
        ("Write", {"file_path": "src/main.py"}),
        ("mcp__disk__read_text_file", {"path": "CLAUDE.md"}),
        ("apply_patch", {"command": "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch"}),
        ("apply_patch", {"patch": elsewhere}),
        ("Edit", {**memory, "old_string": "absent", "new_string": "x", "file_path": "src/main.py"}),
    ):
        assert desk.decide(tool, **given) == Answer(), tool
    for sent in (
        b"",
        b"{",
        b"[]",
        b'{"tool_name": "Write"}',
        b"\xff",
        b"[" * 100_000,
        b'{"tool_name":1,"tool_input":{}}',
    ):
        with pytest.raises(Unreadable):
            run.decide(sent, {})
    with pytest.raises(Unreadable, match="bytes"):
        run.decide(b" " * (run.MOST_BYTES + 1), {})
    # A claim that the gate cannot take is held, and so is all when nobody may send it.
    assert "characters" in desk.decide("Write", **memory, content="word " * 2000).agent
    monkeypatch.setenv("VOUCHGATE_TOKEN", desk.site.token(Role.AUDITOR, desk.owner)[1])
    with pytest.raises(Exception, match="403"):
        desk.decide("Write", **memory, content=QUEUED)


def test_the_program_answers_each_harness_in_its_form(desk: Desk) -> None:
    """Run as the harness runs it; with the gate down, without a token, and with no answer in time, it denies."""
    call = {
        "tool_name": "Write",
        "tool_input": {"file_path": "GEMINI.md", "content": QUEUED},
        "cwd": str(desk.folder),
    }
    here = {
        "VOUCHGATE_URL": desk.site.running.url,
        "VOUCHGATE_TOKEN": desk.site.token(Role.AGENT, desk.owner)[1],
    }

    def asked(harness: str, environment: dict[str, str], sent: str = json.dumps(call)) -> dict[str, Any]:
        done = cli("hook", "run", harness, stdin=sent, cwd=desk.folder, env=environment)
        assert (done.returncode, done.stderr) == (0, b"")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    for harness in ("claude", "codex"):
        answer = asked(harness, here)
        inner = answer.pop("hookSpecificOutput")
        assert inner.pop("permissionDecisionReason").startswith(
            "Vouchgate holds back this write to GEMINI.md"
        )
        assert inner == {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
        assert set(answer) == {"systemMessage"}
    answer = asked("gemini", here)
    assert (answer["decision"], set(answer)) == ("deny", {"decision", "reason", "systemMessage"})
    assert "/review/items/" in answer["reason"]
    fact = {"tool_name": "save_memory", "tool_input": {"fact": BLOCKED}}
    assert "GEMINI.md" in asked("gemini", here, json.dumps(fact))["systemMessage"]
    reading = {"tool_name": "Read", "tool_input": {"file_path": "GEMINI.md"}}
    for harness in HARNESSES:
        assert asked(harness, {}, json.dumps(reading)) == {}
    down = {**here, "VOUCHGATE_URL": "http://127.0.0.1:9"}
    for environment, sent, why in (
        (down, json.dumps(call), "Nothing answers at the service's address"),
        ({}, json.dumps(call), "a token is needed"),
        (here, "{", "no JSON"),
    ):
        answer = asked("claude", environment, sent)
        assert why in answer["systemMessage"]
        assert why in answer["hookSpecificOutput"]["permissionDecisionReason"]
    assert "none of claude" in complaint(cli("hook", "run", "emacs", cwd=desk.folder), 2)


def test_no_answer_in_time_denies() -> None:
    """Whatever it waits for, here the call itself, the harness gets an answer and a status that it takes for one."""
    program = (
        "import sys\nfrom vouchgate.adapters.hook import run\nrun.PATIENCE = 0.1\nsys.exit(run.main('codex'))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as late:
        assert late.stdout is not None
        assert "no answer within" in json.loads(late.stdout.read())["systemMessage"]
        assert late.wait(60) == 0


def test_most_calls_load_little(tmp_path: Path) -> None:
    """It runs before every call of an agent: what asks no gate loads neither the client nor the commands."""
    program = (
        "import sys; sys.argv = ['vouchgate', 'hook', 'run', 'claude']\n"
        "from vouchgate.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, {'httpx', 'pydantic', 'typer', 'tomllib'} & set(sys.modules))\n"
    )
    for tool in ("Write", "Bash"):
        call = {"tool_name": tool, "tool_input": {"file_path": "main.py", "content": "x", "command": "ls"}}
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(call),
            capture_output=True,
            text=True,
            env=clean_environment(),
            cwd=tmp_path,
            check=True,
        )
        assert done.stdout == "{}\n0 set()\n"


def new(before: str, tool: str, given: dict[str, Any]) -> list[str]:
    """What a call adds to a file."""
    ((_, edits),) = writes_of(tool, {"file_path": "CLAUDE.md", **given})
    return added(before, after(before, edits))


def patch(*lines: str) -> dict[str, Any]:
    """A patch of Codex of one file."""
    return {
        "command": "\n".join(["*** Begin Patch", "*** Update File: CLAUDE.md", *lines, "*** End Patch", ""])
    }


def test_what_a_write_adds() -> None:
    edited = {"old_string": "nine", "new_string": "noon"}
    both = [{"oldText": "nine", "newText": "six"}, {"oldText": "- Depot B", "newText": "- Depot C"}]
    for tool, given, expected in (
        ("Write", {"content": BEFORE}, []),
        ("Write", {"content": BEFORE.replace("\n", "\r\n") + "\r\n\r\n"}, []),
        (
            "Write",
            {"content": "* Depot B opens at ten.\n\n> Be quick.\n\n***\n"},
            ["Depot B opens at ten.", "Be quick."],
        ),
        ("Edit", edited, ["Depot A opens at noon."]),
        ("Write", {"content": "1. Five > 3 - and so on * 2."}, ["Five > 3 - and so on * 2."]),
        ("replace", {**edited, "instruction": "x"}, ["Depot A opens at noon."]),
        ("mcp__fs__edit_file", {"edits": both}, ["Depot A opens at six.", "Depot C opens at ten."]),
        (
            "Edit",
            {"old_string": "and Thurs", "new_string": "and never\nSatur"},
            ["The mill delivers flour on Mondays and never Saturdays."],
        ),
        (
            "Edit",
            {"old_string": "opens", "new_string": "shuts", "replace_all": True},
            ["Depot A shuts at nine.", "Depot B shuts at ten."],
        ),
        (
            "Edit",
            {"old_string": "", "new_string": "## Old rules\n\n## Never test on a Friday\n"},
            ["Never test on a Friday"],
        ),
        ("Edit", {"old_string": "", "new_string": "\U000e0041\U000e0042"}, ["\U000e0041\U000e0042"]),
        (
            "Edit",
            {"old_string": "", "new_string": "```sh\nmake\n\nmake test"},
            ["```sh\nmake\n\nmake test\n\n"],
        ),
        (
            "Edit",
            {"old_string": "", "new_string": "~~~\nx\n~~~\n| a | b |\n|---|---|\n| 1 | 2 |"},
            ["~~~\nx\n~~~", "| a | b |", "| 1 | 2 |"],
        ),
        (
            "apply_patch",
            patch("@@", " - Depot A opens at nine.", "-- Depot B opens at ten.", "+- Depot B is shut."),
            ["Depot B is shut."],
        ),
        ("apply_patch", patch("@@ Notes", "+We have no dogs.", "*** End of File"), ["We have no dogs."]),
        ("shell", patch("-- Depot A opens at nine."), []),
    ):
        assert new(BEFORE, tool, given) == expected, given
    # White space around a header is nothing to Codex, and there may be as much of it as one likes.
    whole: str = patch("@@", " - Depot A opens at nine.", "+- We have no dogs.")["command"]
    for sent in (
        whole.replace("\n", "\r\n"),
        whole.replace("CLAUDE.md", "CLAUDE.md\r"),
        whole.replace("CLAUDE.md", f"CLAUDE.md{' ' * 200_000}\u00a0\x0b"),
        whole.replace("*** Update", "\u00a0\t*** Update"),
        f"apply_patch <<'EOF'\r\n{whole}EOF\r\n",
    ):
        assert new(BEFORE, "shell", {"command": ["bash", "-lc", sent]}) == ["We have no dogs."], sent[:99]
        assert new(BEFORE, "apply_patch", {"command": "", "input": sent}) == ["We have no dogs."], sent[:99]
    many = "\n".join(f"# Word{'abcdefghi'[n]}" for n in range(9))
    assert len(new("", "Write", {"content": many})) == 9
    for wrong in (patch("+x", "y"), patch("- Depot A opens"), {"command": "*** Begin Patch\nx"}):
        with pytest.raises(Unreadable):
            new(BEFORE, "apply_patch", wrong)
    with pytest.raises(Unreadable, match="once"):
        new(BEFORE, "Edit", {"old_string": "opens", "new_string": "shuts"})
    # As Codex sends it to its shell: what follows the patch is the shell's, and what looks like its end is not.
    first = "  *** Add File: a b.md  \n+One.\n+*** End Patch\n+\n+Two.\n*** Delete File: c.md"
    one = f"*** Begin Patch\n{first}\n*** End Patch"
    two = "*** Begin Patch\n*** Add File: d.md\n+Three.\n*** End Patch"
    asked = {"command": f"apply_patch <<'EOF'\n{one}\nEOF\necho $HOME\n{two}\nEOF\n"}
    assert [(path, added("", after("", edits))) for path, edits in writes_of("Bash", asked)] == [
        ("a b.md", ["One. *** End Patch", "Two."]),
        ("c.md", []),
        ("d.md", ["Three."]),
    ]


OTHERS = {
    "env": {"A": "é"},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint hook run"}]}],
        "BeforeTool": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint hook run"}]}],
        "Stop": [],
    },
}


def test_the_settings_keep_what_stands_in_them() -> None:
    for harness in HARNESSES.values():
        for text in ("", "{}", json.dumps(OTHERS, indent=4, ensure_ascii=False)):
            there = changed(text, harness, "python -m vouchgate.cli hook run x || exit 2")
            assert there is not None
            assert changed(there, harness, "python -m vouchgate.cli hook run x || exit 2") == there
            hooks = json.loads(there)["hooks"][harness.event]
            assert hooks[-1] == {
                "hooks": [{**harness.handler, "command": "python -m vouchgate.cli hook run x || exit 2"}]
            }
            gone = changed(there, harness, None)
            assert gone == (text + "\n" if len(text) > 2 else None)
            moved = changed(there, harness, "/opt/python -m vouchgate.cli hook run x")
            assert moved is not None
            assert moved.count("vouchgate.cli") == 1
    for wrong in (
        "[1]",
        "{// a comment\n}",
        '{"hooks": []}',
        '{"hooks": {"PreToolUse": {}}}',
        '{"hooks": {"PreToolUse": [3]}}',
        "{" * 9,
    ):
        with pytest.raises(Unsafe):
            changed(wrong, HARNESSES["claude"], "x")


def test_it_is_installed_and_removed(tmp_path: Path) -> None:
    """What the settings run is what the harness's shell runs, and it denies when it cannot start."""
    real, home = tmp_path / "dotfiles.json", tmp_path / "home"
    real.write_text(json.dumps(OTHERS, indent=2, ensure_ascii=False) + "\n")
    real.chmod(0o600)
    (home / ".claude").mkdir(parents=True)
    (home / ".claude/settings.json").symlink_to(real)
    environment = {"HOME": str(home)}
    shown = cli("hook", "install", "claude", "--user", cwd=tmp_path, env=environment)
    assert shown.returncode == 0, shown.stderr
    assert b'+            "onFailure": "block"' in shown.stdout
    assert (home / ".claude/settings.json").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    again = cli("hook", "install", "claude", "--user", cwd=tmp_path, env=environment)
    assert b"is as it should be" in again.stdout
    command = json.loads(real.read_text())["hooks"]["PreToolUse"][-1]["hooks"][0]["command"]
    (tmp_path / "vouchgate").mkdir()  # which an agent may have made
    (tmp_path / "vouchgate/__init__.py").write_text("raise SystemExit('not this one')")
    ran = subprocess.run(
        ["sh", "-c", command],
        input=b"{",
        capture_output=True,
        cwd=tmp_path,
        env=clean_environment(),
        check=True,
    )
    assert b"no JSON" in ran.stdout
    gone = subprocess.run(
        ["sh", "-c", command.replace(sys.executable, "/no/python")], capture_output=True, check=False
    )
    assert gone.returncode == 2
    removed = cli("hook", "install", "claude", "--user", "--remove", cwd=tmp_path, env=environment)
    assert removed.returncode == 0
    assert json.loads(real.read_text()) == OTHERS
    for harness in HARNESSES.values():
        assert not (tmp_path / harness.project).exists()
    assert b"/hooks" in cli("hook", "install", "codex", cwd=tmp_path, env=environment).stderr
    assert cli("hook", "install", "codex", "--remove", cwd=tmp_path, env=environment).returncode == 0
    assert not (tmp_path / ".codex/hooks.json").exists()
    real.write_text("{// mine\n}")
    assert "has comments in it" in complaint(
        cli("hook", "install", "claude", "--user", cwd=tmp_path, env=environment)
    )
    assert real.read_text() == "{// mine\n}"
    assert "none of claude" in complaint(cli("hook", "install", "emacs", cwd=tmp_path), 2)
