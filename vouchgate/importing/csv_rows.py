"""Rows of a table as text (CSV). Cells are texts, whatever a spreadsheet would make of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

from vouchgate.importing.lines import MAX_LINE_BYTES
from vouchgate.importing.rows import KNOWN, BadRow, Fields, ImportRow, Unreadable, parse_row

MOST_COLUMNS = 1_000  # far over any store of memories
_MOST_TOLD = 60  # characters of a column's name


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
        raise Unreadable(f"two columns are called {twice[:_MOST_TOLD]}")
    table = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        place = f"line {table.line_num + 2}"
        try:
            cells = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            yield BadRow(place, f"is no row of CSV: {error}")
            continue
        if cells:
            yield _row(place, names, cells, fields)


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
