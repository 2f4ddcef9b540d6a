"""Two claims word by word: nothing lost, whole words, and long hostile texts in a time that stays small."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.compare import changed_values
from vouchgate.review.pages.wording import diff
from vouchgate.review.pages.wording.diff import DiffOp, changed_spans, changes, word_diff
from vouchgate.review.pages.wording.text import Pieces

POLICY = load_policy()


def read(old: str, new: str) -> str:
    """Both texts as one line: [-removed-] and {+added+}."""
    around = {DiffOp.SAME: "{}", DiffOp.REMOVED: "[-{}-]", DiffOp.ADDED: "{{+{}+}}"}
    return "".join(around[change.op].format(change.text) for change in changes(old, new))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", ""),
        ("a b", "a b", "a b"),
        ("", "a b", "{+a b+}"),
        ("a b", "", "[-a b-]"),
        ("Limit is 40 per user.", "Limit is 50 per user.", "Limit is [-40-]{+50+} per user."),
        ("Uses v1.2.3, not v1.2.", "Uses v1.2.4, not v1.2.", "Uses [-v1.2.3-]{+v1.2.4+}, not v1.2."),
        ("at 05:30 for 1,000 €", "at 06:30 for 1,500 €", "at [-05:30-]{+06:30+} for [-1,000-]{+1,500+} €"),
        ("below 5%", "below 7%", "below [-5%-]{+7%+}"),
        ("it is not cached", "it is cached", "it is [-not -]cached"),
        ("it is cached", "it isn't cached", "it [-is-]{+isn't+} cached"),
        (
            "see https://a.example/x?y=1 now",
            "see https://a.example/x?y=2 now",
            "see [-https://a.example/x?y=1-]{+https://a.example/x?y=2+} now",
        ),
        ("call f(40)!", "call f(50)!", "call f([-40-]{+50+})!"),
        (
            "the gate calls the store",
            "the store calls the gate",
            "the [-gate-]{+store+} calls the [-store-]{+gate+}",
        ),
        ("設定は四十です", "設定は五十です", "設定は[-四-]{+五+}十です"),
        ("x  y", "x y", "x[-  -]{+ +}y"),
        ("a\nb c", "a\nb d", "a\nb [-c-]{+d+}"),
        ("cafe\u0301 au lait", "cafe\u0300 au lait", "[-cafe\u0301-]{+cafe\u0300+} au lait"),
        # Words that both share by chance do not tear a sentence apart; values between two others stay.
        (
            "the limit is 40 per client key",
            "the quota was 50 a customer key",
            "the [-limit is 40 per client-]{+quota was 50 a customer+} key",
        ),
        (
            "we moved the old queue and then wrote the log",
            "they sent our mail and now ask the log",
            "[-we moved the old queue and then wrote-]{+they sent our mail and now ask+} the log",
        ),
        (
            "old rule one two left side",
            "new text one two right part",
            "[-old rule-]{+new text+} one two [-left side-]{+right part+}",
        ),
        ("retry 3 times after 5 s", "retry 4 times after 6 s", "retry [-3-]{+4+} times after [-5-]{+6+} s"),
    ],
)
def test_a_diff_reads_well(old: str, new: str, expected: str) -> None:
    assert read(old, new) == expected


def test_changed_values_are_marked_in_both_texts() -> None:
    old = "Retries: 40 per user (v1.2), after 5ms."
    new = "Retries: 50 per client (v1.3), after 6ms."
    values = changed_values(new, old, POLICY.values)
    found = word_diff(old, new, values)
    assert [piece.text for piece in found.old if "changed" in piece.marks] == ["40", "user", "v1.2", "5ms"]
    assert [piece.text for piece in found.new if "changed" in piece.marks] == ["50", "client", "v1.3", "6ms"]
    assert {frozenset(piece.marks) for piece in found.merged} == {
        frozenset(),
        frozenset({"removed", "changed"}),
        frozenset({"added", "changed"}),
    }
    assert [new[start:end] for start, end in changed_spans(old, new, values)] == [
        "50",
        "client",
        "v1.3",
        "6ms",
    ]


def test_where_no_value_can_be_told_all_that_was_added_counts_as_changed() -> None:
    old, new = "one two three", "one four three"
    assert [new[start:end] for start, end in changed_spans(old, new, ("elsewhere",))] == ["four"]
    assert list(changed_spans(old, old, ("two",))) == []


def test_equal_texts_are_the_same() -> None:
    found = word_diff("a b", "a b")
    assert found.old == found.new == found.merged


# --- any two texts

WORDS = st.lists(
    st.sampled_from(["a", "b", "c", "40", "50", "x.y", "!", "(", "\n", "  ", "é", "定", "\u0301", "😀"])
)
ANY = st.text(max_size=60) | WORDS.map(" ".join) | WORDS.map("".join) | st.text(st.characters(), max_size=30)


def text(found: Pieces) -> str:
    return "".join(piece.text for piece in found if "unseen" not in piece.marks)


@given(ANY, ANY)
def test_nothing_is_lost_or_made_up(old: str, new: str) -> None:
    found = changes(old, new)
    assert "".join(change.text for change in found if change.op is not DiffOp.ADDED) == old
    assert "".join(change.text for change in found if change.op is not DiffOp.REMOVED) == new
    assert all(change.text for change in found)
    assert all(one.op is not other.op for one, other in pairwise(found))
    assert [change for change in changes(old, old) if change.op is not DiffOp.SAME] == []


@given(ANY, ANY, st.lists(ANY, max_size=3))
def test_any_texts_can_be_shown(old: str, new: str, values: list[str]) -> None:
    found = word_diff(old, new, values)
    assert all("added" not in piece.marks for piece in found.old)
    assert all("removed" not in piece.marks for piece in found.new)
    for start, end in changed_spans(old, new, values):
        assert new[start:end].strip()


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_as_many_words_are_kept_as_can_be(old: list[str], new: list[str]) -> None:
    # By the usual table; what is taken away to read better is not the matter of the function under test.
    table = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, one in enumerate(old):
        for j, other in enumerate(new):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    pairs = diff._common(old, new)
    assert len(pairs) == table[-1][-1]
    assert all(old[i] == new[j] for i, j in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))


# --- long texts, at the largest size of a claim: a table of words by words would take minutes for some

LETTERS = random.Random(5)  # noqa: S311  (the same texts every time)


def drawn(letters: str) -> str:
    return "".join(LETTERS.choice(letters) for _ in range(8192))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (drawn("ab "), drawn("ab ")),
        (drawn("!?.,;:"), drawn("!?.,;:")),
        ("! " * 4096, "! " * 4095 + "?"),
        (" ".join(map(str, range(1500))), " ".join(map(str, range(1500, 0, -1)))),
        ("x" * 8192, "y" * 8192),
        ("a" + "." * 8191, "a." * 4096),
        (drawn("四五六七八"), drawn("四五六七八")),
        ("a-" * 4096, "-a" * 4096),
    ],
    ids=["letters", "signs", "shifted", "backwards", "no space", "dots", "ideographs", "hyphens"],
)
def test_texts_of_the_largest_size_are_compared_whole(old: str, new: str) -> None:
    found = changes(old, new)
    assert "".join(change.text for change in found if change.op is not DiffOp.ADDED) == old
    assert "".join(change.text for change in found if change.op is not DiffOp.REMOVED) == new


def test_longer_texts_are_compared_at_their_ends_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MOST_PAIRS", 8)
    assert read("one two x three", "one 2 x three") == "one [-two-]{+2+} x three"
    assert read("1 a b c d 9", "1 e b f d 9") == "1 [-a b c-]{+e b f+} d 9"
