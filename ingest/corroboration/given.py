"""Sources that a caller brings with a claim: what they would come to if they are what the caller says, alone or beside
those that the gate read.

The answer is advice: no receipt, nothing of it can be cited, and none of it comes into the gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.corroboration.decision import conclude
from vouchgate.ingest.corroboration.history import (
    MOST_WINDOW_DAYS,
    TENTHS,
    AgentResult,
    Corroborated,
    GivenHit,
    Outcome,
    SearchHistory,
    SearchTask,
)
from vouchgate.ingest.corroboration.hits import MOST_HITS, Reading, hits_of
from vouchgate.ingest.corroboration.votes import weigh
from vouchgate.ingest.policy import Policy

MOST_CHARACTERS = 200_000  # of one source's text, as of every source that is read
MOST_TOGETHER = 2_000_000  # of all texts of a claim, whose runs of words are compared


class GivenSource(Frozen):
    """A text, and where it stands. Without `url` it is a site of its own that the caller vouches for."""

    id: str | None = Field(default=None, max_length=200)
    text: Annotated[str, Field(max_length=MOST_CHARACTERS)]
    url: str = Field(default="", max_length=8192)
    title: str = Field(default="", max_length=1000)
    published: datetime | None = None


class GivenClaim(Frozen):
    """A claim with its sources. Without `as_of` nothing is held back for its date."""

    # The body of a request is built at once: FastAPI quiets a warning only while it starts.
    model_config = ConfigDict(defer_build=False)

    claim: str = Field(min_length=1, max_length=8192)
    as_of: datetime | None = None
    window_days: int | None = Field(default=None, ge=1, le=MOST_WINDOW_DAYS)
    sources: tuple[GivenSource, ...] = Field(max_length=MOST_HITS)

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if sum(len(source.text) for source in self.sources) > MOST_TOGETHER:
            raise ValueError(f"the texts have at most {MOST_TOGETHER:,} characters together")
        return self


def task_of(sent: GivenClaim) -> SearchTask:
    """What is to be found out."""
    return SearchTask(claim=sent.claim, as_of=sent.as_of, window_days=sent.window_days)


def readings_of(sent: GivenClaim) -> list[Reading]:
    """The sources as texts that were brought."""
    return [
        Reading(
            text=source.text,
            url=source.url,
            title=source.title,
            published=source.published,
            name="" if source.url else source.id or "",
        )
        for source in sent.sources
    ]


def history_of(sent: GivenClaim, policy: Policy) -> tuple[SearchTask, SearchHistory]:
    """The search that these sources are the hits of, in the order of the sources."""
    return task_of(sent), SearchHistory(hits=hits_of(sent.claim, readings_of(sent), policy))


def corroborate(sent: GivenClaim, policy: Policy) -> Corroborated:
    """What the sources say together. Pure; the same for the same sources in any order, but for the order of `hits`,
    which is that of the sources."""
    task, history = history_of(sent, policy)
    return corroborated(task, history, names_of(sent), conclude(task, history, policy))


def names_of(sent: GivenClaim) -> list[str]:
    """What the sources are called in the answer."""
    return [source.id or str(number) for number, source in enumerate(sent.sources)]


def corroborated(
    task: SearchTask, history: SearchHistory, names: Sequence[str], result: AgentResult
) -> Corroborated:
    """The answer to a history of which each hit has a name."""
    hits, voices = history.hits, weigh(task, history.hits).voices
    group_of = {hit.id: number for number, voice in enumerate(voices) for hit in voice}
    groups = (
        tuple(name for name, hit in zip(names, hits, strict=True) if group_of.get(hit.id) == number)
        for number in range(len(voices))
    )
    rests_on = [hit for hit in hits if hit.id in result.evidence]
    return Corroborated(
        label=result.label,
        outcome="NeedMoreSearch" if result.outcome is Outcome.INVALID else result.outcome,
        why=str(result.debug["why"]),
        groups=tuple(groups),
        hits=tuple(
            GivenHit(
                id=name,
                stance=hit.stance,
                weight=hit.weight / TENTHS,
                group=group_of.get(hit.id),
                quotation=hit.quotation,
                evidence=hit.id,
                verified=hit.verified,
            )
            for name, hit in zip(names, hits, strict=True)
        ),
        proof=result.proof,
        verified=bool(rests_on) and all(hit.verified for hit in rests_on),
    )
