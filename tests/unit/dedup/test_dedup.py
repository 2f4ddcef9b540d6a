"""Word Jaccard at the threshold, and which differences make a conflict of a duplicate."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.running.hangs import given_up_after
from tests.unit.dedup.dedup_claims import Word, claim, contradictions, rewordings
from tests.unit.dedup.dedup_claims import text as claim_text
from tests.unit.dedup.dedup_pairs import BASES, EDITS, PAIRS, Edit, Pair
from vouchgate.ingest.checks.dedup import judge
from vouchgate.ingest.claims.claim import Verdict
from vouchgate.ingest.claims.likeness import DedupUnavailable, ItemKind, Neighbour, Neighbours
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.compare import Allowance, Comparisons, changed_values, compare, jaccard
from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.language.words import tokens, word_list

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
        ("The job copies files", "The job moves files", ("copies", "moves")),
        ("The job copies files", "The job copies old files", ("old",)),
        ("Rows P, Q and R", "Rows R, Q and P", ()),
        ("It no longer works", "It works", ("no", "longer")),
        ("retries 5 times, waits 5 s", "retries 5 times, waits", ("5", "s")),
        (words(20), words(20, "v"), tuple(words(8).split() + words(8, "v").split())),
        ("the the cat sat", "the cat sat", ()),
    ],
)
def test_changed_values(ours: str, theirs: str, changed: tuple[str, ...]) -> None:
    assert changed_values(ours, theirs, POLICY.values) == changed


def verdict_of(claim: str, other: str) -> str:
    """duplicate or conflict; by `judge` when the pair is over the threshold, as it is for the gate."""
    finding, _ = judge(claim, Neighbours(items=(neighbour(other),)), THRESHOLD, POLICY.values)
    if finding.code != "unique":
        return finding.code
    return "conflict" if changed_values(claim, other, POLICY.values) else "duplicate"


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: f"{edit.kind}: {edit.old} > {edit.new}")
def test_every_edit_by_hand_gets_its_verdict(edit: Edit) -> None:
    base = BASES[edit.base]
    assert edit.old in base
    edited = base.replace(edit.old, edit.new, 1)
    assert edited != base
    assert verdict_of(base, edited) == verdict_of(edited, base) == edit.verdict


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.kind}: {pair.claim}")
def test_every_pair_by_hand_gets_its_verdict(pair: Pair) -> None:
    assert verdict_of(pair.claim, pair.other) == verdict_of(pair.other, pair.claim) == pair.verdict


@pytest.mark.parametrize("seed", range(2))
def test_no_single_contradiction_is_a_duplicate(seed: int) -> None:
    """Of the harmless edits, at most 1 in 500 may come out as a conflict: it is only one item more to review."""
    rng = random.Random(seed)  # noqa: S311 (repeatable on purpose)
    harmless = conflicts = 0
    for _ in range(80):
        words_ = claim(rng, rng.randrange(6, 58))
        for kind, verdict, one, other in (*contradictions(rng, words_), *rewordings(rng, words_)):
            got = verdict_of(one, other)
            if verdict == "conflict":
                assert got == "conflict", (kind, one, other)
            else:
                harmless += 1
                conflicts += got == "conflict"
    assert conflicts * 500 <= harmless


ANY_TEXT = st.text(st.characters(), max_size=120)
CLAIMS = st.builds(
    lambda seed, length: claim(random.Random(seed), length),  # noqa: S311 (repeatable on purpose)
    st.integers(0, 10**6),
    st.integers(6, 58),
)


@given(ANY_TEXT, ANY_TEXT)
def test_changed_values_sees_the_same_from_both_sides(ours: str, theirs: str) -> None:
    left = changed_values(ours, theirs, POLICY.values)
    right = changed_values(theirs, ours, POLICY.values)
    assert bool(left) is bool(right)
    assert changed_values(ours, ours, POLICY.values) == ()
    assert all(left) and len(left) <= 16


# Words that are read in another way beside other words, or as parts, or as a phrase.
AWKWARD = [
    *(
        "5ms",
        "ms",
        "MS",
        "can't",
        "not",
        "to",
        "To",
        "well-known",
        "known",
        "Known",
        "in",
        "order",
        "IT",
        "it",
    ),
    *("and,", "or", "Kafka;", "retry()", "...", "caches", "Cache", "v1.2", "does", "doesn't.", "2024", "“q”"),
]


@given(st.lists(st.sampled_from(AWKWARD), max_size=9), st.data())
def test_what_was_compared_before_changes_no_answer(chosen: list[str], data: st.DataObject) -> None:
    claim_, known = " ".join(chosen), Comparisons(" ".join(chosen), THRESHOLD, POLICY.values)
    more = st.lists(st.sampled_from([*AWKWARD, *chosen]), max_size=9)
    for other in data.draw(st.lists(st.one_of(more, st.permutations(chosen)), min_size=2, max_size=5)):
        text = " ".join(other)
        for _ in range(2):
            assert known.near(text) == jaccard(tokens(claim_), tokens(text))
            assert known.changed(text) == changed_values(claim_, text, POLICY.values)


def test_an_allowance_bounds_texts_and_seconds() -> None:
    known = Comparisons("one two three", THRESHOLD, POLICY.values)
    texts = Allowance(2, 60.0)
    assert [known.compare(f"one two {n}", texts) for n in range(4)] == [True, True, False, False]
    assert known.compare("one two 1", texts)  # known
    assert known.compare("one two three", texts)  # the very same
    assert known.near("one two four", texts) is None
    assert known.near("one two four") == Fraction(2, 4)
    assert known.near("one two four", texts) == Fraction(2, 4)
    clock = iter([0.0, 0.25, 1.0, 1.5, 2.0])
    seconds = Allowance(100, 0.5, lambda: next(clock))
    assert known.near("one", seconds) == Fraction(1, 3)
    assert known.compare("one two 9", seconds)
    assert (seconds.used_up, seconds.compared) == (True, 1)
    assert not known.compare("one two 8", seconds)


SHUFFLED = [
    "in",
    "2024",
    "the",
    "team,",
    "and",
    "A",
    "B",
    "chose",
    "it.",
    "or",
    "5",
    "not",
    "monday",
    "if",
    "X",
]


@given(st.lists(st.sampled_from(SHUFFLED), max_size=9), st.data())
def test_any_order_is_judged_alike_from_both_sides(chosen: list[str], data: st.DataObject) -> None:
    ours, theirs = " ".join(chosen), " ".join(data.draw(st.permutations(chosen)))
    left = changed_values(ours, theirs, POLICY.values)
    assert bool(left) is bool(changed_values(theirs, ours, POLICY.values))


@given(ANY_TEXT)
def test_what_is_equal_after_normalisation_is_no_conflict(text: str) -> None:
    normalised = " ".join(word_list(text))
    if word_list(normalised) == word_list(text):
        assert changed_values(text, normalised, POLICY.values) == ()


@given(CLAIMS, st.data())
def test_case_and_punctuation_never_hide_or_make_a_difference(
    words_: list[Word], data: st.DataObject
) -> None:
    """Whatever two texts get, they get in any dress."""
    dress = st.sampled_from(["{}", "“{}”", "({})", "{},", "'{}'", "\u200b{}", "{}\u00a0"])
    whole = claim_text(words_)
    dropped = data.draw(st.integers(1, len(words_) - 1))
    other = claim_text(words_[:dropped] + words_[dropped + 1 :])
    dressed = " ".join(data.draw(dress).format(word) for word in other.swapcase().split())
    assert bool(changed_values(whole, other, POLICY.values)) is bool(
        changed_values(whole, dressed, POLICY.values)
    )


@given(CLAIMS, st.sampled_from(POLICY.values.negations), st.data())
def test_an_inserted_negation_is_never_a_duplicate(
    words_: list[Word], negation: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(words_)))
    whole, negated = claim_text(words_), claim_text([*words_[:at], ("negation", negation), *words_[at:]])
    assert verdict_of(whole, negated) == verdict_of(negated, whole) == "conflict"


@given(CLAIMS, st.data())
def test_a_changed_digit_is_never_a_duplicate(words_: list[Word], data: st.DataObject) -> None:
    whole = claim_text([*words_, ("number", "1047")])
    at = data.draw(st.sampled_from([i for i, character in enumerate(whole) if character.isdecimal()]))
    digit = data.draw(st.sampled_from([d for d in "0123456789²½" if d != whole[at]]))
    assert verdict_of(whole, whole[:at] + digit + whole[at + 1 :]) == "conflict"


@pytest.mark.parametrize("pair", POLICY.values.opposites, ids="-".join)
def test_no_opposite_is_a_duplicate(pair: tuple[str, str]) -> None:
    """Inflected as well: what the one ends in, the other does too."""
    for ending in ("", "s"):
        one, other = (f"The gate is {word}{ending} here" for word in pair)
        assert verdict_of(one, other) == "conflict"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a ", "b "),
        ("x y ", "y x "),
        ("in ", "in "),
        ("p and q ", "q and p "),
        ("p, q, ", "q, p, "),
        ("n't ", "not "),
        ("in order ", "in order "),
        ("ab-", "ab-"),
        (". ", "! "),
        ("which ", "that "),
        ("é² ", "é³ "),
        ("1%", "1 %"),
    ],
)
def test_time_is_linear_in_hostile_texts(one: str, other: str) -> None:
    """Texts four times as long as any that is taken: a quadratic way would take a minute for them."""
    size = 4 * 8192
    ours, theirs = (one * size)[:size], "x " + (other * size)[: size - 4] + " y"
    with given_up_after(1):
        changed_values(ours, theirs, POLICY.values)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"same": (("enable", "disable"),)}, "opposites that count as the same word"),
        ({"same": (("fully", "not"),)}, "a negation counts as another word"),
        ({"phrases": (("does not", "does"),)}, "hides a negation"),
        ({"phrases": (("does", "does not"),)}, "hides a negation"),
        ({"phrases": ((" ", "to"),)}, "a phrase must have a word"),
    ],
)
def test_lists_that_would_hide_a_value_are_refused(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ValueWords.model_validate(POLICY.values.model_dump() | values)


def test_a_value_is_never_small() -> None:
    """A policy that makes a value of a small word gets it: the lists of values come first."""
    one, other = "The job also copies files", "The job copies files"
    assert changed_values(one, other, POLICY.values) == ()
    stricter = ValueWords.model_validate(POLICY.values.model_dump() | {"negations": ("not", "also", "files")})
    assert changed_values(one, other, stricter) == ("also",)
    assert changed_values(other, other.replace("files", "file"), POLICY.values) == ()
    assert changed_values(other, other.replace("files", "file"), stricter) == ("files", "file")


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
    assert finding.facts["changed"] == ["nightly", "7", "weekly", "9"]
