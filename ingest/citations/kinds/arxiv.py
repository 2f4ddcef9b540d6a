"""arXiv ids: `arXiv:1706.03762v5`, `arXiv 2103.00020`, and the ids used until March 2007, `hep-th/9901001`.

A new id needs the word before it, because versions look the same. The version stays in the key: v1 and v2
of a paper may say different things. Read are title, abstract and dates from arXiv's API, an Atom feed of the one paper
asked for.
"""

from __future__ import annotations

import asyncio
import re
import time
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree

from vouchgate.ingest.citations.kinds import CitationKind, each_match, full_match
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Missing, SourceReading, Standing
from vouchgate.ingest.net.fetched import Fetched
from vouchgate.ingest.sources.answers import (
    READING_SECONDS,
    Clock,
    NoAnswer,
    build_found,
    require_success,
    utc_now,
)
from vouchgate.ingest.sources.registry import Registry

if TYPE_CHECKING:
    from vouchgate.ingest.net.client import Outbound

SPACING_SECONDS = 3.0  # between two requests, one at a time: arXiv's terms of use for its API
_LARGEST = 500_000  # bytes; a paper with three thousand authors is about 200,000
_ATOM = "{http://www.w3.org/2005/Atom}"
_ARXIV = "{http://arxiv.org/schemas/atom}"
_TOTAL = "{http://a9.com/-/spec/opensearch/1.1/}totalResults"
_KEY = re.compile(
    r"arxiv:(?P<paper>[0-9]{4}\.[0-9]{4,5}|[a-z-]{2,20}(?:\.[A-Z]{2})?/[0-9]{7})(?:v(?P<version>[0-9]{1,3}))?"
)
_ENTRY = re.compile(r"https?://arxiv\.org/abs/(?P<paper>.{1,60}?)v(?P<version>[0-9]{1,3})")
_ERROR = re.compile(r"https?://arxiv\.org/api/errors#")
_WITHDRAWN = re.compile(
    r"\b(?:this|the|our) (?:\w{1,20} ){0,2}(?:has been|was|is(?: being)?) (?:\w{1,20} )?(?:withdrawn|retracted)\b"
    r"|^\W{0,3}(?:withdrawn|retracted)\b",
    re.IGNORECASE,
)


class Arxiv(Registry):
    """Reads `arxiv` citations from the API.

    One request at a time and `spacing_seconds` between two: a claim that would have to wait for longer than its
    own time is told so and looked up later.
    """

    def __init__(
        self,
        outbound: Outbound,
        *,
        base: str,
        clock: Clock = utc_now,
        seconds: float = READING_SECONDS,
        spacing_seconds: float = SPACING_SECONDS,
    ) -> None:
        super().__init__(outbound, base=base, clock=clock, seconds=seconds)
        self._spacing = spacing_seconds
        self._turn = asyncio.Lock()
        self._asked_at = -spacing_seconds  # of time.monotonic()

    async def _read(self, citation: Citation) -> SourceReading:
        match = _KEY.fullmatch(citation.key)
        if citation.type is not CitationType.ARXIV or match is None:
            raise NoAnswer("not_supported", f"{citation.value} is not an arXiv id.")
        name = citation.key.removeprefix("arxiv:")
        answer = await self._ask_in_turn(f"/api/query?id_list={quote(name, safe='')}&max_results=1")
        feed = _feed(answer)
        entries = feed.findall(f"{_ATOM}entry")
        identity = _text(entries[0], f"{_ATOM}id") if entries else ""
        refused = _ERROR.match(identity) is not None  # "incorrect id format": no paper can have this id
        if refused or (not entries and _text(feed, _TOTAL) == "0"):
            return Missing(citation=citation, detail=f"arXiv has no paper {name}.", status=answer.status)
        paper = _ENTRY.fullmatch(identity) if len(entries) == 1 else None
        # A paper may have come under a class that is not written any more: math.GT/0309136 is math/0309136.
        if (
            paper is None
            or not _same(paper["paper"], match["paper"])
            or match["version"] not in (None, paper["version"])
        ):
            raise NoAnswer(
                "odd_answer", f"arXiv was asked for {name} and answered with something else.", status=200
            )
        return _reading(citation, name, entries[0], int(paper["version"]))

    async def _ask_in_turn(self, path: str) -> Fetched:
        async with self._turn:
            await asyncio.sleep(self._asked_at + self._spacing - time.monotonic())
            try:
                answer = await self._ask("arXiv", path, "application/atom+xml", max_bytes=_LARGEST)
            finally:
                self._asked_at = time.monotonic()
        # A refused id comes as an error entry, with status 400 or 200.
        return answer if answer.status == 400 else require_success(answer, "arXiv", self._clock())


