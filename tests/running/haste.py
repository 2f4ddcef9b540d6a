"""Pauses that a program makes to spare others, shorter for the programs of the tests: nobody is spared there."""

from __future__ import annotations

from pathlib import Path

from vouchgate.ingest.net import client
from vouchgate.ingest.net.hosts import HostLimits
from vouchgate.server import processes

TIMES = 10  # as short


def make_haste() -> None:
    """From now on this program asks a site of this machine again sooner, and starts a worker again sooner. How long it
    waits stays in proportion."""
    processes.PAUSE_SECONDS /= TIMES
    client.HostLimits = _Hasty  # type: ignore[attr-defined,assignment]


class _Hasty(HostLimits):
    def __init__(self, per_host: int, spacing_seconds: float, shared: Path | None = None) -> None:
        super().__init__(per_host, spacing_seconds / TIMES, shared)
