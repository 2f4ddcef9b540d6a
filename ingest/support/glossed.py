"""What a source of another language than English does to the statements of a claim in it (ADR-0070).

Nothing was learned from rows here, so little is told: a sentence of the same words states a statement; one that differs
in a negation, in what may or must be, in how many or in a number alone refutes it. Of all else nobody knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from vouchgate.ingest.claims.source import Held, Stance
from vouchgate.ingest.contradictions.glossed import excluding, glossed
from vouchgate.ingest.language.words import split_words
from vouchgate.ingest.support.prepared import READ_BY_GLOSS, PreparedSource
from vouchgate.ingest.support.scope import Said

_HALF = 0.5  # of the words of a statement, from which on a sentence is near it
_MOST = 1_000_000  # sentences that have a word of the claim, counted for each word: a tenth of a second


def stances_in(said: Said, ready: PreparedSource) -> Iterator[Held]:
    """The stance of a source to every statement of a claim: laid over the sentence that has most of its words. Linear
    in both: once the sentences that have any are too many, of the rest nobody knows."""
    source, language, places = ready.source, READ_BY_GLOSS[ready.language], ready.glossed
    having: dict[str, list[int]] = {}
    for number, words in enumerate(places):
        for key in {word.key for word in words}:
            having.setdefault(key, []).append(number)
    left = _MOST
    for one in said.statements:
        ours = glossed(said.text[one.start : one.end], language)
        near = [having.get(key, ()) for key in {word.key for word in ours}]
        left -= sum(map(len, near))
        stance, place, why = (Stance.SILENT, None, "") if left >= 0 else (Stance.UNKNOWN, None, "language")
        missing: tuple[str, ...] = ()
        shared = Counter(chain.from_iterable(near if left >= 0 else ()))
        best = max(shared, key=lambda number: (shared[number], -len(places[number])), default=None)
        if best is not None and shared[best] >= _HALF * len(near):
            place, theirs = source.spans[best], places[best]
            keys = {word.key for word in theirs}
            missing = tuple(word.shown for word in ours if word.key not in keys)
            if split_words(said.text[one.start : one.end]) == split_words(source.text[slice(*place)]):
                stance = Stance.STATES
            elif excluding(ours, theirs):
                stance, why = Stance.REFUTES, "gloss"
            else:
                stance, why = Stance.UNKNOWN, "language"
        score = float(stance is Stance.STATES)
        yield Held(
            start=one.start, end=one.end, stance=stance, score=score, missing=missing, place=place, why=why
        )
