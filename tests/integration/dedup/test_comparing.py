"""Claims are compared before the write transaction: what that bounds, what it must not miss, and who waits for whom."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count

import pytest
from sqlalchemy import Connection

from tests.claims import examined, policy, submission_of
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.decision import Outcome, ValidationResult
from vouchgate.ingest.claims.likeness import DedupUnavailable, Neighbours
from vouchgate.ingest.dedup.compare import Allowance
from vouchgate.ingest.pipeline import Examined, replay
from vouchgate.ingest.policy import Policy
from vouchgate.storage.claims import turns
from vouchgate.storage.claims.submit import Decided, Submission, WriterAnswer, write_submissions
from vouchgate.storage.dedup import index
from vouchgate.storage.dedup.comparing import Comparer
from vouchgate.storage.engine import writing
from vouchgate.storage.errors import StorageError, StoreBusy, StoreClosed
from vouchgate.storage.queue.capacity import QueueFull
from vouchgate.storage.store import Store
from vouchgate.storage.writer import Writer

SOME = policy(per_owner=55)
BATCH = 30  # of one agent; each is near to everything that is stored
WORDS = [f"word{chr(97 + n % 26)}{chr(97 + n // 26)}of" for n in range(220)]  # some 2,000 characters


def nothing() -> Allowance:
    return Allowance(0, 0.0)


def near(number: int, owner_id: str = "ann", under: Policy = SOME) -> Submission:
    """One of many long claims that differ from each other in a value and a word."""
    words = [*WORDS]
    words[number % 200] = f"v{number}"
    words[(number * 7 + 3) % 200] = f"name{number}"
    text = " ".join(words)
    return submission_of(examined(text, owner_id=owner_id, source=Source.AI_SYNTHESIS, under=under))


def put(store: Store, submissions: list[Submission]) -> list[WriterAnswer]:
    """Writes them through a connection of its own, without comparing anything."""
    with writing(store._engine) as connection:
        return write_submissions(connection, submissions, allow=nothing)


def result(answer: WriterAnswer) -> ValidationResult:
    assert isinstance(answer, Decided)
    return answer.answer


def codes(answer: ValidationResult) -> list[str]:
    return [finding.code for finding in answer.findings if finding.check == "dedup"]


def replays(answer: ValidationResult, one: Examined) -> bool:
    stored = ValidationResult.model_validate_json(answer.model_dump_json())
    # These claims are examined without a detector, so its findings are not what a replay would find.
    again = replace(one, known=None).knowing(dedup=stored.evidence.dedup, echo=stored.evidence.echo).decide()
    return (again.tier, again.rule, again.findings, again.nearest) == (
        stored.tier,
        stored.rule,
        stored.findings,
        again.nearest,
    )


class Path:
    """A comparer and a writer of their own on a store. `between` is called each time the comparer has read, `hold`
    keeps it from reading."""

    def __init__(
        self,
        store: Store,
        *,
        before: Callable[[], Allowance] = lambda: Allowance(1000, 60.0),
        inside: Callable[[], Allowance] = index.new_allowance,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self.go = threading.Event()
        self.reading = threading.Event()  # the comparer has taken what it reads for
        self.inside: list[Allowance] = []

        def allow() -> Allowance:
            self.inside.append(inside())
            return self.inside[-1]

        @contextmanager
        def read() -> Iterator[Connection]:
            self.reading.set()
            self.go.wait(120)
            with store.read() as connection:
                yield connection
            between()

        self.writer = Writer(store._engine, allow=allow)
        self.comparer = Comparer(read, self.writer, allow=before)

    def send(self, submission: Submission) -> WriterAnswer:
        self.go.set()
        return self.comparer.submit(submission).result(120)

    def close(self) -> None:
        self.go.set()
        self.comparer.close()
        self.writer.close()


@pytest.fixture
def path(store: Store) -> Iterator[Callable[..., Path]]:
    made: list[Path] = []

    def make(**settings: Callable[[], Allowance] | Callable[[], None]) -> Path:
        made.append(Path(store, **settings))  # type: ignore[arg-type]  # as Path says
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.on("postgresql")
def test_one_agent_with_long_near_duplicates_stops_no_other_owner(
    store: Store, path: Callable[..., Path]
) -> None:
    put(store, [near(number) for number in range(40)])
    way = path()
    order: list[str] = []

    def send(name: str, submission: Submission) -> WriterAnswer:
        future = way.comparer.submit(submission)
        future.add_done_callback(lambda _: order.append(name))
        return future  # type: ignore[return-value]  # taken out below

    attack = [send(f"ann {number}", near(1000 + number)) for number in range(BATCH)]
    other = send("bob", near(0, "bob"))
    way.go.set()
    assert codes(result(other.result(120))) == ["unique"]  # type: ignore[union-attr]
    answers = [future.result(120) for future in attack]  # type: ignore[union-attr]
    assert order.index("bob") < 10
    assert [name for name in order if name != "bob"] == [f"ann {number}" for number in range(BATCH)]
    # What was stored before was compared before; inside there was what the batch itself had brought meanwhile.
    decided = [answer.answer for answer in answers if isinstance(answer, Decided)]
    assert {type(answer) for answer in answers} == {Decided, QueueFull}
    assert [codes(answer) for answer in decided] == [["conflict"]] * 15
    assert way.inside
    assert max(one.compared for one in way.inside) <= index.MOST_COMPARED
    assert sum(one.compared for one in way.inside) < 15 * index.MOST_NEIGHBOURS


def test_what_was_compared_before_is_not_compared_inside(store: Store, path: Callable[..., Path]) -> None:
    put(store, [near(number) for number in range(10)])
    way = path(inside=nothing)
    sent = near(50)
    answer = result(way.send(sent))
    assert codes(answer) == ["conflict"]
    assert isinstance(answer.evidence.dedup, Neighbours)
    assert answer.evidence.dedup.complete
    assert len(answer.evidence.dedup.items) == 10
    assert replays(answer, sent.examined)


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("bound", ["texts", "seconds"])
def test_a_crowded_claim_waits_and_is_decided_alike_again(
    store: Store, path: Callable[..., Path], bound: str
) -> None:
    ticks = count()
    allow = {"texts": nothing, "seconds": lambda: Allowance(1000, 0.5, lambda: float(next(ticks)))}[bound]
    put(store, [near(number) for number in range(10)])
    way = path(before=nothing, inside=allow)
    sent = near(50)
    answer = result(way.send(sent))
    assert (answer.outcome, codes(answer)) == (Outcome.QUEUED, ["dedup_crowded"])
    assert answer.evidence.dedup == Neighbours(complete=False)
    assert replays(answer, sent.examined)


@pytest.mark.on("sqlite")
def test_a_crowded_claim_is_replayed_from_what_was_kept(store: Store, path: Callable[..., Path]) -> None:
    way = path(before=nothing, inside=nothing)
    put(store, [near(1)])
    from vouchgate.ingest.pipeline import examine, inspect

    detector = HedgeDetector(SOME.lexicon)
    one = near(2)
    inspected = inspect(one.examined.claim, detector)
    real = examine(inspected, (), SOME, one.examined.capture_time)
    answer = result(way.send(replace(one, examined=real)))
    assert (answer.outcome, codes(answer)) == (Outcome.QUEUED, ["dedup_crowded"])
    assert replay(ValidationResult.model_validate_json(answer.model_dump_json()), SOME, detector) == ()


@pytest.mark.on("sqlite")
def test_more_neighbours_than_the_bound_are_not_all_of_them(store: Store, path: Callable[..., Path]) -> None:
    put(store, [near(number) for number in range(index.MOST_NEIGHBOURS + 8)])
    sent = near(150)
    answer = result(path().send(sent))
    assert isinstance(answer.evidence.dedup, Neighbours)
    assert len(answer.evidence.dedup.items) == index.MOST_NEIGHBOURS
    assert not answer.evidence.dedup.complete
    assert answer.outcome is Outcome.QUEUED
    assert replays(answer, sent.examined)


@pytest.mark.on("sqlite")
def test_the_same_text_is_found_whatever_may_be_compared(store: Store, path: Callable[..., Path]) -> None:
    stored = put(store, [submission_of(examined(" ".join(WORDS)))])
    few = path(before=lambda: Allowance(1000, 60.0), inside=nothing)
    answer = result(few.send(submission_of(examined(" ".join(WORDS)))))
    assert (answer.outcome, codes(answer)) == (Outcome.BLOCKED, ["duplicate"])
    assert answer.conflicting_memory_id == result(stored[0]).memory_id


@pytest.mark.parametrize("meanwhile", [" ".join(WORDS), f"Really, {' '.join(WORDS).capitalize()}."])
def test_what_is_stored_in_between_is_caught(store: Store, path: Callable[..., Path], meanwhile: str) -> None:
    stored: list[WriterAnswer] = []

    def between() -> None:
        if not stored:
            stored.extend(put(store, [submission_of(examined(meanwhile))]))

    sent = submission_of(examined(" ".join(WORDS)))
    answer = result(path(between=between).send(sent))
    assert (answer.outcome, codes(answer)) == (Outcome.BLOCKED, ["duplicate"])
    assert answer.conflicting_memory_id == result(stored[0]).memory_id
    assert replays(answer, sent.examined)


@pytest.mark.on("sqlite")
def test_a_claim_is_compared_in_several_turns(store: Store, path: Callable[..., Path]) -> None:
    put(store, [near(number) for number in range(10)])
    turns: list[Allowance] = []

    def some() -> Allowance:
        turns.append(Allowance(3, 60.0))
        return turns[-1]

    answer = result(path(before=some, inside=nothing).send(near(50)))
    assert [one.compared for one in turns] == [3, 3, 3, 1]
    assert codes(answer) == ["conflict"]
    assert isinstance(answer.evidence.dedup, Neighbours)
    assert len(answer.evidence.dedup.items) == 10


@pytest.mark.on("sqlite")
def test_an_owner_has_so_many_claims_waiting(
    store: Store, path: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "WAITING_PER_OWNER", 3)
    way = path()
    first = way.comparer.submit(submission_of(examined("Gate one is closed.", owner_id="eve")))
    assert way.reading.wait(120)  # or it would take some of the next with it
    futures = [
        way.comparer.submit(submission_of(examined(f"Gate {n} is closed.", owner_id="ann"))) for n in range(6)
    ]
    other = way.comparer.submit(submission_of(examined("Gate two is closed.", owner_id="bob")))
    with pytest.raises(StoreBusy, match="too many claims"):
        futures[5].result(120)
    way.go.set()
    assert all(isinstance(future.result(120), Decided) for future in (first, *futures[:3], other))


@pytest.mark.on("sqlite")
def test_a_claim_goes_on_to_the_writer_when_nothing_can_be_looked_up(
    store: Store, path: Callable[..., Path]
) -> None:
    put(store, [submission_of(examined("Gate one is closed."))])
    failures: list[Exception] = [StorageError("the database cannot be read"), ValueError("something else")]

    def between() -> None:
        if failures:
            raise failures.pop(0)

    way = path(between=between)
    for _ in range(2):
        answer = result(way.send(submission_of(examined("Gate one is closed."))))
        assert codes(answer) == ["duplicate"]
    failures.append(StorageError("the database cannot be read"))
    one = submission_of(examined("Gate one is closed."))
    look = way.comparer.look(one.examined.comparing(), one.keys)
    assert look.result(120) == DedupUnavailable(detail="the database cannot be read")


@pytest.mark.on("sqlite")
def test_a_short_claim_alone_does_not_wait_but_never_overtakes(
    store: Store, path: Callable[..., Path]
) -> None:
    way = path()

    async def main() -> None:
        short = submission_of(examined("Gate one is closed."))
        assert isinstance(await way.comparer.submit_async(short, alone=True), Decided)
        assert not way.go.is_set()
        long = way.comparer.submit_async(near(1), alone=True)
        behind = way.comparer.submit_async(submission_of(examined("Gate two is closed.")), alone=True)
        other = submission_of(examined("Gate two is closed.", owner_id="bob"))
        assert isinstance(await way.comparer.submit_async(other, alone=True), Decided)
        assert not long.done()
        assert not behind.done()
        way.go.set()
        assert isinstance(await behind, Decided)
        assert long.done()

    asyncio.run(main())


def test_what_waits_is_written_at_the_end_and_nothing_after(store: Store, path: Callable[..., Path]) -> None:
    way = path()
    gone = way.comparer.submit(submission_of(examined("Gate zero is closed.")))
    futures = [way.comparer.submit(submission_of(examined(f"Gate {n} is closed."))) for n in range(20)]
    assert gone.cancel()
    way.close()
    assert all(isinstance(future.result(120), Decided) for future in futures)
    with pytest.raises(StoreClosed):
        way.comparer.submit(submission_of(examined("Gate one is open."))).result(120)
    one = submission_of(examined("Gate zero is closed."))
    assert store.comparer.look(one.examined.comparing(), one.keys).result(120) == Neighbours()


@dataclass(frozen=True, slots=True)
class Sent:
    """Something that waits."""

    owner_id: str
    characters: int
    alone: bool = False


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def taken(waiting: turns.OwnersInTurn[Sent]) -> list[tuple[str, int]]:
    return [(turn[0].owner_id, len(turn)) for turn in waiting.take()]


LONG, SHORT = turns.LONG_TURN + 1, 100


def test_long_texts_are_written_apart_and_who_came_meanwhile_is_next() -> None:
    waiting: turns.OwnersInTurn[Sent] = turns.OwnersInTurn(turns.Senders(Clock()))
    for owner_id, characters in [
        ("ann", LONG),
        ("ann", LONG),
        ("bea", SHORT),
        ("bea", SHORT),
        ("cem", SHORT),
    ]:
        assert waiting.add(Sent(owner_id, characters))
    assert taken(waiting) == [("ann", 1)]
    assert waiting.add(Sent("dan", SHORT))
    assert taken(waiting) == [("bea", 2), ("cem", 1), ("dan", 1)]
    assert waiting.add(Sent("dan", SHORT))
    assert taken(waiting) == [("ann", 1)]  # it waited longer
    assert waiting.add(Sent("ann", LONG))
    assert taken(waiting) == [("dan", 1)]
    assert taken(waiting) == [("ann", 1)]
    assert not len(waiting)


def test_long_texts_rest_while_others_send() -> None:
    clock = Clock()
    senders = turns.Senders(clock)
    waiting: turns.OwnersInTurn[Sent] = turns.OwnersInTurn(senders)
    for _ in range(5):
        waiting.add(Sent("ann", LONG))
    assert waiting.seconds() == 0
    assert taken(waiting) == [("ann", 1)]
    clock.now += 0.01
    assert waiting.seconds() == 0  # nobody else is there
    assert taken(waiting) == [("ann", 1)]
    clock.now += 0.01
    assert waiting.seconds() == 0
    senders.note("bea")  # elsewhere in the process
    assert taken(waiting) == [("ann", 1)]
    clock.now += 0.01
    assert waiting.seconds() == pytest.approx(0.03)
    assert taken(waiting) == []
    waiting.add(Sent("bea", SHORT))
    assert waiting.seconds() == 0
    assert taken(waiting) == [("bea", 1)]
    assert waiting.seconds() == pytest.approx(0.03)
    clock.now += 0.02
    assert waiting.seconds() == pytest.approx(0.01)
    clock.now += 0.02
    assert waiting.seconds() == 0
    assert taken(waiting) == [("ann", 1)]
    clock.now += 5.0
    assert waiting.seconds() == 0  # a long one that took very long; and "bea" has gone
    assert taken(waiting) == [("ann", 1)]
    assert waiting.seconds() is None


def test_a_rest_has_an_end_and_work_that_is_no_claim_takes_none() -> None:
    clock = Clock()
    waiting: turns.OwnersInTurn[Sent] = turns.OwnersInTurn(turns.Senders(clock))
    waiting.add(Sent("bea", SHORT))
    waiting.add(Sent("ann", LONG))
    waiting.add(Sent("ann", LONG))
    assert taken(waiting) == [("bea", 1)]
    assert taken(waiting) == [("ann", 1)]
    clock.now += 1.0
    assert waiting.seconds() == pytest.approx(turns.MOST_REST)
    waiting.add(Sent("", 0, alone=True))
    assert waiting.seconds() == 0
    assert taken(waiting) == [("", 1)]
    clock.now += 1.0
    assert waiting.seconds() == 0
