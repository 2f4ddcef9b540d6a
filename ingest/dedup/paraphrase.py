"""May a claim say the same as an earlier one in other words? Asked only when the policy's `dedup_method` is
`vector`, and only of a claim that the word measure found unique: it decides first, and alone blocks.

A near vector is a doubt, never a duplicate: models put opposites close together. So the claim waits for its
owner, and nothing is blocked, stored or replaced by this check. What it cannot find out is UNKNOWN.
"""

from __future__ import annotations

import math
from array import array

from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.likeness import (
    ItemKind,
    Paraphrase,
    ParaphraseFacts,
    Paraphrases,
    ParaphraseUnavailable,
)
from vouchgate.ingest.policy import Policy

CHECK = "dedup"  # of which this is the second half
CODE = "paraphrase"
UNAVAILABLE = "paraphrase_unavailable"
MESSAGE = "May say the same as an earlier claim in other words"


def cosine(left: bytes, right: bytes) -> float:
    """The cosine of two vectors written as float32 in machine order, to 6 digits, which is what they hold.

    Raises ValueError when they differ in length, or when one of them is zero.
    """
    ours, theirs = array("f", left), array("f", right)
    if len(ours) != len(theirs):
        raise ValueError(f"vectors of {len(ours)} and {len(theirs)} numbers cannot be compared")
    length = math.hypot(*ours) * math.hypot(*theirs)
    if not length:
        raise ValueError("a vector without a direction cannot be compared")
    return round(sum(a * b for a, b in zip(ours, theirs, strict=True)) / length, 6)


def weigh(finding: Finding, facts: ParaphraseFacts | None, policy: Policy) -> Finding:
    """The dedup finding, with what the vectors add to it.

    `facts` None means that nobody looked. That is right under `jaccard`; under `vector` it is an UNKNOWN.
    """
    if policy.dedup_method == "jaccard" or finding.verdict is not Verdict.PASS:
        return finding
    if facts is None:
        return _unknown("Earlier claims could not be looked up by meaning.")
    if isinstance(facts, ParaphraseUnavailable):
        return _unknown(facts.detail)
    close = [item for item in facts.items if item.cosine >= policy.vector_threshold]
    return _doubt(min(close, key=_nearest_first)) if close else finding


def stored_only(facts: ParaphraseFacts | None) -> ParaphraseFacts | None:
    """The same without the items that wait."""
    if not isinstance(facts, Paraphrases):
        return facts
    kept = tuple(item for item in facts.items if item.kind is ItemKind.MEMORY)
    return facts.model_copy(update={"items": kept})


def _nearest_first(item: Paraphrase) -> tuple[float, str]:
    """Equals are ordered by id, so that the answer does not depend on the order of the facts."""
    return -item.cosine, item.id


def _doubt(item: Paraphrase) -> Finding:
    return Finding(
        check=CHECK,
        verdict=Verdict.DOUBT,
        code=CODE,
        message=f"{MESSAGE}.",
        facts={"id": item.id, "kind": item.kind.value, "cosine": item.cosine},
    )


def _unknown(detail: str) -> Finding:
    return Finding(check=CHECK, verdict=Verdict.UNKNOWN, code=UNAVAILABLE, message=detail)
