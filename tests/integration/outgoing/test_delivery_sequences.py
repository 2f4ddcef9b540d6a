"""Whatever is sent, decided, taken back and delivered, in whatever order: in the end a store behind the gate holds at
each place the memory in force for which its claim names that place, and nothing else.

On SQLite alone: what becomes of a place does not depend on the database, which `test_outbox` asks on both.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.claims import NOW, examined, submission_of
from tests.conftest import THRESHOLD
from tests.delivering import AGENT
from tests.reviews import queue_of, reviewer
from vouchgate.gate import deliveries as acts
from vouchgate.gate.deliveries import NotServed
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp, DeliveryTarget
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.people import Principal
from vouchgate.review.answers import ApprovalRefused, NotUndoable, Undone
from vouchgate.review.queue import ReviewQueue
from vouchgate.storage.claims import decisions, memories
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup.upkeep import verify
from vouchgate.storage.outgoing.deliveries import DeliveryFilter, LeasedDelivery, search
from vouchgate.storage.store import Store

SINK = "shelf"
# Long enough that one number makes a conflict of it, not another claim.
TEA = (
    "The kitchen on the third floor buys tea number {} from the small shop in Mill Street every second Monday of"
    " the month, and keeps what is left over in the tall cupboard beside the window"
)
TEXTS = [*(TEA.format(number) for number in (1, 2)), "Coffee comes by ship", "Water is filtered on the roof"]
PLACES = ["a", "b"]
DAY = timedelta(days=1)
_numbers = st.sampled_from([1, 1, 1, 1, 2, 2, 3, 5])  # the last item, the one before it, …
STEPS = st.one_of(
    st.tuples(
        st.just("put"),
        st.sampled_from(TEXTS),
        st.sampled_from([*PLACES, None]),
        st.sampled_from([Source.USER, Source.AI_SYNTHESIS]),
        st.sampled_from([None, None, None, DAY]),
        st.sampled_from([MemoryType.FACT, MemoryType.FACT, MemoryType.DECISION]),
    ),
    st.tuples(st.just("remove"), st.sampled_from(TEXTS), st.sampled_from(PLACES)),
    st.tuples(st.sampled_from(["approve", "approve", "keep both", "edit", "reject", "retract"]), _numbers),
    st.tuples(st.just("undo"), _numbers),
    st.tuples(st.sampled_from(["deliver", "lose", "give up", "retry", "expire"])),
)


@pytest.fixture(scope="module")
def store(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One database for all sequences; each has an owner of its own."""
    file = tmp_path_factory.mktemp("sequences") / "vouchgate.db"
    shutil.copyfile(migrated_file, file)
    opened = Store.open(f"sqlite:///{file}", threshold=THRESHOLD)
    yield opened
    opened.close()


