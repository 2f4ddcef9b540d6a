"""`vouchgate compare`: what is a claim to an earlier memory? The dedup check's rules, under the built-in policy. No
settings, no I/O but the lines."""

from __future__ import annotations

from typing import Any

from vouchgate.cli.lines.answering import Answer, answer_lines
from vouchgate.importing.lines import BadLine, Line, text_fields
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.relation import relation
from vouchgate.ingest.policy import Policy


def run(path: str) -> int:
    """Answers every line in order; 1 when any line was bad."""
    policy = load_policy()
    return answer_lines(path, lambda line: _answer(line, policy))


def _answer(line: Line, policy: Policy) -> Answer:
    texts = text_fields(line, "earlier", "claim")
    return (
        texts if isinstance(texts, BadLine) else relation_fields(line.fields.get("id"), *texts, policy=policy)
    )


def relation_fields(identifier: Any, earlier: str, claim: str, *, policy: Policy) -> dict[str, Any]:
    """What the rules say of two texts, as it is written out. `changed` is what differs, in a conflict: the words as
    written, the claim's first."""
    found = relation(earlier, claim, policy.threshold, policy.values)
    return {
        "id": identifier,
        "relation": found.relation.value,
        "similarity": round(float(found.similarity), 4),
        "changed": list(found.changed),
    }
