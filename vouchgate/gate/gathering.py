"""Reading what a claim cites, all at once and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import Found, SourceReading, Unreachable


class SourceReader(Protocol):
    """Reads what a citation points at, anew when it must be `fresh`. Never raises."""

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading: ...


async def gather(
    sources: SourceReader, cited: Sequence[Citation], seconds: float, *, fresh: bool
) -> list[SourceReading]:
    """A reading for each; UNKNOWN for what is late."""
    asked = {c.key: asyncio.create_task(sources.read(c, fresh=fresh)) for c in cited}
    try:
        if asked:
            await asyncio.wait(asked.values(), timeout=seconds)
    finally:
        for task in asked.values():
            task.cancel()  # of one that is done, this does nothing
    readings: list[SourceReading] = []
    for citation in cited:
        task = asked[citation.key]
        if task.done() and not task.cancelled() and task.exception() is None:
            readings.append(task.result())
            continue
        readings.append(late(citation, seconds))
    return readings


def late(citation: Citation, seconds: float) -> Unreachable:
    """A citation of which nothing was read within so many seconds."""
    detail = f"{citation.value} could not be looked up within {seconds:g} s."
    return Unreachable(citation=citation, code="timeout", detail=detail)


def timed_out(reading: SourceReading) -> SourceReading:
    """What was read with its text, as what could not be held against the claim in time."""
    if not isinstance(reading, Found) or not reading.text:
        return reading
    detail = f"The claim could not be held against {reading.citation.value} in time."
    return Unreachable(citation=reading.citation, code="timeout", detail=detail)
