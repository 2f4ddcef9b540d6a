"""One slot, and another value in it: defaults, exclusive categories, and who made a thing."""

from __future__ import annotations

from collections.abc import Iterator

from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.quantity import quantities
from vouchgate.ingest.contradictions.sentence import Sentence, Word, read_once

_REACH = 5  # words between "default" and its value
_ENOUGH = 0.6
_ENOUGH_EXCHANGED = 0.7
_SURELY = 6  # words in a row that are the same around another: no chance
_CLOSING = 4  # words in a row that are the same before another name at the end of a clause
_COPULAS = frozenset({"is", "was", "are", "were", "be", "been"})
_ARTICLES = frozenset({"a", "an", "the"})
_PHRASE_ENDS = frozenset(
    {"by", "for", "from", "in", "at", "that", "which", "who", "of", "based", "on", "with", ",", ";", "(", "."}
)


@read_once
def _default_value(sentence: Sentence) -> tuple[int, bool | tuple[str, float]] | None:
    """The value that a sentence gives the default, and where: a state of a switch, or a number."""
    for index, low in enumerate(sentence.lows):
        if low in ("opt-in", "opt-out"):
            turned = (
                "not" in sentence.lows[max(0, index - 3) : index]
                or "longer" in sentence.lows[max(0, index - 2) : index]
            )
            return index, LISTS.states[low] != turned
        if not low.startswith("default"):
            continue
        if sentence.lows[max(0, index - 1) : index] == ("the",) and _is_named_default(sentence, index):
            return index, True
        order = [place for step in range(1, _REACH + 1) for place in (index + step, index - step)]
        for place in order:
            if not 0 <= place < len(sentence.words):
                continue
            state = LISTS.states.get(sentence.lows[place])
            if state is not None and not (
                sentence.lows[place] in ("on", "off") and _is_preposition(sentence, place)
            ):
                turned = any(sentence.lows[i] == "not" for i in range(max(0, place - 2), place))
                return place, state != turned
        for quantity in quantities(sentence):
            if abs(quantity.at - index) <= _REACH and quantity.mark in ("", "=") and not quantity.heads:
                return quantity.at, (quantity.measure, quantity.low)
    return None


def _is_named_default(sentence: Sentence, index: int) -> bool:
    """Whether a thing is said to be the default: "HTTP/3 is now the default"."""
    after = sentence.lows[index + 1] if index + 1 < len(sentence.words) else "."
    copula = {"is", "are"}.intersection(sentence.lows[max(0, index - 4) : index])
    return bool(copula) and after in (".", ",", ";", "for", "in", "on", "now") and index > 2


def _is_preposition(sentence: Sentence, place: int) -> bool:
    after = sentence.lows[place + 1] if place + 1 < len(sentence.words) else "."
    return after in _ARTICLES or (
        after not in ("by", "in", "when", "if", "and", "or", "unless") and after.isalpha()
    )


def default_rule(pair: Pair) -> Iterator[Contradiction]:
    """Both give the default of one thing, and not the same."""
    ours, theirs = _default_value(pair.claim), _default_value(pair.source)
    if ours is None or theirs is None or isinstance(ours[1], bool) is not isinstance(theirs[1], bool):
        return
    if ours[1] == theirs[1] or (
        isinstance(ours[1], tuple) and isinstance(theirs[1], tuple) and ours[1][0] != theirs[1][0]
    ):
        return
    if pair.claim.old != pair.source.old:
        return
    others = [_default_value(sentence) for sentence in pair.passage.sentences]
    if any(other is not None and other[1] == ours[1] for other in others):
        return
    if pair.about((ours[0],), _ENOUGH):
        yield pair.conflict("default", (ours[0], ours[0]), (theirs[0], theirs[0]))


@read_once
def _complement(sentence: Sentence) -> tuple[int, int] | None:
    """What the first "is a …" of a sentence says its subject is: first word and the one after the last."""
    for index, low in enumerate(sentence.lows):
        if low not in _COPULAS:
            continue
        end = index + 1
        while end < min(len(sentence.words), index + 14) and sentence.lows[end] not in _PHRASE_ENDS:
            end += 1
        return index + 1, end
    return None


