"""The words of a search for evidence: what was asked, what was found, what failed, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from vouchgate.ingest.claims.decision import Label
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Held, Stance

TENTHS = 10  # weights are counted in tenths of a primary source, so that sums are exact
MOST_WINDOW_DAYS = 36_500


class Outcome(StrEnum):
    """What a history says of a claim. INVALID: the attempts are spent, and neither side is strong enough alone."""

    TRUE = "True"
    FALSE = "False"
    INVALID = "Invalid"


class SearchTask(Frozen):
    """What is to be found out. `as_of` is the day that the claim is about: what was published later does not count.
    `window_days` makes it a claim about what is current: older sources do not count, and undated ones neither."""

    claim: str = Field(min_length=1)
    as_of: datetime | None = None
    window_days: int | None = Field(default=None, ge=1, le=MOST_WINDOW_DAYS)


class Hit(Frozen):
    """One source that was read for a claim. `id` names the evidence: the digest of its address and text. `group` is
    shared by texts that are one text (`ingest.corroboration.independence.text_groups`)."""

    id: str
    url: str = ""  # empty when nobody said where it stands
    title: str = ""
    published: datetime | None = None
    read_at: datetime | None = None  # when it was confirmed; None when a caller brought it
    digest: str  # sha256 hex of the whole text
    stance: Stance
    held: tuple[Held, ...] = ()
    quotation: str = ""  # the place that decides, in the words of the source
    site: str = ""  # whose page it is; a hit without one is a site of its own
    group: str = ""
    cites: tuple[str, ...] = ()  # sites that its text links to, sorted
    weight: int = Field(ge=0, le=TENTHS)
    official: bool = False  # may make a FACT alone
    verified: bool = False  # read by the gate itself; what a caller brought is not


class Attempt(Frozen):
    """One look along one path."""

    path: str
    query: str
    found: int = Field(ge=0)  # hits


class Failure(Frozen):
    """A look that came to nothing because something went wrong: a row of the gap list."""

    path: str
    query: str
    why: str


class SearchHistory(Frozen):
    """Everything that was found, tried and failed so far, in any order."""

    hits: tuple[Hit, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    failures: tuple[Failure, ...] = ()


class ResultSource(Frozen):
    """A source as it is shown beside the answer."""

    url: str
    title: str
    pub_date: datetime | None
    excerpt: str


class AgentResult(Frozen):
    """The answer. A FACT without evidence cannot be built."""

    outcome: Outcome
    label: Label
    proof: str  # Markdown
    evidence: tuple[str, ...]  # ids of the hits that the label rests on
    sources: tuple[ResultSource, ...]
    debug: dict[str, str | int]

    @model_validator(mode="after")
    def _fact_has_evidence(self) -> Self:
        if self.label is Label.FACT and not self.evidence:
            raise ValueError("a FACT needs evidence")
        return self


class GivenHit(Frozen):
    """One source as it counted. `group` is its place in `groups`; null when its date keeps it apart."""

    id: str
    stance: Stance
    weight: float  # 1 is a primary source
    group: int | None
    quotation: str
    evidence: str  # the id of the evidence: address and text
    verified: bool = False  # read by the gate itself; what the caller brought is not


class Corroborated(Frozen):
    """What sources say together; `groups` are their ids by independent voice. `verified`: all that the FACT rests on
    was read by the gate itself."""

    label: Label
    outcome: Outcome | Literal["NeedMoreSearch"]
    why: str
    groups: tuple[tuple[str, ...], ...]
    hits: tuple[GivenHit, ...]
    proof: str
    verified: bool


class Final(Frozen):
    """The search is over."""

    kind: Literal["final"] = "final"
    result: AgentResult


class NeedMoreSearch(Frozen):
    """What to try next, and why."""

    kind: Literal["need_more_search"] = "need_more_search"
    path: str
    query: str
    why: str


Next = Annotated[Final | NeedMoreSearch, Field(discriminator="kind")]


def in_order(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """The hits, each once, in an order that does not depend on how they came. What somebody brought and the gate read
    too is what the gate read."""
    ordered = sorted(hits, key=lambda hit: (hit.verified, hit.model_dump_json()))
    return tuple(sorted({hit.id: hit for hit in ordered}.values(), key=_by_id))


def _by_id(hit: Hit) -> str:
    return hit.id
