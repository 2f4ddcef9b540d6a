"""Ten agents of known honesty under measured trust: how soon the bad ones are stopped, and at which cost in reviews.

Nothing here is sent to a gate. What decides is the gate's own: which claims are drawn (`rate_for`, `is_sampled`), what
verdicts show (`interval`, the latest WINDOW), and that `spoken_of` stores only over the floor. Each agent sends claims
that a source speaks of, right with its own probability; its owner judges what waits and what is drawn, at once and
without a mistake.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from pathlib import Path
from random import Random

from vouchgate.ingest.claims.trust import TrackRecord
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import SpotChecks
from vouchgate.ingest.scoring.sampling import WINDOW, interval, is_sampled, rate_for

CLAIMS = 1000  # of each agent
RUNS = 100
FLOOR = 0.75
HONESTY: Sequence[float] = (0.99, 0.97, 0.95, 0.92, 0.88, 0.80, 0.70, 0.55, 0.30)
TURNS, THEN = 500, 0.30  # the tenth is right in 0.97 until then, and in this share after
PICTURE = Path(__file__).parent.parent / "docs" / "spot-checks.svg"


@dataclass(slots=True)
class Came:
    """What became of the claims of one agent, on average of the runs."""

    name: str
    stored: float = 0
    false_stored: float = 0
    reviews: float = 0  # claims that waited, and spot checks
    false: float = 0  # claims that were wrong, stored or not
    trusted_at: float = 0  # claims sent when the first was stored, CLAIMS if none ever was
    after_turn: float = 0  # false ones stored after it turned
    stopped_after: float = 0  # claims after it turned until the last was stored


@cache
def shown(right: int, wrong: int) -> float:
    """The least share that these verdicts show."""
    return interval(TrackRecord(right=right, wrong=wrong))[0]


def run_agent(
    honesty: Callable[[int], float], said: SpotChecks, floor: float, random: Random, came: Came
) -> None:
    """Sends the claims of one agent, one after the other, and adds what came of them."""
    verdicts: deque[bool] = deque(maxlen=WINDOW)
    judged, first, last = 0, CLAIMS, TURNS
    for number in range(CLAIMS):
        right = random.random() < honesty(number)
        record = TrackRecord(right=sum(verdicts), wrong=len(verdicts) - sum(verdicts))
        stored = shown(record.right, record.wrong) >= floor
        looked = not stored
        if stored:
            digest = hashlib.sha256(str(random.random()).encode()).hexdigest()
            looked = is_sampled(digest, rate_for(said, [record]))
            first, last = min(first, number), max(last, number)
        if looked:
            verdicts.append(right)
            judged += 1
        came.stored += stored / RUNS
        came.false_stored += (stored and not right) / RUNS
        came.after_turn += (stored and not right and number >= TURNS) / RUNS
        came.false += (not right) / RUNS
    came.reviews += judged / RUNS
    came.trusted_at += first / RUNS
    came.stopped_after += (last - TURNS) / RUNS


def simulate(said: SpotChecks, floor: float) -> list[Came]:
    """Ten agents, each RUNS times; the same every time."""
    found = []
    for place, share in enumerate((*HONESTY, None)):
        came = Came(f"{share:.2f}" if share is not None else f"0.97, then {THEN:.2f}")
        for number in range(RUNS):
            random = Random(place * RUNS + number)
            run_agent(partial(_honesty, share), said, floor, random, came)
        found.append(came)
    return found


def _honesty(share: float | None, at: int) -> float:
    return share if share is not None else 0.97 if at < TURNS else THEN


def run() -> None:
    """Prints the figures beside those without a floor, and with the rate of all alone; draws the picture."""
    said = load_policy().spot_checks
    ways = {
        f"floor {FLOOR:g}, {said.new_rate} until shown, then {said.rate}": simulate(said, FLOOR),
        f"floor {FLOOR:g}, {said.rate} of all": simulate(SpotChecks(rate=said.rate), FLOOR),
        f"no floor, {said.rate} of all": simulate(SpotChecks(rate=said.rate), 0.0),
    }
    for name, agents in ways.items():
        print(f"\n{name}; {CLAIMS} claims an agent, means of {RUNS} runs")
        print(
            f"{'right in':>16}{'stored':>9}{'false stored':>14}{'of false':>10}{'reviews':>9}{'first at':>10}"
        )
        for one in agents:
            share = one.false_stored / one.false
            print(
                f"{one.name:>16}{one.stored:9.0f}{one.false_stored:14.1f}{share:10.2f}{one.reviews:9.0f}{one.trusted_at:10.0f}"
            )
        stored, false = (sum(getattr(one, name) for one in agents) for name in ("stored", "false_stored"))
        print(
            f"all: {stored:.0f} stored, {false:.0f} of them false, {sum(one.reviews for one in agents):.0f} reviews"
        )
        turned = agents[-1]
        print(
            f"turned: last stored {turned.stopped_after:.0f} claims later, {turned.after_turn:.0f} false among them"
        )
    PICTURE.write_text(draw(next(iter(ways.values())), list(ways.values())[-1]), "utf-8")


def draw(agents: Sequence[Came], without: Sequence[Came]) -> str:
    """The picture: of each agent what was stored right and false, what a person looked at, and the false ones that
    would have been stored without a floor."""
    left, width, row, top = 130, 560, 40, 64
    height = top + row * len(agents) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 40} {height}" role="img" '
        'font-family="sans-serif" font-size="12">',
        "<title>What became of the claims of ten agents</title>",
        f'<rect width="100%" height="100%" fill="#fbfbf8"/><g fill="#22262b"><text x="12" y="22" font-size="14">'
        f"What became of {CLAIMS:,} claims of each of ten agents, by the share they are right in</text>",
    ]
    keys = (("#b3261e", "stored, false"), ("#0b7a75", "stored, right"), ("#1f5fbf", "looked at by a person"))
    for place, (colour, words) in enumerate(keys):
        x = left + place * 170
        parts.append(
            f'<rect x="{x}" y="34" width="12" height="12" fill="{colour}"/><text x="{x + 17}" y="44">{words}</text>'
        )
    for place, (one, bare) in enumerate(zip(agents, without, strict=True)):
        y, scale = top + place * row, width / CLAIMS
        false, right = one.false_stored * scale, (one.stored - one.false_stored) * scale
        dash = f"{left + bare.false_stored * scale:.1f}"
        parts += [
            f'<text x="{left - 8}" y="{y + 17}" text-anchor="end">{escape(one.name)}</text>',
            f'<rect x="{left}" y="{y}" width="{false:.1f}" height="14" fill="#b3261e"/>',
            f'<rect x="{left + false:.1f}" y="{y}" width="{right:.1f}" height="14" fill="#0b7a75"/>',
            f'<rect x="{left}" y="{y + 16}" width="{one.reviews * scale:.1f}" height="8" fill="#1f5fbf"/>',
            f'<line x1="{dash}" x2="{dash}" y1="{y - 2}" y2="{y + 26}" stroke="#b3261e" stroke-dasharray="2 2"/>',
        ]
    parts.append(
        f'<text x="{left}" y="{height - 14}" fill="#5f6b7a">dashed: false ones that would be stored without a floor'
        "</text></g></svg>\n"
    )
    return "\n".join(parts)
