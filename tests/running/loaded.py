"""What the process has loaded, and used once, that the processes of the tests are forked from (`processes`)."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import pkgutil
import tempfile
from contextlib import suppress

import httpx

from tests.running.authorities import share_authorities
from tests.running.grammars import put_off_grammars
from tests.running.patience import be_patient
from tests.running.phrases import share_phrases
from tests.running.plugins import share_plugins
from tests.running.routes import share_routes
from vouchgate import cli
from vouchgate.cli.app import commands
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.server.app import create_app
from vouchgate.service import open_service
from vouchgate.settings import SettingsError, load_settings


async def ask(database_url: str) -> None:
    """Asks a service for what no route of it answers, and for a page: FastAPI looks at all routes for that."""
    with open_service(load_settings({}, database_url=database_url, offline=True)) as service:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for path in ("/v1/nothing", "/review/nothing", "/review/sign-in"):
                await client.get(path)


put_off_grammars()
COMMANDS = [found.name for found in pkgutil.walk_packages(cli.__path__, "vouchgate.cli.")]
for needed in (
    *COMMANDS,
    # What a service loads when it starts to serve.
    "anyio._backends._asyncio",
    "fastmcp",
    "encodings.idna",
    "fastapi.telemetry._runtime",
    "numpy",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "vouchgate.mcp.gate.proxy",
    "vouchgate.mcp.serving",
    "pytest",
    "hypothesis",
    "tests.running.racers",
    "tests.mailing",
    "tests.rechecking",
    "tests.reviews",
):
    if not needed.endswith("__main__"):
        importlib.import_module(needed)
be_patient()
commands()
load_policy()
share_authorities()
share_phrases()
share_plugins()
share_routes()
for name in [name for name in os.environ if name.startswith("VOUCHGATE_")]:
    del os.environ[name]  # of whoever runs the tests
with suppress(SettingsError), tempfile.TemporaryDirectory() as folder:
    asyncio.run(ask(f"sqlite:///{folder}/vouchgate.db"))
gc.freeze()  # nobody who is forked from here looks through it for garbage, which would copy all of its memory
