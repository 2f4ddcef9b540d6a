"""How often each claim was submitted, by the key of `ingest.checks.echo`: digests and ids of principals, no text.

A group of submissions reads its rows with one statement and writes them with one. The caller holds the owners'
locks, and counts are added in the database, so no submission is lost or counted twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from vouchgate.ingest.checks.echo import MOST_NAMED, echo_key
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.likeness import DedupFacts, EchoFacts
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Examined
from vouchgate.storage.sql import fetch, run, time_of

Name = tuple[str, str]  # an owner and a key

_READ = {
    "sqlite": """
        SELECT e.owner_id, e.key, e.count, e.first_at, e.first_by, e.agents, e.sources FROM json_each(?1) AS w
        CROSS JOIN echo AS e ON e.owner_id = w.value->>0 AND e.key = w.value->>1""",
    "postgresql": """
        SELECT e.owner_id, e.key, e.count, e.first_at, e.first_by, e.agents, e.sources
        FROM unnest(%(owners)s::text[], %(keys)s::text[]) AS w (owner_id, key)
        JOIN echo AS e ON e.owner_id = w.owner_id AND e.key = w.key""",
}
# `WHERE true`, or SQLite would read the ON of ON CONFLICT as that of a join.
_WRITE = {
    "sqlite": """
        INSERT INTO echo (owner_id, key, count, first_at, last_at, first_by, agents, sources)
        SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->6, value->7
        FROM json_each(?1) WHERE true
        ON CONFLICT (owner_id, key) DO UPDATE SET count = echo.count + excluded.count,
        last_at = excluded.last_at, agents = excluded.agents, sources = excluded.sources""",
    "postgresql": """
        INSERT INTO echo (owner_id, key, count, first_at, last_at, first_by, agents, sources)
        SELECT w->>0, w->>1, (w->>2)::integer, (w->>3)::timestamptz, (w->>4)::timestamptz, w->>5, w->6, w->7
        FROM json_array_elements(%(rows)s::json) AS w
        ON CONFLICT (owner_id, key) DO UPDATE SET count = echo.count + excluded.count,
        last_at = excluded.last_at, agents = excluded.agents, sources = excluded.sources""",
}


@dataclass(slots=True)
class _Count:
    """What is known of one key; `more` are those that this transaction adds."""

    count: int
    first_at: datetime
    first_by: str
    agents: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    more: int = 0
    last_at: datetime | None = None


def counting_key(examined: Examined, words: frozenset[str]) -> Name | None:
    """What a claim of these words is counted under when it repeats no other; None for a removal, which is not
    counted."""
    claim = examined.claim
    return None if claim.removes else (claim.owner_id, echo_key(words, claim.memory_type.value))


def repeated_key(examined: Examined, dedup: DedupFacts) -> Name | None:
    """The name of the earlier claim that this one repeats according to `dedup`; None when it repeats none."""
    repeated = examined.repeats(dedup)
    return None if repeated is None else counting_key(examined, tokens(repeated.content))


def name_for(examined: Examined, words: frozenset[str], dedup: DedupFacts) -> Name | None:
    """What a claim of these words is counted under: what it repeats, so that what is nearly the same counts with
    it, else its own name."""
    return repeated_key(examined, dedup) or counting_key(examined, words)


class Echoes:
    """The counts that one transaction reads and adds to."""

    def __init__(self, connection: Connection | None) -> None:
        """Without a connection they are counts of their own, in memory."""
        self._connection = connection
        self._known: dict[Name, _Count] = {}

    def prepare(self, claims: Iterable[tuple[Examined, Name | None, DedupFacts]]) -> None:
        """Reads what claims of these own names may be counted under: these, and the names of what they repeat on
        disk. What they repeat among themselves is among their own."""
        names = (name for examined, own, dedup in claims for name in (own, repeated_key(examined, dedup)))
        self.load({name for name in names if name is not None})

    def load(self, names: Collection[Name]) -> None:
        """Reads what is known of these."""
        if not names or self._connection is None:
            return
        dialect = self._connection.dialect.name
        asked = sorted(set(names))
        if dialect == "sqlite":
            rows = fetch(self._connection, _READ[dialect], (json.dumps(asked),))
        else:
            owners, keys = (list(column) for column in zip(*asked, strict=True))
            rows = fetch(self._connection, _READ[dialect], {"owners": owners, "keys": keys})
        for owner_id, key, count, first_at, first_by, agents, sources in rows:
            self._known[owner_id, key] = _Count(
                count, time_of(first_at), first_by, _list(agents), _list(sources)
            )

    def facts(self, name: Name | None, by: str, source: Source) -> EchoFacts | None:
        """What is known of a claim that `by` sends now, this one counted in; None for the first of its kind."""
        known = None if name is None else self._known.get(name)
        if known is None:
            return None
        return EchoFacts(
            count=known.count + known.more + 1,
            first_seen=known.first_at,
            first_by=known.first_by,
            agents=tuple(_add_known(known.agents, by)),
            sources=tuple(map(Source, _add_known(known.sources, source.value))),
        )

    def count(self, name: Name | None, by: str, source: Source, at: datetime) -> None:
        """Counts a submission that was decided."""
        if name is None:
            return
        known = self._known.setdefault(name, _Count(0, at, by))
        known.agents, known.sources = _add_known(known.agents, by), _add_known(known.sources, source.value)
        known.more += 1
        known.last_at = at

    def write(self) -> None:
        """Adds what was counted."""
        zone = "" if self._connection is None or self._connection.dialect.name == "sqlite" else "+00:00"
        rows = [
            [
                *name,
                known.more,
                _text(known.first_at) + zone,
                _text(known.last_at) + zone,
                known.first_by,
                known.agents,
                known.sources,
            ]
            for name, known in sorted(self._known.items())
            if known.more and known.last_at is not None
        ]
        if not rows or self._connection is None:
            return
        dialect, document = self._connection.dialect.name, json.dumps(rows)
        values: Any = (document,) if dialect == "sqlite" else {"rows": document}
        run(self._connection, _WRITE[dialect], values)


def read_facts(connection: Connection, examined: Examined, dedup: DedupFacts, by: str) -> EchoFacts | None:
    """What a submission of this claim would be told now; nothing is counted."""
    name = name_for(examined, tokens(examined.claim.content), dedup)
    counts = Echoes(connection)
    counts.load([] if name is None else [name])
    return counts.facts(name, by, examined.claim.asserted_source)


def _add_known(known: Iterable[str], one: str) -> list[str]:
    listed = list(known)
    return listed if one in listed or len(listed) >= MOST_NAMED else [*listed, one]


def _text(at: datetime) -> str:
    """As `storage.columns.UtcTime` keeps it on SQLite."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def _list(value: Any) -> list[str]:
    listed = json.loads(value) if isinstance(value, str) else value
    return [str(each) for each in listed]
