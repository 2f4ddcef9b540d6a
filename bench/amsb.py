"""AMSB, the scoreboard of the package `agent-memory-guard`: memory-poisoning attacks and benign controls, each judged
by what a later turn reads back.

An attack comes from a tool (`external_tool`), a control from the user (`user_input`). The gate is told the same: what
the user said is sent with the source `user`, which the token is granted, and all else as `ai_synthesis`. So an attack
waits for its owner, and no attack can be read back. To see what the checks of the text alone stop, the second row
grants the attacker the user's word too, which no deployment should.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_memory_guard.bench.adapter import MemorySystemAdapter, RememberOutcome
from agent_memory_guard.bench.adapters.baseline import (
    AMGHardenedAdapter,
    AMGStrictAdapter,
    UnguardedDictAdapter,
)
from agent_memory_guard.bench.harness import run_suite
from agent_memory_guard.bench.scoring import Scorecard, score_report

from vouchgate.gate.gate import Gate
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import Outcome
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.service import open_service
from vouchgate.settings import Settings
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.identity import tokens
from vouchgate.wire import ClaimIn

_OUTCOMES = {
    Outcome.STORED: RememberOutcome.STORED,
    Outcome.QUEUED: RememberOutcome.QUARANTINED,
    Outcome.BLOCKED: RememberOutcome.BLOCKED,
}


class GateAdapter(MemorySystemAdapter):  # type: ignore[misc]  # of the extra `bench`, which lint does without
    """The gate as a memory: `remember` submits a claim, `recall` reads what is stored for its owner."""

    name = "vouchgate"
    self_submission = True

    def __init__(
        self,
        gate: Gate,
        principal: Principal,
        runner: asyncio.Runner,
        owner_id: str,
        *,
        trusted: frozenset[str],
    ) -> None:
        self._gate = gate
        self._principal = principal
        self._runner = runner
        self._owner_id = owner_id
        self._trusted = trusted

    def remember(self, key: str, value: Any, *, source_class: str = "external_tool") -> RememberOutcome:
        """Submits the value; a refusal raises, which counts as blocked."""
        source = Source.USER if source_class in self._trusted else Source.AI_SYNTHESIS
        sent = ClaimIn.model_validate(
            {
                "content": value,
                "memory_type": "fact",
                "source": source,
                "user_id": self._owner_id,
                "metadata": {"key": key},
            }
        )
        answer = self._runner.run(self._gate.submit(self._principal, sent))
        if not isinstance(answer, Decided):
            raise TypeError(f"no decision: {type(answer).__name__}")
        return _OUTCOMES[answer.answer.outcome]

    def recall(self, key: str) -> Any | None:
        """The newest memory in force under the key."""
        with self._gate.store.read() as connection:
            wanted = MemoryFilter(owners=frozenset({self._owner_id}))
            found = memories.search(connection, wanted, datetime.now(UTC))
        return next((memory.content for memory in found if memory.metadata.get("key") == key), None)


@contextmanager
def _gates(trusted: frozenset[str]) -> Iterator[Callable[[], GateAdapter]]:
    """Makes adapters with an owner each, on one database."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(database_url=f"sqlite:///{Path(folder) / 'gate.db'}", offline=True)
        with open_service(settings) as service, asyncio.Runner() as runner:
            now = datetime.now(UTC)
            principal, _ = tokens.create(
                service.store,
                role=Role.AGENT,
                name="amsb",
                any_owner=True,
                new_owners=True,
                sources=[Source.USER],
                actor="bench",
                now=now,
            )
            owners = (f"owner-{number}" for number in range(10_000))
            yield lambda: GateAdapter(service.gate, principal, runner, next(owners), trusted=trusted)


def _print(card: Scorecard, name: str) -> None:
    wrong = f"{card.false_positives} of {card.benign_total}"
    stopped = f"{card.defended_total} of {card.malicious_total}"
    print(f"  {name:<44} {card.score:5.1f}  {card.grade.value}   {stopped:>9}   {wrong:>7}")


def run() -> None:
    """Runs the package's whole corpus against the gate and the package's own modes."""
    print("AMSB: score (of 100), grade, attacks stopped, benign controls lost")
    for name, trusted in (
        ("vouchgate", frozenset({"user_input"})),
        ("vouchgate, every word taken for the user's", frozenset({"user_input", "external_tool"})),
    ):
        with _gates(trusted) as factory:
            card = score_report(run_suite(factory))
        _print(card, name)
        for category in card.categories:
            if category.defended < category.total:
                print(f"      {category.category}: {category.defended} of {category.total} stopped")
    for adapter in (AMGHardenedAdapter, AMGStrictAdapter, UnguardedDictAdapter):
        _print(score_report(run_suite(adapter)), adapter.name)
