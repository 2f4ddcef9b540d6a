"""Score, label and confidence are functions of the sources, in any order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.running.hangs import given_up_after
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Confidence, Decision, Evidence, Label, Tier
from vouchgate.ingest.claims.likeness import Neighbours
from vouchgate.ingest.claims.source import (
    EXCERPT_CHARACTERS,
    LINKS,
    Found,
    Judged,
    Judgement,
    NotJudged,
    Standing,
)
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.pipeline import examine, inspect
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.reputation import extend_reputation
from vouchgate.ingest.scoring.score import (
    claim_score,
    confidence_of,
    freshness_of,
    is_official,
    label_of,
    source_score,
)
from vouchgate.ingest.scoring.sites import site_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
YEAR = timedelta(days=365.25)
DAY = timedelta(days=1)

BALANCED = load_policy()

# The sites of the examples, listed.
KNOWN = ("a.example", "b.example", "c.example", "github.com/alice", "alice.github.io", "bob.github.io")


def policy_with(**changes: object) -> Policy:
    # Not a copy: a copy would keep what was worked out for the original.
    return Policy.model_validate(BALANCED.model_dump() | changes)


STRICT = policy_with(preset="strict", confidence_floor=0.8, spoken_of="queue")
HOUSE = policy_with(
    official_domains=(
        "Docs.corp.example",
        "github.com/corp",
        "gitlab.com/corp",
        "github.com",
        "substack.com",
        "wiki",
    ),
    banned_domains=("spam.example", "github.com/mallory"),
)
PRESETS = pytest.mark.parametrize("policy", [BALANCED, STRICT], ids=["balanced", "strict"])

TEXTS = (
    "The cache keeps a page for thirty minutes, and a page that changed is read again on the next request for it.",
    "Pages stay cached for half an hour; whoever needs them sooner can ask for a fresh copy with a header of its own.",
    "Thirty minutes after it was stored an entry is dropped from memory, unless somebody has pinned it before that.",
)


def judged(contains: str, attributed: str = "yes") -> Judged:
    return Judged.model_validate({"model": "m", "contains": contains, "attributed": attributed})


def page(url: str, **more: object) -> Found:
    """A page that says something of its own."""
    facts = {
        "citation": given_citation(CitationType.URL, "https://cited.example/1"),
        "source_id": url,
        "standing": Standing.IN_FORCE,
        "detail": "There.",
        "site": site_of(url),
        "digest": f"digest of {url}",
        "excerpt": f"What {url} says. " + TEXTS[0],
    }
    return Found.model_validate(facts | more)


def record(**more: object) -> Found:
    """The grounding repository's own."""
    facts = {
        "citation": given_citation(CitationType.ADR, "ADR-1"),
        "source_id": "ADR-001",
        "standing": Standing.IN_FORCE,
        "detail": "There.",
        "official": True,
    }
    return Found.model_validate(facts | more)


JUDGEMENTS: st.SearchStrategy[Judgement | None] = st.none() | st.one_of(
    st.builds(judged, st.sampled_from(["yes", "partly", "no"]), st.sampled_from(["yes", "no"])),
    st.just(NotJudged(model="m", code="timeout", detail="Late.")),
)
# Aware and naive, far and near, past and future.
DATES = st.none() | st.datetimes() | st.datetimes(timezones=st.just(UTC))
URLS = (
    "https://a.example/1",
    "https://www.a.example/2",
    "https://b.example/1",
    "https://www.nature.com/x",
    "https://bit.ly/x",
    "https://github.com/corp/x",
    "https://github.com/mallory/x",
    "https://corp.github.io/x",
    "https://docs.corp.example/x",
    "https://spam.example/x",
    "http://localhost/x",
)
pages = st.builds(
    page,
    st.sampled_from(URLS),
    standing=st.sampled_from([Standing.IN_FORCE] * 6 + list(Standing)),
    digest=st.sampled_from(["", "1", "2", "3", "4"]),
    excerpt=st.sampled_from(["", "Thirty minutes.", *TEXTS, f"{TEXTS[0]} {TEXTS[1]}"]),
    links=st.sets(st.sampled_from([site_of(url) for url in URLS]), max_size=2).map(
        lambda s: tuple(sorted(s))
    ),
    dated=DATES,
    judgement=JUDGEMENTS,
)
sources = pages | st.builds(record, standing=st.sampled_from(Standing))
policies = st.sampled_from([BALANCED, STRICT, HOUSE])


