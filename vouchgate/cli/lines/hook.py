"""`vouchgate hook`: the gate before the files that coding agents keep memory in."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

import difflib
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from vouchgate.cli import output

hook = typer.Typer(name="hook", help="The gate before coding agents' memory files.", rich_markup_mode=None)
Agent = Annotated[str, typer.Argument(metavar="HARNESS", help="claude, codex or gemini.")]


@hook.command("run", epilog="Example: vouchgate hook run claude < call.json")
def run(harness: Agent) -> None:
    """Answer one tool call: the harness's JSON on standard input, its answer on standard output.

    What it adds to the files of VOUCHGATE_MEMORY_FILES goes through the gate (VOUCHGATE_URL, VOUCHGATE_TOKEN).
    """
    from vouchgate.adapters.hook.run import main

    raise typer.Exit(main(harness))


@hook.command("install", epilog="Example: vouchgate hook install claude")
def install(
    harness: Agent,
    *,
    user: Annotated[bool, typer.Option("--user", help="In your own settings, not this project's.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take it out again.")] = False,
) -> None:
    """Have a harness run the hook before every tool call, and show what that changes in its settings.

    What stands in them stays. Done twice, it is there once.
    """
    from vouchgate.adapters.hook.harnesses import HARNESSES, Unsafe, changed
    from vouchgate.files import write_durably

    if (its := HARNESSES.get(harness)) is None:
        raise typer.BadParameter(f"{harness!r} is none of {', '.join(HARNESSES)}", param_hint="HARNESS")
    # With -P no folder of the project is taken for the program. What cannot start is a denial: 2.
    command = f"{shlex.quote(sys.executable)} -P -m vouchgate.cli hook run {harness} || exit 2"
    shown = Path.home() / its.user if user else Path(its.project)
    file = Path(os.path.realpath(shown))  # which may be a link into another folder
    try:
        before = file.read_text("utf-8") if file.exists() else ""
        after = changed(before, its, None if remove else command)
        if (after or "") == before:
            output.say(f"{shown} is as it should be.")
            return
        if after is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_durably(file, after.encode())
    except (Unsafe, UnicodeDecodeError) as error:
        raise output.Failure(f"{shown} is left as it is: {error}; see docs/harnesses.md") from error
    except OSError as error:
        raise output.Failure(f"{shown} cannot be changed: {error.strerror}") from error
    lines = before.splitlines(), (after or "").splitlines()
    output.say("\n".join(difflib.unified_diff(*lines, str(shown), str(shown), lineterm="")))
    if harness == "codex" and not remove:
        output.hint("Codex does not run it before you have agreed to it there, with /hooks.")
