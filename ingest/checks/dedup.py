"""Has this owner stored this before, and with the same values?

This is the pure half: `ingest.dedup.compare` holds texts against each other, and the index that finds candidates is
`storage.dedup.index`, with keys from `ingest.dedup.signature`.
"""

from __future__ import annotations

from fractions import Fraction

from vouchgate.ingest.check import Check, Known
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.likeness import DedupFacts, DedupUnavailable, ItemKind, Neighbour, Neighbours
from vouchgate.ingest.dedup import paraphrase
from vouchgate.ingest.dedup.compare import Comparison, Comparisons, compare, contradicting
from vouchgate.ingest.language.value_words import ValueWords

CHECK = paraphrase.CHECK

UNIQUE = Finding(
    check=CHECK, verdict=Verdict.PASS, code="unique", message="This owner has stored nothing like it."
)


def judge(
    content: str,
    facts: DedupFacts,
    threshold: Fraction,
    words: ValueWords,
    known: Comparisons | None = None,
) -> tuple[Finding, Comparison | None]:
    """One finding, and the comparison it rests on. `known` is what was compared before of the same claim.

    In order: duplicate of a stored memory, duplicate of a pending item, conflict with either. A repeat of
    a waiting conflict is that item again, not a second one (ADR-0005). A neighbour below the threshold is there
    because it contradicts the claim, and is a conflict, too; evidence of before has none.
    """
    if isinstance(facts, DedupUnavailable):
        return _finding(Verdict.UNKNOWN, "dedup_unavailable", facts.detail), None
    if not facts.items and facts.complete:
        return UNIQUE, None
    near = compare(content, facts.items, threshold, words, known)
    same = [c for c in near if not c.changed]
    for kind, verdict, code, message in (
        (ItemKind.MEMORY, Verdict.FAIL, "duplicate", "This owner has stored the same claim already."),
        (ItemKind.PENDING, Verdict.DOUBT, "already_pending", "The same claim waits for its owner already."),
    ):
        for comparison in same:
            if comparison.neighbour.kind is kind:
                return _finding(verdict, code, message, comparison), comparison
    near = near or contradicting(content, facts.items, threshold, words, known)
    if near:
        shown = ", ".join(near[0].changed[:8])
        message = f"Nearly the same as an earlier claim, but these words differ or changed places: {shown}."
        return _finding(Verdict.DOUBT, "conflict", message, near[0]), near[0]
    if not facts.complete:
        message = "So many earlier claims share a part with this one that not all of them were compared."
        return _finding(Verdict.UNKNOWN, "dedup_crowded", message), None
    return UNIQUE, None


def _finding(verdict: Verdict, code: str, message: str, found: Comparison | None = None) -> Finding:
    if found is None:
        return Finding(check=CHECK, verdict=verdict, code=code, message=message)
    return Finding(
        check=CHECK,
        verdict=verdict,
        code=code,
        message=message,
        facts={
            "id": found.neighbour.id,
            "kind": found.neighbour.kind.value,
            "similarity": round(float(found.similarity), 4),
            "changed": list(found.changed[:32]),
        },
    )


def _judge_facts(known: Known) -> Finding:
    policy, facts = known.policy, known.facts
    finding, _ = judge(known.claim.content, facts.dedup, policy.threshold, policy.values, known.known)
    return paraphrase.weigh(finding, facts.paraphrases, policy)


def _nearest(known: Known, finding: Finding) -> Neighbour | None:
    """The earlier claim that a finding of over the threshold names."""
    items = known.facts.dedup.items if isinstance(known.facts.dedup, Neighbours) else ()
    wanted = (finding.facts.get("kind"), finding.facts.get("id"))
    return next((item for item in items if (item.kind.value, item.id) == wanted), None)


CHECKS = (
    Check(
        name=CHECK,
        title="Earlier claims",
        codes={
            "unique": Verdict.PASS,
            "duplicate": Verdict.FAIL,
            "already_pending": Verdict.DOUBT,
            "conflict": Verdict.DOUBT,
            "dedup_unavailable": Verdict.UNKNOWN,
            "dedup_crowded": Verdict.UNKNOWN,
            paraphrase.CODE: Verdict.DOUBT,
            paraphrase.UNAVAILABLE: Verdict.UNKNOWN,
        },
        order=60,
        judge_facts=_judge_facts,
        needs=frozenset({"dedup", "paraphrases"}),
        nearest=_nearest,
    ),
)
