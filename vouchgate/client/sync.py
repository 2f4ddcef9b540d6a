"""The client that waits."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Concatenate, ParamSpec, Self, TypeVar, Unpack, overload

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


def _asked(call: Callable[P, Call[T]]) -> Callable[Concatenate[Caller, P], T]:
    """A method that makes a call, and gives what is read of the answer."""

    def method(self: Caller, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(exchange(call(*args, **kwargs), self._config.retries))

    calls.dress(method, call)
    return method


class Caller(Configured):
    """What every client that waits has: a connection, and how a call is taken over it."""

    def _connect(self, config: Config) -> None:
        self._config = config
        self._connections = {os.getpid(): httpx.Client(**config.for_httpx())}

    @property
    def _http(self) -> httpx.Client:
        """The connections of this process. Over those of the one that it was forked from, which stay open for that
        one, it would read answers that are not its own."""
        if self._closed:
            raise self._closed_error()
        mine = self._connections.get(os.getpid())
        return mine or self._connections.setdefault(os.getpid(), httpx.Client(**self._config.for_httpx()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._closed = True
        if (mine := self._connections.get(os.getpid())) is not None:
            mine.close()

    def _run(self, operation: Operation[T]) -> T:
        reply: Reply = None
        while True:
            try:
                step = operation.send(reply)
            except StopIteration as end:
                result: T = end.value
                return result
            reply = self._take(step)

    def _take(self, step: Step) -> Reply:
        match step:
            case Send():
                try:
                    return answer_of(self._http.request(**self._config.for_request(step.call)))
                except httpx.RequestError as error:
                    return describe_lost_request(error)
                except RuntimeError:  # of httpx, where another thread has closed it meanwhile
                    if self._closed:
                        raise self._closed_error() from None
                    raise
            case Pause():
                time.sleep(step.seconds)
                return None
            case CallFunction():
                try:
                    returned = step.action()
                except Exception as error:  # noqa: BLE001  (whatever it is, it is told to the gate)
                    return error
                calls.refuse_awaitable(returned, "what applies a delivery")
                return None


class Client(Caller):
    """Calls the service, and waits for its answers. One may be shared by threads; close it, or use it as a context
    manager.

    `url` is where the service is (else VOUCHGATE_URL, else http://127.0.0.1:8080), `token` what is shown to it (else
    VOUCHGATE_TOKEN). `timeout` is in seconds, for connecting and for each part of an answer. What no answer came to is
    sent again, up to `retries` times and within a minute.

    Every method raises VouchgateError, and only for errors: Unreachable, ApiError (QueueFull), OddAnswer, Unsendable.
    A claim that is blocked or queued is a verdict, and is given back.
    """

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

    def save_many(
        self, claims: Sequence[str | Mapping[str, object]], **options: Unpack[SaveOptions]
    ) -> list[ValidationResult | Problem]:
        """Sends claims in as few requests as the service takes, each a text or a mapping with `content` and what
        `save` takes; `options` are those of `save`, for each claim that does not say otherwise. One result a claim, in
        order; a bad one spoils no other: it is a Problem, whose `error()` is what `save` would have raised. When this
        raises, the same list with the error's `idempotency_key` goes on where it broke off, and doubles nothing."""
        return self._run(batches.save_many(claims, options, self._config.retries))

    def deliver(
        self,
        sink: str,
        apply: Callable[[Delivery], None],
        *,
        user_id: str | None = None,
        handed: Delivery | None = None,
    ) -> Delivered:
        """Leases until nothing is left, and applies each delivery in order. An exception of `apply` marks it as failed,
        to be tried again later; DeadLetter as given up. `apply` may see a delivery twice: it must do no harm. With
        `handed`, the `delivery` of a verdict that came within the last half minute, it alone is applied."""
        calls.refuse_awaitable(apply, "what applies a delivery")
        clock, retries = time.monotonic, self._config.retries
        return self._run(
            deliver.deliver(sink, apply, user_id=user_id, retries=retries, clock=clock, handed=handed)
        )

    @contextmanager
    def gate(self, content: str, **options: Unpack[SaveOptions]) -> Iterator[ValidationResult]:
        """Sends a claim; the block runs with the verdict, whatever it is, and must ask whether it is `approved`. An
        exception that leaves the block of a stored claim says that the gate has kept it."""
        verdict = self.save(content, **options)
        try:
            yield verdict
        except BaseException as error:
            add_verdict_note(error, verdict)
            raise

    @overload
    def gated(self, function: Callable[P, T], /) -> Callable[P, Gated[T]]: ...

    @overload
    def gated(
        self, /, *, text: str | None = None, claim: ClaimFrom | None = None, **options: Unpack[SaveOptions]
    ) -> Callable[[Callable[P, T]], Callable[P, Gated[T]]]: ...

    def gated(
        self,
        function: Callable[P, T] | None = None,
        /,
        *,
        text: str | None = None,
        claim: ClaimFrom | None = None,
        **options: Unpack[SaveOptions],
    ) -> Callable[P, Gated[T]] | Callable[[Callable[P, T]], Callable[P, Gated[T]]]:
        """Decorates a function that writes a memory: its body runs only when the gate has stored the claim.

        The claim is every text among the arguments given, a line each, lists and mappings looked into; or the argument
        that `text` names, or what `claim` makes of all of them: a text, or a mapping with `content` and what else
        `save` takes. It must hold *everything* the body will write; but for what `text` names, lists and mappings
        reach the body as copies, so that nothing is added meanwhile. The decorated function gives back a Gated: the
        verdict, and what the body returned if it ran.
        """

        def decorate(function: Callable[P, T]) -> Callable[P, Gated[T]]:
            if iscoroutinefunction(function):
                raise TypeError("a coroutine function is gated by AsyncClient.gated")
            arguments = Arguments.of(function, text, claim)

            def gated(*args: P.args, **kwargs: P.kwargs) -> Gated[T]:
                args, kwargs = arguments.copied(args, kwargs)
                content, said = arguments.read(options, args, kwargs)
                with self.gate(content, **said) as verdict:
                    return Gated(verdict, function(*args, **kwargs)) if verdict.as_sent else Gated(verdict)

            copy_metadata(gated, function, arguments.signature)
            return gated

        return decorate if function is None else decorate(function)

    def recorded(
        self, *, who: str, conversation: str | None = None, user_id: str | None = None
    ) -> Callable[[Callable[P, object]], Callable[P, str]]:
        """Decorates a tool of this name: what it returns is put down, and given back as a text with its citation at the
        end. What could not be put down is given back without one, so that no claim can rest on it, and logged."""

        def decorate(function: Callable[P, object]) -> Callable[P, str]:
            if iscoroutinefunction(function):
                raise TypeError("a coroutine function is recorded by AsyncClient.recorded")

            @wraps(function)
            def recorded(*args: P.args, **kwargs: P.kwargs) -> str:
                text = calls.recorded_text(function(*args, **kwargs))
                try:
                    kept = self.record(
                        text, kind="tool_output", who=who, conversation=conversation, user_id=user_id
                    )
                except VouchgateError as error:
                    log.warning("an output of %s could not be put down: %s", who, error)
                    return text
                return kept.append_to(text)

            return recorded

        return decorate


class Reviews(Caller):
    """A reviewer's queue, as `Client` is an agent's way in: what waits, and ruling on it. `token` is a reviewer's.

    Every act is given the item that was looked at, from `list` or `show`; when it has changed meanwhile, ApiError with
    the code `stale_version` is raised and nothing is done.
    """

    list = _asked(reviewing.list_items)
    show = _asked(reviewing.show)
    approve = _asked(reviewing.approve)
    edit = _asked(reviewing.edit)
    reject = _asked(reviewing.reject)
    undo = _asked(reviewing.undo)
    hand_over = _asked(reviewing.hand_over)
