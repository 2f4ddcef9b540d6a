"""What a word is: one family of patterns, and the words of a claim as they are compared (ADR-0007).

The patterns differ because a word is not the same to all who ask. Each says for whom it is; all are built from the
same parts, and none is anywhere else.

Between two claims white space separates words; that is the measure. What does not make a word another one: case,
punctuation and quotes around it, the kind of quote or dash, invisible characters, and the Unicode form. What does: a
sign in front ("<5" and ">5" are two limits, "-5" is not "5"), and a superscript, subscript or fraction, which plain
NFKC would make digits of (10² is not 102).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from vouchgate.ingest.language.comparable import comparable, unicode_form
from vouchgate.ingest.language.normalise import INVISIBLE

_LETTER = r"[^\W\d_]"  # of any script
# A mark over a letter, or a soft hyphen or zero-width character inside a word, is part of it.
_INSIDE = f"\\w{INVISIBLE}\u0300-\u036f"
_JOINED_WORD = rf"{_LETTER}+(?:['-]{_LETTER}+)*"
# Scripts that do not part their words: kana, Chinese characters. One character of them is a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNIT = "%|[A-Za-z\u00b5]{1,12}"

# Letters and digits and nothing else: to count words, or to compare them whatever stands between.
RUN = re.compile(r"[^\W_]+")
NAME = re.compile(r"\w+")  # a name of code, underscores and all
# A word of prose, for rules on phrases: no digit, an apostrophe or hyphen only inside.
PROSE = re.compile(_JOINED_WORD)
# A word as a sign of a subject: numbers, names in code, paths, "C++" and "F#" are one word each.
TERM = re.compile(rf"\w[{_INSIDE}]*(?:['’.\-/][{_INSIDE}]+|,[0-9]{{3}}(?![0-9]))*(?:\+\+|#(?!\w))?")
# A word or a mark, for rules that read grammar. Runs of joints and letters alternate, so this is linear. A comma is
# part of a number before three digits only; flags keep their dashes, and %, + and # stay with what stands before them.
# Underscores around a word stress it.
_UNSTRESSED = r"[^\W_](?:\w*[^\W_])?"
TOKEN = re.compile(
    rf"(?:(?<![\w-])--?(?=[A-Za-z]))?{_UNSTRESSED}(?:(?:['’._:/@+\\-]|::|,(?=\d{{3}}(?!\d))){_UNSTRESSED})*(?:\+\+|\(\))?"
    r"|%|[<>]=?|~|[$€£]|[.,;:!?()\[\]\"“”`|*/=–—&-]"
)
# A word to compare two versions of a text by, also in scripts that do not part words.
RUN_OR_CHARACTER = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
# A character that may stand in a word with others.
SPACED_CHARACTER = rf"(?![{_UNSPACED}])\w"
# Words joined by hyphens; a number with its unit.
COMPOUND = re.compile(r"[A-Za-z]{2,}(?:-[A-Za-z]{2,})+")
COUNTED = re.compile(rf"([^A-Za-z]*\d)-?({_UNIT})")
# What no word of prose has: a capital after a small letter, two capitals, a joint between letters, a call, a flag.
_NAME_IN_CODE = r"[a-z][A-Z]|[A-Z]{2}|\w[_./:@#=\\]\w|\(\)|^--?[A-Za-z]"
# As it may be written anywhere in a claim, quoted or set to something. A hyphen may be prose.
MARKED_AS_CODE = re.compile(rf"{_NAME_IN_CODE}|--?\w+=|\$|`")
# Of a word that `TOKEN` found: also a letter before a digit, and a hyphen.
LOOKS_LIKE_CODE = re.compile(rf"{_NAME_IN_CODE}|[A-Za-z]\d|\w-\w")

# Around a word these say nothing about it. `(` goes at the end too, so that `retry()` is `retry`; `[` stays,
# because `string[]` is not `string`. A dot in front stays: ".5" is not "5", and `.env` is a file.
_OPENING = "'([{,;*"
_CLOSING = "'.,;:!?()]}*"


def parts_words(text: str) -> bool:
    """Whether white space parts all words of a text."""
    return text.isascii() or _UNSPACED_CHARACTER.search(text) is None


def _parted(text: str) -> str:
    """The text with spaces around each character of a script that does not part its words."""
    return text if text.isascii() else _UNSPACED_CHARACTER.sub(r" \g<0> ", text)


def split_words(text: str) -> list[str]:
    """The words of a text in order, normalised. What is only punctuation, or only dashes, is no word."""
    return [
        word
        for part in _parted(comparable(text)).split()
        if (word := part.lstrip(_OPENING).rstrip(_CLOSING)) and (word[0] != "-" or word.strip("-"))
    ]


def word_list(text: str) -> list[str]:
    """`split_words`, but a text without a single word (`...`, `!!!`) counts as one word, itself: it equals its
    repeats and nothing else. White space alone has none. Linear; never raises, lone surrogates included.
    """
    found = split_words(text)
    if found:
        return found
    bare = "".join(unicode_form(text).split()) or "".join(text.split())
    return [bare] if bare else []


def runs(words: Sequence[str], length: int) -> list[str]:
    """Every so many words in a row, as one string each; none when there are fewer."""
    return [" ".join(words[at : at + length]) for at in range(len(words) - length + 1)]


def tokens(text: str) -> frozenset[str]:
    """The set of words that the measure compares: `word_list`, each once."""
    return _words_of_short(text) if len(text) <= _SHORT else frozenset(word_list(text))


_SHORT = 400  # characters, so that what is remembered is a few megabytes


@lru_cache(maxsize=4096)  # a claim is asked for several times, and the memories near to it are often the same
def _words_of_short(text: str) -> frozenset[str]:
    return frozenset(word_list(text))
