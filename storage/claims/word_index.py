"""The words of memories, for a ranked search: SQLite's FTS5, PostgreSQL's `tsvector` with a GIN index.

Nobody who stores a claim writes to it. It follows each owner's log, as the index of similar memories does (ADR-0054,
ADR-0065): what entries after `owner.word_seq` are about is the tail, which a search reads as well. A memory that left
stays in, for who asks what was in force before; what is erased is taken out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    Table,
    bindparam,
    cast,
    column,
    delete,
    func,
    insert,
    literal,
    select,
    table,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from vouchgate.ingest.language.ranking import index_words
from vouchgate.storage.identity.owners import TABLE as OWNER
from vouchgate.storage.sql import BulkInsert, among
from vouchgate.storage.tables.claims import LogRow, MemoryRow, MemoryWordsRow, PendingRow

TABLE: Table = MemoryWordsRow.metadata.tables["memory_words"]
_MEMORY: Table = MemoryRow.metadata.tables["memory"]
_LOG: Table = LogRow.metadata.tables["log_entry"]
_PENDING: Table = PendingRow.metadata.tables["pending"]
_FTS = table("memory_fts", column("rowid"), column("rank"))

TAIL = 64  # entries of a log that are left for a search to read
AT_ONCE = 500  # entries that are taken in by one transaction
_CLEARED = 5_000  # rows deleted by one
MOST_COUNTED = 20_000  # memories that have a word: more is "many"

_MATCHES = text("memory_fts MATCH :match")
_ENTRIES = (
    select(_LOG.c.seq, _LOG.c.subject_id)
    .where(_LOG.c.owner_id == bindparam("of_owner"), _LOG.c.seq > bindparam("after"))
    .order_by(_LOG.c.seq)
    .limit(bindparam("most"))
)
_BECAME = select(_PENDING.c.memory_id).where(
    _PENDING.c.owner_id == bindparam("of_owner"),
    among(_PENDING.c.id, "ids"),
    _PENDING.c.memory_id.is_not(None),
)
_CONTENTS = select(_MEMORY.c.id, _MEMORY.c.content).where(
    _MEMORY.c.owner_id == bindparam("of_owner"), among(_MEMORY.c.id, "ids"), _MEMORY.c.content != ""
)
_IN = select(TABLE.c.memory_id).where(
    TABLE.c.owner_id == bindparam("of_owner"), among(TABLE.c.memory_id, "ids")
)
_OF_OWNER = select(OWNER.c.log_seq, OWNER.c.word_seq).where(OWNER.c.owner_id == bindparam("of_owner"))
_BEGIN = update(OWNER).where(OWNER.c.owner_id == bindparam("of_owner"))
_BEHIND = (
    select(OWNER.c.owner_id)
    .where(OWNER.c.log_seq - OWNER.c.word_seq >= TAIL, OWNER.c.owner_id != "")
    .limit(1)
)
_OF_MEMORIES = (TABLE.c.owner_id == bindparam("of_owner")) & among(TABLE.c.memory_id, "ids")
_ROWS = BulkInsert(TABLE)


@dataclass(frozen=True, slots=True)
class Batch:
    """The memories that the entries of an owner's log after `begin` and up to `end` are about, with their texts."""

    owner_id: str
    begin: int
    end: int
    contents: Mapping[str, str]


def behind(connection: Connection) -> str | None:
    """An owner of whom more is in the tail than a search should read."""
    return connection.scalar(_BEHIND)


def ends(connection: Connection, owner_id: str) -> tuple[int, int]:
    """Where the owner's log ends, and where the index has come to in it."""
    row = connection.execute(_OF_OWNER, {"of_owner": owner_id}).one_or_none()
    return (0, 0) if row is None else (row.log_seq, row.word_seq)


def next_batch(connection: Connection, owner_id: str, most: int = AT_ONCE) -> Batch:
    """The oldest part of an owner's tail. An entry is about a memory by its own id, by that of the decision that stored
    it, which ends alike, or by the item that waited before."""
    _, begin = ends(connection, owner_id)
    rows = connection.execute(_ENTRIES, {"of_owner": owner_id, "after": begin, "most": most}).all()
    subjects = {row.subject_id for row in rows}
    ids = {f"mem_{each[4:]}" for each in subjects if each.startswith(("mem_", "dec_"))}
    waited = [each for each in subjects if each.startswith("rev_")]
    if waited:
        ids |= set(connection.scalars(_BECAME, {"of_owner": owner_id, "ids": waited}))
    found = connection.execute(_CONTENTS, {"of_owner": owner_id, "ids": list(ids)}) if ids else ()
    return Batch(owner_id, begin, rows[-1].seq if rows else begin, {row.id: row.content for row in found})


def rows_of(batch: Batch, dialect: str) -> list[dict[str, Any]]:
    """What is written of a batch. It takes some 50 microseconds a memory, so it is done before the transaction."""
    mark = _mark(batch.owner_id)
    rows = []
    for memory_id, content in sorted(batch.contents.items()):
        words = [mark + word for word in index_words(content)]
        if dialect == "postgresql":
            words = [f"{_lexeme(word)}:{place}" for place, word in enumerate(words, start=1)]
        rows.append({"owner_id": batch.owner_id, "memory_id": memory_id, "words": " ".join(words)})
    return rows


