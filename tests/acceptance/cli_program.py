"""Runs the real `groundgate` program, as a process of its own, and reads what it says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = (sys.executable, "-m", "groundgate.cli")
TOKEN = re.compile(r"gg_[0-9a-f]{16}_[\w-]{43}")


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would change the program's output or settings."""
    left_out = ("GROUNDGATE_", "GIT_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, **(more or {})}


def cli(
    *arguments: str | Path, stdin: str | bytes = b"", cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """One run to its end, in the directory `cwd`."""
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        cwd=cwd,
        env=clean_environment(env),
        capture_output=True,
        timeout=60,
        check=False,
    )


def complaint(done: subprocess.CompletedProcess[bytes], status: int = 1) -> str:
    """The one line on standard error of a run that had to fail with `status`."""
    text = done.stderr.decode()
    assert done.returncode == status, text
    assert text.startswith("groundgate: "), text
    assert text.count("\n") == 1, text
    assert "internal error" not in text
    return text


def json_lines(output: bytes) -> list[dict[str, Any]]:
    """The lines of an output, each a JSON object."""
    return [json.loads(line) for line in output.splitlines()]


def lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


@dataclass
class Serving:
    """A running `groundgate serve`, its address, and what it printed before it said so."""

    process: subprocess.Popen[str]
    address: str
    printed: str

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Asks it to stop; its exit status and what it said on standard error."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@contextmanager
def serving(*arguments: str | Path, cwd: Path) -> Iterator[Serving]:
    """`groundgate serve --port 0` in the directory `cwd`, from the moment it accepts connections."""
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0", *map(str, arguments)],
        cwd=cwd,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        printed = ""
        while not (found := re.search(r"^listening on (http://\S+)$", printed, re.MULTILINE)):
            line = process.stdout.readline()
            assert line, process.communicate(timeout=10)[1]
            printed += line
        yield Serving(process, found[1], printed)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=10)
