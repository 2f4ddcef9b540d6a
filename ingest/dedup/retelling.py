"""What a memory is to an earlier one when the two share too few words for the dedup check: the same told in other
words, an update of it, or its contradiction. For who looks through a whole memory, never for the gate.

Two texts are held against each other by their words of content, brought to one form: stems, words that stand for one
another, numbers in digits. Small words count only where they turn or qualify what is said. What is said of two things
that both have a name in front ("NAME (TYPE): …") is not compared at all.

- *a repeat*: the later text adds nothing, and neither has a name, number or qualifier that the other has not;
- *an update*: it says with a word of change or time ("now", "no longer", "since March") something else of the same;
- *a conflict*: only one of the two can be true, by the rules of `ingest.dedup.contradicted` or by those here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations, pairwise
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from vouchgate.ingest.contradictions.lists import LISTS, root_of
from vouchgate.ingest.data import read_data
from vouchgate.ingest.dedup.contradicted import contradicted
from vouchgate.ingest.dedup.relation import Relation
from vouchgate.ingest.dedup.rewording import Rewriter, RewrittenClaim, Unit
from vouchgate.ingest.dedup.slot import Difference, difference
from vouchgate.ingest.dedup.slot_words import WORDS
from vouchgate.ingest.dedup.subject import COPULA, Subject, is_count, is_verb, subject_of, two_things
from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.language.words import MARKED_AS_CODE, RUN, split_words, tokens

Keys = frozenset[str]  # words of content, each brought to one form

_LONGEST = 400  # characters of a text that is compared; what is longer tells many things
_PAIRED = 7  # words of content of a text of which each two are a key; of more some are drawn by a hash
_ENOUGH = 3  # words of content that two texts share, for the later one to be allowed to leave some out
_MOST_LEFT = 3  # words of content that each may have alone, for the rules of contradiction to be asked
_TOPIC = re.compile(r"(?:(?:[^\s:]+ ){1,8}\([^():]{1,60}\)|(?:[^\s:.!?`]+ ){0,3}[^\s:.!?`]+): (?=\S)")
_CITED = re.compile(r"(?<=\S)\s*[(\[](?:[A-Z]+-\d+|[^\s()\[\]]*[/#\d][^\s()\[\]]*)[)\]]")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")


class Retelling(NamedTuple):
    """What a text is to an earlier one: a repeat, an update or a conflict; the words that differ, as written, where a
    rule tells them; and how many words of content both have: of several earlier texts the one with most is meant."""

    relation: Relation
    changed: tuple[str, ...]
    shared: int


class Said(NamedTuple):
    """A text in words of content. `values` are those of them that are names, numbers or identifiers."""

    topic: Keys
    rest: str  # the text without its topic and without citations in brackets
    first: str  # root of the first word of content
    keys: Keys
    faint: Keys  # keys of words that say little of what it is about: have, use, …
    values: Keys
    telling: Keys  # what qualifies it: only, often, if, …
    denied: bool
    replaces: bool  # there are words of change or time in it


class _Lists:
    """`[retelling]` of `memories.toml`, and the groups of words that say the same of other files."""

    def __init__(self) -> None:
        raw, others = read_data("memories.toml"), ("values.toml", "support.toml", "stance.toml")
        own = raw["retelling"]
        self.folded: dict[str, str] = {}
        for group in (*own["same"], *(group for name in others for group in read_data(name)["same"])):
            roots = [root_of(word) for word in group]
            head = next((self.folded[root] for root in roots if root in self.folded), roots[0])
            self.folded = dict.fromkeys(roots, head) | self.folded
        self.whole = self.folded.keys() | {root for pair in WORDS.opposites for root in pair}
        self.light, self.telling, self.denying = (frozenset(own[n]) for n in ("light", "telling", "denying"))
        self.phrases = dict(own["phrases"])
        self.phrase = _any_of(self.phrases)
        time = "(?:" + "|".join(own["since"]) + ")"
        dated = rf"|\bsince {time}|\bfrom {time}(?: \w+)? on(?:wards?)?\b|\bturned \d"
        self.replacing = re.compile(_any_of(raw["replacing"]).pattern + dated)
        self.heads = {words.split()[0] for words in raw["replacing"]} | {"since", "from", "turned"}
        self.openings = {tuple(RUN.findall(words)[:2]) for words in self.phrases}


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    longest_first = map(re.escape, sorted(words, key=len, reverse=True))
    return re.compile(rf"\b(?:{'|'.join(longest_first)})\b", re.IGNORECASE)


_LISTS = _Lists()
_PAST = LISTS.tense.past_verbs - COPULA
_OF_SUBJECT = WORDS.many | WORDS.one | WORDS.fond
_split = lru_cache(maxsize=1 << 14)(split_words)


def says_it_replaces(text: str) -> bool:
    """Whether there are words that tell of a change: of two memories that say different things, one that has them is an
    update of the other."""
    low = " ".join(text.lower().split())
    return not _LISTS.heads.isdisjoint(RUN.findall(low)) and _LISTS.replacing.search(low) is not None


@lru_cache(maxsize=1 << 14)
def _key(word: str) -> str:
    if ordinal := _ORDINAL.fullmatch(word):
        return ordinal[1]
    root = root_of(word)
    return _LISTS.folded.get(root, root)


@lru_cache(maxsize=4096)  # a text is held against those that come after it
def said(text: str) -> Said:
    """The text in words. Linear; never raises."""
    found = _TOPIC.match(text) if ": " in text else None
    topic = frozenset(map(_key, split_words(found[0].replace("(", " ")))) if found else frozenset[str]()
    rest = text[found.end() :] if found else text
    rest = _CITED.sub("", rest) if "(" in rest or "[" in rest else rest
    plain = rest.replace("’", "'")
    runs = RUN.findall(plain.lower())
    if not _LISTS.openings.isdisjoint((*zip(runs), *pairwise(runs))):
        plain = _LISTS.phrase.sub(lambda match: _LISTS.phrases.get(match[0].lower(), match[0]), plain)
    keys, faint, values, telling = set[str](), set[str](), set[str](), set[str]()
    first, denied, opens = "", False, True
    for raw in plain.split():
        marked = MARKED_AS_CODE.search(raw) is not None
        named, opens = raw[0].isupper() and not opens, raw[-1] in ".!?:"
        for word in _split(raw):
            if word in _LISTS.denying or word.endswith("n't"):
                denied = not denied
            elif word in _LISTS.telling and not (named and word == "may"):
                telling.add(word)
            elif word in _LISTS.light:
                faint.add(_key(word))
            else:
                for part in (word,) if marked or root_of(word) in _LISTS.whole else word.split("-"):
                    if part and (part not in LISTS.function_words or named):
                        first = first or root_of(part)
                        keys.add(_key(part))
                        if marked or named or any(map(str.isdigit, part)):
                            values.add(_key(part))
    content = frozenset(keys), frozenset(faint - keys), frozenset(values), frozenset(telling)
    replaces = not _LISTS.heads.isdisjoint(runs) and says_it_replaces(rest)
    return Said(topic, rest, first, *content, denied, replaces)


def joining_keys(content: str, memory_type: str) -> tuple[int, ...]:
    """What two texts of a memory type have in common when they may be about the same, as signed numbers of 64 bits:
    each two of their words of content, the first one, and each one of a text that has few."""
    if len(content) > _LONGEST:
        return ()
    one = said(content)
    few = len(one.keys) < _ENOUGH
    words = sorted(one.keys | one.topic | (one.faint if few else frozenset()))
    if len(words) > _PAIRED:
        words = sorted(sorted(words, key=_digest)[:_PAIRED])
    alone = words if few or one.replaces else [_LISTS.folded.get(one.first, one.first)]
    keys = (*combinations(words, 2), *zip(alone, strict=True))
    return tuple(_digest("\0".join((memory_type, *each))) for each in keys)


def _digest(text: str) -> int:
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) - (1 << 63)


class Teller:
    """A later text that is held against one earlier text after another."""

    def __init__(self, text: str, rewriter: Rewriter) -> None:
        self._text = text
        self._rewriter = rewriter
        self._rewritten: RewrittenClaim | None = None
        self._subject: tuple[list[Unit], Subject | None] = [], None  # of these units

    def of(self, earlier: str) -> Retelling | None:
        """What the text is to an earlier one; None when no rule tells of anything, or one is too long."""
        if max(len(self._text), len(earlier)) > _LONGEST:
            return None
        ours, theirs = said(self._text), said(earlier)
        if ours.topic != theirs.topic:
            return None
        shared = _shared(ours, theirs)
        least = 1 if _may_be_of_one(ours, theirs) else 2
        fewest = min(len(ours.keys), len(theirs.keys))
        near = shared + len(ours.faint & theirs.faint) >= least and (least == 1 or 3 * shared >= fewest)
        if not near:
            return None
        left, other = ours.keys - theirs.keys - theirs.faint, theirs.keys - ours.keys - ours.faint
        changed, exchanged = tuple[str, ...](), False
        if 3 * shared >= fewest and min(len(left), len(other)) <= _MOST_LEFT:
            changed, exchanged = self._excluded(ours, theirs, left, other)
        repeats = not changed and not (exchanged and other) and _adds_nothing(ours, theirs, left, other)
        more = ours.keys - theirs.keys and (shared > 1 or least == 1)
        updates = not repeats and ours.replaces and (changed or more)
        if not (repeats or updates or changed) or self._of_two_things(ours, theirs):
            return None
        if repeats:
            return Retelling(Relation.REPEAT, (), shared)
        return Retelling(
            Relation.UPDATE if updates else Relation.CONFLICT, changed, shared + bool(updates and changed)
        )

    def _of_two_things(self, ours: Said, theirs: Said) -> bool:
        _, _, mine, others = self._beside(ours, theirs)
        return two_things(mine, others, _key)

    def _beside(self, ours: Said, theirs: Said) -> tuple[str, str, list[Unit], list[Unit]]:
        """Both texts as sentences, and their units."""
        claim, earlier = _sentence(ours), _sentence(theirs)
        self._rewritten = self._rewritten or RewrittenClaim(claim, self._rewriter)
        return claim, earlier, *self._rewritten.beside(earlier)

    def _subject_of(self, mine: list[Unit]) -> Subject | None:
        if self._subject[0] is not mine:
            self._subject = mine, subject_of(mine)
        return self._subject[1]

    def _excluded(self, ours: Said, theirs: Said, left: Keys, other: Keys) -> tuple[tuple[str, ...], bool]:
        """The words in which only one of two texts can be true, and whether they differ in one place alone, in which
        each has something else."""
        claim, earlier, mine, others = self._beside(ours, theirs)
        found = difference(mine, others)
        exchanged = found is not None and bool(found.ours and found.theirs)
        subjects = (self._subject_of(mine), tokens(earlier)), (subject_of(others), tokens(claim))
        apart = any(subject and not subject.may_be_of(words) for subject, words in subjects)
        changed = () if apart else contradicted(claim, earlier, mine, others)
        alike = ours.telling == theirs.telling and not (left and other) and _shared(ours, theirs) > 1
        turned = alike and ours.denied != theirs.denied and len(left | other) <= _MOST_LEFT
        if not changed and turned:
            changed = ("not", *(unit.shown for unit in (*mine, *others) if unit.key in _LISTS.denying))[-1:]
        if not changed and found is not None and exchanged and _excludes(found, self._rewriter.values):
            changed = tuple(unit.shown for unit in (*found.ours, *found.theirs))
        changed = changed or _of_one_group(mine, others, left, other)
        if not changed:
            return (), exchanged
        # With a name or number each beside what differs, the two speak of two things; with a date each, of two events.
        told = {_key(part) for word in changed for part in split_words(word)}
        events = {unit.key for unit in mine[:1]} & _PAST and any(map(str.isdigit, "".join(changed)))
        if events or ((left & ours.values) - told and (other & theirs.values) - told):
            return (), exchanged
        return changed, exchanged


def _shared(ours: Said, theirs: Said) -> int:
    return len(ours.keys & theirs.keys) + bool(ours.topic)


def _sentence(one: Said) -> str:
    """With a subject, where what the text is about stands before it, or is the user: so its verb is one."""
    first = one.rest.split(" ", 1)[0].lower()
    told = first.endswith(("s", "ed")) and root_of(first) in _OF_SUBJECT
    bare = told or (one.topic and one.rest[:1].islower())
    return f"Somebody {one.rest[:1].lower()}{one.rest[1:]}" if bare else one.rest


def _may_be_of_one(ours: Said, theirs: Said) -> bool:
    """Whether two texts that share one word may yet be about the same: both say two things of it at most ("loves
    coriander"), or they begin with it, or the one that is replaced says nothing but what it has ("the linter is X")."""
    few = len(theirs.keys) < _ENOUGH and (len(ours.keys) < _ENOUGH or ours.replaces)
    return few or (bool(ours.first) and ours.first == theirs.first)


def _adds_nothing(ours: Said, theirs: Said, left: Keys, other: Keys) -> bool:
    """Whether the later text says nothing that the earlier one does not say; or, of two that are built otherwise, says
    one thing in a word that no list knows."""
    shared = _shared(ours, theirs)
    alike = ours.denied == theirs.denied and ours.telling == theirs.telling and shared > 1
    if not alike or not (ours.values <= theirs.keys and theirs.values <= ours.keys):
        return False
    if left:
        return shared >= _ENOUGH and not ours.replaces and len(left) == 1 and len(other) <= 1
    return not other or (shared >= _ENOUGH and 2 * len(other) <= shared)


def _excludes(found: Difference, words: ValueWords) -> bool:
    """Whether what stands in the one place in which two texts differ excludes the other, where `ingest.dedup.slot`
    says nothing: what a thing has one of, a number, the name of one certain thing, what somebody is fond of."""
    before, after = found.before, found.after
    even = len(found.ours) == len(found.theirs)
    if not before:
        roots = {root_of(found.ours[0].key), root_of(found.theirs[0].key)}
        return roots <= WORDS.fond and WORDS.opposed(found.ours[0], found.theirs[0])
    last = before[-1]
    firm = all(any(unit.firm for unit in side) for side in (found.ours, found.theirs))
    of = before[-2:-1] if last.key in COPULA else [last] if firm else []
    nearby = {root_of(unit.key) for unit in (*of, *after[:1])} & (WORDS.single - WORDS.naming)
    if nearby and (even or max(len(found.ours), len(found.theirs)) <= 2):
        return True
    if all(map(is_count, (*found.ours, *found.theirs))):
        of_event = any(unit.key.endswith("ed") or unit.key in LISTS.tense.past_verbs for unit in before)
        listed, others = last.firm or last.key in WORDS.numbered, words.date_keys | WORDS.joints
        units = [
            each for each in after[:1] if not (each.firm or each.key in others or is_verb(each, first=False))
        ]
        return bool(units and not of_event and not listed) or (last.key,) in WORDS.bounds
    if not after and firm:
        return last.key in COPULA and any(unit.article for unit in before[-3:-1])
    return even and len(found.ours) == 1 and bool(after) and root_of(last.key) in WORDS.naming


def _of_one_group(ours: list[Unit], theirs: list[Unit], left: Keys, other: Keys) -> tuple[str, ...]:
    """Two words that answer one question ("tabs", "spaces"), of which each text has one, and one of them no more."""
    for one in ours if 1 in (len(left), len(other)) else ():
        group = WORDS.group(one) if _key(one.key) in left else None
        for two in theirs if group else ():
            if _key(two.key) in other and WORDS.group(two) == group:
                return one.shown, two.shown
    return ()
