"""Is the claim one that was sent before, again and again? (ADR-0018)

An echo is a claim that comes back: an agent stores what it read in its own notes, or several agents repeat one
another, and each time it looks better founded. Submissions are counted by a key that ignores how a claim is worded
in the small: case, order, endings of words and words like "the". Storage counts (`storage.claims.echoes`); this is
the pure half: the key, and the finding that follows from the count.
"""

from __future__ import annotations

import hashlib

from vouchgate.ingest.check import Check
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.likeness import EchoFacts
from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.terms import term_key
from vouchgate.ingest.policy import EchoPolicy

CHECK = "echo"
CODE = "echo"
_VERSION = "1"  # of the key; keys of two versions never meet
MOST_NAMED = 20  # agents that are kept by name


def _dropped() -> frozenset[str]:
    raw = read_data("echo.toml")
    return frozenset(raw["dropped"])


# A constant read once from the package's own data file; the key must not depend on a policy.
_DROPPED = _dropped()


def echo_key(words: frozenset[str], memory_type: str) -> str:
    """The key that a claim shares with what repeats it: 32 hex characters, from which no word can be read.

    `words` are those of `ingest.language.words.tokens`. Two claims share it that differ in the order of words, in
    endings (retry, retries) and in small words; not when any other word differs, a number least of all.
    """
    kept = {term_key(word) for word in words if word not in _DROPPED} or words
    text = "\n".join([_VERSION, memory_type, *sorted(kept)])
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def judge(facts: EchoFacts | None, policy: EchoPolicy) -> Finding | None:
    """The finding of the check, DOUBT `echo`, for a claim that came as often as the policy says; else None."""
    if facts is None or facts.count < policy.count:
        return None
    agents = len(facts.agents)
    who = "1 agent" if agents == 1 else f"{agents}{' or more' if agents >= MOST_NAMED else ''} agents"
    return Finding(
        check=CHECK,
        verdict=Verdict.DOUBT,
        code=CODE,
        message=f"Sent {facts.count} times since {facts.first_seen:%Y-%m-%d} by {who}.",
        facts={"count": facts.count, "agents": agents, "sources": [source.value for source in facts.sources]},
    )


CHECKS = (
    Check(
        name=CHECK,
        title="Sent before",
        codes={CODE: Verdict.DOUBT},
        order=80,
        judge_facts=lambda known: judge(known.facts.echo, known.policy.echo),
        needs=frozenset({"echo"}),
        of_removals=True,
    ),
)
