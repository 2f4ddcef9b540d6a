"""Python Enhancement Proposals: `PEP 8`, `PEP8`, `pep-0604`. They are read from their pages: status, title and text are
all there.

The list of all of them (`api/peps.json`) is not asked: it is half a megabyte and has no text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vouchgate.ingest.citations.shared import numbered_kind
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Missing, SourceReading, Standing
from vouchgate.ingest.sources.answers import (
    NoAnswer,
    build_found,
    month_number,
    require_success,
)
from vouchgate.ingest.sources.registry import Registry

if TYPE_CHECKING:
    import lxml.html

_WHO = "peps.python.org"
_LARGEST = 1_000_000  # bytes; whatever is in them, they are parsed within 0.2 s
_KEY = re.compile(r"pep:(?P<number>[0-9]{1,4})")
_TITLE = re.compile(r"PEP (?P<number>[0-9]{1,4}) – (?P<title>.{1,300})", re.DOTALL)
_MODIFIED = re.compile(r"Last modified:\s{1,5}(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) GMT")
_CREATED = re.compile(r"(\d{1,2})-([A-Z][a-z]{2})-(\d{4})")
# The statuses of PEP 1. One that was never accepted for good proposes; one that was given up is as a withdrawn ADR.
_STANDINGS = {
    "active": Standing.IN_FORCE,
    "accepted": Standing.IN_FORCE,
    "final": Standing.IN_FORCE,
    "draft": Standing.PROPOSED,
    "provisional": Standing.PROPOSED,
    "deferred": Standing.PROPOSED,
    "rejected": Standing.REJECTED,
    "april fool!": Standing.REJECTED,
    "withdrawn": Standing.DEPRECATED,
    "superseded": Standing.SUPERSEDED,
}


class _Page(Frozen):
    number: int
    title: str
    status: str
    superseded_by: str
    dated: datetime | None
    text: str


class Pep(Registry):
    """Reads `pep` citations from the site of the proposals."""

    async def _read(self, citation: Citation) -> SourceReading:
        match = _KEY.fullmatch(citation.key)
        if citation.type is not CitationType.PEP or match is None:
            raise NoAnswer("not_supported", f"{citation.value} is not the number of a PEP.")
        number = int(match["number"])
        answer = await self._ask(_WHO, f"/pep-{number:04d}/", "text/html", max_bytes=_LARGEST)
        if answer.status == 404:
            return Missing(citation=citation, detail=f"There is no PEP {number}.", status=404)
        page = _page(require_success(answer, _WHO, self._clock()).body)
        standing = _STANDINGS.get(page.status.lower()) if page is not None else None
        if page is None or page.number != number or standing is None:
            detail = f"{_WHO} answered with something that is not the page of PEP {number}, or has no known status."
            raise NoAnswer("odd_answer", detail, status=200)
        successor = f"PEP {int(page.superseded_by)}" if page.superseded_by else None
        ended = f", superseded by {successor}" if successor else ""
        return build_found(
            citation,
            source_id=f"PEP {number}",
            url=f"https://peps.python.org/pep-{number:04d}/",
            title=f"PEP {number}: {page.title}",
            text=f"PEP {number}: {page.title}\n\nStatus: {page.status}{ended}.\n\n{page.text}",
            detail=f"PEP {number} “{page.title[:120]}” has the status “{page.status}”{ended}.",
            dated=page.dated,
            standing=standing,
            successor=successor,
        )


def _page(body: bytes) -> _Page | None:
    """What the page says; None when it is not the page of a PEP."""
    import lxml.html  # noqa: PLC0415  (4 MiB that a service needs for PEPs alone; pages have processes of their own)
    from lxml.etree import LxmlError  # noqa: PLC0415

    try:
        root = lxml.html.document_fromstring(body, parser=lxml.html.HTMLParser(encoding="utf-8"))
        content = next(iter(root.xpath("//section[@id='pep-content']")), None)
        return None if content is None else _proposal(content)
    except (LxmlError, ValueError):
        return None


def _proposal(content: lxml.html.HtmlElement) -> _Page | None:
    heading = _TITLE.fullmatch(" ".join(_text(content.find("./h1")).split()))
    header = next(iter(content.xpath("./dl[contains(@class, 'rfc2822')]")), None)
    if heading is None or header is None:
        return None
    fields = _fields(header)
    for noise in (
        content.find("./h1"),
        header,
        *content.xpath("./section[@id='contents'] | .//script | .//style"),
    ):
        noise.clear(keep_tail=True)
    text = _text(content)
    later = re.match(r"\d{1,4}", fields.get("superseded-by", ""))
    return _Page(
        number=int(heading["number"]),
        title=heading["title"],
        status=fields.get("status", ""),
        superseded_by=later[0] if later else "",
        dated=_dated(text, fields),
        text=text,
    )


def _fields(header: lxml.html.HtmlElement) -> Mapping[str, str]:
    names = [_text(name).strip().removesuffix(":").lower() for name in header.xpath("./dt")]
    values = [" ".join(_text(value).split()) for value in header.xpath("./dd")]
    return dict(zip(names, values, strict=False))


def _text(element: lxml.html.HtmlElement | None) -> str:
    if element is None:
        return ""
    lines = (" ".join(line.split()) for line in str(element.text_content()).splitlines())
    return "\n".join(filter(None, lines))


def _dated(text: str, fields: Mapping[str, str]) -> datetime | None:
    """When the page was last changed, else when the proposal was made."""
    modified = _MODIFIED.search(text)
    created = _CREATED.match(fields.get("created", ""))
    try:
        if modified is not None:
            return datetime.strptime(modified[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        month = None if created is None else month_number(created[2])
        if created is not None and month is not None:
            return datetime(int(created[3]), month, int(created[1]), tzinfo=UTC)
    except ValueError:  # the thirteenth month: no date
        pass
    return None


KIND = numbered_kind(
    CitationType.PEP,
    label="PEP",
    prefix=r"[Pp][Ee][Pp][Ss]?[\s–-]?",
    number=r"\d{1,4}",
    forms=("PEP 8",),
    settings=("VOUCHGATE_PEP_URL",),
    source=Pep.opened_at("https://peps.python.org"),
)
