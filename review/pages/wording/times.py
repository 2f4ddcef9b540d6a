"""Points of time as a page shows them. The present comes in as a value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from vouchgate.ingest.scoring.priority import span, span_left
from vouchgate.ingest.scoring.score import aware

_DAY = timedelta(days=1)
_MONTH = 30.44 * _DAY
_YEAR = 365.25 * _DAY


@dataclass(frozen=True, slots=True)
class Moment:
    """A time: `iso` for programs, `date` to the minute with its zone, `ago` as seen from now (`3 days ago`, `in 1
    hour`)."""

    iso: str
    date: str
    ago: str


def moment(at: datetime, now: datetime) -> Moment:
    """How a time is shown. One without a zone, which only pages of others have, is read as UTC."""
    at = aware(at)
    away = abs(at - now)
    words = (
        "just now"
        if away < timedelta(minutes=1)
        else f"{span(away)} ago"
        if at < now
        else f"in {span_left(away)}"
    )
    date = at.replace(tzinfo=None).isoformat(" ", "minutes")  # of the year 1, %Y has one digit
    return Moment(at.isoformat(timespec="seconds"), f"{date} {_zone(at)}", words)


def moment_or_none(at: datetime | None, now: datetime) -> Moment | None:
    """`moment`, and None for None."""
    return None if at is None else moment(at, now)


def age(dated: datetime | None, now: datetime) -> str:
    """How old a thing of that date is: in days up to two months, in months up to two years, then in years."""
    if dated is None:
        return "age not known"
    time = now - aware(dated)
    if time < timedelta(0):
        return "dated in the future"
    if time < 2 * _MONTH:
        return f"{span(time)} old"
    months = int(time / _MONTH)
    return f"{months} months old" if time < 2 * _YEAR else f"{int(time / _YEAR)} years old"


def _zone(at: datetime) -> str:
    return "UTC" if at.utcoffset() == timedelta(0) else f"UTC{at:%z}"
