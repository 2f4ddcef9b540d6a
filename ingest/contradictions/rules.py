"""Where a source says otherwise than a claim, by rules alone.

A rule fires only when a sentence of the passage speaks of the same subject and says the same of it, but for one
value; and it is taken back when any sentence of the passage says what the claim says. Finding nothing means nothing:
most contradictions need a reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from vouchgate.ingest.contradictions.clock import calendar_rule, time_rule
from vouchgate.ingest.contradictions.dates import date_rule, month_rule
from vouchgate.ingest.contradictions.direction import direction_rule, end_rule, order_rule, swap_rule
from vouchgate.ingest.contradictions.fillers import filler_rule
from vouchgate.ingest.contradictions.lists import LISTS
from vouchgate.ingest.contradictions.match import Contradiction, Pair
from vouchgate.ingest.contradictions.polarity import contrast_rule, negation_rule, opposite_rule
from vouchgate.ingest.contradictions.quantifiers import all_rule, besides_rule, gone_rule, only_rule
from vouchgate.ingest.contradictions.quantity import number_rule, ordinal_rule
from vouchgate.ingest.contradictions.reading import Interest, read
from vouchgate.ingest.contradictions.scope import except_rule, label_rule, scope_rule, stale_rule
from vouchgate.ingest.contradictions.sentence import LABELS, Reading, Sentence
from vouchgate.ingest.contradictions.slots import (
    category_rule,
    default_rule,
    exchange_rule,
    maker_rule,
    middle_rule,
)
from vouchgate.ingest.contradictions.version import version_rule

__all__ = ["Contradiction", "contradictions"]

_RULES: tuple[Callable[[Pair], Iterator[Contradiction]], ...] = (
    default_rule,
    direction_rule,
    end_rule,
    order_rule,
    swap_rule,
    number_rule,
    ordinal_rule,
    version_rule,
    date_rule,
    month_rule,
    time_rule,
    calendar_rule,
    category_rule,
    maker_rule,
    contrast_rule,
    exchange_rule,
    opposite_rule,
    only_rule,
    besides_rule,
    all_rule,
    scope_rule,
    except_rule,
    gone_rule,
    label_rule,
    stale_rule,
    negation_rule,
    filler_rule,
    middle_rule,
)
# Sentences of claim and passage that are compared with each other: more than any claim of 8,192 characters in ordinary
# sentences asks for, and few enough that a hostile one costs a fraction of a second.
_MOST_PAIRS = 800
# What a clause says enough for without its sentence.
_OF_CLAUSES = frozenset({"number", "bound", "version", "date", "time", "opposite", "exchange", "maker"})
_MANY = 4  # content words of a claim's sentence of which a sentence of the passage must share two
_REFERRING = LISTS.referring | LISTS.pronouns
_LONGEST = 120  # words of a sentence that is compared; longer ones are lists and tables


def contradictions(
    claim: str, passage: str, clauses: Iterable[tuple[int, int]] = (), *, message: bool = True
) -> tuple[Contradiction, ...]:
    """Where the passage says otherwise than the claim, in the order of the claim. Never raises.

    Of `clauses`, stretches of the claim, each is compared by itself as well: a sentence of the passage may say
    otherwise than one of them, and nothing of what the claim's sentence says beside it. What stands word for word in
    the passage has no conflict with it. A passage that cannot be the `message` of a change tells of none.
    """
    ours = read(claim)
    theirs = read(passage, Interest.of(ours), message=message)
    spoken = _joined(theirs.sentences)
    sources = [sentence for sentence in theirs.sentences if len(sentence.words) <= _LONGEST]
    found: list[Contradiction] = []
    left = _MOST_PAIRS
    parts: list[tuple[int | None, Sentence]] = [(None, sentence) for sentence in ours.sentences]
    parts += [(start, part) for start, end in clauses for part in read(claim[start:end]).sentences]
    for start, sentence in parts:
        if left <= 0:
            break
        if len(sentence.words) <= _LONGEST and _joined((sentence,)) not in spoken:
            alike = [source for source in sources if _alike(sentence, source)][:left]
            left -= len(alike)
            conflicts = _of_sentence(sentence, alike, theirs)
            if start is not None:
                conflicts = (one.of_clause(start) for one in conflicts if one.rule in _OF_CLAUSES)
            found.extend(conflicts)
    return tuple(sorted(found, key=lambda conflict: (conflict.claim_start, conflict.claim_end)))


def _alike(claim: Sentence, source: Sentence) -> bool:
    """Whether two sentences share enough to be compared: two words when the claim has many, or one and a reference to
    what was said before."""
    shared = len(claim.keys & source.keys)
    if shared > 1 or source.lows[0] in LABELS:
        return True
    short = len(claim.keys) < _MANY or source.command is not None
    return shared == 1 and (short or bool(_REFERRING.intersection(source.lows[:2])))


def _joined(sentences: tuple[Sentence, ...]) -> str:
    """The words of sentences as one string in which a whole sentence can be looked up."""
    return "\0" + "".join(word.low + "\0" for sentence in sentences for word in sentence.words if word.key)


def _of_sentence(claim: Sentence, sources: list[Sentence], passage: Reading) -> Iterator[Contradiction]:
    """What the first sentence of the source that says otherwise says otherwise, each place of the claim once."""
    for source in sources:
        pair = Pair(claim, source, passage)
        found: dict[tuple[int, int], Contradiction] = {}
        for rule in _RULES:
            for conflict in rule(pair):
                found.setdefault((conflict.claim_start, conflict.claim_end), conflict)
        if found:
            yield from found.values()
            return
