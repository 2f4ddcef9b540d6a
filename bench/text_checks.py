"""The pure text checks: on ordinary claims beside plain patterns, and on hostile text beside ordinary text."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from bench import naive
from bench.claims import claim_of
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import TooManyCitations
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import inspect
from vouchgate.ingest.policy import MAX_CONTENT_CHARACTERS

CLAIMS = (
    "The payment worker retries a failed call three times with exponential backoff and then moves the message "
    "to the dead letter queue for a human to look at",
    "Per ADR-0007 the session cache lives in Redis behind the gateway and every entry expires after thirty minutes "
    "without a request from the same signed browser session",
    "The importer may drop rows whose timestamp lies in the future because the clock of the source system usually "
    "runs ahead of ours by several seconds",
    "Commit 4f2a91c replaced the linear scan in the scheduler with a heap so that picking the next job no longer "
    "depends on how many jobs wait",
    "Since the June release the mobile client sends its build number in a header and the gateway refuses builds "
    "that are older than two years at once",
)
LINK = (
    "The retry policy is described at https://example.com/handbook/retries and every service follows it since "
    "the incident review in spring with the one exception of billing"
)
HOSTILE = {
    "I I I ...": "I ",
    "maybe maybe ...": "maybe ",
    "&&&&": "&",
    "<<<<": "<",
    "back-ticks": "`a",
    "quotes": '"a ',
    "combining marks": "a\u0301\u0302",
    "zero-width": "t\u200bh",
    "brackets": "([{",
    "#1 #1 ...": "#1 ",
    "hex": "deadbeef1 ",
    "http://http://": "http://",
    "http://a((((": "http://a((",
    "10.1000/": "10.1000/a",
    "a/b#1": "a/b#1 ",
    "ADR ADR": "ADR ",
    "i do not really ": "i do not really ",
    "emphasis": "**_~",
    "entities": "&#73; &lt;",
}


def _checks() -> Callable[[str], object]:
    """The text checks as the gate runs them on a claim."""
    detector = HedgeDetector(load_policy().lexicon)

    def check(text: str) -> object:
        claim = claim_of(text)
        try:
            return inspect(claim, detector)
        except TooManyCitations as refused:
            return refused

    return check


def _microseconds(work: Callable[[str], object], texts: Sequence[str], rounds: int) -> float:
    """Median time of one call, over single calls on each text in turn."""
    taken = []
    for _ in range(rounds):
        for text in texts:
            start = time.perf_counter_ns()
            work(text)
            taken.append(time.perf_counter_ns() - start)
    return statistics.median(taken) / 1000


def _filled(unit: str) -> str:
    return (unit * (MAX_CONTENT_CHARACTERS // len(unit) + 1))[:MAX_CONTENT_CHARACTERS]


def run() -> None:
    """Prints both tables."""
    check = _checks()
    _microseconds(check, CLAIMS, 50)  # warm-up
    print("text checks (normalise, hedges, citations), median of one call")
    for name, texts in (("25-word claims", CLAIMS), ("a claim with a URL", (LINK,))):
        plain = _microseconds(naive.check, texts, 400)
        ours = _microseconds(check, texts, 400)
        print(f"  {name:<20} {ours:7.1f} µs   plain patterns {plain:6.1f} µs   ratio {ours / plain:5.1f}")
    ordinary = _microseconds(check, [_filled(" ".join(CLAIMS) + " ")], 15)
    print(
        f"\nhostile text of {MAX_CONTENT_CHARACTERS} characters, against prose of that length ({ordinary:.0f} µs)"
    )
    for name, unit in HOSTILE.items():
        taken = _microseconds(check, [_filled(unit)], 7)
        print(f"  {name:<20} {taken:9.0f} µs   ratio {taken / ordinary:5.2f}")