class Sequence:
    """One owner, the store behind the gate (`shelf`), and what was done so far."""

    def __init__(self, store: Store, owner: str) -> None:
        self.store, self.owner = store, owner
        self.me: Principal = reviewer(owner)
        self.queue: ReviewQueue = queue_of(store)
        self.now: datetime = NOW
        self.items: list[str] = []
        self.memories: list[str] = []
        self.shelf: dict[str, str] = {}  # by place, what is there

    def do(self, step: tuple[Any, ...]) -> None:
        """One step, whatever it comes to. Between two of them, leases end."""
        self.now += timedelta(minutes=2)
        match step:
            case "put", content, place, source, horizon, kind:
                delivery = None if place is None else DeliveryTarget(sink=SINK, place=place)
                until = horizon and self.now + horizon
                self._send(content, delivery, source, until, kind)
            case "remove", content, place:
                gone = DeliveryTarget(sink=SINK, place=place, op=DeliveryOp.REMOVE)
                self._send(content, gone, Source.AI_SYNTHESIS, None, MemoryType.FACT)
            case ("deliver",):
                self.deliver()
            case ("lose" | "give up" as how,):
                self._fail(final=how == "give up")
            case ("retry",):
                self.retry()
            case ("expire",):
                self.now += DAY
                self.queue.expire_memories(self.now)
            case "retract", number:
                if self.memories:
                    name = self.memories[-min(number, len(self.memories))]
                    self.queue.retract(self.me, name, reason="Wrong.", now=self.now)
            case act, number:
                if self.items:
                    self._act(act, self.items[-min(number, len(self.items))])

    def _send(
        self,
        content: str,
        delivery: DeliveryTarget | None,
        source: Source,
        until: datetime | None,
        kind: MemoryType,
    ) -> None:
        one = examined(
            content,
            owner_id=self.owner,
            source=source,
            memory_type=kind,
            delivery=delivery,
            validity_horizon=until,
            now=self.now,
        )
        sent = self.store.writer.submit(submission_of(one)).result()
        assert isinstance(sent, Decided)
        self.items += [sent.answer.queue_id] if sent.answer.queue_id else []
        self.memories += [sent.answer.memory_id] if sent.answer.memory_id else []

    def _act(self, act: str, item_id: str) -> None:
        item = self.queue.get_by_id(self.me, item_id)
        assert item is not None
        version, now = item.version, self.now
        if act == "reject":
            self.queue.reject(self.me, item_id, version=version, reason="No.", now=now)
        elif act == "undo":
            answer = self.queue.undo(self.me, item_id, version=version, now=now)
            assert isinstance(answer, Undone | NotUndoable)
        else:
            own = None
            if act == "edit":
                own = examined(
                    f"{TEXTS[3]}, {now:%H:%M}", owner_id=self.owner, memory_type=item.memory_type, now=now
                )
            both = False if act == "keep both" else None
            done = self.queue.approve(self.me, item_id, version=version, edited=own, supersede=both, now=now)
            if isinstance(done, ApprovalRefused) and done.code == "conflict_unresolved":
                self.queue.approve(self.me, item_id, version=version, supersede=True, now=now)
            after = self.queue.get_by_id(self.me, item_id)
            self.memories += [after.memory_id] if after is not None and after.memory_id else []

    def _take(self, most: int = 20) -> list[LeasedDelivery]:
        found = acts.lease_deliveries(
            self.store, SINK, frozenset({self.owner}), self.now, most, token_id=AGENT
        )
        assert not isinstance(found, NotServed)
        return found

    def _apply(self, handed: LeasedDelivery) -> None:
        """As a consumer does, who knows nothing but what it was handed."""
        if handed.record.op is DeliveryOp.REMOVE:
            self.shelf.pop(handed.record.place, None)
        else:
            assert handed.memory is not None
            self.shelf[handed.record.place] = handed.memory.content

    def deliver(self) -> None:
        """All that is due, in order."""
        while taken := self._take():
            for handed in taken:
                self._apply(handed)
                whose = frozenset({self.owner})
                acts.mark_done(self.store, whose, handed.record.id, handed.lease, self.now, token_id=AGENT)

    def _fail(self, *, final: bool) -> None:
        """The first that is due fails; of one that is not given up, the answer is lost after it was applied."""
        for handed in self._take(1):
            if not final:
                self._apply(handed)
            acts.mark_failed(
                self.store,
                frozenset({self.owner}),
                handed.record.id,
                handed.lease,
                self.now,
                error="the shelf is full",
                final=final,
                token_id=AGENT,
            )

    def retry(self) -> None:
        """The owner has every dead letter tried again, oldest first."""
        whose = frozenset({self.owner})
        with self.store.read() as connection:
            known = search(connection, DeliveryFilter(owners=whose, limit=200))
        for record in reversed(known):
            acts.retry(self.store, whose, record.id, actor=self.me.id, now=self.now)

    def end(self) -> None:
        """Everything is delivered that can be."""
        self.queue.expire_memories(self.now)
        for _ in range(3):
            self.now += DAY / 4
            self.retry()
            self.deliver()

    def wanted(self) -> dict[str, str]:
        """What the shelf is to hold: what is in force, where its claim says. Two at one place are a fault."""
        found: dict[str, str] = {}
        wanted = MemoryFilter(owners=frozenset({self.owner}), statuses=frozenset({MemoryStatus.ACTIVE}))
        with self.store.read() as connection:
            for memory in memories.search(connection, wanted, self.now):
                text = decisions.get(connection, memory.decision_id, owners=frozenset({self.owner}))
                assert text is not None
                delivery = ValidationResult.model_validate_json(text).evidence.claim.delivery
                if delivery is not None:
                    assert delivery.place not in found, "two memories in force at one place"
                    found[delivery.place] = memory.content
        return found


def put(
    content: str,
    place: str | None,
    source: Source = Source.USER,
    horizon: timedelta | None = None,
    kind: MemoryType = MemoryType.FACT,
) -> tuple[Any, ...]:
    """The step that sends a claim."""
    return "put", content, place, source, horizon, kind


OVER_ANOTHER = [  # what comes back would be written over what came to its place since
    put(TEXTS[0], "a"),
    put(TEXTS[1], "b", Source.AI_SYNTHESIS),
    ("approve", 1),
    put(TEXTS[2], "a"),
    ("undo", 1),
]
# The same words of another type, for a day: they would take the first with them.
SAME_WORDS = [put(TEXTS[2], "a"), put(TEXTS[2], "a", horizon=DAY, kind=MemoryType.DECISION), ("expire",)]
# Seen to be out of force, but not yet taken out, when something else came to its place.
UNSWEPT = [put(TEXTS[2], "a", horizon=timedelta(minutes=1)), put(TEXTS[3], "a"), ("retract", 2), ("expire",)]


@example(steps=OVER_ANOTHER)
@example(steps=SAME_WORDS)
@example(steps=UNSWEPT)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=8, max_size=30))
def test_the_store_behind_ends_as_the_gate_is(store: Store, steps: list[tuple[Any, ...]]) -> None:
    run = Sequence(store, f"owner-{uuid.uuid4()}")  # not drawn: a sequence that is run again begins anew
    for step in steps:
        run.do(step)
    run.end()
    assert run.shelf == run.wanted()
    checked = verify(store, run.owner)
    assert not checked.faults, checked.first
