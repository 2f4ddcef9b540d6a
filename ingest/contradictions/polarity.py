"""Affirmed and denied: negations, opposites, and what was chosen instead."""

from __future__ import annotations

from collections.abc import Iterator

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.quantity import quantities
from vouchgate.ingest.contradictions.sentence import Sentence

_ENOUGH_DENIED = 0.6  # of the claim's other content words
_CONTRASTED = 4  # words before one, in which "rather than" or the like turns it down
_ENOUGH_OPPOSITE = 0.55
_ENOUGH_CONTRAST = 0.4  # the rejected words are asked for besides
_ENOUGH_CONTRAST_ALONE = 0.75  # when the claim has no verb of choosing
_BESIDE = 4  # words around an opposite among which the claim's neighbour must stand
_RUN = 10  # words in which what was rejected is named, examples included
_LINKS = frozenset({"to", "of", "for", "from", "by", "as", "with", "about"})  # what follows is another thing
_WAYS = frozenset({"up", "down", "on", "off", "in", "out", "before", "after"})
_HAVING = frozenset(
    {
        "with",
        "using",
        "has",
        "have",
        "had",
        "needs",
        "need",
        "requires",
        "require",
        "holding",
        "under",
        "uses",
        "use",
    }
)
_APART = frozenset(";:")  # between what is said of two
_HEAD_REACH = 3  # words after a negation among which what it denies begins


def _denied(sentence: Sentence) -> Iterator[tuple[int, int, int]]:
    """Each negation: its first and last word, and the first content word it denies."""
    for index, taken in sentence.negations.items():
        for place in range(index + taken, min(len(sentence.words), index + taken + _HEAD_REACH + 1)):
            if sentence.lows[place] in ("try", "attempt"):  # "does not try to load" does not load
                continue
            if not sentence.words[place].key or sentence.lows[place] in LISTS.conditions:
                break
            if sentence.words[place].content:
                yield index, index + taken - 1, place
                break


def negation_rule(pair: Pair) -> Iterator[Contradiction]:
    """The claim denies what the source asserts, or asserts what it denies: the same word, said of the same. What both
    deny ("even when it is not a terminal") counts for neither."""
    claim, source = pair.claim, pair.source
    if not (claim.denials or source.denials) or not pair.same_time():
        return
    ours, theirs = list(_denied(claim)), list(_denied(source))
    both = {claim.words[head].key for _, _, head in ours} & {source.words[head].key for _, _, head in theirs}
    mine = [found for found in ours if claim.words[found[2]].key not in both]
    others = [found for found in theirs if source.words[found[2]].key not in both]
    if claim.denials - len(both) == 1 and not others and source.denials == len(both):
        yield from _claim_denies(pair, mine)
    elif others and not mine and claim.denials == len(both):
        said = [found for found in others if source.words[found[2]].key in claim.keys]
        yield from _source_denies(pair, said if len(said) == 1 else [])
    else:
        yield from _in_one_clause(pair, mine, others)


def _in_one_clause(
    pair: Pair, mine: list[tuple[int, int, int]], others: list[tuple[int, int, int]]
) -> Iterator[Contradiction]:
    """Of sentences that deny several things, what one denies of a verb and its object the other asserts of them."""
    for denials, one, other in ((mine, pair.claim, pair.source), (others, pair.source, pair.claim)):
        for first, last, head in denials:
            place = _asserted(other, one.words[head].key)
            after = one.content_after(head)
            then = None if place is None else other.content_after(place)
            if (
                place is None
                or after is None
                or then is None
                or one.words[after].key != other.words[then].key
            ):
                continue
            clause = one.clause(first)
            if _denies_by_without(one, first) or any(i in clause for i in one.negations if i != first):
                continue
            if any(i > place for i in other.negations if i in other.clause(place)):
                continue  # "no data in logs" and "data may not be logged" deny the same
            ours, theirs = (first, max(last, head)), (place, place)
            if one is pair.source:
                ours, theirs = theirs, ours
            word = pair.claim.words[ours[1]]
            if pair.about((), _ENOUGH_DENIED) and not pair.passage_says(word.root, denied=one is pair.claim):
                yield pair.conflict("negation", ours, theirs)
                return


