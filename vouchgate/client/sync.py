"""The client that waits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import ParamSpec, Self, TypeVar, Unpack, overload

import httpx

from vouchgate.client import batches, calls, deliver
from vouchgate.client.calls import ClaimOptions, SaveOptions
from vouchgate.client.config import answer_of, configured, describe_lost_request
from vouchgate.client.exchange import exchange
from vouchgate.client.gating import Arguments, ClaimFrom, Gated, add_verdict_note, copy_metadata
from vouchgate.client.models import Delivered, Delivery, DeliveryState, OwnPending, Page, Problem, Who
from vouchgate.client.steps import Call, CallFunction, Operation, Pause, Reply, Send, Step, Value
from vouchgate.ingest.claims.types import Evidence, Memory, ValidationResult

P = ParamSpec("P")
T = TypeVar("T")


class Client:
    """Calls the service, and waits for its answers. One may be shared by threads; close it, or use it as a context
    manager.

    `url` is where the service is (else VOUCHGATE_URL, else http://127.0.0.1:8080), `token` what is shown to it (else
    VOUCHGATE_TOKEN). `timeout` is in seconds, for connecting and for each part of an answer. What no answer came to is
    sent again, up to `retries` times and within a minute.

    Every method raises VouchgateError, and only for errors: Unreachable, ApiError (QueueFull), OddAnswer, Unsendable.
    A claim that is blocked or queued is a verdict, and is given back.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout: float = 30.0, retries: int = 4
    ) -> None:
        """Raises ValueError naming what cannot be used. Nothing is asked yet."""
        self._config = configured(url, token, timeout=timeout, retries=retries, environment=os.environ)
        self._http = httpx.Client(**self._config.for_httpx())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._config.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def save(self, content: str, **options: Unpack[SaveOptions]) -> ValidationResult:
        """Sends a claim to be kept. `options` are `memory_type` (`"fact"` unless said), `source` (`"ai_synthesis"`),
        `user_id`, `citations`, `validity_horizon`, `metadata`, `delivery` and `idempotency_key`.

        `delivery` says where it is written once it is a memory: `{"sink", "place"}`, with `"op"` and `"data"`. The same
        `idempotency_key` with the same claim is decided once, however often it is sent; without one a new key is made,
        which holds for the tries of this call.
        """
        return self._ask(calls.submit(content, options))

    def check(self, content: str, **options: Unpack[ClaimOptions]) -> ValidationResult:
        """What `save` would answer now. Nothing is kept."""
        return self._ask(calls.check(content, options))

    def save_many(
        self, claims: Sequence[Mapping[str, object]], *, idempotency_key: str | None = None
    ) -> list[ValidationResult | Problem]:
        """Sends claims, each a mapping with the fields of `save` (`content`, `memory_type` and `source` are needed), in
        as few requests as the service takes. One result a claim, in order; a bad one spoils no other. When this raises,
        the same list with the error's `idempotency_key` goes on where it broke off, and doubles nothing."""
        return self._run(batches.save_many(claims, idempotency_key, self._config.retries))

    def memories(
        self,
        *,
        q: str | None = None,
        user_id: str | None = None,
        limit: int | None = None,
        after: str | None = None,
        **filters: Value | Sequence[Value],
    ) -> Page[Memory]:
        """A page of memories, newest first. `q` is a substring of their text; `filters` are those of the API, such as
        `memory_type`, `confidence`, `label`, `source_id`, `status`, `stale`."""
        return self._ask(calls.memories(q, user_id, limit, after, filters))

    def memory(self, memory_id: str) -> Memory:
        """One memory, whatever its status."""
        return self._ask(calls.memory(memory_id))

    def evidence(self, memory_id: str) -> Evidence:
        """What the decision that let a memory in rests on."""
        return self._ask(calls.evidence(memory_id))

    def decision(self, decision_id: str) -> ValidationResult:
        """A decision as it was answered."""
        return self._ask(calls.decision(decision_id))

    def pending(
        self,
        *,
        status: str = "pending",
        user_id: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[OwnPending]:
        """A page of the claims that this token sent and that were queued."""
        return self._ask(calls.pending(status, user_id, limit, after))

    def whoami(self) -> Who:
        """Whose this token is: its role, and the owners and sources it was given."""
        return self._ask(calls.whoami())

    def lease_deliveries(self, sink: str, *, most: int = 20, user_id: str | None = None) -> list[Delivery]:
        """Takes the oldest deliveries of a sink that are due, in order, for 60 seconds; empty when nothing is due or
        another holds them."""
        return self._ask(calls.lease(sink, most, user_id))

    def delivery_done(self, delivery: Delivery) -> None:
        """Says that it was applied."""
        self._ask(calls.report_delivered(delivery))

    def delivery_failed(self, delivery: Delivery, error: str, *, final: bool = False) -> None:
        """Says that it was not applied, and why; with `final` it is not tried again."""
        self._ask(calls.report_failed(delivery, error, final=final))

    def deliveries(
        self,
        *,
        user_id: str | None = None,
        sink: str | None = None,
        state: str | None = None,
        memory_id: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[DeliveryState]:
        """A page of deliveries and where they stand: `waiting`, `delivered` or `dead`."""
        wanted = {"user_id": user_id, "sink": sink, "state": state, "memory_id": memory_id}
        return self._ask(calls.deliveries({**wanted, "limit": limit, "after": after}))

    def deliver(
        self, sink: str, apply: Callable[[Delivery], None], *, user_id: str | None = None
    ) -> Delivered:
        """Leases until nothing is left, and applies each delivery in order. An exception of `apply` marks it as failed,
        to be tried again later; DeadLetter as given up. `apply` may see a delivery twice: it must do no harm."""
        return self._run(
            deliver.deliver(sink, apply, user_id=user_id, retries=self._config.retries, clock=time.monotonic)
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

        The claim is the first argument, the one that `text` names, or what `claim` makes of all arguments: a text, or a
        mapping with `content` and what else `save` takes. It must hold *everything* the body will write. The decorated
        function gives back a Gated: the verdict, and what the body returned if it ran.
        """

        def decorate(function: Callable[P, T]) -> Callable[P, Gated[T]]:
            if iscoroutinefunction(function):
                raise TypeError("a coroutine function is gated by AsyncClient.gated")
            arguments = Arguments.of(function, text, claim)

            def gated(*args: P.args, **kwargs: P.kwargs) -> Gated[T]:
                content, said = arguments.read(options, args, kwargs)
                with self.gate(content, **said) as verdict:
                    return Gated(verdict, function(*args, **kwargs)) if verdict.approved else Gated(verdict)

            copy_metadata(gated, function, arguments.signature)
            return gated

        return decorate if function is None else decorate(function)

    def _ask(self, call: Call[T]) -> T:
        return self._run(exchange(call, self._config.retries))

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
            case Pause():
                time.sleep(step.seconds)
                return None
            case CallFunction():
                try:
                    step.action()
                except Exception as error:  # noqa: BLE001  (whatever it is, it is told to the gate)
                    return error
                return None