@given(st.lists(sources, max_size=5), policies, st.randoms(use_true_random=False))
def test_order_of_sources_never_matters(found: list[Found], policy: Policy, random: object) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert claim_score(found, policy, NOW) == claim_score(shuffled, policy, NOW)
    assert label_of(found, policy) is label_of(shuffled, policy)


@given(st.lists(sources, max_size=4), sources, policies)
def test_one_more_source_never_raises_the_score_and_never_takes_a_fact_back(
    found: list[Found], more: Found, policy: Policy
) -> None:
    before, after = claim_score(found, policy, NOW), claim_score([*found, more], policy, NOW)
    assert after is not None
    assert before is None or after <= before
    if label_of(found, policy) is Label.FACT:
        assert label_of([*found, more], policy) is Label.FACT


@given(sources, policies)
def test_the_same_source_gives_the_same_score_and_is_never_two(source: Found, policy: Policy) -> None:
    score = source_score(source, policy, NOW)
    assert 0 <= score <= 1
    again = Found.model_validate_json(source.model_dump_json())
    assert source_score(again, policy, NOW) == score
    assert label_of([source, again], policy) is label_of([source], policy)


@given(sources, policies)
def test_what_supports_nothing_scores_nothing(source: Found, policy: Policy) -> None:
    gone = source.model_copy(update={"standing": Standing.SUPERSEDED})
    banned = source.model_copy(update={"site": "spam.example"})
    for policy_with_ban, worthless in ((policy, gone), (HOUSE, banned)):
        assert source_score(worthless, policy_with_ban, NOW) == 0.0
        assert label_of([worthless], policy_with_ban) is Label.INFERENCE


# Points of the table of design section 3: reputation, freshness, judgement, and what comes of them.
@pytest.mark.parametrize(
    ("url", "age", "judgement", "score"),
    [
        ("https://www.nature.com/x", None, None, (0.30 + 0.25 + 0.12) / 0.75),
        ("https://docs.python.org/3/", 0.5 * YEAR, None, (0.30 + 0.225 + 0.20) / 0.75),
        ("https://docs.python.org/3/", 9 * YEAR, None, (0.30 + 0.225 + 0.04) / 0.75),
        ("https://en.wikipedia.org/wiki/X", 2 * YEAR, None, (0.30 + 0.175 + 0.16) / 0.75),
        ("https://a.example/", None, None, (0.30 + 0.125 + 0.12) / 0.75),
        ("https://a.example/", 4 * YEAR, None, (0.30 + 0.125 + 0.10) / 0.75),
        ("https://github.com/alice/x", None, None, (0.30 + 0.125 + 0.12) / 0.75),
        ("https://bit.ly/x", 9 * YEAR, None, (0.30 + 0.05 + 0.04) / 0.75),
        ("https://a.example/", None, judged("yes"), 0.30 + 0.125 + 0.12 + 0.25),
        ("https://a.example/", None, judged("partly"), 0.30 + 0.125 + 0.12 + 0.125),
        ("https://a.example/", None, judged("no"), 0.30 + 0.125 + 0.12),
        ("https://a.example/", None, judged("yes", "no"), 0.30 + 0.125 + 0.12),
        (
            "https://a.example/",
            None,
            NotJudged(model="m", code="budget", detail="None left."),
            (0.30 + 0.125 + 0.12) / 0.75,
        ),
    ],
)
def test_the_sum(url: str, age: timedelta | None, judgement: Judgement | None, score: float) -> None:
    source = page(url, dated=None if age is None else NOW - age, judgement=judgement)
    assert source_score(source, BALANCED, NOW) == pytest.approx(score, abs=1e-6)


def test_the_grounding_repository_scores_one_at_any_age() -> None:
    assert source_score(record(dated=NOW - 40 * YEAR), STRICT, NOW) == 1.0
    judge_only = policy_with(score={"reachable": 0, "reputation": 0, "freshness": 0, "judgement": 1})
    assert source_score(record(), judge_only, NOW) == 0.0
    assert source_score(page("https://a.example/"), judge_only, NOW) == 0.0
    assert source_score(page("https://a.example/", judgement=judged("yes")), judge_only, NOW) == 1.0


