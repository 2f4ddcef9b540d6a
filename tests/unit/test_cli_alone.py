"""A command that is read without the others."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

import pytest

from vouchgate.cli import app


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--help"),
        ("serve", "--no-such-option"),
        ("gate-doc", "--help"),
        ("mcp-gate", "--help"),
        ("token", "--help"),
        ("no-such-command",),
        ("--help",),
    ],
    ids=" ".join,
)
def test_a_command_read_alone_says_what_it_says_among_all(arguments: tuple[str, ...]) -> None:
    said = [_said(read, arguments) for read in (app.command_for(arguments[0]), app.commands())]
    assert said[0] == said[1]


def _said(command: object, arguments: tuple[str, ...]) -> str:
    assert callable(command)
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        try:
            command(list(arguments), prog_name="vouchgate", standalone_mode=False)
        except Exception as error:  # noqa: BLE001  (of typer's, whatever it is: both must raise the same)
            output.write(f"{type(error).__name__}: {error}")
    return output.getvalue()
