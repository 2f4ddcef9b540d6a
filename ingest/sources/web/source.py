"""Reads what a URL points at: whether the page is there, where it is now, and what it says.

Three answers. It exists (2xx) and is what was asked for; it is missing (404, 410, no such host, or an answer
that only says 200: `ingest.sources.web.soft404`); or it could not be found out. HEAD comes first, because it is enough
for what cannot be read anyway; but servers lie to HEAD, so only the answer to a GET makes a page missing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urldefrag

from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import LINKS, Found, Missing, SourceReading, Standing
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import Fetched, FetchFailed, FetchOutcome
from vouchgate.ingest.scoring.sites import site_of
from vouchgate.ingest.sources.answers import (
    READING_SECONDS,
    Clock,
    NoAnswer,
    read_or_unreachable,
    retry_after,
)
from vouchgate.ingest.sources.web.extractor import Extractor, NotRead
from vouchgate.ingest.sources.web.page import (
    TITLE_CHARACTERS,
    ContentKind,
    Page,
    clean,
    kind_of,
    last_modified,
    media_type,
    one_line,
    read_plain,
    without_echo,
)
from vouchgate.ingest.sources.web.soft404 import SHORT, AnswerKind, judge_move, judge_page, load_words

MAX_BYTES = 2_000_000  # of a page; what is beyond does not count as said
HEAD_SHARE = 0.4  # of the time of a reading: some servers never answer HEAD, and a GET must still fit in
REFRESHES = 2  # pages that only send a browser on are followed so often, beside the redirects of HTTP

_MISSING = frozenset({404, 410})
_FORBIDDEN = frozenset({401, 402, 403, 405, 407, 451})
_NO_TEXT = frozenset({204, 205})
# Failures that have nothing to do with the method: a GET would come to the same.
_FINAL = frozenset({"refused", "missing_host", "dns", "tls", "offline", "rate_limited"})
_HEADERS = {
    "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, */*;q=0.5",
    "Accept-Language": "en, *;q=0.5",
}
_RANGE = {"Range": f"bytes=0-{MAX_BYTES - 1}"}


class WebSource:
    """Reads `url` citations. `clock` gives the time now, aware; `seconds` bound one reading."""

    def __init__(
        self, outbound: Outbound, extractor: Extractor, clock: Clock, *, seconds: float = READING_SECONDS
    ) -> None:
        self._outbound = outbound
        self._extractor = extractor
        self._clock = clock
        self._seconds = seconds
        self._words = load_words()

    async def read(self, citation: Citation) -> SourceReading:
        """Looks up one `url` citation. Never raises but CancelledError: what goes wrong is Unreachable and a log line.

        One page is one source whatever place in it is meant, so `source_id` is the final URL without a fragment.
        """
        return await read_or_unreachable(citation, self._read(citation), seconds=self._seconds)

    async def _read(self, citation: Citation) -> SourceReading:
        kind, _, url = citation.key.partition(":")
        if citation.type is not CitationType.URL or kind != "url":
            raise NoAnswer("not_supported", f"A citation like {citation.key!r} is not looked up on the web.")
        asked = urldefrag(url).url
        way = _Way()
        try:
            return await self._look(citation, asked, way)
        except _Absent as absent:
            return Missing(citation=citation, detail=absent.detail, status=absent.status, private=way.private)
        except NoAnswer as none:
            none.private = way.private
            raise

    async def _look(self, citation: Citation, asked: str, way: _Way) -> Found:
        """What is there. Raises _Absent and NoAnswer."""
        outcome, read = await self._ask(asked)
        way.private = outcome.private
        hops: tuple[str, ...] = ()
        for last in (False,) * REFRESHES + (True,):
            answer = _existing(asked, outcome, self._clock())
            answer = replace(answer, hops=(*hops, *answer.hops))
            _raise_for(judge_move(asked, answer.url, self._words), asked, answer)
            page = await self._page(answer) if read else Page()
            if last or not _sends_on(page, answer):
                break
            hops = (*answer.hops, answer.url)
            outcome, read = await self._get(page.refresh, ranged=True), True
            way.private |= outcome.private
        look = judge_page(asked, page, self._words)
        _raise_for(look, asked, answer)
        if look is AnswerKind.NEEDS_SCRIPT:
            page = replace(page, text="")
        # In a thread, because a long text takes some time.
        page = await asyncio.to_thread(without_echo, page, (asked, *answer.hops, answer.url))
        found = self._found(citation, asked, answer, page, read=read)
        return found.model_copy(update={"private": way.private})

    # --- asking

    async def _ask(self, url: str) -> tuple[FetchOutcome, bool]:
        """The answer that counts, and whether it came with its body."""
        patience = self._seconds * HEAD_SHARE
        head = await self._outbound.fetch(url, method="HEAD", headers=_HEADERS, seconds=patience)
        if isinstance(head, FetchFailed):
            if head.code in _FINAL:
                return head, False
            return await self._get(url, ranged=True), True
        if head.status == 429 or (head.status == 503 and "retry-after" in head.headers):
            return head, False  # it wants fewer requests, not another one
        if head.status != 200 or judge_move(url, head.url, self._words) is not AnswerKind.PAGE:
            return await self._get(url, ranged=True), True
        if kind_of(head.headers.get("content-type", "")) is ContentKind.NONE:
            return head, False
        # The redirects are known by now and need not be walked again.
        got = await self._get(head.url, ranged=_is_long(head))
        return replace(got, hops=(*head.hops, *got.hops), private=head.private or got.private), True

    async def _get(self, url: str, *, ranged: bool) -> FetchOutcome:
        """A GET, of the first bytes only if the server knows how."""
        if ranged:
            part = await self._outbound.fetch(url, headers={**_HEADERS, **_RANGE}, max_bytes=MAX_BYTES)
            if isinstance(part, FetchFailed) or part.status != 416:  # no such range, as of an empty page
                return part
        return await self._outbound.fetch(url, headers=_HEADERS, max_bytes=MAX_BYTES)

    # --- what an answer says

    async def _page(self, answer: Fetched) -> Page:
        """What the body says; an empty page when it is nothing that can be read."""
        content_type = answer.headers.get("content-type", "")
        kind = kind_of(content_type, answer.body[:4096])
        if answer.status in _NO_TEXT or kind is ContentKind.NONE or not answer.body.strip():
            return Page()
        if kind is ContentKind.PLAIN:
            return read_plain(answer.body, content_type)
        try:
            return await self._extractor.read(
                answer.body, kind, url=answer.url, content_type=content_type, now=self._clock()
            )
        except NotRead as error:
            detail = f"{_shown(answer.url)} is there but could not be read: {error.reason}."
            raise NoAnswer(error.code, detail, status=answer.status) from error

    def _found(self, citation: Citation, asked: str, answer: Fetched, page: Page, *, read: bool) -> Found:
        site = site_of(answer.url)
        title = one_line(page.title)
        return Found(
            citation=citation,
            source_id=answer.url,
            standing=Standing.IN_FORCE,
            detail=_detail(asked, answer, title, bool(page.text), read),
            title=title,
            digest=hashlib.sha256(page.text.encode()).hexdigest() if page.text else "",
            dated=page.dated or last_modified(answer.headers, self._clock()),
            revised=page.revised or last_modified(answer.headers, self._clock()),
            site=site,
            links=_linked_sites(page.links, site),
            status=answer.status,
            cut=page.cut or (bool(page.text) and _is_part(answer)),
            text=page.text,
        )


@dataclass(slots=True)
class _Way:
    """What was passed on the way to an answer."""

    private: bool = False


class _Absent(Exception):
    """It is not there."""

    def __init__(self, detail: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status


def _existing(asked: str, outcome: FetchOutcome, now: datetime) -> Fetched:
    """The answer, if its status says that something is there. Raises _Absent and NoAnswer."""
    moved = f" (redirected to {_shown(outcome.url)})" if outcome.hops else ""
    if isinstance(outcome, FetchFailed):
        detail = f"{outcome.detail.rstrip('.')}{moved}."
        if outcome.code == "missing_host":
            raise _Absent(detail)
        raise NoAnswer(outcome.code, detail, retry_after=outcome.retry_after)
    status, where = outcome.status, f"{_shown(asked)}{moved}"
    if status in _MISSING:
        raise _Absent(f"{where} does not exist (HTTP status {status}).", status)
    if status == 206 and not outcome.headers.get("content-range", "bytes 0-").startswith("bytes 0-"):
        raise NoAnswer("odd_answer", f"{where} sent another part than was asked for.", status=status)
    if 200 <= status <= 299:
        return outcome
    code, verb = _meaning(status)
    until = retry_after(outcome.headers, now) if code in ("rate_limited", "server_error") else None
    raise NoAnswer(code, f"{where} {verb} (HTTP status {status}).", status=status, retry_after=until)


def _meaning(status: int) -> tuple[str, str]:
    """Code and words for a status that says neither that something is there nor that it is not."""
    if status in _FORBIDDEN:
        return "forbidden", "is not shown to us"
    if status == 429:
        return "rate_limited", "asks for fewer requests"
    if status == 408:
        return "timeout", "gave up waiting"
    if 500 <= status <= 599:
        return "server_error", "failed"
    return "odd_answer", "gave no answer that says whether it exists"


def _sends_on(page: Page, answer: Fetched) -> bool:
    """The page is nothing but a sign that points elsewhere."""
    return bool(page.refresh) and len(page.text) < SHORT and urldefrag(page.refresh).url != answer.url


def _raise_for(look: AnswerKind, asked: str, answer: Fetched) -> None:
    """Raises what an answer means that is not the page. Nothing for PAGE and NEEDS_SCRIPT."""
    here, there = _shown(asked), _shown(answer.url)
    leads = f"redirects to {there}, which" if answer.hops else "is a page that"
    status = answer.status
    match look:
        case AnswerKind.PAGE | AnswerKind.NEEDS_SCRIPT:
            return
        case AnswerKind.HOME:
            raise _Absent(f"{here} does not exist any more: it {leads} is a start page.", status)
        case AnswerKind.NOT_FOUND:
            raise _Absent(f"{here} does not exist: it {leads} says so, with HTTP status {status}.", status)
        case AnswerKind.PARKED:
            raise _Absent(
                f"{here} does not exist any more: it {leads} offers the name of a site for sale.", status
            )
        case AnswerKind.LOGIN:
            raise NoAnswer("login", f"{here} {leads} asks to sign in.", status=status)
        case AnswerKind.WALL:
            raise NoAnswer("forbidden", f"{here} {leads} lets only people in.", status=status)


def _is_long(head: Fetched) -> bool:
    length = head.headers.get("content-length", "")
    return length.isascii() and length.isdigit() and int(length[:20]) > MAX_BYTES


def _is_part(answer: Fetched) -> bool:
    """The page goes on past what was asked for or read of it."""
    reach, _, total = answer.headers.get("content-range", "").removeprefix("bytes 0-").partition("/")
    ends = total.isdecimal() and reach.isdecimal() and int(reach[:20]) + 1 == int(total[:20])
    return not answer.whole or (answer.status == 206 and not ends)


def _detail(asked: str, answer: Fetched, title: str, has_text: bool, read: bool) -> str:
    there = f"{_shown(asked)} exists"
    if answer.hops:
        there = f"{_shown(asked)} redirects to {_shown(answer.url)}, which exists"
    name = f": “{title[:120]}”" if title else ""
    if has_text:
        return f"{there}{name}."
    kind = clean(media_type(answer.headers.get("content-type", "")))[:60]
    return f"{there}{name}; it has no text to compare{'' if read else f' ({kind} is not read)'}."


def _linked_sites(urls: Iterable[str], own: str) -> tuple[str, ...]:
    """The first sites linked to, other than its own, sorted."""
    sites = dict.fromkeys(site for url in urls if (site := site_of(url)) not in ("", own))
    return tuple(sorted(list(sites)[:LINKS]))


def _shown(url: str) -> str:
    return one_line(url, TITLE_CHARACTERS)
