"""The one thread of a process that writes. Claims that wait at the same time share one transaction, and
with it one wait for the disk.

Nobody is told anything before the commit has returned. When the connection is lost during a commit, it is
unknown whether it happened; then the database is asked, and without a clear yes the answer is StoreUnknown.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine, Transaction
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from vouchgate.ingest.dedup.compare import Allowance
from vouchgate.storage import modes
from vouchgate.storage.claims import decisions
from vouchgate.storage.claims.sayings import SayingsCache
from vouchgate.storage.claims.submit import Decided, NotCompared, Submission, SubmitAnswer, write_submissions
from vouchgate.storage.claims.turns import OwnersInTurn, Senders
from vouchgate.storage.dedup import builds, index, similar
from vouchgate.storage.engine import connect_to_write, is_busy, look_at_files, reading, refresh_statistics
from vouchgate.storage.errors import StorageError, StoreBusy, StoreClosed, StoreUnknown
from vouchgate.storage.identity.owners import SERVICE_OWNER, lock_owners
from vouchgate.storage.queue.capacity import QueueFilledMeanwhile

log = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS = 3  # of a transaction that another process was in the way of
_GATHER_SECONDS = 0.0005  # at 16 connections a tenth more claims a second; longer gains nothing
_LOOK_EVERY = 100  # claims and other writes, between two looks at how the tables have grown
_ASK_SECONDS = 5.0  # how long to ask whether a commit happened, after its connection was lost


@dataclass(slots=True, eq=False)
class Unit:
    """A claim (`submission`) or other work that waits to be written, and who waits for it: a thread, or a coroutine of
    `loop`, which is woken once for all claims of a transaction."""

    future: Future[Any] | asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop | None = None
    submission: Submission | None = None
    owner_ids: Sequence[str] = ()
    work: Callable[[Connection], Any] | None = None
    always: bool = False  # of `work`: also while nothing else is written for these owners
    compare: Callable[[Unit], None] | None = (
        None  # of a coroutine's claim that came straight: has it compared first
    )

    @property
    def owner_id(self) -> str:
        """Among whose units it has its turn: the claim's, or the first that work is about; empty for nobody's."""
        return self.submission.owner_id if self.submission is not None else next(iter(self.owner_ids), "")

    @property
    def characters(self) -> int:
        """Of the claim's text."""
        return 0 if self.submission is None else len(self.submission.examined.claim.content)

    @property
    def alone(self) -> bool:
        """Whether it has a transaction of its own."""
        return self.work is not None

    def start(self) -> bool:
        """False when the caller does not wait any more; nothing is written then."""
        if isinstance(self.future, Future):
            return self.future.set_running_or_notify_cancel()
        return not self.future.cancelled()


@dataclass(frozen=True, slots=True)
class _Failed:
    """Why a unit was not written."""

    error: Exception


class _CommitLost(Exception):
    """The connection was lost during the commit of a transaction that had come to `result`."""

    def __init__(self, result: object) -> None:
        super().__init__("connection lost during commit")
        self.result = result


