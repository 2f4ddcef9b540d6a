"""Markdown (CommonMark, with the tables and footnotes of GFM), read by markdown-it-py; where things stand is worked out
from the lines that it names and the constructs that it recognises."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin

from vouchgate.ingest.documents.html import html_flows, tag_marks
from vouchgate.ingest.documents.inline import inline_marks
from vouchgate.ingest.documents.layout import Definition, Flow, FlowKind, Layout, Mark, MarkKind
from vouchgate.ingest.documents.types import Span

DEEPEST = 50  # quotations and lists inside each other; what is deeper is read as plain lines
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_MARKED = re.compile(r"[\[<`\\&]")  # a text without any of these has no mark
_PREFIX = re.compile(r"[>\s]*(?:(?:[-*+]|\d{1,9}[.)])\s+)*")
_BAR = re.compile(r"\|(?<!\\.)")
_WORD = re.compile(r"\w")
_TASK = re.compile(r"\[[ xX]\]\s+(?=\S)")
_ALERT = re.compile(r"\[!(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\Z")
_BOX = re.compile(r"(?:!!!|\?\?\?\+?|={3}[!+]?) ?[\w\"]")
_HOLDING = ("bullet_list", "ordered_list", "table_", "footnote_reference")  # what is in these is one block
_UNREAD = frozenset(
    {
        "td_open",
        "td_close",
        "th_open",
        "th_close",
        "tr_close",
        "thead_open",
        "thead_close",
        "tbody_open",
        "tbody_close",
    }
)  # what a row is, its line tells
_FOOTNOTE = re.compile(r"[\s>]*\[\^[^\]\s]+\]:[ \t]*")


class _Markdown(MarkdownIt):
    """Leaves destinations as they are written."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802  (the library's name)
        return url


def _parser() -> MarkdownIt:
    parser = _Markdown("commonmark", {"maxNesting": DEEPEST}).enable("table")
    parser.use(footnote_plugin, inline=False, move_to_end=False)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


_PARSER = _parser()


def read_markdown(text: str, start: int) -> Layout:
    """The flows of the text from `start` on."""
    return _Reader(text, start).read()


