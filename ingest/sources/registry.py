"""What the registries share: each looks one kind of name up at one address."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from vouchgate.ingest.citations.kinds import OpenSource
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import SourceReading
from vouchgate.ingest.net.fetched import Fetched
from vouchgate.ingest.sources.answers import (
    LARGEST,
    READING_SECONDS,
    Clock,
    fetch_answer,
    read_or_unreachable,
    utc_now,
)

if TYPE_CHECKING:
    from vouchgate.ingest.net.client import Outbound


class Registry(ABC):
    """Reads citations of one type from the service at `base`, each within `seconds`. Its coroutines belong to one
    event loop."""

    def __init__(
        self, outbound: Outbound, *, base: str, clock: Clock = utc_now, seconds: float = READING_SECONDS
    ) -> None:
        self._outbound = outbound
        self._base = base.rstrip("/")
        self._clock = clock
        self._seconds = seconds

    @classmethod
    def opened_at(cls, base: str) -> OpenSource:
        """The source of a kind with one setting, which is the address; without it, the service at `base`."""
        return lambda outbound, settings: cls(outbound, base=next(iter(settings.values()), base))

    async def read(self, citation: Citation) -> SourceReading:
        """Looks one citation up. Never raises but CancelledError."""
        return await read_or_unreachable(citation, self._read(citation), seconds=self._seconds)

    async def _ask(
        self, who: str, path: str, accept: str = "application/json", *, max_bytes: int = LARGEST
    ) -> Fetched:
        """The answer to a GET below the base, of whatever status. Raises NoAnswer when there was none."""
        url, headers = f"{self._base}{path}", {"Accept": accept}
        return await fetch_answer(self._outbound, url, who, headers=headers, max_bytes=max_bytes)

    @abstractmethod
    async def _read(self, citation: Citation) -> SourceReading:
        """What there is of it. May raise NoAnswer, or anything."""
