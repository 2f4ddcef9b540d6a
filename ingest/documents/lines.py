"""Plain text and reStructuredText, line by line: paragraphs between blank lines, items, headings with a line under
them, and what is indented under a directive."""

from __future__ import annotations

import re

from vouchgate.ingest.data import read_data
from vouchgate.ingest.documents.html import html_flows
from vouchgate.ingest.documents.layout import Definition, Flow, FlowKind, Layout, LineEnds, Mark, MarkKind
from vouchgate.ingest.documents.words import numbers_item

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_ITEM = re.compile(r"(?:[-*+•‣▪●◦–]|(?:\d{1,3}|#|[a-zA-Z])[.)]|\((?:\d{1,3}|[a-zA-Z])\))[ \t]+(?=\S)")
_NUMBER = re.compile(r"\(?(\d+)[.)]")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*\Z")
_TABLE = re.compile(r"[+|=][-=+| ]{2,}\Z")  # the rules of a grid or simple table
_DIRECTIVE = re.compile(r"\.\.[ \t]+(?:\|[^|]+\|[ \t]+)?([A-Za-z][\w:.+-]*?)::[ \t]*")
_NOTE = re.compile(r"\.\.[ \t]+\[([^\]\s]{1,100})\][ \t]*")
_TARGET = re.compile(r"\.\.[ \t]+_(`[^`]+`|[^:`]+):[ \t]*(\S*)[ \t]*\Z")
_FIELD = re.compile(r":[\w -]{1,60}:(?:[ \t]+|\Z)")
_CODE = frozenset(read_data("documents.toml")["code_directives"])
_NAMING = ("figure", "class")  # directives that begin with a name; what is indented under them is words
_LITERAL = re.compile(r"``(?!`)([^`\r\n]|`(?!`)){1,500}``")
_ROLE = re.compile(r":[\w:.+-]{1,60}:(?=`)")
_INLINE = re.compile(r"`([^`<>]{0,500})<([^<>\s]{1,2000})>`__?")
_NAMED = re.compile(r"`([^`<>]{1,300})`__?(?!\w)|(?<![\w:`])([A-Za-z][\w.-]{0,100})__?(?![\w`])")
_WORD = re.compile(r"\w")


def read_text(text: str, start: int) -> Layout:
    """The flows of plain text from `start` on."""
    return _Reader(text, start, marked=False).read()


def read_rst(text: str, start: int) -> Layout:
    """The flows of reStructuredText from `start` on."""
    return _Reader(text, start, marked=True).read()


