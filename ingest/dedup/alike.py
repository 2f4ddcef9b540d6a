"""Which of several waiting claims a person can rule on as one: those of one template, and wordings of one claim.

Only what a person would call the same question at a glance. Of a *template*, each claim is about another thing ("Ticket
4711 was closed by Ann"): all of them hold or none does. *Wordings* say the same in other words, and one of them says
all that the others say. Claims about the same thing with different values are neither: only one of them can hold. When
in doubt they stay apart, which costs a key; a wrong pair would cost a memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise

from vouchgate.ingest.contradictions.lists import LISTS, root_of
from vouchgate.ingest.dedup.compare import Comparisons
from vouchgate.ingest.dedup.rewording import Rewriter
from vouchgate.ingest.dedup.slot_words import WORDS
from vouchgate.ingest.dedup.subject import subject_of
from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.language.words import MARKED_AS_CODE

Span = tuple[int, int]

LEAST = 3  # claims of a template, and words that all of them share: two that differ in a value may exclude each other
NEAR = Fraction(
    3, 5
)  # of the words of content, in two wordings: four words of which one is left out have 3/4
_FULL = 400  # characters; what is longer is read by itself
_SPACED = re.compile(r"\S+")
_SENTENCE = re.compile(r"[.!?](?=\s)")
_EDGE = "\"'`“”‘’„«»([{}])*.,;:!?…"
_VALUE = ""  # in the place of a word that looks like a value: no word is empty
# Words after which the roles are told. With those of the first kind the same can be said the other way round: "the
# depot ships orders", "orders ship from the depot".
_TURNING = frozenset({"from", "by", "of"})
_LEADING = _TURNING | {
    *("to", "into", "onto", "before", "after", "until", "over", "under", "above", "below", "against"),
}  # fmt: skip
# Words that say how, how often or whether: exchanged or left out, they make another claim.
_TELLING = WORDS.negations | WORDS.modals | WORDS.every | WORDS.only | frozenset(WORDS.often) | {
    *("if", "unless", "when", "while", "during", "once", "more", "less", "most", "least", "some", "all", "or"),
}  # fmt: skip


class Likeness(StrEnum):
    """What makes claims one row."""

    TEMPLATE = "template"
    WORDINGS = "wordings"


@dataclass(frozen=True, slots=True)
class Alike:
    """Claims to be ruled on as one, by their places in what was asked; of wordings the one first that says most.
    `differs` is where each of them differs from the others, for a template."""

    likeness: Likeness
    members: tuple[int, ...]
    differs: tuple[tuple[Span, ...], ...]


@dataclass(frozen=True, slots=True)
class _Read:
    """A text in words. `shape` has _VALUE for each word that looks like a value."""

    text: str
    words: tuple[str, ...]
    spans: tuple[Span, ...]
    shape: tuple[str, ...]


def find_alike(claims: Sequence[tuple[Hashable, str]], words: ValueWords) -> list[Alike]:
    """The claims that belong together, each in one group at most. Each comes with a key: only those with the same key
    are compared. For a page's worth: wordings are compared in pairs. Never raises."""
    buckets: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, (key, text) in enumerate(claims):
        if len(text) <= _FULL:
            buckets[key].append(place)
    found: list[Alike] = []
    for places in buckets.values():
        read = {place: _read(claims[place][1], words) for place in places}
        # Wordings first: claims of one template each of which was sent in four wordings are no template.
        for find in (_wordings, _templates):
            for alike in find(read, words):
                found.append(alike)
                for place in alike.members:
                    del read[place]
    return found


def _read(text: str, words: ValueWords) -> _Read:
    found, spans, shape = [], [], []
    opens = True
    for match in _SPACED.finditer(text):
        core = match[0].strip(_EDGE)
        if core:
            low = core.lower()
            name = core[0].isupper() and not (opens and low in words.openers)
            valued = name or any(map(str.isnumeric, core)) or MARKED_AS_CODE.search(core) is not None
            start = match.start() + match[0].index(core)
            found.append(low)
            spans.append((start, start + len(core)))
            shape.append(_VALUE if valued else low)
        opens = match[0].rstrip("\"'”’)]").endswith((".", "!", "?", ":"))
    return _Read(text, tuple(found), tuple(spans), tuple(shape))


# --- templates --------------------------------------------------------------------------------------------------------


