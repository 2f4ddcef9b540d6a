"""Has this owner stored this before? Word Jaccard at the threshold, and whether a *value* changed.

The measure is plain on purpose: the set of lower-case, white-space separated tokens (ADR-0005). This file
is the pure half; the index that finds candidates is `storage.index`, with keys from `ingest.signature`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ingest.types import (
    DedupFacts,
    DedupUnavailable,
    Finding,
    Frozen,
    ItemKind,
    Neighbour,
    Verdict,
)

CHECK = "dedup"

# Punctuation around a word is no part of a value: "5432." and "5432" are one number. Signs in front stay,
# because "<5" and ">5" are two limits.
_OPENING = "\"'`([{“‘«*"
_CLOSING = "\"'`)]}”’»*.,;:!?…"
# camelCase, or a joint inside a word that prose does not have. A lone hyphen is prose ("well-known").
_IDENTIFIER = re.compile(r"[a-z][A-Z]|[A-Z]{2}|\w[_./:@#=\\]\w|\(\)|--?\w+=|^--|\$")
_NEGATION_SUFFIX = re.compile(r"n['’]t$")


class ValueWords(Frozen):
    """Words that carry a value although they look like prose, all in lower case."""

    negations: tuple[str, ...]
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    opposites: tuple[tuple[str, str], ...]  # a value changes when one word is exchanged for the other
    sentence_openers: tuple[str, ...]  # capitalised words at the start of a sentence that are no names

    @cached_property
    def carriers(self) -> frozenset[str]:
        """Words that are a value wherever they stand."""
        return frozenset(self.negations + self.numbers + self.dates)

    @cached_property
    def openers(self) -> frozenset[str]:
        """`sentence_openers` as a set."""
        return frozenset(self.sentence_openers)

    def exchanged(self, ours: set[str], theirs: set[str]) -> list[str]:
        """Words of an opposite pair of which one side has the one and the other side the other."""
        found = []
        for one, other in self.opposites:
            if (one in ours and other in theirs) or (other in ours and one in theirs):
                found += [one, other]
        return found


def tokens(text: str) -> frozenset[str]:
    """The words of a text as the measure sees them: lower-case, split at white space, each once."""
    return frozenset(text.lower().split())


def jaccard(left: frozenset[str], right: frozenset[str]) -> Fraction:
    """Size of the overlap over size of the union, exact; two empty sets are equal, so 1."""
    union = len(left | right)
    return Fraction(len(left & right), union) if union else Fraction(1)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim against one neighbour over the threshold. `changed` holds the value words that differ, as
    written, claim first; empty means the two say the same."""

    neighbour: Neighbour
    similarity: Fraction
    changed: tuple[str, ...]


def _strip(word: str) -> str:
    return word.lstrip(_OPENING).rstrip(_CLOSING)


def _is_value(word: str, *, opens_sentence: bool, words: ValueWords) -> bool:
    """Whether a changed `word` (stripped, in its original case) changes what the sentence says."""
    folded = word.casefold()
    if (
        any(character.isdigit() for character in word)
        or folded in words.carriers
        or _NEGATION_SUFFIX.search(folded)
        or _IDENTIFIER.search(word)
    ):
        return True
    if not word[:1].isupper():
        return False
    return not (opens_sentence and folded in words.openers)


def _values(text: str, words: ValueWords) -> list[tuple[str, str]]:
    """The value words of a text in order, as (folded, as written)."""
    found: list[tuple[str, str]] = []
    opens_sentence = True
    for raw in text.split():
        word = _strip(raw)
        if word and _is_value(word, opens_sentence=opens_sentence, words=words):
            found.append((word.casefold(), word))
        if word:
            opens_sentence = raw.rstrip("\"'”’)*`").endswith((".", "!", "?", ":"))
    return found


def changed_values(claim: str, other: str, words: ValueWords) -> tuple[str, ...]:
    """The value words in which two texts differ, claim's first; empty when no value changed.

    Values are compared in order, so "from 5 to 9" against "from 9 to 5" is a change although both hold the
    same words. A word that is a value by its shape in only one of the texts (`Redis` against `redis`)
    counts as the same word when the other text has it in any shape.
    """
    ours, theirs = _values(claim, words), _values(other, words)
    our_words = {_strip(word).casefold() for word in claim.split()}
    their_words = {_strip(word).casefold() for word in other.split()}
    only_ours = [shown for folded, shown in ours if folded not in their_words]
    only_theirs = [shown for folded, shown in theirs if folded not in our_words]
    only_theirs += words.exchanged(our_words - their_words, their_words - our_words)
    if only_ours or only_theirs:
        return tuple(dict.fromkeys(only_ours + only_theirs))
    shared = {folded for folded, _ in ours} & {folded for folded, _ in theirs}
    our_order = [pair for pair in ours if pair[0] in shared]
    their_order = [pair for pair in theirs if pair[0] in shared]
    if [folded for folded, _ in our_order] == [folded for folded, _ in their_order]:
        return ()
    return tuple(dict.fromkeys(shown for _, shown in our_order + their_order))


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
    if not facts.items:
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
        message = f"Nearly the same as an earlier claim, but these values differ: {shown}."
        return _finding(Verdict.DOUBT, "conflict", message, near[0]), near[0]
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
