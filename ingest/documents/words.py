"""The words of a flow as they are split into sentences: as long as what stands in the document, so that places hold,
with everything that nobody reads as words blanked out."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from vouchgate.ingest.data import read_data
from vouchgate.ingest.documents.classify import asserts
from vouchgate.ingest.documents.layout import Flow, FlowKind, LineEnds, Mark, MarkKind
from vouchgate.ingest.documents.types import Span
from vouchgate.ingest.language.sentences import sentences

_WRAPPED = 45  # characters; a shorter line was ended by its writer, as for the splitter of sentences
_WIDTH = 72  # characters; what would have made a line longer than that may have been put on the next
_OPEN_END = re.compile(
    r"\b(?:a|an|and|are|as|at|by|for|from|in|is|of|on|or|see|that|the|to|with|our|its|their|this)\Z"
)
_FIRST = re.compile(r"\W{0,20}(\w)\S*")
_OWN_LINE = re.compile(
    r"(?:[-*+]\s|[•#|>●▪‣◦]|\(?\d{1,3}[.)]\s|[a-zA-Z]\)\s|\*\*[^*\n]{1,100}(?:\*\*:?|:\*\*)\s*$)",
    re.MULTILINE,
)
_BOLD = re.compile(r"\s*(\*\*|__)(?!\s)[^*_\n]{1,200}?(?:\1\s*:?|:\1)\s*\Z")
_BULLET = re.compile(r"[•●▪‣◦∙⁃](?<!\S.)(?=\s|\w)")
_DIGIT_STOP = re.compile(r"\d[.)]\s")
_NUMBER = re.compile(r"(?<!\S)\(?(\d{1,3})[.)](?=\s+\S)")
_ITEM_NUMBER = re.compile(r"\(?(\d{1,3})[.)]\s")
_LAST_WORD = re.compile(r"\w+\Z")
# Words that a number behind them belongs to.
_HAS_NUMBER = frozenset(read_data("documents.toml")["before_numbers"])
_NOTE_NUMBER = re.compile(
    r"([1-9]\d{0,2})|[⁰¹²³⁴-⁹]{1,3}|#\d{1,7}|\\?\[?\^?[1-9]\d{0,2}(?:\s?[,;–-]\s?[1-9]\d{0,2})*\\?\]?"
)
_BEFORE_NOTE = re.compile(r"(?:<sup>|\^|\[)\s*\Z", re.IGNORECASE)
# What says something between brackets, and is no name of a source: a value, words around one, a denial.
_SAYS = re.compile(
    r"(?!#)[^A-Za-z]*\d[^A-Za-z]*\Z|(?!(?:1\d|20)\d\d\b)[~≈<>$€£+-]?\d[\d.,]*+(?![\w-])|(?:not|never|no)\b"
    r"|[a-z].*\b(?:in|by|at|since|until|to|than|about|over|under|nearly|only)\s\W?\d"
)
_COMMIT = re.compile(r"`?\d{7,40}`?")  # whose id happens to have no letter
_ASKS = re.compile(r"(?:wh(?:at|y|ere|en|o|ich)|how)\b")  # begins what is a title
_SOURCES = re.compile(r"(?<=[.!?)\]])\s+(?=(?:\w+ )?(?:Sources?|References?):)")
_EMPHASIS = re.compile(r"[*_~]+")
_CITING_ONLY = re.compile(
    r"[(\[](?=[^()\[\]\x01]*+\x01)(?:[\s,;&\x01\x02]|and\b|see\b|also\b|e\.g\.|cf\.|source:|sources:)*+[)\]]",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"[(\[][\s,;&\x02]*+[)\]]")
_ORPHAN = re.compile(
    r"\s++(?=\x02*+[.,;:!?](?:\s|\Z))"
)  # the space before a mark that stood behind a reference
_ENDING = re.compile(r"[.!?;:\n]")
BLANK = "\x02"  # stands for what nobody reads as words
LINKED = "\x01"  # stands for the words of a link in `Shown.bare`


@dataclass(frozen=True, slots=True)
class Shown:
    """A flow as text. All three begin at `start` of the document and are as long as the flow in it: `read` is what a
    reader reads, `split` the same with nothing in code that could end a sentence, `bare` without the words of links."""

    start: int
    read: str
    split: str
    bare: str
    bounds: tuple[int, ...]  # offsets at which a sentence ends whatever the words say
    opened: dict[int, int]  # for the first word of a link, where the link begins
    closed: dict[int, int]  # for the end of its words, where it ends

    def said(self, start: int, end: int) -> str:
        """The words between two places of the document, on one line and without marks of emphasis."""
        piece = self.read[start - self.start : end - self.start]
        if BLANK in piece:
            if "(" in piece or "[" in piece:
                piece = _EMPTY.sub(" ", piece)
            if f" {BLANK}" in piece:
                piece = _ORPHAN.sub("", piece)
            piece = piece.replace(BLANK, "")
        if "*" in piece or "_" in piece or "~" in piece:
            piece = _EMPHASIS.sub(_unless_text, piece)
        return " ".join(piece.split())

    def bare_words(self, start: int, end: int) -> str:
        """What is left there without references and the words of links."""
        return self.bare[start - self.start : end - self.start]


def note_numbers(text: str, flows: Iterable[Flow]) -> frozenset[int]:
    """The numbers that stand alone on links: those of notes are counted from 1."""
    links = (mark for flow in flows for mark in flow.marks if mark.kind is MarkKind.LINK)
    numbers = (_NOTE_NUMBER.fullmatch(text, *mark.shown) for mark in links)
    return frozenset(int(number[1]) for number in numbers if number is not None and number[1])


def show(text: str, flow: Flow, references: Sequence[Span], counted: AbstractSet[int] = frozenset()) -> Shown:
    """The words of a flow, without the references at those places. A link keeps its words, but for the number of a
    note; `counted` are the numbers on links of the document."""
    start, end = flow.lines[0][0], flow.lines[-1][1]
    if len(flow.lines) == 1 and not flow.marks and not references:
        words = text[start:end]
        return Shown(start, words, words, words, (), {}, {})
    gaps = [(before[1], after[0]) for before, after in zip(flow.lines, flow.lines[1:], strict=False)]
    breaks = sorted(mark.start for mark in flow.marks if mark.kind is MarkKind.BREAK)
    bounds = [place - start for place in breaks]
    blanks: list[tuple[int, int, str]] = [(first, last, BLANK) for first, last in references]
    for number, (first, last) in enumerate(gaps):
        kept = " "
        if flow.kind is FlowKind.ROW:
            bounds.append(first - start)
        elif flow.ends is LineEnds.PLAIN and not _goes_on(text, flow.lines[number], flow.lines[number + 1]):
            kept = "\n"
        if flow.ends is LineEnds.SHORT and _ends(text, flow.lines[number], flow.lines[number + 1]):
            bounds.append(first - start)
        if first < last:
            blanks.append((first, last, kept))
    code: list[Span] = []
    linked: list[Mark] = []
    for mark in flow.marks:
        if mark.kind is MarkKind.LINK and _is_note(text, mark, counted):
            blanks.append((mark.start, mark.end, BLANK))
        else:
            _blank_mark(mark, blanks, code, linked)
    read = _blanked(text, start, end, blanks) if blanks else text[start:end]
    bare = _covered(read, start, [mark.shown for mark in linked], LINKED) if linked else read
    citing = list(_citing(text, start, bare, linked)) if linked else []
    if citing:
        read = _blanked(read, 0, len(read), [(first, last, BLANK) for first, last in citing])
        bare = _covered(bare, 0, [(first + 1, last - 1) for first, last in citing], LINKED)
    split = read.replace(BLANK, " ")
    quiet = [
        (first - start, last - start, _ENDING.sub("_", split[first - start : last - start]))
        for first, last in code
        if _ENDING.search(split, first - start, last - start)
    ]
    if quiet:
        split = _blanked(split, 0, len(split), quiet)
    links = [mark for mark in flow.marks if mark.kind is MarkKind.LINK]
    return Shown(
        start,
        read,
        split,
        bare,
        tuple(sorted(set(bounds))),
        {mark.shown[0]: mark.start for mark in links},
        {mark.shown[1]: mark.end for mark in links},
    )


def _citing(text: str, start: int, bare: str, links: list[Mark]) -> Iterator[Span]:
    """Where brackets stand that only name sources, by places in the flow."""
    saying = sorted(link.start for link in links if _says(text[slice(*link.shown)].strip()))
    for match in _CITING_ONLY.finditer(bare):
        following = bisect_left(saying, start + match.start())
        if following == len(saying) or saying[following] >= start + match.end():
            yield match.span()


def _says(words: str) -> bool:
    """Whether the words of a link between brackets say more than what the source is called."""
    return _SAYS.match(words) is not None or (
        words[:1].islower() and _ASKS.match(words) is None and asserts(words)
    )


def _is_note(text: str, mark: Mark, counted: AbstractSet[int]) -> bool:
    """Whether a link is the sign or the number of a note, and no word of its sentence: it stands between brackets or
    above the line, or it is one that the document counts up to, behind no word that takes a number ("in 3")."""
    shown = text[slice(*mark.shown)].strip()
    if not any(character.isalnum() for character in shown):
        return True
    if _COMMIT.fullmatch(shown) and shown.strip("`") in mark.target:
        return True
    number = _NOTE_NUMBER.fullmatch(shown)
    if number is None:
        return False
    short = text[mark.start : mark.end] == f"[{shown}]"  # its target stands elsewhere
    if number[1] is None or short or _BEFORE_NOTE.search(text, max(mark.start - 10, 0), mark.start):
        return True
    word = _LAST_WORD.search(text[max(mark.start - 30, 0) : mark.start].rstrip())
    takes = (
        word is not None and word[0].lower() in _HAS_NUMBER and word[0].lower() not in ("and", "or", "see")
    )
    return not takes and (number[1] == "1" or int(number[1]) - 1 in counted)


def _blank_mark(mark: Mark, blanks: list[tuple[int, int, str]], code: list[Span], linked: list[Mark]) -> None:
    match mark.kind:
        case MarkKind.LINK:
            blanks += ((mark.start, mark.shown[0], BLANK), (mark.shown[1], mark.end, BLANK))
            linked.append(mark)
        case MarkKind.BREAK:
            blanks.append((mark.start, mark.end, " "))
        case MarkKind.HIDDEN:
            sign = " " if mark.target.isspace() else mark.target if mark.target.isprintable() else ""
            blanks.append((mark.start, mark.end, sign or BLANK))
        case MarkKind.CODE:
            code.append((mark.start, mark.end))


def _unless_text(match: re.Match[str]) -> str:
    """Nothing for a mark of emphasis; the sign itself between two letters, between two spaces, or alone as `~`."""
    signs, text = match[0], match.string
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    if len(signs) > 1 and (signs[0] != "_" or not (before.isalnum() and after.isalnum())):
        return ""
    within = before.isalnum() and after.isalnum()
    apart = not before.strip() and not after.strip()
    return signs if signs == "~" or within or apart else ""


def is_bold(line: str) -> bool:
    """Whether a line is nothing but words in bold: a heading that was not marked as one."""
    return line[-1:] in ("*", "_", ":") and _BOLD.match(line) is not None


def split_sentences(shown: Shown, label: str = "") -> Iterator[Span]:
    """Where the sentences of a flow stand in the document, without the bullets and numbers before them. `label` is the
    number of the item that the flow is."""
    text = shown.split
    cuts: list[tuple[int, int]] = [(bound, bound) for bound in shown.bounds]
    if not text.isascii():
        cuts += (match.span() for match in _BULLET.finditer(text))
    if "ource" in text or "eference" in text:
        cuts += ((match.end(), match.end()) for match in _SOURCES.finditer(text))
    cuts += _numbers(text, shown.bounds, int(label) if label.isdecimal() else 0)
    at = 0
    if not cuts:
        opened, closed, base = shown.opened, shown.closed, shown.start
        for start, end in sentences(text, None):
            yield opened.get(base + start, base + start), closed.get(base + end, base + end)
        return
    for first, last in [*sorted(cuts), (len(text), len(text))]:
        if first < at:
            continue
        for start, end in sentences(text[at:first], None):
            begin, stop = shown.start + at + start, shown.start + at + end
            yield shown.opened.get(begin, begin), shown.closed.get(stop, stop)
        at = last


def _numbers(text: str, bounds: tuple[int, ...], listed: int) -> Iterator[Span]:
    """The numbers of a list that runs on in the text ("1. Mix. 2. Bake."), or that begin a line. `listed` is the number
    of the item before."""
    stop = _DIGIT_STOP.search(text)
    if stop is None:
        return
    found = list(_NUMBER.finditer(text, max(stop.start() - len("(12"), 0)))
    begins = {0, *bounds}
    may = [_may_list(text[max(match.start() - 20, 0) : match.start()]) for match in found]
    for index, match in enumerate(found):
        number = int(match[1])
        first = match.start()
        while first and first not in begins and match.start() - first < 8 and text[first - 1].isspace():
            first -= 1
        leads = number == 1 and index + 1 < len(found) and found[index + 1][1] == "2" and may[index + 1] > 0
        counts = listed > 0 and number == listed + 1 and may[index] >= (1 if listed > 1 else 2)
        begun = first in begins and (not first or number in (1, listed + 1) or may[index] > 2)
        if begun or counts or (leads and may[index] >= (3 if match[0][-1] == ")" else 2)):
            listed = number
            yield match.span()


def _may_list(before: str) -> int:
    """How well a number may begin an item, by what stands before it: 3 behind what ends a sentence or leads in, 2
    behind a word, 1 behind one that takes a number itself ("in 2.", "Part 2."), 0 in a row ("1. oak, 2. pine").
    """
    before = before.rstrip()
    if before[-1:] in ".!?:;)":
        return 3
    word = _LAST_WORD.search(before)
    last = word[0].lower() if word else ""
    if before[-1:] == "," or last in ("and", "or"):
        return 0
    return 1 if last in _HAS_NUMBER else 2


def _goes_on(text: str, line: Span, following: Span) -> bool:
    """Whether a line begins with the number that ends the sentence of the line before."""
    number = _ITEM_NUMBER.match(text, *following)
    return number is not None and not numbers_item(text[line[0] : line[1]], int(number[1]))


def numbers_item(before: str, number: int) -> bool:
    """Whether a number at the begin of a line is that of an item, and not the end of the sentence in the line before:
    it is the first, or follows that of the line, or what ends a sentence or leads in stands before it."""
    listed = _ITEM_NUMBER.match(before)
    return (
        number == 1
        or (listed is not None and number == int(listed[1]) + 1)
        or _may_list(before.rstrip("*_")) > 2
    )


def _ends(text: str, line: Span, following: Span) -> bool:
    """Whether a line that the format would join to the next was ended by its writer."""
    after = text[following[0] : following[1]]
    if (number := _ITEM_NUMBER.match(after)) is not None:
        return numbers_item(text[line[0] : line[1]], int(number[1]))
    if _OWN_LINE.match(after) or is_bold(text[line[0] : line[1]]):
        return True
    length = line[1] - line[0]
    if length >= _WRAPPED or _OPEN_END.search(text, line[0], line[1]):
        return False
    first = _FIRST.match(after)
    return first is None or (length + len(first[0]) < _WIDTH and not first[1].islower())


def _blanked(text: str, start: int, end: int, blanks: list[tuple[int, int, str]]) -> str:
    """The text from `start` to `end` with spans replaced, each by as many characters; of two that overlap the first
    counts. What is shorter than its span is filled up: a space or line end with spaces, all else with BLANK."""
    pieces: list[str] = []
    at = start
    for first, last, sign in sorted(blanks):
        first, last = max(first, at), min(last, end)  # noqa: PLW2901
        if first < last:
            kept = sign[: last - first]
            pieces += (text[at:first], kept, (" " if kept.isspace() else BLANK) * (last - first - len(kept)))
            at = last
    pieces.append(text[at:end])
    return "".join(pieces)


def _covered(text: str, start: int, spans: list[Span], sign: str) -> str:
    pieces: list[str] = []
    at = 0
    for first, last in sorted(spans):
        left, right = max(first - start, at), min(last - start, len(text))
        if left < right:
            pieces += (text[at:left], sign * (right - left))
            at = right
    pieces.append(text[at:])
    return "".join(pieces)
