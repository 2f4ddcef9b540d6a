"""How often the support check is right: `python -m bench.support ROWS`, with labelled rows as JSON lines.

A row is {"id", "claim", "source_text", "expected": supports | contradicts | unrelated, "origin", "tag"}. Counts are
given with the rates, since some of the sets are small. Rows tagged off-topic are few, so claims are also paired with
the sources of other rows of their kind, in two halves: thresholds were chosen on the first.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

from vouchgate.ingest.checks.support import Support, SupportVerdict, compare
from vouchgate.ingest.language.terms import Kind, words_of
from vouchgate.ingest.support.passages import passages

Row = dict[str, Any]


def held(claim: str, source: str) -> Support:
    """The claim against the source as the gate does it."""
    return compare(claim, passages(claim, (), "", source).text)


def rate(name: str, hits: int, of: int) -> None:
    """One line: a share and what it is a share of."""
    print(f"{name:58}{hits:6} of {of:6}  {hits / of if of else 0:.3f}")


def kind(row: Row) -> str:
    """What the claim is about: the part of the tag before the first hyphen."""
    return str(row["tag"]).split("-")[0]


def half_of(row: Row) -> int:
    """0 for the rows that were looked at when thresholds were chosen, 1 for those held out."""
    return hashlib.sha256(str(row["id"]).encode()).digest()[-1] % 2


def names(text: str) -> set[str]:
    """Words that may name a subject."""
    return {word.key for word in words_of(text) if word.kind is Kind.NAME}


def related(one: Row, two: Row) -> bool:
    """Whether a pair may be about one thing after all: a shared origin, or a name of the claim in the other row."""
    if one["origin"].split(" (")[0] == two["origin"].split(" (")[0]:
        return True
    return kind(one) != "technical" and bool(
        names(one["claim"]) & names(f"{two['claim']} {two['source_text']}")
    )


def crossed(rows: list[Row], half: int) -> list[tuple[str, str, str]]:
    """Kind, claim, and the source of another row of the kind and the half."""
    mine = [row for row in rows if "off-topic" not in row["tag"] and half_of(row) == half]
    return [
        (kind(one), one["claim"], two["source_text"])
        for one, two in permutations(mine, 2)
        if kind(one) == kind(two) and not related(one, two)
    ]


def report_rows(rows: list[Row]) -> None:
    """The rates of the rows as labelled."""
    started = time.perf_counter()
    verdicts = [(row, held(row["claim"], row["source_text"]).verdict) for row in rows]
    took = time.perf_counter() - started

    def count(name: str, chosen: Callable[[Row], bool], verdict: SupportVerdict) -> None:
        picked = [found for row, found in verdicts if chosen(row)]
        rate(name, picked.count(verdict), len(picked))

    count(
        "off-topic sources called off topic", lambda row: "off-topic" in row["tag"], SupportVerdict.OFF_TOPIC
    )
    for verdict in (SupportVerdict.OFF_TOPIC, SupportVerdict.UNKNOWN, SupportVerdict.CONFLICT):
        count(f"supporting sources called {verdict}", lambda row: row["expected"] == "supports", verdict)
    for name, prefix in (("all", ""), ("technical", "technical")):
        flagged = [
            row
            for row, found in verdicts
            if found is SupportVerdict.CONFLICT and row["tag"].startswith(prefix)
        ]
        real = sum(row["expected"] == "contradicts" for row in flagged)
        there = sum(row["expected"] == "contradicts" and row["tag"].startswith(prefix) for row in rows)
        rate(f"conflicts of {name} rows that are real", real, len(flagged))
        rate(f"contradictions of {name} rows called conflict", real, there)
    print(f"{took / len(rows) * 1000:.2f} ms a row")


def report_crossed(rows: list[Row]) -> None:
    """How many sources of other rows are called off topic, by half and kind."""
    for half, name in enumerate(("first half", "held-out half")):
        pairs = crossed(rows, half)
        off = [
            (what, held(claim, source).verdict is SupportVerdict.OFF_TOPIC) for what, claim, source in pairs
        ]
        for what in ("", *sorted({what for what, _, _ in pairs})):
            hits = [hit for found, hit in off if found.startswith(what)]
            rate(f"crossed pairs called off topic, {name}, {what or 'all'}", sum(hits), len(hits))


def read(lines: Iterable[str]) -> list[Row]:
    """The rows of a file."""
    return [json.loads(line) for line in lines if line.strip()]


def main() -> None:
    """Reports on the file named on the command line."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m bench.support ROWS.jsonl")
    rows = read(Path(sys.argv[1]).read_text("utf-8").splitlines())
    report_rows(rows)
    report_crossed(rows)


if __name__ == "__main__":
    main()
