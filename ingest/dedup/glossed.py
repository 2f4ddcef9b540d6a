"""Where two memories of one language other than English cannot both be true: told by negation, modality, quantifiers,
numbers and opposites alone, and only where all else is the same (ADR-0070)."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from vouchgate.ingest.dedup.rewording import Unit
from vouchgate.ingest.dedup.slot_words import WORDS
from vouchgate.ingest.language.gloss import GlossKind, GlossWord, glossed
from vouchgate.ingest.language.languages import Language, Languages, load_languages

# Words that say the same of how much and of what is allowed; those of two groups exclude each other.
_SAME = {
    word: group[0]
    for group in (
        ("all", "every", "each", "always", "both"),
        ("some", "sometimes"),
        ("must", "required"),
        ("may", "can", "could", "might", "allowed", "optional"),
        ("forbidden", "cannot", "may not", "must not"),
    )
    for word in group
}
_ENDING = 2  # letters in which two forms of a word may differ
_LEAST = 3  # letters that they share
_THING = 2  # words of the one that may, and that it is only he
_NEGATION = GlossKind.NEGATION


def contradicted_in_another_language(claim: str, earlier: str) -> tuple[str, ...]:
    """The words in which only one of two texts can be true, as written, the claim's first; empty for English, and when
    no rule tells. Linear; never raises."""
    languages = _languages()
    theirs = {code for *_, codes in languages.of(earlier) for code in codes}
    for code in dict.fromkeys(code for *_, codes in languages.of(claim) for code in codes):
        if code in theirs and (changed := _contradicted(claim, earlier, languages.by_code[code])):
            return changed
    return ()


@cache
def _languages() -> Languages:
    return Languages(load_languages())


def _contradicted(claim: str, earlier: str, language: Language) -> tuple[str, ...]:
    both = [_telling(glossed(text, language), language) for text in (claim, earlier)]
    said = [Counter(word.key for word in words if word.kind is not _NEGATION) for words in both]
    if not said[0] & said[1]:
        return ()
    mine, other = (
        [word for word in words if word.key in more]
        for words, more in zip(both, (said[0] - said[1], said[1] - said[0]), strict=True)
    )
    mine, other = _without_forms(mine, other), _without_forms(other, mine)
    kinds = {word.kind for word in (*mine, *other)}
    denials = [[word for word in words if word.kind is _NEGATION] for words in both]
    if bool(denials[0]) != bool(denials[1]):
        told = kinds <= {GlossKind.QUANTIFIER}
        mine, other = [*denials[0], *mine], [*denials[1], *other]
    else:
        told = bool(mine and other) and (
            kinds in ({GlossKind.MODALITY}, {GlossKind.QUANTIFIER})
            or _only_against_all(mine, other)
            or (len(mine) == len(other) == 1 and (kinds == {GlossKind.NUMBER} or _opposed(mine[0], other[0])))
        )
    return tuple(dict.fromkeys(word.shown for word in (*mine, *other))) if told else ()


def _telling(words: list[GlossWord], language: Language) -> list[GlossWord]:
    """Those that say something, those that say the same in one form."""
    ending = re.compile(f"[{language.endings}]") if language.endings else None
    return [
        word._replace(key=_SAME.get(word.key, word.key))
        for word in words
        if word.kind is not GlossKind.SMALL and not (ending and ending.fullmatch(word.key))
    ]


def _without_forms(words: list[GlossWord], others: list[GlossWord]) -> list[GlossWord]:
    """Without words of which the other text has another form: "usam" and "usa"."""
    return [word for word in words if not any(_same_word(word.key, other.key) for other in others)]


def _same_word(one: str, other: str) -> bool:
    least = max(_LEAST, min(len(one), len(other)) - 1, max(len(one), len(other)) - _ENDING)
    return one.isalpha() and other.isalpha() and one[:least] == other[:least]


def _only_against_all(mine: list[GlossWord], other: list[GlossWord]) -> bool:
    """ "Only administrators" against "all users": one thing each beside the two words."""
    keys = [{word.key for word in words if word.kind is GlossKind.QUANTIFIER} for words in (mine, other)]
    return {"only"} in keys and {"all"} in keys and max(len(mine), len(other)) <= _THING


def _opposed(one: GlossWord, other: GlossWord) -> bool:
    """Whether two words are opposites, or two of one group: days of the week."""
    left, right = Unit(one.key, one.shown), Unit(other.key, other.shown)
    return WORDS.opposed(left, right) or WORDS.group(left) == WORDS.group(right) is not None
