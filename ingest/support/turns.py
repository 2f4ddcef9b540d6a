"""What a record shows: a user's turn no more than what its speaker wants, likes, decides or said, and a tool's output
nothing of that kind. Pure, linear; its words are in `[turns]` of `stance.toml`.

"The limit is 500" in a turn shows that somebody said so. So a statement is held against a turn by its form, too. A
sentence of the turn is understood whole or not at all: "I", one of the verbs, and a phrase of which every word counts;
another such clause behind "and I"; a reason or a request. What else a joint, a comma or another subject brings is no
wish that is known, and the claim waits. What is asked, supposed, quoted or handed over is blanked out before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from vouchgate.ingest.claims.source import Found, Held, Stance
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.support.scope import Said

NOT_OWN = "not_own"  # no wish, decision or words of the speaker, or not just what the turn says of these
OF_PERSON = "of_person"  # what a person wants or said, which no tool knows

_LISTS = read_data("stance.toml")["turns"]
_SMALL = {name: frozenset(words) for name, words in _LISTS.items()}
_COUNTED = _SMALL["relating"] | _SMALL["against"] | _SMALL["denials"]  # they limit what is wanted, or deny it
_LIMITS = _COUNTED | _SMALL["joints"]
_VERBS = {form: kind for kind, forms in _LISTS["verbs"].items() for form in forms}
_BASE = {form for form in _VERBS if f"{form}s" in _VERBS}
_THIRD = {form for form in _VERBS if form[-1] == "s" and form[:-1] in _VERBS}  # "she likes"


def _any(*names: str, but: str = "") -> str:
    listed = {word for name in names for word in (_VERBS if name == "verbs" else _LISTS[name])}
    words = listed.difference(_SMALL[but], _THIRD) if but else listed
    return "(?:" + "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) + r")(?!\w)"


_LEADING = rf"(?:{_any('greetings')} [\w-]+|{_any('fillers', 'leads')})"
_LEAD = re.compile(rf"\A(?:(?:{_LEADING}[,:]? )+(?=i |my (?:fav|pref))|(?:{_LEADING}[,:] )+)")
_TAIL = re.compile(rf"(?:,? {_any('tails')})+\Z")
_FIRST = re.compile(rf"({_any('relating')} [^,;]+), (?=i |my )")  # "For recipes, I …"
_NEXT = re.compile(r"(?:[,;] and|[,;]| and| &) (?=i |my )")
_BETWEEN = rf"(?:(?:{_any('between', 'denials')} )*)"
_WISH = re.compile(rf"i ({_BETWEEN})({_any('verbs')}) (.+)")
_FAVOURITE = re.compile(r"my (?:favou?rite|preferred) ([\w -]{1,60}?) ((?:is|are) .+)")
_VERB = re.compile(rf"{_BETWEEN}({_any('verbs')})")
# "I prefer pnpm and dislike yarn": one word is no clause, whose subject may want the second.
_MORE = rf"(?={_BETWEEN}{_any('verbs', but='nouns')} )"
_GOES_ON = re.compile(rf"(i {_BETWEEN}{_any('verbs')} [\w-]+) and {_MORE}")
_REASON = re.compile(rf",? because(?!\w)|,? so (?={_any('requests')})|, (?=please {_any('requests')})")
_RATHER = re.compile(rf"(.+?) (?:over|({_any('instead')})) (.+)")
_DOES = re.compile(rf"((?:\Ai| and) {_BETWEEN})({'|'.join(verb[:-1] for verb in _THIRD)})s(?!\w)")
_TELLING = re.compile(
    rf" (?:(?:{_any('telling', 'stating')}),?:? that(?!\w)|{_any('telling')},?:?(?! {_any('relating')})) ?"
)
_ONESELF = re.compile(r"^(i|my) (?:she|he|they) ")
_UNASSERTED = re.compile(
    rf"(?<!\w){_any('unasserted')}|[\"“”„«»`]|^[ \t]*>|(?<!\w)'[^']+'(?!\w)|\?[\s)!]*\Z", re.M
)
_TAKING_BACK = re.compile(rf"(?<!\w)(?:{_any('taking_back')}|(?:{'|'.join(_LISTS['rewording'])}))")
_ASKING = rf"(?:\A(?:{_any('polite')},? )*|(?<!\w){_any('asking')} )"
_HANDING_OVER = re.compile(_ASKING + _any("handing_over"))
_LIMIT = _any("relating", "against", "denials", "telling")  # "I like tabs. Only in Makefiles."
_LIMITING = re.compile(rf"[\W_]*(?:{_any('resuming')},? )?{_LIMIT}")
_PERSONAL = re.compile(rf"(?<!\w){_any('verbs', 'own')}")


class _Wish(NamedTuple):
    """What a person wants, likes or decided: a phrase by its words in order, what denies it before."""

    verb: str
    denied: tuple[str, ...]  # "not always"
    phrase: tuple[str, ...]


class _Subject(NamedTuple):
    """A sentence of a claim about the speaker: its offsets, and where begins what is said of them."""

    start: int
    end: int
    then: int
    own: str  # "I" or "My", as they would say it; empty: their words follow


def asserted(text: str) -> str:
    """The turn with all blanked out that its speaker does not stand behind, so that offsets stay."""
    plain, kept = _plain(text), [" "] * len(text)
    before, last = 0, ""  # the sentence before, and where it begins
    for start, end in () if _TAKING_BACK.search(plain) else sentences(text):
        lead, colon, _ = plain[start:end].partition(":")
        goes_on = last and last[-1] not in ".!?" and not text[start].isupper()
        if goes_on or _LIMITING.match(plain, start, end):
            kept[before:start] = " " * (start - before)
        before, last = start, plain[start:end]
        if _HANDING_OVER.search(last) or (colon and lead.strip() not in _SMALL["leads"]):
            break  # from here on the words may be anybody's
        if not (goes_on or _UNASSERTED.search(last)):
            kept[start:end] = text[start:end]
    return "".join(kept)


def addressed(said: Said, who: str) -> Said:
    """The claim in the words of the turn's speaker, "The user likes tabs" as "I like tabs". Offsets stay."""
    text = said.text
    for one in _about_speaker(said, who):
        text = text[: one.start] + one.own.ljust(one.then - one.start) + text[one.then :]
        wish = _VERB.match(_plain(text), one.then + 1) if one.own == "I" else None
        if wish is not None and wish[1] in _THIRD:
            text = f"{text[: wish.end() - 1]} {text[wish.end() :]}"
    return replace(said, text=text)


