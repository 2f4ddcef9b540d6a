"""`python -m bench languages`: hedges and contradictions in other languages, on one half of the labelled rows.

`--held` takes the half that is held back. `--show de` prints what went wrong on the half that may be looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bench.languages import CODES, rows_of
from vouchgate.ingest.checks.hedge import HedgeDetector, judge
from vouchgate.ingest.claims.claim import Verdict
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.relation import relation

_KINDS = (
    "none",
    "personal_speculation",
    "admitted_uncertainty",
    "undecided_suggestion",
    "technical_hedge",
    "approximation",
)


def run(*, held: bool, show: str = "") -> None:
    """Prints a line a language."""
    if held and show:
        raise SystemExit("rows that are held back are not to be looked at")
    print(f"the half that {'is held back' if held else 'may be looked at'}")
    print("       rows  macro-F1  plain blocked  plain queued  pairs right  conflicts found  false conflicts")
    for code in CODES:
        _language(code, held=held, show=code == show)


def _language(code: str, *, held: bool, show: bool) -> None:
    policy = load_policy()
    detector = HedgeDetector(policy.lexicon)
    pairs, plain = [], Counter[Verdict]()
    for row in rows_of(code, held=held):
        finding = judge(detector.detect(row["text"]))
        found = "none" if finding.verdict is Verdict.PASS else finding.code
        pairs.append((row["hedge"], found))
        if row["hedge"] == "none":
            plain[finding.verdict] += 1
        if show and found != row["hedge"]:
            print(f"{row['id']}  {row['hedge']} -> {found}: {row['text']}  {finding.facts.get('words', '')}")
    related = []
    for row in rows_of(f"{code}_pairs", held=held):
        is_now = relation(row["earlier"], row["later"], policy.threshold, policy.values).relation.value
        related.append((row["relation"], is_now))
        if show and is_now != row["relation"]:
            print(
                f"{row['id']}  {row['relation']} ({row['by']}) -> {is_now}: {row['earlier']} / {row['later']}"
            )
    every = max(1, sum(plain.values()))
    print(
        f"{code}  {len(pairs):8}  {_macro_f1(pairs):8.3f}  {plain[Verdict.FAIL] / every:13.4f}"
        f"  {plain[Verdict.DOUBT] / every:12.4f}  {sum(a == b for a, b in related):6} of {len(related):2}"
        f"  {_count(related, 'conflict'):>15}  {sum(b == 'conflict' != a for a, b in related):15}"
    )


def _count(related: Sequence[tuple[str, str]], kind: str) -> str:
    of = [found for expected, found in related if expected == kind]
    return f"{of.count(kind)} of {len(of)}"


def _macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    """The mean of the F1 of each kind, plain sentences among them."""
    scores = []
    for kind in _KINDS:
        right = sum(expected == found == kind for expected, found in pairs)
        either = sum(kind in pair for pair in pairs) + right
        scores.append(2 * right / either if either else 1.0)
    return sum(scores) / len(scores)
