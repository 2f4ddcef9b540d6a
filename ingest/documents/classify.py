"""Which sentences say nothing that could be true or false. Rules over words; in doubt a sentence is a claim."""

from __future__ import annotations

import re

from vouchgate.ingest.data import read_data
from vouchgate.ingest.documents.types import Reason

_LEADING = re.compile(
    r"[^\w`]*(?:(?:note|tip|hint|important|warning|step \d+|todo)\s*:\s*)?[^\w`]*", re.IGNORECASE
)
_ORDER = re.compile(
    r"(?:(?:please|then|now|next|first|finally|just|always|never),? )?([a-z']+)\s(?:([a-z']+)|(`))"
)
_STATED = re.compile(r"[;:|—–]\s*\S|\s--?\s")
_WORDS = re.compile(r"[\w'’]+|`[^`]*`|[;:—–?]|\d")
_QUESTION_END = re.compile(r"\?[\"'”’)\]*_`\s]*\Z")
_DIGIT = re.compile(r"\d")
_LABEL = re.compile(
    r"\W*(?:[\w'’-]+\s+){0,3}(?:sources?|references?|ref|citations?|see also|further reading|via|links?|bibliography)"
    r"(?:\s+[\w'’/&-]+){0,4}\s*[*_]*:",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"[;—–]|, (?:and|but|so|because|which|while|whereas|although|though|yet)\b")
_SENTENCE_END = re.compile(r"[.!]['\"”’)\]*_\s]*\Z")
_PLAIN_WORD = re.compile(r"[\w'’]+")
_REGULAR = re.compile(r"[a-z]{3,}ed")
_THIRD_PERSON = re.compile(r"[a-z]{2,}[^\Wsu]s")
_OBJECT = frozenset(
    ("a", "an", "the", "its", "no", "all", "only", "each", "every", "again", "nothing", "that", "whether")
)
_ENTRY = re.compile(r"\A[^\w]*[A-Z][\w'’-]+, [A-Z]\.|\((?:1[5-9]|20)\d\d[a-z]?[,)]")
_LONGEST_LABEL = 12  # words before the colon of what only names its source


def reason_for(said: str, *, cites: bool) -> Reason | None:
    """Why a sentence, without its markup, is no claim; None when it may be one. One that `cites` claims to be
    supported, so that nothing but a plain question or order excuses it."""
    body = said[_LEADING.match(said).end() :].replace("’", "'")  # type: ignore[union-attr]
    start = body[:400].lower()
    if _is_question(body, start):
        return Reason.QUESTION
    numbered = _DIGIT.search(body) is not None
    if _is_order(start) and not (cites and numbered):
        return Reason.IMPERATIVE
    if cites:
        return None
    if (_ABOUT.match(start) and not _reports(start)) or (not numbered and _announces_list(start)):
        return Reason.ABOUT_DOCUMENT
    if not numbered and _is_opinion(start):
        return Reason.OPINION
    return None


def names_sources(said: str) -> bool:
    """Whether a line begins as one that lists sources does: `Sources:`, `Supporting reference:`."""
    return ":" in said[:80] and _LABEL.match(said) is not None


def is_source_heading(said: str) -> bool:
    """Whether this is the heading of a list of sources."""
    words = re.sub(r"[\W\d_]+", " ", said.lower()).strip()
    return words in _SOURCE_HEADINGS


def is_label(said: str) -> bool:
    """Whether words before a reference only name it: few, without a verb, and a colon at the end or no end at all."""
    body = said.strip().rstrip("*_ ")
    return (
        body.endswith(":")
        and len(body.split()) <= _LONGEST_LABEL
        and not asserts(body)
        and not _has_verb(body)
    )


def asserts(said: str) -> bool:
    """Whether there is a verb that makes these words a sentence."""
    return not _FINITE.isdisjoint(re.findall(r"[\w'’]+", said.lower()))