def put(connection: Connection, batch: Batch, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Puts a batch in; False, and nothing is written, when another process was faster. The caller holds the owner's
    lock."""
    owner = {"of_owner": batch.owner_id}
    if ends(connection, batch.owner_id)[1] != batch.begin:
        return False
    # What was erased since the batch was read is not there any more; what an earlier entry was about is in already.
    ids = {"ids": [row["memory_id"] for row in rows]}
    there = {row.id for row in connection.execute(_CONTENTS, owner | ids)}
    there -= set(connection.scalars(_IN, owner | ids))
    new = [row for row in rows if row["memory_id"] in there]
    on_sqlite = connection.dialect.name == "sqlite"
    last = connection.scalar(select(func.max(TABLE.c.number))) or 0 if on_sqlite else 0
    numbers = range(last + 1, last + 1 + len(new)) if on_sqlite else [None] * len(new)
    _ROWS.write(connection, [{**row, "number": number} for row, number in zip(new, numbers, strict=True)])
    if on_sqlite:
        after = text(
            "INSERT INTO memory_fts (rowid, words) SELECT number, words FROM memory_words WHERE number > :n"
        )
        connection.execute(after, {"n": last})
    connection.execute(_BEGIN.values(word_seq=batch.end), owner)
    return True


def remove(connection: Connection, owner_id: str, memory_ids: Collection[str]) -> None:
    """Takes memories out; one that is not in is no error."""
    asked = {"of_owner": owner_id, "ids": list(memory_ids)}
    if connection.dialect.name == "sqlite":
        gone = select(literal("delete"), TABLE.c.number, TABLE.c.words).where(_OF_MEMORIES)
        fts = table("memory_fts", column("memory_fts"), column("rowid"), column("words"))
        connection.execute(insert(fts).from_select(["memory_fts", "rowid", "words"], gone), asked)
    connection.execute(delete(TABLE).where(_OF_MEMORIES), asked)


def clear_part(connection: Connection, owner_id: str) -> bool:
    """Takes some thousand of an owner's memories out, and has the index begin anew; whether there may be more."""
    of_owner = select(TABLE.c.memory_id).where(TABLE.c.owner_id == owner_id).limit(_CLEARED)
    found = list(connection.scalars(of_owner))
    remove(connection, owner_id, found)
    connection.execute(_BEGIN.values(word_seq=0), {"of_owner": owner_id})
    return len(found) == _CLEARED


def having(connection: Connection, owner_id: str, words: Sequence[str]) -> dict[str, int]:
    """How many of an owner's memories in the index have each word, at most MOST_COUNTED."""
    return {word: connection.scalar(_count(connection, owner_id, word)) or 0 for word in words}


def _count(connection: Connection, owner_id: str, word: str) -> Select[Any]:
    some = _matching(select(literal(1)), connection, owner_id, [word]).limit(MOST_COUNTED)
    return select(func.count()).select_from(some.subquery())


def candidates(
    connection: Connection,
    owner_id: str,
    worth: Mapping[str, float],
    conditions: Sequence[ColumnElement[bool]],
    most: int,
) -> list[str]:
    """Ids of the owner's memories in the index that have one of these words and fit, best first as far as the database
    can tell: by BM25 on SQLite; by cover density on PostgreSQL, where what each word is worth is said to it."""
    same = (_MEMORY.c.owner_id == TABLE.c.owner_id) & (_MEMORY.c.id == TABLE.c.memory_id)
    found = _matching(select(TABLE.c.memory_id), connection, owner_id, list(worth)).where(same, *conditions)
    if connection.dialect.name == "sqlite":
        by: Any = _FTS.c.rank
    else:
        mark = _mark(owner_id)
        by = -sum(
            (func.ts_rank_cd(TABLE.c.words, cast(_lexeme(mark + word), TSQUERY), 1) * value)
            for word, value in worth.items()
        )
    return list(connection.scalars(found.order_by(by).limit(most)))


def _matching(
    statement: Select[Any], connection: Connection, owner_id: str, words: Sequence[str]
) -> Select[Any]:
    """The rows of an owner that have one of the words. Each is quoted: nothing in it is an operator."""
    mark = _mark(owner_id)
    statement = statement.select_from(TABLE).where(TABLE.c.owner_id == owner_id)
    if connection.dialect.name == "sqlite":
        match = " OR ".join('"' + (mark + word).replace('"', '""') + '"' for word in words)
        return statement.where(TABLE.c.number == _FTS.c.rowid, _MATCHES.bindparams(match=match))
    query = " | ".join(_lexeme(mark + word) for word in words)
    return statement.where(TABLE.c.words.op("@@")(cast(literal(query, String), TSQUERY)))


def _mark(owner_id: str) -> str:
    """What the words of an owner begin with. Two owners with one mark only make each other's lists longer."""
    return hashlib.sha256(owner_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _lexeme(word: str) -> str:
    """A word as `tsvector` and `tsquery` read it, whatever is in it."""
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
