"""Whether statements name the owner of the rows they touch, so that an engine which spreads rows by owner (partitions,
Citus) knows where to look; read with a parser of SQL, from the text alone (ADR-0058)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlmodel import SQLModel

from vouchgate.storage.tables import audits, claims, doors, people, tree  # noqa: F401  (they fill the metadata)

TABLES: Mapping[str, frozenset[str]] = {
    table.name: frozenset(table.columns.keys()) for table in SQLModel.metadata.tables.values()
}
OWNED = frozenset(
    table.name
    for table in SQLModel.metadata.tables.values()
    if next(iter(table.primary_key.columns.keys())) == "owner_id"
)
_PLACEHOLDER = re.compile(r"%\(\w+\)s|%s|(?<![:\w]):\w+")
_NO_ROWS = re.compile(  # of any table of ours
    r"\s*(;?\s*$|(alter|analyze|begin|close|commit|create|deallocate|drop|fetch|lock|release|rollback|savepoint|set|show|vacuum)\b)",
    re.IGNORECASE,
)
_CURSOR = re.compile(r"\s*declare\s.*?\scursor\s.*?\bfor\s", re.IGNORECASE | re.DOTALL)
_LIST = Path(__file__).with_name("not_keyed.toml")
_VERBS: dict[type[exp.Expr], str] = {
    exp.Select: "select",
    exp.Insert: "insert",
    exp.Update: "update",
    exp.Delete: "delete",
}


class Keyed(StrEnum):
    """How much of the database a statement asks."""

    KEYED = "keyed"  # partitions of the owners that it names
    BY_ID = "by id alone"  # every partition, each by an index
    ALL = "all owners"  # every partition: it is about all of them
    NEITHER = "no owner's rows"


class Use(NamedTuple):
    """One SELECT, INSERT, UPDATE or DELETE in a statement, however deep. `shape` names it by what does not change with
    every new column: verb, tables that are not keyed, and the columns that these are looked up by."""

    keyed: Keyed
    shape: str


class NotKeyed(NamedTuple):
    """What is known not to be keyed, each with the reason."""

    statements: Mapping[str, str]
    tables: Mapping[str, str]
    uniques: Mapping[str, str]


def known() -> NotKeyed:
    """The list that comes with the program."""
    listed = tomllib.loads(_LIST.read_text("utf-8"))
    return NotKeyed(*(
        {name: group["why"] for group in listed[kind] for name in group["names"]}
        for kind in ("statements", "tables", "uniques")
    ))  # fmt: skip


def uses(statement: str) -> list[Use]:
    """What a statement in PostgreSQL's words touches; nothing for what does not touch rows, such as SET. Raises
    ValueError when it cannot be read."""
    if _NO_ROWS.match(statement):
        return []
    try:
        plain = _CURSOR.sub("", _PLACEHOLDER.sub("$1", statement), count=1)
        parsed = sqlglot.parse_one(plain + " ", dialect="postgres")
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(f"this statement cannot be read: {statement}") from error
    found = [_use(node) for node in parsed.find_all(*_VERBS)]
    if not found:
        raise ValueError(f"nobody can tell whose rows this statement is about: {statement}")
    return found


def _use(node: exp.Expr) -> Use:
    verb = _VERBS[type(node)]
    if isinstance(node, exp.Insert):
        target = node.find(exp.Table)
        table = "" if target is None else target.name
        columns = {each.name for each in node.this.expressions}
        if table not in OWNED:
            return Use(Keyed.NEITHER, f"{verb} {table}")
        return Use(Keyed.KEYED if "owner_id" in columns else Keyed.ALL, f"{verb} {table}")
    sources = dict(_sources(node))
    owned = {alias: table for alias, table in sources.items() if table in OWNED}
    bound, mentioned = _bound(node, sources)
    loose = {alias: table for alias, table in owned.items() if (alias, "owner_id") not in bound}
    if not loose:
        return Use(Keyed.KEYED if owned else Keyed.NEITHER, verb)
    by = ", ".join(sorted({column for alias, column in mentioned if alias in loose} - {"owner_id"}))
    named = any(alias in loose and (name == "id" or name.endswith("_id")) for alias, name in bound)
    whose = f"{', '.join(sorted(set(loose.values())))}{'' if named else ' of all'}"
    shape = f"{verb} {whose}{' by ' if by else ''}{by}"
    return Use(Keyed.BY_ID if named else Keyed.ALL, shape)


def _sources(node: exp.Expr) -> Iterator[tuple[str, str]]:
    """Alias and name of what stands in its own FROM, USING or JOIN; the name of what is no table is empty."""
    start = node.args.get("from_")
    found = [*([] if start is None else [start.this]), *(node.args.get("using") or [])]
    found += [join.this for join in _joins(node)]
    if isinstance(node, exp.Update | exp.Delete):
        found.append(node.this)
    for each in found:
        yield each.alias_or_name, each.name if isinstance(each, exp.Table) else ""


Name = tuple[str, str]  # alias, column
Names = set[Name]
Pair = tuple[Name | None, Name | None]  # two columns that are equal; None is what is given from outside


def _bound(node: exp.Expr, sources: Mapping[str, str]) -> tuple[Names, Names]:
    """Columns that must equal a value given from outside of this SELECT, or one of some; and all that it compares."""
    equal: list[tuple[Name, Name | None]] = []  # the first has to equal the second, or what is given
    mentioned: Names = set()
    for condition, joined in _conditions(node):
        for column in _own(condition, exp.Column):
            mentioned |= {name} if (name := _name(column, sources)) else set()
        for left, right in _equalities(condition, sources):
            for name, other in ((left, right), (right, left)):
                if name is not None and joined in (None, name[0]):
                    equal.append((name, other))
    bound: Names = set()
    while True:
        found = {name for name, other in equal if other is None or other in bound}
        if found <= bound:
            return bound, mentioned
        bound |= found


def _equalities(part: exp.Expr, sources: Mapping[str, str]) -> Iterator[Pair]:
    if isinstance(part, exp.And):
        for each in part.flatten():
            yield from _equalities(each.unnest(), sources)
    elif isinstance(part, exp.EQ):
        left, right = (
            [side] if not isinstance(side, exp.Tuple) else side.expressions
            for side in (part.left, part.right)
        )
        if len(left) == len(right):
            for one, other in zip(left, right, strict=True):
                yield _side(one, sources), _side(other, sources)
    elif isinstance(part, exp.In):
        for each in part.this.expressions if isinstance(part.this, exp.Tuple) else [part.this]:
            yield _side(each, sources), None


def _side(side: exp.Expr, sources: Mapping[str, str]) -> Name | None:
    if isinstance(side, exp.Column):
        return _name(side, sources)
    columns = [name for column in _own(side, exp.Column) if (name := _name(column, sources))]
    return ("", side.sql()) if columns else None  # something made of columns: neither given nor a column


def _name(column: exp.Column, sources: Mapping[str, str]) -> Name | None:
    """A column of a table of this SELECT; None for one of anything else, whose row is there already."""
    alias = column.table
    if not alias:
        having = [one for one, table in sources.items() if column.name in TABLES.get(table, ())]
        alias = having[0] if len(having) == 1 else ""
    return (alias, column.name) if sources.get(alias) in TABLES else None


def _conditions(node: exp.Expr) -> Iterator[tuple[exp.Expr, str | None]]:
    """WHERE and ON; the ON of an outer join with the alias that is joined, as it narrows nothing else."""
    if (where := node.args.get("where")) is not None:
        yield where.this.unnest(), None
    for join in _joins(node):
        if (on := join.args.get("on")) is not None:
            yield on.unnest(), join.this.alias_or_name if join.side else None


def _joins(node: exp.Expr) -> list[exp.Join]:
    """Those of its own FROM or USING."""
    start = node.args.get("from_")
    tables = [start.this] if start is not None else []
    beside = [each.args.get("joins") or [] for each in (node, *tables, *(node.args.get("using") or []))]
    return [join for joins in beside for join in joins]


def _own(node: exp.Expr, kind: type[exp.Column]) -> Iterator[exp.Column]:
    """Those in it that are not inside a SELECT of their own."""
    for found in node.walk(prune=lambda each: isinstance(each, exp.Select)):
        if isinstance(found, kind):
            yield found
