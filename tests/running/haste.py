"""Pauses that a program makes to spare others, shorter for the programs of the tests: nobody is spared there."""

from __future__ import annotations

from pathlib import Path

from vouchgate.ingest.net import client
from vouchgate.ingest.net.hosts import HostLimits
from vouchgate.ingest.scoring.sites import is_public_suffix
from vouchgate.server import processes

TIMES = 10  # as short


def make_haste() -> None:
    """From now on the programs that are forked from this process ask a site of this machine again sooner, and start a
    worker again sooner. How long they wait stays in proportion."""
    processes.PAUSE_SECONDS /= TIMES
    client.HostLimits = _Hasty  # type: ignore[attr-defined,assignment]
    is_public_suffix("org")  # of ten thousand, read at the first time


class _Hasty(HostLimits):
    def __init__(self, per_host: int, spacing_seconds: float, shared: Path | None = None) -> None:
        super().__init__(per_host, spacing_seconds / TIMES, shared)
