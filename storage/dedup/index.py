"""The dedup index: which active memories and pending items of an owner may be the same claim as this one.

An item is found by keys (`ingest.dedup.signature`): table `dedup_key` has a row for each key of each item, until a
key has become that of many. Then the key is closed: table `dedup_template` keeps the words that its items
share, and they move to finer keys (`ingest.dedup.template`). So a look-up reads a handful of rows however many
items there are, and however alike.

Which index is in use is in `storage.dedup.builds`; what a transaction reads and writes of it, in
`storage.dedup.window`.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

from sqlalchemy import Connection, Table, bindparam, select

from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.claims.likeness import DedupFacts, DedupUnavailable, ItemKind, Neighbour, Neighbours
from vouchgate.ingest.dedup.compare import Allowance, Comparisons, jaccard
from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.policy import Policy
from vouchgate.storage.dedup.builds import hold
from vouchgate.storage.dedup.window import Candidate, CandidateSet, DedupIndexView
from vouchgate.storage.tables.claims import MemoryRow, PendingRow

_MEMORY: Table = MemoryRow.metadata.tables["memory"]
_PENDING: Table = PendingRow.metadata.tables["pending"]

# Neighbours that become evidence. Each is a text in the stored answer, and is compared word by word; a claim has
# more only where people approved many that differ in a value, or with the bare words of a template.
MOST_NEIGHBOURS = 32
# What comparing one owner's claims may cost in a write transaction: so many texts, and so many seconds. What was
# compared before costs nothing, so this is for what was stored since, and for claims of one group.
MOST_COMPARED = 256
COMPARING_SECONDS = 0.05
_TEXTS = {
    kind: select(table.c.content, table.c.memory_type).where(
        table.c.owner_id == bindparam("of_owner"), table.c.id == bindparam("of_item")
    )
    for kind, table in ((ItemKind.MEMORY, _MEMORY), (ItemKind.PENDING, _PENDING))
}


def find_neighbours(
    connection: Connection,
    owner_id: str,
    keys: SignatureKeys,
    now: datetime,
    *,
    known: Comparisons | None = None,
    allowance: Allowance | None = None,
) -> DedupFacts:
    """What the dedup check is told about a claim: every item of its owner and type at or over the threshold
    that the keys are for; with `known` and `allowance` as in `select_neighbours`.

    When the index is of another one it cannot answer, and says so: a part of the neighbours would look like
    all of them.
    """
    window = DedupIndexView(connection, None)
    reached = window.find_candidates(owner_id, keys)
    if window.threshold != keys.threshold:
        return unavailable(window.threshold, keys.threshold)
    return select_neighbours(keys, reached, now, known, allowance)


def compared(
    connection: Connection, owner_id: str, content: str, memory_type: str, policy: Policy, *, now: datetime
) -> Comparisons:
    """A text held against what the owner has now, for a transaction to come, which need not do it again."""
    known = Comparisons(content, policy.threshold, policy.values)
    keys = signature_keys(tokens(content), memory_type, policy.threshold)
    find_neighbours(connection, owner_id, keys, now, known=known)
    return known


def new_allowance() -> Allowance:
    """What comparing one owner's claims may cost in a write transaction."""
    return Allowance(MOST_COMPARED, COMPARING_SECONDS)


def unavailable(built: Fraction | None, threshold: Fraction) -> DedupUnavailable:
    """The fact that an index of another threshold could not be asked."""
    has = "another version of the program" if built is None else f"the threshold {float(built):g}"
    return DedupUnavailable(
        detail=f"The index of earlier claims was built for {has}, the policy asks for {float(threshold):g}."
    )


def select_neighbours(
    keys: SignatureKeys,
    reached: CandidateSet,
    now: datetime,
    known: Comparisons | None = None,
    allowance: Allowance | None = None,
) -> Neighbours:
    """The candidates in force that reach the threshold, by id: all, or the nearest MOST_NEIGHBOURS. The others
    only share a key, and are no evidence.

    With `known`, the comparisons of this claim so far, those that become evidence are compared as well, word by
    word, as far as the `allowance` goes. One that was not is no evidence either, and the answer is not complete: so
    what was decided can be decided again from the evidence alone, whatever the time was.
    """
    if not reached.candidates:
        return NOTHING_NEAR if reached.complete else Neighbours(complete=False)
    found = []
    complete = reached.complete
    for candidate in reached.candidates:
        if candidate.counts_at(now):
            text = candidate.neighbour.content
            if known is not None and known.surely_below(text):
                continue
            similarity = jaccard(keys.words, tokens(text)) if known is None else known.near(text, allowance)
            if similarity is None:
                complete = False
            elif similarity >= keys.threshold:
                found.append((-similarity, candidate.neighbour.id, candidate.neighbour))
    nearest = [neighbour for _, _, neighbour in sorted(found)[:MOST_NEIGHBOURS]]
    if known is not None:
        nearest = [one for one in nearest if known.compare(one.content, allowance)]
    nearest.sort(key=lambda neighbour: neighbour.id)
    return Neighbours(items=tuple(nearest), complete=complete and len(found) == len(nearest))


def add(connection: Connection, owner_id: str, neighbour: Neighbour, memory_type: str) -> None:
    """Puts one item into every index. The caller holds them (`hold`) and the owner's lock."""
    for build in hold(connection).live():
        window = DedupIndexView(connection, build)
        keys = signature_keys(tokens(neighbour.content), memory_type, build.threshold)
        window.add(owner_id, Candidate(neighbour), keys)
        window.write()


def remove(connection: Connection, owner_id: str, kind: ItemKind, item_id: str) -> None:
    """Takes an item out of every index; one that is not in is no error. Locks as for `add`."""
    row = connection.execute(_TEXTS[kind], {"of_owner": owner_id, "of_item": item_id}).one_or_none()
    if row is None:
        return
    words = tokens(row.content)
    for build in hold(connection).live():
        keys = signature_keys(words, row.memory_type, build.threshold)
        DedupIndexView(connection, build).remove(owner_id, item_id, keys)