class _Reader:
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.lines = [match.span() for match in _LINE.finditer(text, start) if match.start() < len(text)]
        self.layout = Layout()
        self.env: dict[str, Any] = {}
        self.start = start
        self.covered: set[int] = set()  # lines that a token has
        self.labels: set[str] = set()  # of links that were used

    def read(self) -> Layout:
        tokens = _PARSER.parse(self.text[self.start :], self.env)
        self._walk(tokens)
        self._definitions()
        self._left_over()
        self.layout.flows.sort(key=lambda flow: flow.lines[0])
        return self.layout

    def _walk(self, tokens: list[Token]) -> None:  # noqa: PLR0912, PLR0915  (one case for each kind of token)
        block = held = item = items = 0
        inside: list[tuple[int, str]] = []  # the list items around
        heading, note = 0, ""
        header: tuple[Span, ...] = ()
        number = ""
        for index, token in enumerate(tokens):
            kind = token.type
            if kind in _UNREAD:
                continue
            if not held and token.nesting >= 0 and kind not in ("inline", "blockquote_open"):
                block += 1
            if kind.startswith(_HOLDING):
                held += token.nesting
            if kind == "list_item_open":
                inside.append((item, number))
                items += 1
                item, number = items, token.info
            elif kind == "list_item_close":
                item, number = inside.pop()
            elif kind == "heading_open":
                heading = int(token.tag[1:])
            elif kind == "heading_close":
                heading = 0
            elif kind == "footnote_reference_open":
                note = str(token.meta["label"])
            elif kind == "footnote_reference_close":
                note = ""
            elif kind == "code_block" and _is_boxed(tokens[max(index - 4, 0) : index]):
                self._boxed(token, block, item)
            elif kind in ("fence", "code_block"):
                self._code(token, block, item)
            elif kind == "html_block" and token.map:
                self.covered.update(range(*token.map))
                span = self.lines[token.map[0]][0], self.lines[token.map[1] - 1][1]
                self.layout.flows += html_flows(self.text, *span, block=block, item=item)
            elif kind == "tr_open" and token.map:
                row = self._row(token.map[0], block, header)
                if not header:
                    header = tuple(row.lines)
            elif kind == "table_close":
                header = ()
            elif kind == "hr" and token.map:
                self.covered.update(range(*token.map))
            elif kind == "inline" and token.map and not header and token.content:
                flow = Flow(FlowKind.PARAGRAPH, [], block, item, heading, number)
                if heading:
                    flow.kind = FlowKind.HEADING
                elif note:
                    flow.kind, flow.label = FlowKind.NOTE, note
                elif item:
                    flow.kind = FlowKind.ITEM
                self._text(token, flow)

    def _code(self, token: Token, block: int, item: int) -> None:
        if token.map:
            self.covered.update(range(*token.map))
            first, last = token.map[0], min(token.map[1], len(self.lines)) - 1
            self.layout.flows.append(
                Flow(FlowKind.CODE, [(self.lines[first][0], self.lines[last][1])], block, item)
            )

    def _boxed(self, token: Token, block: int, item: int) -> None:
        """Reads what is indented in the box of a note, which other readers of Markdown take for code."""
        first, after = token.map or (0, 0)
        after = min(after, len(self.lines))
        lines: list[Span] = []
        for number in range(first, after + 1):
            start, stop = self.lines[number] if number < after else (0, 0)
            line = self.text[start:stop]
            if line.strip():
                self.covered.add(number)
                left = len(line) - len(line.lstrip())
                lines.append((start + left, start + len(line.rstrip())))
            elif lines:
                flow = Flow(FlowKind.ITEM if item else FlowKind.PARAGRAPH, lines, block, item)
                content = "\n".join(self.text[slice(*each)] for each in lines)
                pieces = [(0, lines[0][0])]
                for begin, end in lines[:-1]:
                    pieces.append((pieces[-1][0] + end - begin + 1, lines[len(pieces)][0]))
                self._marks(content, pieces, flow)
                self.layout.flows.append(flow)
                lines = []

    def _text(self, token: Token, flow: Flow) -> None:
        """Finds the lines of a token in the text, each behind what its quotation or list puts before it."""
        first, after = token.map or (0, 0)
        self.covered.update(range(first, after))
        pieces: list[tuple[int, int]] = []  # start in the content, start in the text
        at = 0
        for number, content in enumerate(token.content.split("\n"), first):
            start, end = self.lines[number]
            line, wanted = self.text[start:end].rstrip(), content.strip()
            found = line.rfind(wanted) if wanted else -1
            if found < 0:  # a character that the library replaced
                found = len(_PREFIX.match(line)[0])  # type: ignore[index]
                wanted = line[found:]
            task = _TASK.match(wanted) if flow.kind is FlowKind.ITEM and not flow.lines else None
            if _ALERT.match(wanted):
                wanted = ""
            if wanted:
                begin = start + found
                flow.lines.append((begin + (task.end() if task else 0), begin + len(wanted)))
                pieces.append((at + len(content) - len(content.lstrip()), begin))
                self._broken(flow, begin + len(wanted), end)
            at += len(content) + 1
        if flow.lines:
            if (
                flow.marks
                and flow.marks[-1].kind is MarkKind.BREAK
                and flow.marks[-1].end > flow.lines[-1][1]
            ):
                flow.marks.pop()
            self._marks(token.content, pieces, flow)
            self.layout.flows.append(flow)

    def _broken(self, flow: Flow, end: int, line_end: int) -> None:
        """A line that ends with two spaces is broken there."""
        if self.text.startswith("  ", end):
            flow.marks.append(Mark(MarkKind.BREAK, end, line_end))

    def _row(self, number: int, block: int, header: tuple[Span, ...]) -> Flow:
        self.covered.update((number, number + 1) if not header else (number,))
        start, end = self.lines[number]
        row = Flow(FlowKind.ROW if header else FlowKind.HEADING, [], block, header=header)
        marked = _MARKED.search(self.text, start, end) is not None
        for cell_start, cell_end in _cells(self.text, start, end):
            row.lines.append((cell_start, cell_end))
            if marked and cell_start < cell_end:
                self._marks(self.text[cell_start:cell_end], [(0, cell_start)], row)
        if any(first < last for first, last in row.lines):
            self.layout.flows.append(row)
        return row

    def _marks(self, content: str, pieces: list[tuple[int, int]], flow: Flow) -> None:
        if not pieces or _MARKED.search(content) is None:
            return
        by = pieces[0][1] - pieces[0][0]
        taken = inline_marks(content, self.env.get("references", {}), self.labels, by)
        if len(pieces) > 1:
            taken = [_placed(mark, by, pieces) for mark in taken]
        flow.marks += tag_marks(self.text, taken) if "<" in content else taken

    def _definitions(self) -> None:
        known = self.env.get("references", {}).items()
        for label, definition in [
            *known,
            *((one["label"], one) for one in self.env.get("duplicate_refs", ())),
        ]:
            first, last = definition["map"]
            self.covered.update(range(first, last))
            start, end = self.lines[first][0], self.lines[last - 1][1]
            self.layout.definitions.append(Definition(label, start, end, label in self.labels))

    def _left_over(self) -> None:
        """Lines that the library left out, being too deep: each is a paragraph."""
        for number, (start, end) in enumerate(self.lines):
            if number in self.covered:
                continue
            line = self.text[start:end].rstrip()
            prefix = _FOOTNOTE.match(line) or _PREFIX.match(line)
            begin = len(prefix[0]) if prefix else 0
            if _WORD.search(line, begin):
                span = (start + begin, start + len(line))
                self.layout.flows.append(Flow(FlowKind.PARAGRAPH, [span], -number - 1))


