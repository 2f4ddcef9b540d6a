"""What of a text nobody sees: the one list of such characters, for the check that makes a claim wait for them, and
for the pages, which name them.

A character is unseen where it stands: a joiner between Persian letters or in an emoji is writing, between two Latin
letters it hides something. Pure and linear, never raises.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache

_PILE = 4  # marks on one letter; real writing has up to four, what piles up more covers the lines above
# Format characters that have a shape of their own: signs of Arabic, Syriac and Kaithi numbers and verses.
_SHAPED = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
# Letters, marks and symbols that Unicode shows as nothing: fillers, the grapheme joiner, a braille cell without dots.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u2800\u3164\uffa0\U0001d159")
_JOINERS = frozenset("\u200c\u200d")
_JOINED = range(0x0600, 0x1900)  # the scripts, Arabic to Mongolian, that are written with joiners
_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_IDEOGRAPHS = (
    range(0x3400, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x323B0),
)  # have variants of a letter
# The flags of England, Scotland and Wales are written in tag characters, and no other flags are.
_FLAG = "\U0001f3f4"
_FLAGS = tuple(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
_PRESENTED = frozenset("\u203c\u2049\u2139\u3030\u303d")  # no symbols by category that have an emoji form
_KEYCAP = "\u20e3"
_NONCHARACTERS = range(0xFDD0, 0xFDF0)
_UNASSIGNED = (range(0xFFF0, 0xFFF9), range(0xE0000, 0xE1000))  # of those, the ones that are shown as nothing
_CONTROLS = {
    "\x00": "NULL",
    "\x07": "BELL",
    "\x08": "BACKSPACE",
    "\x0b": "LINE TABULATION",
    "\x0c": "FORM FEED",
    "\r": "CARRIAGE RETURN",
    "\x1b": "ESCAPE",
    "\x7f": "DELETE",
    "\x85": "NEXT LINE",
}
_NAMELESS = {"Cc": "CONTROL CHARACTER", "Co": "PRIVATE USE CHARACTER", "Cs": "LONE SURROGATE"}

# What is not seen and hides nothing: breaks of lines and paragraphs,
_BREAKS = frozenset("\u2028\u2029")
# marks of direction in a text that has a script written from the right,
_DIRECTIONS = frozenset("\u061c\u200e\u200f")
_FROM_THE_RIGHT = re.compile("[\u0590-\u05ff\u0600-\u08ff\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc]")
# places where a line may break in scripts without spaces (Thai, Lao, Burmese, Khmer),
_ZERO_WIDTH_SPACE = "\u200b"
_WITHOUT_SPACES = (range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800))
# and between syllables.
_SOFT_HYPHEN = "\u00ad"
_BYTE_ORDER_MARK = "\ufeff"


class _Kind(Enum):
    """What becomes of a character where it stands."""

    SHOWN = auto()
    HIDDEN = auto()
    MARK = auto()  # sits on the letter before
    JOINER = auto()
    SELECTOR = auto()
    BREAK = auto()  # white space: a line may end or begin at it, and what sat on it would be seen as nothing


@lru_cache(maxsize=8192)
def _kind(character: str) -> _Kind:
    code = ord(character)
    if character in _JOINERS:
        return _Kind.JOINER
    if any(code in part for part in _SELECTORS):
        return _Kind.SELECTOR
    category = unicodedata.category(character)
    if category == "Zs" or character in "\n\t":
        return _Kind.BREAK
    if character in _BLANK or (category == "Cn" and _is_nothing(code)):
        return _Kind.HIDDEN
    if category in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return _Kind.SHOWN if character in _SHAPED else _Kind.HIDDEN
    return _Kind.MARK if category in ("Mn", "Me") else _Kind.SHOWN


def _is_nothing(code: int) -> bool:
    """Whether a code point that stands for no character is one that stands for none for ever, or is not drawn."""
    return code & 0xFFFE == 0xFFFE or code in _NONCHARACTERS or any(code in part for part in _UNASSIGNED)


def stretches(text: str) -> Iterator[tuple[int, int]]:
    """Runs of characters that nobody sees, as start and end, in order. Linear; never raises."""
    begun = -1
    marks = _PILE  # on the letter before; as if it were full where there is none
    flag = 0  # where the tags of a flag end
    for at, character in enumerate(text):
        kind = _kind(character)
        if character == _FLAG:
            flag = next((at + 1 + len(tags) for tags in _FLAGS if text.startswith(tags, at + 1)), 0)
        hidden = marks >= _PILE if kind is _Kind.MARK else at >= flag and _is_hidden(kind, text, at)
        if kind is _Kind.MARK:
            marks += 1
        elif hidden or kind is _Kind.BREAK:
            marks = _PILE
        elif kind is _Kind.SHOWN:
            marks = 0
        if hidden and begun < 0:
            begun = at
        elif not hidden and begun >= 0:
            yield begun, at
            begun = -1
    if begun >= 0:
        yield begun, len(text)


def _is_hidden(kind: _Kind, text: str, at: int) -> bool:
    match kind:
        case _Kind.SHOWN | _Kind.BREAK | _Kind.MARK:
            return False
        case _Kind.HIDDEN:
            return not (text[at] == "\r" and text[at + 1 : at + 2] == "\n")
        case _Kind.JOINER:
            return not _joins(text, at)
        case _Kind.SELECTOR:
            return not _selects(text, at)


def _joins(text: str, at: int) -> bool:
    """Whether a joiner is where writing needs one: between letters of a script that has them, or in an emoji."""
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    if not before or not after:
        return False
    if ord(before) in _JOINED and ord(after) in _JOINED:
        return unicodedata.category(before) in ("Lo", "Mn", "Mc") and unicodedata.category(after) == "Lo"
    pictured = (before == "\ufe0f" and _selects(text, at - 1)) or unicodedata.category(before) in ("So", "Sk")
    return text[at] == "\u200d" and pictured and unicodedata.category(after) in ("So", "Sm")


def _selects(text: str, at: int) -> bool:
    """Whether a variation selector chooses between a symbol and its emoji, or the form of an ideograph; elsewhere it
    only hides something, and so does the second one in a row."""
    before = text[at - 1 : at] if at else ""
    if not before or _kind(before) is not _Kind.SHOWN:
        return False
    if any(ord(before) in part for part in _IDEOGRAPHS):
        return True
    if text[at] not in "\ufe0e\ufe0f":
        return False
    listed = before in _PRESENTED or unicodedata.category(before) in ("So", "Sm")
    return listed or (before in "#*0123456789" and text[at + 1 : at + 2] == _KEYCAP)


def code_point(character: str) -> str:
    """How a character is called that cannot be shown: `U+202E`."""
    return f"U+{ord(character):04X}"


def name_of(character: str) -> str:
    """What Unicode calls it, or what it is."""
    known = _CONTROLS.get(character) or unicodedata.name(character, "")
    return known or _NAMELESS.get(unicodedata.category(character), "NONCHARACTER")


def hidden_in(text: str) -> Iterator[tuple[int, int]]:
    """Runs of characters that can hide or carry a text, as start and end: `stretches` without what texts are full of
    that mean no harm. Those are a byte order mark in front, soft hyphens between syllables, breaks of lines, marks of
    direction beside Hebrew or Arabic, and places to break a line in scripts without spaces."""
    from_the_right = _FROM_THE_RIGHT.search(text) is not None
    for start, end in stretches(text):
        alone = end - start == 1
        if not (alone and _is_harmless(text, start)) and not (
            from_the_right and all(character in _DIRECTIONS for character in text[start:end])
        ):
            yield start, end


def _is_harmless(text: str, at: int) -> bool:
    character = text[at]
    if character in _BREAKS or (character == _BYTE_ORDER_MARK and at == 0):
        return True
    before, after = text[max(at - 2, 0) : at], text[at + 1 : at + 3]
    if character == _SOFT_HYPHEN:  # beside it a syllable of one letter, or of more
        return before[-1:].isalpha() and after[:1].isalpha() and any(map(_is_two_letters, (before, after)))
    if character == _ZERO_WIDTH_SPACE:
        return all(any(ord(each) in part for part in _WITHOUT_SPACES) for each in before + after)
    return False


def _is_two_letters(text: str) -> bool:
    return len(text) == 2 and text.isalpha()


def spelled_by(characters: str) -> str:
    """What tag characters and variation selectors spell that stand for ASCII, which models read as if it stood there;
    empty when they spell nothing."""
    read = []
    for character in characters:
        code = ord(character)
        byte = (
            code - 0xE0000
            if 0xE0020 <= code < 0xE007F  # each tag is named after the character that it stands for
            else code - 0xE0100 + 16
            if 0xE0100 <= code < 0xE01F0  # the common way to put a byte into a selector
            else code - 0xFE00
            if 0xFE00 <= code < 0xFE10
            else 0
        )
        if 0x20 <= byte < 0x7F or byte == 0x0A:
            read.append(chr(byte))
    return "".join(read)
