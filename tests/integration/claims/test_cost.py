"""What a claim costs the database: counted, not timed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.claims import policy
from tests.counting import Counted, counting
from tests.integration.dedup.test_contradicting import agent
from vouchgate.gate.gate import Gate
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.sources.reader import Sources
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.store import Store
from vouchgate.wire import ClaimIn

__all__ = ["agent"]  # a fixture
WORDS = "The nightly export of the archive leaves for bucket seven and writes one row for every event"


@pytest.fixture
def gate(store: Store) -> Iterator[Gate]:
    """A gate that draws nothing for spot checks."""
    drawn = {"spot_checks": {"rate": 0.0}}
    made = Gate(Policy.model_validate(policy().model_dump() | drawn), store, Sources(GitSource([]), {}))
    yield made
    made.close()


def _sent(gate: Gate, agent: Principal, store: Store, content: str, source: Source = Source.USER) -> Counted:
    sent = ClaimIn(content=content, memory_type=MemoryType.FACT, source=source, user_id="ann")
    with counting(store) as seen:
        assert isinstance(asyncio.run(gate.submit(agent, sent)), Decided)
    return seen


def test_what_a_claim_writes(gate: Gate, agent: Principal, store: Store) -> None:
    """Five rows, those by which repeats are found, and no more statements than tables."""
    _sent(gate, agent, store, "The harbour lights are lit at dusk.")  # makes the owner
    stored = _sent(gate, agent, store, WORDS)
    once = {"memory": 1, "decision": 1, "log_entry": 1, "owner": 1, "echo": 1}
    assert stored.rows == {**once, "dedup_key": 2}
    assert len(stored.writes) == 6 and len(stored.reads) <= 9
    assert stored.size < 2_600
    queued = _sent(gate, agent, store, "Backups are kept in the hall of the mint.", Source.AI_SYNTHESIS)
    assert queued.rows.total() <= 8 and len(queued.writes) <= 8
    blocked = _sent(gate, agent, store, "I believe the lock is held for long, maybe.")
    assert blocked.rows == {"decision": 1, "log_entry": 1, "owner": 1, "echo": 1}
    assert len(blocked.writes) == 4
