"""A decision from the history of a search: the outcome goes by weights, the label by voices. A FACT is what an official
source states, or two voices do, and nobody refutes."""

from __future__ import annotations

from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.corroboration.history import (
    AgentResult,
    Final,
    NeedMoreSearch,
    Outcome,
    ResultSource,
    SearchHistory,
    SearchTask,
)
from vouchgate.ingest.corroboration.proof import proof
from vouchgate.ingest.corroboration.queries import plan
from vouchgate.ingest.corroboration.votes import Verdict, Weighed, weigh
from vouchgate.ingest.policy import CorroborationPolicy, Policy


def decide_from_history(
    task: SearchTask, history: SearchHistory, attempts: int, max_attempts: int, policy: Policy
) -> Final | NeedMoreSearch:
    """What a history says of a claim, or what to look for next. `attempts` of `max_attempts` are spent. Pure; raises
    ValueError for counts below zero."""
    if attempts < 0 or max_attempts < 0:
        raise ValueError("attempts are counted from 0")
    weighed = weigh(task, history.hits)
    outcome, why = _outcome(weighed, policy.corroboration)
    if outcome is None and attempts < max_attempts:
        tried = {(one.path, one.query) for one in history.attempts}
        tried |= {(one.path, one.query) for one in history.failures}
        for path, query in plan(task.claim, policy.corroboration.paths):
            if (path, query) not in tried:
                return NeedMoreSearch(path=path, query=query, why=why)
    return Final(result=_result(task, history, weighed, policy))


def conclude(task: SearchTask, history: SearchHistory, policy: Policy) -> AgentResult:
    """What a history says of a claim when nothing more is looked for; INVALID when that is not enough."""
    return _result(task, history, weigh(task, history.hits), policy)


def _outcome(weighed: Weighed, rules: CorroborationPolicy) -> tuple[Outcome | None, str]:
    support, refute = weighed.support, weighed.refute
    if support >= rules.oppose and refute >= rules.oppose:
        return None, f"support weighs {support} tenths and refutation {refute}: both are strong"
    for outcome, weight, voices, against in (
        (Outcome.TRUE, support, weighed.supporting, refute),
        (Outcome.FALSE, refute, weighed.refuting, support),
    ):
        if weight >= rules.enough and len(voices) >= rules.voices and against < rules.oppose:
            return outcome, f"{len(voices)} independent sources weigh {weight} tenths"
    count = len(weighed.supporting) + len(weighed.refuting)
    weights = f"support weighs {support} and refutation {refute} of {rules.enough} tenths"
    return None, f"{weights}, from {count} voices"


def _result(task: SearchTask, history: SearchHistory, weighed: Weighed, policy: Policy) -> AgentResult:
    outcome, why = _outcome(weighed, policy.corroboration)
    verdict = Verdict(outcome or Outcome.INVALID, why, weighed.evidence(policy.corroboration))
    telling = [hit for voice in (*weighed.supporting, *weighed.refuting) for hit in voice]
    return AgentResult(
        outcome=verdict.outcome,
        label=verdict.label,
        proof=proof(task, history, weighed, verdict),
        evidence=tuple(hit.id for hit in verdict.evidence),
        sources=tuple(
            ResultSource(url=hit.url, title=hit.title, pub_date=hit.published, excerpt=hit.quotation)
            for hit in telling
            if hit.stance in (Stance.STATES, Stance.REFUTES)
        ),
        debug={
            "why": verdict.why,
            "support": weighed.support,
            "refute": weighed.refute,
            "supporting_voices": len(weighed.supporting),
            "refuting_voices": len(weighed.refuting),
            "not_counted": len(weighed.apart),
        },
    )
