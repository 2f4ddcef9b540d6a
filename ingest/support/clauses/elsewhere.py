"""Whether a place says of something else what a statement says.

"The lake freezes in April" has every word of "the lake freezes in December and is free of ice by April". What is told
of a thing belongs to its verb (`acts`): where the place has a statement's verb only beside another subject, object,
time or place, and what the statement puts there beside another verb, it says something else (`elsewhere`). The same
holds for two words in a row: "the first edition" of "the second edition" (`beside`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import dropwhile

from vouchgate.ingest.support.clauses.acts import (
    ACTS,
    Act,
    Run,
    Words,
    acts,
    first_run,
    is_calendar,
    is_verb,
    outside_brackets,
)
from vouchgate.ingest.support.tokens import Token

_LONGEST = 6  # words of a subject; a longer one was not read rightly
_EXCLUSIVE = frozenset({"by", "when", "span", "since", "until"})  # of these there is one
_MEANS = frozenset({"by", "through", "with"})  # of what is done actively, who helps: "sends it by Postfix"
_BELONGS = frozenset(
    {"of", "behind", "beside", "near", "around", "at", "in", "for", "to", "with", "like", "from"}
)
_NOT_IT = frozenset({"another", "other"})
_POSSESSIVE = frozenset({"its", "their", "his", "her"})
_PLACES = frozenset({"at", "from", "to"})
_CONDITIONS = frozenset({"unless", "until"})  # which a place has to say, too
# Behind these also things that are no names tell acts apart.
_LOOSE = frozenset({"at", "from", "to", "span", "before", "after"})


def beside_other_acts(text: str, words: Words, source: str, place: Words) -> dict[str, float]:
    """Whether a place has the acts of a statement beside something else (`elsewhere`), and its words behind other ones
    (`beside`). Linear in both, but for the acts that they share."""
    ours, theirs = outside_brackets(text, words), outside_brackets(source, place)
    pair = _Pair(ours, theirs, there := acts(source, theirs))
    told = acts(text, ours)
    elsewhere = any(
        shared and all(pair.told_apart(act, other) for other in shared)
        for act in told
        for shared in [[other for other in there if act.keys & other.keys]]
    )
    return {
        "other_verb": float(any(map(pair.another_verb, told))),
        "elsewhere": float(elsewhere),
        "beside": float(any(map(pair.follows_another, range(1, len(ours))))),
    }


class _Pair:
    """The words of a statement and those of a place, with where each has the other's."""

    def __init__(self, ours: Words, theirs: Words, there: Sequence[Act]) -> None:
        self._ours, self._theirs, self._acts = ours, theirs, there
        self._said = {key for word in ours if word.content for key in _found_under(word)}
        self._there: dict[str, list[int]] = defaultdict(list)
        for at, word in enumerate(theirs):
            for key in _found_under(word) if word.content else ():
                self._there[key].append(at)

    def told_apart(self, act: Act, other: Act) -> bool:
        """Whether two acts of one verb are not the same, because what is told of one the place tells of another."""
        if other.denied and not act.denied:
            return True
        ours, theirs = ACTS.moments.get(act.joint), ACTS.moments.get(other.joint)
        if ours != theirs and (None not in {ours, theirs} or ours in _CONDITIONS):
            return True
        return self._other_subject(act, other) or self._other_circumstances(act, other)

    def _other_circumstances(self, act: Act, other: Act) -> bool:
        region = {*other.span, *other.subject, *other.same}
        return (
            self._other_object(act, other, region)
            or self._other_thing(act, other, region)
            or any(self._other_setting(kind, run, other, region) for kind, run in act.settings)
        )

    def follows_another(self, second: int) -> bool:
        """Whether a word stands in the place behind another name, another ordinal, or the opposite of the one that it
        follows in the statement, and never behind that one."""
        one, two = self._ours[second - 1], self._ours[second]
        places = self._at(two) if two.content else ()
        if not places:
            return False
        before = [self._theirs[at - 1] if at else None for at in places]
        named = one.name and one.content and not is_verb(self._ours, second)
        if named and {at - 1 for at in places}.isdisjoint(self._at(one)):
            return all(
                word is not None
                and (word.name or is_calendar(word))
                and word.content
                and not self._ours_too(word)
                for word in before
            )
        if one.low in ACTS.ordinals:
            return all(
                word is not None and word.low in ACTS.ordinals and word.low != one.low for word in before
            )
        for these, those in ACTS.pairs:
            if one.low in these:
                near = [{word.low for word in self._theirs[max(0, at - 2) : at]} for at in places]
                return all(lows & those and not lows & these for lows in near)
        return False

    def _other_subject(self, act: Act, other: Act) -> bool:
        theirs, known = other.subject, not other.pronoun
        if act.passive != other.passive:  # what one is done to, the other does
            theirs = other.object if act.passive else other.agent
            known = bool(theirs)
        ours, others = _labels(self._ours, act.subject), _labels(self._theirs, theirs)
        if ours and others and ours.isdisjoint(others):
            return True
        if self._possessors_apart(act, other):
            return True
        same = {*theirs, *(other.same if act.passive == other.passive else ())}
        lacking = [at for at in act.subject if (places := self._where(at)) and same.isdisjoint(places)]
        if self._agent_exchanged(act, other):
            return True
        if not lacking:
            alike = act.passive == other.passive
            return alike and (
                (known and self._unheard_of(act, other, theirs)) or self._beside_it(act, other, theirs)
            )
        if not known:  # a pronoun stands for what was named before
            return act.passive == other.passive and any(min(self._where(at)) > other.at for at in lacking)
        return self._another(act, other, theirs, lacking)

    def _possessors_apart(self, act: Act, other: Act) -> bool:
        """Whether "its servers" are those of one by name in the statement, and of another one in the place."""
        one = _possessor(self._ours, act.subject)
        two = _possessor(self._theirs, other.subject)
        if one is None or two is None:
            return False
        return self._is_name(one) and bool(self._where(one)) and two not in self._where(one)

    def another_verb(self, act: Act) -> bool:
        """Whether the place says of what does an act, and of what it is done to or where, another verb."""
        light = not ACTS.light.isdisjoint(self._ours[act.at].keys)
        if act.copula or light or self._where(act.at) or any(act.keys & other.keys for other in self._acts):
            return False
        done = [
            at for run in (act.object, *(run for _, run in act.settings)) for at in run if self._where(at)
        ]
        places = [there for at in act.subject for there in self._where(at)]
        if not done or not places:
            return False
        for other in self._acts:
            verb = self._theirs[other.at]
            tells = not other.copula and ACTS.light.isdisjoint(verb.keys)
            if not tells or other.passive != act.passive or self._ours_too(verb):
                continue
            theirs = {run[-1] for run in (other.object, *(run for _, run in other.settings)) if run}
            if not any(not theirs.isdisjoint(self._where(at)) for at in done):
                continue
            if not set(other.subject).isdisjoint(places) or (other.pronoun and min(places) < other.at):
                return True
        return False

    def _agent_exchanged(self, act: Act, other: Act) -> bool:
        """Whether who does it in one, active, is whom it is done to in the other, passive: "Ada is paid by Ben"; or
        whether it is done by one in the statement, and by another one by name in the place."""
        if act.passive == other.passive:
            return False
        passive, active = (act, other) if act.passive else (other, act)
        if not passive.agent or active.agent or active.pronoun or not active.subject:
            return False
        one, two = (self._ours, self._theirs) if act.passive else (self._theirs, self._ours)
        doer = {key for at in active.subject for key in two[at].keys}
        agent = {key for at in passive.agent for key in one[at].keys}
        patient = {key for at in passive.subject for key in one[at].keys}
        if not doer.isdisjoint(agent):
            return False
        named = act.passive and any(self._ours[at].name or self._where(at) for at in act.agent)
        return not doer.isdisjoint(patient) or (named and self._is_name_there(active.subject[-1]))

    def _unheard_of(self, act: Act, other: Act, theirs: Run) -> bool:
        """Whether nothing of who does it in the statement is in the place, which says who does it, and to the same."""
        if not act.subject or not theirs or act.copula or other.copula or len(theirs) > _LONGEST:
            return False
        head, heads = _head(self._ours, act.subject), _head(self._theirs, theirs)
        if any(self._where(at) for at in act.subject) or any(
            self._ours_too(self._theirs[at]) for at in theirs
        ):
            return False
        if self._theirs[heads[-1]].name != self._ours[head[-1]].name:
            return False
        done = {*act.object, *(at for _, run in act.settings for at in run)}
        return any(self._where(at) for at in done)

    def _beside_it(self, act: Act, other: Act, theirs: Run) -> bool:
        """Whether the place says it of what it names by the subject of the statement: "the team behind the gateway",
        "another gateway"."""
        if not act.subject or not theirs or act.copula or other.copula or len(theirs) > _LONGEST:
            return False
        own, head = _head(self._ours, act.subject), _head(self._theirs, theirs)
        one, two = own[-1], head[-1]
        if not {*self._where(one)}.isdisjoint(head):
            before = self._theirs[head[0] - 1].low if head[0] else ""
            return before in _NOT_IT and not any(word.low in _NOT_IT for word in self._ours)
        if two + 1 == len(self._theirs) or self._ours_too(self._theirs[two]):
            return False
        behind = self._theirs[two + 1]
        belongs = behind.low in _BELONGS and behind.start == self._theirs[two].end + 1
        return belongs and not {*self._where(one)}.isdisjoint(theirs)

    def _another(self, act: Act, other: Act, theirs: Run, lacking: Sequence[int]) -> bool:
        """Whether the subject of an act lacks what it has in the statement because it is another one."""
        own = [at for at in theirs if not self._ours_too(self._theirs[at])]
        plain = not (act.passive or other.passive or act.copula or other.copula)
        if (
            not own
            and plain
            and (self._exchanged(act, theirs, lacking) or self._names_apart(act, theirs, lacking))
        ):
            return True
        if not own:  # of two things the place says it of one, and of the other one something else
            same = (each for each in self._acts if each.keys & act.keys and self._names_any(each, lacking))
            return any(self._other_circumstances(act, each) for each in same)
        head = _head(self._ours, act.subject)
        one, two = head[-1], _head(self._theirs, theirs)[-1]
        if len(theirs) > _LONGEST:
            return False
        if one in lacking and two in own:
            # "The firm" may stand for a name before it, but not beside it.
            alike = self._is_name(one) == self._theirs[two].name
            resumes = _is_definite(self._theirs, theirs) or _is_definite(self._ours, act.subject)
            return alike or not resumes or min(self._where(one)) > other.at or self._contrasts(one, other)
        return one not in lacking and two not in own and not set(head).isdisjoint(lacking)

    def _exchanged(self, act: Act, theirs: Run, lacking: Sequence[int]) -> bool:
        """Whether the statement has the one who does it in the place as one it is done to or for: "Ada pays Ben"."""
        if not theirs or (one := _head(self._ours, act.subject)[-1]) not in lacking:
            return False
        two = _head(self._theirs, theirs)[-1]
        helping = {at for kind, run in act.settings if kind in _MEANS for at in run}
        sides = {*act.object, *(at for _, run in act.settings for at in run)}
        if self._is_name(one) and self._theirs[two].name:
            sides |= {*act.span}
        return any(two in self._where(side) for side in sides - helping - {*act.subject})

    def _names_apart(self, act: Act, theirs: Run, lacking: Sequence[int]) -> bool:
        """Whether one is named to do it in the statement, and another one in the place."""
        one, two = _head(self._ours, act.subject), _head(self._theirs, theirs)
        named = one and two and self._ours[one[-1]].shown[:1].isupper() and self._is_name(one[-1])
        named = named and self._is_name_there(two[-1]) and not self._theirs[two[-1]].identifier
        return bool(named) and one[-1] in lacking and not any(at in self._where(x) for x in one for at in two)

    def _other_object(self, act: Act, other: Act, region: set[int]) -> bool:
        run = [at for at in act.object if self._where(at)]
        firm = _firmness(self._ours, run)
        return (
            act.passive == other.passive
            and bool(firm)
            and firm == _firmness(self._theirs, other.object)
            and all(region.isdisjoint(self._where(at)) for at in run)
            and not any(self._ours_too(self._theirs[at]) for at in other.object)
        )

    def _other_thing(self, act: Act, other: Act, region: set[int]) -> bool:
        """Whether the same one does the same for the same, and to something else, whatever that is called."""
        ours, theirs = act.object, other.object
        if act.passive or other.passive or not ours or not theirs or not act.settings or not act.subject:
            return False
        if any(not region.isdisjoint(self._where(at)) for at in ours):
            return False
        if any(self._ours_too(self._theirs[at]) for at in theirs):
            return False
        here = {at for each in act.subject for at in self._where(each)}
        beside = {at for _, run in act.settings for each in run for at in self._where(each)}
        settings = {at for _, run in other.settings for at in run}
        return not here.isdisjoint(other.subject) and not beside.isdisjoint(settings)

    def _other_setting(self, kind: str, run: Run, other: Act, region: set[int]) -> bool:
        known = [at for at in run if self._where(at)]
        named = kind in _PLACES and _firmness(self._ours, run) == "name"
        wanted = run if named or kind == "when" else known  # what is at one time or place is not at another
        theirs = [found for name, found in other.settings if name == kind]
        if _firmness(self._ours, wanted) == "number":  # of two amounts in MB it is not the MB that differ
            wanted = [at for at in wanted if self._ours[at].number]
            theirs = [tuple(at for at in found if self._theirs[at].number) or found for found in theirs]
        if not wanted or not theirs or any(not region.isdisjoint(self._where(at)) for at in wanted):
            return False
        if any(self._ours_too(self._theirs[at]) for found in theirs for at in found):
            return False
        firm = _firmness(self._ours, wanted)
        alike = any(_firmness(self._theirs, found) == firm for found in theirs)
        tells = bool(firm) or kind in _LOOSE or kind.startswith("its ")
        return kind in _EXCLUSIVE or (alike and tells)

    def _contrasts(self, at: int, other: Act) -> bool:
        """Whether the sentence of an act has a word of the statement as the subject of another one."""
        return any(each.period == other.period and self._names_any(each, [at]) for each in self._acts)

    def _names_any(self, other: Act, run: Sequence[int]) -> bool:
        """Whether the subject of an act of the place has one of these words of the statement."""
        return any(not set(self._where(at)).isdisjoint(other.subject) for at in run)

    def _is_name(self, at: int) -> bool:
        """Whether a word of the statement is a name: at its start any word has a capital, and the place tells."""
        return self._ours[at].name or all(
            self._theirs[place].shown[:1].isupper() for place in self._where(at)
        )

    def _is_name_there(self, at: int) -> bool:
        """Whether a word of the place is a name; at the start of a sentence the statement tells."""
        word = self._theirs[at]
        return word.name or any(each.name and not set(each.keys).isdisjoint(word.keys) for each in self._ours)

    def _ours_too(self, word: Token) -> bool:
        return not self._said.isdisjoint(_found_under(word))

    def _where(self, at: int) -> Sequence[int]:
        return self._at(self._ours[at])

    def _at(self, word: Token) -> Sequence[int]:
        return next((self._there[key] for key in word.keys if key in self._there), ())