@pytest.mark.parametrize(
    ("age", "freshness"),
    [
        (timedelta(0), 1.0),
        (YEAR - DAY, 1.0),
        (YEAR, 0.8),
        (3 * YEAR - DAY, 0.8),
        (3 * YEAR, 0.5),
        (5 * YEAR - DAY, 0.5),
        (5 * YEAR, 0.2),
        (900 * YEAR, 0.2),
        (-DAY, 0.6),
    ],
)
def test_freshness(age: timedelta, freshness: float) -> None:
    assert freshness_of(NOW - age, NOW) == freshness
    assert freshness_of((NOW - age).replace(tzinfo=None), NOW) == freshness


@given(DATES, st.datetimes(timezones=st.just(UTC)))
def test_any_date_has_a_freshness(dated: datetime | None, at: datetime) -> None:
    assert freshness_of(dated, at) in {1.0, 0.8, 0.6, 0.5, 0.2}


@PRESETS
@given(source=pages, dated=DATES)
def test_freshness_alone_never_fails_a_source(policy: Policy, source: Found, dated: datetime | None) -> None:
    undated = source_score(source.model_copy(update={"dated": None}), policy, NOW)
    with_date = source_score(source.model_copy(update={"dated": dated}), policy, NOW)
    if undated >= policy.confidence_floor:
        assert with_date >= policy.confidence_floor


def test_an_old_page_of_a_good_house_gets_the_strict_floor_and_no_more() -> None:
    old = page("https://docs.python.org/2/", dated=NOW - 9 * YEAR)
    assert source_score(old, STRICT, NOW) == 0.8
    assert source_score(old, BALANCED, NOW) < 0.8
    assert source_score(page("https://a.example/", dated=NOW - 9 * YEAR), STRICT, NOW) < 0.8


@pytest.mark.parametrize(
    ("url", "official"),
    [
        ("https://docs.corp.example/x", True),
        ("https://v2.docs.corp.example/x", True),
        ("https://www.corp.example/x", False),
        ("https://docs.corp.example.evil.example/", False),
        ("https://github.com/corp/x", True),
        ("https://github.com/alice/x", False),
        ("https://docs.github.com/en", True),
        ("https://alice.substack.com/p/1", False),
        ("https://wiki/page", True),
        ("https://a.wiki/page", False),
        # what visitors write is not its word
        ("https://docs.corp.example/forum/1", False),
        ("https://discuss.docs.corp.example/1", False),
        ("https://wiki.docs.corp.example/wiki/x", True),
        ("https://github.com/corp/x/issues/1", False),
        ("https://github.com/corp/x/pull/1", False),
        ("https://github.com/corp/x/%69ssues/1", False),
        ("https://github.com/corp//x/blob/../issues/1", False),
        ("https://github.com/corp/x/discussions/1", False),
        ("https://gitlab.com/corp/x/-/merge_requests/1", False),
        ("https://gitlab.com/corp/x/-/blob/main/x.md", True),
        ("https://github.com/orgs/corp/discussions/1", False),
        ("https://github.com/corp/x/wiki/Home", False),
        ("https://api.github.com/repos/corp/x/issues/1/comments", False),
        ("https://github.com/corp/x/compare/main...mallory:main", False),
        ("https://github.com/corp/forum/blob/main/issues/x.md", True),
        # GitHub shows commits of forks as those of the repository
        ("https://github.com/corp/x/blob/v1.2/x.md", True),
        ("https://github.com/corp/x/blob/0a1b2c3/x.md", False),
        ("https://github.com/corp/x/commit/1234567", False),
        ("https://github.com/corp/x/tree/pull/1/head", False),
        ("https://github.com/corp/x/actions/runs/1", False),
        ("https://raw.githubusercontent.com/corp/x/refs/heads/main/x.md", True),
        ("https://raw.githubusercontent.com/corp/x/0a1b2c3d4e/x.md", False),
        ("https://raw.githubusercontent.com/corp/x/refs/pull/1/head/x.md", False),
        ("https://cdn.jsdelivr.net/gh/corp/x@0a1b2c3d4e/x.md", False),
        ("https://api.github.com/repos/corp/x/contents/x.md?ref=0a1b2c3d4e", False),
    ],
)
def test_official_domains(url: str, official: bool) -> None:
    source = page(url)
    assert is_official(source, HOUSE) is official
    assert label_of([source], HOUSE) is (Label.FACT if official else Label.INFERENCE)
    assert not is_official(source, BALANCED)


