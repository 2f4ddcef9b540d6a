"""Claims for tests of storage and above, as they are after the checks that need no database."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache

from vouchgate.ingest.check import Findings
from vouchgate.ingest.claims.claim import Claim, Finding, MemoryType, Source, Verdict
from vouchgate.ingest.claims.delivery import DeliveryOp, DeliveryTarget
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Policy
from vouchgate.storage.claims.submit import Idempotency, Submission
from vouchgate.storage.ids import new_id_suffix

NOW = datetime(2026, 5, 4, 12, 30, 15, 250_000, tzinfo=UTC)


@cache
def policy(*, threshold: float = 0.92, **queue: int) -> Policy:
    """The built-in policy with another threshold or other queue limits; an agent has the places of its owner where only
    these are named."""
    built_in = load_policy()
    if "per_owner" in queue:
        queue = {"per_agent": queue["per_owner"], **queue}
    limits = built_in.queue.model_copy(update=queue)
    return Policy.model_validate(
        built_in.model_dump() | {"duplicate_threshold": threshold, "queue": limits.model_dump()}
    )


def examined(
    content: str,
    *,
    owner_id: str = "ann",
    source: Source = Source.USER,
    memory_type: MemoryType = MemoryType.FACT,
    speculates: bool = False,
    validity_horizon: datetime | None = None,
    under: Policy | None = None,
    now: datetime = NOW,
    delivery: DeliveryTarget | None = None,
) -> Examined:
    """A claim without citations. USER is stored, AI_SYNTHESIS waits, and one that
    `speculates` is blocked, unless the dedup check says otherwise."""
    code = "personal_speculation" if speculates else "no_hedge"
    verdict = Verdict.FAIL if speculates else Verdict.PASS
    hedge = Finding(check="hedge", verdict=verdict, code=code, message="What the hedge check said.")
    cites = Finding(check="citation_detect", verdict=Verdict.PASS, code="none", message="No citations.")
    return Examined(
        claim=Claim(
            content=content,
            memory_type=memory_type,
            asserted_source=source,
            source=source,
            owner_id=owner_id,
            validity_horizon=validity_horizon,
            metadata={"ticket": 7},
            delivery=delivery,
        ),
        policy=under or policy(),
        capture_time=now,
        readings=(),
        findings=Findings(
            () if delivery is not None and delivery.op is DeliveryOp.REMOVE else (hedge, cites)
        ),
    )


def submission_of(one: Examined, *, principal_id: str = "agent-1", key: str | None = None) -> Submission:
    """The claim as it goes to the writer, with a new id; `key` is its Idempotency-Key."""
    claim = one.claim
    digest = hashlib.sha256(f"{claim.owner_id}\n{claim.content}".encode()).hexdigest()
    return Submission(
        examined=one,
        principal_id=principal_id,
        suffix=new_id_suffix(one.capture_time),
        keys=signature_keys(tokens(claim.content), claim.memory_type.value, one.policy.threshold),
        idempotency=None if key is None else Idempotency(key, digest),
        started=time.perf_counter(),
    )


def alike(one: frozenset[str], other: frozenset[str], threshold: Fraction) -> bool:
    """`jaccard(one, other) >= threshold`, in whole numbers: it is asked of every pair."""
    shared = len(one & other)
    return shared * threshold.denominator >= (len(one) + len(other) - shared) * threshold.numerator
