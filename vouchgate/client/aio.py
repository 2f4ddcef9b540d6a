"""The client for asyncio. What each method means is said at `Client`."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, overload

import httpx

from vouchgate.client import batches, calls, deliver, reviewing
from vouchgate.client.calls import SaveOptions
from vouchgate.client.config import Config, Configured, answer_of, describe_lost_request
from vouchgate.client.errors import VouchgateError
from vouchgate.client.exchange import exchange
from vouchgate.client.gating import Arguments, ClaimFrom, Gated, add_verdict_note, copy_metadata
from vouchgate.client.models import Delivered, Problem
from vouchgate.client.steps import Call, CallFunction, Operation, Pause, Reply, Send, Step
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.leased import Delivery

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# Any: what a coroutine is sent and yields is the event loop's own affair.
Function = Callable[P, Coroutine[Any, Any, T]]


def _asked(call: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncCaller, P], Coroutine[Any, Any, T]]:
    """A method that makes a call, and gives what is read of the answer."""

    async def method(self: AsyncCaller, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(exchange(call(*args, **kwargs), self._config.retries))

    calls.dress(method, call)
    return method


class AsyncCaller(Configured):
    """`Caller` with coroutines."""

    def _connect(self, config: Config) -> None:
        self._config = config
        self._connections = {os.getpid(): httpx.AsyncClient(**config.for_httpx())}

    @property
    def _http(self) -> httpx.AsyncClient:
        """As of `Caller`."""
        if self._closed:
            raise self._closed_error()
        mine = self._connections.get(os.getpid())
        return mine or self._connections.setdefault(
            os.getpid(), httpx.AsyncClient(**self._config.for_httpx())
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        self._closed = True
        if (mine := self._connections.get(os.getpid())) is not None:
            await mine.aclose()

    async def _run(self, operation: Operation[T]) -> T:
        reply: Reply = None
        while True:
            try:
                step = operation.send(reply)
            except StopIteration as end:
                result: T = end.value
                return result
            reply = await self._take(step)

    async def _take(self, step: Step) -> Reply:
        match step:
            case Send():
                try:
                    return answer_of(await self._http.request(**self._config.for_request(step.call)))
                except httpx.RequestError as error:
                    return describe_lost_request(error)
                except RuntimeError:  # of httpx, where another task has closed it meanwhile
                    if self._closed:
                        raise self._closed_error() from None
                    raise
            case Pause():
                await asyncio.sleep(step.seconds)
                return None
            case CallFunction():
                try:
                    if isawaitable(waited := step.action()):
                        await waited
                except Exception as error:  # noqa: BLE001  (whatever it is, it is told to the gate)
                    return error
                return None


class AsyncClient(AsyncCaller):
    """`Client` with coroutines: it may be shared by the tasks of one event loop."""

    save = _asked(calls.save)
    check = _asked(calls.check)
    corroborate = _asked(calls.corroborate)
    check_document = _asked(calls.check_document)
    record = _asked(calls.record)
    memories = _asked(calls.memories)
    impact = _asked(calls.impact)
    memory = _asked(calls.memory)
    evidence = _asked(calls.evidence)
    decision = _asked(calls.decision)
    receipt = _asked(calls.receipt)
    pending = _asked(calls.pending)
    pending_claim = _asked(calls.pending_claim)
    answer = _asked(calls.answer)
    whoami = _asked(calls.whoami)
    lease_deliveries = _asked(calls.lease_deliveries)
    delivery_done = _asked(calls.delivery_done)
    delivery_failed = _asked(calls.delivery_failed)
    deliveries = _asked(calls.deliveries)

    async def save_many(
        self, claims: Sequence[str | Mapping[str, object]], **options: Unpack[SaveOptions]
    ) -> list[ValidationResult | Problem]:
        """See `Client.save_many`."""
        return await self._run(batches.save_many(claims, options, self._config.retries))

    async def deliver(
        self,
        sink: str,
        apply: Callable[[Delivery], Awaitable[None] | None],
        *,
        user_id: str | None = None,
        handed: Delivery | None = None,
    ) -> Delivered:
        """See `Client.deliver`. `apply` may be a coroutine function."""
        clock, retries = time.monotonic, self._config.retries
        return await self._run(
            deliver.deliver(sink, apply, user_id=user_id, retries=retries, clock=clock, handed=handed)
        )

    @asynccontextmanager
    async def gate(self, content: str, **options: Unpack[SaveOptions]) -> AsyncIterator[ValidationResult]:
        """See `Client.gate`."""
        verdict = await self.save(content, **options)
        try:
            yield verdict
        except BaseException as error:
            add_verdict_note(error, verdict)
            raise

    @overload
    def gated(self, function: Function[P, T], /) -> Function[P, Gated[T]]: ...

    @overload
    def gated(
        self, /, *, text: str | None = None, claim: ClaimFrom | None = None, **options: Unpack[SaveOptions]
    ) -> Callable[[Function[P, T]], Function[P, Gated[T]]]: ...

    def gated(
        self,
        function: Function[P, T] | None = None,
        /,
        *,
        text: str | None = None,
        claim: ClaimFrom | None = None,
        **options: Unpack[SaveOptions],
    ) -> Function[P, Gated[T]] | Callable[[Function[P, T]], Function[P, Gated[T]]]:
        """See `Client.gated`. For coroutine functions."""

        def decorate(function: Function[P, T]) -> Function[P, Gated[T]]:
            if not iscoroutinefunction(function):
                raise TypeError("a function that is no coroutine function is gated by Client.gated")
            arguments = Arguments.of(function, text, claim)

            async def gated(*args: P.args, **kwargs: P.kwargs) -> Gated[T]:
                args, kwargs = arguments.copied(args, kwargs)
                content, said = arguments.read(options, args, kwargs)
                async with self.gate(content, **said) as verdict:
                    return (
                        Gated(verdict, await function(*args, **kwargs)) if verdict.as_sent else Gated(verdict)
                    )

            copy_metadata(gated, function, arguments.signature)
            return gated

        return decorate if function is None else decorate(function)

    def recorded(
        self, *, who: str, conversation: str | None = None, user_id: str | None = None
    ) -> Callable[[Function[P, object]], Function[P, str]]:
        """See `Client.recorded`. For coroutine functions."""

        def decorate(function: Function[P, object]) -> Function[P, str]:
            if not iscoroutinefunction(function):
                raise TypeError("a function that is no coroutine function is recorded by Client.recorded")

            @wraps(function)
            async def recorded(*args: P.args, **kwargs: P.kwargs) -> str:
                text = calls.recorded_text(await function(*args, **kwargs))
                try:
                    kept = await self.record(
                        text, kind="tool_output", who=who, conversation=conversation, user_id=user_id
                    )
                except VouchgateError as error:
                    log.warning("an output of %s could not be put down: %s", who, error)
                    return text
                return kept.append_to(text)

            return recorded

        return decorate


class AsyncReviews(AsyncCaller):
    """`Reviews` with coroutines."""

    list = _asked(reviewing.list_items)
    show = _asked(reviewing.show)
    approve = _asked(reviewing.approve)
    edit = _asked(reviewing.edit)
    reject = _asked(reviewing.reject)
    undo = _asked(reviewing.undo)
    hand_over = _asked(reviewing.hand_over)
