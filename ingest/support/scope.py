"""What a claim says of a source: the sentences that cite it, without the citing.

"Fixed in commit a1b2c3d" says nothing that the commit could be held against; "Fixed the login time-out in commit
a1b2c3d" says something. A sentence that only points ("See ADR-003.") speaks for the one beside it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.statements import Statement, statements
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.language.terms import Kind, Word, term_key, words_of
from vouchgate.ingest.language.written import written_out
from vouchgate.ingest.support.clauses.acts import ACTS

# The word before or after a place, and what may stand between it and the citation.
_BEFORE = re.compile(r"([A-Za-z]+)[\s,:;(\[\"'“‘<*_`–—-]{0,8}\Z")
_AFTER = re.compile(r"[\s,:;)\]\"'”’>*_`–—-]{0,8}\b([A-Za-z]+)")
# ", as decided in": by itself "decided" says something.
_AS_DONE = re.compile(
    r"\bas (?:it (?:is|was) )?(?:agreed|chosen|decided|defined|established|laid down|outlined|required|ruled"
    r"|set (?:out|forth)|written(?: down)?)\s{0,3}(?:on )?\Z",
    re.IGNORECASE,
)
_EDGES = re.compile(r"[\s,:;)\]>*_`–—-]{0,8}")
# Where in it: ", section 6", "§ 4.2", "pp. 3-5"; not "section 6 forbids", which says something of that.
_WHERE = re.compile(
    r"[\s,;]{1,3}(?:(?:sections?|sect?\.|chapters?|pages?|pp?\.|paragraphs?|lines?|appendix|annex)\s{1,2}|§{1,2}\s?)"
    r"\d[\d.]{0,10}(?:\s?(?:-|–|and|to)\s?\d[\d.]{0,10})?(?=\s*(?:[,;:)\]]|\.(?:\s|\Z)|\Z))",
    re.IGNORECASE,
)
# "#12 is closed" says how the cited thing is; "Closed in #12" does not.
_PREDICATE = re.compile(
    r"[)\]\"'”’*_`]{0,3}\s{1,3}(?:is|are|was|were|has|have|had)(?:n['’]t)?\b", re.IGNORECASE
)
_STATES_FROM = 2  # telling words from which on a sentence that cites something says something of it
_REACH = 40  # characters looked at for the next word of a citing phrase
_MOST_WORDS = 8  # of a citing phrase on one side
# Letters that stand alone, and signs that may be letters in disguise (circled, squared, Braille, flags): words made of
# them are no words to the rules. More of them than a formula or some pictographs have.
_ALONE = re.compile(r"(?<![\w'’])[^\W\d_aAI](?!\w)")
_DISGUISED = 8
# What became of a thing, where nothing is cited beside it that could be the change: "The decision was changed."
_CHANGED = re.compile(
    r"\b(?:is|are|was|were|been|got)\s+(?:\w+\s+)?(?:changed|updated|closed|resolved|fixed|undone|done)\b",
    re.IGNORECASE,
)
# What is cited so does not say what the claim says.
_CONTRARY = re.compile(
    r"\b(?:despite|unlike|contrary to|in spite of|against|ignoring|violat\w{1,4}|contradict\w{0,4})"
    r"\s+(?:in\s+|the\s+)?[(\[\"'`*_]*\Z",
    re.IGNORECASE,
)
_DENYING_SIGN = re.compile(r"!=+|=/=|[≠¬∉∄⊄∅≢]")
# What a reader sees struck out, or does not see; in code it may be what is spoken of.
_MARKED = re.compile(
    r"<!--|(?<![~\w`])~~(?=[^\s~`])|</?(?:del|s|strike)\b[^<>]{0,200}>|<[a-z]{1,10}\s[^<>`]{0,300}=[^<>`]{0,300}>",
    re.IGNORECASE,
)
_CODE = re.compile(r"(`+)[^`]{1,500}\1")
_BOXES = range(0x2500, 0x2600)  # lines and shapes, of which trees and tables are drawn


@dataclass(frozen=True, slots=True)
class Scope:
    """What is held against one source. `text` is the claim with all else blanked out, so that its offsets are those of
    the claim as sent."""

    text: str
    sentences: tuple[tuple[int, int], ...]  # those that say something
    disguised: bool = False  # the claim is written in a way that its words cannot be told

    @property
    def empty(self) -> bool:
        """Whether there is nothing to hold against the source."""
        return not self.sentences


def scope_of(claim: str, citations: Sequence[Citation]) -> Scope:
    """What the claim says of the source that `citations` name. Linear; never raises.

    When the text cites nothing else, or one of `citations` was given beside the text, that is the whole claim. Else it
    is the sentences which cite the source, each that only points replaced by the nearest one that says something,
    before it if there is one.
    """
    cited = detect_citations(claim)
    text = _without_citing(claim, cited)
    parts = sentences(claim)
    stated = [c.end for c in cited if c.end is not None and _PREDICATE.match(claim, c.end)]
    telling = [
        _says_something(text[start:end], of_citation=_any_within(stated, start, end)) for start, end in parts
    ]
    keys = {citation.key for citation in citations}
    others = any(citation.key not in keys for citation in cited)
    if not keys or not others or any(citation.start is None for citation in citations):
        chosen = {index for index, tells in enumerate(telling) if tells}
    else:
        starts = [citation.start for citation in cited if citation.key in keys and citation.start is not None]
        chosen = _told_by(parts, telling, starts)
    kept = tuple(parts[index] for index in sorted(chosen))
    return Scope(_only(text, kept), kept, _is_disguised(text))


@dataclass(frozen=True, slots=True)
class Said:
    """What a claim says, without its citing. `text` has the offsets of the claim as sent; `pointing` are the sentences
    that say nothing beyond what they cite: "See ADR-003", "Fixed in a1b2c3d", "See https://… for the API"."""

    text: str
    statements: tuple[Statement, ...]
    pointing: tuple[tuple[int, int], ...]
    disguised: bool
    pictures: tuple[tuple[int, int], ...] = ()  # runs of signs that are no words and say something: emoji


def said_by(claim: str) -> Said:
    """What a claim says of all that it cites. Linear; never raises."""
    cited = detect_citations(claim)
    as_sent = _without_citing(claim, cited)
    text = written_out(as_sent)
    stated = [c.end for c in cited if c.end is not None and _PREDICATE.match(claim, c.end)]
    places = [citation.start for citation in cited if citation.start is not None]
    pointing = []
    for start, end in sentences(claim, None):
        part = text[start:end]
        words = list(words_of(part))
        of_citation = _any_within(stated, start, end)
        cites = _any_within(places, start, end) and not of_citation
        empty = CITING.pointing if of_citation or _has_predicate(part, words) else CITING.empty
        telling = sum(_tells(word, empty) for word in words)
        changed = not cites and not of_citation and _CHANGED.search(part) is not None
        denies = changed or any(word.kind is Kind.FUNCTION and _tells(word, CITING.empty) for word in words)
        if not denies and telling < (_STATES_FROM if cites else 1) and not _ALONE.search(text, start, end):
            pointing.append((start, end))
    told = statements(claim, text)
    turned = any(_CONTRARY.search(claim[max(0, start - _REACH) : start]) for start in places)
    return Said(text, told, tuple(pointing), turned or _is_disguised(as_sent), tuple(_pictures(as_sent)))


def _has_predicate(part: str, words: Sequence[Word]) -> bool:
    """Whether it is told what a thing with a name of its own is, has or does: "secrets are read on each request", not
    "this was fixed", nor "the parser is defined" in what it cites."""
    named, told = False, 0
    for word in words:
        if named and (told or part[word.start : word.end].lower() in ACTS.auxiliary):
            told += 1
        named = named or (word.kind is not Kind.FUNCTION and _tells(word, CITING.empty))
    return told - 1 >= _STATES_FROM


def _pictures(text: str) -> Iterator[tuple[int, int]]:
    """Runs of signs that are no words and yet say something, to a reader and to a model. A box and a degree do not."""
    yield from (match.span() for match in _DENYING_SIGN.finditer(text))
    if text.isascii():
        return
    start = -1
    for at, sign in enumerate((*text, " ")):
        if _is_picture(sign):
            start = at if start < 0 else start
        elif start >= 0:
            yield start, at
            start = -1


def _is_picture(sign: str) -> bool:
    return (
        sign > "\x7f" and ord(sign) not in _BOXES and sign not in "©®°" and unicodedata.category(sign) == "So"
    )


def _is_disguised(text: str) -> bool:
    signs = 0
    if ("<" in text or "~~" in text) and _MARKED.search(_CODE.sub(" ", text)):
        return True
    if not text.isascii():
        signs = sum(map(_is_picture, text))
    return signs + len(_ALONE.findall(text)) > _DISGUISED


def _told_by(parts: Sequence[tuple[int, int]], telling: Sequence[bool], starts: Sequence[int]) -> set[int]:
    """The sentences that stand for citations at `starts`, which are in order."""
    before: list[int | None] = []
    last: int | None = None
    for index, tells in enumerate(telling):
        last = index if tells else last
        before.append(last)
    after: list[int | None] = []
    following: int | None = None
    for index in range(len(telling) - 1, -1, -1):
        following = index if telling[index] else following
        after.append(following)
    after.reverse()
    chosen: set[int] = set()
    at = 0
    for start in starts:
        while at + 1 < len(parts) and parts[at + 1][0] <= start:
            at += 1
        told = before[at] if before[at] is not None else after[at]
        if told is not None:
            chosen.add(told)
    return chosen


def _any_within(places: Sequence[int], start: int, end: int) -> bool:
    """Whether one of the places, which are in order, lies between two."""
    at = bisect_left(places, start)
    return at < len(places) and places[at] < end


def _says_something(text: str, *, of_citation: bool) -> bool:
    """Whether words are left that a source could speak of, once the citing is taken out. What is said of the cited
    thing itself counts whatever it is."""
    return any(_tells(word, CITING.pointing if of_citation else CITING.empty) for word in words_of(text))


def _tells(word: Word, empty: frozenset[str]) -> bool:
    if word.kind is Kind.FUNCTION:
        return word.key in CITING.denials or word.key.endswith("n't")
    return word.key not in empty


def _without_citing(claim: str, cited: Sequence[Citation]) -> str:
    """The claim with every citation, and the words that lead to it or on from it, blanked out."""
    pieces: list[str] = []
    done = 0
    for citation in cited:
        if citation.start is None or citation.end is None:
            continue
        start = max(done, _back(claim, done, citation.start))
        end = _forth(claim, citation.end)
        pieces += (claim[done:start], " " * (end - start))
        done = end
    pieces.append(claim[done:])
    return "".join(pieces)


def _back(claim: str, floor: int, start: int) -> int:
    """Where the words that lead to a citation at `start` begin."""
    for _ in range(_MOST_WORDS):
        match = _BEFORE.search(claim, max(floor, start - _REACH), start)
        if match is None or match[1].lower() not in CITING.before:
            break
        start = match.start(1)
    if (done := _AS_DONE.search(claim, max(floor, start - _REACH), start)) is not None:
        start = done.start()
    if start > floor and claim[start - 1] in "([":
        start -= 1
    return start


def _forth(claim: str, end: int) -> int:
    """Where the words that lead on from a citation end, the comma or bracket behind it included."""
    for _ in range(_MOST_WORDS):
        match = _AFTER.match(claim, end, min(len(claim), end + _REACH))
        if match is None or match[1].lower() not in CITING.after:
            break
        end = match.end(1)
    where = _WHERE.match(claim, end)
    end = where.end() if where else end
    edge = _EDGES.match(claim, end)
    return edge.end() if edge else end


def _only(text: str, kept: Sequence[tuple[int, int]]) -> str:
    """The text with everything outside the kept stretches blanked out."""
    pieces: list[str] = []
    done = 0
    for start, end in kept:
        pieces += (" " * (start - done), text[start:end])
        done = end
    return "".join((*pieces, " " * (len(text) - done)))


@dataclass(frozen=True, slots=True)
class _Citing:
    """The lists of `[citing]` in `support.toml`; `empty`, `of_itself` and `pointing`, which is `before` again, go by
    key."""

    before: frozenset[str]
    after: frozenset[str]
    empty: frozenset[str]
    pointing: frozenset[str]
    denials: frozenset[str]
    of_itself: frozenset[str]


def _load() -> _Citing:
    raw = read_data("support.toml")["citing"]
    return _Citing(
        before=frozenset(raw["before"]),
        after=frozenset(raw["after"]),
        empty=frozenset(map(term_key, raw["empty"])),
        pointing=frozenset(map(term_key, raw["before"])),
        denials=frozenset(raw["denials"]),
        of_itself=frozenset(map(term_key, raw["of_itself"])),
    )


# A constant read once from the package's own data file.
CITING = _load()
