"""A LangGraph store that asks the gate before it writes; docs/langgraph.md.

`GatedStore` wraps any `BaseStore` at `batch` and `abatch`, which every other method ends in. What a batch does is in
`langgraph_steps`, what the gate is told and what its answers allow to be written in `langgraph_ops`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

from vouchgate import extras

try:
    from langchain_core.tools import ToolException
    from langgraph.store.base import BaseStore, Op, PutOp, Result
    from langgraph.store.base.batch import AsyncBatchedBaseStore
except ImportError as missing:
    raise ImportError(extras.sentence("GatedStore", "langgraph"), name=missing.name) from missing

from vouchgate.adapters.langgraph_ops import (
    Namespace,
    Terms,
    WriteAnswer,
    get_op_for,
    op_for_delivery,
    overwrites_other_content,
    unapproved_error,
)
from vouchgate.adapters.langgraph_steps import (
    BatchResult,
    DeliverWrites,
    Pause,
    RunInStore,
    SendClaims,
    batch,
)
from vouchgate.adapters.rendering import Unrenderable
from vouchgate.adapters.under_way import UnderWay
from vouchgate.client import AsyncClient, Client, Delivered, Delivery, VouchgateError
from vouchgate.client.calls import SaveOptions, refuse_awaitable
from vouchgate.client.deliver import BEGIN_WITHIN

__all__ = ["GatedStore", "NotWritten", "Unrenderable", "WriteAnswer"]

log = logging.getLogger(__name__)


class NotWritten(ToolException):
    """A put or delete that the store behind the gate does not show (yet); `answers` has the verdict of each.

    The message says why and what to do next, in words for the agent. As a ToolException it becomes the tool's answer to
    the model wherever tool errors are handled.
    """

    def __init__(self, answers: Sequence[WriteAnswer]) -> None:
        super().__init__("\n".join(map(str, answers)))
        self.answers = tuple(answers)


class GatedStore(BaseStore):
    """Any LangGraph store, behind the gate: puts and deletes are claims, reads pass through.

    - `store`: the store behind the gate. Whoever writes to it directly goes round the gate.
    - `client`, `aclient`: for the plain and the `a…` methods; one of them may be left out. An `aclient` serves one
      event loop, and with it so do the `a…` methods.
    - `sink`: the name of `store` at the gate. Two stores must not share one, processes with the same store must.
    - `memory_type`, `source`, `user_id`: what is said of every claim; `user_id` may be made from the namespace, and may
      be left out when the token acts for one owner.
    - `ungated`: namespaces, with all below them, that are written without being asked. None, unless named.
    - `on_verdict`: called with each answer, in order, after everything is written that may be. Without it, a write that
      the store does not show raises NotWritten; with it nothing is raised for a verdict, so that it is this function
      that has to make it known.

    An owner's approval comes later than the put: `deliver`, or `delivering` in the background, writes it then.

    A put raises Unrenderable, before anything is sent, for what cannot be told as text; and VouchgateError when the
    gate does not decide. Nothing is written then.
    """

    def __init__(
        self,
        store: BaseStore,
        client: Client | None = None,
        *,
        aclient: AsyncClient | None = None,
        sink: str = "langgraph",
        memory_type: str = "fact",
        source: str = "ai_synthesis",
        user_id: str | Callable[[Namespace], str] | None = None,
        ungated: Iterable[Namespace] = (),
        on_verdict: Callable[[WriteAnswer], object] | None = None,
    ) -> None:
        if client is None and aclient is None:
            raise ValueError("a GatedStore needs a client, an aclient, or both")
        # A store that batches in a loop takes a `ttl` whatever it says: `AsyncSqliteStore` says no, and keeps it.
        self.supports_ttl = store.supports_ttl or isinstance(store, AsyncBatchedBaseStore)
        self.ttl_config = store.ttl_config
        self._store = store
        self._client = client
        self._aclient = aclient
        self._terms = Terms(sink, memory_type, source, user_id)
        self._ungated = list(ungated)
        if not all(isinstance(one, tuple) and one for one in self._ungated):
            raise ValueError("`ungated` is a list of namespaces, like [('scratch',)]; none may be empty")
        refuse_awaitable(on_verdict, "on_verdict")
        self._on_verdict = on_verdict
        # Whoever comes while another delivers waits, and then finds its own write done.
        self._lock = threading.Lock()
        self._alock = asyncio.Lock()  # of one loop, as the aclient is
        self._under_way = UnderWay()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs the reads, then has the gate judge the puts and deletes, and writes what may be written."""
        client = self._sync()
        steps = batch(list(ops), self._terms, self._ungated)
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return self._finish(end.value)
            match step:
                case RunInStore():
                    step.results = self._store.batch(step.ops)
                case SendClaims():
                    step.results = client.save_many(_claims(step), **_options(step))
                case DeliverWrites():
                    self._deliver(step.owner, step.errors, step.handed)
                case Pause():
                    time.sleep(step.seconds)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, without blocking the loop. What writes goes on by itself when it is cancelled: what the gate
        hands over with its answer would wait for a minute, and all of that owner's that comes after it."""
        self._async()
        given = list(ops)
        if not any(isinstance(op, PutOp) for op in given):
            return await self._abatch(given)
        return await self._under_way.to_its_end(self._abatch(given))

    async def _abatch(self, ops: list[Op]) -> list[Result]:
        client = self._async()
        steps = batch(ops, self._terms, self._ungated)
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return self._finish(end.value)
            match step:
                case RunInStore():
                    step.results = await self._store.abatch(step.ops)
                case SendClaims():
                    step.results = await client.save_many(_claims(step), **_options(step))
                case DeliverWrites():
                    await self._adeliver(step.owner, step.errors, step.handed)
                case Pause():
                    await asyncio.sleep(step.seconds)

    def deliver(self, *, user_id: str | None = None) -> Delivered:
        """Writes what was let through since: what owners approved, and what could not be written before. For this
        owner, else for the store's own `user_id`, else for every owner that the token acts for."""
        return self._deliver(user_id or self._owner(), [])

    async def adeliver(self, *, user_id: str | None = None) -> Delivered:
        """As `deliver`, without blocking the loop."""
        return await self._adeliver(user_id or self._owner(), [])

    @contextmanager
    def delivering(self, every: float = 30.0, *, user_id: str | None = None) -> Iterator[None]:
        """Delivers at once and every so many seconds, in a thread, until the block is left. That the gate cannot be
        reached is logged, and tried again. Raises RuntimeError in a running event loop: use `adelivering` there."""
        self._sync()
        if _in_a_loop():
            # Leaving the block waits for the thread, which may wait for this loop.
            raise RuntimeError("in an event loop, use `async with store.adelivering()`")
        over = threading.Event()

        def run() -> None:
            while not over.is_set():
                try:
                    self.deliver(user_id=user_id)
                except VouchgateError as error:
                    log.warning("nothing could be delivered: %s", error)
                over.wait(every)

        thread = threading.Thread(target=run, name="vouchgate-delivering", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    @asynccontextmanager
    async def adelivering(self, every: float = 30.0, *, user_id: str | None = None) -> AsyncIterator[None]:
        """As `delivering`, in a task of the running loop."""
        self._async()

        async def run() -> None:
            while True:
                try:
                    await self.adeliver(user_id=user_id)
                except VouchgateError as error:
                    log.warning("nothing could be delivered: %s", error)
                await asyncio.sleep(every)

        task = asyncio.create_task(run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _finish(self, done: BatchResult) -> list[Result]:
        if done.error is not None:
            raise done.error
        if self._on_verdict is not None:
            for answer in done.answers:
                refuse_awaitable(self._on_verdict(answer), "on_verdict")
        elif missing := [answer for answer in done.answers if not answer.written]:
            raise NotWritten(missing)
        return done.results

    def _owner(self) -> str | None:
        return self._terms.user_id if isinstance(self._terms.user_id, str) else None

    def _sync(self) -> Client:
        if self._client is None:
            raise TypeError(
                "this GatedStore has no `client`, only an `aclient`: use the methods that are awaited"
            )
        return self._client

    def _async(self) -> AsyncClient:
        if self._aclient is None:
            raise TypeError("this GatedStore has no `aclient`: make it with aclient=AsyncClient(…)")
        return self._aclient

    def _deliver(self, owner: str | None, errors: list[str], handed: Delivery | None = None) -> Delivered:
        client, latest = self._sync(), time.monotonic() + BEGIN_WITHIN

        def apply(delivery: Delivery) -> None:
            try:
                op = op_for_delivery(delivery, self._terms)
                (there,) = self._store.batch([get_op_for(op)])
                if (
                    overwrites_other_content(op, there)
                    and client.memory(str(delivery.memory_id)).approved_by is None
                ):
                    raise unapproved_error(delivery)
                self._store.batch([op])
            except Exception as error:
                errors.append(str(error) or type(error).__name__)
                raise

        with self._lock:
            handed = handed if time.monotonic() < latest else None
            return client.deliver(self._terms.sink, apply, user_id=owner, handed=handed)

    async def _adeliver(
        self, owner: str | None, errors: list[str], handed: Delivery | None = None
    ) -> Delivered:
        client, latest = self._async(), time.monotonic() + BEGIN_WITHIN

        async def apply(delivery: Delivery) -> None:
            try:
                op = op_for_delivery(delivery, self._terms)
                (there,) = await self._store.abatch([get_op_for(op)])
                if overwrites_other_content(op, there):
                    memory = await client.memory(str(delivery.memory_id))
                    if memory.approved_by is None:
                        raise unapproved_error(delivery)
                await self._store.abatch([op])
            except Exception as error:
                errors.append(str(error) or type(error).__name__)
                raise

        async with self._alock:
            handed = handed if time.monotonic() < latest else None
            return await client.deliver(self._terms.sink, apply, user_id=owner, handed=handed)


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _options(step: SendClaims) -> SaveOptions:
    return {"hand_over": True, "idempotency_key": step.key}


def _claims(step: SendClaims) -> list[Mapping[str, object]]:
    return [{"content": write.content, **write.options} for write in step.writes]
