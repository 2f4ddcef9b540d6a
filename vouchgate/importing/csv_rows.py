"""Rows of a table as text (CSV). Cells are texts, whatever a spreadsheet would make of them."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Self

from vouchgate.importing.lines import MAX_LINE_BYTES
from vouchgate.importing.rows import KNOWN, BadRow, Fields, ImportRow, Unreadable, parse_row

MOST_COLUMNS = 1_000  # far over any store of memories
MOST_TOLD = 60  # characters of a column's name
_MOST_READ = 8  # times that a line is given back; a table with some open quotations needs two or three


def csv_rows(stream: BinaryIO, fields: Fields = KNOWN) -> Iterator[ImportRow | BadRow]:
    """Each row after the first, which names the columns; commas, semicolons or tabs are between them. Raises
    Unreadable."""
    lines = _lines(stream)
    first = next(lines, "")
    delimiter = max(",;\t", key=first.count)
    try:
        columns = next(csv.reader([first], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise Unreadable(f"its first line names no columns: {error}") from error
    names = [name.strip() for name in columns]
    if len(names) > MOST_COLUMNS:
        raise Unreadable(f"it has {len(names):,} columns, and at most {MOST_COLUMNS:,} are read")
    twice = next((name for at, name in enumerate(names) if name and name in names[:at]), None)
    if twice is not None:
        raise Unreadable(f"two columns are called {twice[:MOST_TOLD]}")
    given = _Lines(lines)
    table = csv.reader(given, delimiter=delimiter, strict=True)
    while True:
        try:
            cells = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            yield BadRow(f"line {given.taken[0].number}", f"is no row of CSV: {error}")
            for number in given.give_back():
                yield BadRow(f"line {number}", "is no row of CSV: there are open quotations before it")
            table = csv.reader(given, delimiter=delimiter, strict=True)
            continue
        if cells:
            yield _row(f"line {given.taken[0].number}", names, cells, fields)
        given.taken.clear()


@dataclass(slots=True)
class _Line:
    number: int
    text: str
    again: int = 0  # how often it was given back


class _Lines:
    """The lines of a table behind its first. Behind a row that is none the reading goes on with its second line, as a
    quotation that is never closed would take all that follow; but each line is read so often only."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._fresh = (_Line(number, text) for number, text in enumerate(lines, 2))
        self._back = deque[_Line]()
        self.taken: list[_Line] = []  # of the row that is being read
        self._characters = 0  # of these

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._back.popleft() if self._back else next(self._fresh)
        self._characters = len(line.text) + (self._characters if self.taken else 0)
        self.taken.append(line)
        if len(self.taken) > 1 and self._characters > MAX_LINE_BYTES:
            raise csv.Error(f"it has more than {MAX_LINE_BYTES} characters")
        return line.text

    def give_back(self) -> list[int]:
        """Gives back what was taken behind the first line; the numbers of the lines that were too often."""
        behind, self.taken = self.taken[1:], []
        too_often = [each.number for each in behind if each.again >= _MOST_READ and each.text.strip()]
        self._back.extendleft(each for each in reversed(behind) if each.again < _MOST_READ)
        for each in behind:
            each.again += 1
        return too_often


def _row(place: str, names: list[str], cells: list[str], fields: Fields) -> ImportRow | BadRow:
    if len(cells) != len(names):
        return BadRow(place, f"has {len(cells):,} cells, and the first line names {len(names):,} columns")
    if any(not cell.isascii() and any("\udc80" <= sign <= "\udcff" for sign in cell) for cell in cells):
        return BadRow(place, "is not UTF-8")
    given = {name: cell for name, cell in zip(names, cells, strict=True) if cell.strip()}
    row = parse_row(place, given, fields)
    if isinstance(row, ImportRow) and row.content.lstrip().startswith("="):
        return BadRow(place, "has a formula of a spreadsheet in place of a text; export the values")
    return row


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Those of the file. One that is too long is given as half a quotation, which is no row."""
    first = True
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(MAX_LINE_BYTES)
            raw = b'""x\n'
        yield (raw.removeprefix(b"\xef\xbb\xbf") if first else raw).decode("utf-8", "surrogateescape")
        first = False
