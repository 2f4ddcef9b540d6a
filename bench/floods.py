"""Floods: what an agent stores that logs in templates. The same sentence again and again, with other values.

Only what the gate would have stored is in a flood: no two of its claims reach the threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from random import Random

from bench.claims import Generator, made_name, made_word
from vouchgate.ingest.dedup.compare import jaccard
from vouchgate.ingest.language.words import tokens

Slot = Callable[[Random], str]


def _number(random: Random) -> str:
    return str(random.randrange(10**7))


def _user(random: Random) -> str:
    return f"user-{random.randrange(1000)}"


def _page(random: Random) -> str:
    return f"/pages/{random.randrange(20_000)}"


def _time(random: Random) -> str:
    clock = f"{random.randrange(24):02}:{random.randrange(60):02}:{random.randrange(60):02}"
    return f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02}T{clock}"


def _plain(random: Random) -> str:
    return made_word(random, 3, 4)


def _one_or_two(random: Random) -> str:
    return " ".join(made_name(random) for _ in range(random.randint(1, 2)))


@dataclass(frozen=True)
class Flood:
    """A template of `words` distinct words, slots included, each slot counted as one word."""

    name: str
    words: int
    slots: tuple[Slot, ...]


FLOODS = (
    Flood("1 number, 16 words", 16, (_number,)),
    Flood("2 names, 20 words", 20, (made_name,) * 2),
    Flood("2 slots of 1-2 words, 21 words", 21, (_one_or_two,) * 2),
    Flood("2 numbers, 30 words", 30, (_number,) * 2),
    Flood("2 names, 30 words", 30, (made_name,) * 2),
    Flood("2 plain words, 30 words", 30, (_plain,) * 2),
    Flood("3 names, 30 words", 30, (made_name,) * 3),
    Flood("user, page, time, 30 words", 30, (_user, _page, _time)),
    Flood("2 slots of 1-2 words, 31 words", 31, (_one_or_two,) * 2),
    Flood("4 names, 40 words", 40, (made_name,) * 4),
    Flood("name, number, time, 50 words", 50, (made_name, _number, _time)),
)


class FloodGenerator:
    """Claims of one template."""

    def __init__(self, flood: Flood, seed: int) -> None:
        self.flood = flood
        self.random = Random(f"{flood.name} {seed}")
        fixed = flood.words - len(flood.slots)
        self._frame = Generator(f"{flood.name} {seed}").claim_of(fixed).split()
        gap = len(self._frame) // (len(flood.slots) + 1)
        self._places = [gap * (number + 1) + number for number in range(len(flood.slots))]

    def claim(self) -> str:
        """The template with random values in its slots."""
        words = list(self._frame)
        for place, slot in zip(self._places, self.flood.slots, strict=True):
            words.insert(place, slot(self.random))
        return " ".join(words)

    def claims(self, count: int, threshold: Fraction) -> list[str]:
        """`count` claims of which no two reach the threshold."""
        kept = _Distinct(tokens(" ".join(self._frame)), threshold)
        found: list[str] = []
        tried = 0
        while len(found) < count:
            if (tried := tried + 1) > 4 * count:
                raise RuntimeError(f"{self.flood.name} has too few values for {count} claims")
            text = self.claim()
            if kept.add(tokens(text)):
                found.append(text)
        return found

    def changed(self, kind: str, text: str) -> str:
        """A stored claim with a change: `exact`, `deletion`, `insertion` of a word, or `value` of one slot."""
        words = text.split()
        match kind:
            case "deletion":
                del words[-1]  # never a slot's
            case "insertion":
                words.append("again")
            case "value":
                place = self.random.choice(self._places)
                words[place] = self.flood.slots[0](self.random).split()[0]
            case "exact":
                pass
            case _:
                raise ValueError(f"no change is called {kind}")
        return " ".join(words)


class _Distinct:
    """Lets in only what differs enough from all before it. Sets near one another share all but a few of the
    words by which each differs from the frame, so each is filed under every such subset. The search under
    test is not asked, or its misses would not be seen."""

    def __init__(self, frame: frozenset[str], threshold: Fraction) -> None:
        self._frame, self._threshold = frame, threshold
        self._sets: list[frozenset[str]] = []
        self._filed: dict[tuple[int, int], list[int]] = {}

    def add(self, words: frozenset[str]) -> bool:
        """Whether it was let in."""
        difference = [hash(word) for word in words ^ self._frame]
        most = int(len(words) * (1 - self._threshold) / self._threshold)
        total = sum(difference)
        subsets = [
            (total - sum(left_out), count)
            for count in range(min(most, len(difference)) + 1)
            for left_out in combinations(difference, count)
        ]
        for subset, count in subsets:
            for others in range(most - count + 1):
                for number in self._filed.get((subset, others), ()):
                    if jaccard(words, self._sets[number]) >= self._threshold:
                        return False
        for key in subsets:
            self._filed.setdefault(key, []).append(len(self._sets))
        self._sets.append(words)
        return True
