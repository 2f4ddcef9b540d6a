"""What commands read: a file, standard input, or a text."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from unicodedata import east_asian_width

from vouchgate.cli.output import Failure


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """The file, or standard input for `-`. Raises Failure when it cannot be read."""
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = Path(path).open("rb")  # noqa: SIM115  (closed below; only opening it may fail here)
    except OSError as error:
        raise Failure(
            f"{path}: cannot be read: {error.strerror}; give a file or - for standard input"
        ) from error
    with stream:
        yield stream


def is_file(given: str) -> bool:
    """Whether there is something by this name that can be read."""
    try:
        return Path(given).exists()
    except (OSError, ValueError):  # no file system has such a name
        return False


@contextmanager
def open_lines(given: str) -> Iterator[BinaryIO]:
    """JSON lines: those of a file, of standard input for `-`, one that was given itself, or the claim that a text is.
    Raises Failure when it cannot be read."""
    if given == "-" or is_file(given) or not _is_text(given.strip()):
        with open_input(given) as stream:
            yield stream
        return
    line = given if given.lstrip().startswith("{") else json.dumps({"content": given})
    yield io.BytesIO(line.encode("utf-8", "surrogatepass"))


def _is_text(given: str) -> bool:
    """Whether this, which no file is called, is no name of one: it holds white space, or characters of a script that is
    written without it (those that are wide), and does not end as names of files do."""
    if any(map(str.isspace, given)):
        return True
    return any(east_asian_width(each) == "W" for each in given) and not Path(given).suffix[1:].isalpha()
