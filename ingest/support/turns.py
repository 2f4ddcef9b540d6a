"""What a record shows: a user's turn no more than what its speaker wants, likes, decides or said, and a tool's output
nothing of that kind. Pure, linear.

"The limit is 500" in a turn shows that somebody said so. So a statement is held against a turn by its form, too: "The
user prefers tabs" against a sentence in which "I" prefer just that, phrase by phrase; "Ann said that …" against what
is asserted in it. Questions, suppositions, quotations and what is handed over for somebody else are nobody's word here,
and are blanked out before anything is held against it. The words are in `[turns]` of `stance.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from vouchgate.ingest.claims.source import Found, Held, Stance
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.support.scope import Said
from vouchgate.ingest.support.tokens import tokens_of

NOT_OWN = "not_own"  # no wish, decision or words of the speaker, or not just what the turn says of these
OF_PERSON = "of_person"  # what a person wants or said, which no tool knows

_LISTS = read_data("stance.toml")["turns"]
_SMALL = {name: frozenset(words) for name, words in _LISTS.items()}
_COUNTED = (
    _SMALL["relating"] | _SMALL["against"] | _SMALL["denials"]
)  # small words that change what is wanted
_VERBS = {form: kind for kind, forms in _LISTS["verbs"].items() for form in forms}


def _any_of(*names: str) -> str:
    words = [word for name in names for word in (_VERBS if name == "verbs" else _LISTS[name])]
    return "(?:" + "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) + r")(?!\w)"


# A clause with a wish: fillers and "I", unless it goes on from the one before; small words; one of the verbs.
_WISH = re.compile(
    rf"(?P<i>(?:{_any_of('fillers')} )*i )?(?P<small>(?:{_any_of('between', 'denials')} )*)(?P<verb>{_any_of('verbs')})"
)
_FAVOURITE = re.compile(r"my (?:favou?rite|preferred) ([\w -]{1,60}?) (?:is|are) (.+)")
_TELLING = re.compile(rf" {_any_of('telling')},?:?(?: that(?!\w))? ?")
_TOLD_OF_SELF = re.compile(r"(?:she|he|they|i|the user)(?!\w) ?")
_UNASSERTED = re.compile(
    rf"(?<!\w){_any_of('unasserted')}|[\"“”„«»`]|^\s*>|(?<!\w)'[^']+'(?!\w)|\?[\s)!]*\Z", re.M
)
_TAKING_BACK = re.compile(rf"(?<!\w){_any_of('taking_back')}")
_HANDING_OVER = re.compile(rf"(?:{_any_of('polite')},? )*{_any_of('handing_over')}")
_PERSONAL = re.compile(rf"(?<!\w){_any_of('verbs', 'own')}")
_JOINT = re.compile(r"\s*[,;]\s*(?:(and|but|so|because)\s+)?|\s+(and|but|so|because|&)\s+")
_CONTRACTED = (("n't", " not"), ("'ve", " have"), ("'m", " am"), ("'d", " would"))


class _Wish(NamedTuple):
    """What a person wants, likes or decided: a phrase by its words in order, and what it is preferred to."""

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
    plain, kept = _plain(text), [" "] * len(text)
    for start, end in () if _TAKING_BACK.search(plain) else sentences(text):
        lead, colon, _ = plain[start:end].partition(":")
        if _HANDING_OVER.match(plain, start, end) or (colon and lead.strip() not in _SMALL["leads"]):
            break  # from here on the words may be anybody's
        if not _UNASSERTED.search(plain[start:end]):
            kept[start:end] = text[start:end]
    return "".join(kept)


def addressed(said: Said, who: str) -> Said:
    """The claim in the words of the turn's speaker, "The user likes tabs" as "I like tabs". Offsets stay."""
    text = said.text
    for one in _about_speaker(said, who):
        text = text[: one.start] + one.own.ljust(one.then - one.start) + text[one.then :]
        wish = _WISH.match(_plain(text), one.then + 1) if one.own == "I" else None
        if wish is not None and wish["verb"][-1] == "s" and wish["verb"][:-1] in _VERBS:
            text = f"{text[: wish.end() - 1]} {text[wish.end() :]}"
    return replace(said, text=text)


def limited(held: Iterable[Held], said: Said, found: Found, turn: str) -> Iterator[Held]:
    """The stances of a record without those that it cannot have. `said` is the claim as sent, `turn` what is asserted
    in the record."""
    about = _about_speaker(said, found.who) if found.form == "turn" else []
    clauses = [_plain(turn[start:end]) for start, end in sentences(turn)] if about else []
    for one in held:
        of = next((each for each in about if each.start <= one.start < each.end), None)
        why = ""
        if one.stance not in (Stance.STATES, Stance.SPEAKS):
            pass  # less than it may show
        elif found.form == "tool_output":
            why = OF_PERSON if _PERSONAL.search(_plain(said.text[one.start : one.end])) else ""
        elif of is None or not _shows(clauses, of.own, _plain(said.text[max(one.start, of.then) : one.end])):
            why = NOT_OWN
        yield one.model_copy(update={"stance": Stance.SPEAKS, "why": why}) if why else one


