"""What the registries share: each looks one kind of name up at one address."""

from __future__ import annotations

from abc import ABC, abstractmethod

from vouchgate.ingest.claims.types import Citation, SourceReading
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.sources.answers import READING_SECONDS, Clock, read_or_unreachable, utc_now


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

    async def read(self, citation: Citation) -> SourceReading:
        """Looks one citation up. Never raises but CancelledError."""
        return await read_or_unreachable(citation, self._read(citation), seconds=self._seconds)

    @abstractmethod
    async def _read(self, citation: Citation) -> SourceReading:
        """What there is of it. May raise NoAnswer, or anything."""