def limited(held: Iterable[Held], said: Said, found: Found, turn: str) -> Iterator[Held]:
    """The stances of a record without those that it cannot have. `said` is the claim as sent, `turn` what is asserted
    in the record."""
    about = _about_speaker(said, found.who) if found.form == "turn" else []
    clauses = [_spoken(turn[start:end]) for start, end in sentences(turn)] if about else []
    spoken = {tuple(_words(each)) for each in clauses}
    wishes: dict[_Wish, set[frozenset[str]]] = {}  # and the words beside each that change nothing
    for wish, beside in chain.from_iterable(map(_wishes, clauses)):
        for phrase in (wish.phrase, _preferred(wish)):
            wishes.setdefault(wish._replace(phrase=phrase), set()).add(beside)
    for one in held:
        of = next((each for each in about if each.start <= one.start < each.end), None)
        part = said.text[max(one.start, of.then if of else 0) : one.end]
        why = ""
        if one.stance not in (Stance.STATES, Stance.SPEAKS):
            pass  # less than it may show
        elif found.form == "tool_output":
            why = OF_PERSON if _PERSONAL.search(_plain(part)) else ""
        elif of is None:
            why = NOT_OWN
        elif of.own:
            why = "" if _wants(wishes, f"{of.own.lower()} {_clause(part)}") else NOT_OWN
        elif not (_tells(spoken, part) or _tells(spoken, said.text[of.then : of.end])):
            why = NOT_OWN
        yield one.model_copy(update={"stance": Stance.SPEAKS, "why": why}) if why else one


def _wants(wishes: Mapping[_Wish, Collection[frozenset[str]]], clause: str) -> bool:
    """Whether somebody with these wishes wants what a clause of a claim says of them."""
    wanted = _wishes(_DOES.sub(r"\1\2", _ONESELF.sub(r"\1 ", clause)))
    return bool(wanted) and all(
        any(beside <= each for each in wishes.get(wish._replace(phrase=_as_spoken(wish.phrase)), ()))
        for wish, beside in wanted
    )


def _preferred(wish: _Wish) -> tuple[str, ...]:
    """What is preferred to something else: "tabs" in "tabs over spaces", and all of "meetings over lunch"."""
    two = _RATHER.fullmatch(" ".join(wish.phrase))
    if two is None or wish.verb != "prefer" or wish.denied:
        return wish.phrase
    less, rest = two[1].split(), two[3].split()
    alike = any(less[-1].endswith(end) and rest[-1].endswith(end) for end in _LISTS["alike"])
    return tuple(less) if (alike or two[2]) and _LIMITS.isdisjoint(less + rest) else wish.phrase


