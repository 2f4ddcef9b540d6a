"""Rows of tables: the head tells what a cell is, where something comes from and where it goes, and a word in a cell
where a task stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from vouchgate.ingest.support.clauses.roles import attached
from vouchgate.ingest.support.tokens import LISTS, Token, tokens_of

_OPEN = 0  # the kind of what is to be done
_PAST = frozenset({"been", "was", "were", "had"})


def wrong_end(words: Sequence[Token], head: str, row: str) -> bool:
    """Whether a statement has something go "to" what a row has under "from", or come "from" or "by" what it has under
    "to"."""
    cells = list(zip(_cells(head), _cells(row), strict=False))
    ends = [
        frozenset[str]().union(*(keys for title, keys in cells if not title.isdisjoint(names)))
        for names in (LISTS.sending, LISTS.receiving)
    ]
    sender, receiver = ends[0] - ends[1], ends[1] - ends[0]
    if not sender or not receiver:
        return False
    return any(
        (how in LISTS.towards and end in sender) or (how in LISTS.away and end in receiver)
        for _, how, end in attached(words)
    )


def wrong_column(words: Sequence[Token], head: str, row: str) -> bool:
    """Whether a statement names a column of a table, has nothing of what a row has there, and something that the row
    has in a column that the statement does not name."""
    own = frozenset(key for token in words if token.content for key in token.keys)
    row_cells = list(_cells(row))
    cells_with = Counter(chain.from_iterable(row_cells))
    often = {key for key, cells in cells_with.items() if cells > 1}  # which tell no column
    columns = [
        (title & own - cell, (cell - often) & own, bool(cell - often - own))
        for title, cell in zip(_cells(head), row_cells, strict=False)
    ][1:]
    lacks = any(title and not cell and other for title, cell, other in columns)
    return lacks and any(cell - title and not title for title, cell, _ in columns)


def stands_otherwise(words: Sequence[Token], place: Sequence[Token]) -> bool:
    """Whether a task that is done in one of the two is open or given up in the other."""
    known = LISTS.progress
    ours, theirs = ({known[word.low] for word in each if word.low in known} for each in (words, place))
    if not ours and theirs == {_OPEN}:
        return any(word.low in _PAST for word in words)
    return bool(ours and theirs) and ours.isdisjoint(theirs)


def _cells(row: str) -> Iterator[frozenset[str]]:
    for cell in row.strip().strip("|").split("|"):
        yield frozenset(key for token in tokens_of(cell) for key in (token.low, *token.keys, *token.parts))
