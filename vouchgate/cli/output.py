"""How the commands speak: one line for an error, bytes for data, tables for people."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

FAILED = 1
USAGE = 2
UNKNOWN = 3  # it could not be found out
INTERRUPTED = 130  # 128 + SIGINT, as shells report it


class Failure(Exception):
    """A command cannot go on; the message is one sentence for the person who ran it."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def ended_as_by_hand() -> Iterator[None]:
    """SIGTERM ends what is under way as Ctrl-C does, so that what was begun is taken away again."""
    former = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def one_line(text: str) -> str:
    """The text on one line, without control characters that a terminal would act upon."""
    return visible(" ".join(text.split()))


def visible(text: str) -> str:
    """The text with what a terminal would act upon, and what nobody would see, as escapes; lines and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def complain(message: str) -> None:
    """One line on standard error."""
    print(f"vouchgate: {one_line(message)}", file=sys.stderr, flush=True)


def hint(message: str) -> None:
    """Something worth knowing that is no result, on standard error."""
    print(visible(message), file=sys.stderr, flush=True)


def say(message: str) -> None:
    """A result, on standard output, at once; other people's words in it are made visible."""
    print(visible(message), flush=True)


def write_json(value: Any) -> None:
    """One line of JSON, at once. Pure ASCII, so that any string survives, lone surrogates too."""
    write_line(json.dumps(value, separators=(",", ":")))


def write_line(text: str) -> None:
    """One line of UTF-8, at once, whatever the locale says."""
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()


def unwritable(error: OSError | AttributeError) -> str | None:
    """Whether standard output was the cause of an error, as a phrase: it does not take what it was given, which is
    thrown away. None where it does."""
    if cast("TextIO | None", sys.stdout) is None:  # it was closed when the program started
        return "standard output is closed"
    try:
        sys.stdout.flush()
    except OSError as still:
        quiet_stdout()
        return f"standard output cannot be written: {still.strerror}"
    if getattr(error, "errno", None) in (
        errno.ENOSPC,
        errno.EDQUOT,
    ):  # of an output without a buffer, or a file
        return "there is no space left for what is to be written"
    return None


def quiet_stdout() -> None:
    """Sends what is left in the buffer nowhere, after the reader of our output has gone."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def console(*, minimum: int = 60) -> Console:
    """A console on standard output: colours only on a terminal and without NO_COLOR, never under `minimum`
    columns wide. Markup and emoji codes in what is printed are text."""
    from rich.console import Console  # noqa: PLC0415  (only tables need it)

    made = Console(markup=False, emoji=False, highlight=False, soft_wrap=False)
    return (
        made if made.width >= minimum else Console(markup=False, emoji=False, highlight=False, width=minimum)
    )


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str | Text]], *, whole: int = 1) -> None:
    """A plain table; the first `whole` columns (identifiers) are never wrapped or cut."""
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, no_wrap=number < whole, overflow="fold")
    for row in rows:
        table.add_row(*(visible(cell) if isinstance(cell, str) else cell for cell in row))
    console().print(table)
