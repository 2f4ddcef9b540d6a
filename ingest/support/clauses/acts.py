"""What a text says is done: by whom, to what, when and where.

Rules over lists of small words and of common verbs (`[acts]` in `ingest/data/stance.toml`) take its sentences apart.
What they cannot read is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vouchgate.ingest.contradictions.lists import LISTS as CALENDAR
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.terms import term_key
from vouchgate.ingest.support.tokens import LISTS, Token, denies_all_else

_END = frozenset(".;!?")
_MARK = frozenset(",–—:")
_ITEM = re.compile(r"\n\s*[-*|#\d]")
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
_OPENS, _SHUTS = ("(", "[", "lrb", "lsb"), (")", "]", "rrb", "rsb")
_FILLER = 5  # words behind a verb or a preposition in which what belongs to it is looked for
_GROUP = 3  # words from an auxiliary verb to its verb: "is not always read"
_ADVERBS = 3  # before a verb: "also now only reads"
_DATED = frozenset({"at", "by", "from", "since", "until", "to", "during"})

Words = Sequence[Token]
Run = tuple[int, ...]  # where words stand among those of a text


@dataclass(slots=True)
class Act:
    """A verb, or what a thing is said to be, with what belongs to it."""

    keys: frozenset[str]  # what the verb is found under
    at: int
    span: range
    sentence: int  # or the part of one before a semicolon
    period: int
    joint: str = ""  # the small word with which its clause begins: before, while
    subject: Run = ()
    same: Run = ()  # what the subject is said to be just before: "Ada is a ferry built in 1990"
    object: Run = ()
    settings: tuple[tuple[str, Run], ...] = ()  # what stands behind its prepositions, by their kinds
    passive: bool = False
    denied: bool = False
    pronoun: bool = False  # its subject is one
    copula: bool = False

    @property
    def agent(self) -> Run:
        """Who does what is done: "by" them."""
        return next((run for kind, run in self.settings if kind == "by"), ())


@dataclass(frozen=True, slots=True)
class _Piece:
    """Words between two marks or joints."""

    span: range
    sentence: int  # or the part of one before a semicolon
    period: int
    opened: str  # by what: a sentence's "end", a "relative" pronoun, a "joint", a "mark"
    joint: str


@dataclass(frozen=True, slots=True)
class _Lists:
    auxiliary: frozenset[str]
    be: frozenset[str]
    past: frozenset[str]
    participles: frozenset[str]
    base: frozenset[str]
    verbs: frozenset[str]
    light: frozenset[str]  # keys of verbs that tell little of what is done
    determiners: frozenset[str]
    relative: frozenset[str]
    adverbs: frozenset[str]
    denying: frozenset[str]  # the verb beside them
    pronouns: frozenset[str]  # that may be a subject, of whomever
    expecting: frozenset[str]  # words behind which a verb follows
    joints: frozenset[str]
    kinds: Mapping[str, str]  # a preposition to its kind
    moments: Mapping[str, str]  # a joint to its kind
    ordinals: frozenset[str]
    pairs: tuple[tuple[frozenset[str], frozenset[str]], ...]  # right before a word the first is not the other


def acts(text: str, words: Words) -> list[Act]:
    """What is said to be done, in order. What is a verb, its ending and its neighbours tell, or a list. Linear."""
    found: list[Act] = []
    named: dict[int, Run] = {}  # by a sentence before its first verb
    began: dict[int, int] = {}  # and where that begins
    for piece in _pieces(text, words):
        last = found[-1] if found and found[-1].sentence == piece.sentence else None
        start = piece.span.start
        if groups := _verb_groups(words, piece, goes_on=last is not None):
            opening, first = named.get(piece.sentence, ()), began.get(piece.sentence, start)
            _read_verbs(words, piece, groups, found, opening, first)
        elif last is None:
            began.setdefault(piece.sentence, start)
            if words[start].low not in ACTS.kinds and not words[start].low.endswith("ing"):
                named[piece.sentence] = named.get(piece.sentence, ()) + first_run(words, piece.span)
        elif piece.opened in {"mark", "joint"}:
            _read_rest(words, piece, found, last)
    return found


def _read_verbs(  # noqa: PLR0917  (a piece and what its sentence has before it)
    words: Words,
    piece: _Piece,
    groups: Sequence[tuple[int, int]],
    found: list[Act],
    opening: Run,
    began: int,
) -> None:
    """The acts of a piece that has verbs. `opening` is what its sentence names before the first of them, from `began`
    on."""
    start = piece.span.start
    for number, (first, main) in enumerate(groups):
        end = groups[number + 1][0] if number + 1 < len(groups) else piece.span.stop
        span = range(start if number else began, end)
        act = Act(frozenset(words[main].keys), main, span, piece.sentence, piece.period)
        act.joint = "" if number else piece.joint
        act.copula = words[main].low in ACTS.auxiliary
        act.passive = not act.copula and _is_passive(words, first, main)
        near = range(max(piece.span.start, first - 2), min(piece.span.stop, main + 2))
        act.denied = any(_denies(words[at]) and not denies_all_else(words, at) for at in near)
        act.object = _behind(words, main, end)
        its = ((f"its {kind}", run) for kind, run in _settings(words, start, first))
        act.settings = (*_settings(words, main, end), *its)
        last = found[-1] if found and found[-1].sentence == piece.sentence else None
        _read_subject(words, piece, act, range(start, first), last, opening)
        told = piece.opened == "relative" or (number > 0 and first == main)
        if last is not None and last.copula and told and act.subject and min(act.subject) > last.at:
            act.same = last.subject
        if act.copula:
            _read_copula(words, act, end)
        found.append(act)
        start = main + 1


def _read_subject(  # noqa: PLR0917  (an act and all that stands before it)
    words: Words, piece: _Piece, act: Act, leading: range, last: Act | None, opening: Run
) -> None:
    """Who does it: what stands before the verb, or who did what was done before it in the sentence."""
    lows = {words[at].low for at in leading}
    if "to" in lows:
        return
    relative = piece.opened == "relative"
    act.subject = _subject(words, leading)
    act.pronoun = not act.subject and not lows.isdisjoint(LISTS.pronouns)
    if act.subject or not lows.isdisjoint(ACTS.pronouns):
        return
    if relative and leading.start == piece.span.start:
        act.subject = _run_before(words, leading.start)
    elif last is not None:
        act.subject, act.same, act.pronoun = last.subject, last.same, last.pronoun
        if relative:  # "a job that fails is …": what fails is the subject
            act.subject += (last.at,)
    else:
        act.subject = opening


def _read_copula(words: Words, act: Act, end: int) -> None:
    """What a thing is said to be stands for the verb; or, where it is told where or how it is, that and the thing."""
    behind = next((words[at].low for at in range(act.at + 1, end) if not _denies(words[at])), "")
    if behind in ACTS.kinds:
        named = (*act.subject[-1:], *(run[-1] for _, run in act.settings[:1]))
        act.keys = frozenset(f"@{key}" for at in named for key in words[at].keys)
    else:
        act.keys = frozenset(key for at in act.object for key in words[at].keys)
    act.object = ()


def _read_rest(words: Words, piece: _Piece, found: list[Act], last: Act) -> None:
    """A piece without a verb belongs to the verb before it; "pike in March" of "perch spawn in May, pike in March" has
    a subject of its own."""
    span = [at for at in piece.span if words[at].low not in LISTS.joints | LISTS.articles]
    ends = (at for at in span if not words[at].content or words[at].number or words[at].low in ACTS.kinds)
    cut = next(ends, piece.span.stop)
    subject, settings = tuple(at for at in span if at < cut), _settings(words, cut - 1, piece.span.stop)
    if subject and (settings or (cut < piece.span.stop and words[cut].number)):
        counted = tuple(at for at in span if at >= cut and words[at].number)
        found.append(
            replace(
                last,
                span=piece.span,
                joint=piece.joint,
                subject=subject,
                object=counted,
                settings=settings,
                same=(),
            )
        )
    else:
        last.span = range(last.span.start, piece.span.stop)
        last.settings += _settings(words, piece.span.start - 1, piece.span.stop)


def outside_brackets(text: str, words: Words) -> list[Token]:
    """The words that stand outside of brackets. A lone capital is a name, "plan A", and a month is no verb."""
    kept: list[Token] = []
    depth, end = 0, words[0].start if words else 0
    for word in words:
        between = text[end : word.start]
        depth += sum(map(between.count, _OPENS[:2])) + (word.low in _OPENS)
        depth = max(0, depth - sum(map(between.count, _SHUTS[:2])) - (word.low in _SHUTS))
        end = word.end
        if depth or word.low in _OPENS or word.low in _SHUTS:
            continue
        within = bool(kept) and _END.isdisjoint(between) and "\n" not in between
        letter = len(word.shown) == 1 and word.shown.isupper()
        if letter and word.shown != "I" and (within or word.shown != "A"):
            label = "!" + word.low
            kept.append(word._replace(low=label, keys=(label,), content=True, name=True))
        elif word.shown == "May":
            kept.append(word._replace(low="!may", content=True))
        else:
            kept.append(word)
    return kept


def _pieces(text: str, words: Words) -> list[_Piece]:
    found: list[_Piece] = []
    start, sentence, period, opened, joint = 0, 0, 0, "", ""
    for at, word in enumerate(words):
        if at and (mark := _break(text, words, at)):
            found.append(_Piece(range(start, at), sentence, period, opened, joint))
            start, opened, joint = at, mark, ""
            if mark == "end":
                sentence += 1
                period += ";" not in text[words[at - 1].end : word.start]
        if at == start and word.low in ACTS.joints:
            joint = word.low
    if words:
        found.append(_Piece(range(start, len(words)), sentence, period, opened, joint))
    return found


def _break(text: str, words: Words, at: int) -> str:
    """What parts a word from the one before it, if anything does."""
    before, word = words[at - 1], words[at]
    between = text[before.end : word.start]
    if not _END.isdisjoint(between) or "\n\n" in between or _ITEM.search(between):
        return "end"
    if word.low in ACTS.relative:
        return "relative"
    if word.low == "that" and before.content and at + 1 < len(words) and is_verb(words, at + 1):
        return "relative"
    if word.low in ACTS.joints:
        return "joint"
    dated = word.number and (before.number or is_calendar(before))  # "2 May, 2016"
    return "" if dated or _MARK.isdisjoint(between) else "mark"


def _verb_groups(words: Words, piece: _Piece, *, goes_on: bool) -> list[tuple[int, int]]:
    """The verbs of a piece: each from its first auxiliary verb to the verb itself. `goes_on`: its sentence has a verb
    before it."""
    verbs = [at for at in piece.span if is_verb(words, at)]
    if (
        goes_on
        and piece.opened == "mark"
        and verbs[:1] == [piece.span.start]
        and _is_inflected(words[verbs[0]])
    ):
        del verbs[0]  # "confirms orders in an hour, returns in a day"
    found: list[tuple[int, int]] = []
    for at in verbs:
        if found:
            first, main = found[-1]
            between = words[main + 1 : at]
            joined = words[main].low in ACTS.auxiliary and at - main <= _GROUP
            if joined and all(not word.content or word.low.endswith("ly") for word in between):
                found[-1] = (first, at)
                continue
        found.append((at, at))
    return found


def _is_participle(word: Token) -> bool:
    return word.low.endswith("ed") or word.low in ACTS.participles


def _is_passive(words: Words, first: int, main: int) -> bool:
    behind = next((word.low for word in words[main + 1 : main + 1 + _ADVERBS] if not _is_adverb(word)), "")
    return (behind == "by" and _is_participle(words[main])) or any(
        words[at].low in ACTS.be for at in range(first, main)
    )


def is_verb(words: Words, at: int) -> bool:
    """By its form, or by a list and by what stands before it: "a restore runs", "backups run", not "the run"."""
    low, name = words[at].low, words[at].name
    if low in ACTS.auxiliary or low in ACTS.past:
        return True
    regular = low.endswith("ed") and len(low) > len("shed") and "-" not in low and not (name and at)
    start = at
    while start and at - start < _ADVERBS and _is_adverb(words[start - 1]):
        start -= 1
    if not start:
        return regular
    if words[start - 1].low in ACTS.determiners or (
        _is_inflected(words[start - 1]) and at + 1 < len(words) and words[at + 1].content
    ):
        return False  # "the expired rows", "omits expired rows"
    return (
        regular
        or low in ACTS.participles
        or (not name and low in ACTS.verbs and _is_finite(words, start, at))
    )


def _is_finite(words: Words, start: int, at: int) -> bool:
    """Whether a word of the list of verbs is one, by its neighbours; before `start` stands what is no adverb."""
    before = words[start - 1]
    inflected = _is_inflected(words[at])
    after = words[at + 1].low if at + 1 < len(words) else ""
    if after in ACTS.auxiliary or after in ACTS.past or (inflected and after in ACTS.base):
        return False  # "requests are retried", "requests fail"
    if inflected and (before.low in ACTS.auxiliary or after == "by" or _is_inflected(before)):
        return False  # "had hits", "builds by hand", "confirms orders"
    plural = before.low.endswith("s") or before.name or before.shown[:1].isupper()
    near = {word.low for word in words[max(0, start - 2) : start]}
    return (
        before.low in ACTS.expecting
        or _denies(before)
        or (inflected and (before.content or before.low in LISTS.joints))
        or (plural and before.content and near.isdisjoint(ACTS.determiners))
    )


def _is_inflected(word: Token) -> bool:
    return word.low in ACTS.verbs and word.low not in ACTS.base


def _is_adverb(word: Token) -> bool:
    return word.low in ACTS.adverbs or (word.low.endswith("ly") and not word.name)


def _denies(word: Token) -> bool:
    return word.low in ACTS.denying or word.low.endswith("n't")


def _subject(words: Words, leading: range) -> Run:
    """What stands before a verb and says something, but for adverbs and the time with which a clause begins."""
    found = tuple(at for at in leading if words[at].content and not words[at].low.endswith("ly"))
    opening = [words[at].low for at in leading[:2]]
    if opening and (opening[0] in ACTS.kinds or (opening[0] in ACTS.joints and opening[-1] in ACTS.kinds)):
        if any(words[at].low in ACTS.pronouns for at in leading):
            return ()
        return tuple(at for at in found if not _is_time(words[at]))
    return found


def first_run(words: Words, span: Iterable[int]) -> Run:
    """The first words in a row that say something, but for "more" and "less"."""
    run: list[int] = []
    for at in span:
        if run and at != run[-1] + 1:
            break
        if words[at].content and not any(words[at].low in side for pair in ACTS.pairs for side in pair):
            run.append(at)
        elif run:
            break
    return tuple(run)


def _run_before(words: Words, end: int) -> Run:
    """The words in a row that say something, right before `end`."""
    start = end
    while start and words[start - 1].content:
        start -= 1
    return tuple(range(start, end))


def _behind(words: Words, at: int, end: int) -> Run:
    """The first words in a row that say something behind a verb or a preposition, in its part of the clause."""
    run: list[int] = []
    for place in range(at + 1, min(end, at + 1 + _FILLER)):
        word = words[place]
        if word.low in ACTS.kinds or word.low in ACTS.auxiliary or word.low in ACTS.joints:
            break
        if word.content:
            run.append(place)
        elif run:
            break
    return tuple(run)


def _settings(words: Words, at: int, end: int) -> tuple[tuple[str, Run], ...]:
    found: list[tuple[str, Run]] = []
    for place in range(at + 1, end):
        kind = ACTS.kinds.get(words[place].low)
        if kind is None or not (run := _behind(words, place, end)):
            continue
        if kind in _DATED and any(_is_time(words[each]) for each in run):
            found.append((kind, run))
            kind = "when"
        elif kind in {"for", "within"} and any(words[each].low in LISTS.spans for each in run):
            kind = "span"
        found.append((kind, run))
    return tuple(found)


def is_calendar(word: Token) -> bool:
    low = word.low.lstrip("!")
    return word.shown[:1].isupper() and (low in CALENDAR.months or low in CALENDAR.weekdays)


def _is_time(word: Token) -> bool:
    return is_calendar(word) or (word.number and _YEAR.fullmatch(word.shown) is not None)


def _forms(verb: str) -> tuple[str, ...]:
    if verb.endswith(("s", "x", "ch", "sh", "o")):
        return verb, verb + "es"
    return (verb, verb[:-1] + "ies") if verb[-1] == "y" and verb[-2] not in "aeiou" else (verb, verb + "s")


def _load() -> _Lists:
    raw = read_data("stance.toml")["acts"]
    plain = (
        "auxiliary",
        "be",
        "past",
        "participles",
        "determiners",
        "relative",
        "adverbs",
        "denying",
        "pronouns",
    )
    words = {name: frozenset(raw[name]) for name in plain}
    greater, less, early, late = (frozenset(raw[name]) for name in ("greater", "less", "early", "late"))
    return _Lists(
        **words,
        base=frozenset(raw["verbs"]),
        light=frozenset(map(term_key, raw["light"])),
        verbs=frozenset(form for verb in raw["verbs"] for form in _forms(verb)),
        expecting=words["auxiliary"] | words["pronouns"] | words["relative"] | {"to", "that"},
        joints=LISTS.joints | frozenset(raw["joints"]),
        kinds={word: kind for kind, prepositions in raw["settings"].items() for word in prepositions},
        moments={word: kind for kind, joints in raw["moments"].items() for word in joints},
        ordinals=frozenset(raw["ordinals"]),
        pairs=((greater, less), (less, greater), (early, late), (late, early)),
    )


# A constant read once from the package's own data file.
ACTS = _load()
