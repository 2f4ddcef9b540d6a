"""Has this owner stored this before? Word Jaccard at the threshold, and whether what is said changed.

The measure is plain on purpose: the set of words that white space separates, normalised (`ingest.language.words`). Over
the threshold, two texts are the same only when every difference is known to be harmless (ADR-0007). This file is
the pure half; the index that finds candidates is `storage.dedup.index`, with keys from `ingest.dedup.signature`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from vouchgate.ingest.check import Check, Known
from vouchgate.ingest.claims.types import (
    DedupFacts,
    DedupUnavailable,
    Finding,
    ItemKind,
    Neighbour,
    Neighbours,
    Verdict,
)
from vouchgate.ingest.dedup import paraphrase
from vouchgate.ingest.dedup.order import changed_window, harmless_order
from vouchgate.ingest.dedup.rewording import Unit, units_of
from vouchgate.ingest.language.value_words import ValueWords
from vouchgate.ingest.language.words import tokens, word_list

__all__ = [
    "CHECK",
    "UNIQUE",
    "Comparison",
    "ValueWords",
    "changed_values",
    "compare",
    "jaccard",
    "judge",
    "tokens",
]

CHECK = paraphrase.CHECK

# Words of each text that a finding names. A person needs a few; two long texts can differ in hundreds.
_NAMED = 8


def jaccard(left: frozenset[str], right: frozenset[str]) -> Fraction:
    """Size of the overlap over size of the union, exact; two empty sets are equal, so 1."""
    union = len(left | right)
    return Fraction(len(left & right), union) if union else Fraction(1)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim against one neighbour over the threshold. `changed` holds the words that differ or changed
    places, as written, claim first; empty means the two say the same."""

    neighbour: Neighbour
    similarity: Fraction
    changed: tuple[str, ...]


def _named(units: Iterable[Unit]) -> list[str]:
    return list(dict.fromkeys(unit.shown for unit in units))[:_NAMED]


def _surplus(units: list[Unit], other: list[Unit]) -> list[Unit]:
    """The units that the other text does not have, or not as often: then the last ones."""
    left = Counter(unit.key for unit in other)
    found = []
    for unit in units:
        if left[unit.key] > 0:
            left[unit.key] -= 1
        else:
            found.append(unit)
    return found


def changed_values(claim: str, other: str, words: ValueWords) -> tuple[str, ...]:
    """The words in which two texts say different things, as written, claim's first; empty when they say the same.

    They say the same when nothing differs but what the lists of `words` call harmless: small words, synonyms,
    inflection, spelling, and an order that exchanges no roles. Words that only changed places are named as
    well; at most eight of each text are. Linear in the texts.
    """
    if word_list(claim) == word_list(other):
        return ()  # the commonest case, at a fraction of the time
    ours, theirs = units_of(claim, other, words)
    if only := _named(_surplus(ours, theirs)) + _named(_surplus(theirs, ours)):
        return tuple(dict.fromkeys(only))
    if harmless_order(ours, theirs, words):
        return ()
    start, end = changed_window(ours, theirs)
    moved = [
        pair for pair in zip(ours[start:end], theirs[start:end], strict=True) if pair[0].key != pair[1].key
    ]
    return tuple(dict.fromkeys(_named(one for one, _ in moved) + _named(two for _, two in moved)))


def compare(
    content: str, facts: tuple[Neighbour, ...], threshold: Fraction, words: ValueWords
) -> tuple[Comparison, ...]:
    """Every neighbour at or over the threshold, nearest first; equals are ordered by id so that the answer
    does not depend on the order of the facts."""
    own = tokens(content)
    found = []
    for neighbour in facts:
        similarity = jaccard(own, tokens(neighbour.content))
        if similarity >= threshold:
            changed = changed_values(content, neighbour.content, words)
            found.append(Comparison(neighbour, similarity, changed))
    return tuple(sorted(found, key=lambda c: (-c.similarity, len(c.changed), c.neighbour.id)))


UNIQUE = Finding(
    check=CHECK, verdict=Verdict.PASS, code="unique", message="This owner has stored nothing like it."
)


def judge(
    content: str, facts: DedupFacts, threshold: Fraction, words: ValueWords
) -> tuple[Finding, Comparison | None]:
    """One finding, and the comparison it rests on.

    In order: duplicate of a stored memory, duplicate of a pending item, conflict with either. A repeat of
    a waiting conflict is that item again, not a second one (ADR-0005).
    """
    if isinstance(facts, DedupUnavailable):
        return _finding(Verdict.UNKNOWN, "dedup_unavailable", facts.detail), None
    if not facts.items and facts.complete:
        return UNIQUE, None
    near = compare(content, facts.items, threshold, words)
    same = [c for c in near if not c.changed]
    for kind, verdict, code, message in (
        (ItemKind.MEMORY, Verdict.FAIL, "duplicate", "This owner has stored the same claim already."),
        (ItemKind.PENDING, Verdict.DOUBT, "already_pending", "The same claim waits for its owner already."),
    ):
        for comparison in same:
            if comparison.neighbour.kind is kind:
                return _finding(verdict, code, message, comparison), comparison
    if near:
        shown = ", ".join(near[0].changed[:8])
        message = f"Nearly the same as an earlier claim, but these words differ or changed places: {shown}."
        return _finding(Verdict.DOUBT, "conflict", message, near[0]), near[0]
    if not facts.complete:
        message = "So many earlier claims share a part with this one that not all of them were compared."
        return _finding(Verdict.UNKNOWN, "dedup_crowded", message), None
    return UNIQUE, None


def _finding(verdict: Verdict, code: str, message: str, found: Comparison | None = None) -> Finding:
    if found is None:
        return Finding(check=CHECK, verdict=verdict, code=code, message=message)
    return Finding(
        check=CHECK,
        verdict=verdict,
        code=code,
        message=message,
        facts={
            "id": found.neighbour.id,
            "kind": found.neighbour.kind.value,
            "similarity": round(float(found.similarity), 4),
            "changed": list(found.changed[:32]),
        },
    )


def _judge_facts(known: Known) -> Finding:
    policy, facts = known.policy, known.facts
    finding, _ = judge(known.claim.content, facts.dedup, policy.threshold, policy.values)
    return paraphrase.weigh(finding, facts.paraphrases, policy)


def _nearest(known: Known, finding: Finding) -> Neighbour | None:
    """The earlier claim that a finding of over the threshold names."""
    items = known.facts.dedup.items if isinstance(known.facts.dedup, Neighbours) else ()
    wanted = (finding.facts.get("kind"), finding.facts.get("id"))
    return next((item for item in items if (item.kind.value, item.id) == wanted), None)


CHECKS = (
    Check(
        name=CHECK,
        title="Earlier claims",
        codes={
            "unique": Verdict.PASS,
            "duplicate": Verdict.FAIL,
            "already_pending": Verdict.DOUBT,
            "conflict": Verdict.DOUBT,
            "dedup_unavailable": Verdict.UNKNOWN,
            "dedup_crowded": Verdict.UNKNOWN,
            paraphrase.CODE: Verdict.DOUBT,
            paraphrase.UNAVAILABLE: Verdict.UNKNOWN,
        },
        order=60,
        judge_facts=_judge_facts,
        needs=frozenset({"dedup", "paraphrases"}),
        nearest=_nearest,
    ),
)
