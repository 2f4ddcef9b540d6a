"""Rows of a Parquet file, some thousand in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vouchgate.importing.rows import BadRow, ImportRow, Unreadable, parse_row

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MAGIC = b"PAR1"  # that a file begins with
_AT_ONCE = 4096  # rows


def count_rows(path: str) -> int:
    """How many rows the file says it has. Raises Unreadable."""
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def parquet_rows(path: str, start: int = 0, end: int | None = None) -> Iterator[ImportRow | BadRow]:
    """The rows from `start` to before `end`, numbered from 0, of the row groups that these lie in: the columns of a row
    are the fields of a JSON object. Raises Unreadable."""
    with _opened(path) as file:
        first = 0  # row of the group
        for group in range(file.metadata.num_row_groups):
            after = first + file.metadata.row_group(group).num_rows
            if after > start and (end is None or first < end):
                at = first
                for batch in file.iter_batches(_AT_ONCE, row_groups=[group]):
                    skipped = max(0, start - at)
                    wanted = batch.num_rows if end is None else min(batch.num_rows, end - at)
                    for number, fields in enumerate(
                        batch.slice(skipped, max(0, wanted - skipped)).to_pylist()
                    ):
                        yield parse_row(f"row {at + skipped + number + 1}", _as_json(fields))
                    at += batch.num_rows
            first = after


def _as_json(fields: dict[str, Any]) -> dict[str, Any]:
    """As the row would stand in JSON lines: times and decimals are texts there."""
    found: dict[str, Any] = json.loads(json.dumps(fields, default=str), parse_constant=lambda _: None)
    return found


@contextmanager
def _opened(path: str) -> Iterator[ParquetFile]:
    import pyarrow  # noqa: PLC0415  (of an extra, and half a second)
    from pyarrow import parquet  # noqa: PLC0415

    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise Unreadable(f"{path}: cannot be read as Parquet: {error}") from error
