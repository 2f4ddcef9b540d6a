"""Architecture decision records as text: which files are one, and what a page says. Pure.

File names of adr-tools and MADR (`0003-use-x.md`), log4brains (`20240103-use-x.md`, which has no number) and
Backstage (`adr003-use-x.md`); Markdown, reStructuredText, AsciiDoc and plain text. No text makes it raise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import EXCERPT_CHARACTERS, Standing
from vouchgate.ingest.sources.git.adr_links import Links, find_links
from vouchgate.ingest.sources.git.adr_status import (
    Statement,
    is_blank,
    judge,
    judge_section,
    says_over,
    successor_of,
    superseded_numbers,
    worst,
)
from vouchgate.ingest.sources.plain_text import plain, without_comments

SUFFIXES = frozenset({".md", ".markdown", ".rst", ".adoc", ".txt"})
_FRONT_MATTER = 16_384  # characters; a longer block is not front matter
_NOT_RECORDS = frozenset({"readme", "index", "changelog", "contributing"})
_NUMBERED = re.compile(r"(?:adr[-_ ]?)?0{0,8}[1-9]")
_LETTERS = re.compile(r"[^\W\d_]+")
# What a template is called beside "template".
_OF_TEMPLATES = frozenset(
    {"adr", "template", "templates", "decision", "record", "architecture", "architectural", "madr", "nygard"}
    | {"short", "long", "bare", "minimal", "full", "new", "example", "the", "of", "for", "a", "an"}
)

_HEADING_NUMBER = re.compile(
    r"\[?(?:adr|decision(?: record)?|architecture decision record)"
    r"\s{0,2}[-_#]?\s{0,2}0{0,8}(?P<named>\d{1,6})\b\]?"
    r"|0{0,8}(?P<leading>\d{1,6})\s?[.:)–—-](?=\s)",
    re.IGNORECASE,
)
_ATX = re.compile(r"(#{1,6}|={1,6})[ \t]{1,8}(\S.{0,500})")
_UNDERLINE = re.compile(r"([=\-~^+*])\1{2,200}\s{0,8}")
_FENCE = re.compile(r"\s{0,3}(?:`{3}|~{3})")
# In other languages too: a status that cannot be read must not look like none at all.
_STATUS = r"(?:status|statut|estado|estatus|stato|статус|状态|狀態|ステータス|상태)"
_STATUS_HEADING = re.compile(
    r"(?:\d{1,3}[.)]?\s{1,4})?(?:(?:current|decision|adr|document|proposal|record)\s{1,4})?"
    rf"{_STATUS}\b\W{{0,8}}(.*)",
    re.IGNORECASE,
)
_META_HEADING = re.compile(
    r"(?:metadata|meta|info|information|details|properties|attributes)\b", re.IGNORECASE
)
_FIELD = re.compile(
    r"[^\w\n]{0,12}(?:(?:current|decision|adr|document|proposal|record)\s{1,4})?"
    rf"(?P<name>{_STATUS}(?! quo\b| codes?\b)|date|decided(?: on)?|super[sc]eded[- _]by"
    r"|replaced[- _]by|obsoleted[- _]by|super[sc]edes|replaces|obsoletes)\b(?P<value>.*)",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_SEPARATOR = re.compile(r"[\s|:+=-]{3,400}")
# What a title says in brackets of the record, and what its head says of it in a sentence.
_MARK = re.compile(r"^[\W\d]{0,12}[\[(]([^\[\]()]{4,60})[\])]|[\[(]([^\[\]()]{4,60})[\])]\W{0,8}$")
_BOLD_LINE = re.compile(r"[*_]{2}([^*_\n:]{4,80})[*_]{2}\W*")
# "**Rejected**, 2023-04-04." below a title.
_DATED_LINE = re.compile(
    r"[\W_]{0,4}([A-Za-z][A-Za-z ]{3,30}?)[*_]{0,2}[\s,.:;(–—-]{1,4}(?:(?:on|since|as of|in)\s)?"
    r"(?:\d{4}-\d\d(?:-\d\d)?|(?:\d{1,2}\.? )?[A-Za-z]{3,9},? \d{4}|[A-Za-z]{3,9} \d{1,2}, \d{4})\W*"
)
_SUPERSEDED_BY = re.compile(r"(?:super[sc]eded|replaced|obsoleted)[- _]by\W*$", re.IGNORECASE)
_OF_ITSELF = re.compile(
    r"[\W_]{0,8}this (?:adr|architecture decision|decision|document|proposal|record) (?:is|was|has been) (.{4,200})",
    re.IGNORECASE,
)
_DECISION_HEADING = re.compile(
    r"(?:\d{1,3}[.)]?\s{1,4})?(?:the\s)?(?:decision|resolution|outcome)", re.IGNORECASE
)
# An entry of the table of contents.
_CONTENTS = re.compile(r"\s{0,12}(?:[-*+]|\d{1,3}[.)])?\s{0,4}\[[^\[\]\n]{0,300}\]\(#[^()\n]{0,300}\)\s*")
_LINK_TEXT = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\n]{0,500}\)")


class AdrPage(Frozen):
    """What one ADR says of itself. `number` is the one in its heading or title, not in its file name."""

    title: str
    number: int | None
    statement: Statement | None  # None: it says nothing about its status
    supersedes: tuple[int, ...]
    dated: datetime | None
    links: Links
    excerpt: str  # the decision first
    # The page in its own order with its headings, lists and tables; before it what front matter says of its status.
    text: str


class _Section(NamedTuple):
    # A plain tuple, because a hostile page has a great many.
    level: int
    heading: str
    lines: tuple[str, ...]


def is_record(path: str) -> bool:
    """Whether a file in an ADR directory can be a record: a text file, not an index page, and no template: that has no
    number, or the number 0, or no name of its own ("0002-adr-template"), while "0014-project-templates" is a record."""
    name = PurePosixPath(path)
    stem = name.stem.lower()
    named = _NUMBERED.match(stem) is not None and not _OF_TEMPLATES.issuperset(_LETTERS.findall(stem))
    return name.suffix.lower() in SUFFIXES and stem not in _NOT_RECORDS and (named or "template" not in stem)


def tells_standing(line: str) -> bool:
    """Whether a line tells where its record stands, or since when, and nothing else."""
    field = _FIELD.fullmatch(line[:600])
    if field and re.fullmatch(rf"{_STATUS}|date|decided(?: on)?", field["name"], re.IGNORECASE):
        return field["value"].lstrip(" *_").startswith((":", "：", "|"))
    return says_over(line.lstrip(" -*+[]xX")) is not None


def parse(text: str) -> AdrPage:
    """Reads one page."""
    matter, body = _split_front_matter(without_comments(plain(text)))
    sections = _sections(body)
    heading = next((section.heading for section in sections if section.heading), "")
    title = _text_of(matter, "title") or _markup_free(heading)
    numbers = [_heading_number(heading), _heading_number(title)]
    statements: list[Statement] = []
    supersedes: list[int] = []
    dated = _date_in(_text_of(matter, "date"))
    for name, value in [*_matter_fields(matter), *_body_fields(sections)]:
        if name == "date" or name.startswith("decided"):
            dated = dated or _date_in(value)
        elif name.endswith("by"):
            if not is_blank(value):
                quoted = f"superseded by {value.strip(' :*_|')}"[:120]
                statements.append(
                    Statement(standing=Standing.SUPERSEDED, quoted=quoted, successor=successor_of(value))
                )
        elif re.fullmatch(_STATUS, name):
            supersedes += superseded_numbers(value)
            statement = Statement(standing=Standing.PROPOSED, quoted="") if is_blank(value) else judge(value)
            if statement is not None:
                statements.append(statement)
        else:
            supersedes += superseded_numbers(f"supersedes {value}")
    statements += _marked(heading, title, sections)
    for section in _status_sections(sections):
        statements.append(judge_section(section.lines))
        for line in section.lines[:40]:
            supersedes += superseded_numbers(line)
            dated = dated or _date_in(line)
    return AdrPage(
        title=_title_without_number(title)[:300],
        number=next((number for number in numbers if number is not None), None),
        statement=worst(statements),
        supersedes=tuple(dict.fromkeys(supersedes)),
        dated=dated,
        links=find_links([(section.heading, section.lines) for section in sections]),
        excerpt=_excerpt(sections),
        text=_page_text(matter, heading, body),
    )


def _marked(heading: str, title: str, sections: tuple[_Section, ...]) -> Iterator[Statement]:
    """That the record is over, or only proposed, by a mark in its title or a sentence of its head."""
    for section in sections:
        if (
            _SUPERSEDED_BY.match(section.heading)
            and (by := " ".join(section.lines[:3]).strip())
            and not is_blank(by)
        ):
            yield Statement(
                standing=Standing.SUPERSEDED, quoted=f"superseded by {by}"[:120], successor=successor_of(by)
            )
    own = (*sections[:2], *_status_sections(sections))
    lines = (line for section in own for line in section.lines[:40])
    said = (match[1] for line in lines if (match := _OF_ITSELF.match(line[:300])))
    marks = (next(filter(None, mark)) for one in (heading, title) for mark in _MARK.findall(one))
    yield from filter(None, map(says_over, (*marks, *said)))
    head = [line.strip() for section in sections[:2] for line in section.lines[:40]]
    dated = {line: match[1] for line in head if (match := _DATED_LINE.fullmatch(line[:200]))}
    accepted = any(found.standing is Standing.IN_FORCE for found in filter(None, map(judge, dated.values())))
    for line in head:
        bold = _BOLD_LINE.fullmatch(line)
        over = says_over(bold[1] if bold else dated.get(line, ""))
        if over and (over.standing is not Standing.PROPOSED or (line in dated and not accepted)):
            yield over


def _split_front_matter(text: str) -> tuple[Mapping[str, object], str]:
    text = text.removeprefix("\ufeff").lstrip("\n")
    if not text.startswith("---"):
        return {}, text
    head = text[: _FRONT_MATTER + 8]
    opening = head.find("\n")
    if opening < 0 or head[3:opening].strip():
        return {}, text
    closing = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE).search(head, opening + 1)
    if closing is None:
        return {}, text
    block = head[opening + 1 : closing.start()]
    return _front_matter(block), text[closing.end() :]


def _front_matter(block: str) -> Mapping[str, object]:
    import yaml  # noqa: PLC0415  (as git in `repository`)

    try:
        loaded = yaml.safe_load(block)
    except Exception:  # noqa: BLE001  (PyYAML raises ValueError, KeyError, RecursionError and more on odd input)
        loaded = None
    if isinstance(loaded, dict):
        return {str(key).lower(): value for key, value in loaded.items() if isinstance(key, str | int)}
    # Not YAML: a `status: rejected: too slow` must still not be read as "says nothing".
    pairs = (line.partition(":") for line in block.splitlines()[:200])
    return {key.strip().lower(): value.strip() for key, colon, value in pairs if colon and key.strip()}


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, date | int | float):
        return str(value)[:50] if not isinstance(value, int) or abs(value) < 10**12 else "?"
    if isinstance(value, list):
        return ", ".join(item for item in value[:20] if isinstance(item, str))
    return "" if value is None else "?"


def _text_of(matter: Mapping[str, object], name: str) -> str:
    return _scalar(matter.get(name)).strip()


def _matter_fields(matter: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key, value in matter.items():
        match = _FIELD.fullmatch(key)
        if match and not match["value"]:
            yield match["name"].lower(), _scalar(value)


def _sections(body: str) -> tuple[_Section, ...]:
    """The page cut at its headings; the first section is what stands before any heading."""
    sections: list[_Section] = []
    level, heading, lines = 0, "", list[str]()
    fenced = False
    page = body.splitlines()
    # A fence that is never closed must not hide a status that stands below it.
    fences = sum(1 for line in page if _FENCE.match(line)) % 2 == 0
    for line in page:
        if fences and _FENCE.match(line):
            fenced = not fenced
            continue
        match = None if fenced else _ATX.fullmatch(line.rstrip()[:520])
        under = not fenced and lines and _UNDERLINE.fullmatch(line) and _can_be_title(lines[-1])
        if not match and not under:
            lines.append(line if not fenced else f"\x00{line}")
            continue
        new = (
            (len(match[1]), match[2].rstrip("#= "))
            if match
            else (1 if line[0] == "=" else 2, lines.pop().strip())
        )
        sections.append(_Section(level=level, heading=heading, lines=tuple(lines)))
        level, heading, lines = new[0], new[1][:500], []
    sections.append(_Section(level=level, heading=heading, lines=tuple(lines)))
    return tuple(sections)


def _can_be_title(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(("|", "-", "*", ">", "\x00", "+"))


def _status_sections(sections: tuple[_Section, ...]) -> Iterator[_Section]:
    for section in sections:
        match = _STATUS_HEADING.fullmatch(section.heading)
        if match:
            first = (match[1],) if match[1].strip() else ()
            lines = tuple(line for line in section.lines if not line.startswith("\x00"))
            yield section._replace(lines=(*first, *lines))


def _body_fields(sections: tuple[_Section, ...]) -> Iterator[tuple[str, str]]:
    """`Name: value` lines, bullets and table rows in the head of the page and in a metadata section."""
    for index, section in enumerate(sections):
        head = index <= 1  # before the first heading, and under it
        if not (head or _META_HEADING.match(section.heading)) or _STATUS_HEADING.fullmatch(section.heading):
            continue
        lines = [line for line in section.lines[:200] if not line.startswith("\x00")]
        for at, line in enumerate(lines):
            if line.lstrip().startswith("|"):
                yield from _table_fields(lines, at)
                continue
            match = None if _CONTENTS.fullmatch(line[:600]) else _FIELD.fullmatch(line[:600])
            if match:
                yield match["name"].lower(), match["value"].lstrip(" \t:：=*_–—-")


def _table_fields(lines: list[str], at: int) -> Iterator[tuple[str, str]]:
    cells = [cell.strip(" *_`") for cell in lines[at].strip().strip("|").split("|")]
    below = [line for line in lines[at + 1 : at + 3] if not _SEPARATOR.fullmatch(line)]
    has_rule = at + 1 < len(lines) and _SEPARATOR.fullmatch(lines[at + 1])
    for column, cell in enumerate(cells[:20]):
        match = _FIELD.fullmatch(cell[:80])
        if not match or match["value"].strip(" :"):
            continue
        beside = cells[column + 1] if column + 1 < len(cells) else ""
        if len(cells) == 2 and column == 0 and not _FIELD.fullmatch(beside[:80]):
            yield match["name"].lower(), beside
        elif has_rule and below and below[0].lstrip().startswith("|"):
            values = below[0].strip().strip("|").split("|")
            yield match["name"].lower(), values[column].strip() if column < len(values) else ""
        elif column == 0:
            yield match["name"].lower(), beside


def _heading_number(heading: str) -> int | None:
    match = _HEADING_NUMBER.match(_markup_free(heading))
    return int(match["named"] or match["leading"]) if match else None


def _title_without_number(title: str) -> str:
    match = _HEADING_NUMBER.match(title)
    return title[match.end() :].lstrip(" .:)–—-") or title if match else title


def _date_in(text: str) -> datetime | None:
    match = _DATE.search(text[:600])
    if match is None:
        return None
    try:
        return datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=UTC)
    except ValueError:  # the thirteenth month: no date
        return None


def _markup_free(text: str) -> str:
    return " ".join(_LINK_TEXT.sub(r"\1", text).replace("**", "").replace("`", "").split()).strip("*_# ")


def _excerpt(sections: tuple[_Section, ...]) -> str:
    """The decision first, then the rest of the page in its order, until the limit."""
    body = [section for section in sections if not _STATUS_HEADING.fullmatch(section.heading)]
    body.sort(key=lambda section: _DECISION_HEADING.match(section.heading) is None)
    return _joined(_section_lines(body), EXCERPT_CHARACTERS)


def _page_text(matter: Mapping[str, object], heading: str, body: str) -> str:
    title, status = _text_of(matter, "title"), _text_of(matter, "status")
    head = [f"# {title}"] if title and not heading else []
    if status:
        head.append(f"Status: {status}")
    lines = (line.rstrip() for line in body.strip("\n").splitlines())
    return "\n".join([*head, *([""] if head else []), *lines])[:TEXT_CHARACTERS]


def _section_lines(sections: Iterable[_Section]) -> Iterator[str]:
    for section in sections:
        yield _markup_free(section.heading)
        for line in section.lines:
            text = _markup_free(line.removeprefix("\x00"))
            if not _SEPARATOR.fullmatch(text):
                yield text


def _joined(lines: Iterable[str], limit: int) -> str:
    """The lines that are not empty, up to a limit of characters; what comes after it is not read."""
    kept: list[str] = []
    length = 0
    for line in filter(None, lines):
        kept.append(line)
        length += len(line) + 1
        if length > limit:
            break
    return "\n".join(kept)[:limit]
