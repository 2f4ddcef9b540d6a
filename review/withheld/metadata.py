"""What an agent is not handed although it is kept: metadata that nobody looked at.

No check holds `metadata` against anything. It is kept for auditors, shown to reviewers, and given to agents with a
memory that its owner approved, metadata and all. This is a view, made when something is handed to an agent.
"""

from __future__ import annotations

from vouchgate.ingest.claims.decision import Evidence, ValidationResult
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Principal, Role

_MARK = '"metadata":{"'  # as it is written in stored decisions, when there is some


def memory_for(principal: Principal, memory: Memory) -> Memory:
    """A memory as this principal may read it; the same object when nothing is withheld."""
    if principal.role is not Role.AGENT or memory.approved_by is not None or not memory.metadata:
        return memory
    return memory.model_copy(update={"metadata": {}})


def evidence_for(principal: Principal, evidence: Evidence, memory: Memory) -> Evidence:
    """The evidence of a memory, likewise."""
    if principal.role is not Role.AGENT or memory.approved_by is not None:
        return evidence
    return _without(evidence)


def json_for(principal: Principal, stored: str) -> str:
    """A stored decision as this principal may read it: the same text when nothing is withheld. A decision approves
    nothing, so an agent gets none of its metadata."""
    if principal.role is not Role.AGENT or _MARK not in stored:
        return stored
    answer = ValidationResult.model_validate_json(stored)
    return answer.model_copy(update={"evidence": _without(answer.evidence)}).model_dump_json()


def _without(evidence: Evidence) -> Evidence:
    claim = evidence.claim.model_copy(update={"metadata": {}})
    return evidence.model_copy(update={"metadata": {}, "claim": claim})