def _tells(spoken: Collection[tuple[str, ...]], told: str) -> bool:
    """Whether somebody who says these sentences says of themselves what is told of them."""
    words = _as_spoken(_words(_clause(told)))
    if words[:1] != ("i",) or len(words) < 3:
        return words in spoken
    verb = words[1]
    forms = (
        verb,
        _LISTS["agreeing"].get(verb),
        verb.removesuffix("s"),
        verb.removesuffix("es"),
        f"{verb[:-3]}y",
    )
    return any(("i", form, *words[2:]) in spoken for form in forms)


def _as_spoken(words: Iterable[str]) -> tuple[str, ...]:
    """What is said of a speaker in their words: "their" is "my", and "my" is the agent's."""
    return tuple(_LISTS["spoken"].get(word, word) for word in words)


def _about_speaker(said: Said, who: str) -> list[_Subject]:
    """The sentences of a claim whose subject is whoever said the turn."""
    names = {_plain(who), *_LISTS["speaker"]}
    ordered = sorted((re.escape(name) for name in names if len(name) > 1), key=len, reverse=True)
    subject = re.compile(rf"(?:{'|'.join(ordered)})('s)?(?!\w)")
    found = []
    for start, end in dict.fromkeys(one.sentence for one in said.statements):
        sentence = _plain(said.text[start:end])
        if match := subject.match(sentence):
            tells = _TELLING.match(sentence, match.end())
            own = "" if tells else "My" if match[1] else "I"
            found.append(_Subject(start, end, start + (tells or match).end(), own))
    return found


def _clause(sentence: str) -> str:
    """A sentence in small letters, one space between words, without what changes nothing at its end."""
    sentence = " ".join(_plain(sentence).split())  # so that no pattern goes over many again and again
    for short, long in _LISTS["written_out"].items():
        sentence = sentence.replace(short, long)
    return _TAIL.sub("", sentence.rstrip(" .!;"))


def _spoken(sentence: str) -> str:
    """A sentence of a turn without what changes nothing before it, and without a reason or a request behind it. "I
    don't want it because it is cheap" may be said by one who wants it, and "so keep it to code" limits."""
    clause = _clause(sentence)
    if (reason := _REASON.search(clause)) is not None:
        limits = _SMALL["against"] | _SMALL["joints"] if reason[0].endswith("because") else _LIMITS
        denied = not _SMALL["denials"].isdisjoint(_words(clause[: reason.start()]))
        if not denied and limits.isdisjoint(_words(clause[reason.end() :])):
            clause = _TAIL.sub("", clause[: reason.start()])
    return _LEAD.sub("", clause, count=1)


def _wishes(clause: str) -> list[tuple[_Wish, frozenset[str]]]:
    """What somebody who says "I" wants in a sentence, each with the small words that change nothing, and that a claim
    may leave out but not add; nothing where a word of it is not understood."""
    first = _FIRST.match(clause)
    clause = _GOES_ON.sub(r"\1 and i ", clause[first.end() if first else 0 :])
    parts = _NEXT.split(clause)
    found = [wish for each in parts if (wish := _wish(each, _words(first[1]) if first else []))]
    # "… when Bob calls and I …", "I … and I … in winter": of which clause that is, nobody knows.
    apart = len(parts) == 1 or all(_COUNTED.isdisjoint(wish.phrase) for wish, _ in found)
    return found if apart and len(found) == len(parts) else []


def _wish(clause: str, before: list[str]) -> tuple[_Wish, frozenset[str]] | None:
    if (match := _FAVOURITE.fullmatch(clause)) is not None:
        return _Wish("favourite", (), (*_words(match[1]), ":", *_words(match[2]), *before)), frozenset()
    match = _WISH.fullmatch(clause)
    if match is None or (match[2] in _BASE and not _SMALL["perfect"].isdisjoint(match[1].split())):
        return None  # "I have like three dogs"
    small = [word for word in match[1].split() if word not in _SMALL["helping"]]
    at = next((at for at, word in enumerate(small) if word in _SMALL["denials"]), len(small))
    return _Wish(_VERBS[match[2]], tuple(small[at:]), (*_words(match[3]), *before)), frozenset(small[:at])


def _words(phrase: str) -> list[str]:
    """The words of a phrase, every one, and its commas."""
    marked = phrase.replace(",", " , ").replace(";", " ; ")
    return [word for each in marked.split() if (word := each.rstrip(".!:"))]


def _plain(text: str) -> str:
    """Small letters and one apostrophe, in place."""
    if text.isascii():
        return text.lower()
    lowered = "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)
    return lowered.replace("’", "'").replace("‘", "'")
