"""Rows of a Parquet file, some thousand in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vouchgate.importing.csv_rows import MOST_COLUMNS
from vouchgate.importing.rows import KNOWN, BadRow, Fields, ImportRow, Unreadable, parse_row

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MAGIC = b"PAR1"  # that a file begins with
_AT_ONCE = 4096  # rows


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
                for n, values in zip(wanted, some.to_pylist(), strict=True):
                    # As it would stand in JSON lines: times and decimals are texts there.
                    row = json.loads(json.dumps(values, default=str), parse_constant=lambda _: None)
                    yield parse_row(f"row {n}", row, fields)


@contextmanager
def _opened(path: str) -> Iterator[ParquetFile]:
    import pyarrow  # noqa: PLC0415  (of an extra, and half a second)
    from pyarrow import parquet  # noqa: PLC0415

    try:
        with parquet.ParquetFile(path) as file:
            if len(file.schema_arrow.names) > MOST_COLUMNS:
                raise Unreadable(f"{path}: has more than {MOST_COLUMNS:,} columns")
            yield file
    except Unreadable:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise Unreadable(f"{path}: cannot be read as Parquet: {error}") from error