def tells(said: str) -> bool:
    """Whether words are a sentence that says what is the case, and no title or note on a source: they end like one, and
    a verb stands behind their first word, in small letters as in no title."""
    if _SENTENCE_END.search(said) is None:
        return False
    return _has_verb(said)


def _has_verb(said: str) -> bool:
    """Whether a verb stands behind the first word. "burns" may be a noun, and is a verb where an object follows."""
    words = _PLAIN_WORD.findall(said)
    return any(
        word in _FINITE
        or ((word in _PAST or _REGULAR.fullmatch(word)) and word not in _OF_SOURCES)
        or (_THIRD_PERSON.fullmatch(word) and following in _OBJECT)
        for word, following in zip(words[1:], [*words[2:], ""], strict=False)
    )


def is_entry(said: str) -> bool:
    """Whether words begin as an entry of a bibliography does, or have its year between brackets."""
    return _ENTRY.search(said) is not None


def _is_question(body: str, start: str) -> bool:
    if "?" not in body[-8:] or _QUESTION_END.search(body) is None:
        return False
    words = _WORDS.findall(start)
    if not words:
        return False
    first = 1 if words[0] in _BEFORE_QUESTIONS and len(words) > 1 else 0
    return words[first] in _QUESTIONS


def _is_order(start: str) -> bool:
    order = _ORDER.match(start)
    if order is None:
        return False
    verb, following, code = order.groups()
    if f"{verb} {following}" in _ORDERS:
        begins = True
    elif verb in _ALSO_NOUNS:
        begins = following in _ARTICLES
    elif verb in _AMBIGUOUS:
        begins = following in _ARTICLES or code is not None
    else:
        begins = verb in _IMPERATIVES and (
            code is not None or following in _ARTICLES or following in _AFTER_VERB
        )
    return begins and _STATED.search(start) is None and _STATES.isdisjoint(_WORDS.findall(start))


def _reports(start: str) -> bool:
    """Whether a sentence about the document says with it what is the case: "this report shows that …", a number."""
    words = _WORDS.findall(start)
    return "that" in words or any(word[0].isdigit() for word in words)


def _announces_list(start: str) -> bool:
    """Whether a sentence only says that a list follows, which has the rest of it."""
    return start[-1:] == ":" and len(start.split()) <= _LONGEST_LABEL and _ANNOUNCES.match(start) is not None


def _is_opinion(start: str) -> bool:
    if "`" in start or ", but " in start:
        return False
    for sign, within in _WITHIN:
        if sign in start and within.search(start):
            return True
    return _OPINION.match(start) is not None and _BESIDE.search(start) is None


_LISTS = read_data("documents.toml")
_QUESTIONS = frozenset(_LISTS["questions"])
_BEFORE_QUESTIONS = frozenset(_LISTS["before_questions"])
_IMPERATIVES = frozenset(_LISTS["imperatives"])
_ALSO_NOUNS = frozenset(_LISTS["also_nouns"])
_AMBIGUOUS = frozenset(_LISTS["ambiguous_imperatives"])
_ARTICLES = frozenset(_LISTS["articles"])
_ORDERS = frozenset(_LISTS["orders"])
_AFTER_VERB = frozenset(_LISTS["after_verb"])
_STATES = frozenset(_LISTS["states_something"])
_FINITE = frozenset(_LISTS["finite"])
_PAST = frozenset(_LISTS["past"])
_OF_SOURCES = frozenset(_LISTS["of_sources"])
_SOURCE_HEADINGS = frozenset(_LISTS["source_headings"])
_ABOUT = re.compile("|".join(_LISTS["about_document"]))
_OPINION = re.compile("|".join(_LISTS["opinion"]))
_ANNOUNCES = re.compile(_LISTS["announces"])
_WITHIN = [(sign, re.compile(pattern)) for sign, pattern in _LISTS["opinion_within"]]
WANTED = re.compile(
    r"\[\s*(?:" + "|".join(map(re.escape, _LISTS["source_wanted"])) + r")\s*\]", re.IGNORECASE
)
