"""What the dedup bench is fed with and judged by: if these were wrong, its figures would mean nothing."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from bench.claims import PLANTED, Generator
from bench.dedup_truth import Truth
from bench.floods import FLOODS, Flood, FloodGenerator
from tests.claims import alike
from vouchgate.ingest.dedup.compare import jaccard
from vouchgate.ingest.language.words import tokens

THRESHOLD = Fraction(23, 25)


def test_a_seed_always_gives_the_same_claims() -> None:
    assert Generator(1).claims(200) == Generator(1).claims(200)
    assert Generator(1).claims(200) != Generator(2).claims(200)


def test_lengths_are_mixed_as_real_claims_are() -> None:
    sizes = [len(set(text.lower().split())) for text in Generator(3).claims(5000)]
    short = sum(size < 12 for size in sizes) / len(sizes)
    long = sum(size >= 24 for size in sizes) / len(sizes)
    assert short == pytest.approx(0.56, abs=0.03)
    assert long == pytest.approx(0.10, abs=0.02)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_claim_is_near_the_one_it_was_made_of(kind: str) -> None:
    generator = Generator(4)
    texts = [generator.claim_of(40) for _ in range(50)]
    changed = [(text, generator.changed(kind, text)) for text in texts]
    pairs = [(text, other) for text, other in changed if other is not None]
    assert len(pairs) >= 10
    for text, other in pairs:
        assert jaccard(tokens(text), tokens(other)) >= Fraction(34, 40)  # three words exchanged: 37 of 43
        assert text != other or kind in ("exact", "reorder")  # a word may change places with its equal


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: str(flood.name))
def test_no_two_claims_of_a_flood_reach_the_threshold(flood: Flood) -> None:
    sets = [tokens(text) for text in FloodGenerator(flood, 1).claims(120, THRESHOLD)]
    assert not any(alike(one, other, THRESHOLD) for one, other in combinations(sets, 2))
    assert max(len(words) for words in sets) >= flood.words - 2  # the frame may hold a mark of its own


def test_a_flood_leaves_out_what_reaches_the_threshold() -> None:
    few_values = Flood("few values", 30, (lambda random: str(random.randrange(40)),) * 2)
    source = FloodGenerator(few_values, 1)
    sets = [tokens(text) for text in source.claims(10, THRESHOLD)]  # no value twice
    assert not any(alike(one, other, THRESHOLD) for one, other in combinations(sets, 2))
    with pytest.raises(RuntimeError, match="too few values"):
        source.claims(100, THRESHOLD)


@pytest.mark.parametrize("threshold", [THRESHOLD, Fraction(4, 5), Fraction(1)])
def test_brute_force_is_the_comparison_of_every_pair(threshold: Fraction) -> None:
    generator = Generator(5)
    texts = generator.claims(300)
    changed = [generator.changed(kind, text) for kind in PLANTED for text in texts[:30]]
    texts += [text for text in changed if text is not None]
    sets = [tokens(text) for text in texts]
    truth = Truth(texts, threshold)
    pairs = 0
    for text, own in zip(texts, sets, strict=True):
        expected = {number for number, other in enumerate(sets) if alike(own, other, threshold)}
        assert truth.matches(text) == expected
        pairs += len(expected) - 1
    assert pairs > 100
    for own, other in combinations(sets[:40], 2):
        assert alike(own, other, threshold) is (jaccard(own, other) >= threshold)
    assert truth.matches("words that are nowhere in it") == frozenset()