def test_an_official_domain_is_worth_a_primary_one() -> None:
    known, unknown = page("https://docs.corp.example/"), page("https://www.corp.example/")
    assert source_score(known, HOUSE, NOW) == pytest.approx((0.30 + 0.225 + 0.12) / 0.75, abs=1e-6)
    assert source_score(unknown, HOUSE, NOW) < source_score(known, HOUSE, NOW)


LISTED = policy_with(
    reputation=extend_reputation(
        BALANCED.reputation.model_dump(), {"domains": dict.fromkeys(KNOWN, "secondary")}
    )
)
ONE = page("https://a.example/1", digest="1", excerpt=TEXTS[0])
TWO = page("https://b.example/1", digest="2", excerpt=TEXTS[1])


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({}, True),
        # a site of its own
        ({"site": "a.example"}, False),
        ({"site": ""}, False),
        ({"site": "a.example/~bob"}, False),
        ({"site": "docs.a.example"}, False),
        ({"site": "bit.ly", "source_id": "https://bit.ly/1"}, False),
        # a text of its own
        ({"digest": "1"}, False),
        ({"digest": ""}, False),
        ({"excerpt": TEXTS[0]}, False),
        ({"excerpt": ""}, False),
        (
            {"excerpt": f"{TEXTS[1]} As they wrote: “{TEXTS[0].upper().replace(' ', chr(10))}” We agree."},
            False,
        ),
        ({"excerpt": "Thirty minutes at most."}, True),
        ({"excerpt": "For thirty minutes"}, False),
        # leaning on nobody
        ({"links": ("a.example",)}, False),
        ({"links": ("c.example",)}, True),
        ({"links": tuple(f"{n:04}.example" for n in range(LINKS))}, False),
        ({"links": tuple(f"{n:04}.example" for n in range(LINKS - 1))}, True),
        # supporting the claim at all
        ({"standing": Standing.DEPRECATED}, False),
        ({"judgement": judged("no")}, False),
        ({"judgement": judged("yes", "no")}, False),
        ({"judgement": judged("partly")}, True),
        ({"judgement": NotJudged(model="m", code="timeout", detail="Late.")}, True),
    ],
)
def test_two_sources_make_a_fact_when_they_are_two(changes: dict[str, object], fact: bool) -> None:
    other = TWO.model_copy(update=changes)
    for pair in permutations([ONE, other]):
        assert label_of(pair, LISTED) is (Label.FACT if fact else Label.INFERENCE)
    assert label_of([ONE], LISTED) is label_of([other], LISTED) is Label.INFERENCE


def test_an_account_and_its_pages_elsewhere_are_one() -> None:
    repository = page("https://github.com/alice/x", digest="1", excerpt=TEXTS[0])
    pages_of = page("https://alice.github.io/x", digest="2", excerpt=TEXTS[1])
    stranger = page("https://bob.github.io/x", digest="2", excerpt=TEXTS[1])
    leans = stranger.model_copy(update={"links": ("alice.github.io",)})
    for other, label in ((pages_of, Label.INFERENCE), (stranger, Label.FACT), (leans, Label.INFERENCE)):
        assert label_of([repository, other], LISTED) is label


def test_among_many_one_independent_pair_is_enough() -> None:
    mirror = page("https://c.example/copy", digest="1", excerpt=TEXTS[0])
    assert label_of([ONE, mirror], LISTED) is Label.INFERENCE
    for order in permutations([ONE, mirror, TWO]):
        assert label_of(order, LISTED) is Label.FACT


def test_two_that_nobody_listed_make_no_fact_but_in_a_decision_of_before() -> None:
    assert label_of([ONE, TWO], BALANCED) is Label.INFERENCE
    assert label_of([ONE, TWO], BALANCED, of_listed=False) is Label.FACT


