"""Documents that come over the API: taken in, checked within limits of the policy, and written down for anybody."""

from __future__ import annotations

import asyncio
import json
import posixpath
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from vouchgate.documents.beside import with_files_at
from vouchgate.documents.checking import check_document, read_sources
from vouchgate.documents.formats import sarif
from vouchgate.documents.report import Report
from vouchgate.gate.gate import Gate
from vouchgate.gate.gathering import SourceReader, gather
from vouchgate.gate.incoming import ClaimRefused
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import SourceReading, Unreachable
from vouchgate.ingest.documents import Document, Unreadable, read_document
from vouchgate.ingest.documents.gate import KINDS
from vouchgate.ingest.documents.gate import gate as gate_documents
from vouchgate.ingest.documents.verdict import everything_cited
from vouchgate.ingest.net.turns import Turns, on_behalf_of
from vouchgate.ingest.scoring.reputation import publishers_of
from vouchgate.review.withheld.private_pages import document_for_anybody
from vouchgate.wire import DocumentIn

T = TypeVar("T")

PATIENT_SECONDS = 600.0  # for all sources of one document, without haste
HOLDING_SECONDS = 300.0  # for its claims: 2,000 that cite one record of 100 KB take so long

_ENDINGS = {"markdown": "md", "rst": "rst", "html": "html", "text": "text"}


def _as_html(report: Report) -> str:
    from vouchgate.documents.formats import html  # noqa: PLC0415  (its templates are loaded for the first)

    return html.write(report)


_FORMS: Mapping[str, Callable[[Report], str]] = {
    "report": lambda report: json.dumps(report.as_json(), ensure_ascii=False),
    "html": _as_html,
    "sarif": sarif.write,
}


@dataclass(frozen=True, slots=True)
class TakenDocument:
    """A document within the limits. `sent` has masks in place of credentials; `cited` is what will be read."""

    sent: DocumentIn
    document: Document
    cited: tuple[Citation, ...]


class DocumentGate:
    """Checks documents with the gate's policy and sources. What takes the processor for long is done beside the event
    loop, for one document of an owner at a time. Close it at the end."""

    def __init__(
        self,
        gate: Gate,
        sources: SourceReader,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._gate = gate
        self._sources = sources
        self._clock = clock
        self._turns = Turns(1, 4)
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="documents")

    def close(self) -> None:
        """Waits for work under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def take(self, sent: DocumentIn, owner_id: str) -> TakenDocument:
        """Reads what was sent. Raises ClaimRefused for what is no text or larger than the policy allows."""
        size, most = len(sent.content.encode()), self._gate.policy.documents.bytes
        if size > most:
            message = f"the document has {size:,} bytes; at most {most:,} are checked"
            raise ClaimRefused("document_too_large", message, 413)
        return await self._turns.run(owner_id, self._pool, partial(self._taken, sent))

    async def check(self, taken: TakenDocument, owner_id: str) -> Report:
        """The report, made within about one and a half of the policy's deadlines: what is late is UNKNOWN. Raises
        StorageError when what the owner says of a publisher cannot be read."""
        deadline = self._gate.policy.deadline_seconds
        with on_behalf_of(owner_id):
            readings = await gather(self._sources, taken.cited, deadline, fresh=False)
        return await self._held(taken, {each.citation.key: each for each in readings}, owner_id, deadline / 2)

    async def check_patiently(self, taken: TakenDocument, owner_id: str) -> Report:
        """The same without haste, within some fifteen minutes: a source that is down is asked once more."""
        source = _UntilLate(self._sources, time.monotonic() + PATIENT_SECONDS)
        with on_behalf_of(owner_id):
            readings = await read_sources(source, taken.cited, per_host=self._gate.policy.web.per_host)
        return await self._held(taken, readings, owner_id, HOLDING_SECONDS)

    async def forms(self, report: Report, owner_id: str, *names: str) -> dict[str, str]:
        """The report in these forms, or each in which it is kept, as text that any database takes."""

        def write() -> dict[str, str]:
            return {name: _storable(_FORMS[name](report)) for name in names or _FORMS}

        return await self._turns.run(owner_id, self._pool, write)

    async def _held(
        self,
        taken: TakenDocument,
        readings: Mapping[str, SourceReading],
        owner_id: str,
        seconds: float,
    ) -> Report:
        def hold() -> Report:
            until = time.monotonic() + seconds
            now, sent, policy = self._clock(), taken.sent, self._gate.policy
            names = frozenset[str]().union(*map(publishers_of, readings.values()))
            own = self._gate.own_publishers(owner_id, names, now)
            checked = check_document(
                taken.document,
                readings,
                policy.heeding(own),
                now,
                baseline={},
                own=_path_of(sent.name),
                in_time=lambda: time.monotonic() < until,
            )
            shown = (document_for_anybody(checked),)
            gated = gate_documents(
                shown,
                policy,
                fail_on=KINDS if sent.fail_on is None else sent.fail_on,
                allow_no_claims=sent.allow_no_claims,
            )
            return Report(shown, gated, now, policy.digest)

        return await self._turns.run(owner_id, self._pool, hold)

    def _taken(self, sent: DocumentIn) -> TakenDocument:
        limits = self._gate.policy.documents
        name, content = map(self._gate.examiner.mask_text, (sent.name, sent.content))
        sent = sent.model_copy(update={"name": name, "content": content})
        known = name if sent.format is None else f"document.{_ENDINGS[sent.format]}"
        try:
            document = replace(read_document(known, content.encode()), name=name)
        except Unreadable as error:
            raise ClaimRefused("document_unreadable", f"the document cannot be read: {error}") from error
        if (path := _path_of(name)) is not None:
            document = with_files_at(document, path)
        if sent.only_marked:
            document = replace(document, claims=tuple(each for each in document.claims if each.marked))
        cited = everything_cited([document])
        _refuse_more("claims", len(document.claims), limits.claims)
        _refuse_more("citations", len(cited), limits.citations)
        return TakenDocument(sent, document, cited)


class _UntilLate:
    """Reads as another source does until a time of the monotonic clock, and nothing after it."""

    def __init__(self, source: SourceReader, until: float) -> None:
        self._source = source
        self._until = until

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        left = self._until - time.monotonic()
        try:
            async with asyncio.timeout(max(left, 0.0)):
                return await self._source.read(citation, fresh=fresh)
        except TimeoutError:
            detail = f"{citation.value} could not be looked up in time."
            return Unreachable(citation=citation, code="timeout", detail=detail)


def _refuse_more(what: str, many: int, most: int) -> None:
    if many > most:
        message = f"the document has {many:,} {what}; at most {most:,} are checked"
        raise ClaimRefused(f"too_many_{what}", message)


def _path_of(name: str) -> str | None:
    """The path in the repository that a document's name is, if it is one."""
    path = posixpath.normpath(name)
    return None if path.startswith(("/", "..")) or ":" in path else path


def _storable(text: str) -> str:
    """Without halves of surrogate pairs and NUL, which a page may have and no database takes."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")
