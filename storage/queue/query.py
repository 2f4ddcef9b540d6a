"""What a reviewer types to find items, as terms: one language for the API, the command line and the pages. Pure.

    returned bowl "sea level" agent:importer reason:uncovered source:ADR-7 before:2026-05-01 after:7d is:snoozed
    assigned:me

Every term must hold. A word is found in all its forms, words in any order; what stands in quotes, only so and in a row.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from vouchgate.ingest.language.comparable import unicode_form
from vouchgate.ingest.language.stems import inflected, stem
from vouchgate.ingest.language.words import RUN_OR_CHARACTER
from vouchgate.ingest.rules import Rule

MOST_CHARACTERS = 500
MOST_TERMS = 20

_PART = re.compile(r'(?:(?P<key>[A-Za-z][\w-]*):)?(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]+))')
_ADDRESS = frozenset({"http", "https", "doi"})  # before a colon these begin a word
_SPAN = re.compile(r"(\d{1,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class QueryError(ValueError):
    """The query cannot be understood; the message is a sentence for who typed it."""


class Standing(StrEnum):
    """What `is:` asks for."""

    SNOOZED = "snoozed"
    SENT_BACK = "sent-back"
    ANSWERED = "answered"  # sent back before, and answered
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the text, in whatever form; `stem` is what its forms share."""

    stem: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """These words of the text, in a row."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ByAgent:
    """Who sent it: the name or the id of a token."""

    named: str


@dataclass(frozen=True, slots=True)
class ByReason:
    """The rule that queued it."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class BySource:
    """What it rests on, as in `ingest.citations.names.wanted`, or what is in its text."""

    named: str


@dataclass(frozen=True, slots=True)
class SentBefore:
    """When it was sent: before then."""

    at: datetime


@dataclass(frozen=True, slots=True)
class SentAfter:
    """When it was sent: then or later."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Is:
    """Where it stands."""

    standing: Standing


@dataclass(frozen=True, slots=True)
class AssignedTo:
    """Who is to rule on it: `me`, `nobody`, or the name or id of a token."""

    named: str


Term = Word | Phrase | ByAgent | ByReason | BySource | SentBefore | SentAfter | Is | AssignedTo


@dataclass(frozen=True, slots=True)
class Query:
    """Terms that must all hold; none finds everything."""

    terms: tuple[Term, ...] = ()

    @property
    def texts(self) -> tuple[Word | Phrase, ...]:
        """The terms that are about the text of a claim."""
        return tuple(term for term in self.terms if isinstance(term, Word | Phrase))

    @property
    def names_away(self) -> bool:
        """Whether it asks for what is snoozed or sent back, which is not listed otherwise."""
        away = (Is(Standing.SNOOZED), Is(Standing.SENT_BACK))
        return any(term in away for term in self.terms)


NO_QUERY = Query()


def parse(text: str, now: datetime, *, keys: bool = True) -> Query:
    """The terms of a query; `now` is what `7d` is counted from. Without `keys` everything is words. Raises
    QueryError."""
    if len(text) > MOST_CHARACTERS:
        raise QueryError(f"A query has at most {MOST_CHARACTERS} characters.")
    if text.count('"') % 2:
        raise QueryError('A quotation mark is never closed: write "like this".')
    if any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in text):
        raise QueryError("A query cannot hold the NUL character, or half of one.")
    terms: list[Term] = []
    for part in _PART.finditer(text):
        if keys:
            terms += _terms(part["key"], part["bare"], part["quoted"], now)
        else:
            terms += _text_terms(part[0], in_row=part["quoted"] is not None)
    if len(terms) > MOST_TERMS:
        raise QueryError(f"A query has at most {MOST_TERMS} terms.")
    return Query(tuple(terms))


def _terms(key: str | None, bare: str | None, quoted: str | None, now: datetime) -> Sequence[Term]:
    value = (bare if quoted is None else quoted) or ""
    if key is None and value[-1:] == ":" and value[:-1].lower() in _KEYS:
        raise QueryError(f"{value} needs a value right behind it.")
    if key is None or key.lower() in _ADDRESS:
        return _text_terms(value if key is None else f"{key}:{value}", in_row=quoted is not None)
    make = _KEYS.get(key.lower())
    if make is None:
        raise QueryError(
            f"{key}: is no key of a query{_meant(key.lower(), list(_KEYS), ':')}; "
            f'to find it as a text write "{key}:{value}".'
        )
    if not value.strip():
        raise QueryError(f"{key}: needs a value.")
    return [make(value.strip(), now)]


def _text_terms(text: str, *, in_row: bool) -> Sequence[Term]:
    words = words_of(text)
    if not words:
        return []
    # One word as it was typed may be several in a text: retry_count, 10.0.0.1.
    return [Phrase(words)] if in_row or len(words) > 1 else [Word(_base(words[0]))]


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text as they are searched by: letters and digits, without case."""
    return tuple(RUN_OR_CHARACTER.findall(unicode_form(text).casefold().replace("_", " ")))