def shares_text(one: str, other: str) -> bool:
    """Whether two listed publishers with these texts count as one voice."""
    pair = [ONE.model_copy(update={"excerpt": one}), TWO.model_copy(update={"excerpt": other})]
    return label_of(pair, LISTED) is Label.INFERENCE


@given(st.lists(st.sampled_from("abcdefgh"), max_size=40), st.lists(st.sampled_from("xyz"), max_size=40))
def test_a_text_shares_with_whatever_holds_it(inner: list[str], around: list[str]) -> None:
    half = len(around) // 2
    outer = [*around[:half], *inner, *around[half:]]
    assert shares_text(" ".join(inner), " ".join(outer))
    assert shares_text(" ".join(outer), ", ".join(inner).upper())
    assert shares_text(" ".join(inner), " ".join(around)) is (not inner or not around)


def test_comparing_texts_is_linear() -> None:
    """Texts a hundred times as long as an excerpt: a quadratic way would take minutes for them."""
    size = EXCERPT_CHARACTERS * 100
    with given_up_after(6):
        shares_text("ab " * size, "ab " * (size - 1) + "cd")


@pytest.mark.parametrize("banned", [False, True])
def test_a_source_that_a_check_holds_against_the_claim_does_not_label_it(banned: bool) -> None:
    policy = policy_with(
        official_domains=("docs.example",), banned_domains=("docs.example",) if banned else ()
    )
    claim = evidence(Label.INFERENCE, None).claim
    sent = claim.model_copy(
        update={"content": "The cache is emptied at midnight, see https://docs.example/cache"}
    )
    inspected = inspect(sent, HedgeDetector(policy.lexicon))
    says = "The cache is emptied at midnight, when nobody works."
    read = page("https://docs.example/cache", citation=inspected.cited()[0], excerpt=says)
    made = examine(inspected, [read], policy, NOW).knowing(dedup=Neighbours()).decide()
    if banned:
        assert (made.label, made.confidence_score, made.source_id) == (Label.INFERENCE, None, None)
    else:
        assert (made.label, made.source_id) == (Label.FACT, "https://docs.example/cache")
        assert made.confidence_score == source_score(read, policy, NOW)


def test_confidence() -> None:
    assert confidence_of(Label.FACT, 0.6, vouched=True) is Confidence.HIGH
    assert confidence_of(Label.INFERENCE, 0.8, vouched=False) is Confidence.HIGH
    assert confidence_of(Label.INFERENCE, 0.79, vouched=True) is Confidence.MEDIUM
    assert confidence_of(Label.INFERENCE, None, vouched=True) is Confidence.MEDIUM
    assert confidence_of(Label.INFERENCE, None, vouched=False) is Confidence.LOW


def evidence(label: Label, source_id: str | None, *found: Found) -> Evidence:
    claim = Claim(
        content="Per ADR-1 it holds.",
        memory_type=MemoryType.FACT,
        asserted_source=Source.USER,
        source=Source.USER,
        owner_id="ada",
    )
    return Evidence(
        claim=claim,
        capture_time=NOW,
        confidence=Confidence.HIGH,
        confidence_score=1.0,
        source_id=source_id,
        sources=found,
        dedup=Neighbours(),
        validity_horizon=None,
        label=label,
        metadata={},
    )


def decision(label: Label, source_id: str | None) -> Decision:
    return Decision(
        tier=Tier.STORED,
        rule="stated",
        reason="Stated by its source",
        findings=(),
        decided_by=(),
        confidence=Confidence.HIGH,
        confidence_score=1.0,
        label=label,
        source_id=source_id,
        policy_digest="",
    )


def test_a_fact_without_evidence_ids_cannot_be_built() -> None:
    assert evidence(Label.FACT, "ADR-001", record()).label is Label.FACT
    assert decision(Label.FACT, "ADR-001").label is Label.FACT
    assert evidence(Label.INFERENCE, None).source_id is decision(Label.INFERENCE, None).source_id is None
    for source_id, found in ((None, ()), (None, (record(),)), ("ADR-001", ()), ("ADR-002", (record(),))):
        with pytest.raises(ValidationError, match="FACT needs the id"):
            evidence(Label.FACT, source_id, *found)
    for source_id in (None, ""):
        with pytest.raises(ValidationError, match="FACT needs the id"):
            decision(Label.FACT, source_id)
