"""Word Jaccard at the threshold, and what counts as a changed value."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.checks.dedup import changed_values, compare, jaccard, judge, tokens
from ingest.policy import load_policy
from ingest.types import DedupUnavailable, ItemKind, Neighbour, Neighbours, Verdict

POLICY = load_policy()
THRESHOLD = POLICY.threshold
LONG = (
    "the nightly export job copies every finished invoice into the archive bucket and then writes one line "
    "for each of them to the ledger so that finance can compare totals"
)


def neighbour(content: str, kind: ItemKind = ItemKind.MEMORY, item_id: str = "mem_1") -> Neighbour:
    return Neighbour(kind=kind, id=item_id, content=content)


def words(count: int, prefix: str = "w") -> str:
    return " ".join(f"{prefix}{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(count))


def test_threshold_is_the_exact_fraction() -> None:
    assert THRESHOLD == Fraction(23, 25)
    assert jaccard(tokens(words(24)), tokens(words(23) + " zz")) == Fraction(23, 25)
    assert jaccard(frozenset(), frozenset()) == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "over"),
    [
        (words(24), words(23) + " zz", True),  # one word exchanged: 23 of 25
        (words(23), words(22) + " zz", False),  # 22 of 24
        (words(12), words(11), False),  # 11 of 12
        (words(13), words(12), True),  # 12 of 13
        (words(11), words(11).upper(), True),
        (words(5), "  ".join(reversed(words(5).split())), True),
    ],
)
def test_border_of_the_measure(ours: str, theirs: str, over: bool) -> None:
    assert bool(compare(ours, (neighbour(theirs),), THRESHOLD, POLICY.values)) is over


@pytest.mark.parametrize(
    ("ours", "theirs", "changed"),
    [
        ("The limit is 100 requests", "The limit is 200 requests", ("100", "200")),
        ("Use version v1.2.3 here", "Use version v1.2.4 here", ("v1.2.3", "v1.2.4")),
        ("It is not safe", "It is safe", ("not",)),
        ("It doesn't retry", "It does retry", ("doesn't",)),
        ("Cut in March this year", "Cut in June this year", ("March", "June")),
        ("Set max_retries for it", "Set min_retries for it", ("max_retries", "min_retries")),
        ("We store it in Redis now", "We store it in Postgres now", ("Redis", "Postgres")),
        ("Redis keeps the sessions", "Postgres keeps the sessions", ("Redis", "Postgres")),
        ("The flag is enabled here", "The flag is disabled here", ("enabled", "disabled")),
        ("It moved from 5 to 9", "It moved from 9 to 5", ("5", "9")),
        ("Alpha calls Beta", "Beta calls Alpha", ("Alpha", "Beta")),
        ("Waits <5 s", "Waits >5 s", ("<5", ">5")),
        ("It has two replicas", "It has three replicas", ("two", "three")),
        ("The port is 5432.", "The port is 5432", ()),
        ("See `docs/a.md` first", "See docs/a.md first", ()),
        ("Redis keeps sessions", "redis keeps sessions", ()),
        ("The job copies files", "A job copies files", ()),
        ("It runs quickly today here", "It runs fast today here", ()),
        ("the the cat sat", "the cat sat", ()),
    ],
)
def test_changed_values(ours: str, theirs: str, changed: tuple[str, ...]) -> None:
    assert changed_values(ours, theirs, POLICY.values) == changed


@given(st.text(), st.text())
def test_changed_values_sees_the_same_from_both_sides(ours: str, theirs: str) -> None:
    left = changed_values(ours, theirs, POLICY.values)
    right = changed_values(theirs, ours, POLICY.values)
    assert {word.casefold() for word in left} == {word.casefold() for word in right}
    assert changed_values(ours, ours, POLICY.values) == ()


@pytest.mark.parametrize(
    ("items", "verdict", "code", "nearest"),
    [
        ((), Verdict.PASS, "unique", None),
        ((neighbour("something else entirely"),), Verdict.PASS, "unique", None),
        ((neighbour(LONG),), Verdict.FAIL, "duplicate", "mem_1"),
        ((neighbour(LONG, ItemKind.PENDING, "rev_1"),), Verdict.DOUBT, "already_pending", "rev_1"),
        ((neighbour(LONG.replace("one line", "two line")),), Verdict.DOUBT, "conflict", "mem_1"),
        (
            (neighbour(LONG.replace("one", "two")), neighbour(LONG, ItemKind.PENDING, "rev_1")),
            Verdict.DOUBT,
            "already_pending",
            "rev_1",
        ),
        (
            (neighbour(LONG, ItemKind.PENDING, "rev_1"), neighbour(LONG, ItemKind.MEMORY, "mem_2")),
            Verdict.FAIL,
            "duplicate",
            "mem_2",
        ),
    ],
)
def test_judge(items: tuple[Neighbour, ...], verdict: Verdict, code: str, nearest: str | None) -> None:
    for order in (items, items[::-1]):
        finding, comparison = judge(LONG, Neighbours(items=order), THRESHOLD, POLICY.values)
        assert (finding.verdict, finding.code) == (verdict, code)
        assert (comparison.neighbour.id if comparison else None) == nearest


def test_an_index_that_could_not_be_asked_is_unknown() -> None:
    finding, comparison = judge(LONG, DedupUnavailable(detail="rebuilding"), THRESHOLD, POLICY.values)
    assert finding.verdict is Verdict.UNKNOWN
    assert comparison is None


def test_a_conflict_shows_the_changed_words() -> None:
    other = LONG.replace("nightly", "weekly")
    finding, _ = judge(
        LONG + " 7", Neighbours(items=(neighbour(other + " 9"),)), Fraction(4, 5), POLICY.values
    )
    assert finding.facts["changed"] == ["7", "weekly", "9"]