def _shows(turn: list[str], own: str, clause: str) -> bool:
    """Whether the sentences of a turn have what a clause of a claim says of its speaker."""
    of_self = _TOLD_OF_SELF.match(clause.lstrip())
    rest = clause.lstrip()[of_self.end() if of_self else 0 :]
    if own:
        wanted, shown = (
            list(_wishes(f"{own.lower()} {rest}", whole=True)),
            [w for each in turn for w in _wishes(each)],
        )
        return bool(wanted) and all(any(_says(wish, each) for wish in shown) for each in wanted)
    # "Ann said that the limit is 500" is asserted, whatever it is; "that she lives here" must be "I live here".
    verb = next((token.keys for token in tokens_of(rest) if token.low not in _SMALL["between"]), ())
    return of_self is None or any(
        one.low == "i" and two.keys == verb
        for each in turn
        for one, two in pairwise(token for token in tokens_of(each) if token.low not in _SMALL["between"])
    )


def _says(wish: _Wish, wanted: _Wish) -> bool:
    less = not wanted.against and _SMALL["relating"].isdisjoint(
        wish.against[2:]
    )  # "tabs over spaces" says "tabs"
    return wish[:3] == wanted[:3] and (less or wish.against == wanted.against)


def _about_speaker(said: Said, who: str) -> list[_Subject]:
    """The sentences of a claim whose subject is whoever said the turn."""
    names = {_plain(name) for name in (who, who.split(maxsplit=1)[0]) if len(name) > 1}.union(
        _LISTS["speaker"]
    )
    subject = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})('s)?(?!\w)")
    found = []
    for start, end in dict.fromkeys(one.sentence for one in said.statements):
        sentence = _plain(said.text[start:end])
        if match := subject.match(sentence):
            tells = _TELLING.match(sentence, match.end())
            own = "" if tells else "My" if match[1] else "I"
            found.append(_Subject(start, end, start + (tells or match).end(), own))
    return found


def _wishes(sentence: str, *, whole: bool = False) -> Iterator[_Wish]:
    """What somebody who says "I" wants in a sentence; nothing where more is said of it than phrases can hold. Of a
    claim the `whole` sentence must say that, and nothing else."""
    for short, long in _CONTRACTED:
        sentence = sentence.replace(short, long)
    cut = [(0, 0, ""), *((m.start(), m.end(), m[1] or m[2] or "") for m in _JOINT.finditer(sentence))]
    found: list[tuple[str, bool, list[list[str]]]] = []
    before: list[str] = []  # "For recipes, I …"
    for (_, start, joint), (end, *_) in pairwise([*cut, (len(sentence), 0, "")]):
        piece = sentence[start:end].strip(" .!")
        words = _words(piece)
        if joint in ("so", "because"):
            found = [] if whole else found
            break
        if (favourite := _FAVOURITE.fullmatch(piece)) is not None:
            found.append(("favourite", False, [_words(" ".join(favourite.groups())) + before]))
        elif (wish := _WISH.match(piece)) is not None and (wish["i"] or found):
            denied = not _SMALL["denials"].isdisjoint(wish["small"].split())
            found.append((_VERBS[wish["verb"]], denied, [_words(piece[wish.end() :]) + before]))
        elif found and words:
            found[-1][2].append(words)
        elif words and words[0] in _SMALL["relating"]:
            before = words
        elif whole and words:
            return
    for verb, denied, items in found:
        for phrase in _phrases(items):
            at = next((at for at in range(1, len(phrase)) if _turns_against(verb, phrase, at)), len(phrase))
            yield _Wish(verb, denied, tuple(phrase[:at]), tuple(phrase[at:]))


def _turns_against(verb: str, phrase: list[str], at: int) -> bool:
    """Whether what is preferred ends here: "tabs over spaces", and "tabs to spaces" but not "coffee to go"."""
    as_many = verb == "prefer" and phrase[at] == "to" and len(phrase) == 2 * at + 1
    return phrase[at] in _SMALL["against"] or (as_many and phrase[at + 1] not in _SMALL["infinitives"])


def _phrases(items: list[list[str]]) -> list[list[str]]:
    """The phrases that commas and "and" join, as far as each stands for itself."""
    if any(item[0] in _COUNTED for item in items[1:]):
        return []  # "I like tabs, but only in Makefiles"
    if all(_SMALL["relating"].isdisjoint(item) for item in items):
        return [item for item in items if item]
    return [[word for item in items for word in item]]  # "hiking and climbing in winter": of both, perhaps


def _words(phrase: str) -> list[str]:
    """The words of a phrase that count: those that say something, by their keys, and those that relate them."""
    return [
        token.low if token.low in _COUNTED else token.keys[0]
        for token in tokens_of(phrase)
        if token.low in _COUNTED or (token.content and token.low not in _SMALL["fillers"])
    ]


def _plain(text: str) -> str:
    """Small letters and one apostrophe, in place."""
    if text.isascii():
        return text.lower()
    lowered = "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)
    return lowered.replace("’", "'").replace("‘", "'")