def _reading(citation: Citation, name: str, entry: ElementTree.Element, version: int) -> SourceReading:
    title = " ".join(_text(entry, f"{_ATOM}title").split())
    summary = " ".join(_text(entry, f"{_ATOM}summary").split())
    comment = " ".join(_text(entry, f"{_ARXIV}comment").split())
    if not title or not summary:
        raise NoAnswer(
            "odd_answer", f"arXiv answered with a paper {name} that has no title or no abstract.", status=200
        )
    withdrawn = any(_WITHDRAWN.search(text[:2_000]) for text in (summary, comment))
    detail = f"arXiv has “{title[:120]}”, version {version}{', which was withdrawn' if withdrawn else ''}."
    return build_found(
        citation,
        source_id=f"arxiv:{name}",
        url=f"https://arxiv.org/abs/{name}",
        title=title,
        text="\n\n".join(filter(None, (title, summary, comment))),
        detail=detail,
        dated=_date(_text(entry, f"{_ATOM}updated")),
        standing=Standing.DEPRECATED if withdrawn else Standing.IN_FORCE,
    )


def _feed(answer: Fetched) -> ElementTree.Element:
    """The root of the feed. Raises NoAnswer when it is no feed, or declares a document type: only there can
    entities be defined, and a feed needs none."""
    try:
        text = answer.body.decode("utf-8")
        if "<!DOCTYPE" not in text:
            root = ElementTree.fromstring(text)  # noqa: S314  (see above)
            if root.tag == f"{_ATOM}feed":
                return root
    except (ValueError, ElementTree.ParseError):
        pass
    raise NoAnswer("odd_answer", "arXiv answered with something that is not a feed.", status=answer.status)


def _text(element: ElementTree.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _same(paper: str, asked: str) -> bool:
    archive, slash, number = asked.partition("/")
    return paper in (asked, f"{archive.partition('.')[0]}{slash}{number}")


def _date(text: str) -> datetime | None:
    try:
        dated = datetime.fromisoformat(text)
    except ValueError:
        return None
    return dated if dated.tzinfo is not None else None


_WORD = r"[Aa][Rr][Xx][Ii][Vv](?: ?: ?| preprint | )"
_NEW = r"\d\d(?:0[1-9]|1[0-2])\.\d{4,5}(?:v[1-9]\d?)?"  # year, month, number
_OLD = r"[a-z]{2,8}(?:-[a-z]{2,4})?(?:\.[A-Z]{2})?/\d\d(?:0[1-9]|1[0-2])\d{3}(?:v[1-9]\d?)?"
# These archive names mean nothing else, so their ids stand alone; `math/0309136` needs the word.
_ARCHIVES = (
    r"(?:astro-ph|cond-mat|gr-qc|hep-(?:ex|lat|ph|th)|math-ph|nucl-(?:ex|th)|quant-ph)"
    r"/\d\d(?:0[1-9]|1[0-2])\d{3}(?:v[1-9]\d?)?"
)
_RUNNING = re.compile(
    rf"(?<![\w#@$&\\./-])(?:{_WORD}(?P<id>{_NEW}|{_OLD})|(?P<old>{_ARCHIVES}))(?!\w|\.\d|-\d)", re.ASCII
)


def _key(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return f"arxiv:{groups.get('id') or groups['old']}"


KIND = CitationKind(
    name=CitationType.ARXIV,
    label="arXiv paper",
    needles=("arxiv", "-ph/", "-mat/", "-qc/", "-ex/", "-lat/", "-th/"),
    find=each_match(_RUNNING, _key),
    whole=full_match(re.compile(rf"{_WORD}(?P<id>{_NEW}|{_OLD})|(?P<old>{_ARCHIVES})", re.ASCII), _key),
    bare=full_match(re.compile(rf"(?:{_WORD})?(?P<id>{_NEW}|{_OLD})", re.ASCII), _key),
    forms=("arXiv:1706.03762",),
    settings=("VOUCHGATE_ARXIV_URL",),
    source=Arxiv.opened_at("https://export.arxiv.org"),
)
