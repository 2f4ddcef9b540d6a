"""What a source of another language than English does to the statements of a claim in it (ADR-0070).

Nothing was learned from rows here, so little is told: a sentence of the same words states a statement; one that differs
in a negation, in what may or must be, in how many or in a number alone refutes it. Of all else nobody knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from vouchgate.ingest.claims.source import Held, Stance
from vouchgate.ingest.contradictions.glossed import excluded, glossed
from vouchgate.ingest.language.languages import Language
from vouchgate.ingest.language.sentences import sentences
from vouchgate.ingest.language.words import split_words
from vouchgate.ingest.support.scope import Said

_HALF = 0.5  # of the words of a statement, from which on a sentence is near it


def stances_in(said: Said, source: str, language: Language) -> Iterator[Held]:
    """The stance of a source to every statement of a claim. Linear in both: a statement is laid over the sentence that
    has most of its words."""
    places = [(span, glossed(source[slice(*span)], language)) for span in sentences(source)]
    having: dict[str, list[int]] = {}
    for number, (_, words) in enumerate(places):
        for key in {word.key for word in words}:
            having.setdefault(key, []).append(number)
    for one in said.statements:
        ours = glossed(said.text[one.start : one.end], language)
        shared = Counter(number for key in {word.key for word in ours} for number in having.get(key, ()))
        stance, place, why = Stance.SILENT, None, ""
        missing: tuple[str, ...] = ()
        best = max(shared, key=lambda number: (shared[number], -len(places[number][1])), default=None)
        if best is not None and shared[best] >= _HALF * len({word.key for word in ours}):
            place, theirs = places[best]
            keys = {word.key for word in theirs}
            missing = tuple(word.shown for word in ours if word.key not in keys)
            there = source[slice(*place)]
            if split_words(said.text[one.start : one.end]) == split_words(there) and there[-1] not in "?？":
                stance = Stance.STATES
            elif excluded(ours, theirs):
                stance, why = Stance.REFUTES, "negation"
            else:
                stance, why = Stance.UNKNOWN, "language"
        score = float(stance is Stance.STATES)
        yield Held(
            start=one.start, end=one.end, stance=stance, score=score, missing=missing, place=place, why=why
        )
