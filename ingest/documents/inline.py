"""What in a paragraph of Markdown is more than words: links, code, tags, escapes. The algorithm is that of CommonMark
(one pass with a stack of brackets), so that no text, however it is made, is read twice; what a destination, a title, a
tag or an address is, the library says."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from html import unescape
from typing import Any

from markdown_it.common.entities import entities
from markdown_it.common.html_re import HTML_TAG_RE
from markdown_it.common.normalize_url import validateLink
from markdown_it.common.utils import normalizeReference
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.rules_inline.autolink import AUTOLINK_RE, EMAIL_RE

from vouchgate.ingest.documents.html import unseen_end
from vouchgate.ingest.documents.layout import Mark, MarkKind
from vouchgate.ingest.documents.types import Span

_SIGN = re.compile(r"[\[\]<`\\&]|!\[")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_TICKS = re.compile(r"`+")
_SPACE = re.compile(r"[ \t\n]*+")
_ADDRESS = re.compile(r"<([^<> \n]++)>")
_ENTITY = re.compile(r"&(?:#(?:[xX][0-9A-Fa-f]{1,6}|\d{1,7})|([A-Za-z][A-Za-z0-9]{1,31}));")
_LONGEST_LABEL = 999  # characters; as CommonMark has it
_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.){0,999}+)\]", re.DOTALL)


def inline_marks(content: str, definitions: Mapping[str, Any], used: set[str], by: int = 0) -> list[Mark]:
    """The marks of a paragraph, by places in it and `by` more. `definitions` are what links by label point at, as the
    library keeps them; those that a link of it needs are added to `used`."""
    return _Scan(content, definitions, used, by).marks


class _Scan:
    def __init__(self, content: str, definitions: Mapping[str, Any], used: set[str], by: int) -> None:
        self.content, self.definitions, self.used, self.by = content, definitions, used, by
        self.marks: list[Mark] = []
        self.opened: list[
            tuple[int, bool]
        ] = []  # brackets that nothing closed yet; whether it is of a picture
        self.inactive = 0  # brackets below this one have a link in them, and make none
        self.bracketed: set[int] = set()  # brackets with another in them
        self.runs: dict[int, list[int]] | None = (
            None  # where back-ticks stand, by how many there are in a row
        )
        self.last: dict[str, int] = {}  # where what ends a tag stands for the last time
        at = 0
        while (sign := _SIGN.search(content, at)) is not None:
            at = self._construct(sign[0], sign.start(), sign.end())

    def _construct(self, sign: str, start: int, after: int) -> int:
        """Reads what a sign begins; where to go on."""
        match sign:
            case "`":
                return self._code(start)
            case "\\":
                return self._escape(start, after)
            case "<":
                return self._tag(start, after)
            case "&":
                return self._entity(start, after)
            case "]":
                return self._close(start)
            case _:
                return self._open(start, after)

    def _mark(self, kind: MarkKind, start: int, end: int, target: str = "") -> None:
        self.marks.append(Mark(kind, start + self.by, end + self.by, target))

    def _link(self, start: int, end: int, target: str, words: Span) -> None:
        by = self.by
        shown = words[0] + by, words[1] + by
        self.marks.append(Mark(MarkKind.LINK, start + by, end + by, target, shown))

    def _escape(self, start: int, after: int) -> int:
        following = self.content[after : after + 1]
        if following == "\n":
            self._mark(MarkKind.BREAK, start, after)
        elif following in _PUNCTUATION:
            self._mark(MarkKind.HIDDEN, start, after)
            return after + 1
        return after

    def _open(self, start: int, after: int) -> int:
        if self.opened:
            self.bracketed.add(self.opened[-1][0])
        self.opened.append((start, after - start > 1))
        return after

    def _entity(self, start: int, after: int) -> int:
        entity = _ENTITY.match(self.content, start)
        if entity is None or (entity[1] and entity[1] not in entities):
            return after
        self._mark(MarkKind.HIDDEN, start, entity.end(), unescape(entity[0]))
        return entity.end()

    def _code(self, start: int) -> int:
        content = self.content
        close = content.find("`", start + 1)
        if close > start + 1 and not content.startswith("``", close):  # one on each side, as nearly always
            self._mark(MarkKind.CODE, start, close + 1)
            return close + 1
        if self.runs is None:
            self.runs = {}
            for run in _TICKS.finditer(content):
                self.runs.setdefault(run.end() - run.start(), []).append(run.start())
        after = _TICKS.match(content, start).end()  # type: ignore[union-attr]
        same = self.runs.get(after - start, ())
        following = bisect_left(same, after)
        if following == len(same):
            return after
        end = same[following] + after - start
        self._mark(MarkKind.CODE, start, end)
        return end

    def _tag(self, start: int, after: int) -> int:
        content = self.content
        if (address := _ADDRESS.match(content, start)) is not None:
            mail = EMAIL_RE.match(address[1]) is not None
            if (mail or AUTOLINK_RE.match(address[1])) and validateLink(address[1]):
                self._link(
                    start, address.end(), f"mailto:{address[1]}" if mail else address[1], (after, after)
                )
                return address.end()
        if not self._may_end(start):
            return after
        tag = HTML_TAG_RE.match(content, start)
        if tag is None:
            return after
        end = tag.end() if content[after] not in "!?" else unseen_end(content, start, tag.end())
        self._mark(MarkKind.HIDDEN, start, end)
        return end

    def _may_end(self, start: int) -> bool:
        """Whether what ends a tag of this kind is ahead at all, without which the whole text would be searched."""
        for begin, end in (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>"), ("<", ">")):
            if self.content.startswith(begin, start):
                if end not in self.last:
                    self.last[end] = self.content.rfind(end)
                return self.last[end] > start
        return False

    def _close(self, close: int) -> int:
        after = close + 1
        if not self.opened:
            return after
        opener, picture = self.opened.pop()
        active = picture or len(self.opened) >= self.inactive
        self.inactive = min(self.inactive, len(self.opened))
        start = opener + 2 if picture else opener + 1
        target = self._target(opener, (start, close)) if active else None
        if target is None:
            return after
        end, href = target
        if picture:
            while self.marks and self.marks[-1].start > opener + self.by:
                self.marks.pop()
            self._mark(MarkKind.HIDDEN, opener, end)
        else:
            self.inactive = len(self.opened)
            self._link(opener, end, href, (start, close))
        return end

    def _target(self, opener: int, words: Span) -> tuple[int, str] | None:
        """Where a link with these words ends, and what it points at; None when they are none of a link."""
        content, after = self.content, words[1] + 1
        if content.startswith("(", after) and (inline := _destination(content, after + 1)) is not None:
            return inline
        if not self.definitions:
            return None
        label = content[words[0] : words[1]] if words[1] - words[0] <= _LONGEST_LABEL else ""
        if (given := _LABEL.match(content, after)) is not None:
            after = given.end()
        if given is not None and given[1]:
            label = given[1]
        elif opener in self.bracketed:
            return None
        name = normalizeReference(label)
        definition = self.definitions.get(name)
        if definition is None:
            return None
        self.used.add(name)
        return after, str(definition["href"])


def _destination(content: str, at: int) -> tuple[int, str] | None:
    """Where the parenthesis behind the words of a link ends, and what it points at."""
    at = _SPACE.match(content, at).end()  # type: ignore[union-attr]
    parsed = parseLinkDestination(content, at, len(content))
    href = ""
    if parsed.ok and validateLink(parsed.str):
        href, at = parsed.str, parsed.pos
    after = _SPACE.match(content, at).end()  # type: ignore[union-attr]
    if after > at:
        title = parseLinkTitle(content, after, len(content))
        if title.ok:
            after = _SPACE.match(content, title.pos).end()  # type: ignore[union-attr]
    return (after + 1, href) if content.startswith(")", after) else None
