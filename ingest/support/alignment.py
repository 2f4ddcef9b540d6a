"""A statement laid over a source: the place that comes nearest to saying it, and how near that is.

A statement is looked for in the sentences that have most of its words, alone or two in a row, because what is said is
said in one place: a page about anything has every word of any claim somewhere. What the nearest place has and has not
is measured (`Alignment.measures`); what that is worth, `ingest.support.stance` decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from vouchgate.ingest.contradictions.lists import LISTS as OPPOSITES
from vouchgate.ingest.contradictions.lists import root_of
from vouchgate.ingest.support.clauses.amounts import amounts_to_less
from vouchgate.ingest.support.clauses.apart import stray
from vouchgate.ingest.support.clauses.binding import binding
from vouchgate.ingest.support.clauses.bounded import bounded
from vouchgate.ingest.support.clauses.causes import turned_about
from vouchgate.ingest.support.clauses.columns import stands_otherwise, wrong_column, wrong_end
from vouchgate.ingest.support.clauses.elsewhere import beside_other_acts
from vouchgate.ingest.support.clauses.governed import governed
from vouchgate.ingest.support.clauses.instead import (
    Compared,
    added,
    another_manner,
    left_out,
    replaced,
    set_otherwise,
)
from vouchgate.ingest.support.clauses.relations import turned_round, unrelated
from vouchgate.ingest.support.clauses.roles import attached, exchanged, swapped, transposed
from vouchgate.ingest.support.clauses.signs import labelled, other_sign
from vouchgate.ingest.support.clauses.subjects import bystander, other_subject, subject_elsewhere
from vouchgate.ingest.support.clauses.turned import said_elsewhere, says_as_much
from vouchgate.ingest.support.qualifiers import denied_elsewhere, qualified, unsaid_universals
from vouchgate.ingest.support.source_text import SourceText, counts
from vouchgate.ingest.support.times import find_durations, find_times_of_day
from vouchgate.ingest.support.tokens import LISTS, MAY, Token, abbreviations, is_denial, shown_of, tokens_of

HALF = 0.5  # of a statement's weight: a place with no more than that speaks of something else
NEAREST = 6  # sentences that have most of the statement's words; the place is looked for around them
MOST_TOKENS = 80  # words of a statement that are laid over a place; a longer one is no statement
_CLOSE = 3  # words between two that stand together
_GETS = frozenset({"get", "gets", "got", "getting"})
_PARTS = re.compile(r"[,:;|/>→&+~=<•·()\[\]\"“”*\n]|\s['‘]|\s{9}")  # between two parts of a statement
_BLANKED = re.compile(r"\s{9}")  # where a citation stood
_RUN = 3  # words in a row that the place lacks: one of 374 judged statements that are rightly stated has them
_OPENING = frozenset('.!?:"“\n')  # between two words: a capital behind it means nothing
_COUNTED = 1.5  # a number's weight in that choice: "after 24 hours" is where these are, whatever else expires
_SWITCHED = {"on": "enabled", "off": "disabled"}  # behind one of these
_SWITCHES = frozenset({"switch", "turn"})
_TITLED = 0.8  # of a word's weight in the choice of the place, when only the title has it


@dataclass(frozen=True)
class Alignment:
    """A statement and the place of a source that comes nearest to it."""

    statement: tuple[Token, ...]  # its words
    wanted: tuple[Token, ...]  # those that say something, each once
    place: tuple[int, int] | None  # in the source's text; None when it has none of the words
    missing: tuple[Token, ...]  # of `wanted`, what neither the place nor the title has
    absent: tuple[Token, ...]  # of these, what the source has nowhere
    measures: Mapping[str, float]
    row: bool = False  # the place is a row of a table


def align(text: str, start: int, end: int, source: SourceText) -> Alignment:
    """Lays `text[start:end]` over a source. Linear in both; a statement is read up to MOST_TOKENS words."""
    words = _plainly(text, tokens_of(text[start:end], start)[:MOST_TOKENS])
    first: dict[str, Token] = {}
    for token in words:
        if token.content:
            first.setdefault(token.keys[0], token)
    # The names an abbreviation of the source stands for count as said by it.
    wanted = tuple(first.values())
    found = [source.find(token) for token in wanted]
    _spell_out(words, wanted, found, source)
    best = _best(words, wanted, found, source)
    if best is None:
        absent = tuple(token for token in wanted if not source.titles(token))
        return Alignment(words, wanted, None, absent, absent, {})
    at, span, place, holds = best
    has = frozenset(key for token in place for key in (*token.keys, *token.parts))
    other_spans = find_durations(words, wanted, found, place)
    find_times_of_day(text, words, wanted, found, source.text, place)
    _find_single(words, wanted, found, place)
    wanted, found = _beyond_form(wanted, found, has, source.assigns(at))
    laid = _compared(text, words, wanted, found, place, has, source, at)
    missing = laid.missing
    absent = tuple(token for token, keys in zip(wanted, found, strict=True) if token in missing and not keys)
    measures = _measures(laid, source)
    akin = {token.keys[0]: [key for key, _ in keys] for token, keys in zip(wanted, found, strict=True)}
    measures |= qualified(text, words, place, source.text, akin)
    measures["under"] = float(not holds)
    # "## Tasks" does not say that the task is done, of which "task" is all that says something.
    measures["only_named"] = float(
        len(wanted) < 2 and source.text.startswith("##", span[0]) and "\n" not in source.text[slice(*span)]
    )
    row = source.text[span[0]] == "|"
    if row:
        elsewhere = measures["subject"] or _attached_elsewhere(words, missing, absent)
        cells = words, source.head(at), source.text[slice(*span)]
        measures |= {
            "other_row": float(elsewhere),
            "wrong_end": float(wrong_end(*cells) or wrong_column(*cells)),
            "opposites": measures["opposites"] + stands_otherwise(words, place),
        }
    if measures["here"] > HALF:
        measures |= binding(text, words, source.text, place)
        measures |= beside_other_acts(text, words, source.text, place)
    measures["miscounted"] += other_spans
    if measures["turned"]:
        denies = any(map(is_denial, words))
        again = said_elsewhere(wanted, found, source, span, denied=denies)
        measures["turned"] = float(says_as_much(wanted, missing) and not again)
    if not (missing or measures["denial_said"]):
        measures["denial_said"] = float(denied_elsewhere(text, words, found, source, span))
    measures["stray"] = float(stray(laid, source, at, span[1]))
    measures |= governed(words, place) | {
        "part_unsaid": float(not row and _part_unsaid(text, words, missing))
    }
    own = _keys_of(wanted, found)
    measures |= {
        "bystander": float(bystander(words, place, source.text)),
        "turned_round": float(turned_round(words, place)),
        "unrelated": float(unrelated(words, place)),
        "other_sign": float(other_sign(text, words, source.text, place)),
        "amounts_to_less": float(amounts_to_less(text, words, own, source.text, place)),
        "labelled": float(labelled(text, words, place, missing)),
        "turned_about": float(turned_about(text, words, source.text, place)),
        "swapped": float(swapped(text, words, source.text, place)),
        "exchanged": float(exchanged(text, words, source.text, place) or transposed(words, place)),
        "named_otherwise": float(
            bool(measures["missing_names"])
            and (bool(measures["replaced"] or measures["subject"]) or _names_another(place, own))
        ),
    }
    if not row and measures["here"] > HALF:
        lines = [each for each in source.spans[at : at + 2] if each[1] <= span[1]]
        measures |= bounded(words, own, place, source.text, lines)
    return Alignment(words, wanted, span, missing, absent, measures, row)


def _is_circumstance(words: Sequence[Token], token: Token) -> bool:
    """Whether a word stands right behind one that tells where or by what something is done: "on Kubernetes"."""
    at = words.index(token)
    return bool(at) and words[at - 1].low in LISTS.where


def _compared(  # noqa: PLR0917  (what was found of a statement, all of it)
    text: str,
    words: Sequence[Token],
    wanted: Sequence[Token],
    found: Sequence[tuple[tuple[str, float], ...]],
    place: Sequence[Token],
    has: frozenset[str],
    source: SourceText,
    at: int,
) -> Compared:
    """A statement with its place, which begins with the sentence `at` and has these keys, and what is missing there."""
    keys = [frozenset(key for key, _ in each) for each in found]
    missing = tuple(
        token
        for token, own in zip(wanted, keys, strict=True)
        if not (own and own <= has)
        and (token.number or has.isdisjoint(token.keys))
        and not source.titles(token, at)
        and not (token.name and source.before(token, at) and not _is_circumstance(words, token))
    )
    gone = [token for token, own in zip(wanted, keys, strict=True) if not own and not source.titles(token)]
    return Compared(text, words, wanted, keys, place, source.text, missing, gone)


def _keys_of(wanted: Sequence[Token], found: Sequence[tuple[tuple[str, float], ...]]) -> frozenset[str]:
    """All keys of a statement, those under which the source has its words too."""
    return frozenset(
        key
        for token, keys in zip(wanted, found, strict=True)
        for key in (*token.keys, *token.parts, *(each for each, _ in keys))
    )


def _names_another(place: Sequence[Token], own: frozenset[str]) -> bool:
    """Whether the place has a name that the statement has not, and that may stand in the stead of a missing one."""
    return any(token.name and not token.among(own) for token in place)


def _attached_elsewhere(words: Sequence[Token], missing: Sequence[Token], absent: Sequence[Token]) -> bool:
    """Whether what a small word of relation attaches is not in the row of a table, and elsewhere in the source: it is
    another row's."""
    lost = {token.keys[0] for token in missing} - {token.keys[0] for token in absent}
    return any(other in lost for _, _, other in attached(words))


