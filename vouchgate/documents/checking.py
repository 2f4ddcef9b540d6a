"""The sources of documents read, all at once, and each claim held against its own."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

from vouchgate.documents.beside import is_itself
from vouchgate.documents.recording import RecordingError
from vouchgate.gate.gathering import SourceReader, late
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Missing, SourceReading, Unreachable
from vouchgate.ingest.documents.gate import Accepted, CheckedDocument
from vouchgate.ingest.documents.types import Document
from vouchgate.ingest.documents.verdict import (
    CheckedClaim,
    ClaimVerdict,
    check_claim,
    everything_cited,
)
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.support.prepared import PreparedTexts

log = logging.getLogger(__name__)

AT_ONCE = 64  # sources asked at the same time
SECONDS = 60.0  # for one source, from its turn on
AGAIN_AFTER = 30.0  # seconds, until a source that was down is asked once more
_PASSING = frozenset({"timeout", "server_error", "connection", "dns", "rate_limited"})
_LATE = (ClaimVerdict.UNKNOWN, "There was no time left to hold it against its sources.")

Progress = Callable[[int, int], None]  # sources read, of how many


async def read_sources(
    source: SourceReader,
    cited: Sequence[Citation],
    *,
    per_host: int,
    again_after: float = AGAIN_AFTER,
    progress: Progress = lambda done, of: None,
) -> dict[str, SourceReading]:
    """A reading for each citation, by its key, `per_host` at a time of one host: the others wait for it without a part
    in `AT_ONCE`. One whose source was down is asked once more after `again_after` seconds; what cannot be read then,
    or fails, could not be found out. Raises RecordingError."""
    turn, done = asyncio.Semaphore(AT_ONCE), 0
    hosts: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(per_host))

    async def read(citation: Citation, *, fresh: bool) -> SourceReading:
        nonlocal done
        async with hosts[_host(citation)], turn:
            try:
                async with asyncio.timeout(SECONDS):
                    reading = await source.read(citation, fresh=fresh)
            except RecordingError:
                raise
            except TimeoutError:
                reading = late(citation, SECONDS)
            except Exception:  # of one source; what it says is unknown then, and the others count
                log.exception("reading %a failed", citation.key)
                detail = f"{citation.value} could not be looked up."
                reading = Unreachable(citation=citation, code="error", detail=detail)
        if not fresh:
            done += 1
            progress(done, len(cited))
        return reading

    readings = {r.citation.key: r for r in await asyncio.gather(*(read(each, fresh=False) for each in cited))}
    down = [r.citation for r in readings.values() if isinstance(r, Unreachable) and _may_pass(r)]
    if down:
        await asyncio.sleep(again_after)
        again = await asyncio.gather(*(read(each, fresh=True) for each in down))
        readings |= {reading.citation.key: reading for reading in again}
    return readings


def check_document(
    document: Document,
    readings: Mapping[str, SourceReading],
    policy: Policy,
    now: datetime,
    *,
    baseline: Mapping[str, Accepted],
    own: str | None = None,
    in_time: Callable[[], bool] = lambda: True,
    texts: PreparedTexts | None = None,
) -> CheckedDocument:
    """The verdict on every claim of a document. `baseline` lets claims pass until their day; `own` is the document's
    path in the repository: it does not vouch for itself. Once it is not `in_time`, what is left is UNKNOWN. `texts`
    are those of sources that documents before it cite, too."""
    cited = everything_cited([document])
    selves = {each.key: _itself(each) for each in cited if is_itself(each, own, readings.get(each.key))}
    readings = {**readings, **selves}
    texts = PreparedTexts() if texts is None else texts
    claims: tuple[CheckedClaim, ...] = tuple(
        check_claim(claim, readings, policy, now, texts) if in_time() else CheckedClaim(claim, *_LATE)
        for claim in document.claims
    )
    checked = CheckedDocument(document, claims, {})
    accepted = {
        name: entry
        for name in map(checked.fingerprint_of, claims)
        if (entry := baseline.get(name)) is not None and entry.until >= now.date()
    }
    return replace(checked, accepted=accepted)


def _may_pass(reading: Unreachable) -> bool:
    """Whether it may be otherwise in a while. A server that dies hangs up, which is an odd answer without a status."""
    return reading.code in _PASSING or (reading.code == "odd_answer" and reading.status is None)


def _host(citation: Citation) -> str:
    """Whom reading it asks; what is not a page is only ever held back by its source."""
    return urlsplit(citation.value).netloc if citation.type == CitationType.URL else citation.key


def _itself(citation: Citation) -> Missing:
    return Missing(
        citation=citation, detail=f"{citation.value} is this document, which does not vouch for itself."
    )
