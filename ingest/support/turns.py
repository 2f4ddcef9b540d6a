"""What a record shows: a user's turn no more than what its speaker wants, likes, decides or said, and a tool's output
nothing of that kind. Pure, linear.

A turn is no source on the world: "the limit is 500" in it shows that somebody said so. So a statement is held against
it by its form: "The user prefers tabs" against a sentence in which "I" prefer just that, phrase by phrase, and "Ann
said that …" against what she asserts in it. Questions, suppositions, quotations and what is handed over for somebody
else are not its speaker's word, and are blanked out before anything is held against it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from vouchgate.ingest.claims.source import Found, Held, Stance
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.support.scope import Said
from vouchgate.ingest.support.tokens import tokens_of

NOT_OWN = "not_own"  # no wish, decision or words of the speaker, or not just what the turn says of these
OF_PERSON = "of_person"  # what a person wants or said, which no tool knows

_QUOTED = re.compile(r"[\"“”„«»`]|^\s*>|(?<!\w)'[^']+'(?!\w)", re.MULTILINE)
_JOINED = re.compile(r"\s*[,;]\s*(?:(and|but|so|because)\s+)?|\s+(and|but|so|because|&)\s+")
_FAVOURITE = re.compile(r"my (?:favou?rite|preferred) ([\w -]{1,60}?) (?:is|are) (.+)")
_SPEAKS = re.compile(r"(?:she|he|they|i|the user)\b ?")
_CONTRACTED = (("n't", " not"), ("'ve", " have"), ("'m", " am"), ("'d", " would"))
_REASONS = frozenset({"so", "because"})


class _Wish(NamedTuple):
    """One thing that a person wants, likes or decided: a phrase by its words in order, and what it is preferred to."""

    verb: str
    denied: bool
    phrase: tuple[str, ...]
    against: tuple[str, ...]


class _Subject(NamedTuple):
    """A sentence of a claim about the speaker: its offsets, and where begins what is said of them."""

    start: int
    end: int
    then: int
    own: str  # "I" or "My", as they would say it; empty: their words follow


def asserted(text: str) -> str:
    """The turn with all blanked out that its speaker does not stand behind, so that offsets stay."""
    plain = _plain(text)
    kept = [" "] * len(text)
    for start, end in () if WORDS.taking_back.search(plain) else sentences(text):
        sentence = plain[start:end]
        lead, colon, _ = sentence.partition(":")
        if WORDS.handing_over.match(sentence) or (colon and lead.strip() not in WORDS.leads):
            break  # from here on the words may be anybody's
        asked = sentence.rstrip(" )!").endswith("?")
        if not (asked or _QUOTED.search(sentence) or WORDS.unasserted.search(sentence)):
            kept[start:end] = text[start:end]
    return "".join(kept)


def addressed(said: Said, who: str) -> Said:
    """The claim in the words of the turn's speaker: "The user prefers tabs" as "I prefers tabs", "Ann said that …" as
    what she said. Offsets stay."""
    text = said.text
    for one in _about_speaker(said, who):
        text = text[: one.start] + one.own.ljust(one.then - one.start) + text[one.then :]
    return replace(said, text=text)


def limited(held: Iterable[Held], said: Said, found: Found, turn: str) -> Iterator[Held]:
    """The stances of a record without those that it cannot have. `said` is the claim as sent, `turn` what is asserted
    in the record."""
    about = _about_speaker(said, found.who) if found.form == "turn" else []
    clauses = [_plain(turn[start:end]) for start, end in sentences(turn)] if about else []
    shown = {wish for clause in clauses for wish in _wishes(clause)}
    for one in held:
        of = next((each for each in about if each.start <= one.start < each.end), None)
        if found.form == "tool_output":
            why = OF_PERSON if WORDS.personal.search(_plain(said.text[one.start : one.end])) else ""
        elif of is None:
            why = NOT_OWN
        else:
            clause = _plain(said.text[max(one.start, of.then) : one.end]).strip()
            why = "" if _is_shown(of.own, clause, clauses, shown) else NOT_OWN
        lower = why and one.stance in (Stance.STATES, Stance.SPEAKS)
        yield one.model_copy(update={"stance": Stance.SPEAKS, "why": why}) if lower else one


def _is_shown(own: str, clause: str, turn: Iterable[str], shown: set[_Wish]) -> bool:
    """Whether the turn has what a clause of a claim says of its speaker."""
    speaks = _SPEAKS.match(clause)
    if not own and speaks is None:
        return True  # "Ann said that the limit is 500": what is asserted, whatever it is
    rest = clause[speaks.end() :] if speaks else clause
    if not own:  # "Ann said that she lives here": "I live here"
        first = next((token for token in tokens_of(rest) if token.low not in WORDS.between), None)
        return first is not None and any(_does(sentence, first.keys[0]) for sentence in turn)
    wanted = list(_wishes(f"{own.lower()} {rest}", whole=True))
    return bool(wanted) and all(any(_says(wish, each) for wish in shown) for each in wanted)


def _says(wish: _Wish, wanted: _Wish) -> bool:
    if wish[:3] != wanted[:3]:
        return False
    return wish.against == wanted.against or not (wanted.against or WORDS.relating.intersection(wish.against))


def _does(sentence: str, verb: str) -> bool:
    """Whether "I" is the subject of a verb, given by its key."""
    lows = [(token.low, token.keys[0]) for token in tokens_of(_spelt_out(sentence))]
    for at, (low, _) in enumerate(lows):
        if low == "i":
            return next((key for low, key in lows[at + 1 :] if low not in WORDS.between), "") == verb
    return False


def _about_speaker(said: Said, who: str) -> list[_Subject]:
    """The sentences of a claim whose subject is whoever said the turn."""
    names = [name for name in (who, who.split(maxsplit=1)[0]) if len(name) > 1] + list(WORDS.speaker)
    named = "|".join(re.escape(_plain(name)) for name in sorted(names, key=len, reverse=True))
    subject = re.compile(rf"(?:{named})('s)?(?!\w)")
    found = []
    for start, end in dict.fromkeys(one.sentence for one in said.statements):
        sentence = _plain(said.text[start:end])
        if (match := subject.match(sentence)) is not None:
            tells = WORDS.telling.match(sentence, match.end())
            then, own = (tells.end(), "") if tells else (match.end(), "My" if match[1] else "I")
            found.append(_Subject(start, end, start + then, own))
    return found


def _wishes(sentence: str, *, whole: bool = False) -> Iterator[_Wish]:
    """What somebody who says "I" wants in a sentence; nothing where more is said of it than phrases can hold. Of a
    claim the `whole` sentence must say that, and nothing else."""
    pieces = _pieces(_spelt_out(sentence))
    found: list[tuple[str, bool, list[list[str]]]] = []
    before: list[str] = []  # "For recipes, I …"
    for joint, piece in pieces:
        if joint in _REASONS:
            if whole:
                return
            break
        if (favourite := _FAVOURITE.fullmatch(piece)) is not None:
            found.append(("favourite", False, [_words(" ".join(favourite.groups())) + before]))
        elif (opened := WORDS.opening.match(piece)) is not None and (opened["i"] or found):
            denied = bool(WORDS.denials.intersection(opened["between"].split()))
            found.append((WORDS.verbs[opened["verb"]], denied, [_words(piece[opened.end() :]) + before]))
        elif found:
            found[-1][2].append(_words(piece))
        elif (words := _words(piece)) and words[0] in WORDS.relating:
            before = words
        elif whole and words:
            return
    for verb, denied, items in found:
        yield from _phrases(verb, items, denied=denied)


def _phrases(verb: str, items: list[list[str]], *, denied: bool) -> Iterator[_Wish]:
    first = items[0]
    others = [item for item in items[1:] if item]
    restricted = [item for item in others if item[0] in WORDS.relating or item[0] in WORDS.denials]
    dropped = [item for item in restricted if item[0] == "not" and not WORDS.relating.intersection(item[1:])]
    if len(dropped) < len(restricted):
        return  # "I like tabs, but only in Makefiles"
    plain = [first, *(item for item in others if item not in dropped)]
    if len(plain) > 1 and any(WORDS.relating.intersection(item) for item in plain):
        plain = [
            [word for item in plain for word in item]
        ]  # "hiking and climbing in winter": of both, perhaps
    for item in plain:
        cut = next((at for at, word in enumerate(item) if at and word in WORDS.against), len(item))
        if item:
            yield _Wish(verb, denied, tuple(item[:cut]), tuple(item[cut:]))


def _pieces(sentence: str) -> Iterator[tuple[str, str]]:
    """What commas and small words join, each with the word before it."""
    done, joint = 0, ""
    for match in _JOINED.finditer(sentence):
        yield joint, sentence[done : match.start()].strip(" .!")
        done, joint = match.end(), match[1] or match[2] or ""
    yield joint, sentence[done:].strip(" .!")


def _words(phrase: str) -> list[str]:
    """The words of a phrase that count: those that say something, by their keys, and those that relate them."""
    counting = WORDS.relating | WORDS.against | WORDS.denials
    return [
        token.low if token.low in counting else token.keys[0]
        for token in tokens_of(phrase)
        if token.low in counting or (token.content and token.low not in WORDS.fillers)
    ]


def _plain(text: str) -> str:
    """Small letters and one apostrophe, in place."""
    lowered = "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)
    return lowered.replace("’", "'").replace("‘", "'")


def _spelt_out(plain: str) -> str:
    for short, long in _CONTRACTED:
        plain = plain.replace(short, long)
    return plain


@dataclass(frozen=True, slots=True)
class _Words:
    """The lists of `[turns]` in `stance.toml`."""

    speaker: tuple[str, ...]
    between: frozenset[str]
    denials: frozenset[str]
    fillers: frozenset[str]
    against: frozenset[str]
    relating: frozenset[str]
    leads: frozenset[str]
    verbs: Mapping[str, str]  # each form to its kind, and whether it is over
    opening: re.Pattern[str]  # of a clause: "I", what may stand before and behind it, and one of `verbs`
    telling: re.Pattern[str]
    unasserted: re.Pattern[str]
    taking_back: re.Pattern[str]
    handing_over: re.Pattern[str]
    personal: re.Pattern[str]


def _any_of(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _load() -> _Words:
    raw = read_data("stance.toml")["turns"]
    verbs = {
        form: f"{kind} {time}"
        for kind, times in raw["verbs"].items()
        for time, forms in times.items()
        for form in forms
    }
    small, fillers = _any_of([*raw["between"], *raw["denials"]]), _any_of(raw["fillers"])
    polite = "please|now|then|ok|okay|hey|hi|just|can you|could you|would you"
    return _Words(
        **{
            name: frozenset(raw[name])
            for name in ("between", "denials", "fillers", "against", "relating", "leads")
        },
        speaker=tuple(raw["speaker"]),
        verbs=verbs,
        opening=re.compile(
            rf"(?P<i>(?:(?:{fillers}) )*i )?(?P<between>(?:(?:{small}) )*)(?P<verb>{_any_of(verbs)})(?!\w)"
        ),
        telling=re.compile(rf" (?:{_any_of(raw['telling'])})(?!\w),?:?(?: that(?!\w))? ?"),
        unasserted=re.compile(rf"(?<!\w)(?:{_any_of(raw['unasserted'])})(?!\w)"),
        taking_back=re.compile(rf"(?<!\w)(?:{_any_of(raw['taking_back'])})(?!\w)"),
        handing_over=re.compile(rf"(?:(?:{polite}),? )*(?:{_any_of(raw['handing_over'])})(?!\w)"),
        personal=re.compile(rf"(?<!\w)(?:{_any_of([*verbs, *raw['own']])})(?!\w)"),
    )


# A constant read once from the package's own data file.
WORDS = _load()
