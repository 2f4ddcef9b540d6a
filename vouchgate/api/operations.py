"""Health, readiness and counters, for whoever runs the service."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from vouchgate.api.base import metrics_of, problem_response
from vouchgate.api.problems import ProblemError
from vouchgate.ingest.claims.modes import Mode
from vouchgate.ingest.scoring.priority import NEAR_EXPIRY
from vouchgate.server.state import service_of
from vouchgate.service import Service
from vouchgate.storage import modes
from vouchgate.storage.claims import unvouched
from vouchgate.storage.errors import StorageError, StoreBusy
from vouchgate.storage.outgoing import streams as delivery_streams
from vouchgate.storage.queue import overview, spot_checks
from vouchgate.storage.queue.overview import queue_figures
from vouchgate.storage.queue.spot_checks import VerdictCounts
from vouchgate.wire import WireOut

log = logging.getLogger(__name__)
router = APIRouter(tags=["operations"])

# Who asks whether it is ready waits for five seconds at most, and learns more from an answer. What looks goes on, and
# who asks next waits for the same.
LOOK_SECONDS = 4.0


class Health(WireOut):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Ready(WireOut):
    """`degraded` lists what the service goes without: claims that need it are queued, never passed; and whether it is
    stopped, read-only or only observes. `scopes` counts where that was set: the service, owners and agents."""

    status: Literal["ready"] = "ready"
    mode: Mode = Mode.ENFORCE
    scopes: dict[str, int]
    degraded: list[str]
    policy_digest: str


@router.get("/healthz")
async def healthz() -> Health:
    """The process runs."""
    return Health()


@router.get(
    "/readyz",
    responses={503: problem_response(503)},
)
async def readyz(request: Request) -> Ready:
    """The database answers and takes writes; what else is degraded is listed."""
    state = request.app.state
    if state.look is None or state.look.done():
        state.look = asyncio.create_task(run_in_threadpool(_look, service_of(request)))
        state.look.add_done_callback(_ended)
    await asyncio.wait([state.look], timeout=LOOK_SECONDS)
    if state.look.done():
        ready: Ready = await state.look
        return ready
    why = f"the database has not answered for {LOOK_SECONDS:.0f} seconds"
    raise _not_ready(why, StoreBusy(why))


def _ended(look: asyncio.Task[Ready]) -> None:
    """Its error is nobody's any more where all who asked were answered before."""
    if not look.cancelled():
        look.exception()


def _look(service: Service) -> Ready:
    busy: list[str] = []
    try:
        with service.store.read() as connection:
            overview.waiting(connection, datetime.now(UTC))
            switches = modes.everything(connection)
    except StorageError as error:  # what the server says names the database, and anybody may ask
        raise _not_ready("the database cannot be read" if error.__cause__ else str(error), error) from error
    try:
        service.store.probe()
    except StoreBusy as error:
        busy = [f"Claims have to wait: {error}."]
    except StorageError as error:
        raise _not_ready(str(error), error) from error
    found = [one for one in switches if one.matters and not (one.owner_id or one.agent)]
    stand = [one.model_copy(update={"reason": ""}).sentence for one in found]
    return Ready(
        mode=next((one.mode for one in found if one.mode), Mode.ENFORCE),
        scopes=modes.figures(switches),
        degraded=[*stand, *busy, *service.problems()],
        policy_digest=service.policy.digest,
    )


def _not_ready(why: str, error: StorageError) -> ProblemError:
    log.error("not ready: %s", error)
    return ProblemError(
        503, "storage_unavailable", f"Claims are refused: {why}.", headers={"Retry-After": "1"}
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus text"}
    },
)
def metrics(request: Request) -> Response:
    """Counters in the Prometheus text format."""
    now = datetime.now(UTC)
    try:
        with service_of(request).store.read() as connection:
            waiting, oldest_seconds = overview.waiting(connection, now)
            queues = queue_figures(connection, now, NEAR_EXPIRY)
            deliveries = delivery_streams.figures(connection)
            checks: VerdictCounts | None = spot_checks.counts(connection, None)
            scopes: dict[str, int] | None = modes.figures(modes.everything(connection))
            let_through = unvouched.count(connection)
    except StorageError:
        # Not known: the counters are still worth reading.
        waiting, oldest_seconds, queues, deliveries, checks, scopes, let_through = (
            -1,
            -1.0,
            None,
            None,
            None,
            None,
            -1,
        )
    page = metrics_of(request).text(
        waiting, oldest_seconds, queues, deliveries, checks, scopes=scopes, unvouched=let_through
    )
    return Response(page, media_type="text/plain; version=0.0.4; charset=utf-8")
