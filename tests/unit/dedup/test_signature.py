"""The keys find every partner over the threshold. Arithmetic is checked against brute-force Jaccard."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.dedup.compare import jaccard
from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.language.words import tokens

THRESHOLDS = [Fraction(51, 100), Fraction(4, 5), Fraction(23, 25), Fraction(19, 20), Fraction(1)]
BORDERS = [*range(1, 27), *range(45, 52), 100]


def _keys(words: frozenset[str], threshold: Fraction, scope: str = "fact") -> SignatureKeys:
    return signature_keys(words, scope, threshold)


def _meet(left: SignatureKeys, right: SignatureKeys) -> bool:
    return bool(set(left.stored) & set(right.all_probes())) and bool(
        set(right.stored) & set(left.all_probes())
    )


def _chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  (a fixed sequence, not a secret)


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=str)
@pytest.mark.parametrize("size", BORDERS)
def test_every_pair_over_the_threshold_shares_a_key(size: int, threshold: Fraction) -> None:
    """For every number of removed words, with as many added as the threshold allows, and with none."""
    chance = _chance(size)
    compared = 0
    for removed in range(size):
        most = max(
            (a for a in range(size + 1) if Fraction(size - removed, size + a) >= threshold), default=None
        )
        for added in {0, most}:
            if most is None or added is None:
                continue
            names = [f"{chance.getrandbits(40):x}" for _ in range(size + added)]
            one, other = frozenset(names[:size]), frozenset(names[removed:])
            assert jaccard(one, other) >= threshold
            assert _meet(_keys(one, threshold), _keys(other, threshold)), (removed, added)
            compared += 1
    assert compared


@pytest.mark.parametrize(
    ("size", "replaced", "reaches"),
    [(24, 1, True), (23, 1, False), (48, 2, True), (47, 2, False), (4096, 170, True), (4096, 171, False)],
)
def test_replaced_words_at_the_very_threshold(size: int, replaced: int, *, reaches: bool) -> None:
    threshold = Fraction(23, 25)
    words = [f"w{number}" for number in range(size + replaced)]
    one, other = frozenset(words[:size]), frozenset(words[replaced:])
    assert (jaccard(one, other) >= threshold) is reaches
    assert _meet(_keys(one, threshold), _keys(other, threshold)) or not reaches


@given(
    st.frozensets(st.text("abcdeäß", min_size=1, max_size=3), max_size=40),
    st.frozensets(st.text("abcdeäß", min_size=1, max_size=3), max_size=3),
    st.data(),
    st.sampled_from(THRESHOLDS),
)
def test_any_words(
    words: frozenset[str], added: frozenset[str], data: st.DataObject, threshold: Fraction
) -> None:
    removed = data.draw(st.frozensets(st.sampled_from(sorted(words)), max_size=3)) if words else frozenset()
    other = (words - removed) | added
    if jaccard(words, other) >= threshold:
        assert _meet(_keys(words, threshold), _keys(other, threshold))


def test_claims_of_another_type_never_meet() -> None:
    words = tokens("the mail worker retries five times")
    fact, decision = _keys(words, THRESHOLDS[2], "fact"), _keys(words, THRESHOLDS[2], "decision")
    assert not set(fact.all_probes()) & set(decision.stored)


def test_keys_for_two_thresholds_never_meet() -> None:
    words = tokens("the mail worker retries five times")
    one, other = _keys(words, THRESHOLDS[2]), _keys(words, THRESHOLDS[3])
    assert not set(one.all_probes()) & set(other.stored)


def test_unlike_claims_share_no_key_and_keys_are_few() -> None:
    chance = _chance(7)
    stored: set[int] = set()
    for _ in range(300):
        keys = _keys(
            frozenset(f"{chance.getrandbits(40):x}" for _ in range(chance.randint(1, 40))), Fraction(23, 25)
        )
        assert not stored & set(keys.all_probes())
        assert len(keys.stored) <= 5
        assert len(keys.all_probes()) <= 16
        assert all(-(2**63) <= key < 2**63 for key in (*keys.stored, *keys.all_probes()))
        stored.update(keys.stored)


def test_keys_do_not_depend_on_the_process() -> None:
    assert _keys(frozenset({"alpha", "beta"}), Fraction(23, 25)).stored == (KEY_OF_ALPHA_BETA,)


# A changed value means that every index must be rebuilt: raise `signature.VERSION`.
KEY_OF_ALPHA_BETA = 7061474625481270788


@pytest.mark.parametrize("threshold", [Fraction(1, 2), Fraction(0), Fraction(101, 100)], ids=str)
def test_a_threshold_that_cannot_be_is_refused(threshold: Fraction) -> None:
    with pytest.raises(ValueError, match=r"over 0\.5 and at most 1"):
        _keys(frozenset({"word"}), threshold)
