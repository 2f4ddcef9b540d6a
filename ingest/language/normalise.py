"""A text as the checks see it, and the way back to the text as it was sent.

There are three strengths, because what is a disguise to one check is a difference to another:

`normalise`  for rules on prose: undoes what makes one sentence look like another string. Compatibility letters,
             look-alike letters, invisible characters, combining marks, odd spaces and apostrophes, HTML entities and
             tags, emphasis marks, and line breaks with the comment or quote prefix of the next line.
`plain_signs`  for citations, in which an underscore, an accent or an emphasis mark is part of a name: only odd spaces,
             hyphens, apostrophes, full-width forms and invisible characters.
`comparable`  for words that are compared or made keys of (ADR-0007): letters stay what they are, 10² is not 102.

The result is for checking only; what is stored is the text as sent. The first two run as passes, each a list of edits,
so that every span can be mapped back.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from html.entities import html5

from vouchgate.ingest.data import read_data

# What a character of these Unicode categories reads as: marks, format and control characters as nothing; pictures,
# and code points that stand for no character, as a space, since words are told apart by them.
_BY_CATEGORY = {"Cf": "", "Mn": "", "Me": "", "Cc": "", "Zl": "\n", "Zp": "\n"} | dict.fromkeys(
    ("Zs", "So", "Cs", "Co", "Cn"), " "
)

# Characters that print as nothing, for a class of a regular expression: soft hyphen, zero-width characters, marks of
# direction, joiners.
INVISIBLE = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"

Edit = tuple[int, int, str]  # start, end and what replaces it, in the text the pass was given

# Longest compatibility expansion that is followed. U+FDFA alone becomes 18 characters, which would let a
# claim of the largest size grow eighteenfold; no single letter of an English word needs more than four.
MAX_EXPANSION = 4

# Tags that leave no trace when a page is rendered, tags that end a line, and tags that mark code.
_INLINE_TAGS = (
    "a|abbr|acronym|b|bdi|bdo|big|cite|del|dfn|em|font|i|ins"
    "|mark|nobr|q|s|small|span|strike|strong|sub|sup|u|wbr"
)
_BLOCK_TAGS = (
    "address|article|aside|blockquote|body|br|center|dd|details|div|dl|dt|footer|h[1-6]|head|header|hr|html|li"
    "|main|ol|p|section|summary|table|tbody|td|th|thead|tr|ul"
)
_CODE_TAGS = "code|kbd|pre|samp|tt|var"

# Runs of the commonest invisible characters and marks are taken at one go: a hostile text can be full of them.
_ODD_CHARACTER = re.compile(f"\r\n?|[\u0300-\u036f\ufe00-\ufe0f{INVISIBLE}]+|[^\t\n -~]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)")
_TAG = re.compile(
    rf"<(?=[!/a-zA-Z])(?:!--[^<>]{{0,300}}-->|/?(?:(?P<inline>{_INLINE_TAGS})|(?P<block>{_BLOCK_TAGS})|(?P<code>{_CODE_TAGS}))"
    r"(?:[\s/][^<>]{0,300})?>)(?(block)\n?)",
    re.IGNORECASE,
)
# A run of stars or of two tildes or equal signs is emphasis wherever it stands; underscores need their partner.
_MARKS = re.compile(r"\\?\*+|(?<!~)~~(?!~)|(?<![=!<>])==(?=[A-Za-z])|(?<=[A-Za-z.,])==(?![=])")
_UNDERSCORES = re.compile(r"(?<![^\W_])_{1,3}(?=[^\s_])|(?<=[^\s_])_{1,3}(?!\w)")
_BACKTICK_APOSTROPHE = re.compile(r"(?<=[A-Za-z])`(?=(?:t|s|m|d|ve|re|ll)\b)", re.IGNORECASE)
# What programs, mailers and diffs put at the head of a line. `#12` is an issue, `--all` a flag, `*it*` emphasis.
_PREFIX = r"(?:>|#(?![0-9])|//[!/]?|(?:/\*+|\*/?|--|-|\+|;+|%+|\||!|'|\"|REM|dnl)(?=[ \t\n]|\Z))"
_LINE_HEAD = re.compile(rf"(?:\A|\n)[ \t]{{0,40}}(?:{_PREFIX}[ \t]{{0,8}}){{1,8}}", re.IGNORECASE)
# What a pass may change. As one class of characters it is found many times faster than as alternatives.
_MARKED = re.compile(r"[\0-\x1f&*<_`\x7f-\U0010ffff]")
_HEAD = re.compile(r"[ \t]*[->#/+;%|!'\"]")


@dataclass(frozen=True, slots=True)
class Normalised:
    """A text for checking, with the way back to the text as sent.

    `text` has the case of the original: rules that need a capital (May the month, MUST as a requirement word) can
    still see it. It may be shorter or longer than the text as sent; `span` maps back.
    """

    text: str
    passes: tuple[_Pass, ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Offsets in the text as sent of what `text[start:end]` was made from.

        A character made by an edit (an entity, a ligature) stands for the whole of what was replaced; characters
        that were removed belong to no span, unless they lie inside it. An empty span maps to an empty one.
        """
        if not self.passes:
            return start, end
        empty = start == end
        for made in reversed(self.passes):
            start = made.source_of_start(start)
            end = start if empty else made.source_of_end(end)
        return start, end


