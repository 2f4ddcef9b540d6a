"""From claim and facts to answer, and back again from the answer alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source, Verdict
from vouchgate.ingest.claims.decision import Confidence, Label, RejectedBefore, Tier, ValidationResult
from vouchgate.ingest.claims.likeness import (
    DedupFacts,
    DedupUnavailable,
    EchoFacts,
    ItemKind,
    Neighbour,
    Neighbours,
)
from vouchgate.ingest.claims.source import (
    EXCERPT_CHARACTERS,
    Found,
    Missing,
    SourceReading,
    Standing,
    Unreachable,
)
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import Inspected, examine, focus, inspect, replay
from vouchgate.ingest.policy import Policy

POLICY = load_policy()
DETECTOR = HedgeDetector(POLICY.lexicon)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOTHING = Neighbours()
ECHO = EchoFacts(count=9, first_seen=NOW, first_by="a", agents=("a", "b"), sources=(Source.USER,))


def policy_with(**changes: object) -> Policy:
    # Not a copy: a copy would keep the digest and the threshold that were worked out for the original.
    return Policy.model_validate(POLICY.model_dump() | changes)


def claim(content: str, source: Source = Source.AI_SYNTHESIS, **more: object) -> Claim:
    base = {
        "content": content,
        "memory_type": MemoryType.FACT,
        "asserted_source": source,
        "source": source,
        "owner_id": "ada",
    }
    return Claim.model_validate(base | more)


def found(
    inspected: Inspected,
    standing: Standing = Standing.IN_FORCE,
    excerpt: str = "Sessions live in the gateway, not in the services behind it.",
) -> list[SourceReading]:
    return [
        Found(
            citation=c,
            source_id=c.key,
            standing=standing,
            detail=f"{c.value} is there.",
            excerpt=excerpt,
            official=True,
        )
        for c in inspected.cited()
    ]


def answer(
    sent: Claim, readings: list[SourceReading], dedup: DedupFacts = NOTHING, policy: Policy = POLICY
) -> ValidationResult:
    examined = examine(inspect(sent, DETECTOR), readings, policy, NOW).knowing(dedup=dedup)
    return examined.answer(examined.decide(), decision_id="dec_1", memory_id=None, queue_id=None, took_ms=1.0)


def test_verified_citation_is_a_fact_held_with_high_confidence() -> None:
    sent = claim("Per ADR-0007 sessions live in the gateway")
    result = answer(sent, found(inspect(sent, DETECTOR)))
    assert (result.tier, result.rule, result.approved) == (Tier.STORED, "stated", True)
    assert result.evidence.label is Label.FACT
    assert result.evidence.confidence is Confidence.HIGH
    assert result.evidence.source_id == "adr:7"
    assert "citation_verified: ADR-0007" in result.checks_passed
    assert result.checks_failed == ()


def test_a_thing_cited_twice_is_read_once() -> None:
    sent = claim("ADR-0007 says it, and adr 7 is in force")
    inspected = inspect(sent, DETECTOR)
    assert len(inspected.citations) == 2
    assert [c.key for c in inspected.cited()] == ["adr:7"]


def test_citations_given_beside_the_text_count_the_same() -> None:
    given_beside = (given_citation(CitationType.ADR, "ADR-999"),)
    sent = claim("Sessions live in the gateway", citations=given_beside)
    cited = inspect(sent, DETECTOR).cited()
    result = answer(sent, [Missing(citation=cited[0], detail="There is no ADR-999.")])
    assert (result.tier, result.rule, result.reason) == (Tier.QUEUED, "refuted", "There is no ADR-999.")


def test_a_reading_that_went_missing_is_an_error_not_a_pass() -> None:
    inspected = inspect(claim("Per ADR-0007 and ADR-0008 it holds"), DETECTOR)
    with pytest.raises(ValueError, match="ADR-0008"):
        examine(inspected, found(inspected)[:1], POLICY, NOW)


def test_failed_checks_name_the_words() -> None:
    result = answer(claim("Perhaps the cache is cold"), [])
    assert any(line.startswith("hedge_words_detected: ") for line in result.checks_failed)
    assert "no_citation" in result.checks_failed
    assert "unique" in result.checks_passed


def test_conflict_names_the_memory_and_pending_conflicts_do_not() -> None:
    text = "the export job writes 5 lines for every finished invoice of the day into the ledger"
    for kind, expected in ((ItemKind.MEMORY, "x1"), (ItemKind.PENDING, None)):
        near = Neighbours(items=(Neighbour(kind=kind, id="x1", content=text),))
        policy = policy_with(duplicate_threshold=0.8)
        result = answer(claim(text.replace("5", "6")), [], near, policy)
        assert (result.rule, result.conflicting_memory_id) == ("conflict", expected)
        assert result.similarity_score is not None
        assert result.similarity_score >= 0.8


READERS = st.sampled_from(["found", "missing", "unreachable", *[s.value for s in Standing]])
TEXTS = st.sampled_from(
    [
        "Sessions live in the gateway",
        "Per ADR-0007 sessions live in the gateway",
        "Perhaps ADR-0007 and commit 4f2a91c disagree",
        "I think it is fixed by 4f2a91c",
        "See https://example.com/a and #12",
    ]
)


@given(TEXTS, st.sampled_from(Source), st.sampled_from(MemoryType), READERS, st.booleans())
def test_every_answer_can_be_made_again_from_itself(
    text: str, source: Source, kind: MemoryType, reader: str, index_works: bool
) -> None:
    sent = claim(text, source, memory_type=kind)
    cited = inspect(sent, DETECTOR).cited()
    readings: list[SourceReading]
    if reader == "missing":
        readings = [Missing(citation=c, detail="Not there.") for c in cited]
    elif reader == "unreachable":
        readings = [Unreachable(citation=c, code="timeout", detail="Too slow.") for c in cited]
    else:
        standing = Standing.IN_FORCE if reader == "found" else Standing(reader)
        readings = found(inspect(sent, DETECTOR), standing)
    dedup: DedupFacts = NOTHING if index_works else DedupUnavailable(detail="rebuilding")
    stored = answer(sent, readings, dedup)
    again = ValidationResult.model_validate_json(stored.model_dump_json())
    assert again == stored
    assert replay(again, POLICY, DETECTOR) == ()
    told = RejectedBefore(queue_id="rev_1", reason="A tale.", rejected_at=NOW)  # shown, and decides nothing
    assert replay(again.model_copy(update={"rejected_before": told}), POLICY, DETECTOR) == ()
    if stored.tier is Tier.STORED and source is Source.AI_SYNTHESIS:
        assert cited
        assert all(isinstance(r, Found) and r.standing is Standing.IN_FORCE for r in readings)
    if not index_works:
        assert stored.tier is not Tier.STORED


def test_what_was_foreseen_holds_for_a_new_claim_alone() -> None:
    examined = examine(inspect(claim("Sessions live in the gateway", Source.USER), DETECTOR), [], POLICY, NOW)
    again = Neighbour(kind=ItemKind.MEMORY, id="mem_1", content="Sessions live in the gateway")
    foreseen, tier = examined.foreseeing()
    assert tier is Tier.STORED
    assert foreseen.knowing(dedup=Neighbours()).decide() is foreseen.knowing(dedup=NOTHING).decide()
    for facts in (
        {},
        {"dedup": Neighbours(items=(again,))},
        {"dedup": NOTHING},
        {"dedup": NOTHING, "echo": ECHO},
    ):
        assert foreseen.knowing(**facts).decide() == examined.knowing(**facts).decide()
    assert foreseen.decide().tier is Tier.QUEUED  # earlier claims were not looked up


def test_replay_under_another_policy_says_what_differs() -> None:
    sent = claim("Per ADR-0007 sessions live in the gateway")
    stored = answer(sent, found(inspect(sent, DETECTOR)))
    strict = policy_with(auto_approve_ai_synthesis=False)
    differences = replay(stored, strict, DETECTOR)
    assert any(line.startswith("tier: was tier_1, is now tier_2") for line in differences)


# Of the claim, then what a source has to say of it: all of it, hardly anything, nothing, no text at all.
PORTS = "Public endpoints carry their version in the path, says ADR-0007."


@pytest.mark.parametrize(
    ("excerpt", "code", "balanced", "strict"),
    [
        ("Public endpoints carry their version in the path.", "support_states", "stated", "stated"),
        (
            "Versions of public endpoints, as partners asked: they stand in the path.",
            "support_on_topic",
            "spoken_of",
            "ungrounded",
        ),
        ("The version stands in the path.", "support_unclear", "uncovered", "uncovered"),
        ("Tomatoes want six hours of sun a day, and water.", "support_off_topic", "refuted", "refuted"),
        ("", "support_unreadable", "ungrounded", "ungrounded"),
    ],
)
def test_what_a_source_says_of_the_claim_decides(excerpt: str, code: str, balanced: str, strict: str) -> None:
    sent = claim(PORTS)
    readings = found(inspect(sent, DETECTOR), excerpt=excerpt)
    for policy, rule in ((POLICY, balanced), (policy_with(spoken_of="queue"), strict)):
        stored = answer(sent, readings, policy=policy)
        assert code in {finding.code for finding in stored.findings}
        assert (stored.rule, stored.tier is Tier.STORED) == (rule, rule in ("stated", "spoken_of"))
        # An official record makes a FACT only of what it is known to say.
        assert (stored.evidence.label is Label.FACT) == (code == "support_states")
        assert replay(stored, policy, DETECTOR) == ()


def test_a_check_that_breaks_down_passes_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    sent = claim(PORTS)
    inspected = inspect(sent, DETECTOR)
    readings = found(inspected, excerpt="Public endpoints carry their version in the path.")
    monkeypatch.setattr("vouchgate.ingest.checks.support.compare", breaks)
    stored = answer(sent, readings)
    assert (stored.rule, stored.tier) == ("citation_unknown", Tier.QUEUED)
    assert "support_failed" in {finding.code for finding in stored.findings}
    monkeypatch.undo()
    monkeypatch.setattr("vouchgate.ingest.support.passages.passages", breaks)
    readings = list(
        focus(inspected, [r.model_copy(update={"text": "Ports. " * 9, "excerpt": ""}) for r in readings])
    )
    assert answer(sent, readings).tier is Tier.QUEUED
    assert len(caplog.records) == 2


def test_a_granted_source_does_not_carry_a_citation_about_something_else() -> None:
    sent = claim(PORTS, Source.USER)
    inspected = inspect(sent, DETECTOR)
    assert answer(sent, found(inspected, excerpt="Tomatoes want six hours of sun a day.")).rule == "refuted"
    assert (
        answer(sent, found(inspected, excerpt="")).rule == "trusted_source"
    )  # that nobody could tell is no word against it


def test_only_what_bears_on_the_claim_is_kept_of_a_long_text() -> None:
    inspected = inspect(claim(PORTS), DETECTOR)
    filler = "Tomatoes want six hours of sun a day, and water in the morning. " * 400
    text = f"{filler}Public endpoints carry their version in the path. {filler}"
    (reading,) = focus(inspected, [r.model_copy(update={"text": text}) for r in found(inspected)])
    assert isinstance(reading, Found)
    assert "carry their version" in reading.excerpt
    assert (len(reading.excerpt) <= EXCERPT_CHARACTERS, reading.text, reading.cut) == (True, "", False)


def test_replay_sees_a_record_that_was_tampered_with() -> None:
    sent = claim("Sessions live in the gateway")
    stored = answer(sent, [])
    forged = stored.model_copy(update={"tier": Tier.STORED, "approved": True})
    assert any(line.startswith("tier:") for line in replay(forged, POLICY, DETECTOR))


@given(st.text())
def test_any_text_can_be_inspected(text: str) -> None:
    inspected = inspect(claim(text), DETECTOR)
    readings: list[SourceReading] = [
        Unreachable(citation=c, code="error", detail="Not asked.") for c in inspected.cited()
    ]
    decision = examine(inspected, readings, POLICY, NOW).knowing(dedup=NOTHING).decide()
    assert decision.tier is not Tier.STORED
    assert all(finding.verdict in Verdict for finding in decision.findings)
