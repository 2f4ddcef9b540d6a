"""What is shown as similar is exact, and two similar texts nearly always meet."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import zlib
from fractions import Fraction

import numpy
import pytest
from datasketch import MinHash
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.dedup.compare import jaccard
from vouchgate.ingest.dedup.contradicted import NEAR
from vouchgate.ingest.dedup.similar import (
    BANDS,
    MAX_SHOWN,
    ROWS,
    _permutations,
    _sketch,
    band_keys,
    nearest,
)
from vouchgate.ingest.language.words import tokens

THRESHOLD = Fraction(23, 25)
WORDS = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"]),
    max_size=9,
)
SENTENCE = "The invoice service retries a failed upload"


@given(
    own=WORDS,
    others=st.lists(WORDS, max_size=12),
    threshold=st.sampled_from((Fraction(23, 25), Fraction(51, 100), Fraction(1))),
    seed=st.integers(0, 99),
)
def test_shown_are_the_nearest_below_the_threshold_with_their_true_similarity(
    own: list[str], others: list[list[str]], threshold: Fraction, seed: int
) -> None:
    texts = {f"mem_{number}": " ".join(words) for number, words in enumerate(others)}
    candidates = list(texts.items())
    random.Random(seed).shuffle(candidates)  # noqa: S311
    true = {key: jaccard(tokens(" ".join(own)), tokens(text)) for key, text in texts.items()}
    similar = [key for key in texts if NEAR <= true[key] < threshold]
    expected = sorted(similar, key=lambda key: (-true[key], key))[:MAX_SHOWN]
    found = nearest(" ".join(own), candidates, threshold)
    assert [one.memory_id for one in found] == expected
    for one in found:
        assert one.content == texts[one.memory_id]
        assert one.similarity == math.floor(true[one.memory_id] * 10_000) / 10_000
        assert 0.5 <= one.similarity < threshold


def test_the_similarity_shown_is_below_the_threshold_in_long_texts_too() -> None:
    words = [f"w{number}" for number in range(4348)]  # 4000 of 4348 words: 0.91996
    (found,) = nearest(" ".join(words), [("mem_1", " ".join(words[:4000]))], THRESHOLD)
    assert found.similarity == 0.9199


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_any_text_has_a_key_a_band_or_no_word(text: str) -> None:
    keys = band_keys(text, "fact")
    assert len(set(keys)) == len(keys) == (BANDS if tokens(text) else 0)
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_keys_depend_on_the_set_of_words_and_the_type_alone() -> None:
    keys = band_keys(SENTENCE, "fact")
    assert band_keys("UPLOAD failed  a retries\nservice invoice the the", "fact") == keys
    assert not set(band_keys(SENTENCE, "decision")) & set(keys)


def test_keys_are_the_same_in_every_process_and_release() -> None:
    """Another version of anything below must not change them: rows on disk have them. When they must change,
    so must ingest.dedup.similar.VERSION."""
    program = f"from vouchgate.ingest.dedup.similar import band_keys; print(*band_keys({SENTENCE!r}, 'fact'))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    keys = tuple(int(key) for key in printed.stdout.split())
    assert keys == band_keys(SENTENCE, "fact")
    assert keys == (
        7750938664185400034,
        -4115828982569620664,
        8683814580339079370,
        8873768132158065424,
        752190727832332250,
        -1903027487443398949,
        5917671459692357099,
        -4385950928893899361,
        -7135889529956731343,
        257408164063254152,
    )


def test_small_words_do_not_make_texts_meet() -> None:
    left = band_keys("the queue of the owner is not in the database", "fact")
    right = band_keys("the answer of the service is not in the protocol", "fact")
    assert not set(left) & set(right)
    assert len(band_keys("it is so", "fact")) == BANDS


def _edited(words: list[str], similarity: Fraction, rng: random.Random) -> list[str]:
    """The words with as many exchanged for new ones as give this similarity: (n - x) of (n + x)."""
    exchanged = max(1, round(len(words) * (1 - similarity) / (1 + similarity)))
    kept = rng.sample(words, len(words) - exchanged)
    return kept + [f"new{rng.random()}" for _ in range(exchanged)]


@pytest.mark.parametrize(("similarity", "least"), [("0.5", 0.89), ("0.6", 0.96), ("0.7", 0.98), ("0.8", 1)])
def test_similar_texts_meet_as_often_as_the_bands_promise(similarity: str, least: float) -> None:
    rng = random.Random(17)  # noqa: S311
    met = 0
    for _ in range(500):
        words = [f"word{rng.randrange(10**6)}" for _ in range(rng.randint(8, 40))]
        while True:
            other = _edited(words, Fraction(similarity), rng)
            if jaccard(frozenset(words), frozenset(other)) >= Fraction(similarity):
                break
            words.append(f"word{rng.randrange(10**6)}")
        met += bool(set(band_keys(" ".join(words), "fact")) & set(band_keys(" ".join(other), "fact")))
    assert met >= 500 * least


@given(
    st.sets(st.text(st.characters(exclude_categories=()), min_size=4, max_size=12), min_size=1, max_size=40)
)
def test_a_sketch_is_the_one_that_datasketch_makes(words: set[str]) -> None:
    reference = MinHash(
        permutations=numpy.array(_permutations()),
        num_perm=BANDS * ROWS,
        hashfunc=zlib.crc32,
        scheme="affine32",
    )
    reference.update_batch([word.encode("utf-8", "surrogatepass") for word in words])
    assert numpy.frombuffer(_sketch(words), "<u4").tolist() == reference.hashvalues.tolist()


def test_nothing_is_imported_for_keys_before_the_first_one_and_little_then() -> None:
    """Commands that need no keys do not wait for numpy, and nobody waits for scipy, which datasketch brings along."""
    program = (
        "import sys, vouchgate.gate.gate, vouchgate.cli; print('numpy' in sys.modules);"
        "from vouchgate.ingest.dedup.similar import band_keys; band_keys('one two three', 'fact');"
        "print('numpy' in sys.modules, 'scipy' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert printed.stdout == "False\nTrue False\n"
