"""A claim as the units in which it can differ from another one, with harmless differences taken away.

Contractions are written out, phrases and synonyms of the audited lists brought to one form, "5ms" and "well-known"
taken apart, plurals and British spellings folded, small words left out. Two claims whose units are equal in
order say the same; every other difference is one that nobody has called harmless (ADR-0007).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.language.words import COMPOUND, COUNTED, MARKED_AS_CODE, split_words, word_list

# A word of two letters that stands twice is a slip ("to to"); longer ones may be two ("the cache caches").
_SLIP = 2
_EDGE = "\"'`“”‘’„«»([{}])*"
_COMMAS = (",", ";", "、", "،")
_STOPS = (".", "!", "?", ":", "。", "؟", "।")


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing a claim says. Two units say the same when their keys are equal."""

    key: str
    shown: str  # as written
    firm: bool = False  # a number, identifier or name, and so no verb
    joined: bool = False  # "and" stands before it
    article: bool = False  # another small word stands before it
    comma: bool = False  # a comma stands after it
    ends: bool = False  # a sentence ends after it


@dataclass(frozen=True, slots=True)
class _Word:
    """A normalised word, and what its surroundings say about it."""

    text: str
    shown: str
    exact: bool
    firm: bool
    comma: bool
    ends: bool


def _is_exact(shown: str, raw: str, *, opens_sentence: bool) -> bool:
    """Whether a word is a number, an identifier or a name by its looks. The first word of a sentence is a name
    only if it is one further on."""
    if any(character.isnumeric() for character in shown) or MARKED_AS_CODE.search(raw):
        return True
    return shown[:1].isupper() and not opens_sentence


def _words(text: str, words: ValueWords) -> list[_Word]:
    """The words of a text with what stands around them. A text without words is one firm word, itself."""
    found: list[_Word] = []
    opens_sentence = True
    for raw in text.split():
        if raw.isascii() and raw.isalpha() and raw.islower():
            found.append(_Word(raw, raw, False, False, False, False))
            opens_sentence = False
            continue
        core = raw.rstrip(_EDGE)
        ends, comma = core.endswith(_STOPS), core.endswith(_COMMAS)
        shown = raw.strip(_EDGE).rstrip(".,;:!?…") or raw
        exact = _is_exact(shown, raw, opens_sentence=opens_sentence)
        parts = split_words(raw)
        for index, part in enumerate(parts, 1):
            firm = exact or (shown[:1].isupper() and part not in words.openers)
            last = index == len(parts)
            found.append(
                _Word(part, shown if len(parts) == 1 else part, exact, firm, last and comma, last and ends)
            )
        if parts:
            opens_sentence = ends
        elif found and (ends or comma):  # a lone full stop ends what stands before it
            found[-1] = replace(found[-1], comma=comma, ends=ends or found[-1].ends)
            opens_sentence = opens_sentence or ends
    return found or [_Word(word, word, True, True, False, False) for word in word_list(text)]


def _parts(text: str, exact: frozenset[str], words: ValueWords) -> tuple[str, ...]:
    """The words that one word is made of."""
    if text.isalpha():
        return (text,)
    if text.endswith("n't") and len(text) > 3:
        return text[:-3], "not"
    counted = COUNTED.fullmatch(text)
    if counted and counted[2] in words.unit_names:
        return counted[1], counted[2]
    if COMPOUND.fullmatch(text) and text not in exact:
        return tuple(text.split("-"))
    return (text,)


def _written_out(
    found: list[_Word], exact: frozenset[str], words: ValueWords
) -> Iterator[tuple[str, _Word, bool]]:
    """Each word after rewriting, the word it was written as, and whether it is the last one of that."""
    at = 0
    while at < len(found):
        word = found[at]
        rules = words.rewrites.get(word.text, ())
        if not rules and word.text.isalpha():
            yield word.text, word, True
            at += 1
            continue
        taken, parts = 1, None
        for left, right in rules:
            if tuple(w.text for w in found[at : at + len(left)]) == left:
                taken, parts = len(left), right
                break
        if parts is None:
            parts = _parts(word.text, exact, words)
        last = found[at + taken - 1]
        if taken > 1:
            shown = " ".join(w.shown for w in found[at : at + taken])
            word = replace(last, shown=shown)
        for index, part in enumerate(parts):
            yield part, word, index == len(parts) - 1
        at += taken


def _units(found: list[_Word], exact: frozenset[str], words: ValueWords) -> list[Unit]:
    units: list[Unit] = []
    joined = article = False
    before = ""
    for text, word, last in _written_out(found, exact, words):
        if text in words.droppable:
            joined, article = joined or text in words.joining, text not in words.joining
            if units and last and (word.comma or word.ends):
                units[-1] = replace(units[-1], comma=True, ends=units[-1].ends or word.ends)
            before = text
            continue
        key = words.synonyms.get(text, text) if text in exact else words.key(text)
        ends, comma = last and word.ends, last and word.comma
        if text == before and len(text) <= _SLIP and text.isalpha() and text not in words.carriers:
            units[-1] = replace(units[-1], comma=comma, ends=ends)
        else:
            units.append(Unit(key, word.shown, word.firm, joined, article, comma, ends))
        joined, article, before = False, False, text
    return units


def units_of(claim: str, other: str, words: ValueWords) -> tuple[list[Unit], list[Unit]]:
    """Both texts as units. What is a name or an identifier in one of them is none the less one in the other,
    so that the case of a letter alone never makes a difference."""
    ours, theirs = _words(claim, words), _words(other, words)
    exact = frozenset(word.text for word in ours + theirs if word.exact)
    return _units(ours, exact, words), _units(theirs, exact, words)
