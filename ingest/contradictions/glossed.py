"""Where two texts of one language other than English cannot both be true: told by negation, modality, quantifiers,
numbers and opposites alone, and only where all else is the same (ADR-0070)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vouchgate.ingest.contradictions.lists import LISTS, root_of
from vouchgate.ingest.language.gloss import GlossKind, GlossWord, glossed
from vouchgate.ingest.language.languages import Language, load_languages, spoken
from vouchgate.ingest.language.terms import is_plain_english

_ENDING = 2  # letters in which two forms of a word may differ
_LEAST = 3  # letters that they share
_VALUES = ({GlossKind.MODALITY}, {GlossKind.QUANTIFIER})


def contradicted_in_another_language(claim: str, earlier: str) -> tuple[str, ...]:
    """The words in which only one of two texts can be true, as written, the claim's first; empty for English, and when
    no rule tells. Linear; never raises."""
    theirs = _spoken_in(earlier)
    for code, language in _spoken_in(claim).items():
        if code in theirs and (changed := excluded(glossed(claim, language), glossed(earlier, language))):
            return changed
    return ()


def _spoken_in(text: str) -> dict[str, Language]:
    if is_plain_english(text, text.lower().split()):
        return {}
    return {one.name: one for *_, those in spoken(text, load_languages()) for one in those}


def excluded(ours: Sequence[GlossWord], theirs: Sequence[GlossWord]) -> tuple[str, ...]:
    """The same of two texts word by word."""
    said = [
        Counter(word.key for word in words if word.kind is not GlossKind.NEGATION) for words in (ours, theirs)
    ]
    if not said[0] & said[1]:
        return ()
    mine = [word for word in ours if word.key in said[0] - said[1]]
    others = [word for word in theirs if word.key in said[1] - said[0]]
    mine, others = _without_forms(mine, others), _without_forms(others, mine)
    kinds = {word.kind for word in (*mine, *others)}
    denials = [[word for word in words if word.kind is GlossKind.NEGATION] for words in (ours, theirs)]
    if bool(denials[0]) != bool(denials[1]):
        told = kinds <= {GlossKind.QUANTIFIER}
    elif mine and others:
        told = kinds in _VALUES or (len(mine) == len(others) == 1 and _exclude(mine[0], others[0]))
    else:
        told = False
    shown = (*denials[0], *mine, *denials[1], *others)
    return tuple(dict.fromkeys(word.shown for word in shown)) if told else ()


def _without_forms(words: list[GlossWord], others: list[GlossWord]) -> list[GlossWord]:
    """Without words of which the other text has another form: "usam" and "usa"."""
    return [word for word in words if not any(_same_word(word.key, other.key) for other in others)]


def _same_word(one: str, other: str) -> bool:
    least = max(_LEAST, min(len(one), len(other)) - 1, max(len(one), len(other)) - _ENDING)
    return one.isalpha() and other.isalpha() and one[:least] == other[:least]


def _exclude(one: GlossWord, other: GlossWord) -> bool:
    """Whether two words are numbers, opposites, or two of one group such as the days of the week."""
    if one.kind is other.kind is GlossKind.NUMBER:
        return True
    left, right = root_of(one.key), root_of(other.key)
    opposed = right in LISTS.opposites_of(left) or left in LISTS.opposites_of(right)
    return opposed or LISTS.groups.get(one.key) == LISTS.groups.get(other.key) is not None