def _claim_denies(pair: Pair, denials: list[tuple[int, int, int]]) -> Iterator[Contradiction]:
    if LISTS.contrasts.within(pair.source.lows):
        return
    for first, last, head in denials:
        word = pair.claim.words[head]
        place = _asserted(pair.source, word.key)
        if (
            place is None
            or _prevents(pair, place)
            or pair.passage_says(word.root, denied=True)
            or pair.other_subject(head, place)
        ):
            continue
        if _denies_by_without(pair.claim, first) and not _says_had(pair.source, place):
            continue
        ended = pair.claim.new and pair.source.past and not pair.source.new  # what is no more was once
        if ended or _limits(pair, head, place) or _of_another(pair, head, place):
            continue
        if pair.about((head,), _ENOUGH_DENIED) and _goes_on(pair, head, place):
            yield pair.conflict("negation", (first, max(last, head)), (place, place))


def _limits(pair: Pair, head: int, place: int) -> bool:
    """Whether the claim denies a thing only beyond a bound, "not kept for longer than 30 days", or the source says who
    alone does it, or what was taken over something else: all of that may be so."""
    beyond = any(each.mark for each in quantities(pair.claim) if each.first > head)
    lows = pair.source.lows
    return (
        beyond or "only" in lows[:place] or (pair.claim.words[head].key in LISTS.choosing and "over" in lows)
    )


def _of_another(pair: Pair, head: int, place: int) -> bool:
    """Whether the source asserts it of somebody else, and has whom the claim denies it of behind a semicolon or in
    another sentence: "Members can comment; guests read"."""
    mine = {pair.claim.words[index].key for index in pair.claim.content if index < head}
    places = [index for key in mine for index in pair.source.positions.get(key, ())]
    if not places:
        return bool(mine & pair.passage.keys) and not pair.points_back()
    return all(
        not _APART.isdisjoint(pair.source.lows[min(index, place) : max(index, place)]) for index in places
    )


def _source_denies(pair: Pair, denials: list[tuple[int, int, int]]) -> Iterator[Contradiction]:
    claim, source = pair.claim, pair.source
    for first, last, head in denials:
        places = claim.positions.get(source.words[head].key, ())
        sure = [place for place in places if claim.words[place].content and _claimed(pair, place, first)]
        if (
            not sure
            or _prevents(pair, head)
            or _conditional(pair, head)
            or pair.passage_says(claim.words[sure[0]].root, denied=False)
        ):
            continue
        if pair.other_subject(sure[0], head) or (
            _denies_by_without(source, first) and not _says_had(claim, sure[0])
        ):
            continue
        if (
            not _was_denied_before(pair, first, sure[0])
            and pair.about((sure[0],), _ENOUGH_DENIED)
            and _follows(pair, sure[0], head)
        ):
            yield pair.conflict("negation", (sure[0], sure[0]), (first, max(last, head)))


def _denies_by_without(sentence: Sentence, index: int) -> bool:
    return sentence.lows[index] == "without"


def _says_had(sentence: Sentence, place: int) -> bool:
    """Whether a thing is said to be had or used, as "without" denies: "with the lock held", not "release the lock"."""
    return bool(_HAVING.intersection(sentence.lows[max(0, place - 3) : place]))


def _prevents(pair: Pair, place: int) -> bool:
    """Whether the claim, or the clause around a place of the source, and not the other has a verb that denies something
    without saying what. An order to stop or to avoid something is read as a denial, and is none of them."""
    source = pair.source
    orders = {source.words[index].key for index in source.negations if index == source.command}
    clause = {source.words[index].key for index in source.clause(place)}
    return bool(((pair.claim.keys - source.keys) | (clause - pair.claim.keys - orders)) & LISTS.preventing)