def _subject_is_shared(pair: Pair, begin: int) -> bool:
    """Whether the claim's subject is the source's: a word of it in the source's subject, or the source refers back."""
    ours = {word.key for word in pair.claim.words[:begin] if word.content}
    theirs = _complement(pair.source)
    subject = {word.key for word in pair.source.words[: theirs[0] if theirs else 0] if word.content}
    return bool(ours & subject)


def category_rule(pair: Pair) -> Iterator[Contradiction]:
    """The first thing each says X is, of one group of exclusive words: "a playlist" against "an album"."""
    ours, theirs = _complement(pair.claim), _complement(pair.source)
    if ours is None or theirs is None or pair.claim.denials or pair.source.denials:
        return
    if not _subject_is_shared(pair, ours[0]):
        return
    for index in range(*ours):
        group = LISTS.groups.get(_singular(pair.claim.lows[index]))
        if group in (None, "repeated") or _mentions(pair, index):
            continue
        if group == "kind" and not _is_head(pair.claim, index):
            continue
        for place in range(*theirs):
            same = LISTS.groups.get(_singular(pair.source.lows[place])) == group
            if same and (group != "kind" or _is_head(pair.source, place)):
                yield pair.conflict("category", (index, index), (place, place))
                return


def _singular(low: str) -> str:
    return low if low in LISTS.groups or not low.endswith("s") else low[:-1]


def _mentions(pair: Pair, index: int) -> bool:
    """Whether the passage has the claim's word anywhere."""
    word = pair.claim.words[index]
    return word.key in pair.passage.keys or word.low in pair.passage.lows


def _is_head(sentence: Sentence, index: int) -> bool:
    """Whether a word is the thing itself: "film", not "film director"."""
    if index + 1 >= len(sentence.words):
        return True
    after = sentence.words[index + 1]
    told = after.low.endswith("ed") or after.low in LISTS.tense.past_verbs  # "an album released in May"
    return not after.content or after.number or told or after.low in _PHRASE_ENDS


def exchange_rule(pair: Pair) -> Iterator[Contradiction]:
    """A word of an exclusive group in the claim, another of its group in the same place of the source."""
    if pair.claim.denials or pair.source.denials or not pair.same_time() or "elsewhere" in pair.source.lows:
        return
    for index, word in enumerate(pair.claim.words):
        group = LISTS.groups.get(word.low)
        if group is None or group in ("kind", "nationality") or _mentions(pair, index):
            continue
        if group == "method" and not word.text.isupper():
            continue
        others = [place for place, low in enumerate(pair.source.lows) if LISTS.groups.get(low) == group]
        if len({pair.source.lows[place] for place in others}) != 1:
            continue
        place = others[0]
        if group == "method" and not pair.source.words[place].text.isupper():
            continue
        if place and pair.source.lows[place - 1] in ("but", "except", "without", "not", "from"):
            continue
        left = pair.claim.content_before(index)
        near = left is not None and pair.claim.words[left].key in pair.source.near(place, 5, 3)
        if near and pair.about((index,), _ENOUGH_EXCHANGED):
            yield pair.conflict("exchange", (index, index), (place, place))


def _names_from(sentence: Sentence, begin: int) -> tuple[set[str], int]:
    """The keys of the names in a list that begins at a place, and the last word of it."""
    found: set[str] = set()
    last = begin
    for place in range(begin, min(len(sentence.words), begin + 24)):
        word = sentence.words[place]
        if word.content and word.text[:1].isupper():
            found.add(word.key)
            last = place
        elif word.low not in ("and", ",", "&", ".", "-", "the", "de", "von", "van", "by"):
            break
    return found, last


def _makers(sentence: Sentence) -> Iterator[tuple[str, set[str], int, int]]:
    """Who did what in the passive: the verb's key, the names, and the words from the verb to the last name. In "written
    and directed by A" A did both."""
    for index, low in enumerate(sentence.lows):
        if low != "by" or index == 0:
            continue
        names, last = _names_from(sentence, index + 1)
        if not names:
            continue
        place = index - 1
        while place >= 0 and place > index - 8:
            word = sentence.words[place]
            if word.key in LISTS.makers and word.low.endswith(("ed", "en", "t")):
                yield word.key, names, place, last
            elif word.low not in ("and", ",", "co", "-", "executive", "also"):
                break
            place -= 1


