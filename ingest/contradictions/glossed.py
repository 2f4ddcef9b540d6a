"""Where two texts of one language other than English cannot both be true (ADR-0070).

A text is read with its small words as the English ones that say the same: "Der Dienst speichert keine Namen" is "dienst
speichert not namen". Told is by negation, modality, quantifiers, numbers and opposites, where all else is equal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from vouchgate.ingest.contradictions.lists import LISTS, root_of
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.languages import Language, load_languages, spoken
from vouchgate.ingest.language.normalise import composed
from vouchgate.ingest.language.terms import is_plain_english

_ENDING = 2  # letters in which two forms of a word may differ
_LEAST = 3  # letters that they share
_GROUPED = re.compile(r"\d{1,3}(?:[., \u00a0]\d{3})+")
_SEPARATORS = str.maketrans("", "", "., \u00a0")


class GlossKind(StrEnum):
    """What a word does in a sentence."""

    NEGATION = "negation"
    MODALITY = "modality"
    QUANTIFIER = "quantifier"
    SMALL = "small"  # says nothing by itself
    NUMBER = "number"
    WORD = "word"  # all else: what the sentence is about


class GlossWord(NamedTuple):
    """A word by its English meaning where the language's file has one, and as it is written."""

    key: str
    shown: str
    kind: GlossKind


def glossed(text: str, language: Language) -> list[GlossWord]:
    """The words of a text in order that say something, in small letters. Linear; never raises."""
    pattern, meanings = language.glossary
    found = []
    for match in pattern.finditer(composed(text).text.lower()):
        shown = key = " ".join(match.group().split())
        if match.lastgroup == "form":
            key = meanings[shown]
        elif shown[0].isdigit():
            key = shown.translate(_SEPARATORS) if _GROUPED.fullmatch(shown) else shown.replace(",", ".")
        kind = _KINDS.get(key) or (GlossKind.NUMBER if key[0].isdigit() else GlossKind.WORD)
        if kind is not GlossKind.SMALL and match.lastgroup != "ending":
            found.append(GlossWord(_SAME.get(key, key), shown, kind))
    return found


def contradicted_in_another_language(claim: str, earlier: str) -> tuple[str, ...]:
    """The words in which only one of two texts can be true, as written, the claim's first; empty for English, and when
    no rule tells. Meant for short texts that share most words; never raises."""
    theirs = _spoken_in(earlier) if (ours := _spoken_in(claim)) else {}
    for name, language in ours.items():
        if name in theirs and (changed := excluding(glossed(claim, language), glossed(earlier, language))):
            return changed
    return ()


def _spoken_in(text: str) -> dict[str, Language]:
    told = () if is_plain_english(text) else spoken(composed(text).text, load_languages())
    return {one.name: one for *_, those in told for one in those}


def excluding(ours: Sequence[GlossWord], theirs: Sequence[GlossWord]) -> tuple[str, ...]:
    """The same of two texts word by word."""
    both, negation = (ours, theirs), GlossKind.NEGATION
    denials = [[word for word in words if word.kind is negation] for words in both]
    one, two = (Counter(word.key for word in words if word.kind is not negation) for words in both)
    if not one & two:
        return ()
    mine, others = one - two, two - one
    left = [word for word in ours if word.key in mine and not _has_form_of(word.key, others)]
    right = [word for word in theirs if word.key in others and not _has_form_of(word.key, mine)]
    kinds = {word.kind for word in (*left, *right)}
    if bool(denials[0]) != bool(denials[1]):
        told = kinds <= {GlossKind.QUANTIFIER}
    else:
        of_one_kind = kinds in ({GlossKind.MODALITY}, {GlossKind.QUANTIFIER})
        single = len(left) == len(right) == 1
        told = bool(left and right) and (of_one_kind or (single and _exclude(left[0], right[0])))
    shown = (*denials[0], *left, *denials[1], *right)
    return tuple(dict.fromkeys(word.shown for word in shown)) if told else ()


def _has_form_of(word: str, others: Counter[str]) -> bool:
    """Whether another form of a word is among the others: "usam" and "usa"."""
    for other in others if word.isalpha() else ():
        least = max(_LEAST, min(len(word), len(other)) - 1, max(len(word), len(other)) - _ENDING)
        if other.isalpha() and word[:least] == other[:least]:
            return True
    return False


def _exclude(one: GlossWord, other: GlossWord) -> bool:
    """Whether two words are numbers, opposites, or two of one group such as the days of the week."""
    left, right = root_of(one.key), root_of(other.key)
    opposed = right in LISTS.opposites_of(left) or left in LISTS.opposites_of(right)
    numbers = one.kind is other.kind is GlossKind.NUMBER
    return numbers or opposed or LISTS.groups.get(one.key) == LISTS.groups.get(other.key) is not None


# A constant read once from the package's own data file.
_LISTS = read_data("language.toml")
_KINDS = {word: GlossKind(kind) for kind, words in _LISTS["gloss"].items() for word in words}
_SAME = {word: group[0] for group in _LISTS["same_gloss"] for word in group}
