"""What plain SQLAlchemy Core is too slow or too narrow for: a list as one parameter, and many rows at once.

An expanding `IN` makes a new statement for every length of its list, and runs into the limits of
parameters per statement (32,766 on SQLite, 65,535 on PostgreSQL). `among` is one statement for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, Self

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    ColumnElement,
    Connection,
    Dialect,
    Select,
    String,
    Table,
    Text,
    TypeDecorator,
    bindparam,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeEngine

from vouchgate.storage.columns import UtcTime


class _ListOf(TypeDecorator[Collection[Any]]):
    """A list in one parameter: an array on PostgreSQL, a JSON array on SQLite."""

    impl = Text
    cache_ok = True

    def __init__(self, item: type[BigInteger] | type[String]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(ARRAY(self.item))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: Collection[Any] | None, dialect: Dialect) -> Any:
        if value is None:
            raise ValueError("a list parameter cannot be NULL")
        return list(value) if dialect.name == "postgresql" else json.dumps(list(value))


class _Among(FunctionElement[bool]):
    name = "among"
    type = Boolean()
    inherit_cache = True

    def self_group(self, against: OperatorType | None = None) -> Self:
        """Itself: as a plain boolean it would be written `… = 1` for SQLite, which keeps it from any index."""
        return self


def among(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """Whether `column` is one of the values of the list parameter `name`; any length, the empty list too."""
    item = BigInteger if isinstance(column.type, BigInteger) else String
    return _Among(column, bindparam(name, type_=_ListOf(item)))


@compiles(_Among, "sqlite")
def _among_sqlite(element: _Among, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(part, **kw) for part in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608  (names and placeholders only)


@compiles(_Among, "postgresql")
def _among_postgresql(element: _Among, compiler: SQLCompiler, **kw: Any) -> str:
    column, values = (compiler.process(part, **kw) for part in element.clauses)
    return f"{column} = ANY({values})"


class _DayOf(FunctionElement[Any]):
    name = "day_of"
    inherit_cache = True


def day_of(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The day (UTC) of a time: a date on PostgreSQL, its text (`2026-11-23`) on SQLite."""
    return _DayOf(column)


@compiles(_DayOf, "sqlite")
def _day_of_sqlite(element: _DayOf, compiler: SQLCompiler, **kw: Any) -> str:
    return f"substr({compiler.process(element.clauses, **kw)}, 1, 10)"


@compiles(_DayOf, "postgresql")
def _day_of_postgresql(element: _DayOf, compiler: SQLCompiler, **kw: Any) -> str:
    return f"CAST(timezone('UTC', {compiler.process(element.clauses, **kw)}) AS date)"


def fetch(connection: Connection, statement: str, parameters: tuple[Any, ...] | dict[str, Any]) -> list[Any]:
    """All rows of a look-up, straight from the driver, in whose terms statement and parameters are.

    For what every claim asks: on SQLite, SQLAlchemy's own way takes three times as long as the answer. Raises
    DBAPIError as that does.
    """
    return run(connection, statement, parameters, rows=True)


def run(
    connection: Connection,
    statement: str,
    parameters: tuple[Any, ...] | dict[str, Any],
    *,
    rows: bool = False,
) -> list[Any]:
    """As `fetch`, for a statement that gives no rows."""
    driver = connection.connection
    cursor = driver.cursor()
    try:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall()) if rows else []
    except connection.dialect.loaded_dbapi.Error as error:
        base, lost = connection.dialect.loaded_dbapi.Error, _is_lost(connection, error, cursor)
        if lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            statement, parameters, error, base, connection_invalidated=lost, dialect=connection.dialect
        ) from error
    finally:
        cursor.close()


