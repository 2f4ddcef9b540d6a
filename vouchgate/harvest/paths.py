"""Paths along which evidence is looked for: a folder, a repository, an official interface, a web search. A path answers
with texts that were read whole, or with addresses of pages to read; an excerpt that a search shows is a place to look,
never evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from vouchgate.ingest.corroboration.hits import Reading
from vouchgate.ingest.policy import Policy


class Look(NamedTuple):
    """What one look along a path came to. `failures` say, a sentence each, what could not be found out; a look that
    found nothing and failed nowhere has neither."""

    readings: tuple[Reading, ...] = ()
    failures: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()  # of pages that are still to be read, the best first


class SearchPath(Protocol):
    """One way to look. Never raises for what was found or not found; what went wrong is a failure of the look."""

    @property
    def name(self) -> str:
        """As in the policy's `[corroboration] paths`; of several of one kind, that and a name of its own behind a
        dot: `web_search.searx`."""
        ...

    async def look(self, query: str, seconds: float) -> Look:
        """What is there for these words, within this many seconds."""
        ...


def in_order(paths: Iterable[SearchPath], policy: Policy) -> dict[str, SearchPath]:
    """The paths that the policy names, by name, in its order; those of one kind as they come."""
    known = list(paths)
    return {
        path.name: path
        for kind in policy.corroboration.paths
        for path in known
        if kind in (path.name, path.name.partition(".")[0])
    }
