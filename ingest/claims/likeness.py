"""What is stored or waits that is like a claim."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.frozen import Frozen


class ItemKind(StrEnum):
    """Where a similar claim lives: stored, or waiting for review."""

    MEMORY = "memory"
    PENDING = "pending"


class Neighbour(Frozen):
    """A stored memory or pending item of the same owner and type whose words may reach the threshold."""

    kind: ItemKind
    id: str
    content: str


class Neighbours(Frozen):
    """The index was asked and answered; `items` may be empty, which means: nothing similar is there.

    With `complete` false there were more candidates than can be compared, and these are some of them.
    """

    kind: Literal["neighbours"] = "neighbours"
    items: tuple[Neighbour, ...] = ()
    complete: bool = True


class DedupUnavailable(Frozen):
    """The index could not be asked. Not the same as an empty answer."""

    kind: Literal["unavailable"] = "unavailable"
    detail: str


DedupFacts = Annotated[Neighbours | DedupUnavailable, Field(discriminator="kind")]


class AtPlace(Frozen):
    """What the gate knows of the place in a sink that a claim names, when it knows anything: the memory in force
    that was put there, and the item by which its removal was asked for already."""

    memory: Neighbour | None = None
    removal: Neighbour | None = None


class EchoFacts(Frozen):
    """That a claim was submitted before, in the same or nearly the same words: how often, this time counted in, and
    who sent it. Only of claims that were sent at least twice."""

    count: int
    first_seen: datetime
    first_by: str  # a principal's id, as those in `agents` are
    agents: tuple[str, ...]  # in the order in which they came, the first twenty
    sources: tuple[Source, ...]  # that were asserted


class Paraphrase(Frozen):
    """A stored memory or pending item of the same owner whose vector is near the claim's."""

    kind: ItemKind
    id: str
    content: str
    cosine: float  # -1 to 1, of the two vectors; see `ingest.dedup.paraphrase.cosine`


class Paraphrases(Frozen):
    """Every earlier claim was compared by `model`; `items` are those near enough, and may be empty."""

    kind: Literal["paraphrases"] = "paraphrases"
    model: str
    items: tuple[Paraphrase, ...] = ()


class ParaphraseUnavailable(Frozen):
    """The model or the vectors could not be asked. Not the same as an empty answer."""

    kind: Literal["unavailable"] = "unavailable"
    detail: str


ParaphraseFacts = Annotated[Paraphrases | ParaphraseUnavailable, Field(discriminator="kind")]


class Embedding(Frozen):
    """A text as a vector: float32 numbers in machine order, of length 1. Only vectors of one `model` compare."""

    model: str
    vector: bytes


class SimilarMemory(Frozen):
    """A stored memory that says nearly the same as a claim, and is no duplicate of it: something to look at
    beside the claim. No decision rests on it."""

    memory_id: str
    similarity: float  # word Jaccard, from 0.5 up to below the duplicate threshold
    content: str
