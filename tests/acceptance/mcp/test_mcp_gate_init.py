"""`vouchgate mcp-gate init` makes the configuration for a server by trying it, and leaves nothing behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from mcp_types import Tool, ToolAnnotations

from tests.acceptance.cli_program import clean_environment, cli, complaint
from tests.running.processes import Program
from vouchgate.mcp.gate.config import CallWrite, Config, load
from vouchgate.mcp.gate.guessing import (
    ToolRole,
    as_toml,
    guess_reads,
    guess_role,
    guess_text,
    render,
    sample_arguments,
)

UNKNOWN = ("by_text", "by_text_missing", "by_listing", "by_field", "by_question", "by_wrapping", "by_nothing")


def said(*writing: str) -> list[str]:
    """What each tool does that says nothing of it."""
    return [f"--tool={name}={'writes' if name in writing else 'refused'}" for name in UNKNOWN]


def kept(folder: Path) -> list[str]:
    """What is in the server."""
    return [file.read_text("utf-8") for file in folder.glob("kept/*.memory")]


def made(folder: Path) -> Config:
    """The configuration that was written."""
    return load(None, folder / "gate.toml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kept").mkdir()
    return tmp_path


def test_a_probe_is_written_read_back_and_removed_again(folder: Path, programs: Path) -> None:
    run: list[str | Path] = ["mcp-gate", "init", *said("by_listing"), "--"]
    run += [programs / "recall", folder / "kept"]
    done = cli(*run, "keep", cwd=folder)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert "by_listing: written and read back with list_all, removed again with forget" in text
    assert kept(folder) == []
    assert "Probe " in (folder / "kept/calls").read_text("utf-8")
    config = made(folder)
    assert config.passed == {"search", "recall", "list_all", "look_up"}
    write = config.write["by_listing"]
    assert isinstance(write, CallWrite)
    assert write.read
    assert (write.read.tool, write.read.arguments) == ("list_all", {})
    assert write.undo is not None
    assert write.undo.arguments == {"content": "{content}"}
    assert set(config.write) == {"by_listing"}  # what `forget` takes away could not be shown before
    before = (folder / "gate.toml").read_bytes()
    assert "--force" in complaint(cli(*run, "keep", cwd=folder), 2)
    assert (folder / "gate.toml").read_bytes() == before
    lying = cli(*run[:2], "--force", *run[2:], "forget", cwd=folder)
    assert "by_listing: sent, not confirmed" in lying.stdout.decode(), lying.stderr
    unsure = made(folder).write["by_listing"]
    assert isinstance(unsure, CallWrite)
    assert unsure.read is False


def test_what_nobody_knows_is_named_and_nothing_is_written(folder: Path, programs: Path) -> None:
    run: list[str | Path] = ["mcp-gate", "init", "--", programs / "recall", folder / "kept", "keep"]
    problem = complaint(cli(*run, cwd=folder), 2)
    assert "nobody knows what these do: by_text, by_text_missing, by_listing" in problem
    assert "no nope, only " in complaint(cli(*run[:2], "--tool=nope=reads", *run[2:], cwd=folder), 2)
    assert "by_text," in complaint(cli(*run[:2], "--tool=by_text=dances", *run[2:], cwd=folder), 2)
    assert not list(folder.glob("gate*"))
    assert not (folder / "kept/calls").exists()
    complaint(cli("mcp-gate", "init", "--", "false", cwd=folder))


def test_it_asks_on_a_terminal_also_before_a_probe_that_may_stay(folder: Path, programs: Path) -> None:
    told = ["--tool=forget=refused"]  # so nothing removes it
    words = ["mcp-gate", "init", *told, "--", str(programs / "recall"), str(folder / "kept"), "keep"]
    terminal, inside = os.openpty()
    answers = ["writes:content" if name == "by_field" else "refused" for name in UNKNOWN] + ["n"]
    os.write(terminal, "".join(f"{answer}\n" for answer in answers).encode())
    with os.fdopen(inside, "rb", buffering=0) as given, tempfile.TemporaryFile() as out:
        program = Program(words, directory=folder, environment=clean_environment(), streams=(given, out, out))
        try:
            assert program.wait(120) == 0
        finally:
            program.kill()
            os.close(terminal)
        out.seek(0)
        text = out.read().decode()
    assert "by_field(content):" in text
    assert "A probe of by_field may stay in the server: no tool removes what it writes" in text
    assert "by_field: not tried" in text
    assert not (folder / "kept/calls").exists()
    assert set(made(folder).write) == {"by_field"}


def listed(name: str, *arguments: str, reads: bool | None = None, description: str = "") -> Tool:
    """A tool as a server lists it."""
    schema = {
        "type": "object",
        "properties": {each: {"type": "string"} for each in arguments},
        "required": list(arguments),
    }
    hints = None if reads is None else ToolAnnotations(read_only_hint=reads)
    return Tool(name=name, description=description, input_schema=schema, annotations=hints)


def test_what_is_guessed_of_names_and_what_is_not() -> None:
    cases: list[tuple[Tool, ToolRole | None, str | None]] = [
        (listed("store_memory", "content"), ToolRole.WRITES, "content"),
        (listed("addNote", "title", "body"), ToolRole.WRITES, "body"),
        (listed("read_note", "identifier"), ToolRole.READS, "identifier"),
        (listed("search_and_delete", "query"), ToolRole.REMOVES, "query"),
        (listed("list_all", reads=True), ToolRole.READS, None),
        (listed("list_all", reads=False), None, None),  # name and annotation contradict one another
        (listed("sneaky_write", "text", reads=True), None, "text"),
        (listed("mood", "value", description="Stores how you feel."), ToolRole.WRITES, "value"),
        (listed("mood", "memory_id", description="How you feel."), None, None),
    ]
    for tool, role, text in cases:
        assert (guess_role(tool), guess_text(tool)) == (role, text), tool.name


def test_a_schema_that_makes_no_sense_is_one_without_arguments() -> None:
    for properties in (["content"], {"content": "text"}, {"content": {"type": [None, 3]}}, None):
        tool = Tool(
            name="store", input_schema={"type": "object", "properties": properties, "required": "all"}
        )
        assert guess_text(tool) is None
        assert sample_arguments(tool, "", "probe", "key") == {"": "probe"}
    nullable = {"content": {"type": ["null", "string"]}, "limit": {"type": "integer", "maximum": "many"}}
    tool = Tool(name="list", input_schema={"type": "object", "properties": nullable})
    assert guess_text(tool) == "content"
    assert [read.arguments for read in guess_reads(tool, "content", [tool])] == [{"limit": 100}]


def test_names_of_a_server_cannot_break_the_file(tmp_path: Path) -> None:
    odd = 'a"b\n[write.x]\u2028\x7f'
    table = {"kind": "call", "place": odd, "read": False}
    file = tmp_path / "gate.toml"
    file.write_text(render({"sink": "a", "pass": [odd], "write": {odd: table}}, {odd: odd}, "Made."), "utf-8")
    config = load(None, file)
    assert config.passed == {odd}
    assert set(config.write) == {odd}
    assert as_toml([1, True, "a"]) == '[1, true, "a"]'
