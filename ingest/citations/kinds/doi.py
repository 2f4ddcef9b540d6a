"""DOIs: `10.1145/3292500.3330701`, with or without `doi:` before it, which is not part of the value.

A DOI is compared without regard to case (DOI Handbook, 3.8: case insensitive for ASCII letters). Read is whether it is
registered, where it leads, and what its registration agency says of the work.

Two requests: the handle of a DOI shows that it exists and the address it leads to (doi.org/api/handles); the
record of the work, as CSL JSON, comes by content negotiation from the agency. A DOI may have no such record: it
exists, and there is no text to hold a claim against.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from urllib.parse import quote

from pydantic import Field, JsonValue

from vouchgate.ingest.citations.kinds import CitationKind, FoundCitation
from vouchgate.ingest.citations.shared import trim_end
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Missing, SourceReading, Standing
from vouchgate.ingest.net.fetched import Fetched
from vouchgate.ingest.sources.answers import (
    NoAnswer,
    Shape,
    build_found,
    parse_answer,
    require_success,
)
from vouchgate.ingest.sources.registry import Registry

_WHO = "The DOI resolver"
_KEY = re.compile(r"doi:(?P<doi>10\.[0-9]{4,9}(?:\.[0-9]{1,9}){0,3}/[^\s\x00-\x1f\x7f]{1,1000})")
_CSL = "application/vnd.citationstyles.csl+json"
_EXISTS, _NOT_FOUND = 1, 100  # response codes of the handle system
_NO_RECORD = frozenset({204, 404, 406, 415})  # the agency has none, or none in this form
_MARKUP = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_BLOCK_END = re.compile(r"</(?:jats:)?(?:p|title|sec)>", re.IGNORECASE)
_WITHDRAWN = frozenset({"retraction", "withdrawal", "removal"})  # kinds of update, in Crossref's words
_WITHDRAWN_TITLE = re.compile(
    r"\W{0,3}(?:retracted|withdrawn)(?: (?:article|paper|chapter))?\s?[:\]]", re.IGNORECASE
)


class _Data(Shape):
    value: JsonValue = None


class _Value(Shape):
    type: str
    data: _Data


class _Handle(Shape):
    response_code: int = Field(alias="responseCode")
    handle: str
    values: tuple[_Value, ...] = ()


class _Update(Shape):
    type: str
    doi: str | None = Field(default=None, alias="DOI")


class _Date(Shape):
    date_parts: tuple[list[int | None], ...] = Field(default=(), alias="date-parts")


class _Work(Shape):
    """Crossref writes some texts as lists of one."""

    title: str | list[str] | None = None
    abstract: str | None = None
    container: str | list[str] | None = Field(default=None, alias="container-title")
    publisher: str | None = None
    issued: _Date | None = None
    updated_by: tuple[_Update, ...] = Field(default=(), alias="updated-by")


class Doi(Registry):
    """Reads `doi` citations from the resolver."""

    async def _read(self, citation: Citation) -> SourceReading:
        match = _KEY.fullmatch(citation.key)
        if citation.type is not CitationType.DOI or match is None or _climbs(match["doi"]):
            raise NoAnswer("not_supported", f"{citation.value} is not a DOI that can be looked up.")
        doi = match["doi"]
        answer = await self._ask(_WHO, f"/api/handles/{quote(doi, safe='/')}")
        handle = self._handle(answer, doi)
        if handle.response_code == _NOT_FOUND:
            return Missing(citation=citation, detail=f"No DOI {doi} is registered.", status=answer.status)
        if handle.response_code != _EXISTS:
            code = handle.response_code
            raise NoAnswer("odd_answer", f"The DOI resolver answered with code {code}.", status=answer.status)
        return await self._described(citation, doi, _target(handle))

    def _handle(self, answer: Fetched, doi: str) -> _Handle:
        # "Not found" comes with status 404 and says so in its body; any other 404 is not about the DOI.
        if answer.status != 404:
            require_success(answer, _WHO, self._clock())
        handle = parse_answer(answer, _Handle, _WHO)
        if handle.handle.lower() != doi or (answer.status == 404) != (handle.response_code == _NOT_FOUND):
            detail = f"The DOI resolver was asked for {doi} and answered with something else."
            raise NoAnswer("odd_answer", detail, status=answer.status)
        return handle

    async def _described(self, citation: Citation, doi: str, target: str) -> SourceReading:
        answer = await self._ask(_WHO, f"/{quote(doi, safe='/')}", _CSL)
        work = _Work()
        if answer.status not in _NO_RECORD:
            require_success(answer, "The agency of the DOI", self._clock())
            if "json" in answer.headers.get(
                "content-type", ""
            ):  # else the page for people: there is no record
                work = parse_answer(answer, _Work, "The agency of the DOI")
        title = _plain(_first(work.title))
        withdrawn = next((update for update in work.updated_by if update.type in _WITHDRAWN), None)
        standing = Standing.DEPRECATED if withdrawn or _WITHDRAWN_TITLE.match(title) else Standing.IN_FORCE
        place = ", ".join(filter(None, (_plain(_first(work.container)), work.publisher)))
        says = (
            f"The DOI {doi} is “{title[:120]}”"
            if title
            else f"The DOI {doi} exists, without a record of the work"
        )
        return build_found(
            citation,
            source_id=f"doi:{doi}",
            url=target,
            title=title,
            text="\n\n".join(filter(None, (title, place, _plain(work.abstract or "")))),
            detail=f"{says}{', which was retracted' if standing is Standing.DEPRECATED else ''}.",
            dated=_date(work.issued),
            standing=standing,
            successor=f"doi:{withdrawn.doi}" if withdrawn is not None and withdrawn.doi else None,
        )


def _climbs(doi: str) -> bool:
    """Whether a part of it would be taken for a step in a path."""
    return not {"", ".", ".."}.isdisjoint(doi.split("/"))


def _target(handle: _Handle) -> str:
    """Where the DOI leads; empty when it leads nowhere on the web."""
    urls = (value.data.value for value in handle.values if value.type == "URL")
    return next((url for url in urls if isinstance(url, str)), "")


def _first(text: str | list[str] | None) -> str:
    if isinstance(text, list):
        return text[0] if text else ""
    return text or ""


def _plain(text: str) -> str:
    """Text without JATS mark-up, its paragraphs on lines of their own."""
    lines = _MARKUP.sub("", _BLOCK_END.sub("\n", " ".join(text.split()))).split("\n")
    return unescape("\n".join(filter(None, map(str.strip, lines))))


def _date(issued: _Date | None) -> datetime | None:
    parts = issued.date_parts[0] if issued is not None and issued.date_parts else []
    year, month, day = (*(part or 1 for part in parts[:3]), 1, 1, 1)[:3] if parts and parts[0] else (0, 0, 0)
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except (ValueError, OverflowError):  # no such day: no date
        return None


# Registrants have at least four digits, which tells a DOI from a version or a ratio.
_PREFIX = r"10\.\d{4,9}(?:\.\d{1,9}){0,3}/"
# Anything that prints may stand in a suffix; these end one in practice. `<` and `>` occur in old Wiley DOIs
# only, as in 3.0.CO;2-O after a `49:8<693::AID`.
_CHARACTER = r"""[^\s\x00-\x1f"'`|\\{}<>“”„«»‹›—…\u3000-\u303f,;]"""
_LIST = r"[,;](?!(?:doi:|DOI:)?10\.\d{4})"  # two DOIs may have a comma between them and no space
_SICI = r"<(?=[0-9A-Z]{1,9}::)|(?<=[0-9A-Z])>(?=\d\.)"
_SUFFIX = rf"(?:{_CHARACTER}|{_LIST}|{_SICI})+"
# After a slash only where a DOI resolver or a publisher's path says it is one.
_LEFT = r"(?:(?<![\w./\\#@$&+=-])|(?<=doi\.org/)|(?<=/doi/)|(?<=doi=))"
_RUNNING = re.compile(rf"{_LEFT}{_PREFIX}{_SUFFIX}", re.ASCII)
_GIVEN = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi: ?)?(?P<doi>.+)", re.ASCII | re.IGNORECASE)


def _doi(text: str, match: re.Match[str]) -> FoundCitation | None:
    start, end = match.span()
    end = trim_end(text, start, end)
    if not any(map(str.isalnum, text[text.index("/", start) : end])):
        return None
    return FoundCitation(start, end, f"doi:{text[start:end].lower()}")


def _find(text: str) -> Iterator[FoundCitation]:
    for match in _RUNNING.finditer(text):
        found = _doi(text, match)
        if found is not None:
            yield found


def _whole(value: str) -> str | None:
    match = _RUNNING.match(value)
    found = _doi(value, match) if match else None
    return found.key if found and found.end == len(value) else None


def _bare(value: str) -> str | None:
    match = _GIVEN.fullmatch(value)
    return _whole(match["doi"]) if match else None


KIND = CitationKind(
    name=CitationType.DOI,
    label="DOI",
    needles=("10.",),
    find=_find,
    whole=_whole,
    bare=_bare,
    forms=("10.1145/3292500.3330701",),
    settings=("VOUCHGATE_DOI_URL",),
    source=Doi.opened_at("https://doi.org"),
)
