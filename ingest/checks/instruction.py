"""Does the claim give orders to the model that will read it? A memory says what is so; what tells its reader to ignore,
to hide or to call something comes from whoever wants to steer an agent by way of its memory.

The patterns are in `ingest/data/instruction.toml`. A text that only speaks of such orders, in quotation marks or as the
subject of a sentence, says what is so.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vouchgate.ingest.check import Check, ReadClaim
from vouchgate.ingest.claims.claim import Finding, Span, Verdict
from vouchgate.ingest.claims.texts import CONTENT, texts_of
from vouchgate.ingest.data import read_data
from vouchgate.ingest.hedges.literals import Interval, code_spans, quotations
from vouchgate.ingest.language.normalise import Normalised, fold, normalise

CHECK = "instruction"
CODE = "instruction"
_LONGEST_MENTION = 80  # characters of a quotation or code span; a longer one is a text of its own
_OWN_WORDS = 3  # fewer words than this outside of all quotations, and the quotation is the claim itself
_AROUND = 200  # characters before an order, most of which may be white space
_BEFORE = 40  # of these the last that are not, in which a word is looked for that an order can follow
_MOST_NAMED = 5
_MOST_SHOWN = 60  # characters of each

# All that the normaliser leaves as it is, so that an ordinary claim need not be normalised.
_MARKED = re.compile(r"[^ !-%'-)+-;>?@-^a-}]")
_UNSEEN = re.compile(r"<!--(.*?)(?:-->|\Z)|<[a-z]([^<>]*)>", re.DOTALL | re.IGNORECASE)
_OTHER = "".join(chr(code) if chr(code).islower() else " " for code in range(128))


@dataclass(frozen=True, slots=True)
class _Group:
    words: frozenset[str]
    signs: tuple[str, ...]
    pattern: re.Pattern[str]
    imperative: bool

    def may_match(self, words: list[str], text: str) -> bool:
        """Whether a text with these words has what every pattern of the group needs."""
        return not self.words.isdisjoint(words) or any(sign in text for sign in self.signs)


class _Orders:
    """The patterns of the data file, and what a text holds of them."""

    def __init__(self, raw: dict[str, Any]) -> None:
        words = {name: "|".join(each) for name, each in raw["words"].items()}
        self._groups = tuple(_group(each, words) for each in raw["groups"].values())
        self._words = frozenset[str]().union(*(group.words for group in self._groups))
        self._signs = re.compile("|".join(re.escape(sign) for group in self._groups for sign in group.signs))
        self._mentions = frozenset(raw["words"]["mentions"])
        leads_in = "|".join(each.replace(" ", r"\s+") for each in raw["words"]["leads_in"])
        self._begins = re.compile(rf"(?:[.:;,!?\"'(\[{{<>*—–|-]|\b(?:{leads_in}))\Z")

    def find(self, text: str) -> list[Interval]:
        """Where orders stand in the text as sent, in order, none overlapping another, what a page of it does not show
        included. Linear."""
        found = self._shown(text)
        if "<" in text:
            for start, inside in _not_shown(text):
                found += ((start + first, start + last) for first, last in self._shown(inside))
        return _joined(found)

    def _shown(self, text: str) -> list[Interval]:
        normalised = Normalised(text) if _MARKED.search(text) is None else normalise(text)
        lowered = normalised.text.lower()
        words = _words_of(lowered)
        if self._words.isdisjoint(words) and self._signs.search(lowered) is None:
            return []
        groups = [group for group in self._groups if group.may_match(words, lowered)]
        # A capital that is two small letters would move all that stands behind it.
        if len(lowered) != len(normalised.text):
            lowered = "".join(each.lower() if len(each.lower()) == 1 else each for each in normalised.text)
        matches = [
            match.span()
            for group in groups
            for match in group.pattern.finditer(lowered)
            if not (group.imperative and not self._commands(lowered, match.start()))
        ]
        if not matches:
            return []
        return [normalised.span(*match) for match in self._said(lowered, matches)]

    def _commands(self, text: str, at: int) -> bool:
        """Whether nothing stands before that could be the subject: a sentence begins here, or goes on."""
        around = text[max(at - _AROUND, 0) : at]
        before = around.rstrip()
        return (
            not before or "\n" in around[len(before) :] or self._begins.search(before[-_BEFORE:]) is not None
        )

    def _said(self, text: str, matches: list[Interval]) -> list[Interval]:
        """Those that are said, and not only mentioned."""
        literals = sorted({*code_spans(text), *quotations(text)})
        if not literals:
            return matches
        outside, done = [], 0
        for start, end in literals:
            if start >= done:
                outside.append(text[done:start])
            done = max(done, end)
        own = _words_of(" ".join([*outside, text[done:]]))
        if len(own) < _OWN_WORDS or self._mentions.isdisjoint(own):
            return matches
        short = [each for each in literals if each[1] - each[0] <= _LONGEST_MENTION]
        starts = [start for start, _ in short]
        return [match for match in matches if not _within(match, short, starts)]


def _not_shown(text: str) -> Iterator[tuple[int, str]]:
    """Comments and attributes of tags, each with where it begins: who looks at the page sees none of them, a model
    reads them."""
    for match in _UNSEEN.finditer(text):
        if match[1] is not None:
            yield match.start(1), match[1]
        else:
            yield match.start(2), match[2].replace('"', ".")  # what is said there is no quotation


def _joined(found: list[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for start, end in sorted(found):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _words_of(text: str) -> list[str]:
    """The words of a text in small letters; what is not ASCII parts them."""
    if not text.isascii():
        text = text.encode("ascii", "replace").decode()
    return text.translate(_OTHER).split()


def _within(match: Interval, literals: list[Interval], starts: list[int]) -> bool:
    number = bisect_right(starts, match[0]) - 1
    return number >= 0 and match[1] <= literals[number][1]


def _group(entry: dict[str, Any], words: dict[str, str]) -> _Group:
    pattern = "|".join(entry["patterns"])
    for name, each in words.items():
        pattern = pattern.replace(f"{{{name}}}", each)
    if not pattern.isascii():  # a text is folded before it is read
        pattern = "".join(sign if sign.isascii() else fold(sign) for sign in pattern)
    pattern = pattern.replace(" ?", r"\s*").replace(" ", r"\s+")
    return _Group(
        words=frozenset(entry["words"]),
        signs=tuple("".join(map(fold, sign)) for sign in entry.get("signs", ())),
        pattern=re.compile(pattern),
        imperative=entry.get("imperative", False),
    )


# A constant read once from the package's own data file: what an order is does not depend on a policy.
_ORDERS = _Orders(read_data("instruction.toml"))


def judge(read: ReadClaim) -> Iterator[Finding]:
    """DOUBT `instruction` for a claim that has an order to a model in its text, in its metadata or in where it is to be
    delivered; else nothing. `facts["words"]` has the words, as sent."""
    words: dict[str, None] = {}
    spans: list[Span] = []
    for where, text in texts_of(read.claim):
        for start, end in _ORDERS.find(text):
            words[" ".join(text[start:end].split())[:_MOST_SHOWN]] = None
            if where == CONTENT:
                spans.append(Span(start=start, end=end))
    if words:
        named = [*words][:_MOST_NAMED]
        yield Finding(
            check=CHECK,
            verdict=Verdict.DOUBT,
            code=CODE,
            message=f"The claim gives an order to the model that reads it: {', '.join(named)}.",
            spans=tuple(spans),
            facts={"words": [*named]},
        )


CHECKS = (
    Check(name=CHECK, title="Instruction to a model", codes={CODE: Verdict.DOUBT}, order=14, judge=judge),
)
