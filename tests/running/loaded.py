"""What the process has loaded, and used once, that the processes of the tests are forked from (`processes`)."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import pkgutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import httpx
from pydantic import BaseModel

from tests.running.authorities import share_authorities
from tests.running.grammars import put_off_grammars
from tests.running.large_pages import use_large_pages
from tests.running.pages import share_page_readers
from tests.running.patience import be_patient
from tests.running.phrases import share_phrases
from tests.running.plugins import share_plugins
from tests.running.routes import share_routes
from tests.running.service import ALL_SOURCES, make_token
from tests.running.statements import share_statements
from vouchgate import cli
from vouchgate.cli.app import command_for, commands
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.scoring.sites import is_public_suffix
from vouchgate.server.app import create_app
from vouchgate.server.processes import LATE
from vouchgate.service import open_service
from vouchgate.settings import SettingsError, load_settings
from vouchgate.storage.identity import sessions
from vouchgate.web.session import COOKIE


async def ask(database_url: str) -> None:
    """Has a service do once what most tests have theirs do, its jobs too: what is made at the first time is made then,
    and FastAPI looks at all routes. Nobody is told what it answers."""
    with open_service(load_settings({}, database_url=database_url, offline=True)) as service:
        agent = make_token(database_url, Role.AGENT, ["first"], sources=ALL_SOURCES)
        reviewer = make_token(database_url, Role.REVIEWER, ["first"])
        session = sessions.start(service.store, reviewer, now=datetime.now(UTC))
        assert isinstance(session, str)
        app = create_app(service)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            client.headers["Authorization"] = f"Bearer {agent}"
            for body in CLAIMS:
                await client.post("/v1/claims", json=body)
            await client.post("/v1/claims/check", json=CLAIMS[0])
            await client.post("/v1/claims/batch", json={"claims": [CLAIMS[0]]})
            client.headers["Authorization"] = f"Bearer {reviewer}"
            waiting = (await client.get("/v1/reviews")).json()["items"]
            await client.post(f"/v1/reviews/{waiting[0]['id']}/approve", json={"version": 1})
            for path in ("/v1/memories", "/v1/nothing", "/readyz", "/metrics"):
                await client.get(path)
            del client.headers["Authorization"]
            for path in ("/review/nothing", "/review/sign-in"):
                await client.get(path)
            client.cookies.set(COOKIE, session)
            for path in ("/review", "/review/history", "/review/memories"):
                await client.get(path)


def _models(base: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    """All that are loaded. What one is made of it may have to look up in its module, so those of others stay as they
    are."""
    for model in base.__subclasses__():
        if model.__module__.startswith("vouchgate."):
            yield model
        yield from _models(model)


def _prepare(command: Any) -> None:
    """What a command, and those below it, reads its words with: each makes it when it is asked for."""
    for parameter in command.get_params(command.context_class(command)):
        if hasattr(parameter, "get_runtime_param"):
            parameter.get_runtime_param()
    for below in getattr(command, "commands", {}).values():
        _prepare(below)


# What is stored, what waits, and what waits with a page that cannot be read.
CLAIMS = [
    {"content": content, "memory_type": "fact", "source": source, "citations": citations}
    for content, source, citations in (
        ("The first gate has a door of 3 m.", "user", []),
        ("The second gate opens on Mondays.", "ai_synthesis", []),
        ("The third gate is made of steel.", "ai_synthesis", ["https://example.org/gates"]),
    )
]


put_off_grammars()
COMMANDS = [found.name for found in pkgutil.walk_packages(cli.__path__, "vouchgate.cli.")]
for needed in (
    *COMMANDS,
    *LATE,
    # What a service loads when it starts to serve.
    "anyio._backends._asyncio",
    "fastmcp",
    "encodings.idna",
    "fastapi.telemetry._runtime",
    "numpy",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "typer._click._textwrap",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "vouchgate.mcp.gate.proxy",
    "vouchgate.mcp.serving",
    "vouchgate.storage.log.tree_check",
    "pytest",
    "hypothesis",
    "tests.running.haste",
    "tests.running.racers",
    "tests.mailing",
    "tests.rechecking",
    "tests.reviews",
):
    if not needed.endswith("__main__"):
        importlib.import_module(needed)
be_patient()
_prepare(commands())
for name in commands().commands:  # type: ignore[attr-defined]
    _prepare(command_for(name))
load_policy()
is_public_suffix("org")  # of ten thousand, read at the first time
share_authorities()
share_page_readers()
share_phrases()
share_plugins()
share_routes()
share_statements()
for model in _models():
    if not model.__pydantic_complete__:
        model.model_rebuild()
for name in [name for name in os.environ if name.startswith("VOUCHGATE_")]:
    del os.environ[name]  # of whoever runs the tests
with suppress(SettingsError), tempfile.TemporaryDirectory() as folder:
    asyncio.run(ask(f"sqlite:///{folder}/vouchgate.db"))
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()  # of the threads that answered; a fork has none
gc.freeze()  # nobody who is forked from here looks through it for garbage, which would copy all of its memory
use_large_pages()
