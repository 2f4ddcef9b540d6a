"""The strongest reading of a text that still keeps two different values apart: for words that are compared, or that
keys in the database are made of (ADR-0007). Changing what it gives changes those keys.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from vouchgate.ingest.language.normalise import MAX_EXPANSION

# Three dots in front of a word are a pause; in front of a slash they would be a path.
_PAUSE = re.compile(r"(?<![^\s'(\[{,;*])\.{3,}(?!/)")
_QUOTES = str.maketrans({'"': "'", "`": "'"})
# ASCII control characters that do not separate words are as invisible as U+200B.
_CONTROLS = dict.fromkeys((*range(9), *range(14, 28), 127))

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
# After folding, text of these characters alone is already in normal form KC.
_NEEDS_FORM = re.compile(r"[^\x00-\x7f\u00c0-\u00ff]")
# A dash as long as an m parts words, as a spaced one does; in front of a digit it may be a minus.
_LONG_DASH = re.compile(r"\u2014(?!\d)")
# A character can carry any number of marks. Unicode's stream-safe form allows 30, and sorting more of them
# takes time that grows with their square.
_MAX_MARKS = 30

_SAME_AS = {
    **dict.fromkeys("\u00b4\u02b9\u02bb\u02bc\u02bd\u2018\u2019\u201a\u201b\u05f3", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2039\u203a\u00ab\u00bb\u301d\u301e\u301f\u05f4", "'"),
    # Commas and full stops of other scripts. Not a dot: nothing is ".5" there.
    **dict.fromkeys("\u3001\u060c\u1363\u3003\uff64\u061b", ";"),
    **dict.fromkeys("\u3002\u0964\u0965\u06d4\u0589\u1362\u104b\u104a\u17d4\uff61", ";"),
    **dict.fromkeys("\u061f\u037e\u1367\u203d\u2047\u2048\u2049\u203c", "?"),
    "\u2026": "...",
    "\u2025": "..",
    **dict.fromkeys("\u2022\u2023\u25e6\u25aa\u25cf\u2043\u00bf\u00a1\u2800", " "),  # bullets, ¿ ¡, blank
    **dict.fromkeys("\u00ae\u00a9\u2122\u2120", ""),  # marks of ownership are no part of a name
    **dict.fromkeys("\u2014\u2015\u2e3a\u2e3b\ufe31\ufe58", "\u2014"),
    "\u2212": "-",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2260": "!=",
    "\u2192": "->",
    "\u21d2": "=>",
    # Variation selectors choose between glyphs of one character.
    **dict.fromkeys(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))), ""),
    **dict.fromkeys("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0", ""),  # letters and marks that show nothing
}
_BY_CATEGORY = {"Cf": "", "Pd": "-", "Pi": "'", "Pf": "'", "Ps": "(", "Pe": ")"}


@lru_cache(maxsize=8192)
def _same(character: str) -> str:
    """What one character outside ASCII is the same as, before the Unicode form is made."""
    known = _SAME_AS.get(character)
    if known is not None:
        return known
    category = unicodedata.category(character)
    if category == "Cc":
        return " " if character.isspace() else ""
    if category in ("Ps", "Pe") and unicodedata.decomposition(character):
        return character  # a form of an ASCII bracket, which normal form KC knows
    return _BY_CATEGORY.get(category, character)


@lru_cache(maxsize=8192)
def _keeps_its_form(character: str) -> bool:
    """Whether normal form KC would lose what this character says (its height, that it is a fraction), or
    make a whole phrase of it."""
    if unicodedata.decomposition(character).startswith(("<super>", "<sub>", "<fraction>")):
        return True
    plain = unicodedata.normalize("NFKC", character)
    if len(plain) > MAX_EXPANSION:
        return True
    return not character.isdecimal() and any(letter.isdecimal() for letter in plain)


def _form(text: str) -> str:
    """Normal form KC, except of characters that it would change the meaning of."""
    pieces: list[str] = []
    start = marks = 0
    for index, character in enumerate(text):
        if character < "\u00a0":
            marks = 0
        elif _keeps_its_form(character):
            pieces += (unicodedata.normalize("NFKC", text[start:index]), character)
            start, marks = index + 1, 0
        elif not unicodedata.combining(character):
            marks = 0
        elif (marks := marks + 1) > _MAX_MARKS:
            pieces.append(unicodedata.normalize("NFKC", text[start:index]))
            start, marks = index, 1
    pieces.append(unicodedata.normalize("NFKC", text[start:]))
    return "".join(pieces)


def unicode_form(text: str) -> str:
    """A text with characters outside ASCII, with what does not matter taken away, in folded case."""
    folded = _NOT_ASCII.sub(lambda match: _same(match.group()), text)
    if _NEEDS_FORM.search(folded) is not None:
        # The case of some letters folds to what has a compatibility form again, and the other way round.
        folded = _form(_form(folded).casefold())
        folded = _NOT_ASCII.sub(lambda match: _same(match.group()), folded)
    return _LONG_DASH.sub(" ", folded.casefold()).replace("\u2014", "-")


def comparable(text: str) -> str:
    """The text with one case, one kind of quote and nothing invisible (ADR-0007). Linear; never raises."""
    text = text.lower() if text.isascii() else unicode_form(text)
    if "`" in text or '"' in text:
        text = text.translate(_QUOTES)
    if not text.isprintable():
        text = text.translate(_CONTROLS)
    if "..." in text:
        text = _PAUSE.sub(" ", text)
    return text
