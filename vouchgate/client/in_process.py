"""How the clients reach a service in their own process: requests go to its application, in its event loop, without a
network. The clients do not see a difference."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from typing import Any

import httpx

from vouchgate.client.errors import GateClosed

URL = "http://in-process"  # what requests are addressed to; nothing listens there


class InProcess(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Carries requests from any thread and any event loop to an ASGI application that runs in `loop`. A caller that
    stops waiting loses the answer only, as over a network: what was begun is done."""

    def __init__(
        self, app: Any, loop: asyncio.AbstractEventLoop
    ) -> None:  # Any: httpx names its type for itself
        self._application = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._loop = loop
        self._lock = threading.Lock()
        self._under_way: set[Future[httpx.Response]] = set()
        self._ended = False
        self._process = os.getpid()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx.ReadTimeout, and GateClosed once the service has ended."""
        sent = self._send(request)
        wait([sent], _patience(request))
        return _result(sent, request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As `handle_request`."""
        here = asyncio.get_running_loop()
        answered = asyncio.Event()

        def tell(_: Future[httpx.Response]) -> None:
            with suppress(RuntimeError):  # nobody waits in a loop that has ended
                here.call_soon_threadsafe(answered.set)

        sent = self._send(request)
        sent.add_done_callback(tell)
        with suppress(TimeoutError):
            async with asyncio.timeout(_patience(request)):
                await answered.wait()
        return _result(sent, request)

    async def finish(self, seconds: float) -> None:
        """Takes no more requests, and waits for those under way, but not longer. To be awaited in the loop."""
        with self._lock:
            self._ended = True
            left = [asyncio.wrap_future(each) for each in self._under_way]
        if left:
            await asyncio.wait(left, timeout=seconds)

    def require_open(self) -> None:
        """Raises GateClosed."""
        if os.getpid() != self._process:  # there is no loop in it, and nobody would answer
            raise GateClosed(
                "this gate was opened in the process that this one was forked from: open one here"
            )
        if self._ended:
            raise GateClosed("this gate is closed")

    def _send(self, request: httpx.Request) -> Future[httpx.Response]:
        self.require_open()  # before the lock, which may have been held when this process was forked
        with self._lock:
            self.require_open()
            sent = asyncio.run_coroutine_threadsafe(self._answer(request), self._loop)
            self._under_way.add(sent)
        sent.add_done_callback(self._forget)
        return sent

    def _forget(self, sent: Future[httpx.Response]) -> None:
        with self._lock:
            self._under_way.discard(sent)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._application.handle_async_request(request)
        body = b"".join([part async for part in answer.stream])  # type: ignore[union-attr]  # of this transport
        return httpx.Response(answer.status_code, headers=answer.headers, stream=httpx.ByteStream(body))


def _patience(request: httpx.Request) -> float | None:
    """Seconds, as the client's time-out says."""
    seconds: float | None = request.extensions["timeout"]["read"]
    return seconds


def _result(sent: Future[httpx.Response], request: httpx.Request) -> httpx.Response:
    """The answer to a request that was waited for."""
    if not sent.done():
        raise httpx.ReadTimeout("no answer came in time", request=request)
    try:
        return sent.result()
    except CancelledError:
        raise httpx.ReadError("the service ended", request=request) from None