def _plainly(text: str, words: Sequence[Token]) -> tuple[Token, ...]:
    """The words of a statement with what stands beside them: "each one" and "once it is sent" count nothing, "gets
    sent" gets nothing, and a capital within a sentence makes a name of any word, as the marks of code do."""
    found = []
    for token, after in zip_longest(words, words[1:]):
        pronoun = token.low == "one" and (after is None or not after.content)
        joint = token.low == "once" and after is not None and after.low not in LISTS.often
        passive = token.low in _GETS and after is not None and after.low.endswith("ed")
        if pronoun or joint or passive:
            found.append(token._replace(content=False, number=False, weight=0.0))
        elif (
            token.content and text[token.start - 1 : token.start] == text[token.end : token.end + 1] == "`"
        ) or (
            token.content
            and not token.name
            and token.shown[0].isupper()
            and found
            and _OPENING.isdisjoint(text[found[-1].end : token.start])
        ):
            found.append(token._replace(name=True))
        elif token.shown == MAY and found and _OPENING.isdisjoint(text[found[-1].end : token.start]):
            found.append(token._replace(content=True, name=True, weight=1.0))
        else:
            found.append(token)
    return tuple(found)


def _beyond_form(
    wanted: Sequence[Token],
    found: Sequence[tuple[tuple[str, float], ...]],
    has: frozenset[str],
    assigns: bool,
) -> tuple[tuple[Token, ...], list[tuple[tuple[str, float], ...]]]:
    """The words of a statement without what a place that assigns says by its form; but for what it has in words."""
    said = LISTS.assigning - has if assigns else frozenset[str]()
    kept = [(token, keys) for token, keys in zip(wanted, found, strict=True) if token.keys[0] not in said]
    return tuple(token for token, _ in kept), [keys for _, keys in kept]


