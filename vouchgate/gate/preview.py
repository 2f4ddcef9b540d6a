"""Claims that were decided and written nowhere: an index in memory, by which those that follow find them."""

from __future__ import annotations

from datetime import datetime

from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.decision import Decision, Tier
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour, Neighbours
from vouchgate.ingest.dedup.compare import Comparisons, LookedUp
from vouchgate.ingest.dedup.signature import SignatureKeys
from vouchgate.ingest.rules import Rule
from vouchgate.storage.dedup import contradicting, index, similar
from vouchgate.storage.dedup.window import Candidate, CandidateSet, DedupIndexView


def resulting_item_kind(decision: Decision) -> ItemKind | None:
    """What a gate would have kept of a claim decided so: a memory, a pending item, or nothing new."""
    if decision.tier is Tier.BLOCKED or decision.rule is Rule.ALREADY_PENDING:
        return None
    return ItemKind.MEMORY if decision.tier is Tier.STORED else ItemKind.PENDING


class DecidedClaims:
    """The claims so far, by owner."""

    def __init__(self) -> None:
        self._window = DedupIndexView(None, None)
        self._memories = contradicting.BandLists()

    def near(
        self, owner_id: str, keys: SignatureKeys, now: datetime, stored: Neighbours | None = None
    ) -> Neighbours:
        """What the dedup check is told of a claim with these keys: the claims so far that reach the threshold,
        with those that are `stored` elsewhere."""
        reached = self._window.find_candidates(owner_id, keys)
        if stored is not None:
            elsewhere = [Candidate(item) for item in stored.items]
            reached = CandidateSet(elsewhere + reached.candidates, stored.complete and reached.complete)
        return index.select_neighbours(keys, reached, now)

    def contradicting(self, claim: Claim, known: Comparisons, now: datetime) -> LookedUp:
        """Which of those that would be stored contradict the claim; `known` remembers what was compared."""
        read = self._memories.sharing(claim.owner_id, _bands_of(claim), now)
        allowance, most = contradicting.new_allowance(), contradicting.MOST_OF_GROUP
        return contradicting.of_candidates(known, read, allowance, most=most)

    def add(
        self,
        item_id: str,
        kind: ItemKind,
        claim: Claim,
        keys: SignatureKeys,
        bands: tuple[int, ...] | None = None,
    ) -> None:
        """Lets the claims that follow find this one; `bands` are its keys in the similar index, made when not given."""
        horizon = claim.validity_horizon if kind is ItemKind.MEMORY else None
        kept = Candidate(Neighbour(kind=kind, id=item_id, content=claim.content), horizon)
        self._window.add(claim.owner_id, kept, keys)
        if kind is ItemKind.MEMORY:
            bands = _bands_of(claim) if bands is None else bands
            self._memories.add(claim.owner_id, bands, kept)


def _bands_of(claim: Claim) -> tuple[int, ...]:
    return similar.keys_of(claim.content, claim.memory_type.value)
