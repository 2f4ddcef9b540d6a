"""How people rule: how long they look, how fast they go on, in bulk, for their own agents, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median

from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.storage.queue.rulings import Ruling

QUICK = timedelta(seconds=1)  # nobody reads a claim and rules on it in less
BULK = 2  # claims ruled on in one act


@dataclass(slots=True)
class Reviewer:
    """What one person did, or one token of nobody. `streak` is the largest number of acts of which each came less than
    a second after the one before, for one owner; 1 is none. `retracted` are approvals whose memory was withdrawn."""

    id: str
    name: str
    counts: Counter[str] = field(default_factory=Counter)
    looks: list[float] = field(default_factory=list)  # seconds, of those that are known
    bulk: int = 0
    own_agent: int = 0
    taken_back: int = 0
    retracted: int = 0
    streak: int = 0

    @property
    def rulings(self) -> int:
        """All of them, votes too."""
        return self.counts.total()

    @property
    def median_look(self) -> float | None:
        """Seconds; None when no look is known."""
        return median(self.looks) if self.looks else None


def reviewers_of(rulings: Iterable[tuple[Ruling, ...]]) -> list[Reviewer]:
    """By who ruled most, of rulings as `storage.queue.rulings.walk` gives them."""
    found: dict[str, Reviewer] = {}
    last: dict[tuple[str, str], tuple[datetime, int]] = {}
    for at_once in rulings:
        for who in {_who(each) for each in at_once}:
            theirs = [each for each in at_once if _who(each) == who]
            one, at = found.setdefault(who, _new(theirs[0])), theirs[0].at
            before, streak = last.get((theirs[0].owner_id, who), (None, 0))
            streak = streak + 1 if before is not None and at - before < QUICK else 1
            last[theirs[0].owner_id, who] = at, streak
            one.streak = max(one.streak, streak)
            for each in theirs:
                _add(one, each)
    return sorted(found.values(), key=lambda one: (-one.rulings, one.name, one.id))


def _who(ruling: Ruling) -> str:
    return ruling.person or ruling.reviewer


def _new(ruling: Ruling) -> Reviewer:
    return Reviewer(_who(ruling), ruling.person_name or ruling.reviewer_name or ruling.reviewer)


def _add(one: Reviewer, ruling: Ruling) -> None:
    one.counts[ruling.what] += 1
    if ruling.look_seconds is not None:
        one.looks.append(ruling.look_seconds)
    one.bulk += ruling.together >= BULK
    one.own_agent += ruling.own_agent is True and ruling.what in ("approved", "voted")
    one.taken_back += ruling.taken_back is True
    one.retracted += ruling.memory_status is MemoryStatus.RETRACTED
