"""What came in, what was cleared and how long that took, by day, agent and reason: the figures of an owner, or of
several together."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import TypeVar

from pydantic import computed_field
from sqlalchemy import Connection

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.standing_rulings import StandingRuling
from vouchgate.ingest.claims.trust import RulingVerdict, TrackRecord
from vouchgate.ingest.claims.waiting import SpotVerdict
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.sampling import interval
from vouchgate.storage.claims import standing_rulings
from vouchgate.storage.claims.standing_rulings import RulingCounts
from vouchgate.storage.identity import owners, tokens
from vouchgate.storage.queue import numbers as stored
from vouchgate.storage.queue import overview, spot_checks
from vouchgate.storage.queue.numbers import Group

K = TypeVar("K")

DAYS = 14  # that are told of unless asked otherwise, today with them
MOST_DAYS = 90
MOST_SHOWN = 20  # agents, and standing rulings; of the others the sum
OTHERS = "others"
_OWNERS = 200  # whose counts are remembered: those looked at lately
# Where so many items were cleared, they are counted again only so often, as `review.counts` does.
_LONG = 1000
_SECONDS = 5.0


class Flow(Frozen):
    """How many claims came and what was answered at once; and how many items that waited were cleared, and how, counted
    on the day of that. What was taken back does not count as cleared."""

    stored: int = 0
    queued: int = 0
    repeated: int = 0  # of what waited already
    blocked: int = 0
    let_through: int = 0  # unvouched, while the gate observed: it would have been queued or blocked
    approved: int = 0
    rejected: int = 0
    let_go: int = 0
    expired: int = 0
    promoted: int = 0  # stored by itself, after another check
    sent_back: int = 0  # to its agent, with a question: it waits on
    undone: int = 0  # decisions taken back, whenever they fell

    @computed_field  # type: ignore[prop-decorator]
    @property
    def came(self) -> int:
        """All that came in."""
        return self.stored + self.queued + self.repeated + self.blocked + self.let_through

    @computed_field  # type: ignore[prop-decorator]
    @property
    def cleared(self) -> int:
        """All that does not wait any more."""
        return self.approved + self.rejected + self.let_go + self.expired + self.promoted

    @computed_field  # type: ignore[prop-decorator]
    @property
    def approved_share(self) -> float | None:
        """Of what people approved or rejected; None when they did neither."""
        ruled = self.approved + self.rejected
        return round(self.approved / ruled, 3) if ruled else None


class DayFlow(Flow):
    """Of one day (UTC)."""

    day: date


class AgentFlow(Flow):
    """Of the claims of one agent; `id` is None for all others together."""

    id: str | None
    name: str


class ReasonFlow(Flow):
    """Of the claims that one rule stored, queued or blocked; None is that of decisions which are gone."""

    rule: Rule | None


class Waiting(Frozen):
    """What waits now."""

    items: int
    oldest_at: datetime | None  # since when the oldest waits
    median_seconds: float | None


class SpotCheckNumbers(Frozen):
    """What was said of memories that were drawn, ever; `low` and `high` bound the true share of right ones at 95 %
    (Wilson)."""

    right: int
    wrong: int
    cannot_tell: int
    open: int
    low: float
    high: float


class RulingNumbers(Frozen):
    """What a standing ruling did, ever. Of all others together `id` and `verdict` are None."""

    id: str | None
    name: str
    verdict: RulingVerdict | None
    counts_now: bool  # it bears on claims to come
    did: RulingCounts


class Numbers(Frozen):
    """The figures of these owners together, since the beginning of a day (UTC). Not `complete`: so much happened that
    only its end was counted."""

    owners: tuple[str, ...]
    at: datetime
    since: datetime
    complete: bool
    waiting: Waiting
    median_cleared_seconds: float | None  # how long what was cleared had waited, but for what was promoted
    total: Flow
    days: tuple[DayFlow, ...]
    agents: tuple[AgentFlow, ...]
    reasons: tuple[ReasonFlow, ...]
    spot_checks: SpotCheckNumbers
    standing_rulings: tuple[RulingNumbers, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """All of one owner that takes some time to count, as it was at entry `seq` of their log."""

    seq: int
    at: float  # of a clock that only goes on, in seconds
    settled: datetime  # what was cleared before changes only by being taken back
    came: Counter[Group]
    ended: Counter[Group]
    waits: Sequence[tuple[datetime, float]]
    came_since: datetime | None  # from when on all is counted; None: from the beginning
    ended_since: datetime | None
    checks: Mapping[str, int]
    rulings: Sequence[tuple[StandingRuling, RulingCounts]]


class NumbersCounter:
    """What was counted lately. All of it changes with its owner's log only, whose new entries are added to what was
    counted before. Safe to share between threads."""

    def __init__(self, long: int = _LONG) -> None:
        """`long`: where more was cleared, figures may be _SECONDS old."""
        self._long = long
        self._known: OrderedDict[str, Counted] = OrderedDict()
        self._lock = threading.Lock()

    def numbers_of(
        self, connection: Connection, owner_ids: Iterable[str], now: datetime, days: int = DAYS
    ) -> Numbers:
        """The figures of these owners over so many days, today with them, as they are in this reading transaction."""
        named = tuple(sorted(owner_ids))
        ends = owners.log_ends(connection, named)
        counted = [self._counted(connection, owner_id, seq, now) for owner_id, (seq, _) in ends.items()]
        waiting = _waiting(connection, named, sum(items for _, items in ends.values()), now)
        since = _day_before(now, days - 1)
        agents = _largest(_by(counted, since.date(), lambda group: group.agent), MOST_SHOWN)
        names = tokens.names(connection, [agent for agent, _ in agents if agent is not None])
        lines = tuple(
            AgentFlow(id=agent, name=OTHERS if agent is None else names.get(agent, agent), **flow)
            for agent, flow in agents
        )
        return _numbers(named, counted, waiting, lines, since=since, now=now)

    def _counted(self, connection: Connection, owner_id: str, seq: int, now: datetime) -> Counted:
        with self._lock:
            known = self._known.get(owner_id)
        # Counted in a later state than this transaction sees, or by a clock that was ahead: days are missing there.
        if known is not None and (known.seq > seq or known.settled > _day_before(now, 1)):
            known = None
        if known is not None:
            many = known.ended.total() > self._long and time.monotonic() - known.at < _SECONDS
            if known.seq == seq or many:
                return known
        counted = _count(connection, owner_id, seq, known, now)
        with self._lock:
            self._known[owner_id] = counted
            self._known.move_to_end(owner_id)
            if len(self._known) > _OWNERS:
                self._known.popitem(last=False)
        return counted


def _count(connection: Connection, owner_id: str, seq: int, known: Counted | None, now: datetime) -> Counted:
    since = _day_before(now, MOST_DAYS - 1)
    first, came_since = seq - overview.MOST_ENTRIES, None
    if known is not None and known.seq >= first:
        first, came_since = known.seq, known.came_since
    else:
        known = None
        if first > 0:
            came_since = stored.time_of_entry(connection, owner_id, first)
    came = stored.count_came(connection, owner_id, since, first, seq)
    # Unless a decision was taken back, of the days before yesterday all is known.
    before = since
    if known is not None and not any(group.what == "undone" for group in came):
        before = max(since, known.settled)
    ended, ended_since = stored.count_ended(connection, owner_id, before)
    waits = stored.waits(connection, owner_id, before)
    if known is not None:
        came += _between(known.came, since.date(), date.max)
        if before > since:
            ended += _between(known.ended, since.date(), before.date())
            ended_since = ended_since or known.ended_since
            waits += [each for each in known.waits if each[0] < before][: stored.MOST_WAITS - len(waits)]
    checks = Counter[str]()
    for times in spot_checks.counts(connection, frozenset({owner_id})).values():
        checks.update(times)
    rulings = standing_rulings.listing(connection, owner_id)
    return Counted(
        seq=seq,
        at=time.monotonic(),
        settled=_day_before(now, 1),
        came=came,
        ended=ended,
        waits=waits,
        came_since=came_since,
        ended_since=ended_since,
        checks=checks,
        rulings=rulings,
    )


def _between(counted: Mapping[Group, int], since: date, until: date) -> Counter[Group]:
    """What was counted of the days from one on and before another."""
    return Counter({group: times for group, times in counted.items() if since <= group.day < until})


def _waiting(connection: Connection, named: Sequence[str], items: int, now: datetime) -> Waiting:
    oldest = [overview.oldest_wait_since(connection, owner_id) for owner_id in named] if items else []
    middle = stored.middle_wait_since(connection, named, items)
    return Waiting(
        items=items,
        oldest_at=min((at for at in oldest if at is not None), default=None),
        median_seconds=None if middle is None else max(0.0, (now - middle).total_seconds()),
    )


def _numbers(
    named: tuple[str, ...],
    counted: Sequence[Counted],
    waiting: Waiting,
    agents: tuple[AgentFlow, ...],
    *,
    since: datetime,
    now: datetime,
) -> Numbers:
    first = since.date()
    by_day = _by(counted, first, lambda group: group.day)
    by_rule = _by(counted, first, lambda group: group.rule)
    lasted = [seconds for one in counted for ended, seconds in one.waits if ended >= since]
    starts = [start for one in counted for start in (one.came_since, one.ended_since) if start is not None]
    checks = sum((Counter(one.checks) for one in counted), Counter[str]())
    record = TrackRecord(right=checks[SpotVerdict.RIGHT.value], wrong=checks[SpotVerdict.WRONG.value])
    low, high = interval(record)
    return Numbers(
        owners=named,
        at=now,
        since=since,
        complete=all(start < since for start in starts),
        waiting=waiting,
        median_cleared_seconds=median(lasted) if lasted else None,
        total=Flow(**sum(by_day.values(), Counter[str]())),
        days=tuple(
            DayFlow(day=day, **by_day[day])
            for day in (first + timedelta(days=n) for n in range((now - since).days + 1))
        ),
        agents=agents,
        reasons=tuple(ReasonFlow(rule=rule, **flow) for rule, flow in _sorted(by_rule)),
        spot_checks=SpotCheckNumbers(
            right=record.right,
            wrong=record.wrong,
            cannot_tell=checks[SpotVerdict.CANNOT_TELL.value],
            open=checks[spot_checks.OPEN],
            low=round(low, 3),
            high=round(high, 3),
        ),
        standing_rulings=_rulings([each for one in counted for each in one.rulings], now),
    )


def _by(counted: Sequence[Counted], first: date, of: Callable[[Group], K]) -> defaultdict[K, Counter[str]]:
    """What happened from a day on, in groups."""
    found: defaultdict[K, Counter[str]] = defaultdict(Counter)
    for one in counted:
        for groups in (one.came, one.ended):
            for group, times in groups.items():
                if group.day >= first:
                    found[of(group)][group.what] += times
    return found


def _sorted(found: Mapping[K, Counter[str]]) -> list[tuple[K, Counter[str]]]:
    """Those of whom most came first."""
    came = ("stored", "queued", "repeated", "blocked", "let_through")
    return sorted(found.items(), key=lambda each: (-sum(each[1][what] for what in came), str(each[0])))


def _largest(found: Mapping[str, Counter[str]], most: int) -> list[tuple[str | None, Counter[str]]]:
    """Those of whom most came, and under None the sum of the others."""
    ordered: list[tuple[str | None, Counter[str]]] = [*_sorted(found)]
    rest = sum((flow for _, flow in ordered[most:]), Counter[str]())
    return ordered[:most] + ([(None, rest)] if rest else [])


def _rulings(
    found: Sequence[tuple[StandingRuling, RulingCounts]], now: datetime
) -> tuple[RulingNumbers, ...]:
    """Those that did most, and of the others the sum."""
    ordered = sorted(found, key=lambda each: (-each[1].stored - each[1].rejected, each[0].id))
    told = [
        RulingNumbers(
            id=one.id,
            name=one.name,
            verdict=one.verdict,
            counts_now=one.ended_at is None and now < one.until,
            did=did,
        )
        for one, did in ordered[:MOST_SHOWN]
    ]
    if rest := [asdict(did) for _, did in ordered[MOST_SHOWN:]]:
        together = RulingCounts(**{name: sum(did[name] for did in rest) for name in rest[0]})
        told.append(RulingNumbers(id=None, name=OTHERS, verdict=None, counts_now=False, did=together))
    return tuple(told)


def _day_before(now: datetime, days: int) -> datetime:
    """The beginning (UTC) of the day that was so many days ago."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=days)