def _templates(read: dict[int, _Read], words: ValueWords) -> Iterator[Alike]:
    """The largest first: a text may be of two, for one word that looks like no value may differ as well."""
    shapes: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, one in read.items():
        shapes[one.shape].append(place)
        for at, word in enumerate(one.shape):
            if word != _VALUE:
                shapes[(*one.shape[:at], _VALUE, *one.shape[at + 1 :])].append(place)
    for places in sorted(shapes.values(), key=lambda places: (-len(places), places)):
        if len(places) < LEAST or not read.keys() >= set(places):  # what is found is taken out of `read`
            continue
        texts = [read[place] for place in places]
        size = len(texts[0].words)
        slots = [at for at in range(size) if len({one.words[at] for one in texts}) > 1]
        if (
            slots
            and size - len(slots) >= max(LEAST, len(slots))
            and _of_different_things(texts, slots, words)
        ):
            differs = tuple(tuple(one.spans[at] for at in slots) for one in texts)
            yield Alike(Likeness.TEMPLATE, tuple(places), differs)


def _of_different_things(texts: Sequence[_Read], slots: Sequence[int], words: ValueWords) -> bool:
    """Whether each text is about another thing, by what stands before its verb. Where that cannot be told, by its first
    value, unless one of two neighbours excludes the other."""
    rewriter, subjects = Rewriter(words), set()
    for one in texts:
        sentence = rewriter.read(_SENTENCE.split(one.text, maxsplit=1)[0])
        subject = subject_of(rewriter.units(sentence, sentence.exact))
        if subject is None:
            break
        subjects.add(subject)
    else:
        return len(subjects) == len(texts)
    if len({one.words[slots[0]] for one in texts}) < len(texts):
        return False
    return not any(
        Comparisons(one.text, NEAR, words).contradicted(other.text) for one, other in pairwise(texts)
    )


# --- wordings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Said:
    """What a text says: its words of content in order, what qualifies them, its names and numbers, and what follows
    each word of direction."""

    content: tuple[str, ...]
    all: frozenset[str]
    telling: tuple[str, ...]
    values: tuple[str, ...]
    led: dict[str, frozenset[str]]


def _said(read: _Read) -> _Said:
    content: list[str] = []
    telling, values = [], []
    led: defaultdict[str, list[str]] = defaultdict(list)
    leading = ""
    for at, (word, shape) in enumerate(zip(read.words, read.shape, strict=True)):
        if word in _LEADING:
            leading = word
        elif word in _TELLING or word.endswith("n't"):
            telling.append(word)
        elif word in LISTS.function_words:
            leading = "" if led.get(leading) else leading
        else:
            root = root_of(word)
            content.append(root)
            if leading:
                led[leading].append(root)
            if shape == _VALUE and (at or not word.isalpha()):
                values.append(root)
    leads = {word: frozenset(roots) for word, roots in led.items()}
    return _Said(
        tuple(dict.fromkeys(content)), frozenset(content), tuple(sorted(telling)), tuple(values), leads
    )


def _wordings(read: dict[int, _Read], words: ValueWords) -> Iterator[Alike]:
    """Each with the one that says most of them."""
    said = {place: _said(one) for place, one in read.items()}
    left = sorted(said, key=lambda place: (-len(said[place].all), place))
    while left:
        first, *left = left
        same = [p for p in left if _same(said[first], said[p]) and _agree(read[first], read[p], words)]
        if same:
            yield Alike(Likeness.WORDINGS, (first, *sorted(same)), ((),) * (len(same) + 1))
            left = [place for place in left if place not in same]


def _same(full: _Said, other: _Said) -> bool:
    """Whether the first says all that the other says, with the same values and in the same roles."""
    ours, theirs = full.all, other.all
    if not theirs <= ours or len(theirs) < LEAST or len(theirs) < NEAR * len(ours):
        return False
    if full.telling != other.telling or _of(full.values, other.values) != _of(other.values, full.values):
        return False
    for word in full.led.keys() | other.led.keys():
        one, two = full.led.get(word), other.led.get(word)
        if one and two:
            if one.isdisjoint(two):
                return False
        elif word not in _TURNING or (
            word != "of" and (other if one else full).content[0] not in (one or two or ())
        ):
            return False
    led = frozenset[str]().union(*full.led.values(), *other.led.values())
    return _in_order(
        [w for w in full.content if w in theirs - led], [w for w in other.content if w not in led]
    )


def _of(some: Sequence[str], others: Sequence[str]) -> list[str]:
    return [one for one in some if one in others]


def _in_order(ours: list[str], theirs: list[str]) -> bool:
    """Whether the words stand in the same order, but for two neighbours: "returned bowls", "bowls that were returned".
    Whoever does something to something stands further from it."""
    apart = [at for at, (one, two) in enumerate(zip(ours, theirs, strict=True)) if one != two]
    return not apart or (len(apart) == 2 and apart[1] == apart[0] + 1)


def _agree(one: _Read, other: _Read, words: ValueWords) -> bool:
    """Whether no rule knows that only one of them can be true."""
    compared = Comparisons(one.text, NEAR, words)
    if sorted(one.words) == sorted(other.words) and compared.changed(other.text):
        return False
    return not compared.contradicted(other.text)
