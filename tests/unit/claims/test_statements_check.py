"""A claim is as good as its worst statement, whichever of its sources covers which."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from vouchgate.ingest.checks import statements
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import Claim, Finding, MemoryType, Source, Verdict
from vouchgate.ingest.claims.decision import Decision, Label, Tier
from vouchgate.ingest.claims.likeness import Neighbours
from vouchgate.ingest.claims.source import Found, SourceReading, Standing, Unreachable
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import Examined, examine, inspect
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.sites import site_of

POLICY = load_policy()
STRICT = Policy.model_validate(POLICY.model_dump() | {"spoken_of": "queue", "unlisted_pages": "queue"})
DETECTOR = HedgeDetector(POLICY.lexicon)
NOW = datetime(2026, 5, 4, tzinfo=UTC)
RELAY = "The relay keeps mail for 30 days. Postfix sends it on every 15 minutes."
LEASE = "A lease lasts two hours, and workers restart at noon."
BLOG = "https://blog.example.net/relay"


def looked(content: str, *texts: str | None, policy: Policy = POLICY) -> Examined:
    """The claim with its sources in the order in which it names them; None for one that cannot be read."""
    claim = Claim(
        content=content,
        memory_type=MemoryType.FACT,
        asserted_source=Source.AI_SYNTHESIS,
        source=Source.AI_SYNTHESIS,
        owner_id="ada",
    )
    inspected = inspect(claim, DETECTOR)
    readings: list[SourceReading] = []
    for cited, text in zip(inspected.cited(), texts, strict=True):
        if text is None:
            readings.append(Unreachable(citation=cited, code="time_out", detail="No answer."))
            continue
        page = cited.value.startswith("http")
        site = site_of(cited.value) if page else ""
        readings.append(
            Found(
                citation=cited,
                source_id=cited.value,
                standing=Standing.IN_FORCE,
                detail="There.",
                text=text,
                site=site,
                official=not page,
            )
        )
    return examine(inspected, readings, policy, NOW)


def found(content: str, *texts: str | None, policy: Policy = POLICY) -> Finding | None:
    return looked(content, *texts, policy=policy).findings.one(statements.CHECK)


def code(content: str, *texts: str | None, policy: Policy = POLICY) -> str | None:
    said = found(content, *texts, policy=policy)
    return None if said is None else said.code


def decided(content: str, *texts: str | None, policy: Policy = POLICY) -> Decision:
    return looked(content, *texts, policy=policy).knowing(dedup=Neighbours()).decide()


def test_each_source_may_cover_a_statement_of_its_own() -> None:
    both = "The relay keeps mail for 30 days (ADR-1). A lease lasts two hours (ADR-2)."
    made = decided(both, RELAY, LEASE)
    assert (made.rule, made.tier) == ("stated", Tier.STORED)
    assert decided(both, LEASE, RELAY).rule == "refuted"  # the citation beside a sentence has to speak of it
    worse = both + " Backups leave the country every night (ADR-2)."
    assert code(worse, RELAY, LEASE) == "uncovered"
    assert decided(worse, RELAY, LEASE).tier is Tier.QUEUED


def test_two_sources_that_state_half_each_make_no_fact() -> None:
    both = "The relay keeps mail for 30 days (ADR-1). A lease lasts two hours (ADR-2)."
    assert decided(both, RELAY, LEASE).label is Label.INFERENCE
    assert decided("The relay keeps mail for 30 days (ADR-1).", RELAY).label is Label.FACT


def test_what_no_source_covers_is_named_with_its_words() -> None:
    claim = "Per ADR-1 the relay keeps mail for 30 days. Backups leave for Iceland every night."
    said = found(claim, RELAY)
    assert said is not None
    assert (said.verdict, said.code) == (Verdict.DOUBT, "uncovered")
    assert [claim[span.start : span.end] for span in said.spans] == ["Backups leave for Iceland every night."]
    lacking = said.facts["lacking"]
    assert isinstance(lacking, list)
    assert "Iceland" in lacking
    assert "“Iceland”" in said.message
    assert "“Backups leave for Iceland every night.” is not covered" in said.message
    made = decided(claim, RELAY)
    assert (made.rule, made.tier, made.reason) == ("uncovered", Tier.QUEUED, said.message)


@pytest.mark.parametrize(
    ("claim", "word"),
    [
        ("Per ADR-1 the relay keeps mail for 40 days.", "40"),
        ("Per ADR-1 the relay keeps all mail for 30 days.", "all"),
        ("Per ADR-1 only the relay keeps mail for 30 days.", "only"),
        ("Per ADR-1 the relay in Iceland keeps mail for 30 days.", "Iceland"),
        ("Per ADR-1 the relay keeps mail in `keep_for_long` for 30 days.", "keep_for_long"),
    ],
)
def test_a_naming_word_that_no_source_has_uncovers_its_statement(claim: str, word: str) -> None:
    made = decided(claim, RELAY)
    assert made.tier is Tier.QUEUED
    said = found(claim, RELAY)
    if said is not None:  # else the source says another thing in its place, and refutes it
        assert said.code == "uncovered"
        assert f"“{word}”" in said.message


@pytest.mark.parametrize(
    "claim",
    [
        "Fixed in ADR-1.",
        "See ADR-1.",
        "See https://docs.python.org/3/ for details.",
        "The relay is described in ADR-1.",
        "Postfix was added in ADR-1.",
    ],
)
def test_a_claim_that_only_points_is_stored_for_what_it_points_at(claim: str) -> None:
    made = decided(claim, RELAY)
    assert (made.rule, made.tier, made.label) == ("pointer", Tier.STORED, Label.INFERENCE)


@pytest.mark.parametrize(
    "claim",
    [
        "See ADR-1, never ADR-2.",
        "See ADR-1. The relay bills Mallory.",
        "ADR-1 is wrong.",
        "Keys are read on each request (ADR-1).",
        "Postfix was closed in a merge request, see ADR-1.",
    ],
)
def test_what_says_more_than_where_to_look_is_no_pointer(claim: str) -> None:
    texts = (RELAY, LEASE) if "ADR-2" in claim else (RELAY,)
    assert code(claim, *texts) != "pointer"
    assert decided(claim, *texts).rule != "pointer"


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        ("Postfix keeps mail for 30 days, says ADR-1.", "The source says this of something else"),
        ("The relay reliably keeps mail for 30 days (ADR-1).", "no source has “reliably”"),
    ],
)
def test_what_is_not_covered_is_told_with_the_reason(claim: str, told: str) -> None:
    said = found(claim, RELAY)
    assert said is not None
    assert (said.code, told in said.message) == ("uncovered", True), said.message


YARD = (
    "The yard moves all spare masts, ropes and sails of the club from the old shed into the new hall. The crane has a "
    "saw.\n\nPaint is kept in May.\n\nAlva sails."
)
MASTS = "The yard moves the spare masts, ropes and sails of the club from the old shed into the new hall"


@pytest.mark.parametrize(
    ("claim", "reached"),
    [
        # A word of another place, and nothing of this one in its stead.
        (f"In May the {MASTS[4:]} (ADR-1).", True),
        (f"{MASTS} with a saw (ADR-1).", False),  # which is added to all that the place says
        (f"{MASTS} of Alva (ADR-1).", False),  # so is a name
        (f"Alva {MASTS[9:]} (ADR-1).", False),  # which stands where the place has something else
        (f"{MASTS}, which has a red roof (ADR-1).", False),
        ("Alva has masts (ADR-1).", False),
    ],
)
def test_a_place_with_nearly_all_of_a_statement_speaks_of_it(claim: str, reached: bool) -> None:
    assert code(claim, YARD) == ("spoken_of" if reached else "uncovered")


def test_a_word_that_a_source_has_elsewhere_is_not_told_as_missing() -> None:
    source = "The relay keeps mail for 30 days. Workers restart at noon. No caller waits."
    for claim, told in (
        ("Callers of the relay wait at noon (ADR-1).", "what the claim cites, which has “relay” elsewhere."),
        ("Callers of the gate wait at noon (ADR-1).", "what the claim cites: no source has “gate”."),
    ):
        said = found(claim, source)
        assert said is not None
        assert (said.code, said.message.endswith(told)) == ("uncovered", True), said.message


def test_what_a_source_asks_covers_nothing() -> None:
    made = decided(
        "Per ADR-1 the relay keeps mail for 30 days.", "Does the relay keep mail for 30 days? Hardly."
    )
    assert (made.rule, made.tier) == ("uncovered", Tier.QUEUED)


def test_what_is_spoken_of_waits_where_the_policy_says_so() -> None:
    claim = "Per ADR-1 the relay lets go of mail after 30 days."
    for policy, rule in ((POLICY, "spoken_of"), (STRICT, "ungrounded")):
        made = decided(claim, RELAY, policy=policy)
        assert (code(claim, RELAY, policy=policy), made.rule) == ("spoken_of", rule)
        assert made.label is Label.INFERENCE


def test_a_page_of_nobody_that_is_listed_states_but_does_not_only_speak() -> None:
    claim = f"The relay keeps mail for 30 days, says {BLOG}."
    assert decided(claim, RELAY).rule == "stated"
    assert decided(claim, RELAY).label is Label.INFERENCE
    made = decided(claim, RELAY, policy=STRICT)
    assert (code(claim, RELAY, policy=STRICT), made.rule, made.tier) == (
        "unlisted",
        "ungrounded",
        Tier.QUEUED,
    )
    # Beside it a source that may vouch alone says the same.
    assert code(f"{claim[:-1]} and ADR-1.", RELAY, RELAY, policy=STRICT) == "stated"
    spoken = f"The relay keeps the mail of customers for 30 days and sends it by Postfix afterwards ({BLOG})."
    assert code(spoken, RELAY) == "uncovered"


def test_nothing_is_said_before_every_source_could_be_read() -> None:
    both = "The relay keeps mail for 30 days (ADR-1). A lease lasts two hours (ADR-2)."
    assert code(both, RELAY, None) is None
    assert decided(both, RELAY, None).rule == "citation_unknown"
    foreign = (
        "Das Relais behält die Post für 30 Tage, und der Rest wird nicht mehr gelesen, wenn es Abend ist."
    )
    assert code(both, RELAY, foreign) is None
    assert decided(both, RELAY, foreign).tier is Tier.QUEUED
    assert code("The relay keeps mail for 30 days.") is None  # it cites nothing


def test_a_text_that_says_the_opposite_covers_nothing() -> None:
    claim = "Per ADR-1 the queue blocks callers."
    made = decided(claim, "The queue does not block callers.")
    assert (made.tier, made.rule in ("uncovered", "refuted")) == (Tier.QUEUED, True)
