"""What a memory is to an earlier one when the two share too few words for the dedup check: the same told in other
words, an update of it, or its contradiction. For who looks through a whole memory, never for the gate.

Two texts are held against each other by their words of content, brought to one form: stems, words that stand for one
another, numbers in digits. Small words count only where they turn or qualify what is said. What is said of two things
that both have a name in front ("NAME (TYPE): …") is not compared at all.

- *the same*: the later text adds nothing, and neither has a name, number or qualifier that the other has not;
- *an update*: it says with a word of change or time ("now", "no longer", "since March") something else of the same;
- *a contradiction*: only one of the two can be true, by the rules of `ingest.dedup.contradicted` or by those here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import combinations

from xxhash import xxh3_64_intdigest

from vouchgate.ingest.contradictions.lists import LISTS, root_of
from vouchgate.ingest.data import read_data
from vouchgate.ingest.dedup.contradicted import contradicted
from vouchgate.ingest.dedup.rewording import RewrittenClaim, Unit
from vouchgate.ingest.dedup.slot import Difference, difference
from vouchgate.ingest.dedup.slot_words import WORDS
from vouchgate.ingest.dedup.subject import COPULA, is_count
from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.language.words import MARKED_AS_CODE, split_words

_LONGEST = 400  # characters of a text that is compared; what is longer tells many things
_PAIRED = 7  # words of content of a text of which each two are a key; more are drawn from by a hash
_ENOUGH = 3  # words of content that two texts share, for the later one to be allowed to leave some out
_MOST_LEFT = 3  # words of content that each of two texts may have alone, for the rules of contradiction to be asked
_TOPIC = re.compile(r"[^:.!?;`]{1,120}: (?=\S)")
_CITED = re.compile(r"(?<=\S)\s*[(\[](?:[A-Z]+-\d+|[^\s()\[\]]*[/#\d][^\s()\[\]]*)[)\]]")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)")
_OPENS = re.compile(r"[.!?:]$")


class Retold(StrEnum):
    """What a later text is to an earlier one."""

    SAME = "same"
    UPDATE = "update"
    CONTRADICTION = "contradiction"


@dataclass(frozen=True, slots=True)
class Retelling:
    """The relation, the words that differ as written (of a contradiction), and the words of content that both have: of
    several earlier texts the one with the most is meant."""

    retold: Retold
    changed: tuple[str, ...]
    shared: int


@dataclass(frozen=True, slots=True)
class Said:
    """A text in words of content. `values` are those of them that are names, numbers or identifiers."""

    topic: frozenset[str]
    rest: str  # the text without its topic and without citations in brackets
    first: str  # key of the first word
    keys: frozenset[str]
    values: frozenset[str]
    telling: frozenset[str]  # what qualifies it: only, always, if, …
    denied: bool
    replaces: bool  # there are words of change or time in it


class _Lists:
    """`[retelling]` of `memories.toml`, and the groups of words that say the same of other files."""

    def __init__(self) -> None:
        raw = read_data("memories.toml")
        own = raw["retelling"]
        self.folded: dict[str, str] = {}
        for group in (
            *own["same"],
            *read_data("values.toml")["same"],
            *read_data("support.toml")["same"],
            *read_data("stance.toml")["same"],
        ):
            head = next((self.folded[root] for root in map(root_of, group) if root in self.folded), None)
            for root in map(root_of, group):
                self.folded.setdefault(root, head or root_of(group[0]))
        self.light = frozenset(self.folded.get(root, root) for root in map(root_of, own["light"]))
        self.telling = frozenset(own["telling"])
        self.phrases = dict(own["phrases"])
        self.phrase = _any_of(self.phrases)
        self.replacing = re.compile(
            rf"{_any_of(raw['replacing']).pattern}|\bsince (?:{'|'.join(own['since'])})", re.IGNORECASE
        )


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(words, key=len, reverse=True))) + r")\b", re.I)


_LISTS = _Lists()


def says_it_replaces(text: str) -> bool:
    """Whether there are words that tell of a change: of two memories that say different things, one that has them is an
    update of the other."""
    return _LISTS.replacing.search(" ".join(text.split())) is not None


@lru_cache(maxsize=1 << 14)
def _key(word: str) -> str:
    root = root_of(word)
    return _LISTS.folded.get(root, root)


@lru_cache(maxsize=4096)  # a text is held against those that come after it
def said(text: str) -> Said:
    """The text in words. Linear; never raises."""
    found = _TOPIC.match(text)
    rest = _CITED.sub("", text[found.end() :] if found else text)
    plain = _LISTS.phrase.sub(lambda match: _LISTS.phrases[match[0].lower()], rest.replace("’", "'"))
    keys, values, telling, first = set[str](), set[str](), set[str](), ""
    denials, opens = 0, True
    for raw in plain.split():
        marked = MARKED_AS_CODE.search(raw) is not None
        for word in split_words(raw):
            denials += word in WORDS.negations or word.endswith("n't")
            if word in _LISTS.telling:
                telling.add(word)
            for part in (word,) if marked else re.split(r"(?<=\w)-(?=\w)", word):
                if part in LISTS.function_words or part in WORDS.negations or part.endswith("n't"):
                    continue
                key = _key(part)
                first = first or key
                keys.add(key)
                if marked or any(map(str.isdigit, part)) or (raw[0].isupper() and not opens):
                    values.add(key)
        opens = _OPENS.search(raw) is not None
    return Said(
        _topic(found[0]) if found else frozenset(),
        rest,
        first,
        frozenset(keys),
        frozenset(values),
        frozenset(telling),
        denials % 2 == 1,
        says_it_replaces(rest),
    )


def _topic(text: str) -> frozenset[str]:
    return frozenset(map(_key, split_words(text.replace("(", " "))))


def joining_keys(content: str, memory_type: str) -> tuple[int, ...]:
    """What two texts of a memory type have in common when they may be about the same, as signed numbers of 64 bits:
    each two of their words of content, and each one of a text that has few."""
    if len(content) > _LONGEST:
        return ()
    one = said(content)
    telling = sorted((one.keys | one.topic) - _LISTS.light or one.keys)
    if len(telling) > _PAIRED:
        telling = sorted(sorted(telling, key=_digest)[:_PAIRED])
    alone = [(key,) for key in telling] if len(one.keys) < _ENOUGH else []
    return tuple(_digest("\0".join((memory_type, *each))) for each in (*combinations(telling, 2), *alone))


def _digest(text: str) -> int:
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) - (1 << 63)


class Teller:
    """A later text that is held against one earlier text after another."""

    def __init__(self, text: str, words: ValueWords) -> None:
        self._text = text
        self._words = words
        self._said = said(text[:_LONGEST])
        self._rewritten: RewrittenClaim | None = None

    def of(self, earlier: str) -> Retelling | None:
        """What the text is to an earlier one; None when no rule tells of anything, or one is too long."""
        if max(len(self._text), len(earlier)) > _LONGEST:
            return None
        ours, theirs = self._said, said(earlier)
        if ours.topic != theirs.topic:
            return None
        both = (ours.keys & theirs.keys) - _LISTS.light
        shared = len(both) + bool(ours.topic)
        if not both or (shared < 2 and not _begin_alike(ours, theirs)):
            return None
        if _same(ours, theirs, shared):
            return Retelling(Retold.SAME, (), shared)
        changed = self._excluded(ours, theirs, shared)
        if ours.replaces and (changed or _goes_on(ours, theirs)):
            return Retelling(Retold.UPDATE, changed, shared + bool(changed))
        if not changed:
            return None
        newer = _newer_version(changed)
        return Retelling(Retold.UPDATE if newer else Retold.CONTRADICTION, changed, shared)

    def _excluded(self, ours: Said, theirs: Said, shared: int) -> tuple[str, ...]:
        """The words in which only one of two texts can be true."""
        left, other = (one - both - _LISTS.light for one, both in ((ours.keys, theirs.keys), (theirs.keys, ours.keys)))
        if min(len(left), len(other)) > _MOST_LEFT:
            return ()
        if self._rewritten is None:
            self._rewritten = RewrittenClaim(ours.rest, self._words)
        mine, others = self._rewritten.beside(theirs.rest)
        if changed := contradicted(ours.rest, theirs.rest, mine, others):
            return changed
        if not left and not other and ours.denied != theirs.denied and shared > 1:
            return tuple(unit.shown for unit in (*mine, *others) if unit.key in WORDS.negations)[:2] or ("not",)
        found = difference(mine, others)
        if found is not None and found.ours and found.theirs and _excludes(found):
            return tuple(unit.shown for unit in (*found.ours, *found.theirs))
        return _of_one_group(mine, others, left, other)


def _begin_alike(ours: Said, theirs: Said) -> bool:
    """Whether both begin with one verb that says one thing of its subject: "Lives in Paris", "Now lives in Lyon"."""
    return ours.first == theirs.first and ours.first in WORDS.one


def _same(ours: Said, theirs: Said, shared: int) -> bool:
    """Whether the later text says nothing that the earlier one does not say."""
    if ours.denied != theirs.denied or ours.telling != theirs.telling or shared < 2:
        return False
    if not (ours.values <= theirs.keys and theirs.values <= ours.keys):
        return False
    left = theirs.keys - ours.keys - _LISTS.light
    return not ours.keys - theirs.keys - _LISTS.light and (not left or (shared >= _ENOUGH and 2 * len(left) <= shared))


def _goes_on(ours: Said, theirs: Said) -> bool:
    """Whether a text with words of change says something of the same that the earlier one does not say."""
    return bool(ours.keys - theirs.keys - _LISTS.light)


def _excludes(found: Difference) -> bool:
    """Whether what stands in the one place in which two texts differ excludes the other, where `ingest.dedup.slot`
    says nothing: a word of what a thing has one of, the number of a bound, or the name of one certain thing."""
    before, after = found.before, found.after
    nearby = {root_of(units[at].key) for units, at in ((before, -1), (after, 0)) if units}
    if nearby & WORDS.single or {root_of(unit.key) for unit in before[-2:]} & WORDS.single:
        return True
    counts = is_count(found.ours[0]) and is_count(found.theirs[0])
    if counts and before and (before[-1].key,) in WORDS.bounds:
        return True
    named = all(unit.firm for unit in (*found.ours, *found.theirs)) and not counts
    if named and before and not after:
        certain = before[-1].article or (len(before) > 1 and before[-1].key in COPULA and before[-2].article)
        return certain
    chosen = bool(before) and root_of(before[-1].key) in WORDS.naming
    return chosen and bool(after) and len(found.ours) == len(found.theirs) == 1


def _of_one_group(
    ours: Iterable[Unit], theirs: Iterable[Unit], left: frozenset[str], other: frozenset[str]
) -> tuple[str, ...]:
    """Two words that answer one question ("tabs", "spaces"), of which each text has one and says no more than the other
    beside it."""
    for one in ours:
        group = WORDS.group(one) if _key(one.key) in left else None
        for two in theirs if group else ():
            if _key(two.key) in other and WORDS.group(two) == group and (len(left) == 1 or len(other) == 1):
                return one.shown, two.shown
    return ()


def _newer_version(changed: tuple[str, ...]) -> bool:
    """Whether the words that differ are two versions, the first the higher one."""
    found = [_VERSION.fullmatch(word) for word in changed]
    if len(found) != 2 or not found[0] or not found[1]:
        return False
    ours, theirs = (tuple(map(int, match[1].split("."))) for match in found if match)
    return ours > theirs
