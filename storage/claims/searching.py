"""Memories that answer a question in words: the one search, whoever asks (ADR-0065).

The database brings up candidates by their words, and by meaning where vectors are on. What is not indexed yet is read
as it is. All are then ranked here, alike for both databases, and the two orders become one by reciprocal ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, or_, select

from vouchgate.ingest.claims.likeness import Embedding
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.language.ranking import best_first, fused, index_words, query_words, rarity
from vouchgate.storage.claims import memories, word_index
from vouchgate.storage.claims.memories import TABLE, MemoryFilter, storable
from vouchgate.storage.dedup import vectors
from vouchgate.storage.identity import owners
from vouchgate.storage.sql import among

MOST_OWNERS = 20  # that one search looks through, each by itself
MEANT = 0.3  # cosine of what may be meant; below it most is of another subject
_CANDIDATES = 200  # of an owner, by words, by meaning, and newer than the index
_TAIL_READ = (
    1_000  # entries of a log whose memories are all read; of a longer tail, those with a word as written
)


class _Question(NamedTuple):
    wanted: MemoryFilter
    words: tuple[str, ...]
    now: datetime
    meaning: Embedding | None


class _Part(NamedTuple):
    """Candidates of one owner, what each word is worth among all of the owner's, and who is near by meaning."""

    found: list[Memory]
    worth: dict[str, float]
    near: list[str]


class TooManyOwners(ValueError):
    """A search in words is over MOST_OWNERS owners at most."""


def find(
    connection: Connection, wanted: MemoryFilter, now: datetime, meaning: Embedding | None = None
) -> list[Memory]:
    """The memories that match: without `wanted.q` as `memories.search`, newest first; with it, best first, at most
    `wanted.limit`, and no further page. `meaning` is the vector of `wanted.q`.

    Where no memory has a word of it, those that have it somewhere in their text, newest first. No query is an error.
    Raises TooManyOwners."""
    if wanted.q is None:
        return memories.search(connection, wanted, now)
    if not all(map(storable, filter(None, (wanted.q, wanted.text, wanted.source_id)))):
        return []
    question = _Question(wanted, query_words(wanted.q), now, meaning)
    parts = [_part(connection, owner, question) for owner in _owners(connection, wanted)]
    found = {memory.id: memory for part in parts for memory in part.found}
    # Memories of several owners are ranked together, by what a word is worth where it is commonest.
    worth = {word: min(part.worth[word] for part in parts) for word in question.words if parts}
    by_words = best_first({name: index_words(one.content) for name, one in found.items()}, worth)
    order = fused([by_words, *(part.near for part in parts)])
    ranked = [found[name] for name in order if name in found]
    if not ranked:
        return memories.search(connection, wanted.model_copy(update={"q": None, "text": wanted.q}), now)
    return ranked[: wanted.limit]


def _owners(connection: Connection, wanted: MemoryFilter) -> list[str]:
    """Raises TooManyOwners."""
    asked = wanted.owners
    found = owners.names(connection, "", MOST_OWNERS + 1) if asked is None else sorted(asked)
    if len(found) > MOST_OWNERS:
        raise TooManyOwners(f"A search in words is over {MOST_OWNERS} owners at most: name one.")
    return found


def _part(connection: Connection, owner_id: str, question: _Question) -> _Part:
    wanted, asked, now, meaning = question
    fits = memories.conditions(wanted.model_copy(update={"owners": frozenset({owner_id})}), now)
    total, indexed = word_index.ends(connection, owner_id)
    having = word_index.having(connection, owner_id, asked)
    tail: Mapping[str, str] = {}
    if 0 < total - indexed <= _TAIL_READ:
        tail = word_index.next_batch(connection, owner_id, _TAIL_READ).contents
        new = Counter(word for content in tail.values() for word in {*index_words(content)})
        having = {word: count + new[word] for word, count in having.items()}
    worth = {word: rarity(total, having[word]) for word in asked}
    # The rarest first, while that is not too much to rank: what has but common words is never the best.
    rarest, counted = list[str](), 0
    for word in sorted((word for word in asked if having[word]), key=lambda word: having[word]):
        counted += having[word]
        if rarest and counted > word_index.MOST_COUNTED:
            break
        rarest.append(word)
    ids = {*tail}
    if rarest:
        chosen = {word: worth[word] for word in rarest}
        ids |= {*word_index.candidates(connection, owner_id, chosen, fits, _CANDIDATES)}
    near = []
    if meaning is not None:
        near = vectors.nearest(connection, owner_id, meaning, least=MEANT, most=_CANDIDATES)
        ids |= {*near}
    if total - indexed > _TAIL_READ and asked:
        newest = select(TABLE.c.id).where(*fits, or_(*map(_as_written, asked))).order_by(TABLE.c.id.desc())
        ids |= {*connection.scalars(newest.limit(_CANDIDATES))}
    rows = connection.execute(select(TABLE).where(*fits, among(TABLE.c.id, "ids")), {"ids": list(ids)})
    return _Part([memories.from_row(row, now) for row in rows.mappings()], worth, near)


def _as_written(word: str) -> ColumnElement[bool]:
    """Whether a text may have a word: a stem's last letter may be another one in the text."""
    part = word[:-1] if len(word) > 3 else word
    return TABLE.c.content.icontains(part, autoescape=True)
