"""Paths along which evidence is looked for: a folder, a repository, an official interface, a web search. A path answers
with texts that were read whole; an excerpt that a search shows is a place to look, never evidence."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from vouchgate.ingest.corroboration.hits import Reading


class Look(NamedTuple):
    """What one look along a path came to. `failures` say, a sentence each, what could not be found out; a look that
    found nothing and failed nowhere has neither."""

    readings: tuple[Reading, ...] = ()
    failures: tuple[str, ...] = ()


class SearchPath(Protocol):
    """One way to look. Never raises for what was found or not found; what went wrong is a failure of the look."""

    @property
    def name(self) -> str:
        """As in the policy's `[corroboration] paths`."""
        ...

    async def look(self, query: str, seconds: float) -> Look:
        """What is there for these words, within this many seconds."""
        ...
