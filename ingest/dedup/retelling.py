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
from vouchgate.ingest.dedup.subject import COPULA, is_count, is_verb
from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.language.words import MARKED_AS_CODE, split_words

_LONGEST = 400  # characters of a text that is compared; what is longer tells many things
_PAIRED = 7  # words of content of a text of which each two are a key; more are drawn from by a hash
_ENOUGH = 3  # words of content that two texts share, for the later one to be allowed to leave some out
_MOST_LEFT = 3  # words of content that each of two texts may have alone, for the rules of contradiction to be asked
_TOPIC = re.compile(r"[^:.!?;`]{1,120}: (?=\S)")
_CITED = re.compile(r"(?<=\S)\s*[(\[](?:[A-Z]+-\d+|[^\s()\[\]]*[/#\d][^\s()\[\]]*)[)\]]")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)")
_ENDS = re.compile(r"[.!?:]$")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")


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
    faint: frozenset[str]  # keys of words that say little of what it is about: have, use, …
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
        self.whole = self.folded.keys() | {root for pair in WORDS.opposites for root in pair}
        self.light = frozenset(own["light"])
        self.telling = frozenset(own["telling"])
        self.denying = frozenset(own["denying"])
        self.phrases = dict(own["phrases"])
        self.phrase = _any_of(self.phrases)
        self.replacing = re.compile(
            rf"{_any_of(raw['replacing']).pattern}|\bsince (?:{'|'.join(own['since'])})"
            rf"|\bfrom (?:{'|'.join(own['since'])})(?: \w+)? on(?:wards?)?\b|\bturned \d",
            re.IGNORECASE,
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
    if ordinal := _ORDINAL.fullmatch(word):
        return ordinal[1]
    root = root_of(word)
    return _LISTS.folded.get(root, root)


@lru_cache(maxsize=4096)  # a text is held against those that come after it
def said(text: str) -> Said:
    """The text in words. Linear; never raises."""
    found = _TOPIC.match(text)
    rest = _CITED.sub("", text[found.end() :] if found else text)
    plain = _LISTS.phrase.sub(lambda match: _LISTS.phrases[match[0].lower()], rest.replace("’", "'"))
    keys, faint, values, telling = set[str](), set[str](), set[str](), set[str]()
    first, denials, opens = "", 0, True
    for raw in plain.split():
        marked = MARKED_AS_CODE.search(raw) is not None
        named = raw[0].isupper() and not opens
        opens = _ENDS.search(raw) is not None
        for word in split_words(raw):
            if word in _LISTS.denying or word.endswith("n't"):
                denials += 1
            elif word in _LISTS.telling and not (named and word == "may"):
                telling.add(word)
            elif word in _LISTS.light:
                faint.add(_key(word))
            else:
                whole = marked or root_of(word) in _LISTS.whole
                for part in (word,) if whole else word.split("-"):
                    if part and (part not in LISTS.function_words or named):
                        first = first or root_of(part)
                        keys.add(_key(part))
                        if marked or named or any(map(str.isdigit, part)):
                            values.add(_key(part))
    return Said(
        topic=_topic(found[0]) if found else frozenset(),
        rest=rest,
        first=first,
        keys=frozenset(keys),
        faint=frozenset(faint - keys),
        values=frozenset(values),
        telling=frozenset(telling),
        denied=denials % 2 == 1,
        replaces=says_it_replaces(rest),
    )


def _topic(text: str) -> frozenset[str]:
    return frozenset(map(_key, split_words(text.replace("(", " "))))


def joining_keys(content: str, memory_type: str) -> tuple[int, ...]:
    """What two texts of a memory type have in common when they may be about the same, as signed numbers of 64 bits:
    each two of their words of content, and each one of a text that has few."""
    if len(content) > _LONGEST:
        return ()
    one = said(content)
    few = len(one.keys) < _ENOUGH
    words = sorted(one.keys | one.topic | (one.faint if few else frozenset()))
    if len(words) > _PAIRED:
        words = sorted(sorted(words, key=_digest)[:_PAIRED])
    alone = [(key,) for key in words] if few or one.replaces else []
    return tuple(_digest("\0".join((memory_type, *each))) for each in (*combinations(words, 2), *alone))


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
        shared = len(ours.keys & theirs.keys) + bool(ours.topic)
        if ours.topic != theirs.topic or shared + len(ours.faint & theirs.faint) < 1 + (not _short(ours, theirs)):
            return None
        changed, exchanged = self._excluded(ours, theirs, shared)
        if not changed and _same(ours, theirs, shared, exchanged=exchanged):
            return Retelling(Retold.SAME, (), shared)
        if ours.replaces and (changed or _goes_on(ours, theirs, shared)):
            return Retelling(Retold.UPDATE, changed, shared + bool(changed))
        if not changed:
            return None
        newer = _newer_version(changed)
        return Retelling(Retold.UPDATE if newer else Retold.CONTRADICTION, changed, shared)

    def _excluded(self, ours: Said, theirs: Said, shared: int) -> tuple[tuple[str, ...], bool]:
        """The words in which only one of two texts can be true, and whether they differ in one place alone, in
        which each has something else."""
        left, other = ours.keys - theirs.keys - theirs.faint, theirs.keys - ours.keys - ours.faint
        if min(len(left), len(other)) > _MOST_LEFT:
            return (), False
        if self._rewritten is None:
            self._rewritten = RewrittenClaim(_sentence(ours), self._words)
        mine, others = self._rewritten.beside(_sentence(theirs))
        found = difference(mine, others)
        changed = contradicted(_sentence(ours), _sentence(theirs), mine, others)
        if not changed and ours.denied != theirs.denied and ours.telling == theirs.telling:
            if shared > 1 and not (left and other) and max(len(left), len(other)) <= _MOST_LEFT:
                said_no = [unit.shown for unit in (*mine, *others) if unit.key in _LISTS.denying]
                changed = tuple(said_no[:1]) or ("not",)
        if not changed and found is not None and found.ours and found.theirs and _excludes(found, self._words):
            changed = tuple(unit.shown for unit in (*found.ours, *found.theirs))
        changed = changed or _of_one_group(mine, others, left, other) or _certain_thing(ours.rest, theirs.rest)
        # With a name or number each beside what differs, the two speak of two things.
        told = {_key(part) for word in changed for part in split_words(word)}
        if (left & ours.values) - told and (other & theirs.values) - told:
            changed = ()
        exchanged = found is not None and bool(found.ours and found.theirs) and _keys(found.ours) != _keys(found.theirs)
        return changed, exchanged


def _sentence(one: Said) -> str:
    """With a subject, where what the text is about stands before it, or is the user: so its verb is one."""
    first = one.rest.split(" ", 1)[0].lower()
    told = first.endswith(("s", "ed")) and root_of(first) in WORDS.many | WORDS.one | WORDS.fond
    return f"It {one.rest[:1].lower()}{one.rest[1:]}" if told or (one.topic and one.rest[:1].islower()) else one.rest


def _keys(units: Iterable[Unit]) -> set[str]:
    return {_key(unit.key) for unit in units}


def _short(ours: Said, theirs: Said) -> bool:
    """Whether two texts that share one word may yet be about the same: both say two things of it at most ("loves
    coriander"), or they begin with it, or the one that is replaced says nothing but what it has ("the linter is X")."""
    few = len(theirs.keys) < _ENOUGH
    return (few and (len(ours.keys) < _ENOUGH or ours.replaces)) or (bool(ours.first) and ours.first == theirs.first)


def _same(ours: Said, theirs: Said, shared: int, *, exchanged: bool) -> bool:
    """Whether the later text says nothing that the earlier one does not say; or, of two that are built otherwise, says
    one thing in a word that no list knows."""
    if ours.denied != theirs.denied or ours.telling != theirs.telling or shared < 2:
        return False
    if not (ours.values <= theirs.keys and theirs.values <= ours.keys):
        return False
    left = theirs.keys - ours.keys - ours.faint
    more = ours.keys - theirs.keys - theirs.faint
    if (exchanged and left) or (more and ours.replaces):
        return False
    if not more:
        return not left or (shared >= _ENOUGH and 2 * len(left) <= shared)
    return shared >= _ENOUGH and len(more) == 1 and len(left) <= 1


def _goes_on(ours: Said, theirs: Said, shared: int) -> bool:
    """Whether a text with words of change says something of the same that the earlier one does not say."""
    begins_alike = ours.first == theirs.first and ours.first in WORDS.one
    return bool(ours.keys - theirs.keys) and (shared > 1 or begins_alike or len(theirs.keys) < _ENOUGH)


def _excludes(found: Difference, words: ValueWords) -> bool:
    """Whether what stands in the one place in which two texts differ excludes the other, where `ingest.dedup.slot`
    says nothing: a word of what a thing has one of, the number of a bound, or the name of one certain thing."""
    before, after = found.before, found.after
    nearby = {root_of(units[at].key) for units, at in ((before, -1), (after, 0)) if units}
    even = len(found.ours) == len(found.theirs) or max(len(found.ours), len(found.theirs)) <= 2
    if even and (nearby | {root_of(unit.key) for unit in before[-2:]}) & (WORDS.single - WORDS.naming):
        return True
    if all(map(is_count, (*found.ours, *found.theirs))) and before:
        if (before[-1].key,) in WORDS.bounds:
            return True
        of_event = any(unit.key.endswith("ed") or unit.key in LISTS.tense.past_verbs for unit in before)
        listed = before[-1].firm or before[-1].key in WORDS.numbered
        unit = after[0] if after else None
        return unit is not None and not (
            of_event or listed or unit.firm or unit.key in words.date_keys | WORDS.joints or is_verb(unit, first=False)
        )
    if not before and {root_of(found.ours[0].key), root_of(found.theirs[0].key)} <= WORDS.fond:
        return WORDS.opposed(found.ours[0], found.theirs[0])
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


def _certain_thing(ours: str, theirs: str) -> tuple[str, ...]:
    """The names with which two texts end that are alike before them, when they name one certain thing: "the channel #a",
    "the first author is Ada"."""
    mine, others = ours.rstrip(".").split(), theirs.rstrip(".").split()
    at = next((n for n, (one, two) in enumerate(zip(mine, others, strict=False)) if one != two), 0)
    names = mine[at:], others[at:]
    if not all(0 < len(some) <= _MOST_LEFT and all(map(_is_name, some)) for some in names):
        return ()
    before = [word.lower() for word in mine[:at]]
    phrase = before[:-1] if before and before[-1] in COPULA else before
    the = next((n for n in range(2, 5) if n <= len(phrase) and phrase[-n] == "the"), 0)
    sole = COPULA.union(("go", "goes")).intersection(before) or WORDS.one.intersection(map(root_of, before))
    if not the or not sole or WORDS.joints.intersection(phrase[-the:]):
        return ()
    return " ".join(names[0]), " ".join(names[1])


def _is_name(word: str) -> bool:
    return word[0].isupper() or MARKED_AS_CODE.search(word) is not None or word[0] == "#"


def _newer_version(changed: tuple[str, ...]) -> bool:
    """Whether the words that differ are two versions, the first the higher one."""
    found = [_VERSION.fullmatch(word) for word in changed]
    if len(found) != 2 or not found[0] or not found[1]:
        return False
    ours, theirs = (tuple(map(int, match[1].split("."))) for match in found if match)
    return ours > theirs
