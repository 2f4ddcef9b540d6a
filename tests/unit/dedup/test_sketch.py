"""Sketches rule nothing out that is near."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.claims import policy
from vouchgate.ingest.dedup import sketch as sketches
from vouchgate.ingest.dedup.compare import Comparisons, jaccard
from vouchgate.ingest.dedup.sketch import Sketch, remembered, sketch, surely_below
from vouchgate.ingest.language.words import tokens

_THRESHOLD = Fraction(92, 100)
_WORDS = [f"word{number}" for number in range(400)]


@given(
    st.sets(st.sampled_from(_WORDS), min_size=1), st.sets(st.sampled_from(_WORDS), min_size=1), st.booleans()
)
def test_what_is_ruled_out_is_below(one: set[str], other: set[str], near: bool) -> None:
    if near:
        other = (one | set(list(other)[:2])) - set(list(one)[:1]) or one
    left, right = frozenset(one), frozenset(other)
    ruled_out = surely_below(_THRESHOLD, sketch("", left), sketch("", right))
    assert not (ruled_out and jaccard(left, right) >= _THRESHOLD)


def test_bits_that_words_share_never_rule_out() -> None:
    assert not surely_below(_THRESHOLD, Sketch(0b1, 300), Sketch(0b1, 310))
    assert surely_below(_THRESHOLD, Sketch((1 << 40) - 1, 40), Sketch(((1 << 40) - 1) << 10, 40))


def test_a_long_text_is_remembered_and_ruled_out_unread() -> None:
    claim, far, near = (" ".join(_WORDS[start : start + 120]) for start in (0, 60, 1))
    comparisons = Comparisons(claim, _THRESHOLD, policy().values)
    assert remembered(far) is None
    assert not comparisons.surely_below(far)
    assert comparisons.near(far) == Fraction(60, 180)
    assert comparisons.near(near) == Fraction(119, 121)
    again = Comparisons(claim, _THRESHOLD, policy().values)
    assert again.surely_below(far)
    assert not again.surely_below(near)


def test_so_many_are_remembered() -> None:
    kept = sketches._KEPT
    text = "x" * 500
    for number in range(kept + 2):
        sketch(f"{text}{number}", tokens("one"))
    assert len(sketches._known) <= kept
