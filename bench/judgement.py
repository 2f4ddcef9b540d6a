"""What the judgement of sources lets in, and what it costs: rows that people judged, from files of the command line.

Each figure stands beside its price: the statements called stated beside those of them that are not, the conflicts
beside the true ones called one. The rows are JSONL, of one of four shapes, told by their fields:
`{claim, source_text, expected}` (expected: states, partly, refutes, altered, silent; supports, contradicts, unrelated;
chosen, rejected_option), `{earlier, claim, expected}` (repeat, conflict), `{text, expected}` (block, review, continue),
and those of `bench.repositories`, which lie in `repos/` beside the file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import repositories
from bench.fireweed_gate import Admits, load_fireweed
from vouchgate.cli.lines.support import support_fields
from vouchgate.ingest.checks.hedge import HedgeDetector, action_of
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.relation import relation

_WRONG = ("refutes", "contradicts", "altered", "silent", "unrelated")
_AGAINST = ("refutes", "contradicts", "altered")
_FOR = ("states", "supports")

Row = Mapping[str, Any]


def run(files: Sequence[Path]) -> None:
    """Prints the figures of each file."""
    fireweed = load_fireweed()
    for file in files:
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
        print(f"\n{file.name}: {len(rows)} rows")
        if not rows:
            continue
        if "source_text" in rows[0]:
            _sources(rows, fireweed)
        elif "repo" in rows[0]:
            repositories.run(rows, file.parent / "repos", fireweed)
        elif "earlier" in rows[0]:
            _memories(rows)
        elif "text" in rows[0]:
            _hedges(rows)
        else:
            print("  not of a shape that is known; its fields:", ", ".join(rows[0]))


def _sources(rows: Sequence[Row], fireweed: Admits | None) -> None:
    pairs = [(str(row["expected"]), _verdict(row)) for row in rows]
    admitted = [
        (str(row["expected"]), "admitted" if fireweed(row["claim"], row["source_text"]) else "refused")
        for row in rows
        if fireweed is not None
    ]
    if any(expected == "rejected_option" for expected, _ in pairs):
        _share("rejected options caught", pairs, ("rejected_option",), "conflict")
        _share("chosen ones refused", pairs, ("chosen",), "conflict")
        _share("fireweed refuses rejected options", admitted, ("rejected_option",), "refused")
        _share("fireweed refuses chosen ones", admitted, ("chosen",), "refused")
        return
    _precision("states", pairs, _FOR, "states", _WRONG)
    if admitted:
        _precision("fireweed admits", admitted, _FOR, "admitted", _WRONG)
    _precision("conflict", pairs, _AGAINST, "conflict", _FOR)
    _share("of what is not the subject, off topic", pairs, ("unrelated",), "off_topic")


def _verdict(row: Row) -> str:
    kind = "adr" if row["expected"] in ("chosen", "rejected_option") else str(row.get("kind") or "")
    answer = support_fields(None, row["claim"], row["source_text"], str(row.get("title") or ""), kind)
    return str(answer["verdict"])


def _memories(rows: Sequence[Row]) -> None:
    policy = load_policy()
    pairs = []
    for row in rows:
        said = relation(row["earlier"], row["claim"], policy.threshold, policy.values)
        pairs.append((str(row["expected"]), said.relation.value))
    _share("contradicting memories caught", pairs, ("conflict",), "conflict")
    _share("same meaning called conflict", pairs, ("repeat",), "conflict")


def _hedges(rows: Sequence[Row]) -> None:
    detector = HedgeDetector(load_policy().lexicon)
    pairs = [(str(row["expected"]), action_of(detector.detect(row["text"])).value) for row in rows]
    right = sum(expected == answer for expected, answer in pairs)
    print(f"  hedges right: {right} of {len(pairs)} ({right / len(pairs):.3f})")
    _share("plain sentences blocked", pairs, ("continue",), "block")


def _precision(
    name: str, pairs: Sequence[tuple[str, str]], right: Iterable[str], answer: str, escapes: Iterable[str]
) -> None:
    """How often an answer is right, how many of those it should be given to get it, and what else gets it."""
    right = tuple(right)
    given = Counter(expected for expected, said in pairs if said == answer)
    wanted = sum(expected in right for expected, _ in pairs)
    total = given.total()
    if not total or not wanted:
        print(f"  {name}: never said")
        return
    good = sum(given[each] for each in right)
    bad = sum(given[each] for each in escapes)
    print(
        f"  {name}: precision {good / total:.3f}, recall {good / wanted:.3f}; escapes {bad} of {total} {dict(given)}"
    )


def _share(name: str, pairs: Sequence[tuple[str, str]], of: Iterable[str], answer: str) -> None:
    asked = [said for expected, said in pairs if expected in tuple(of)]
    if asked:
        count = asked.count(answer)
        print(f"  {name}: {count} of {len(asked)} ({count / len(asked):.3f})")