class _Pass:
    """One pass of edits: where each replacement lies in the output, and what it replaced."""

    __slots__ = ("out_ends", "out_starts", "src_ends", "src_starts", "text")

    def __init__(self, text: str, edits: Iterable[Edit]) -> None:
        self.out_starts: list[int] = []
        self.out_ends: list[int] = []
        self.src_starts: list[int] = []
        self.src_ends: list[int] = []
        pieces: list[str] = []
        done = length = 0
        for start, end, replacement in edits:
            pieces.append(text[done:start])
            length += start - done
            self.out_starts.append(length)
            self.src_starts.append(start)
            pieces.append(replacement)
            length += len(replacement)
            self.out_ends.append(length)
            self.src_ends.append(end)
            done = end
        pieces.append(text[done:])
        self.text = "".join(pieces)

    def source_of_start(self, at: int) -> int:
        """Where the character at `at` came from; a replaced one came from the start of what it replaced."""
        last = bisect_right(self.out_starts, at) - 1
        if last < 0:
            return at
        if at < self.out_ends[last]:
            return self.src_starts[last]
        return self.src_ends[last] + at - self.out_ends[last]

    def source_of_end(self, at: int) -> int:
        """Where a span ending at `at` ends in the source: after what its last character was made from."""
        last = bisect_right(self.out_starts, at - 1) - 1
        if last < 0:
            return at
        if at <= self.out_ends[last]:
            return self.src_ends[last]
        return self.src_ends[last] + at - self.out_ends[last]


def normalise(text: str) -> Normalised:
    """The text for checking. Pure and linear; never raises, lone surrogates included."""
    marked = _MARKED.search(text) is not None or "~~" in text or "==" in text
    if not marked and _HEAD.match(text) is None:
        return Normalised(text)
    passes: list[_Pass] = []
    for edits in (_characters, _entities, _entities, _tags, _line_heads, _emphasis):
        found = list(edits(text))
        if found:
            made = _Pass(text, found)
            passes.append(made)
            text = made.text
    return Normalised(text, tuple(passes))


def _characters(text: str) -> Iterator[Edit]:
    """Every character outside printable ASCII becomes what it looks like, a space, a line break or nothing."""
    if text.isascii() and text.isprintable():
        return
    for match in _ODD_CHARACTER.finditer(text):
        start, end = match.span()
        found = text[start:end]
        folded = fold(found) if end - start == 1 or found == "\r\n" else ""
        if folded != found:
            yield start, end, folded


def _entities(text: str) -> Iterator[Edit]:
    """HTML entities, decoded. Called twice, because text that was escaped twice is common."""
    if "&" not in text:
        return
    for match in _ENTITY.finditer(text):
        found = match.group()
        # Named ones are looked up whole: html.unescape would read `&notice;` as a sign and "ice;".
        meant = html.unescape(found) if found[1] == "#" else html5.get(found[1:], found)
        decoded = "".join(map(fold, meant))
        if decoded != found:
            yield match.start(), match.end(), decoded


def _tags(text: str) -> Iterator[Edit]:
    """Known HTML tags and comments: inline ones vanish, block ones end the line, code ones become back-ticks.

    Unknown names stay: `<path>` is a placeholder in a command, not a tag.
    """
    if "<" not in text:
        return
    for match in _TAG.finditer(text):
        replacement = "\n" if match["block"] else "`" if match["code"] else ""
        yield match.start(), match.end(), replacement


def _line_heads(text: str) -> Iterator[Edit]:
    """Comment and quote prefixes go, so that a phrase reads on across the line break. The break itself stays, and a
    bullet leaves a blank line, because it begins a sentence of its own."""
    for match in _LINE_HEAD.finditer(text):
        head = match.group()
        bullet = head.strip() in ("-", "+", "*") and not head.startswith("\n *")
        yield match.start(), match.end(), ("\n\n" if bullet else "\n") if head.startswith("\n") else ""


