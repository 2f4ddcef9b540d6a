"""The plugins of this environment, looked for once: every service would read the metadata of all packages twice."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import EntryPoints, entry_points

from vouchgate.harvest import setup
from vouchgate.sources import plugins


def share_plugins() -> None:
    """From now on what is found on a path is found there again in this process, and in those forked from it. A test
    that installs a plugin does so in a folder of its own, which makes it another path."""
    setup.entry_points = plugins.entry_points = _entry_points  # type: ignore[attr-defined,assignment]


def _entry_points(*, group: str) -> EntryPoints:
    return _found(group, tuple(sys.path))


@cache
def _found(group: str, path: tuple[str, ...]) -> EntryPoints:
    return entry_points(group=group)