def _find_single(
    words: Sequence[Token],
    wanted: Sequence[Token],
    found: list[tuple[tuple[str, float], ...]],
    place: Sequence[Token],
) -> None:
    """Finds "one report" under "a report" and "a single report", and "a single report" under "one report"."""
    single = {token.low for token in words} & LISTS.single
    if not single:
        return
    counted = {
        key
        for at, token in enumerate(place)
        if token.content
        and any(word.low in LISTS.single or word.low in LISTS.articles for word in place[max(0, at - 2) : at])
        for key in token.keys
    }
    for one, two in pairwise(words):
        if one.low in single and (keys := [key for key in two.keys if key in counted]):
            for index, token in enumerate(wanted):
                if token.keys[0] == one.keys[0]:
                    found[index] = ((keys[0], 1.0),)


def _spell_out(
    words: Sequence[Token],
    wanted: Sequence[Token],
    found: list[tuple[tuple[str, float], ...]],
    source: SourceText,
) -> None:
    """Where the statement has in words what the source abbreviates, its words are found under the abbreviation."""
    lost = {
        token.keys[0]
        for token, keys in zip(wanted, found, strict=True)
        if not keys and token.shown[:1].isupper()
    }
    if not lost:
        return
    for letters, (start, end) in abbreviations(shown_of(words)).items():
        run = {words[at].keys[0] for at in range(start, end + 1)}
        if run & lost and source.sentences_with(letters):
            for index, token in enumerate(wanted):
                if not found[index] and token.keys[0] in run:
                    found[index] = ((letters, 1.0),)


