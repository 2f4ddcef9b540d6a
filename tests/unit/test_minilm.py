"""MiniLM in numpy against what PyTorch makes of the same files (sentence-transformers 6.2, torch 2.13)."""

from __future__ import annotations

import numpy as np
import pytest

from vouchgate.embedding.minilm import MiniLM

# The first four of 384 numbers.
REFERENCE = {
    "The billing service writes to PostgreSQL 15.": (-0.06801, 0.01649, -0.05303, -0.05378),
    "Deploys on Friday are forbidden.": (0.01219, 0.02415, 0.00693, -0.09778),
    "x": (-0.09791, -0.064, -0.02318, -0.0462),
    "Ünïcode — naïve café 東京 “quotes” don't v1.2.3 foo_bar(a=1)": (0.00881, -0.01507, 0.08032, -0.02341),
}


@pytest.fixture(scope="module")
def model() -> MiniLM:
    """The model, loaded once."""
    return MiniLM()


@pytest.mark.parametrize("text", REFERENCE)
def test_numbers_are_those_of_the_original(model: MiniLM, text: str) -> None:
    (vector,) = model([text])
    assert vector[:4] == pytest.approx(REFERENCE[text], abs=1e-5)
    assert len(vector) == 384
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-6)


def test_a_vector_does_not_depend_on_the_others(model: MiniLM) -> None:
    alone, beside = model(["Short."]), model(["Short.", "A much longer sentence about something else."])
    assert alone[0] == beside[0]


def test_any_text_has_a_vector(model: MiniLM) -> None:
    for text in ("", " ", "\x00", "word " * 2000, "\u202e\u200b"):
        assert np.isfinite(model([text])).all()
