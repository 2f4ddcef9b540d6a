"""Rows of a Parquet file, some thousand in memory at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from vouchgate.importing.csv_rows import MOST_COLUMNS, MOST_TOLD
from vouchgate.importing.rows import KNOWN, BadRow, Fields, ImportRow, Unreadable, parse_row

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MAGIC = b"PAR1"  # that a file begins with
_AT_ONCE = 4096  # rows
_UNREAD = object()  # stands where there is no way to a value


def count_rows(path: str) -> int:
    """How many rows the file says it has. Raises Unreadable."""
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def parquet_rows(
    path: str,
    start: int = 0,
    end: int | None = None,
    only: Container[int] | None = None,
    fields: Fields = KNOWN,
) -> Iterator[ImportRow | BadRow]:
    """The rows after so many and up to `end`, of the row groups that these lie in; `only` those of these numbers, from
    1. The columns of a row are the fields of a JSON object. Raises Unreadable."""
    with _opened(path) as file:
        number = 0
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if number + rows <= start or (end is not None and number >= end):
                number += rows
                continue
            for batch in file.iter_batches(_AT_ONCE, row_groups=[group]):
                numbers = range(number + 1, number + 1 + batch.num_rows)
                number += batch.num_rows
                wanted = [n for n in numbers if start < n <= (end or n) and (only is None or n in only)]
                if not wanted:
                    continue
                some = batch.take([n - numbers[0] for n in wanted])
                columns = map(_values, some.columns)
                for n, values in zip(wanted, zip(*columns, strict=True), strict=True):
                    yield _row(f"row {n}", dict(zip(some.schema.names, values, strict=True)), fields)


def _row(place: str, values: dict[str, Any], fields: Fields) -> ImportRow | BadRow:
    try:
        # As it would stand in JSON lines: times and decimals are texts there.
        text = json.dumps(values, default=_in_json)
    except TypeError:
        return BadRow(place, "has a value that cannot be read")
    return parse_row(place, json.loads(text, parse_constant=lambda _: None), fields)


def _in_json(value: object) -> object:
    """A value that JSON has no form for. Bytes that are no text are an object, so that nothing takes them for one."""
    if value is _UNREAD:
        raise TypeError
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


def _values(column: Any) -> list[Any]:
    """What stands in a column. A time for which Python has no value (of nanoseconds, of the year 38,502) is a text."""
    from pyarrow import ArrowException, string  # noqa: PLC0415

    for as_text in (False, True):
        with suppress(ValueError, OverflowError, ArrowException):
            found: list[Any] = (column.cast(string()) if as_text else column).to_pylist()
            return found
    return [_value(each) for each in column]


def _value(scalar: Any) -> Any:
    """One of a column that cannot be had whole: with what lies in it, and bytes where a text is none."""
    import pyarrow  # noqa: PLC0415

    with suppress(ValueError, OverflowError):
        return scalar.as_py()
    with suppress(ValueError, KeyError, pyarrow.ArrowException):
        if isinstance(scalar, pyarrow.StructScalar):
            return {name: _value(part) for name, part in scalar.items()}
        if isinstance(scalar, pyarrow.ListScalar):
            return [_value(part) for part in scalar.values]
        if pyarrow.types.is_string(scalar.type) or pyarrow.types.is_large_string(scalar.type):
            return scalar.cast(pyarrow.large_binary()).as_py()
        return scalar.cast(pyarrow.string()).as_py()
    return _UNREAD


@contextmanager
def _opened(path: str) -> Iterator[ParquetFile]:
    import pyarrow  # noqa: PLC0415  (of an extra, and half a second)
    from pyarrow import parquet  # noqa: PLC0415

    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if len(names) > MOST_COLUMNS:
                raise Unreadable(f"{path}: has more than {MOST_COLUMNS:,} columns")
            if twice := sorted(name for name, times in Counter(names).items() if times > 1):
                raise Unreadable(f"{path}: two columns are called {twice[0][:MOST_TOLD]}")
            yield file
    except Unreadable:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise Unreadable(f"{path}: cannot be read as Parquet: {error}") from error
