"""The HTTP API and the pages as one application around a running service."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from base64 import b64encode
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi_offline import FastAPIOffline
from starlette.responses import RedirectResponse, Response

from vouchgate.api import (
    attention,
    claims,
    deliveries,
    documents,
    erasures,
    gaps,
    impact,
    log,
    memories,
    modes,
    numbers,
    operations,
    pending,
    problems,
    publishers,
    reviews,
    spot_checks,
    standing_rulings,
    team,
)
from vouchgate.api.audit import events, memory
from vouchgate.api.evidence import corroboration, records
from vouchgate.server.auth import Authenticator, RateLimit
from vouchgate.server.headers import PAGES, SecureHeaders
from vouchgate.server.live import Hub
from vouchgate.server.metrics import Metrics
from vouchgate.server.oidc import open_oidc
from vouchgate.server.sweeping import Sweeper
from vouchgate.service import Service
from vouchgate.web.mount import HOME, PagesApp
from vouchgate.workers.runner import end, repeat

DESCRIPTION = """A gatekeeper for AI memory. Send a claim before you save it: it is **stored** when something
other than the model vouches for it, **queued** for its owner when that could not be found out, and
**blocked** when it is speculation or a repeat. A verdict is never an error; errors are problem documents
(RFC 9457)."""


def create_app(service: Service, shared: Path | None = None) -> FastAPI:
    """The application. The service is opened and closed by whoever calls.

    `shared` is the folder in which several processes that serve one port count claims together, for the page
    of metrics and for the rate limit.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeper = Sweeper(service)
        work = [
            asyncio.create_task(repeat("expiring old items", sweeper.sweep)),
            asyncio.create_task(repeat("ending what is over its time", sweeper.retain)),
            asyncio.create_task(service.rechecker.job.run(app.state.metrics.count_rechecks)),
            asyncio.create_task(repeat("looking for changed documents", service.changes.look)),
            *(
                asyncio.create_task(job.run(app.state.metrics.count_messages))
                for job in service.webhooks.jobs
            ),
            *(asyncio.create_task(job.run(app.state.metrics.count_mails)) for job in service.mail.jobs),
            asyncio.create_task(service.document_worker.job.run(app.state.metrics.count_documents)),
            asyncio.create_task(service.word_indexer.job.run(lambda results: None)),
            asyncio.create_task(service.sequencer.job.run(lambda results: None)),
            asyncio.create_task(service.witnesses.job.run(lambda results: None)),
            *(
                asyncio.create_task(repeat("mirroring the log", mirror.step))
                for mirror in [service.log_mirror]
                if mirror is not None
            ),
        ]
        yield
        app.state.hub.close()
        await end(work)
        await service.sources.stop_reading()

    # The page at /docs with its script and style from the package, not from somebody's server.
    app = FastAPIOffline(
        title="Vouchgate",
        version=version("vouchgate"),
        description=DESCRIPTION,
        lifespan=lifespan,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    app.state.metrics = Metrics(shared)
    service.queue.add_listener(app.state.metrics.count_reviews)
    app.state.hub = Hub(service.store, app.state.metrics.set_streams)
    app.state.authenticator = Authenticator(service.store)
    app.state.rate_limit = RateLimit(service.policy.limits.claims_per_minute, folder=shared)
    app.state.record_rate_limit = RateLimit(service.policy.records.per_minute, folder=shared)
    app.state.sign_in_attempts = None  # made with the pages
    app.state.look = None  # whether the service is ready, while somebody looks
    app.state.oidc = open_oidc(service.settings, service.policy)
    problems.install(app)
    for router in (
        claims.submit_router,
        claims.router,
        pending.router,
        memories.router,
        erasures.router,
        deliveries.router,
        attention.router,  # before what takes any word for an item
        reviews.router,
        spot_checks.router,
        numbers.router,
        impact.router,
        publishers.router,
        standing_rulings.router,
        corroboration.router,
        documents.router,
        records.router,
        gaps.router,
        events.router,
        memory.router,
        log.public_router,
        log.router,
        operations.router,
        modes.router,
        team.router,
    ):
        app.include_router(router)
    app.add_api_route("/", _to_the_pages, include_in_schema=False)
    app.add_middleware(PagesApp, state=app.state, shared=shared)
    # Around all of it, also what answers when something fails that nobody foresaw.
    policies = {HOME: PAGES, "/docs": _policy_of_docs(app)}
    app.middleware_stack = SecureHeaders(problems.AnswerAtTheEnd(app.build_middleware_stack()), policies)
    return app


def _policy_of_docs(app: FastAPI) -> str:
    """The Content-Security-Policy of the page at /docs, which has one script in it and styles that scripts set."""
    page = bytes(
        get_swagger_ui_html(
            openapi_url=str(app.openapi_url),
            title=app.title,
            oauth2_redirect_url=app.swagger_ui_oauth2_redirect_url,
            swagger_ui_parameters=app.swagger_ui_parameters,
        ).body
    ).decode()
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self' 'unsafe-inline'; "
        "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


async def _to_the_pages() -> Response:
    return RedirectResponse(HOME, 303)
