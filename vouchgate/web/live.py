"""The stream of events by which an open page keeps its badge and list up to date.

`event: queue` has the owner's log number as its id, and says how many items wait. Between events there is a comment
now and then, for proxies that close a quiet connection; with each it is looked whether the visitor is still signed
in. A stream is no request to wait for when the service stops: `Hub.close` ends them all.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.sse import EventSourceResponse, format_sse_event
from starlette.concurrency import run_in_threadpool

from vouchgate.server.live import Hub, QueueState, Stream, TooManyStreams
from vouchgate.storage.errors import StorageError
from vouchgate.web.pages import PageProblem
from vouchgate.web.session import SignedIn, SignInNeeded, visitor_of

log = logging.getLogger(__name__)

router = APIRouter(include_in_schema=False)

RETRY_MS = 3_000  # when a browser asks again after a stream has broken off
# When it does after its owner has opened too many others. At 3 s a sixth tab would make all six take turns in
# closing one another's streams.
CROWDED_MS = 60_000
FULL_SECONDS = 30  # what a 503 says to wait

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would keep events back until it has a buffer of them
}


async def _stream(request: Request, visitor: SignedIn) -> AsyncIterator[Stream]:
    """A dependency, so that it is left when the answer has ended, however it did: also when nothing of it was ever
    sent."""
    hub: Hub = request.app.state.hub
    try:
        with hub.listen(visitor.owner_id) as stream:
            yield stream
    except TooManyStreams as error:
        sentence = "Too many pages are open at the moment. Load this one again to see what has changed."
        raise PageProblem(503, sentence, headers={"Retry-After": str(FULL_SECONDS)}) from error


@router.get("/review/events")
async def events(request: Request, stream: Annotated[Stream, Depends(_stream)]) -> EventSourceResponse:
    """The visitor's queue: as it is now, then whenever it has changed."""
    hub: Hub = request.app.state.hub
    sent = frames(stream, lambda: _is_signed_in(request), hub.heartbeat_seconds)
    return EventSourceResponse(sent, headers=_HEADERS)


def _is_signed_in(request: Request) -> bool:
    try:
        visitor_of(request)
    except (SignInNeeded, PageProblem):  # for nobody any more, or not for this owner
        return False
    return True


async def frames(
    stream: Stream, still_signed_in: Callable[[], bool], heartbeat_seconds: float
) -> AsyncIterator[bytes]:
    """The bytes of an answer, until the stream ends or its visitor is not signed in any more."""
    yield format_sse_event(retry=RETRY_MS)
    clock = asyncio.get_running_loop().time
    beat = clock() + heartbeat_seconds
    while True:
        try:
            async with asyncio.timeout_at(beat):
                state = await anext(stream)
        except TimeoutError:
            try:
                if not await run_in_threadpool(still_signed_in):
                    return
            except StorageError as error:
                # It cannot be known; and while nothing can be read, nothing is told to anybody.
                log.warning("whether a page's visitor is still signed in is not known: %s", error)
            yield format_sse_event(comment="still there")
            beat = clock() + heartbeat_seconds
        except StopAsyncIteration:
            break
        else:
            yield _queue_event(state)
    if stream.crowded_out:
        yield format_sse_event(retry=CROWDED_MS)


def _queue_event(state: QueueState) -> bytes:
    data = json.dumps({"waiting": state.waiting, "seq": state.seq})
    return format_sse_event(event="queue", id=str(state.seq), data_str=data)
