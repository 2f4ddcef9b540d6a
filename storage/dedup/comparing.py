"""Claims are compared with their owner's earlier ones before they come to the writer, in a thread of its own.

Comparing long texts takes milliseconds for each pair. Inside the write transaction everybody would wait for it; here
owners take turns. What was compared is remembered with the claim (`ingest.dedup.compare.Comparisons`). The transaction
looks the earlier claims up again, so nothing is missed, and compares those that are new. A short claim that comes alone
goes straight there, since most are new; when comparing it takes long after all, it comes back here.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from vouchgate.ingest.claims.likeness import DedupFacts, DedupUnavailable, Neighbours
from vouchgate.ingest.dedup.compare import Allowance
from vouchgate.ingest.dedup.signature import SignatureKeys
from vouchgate.ingest.pipeline import Examined
from vouchgate.storage.claims.submit import Submission, SubmitAnswer, prepared
from vouchgate.storage.claims.turns import LONG_TURN, OwnersInTurn
from vouchgate.storage.dedup import contradicting, index
from vouchgate.storage.dedup.window import CandidateSet, DedupIndexView
from vouchgate.storage.errors import StorageError, StoreBusy, StoreClosed
from vouchgate.storage.writer import Unit, Writer, fail

log = logging.getLogger(__name__)

_TURN_SECONDS = 0.05  # of comparing, that an owner gets at one turn
# Turns that one claim gets, so it is compared for a quarter of a second at most; then it waits for its owner.
_TURNS = 5
# Characters of a claim that need not be compared before: with 32 others that takes some 5 ms, and the transaction has
# bounds of its own. It saves most claims the second look-up.
_SHORT = 400
_TEXTS = 1_000  # and so many texts a turn: more than a look-up gives

Outcome = DedupFacts | Exception


@dataclass(slots=True, eq=False)
class _Task:
    """A claim to compare. `tell` is called once, when it was or could not be; `gone` says that nobody waits."""

    examined: Examined
    keys: SignatureKeys
    tell: Callable[[Outcome], None]
    gone: Callable[[], bool]
    bands: tuple[int, ...] = ()  # its keys in the similar index, when what contradicts it counts
    turns: int = 0
    alone: bool = False

    @property
    def owner_id(self) -> str:
        return self.examined.claim.owner_id

    @property
    def characters(self) -> int:
        return len(self.examined.claim.content)


class Comparer:
    """Compares in turn, an owner's claims in the order of arrival. Its methods may be called from any thread."""

    def __init__(
        self,
        read: Callable[[], AbstractContextManager[Connection]],
        writer: Writer,
        *,
        allow: Callable[[], Allowance] = lambda: Allowance(_TEXTS, _TURN_SECONDS),
    ) -> None:
        """`read` opens a transaction that only reads. `allow` makes what one owner may cost at one turn."""
        self._read = read
        self._writer = writer
        self._allow = allow
        self._waiting: OwnersInTurn[_Task] = OwnersInTurn(writer.senders)
        self._in_hand: set[str] = set()  # owners whose turn it is
        self._change = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="vouchgate-comparer", daemon=True)
        self._thread.start()

    def submit(self, submission: Submission) -> Future[SubmitAnswer]:
        """Compares a claim, then has it written. The future fails with StoreBusy or StoreClosed when it could not
        be."""
        future: Future[SubmitAnswer] = Future()
        self._send(Unit(future), submission)
        return future

    def submit_async(self, submission: Submission, *, alone: bool = False) -> asyncio.Future[SubmitAnswer]:
        """As `submit`, for a coroutine of the running event loop, which is woken once for all claims of a transaction:
        waking it once for each is most of what it costs. A short claim that comes `alone`, and not as one of many,
        goes straight to the writer when nothing of its owner is compared before it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[SubmitAnswer] = loop.create_future()
        unit = Unit(future, loop, submission)
        if (
            alone
            and len(submission.examined.claim.content) <= _SHORT
            and not self._holds(submission.owner_id)
        ):
            unit.submission, unit.compare = replace(prepared(submission), straight=True), self._send_back
            self._writer.add(unit)
        else:
            self._send(unit, submission)
        return future

    def _send_back(self, unit: Unit) -> None:
        """Compares a claim that came straight to the writer, and took too long there."""
        if unit.submission is not None:
            self._send(unit, replace(unit.submission, straight=False))

    def look(self, examined: Examined, keys: SignatureKeys) -> Future[DedupFacts]:
        """What the dedup check is told of a claim now, and everything compared that it will ask for; `examined` must
        be `comparing`. The future fails with StoreBusy when too much waits already."""
        future: Future[DedupFacts] = Future()

        def tell(outcome: Outcome) -> None:
            if not future.set_running_or_notify_cancel():
                return
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self._add(_Task(examined, keys, tell, future.cancelled))
        return future

    def close(self) -> None:
        """Has everything compared that waits, then ends the thread. What comes later fails with StoreClosed."""
        with self._change:
            self._closed = True
            self._change.notify()
        self._thread.join()

    def _send(self, unit: Unit, submission: Submission) -> None:
        """Compares a claim, and hands it to the writer whatever that came to: it compares what is missing, as far as
        it may, and says itself what is wrong with the database."""
        submission = prepared(submission)
        unit.submission = submission

        def tell(outcome: Outcome) -> None:
            if isinstance(outcome, StorageError):
                fail(unit, outcome)
            else:
                self._writer.add(unit)

        bands = submission.bands or ()
        self._add(_Task(submission.examined, submission.keys, tell, unit.future.cancelled, bands))

    def _holds(self, owner_id: str) -> bool:
        with self._change:
            return owner_id in self._waiting or owner_id in self._in_hand

    def _add(self, task: _Task) -> None:
        with self._change:
            if not self._closed and self._waiting.add(task):
                self._change.notify()
                return
        task.tell(StoreClosed("the store is closed") if self._closed else StoreBusy(_TOO_MANY))

    def _serve(self) -> None:
        while turns := self._next():
            if any(turn[0].characters > LONG_TURN for turn in turns):
                self._writer.free.wait(
                    _TURN_SECONDS
                )  # two threads that compute take twice as long, and others wait
            self._put_back(self._compare(turns))

    def _next(self) -> list[list[_Task]]:
        """What comes next of every owner that waits, longest without a turn first; nothing when closed and done."""
        with self._change:
            while (seconds := self._waiting.seconds()) or (seconds is None and not self._closed):
                self._change.wait(seconds)
            turns = self._waiting.take()
            self._in_hand.update(turn[0].owner_id for turn in turns)
            return turns

    def _put_back(self, unfinished: list[_Task]) -> None:
        with self._change:
            self._in_hand.clear()
            for task in reversed(unfinished):
                self._waiting.put_back(task)

    def _compare(self, turns: list[list[_Task]]) -> list[_Task]:
        """Gives each owner its turn; those tasks that need another one, in their order."""
        turns = [live for turn in turns if (live := [task for task in turn if not task.gone()])]
        try:
            reached, near = self._reach([task for turn in turns for task in turn])
        except Exception as error:
            if not isinstance(error, StorageError):
                log.exception("earlier claims could not be looked up")
            failed: Outcome = (
                DedupUnavailable(detail=str(error)) if isinstance(error, StorageError) else error
            )
            for turn in turns:
                for task in turn:
                    task.tell(failed)
            return []
        unfinished: list[_Task] = []
        # Who has little to compare does not wait for who has much.
        turns.sort(key=lambda turn: sum(len(_candidates(reached[id(task)])) for task in turn))
        for turn in turns:
            unfinished += self._take_turn(turn, reached, near)
        return unfinished

    def _reach(self, tasks: list[_Task]) -> tuple[dict[int, CandidateSet | DedupFacts], contradicting.Near]:
        """What the keys of each lead to, by the task's `id`, and what may contradict them, all read together."""
        found: dict[int, CandidateSet | DedupFacts] = {}
        to_ask = []
        for task in tasks:
            if task.examined.claim.removes:
                found[id(task)] = Neighbours()
            else:
                to_ask.append(task)
        if not to_ask:
            return found, {}
        with self._read() as connection:
            window = DedupIndexView(connection, None)
            window.prepare((task.owner_id, task.keys) for task in to_ask)
            for task in to_ask:
                if window.threshold == task.keys.threshold:
                    found[id(task)] = window.find_candidates(task.owner_id, task.keys)
                else:
                    found[id(task)] = index.unavailable(window.threshold, task.keys.threshold)
            near = contradicting.read_many(connection, ((task.examined, task.bands) for task in to_ask))
        return found, near

    def _take_turn(
        self, turn: list[_Task], reached: dict[int, CandidateSet | DedupFacts], near: contradicting.Near
    ) -> list[_Task]:
        allowance = self._allow()
        for at, task in enumerate(turn):
            known = reached[id(task)]
            try:
                facts = _facts(task, known, near, allowance)
            except Exception as error:
                log.exception("a claim could not be compared with earlier ones")
                task.tell(error)
                continue
            if allowance.used_up and isinstance(facts, Neighbours) and not facts.complete:
                task.turns += 1
                if task.turns < _TURNS:
                    return turn[at:]
            task.tell(facts)
        return []


def _facts(
    task: _Task, reached: CandidateSet | DedupFacts, near: contradicting.Near, allowance: Allowance
) -> DedupFacts:
    if not isinstance(reached, CandidateSet):
        return reached
    examined = task.examined
    facts = index.select_neighbours(task.keys, reached, examined.capture_time, examined.known, allowance)
    if not task.bands:
        return facts
    return contradicting.together(facts, contradicting.of_near(near, examined, task.bands, allowance))


_TOO_MANY = "too many claims wait to be compared with earlier ones; try again later"


def _candidates(known: CandidateSet | DedupFacts) -> tuple[Any, ...] | list[Any]:
    return known.candidates if isinstance(known, CandidateSet) else ()