class _Reader:
    def __init__(self, text: str, start: int, *, marked: bool) -> None:
        self.text, self.marked = text, marked
        self.ends = LineEnds.SHORT if marked else LineEnds.PLAIN
        self.lines = [match.span() for match in _LINE.finditer(text, start) if match.start() < len(text)]
        self.layout = Layout()
        self.targets: dict[str, tuple[str, int, int]] = {}
        self.used: set[str] = set()
        self.levels: list[str] = []  # signs under headings, in the order of their first use
        self.flow: Flow | None = None
        self.block = self.items = 0
        self.item_indent = -1
        self.literal: int | None = None  # the indentation that a block of code is deeper than
        self.options: int | None = None  # the indentation of a directive whose options may still follow
        self.comment: int | None = None  # the indentation that a comment is deeper than
        self.blank = True

    def read(self) -> Layout:
        skip = -1
        for number, (start, end) in enumerate(self.lines):
            line = self.text[start:end].rstrip()
            stripped = line.lstrip()
            if not stripped:
                self.options = None
                self._end_flow(blank=True)
            elif number > skip:
                skip = self._line(number, start, line, len(line) - len(stripped))
        self._end_flow(blank=True)
        if self.marked:
            self._link_names()
        return self.layout

    def _line(self, number: int, start: int, line: str, indent: int) -> int:  # noqa: PLR0911  (one for each kind)
        """Reads one line that is not blank; the number of the last line that is read with it."""
        if self.comment is not None:
            if indent > self.comment:
                return number
            self.comment = None
        if self.literal is not None:
            if indent > self.literal:
                self._code(start, start + len(line))
                return number
            self.literal = None
        body = line[indent:]
        if self.options is not None:
            if indent > self.options and _FIELD.match(body):
                return number
            self.options = None
        if self.flow is None and (under := self._underline(number, line, indent)):
            return under
        if (_ADORNMENT.match(body) or _TABLE.match(body)) and _WORD.search(body) is None:
            self._end_flow(blank=False)
            return number
        if self.marked and body.startswith("..") and self._explicit(number, start + indent, body, indent):
            return number
        self._words(start, line, indent, body)
        return number

    def _underline(self, number: int, line: str, indent: int) -> int:
        """A heading, when the next line is one of signs as long as this."""
        if number + 1 >= len(self.lines) or not self.blank:
            return 0
        start, end = self.lines[number + 1]
        below = self.text[start:end].rstrip()
        match = _ADORNMENT.match(below)
        if match is None or len(below) < 0.8 * len(line) or _ADORNMENT.match(line) or _ITEM.match(line):
            return 0
        if match[1] not in self.levels:
            self.levels.append(match[1])
        first = self.lines[number][0]
        level = self.levels.index(match[1]) + 1
        self.block += 1
        self._add(Flow(FlowKind.HEADING, [(first + indent, first + len(line))], self.block, level=level))
        self._end_flow(blank=True)
        return number + 1

    def _explicit(self, number: int, at: int, body: str, indent: int) -> bool:  # noqa: PLR0911  (one for each kind)
        """What begins with two dots; whether the line needs no more reading."""
        if (note := _NOTE.match(body)) is not None:
            self._end_flow(blank=False)
            self.block += 1
            label = note[1].lstrip("#^") or note[1]
            if body[note.end() :]:
                self._add(Flow(FlowKind.NOTE, [(at + note.end(), at + len(body))], self.block, label=label))
            return True
        if (target := _TARGET.match(body)) is not None:
            self._end_flow(blank=False)
            if target[2]:
                self.targets[_name(target[1].strip("`"))] = (target[2], at, at + len(body))
            return True
        directive = _DIRECTIVE.match(body)
        if directive is None:
            if body == ".." or body.startswith(".. "):
                self._end_flow(blank=False)
                self.comment = None if body == ".." and self._is_blank(number + 1) else indent
                return True
            return False
        self._end_flow(blank=False)
        if directive[1] == "raw" and "html" in body[directive.end() :].split():
            self._page(number, indent)
            return True
        if directive[1] in _CODE:
            self.literal = indent
            self._code(at, at + len(body))
            return True
        self.options = indent
        if body[directive.end() :] and directive[1] not in _NAMING:
            self.block += 1
            span = (at + directive.end(), at + len(body))
            self._add(Flow(FlowKind.PARAGRAPH, [span], self.block))
        return True

    def _page(self, number: int, indent: int) -> None:
        """Reads the HTML that is indented under the line of that number, behind its options."""
        self.comment = indent  # none of its lines is read again
        first = number + 1
        while not self._is_blank(first) and _FIELD.match(self.text[slice(*self.lines[first])].strip()):
            first += 1
        after = first
        while after < len(self.lines) and (self._is_blank(after) or self._indent(after) > indent):
            after += 1
        if first < after:
            self.block += 1
            span = self.lines[first][0], self.lines[after - 1][1]
            self.layout.flows += html_flows(self.text, *span, block=self.block)

    def _indent(self, number: int) -> int:
        line = self.text[slice(*self.lines[number])]
        return len(line) - len(line.lstrip())

    def _is_blank(self, number: int) -> bool:
        """Whether nothing stands in the line of that number; the last one has none after it."""
        return number >= len(self.lines) or not self.text[slice(*self.lines[number])].strip()

    def _words(self, start: int, line: str, indent: int, body: str) -> None:
        span = (start + indent, start + len(line))
        item = _ITEM.match(body)
        number = _NUMBER.match(body)
        if item is not None and number is not None and self.flow is not None:
            last = self.flow.lines[-1]
            label = f"{self.flow.label}. " if len(self.flow.lines) == 1 and self.flow.label else ""
            item = item if numbers_item(label + self.text[last[0] : last[1]], int(number[1])) else None
        if item is not None and (self.flow is None or self.flow.item or not self.marked):
            listed = self.item_indent >= 0
            self._end_flow(blank=False)
            if not listed:
                self.block += 1
            self.items += 1
            self.item_indent = indent
            indent += item.end()
            label = number[1] if number else ""
            span = (span[0] + item.end(), span[1])
            self._add(Flow(FlowKind.ITEM, [span], self.block, self.items, label=label, ends=self.ends))
        elif self.flow is not None and not (self.marked and _FIELD.match(body)):
            self.flow.lines.append(span)
        else:
            if indent <= self.item_indent or self.item_indent < 0:
                self.item_indent = -1
                self.block += 1
            kind = FlowKind.ITEM if self.item_indent >= 0 else FlowKind.PARAGRAPH
            if self.marked and (named := _FIELD.match(body)) is not None:
                span = (min(span[0] + named.end(), span[1]), span[1])
            if span[0] == span[1]:
                return
            item_number = self.items if kind is FlowKind.ITEM else 0
            self._add(Flow(kind, [span], self.block, item_number, ends=self.ends))
        self.blank = False
        if self.marked and body.endswith("::"):
            self.literal = indent

    def _add(self, flow: Flow) -> None:
        self.flow = flow
        self.layout.flows.append(flow)
        self.blank = False

    def _code(self, start: int, end: int) -> None:
        flows = self.layout.flows
        if flows and flows[-1].kind is FlowKind.CODE:
            flows[-1].lines[-1] = (flows[-1].lines[-1][0], end)
        else:
            self._end_flow(blank=False)
            flows.append(Flow(FlowKind.CODE, [(start, end)], self.block))

    def _end_flow(self, *, blank: bool) -> None:
        self.flow = None
        self.blank = self.blank or blank

    def _link_names(self) -> None:
        """What is marked in the lines, now that all targets are known."""
        for flow in self.layout.flows:
            if flow.kind is FlowKind.CODE:
                continue
            for line in flow.lines:
                self._mark(flow, *line)
        for name, (_, start, end) in self.targets.items():
            self.layout.definitions.append(Definition(name, start, end, name in self.used))

    def _mark(self, flow: Flow, start: int, end: int) -> None:
        text, marks = self.text, flow.marks
        taken: list[tuple[int, int]] = []
        for literal in _LITERAL.finditer(text, start, end):
            marks.append(Mark(MarkKind.CODE, *literal.span()))
            taken.append(literal.span())
        marks += (Mark(MarkKind.HIDDEN, *role.span()) for role in _ROLE.finditer(text, start, end))
        for link in _INLINE.finditer(text, start, end):
            marks.append(Mark(MarkKind.LINK, *link.span(), link[2], (link.start() + 1, link.end(1))))
            taken.append(link.span())
        for link in _NAMED.finditer(text, start, end):
            name = _name(link[1] or link[2])
            if name in self.targets and not any(first <= link.start() < last for first, last in taken):
                self.used.add(name)
                shown = link.span(1) if link[1] else link.span(2)
                marks.append(Mark(MarkKind.LINK, *link.span(), self.targets[name][0], shown))


def _name(written: str) -> str:
    return " ".join(written.lower().split())
