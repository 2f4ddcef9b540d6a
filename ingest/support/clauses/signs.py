"""What signs say of a statement: what stands at a number, a label before it, a question mark behind it.

"<24 hours", "24k hours" and "-24" are other numbers than 24, and "False: …" and "…?" do not say that what stands there
is so, though every word of it is in the source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from vouchgate.ingest.support.tokens import LISTS, Token, tokens_of

# Before a number; a dash only where it is no range or bullet, a closing bracket only where it is no arrow or quotation.
_SIGN = re.compile(
    r"(?P<bound>(?<![-=<>\n\"'/])(?:[<>]=?|=<)|[≤≥⩽⩾≪≫≮≯＜＞])\s?\Z|(?P<other>[≠±∓¬√^]|!=?)\s?\Z"
    r"|(?<![\w.,)\]])(?P<less>[-−–‐‑](?=\(?\Z)|−(?=\s\Z)|\.(?=\Z))"
)
_BOUNDS = {"<=": "≤", "=<": "≤", ">=": "≥", "⩽": "≤", "⩾": "≥", "≪": "<", "≫": ">"}
_BOUNDS |= {"≮": "≥", "≯": "≤", "＜": "<", "＞": ">"}
_PLUS = re.compile(r"\+(?![\w+])")  # behind a number: so many, or more
# What says the same as a sign, in the words right before a number.
_IN_WORDS = {
    "<": re.compile(r"\b(?:less|fewer|lower|smaller|shorter|under|below|beneath) (?:than )?\Z"),
    ">": re.compile(r"\b(?:(?:more|greater|higher|larger|longer) than|over|above|beyond|exceed\w*) \Z"),
    "≤": re.compile(r"\b(?:at most|up to|no more than|not more than|maximum(?: of)?|max\.?|within) \Z"),
    "≥": re.compile(r"\b(?:at least|no less than|not less than|minimum(?: of)?|min\.?|from) \Z"),
}
_MINUS = re.compile(r"\b(?:minus|negative)\s\Z", re.IGNORECASE)
# What a number counts, as a sign before or behind it, and in words nearby.
_MARK = re.compile(r"[$€£¥₹]\s?\Z"), re.compile(r"\s?([%‰$€£¥₹°])")
_MARKS = {
    "%": re.compile(r"per ?cent|pct"),
    "‰": re.compile(r"per ?mill"),
    "$": re.compile(r"dollar|\busd\b|bucks"),
    "€": re.compile(r"euro|\beur\b"),
    "£": re.compile(r"pound|\bgbp\b|sterling"),
    "¥": re.compile(r"\byen\b|yuan|\bjpy\b|\bcny\b"),
    "₹": re.compile(r"rupee|\binr\b"),
    "°": re.compile(r"degree|celsius|fahrenheit|kelvin|\bc\b"),
}
_UNIT = re.compile(r"\s?([A-Za-zµ]{1,3})\b")
_UNITS = frozenset(
    {"g", "kg", "mg", "t", "lb", "oz", "m", "km", "cm", "mm", "l", "ml", "w", "kw", "mw", "k", "bn", "mn"}
)
_UNITS |= {
    "s",
    "ms",
    "us",
    "µs",
    "ns",
    "h",
    "b",
    "kb",
    "mb",
    "gb",
    "tb",
    "kib",
    "mib",
    "gib",
    "hz",
    "khz",
    "mhz",
    "ghz",
}
_DETACHED = frozenset({"k", "bn", "mn"})  # scales that stand by themselves before what is counted
_WRITTEN = re.compile(r"(v?)[\d.,:]+([a-z]{0,3})")
_ORDINALS = frozenset({"", "st", "nd", "rd", "th"})
_SCALES = {"thousand": "k", "million": "m", "billion": "b", "trillion": "t", "milliard": "b", "times": "x"}
_REACH = 24  # characters before a number in which its sign is looked for
_AROUND = 16  # and around it, in which a mark may be said in words
_LABEL = 6  # words that a label may have
_SHORT = 4  # letters; a longer word in "-ed" tells what was done, "seed" does not
_COLON = re.compile(r"(?<!:):\s|：")
# Around a single word, before a statement or behind it: "[rejected] …", "False, …", "… (false)".
_BEHIND_ONE, _BEFORE_ONE = re.compile(r"[\])}:;,|=!>–—-]"), re.compile(r"[(\[{–—-]\s?\Z")
_KIND = re.compile(r"[^\n(:：]{1,200}\(([^\n:：]{1,400})\)\s?[:：]")
_UNTICKED = re.compile(r"\W*\[ ?\]\s|\W*[☐✗✘❌🚫]")
_FALSELY = frozenset(
    {"falsely", "wrongly", "incorrectly", "mistakenly", "allegedly", "supposedly", "reportedly", "pretend"}
)
_ASKS = re.compile(r"[?？؟‽⁇⁈⁉][\s\"'”’)\]*_`!.…:]*\Z")


def other_sign(text: str, words: Sequence[Token], source: str, place: Sequence[Token]) -> bool:
    """Whether a number that both have stands there with another sign, or is of another scale."""
    theirs: dict[str, list[int]] = {}
    for at, token in enumerate(place):
        if token.number:
            theirs.setdefault(token.keys[0], []).append(at)
    for at, token in enumerate(words):
        met = theirs.get(token.keys[0]) if token.number else None
        if met and not any(
            _signs_agree(text, token, source, place[other])
            and _units_agree(text, token, source, place[other])
            and _scales_agree(words, at, place, other)
            for other in met
        ):
            return True
    return False


def _signs_agree(text: str, one: Token, source: str, two: Token) -> bool:
    ours, theirs = _sign(text, one), _sign(source, two)
    if ours != theirs and not (
        _says_in_words(ours, source, two.start) and _says_in_words(theirs, text, one.start)
    ):
        return False
    mine, others = _mark(text, one), _mark(source, two)
    return mine == others or (_names(mine, source, two) and _names(others, text, one))


def _says_in_words(sign: str, text: str, start: int) -> bool:
    """Whether what stands before a number says the same as the sign that stands at it elsewhere."""
    before = text[max(0, start - _REACH) : start].lower().replace("\n", " ")
    return not sign or (sign in _IN_WORDS and _IN_WORDS[sign].search(before) is not None)


def _sign(text: str, token: Token) -> str:
    if _PLUS.match(text, token.end):
        return "≥"
    match = _SIGN.search(f" {text[max(0, token.start - 4) : token.start]}")
    if match is None:
        return "-" if _MINUS.search(text[max(0, token.start - _REACH) : token.start]) else ""
    if (bound := match["bound"]) is not None:
        return _BOUNDS.get(bound, bound)
    return match["other"] or ("." if match["less"] == "." else "-")


def _mark(text: str, token: Token) -> str:
    before, behind = _MARK
    if found := before.search(text[max(0, token.start - 2) : token.start]):
        return found.group().strip()
    found = behind.match(text, token.end)
    return found[1] if found else ""


def _names(mark: str, text: str, token: Token) -> bool:
    """Whether what stands around a number says in words what the mark says that stands at it elsewhere."""
    around = text[max(0, token.start - _AROUND) : token.end + _AROUND].lower()
    return not mark or _MARKS[mark].search(around) is not None


def _units_agree(text: str, one: Token, source: str, two: Token) -> bool:
    """Whether two short units are one: of bits and bytes the case tells, "k" alone is a thousand."""
    ours, theirs = _unit(text, one), _unit(source, two)
    if ours.lower() in _DETACHED or theirs.lower() in _DETACHED:
        return ours.lower() == theirs.lower()
    if not ours or not theirs:
        return True
    bits = {each[-1] for each in (ours, theirs) if len(each) == 2 and each[0].isupper() and each[1] in "bB"}
    return ours.lower() == theirs.lower() and len(bits) < 2


def _unit(text: str, token: Token) -> str:
    found = _UNIT.match(text, token.end)
    return found[1] if found and found[1].lower() in _UNITS else ""


def _scales_agree(words: Sequence[Token], at: int, place: Sequence[Token], other: int) -> bool:
    ours, theirs = _WRITTEN.fullmatch(words[at].low), _WRITTEN.fullmatch(place[other].low)
    if ours is None or theirs is None:
        return True
    for mine, others, where, behind in ((ours, theirs, place, other), (theirs, ours, words, at)):
        version = "." in mine.group() or (behind and where[behind - 1].low.startswith("v"))
        if mine[1] and not others[1] and not version:
            return False
        if mine[2] not in _ORDINALS and mine[2] != others[2]:
            after = where[behind + 1].low if behind + 1 < len(where) else ""
            unit = others[2] or _SCALES.get(after, after)
            if unit[:1] != mine[2][:1]:
                return False
    return True


def labelled(text: str, words: Sequence[Token], place: Sequence[Token], missing: Sequence[Token]) -> bool:
    """Whether what stands before a colon judges what stands behind it, or tells what was done, in a word that the
    source lacks: "Rejected: …", "Passwords leaked: …". What only names a thing ("pool (service): …") does neither. One
    word that judges may stand in brackets, too, or behind the statement."""
    if _of_another_kind(text, words, place, missing):
        return True
    there = {one.low for one in place}
    judging = [one.low in LISTS.verdicts and one.low not in there for one in words]
    for at, (token, after) in enumerate(pairwise(words[: _LABEL + 1])):
        between = text[token.end : after.start]
        if (at == 0 and judging[0] and _BEHIND_ONE.search(between)) or (
            token.low in _FALSELY and token.low not in there
        ):
            return True
        if _COLON.search(f"{between} "):
            denied = any(one.low.endswith("n't") and one.low not in there for one in words[: at + 1])
            done = any(
                len(one.low) > _SHORT and one.low.endswith("ed") and one in missing for one in words[: at + 1]
            )
            return denied or done or any(judging[: at + 1])
    last = words[-1] if len(words) > 1 and judging[-1] else None
    return last is not None and _BEFORE_ONE.search(text[: last.start][-3:]) is not None


def _of_another_kind(
    text: str, words: Sequence[Token], place: Sequence[Token], missing: Sequence[Token]
) -> bool:
    """Whether what stands in brackets behind a name before a colon may say more of it than what kind of thing it is:
    "Porto (scam): …", "Porto (opens at ten): …". Of other words than kinds one alone may stand there, of the place;
    and in the name none that the place lacks and that is no name by itself: "Porto scam (shop): …"."""
    found = _KIND.match(text, words[0].start) if words else None
    if found is None:
        return False
    named = (one for one in missing if one.start < found.start(1) and one.low == one.shown)
    if not all(map(_names_a_kind, named)):
        return True
    kinds = [one for one in words if found.start(1) <= one.start < found.end(1) and one.content]
    if len(kinds) == 1:
        there = {key for one in place for key in one.keys}
        return there.isdisjoint(kinds[0].keys) and not _names_a_kind(kinds[0])
    return not all(map(_names_a_kind, kinds))


def is_kind(text: str) -> bool:
    """Whether a text is no more than what kind of thing something is: "service", "cache server"."""
    return all(_names_a_kind(one) for one in tokens_of(text) if one.content)


def _names_a_kind(one: Token) -> bool:
    return not LISTS.kinds.isdisjoint(one.keys) or (bool(one.parts) and LISTS.kinds.issuperset(one.parts))


def unticked(statement: str) -> bool:
    """Whether a statement is the empty box of a list, or is shown to be wrong by the sign before it."""
    return _UNTICKED.match(statement) is not None


def asks(statement: str) -> bool:
    """Whether a sentence asks: it says nothing then."""
    return _ASKS.search(statement) is not None