def _head(words: Words, run: Run) -> Run:
    """Of a subject the words up to the first that says nothing: its last one is what it is about."""
    named = tuple(dropwhile(lambda at: words[at].shown[0].isdigit(), run)) or run  # "At 19:12 Ada …"
    return first_run(words, named) or named


def _possessor(words: Words, run: Run) -> int | None:
    """The last name before "its" or "their", which stands right before a subject."""
    at = run[0] - 1 if run else -1
    if at < 1 or words[at].low not in _POSSESSIVE:
        return None
    named = (
        each for each in range(at - 1, -1, -1) if words[each].content and words[each].shown[:1].isupper()
    )
    return next(named, None)


def _is_definite(words: Words, run: Run) -> bool:
    return bool(run) and run[0] > 0 and words[run[0] - 1].low in ACTS.determiners


def _labels(words: Words, run: Run) -> set[str]:
    return {words[at].low for at in run if words[at].low[0] == "!"}


def _firmness(words: Words, run: Sequence[int]) -> str:
    """Whether words are a number, a name, or neither (""): only what is of one kind stands in another one's stead."""
    if any(words[at].number for at in run):
        return "number"
    return "name" if any(words[at].name for at in run) else ""


def _found_under(word: Token) -> Iterable[str]:
    """The keys of a word, and those of its parts; an identifier is one thing: "flags.yaml" is no flag."""
    return word.keys if word.identifier else dict.fromkeys((*word.keys, *word.parts))