def _base(word: str) -> str:
    """What the forms of a word share, on either side of the Atlantic."""
    return stem(inflected(word))


def text_test(terms: Sequence[Word | Phrase]) -> Callable[[str], bool]:
    """Whether a text has what all of these say."""
    stems = frozenset(term.stem for term in terms if isinstance(term, Word))
    phrases = [f" {' '.join(term.words)} " for term in terms if isinstance(term, Phrase)]

    def holds(text: str) -> bool:
        words = words_of(text)
        if phrases:
            whole = f" {' '.join(words)} "
            if not all(phrase in whole for phrase in phrases):
                return False
        return stems <= {_base(word) for word in words}

    return holds


def needed_parts(terms: Sequence[Word | Phrase]) -> list[str]:
    """Small letters of which every text has to have each, in whatever case, to pass `text_test`: by these a database
    leaves out most texts. Endings that change take no more than the last letter of a stem."""
    found = []
    for term in terms:
        match term:
            case Word(base):
                parts = [base if len(base) <= 3 else base[:-1]]
            case Phrase(words):
                parts = list(words)
        found += [part for part in parts if part.isascii()]
    return found


def _reason(value: str, _: datetime) -> Term:
    name = value.lower().replace("-", "_")
    known = [rule.value for rule in Rule]
    if name not in known:
        raise QueryError(f"reason:{value} names no rule{_meant(name, known)}; docs/checks.md has them all.")
    return ByReason(Rule(name))


def _standing(value: str, _: datetime) -> Term:
    name = value.lower().replace("_", "-")
    known = [each.value for each in Standing]
    if name not in known:
        raise QueryError(f"is:{value} is not known{_meant(name, known)}; there are {', '.join(known)}.")
    return Is(Standing(name))


def moment(value: str, now: datetime, *, ahead: bool = False) -> datetime:
    """A day, `2026-05-01` (its beginning, UTC), or a span back from now, or `ahead`: `12h`, `7d`, `2w`. Raises
    QueryError."""
    span = _SPAN.fullmatch(value.lower())
    try:
        if span is not None:
            length = int(span[1]) * _UNITS[span[2]]
            return now + length if ahead else now - length
        return datetime.combine(date.fromisoformat(value), time(), UTC)
    except (ValueError, OverflowError):
        message = f"{value!r} is no time: write a day like 2026-05-01, or a span like 12h, 7d, 2w."
        raise QueryError(message) from None


def _meant(word: str, known: Sequence[str], after: str = "") -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean {near[0]}{after}?)" if near else ""


_KEYS: Mapping[str, Callable[[str, datetime], Term]] = {
    "agent": lambda value, _: ByAgent(value),
    "reason": _reason,
    "source": lambda value, _: BySource(value),
    "before": lambda value, now: SentBefore(moment(value, now)),
    "after": lambda value, now: SentAfter(moment(value, now)),
    "is": _standing,
    "assigned": lambda value, _: AssignedTo(value),
}
