"""What of a claim has to be asked of others: each thing once, many claims at a time, and their order kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from vouchgate.gate.examiner import Examiner
from vouchgate.gate.gate import Gate
from vouchgate.gate.gathering import SourceReader
from vouchgate.gate.incoming import ClaimRefused
from vouchgate.importing.batches import PreparedRow
from vouchgate.importing.rows import BadRow
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.decision import Decision, ValidationResult
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.support.prepared import PreparedTexts

# Claims whose citations are read at the same time. One host is asked only so often, and each claim waits for its own
# within the policy's deadline: more at once would only let the last of them run out of time.
READING_AT_ONCE = 16
_KEPT_CHARACTERS = 50_000_000  # of texts that were read and may be asked for again


async def examine_all(examiner: Examiner | Gate, rows: Sequence[PreparedRow]) -> list[Examined | BadRow]:
    """The claim of each row examined, in their order; or why it cannot be looked at."""
    at_once = asyncio.Semaphore(READING_AT_ONCE)
    texts = PreparedTexts()  # rows of a memory often cite one source

    async def examine(row: PreparedRow) -> Examined | BadRow:
        async with at_once:
            try:
                return await examiner.examine(row.claim, texts=texts)
            except ClaimRefused as error:
                return BadRow(row.place, str(error))

    return list(await asyncio.gather(*map(examine, rows)))


def reason_of(decided: Decision | ValidationResult) -> str:
    """The reason by which decisions are counted. One that names what was cited would make a count of its own."""
    return "Cites something that does not hold" if decided.rule == Rule.REFUTED else decided.reason


class ReadOnceSources:
    """Reads each cited thing once in a run, whatever came of it, and lets a claim that runs out of time leave the
    reading to the next one. Its coroutines belong to one event loop: `stop_reading` before that ends."""

    def __init__(self, sources: SourceReader) -> None:
        self._sources = sources
        self._asked: OrderedDict[str, asyncio.Task[SourceReading]] = OrderedDict()
        self._characters = 0

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        """As the source it is asked of, the first time. Never raises."""
        task = self._asked.get(citation.key)
        if task is None:
            task = self._asked[citation.key] = asyncio.create_task(self._sources.read(citation, fresh=fresh))
            task.add_done_callback(self._weigh)
        else:
            self._asked.move_to_end(citation.key)
        reading = await asyncio.shield(task)
        return reading.model_copy(update={"citation": citation})

    async def stop_reading(self) -> None:
        """Ends what is still being read."""
        waiting = [task for task in self._asked.values() if not task.done()]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _weigh(self, task: asyncio.Task[SourceReading]) -> None:
        """Forgets the oldest readings beyond what is kept: a large memory may cite all of a large site."""
        self._characters += _size(task)
        for key, oldest in list(self._asked.items()):
            if self._characters <= _KEPT_CHARACTERS:
                break
            if oldest.done():
                del self._asked[key]
                self._characters -= _size(oldest)


def _size(task: asyncio.Task[SourceReading]) -> int:
    if task.cancelled() or task.exception() is not None:
        return 0
    reading = task.result()
    return 500 + (len(reading.text) if isinstance(reading, Found) else 0)
