"""What commands read: a file, or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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
