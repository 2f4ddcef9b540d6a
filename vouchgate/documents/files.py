"""Documents as files: what is in one, and which there are in a folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from vouchgate.ingest.documents import LARGEST, Unreadable
from vouchgate.ingest.documents.types import FORMATS

ENDINGS = tuple(f".{name}" for name in (*FORMATS, "txt"))


def content_of(file: str) -> bytes:
    """What is in a file, or comes on standard input; no more than a document may have and a byte. Raises Unreadable."""
    if file == "-":
        return sys.stdin.buffer.read(LARGEST + 1)
    try:
        with Path(file).open("rb") as stream:
            return stream.read(LARGEST + 1)
    except OSError as error:
        raise Unreadable(error.strerror or "no such file") from error


def documents_in(folder: Path) -> list[Path]:
    """The documents in a folder and below it, in an order that does not depend on the machine. No link is followed.
    Raises Unreadable, naming a folder in it that may not be read: what is there cannot be passed over."""

    def refuse(error: OSError) -> NoReturn:
        raise Unreadable(f"{error.filename}: {error.strerror}") from error

    try:
        inside = (Path(at, name) for at, _, names in os.walk(folder, onerror=refuse) for name in names)
        named = [each for each in inside if each.suffix.lower() in ENDINGS]
        return sorted(each for each in named if each.is_file() and not each.is_symlink())
    except OSError as error:
        refuse(error)
