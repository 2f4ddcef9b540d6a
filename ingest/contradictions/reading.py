"""A claim or a passage as sentences of words, with what stands for each word and where it was written.

Sentences are told apart on the bare words first. Of a passage only those are read further that can have to do with a
claim: that has a word which may be one of the claim's, or a number where the claim has one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from vouchgate.ingest.contradictions.lists import LISTS, root_of
from vouchgate.ingest.contradictions.sentence import LABELS, Reading, Sentence, Word, is_identifier
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.language.words import COMPOUND, COUNTED, TOKEN
from vouchgate.ingest.language.written import written_out

_ENDERS = frozenset(".!?")
_RANGE = re.compile(r"(\d{1,3}(?:\.\d+)?)-(\d{1,5}(?:\.\d+)?)$")
_JOINTS = re.compile(r"[^\w]+")
_NUMBERED = re.compile(r"(?:gh|bpo|bz|bug|#)-?\d+")
_PLURAL = re.compile(r"[a-z]{2}(?:s|ing)$")  # of a word with a capital letter: one that begins a sentence
_SUBJECT_LINE = 8  # words of a subject line in which a fault is named
_LONGEST_SUBJECT = 24  # words of a subject line
_LONGEST_WORD = 64  # characters of a word of which is kept what it says
MAX_WORDS = 20_000  # of a text; twice what a claim and a passage of the largest sizes can have


def _word(text: str, start: int, end: int, *, opens: bool) -> Word:
    says = _says if len(text) <= _LONGEST_WORD else _says_anew
    low, root, key, content, name, number = says(text, opens)
    # Past the constructor, which takes as long as all the rest.
    return tuple.__new__(Word, (text, low, root, key, start, end, content, name, number))


def _says_anew(text: str, opens: bool) -> tuple[str, str, str, bool, bool, bool]:
    """What a word says wherever it is written: `low`, `root`, `key`, `content`, `name` and `number` of it."""
    low = text.lower().replace("’", "'")
    if low in LISTS.function_roots and not text.isupper():
        root = LISTS.function_roots[low]
        number, name = low in LISTS.numbers, text[0].isupper() and not opens
        return low, root, LISTS.stems.get(root, root), False, name, number
    if not low[-1].isalnum() and not any(map(str.isalnum, low)):
        return low, "", "", False, False, False
    number = low[0].isdigit() or low in LISTS.numbers
    identifier = is_identifier(text) and not low.endswith(("'s", "n't"))
    name = identifier or (text[0].isupper() and not opens)
    content = not low.endswith("n't") and (
        low not in LISTS.function_words or (identifier and not text.isupper())
    )
    root = root_of(low.removesuffix("()"))
    return low, root, LISTS.stems.get(root, root), content, name, number


_says = lru_cache(maxsize=1 << 14)(_says_anew)  # most words come again and again


def _parts(match: re.Match[str], *, opens: bool) -> list[Word]:
    """The word or words that one match stands for: a compound is its parts, a number is parted from its unit."""
    text, start, end = match.group(), match.start(), match.end()
    if text.isalpha():
        return [_word(text, start, end, opens=opens)]
    counted = COUNTED.fullmatch(text)
    if counted and counted[2].lower() in LISTS.units:
        cut = start + len(counted[1])
        return [
            _word(counted[1].rstrip(".,"), start, cut, opens=opens),
            _word(counted[2], end - len(counted[2]), end, opens=False),
        ]
    span = _RANGE.match(text)
    if span:
        cut = start + len(span[1])
        return [
            _word(span[1], start, cut, opens=opens),
            _word("-", cut, cut + 1, opens=False),
            _word(span[2], cut + 1, end, opens=False),
        ]
    if (
        COMPOUND.fullmatch(text)
        and text.lower() not in LISTS.groups
        and text.lower() not in LISTS.states
        and root_of(text.lower()) not in LISTS.opposites
    ):
        parts, at = [], start
        for part in text.split("-"):
            parts.append(_word(part, at, at + len(part), opens=opens))
            at += len(part) + 1
        return parts
    return [_word(text, start, end, opens=opens)]


@dataclass(frozen=True)
class Interest:
    """What a sentence of a passage must have to be read for a claim: the beginning of one of its words, or a number."""

    heads: tuple[frozenset[str], frozenset[str], frozenset[str]]  # of two, three and four letters
    numbers: bool

    @classmethod
    def of(cls, claim: Reading) -> Interest:
        """Every form of a word begins with its stem, but for the last letter of a short one."""
        keys = {word.key for sentence in claim.sentences for word in sentence.words if word.content}
        roots = {root for key in keys for root in LISTS.alike.get(key, (key,))}
        heads: tuple[set[str], set[str], set[str]] = (set(), set(), set())
        for root in roots:
            size = min(4, max(2, len(root) - 1))
            heads[size - 2].add(root[:size])
        numbers = any(word.number for sentence in claim.sentences for word in sentence.words)
        return cls((frozenset(heads[0]), frozenset(heads[1]), frozenset(heads[2])), numbers)

    def meets(self, lows: Sequence[str]) -> bool:
        """Whether a sentence of these words is one to read."""
        if lows[0] in LABELS:
            return True
        joined = [low for low in lows if len(low) > 3 and not low.isalnum()]
        words = [*lows, *(part for low in joined for part in _JOINTS.split(low) if part)]
        if any(
            not heads.isdisjoint([word[:size] for word in words]) for size, heads in enumerate(self.heads, 2)
        ):
            return True
        return self.numbers and any(_is_number(word) for word in lows)


def _is_number(low: str) -> bool:
    return low[0].isdigit() or low in LISTS.numbers or low in LISTS.months


def _parted(text: str, found: Sequence[re.Match[str]], lows: Sequence[str]) -> list[tuple[int, int, str]]:
    """The sentences: first word, the one after the last, and the section. Headings part them too, and so does the end
    of a subject line that the text runs on after."""
    parts: list[tuple[int, int, str]] = []
    begin, section, subject = 0, "", _subject_end(found, lows)
    starts = [start for start, _ in sentences(text, longest=None)]
    at = 0  # how many of them have begun

    def close(index: int) -> None:
        nonlocal begin
        if any(lows[place][0].isalnum() or len(lows[place]) > 2 for place in range(begin, index)):
            parts.append((begin, index, section))
            begin = index

    for index, match in enumerate(found):
        begun = at
        while at < len(starts) and starts[at] <= match.start():
            at += 1
        heading = (
            LISTS.tense.sections.get(lows[index])
            if match.group()[0].isupper() and lows[index + 1 : index + 2] == [":"]
            else None
        )
        if index == subject or heading is not None or at > begun:
            close(index)
        section = section if heading is None else heading
    close(len(found))
    return parts


def _subject_end(found: Sequence[re.Match[str]], lows: Sequence[str]) -> int:
    """Where the text goes on after a subject line without a mark between: at a small word with a capital letter."""
    if not _is_subject(found, lows):
        return -1
    for index in range(2, min(len(found), _LONGEST_SUBJECT)):
        text, before = found[index].group(), lows[index - 1]
        if lows[index - 1] in _ENDERS:
            return -1
        after = found[index + 1].group() if index + 1 < len(found) else ""
        if not text[0].isupper() or text[1:2].isupper() or not (before[-1].isalnum() or before in ")`"):
            continue
        plain = _PLURAL.search(text) and not before[0].isdigit() and text.lower() not in LISTS.groups
        noun = plain and before not in LISTS.function_words and before not in LISTS.tense.commands
        again = lows[index] in lows[:index] and before not in LISTS.function_words
        if lows[index] in LISTS.tense.openers or again or (noun and after[:1].islower()):
            return index
    return -1


def _is_subject(found: Sequence[re.Match[str]], lows: Sequence[str]) -> bool:
    """Whether a text begins as a change does: "parser: accept …", "Add a flag …", "… (#123)"."""
    if not found:
        return False
    first = found[0].group()
    prefixed = ":" in lows[1:5] and not first.istitle() and lows[0] not in LISTS.references
    numbered = any(_NUMBERED.fullmatch(low) for low in lows[:2])
    return prefixed or numbered or lows[0] in LISTS.tense.commands


def _faults(parts: list[tuple[int, int, str]], lows: Sequence[str]) -> list[tuple[int, int, str]]:
    """The sentences of a change with those marked that tell of the fault: what stands between the subject line and an
    order that mends it ("Treat it as text."), unless it says that it is so now."""
    orders = [
        index for index, (begin, _, _) in enumerate(parts) if index and lows[begin] in LISTS.tense.commands
    ]
    if not orders:
        return parts
    return [
        (begin, end, "then" if 0 < index < orders[-1] and not LISTS.new.within(lows[begin:end]) else section)
        for index, (begin, end, section) in enumerate(parts)
    ]


def read(text: str, interest: Interest | None = None, *, message: bool = True) -> Reading:
    """A text as sentences; with an interest, those that meet it. `message` says that it may be what was written of a
    change, and tell how things were before that. Linear; never raises."""
    text = written_out(text)
    found = list(islice(TOKEN.finditer(text), MAX_WORDS))
    lows = [match.group().lower().replace("’", "'") for match in found]
    parts = _parted(text, found, lows)
    change = message and _is_subject(found, lows)
    if change:
        parts = _faults(parts, lows)
    sentences = [
        _sentence(found[begin:end], section)
        for begin, end, section in parts
        if interest is None or interest.meets(lows[begin:end])
    ]
    all_lows = {low for sentence in sentences for low in sentence.lows}.union(lows)
    subject = lows[parts[0][0] : parts[0][1]][:_SUBJECT_LINE] if parts else []
    repairs = message and (LISTS.repair.within(lows) or LISTS.fault.within(subject))
    return Reading(tuple(sentences), frozenset(all_lows), repairs, change)


def _sentence(found: Sequence[re.Match[str]], section: str) -> Sentence:
    words: list[Word] = []
    opens = True  # no word of the sentence has been read
    for match in found:
        read_now = _parts(match, opens=opens)
        opens = opens and not any(word.key for word in read_now)
        words.extend(read_now)
    return Sentence(_named(words), section)


def _named(words: list[Word]) -> tuple[Word, ...]:
    """The words with names of several words made one: "United States" is no state."""
    if not any(word.low in LISTS.names.by_head for word in words):
        return tuple(words)
    lows = [word.low for word in words]
    found: list[Word] = []
    index = 0
    while index < len(words):
        name = LISTS.names.at(lows, index)
        if name is None:
            found.append(words[index])
            index += 1
            continue
        first, last = words[index], words[index + name[0] - 1]
        found.append(
            Word(first.text, name[1], name[1], LISTS.key(name[1]), first.start, last.end, True, True, False)
        )
        index += name[0]
    return tuple(found)
