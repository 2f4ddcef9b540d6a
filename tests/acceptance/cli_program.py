"""Runs the real `vouchgate` program, as a process of its own, and reads what it says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.running.processes import Program

# As users start it. The other runs are forked from a process that has loaded it (`tests.running.processes`).
PROGRAM = (sys.executable, "-m", "vouchgate.cli")
TOKEN = re.compile(r"vg_[0-9a-f]{16}_[\w-]{43}")


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would change the program's output or settings."""
    left_out = ("VOUCHGATE_", "GIT_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, **(more or {})}


def cli(
    *arguments: str | Path,
    stdin: str | bytes = b"",
    cwd: Path,
    env: Mapping[str, str] | None = None,
    anew: bool = False,
    seconds: float = 120,
) -> subprocess.CompletedProcess[bytes]:
    """One run to its end, in the directory `cwd`; within so many seconds; with `anew` in an interpreter that
    starts for it."""
    words = [str(argument) for argument in arguments]
    sent = stdin.encode() if isinstance(stdin, str) else stdin
    environment = clean_environment(env)
    if anew:
        return subprocess.run(
            [*PROGRAM, *words],
            input=sent,
            cwd=cwd,
            env=environment,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(sent)
        given.seek(0)
        program = Program(words, directory=cwd, environment=environment, streams=(given, out, errors))
        try:
            status = program.wait(seconds)
        finally:
            program.kill()
        return subprocess.CompletedProcess(words, status, *map(_everything, (out, errors)))


def _everything(written: IO[bytes]) -> bytes:
    written.seek(0)
    return written.read()


def complaint(done: subprocess.CompletedProcess[bytes], status: int = 1) -> str:
    """The one line on standard error of a run that had to fail with `status`."""
    text = done.stderr.decode()
    assert done.returncode == status, text
    assert text.startswith("vouchgate: "), text
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
class Talking:
    """A running program with its streams: what it is given, what it tells, and its errors."""

    program: Program
    given: IO[bytes]
    told: IO[bytes]
    errors: IO[bytes]


@contextmanager
def talking(*arguments: str, cwd: Path) -> Iterator[Talking]:
    """A run that is not over yet, in the directory `cwd`; it ends with the block."""
    pipes = [os.pipe() for _ in range(3)]
    theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
    with (
        os.fdopen(pipes[0][1], "wb") as given,
        os.fdopen(pipes[1][0], "rb") as told,
        os.fdopen(pipes[2][0], "rb") as errors,
    ):
        try:
            program = Program(arguments, directory=cwd, environment=clean_environment(), streams=theirs)
        finally:
            for each in theirs:
                os.close(each)
        try:
            yield Talking(program, given, told, errors)
        finally:
            program.kill()


@dataclass
class Serving:
    """A running `vouchgate serve`, its address, and what it printed before it said so."""

    process: Program | subprocess.Popen[bytes]
    errors: IO[bytes]
    address: str
    printed: str

    def first_start(self) -> str:
        """What a first start left for its operator, in the file that it named."""
        (file,) = re.findall(
            r"^First start: .* are in (\S+)\. Read it, then delete it\.$", self.printed, re.MULTILINE
        )
        return Path(file).read_text("utf-8")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Asks it to stop; its exit status and what it said on standard error."""
        self.process.send_signal(number)
        status = self.process.wait(120)
        return status, _everything(self.errors).decode()


@contextmanager
def serving(*arguments: str | Path, cwd: Path, anew: bool = False) -> Iterator[Serving]:
    """`vouchgate serve --port 0` in the directory `cwd`, from the moment it accepts connections; with `anew` in
    an interpreter that starts for it."""
    words = ["serve", "--port", "0", *map(str, arguments)]
    environment = clean_environment()
    theirs, ours = os.pipe()
    with os.fdopen(theirs, encoding="utf-8") as output, tempfile.TemporaryFile() as errors:
        process: Program | subprocess.Popen[bytes]
        try:
            if anew:
                process = subprocess.Popen(
                    [*PROGRAM, *words],
                    cwd=cwd,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=ours,
                    stderr=errors,
                )
            else:
                with Path(os.devnull).open() as nothing:
                    process = Program(
                        words, directory=cwd, environment=environment, streams=(nothing, ours, errors)
                    )
        finally:
            os.close(ours)
        try:
            printed = ""
            while not (found := re.search(r"^listening on (http://\S+)$", printed, re.MULTILINE)):
                line = output.readline()
                assert line, _everything(errors).decode()
                printed += line
            yield Serving(process, errors, found[1], printed)
        finally:
            process.kill()
            process.wait(120)