def _conditional(pair: Pair, head: int) -> bool:
    """Whether the source denies a thing under a condition that the claim does not name."""
    for place in range(head + 1, len(pair.source.words)):
        if pair.source.lows[place] in ("if", "when", "unless", "until"):
            condition = [i for i in pair.source.content if place < i <= place + _RUN]
            return not any(pair.source.words[i].key in pair.claim.keys for i in condition)
    return False


def _was_denied_before(pair: Pair, negation: int, ours: int) -> bool:
    """Whether the source denies in the past tense what the claim says in the present: a change may lie between."""
    then = LISTS.tense.past.intersection(pair.source.lows[max(0, negation - 1) : negation + 1])
    return bool(then) and not (
        LISTS.tense.past.intersection(pair.claim.lows) or pair.claim.lows[ours].endswith("ed")
    )


def _claimed(pair: Pair, place: int, negation: int) -> bool:
    """Whether the claim asserts the word at a place, or allows what the source forbids with "must not". What stands
    behind "rather than" it does not."""
    cues = (LISTS.contrasts.at(pair.claim.lows, at) for at in range(max(0, place - _CONTRASTED), place))
    if any(cue is not None and cue[1] != "not" for cue in cues):
        return False
    if pair.claim.polarity[place] == 1:
        return True
    allowed = bool({"may", "can"} & {*pair.claim.lows[max(0, place - 3) : place]}) and not pair.claim.denials
    return allowed and negation > 0 and pair.source.lows[negation - 1] in ("must", "may", "shall", "should")


def _asserted(sentence: Sentence, key: str) -> int | None:
    """Where a word stands that the sentence asserts."""
    for place in sentence.positions.get(key, ()):
        if sentence.words[place].content and sentence.polarity[place] == 1:
            return place
    return None


def _goes_on(pair: Pair, head: int, place: int) -> bool:
    """Whether what the claim denies is asserted in one clause of the source: the words that follow, too."""
    clause = {pair.source.words[index].key for index in pair.source.clause(place)}
    return all(
        pair.claim.words[index].key in clause for index in [i for i in pair.claim.content if i > head][:3]
    )


def _follows(pair: Pair, ours: int, theirs: int) -> bool:
    """Whether what the claim says next is what the source denies next, when both go on at all."""
    mine = [pair.claim.words[index].key for index in pair.claim.content if index > ours]
    denied = {
        pair.source.words[index].key
        for index in pair.source.content
        if index > theirs and pair.source.polarity[index] <= 0
    }
    passive = {"is", "are", "was", "were", "be"}.intersection(pair.source.lows[max(0, theirs - 3) : theirs])
    if passive:  # "the signature is not verified"
        denied |= {pair.source.words[index].key for index in pair.source.content if index < theirs}
    return not mine or mine[0] in denied


def opposite_rule(pair: Pair) -> Iterator[Contradiction]:
    """A word in the claim, and in the same place of the source its opposite: added and removed, before and after."""
    claim, source = pair.claim, pair.source
    for index, word in enumerate(claim.words):
        in_time = (
            word.low in ("before", "after") and claim.old == source.old
        )  # holds of a fault and of its repair
        if (not word.content and not in_time) or not (in_time or pair.same_time()):
            continue
        for place in _opposites(source, word.root):
            if source.polarity[place] * claim.polarity[index] <= 0 or source.words[place].root in claim.roots:
                continue  # a claim that has both, "inputs and outputs", is not turned round by one
            if (
                _beside(pair, index, place)
                and pair.about((index,), _ENOUGH_OPPOSITE)
                and not pair.passage_says(word.root)
            ):
                yield pair.conflict("opposite", (index, index), (place, place))
                break


def _opposites(source: Sentence, root: str) -> Iterator[int]:
    """Where the source has an opposite of a word."""
    for other in LISTS.opposites_of(root):
        yield from source.roots.get(other, ())


