"""The cluster that an audit runs on: one of its own on this machine, or one that is there, over TLS."""

from __future__ import annotations

import ipaddress
import logging
import os
import platform
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
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
_NO_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


@contextmanager
def cluster(where: str, certificates: Sequence[Path | None], files: Sequence[Path]) -> Iterator[Client]:
    """A client of the cluster that `where` says: `local`, `local=4` (workers) or the address of a scheduler. Any other
    than a loopback address is asked over TLS alone, with the `certificates`: of the authority, one's own, and its key.
    Every worker has to have this version of the program, and to read the `files`. Raises BulkError."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong is told in a sentence
    with ExitStack() as opened:
        if local := _LOCAL.fullmatch(where):
            client = opened.enter_context(_local(int(local[1] or os.cpu_count() or 1)))
        else:
            security = secured(where, certificates)
            address = where.replace("tcp://", "tls://", 1) if security else where
            try:
                client = Client(address, timeout=CONNECT_SECONDS, security=security, set_as_default=False)
            except (OSError, ValueError) as error:
                raise BulkError(
                    f"no Dask scheduler could be reached at {where}; see whether it runs, and whether the certificates "
                    "are those of its authority"
                ) from error
            opened.enter_context(client)
        check_workers(client, files)
        yield client


@contextmanager
def _local(workers: int) -> Iterator[Client]:
    """Processes on this machine that talk over TLS, with keys made for this run: no other user can join in."""
    environment = dict(os.environ)
    try:
        for name in environment.keys() - set(_ENVIRONMENT):
            del os.environ[name]  # a worker that was lost is started again with what this process has then
        with (
            TemporaryDirectory(prefix="vouchgate-") as folder,
            dask.config.set(_NO_PAGES),
            ExitStack() as opened,
        ):
            with _uninterrupted():
                made = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    security=True,
                    dashboard_address="127.0.0.1:0",
                    local_directory=folder,
                    silence_logs=logging.CRITICAL,
                )
                opened.enter_context(made)
            yield opened.enter_context(Client(made, set_as_default=False))
    finally:
        os.environ.update(environment)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Puts off SIGINT and SIGTERM until its end: workers of a cluster whose start is cut off write on, also into a
    folder that was taken away."""
    came: list[int] = []
    former = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        for each in former:
            signal.signal(each, lambda number, _: came.append(number))
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
    if came:
        signal.raise_signal(came[0])


def secured(where: str, certificates: Sequence[Path | None]) -> Security | None:
    """With what a scheduler is talked to; None: in the clear, on a loopback address. Raises BulkError."""
    try:
        parts = urlsplit(where)
        usable = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
    except ValueError:
        usable = None
    if not usable:
        raise BulkError(
            f"--dask takes local, local=4 or an address like tls://10.0.0.7:8786, and not {where}"
        )
    given = [str(each) for each in certificates if each is not None]
    if not given and parts.scheme == "tcp" and _is_loopback(parts.hostname or ""):
        return None
    if len(given) < len(certificates):
        raise BulkError(
            f"{where} is asked over TLS with a client certificate: give --dask-ca, --dask-cert and --dask-key. Only a "
            "scheduler at a loopback address, such as tcp://127.0.0.1:8786, may do without"
        )
    for file in given:
        if not os.access(file, os.R_OK):
            raise BulkError(f"{file} cannot be read")
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    return Security(require_encryption=True, **dict(zip(names, given, strict=True)))


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
    ours = {name: version(name) for name in ("vouchgate", "dask", "distributed")}
    found = {name: client.run(version, name, on_error="return") for name in ours}
    ours["Python"], found["Python"] = platform.python_version(), client.run(platform.python_version)
    for name, known in ours.items():
        for worker, has in found[name].items():
            if has != known:
                told = "no" if isinstance(has, PackageNotFoundError) else has
                raise BulkError(
                    f"the worker {worker} has {told} {name}, and here is {known}: install the same on both"
                )
    for file in files:
        for worker, reads in client.run(os.access, str(file), os.R_OK, on_error="return").items():
            if reads is not True:
                raise BulkError(
                    f"the worker {worker} cannot read {file}: what is read has to be at the same path on every worker, "
                    "as in a shared folder"
                )
