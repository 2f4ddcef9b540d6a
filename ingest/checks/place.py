"""What does the place hold where a store behind the gate is to write this claim?

Writing over a memory takes it away as surely as deleting it does, and an agent may do neither: both wait for the
owner, whatever vouches for the new text (ADR-0021).
"""

from __future__ import annotations

from pydantic import JsonValue

from vouchgate.ingest.check import Check
from vouchgate.ingest.claims.claim import Claim, Finding, Verdict
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.likeness import AtPlace, Neighbour

CHECK = "place"
REMOVAL = "removal"  # what is at the place is to go
REMOVAL_WAITS = "removal_waits"  # that was asked for already
PLACE_TAKEN = "place_taken"  # something else is in force there


def judge(claim: Claim, at_place: AtPlace | None) -> Finding | None:
    """None for a claim that names no place, or one that is free. That these very words are there makes no difference:
    of the same type they are a duplicate, which comes first; of another they would be a second memory at one place."""
    delivery = claim.delivery
    if delivery is None:
        return None
    there = at_place or AtPlace()
    where = f"{delivery.place} in {delivery.sink}"
    facts: dict[str, JsonValue] = {"sink": delivery.sink, "place": delivery.place}
    if delivery.op is DeliveryOp.REMOVE:
        if there.removal is not None:
            message = f"That {where} be removed was asked for already, by {there.removal.id}."
            return _doubt(REMOVAL_WAITS, message, facts | {"id": there.removal.id})
        known = "" if there.memory is None else f", which is {there.memory.id}"
        return _doubt(REMOVAL, f"Asks to remove {where}{known}.", facts)
    if there.memory is None:
        message = (
            f"Something is at {where} already, which was never stored here: this would be written over it."
        )
        return _doubt(PLACE_TAKEN, message, facts) if delivery.replaces else None
    message = f"{there.memory.id} is at {where}: this would be written over it."
    return _doubt(PLACE_TAKEN, message, facts | {"id": there.memory.id})


def nearest_at_place(claim: Claim, at_place: AtPlace | None) -> Neighbour | None:
    """What the claim would change: the memory at its place, or the item that asks for its removal already."""
    if claim.delivery is None or at_place is None:
        return None
    removes = claim.delivery.op is DeliveryOp.REMOVE
    return at_place.removal if removes and at_place.removal is not None else at_place.memory


def _doubt(code: str, message: str, facts: dict[str, JsonValue]) -> Finding:
    return Finding(check=CHECK, verdict=Verdict.DOUBT, code=code, message=message, facts=facts)


CHECKS = (
    Check(
        name=CHECK,
        title="Place",
        codes=dict.fromkeys((PLACE_TAKEN, REMOVAL, REMOVAL_WAITS), Verdict.DOUBT),
        order=70,
        judge_facts=lambda known: judge(known.claim, known.facts.at_place),
        needs=frozenset({"at_place"}),
        of_removals=True,
        nearest=lambda known, finding: nearest_at_place(known.claim, known.facts.at_place),
    ),
)
