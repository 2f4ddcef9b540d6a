"""A file of memories in parts, each read by whoever looks at it: no process has all of its rows."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from vouchgate.importing.formats import Format, jsonl_rows
from vouchgate.importing.parquet import count_rows, parquet_rows
from vouchgate.importing.rows import KNOWN, BadRow, Fields, ImportRow, Unreadable

PARTS = 16  # of a file that is not small, for all workers to have some
# Of JSON lines in bytes, and of Parquet in rows: 100,000 memories take 600 MB where they are judged.
LEAST, MOST = {False: 1 << 20, True: 5_000}, {False: 1 << 24, True: 100_000}


@dataclass(frozen=True, slots=True)
class Part:
    """Of JSON lines those that begin within these bytes, of Parquet these rows. The file has to be the one that was
    divided, of this size and time in nanoseconds. `before` are the lines or rows before it; until these are known, 1
    for all but the first part."""

    path: str
    form: Format
    size: int
    modified: int
    start: int
    end: int
    before: int
    fields: Fields = KNOWN


def divide(path: str, form: Format, step: int | None = None, fields: Fields = KNOWN) -> list[Part]:
    """The parts of a file, in its order, one at least, of so many bytes or rows; `fields` says under which names rows
    have what. Raises Unreadable."""
    found, rows = _stat(path), form is Format.PARQUET
    size = count_rows(path) if rows else found.st_size
    step = step or min(MOST[rows], max(LEAST[rows], size // PARTS))
    return [
        Part(
            path,
            form,
            found.st_size,
            found.st_mtime_ns,
            start,
            min(size, start + step),
            start if rows else min(start, 1),
            fields,
        )
        for start in range(0, max(1, size), step)
    ]


def count_lines(part: Part) -> int:
    """How many lines or rows the part has, blank ones too."""
    if part.form is Format.PARQUET:
        return part.end - part.start
    with Path(part.path).open("rb") as stream:
        begin = stream.seek(max(0, part.start - 1))
        return stream.read(max(0, part.end - 1 - begin)).count(b"\n") + (not part.start and part.end > 0)


def read_part(part: Part, only: Container[int] | None = None) -> Iterator[ImportRow | BadRow]:
    """Its rows, or `only` those of these numbers (of lines or rows, from 1). Raises Unreadable."""
    found = _stat(part.path)
    if (found.st_size, found.st_mtime_ns) != (part.size, part.modified):
        raise Unreadable(f"{part.path}: is not the file that was begun with; let it stand while it is read")
    if part.form is Format.PARQUET:
        yield from parquet_rows(part.path, part.start, part.end, only, part.fields)
        return
    with Path(part.path).open("rb") as stream:
        stream.seek(max(0, part.start - 1))  # the byte before a line ends another
        while part.start and stream.tell() < part.end and not stream.readline(1 << 20).endswith(b"\n"):
            pass
        yield from jsonl_rows(stream, part.end, part.before, only, part.fields)


def _stat(path: str) -> os.stat_result:
    try:
        return Path(path).stat()
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}") from error
