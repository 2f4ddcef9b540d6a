"""What an owner says that bears on claims to come: their standing rulings, and how often they said that a claim was
right.

A row of the owner, which every writer locks and reads, counts the changes of all this: so a claim costs no look-up
while nothing changes, and what was taken back counts for no claim that is decided after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, or_, select

from vouchgate.ingest.claims.source import SourceReading
from vouchgate.ingest.claims.standing_rulings import StandingRuling, bearing
from vouchgate.ingest.claims.trust import Track, TrackRecord
from vouchgate.ingest.claims.waiting import ReviewStatus, SpotVerdict
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.sampling import WINDOW, cited_first
from vouchgate.storage.claims import memories, standing_rulings
from vouchgate.storage.identity.owners import OwnerState
from vouchgate.storage.queue import pending, spot_checks

_MOST_OWNERS = 1000  # of whom a process remembers what they said
_MOST_READ = 2000  # verdicts, the latest: some milliseconds
_CHECKS, _ITEMS, _STORED = spot_checks.TABLE, pending.TABLE, memories.TABLE
_ANSWERED = (
    select(_CHECKS.c.decided_at, _CHECKS.c.agent, _CHECKS.c.kind, _CHECKS.c.publisher, _CHECKS.c.verdict)
    .where(_CHECKS.c.owner_id == bindparam("of_owner"), _CHECKS.c.decided_at.is_not(None))
    .order_by(_CHECKS.c.decided_at.desc())
    .limit(_MOST_READ)
)
# What waited because its agent was not shown to be right: what its owner stored as it was, or rejected.
_RULED = (
    select(_ITEMS.c.decided_at, _ITEMS.c.submitted_by, _ITEMS.c.status)
    .outerjoin(_STORED, and_(_STORED.c.owner_id == _ITEMS.c.owner_id, _STORED.c.id == _ITEMS.c.memory_id))
    .where(
        _ITEMS.c.owner_id == bindparam("of_owner"),
        _ITEMS.c.status.in_([ReviewStatus.APPROVED.value, ReviewStatus.REJECTED.value]),
        _ITEMS.c.rule == Rule.SPOKEN_OF,
        or_(
            _STORED.c.id.is_(None),
            _STORED.c.decision_id == _ITEMS.c.decision_id,
            # An edit may leave the words as they are; what was erased has none that tell.
            and_(_STORED.c.content == _ITEMS.c.content, _STORED.c.content != ""),
        ),
    )
    .order_by(_ITEMS.c.decided_at.desc())
    .limit(_MOST_READ)
)


class Subject(NamedTuple):
    """Who or what is behind a claim; `of` is `agent`, `kind` or `publisher`."""

    of: str
    name: str


Records = Mapping[Subject, TrackRecord]


@dataclass(frozen=True, slots=True)
class Sayings:
    """All of it that one owner said. Of verdicts the latest WINDOW of each subject count."""

    rulings: Sequence[StandingRuling] = ()
    records: Records = field(default_factory=dict)

    def bearing_on(self, examined: Examined, agent: str) -> Examined:
        """The claim of an agent with what may decide about it."""
        claim, readings = examined.claim, examined.readings
        if examined.policy.spoken_of_floor:
            examined = self.tracked(examined, agent)
        ruling = bearing(self.rulings, claim, agent, readings, examined.capture_time)
        return examined if ruling is None else examined.knowing(standing_ruling=ruling)

    def tracked(self, examined: Examined, agent: str) -> Examined:
        """The claim of an agent with how often such ones were right."""
        track = self.track_of(agent, examined.readings)
        return examined if track is None else examined.knowing(track=track)

    def track_of(self, agent: str, readings: Sequence[SourceReading]) -> Track | None:
        """How often claims like one of this agent's, that cites these, were right; None when nobody judged any."""
        kind, publisher = cited_first(readings)
        named = {"agent": agent, "kind": kind, "publisher": publisher}
        subjects = {of: Subject(of, name) for of, name in named.items() if name}
        found = {of: self.records[subject] for of, subject in subjects.items() if subject in self.records}
        return Track(**found) if found else None


@dataclass(slots=True)
class SayingsCache:
    """What owners said as it was last read, for one thread."""

    _known: dict[str, tuple[int, Sayings]] = field(default_factory=dict)

    def of(self, connection: Connection, owner: OwnerState) -> Sayings:
        """What an owner says, whose row is locked."""
        seen, said = self._known.get(owner.owner_id, (0, Sayings()))
        if seen == owner.said:
            return said
        if len(self._known) >= _MOST_OWNERS:
            self._known.clear()
        said = load(connection, owner.owner_id)
        self._known[owner.owner_id] = (owner.said, said)
        return said


def load(connection: Connection, owner_id: str) -> Sayings:
    """What an owner says now."""
    return Sayings(standing_rulings.in_force(connection, owner_id), load_records(connection, owner_id))


def load_records(connection: Connection, owner_id: str) -> Records:
    """How often an owner said that claims were right, by what is behind them. What nobody could tell does not count."""
    asked = {"of_owner": owner_id}
    right = {SpotVerdict.RIGHT.value: True, SpotVerdict.WRONG.value: False}
    said = [
        (
            row.decided_at,
            {"agent": row.agent, "kind": row.kind, "publisher": row.publisher},
            right[row.verdict],
        )
        for row in connection.execute(_ANSWERED, asked)
        if row.verdict in right
    ]
    approved = ReviewStatus.APPROVED.value
    said += [
        (row.decided_at, {"agent": row.submitted_by}, row.status == approved)
        for row in connection.execute(_RULED, asked)
    ]
    return count_latest(said)


def count_latest(said: Iterable[tuple[datetime, Mapping[str, str | None], bool]]) -> Records:
    """The verdicts on each subject, of which the latest WINDOW count; each verdict with its time, what is behind the
    claim, and whether it was right."""
    latest: defaultdict[Subject, list[bool]] = defaultdict(list)
    for _, behind, right in sorted(said, key=lambda each: each[0], reverse=True):
        for of, name in behind.items():
            if name is not None and len(latest[Subject(of, name)]) < WINDOW:
                latest[Subject(of, name)].append(right)
    return {
        subject: TrackRecord(right=sum(each), wrong=len(each) - sum(each))
        for subject, each in latest.items()
        if each
    }
