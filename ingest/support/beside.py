"""What a claim sends along for a store behind the gate, beside its text: what is written there can come out again.

A store may need names, numbers and a copy of what the claim says in another shape. Prose that the claim does not say
is a statement that no source was asked about.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.delivery import DeliveryTarget
from vouchgate.ingest.claims.texts import is_plain_name, texts_in
from vouchgate.ingest.language.terms import Kind, words_of

SAYS = 3  # telling words of one text that the claim has not, from which on it says something
SAYS_IN_NAMES = 12  # and of all plain names together: a sentence can be cut into them
_QUIET = frozenset({Kind.FUNCTION, Kind.NUMBER})


def said_beside(claim: Claim) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each field of the claim's delivery that says what its text does not, with the words that the text has not.
    Linear; never raises."""
    if claim.delivery is None:
        return
    own = {key for word in words_of(claim.content) for key in (word.key, *(part for part, _ in word.parts))}
    names: list[str] = []
    for where, text in _texts(claim.delivery):
        words = _missing(text, own)
        if is_plain_name(text):
            names += words
        elif len(words) >= SAYS:
            yield where, words
    if len(unsaid := tuple(dict.fromkeys(names))) >= SAYS_IN_NAMES:
        yield "delivery", unsaid


def _texts(delivery: DeliveryTarget) -> Iterator[tuple[str, str]]:
    """The labels of the place, which most sinks write as a JSON list, and every name and text of the data."""
    try:
        labels = json.loads(delivery.place)
    except ValueError:
        labels = delivery.place
    yield from (("delivery.place", text) for text in texts_in(labels))
    for name, value in delivery.data.items():
        yield "delivery.data", name
        yield from (
            (f"delivery.data.{name}" if is_plain_name(name) else "delivery.data", t) for t in texts_in(value)
        )


def _missing(text: str, own: set[str]) -> tuple[str, ...]:
    """The telling words of a text, those that a compound is made of by themselves, that the claim has not."""
    found: dict[str, str] = {}
    for word in words_of(text):
        if word.kind in _QUIET or word.key in own:
            continue
        if word.parts:
            found |= {key: key for key, kind in word.parts if kind not in _QUIET and key not in own}
        else:
            found.setdefault(word.key, text[word.start : word.end])
    return tuple(found.values())
