"""Votes: what the hits of a search weigh together.

Each voice (`ingest.corroboration.independence`) has one vote, at the lowest weight of its hits that say so; one that
says both has none. Only what is STATED supports, only what REFUTES refutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from vouchgate.ingest.claims.decision import Label
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.corroboration.history import Hit, Outcome, SearchTask, in_order
from vouchgate.ingest.corroboration.independence import independent
from vouchgate.ingest.policy import CorroborationPolicy
from vouchgate.ingest.scoring.score import aware


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the hits of a history come to. Votes are in tenths."""

    voices: tuple[tuple[Hit, ...], ...]  # those that count for the date
    apart: tuple[Hit, ...]  # kept and not counted
    support: int
    refute: int
    supporting: tuple[tuple[Hit, ...], ...]
    refuting: tuple[tuple[Hit, ...], ...]

    def evidence(self, rules: CorroborationPolicy) -> tuple[Hit, ...]:
        """The hits that make a FACT; none when it is none. An official one does alone, whoever copied it."""
        if self.refuting:
            return ()
        official = tuple(hit for hit in _stating(self.supporting) if hit.official)
        voices = [voice for voice in self.supporting if _vote(voice) >= rules.fact_weight]
        return official or (_stating(voices) if len(voices) >= rules.voices else ())


def weigh(task: SearchTask, hits: Iterable[Hit]) -> Weighed:
    """What the hits come to, in whatever order they come."""
    ordered = in_order(hits)
    counted = [hit for hit in ordered if is_aligned(task, hit)]
    voices = independent(counted)
    supporting = tuple(voice for voice in voices if _says(voice) is Stance.STATES)
    refuting = tuple(voice for voice in voices if _says(voice) is Stance.REFUTES)
    return Weighed(
        voices=voices,
        apart=tuple(hit for hit in ordered if not is_aligned(task, hit)),
        support=sum(_vote(voice) for voice in supporting),
        refute=sum(_vote(voice) for voice in refuting),
        supporting=supporting,
        refuting=refuting,
    )


def is_aligned(task: SearchTask, hit: Hit) -> bool:
    """Whether a source counts for its date: not published after the day that the claim is about, nor before the window
    of a claim about what is current; undated ones count where there is no window."""
    if task.as_of is None:
        return True
    if hit.published is None:
        return task.window_days is None
    as_of, published = aware(task.as_of), aware(hit.published)
    if published > as_of:
        return False
    return task.window_days is None or as_of - published <= timedelta(days=task.window_days)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is answered of a claim: `why` is one phrase, `evidence` the hits that make a FACT."""

    outcome: Outcome
    why: str
    evidence: tuple[Hit, ...]

    @property
    def label(self) -> Label:
        """FACT only with evidence."""
        return Label.FACT if self.evidence else Label.INFERENCE


def _stating(voices: Iterable[Sequence[Hit]]) -> tuple[Hit, ...]:
    return tuple(hit for voice in voices for hit in voice if hit.weight and hit.stance is Stance.STATES)


def _says(voice: Sequence[Hit]) -> Stance | None:
    """What a voice says; None when it says nothing of the kind, or both."""
    said = {hit.stance for hit in voice if hit.weight} & {Stance.STATES, Stance.REFUTES}
    return said.pop() if len(said) == 1 else None


def _vote(voice: Sequence[Hit]) -> int:
    return min(hit.weight for hit in voice if hit.weight and hit.stance in (Stance.STATES, Stance.REFUTES))
