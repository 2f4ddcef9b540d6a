"""HTML, whole pages and what stands in Markdown: its words and where they are. Tags are found one after another,
without a tree, so that nothing nests too deep and every character keeps its place."""

from __future__ import annotations

import html
import re

from vouchgate.ingest.documents.layout import Flow, FlowKind, Layout, LineEnds, Mark, MarkKind
from vouchgate.ingest.documents.types import Span

# A sign that opens a tag ends the one before it, inside quotation marks too, so that no character is read twice.
_TAG = re.compile(
    r"<!--|<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9:-]{0,30})"
    r"(?P<rest>(?:[\s/](?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+'|[\"'])*+)?+)>"
    r"|<[!?][^<>]*+>"
)
_HREF = re.compile(r"""\shref\s?=\s?(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_LINE = re.compile(r"[^\r\n]+")
_WORD = re.compile(r"\w")
_COMMENT_END = re.compile(r"--!?>")
# What a page does not show as text; its end tag is looked for and nothing else. Code hosts show of Markdown what stands
# between tags that they leave out.
_UNSEEN = frozenset({"script", "style", "template", "noscript", "svg", "math"})
_UNSEEN_IN_MARKDOWN = frozenset({"script", "style", "template"})
_CODE = frozenset({"pre", "listing", "xmp"})
_INLINE_CODE = frozenset({"code", "kbd", "samp", "tt", "var"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_CELLS = frozenset({"td", "th"})
_LISTS = frozenset({"ul", "ol", "dl", "menu"})
_BREAKS = frozenset(
    {"p", "div", "section", "article", "main", "aside", "header", "footer", "nav", "figure", "figcaption"}
)
_BREAKS |= frozenset(
    {"blockquote", "details", "summary", "address", "form", "fieldset", "body", "html", "hr", "center"}
)
_BREAKS |= frozenset(
    {"table", "thead", "tbody", "tfoot", "caption", "dd", "dt", "li", "tr", "option", "title", "legend"}
)
_BREAKS |= _HEADINGS | _CELLS | _LISTS


def unseen_end(text: str, start: int, end: int) -> int:
    """Where a comment, declaration or instruction ends that begins at `start`, as a browser reads it, to whom `<!-->`
    is a whole comment. Nothing after it is hidden."""
    if not text.startswith("<!--", start):
        close = text.find(">", start, end)
        return end if close < 0 else close + 1
    for whole in ("<!-->", "<!--->"):
        if text.startswith(whole, start, end):
            return start + len(whole)
    closed = _COMMENT_END.search(text, start + len("<!--"), end)
    return end if closed is None else closed.end()


def read_html(text: str, start: int) -> Layout:
    """The flows of the page from `start` on."""
    return Layout(list(html_flows(text, start, len(text))))


def html_flows(text: str, start: int, end: int, *, block: int | None = None, item: int = 0) -> list[Flow]:
    """The flows of the HTML between two places. All are of `block` when that is given: a piece of another format."""
    return _Reader(text, end, block, item).read(start)


def tag_marks(text: str, marks: list[Mark]) -> list[Mark]:
    """These marks, in which hidden tags that make a link, code or a line break are that."""
    found: list[Mark] = []
    link: Mark | None = None
    target = ""
    for mark in marks:
        tag = _TAG.match(text, mark.start, mark.end) if mark.kind is MarkKind.HIDDEN else None
        name = (tag["name"] or "").lower() if tag else ""
        if name == "br":
            mark = Mark(MarkKind.BREAK, mark.start, mark.end)  # noqa: PLW2901
        elif name == "a" and tag and not tag["end"]:
            link, target = mark, _href(tag["rest"])
        elif name == "a" and link is not None:
            if target:
                found.append(Mark(MarkKind.LINK, link.start, mark.end, target, (link.end, mark.start)))
            link = None
        found.append(mark)
    return found


class _Reader:
    def __init__(self, text: str, end: int, block: int | None, item: int) -> None:
        self.text, self.end = text, end
        self.fixed = block is not None
        self.unseen = _UNSEEN_IN_MARKDOWN if self.fixed else _UNSEEN
        self.block, self.items = block or 0, item
        self.outer = item
        self.flows: list[Flow] = []
        self.spans: list[Span] = []  # of the flow that is being read
        self.marks: list[Mark] = []
        self.inside: list[str] = []  # the last lists, items, headings that were opened
        self.header: tuple[Span, ...] = ()
        self.cells: list[tuple[list[Span], list[Mark], bool]] | None = None  # of the row that is being read
        self.stack: list[int] = []
        self.item = item
        self.lists = 0
        self.level = 0
        self.link: tuple[int, int, str] | None = None
        self.code: int | None = None
        self.unclosed: set[str] = set()  # elements whose end tag is nowhere ahead

    def read(self, at: int) -> list[Flow]:
        while (tag := _TAG.search(self.text, at, self.end)) is not None:
            self._words(at, tag.start())
            at = self._tag(tag)
        self._words(at, self.end)
        self._flush()
        self._row()
        return self.flows

    def _words(self, start: int, end: int) -> None:
        for line in _LINE.finditer(self.text, start, end):
            piece = line[0]
            if piece.strip():
                left = len(piece) - len(piece.lstrip())
                self.spans.append((line.start() + left, line.start() + len(piece.rstrip())))
        for entity in _ENTITY.finditer(self.text, start, end):
            self.marks.append(Mark(MarkKind.HIDDEN, *entity.span(), html.unescape(entity[0])))

    def _tag(self, tag: re.Match[str]) -> int:
        at = tag.end()
        if tag[0] == "<!--":
            at = unseen_end(self.text, tag.start(), self.end)
            self.marks.append(Mark(MarkKind.HIDDEN, tag.start(), at))
            return at
        name, closing = (tag["name"] or "").lower(), bool(tag["end"])
        if name in self.unseen and not closing and not tag[0].endswith("/>"):
            return self._until_end_of(name, at)
        if name in _CODE and not closing and self.cells is None:
            self._flush()
            after = self._until_end_of(name, at)
            self._new_block()
            self.flows.append(Flow(FlowKind.CODE, [(tag.start(), after)], self.block, self.item))
            return after
        if name in _BREAKS:
            self._flush()
            self._structure(name, closing)
        elif name == "br":
            self.marks.append(Mark(MarkKind.BREAK, tag.start(), at))
        else:
            self.marks.append(Mark(MarkKind.HIDDEN, tag.start(), at))
            if name == "a":
                self._anchor(tag, closing)
            elif name in _INLINE_CODE:
                if closing and self.code is not None:
                    self.marks.append(Mark(MarkKind.CODE, self.code, tag.start()))
                self.code = None if closing else at
        return at

    def _until_end_of(self, name: str, at: int) -> int:
        """Where the end tag of an element ends that began before `at`. Without one it is `at`, but for scripts and
        styles, which go on to the end of the page as in a browser."""
        if name in self.unclosed:
            return at
        close = re.compile(rf"</{name}\b[^<>]*+>", re.IGNORECASE).search(self.text, at, self.end)
        if close is None:
            self.unclosed.add(name)
            return self.end if name in ("script", "style") else at
        return close.end()

    def _anchor(self, tag: re.Match[str], closing: bool) -> None:
        if closing and self.link is not None:
            start, shown, target = self.link
            if target:
                self.marks.append(Mark(MarkKind.LINK, start, tag.end(), target, (shown, tag.start())))
        self.link = None if closing else (tag.start(), tag.end(), _href(tag["rest"]))

    def _structure(self, name: str, closing: bool) -> None:
        if name in _HEADINGS or name == "title":
            self.level = 0 if closing else int(name[1]) if name != "title" else 1
        elif name in _LISTS:
            if not closing and not self.lists:
                self._new_block()
            self.lists = max(self.lists + (-1 if closing else 1), 0)
            if not self.lists:
                self.stack.clear()
                self.item = self.outer
        elif name in ("li", "dd"):
            self._item(closing)
        elif name == "table":
            self._row()
            self.header = ()
            self._new_block()
        elif name == "tr":
            self._row()
            self.cells = None if closing else []
        elif name in _CELLS and not closing:
            if self.cells is None:
                self.cells = []
            self.cells.append(([], [], name == "th"))

    def _item(self, closing: bool) -> None:
        if closing:
            self.item = self.stack.pop() if self.stack else self.outer
            return
        if len(self.stack) >= max(self.lists, 1):  # the one before was not closed
            self.item = self.stack.pop()
        self.stack.append(self.item)
        self.items += 1
        self.item = self.items

    def _new_block(self) -> None:
        if not self.fixed:
            self.block += 1

    def _flush(self) -> None:
        """Ends the flow, or what is read of a cell."""
        spans, marks = self.spans, self.marks
        self.spans, self.marks = [], []
        if not any(_WORD.search(self.text, *span) for span in spans):
            return
        if self.cells:
            self.cells[-1][0].extend(spans)
            self.cells[-1][1].extend(marks)
            return
        # In a row before its first cell, too, which a browser shows before the table.
        kind = FlowKind.HEADING if self.level else FlowKind.ITEM if self.item else FlowKind.PARAGRAPH
        if not self.lists:
            self._new_block()
        self.flows.append(
            Flow(kind, spans, self.block, self.item, self.level, marks=marks, ends=LineEnds.SPACE)
        )

    def _row(self) -> None:
        cells, self.cells = self.cells, None
        if not cells:
            return
        at = next((spans[0][0] for spans, _, _ in cells if spans), None)
        if at is None:
            return
        row = Flow(FlowKind.ROW, [], self.block, self.item, header=self.header)
        for spans, marks, _ in cells:
            first = spans[0][0] if spans else at
            row.lines.append((first, spans[-1][1] if spans else at))
            row.marks += marks
            at = row.lines[-1][1]
        if not self.header and all(named for _, _, named in cells):
            self.header = tuple(row.lines)
            row.kind, row.level = FlowKind.HEADING, 0
        self.flows.append(row)


def _href(rest: str | None) -> str:
    found = _HREF.search(rest or "")
    return (
        html.unescape(next(group for group in found.groups() if group is not None)).strip() if found else ""
    )
