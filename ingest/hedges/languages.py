"""Hedges in languages other than English, by the phrases of their files (`ingest.language.languages`).

Quotation marks and back-ticks hide nothing by themselves; beside words that say so, a quotation is another's words or
a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from vouchgate.ingest.claims.hedges import HedgeCategory, HedgeMatch
from vouchgate.ingest.language.languages import PLAIN, Language, spoken
from vouchgate.ingest.language.normalise import composed

_ORDER = {category: at for at, category in enumerate(HedgeCategory)}
_QUOTED = re.compile(
    r"`[^`\n]{1,300}`|\"[^\"\n]{1,300}\"|“[^“”]{1,300}”|„[^„“”]{1,300}[“”]|«[^«»]{1,300}»|「[^「」]{1,300}」|『[^『』]{1,300}』|《[^《》]{1,300}》"
)
_LONGEST_QUOTED = 300
_BEFORE, _AFTER = 60, 40  # characters beside a quotation in which words say whose it is
_STOP = re.compile(r"[.!?。\n]")

_Found = tuple[int, int, HedgeCategory]


def hedges_in(text: str, languages: Mapping[str, Language]) -> list[HedgeMatch]:
    """Those of all sentences that are of one of the languages, in order; no two overlap. Linear; never raises."""
    read = composed(text)
    small = read.text.lower()
    matches = []
    for start, end, those in spoken(read.text, languages):
        found = [hedge for language in those for hedge in _of(language, small[start:end])]
        for first, last, category in _longest(found):
            at, stop = start + first, start + last
            if not _mentioned(those, small, at, stop):
                begins, ends = read.span(at, stop)
                matches.append(HedgeMatch(category=category, text=text[begins:ends], start=begins, end=ends))
    return matches


def _of(language: Language, sentence: str) -> Iterator[_Found]:
    """The hedges of one sentence, without those that lie in what only looks like one."""
    found = language.find_hedges(sentence)
    plain = found.get(PLAIN, [])
    for category in HedgeCategory:
        for start, end in found.get(category, ()):
            if not any(begin <= start and end <= stop for begin, stop in plain):
                yield start, end, category


def _longest(found: list[_Found]) -> list[_Found]:
    """Of those that overlap the longest, of equals the category that stands first."""
    kept: list[_Found] = []
    for each in sorted(found, key=lambda one: (one[0], -one[1], _ORDER[one[2]])):
        if not kept or each[0] >= kept[-1][1]:
            kept.append(each)
        elif each[1] - each[0] > kept[-1][1] - kept[-1][0]:
            kept[-1] = each
    return kept


def _mentioned(those: Iterable[Language], text: str, start: int, end: int) -> bool:
    """Whether a hedge stands in a quotation with words beside it that say that it is another's, or a string."""
    around = max(0, start - _LONGEST_QUOTED)
    for quoted in _QUOTED.finditer(text, around, end + _LONGEST_QUOTED):
        if quoted.start() < start and end <= quoted.end():
            before = _STOP.split(text[max(0, quoted.start() - _BEFORE) : quoted.start()])[-1]
            after = _STOP.split(text[quoted.end() : quoted.end() + _AFTER])[0]
            return any(one.quotes.search(f'{before}"{after}') for one in those)
    return False