def _best(
    words: Sequence[Token],
    wanted: Sequence[Token],
    found: Sequence[tuple[tuple[str, float], ...]],
    source: SourceText,
) -> tuple[int, tuple[int, int], tuple[Token, ...], bool] | None:
    """The sentence or two in a row that have most of the words: the first, their span, their words, and whether they
    hold by themselves."""
    count = len(source.spans)
    ranks: dict[int, float] = {}
    for token, keys in zip(wanted, found, strict=True):
        for key, share in keys:
            places = dict.fromkeys(source.sentences_with(key))
            if not places:  # a small word of an abbreviation
                continue
            worth = token.weight * share * (0.3 + math.log(1 + count / len(places)))
            for at in places:
                ranks[at] = ranks.get(at, 0.0) + worth
    near = sorted(ranks, key=lambda at: (-ranks[at], at))[:NEAREST]
    pairs = {(at, at + 1) for at in near if at + 1 < count} | {(at - 1, at) for at in near if at}
    windows = {(at, at) for at in near} | {pair for pair in pairs if not any(map(source.is_row, pair))}
    best: tuple[float, bool, int, int, int] | None = None
    titled = [source.titles(token) for token in wanted]
    for first, last in windows:
        has, headed = source.said(first) | source.said(last), source.headed(first)
        worth = 0.0
        for token, keys, everywhere in zip(wanted, found, titled, strict=True):
            whole = not (token.number or has.isdisjoint(token.keys))  # in any of its forms
            share = 1.0 if whole else sum([share for key, share in keys if key in has])
            if not share and (everywhere or not headed.isdisjoint(token.keys)):
                share = _TITLED
            worth += (_COUNTED if token.number else 1) * token.weight * share
        holds = not source.is_framed or all(source.holds(at, words) for at in range(first, last + 1))
        rank = (round(worth, 6), holds, first - last, -first, -last)
        best = rank if best is None or rank > best else best
    if best is None:
        return None
    first, last = -best[3], -best[4]
    return first, (source.spans[first][0], source.spans[last][1]), source.within(first, last), best[1]


def _measures(laid: Compared, source: SourceText) -> dict[str, float]:
    """What the scorer goes by; all are 0 when nothing is amiss, but for shares, which are 1."""
    words, wanted, place, gone = laid.words, laid.wanted, laid.place, laid.gone
    missing, lost, ours = laid.missing, laid.lost, laid.keys
    total = sum(token.weight for token in wanted) or 1.0
    theirs = laid.theirs
    lows, others = {token.low for token in words}, {token.low for token in place}
    run = longest = 0
    for token in wanted:
        run = run + 1 if token in lost else 0
        longest = max(longest, run)
    path = _in_order(ours, theirs)
    return {
        "here": 1 - sum(token.weight for token in missing) / total,
        "in_order": len(path) / max(1, len(wanted)),
        "together": _together(ours, theirs),
        "phrases": _phrases(words, place),
        "prose": sum(not token.content for token in place) / max(1, len(place)),
        "words": math.log(max(1, len(wanted))),
        "missing_run": longest / max(1, len(wanted)),
        "missing_end": float(bool(wanted) and wanted[-1] in lost),
        "missing_names": min(3, sum(token.name for token in missing)),
        "absent_names": min(3, sum(token.name for token in gone)),
        "absent_numbers": min(3, sum(token.number for token in gone)),
        "missing_numbers": min(3, sum(token.number for token in missing)),
        "miscounted": min(3, _miscounted(words, missing, source) + _other_spans(words, place)),
        "absent_identifiers": min(3, sum(token.identifier for token in gone)),
        "modals_unsaid": min(3, len((lows & LISTS.modals) - others)),
        "replaced": min(3, replaced(laid)),
        "added": float(added(laid)),
        "left_out": float(left_out(laid)),
        "set_otherwise": float(set_otherwise(laid)),
        "opposites": min(2, _opposites(words, place)),
        "manner": float(another_manner(laid)),
        "universals": float(bool(unsaid_universals(words, place))),
        "subject": float(
            subject_elsewhere(words, place, lost, gone, source.text) or other_subject(words, place, gone)
        ),
    }


def _part_unsaid(text: str, words: Sequence[Token], missing: Sequence[Token]) -> bool:
    """Whether the place lacks most of a part of the statement, which is what stands between two marks or joints, or
    three words in a row. The first part counts where a citation stands behind it: other ones lead to lists. A lie of
    three words weighs little beside a long sentence."""
    lost = {token.keys[0] for token in missing}
    parts: list[list[tuple[float, bool]]] = [[]]
    run = end = 0
    first = aside = False
    for token in words:
        between = text[end : token.start] if end else ""
        end = token.end
        if token.low in LISTS.parting or _PARTS.search(between):
            first = first or (len(parts) == 1 and _BLANKED.search(between) is not None)
            parts.append([])
            aside = "(" in between
        if token.content:
            # What kind of thing a name is stands in brackets behind it, and says no more.
            gone = token.keys[0] in lost and not (aside and not LISTS.kinds.isdisjoint(token.keys))
            parts[-1].append((token.weight, gone))
            run = run + 1 if gone else 0
            if run >= _RUN:
                return True
    return any(
        len(each) > 1
        and sum(weight for weight, gone in each if gone) >= HALF * sum(weight for weight, _ in each)
        for each in parts[0 if first else 1 :]
    )