class PreparedSelect:
    """A SELECT of SQLAlchemy's that every claim or group of claims asks: written out once for each database, and run
    with `fetch`. Values go through the column types, both ways."""

    def __init__(self, statement: Select[Any]) -> None:
        self._statement = statement
        self._by_dialect: dict[str, _Written] = {}

    def rows(self, connection: Connection, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """All rows, for these values of its parameters. Raises DBAPIError."""
        dialect = connection.dialect
        if dialect.name not in self._by_dialect:
            self._by_dialect[dialect.name] = _written(self._statement, dialect)
        written = self._by_dialect[dialect.name]
        values = {name: parameters.get(name, default) for name, default, _ in written.parameters}
        values |= {name: convert(values[name]) for name, _, convert in written.parameters if convert}
        sent = values if written.order is None else tuple([values[name] for name in written.order])
        rows = fetch(connection, written.text, sent)
        if not any(written.columns):
            return rows
        return [
            tuple(
                [
                    value if convert is None else convert(value)
                    for value, convert in zip(row, written.columns, strict=True)
                ]
            )
            for row in rows
        ]


class _Written(NamedTuple):
    text: str
    order: tuple[str, ...] | None  # of the parameters where they go by position
    parameters: tuple[tuple[str, Any, Converter | None], ...]  # name, value if none is given, its converter
    columns: tuple[Converter | None, ...]


def _written(statement: Select[Any], dialect: Dialect) -> _Written:
    compiled = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
    if not isinstance(compiled, SQLCompiler):
        raise TypeError(f"no statement for a database: {statement}")
    parameters = tuple(
        (name, value, _converter(compiled.binds[name].type, dialect) if name in compiled.binds else None)
        for name, value in compiled.params.items()
    )
    columns = tuple(
        column.type.dialect_impl(dialect).result_processor(dialect, None)
        for column in statement.selected_columns
    )
    order = None if compiled.positiontup is None else tuple(compiled.positiontup)
    return _Written(str(compiled), order, parameters, columns)


def time_of(value: Any) -> datetime:
    """A time as `fetch` gives it; on SQLite that is a text in UTC."""
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _is_lost(connection: Connection, error: Any, cursor: Any) -> bool:
    return connection.dialect.is_disconnect(error, connection.connection.driver_connection, cursor)


def limited_to(owners: frozenset[str] | None, statement: Select[Any], table: Table) -> Select[Any]:
    """The statement for rows of these owners only; None is every owner."""
    return statement if owners is None else statement.where(table.c.owner_id.in_(owners))


Converter = Callable[[Any], Any]  # of a value to what the driver takes


def _converter(kind: TypeEngine[Any], dialect: Dialect) -> Converter | None:
    if isinstance(kind, UtcTime):
        return _time_converter(dialect)
    return kind.dialect_impl(dialect).bind_processor(dialect)


@lru_cache(maxsize=4)
def _time_converter(dialect: Dialect) -> Converter | None:
    """Shared by all tables: the rows of one claim all have its time, and writing a time out is slow."""
    convert = UtcTime().dialect_impl(dialect).bind_processor(dialect)
    return None if convert is None else lru_cache(maxsize=1024)(convert)


class BulkInsert:
    """INSERT of many rows of one table, straight to the driver. Values go through the column types.

    SQLAlchemy's own way prepares a dictionary for every row, which costs more than SQLite takes to insert
    it. On SQLite up to 64 rows are one statement: its driver gives up the interpreter for every step of a
    statement, and under load waits for the event loop to get it back, which is once a row with executemany.
    There a refused row leaves the rows of its statement before it (OR FAIL), which saves a copy of every page
    that the statement changes: the transaction must be rolled back, as every one is that an exception leaves.
    """

    def __init__(self, table: Table, *, known_ok: bool = False) -> None:
        """With `known_ok` a row whose key is there already is left as it is, and no error."""
        self._table = table
        self._known_ok = known_ok
        self._by_dialect: dict[str, tuple[str, str, str, list[tuple[str, Converter | None]]]] = {}

    def write(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Inserts the rows, of which there may be none; every row has every column."""
        if not rows:
            return
        dialect = connection.dialect
        if dialect.name not in self._by_dialect:
            self._by_dialect[dialect.name] = self._prepare(dialect)
        head, marks, tail, columns = self._by_dialect[dialect.name]
        if any(convert for _, convert in columns):
            values = [
                tuple([row[name] if convert is None else convert(row[name]) for name, convert in columns])
                for row in rows
            ]
        else:  # the keys of claims, most rows of all
            values = list(map(itemgetter(*(name for name, _ in columns)), rows))
        if dialect.name != "sqlite":
            connection.exec_driver_sql(head + marks + tail, values)
            return
        for start, count in _pieces(len(values)):
            flat = tuple(chain.from_iterable(values[start : start + count]))
            run(connection, head + ", ".join([marks] * count) + tail, flat)

    def _prepare(self, dialect: Dialect) -> tuple[str, str, str, list[tuple[str, Converter | None]]]:
        columns = [(column.name, _converter(column.type, dialect)) for column in self._table.columns]
        quote = dialect.identifier_preparer.quote
        names = ", ".join(quote(name) for name, _ in columns)
        marks = ", ".join(["?" if dialect.paramstyle == "qmark" else "%s"] * len(columns))
        insert = "INSERT OR FAIL" if dialect.name == "sqlite" else "INSERT"
        tail = " ON CONFLICT DO NOTHING" if self._known_ok else ""
        return f"{insert} INTO {quote(self._table.name)} ({names}) VALUES ", f"({marks})", tail, columns


def _pieces(count: int) -> Iterator[tuple[int, int]]:
    """Cuts `count` rows into (start, how many): few sizes, so that the driver keeps the statements prepared, but up to
    eight rows, which one claim may have, are one. 64 rows of the widest table are some 1,300 parameters, of which
    SQLite takes 32,766."""
    start = 0
    while (left := count - start) > 0:
        size = left if left <= 8 else min(64, 1 << left.bit_length() - 1)
        yield start, size
        start += size
