"""Standing rulings of an owner: what claims they are about, and which of them bears on a claim. Pure.

A standing ruling never decides: it is one fact of the router's (`ingest.router`), which says what it outranks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from vouchgate.ingest.claims.citation import Citation, CitationName, CitationType
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import SourceReading
from vouchgate.ingest.claims.trust import AppliedRuling, RulingVerdict
from vouchgate.ingest.language.words import LOOKS_LIKE_CODE, split_words
from vouchgate.ingest.scoring.reputation import parse_publisher, publishers_of
from vouchgate.ingest.scoring.sampling import NOTHING

SLOT = "*"  # of a template: any one word
MOST_WORDS = 60  # of a template: what is longer is no template but a text
FIXED_WORDS = 3  # that a template has at least: with fewer it is about anything


def parse_template(text: str) -> str:
    """A template as it is compared: words as of claims, with `*` for any one. Raises ValueError for one with too few
    or too many words."""
    words = [
        word
        for part in text.split()
        for word in ([SLOT] if part.strip(".,;:!?()[]\"'") == SLOT else split_words(part))
    ]
    fixed = sum(word != SLOT for word in words)
    if fixed < FIXED_WORDS or len(words) > MOST_WORDS or not " ".join(words).isprintable():
        raise ValueError(
            f"a template has {FIXED_WORDS} words or more that are not {SLOT}, and {MOST_WORDS} in all at most"
        )
    return " ".join(words)


def template_of(text: str) -> str | None:
    """The template that a text suggests: what has a digit, reads like code or is a name may be another word the next
    time. None where no template would be left."""
    parts, before = [], "."
    for part in text.split():
        word = part.strip("\"'([{")
        name = word[:1].isupper() and before[-1:] not in ".!?:"
        parts.append(SLOT if name or any(map(str.isdigit, word)) or LOOKS_LIKE_CODE.search(word) else part)
        before = part
    try:
        return parse_template(" ".join(parts))
    except ValueError:
        return None


def _parse_path(text: str) -> str:
    path = text.strip().removeprefix("./").removeprefix("/")
    if not path.isprintable() or not path.strip("/"):
        raise ValueError("a path names a file or a folder")
    return path


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("an agent's id is printable")
    return text


class RulingTerms(Frozen):
    """What claims a standing ruling is about: those that meet every term that is named. Of what a claim cites, a
    standing ruling that stores is about claims all of whose citations are so, one that rejects about claims any of
    whose citations is."""

    # The principal id of who sends it.
    agent: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)] | None = None
    source: Source | None = None  # as it counts, after grants
    memory_type: MemoryType | None = None
    kind: CitationName | None = None  # of what it cites, or NOTHING
    path: Annotated[str, Field(max_length=500), AfterValidator(_parse_path)] | None = (
        None  # or what is below it
    )
    publisher: Annotated[str, Field(max_length=300), AfterValidator(parse_publisher)] | None = None
    template: Annotated[str, Field(max_length=2000), AfterValidator(parse_template)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self == RulingTerms.model_construct():
            raise ValueError("a standing ruling is not about every claim: name a term")
        return self

    def are_met_by(self, reading: SourceReading) -> bool:
        """Whether one thing that a claim cites is as these terms say of it."""
        citation = reading.citation
        if self.kind not in (None, NOTHING, citation.type):
            return False
        if self.path is not None and not _is_below(self.path, citation):
            return False
        return self.publisher is None or self.publisher in publishers_of(reading)


class RulingDraft(Frozen):
    """What a standing ruling is about, and what it does with such claims. One that stores names an agent, and a path, a
    publisher or a template: nothing is stored unseen that nobody has seen the like of."""

    verdict: RulingVerdict
    terms: RulingTerms

    @model_validator(mode="after")
    def _is_narrow(self) -> Self:
        terms = self.terms
        shaped = terms.agent and (terms.path or terms.publisher or terms.template)
        if self._counts and self.verdict is RulingVerdict.STORE and not shaped:
            raise ValueError(
                "a standing ruling that stores names an agent, and a path, a publisher or a template"
            )
        return self

    @property
    def _counts(self) -> bool:
        return True

    def is_about(self, claim: Claim, agent: str, readings: Sequence[SourceReading]) -> bool:
        """Whether a claim that this principal sends is one of those."""
        terms = self.terms
        wanted = ((terms.agent, agent), (terms.source, claim.source), (terms.memory_type, claim.memory_type))
        if claim.removes or claim.secrets or any(said not in (None, has) for said, has in wanted):
            return False
        if terms.template is not None and not fits(terms.template, claim.stated):
            return False
        if terms.kind == NOTHING and readings:
            return False
        if not (terms.path or terms.publisher or terms.kind not in (None, NOTHING)):
            return True
        met = [terms.are_met_by(reading) for reading in readings]
        return bool(met) and (all(met) if self.verdict is RulingVerdict.STORE else any(met))


class StandingRuling(RulingDraft):
    """A standing ruling of one owner, which counts before `until` and as long as nobody ended it. `name` is shown to
    whoever sends what it rejects."""

    id: str
    owner_id: str
    name: str
    created_at: datetime
    until: datetime
    confirmed_by: str  # principal id of the reviewer
    item_id: str | None = None  # whose ruling it was made of
    ended_at: datetime | None = None
    ended_by: str | None = None

    @property
    def _counts(self) -> bool:
        """One that ended may have lost its terms to an erasure."""
        return self.ended_at is None


def bearing(
    rulings: Sequence[StandingRuling],
    claim: Claim,
    agent: str,
    readings: Sequence[SourceReading],
    at: datetime,
) -> AppliedRuling | None:
    """Which of these rulings, that nobody ended, bears on a claim that this principal sends: the first that rejects,
    else the first that stores."""
    met = [ruling for ruling in rulings if at < ruling.until and ruling.is_about(claim, agent, readings)]
    ruling = min(met, key=lambda ruling: (ruling.verdict is RulingVerdict.STORE, ruling.id), default=None)
    return None if ruling is None else AppliedRuling(id=ruling.id, name=ruling.name, verdict=ruling.verdict)


@lru_cache(maxsize=8)  # each of an owner's rulings asks for those of one claim
def _words(text: str) -> list[str]:
    return split_words(text)


def fits(template: str, text: str) -> bool:
    """Whether a template is that of a text."""
    wanted, words = template.split(" "), _words(text)
    return len(wanted) == len(words) and all(a in (SLOT, b) for a, b in zip(wanted, words, strict=True))


def _is_below(path: str, citation: Citation) -> bool:
    """Whether a file is cited that is this one, or lies in this folder; whatever its lines or its commit."""
    if citation.type not in (CitationType.PATH, CitationType.CORPUS):
        return False
    named = re.split("[@#]", citation.key.partition(":")[2], maxsplit=1)[0]
    return named == path or named.startswith(path.rstrip("/") + "/")
