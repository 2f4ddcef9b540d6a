"""The page of figures, decided: a few large ones, a bar chart by day that is drawn here, and tables with bars."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from vouchgate.ingest.scoring.priority import span
from vouchgate.review.numbers import MOST_DAYS, Flow, Numbers
from vouchgate.review.pages.history import FilterChoice
from vouchgate.review.pages.reasons import OTHER, kind_of

PATH = "/review/numbers"
CHOICES = (7, 14, 30, MOST_DAYS)  # days
COLUMNS = {
    "came": "In",
    "stored": "Stored",
    "queued": "Queued",
    "repeated": "Repeats",
    "blocked": "Blocked",
    "let_through": "Let through",
    "cleared": "Cleared",
    "approved": "Approved",
    "rejected": "Rejected",
    "let_go": "Let go",
    "sent_back": "Sent back",
    "expired": "Expired",
    "promoted": "By itself",
    "undone": "Taken back",
}
HEIGHT = 100  # of the chart, in units of its own, as all lengths here; a day is STEP wide
STEP = 20


class Figure(NamedTuple):
    """A large figure with what it is of, and a line below it."""

    of: str
    value: str
    note: str


class Bar(NamedTuple):
    """A rectangle of a bar; `kind` names its colour in the style sheet."""

    kind: str
    x: float
    y: float
    width: float
    height: float


class Line(NamedTuple):
    """A day, an agent or a reason; `says` is all of it in a sentence."""

    name: str
    says: str
    bars: tuple[Bar, ...]
    flow: Flow
    share: str  # approved of what people ruled on; empty where they did not


@dataclass(frozen=True, slots=True)
class NumbersView:
    """The page. `most` is what a bar as high as the chart stands for."""

    spans: tuple[FilterChoice, ...]
    scopes: tuple[FilterChoice, ...]
    figures: tuple[Figure, ...]
    most: int
    days: tuple[Line, ...]
    agents: tuple[Line, ...]
    reasons: tuple[Line, ...]


def numbers_view(numbers: Numbers, *, every: bool, now: datetime) -> NumbersView:
    """The figures of one owner, or of `every` one of the visitor's."""
    count = len(numbers.days)
    most = max((max(day.came, day.cleared) for day in numbers.days), default=0)
    busiest = max((each.came for each in numbers.agents if each.id is not None), default=0)
    commonest = max((each.came for each in numbers.reasons), default=0)
    return NumbersView(
        spans=tuple(FilterChoice(f"{days} days", _href(days, every), days == count) for days in CHOICES),
        scopes=(
            FilterChoice("this owner", _href(count, False), not every),
            FilterChoice("all of my owners", _href(count, True), every),
        ),
        figures=tuple(_figures(numbers, now)),
        most=most,
        days=tuple(
            _line(f"{day.day:%a %d %b}", day, _upright(number, day, most))
            for number, day in enumerate(numbers.days)
        ),
        agents=tuple(
            _line(each.name, each, _lying(each, busiest) if each.id else ()) for each in numbers.agents
        ),
        reasons=tuple(_line(_reason(each.rule), each, _lying(each, commonest)) for each in numbers.reasons),
    )


def _href(days: int, every: bool) -> str:
    return f"{PATH}?days={days}" + ("&all=1" if every else "")


def _figures(numbers: Numbers, now: datetime) -> Iterable[Figure]:
    waiting, total, checks = numbers.waiting, numbers.total, numbers.spot_checks
    oldest = (
        "nothing waits" if waiting.oldest_at is None else f"the oldest for {span(now - waiting.oldest_at)}"
    )
    yield Figure("Waiting now", f"{waiting.items:,}", oldest)
    through = f", {total.let_through:,} let through" if total.let_through else ""
    at_once = f"{total.stored:,} stored at once, {total.queued:,} queued{through}"
    yield Figure("Came in", f"{total.came:,}", at_once)
    share = (
        "nobody ruled" if total.approved_share is None else f"{total.approved_share:.0%} of rulings approve"
    )
    yield Figure("Cleared", f"{total.cleared:,}", share)
    half = _span(waiting.median_seconds)
    yield Figure(
        "Median wait",
        _span(numbers.median_cleared_seconds) or "–",
        f"of what was cleared; of what waits {half}" if half else "of what was cleared",
    )
    judged = checks.right + checks.wrong
    between = f"{checks.low:.0%} to {checks.high:.0%} right, at 95 %" if judged else "nothing judged yet"
    yield Figure("Spot checks, ever", f"{checks.right:,} of {judged:,}" if judged else "–", between)


def _span(seconds: float | None) -> str:
    return "" if seconds is None else span(timedelta(seconds=seconds))


def _reason(rule: str | None) -> str:
    """What the queue calls it, or for what never waits its name."""
    if rule is None:
        return "not known"
    kind = kind_of(rule)
    return rule.replace("_", " ").capitalize() if kind is OTHER else kind.label


def _line(name: str, flow: Flow, bars: Iterable[Bar]) -> Line:
    told = [
        f"{count} {label.lower()}" for column, label in COLUMNS.items() if (count := getattr(flow, column))
    ]
    share = "" if flow.approved_share is None else f"{flow.approved_share:.0%}"
    return Line(name, f"{name}: {', '.join(told) or 'nothing'}", tuple(bars), flow, share)


def _parts(flow: Flow) -> tuple[tuple[str, int], ...]:
    """All that came, and what became of it at once."""
    return (
        ("stored", flow.stored),
        ("queued", flow.queued),
        ("let-through", flow.let_through),
        ("kept-out", flow.blocked + flow.repeated),
    )


def _upright(number: int, day: Flow, most: int) -> Iterable[Bar]:
    """What came in one on the other, and beside it what was cleared."""
    left, top = number * STEP, float(HEIGHT)
    for kind, count in _parts(day):
        height = _scaled(count, most)
        if height:
            top -= height
            yield Bar(kind, left + 3, round(top, 2), 8, height)
    if day.cleared:
        height = _scaled(day.cleared, most)
        yield Bar("cleared", left + 12, HEIGHT - height, 5, height)


def _lying(flow: Flow, most: int) -> Iterable[Bar]:
    left = 0.0
    for kind, count in _parts(flow):
        width = _scaled(count, most)
        if width:
            yield Bar(kind, round(left, 2), 0, width, 1)
            left += width


def _scaled(count: int, most: int) -> float:
    return round(HEIGHT * count / most, 2) if most else 0.0