class Writer:
    """Writes owners in turn, what is one owner's in the order of arrival, in a thread of its own. Its methods may be
    called from any thread."""

    def __init__(self, engine: Engine, *, allow: Callable[[], Allowance] = index.new_allowance) -> None:
        """`allow` makes what comparing one owner's claims may cost in a transaction."""
        self._engine = engine
        self._allow = allow
        self._said = SayingsCache()
        self._tails = similar.TailCache()
        self._indexing: set[str] = set()  # owners whose tails are about to be indexed
        self._written = 0  # units since the tables were last looked at
        # When a transaction was committed, by the monotonic clock, if the last one was.
        self.wrote_at = float("-inf")
        self._connection: Connection | None = None  # of the writer thread alone
        self.senders = Senders()
        self._waiting: OwnersInTurn[Unit] = OwnersInTurn(self.senders)
        self._change = threading.Condition()
        self.free = threading.Event()  # set while nothing is written; who can wait computes then
        self.free.set()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="vouchgate-writer", daemon=True)
        self._thread.start()

    def submit(self, submission: Submission) -> Future[SubmitAnswer]:
        """Writes a claim. The future fails with StoreBusy or StoreClosed when it could not be."""
        future: Future[SubmitAnswer] = Future()
        self.add(Unit(future, submission=submission))
        return future

    def run(
        self, owner_ids: Sequence[str], work: Callable[[Connection], T], *, always: bool = False
    ) -> Future[T]:
        """Runs `work` in a transaction of its own, with the index held and the owners' rows locked first.

        While one of the owners is read-only it is not run, and ReadOnly goes to the future, unless `always`: who may
        call, and in which mode, can be changed at any time, as can what is no owner's.

        An exception of `work` rolls back and goes to the future. After a rollback because of another process
        `work` may be called again, so it must do nothing that a rollback does not undo.
        """
        future: Future[T] = Future()
        self.add(Unit(future, owner_ids=tuple(owner_ids), work=work, always=always))
        return future

    def close(self) -> None:
        """Writes what waits, then ends the thread. What comes later fails with StoreClosed."""
        with self._change:
            self._closed = True
            self._change.notify()
        self._thread.join()

    def add(self, unit: Unit) -> None:
        """Has a unit written when its turn comes."""
        with self._change:
            if not self._closed and self._waiting.add(unit):
                self._change.notify()
                return
            closed = self._closed
        fail(
            unit,
            StoreClosed("the store is closed") if closed else StoreBusy("too many claims wait to be written"),
        )

    def _serve(self) -> None:
        units: list[Unit] = []
        while self._wait(gather=len(units) > 1):
            begun = self._begin_ahead()
            with self._change:
                units = [unit for turn in self._waiting.take() for unit in turn]
            live = [unit for unit in units if unit.start()]
            if live:
                self.free.clear()
                _tell(live, self._outcomes(live, begun))
                self._refresh_statistics(len(live))
                self.free.set()
            else:  # nobody waits any more
                self._drop_connection()
        self._drop_connection()

    def _wait(self, *, gather: bool) -> bool:
        """Until something waits to be written: False when nothing does and the writer is closed.

        With `gather` it waits a moment for more: those who were told of the last group are about to send
        again, and one group is cheaper than two halves that take turns.
        """
        with self._change:
            while (seconds := self._waiting.seconds()) or (seconds is None and not self._closed):
                self._change.wait(seconds)
            something = seconds is not None
        if gather and something:
            time.sleep(_GATHER_SECONDS)
        return something

    def _begin_ahead(self) -> Transaction | Exception:
        """A transaction for whatever waits once it has begun: while another process has SQLite's one lock more claims
        come, and one group is cheaper than two. Or why it could not be begun, for those to hear whom it was for."""
        try:
            return self._begin()
        except Exception as error:  # noqa: BLE001  (the first attempt raises it)
            return error

    def _outcomes(self, units: list[Unit], begun: Transaction | Exception | None = None) -> list[Any]:
        """What to tell each unit: its result, or _Failed. `begun` is for the first attempt at them."""
        try:
            return self._attempt(units, begun)
        except StoreBusy as error:
            return [_Failed(error)] * len(units)
        except Exception as error:  # noqa: BLE001  (it goes to the caller)
            if len(units) == 1:
                return [_Failed(_for_caller(error))]
        return [outcome for unit in units for outcome in self._outcomes([unit])]

    def _attempt(self, units: list[Unit], begun: Transaction | Exception | None) -> list[Any]:
        """The results of one committed transaction. Raises StoreBusy, or whatever the work raised."""
        refused: DBAPIError | None = None
        lock_total = False
        for attempt in range(ATTEMPTS):
            if attempt:
                begun = None
                time.sleep(0.05 * attempt)
            try:
                return self._transaction(units, begun, lock_total=lock_total)
            except QueueFilledMeanwhile:
                lock_total = True  # and then it cannot happen again
            except _CommitLost as lost:
                if self._is_on_disk(lost.result):
                    return cast(list[Any], lost.result)
                raise StoreUnknown(
                    "the connection to the database was lost; look before you send again"
                ) from lost
            except IntegrityError as error:
                # Two processes with one Idempotency-Key for different owners: now the other's row is there.
                refused = error
            except DBAPIError as error:
                if not is_busy(error):
                    raise
                refused = None
                busy = error
            except PoolTimeout as error:
                raise StoreBusy("all connections to the database are in use; try again later") from error
        if refused is not None:
            raise refused
        raise StoreBusy("the database is busy or cannot be reached; try again later") from busy

    def _begin(self) -> Transaction:
        if self._connection is None:
            self._connection = connect_to_write(self._engine)
        return self._connection.begin()

    def _transaction(
        self, units: list[Unit], begun: Transaction | Exception | None, *, lock_total: bool
    ) -> list[Any]:
        try:
            if isinstance(begun, Exception):
                raise begun
            transaction = begun or self._begin()
            connection = transaction.connection
            try:
                results = self._write(connection, units, lock_total=lock_total)
            except BaseException:
                transaction.rollback()
                raise
            try:
                transaction.commit()
            except DBAPIError as error:
                if self._engine.dialect.name == "postgresql":
                    raise _CommitLost(results) from error
                raise
            try:
                look_at_files(connection)
            except StorageError as error:
                raise StoreUnknown(str(error)) from error
            self.wrote_at = time.monotonic()
            self._index_tails()
            return results
        except Exception:
            self.wrote_at = float("-inf")
            self._drop_connection()
            self._tails.clear()
            raise

    def _write(self, connection: Connection, units: list[Unit], *, lock_total: bool) -> list[Any]:
        work = units[0].work
        if work is None:
            submissions = [unit.submission for unit in units if unit.submission is not None]
            return list(
                write_submissions(
                    connection,
                    submissions,
                    lock_total=lock_total,
                    allow=self._allow,
                    said=self._said,
                    tails=self._tails,
                )
            )
        builds.hold(connection)
        for state in lock_owners(connection, units[0].owner_ids).values():
            self._tails.note_length(state)
        if not units[0].always and SERVICE_OWNER not in units[0].owner_ids:
            modes.refuse_read_only(connection, units[0].owner_ids)
        return [work(connection)]

    def _index_tails(self) -> None:
        """Has each tail that has grown long put into the similar index, when its turn comes."""
        for owner_id in self._tails.long - self._indexing:
            self._indexing.add(owner_id)
            future = self.run([owner_id], partial(similar.index_tail, owner_id=owner_id), always=True)
            future.add_done_callback(partial(self._indexed, owner_id))
        self._tails.long.clear()

    def _indexed(self, owner_id: str, future: Future[None]) -> None:
        self._indexing.discard(owner_id)
        error = future.exception()
        if error is not None and not isinstance(error, StoreClosed):  # it is tried again after the next claim
            log.warning("what an owner stored last could not be put into the similar index: %s", error)

    def _refresh_statistics(self, written: int) -> None:
        """Now and then, as tables grow with what was written."""
        self._written += written
        if self._written < _LOOK_EVERY:
            return
        self._written = 0
        try:
            refresh_statistics(self._engine)
        except Exception as error:  # noqa: BLE001  (it makes things slow, not wrong, and is tried again)
            log.warning("how large the tables are could not be counted: %s", getattr(error, "orig", error))

    def _drop_connection(self) -> None:
        """Closes it for good: after a failure, nobody knows what state the server left it in."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def _is_on_disk(self, results: object) -> bool:
        """Whether a transaction that may have been committed was, as far as its decisions tell."""
        answers = results if isinstance(results, list) else []
        decided = next((each.answer for each in answers if isinstance(each, Decided)), None)
        if decided is None or decided.decision_id is None:
            return False
        owners = frozenset({decided.evidence.claim.owner_id})
        end = time.monotonic() + _ASK_SECONDS
        while time.monotonic() < end:
            try:
                with reading(self._engine) as connection:
                    return decisions.get(connection, decided.decision_id, owners=owners) is not None
            except DBAPIError:
                time.sleep(0.1)  # it is starting again, or gone: asked once more, then not known
        return False


def fail(unit: Unit, error: Exception) -> None:
    """Tells who waits that nothing was written."""
    if unit.start():
        _tell([unit], [_Failed(error)])


def _for_caller(error: Exception) -> Exception:
    if isinstance(error, DBAPIError):
        refused = StorageError(f"the database refused the write: {error.orig}")
        refused.__cause__ = error
        return refused
    return error


def _tell(units: list[Unit], outcomes: list[Any]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for unit, outcome in zip(units, outcomes, strict=True):
        if isinstance(outcome, NotCompared) and unit.compare is not None:
            unit.compare(unit)
        elif isinstance(unit.future, Future):
            _resolve(unit.future, outcome)
        elif unit.loop is not None:
            by_loop.setdefault(unit.loop, []).append((unit.future, outcome))
    for loop, pairs in by_loop.items():
        # A loop that was closed, even just now, has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve_all, pairs)


def _resolve_all(pairs: Iterable[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, outcome in pairs:
        if not future.done():  # the caller may have gone
            _resolve(future, outcome)


def _resolve(future: Future[Any] | asyncio.Future[Any], outcome: Any) -> None:
    if isinstance(outcome, _Failed):
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome)
