"""The earlier rows that a row is held against for contradictions: those that share most band keys with it.

Which they are follows from the texts and their order alone, not from what became of the rows. So it can be found out by
parts of a file (`vouchgate.importing.bulk`), before any row is decided.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from vouchgate.ingest.claims.claim import Claim
from vouchgate.storage.dedup import similar

# Of each key the newest texts, and rows in all that one is held against: of these rows that share a key, most are about
# something else, and what comparing costs is for each row the same.
CANDIDATES = 16


def bands_of(claim: Claim) -> tuple[int, ...]:
    """The keys of a claim; none for one with a credential, which is compared with nothing."""
    return () if claim.secrets else similar.keys_of(claim.content, claim.memory_type.value)


class EarlierTexts:
    """All rows so far, each text of an owner and memory type once."""

    def __init__(self) -> None:
        self._lists: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self._texts: dict[int, str] = {}
        self._seen: set[tuple[str, int, str]] = set()

    def of(self, number: int, claim: Claim) -> list[tuple[int, str]]:
        """Numbers and texts of the nearest, for the next row: of each key the newest CANDIDATES texts, of these the
        CANDIDATES that share most keys, of equals the newest."""
        bands, owner, text = bands_of(claim), claim.owner_id, claim.content
        if not bands:
            return []
        met = Counter(n for key in bands for n in self._lists.get((owner, key), ())[-CANDIDATES:])
        if (owner, bands[0], text) not in self._seen:  # the memory type is in the key
            self._seen.add((owner, bands[0], text))
            self._texts[number] = text
            for key in bands:
                self._lists[owner, key].append(number)
        return [(n, self._texts[n]) for n in sorted(met, key=lambda n: (-met[n], -n))[:CANDIDATES]]


class ChosenRows:
    """Rows that were found to be the nearest before, by number."""

    def __init__(self, chosen: dict[int, list[int]]) -> None:
        self._chosen = chosen
        self._texts: dict[int, str] = dict.fromkeys((n for each in chosen.values() for n in each), "")

    def of(self, number: int, claim: Claim) -> list[tuple[int, str]]:
        """As of `EarlierTexts`."""
        if number in self._texts:
            self._texts[number] = claim.content
        return [(n, self._texts[n]) for n in self._chosen.get(number, ())]