def _beside(pair: Pair, ours: int, theirs: int) -> bool:
    """Whether what the claim says it of stands beside the source's word, too: the nearest word before, which is what
    it is said of; or the nearest after, when nothing or only the change itself stands before."""
    before, after = pair.claim.content_before(ours), pair.claim.content_after(ours)
    around = pair.source.near(theirs, _BESIDE, _BESIDE)
    first = before is not None and pair.claim.words[before].key in around
    then = after is not None and pair.claim.words[after].key in around
    if pair.claim.lows[ours] in ("before", "after"):
        first = before is not None and pair.claim.words[before].key in pair.source.near(theirs, _BESIDE, 0)
        return (
            first
            and after is not None
            and pair.claim.words[after].key in pair.source.near(theirs, 0, _BESIDE)
        )
    if not first and pair.claim.words[ours].key in LISTS.tense.reports and pair.source.command == theirs:
        clause = {pair.source.words[place].key for place in pair.source.clause(theirs) if place > theirs}
        said = [pair.claim.words[place].key for place in pair.claim.content if place < ours]
        first = (
            len(clause.intersection(said)) > 1
        )  # "an entry for X was added" against "remove the entry for X"
    return first or (
        then
        and (before is None or pair.source.command == theirs or pair.claim.words[before].key in LISTS.changes)
    )


def contrast_rule(pair: Pair) -> Iterator[Contradiction]:
    """The source chose one thing instead of another, and the claim says that it is the other."""
    claim, source = pair.claim, pair.source
    if claim.denials or claim.old or LISTS.contrasts.within(claim.lows) or source.old:
        return
    for index in range(1, len(source.words)):
        cue = LISTS.contrasts.at(source.lows, index)
        if cue is None or (cue[1] == "not" and source.lows[index - 1] not in (",", "(", "and")):
            continue
        chosen = [source.words[place].key for place in source.content if index - 6 <= place < index]
        rejected = [place for place in _run(source, index + cue[0]) if source.words[place].key not in chosen]
        head = _chosen_in_claim(pair, rejected)
        apart = [key for key in chosen if key not in LISTS.choosing][-1:]
        before = source.words[index - 1]
        if before.low in _WAYS:  # "up instead of down"
            apart = [before.low] if before.low in claim.lows else []
        if head is None or (apart and (apart[0] in claim.keys or before.low in _WAYS)):
            continue
        if not (claim.keys & source.keys) - {source.words[place].key for place in rejected}:
            continue  # "it" may be what the claim is of, but nothing of that is said to have been chosen
        if pair.about((head[0],), _ENOUGH_CONTRAST if head[2] else _ENOUGH_CONTRAST_ALONE):
            yield pair.conflict("choice", (head[0], head[0]), (index, head[1]))
            return


def _chosen_in_claim(pair: Pair, rejected: list[int]) -> tuple[int, int, bool] | None:
    """Where the claim has a rejected thing, where the source has it, and whether the claim says that it is used. The
    names among what was rejected tell it from what was chosen; without one its last word does."""
    words = pair.source.words
    named = [place for place in rejected if words[place].name] or rejected[-1:]
    verbs = [place for place in pair.claim.content if pair.claim.words[place].key in LISTS.choosing]
    for place in named:
        for ours in pair.claim.positions.get(words[place].key, ()):
            for verb in verbs:
                between = pair.claim.lows[verb + 1 : ours]
                if verb < ours and len(between) <= 4 and not _LINKS.intersection(between):
                    return ours, place, True
    for place in named:
        if words[place].key in pair.claim.positions:
            return pair.claim.positions[words[place].key][0], place, False
    return None


def _run(sentence: Sentence, begin: int) -> list[int]:
    """The content words from a place up to the next mark or small word that goes on with something else."""
    found: list[int] = []
    for place in range(begin, min(len(sentence.words), begin + _RUN)):
        word = sentence.words[place]
        if not word.key and word.low not in ("`", '"', "*", "-", "/", ","):
            break
        if word.content:
            found.append(place)
        elif found and word.low not in ("such", "as", "like", "and", "or", ",", "`", '"', "-"):
            break
    return found
