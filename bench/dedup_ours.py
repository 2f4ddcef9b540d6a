"""The dedup index under test, as the gate uses it, on one database; and the bare statements it is compared with.

The only file of the bench that knows how `storage` is asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from itertools import islice

from sqlalchemy import Connection, bindparam, select

from vouchgate.ingest.check import Findings
from vouchgate.ingest.claims.claim import Claim, Finding, MemoryType, Source, Verdict
from vouchgate.ingest.claims.likeness import DedupFacts, ItemKind, Neighbour, Neighbours
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Policy
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.submit import Decided, Submission, write_submissions
from vouchgate.storage.dedup import index, similar
from vouchgate.storage.dedup.builds import in_use
from vouchgate.storage.dedup.reindex import reindex
from vouchgate.storage.dedup.window import Candidate, DedupIndexView
from vouchgate.storage.engine import migrate, open_engine, reading, writing
from vouchgate.storage.identity import owners
from vouchgate.storage.ids import memory_id, new_id_suffix
from vouchgate.storage.sql import BulkInsert

NOW = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)
TYPE = MemoryType.FACT
LOAD_BATCH = 5_000  # rows of one INSERT; how many does not matter from some hundreds on

_MEMORY = memories.TABLE
_ROWS = BulkInsert(_MEMORY)
_BY_KEY = (_MEMORY.c.owner_id == bindparam("of_owner"), _MEMORY.c.id == bindparam("of_id"))
_BARE = select(_MEMORY.c.id, _MEMORY.c.content, _MEMORY.c.validity_horizon).where(*_BY_KEY)
_WHOLE = select(_MEMORY).where(*_BY_KEY)
_ALL = select(_MEMORY.c.id, _MEMORY.c.content).where(
    _MEMORY.c.owner_id == bindparam("of_owner"), _MEMORY.c.status == "active"
)
_SIZES = {
    "sqlite": "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name IN ('dedup_key', 'dedup_template')",
    "postgresql": "SELECT pg_total_relation_size('dedup_key') + pg_total_relation_size('dedup_template')",
}


def owner_id(owner: int) -> str:
    """What owner number `owner` is called."""
    return f"owner-{owner:04}"


def id_of(number: int) -> str:
    """The id of the memory with this number in the store; later ids are larger, as in a real store."""
    milliseconds = int((NOW - timedelta(days=30)).timestamp() * 1000) + number
    return memory_id(f"{(milliseconds << 80) | (0x7 << 76) | (0b10 << 62) | number:032x}")


def number_of(item_id: str) -> int:
    """The number that `id_of` put into an id."""
    return int(item_id[-12:], 16)


@cache
def policy() -> Policy:
    """The built-in policy, with a queue that no bench fills."""
    built_in = load_policy()
    queue = built_in.queue.model_copy(update={"per_agent": 10**6, "per_owner": 10**6, "total": 10**7})
    return built_in.model_copy(update={"queue": queue})


def _row(owner: int, number: int, text: str) -> dict[str, object]:
    return {
        "owner_id": owner_id(owner),
        "id": id_of(number),
        "memory_type": TYPE.value,
        "content": text,
        "source": "user",
        "status": "active",
        "confidence": "medium",
        "confidence_score": None,
        "label": "INFERENCE",
        "source_id": None,
        "created_at": NOW,
        "validity_horizon": None,
        "decision_id": id_of(number).replace("mem", "dec"),
        "approved_by": None,
        "superseded_by": None,
        "retracted_reason": None,
        "stale_since": None,
        "stale_reason": None,
        "lowered_at": None,
        "lowered_reason": None,
        "details": {},
    }


def _examined(owner: int, text: str) -> Examined:
    """The claim as it is after the checks that need no database; stored, unless it is known already."""
    return Examined(
        claim=Claim(
            content=text,
            memory_type=TYPE,
            asserted_source=Source.USER,
            source=Source.USER,
            owner_id=owner_id(owner),
        ),
        policy=policy(),
        capture_time=NOW,
        readings=(),
        findings=Findings(
            (
                Finding(check="hedge", verdict=Verdict.PASS, code="no_hedge", message="Nothing is hedged."),
                Finding(check="citation_detect", verdict=Verdict.PASS, code="none", message="No citations."),
            )
        ),
    )


def found(facts: DedupFacts) -> tuple[frozenset[int], bool]:
    """The memories in an answer by number, and whether the index says that these are all.

    Raises RuntimeError when it could not answer.
    """
    if not isinstance(facts, Neighbours):
        raise RuntimeError(facts.detail)
    return frozenset(number_of(item.id) for item in facts.items), facts.complete


class Ours:
    """A store in its own database, filled once. Owners and memories have numbers here."""

    def __init__(self, url: str, threshold: Fraction) -> None:
        self.threshold = threshold
        self._engine = open_engine(url)
        self.dialect = self._engine.dialect.name
        self.label = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[self.dialect]
        migrate(self._engine)

    def load(self, rows: Iterable[tuple[int, str]]) -> None:
        """Puts in the texts with their owners, numbered from 0, and has the index built for all of them."""
        numbered = iter(enumerate(rows))
        with writing(self._engine) as connection:
            while batch := list(islice(numbered, LOAD_BATCH)):
                _ROWS.write(connection, [_row(owner, number, text) for number, (owner, text) in batch])
                owners.lock_owners(connection, list({owner_id(owner) for _, (owner, _) in batch}))
        reindex(self._engine, self.threshold)
        if self.dialect == "postgresql":  # what autovacuum does a minute later
            with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM ANALYZE")
        else:
            with self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def index_bytes(self) -> int:
        """What the tables of the index take, with their own indexes."""
        with reading(self._engine) as connection:
            return int(connection.exec_driver_sql(_SIZES[self.dialect]).scalar_one())

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """An open read transaction for the calls below: it has begun, which comes with the first statement."""
        with reading(self._engine) as connection:
            connection.exec_driver_sql("SELECT 1 FROM meta")
            yield connection

    def keys(self, text: str) -> SignatureKeys:
        """What the gate makes of a text before it asks the index."""
        return signature_keys(tokens(text), TYPE.value, self.threshold)

    def check(self, connection: Connection, owner: str, keys: SignatureKeys) -> DedupFacts:
        """The look-up of the gate."""
        return index.find_neighbours(connection, owner, keys, NOW)

    def bare(self, connection: Connection, owner: str, item_id: str) -> object:
        """One look-up by primary key of what a candidate is read with: id, text and horizon."""
        return connection.execute(_BARE, {"of_owner": owner, "of_id": item_id}).one()

    def whole(self, connection: Connection, owner: str, item_id: str) -> object:
        """One look-up by primary key of the whole row."""
        return connection.execute(_WHOLE, {"of_owner": owner, "of_id": item_id}).one()

    def scan(self, connection: Connection, owner: str, text: str) -> frozenset[int]:
        """The naive way: reads every text of the owner, cuts it into words and compares."""
        own = tokens(text)
        low, both = self.threshold.numerator, self.threshold.numerator + self.threshold.denominator
        near = []
        for item_id, content in connection.execute(_ALL, {"of_owner": owner}):
            words = tokens(content)
            if both * len(own & words) >= low * (len(own) + len(words)):
                near.append(number_of(item_id))
        return frozenset(near)

    def insert_row(self, owner: int, number: int, text: str) -> float:
        """Writes a memory row and nothing else, and commits; seconds."""
        row = _row(owner, number, text)
        start = time.perf_counter()
        with writing(self._engine) as connection:
            _ROWS.write(connection, [row])
        return time.perf_counter() - start

    def insert_deduplicated(self, owner: int, number: int, text: str) -> float:
        """The dedup part alone: look-up, and unless it finds a duplicate index entry and memory row; seconds."""
        row = _row(owner, number, text)
        start = time.perf_counter()
        keys = self.keys(text)
        with writing(self._engine) as connection:
            build, _ = in_use(connection)
            window = DedupIndexView(connection, build)
            if not index.select_neighbours(keys, window.find_candidates(owner_id(owner), keys), NOW).items:
                neighbour = Neighbour(kind=ItemKind.MEMORY, id=str(row["id"]), content=text)
                window.add(owner_id(owner), Candidate(neighbour), keys)
                window.write()
                _ROWS.write(connection, [row])
        return time.perf_counter() - start

    def submit(self, claims: Sequence[tuple[int, str]]) -> float:
        """Decides and writes the claims as the writer does, in one transaction; seconds.

        The keys are part of it; what the checks before it cost is not.
        """
        examined = [_examined(owner, text) for owner, text in claims]
        start = time.perf_counter()
        submissions = [
            Submission(
                examined=one,
                principal_id="bench",
                suffix=new_id_suffix(NOW),
                keys=self.keys(one.claim.content),
                idempotency=None,
                started=start,
                bands=similar.keys_of(one.claim.content, TYPE.value),
            )
            for one in examined
        ]
        with writing(self._engine) as connection:
            answers = write_submissions(connection, submissions)
        taken = time.perf_counter() - start
        if refused := [answer for answer in answers if not isinstance(answer, Decided)]:
            raise RuntimeError(f"not decided: {refused[0]}")
        return taken

    def close(self) -> None:
        """Closes every connection."""
        self._engine.dispose()
