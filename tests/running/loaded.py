"""What the process has loaded, and used once, that the processes of the tests are forked from (`processes`)."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import tempfile
from contextlib import suppress
from fractions import Fraction

from tests.running.patience import be_patient
from vouchgate import cli
from vouchgate.cli.app import commands
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.settings import SettingsError, load_settings
from vouchgate.storage.store import Store

COMMANDS = [found.name for found in pkgutil.walk_packages(cli.__path__, "vouchgate.cli.")]
for needed in (
    *COMMANDS,
    # What a service loads when it starts to serve.
    "anyio._backends._asyncio",
    "encodings.idna",
    "fastapi.telemetry._runtime",
    "numpy",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
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
with suppress(SettingsError):  # of whoever runs the tests: what is made of them is thrown away
    load_settings({})
with tempfile.TemporaryDirectory() as folder:
    Store.open(f"sqlite:///{folder}/vouchgate.db", threshold=Fraction(23, 25)).close()
gc.freeze()  # nobody who is forked from here looks through it for garbage, which would copy all of its memory
