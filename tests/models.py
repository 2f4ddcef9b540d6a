"""Models for `vector_model`: callables as somebody would plug in, small enough to reckon with by hand."""

from __future__ import annotations

import math
import time
from pathlib import Path

# Words that one of these models takes for the same.
MEANINGS = {"forbidden": "banned", "prohibited": "banned", "deploys": "releases", "deployments": "releases"}


class Bag:
    """One number for each letter and each word of a small list; words of one meaning count alike."""

    version = "1"

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> list[float]:
        vector = [0.01] * 64
        for word in text.lower().strip(".").split():
            meant = MEANINGS.get(word, word)
            vector[sum(ord(letter) * place for place, letter in enumerate(meant, 1)) % 64] += 1.0
        return vector


class NewerBag(Bag):
    """The same, after a new version."""

    version = "2"


class Moody(Bag):
    """Fails on some texts, and takes its time over others."""

    def _embed(self, text: str) -> list[float]:
        if "unreadable" in text:
            raise RuntimeError("the model cannot read this")
        if "slow" in text:
            time.sleep(1.0)
        if "odd" in text:
            return [math.nan] * 64
        return super()._embed(text)


def silent(texts: list[str]) -> list[list[float]]:
    """A model that answers with nothing."""
    return []


def flat(texts: list[str]) -> list[list[float]]:
    """A model whose vectors have no direction."""
    return [[0.0, 0.0] for _ in texts]


NOT_CALLABLE = 7


def policy_file(directory: Path, model: str, **more: float) -> Path:
    """A policy that compares by meaning with this model of `tests.models`."""
    lines = ['dedup_method = "vector"', f'vector_model = "{model}"']
    path = directory / "policy.toml"
    path.write_text("\n".join(lines + [f"{key} = {value}" for key, value in more.items()]))
    return path
