"""A text of another language word by word, its small words as the English ones that say the same (ADR-0070).

"Der Dienst speichert keine Namen" is "the dienst speichert not namen": what negates, allows, orders, counts or bounds
can be compared in any language, and what a text is about stays as it is written.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.languages import Language
from vouchgate.ingest.language.normalise import composed

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
        if match.lastgroup == "ending":
            continue
        shown = key = " ".join(match.group().split())
        if match.lastgroup == "form":
            key = meanings[shown]
        elif shown[0].isdigit():
            key = shown.translate(_SEPARATORS) if _GROUPED.fullmatch(shown) else shown.replace(",", ".")
        kind = _KINDS.get(key) or (GlossKind.NUMBER if key[0].isdigit() else GlossKind.WORD)
        if kind is not GlossKind.SMALL:
            found.append(GlossWord(_SAME.get(key, key), shown, kind))
    return found


# A constant read once from the package's own data file.
_LISTS = read_data("language.toml")
_KINDS = {word: GlossKind(kind) for kind, words in _LISTS["gloss"].items() for word in words}
_SAME = {word: group[0] for group in _LISTS["same_gloss"] for word in group}
