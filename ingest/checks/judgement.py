"""What the optional judge said of a source, and the entailment model, as findings. The pure half: both come as facts.

Nothing here can speak for a claim: the best finding is a PASS beside those of the rules, which all have to pass too,
and every other answer stands in the claim's way. (What a policy lets be lifted: `ingest.checks.statements`.)
"""

from __future__ import annotations

from vouchgate.ingest.check import Check, ReadClaim, shorten
from vouchgate.ingest.claims.claim import Finding, Verdict
from vouchgate.ingest.claims.source import Found, Inference, Judged, NotJudged

CHECK = "judge"


def judge(found: Found) -> Finding | None:
    """One finding on what the judge said of this source; None when it was not to be asked about it.

    No answer that counts is UNKNOWN: with a judge in the policy, its being down lets nothing pass.
    """
    match found.judgement:
        case None:
            return None
        case Judged(contains="yes", attributed="yes"):
            message = f"The judge finds the claim in {found.name}."
            return _finding(found, found.judgement, Verdict.PASS, "judge_supports", message)
        case Judged() as said:
            return _finding(found, said, Verdict.DOUBT, "judge_doubts", _doubt(said, found.name))
        case NotJudged() as none:
            detail = f"The judge said nothing of {found.source_id}." if found.private else none.detail
            return _finding(found, none, Verdict.UNKNOWN, "judge_unavailable", detail)


def infer(read: ReadClaim, found: Found) -> Finding | None:
    """One finding on what the entailment model made of this source; None when it was not to be asked about it."""
    said, shown = found.inference, f"To the entailment model {shorten(found.name)}"
    if said is None:
        return None
    if said.code:
        return _finding(found, said, Verdict.UNKNOWN, "entailment_unknown", said.detail)
    for one in sorted(found.held or (), key=lambda one: one.relation != "contradiction"):
        if one.relation not in (None, "entailment"):
            does = "says otherwise than" if one.relation == "contradiction" else "does not say"
            message = f"{shown} {does} “{shorten(read.claim.content[one.start : one.end])}”."
            return _finding(found, said, Verdict.DOUBT, "not_entailed", message)
    return _finding(found, said, Verdict.PASS, "entailed", f"{shown} says what the claim says.")


def _doubt(said: Judged, name: str) -> str:
    if said.contains == "no":
        return f"The judge does not find the claim in {name}."
    part = "the claim" if said.contains == "yes" else "a part of the claim only"
    if said.attributed == "no":
        return f"The judge finds {part} in {name}, and not as what {name} says itself."
    return f"The judge finds {part} in {name}."


def _finding(
    found: Found, said: Judged | NotJudged | Inference, verdict: Verdict, code: str, message: str
) -> Finding:
    facts = said.model_dump(mode="json", exclude={"kind", "detail", "took_ms"})
    return Finding(
        check="entailment" if isinstance(said, Inference) else CHECK,
        verdict=verdict,
        code=code,
        message=message,
        citation=found.citation,
        facts=facts,
        took_ms=None if isinstance(said, Inference) else said.took_ms,
    )


CHECKS = (
    Check(
        name=CHECK,
        title="Judge",
        codes={
            "judge_supports": Verdict.PASS,
            "judge_doubts": Verdict.DOUBT,
            "judge_unavailable": Verdict.UNKNOWN,
        },
        order=51,
        judge_source=lambda read, found: judge(found),
    ),
    Check(
        name="entailment",
        title="Entailment model",
        codes={
            "entailed": Verdict.PASS,
            "not_entailed": Verdict.DOUBT,
            "entailment_unknown": Verdict.UNKNOWN,
        },
        order=52,
        judge_source=infer,
    ),
)
