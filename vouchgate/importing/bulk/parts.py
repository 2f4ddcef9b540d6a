"""A file of memories in parts, each read by whoever looks at it: no process has all of its rows."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from vouchgate.importing.formats import Format
from vouchgate.importing.lines import BadLine, parse_line, raw_lines
from vouchgate.importing.parquet import count_rows, parquet_rows
from vouchgate.importing.rows import BadRow, ImportRow, Unreadable, parse_row

PART_BYTES = 16 * 1024 * 1024  # of JSON lines, some 100,000 memories: 600 MB where they are judged
PART_ROWS = 100_000  # of Parquet
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """Of JSON lines those that begin within these bytes, of Parquet the rows from `start` to before `end`. The file has
    to be the one that was divided, of this size and time."""

    path: str
    form: Format
    size: int
    modified: int  # nanoseconds
    start: int
    end: int
    before: int = 0  # lines or rows before it, once that is known


def divide(path: str, form: Format, *, of_bytes: int = PART_BYTES, of_rows: int = PART_ROWS) -> list[Part]:
    """The parts of a file, in its order, one at least. Raises Unreadable."""
    found = _stat(path)
    rows = form is Format.PARQUET
    size, step = (count_rows(path), of_rows) if rows else (found.st_size, of_bytes)
    starts = range(0, max(1, size), step)
    same = (path, form, found.st_size, found.st_mtime_ns)
    return [Part(*same, start, min(size, start + step), start if rows else 0) for start in starts]


def _stat(path: str) -> os.stat_result:
    try:
        return Path(path).stat()
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}") from error


def count_lines(part: Part) -> int:
    """How many lines or rows the part has, blank ones too. Raises Unreadable."""
    return part.end - part.start if part.form is Format.PARQUET else sum(1 for _ in _lines(part))


def read_part(part: Part, only: Container[int] | None = None) -> Iterator[tuple[int, ImportRow | BadRow]]:
    """Each row with its number, from 0, by the lines or rows of the whole file; `only` those of these numbers. Raises
    Unreadable, also when it is not the file that was divided."""
    found = _stat(part.path)
    if (found.st_size, found.st_mtime_ns) != (part.size, part.modified):
        raise Unreadable(f"{part.path}: is not the file that was begun with; let it stand while it is read")
    if part.form is Format.PARQUET:
        for number, row in enumerate(parquet_rows(part.path, part.start, part.end), start=part.before):
            if only is None or number in only:
                yield number, row
        return
    for number, raw in enumerate(_lines(part), start=part.before):
        if (only is None or number in only) and (raw is None or raw.strip()):
            line, place = parse_line(number + 1, raw), f"line {number + 1}"
            if isinstance(line, BadLine):
                yield number, BadRow(place, line.message)
            else:
                yield number, parse_row(place, line.fields)


def _lines(part: Part) -> Iterator[bytes | None]:
    try:
        with Path(part.path).open("rb") as stream:
            if part.start:
                stream.seek(
                    part.start - 1
                )  # a line that begins with the part begins behind the end of another
                while stream.tell() < part.end and not stream.readline(_CHUNK).endswith(b"\n"):
                    pass
            yield from raw_lines(stream, part.end)
    except OSError as error:
        raise Unreadable(f"{part.path}: cannot be read: {error.strerror}") from error
