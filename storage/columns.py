"""Types of columns, and indexes, that are the same on every database."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    REAL,
    Column,
    ColumnElement,
    DateTime,
    Dialect,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    TypeDecorator,
    text,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.types import TypeEngine

from vouchgate.ingest.rules import NUMBERS, Rule, rule_of


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC time on every database; SQLite keeps it without its zone. A naive time is refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        moved = value.astimezone(UTC)
        return moved.replace(tzinfo=None) if dialect.name == "sqlite" else moved

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def as_it_lies(column: Column[Any]) -> ColumnElement[Any]:
    """A column of times as the database has it, so that an altered row does not keep others from being read; for
    `read_time`."""
    return type_coerce(column, String).label(column.name)


def read_time(value: Any) -> datetime:
    """The time that `as_it_lies` gave. Raises ValueError for what is none."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    if not isinstance(value, datetime):
        raise ValueError(f"{value!a:.40} is no time")
    return value.astimezone(UTC)


class RuleNumber(TypeDecorator[str]):
    """A rule by its number, which is shorter than its name in an index and is what older rows hold."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> int | None:
        return None if value is None else NUMBERS[Rule(value)]

    def process_result_value(self, value: int | None, dialect: Dialect) -> Rule | None:
        return None if value is None else rule_of(value)


class SmallRuleNumber(RuleNumber):
    """The same in two bytes."""

    impl = SmallInteger
    cache_ok = True


class Float32s(TypeDecorator[bytes]):
    """float32 numbers in machine order: as they are on SQLite, where sqlite-vec reads them so; `real[]` on
    PostgreSQL, which pgvector casts, so that the table needs no extension while nobody asks for vectors."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(ARRAY(REAL) if dialect.name == "postgresql" else LargeBinary())

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> Any:
        return list(array("f", value)) if value is not None and dialect.name == "postgresql" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> bytes | None:
        return array("f", value).tobytes() if isinstance(value, list) else value


class Words(TypeDecorator[str]):
    """Words to be searched: a `tsvector` on PostgreSQL, a text elsewhere."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(TSVECTOR() if dialect.name == "postgresql" else Text())


def partial_index(name: str, *columns: str, where: str) -> Index:
    """An index of the rows for which the condition holds, and no others."""
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))
