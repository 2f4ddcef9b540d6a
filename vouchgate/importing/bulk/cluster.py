"""The cluster that an audit runs on: one of its own on this machine, or one that is there, over TLS."""

from __future__ import annotations

import ipaddress
import logging
import os
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Client, LocalCluster
from distributed.security import Security

from vouchgate.importing.bulk.run import BulkError

CONNECT_SECONDS = 10  # to the scheduler, and then until a worker is there
_LOCAL = re.compile(r"local(?:=([1-9]\d{0,2}))?")
# All that a worker process on this machine has of the environment: no setting of ours, and no secret of anybody else's.
_ENVIRONMENT = (
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
)
# Nobody looks at them, and they would tell of the work to whoever opens the port.
_NO_PAGES = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}


@contextmanager
def cluster(where: str, certificates: Sequence[Path | None], files: Sequence[Path]) -> Iterator[Client]:
    """A client of the cluster that `where` says: `local`, `local=4` (workers) or the address of a scheduler. Any other
    than a loopback address is asked over TLS alone, with the `certificates`: of the authority, one's own, and its key.
    Every worker has to have this version of the program, and to read the `files`. Raises BulkError."""
    with ExitStack() as opened:
        if local := _LOCAL.fullmatch(where):
            client = opened.enter_context(_local(int(local[1] or os.cpu_count() or 1)))
        else:
            client = opened.enter_context(_at(where, certificates))
        check_workers(client, files)
        yield client


@contextmanager
def _local(workers: int) -> Iterator[Client]:
    """Processes on this machine that talk over TLS, with keys made for this run: another user cannot join in."""
    with (
        TemporaryDirectory(prefix="vouchgate-") as folder,
        dask.config.set(_NO_PAGES),
        _little_environment(),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            security=True,
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address=None,
            local_directory=folder,
            silence_logs=logging.CRITICAL,
        ) as made,
        Client(made, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def _little_environment() -> Iterator[None]:
    """Worker processes are started, and started again, with what this process has."""
    before = dict(os.environ)
    try:
        for name in before.keys() - set(_ENVIRONMENT):
            del os.environ[name]
        yield
    finally:
        os.environ.update(before)


@contextmanager
def _at(where: str, certificates: Sequence[Path | None]) -> Iterator[Client]:
    security = secured(where, certificates)
    address = where.replace("tcp://", "tls://", 1) if security else where
    try:
        client = Client(address, timeout=CONNECT_SECONDS, security=security, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        hint = "its address and certificates" if security else "its address"
        raise BulkError(
            f"no Dask scheduler could be reached at {where}; is it running, and are {hint} right?"
        ) from error
    with client:
        yield client


def secured(where: str, certificates: Sequence[Path | None]) -> Security | None:
    """With what a scheduler is talked to; None: in the clear, on a loopback address. Raises BulkError."""
    try:
        parts = urlsplit(where)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or port is None or parts.scheme not in ("tcp", "tls"):
        raise BulkError(
            f"--dask takes local, local=4 or the address of a scheduler, like tls://10.0.0.7:8786; not {where}"
        )
    given = [each for each in certificates if each is not None]
    if not given and parts.scheme == "tcp" and _is_loopback(host):
        return None
    if len(given) < len(certificates):
        raise BulkError(
            f"{where} is asked over TLS with a client certificate: give --dask-ca, --dask-cert and --dask-key. Only a "
            "scheduler at a loopback address, such as tcp://127.0.0.1:8786, may do without"
        )
    for file in given:
        if not os.access(file, os.R_OK):
            raise BulkError(f"{file} cannot be read")
    authority, certificate, key = map(str, given)
    return Security(
        require_encryption=True, tls_ca_file=authority, tls_client_cert=certificate, tls_client_key=key
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_workers(client: Client, files: Sequence[Path]) -> None:
    """Raises BulkError unless there is a worker, and every one has this version of the program and reads the files."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError as error:
        raise BulkError("the scheduler has no worker; start some with dask worker") from error
    for name in ("vouchgate", "dask", "distributed"):
        for worker, found in _run(client, version, name):
            if found != version(name):
                has = "no" if isinstance(found, PackageNotFoundError) else f"{found} of"
                raise BulkError(
                    f"the worker {worker} has {has} {name}, and here is {version(name)}: install the same on both"
                )
    for worker, found in _run(client, platform.python_version):
        if found.split(".")[:2] != platform.python_version().split(".")[:2]:
            raise BulkError(
                f"the worker {worker} runs Python {found}, and here is {platform.python_version()}"
            )
    for file in files:
        for worker, found in _run(client, os.access, str(file), os.R_OK):
            if found is not True:
                raise BulkError(
                    f"the worker {worker} cannot read {file}: what is read has to be at the same path on every worker, "
                    "as in a shared folder"
                )


def _run(client: Client, function: Any, *given: object) -> list[tuple[str, Any]]:
    """What a function gives on each worker; an exception where it raised one."""
    found: dict[str, Any] = client.run(function, *given, on_error="return")
    return sorted(found.items())