def _emphasis(text: str) -> Iterator[Edit]:
    """Emphasis marks, and a back-tick written for an apostrophe. `_maybe` alone is a name, `_maybe_` is stressed."""
    edits: list[Edit] = []
    if "*" in text or "~~" in text or "==" in text:
        edits += [(match.start(), match.end(), "") for match in _MARKS.finditer(text)]
    if "_" in text:
        edits += _paired_underscores(text)
    if "`" in text:
        edits += [(match.start(), match.end(), "'") for match in _BACKTICK_APOSTROPHE.finditer(text)]
    yield from sorted(edits)


def _paired_underscores(text: str) -> Iterator[Edit]:
    """Runs of underscores that open before a word and close after one, of the same length, in turn."""
    opened: re.Match[str] | None = None
    for match in _UNDERSCORES.finditer(text):
        after_word = match.start() > 0 and not text[match.start() - 1].isspace()
        if opened is not None and after_word and len(match.group()) == len(opened.group()):
            yield opened.start(), opened.end(), ""
            yield match.start(), match.end(), ""
            opened = None
        else:
            opened = match


@lru_cache(maxsize=8192)
def fold(character: str) -> str:
    """What one character (or a carriage return with its line feed) reads as.

    Look-alikes come from the table; the rest is Unicode's own: NFKD, marks dropped, spaces and separators made
    plain, format and control characters removed. Pictures and private, unassigned and surrogate code points are
    spaces.
    """
    known = _LOOK_ALIKES.get(character)
    if known is not None:
        return known
    if character.isascii():
        return character if character in "\t\n" or character.isprintable() else ""
    if "\uac00" <= character <= "\ud7a3":
        return character  # a Hangul syllable, which Unicode would take apart and put together again
    parts = unicodedata.normalize("NFKD", character)
    if parts == character or len(parts) > MAX_EXPANSION:
        return _BY_CATEGORY.get(unicodedata.category(character), character)
    return unicodedata.normalize("NFC", "".join(fold(part) for part in parts))


_PLAIN_SIGNS: dict[int, str] = {
    **dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2212, 0xFE58, 0xFE63), "-"),
    **dict.fromkeys((0x2018, 0x2019, 0x02BC), "'"),
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width forms of ASCII
}
_ODD_SIGN = re.compile(f"[{''.join(map(chr, _PLAIN_SIGNS))}]")
_INVISIBLE_RUN = re.compile(f"[{INVISIBLE}]+")


def plain_signs(text: str) -> Normalised:
    """The text with odd spaces, hyphens, apostrophes and full-width forms made plain, invisible characters dropped.

    En and em dashes stay: they separate two citations as often as they join the parts of one.
    """
    if text.isascii():
        return Normalised(text)
    plain = _ODD_SIGN.sub(lambda match: _PLAIN_SIGNS[ord(match[0])], text)
    hidden = [(match.start(), match.end(), "") for match in _INVISIBLE_RUN.finditer(plain)]
    if not hidden:
        return Normalised(plain)
    made = _Pass(plain, hidden)
    return Normalised(made.text, (made,))


# A letter with its marks apart, and half-width kana: what Unicode composes to fewer characters.
_APART = re.compile("[^\\s][\u0300-\u036f\u3099\u309a]{1,4}|[\uff61-\uff9f]+")


def composed(text: str) -> Normalised:
    """The text with plain signs (`plain_signs`) and its accents, which `normalise` takes away: in most languages they
    are part of the letter. In small letters it is as long."""
    plain = plain_signs(text.replace("\u0130", "I"))  # the one letter that grows
    edits = [(m.start(), m.end(), unicodedata.normalize("NFKC", m[0])) for m in _APART.finditer(plain.text)]
    if not edits:
        return plain
    made = _Pass(plain.text, edits)
    return Normalised(made.text, (*plain.passes, made))


def _load_look_alikes() -> dict[str, str]:
    """The audited table, one group a script: {letter it reads as: the characters that look like it}."""
    raw = read_data("lookalikes.toml")
    table: dict[str, str] = {"\r\n": "\n", "\r": "\n", "\v": "\n", "\f": "\n", "\x85": "\n"}
    # The holes in the mathematical alphabets, where a careless converter puts a letter that stands elsewhere.
    for code in range(0x1D400, 0x1D6A4):
        if unicodedata.category(chr(code)) == "Cn":
            place = (code - 0x1D400) % 52
            table[chr(code)] = chr(ord("A") + place) if place < 26 else chr(ord("a") + place - 26)
    for group in raw.values():
        for reading, characters in group.items():
            table.update(dict.fromkeys(characters, reading))
    return table


# A constant read once from the package's own data file: the look-alikes of letters do not depend on a policy.
_LOOK_ALIKES = _load_look_alikes()