def _miscounted(words: Sequence[Token], missing: Sequence[Token], source: SourceText) -> int:
    """Numbers that the place has not, of what the source counts too, and never so many of it."""
    lost = {key for token in missing if token.number for key in token.keys}
    pairs = [(number, unit) for number, unit in counts(words) if number in lost]
    return sum(number not in source.counted[unit] for number, unit in pairs if unit in source.counted)


def _other_spans(words: Sequence[Token], place: Sequence[Token]) -> int:
    """Numbers that the place has too, of other spans of time: 30 hours are not 30 days."""
    theirs: dict[str, set[str]] = {}
    for number, unit in _spans(place):
        theirs.setdefault(number, set()).add(unit)
    return sum(number in theirs and unit not in theirs[number] for number, unit in _spans(words))


def _spans(words: Sequence[Token]) -> Iterator[tuple[str, str]]:
    pairs = pairwise(words)
    return ((one.keys[0], two.keys[0]) for one, two in pairs if one.number and two.low in LISTS.spans)


def _opposites(words: Sequence[Token], place: Sequence[Token]) -> int:
    """Words of the statement that the place has not, and of which it has the opposite; where that alone shows nothing,
    as of "above" and "below", beside the same word."""
    theirs: dict[str, list[int]] = {}
    for at in range(len(place)):
        for root in _roots(place, at):
            theirs.setdefault(root, []).append(at)
    count = 0
    for at in range(len(words)):
        roots = _roots(words, at)
        if not theirs.keys().isdisjoint(roots):
            continue
        whole = any(other in theirs for root in roots for other in OPPOSITES.opposites_of(root))
        beside = (other for root in roots for other in OPPOSITES.opposites_beside.get(root, ()))
        count += whole or any(
            _beside_the_same(words, at, place, there) for other in beside for there in theirs.get(other, ())
        )
    return count


def _roots(words: Sequence[Token], at: int) -> set[str]:
    """Under what a word has its opposites; what is "switched off" is disabled."""
    low = words[at].low
    switched = low in _SWITCHED and at and not _SWITCHES.isdisjoint(words[at - 1].keys)
    known = _SWITCHED[low] if switched else low
    return {root_of(known), OPPOSITES.key(known)}


def _beside_the_same(words: Sequence[Token], at: int, place: Sequence[Token], there: int) -> bool:
    """Whether the nearest word that says something is the same on one side of two places."""
    for step in (-1, 1):
        ours, theirs = _neighbour(words, at, step), _neighbour(place, there, step)
        if ours is not None and theirs is not None and not set(ours.keys).isdisjoint(theirs.keys):
            return True
    return False


def _neighbour(words: Sequence[Token], at: int, step: int) -> Token | None:
    side = words[at + 1 :] if step > 0 else words[:at][::-1]
    return next((token for token in side if token.content), None)


def _in_order(ours: Sequence[set[str]], theirs: Sequence[set[str]]) -> list[int]:
    """Where the longest run of the statement's words that the place has in the same order stands in the place."""
    rows = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for i in range(len(ours) - 1, -1, -1):
        row, below, keys = rows[i], rows[i + 1], ours[i]
        for j in range(len(theirs) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if not keys.isdisjoint(theirs[j]) else max(below[j], row[j + 1])
    path, i, j = [], 0, 0
    while i < len(ours) and j < len(theirs):
        if not ours[i].isdisjoint(theirs[j]):
            path.append(j)
            i, j = i + 1, j + 1
        elif rows[i + 1][j] >= rows[i][j + 1]:
            i += 1
        else:
            j += 1
    return path


def _together(ours: Sequence[set[str]], theirs: Sequence[set[str]]) -> float:
    """Of the neighbours in the statement, the share that the place has within a few words of each other."""
    places = [[at for at, keys in enumerate(theirs) if not keys.isdisjoint(own)] for own in ours]
    pairs = list(pairwise(places))
    if not pairs:
        return 1.0
    close = sum(any(abs(one - two) <= _CLOSE for one in before for two in after) for before, after in pairs)
    return close / len(pairs)


def _phrases(words: Sequence[Token], place: Sequence[Token]) -> float:
    """The share of the statement's pairs of words in a row, small words of relation included, that the place has."""

    def pairs(tokens: Sequence[Token]) -> set[tuple[str, str]]:
        kept = [
            token.keys[-1] if token.content else token.low
            for token in tokens
            if token.content or token.low in LISTS.relations
        ]
        return set(pairwise(kept))

    own = pairs(words)
    return len(own & pairs(place)) / len(own) if own else 1.0