def _is_boxed(before: list[Token]) -> bool:
    """Whether what was read last opens the box of a note, or the page of a tab: `!!! note`, `=== "Python"`."""
    words = next((token.content for token in reversed(before) if token.type == "inline"), "")
    return (
        bool(before)
        and before[-1].type == "paragraph_close"
        and _BOX.match(words.rpartition("\n")[2]) is not None
    )


def _placed(mark: Mark, by: int, pieces: list[tuple[int, int]]) -> Mark:
    """The mark of a paragraph, which counts from where the paragraph begins, in the text; `pieces` say where its lines
    begin in both."""

    def place(offset: int) -> int:
        offset -= by
        first, begin = pieces[max(bisect_left(pieces, (offset + 1,)) - 1, 0)]
        return begin + max(offset - first, 0)

    start, end = place(mark.start), place(mark.end - 1) + 1
    shown = (0, 0)
    if mark.kind is MarkKind.LINK:
        shown = place(mark.shown[0] - 1) + 1, place(mark.shown[1])
    return Mark(mark.kind, start, end, mark.target, shown)


def _cells(text: str, start: int, end: int) -> Iterator[Span]:
    """Where the cells of a table row stand, trimmed; a bar behind a backslash parts nothing."""
    line = text[start:end].rstrip()
    bounds = [match.start() for match in _BAR.finditer(line)]
    prefix = len(_PREFIX.match(line)[0]) if not bounds or line[: bounds[0]].strip() not in ("",) else 0  # type: ignore[index]
    edges = [*(bound for bound in bounds if bound >= prefix)]
    first = edges[0] + 1 if edges and not line[prefix : edges[0]].strip(" \t>") else prefix
    rest = [edge for edge in edges if edge >= first]
    for edge in [*rest, len(line)]:
        piece = line[first:edge] if edge >= first else ""
        if edge == len(line) and not piece.strip() and rest:
            return
        left = len(piece) - len(piece.lstrip())
        yield (
            start + first + left,
            start + first + len(piece.rstrip()) if piece.strip() else start + first + left,
        )
        first = edge + 1
