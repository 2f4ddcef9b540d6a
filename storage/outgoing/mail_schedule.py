"""When a digest is due, by the clock on the wall of who reads it. Pure.

Hours are those of a time zone, also on the days when its clocks change: an hour that is skipped counts as the one
after it, one that comes twice counts once, the first time.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Self
from zoneinfo import ZoneInfo

from pydantic import model_validator

from vouchgate.ingest.claims.frozen import Frozen

_DAY = timedelta(days=1)
_DAY_MINUTES = 24 * 60


class MailSchedule(Frozen):
    """Hours (0 to 23) on weekdays (0 is Monday), in a zone of the IANA database. Nothing is sent from the first to the
    second minute of `quiet`, counted from midnight, which may lie between them."""

    hours: tuple[int, ...]
    weekdays: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6)
    zone: str = "UTC"
    quiet: tuple[int, int] | None = None

    @model_validator(mode="after")
    def _may_come(self) -> Self:
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(
                f"There is no time zone {self.zone[:64]!a}; one is called Europe/Berlin."
            ) from error
        if not set(self.hours) <= set(range(24)) or not set(self.weekdays) <= set(range(7)):
            raise ValueError("Hours are 0 to 23, weekdays 0 to 6.")
        if self.quiet is not None:
            start, end = self.quiet
            if not (0 <= start < _DAY_MINUTES and 0 <= end < _DAY_MINUTES and start != end):
                raise ValueError("Quiet hours are like 22:00-07:00.")
        if not list(_moments(self, datetime(2026, 1, 1, tzinfo=UTC))):
            raise ValueError("With these hours, weekdays and quiet hours nothing would ever be sent.")
        return self


def next_due(schedule: MailSchedule, after: datetime) -> datetime:
    """The first moment later than `after` at which a digest is due, in UTC: what falls into quiet hours is due when
    they end, and where that is on a day without digests, with the one that follows."""
    return min(_moments(schedule, after))


def _moments(schedule: MailSchedule, after: datetime) -> list[datetime]:
    """Those of the week that follows, in no order, each once or more."""
    zone = ZoneInfo(schedule.zone)
    today = after.astimezone(zone).date()
    found = []
    for days in range(-2, 9):  # quiet hours move one by a day at most
        day = today + days * _DAY
        if day.weekday() in schedule.weekdays:
            for hour in schedule.hours:
                at = after_quiet(schedule, _moment(day, time(hour), zone))
                if at > after and at.astimezone(zone).weekday() in schedule.weekdays:
                    found.append(at)
    return found


def after_quiet(schedule: MailSchedule, at: datetime) -> datetime:
    """`at`, or the end of the quiet hours that it is in."""
    if schedule.quiet is None:
        return at
    zone = ZoneInfo(schedule.zone)
    start, end = schedule.quiet
    local = at.astimezone(zone)
    now = local.hour * 60 + local.minute
    if not (start <= now < end if start < end else now >= start or now < end):
        return at
    day = local.date() if now < end else local.date() + _DAY
    wall = time(end // 60, end % 60)
    found = _moment(day, wall, zone)
    return found if found > at else _moment(day, wall.replace(fold=1), zone)


def _moment(day: date, wall: time, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, wall, zone).astimezone(UTC)