def _our_maker(claim: Sentence) -> tuple[str, set[str], int, int] | None:
    """Who did what in the claim, also in the active: "A directed B"."""
    passive = next(_makers(claim), None)
    if passive is not None:
        return passive
    for index in claim.content:
        word = claim.words[index]
        if word.key not in LISTS.makers or not word.low.endswith(("ed", "te", "d")) or index == 0:
            continue
        if claim.lows[index - 1] in _COPULAS or claim.polarity[index] <= 0:
            return None
        names = {other.key for other in claim.words[:index] if other.content}
        whole = all(other.text[:1].isupper() for other in claim.words[:index] if other.content)
        return (word.key, names, 0, index) if names and whole else None
    return None


def maker_rule(pair: Pair) -> Iterator[Contradiction]:
    """The source names who made the thing, and the claim names another."""
    ours = _our_maker(pair.claim)
    if ours is None or pair.claim.denials or pair.source.denials:
        return
    verb, names, first, last = ours
    deciding = [index for index in pair.claim.content if pair.claim.words[index].key in names]
    all_theirs = [other for other in _makers(pair.source) if other[0] == verb]
    if not all_theirs or any(names & other[1] for other in all_theirs):
        return
    if any(pair.source.lows[max(0, other[2] - 2) : other[2]].count("co") for other in all_theirs):
        return
    rest = {pair.claim.words[i].key for i in pair.claim.content} - names - {verb}
    if rest & pair.source.keys and pair.about(deciding, _ENOUGH):
        yield pair.conflict("maker", (first, last), (all_theirs[0][2], all_theirs[0][3]))


def middle_rule(pair: Pair) -> Iterator[Contradiction]:
    """Another word between the same words: "fond of tea as a child" against "fond of milk as a child"."""
    claim, source = pair.claim, pair.source
    if claim.denials or source.denials or not pair.same_time():
        return
    if not any(word.name and word.key in source.keys for word in claim.words) and not _same_pronoun(pair):
        return
    for index in claim.content[:64]:
        word = claim.words[index]
        if index < 2 or word.key in pair.passage.keys or word.number:
            continue
        for place in source.content:
            other = source.words[place]
            if place < 2 or other.key in claim.keys or other.number or not _exclude(word, other):
                continue
            before, after = _run_back(pair, index, place), _run_ahead(pair, index, place)
            framed = before and after and before + after >= 3
            closing = before >= _CLOSING and _closes(claim, index) and _closes(source, place)
            sure = before + after >= _SURELY
            if (framed or (closing and word.name and other.name)) and (
                sure or pair.about((index,), _ENOUGH_EXCHANGED)
            ):
                yield pair.conflict("exchange", (index, index), (place, place))
                return


def _closes(sentence: Sentence, index: int) -> bool:
    """Whether a clause ends behind a word."""
    return index + 1 == len(sentence.words) or not sentence.words[index + 1].key


def _exclude(word: Word, other: Word) -> bool:
    """Whether of two words in one place only one can be true. Plain ones may be two words for one thing, as "ailing"
    and "troubled" are, unless they are of one group, or two scales."""
    scales = [each.low.removesuffix("s") in LISTS.scales for each in (word, other)]
    if any(scales) or word.low in LISTS.groups:
        return all(scales) or (LISTS.groups.get(word.low) == LISTS.groups.get(other.low) and not any(scales))
    return word.name and other.name


def _same_pronoun(pair: Pair) -> bool:
    """Whether both speak of "she", or the source of somebody it has named before."""
    return pair.source.lows[0] in LISTS.pronouns or bool(
        {"he", "she"} & {*pair.claim.lows} & {*pair.source.lows}
    )


def _run_back(pair: Pair, ours: int, theirs: int) -> int:
    return _run(pair, ours, theirs, -1)


def _run_ahead(pair: Pair, ours: int, theirs: int) -> int:
    return _run(pair, ours, theirs, 1)


def _run(pair: Pair, ours: int, theirs: int, step: int) -> int:
    """How many words in a row are the same to one side; 0 when none of them is a content word."""
    count, content = 0, False
    ours, theirs = ours + step, theirs + step
    while 0 <= ours < len(pair.claim.words) and 0 <= theirs < len(pair.source.words) and count < 8:
        mine = pair.claim.words[ours]
        if mine.low != pair.source.words[theirs].low or not mine.key:
            break
        count, content = count + 1, content or mine.content
        ours, theirs = ours + step, theirs + step
    return count if content else 0
