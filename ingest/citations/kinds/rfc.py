"""RFCs: `RFC 9110`, `RFC9110`, `RFC-2119`, `rfc 7230`. Read are the record of the RFC Editor (title, status, what
replaced it) and the text itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from vouchgate.ingest.citations.shared import numbered_kind
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Missing, SourceReading, Standing
from vouchgate.ingest.sources.answers import (
    NoAnswer,
    Shape,
    build_found,
    month_number,
    parse_answer,
    require_success,
)
from vouchgate.ingest.sources.registry import Registry

_WHO = "The RFC Editor"
_KEY = re.compile(r"rfc:(?P<number>[1-9][0-9]{0,4})")
_NAME = re.compile(r"RFC0{0,4}(?P<number>[1-9][0-9]{0,4})")
_READ_BYTES = 2 * TEXT_CHARACTERS  # what is left of that without the page breaks and margins fills the text
_PAGE_FOOT = re.compile(r".{1,80}\[Page [0-9ivxl]{1,6}\]\s{0,4}")
_PAGE_HEAD = re.compile(r"RFC [0-9]{1,5} .{1,60} (?:19|20)[0-9]{2}\s{0,4}")


class _Record(Shape):
    doc_id: str
    title: str
    status: str
    abstract: str | None = None
    pub_date: str | None = None
    obsoleted_by: tuple[str, ...] = ()
    updated_by: tuple[str, ...] = ()


class Rfc(Registry):
    """Reads `rfc` citations from the RFC Editor."""

    async def _read(self, citation: Citation) -> SourceReading:
        match = _KEY.fullmatch(citation.key)
        if citation.type is not CitationType.RFC or match is None:
            raise NoAnswer("not_supported", f"{citation.value} is not the number of an RFC.")
        number = int(match["number"])
        answer = await self._ask(_WHO, f"/rfc/rfc{number}.json", max_bytes=1_000_000)
        if answer.status == 404:
            return Missing(citation=citation, detail=f"There is no RFC {number}.", status=404)
        record = parse_answer(require_success(answer, _WHO, self._clock()), _Record, _WHO)
        if _number(record.doc_id) != number:
            detail = f"{_WHO} was asked for RFC {number} and answered with {record.doc_id[:20]}."
            raise NoAnswer("odd_answer", detail, status=200)
        page = await self._text(number)
        standing, says = _standing(record)
        head = f"RFC {number}: {record.title}\n\nStatus: {record.status.capitalize()}. {says}"
        return build_found(
            citation,
            source_id=f"RFC {number}",
            url=f"https://www.rfc-editor.org/rfc/rfc{number}",
            title=f"RFC {number}: {record.title}",
            text="\n\n".join(filter(None, (head.strip(), " ".join((record.abstract or "").split()), page))),
            detail=f"RFC {number} “{record.title[:120]}” is there ({record.status.lower()}). {says}".strip(),
            dated=_date(record.pub_date or ""),
            standing=standing,
            successor=next(iter(_names(record.obsoleted_by)), None),
        )

    async def _text(self, number: int) -> str:
        """The text; empty for the few that exist only as PDF. Raises NoAnswer."""
        answer = await self._ask(_WHO, f"/rfc/rfc{number}.txt", "text/plain", max_bytes=_READ_BYTES)
        if answer.status == 404:
            return ""
        if answer.status != 200:  # of a long one only the beginning is read
            require_success(answer, _WHO, self._clock())
        return plain_pages(answer.body.decode("utf-8", errors="replace"))


def plain_pages(text: str) -> str:
    """The text of an RFC without page breaks, running heads, table of contents and margins: a sentence that goes
    over the end of a page is whole again."""
    return "\n".join(_lines(text)).strip()


def _lines(text: str) -> Iterator[str]:
    blank = turned = False  # a blank line is owed; a page ended since the last line
    for line in text.replace("\f", "\n").splitlines():
        if _PAGE_FOOT.fullmatch(line[:200]):
            turned = True
        elif _PAGE_HEAD.fullmatch(line[:200]) or _is_dotted(line):
            continue
        elif not line.strip():
            blank = True
        else:
            words = line.strip()
            # The blank lines around a page break are not the end of a paragraph when the next line goes on.
            if blank and not (turned and words[0].islower()):
                yield ""
            blank = turned = False
            yield words


def _is_dotted(line: str) -> bool:
    """Whether it is a line of the table of contents: "Introduction . . . . . . 5"."""
    dots = line.rstrip().rstrip("0123456789ivxl").rstrip()[-10:]
    return dots.count(".") >= 4 and not dots.strip(". ")


def _number(name: str) -> int | None:
    match = _NAME.fullmatch(name.strip())
    return int(match["number"]) if match else None


def _names(names: Sequence[str]) -> list[str]:
    return [f"RFC {number}" for number in map(_number, names[:20]) if number is not None]


def _standing(record: _Record) -> tuple[Standing, str]:
    """What replaced it, or else whether it is historic; the status of an RFC does not say that it was replaced."""
    obsoleted = _names(record.obsoleted_by)
    if obsoleted:
        return Standing.SUPERSEDED, f"It was made obsolete by {', '.join(obsoleted)}."
    if record.status.strip().upper() == "HISTORIC":
        return Standing.DEPRECATED, "It is historic."
    updated = _names(record.updated_by)
    return Standing.IN_FORCE, f"It was updated by {', '.join(updated)}." if updated else ""


def _date(text: str) -> datetime | None:
    """`June 2022`, `1 April 2003`."""
    *_, month, year = ("", "", *text.split()[:4])
    number = month_number(month)
    if number is None or not re.fullmatch(r"(?:19|20)[0-9]{2}", year):
        return None
    return datetime(int(year), number, 1, tzinfo=UTC)


KIND = numbered_kind(
    CitationType.RFC,
    label="RFC",
    prefix=r"[Rr][Ff][Cc][Ss]?[\s–-]?",
    number=r"\d{1,5}",
    forms=("RFC 9110",),
    tail=r"(?!(?<=\D\d)/\d|(?<=\D\d\d)/\d)",  # [RFC 1/3] counts the patches of a series
    settings=("VOUCHGATE_RFC_URL",),
    source=Rfc.opened_at("https://www.rfc-editor.org"),
)
