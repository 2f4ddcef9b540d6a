"""Reads a document: bytes in, every character accounted for, claims with the references that are to vouch for them out.

Pure, and the same for the same bytes. No model decides what is a claim, and the whole text is read.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

from vouchgate.ingest.documents.classify import (
    asserts,
    is_entry,
    is_label,
    is_source_heading,
    names_sources,
    reason_for,
    tells,
)
from vouchgate.ingest.documents.html import read_html
from vouchgate.ingest.documents.layout import Flow, FlowKind, Layout
from vouchgate.ingest.documents.lines import read_rst, read_text
from vouchgate.ingest.documents.markdown import read_markdown
from vouchgate.ingest.documents.reach import Reach, Sentence
from vouchgate.ingest.documents.references import Found, find_references
from vouchgate.ingest.documents.types import (
    HTML,
    LARGEST,
    MARKDOWN,
    RST,
    Block,
    BlockKind,
    Document,
    DocumentClaim,
    Finding,
    Reason,
    Reference,
    Slip,
    Span,
    Unreadable,
)
from vouchgate.ingest.documents.words import LINKED, Shown, is_bold, note_numbers, show, split_sentences

_READERS: dict[str, Callable[[str, int], Layout]] = {
    **dict.fromkeys((*MARKDOWN, ""), read_markdown),
    **dict.fromkeys(HTML, read_html),
    **dict.fromkeys(RST, read_rst),
}
_PAGE = re.compile(
    r"\s*(?:<!--.{0,1000}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_FRONT_MATTER = re.compile(r"(?:---|\+\+\+)[ \t]*\r?\n")
_FRONT_LINE = re.compile(r"\s*(?:#.*|[\w.\"'-]+\s*[:=].*|- .*|-|[\]\[{}].*)?\r?\n?\Z|[ \t]+.*")
_FRONT_KEY = re.compile(r"[\w.\"'-]+\s*[:=]\s*(.*)|\[.*")
_LETTER = re.compile(r"[^\W_]")
_LINE = re.compile(r"[^\n]*\n?")
_FEW_WORDS = 5  # of links on a line of their own; more with a verb among them are a claim
_LONGEST_ENTRY = 1000  # characters of one source in a list of them
_LONGEST_HEADING = 80  # characters of the heading of a list of sources
_BOLD_LEVEL = 7  # of a line in bold: under every heading that is marked as one


def read_document(name: str, content: bytes) -> Document:
    """The document of that name: its path in its repository, where it has one, whose ending says what format it has;
    the text tells a page of HTML. Raises Unreadable for what is no text in UTF-8, is empty, or has more than LARGEST
    bytes."""
    text = _decoded(content)
    body = _front_matter(text)
    layout = _reader(name, text)(text, body)
    return _Assembly(name, text, layout).document()


def _decoded(content: bytes) -> str:
    if len(content) > LARGEST:
        raise Unreadable(f"it has more than {LARGEST} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8: byte {error.start + 1} is part of no character") from error
    if "\0" in text:
        raise Unreadable("it is binary: it has a zero byte")
    if not text.strip("\ufeff \t\r\n\f\v"):
        raise Unreadable("it is empty")
    return text


def _reader(name: str, text: str) -> Callable[[str, int], Layout]:
    file = name.replace("\\", "/").rpartition("/")[2]
    ending = file.rpartition(".")[2].lower() if "." in file else ""
    known = _READERS.get(ending)
    if ending in ("", "txt") or known is None:
        return read_html if _PAGE.match(text.removeprefix("\ufeff")) else known or read_text
    return known


def _front_matter(text: str) -> int:
    """Where the text begins behind its front matter: lines of keys and values between two lines of signs."""
    begin = 1 if text.startswith("\ufeff") else 0
    opened = _FRONT_MATTER.match(text, begin)
    if opened is None:
        return begin
    at = opened.end()
    sign = text[begin : begin + 3]
    keyed = listing = False  # a list belongs to a key without a value
    while at < len(text):
        line = _LINE.match(text, at)[0]  # type: ignore[index]
        if line.rstrip() == sign or (sign == "---" and line.rstrip() == "..."):
            return at + len(line) if keyed else begin
        if _FRONT_LINE.match(line) is None:
            break
        if (key := _FRONT_KEY.match(line)) is not None:
            keyed, listing = True, not (key[1] or "").strip()
        elif line.strip() and not line.startswith("#") and not (listing if line[0] == "-" else keyed):
            break
        at += len(line)
    return begin


class _Assembly:
    """Puts a document together from its layout."""

    def __init__(self, name: str, text: str, layout: Layout) -> None:
        self.name, self.text, self.layout = name, text, layout
        self.flows = layout.flows
        for flow in self.flows:
            _read_as_words(text, flow)
        self.found: Found = find_references(text, layout, self._source_sections(), name)
        self.places = [reference.start for reference in self.found.references]
        self.shown: list[Shown | None] = []
        self.sentences: list[Sentence] = []
        self.words: list[str] = []  # of each sentence, as a reader reads it
        self.headers: dict[tuple[Span, ...], tuple[str, ...]] = {}  # of the table that is being read
        self.sections: list[tuple[str, ...]] = []  # of each flow
        self.claims: list[int] = []  # sentences, by number
        self.blocks: list[Block] = []

    def document(self) -> Document:
        self._read()
        leads = self._leads()
        references = self.found.references
        reached = Reach(self.text, self.flows, self.sentences, leads, self.found.listing).of(references)
        vouching: dict[int, list[Reference]] = {}
        for reference, numbers in zip(references, reached, strict=True):
            for number in numbers:
                vouching.setdefault(number, []).append(reference)
        return Document(
            name=self.name,
            text=self.text,
            blocks=tuple(self._filled()),
            references=tuple(references),
            claims=tuple(self._claims(vouching, leads)),
            findings=tuple(self._findings()),
        )

    def _source_sections(self) -> set[int]:
        """The flows under a heading that says that sources are listed there."""
        under: set[int] = set()
        level = 0
        for number, flow in enumerate(self.flows):
            if flow.kind is FlowKind.HEADING and flow.level:
                if not level or flow.level <= level:
                    said = self.text[flow.lines[0][0] : flow.lines[-1][1]]
                    level = flow.level if is_source_heading(said) else 0
            elif level:
                under.add(number)
        return under

    def _read(self) -> None:
        """Cuts the flows into sentences and says what each is."""
        bare = {(one.start, one.end) for one in self.found.references if self._is_address(one)}
        blanks = sorted({*bare, *self.found.wanted, *self.found.numerals})
        starts = [start for start, _ in blanks]
        counted = note_numbers(self.text, self.flows)
        path: list[tuple[int, str]] = []
        section: tuple[str, ...] = ()
        listing = -1  # the block that lists sources because the one before it says so
        for number, flow in enumerate(self.flows):
            edges = flow.lines[0][0], flow.lines[-1][1]
            if flow.kind is FlowKind.CODE:
                self.shown.append(None)
                self._block(*edges, Reason.CODE)
            else:
                near = blanks[bisect_left(starts, edges[0]) : bisect_left(starts, edges[1])]
                shown = show(self.text, flow, near, counted)
                self.shown.append(shown)
                if flow.kind is FlowKind.HEADING:
                    self._block(*edges, Reason.HEADING)
                    self.headers = {tuple(flow.lines): tuple(shown.said(*line) for line in flow.lines)}
                    if flow.level:
                        _descend(path, flow.level, shown.said(*edges))
                else:
                    ended = self._read_flow(number, shown, path, listed=flow.block == listing)
                    following = self.flows[number + 1].block if number + 1 < len(self.flows) else -1
                    listing = following if ended else listing
            if len(path) != len(section) or (path and path[-1][1] is not section[-1]):
                section = tuple(said for _, said in path)
            self.sections.append(section)

    def _read_flow(self, number: int, shown: Shown, path: list[tuple[int, str]], *, listed: bool) -> bool:
        """Whether the flow ends by saying that sources follow."""
        flow = self.flows[number]
        row = flow.kind is FlowKind.ROW
        spans = [
            (start, end)
            for start, end in (
                [(flow.lines[0][0], flow.lines[-1][1])] if row else split_sentences(shown, flow.label)
            )
            if _LETTER.search(shown.read, start - shown.start, end - shown.start)
        ]
        stops = [*(start for start, _ in spans[1:]), flow.lines[-1][1]]
        words = [shown.said(*span) for span in spans]
        refers = self._refers(flow.lines[0][0], flow.lines[-1][1])
        listed = listed or number in self.found.listing
        may_cite = refers or listed or flow.kind is FlowKind.NOTE
        kinds = [
            (may_cite or ":" in said or self.text[span[0]] in "*_")
            and self._cites(number, shown, span, stop, said, listed=listed)
            for span, stop, said in zip(spans, stops, words, strict=False)
        ]
        for index in range(len(spans) - 2, -1, -1):  # "Sources: A, B." before a line of their addresses
            if kinds[index + 1] and not kinds[index] and names_sources(words[index]):
                kinds[index] = not asserts(words[index].partition(":")[2])
        ended = False
        for span, sources, said in zip(spans, kinds, words, strict=True):
            ended = sources and (said.endswith(":") or is_source_heading(said)) and span == spans[-1]
            reason = None
            if not sources and is_bold(self.text[slice(*span)]) and _is_title(flow, said):
                reason = Reason.HEADING
                _descend(path, _BOLD_LEVEL, said)
            elif not sources:
                reason = reason_for(said, cites=refers and self._refers(*span))
            if not sources:
                self._block(*span, reason)
                if reason is None:
                    self.claims.append(len(self.sentences))
            if reason is not Reason.HEADING:
                self.sentences.append(Sentence(*span, number, sources))
                self.words.append(said if flow.kind is not FlowKind.ROW else self._row(flow, shown))
        return ended and not self._refers(spans[-1][0], flow.lines[-1][1])

    def _cites(  # noqa: PLR0911  (one for each shape)
        self, number: int, shown: Shown, span: Span, stop: int, said: str, *, listed: bool
    ) -> bool:
        """Whether a sentence only says where something is from. `stop` is where the next one begins."""
        flow = self.flows[number]
        refers = self._refers(span[0], stop)
        if flow.kind is FlowKind.ROW:
            return False
        if listed:
            whole = self._refers(flow.lines[0][0], flow.lines[-1][1]) or flow.label.isdecimal()
            if (whole or not (asserts(said) or self._tells(flow, said))) and flow.lines[-1][1] - flow.lines[
                0
            ][0] <= _LONGEST_ENTRY:
                return True
        if names_sources(said):
            _, _, rest = said.partition(":")
            return not rest.strip() or (
                refers and (not asserts(rest) or is_source_heading(said.partition(":")[0]))
            )
        if len(said) < _LONGEST_HEADING and is_bold(self.text[slice(*span)]) and is_source_heading(said):
            return True
        if flow.kind is FlowKind.NOTE and not (asserts(said) or self._tells(flow, said)):
            return True
        if not refers:
            return False
        if _LETTER.search(shown.bare_words(*span).replace(LINKED, "")) is None:
            return not tells(said) and (len(said.split()) < _FEW_WORDS or not asserts(said))
        return is_label(said)

    def _tells(self, flow: Flow, said: str) -> bool:
        """Whether a sentence says what is the case, and is no part of the entry of a source."""
        start, end = flow.lines[0][0], flow.lines[-1][1]
        return tells(said) and not is_entry(self.text[start : min(end, start + _LONGEST_ENTRY)])

    def _refers(self, start: int, end: int) -> bool:
        return bisect_left(self.places, start) < bisect_left(self.places, end)

    def _is_address(self, reference: Reference) -> bool:
        """Whether a reference stands as an address, which is no words."""
        return "://" in reference.target and self.text.startswith(reference.target, reference.start)

    def _block(self, start: int, end: int, reason: Reason | None) -> None:
        self.blocks.append(Block(start, end, BlockKind.EXEMPT if reason else BlockKind.CLAIM, reason))

    def _filled(self) -> Iterator[Block]:
        """The blocks with what lies between them, which is markup."""
        at = 0
        for block in self.blocks:
            if at < block.start:
                yield Block(at, block.start, BlockKind.MARKUP)
            yield block
            at = block.end
        if at < len(self.text):
            yield Block(at, len(self.text), BlockKind.MARKUP)

    def _leads(self) -> dict[int, int]:
        """For each list or table the paragraph before it that leads in to it, by the number of its flow."""
        leads: dict[int, int] = {}
        for number, flow in enumerate(self.flows[1:], 1):
            before, shown = self.flows[number - 1], self.shown[number - 1]
            if (
                flow.block != before.block
                and flow.kind in (FlowKind.ITEM, FlowKind.ROW, FlowKind.HEADING)
                and (flow.kind is not FlowKind.HEADING or not flow.level)
                and before.kind is FlowKind.PARAGRAPH
                and shown is not None
                and shown.read.rstrip("*_ ").endswith(":")
            ):
                leads[flow.block] = number - 1
        return leads

    def _claims(self, vouching: dict[int, list[Reference]], leads: dict[int, int]) -> Iterator[DocumentClaim]:
        last = {
            sentence.flow: self.words[number]
            for number, sentence in enumerate(self.sentences)
            if not sentence.sources
        }
        wanted = self._wanted()
        for number in self.claims:
            sentence = self.sentences[number]
            lead = leads.get(self.flows[sentence.flow].block)
            yield DocumentClaim(
                start=sentence.start,
                end=sentence.end,
                text=self.words[number],
                section=self.sections[sentence.flow],
                lead="" if lead is None else last.get(lead, ""),
                references=tuple(vouching.get(number, ())),
                marked=wanted.get(number, ""),
            )

    def _row(self, flow: Flow, shown: Shown) -> str:
        """A row of a table, told with the names of its columns."""
        names = self.headers.get(flow.header, ())
        cells = []
        for index, cell in enumerate(flow.lines):
            said = shown.said(*cell)
            name = names[index] if index < len(names) else ""
            if said:
                cells.append(f"{name}: {said}" if name else said)
        return "; ".join(cells)

    def _wanted(self) -> dict[int, str]:
        """The sentences for which their writer asks for a source: the sign stands in them or behind them."""
        starts = [sentence.start for sentence in self.sentences]
        marked: dict[int, str] = {}
        for start, end in self.found.wanted:
            number = bisect_left(starts, start + 1) - 1
            if number >= 0:
                marked[number] = self.text[start:end]
        return marked

    def _findings(self) -> list[Finding]:
        found = self.found
        spans = [
            (Slip.DANGLING, reference.start, reference.end)
            for reference in found.references
            if reference.dangling
        ]
        entries = [entry for entry in found.entries.values() if not entry.used]
        spans += ((Slip.UNUSED, entry.start, entry.end) for entry in (*entries, *found.repeated))
        spans += (
            (Slip.UNUSED, definition.start, definition.end)
            for definition in self.layout.definitions
            if not definition.used
        )
        spans += ((Slip.CITATION_NEEDED, start, end) for start, end in found.wanted)
        return [
            Finding(slip, start, end, self.text[start:end].strip())
            for slip, start, end in sorted(spans, key=lambda span: span[1:])
        ]


def _read_as_words(text: str, flow: Flow) -> None:
    """Takes a heading that is a sentence for what it is: a line of signs under a paragraph makes one of it."""
    if flow.kind is FlowKind.HEADING:
        shown = show(text, flow, ())
        if flow.level and tells(shown.said(flow.lines[0][0], flow.lines[-1][1])):
            flow.kind, flow.level = FlowKind.PARAGRAPH, 0
        elif not flow.level and any(tells(shown.said(*cell)) for cell in flow.lines):
            flow.kind = FlowKind.ROW


def _descend(path: list[tuple[int, str]], level: int, said: str) -> None:
    """Goes to a heading: it ends those of its level and below."""
    while path and path[-1][0] >= level:
        path.pop()
    path.append((level, said.rstrip(":")))


def _is_title(flow: Flow, said: str) -> bool:
    """Whether words in bold are a heading that was not marked as one: they end no sentence, and no verb makes them
    one."""
    return flow.kind is FlowKind.PARAGRAPH and said[-1:] not in (".", "!", "?") and not asserts(said)
