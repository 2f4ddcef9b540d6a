"""The client of the HTTP API, waiting and with coroutines, for tests that hold for both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, cast

from tests.answers import answer_of, claim_of
from tests.web import Answer, Asked, WebServer
from vouchgate import AsyncClient, Client

Kind = Literal["Client", "AsyncClient"]
KINDS: tuple[Kind, ...] = ("Client", "AsyncClient")


class _Blocking:
    """An AsyncClient whose coroutines are run to their end, one at a time."""

    def __init__(self, client: AsyncClient, runner: asyncio.Runner) -> None:
        self._client, self._runner = client, runner

    def __repr__(self) -> str:
        return repr(self._client)

    def __getattr__(self, name: str) -> Callable[..., Any]:  # whatever the method gives
        method = getattr(self._client, name)
        return lambda *args, **kwargs: self._runner.run(method(*args, **kwargs))


SECRET = "vg_this-is-secret"
TEXT = "The ledger is in Vilnius."
JSON = {"Content-Type": "application/json"}
PROBLEM = {"Content-Type": "application/problem+json"}
QUEUED: dict[str, Any] = answer_of(claim_of(TEXT)).model_dump(mode="json")
STORED: dict[str, Any] = QUEUED | {
    "tier": "tier_1",
    "outcome": "stored",
    "approved": True,
    "memory_id": "mem_1",
    "queue_id": None,
}


@contextmanager
def calling(kind: Kind, url: str, token: str, **options: Any) -> Iterator[Client]:
    """A client of either kind, called as `Client` is."""
    if kind == "Client":
        with Client(url, token, **options) as client:
            yield client
        return
    with asyncio.Runner() as runner:
        opened = AsyncClient(url, token, **options)
        try:
            yield cast(Client, _Blocking(opened, runner))
        finally:
            runner.run(opened.aclose())


def reply(body: object, status: int = 200, **headers: str) -> Answer:
    """A JSON answer."""
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(body), status, JSON | more)


def problem(status: int, code: str, **headers: str) -> Answer:
    """A problem document."""
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps({"status": status, "code": code, "detail": "Not now."}), status, PROBLEM | more)


def in_turn(*answers: Answer | type[Exception]) -> Callable[[Asked], Answer]:
    """Gives these answers one after another, the last one for ever. An exception ends the connection."""
    left = list(answers)

    def give(_: Asked) -> Answer:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Answer):
            return answer
        raise answer

    return give


def keys(web: WebServer) -> list[str | None]:
    """The Idempotency-Key of every request."""
    return [one.headers.get("idempotency-key") for one in web.asked]
