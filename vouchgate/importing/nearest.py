"""The earlier rows that a row is held against for what says the same, otherwise or something newer: those that share
most keys with it. And what it is to them.

Which they are follows from the texts and their order alone, not from what became of the rows. So it can be found out by
parts of a file (`vouchgate.importing.bulk`), before any row is decided.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.dedup.relation import Relation
from vouchgate.ingest.dedup.retelling import Retelling, Teller, joining_keys
from vouchgate.ingest.dedup.rewording import Rewriter
from vouchgate.storage.dedup import similar

# Of each key the newest texts, and rows in all that one is held against: of these rows that share a key, most are about
# something else, and what comparing costs is for each row the same.
CANDIDATES = 16


class Near(NamedTuple):
    """A row that is near another one: its number, its text, and when it was saved."""

    number: int
    text: str
    at: datetime | None


def keys_of(claim: Claim) -> tuple[int, ...]:
    """The keys of a claim; none for one with a credential, which is compared with nothing."""
    text = claim.content, claim.memory_type.value
    return () if claim.secrets else joining_keys(*text) or similar.keys_of(*text)


def said_until(claim: Claim) -> tuple[str, datetime | None]:
    """What makes two rows one text: one that is over does not stand for one that holds."""
    return claim.content, claim.validity_horizon


def tell(
    text: str, at: datetime | None, near: Sequence[Near], rewriter: Rewriter
) -> list[tuple[int, Retelling, bool]]:
    """What a text is to those before it, by numbers, the nearest first: all that say the same or otherwise, and of
    updates the nearest. The later text is it by their times, else by their order; true when it is not ours."""
    teller, found = Teller(text, rewriter), list[tuple[int, Retelling, bool]]()
    for one in near:
        turned = at is not None and one.at is not None and at < one.at
        if told := Teller(one.text, rewriter).of(text) if turned else teller.of(one.text):
            found.append((one.number, told, turned))
    found.sort(key=lambda one: (-one[1].shared, -one[0]))
    most = next((told.shared for _, told, _ in found if told.relation is Relation.UPDATE), 0)
    return [one for one in found if one[1].relation is not Relation.UPDATE or one[1].shared == most]


class EarlierTexts:
    """All rows so far, each text of an owner and memory type once."""

    def __init__(self) -> None:
        self._lists: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self._texts: dict[int, Near] = {}
        self._seen: set[tuple[str, int, tuple[str, datetime | None]]] = set()

    def of(self, number: int, claim: Claim, at: datetime | None) -> list[Near]:
        """The nearest, for the next row: of each key the newest CANDIDATES texts, of these the CANDIDATES that share
        most keys, of equals the newest."""
        bands, owner, text = keys_of(claim), claim.owner_id, claim.content
        if not bands:
            return []
        met = Counter(n for key in bands for n in self._lists.get((owner, key), ())[-CANDIDATES:])
        one = owner, bands[0], said_until(claim)  # the memory type is in the key
        if one not in self._seen:
            self._seen.add(one)
            self._texts[number] = Near(number, text, at)
            for key in bands:
                self._lists[owner, key].append(number)
        return [self._texts[n] for n in sorted(met, key=lambda n: (-met[n], -n))[:CANDIDATES]]


class ChosenRows:
    """Rows that were found to be the nearest before, by number."""

    def __init__(self, chosen: dict[int, list[int]]) -> None:
        self._chosen = chosen
        self._wanted = {n for each in chosen.values() for n in each}
        self._texts: dict[int, Near] = {}

    def of(self, number: int, claim: Claim, at: datetime | None) -> list[Near]:
        """As of `EarlierTexts`."""
        if number in self._wanted:
            self._texts[number] = Near(number, claim.content, at)
        return [self._texts[n] for n in self._chosen.get(number, ())]
