"""Versions: the same product, and another version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.sentence import Sentence, read_once

_VERSION = re.compile(r"v?(\d{1,4}(?:\.\d{1,6}){1,4})(?:-?(?:rc|alpha|beta|a|b)\d*)?$")
_MAJOR = re.compile(r"v?(\d{1,3})$")
_SPECIAL = re.compile(r"([a-z]{2,8})/(\d(?:\.\d)?)$")  # HTTP/2, HTTP/1.1
_WORDS = frozenset(
    {
        "version",
        "versions",
        "release",
        "since",
        "in",
        "from",
        "before",
        "until",
        "after",
        "to",
        "by",
        "requires",
        "require",
    }
)
_EARLIER, _LATER = (
    frozenset({"before", "until", "below", "under"}),
    frozenset({"since", "after", "from", "later", "newer", "above"}),
)
_LONGEST = 16  # characters of a version
_ENOUGH = 0.6


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a product ("" when it is not named), its parts, and on which side of it something holds."""

    product: str
    parts: tuple[int, ...]
    side: str
    at: int


@read_once
def versions(sentence: Sentence) -> tuple[Version, ...]:
    """The versions of a sentence: numbers with dots after a product's name or a word that asks for one, or with a v."""
    found: list[Version] = []
    for index, word in enumerate(sentence.words):
        special = _SPECIAL.match(word.low)
        if special:
            parts = tuple(int(part) for part in special[2].split("."))
            found.append(Version(special[1], parts, "", index))
            continue
        match = _VERSION.match(word.low)
        before = sentence.words[index - 1] if index else None
        named = (
            before is not None
            and (before.name or before.low in _WORDS)
            and before.low not in LISTS.references
        )
        if match is None and named and before is not None and before.low not in _WORDS | LISTS.months.keys():
            match = (
                _MAJOR.match(word.low) if before.text[:1].isupper() and not before.text.isupper() else None
            )
        if match is None or len(match[1]) > _LONGEST:
            continue
        after = sentence.lows[index + 1] if index + 1 < len(sentence.words) else ""
        if (
            after in LISTS.units
            or after in LISTS.scales
            or not (named or word.low.startswith("v") or match[1].count(".") > 1)
        ):
            continue
        around = {*sentence.lows[max(0, index - 3) : index], *sentence.lows[index + 1 : index + 3]}
        side = "<" if around & _EARLIER else ">" if around & _LATER else ""
        product = before.key if before is not None and before.low not in _WORDS and named else ""
        found.append(Version(product, tuple(int(part) for part in match[1].split(".")), side, index))
    return tuple(found)


def version_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim's one version of a product, when the source tells others of that product and never this one."""
    ours = versions(pair.claim)
    if len(ours) != 1 or pair.claim.denials or pair.source.denials or pair.removal_differs():
        return
    mine = ours[0]
    theirs = versions(pair.source)
    others = [other for other in theirs if other.product == mine.product]
    if not others or len({other.parts for other in others}) > 1:
        return
    if others[0].side != mine.side and {others[0].side, mine.side} != {"", ">"}:
        return
    if any(_is_like(low, mine) for low in pair.passage.lows) or not pair.about((mine.at,), _ENOUGH):
        return
    if _version_context(pair.claim, mine.at) & _version_context(pair.source, others[0].at):
        yield pair.conflict("version", (mine.at, mine.at), (others[0].at, others[0].at))


def _is_like(low: str, version: Version) -> bool:
    """Whether a word may be the version: equal as far as both are told."""
    match = _VERSION.match(low) or _MAJOR.match(low)
    special = _SPECIAL.match(low)
    digits = match[1] if match else special[2] if special else ""
    if not digits or len(digits) > _LONGEST:
        return False
    parts = tuple(int(part) for part in digits.split("."))
    shared = min(len(parts), len(version.parts))
    if len(parts) == 1 < len(version.parts):
        return False  # any number, which is not the version's first part for that
    return parts[:shared] == version.parts[:shared]


def _version_context(sentence: Sentence, index: int) -> frozenset[str]:
    """What is said around a version, its product apart."""
    product = sentence.words[index - 1].key if index else ""
    return sentence.near(index, 6, 6) - {sentence.words[index].key, product}
