"""Where the quotations of a claim stand in a source: those given with a citation, and those in an address
(`#:~:text=`).

A quotation stands in a text when all its words and signs do, one after the other. White space, marks of emphasis, the
kind of quote, dash and ellipsis, the case of its first letter and the marks around it are typography; all else is
what the source says. Text and quotation are cut into pieces once, and looked up in linear time.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple
from urllib.parse import unquote

from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Quoted
from vouchgate.ingest.language.normalise import INVISIBLE
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.language.words import RUN_OR_CHARACTER
from vouchgate.ingest.support.record import SPEAKING, Record

LEAST_WORDS = 5  # of a quotation: fewer stand in many a text by chance
MOST = 40  # quotations of a claim that are looked up; of the rest it cannot be found out
_LEAST_PIECE = 3  # words of each of the two places that a quotation is stitched together from
_MOST_PLACES = 20  # at which the same words stand, of which one in the record's own word is looked for
_LONGEST_RANGE = 4_000  # characters from `start` to `end` of a text directive
_PIECE = re.compile(
    r"[^\W_]+(?:_+[^\W_]+|(?<=[0-9])[.,:](?=[0-9])[^\W_]+)*|\.\.\.|[-–—‑‒−]{1,3}|[^\w\s*`~>#|\\"
    rf"{INVISIBLE}]"
)
_SIGNS = dict.fromkeys('“”„‟«»‘’‚"', "'") | {"…": "..."}
_DASHES = "-–—‑‒−"
_AROUND = frozenset(".,;:!?'()[]-") | {"..."}
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S[^\n]{0,200})", re.MULTILINE)
_SECTION = 5_000  # characters before a quotation among which the heading over it is looked for


class Quotation(NamedTuple):
    """Words that a claim says stand in what `citation` names. Of a text directive, `directive` is true, `before` and
    `after` are what has to stand around them, and `end` what they go on to."""

    citation: Citation
    text: str
    directive: bool = False
    before: str = ""
    after: str = ""
    end: str = ""

    @property
    def short(self) -> bool:
        """Whether it has too few words to show anything. A directive only says where to look."""
        return not self.directive and len(RUN_OR_CHARACTER.findall(self.text)) < LEAST_WORDS


def quotations_of(citations: Sequence[Citation]) -> tuple[Quotation, ...]:
    """The quotations of a claim, in the order of its citations."""
    found: list[Quotation] = []
    for citation in citations:
        if citation.quote.strip():
            found.append(Quotation(citation, citation.quote))
        if citation.type == CitationType.URL and ":~:" in citation.value:
            found += _directives(citation)
    return tuple(found)


def _directives(citation: Citation) -> Iterator[Quotation]:
    """`text=[prefix-,]start[,end][,-suffix]`, as browsers read it."""
    for directive in citation.value.partition("#")[2].partition(":~:")[2].split("&"):
        name, _, value = directive.partition("=")
        parts = value.split(",")
        if name != "text" or not value:
            continue
        before = unquote(parts.pop(0)[:-1]) if len(parts) > 1 and parts[0].endswith("-") else ""
        after = unquote(parts.pop()[1:]) if len(parts) > 1 and parts[-1].startswith("-") else ""
        start, *rest = parts
        yield Quotation(citation, unquote(start), True, before, after, unquote(",".join(rest)))


class Folded:
    """A text cut into pieces, and the way back."""

    def __init__(self, text: str) -> None:
        self.blank = not text.strip()
        self._spans = [match.span() for match in _PIECE.finditer(text)]
        pieces = [_fold(text[start:end]) for start, end in self._spans]
        self._text = f" {' '.join(pieces)} "
        self._at = list(accumulate((len(piece) + 1 for piece in pieces), initial=1))[
            :-1
        ]  # where each begins there

    def places(
        self, pieces: Sequence[str], after: int = 0, *, exact: bool = False
    ) -> Iterator[tuple[int, int]]:
        """The runs of pieces that are these, as the number of the first and one after the last, from the piece
        `after` on; at most _MOST_PLACES. The first letter may be in the other case, unless they are to be `exact`."""
        if not pieces or after >= len(self._at):
            return
        first = pieces[0]
        ways = {first} if exact else {first, first[:1].swapcase() + first[1:]}
        wanted = [" ".join((way, *pieces[1:])) for way in ways]
        for _ in range(_MOST_PLACES):
            hits = [self._text.find(f" {each} ", self._at[after] - 1) for each in wanted]
            hit = min((each for each in hits if each >= 0), default=None)
            if hit is None:
                return
            at = bisect_left(self._at, hit + 1)
            yield at, at + len(pieces)
            after = at + 1
            if after >= len(self._at):
                return

    def has(self, pieces: Sequence[str], *, exact: bool = False) -> bool:
        """Whether these stand somewhere."""
        return next(self.places(pieces, exact=exact), None) is not None

    def origin(self, first: int, last: int) -> tuple[int, int]:
        """Offsets in the text of a run of pieces."""
        return self._spans[first][0], self._spans[last - 1][1]


def _fold(piece: str) -> str:
    """A word as it is; one sign for all of its kind."""
    return "-" if piece[0] in _DASHES else _SIGNS.get(piece, piece)


def _pieces(text: str, *, trim: bool = False) -> list[str]:
    plain = unicodedata.normalize("NFC", text)
    pieces = [_fold(piece) for piece in _PIECE.findall(plain)]
    if trim:
        while pieces and pieces[-1] in _AROUND:
            pieces.pop()
        while pieces and pieces[0] in _AROUND and not (pieces[0] == "-" and pieces[1][:1].isdigit()):
            del pieces[0]
    return pieces


def look_up(
    found: Found, folded: Callable[[], Folded], record: Record | None, quotations: Sequence[Quotation]
) -> tuple[Quoted, ...]:
    """The quotations of a claim in a source whose text is `folded`: each of its own, and each of another source that
    it has. Linear in the text for every quotation."""
    if not quotations:
        return ()
    text = folded()
    title = Folded(found.title)
    cut = found.cut or text.blank
    told = []
    for number, quotation in enumerate(quotations[:MOST]):
        own = quotation.citation.key == found.citation.key
        quoted = _quoted(number, quotation, text, title, record, cut=cut, own=own)
        if own or quoted.found in ("there", "title"):
            told.append(quoted)
    return tuple(told)


def _quoted(
    number: int,
    quotation: Quotation,
    folded: Folded,
    title: Folded,
    record: Record | None,
    *,
    cut: bool,
    own: bool,
) -> Quoted:
    places = [folded.origin(*run) for run in _runs(quotation, folded)]
    if places:
        if record is None:
            return Quoted(number=number, found="there", place=places[0])
        parts = [record.part_at(start) for start, _ in places]
        at = next((at for at, part in enumerate(parts) if part in SPEAKING), 0)
        weighed = "" if parts[at] in SPEAKING else parts[at].value
        return Quoted(number=number, found="there", place=places[at], part=weighed)
    pieces = _pieces(quotation.text, trim=not quotation.directive)
    if title.has(pieces):
        return Quoted(number=number, found="title")
    if own and not quotation.directive and _stitched(quotation.text, pieces, folded):
        return Quoted(number=number, found="stitched")
    return Quoted(number=number, found="unread" if cut else "missing")


def _runs(quotation: Quotation, folded: Folded) -> Iterator[tuple[int, int]]:
    """Where it stands, as runs of pieces."""
    if not quotation.directive:
        yield from folded.places(_pieces(quotation.text, trim=True))
        return
    before, start = _pieces(quotation.before), _pieces(quotation.text)
    end, after = _pieces(quotation.end), _pieces(quotation.after)
    for first, last in folded.places([*before, *start, *([] if end else after)] if start else []):
        begin = first + len(before)
        if not end:
            yield begin, last - len(after)
            continue
        closing = next(folded.places([*end, *after], last), None)
        if closing is not None:
            stop = closing[1] - len(after)
            opened, closed = folded.origin(begin, stop)
            yield begin, stop if closed - opened <= _LONGEST_RANGE else last


def _stitched(text: str, pieces: list[str], folded: Folded) -> bool:
    """Whether it is put together from two places, each with some words in a row: where an ellipsis says so, or where
    the longest beginning that stands somewhere and the longest such end make up the whole."""
    for sign in ("…", "...", "[…]"):
        parts = [_pieces(part, trim=True) for part in text.split(sign)]
        parts = [part for part in parts if part]
        if len(parts) > 1 and all(len(part) >= _LEAST_PIECE and folded.has(part) for part in parts):
            return True
    count = len(pieces)
    if count < 2 * _LEAST_PIECE:
        return False
    beginning = _longest(count, lambda size: folded.has(pieces[:size]))
    ending = _longest(count, lambda size: folded.has(pieces[count - size :], exact=True))
    return beginning >= _LEAST_PIECE and ending >= _LEAST_PIECE and beginning + ending >= count


def _longest(count: int, stands: Callable[[int], bool]) -> int:
    """The most pieces of which it is so; what stands with more stands with fewer."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if stands(middle) else (low, middle - 1)
    return low


def stretches(
    text: str, quoted: Sequence[Quoted], quotations: Sequence[Quotation], key: str
) -> Iterator[tuple[int, int, str]]:
    """The places of the source's own quotations that may vouch, each widened to whole sentences and their neighbours,
    with the heading over it."""
    parts: list[tuple[int, int]] | None = None
    for one in quoted:
        quotation = quotations[one.number]
        if one.place is None or one.part or quotation.short or quotation.citation.key != key:
            continue
        parts = sentences(text) if parts is None else parts
        starts = [start for start, _ in parts]
        first = max(0, bisect_left(starts, one.place[0] + 1) - 1)
        last = max(first, bisect_left(starts, one.place[1]) - 1)
        start, end = parts[max(0, first - 1)][0], parts[min(len(parts) - 1, last + 1)][1]
        headings = _HEADING.findall(text, max(0, start - _SECTION), start)
        yield start, end, headings[-1] if headings else ""
