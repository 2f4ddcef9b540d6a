"""Trust that is measured: how often people said that claims were right decides how many more they are asked about, and
whether what a source only speaks of is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.claims import NOW, policy
from tests.rechecking import Bench, bench
from tests.reviews import queue_of, reviewer
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.trust import TrackRecord
from vouchgate.ingest.claims.waiting import SpotVerdict
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.policy import Policy, SpotChecks
from vouchgate.ingest.scoring.sampling import WINDOW, interval, is_sampled, rate_for, rate_of
from vouchgate.review.answers import ApprovalRefused, Approved, Rejected
from vouchgate.review.trust import spot_checks
from vouchgate.review.trust.spot_checks import Drawn
from vouchgate.storage.claims import sayings
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store

PLACES = ("Oslo", "Lima", "Bergen", "Quito", "Porto", "Malmo", "Turin", "Ghent")


def measured(**over: object) -> Policy:
    """A policy that stores what is spoken of while two of two are shown to be right, and asks about all of it."""
    rules = {"spoken_of_floor": 0.3, "spot_checks": {"rate": 1.0}} | over
    return Policy.model_validate(policy().model_dump() | rules)


def records_of(here: Bench) -> None:
    """A record about each place."""
    served = "Reports of {} are served from read replicas, one in each region."
    says = "# ADR-{}: {}\n\nStatus: Accepted\n\n## Decision\n\n" + served + "\n"
    files = {f"docs/adrs/{n:04}-r.md": says.format(n, name, name) for n, name in enumerate(PLACES, 10)}
    here.repository.commit("Records", files)


def send(here: Bench, number: int) -> ValidationResult:
    """A claim of which its record speaks in other words."""
    return here.send(
        f"In each region, replicas take the load of {PLACES[number]} reports (ADR-{number + 10})."
    )


def same_again(here: Bench, answer: ValidationResult) -> bool:
    """Whether the decision follows from its evidence alone."""
    return replay(answer, here.policy, HedgeDetector(here.policy.lexicon)) == ()


@pytest.mark.parametrize(
    ("right", "wrong", "low", "high"),
    [(0, 0, 0.0, 1.0), (16, 0, 0.806, 1.0), (15, 0, 0.796, 1.0), (0, 5, 0.0, 0.434), (80, 20, 0.711, 0.867)],
)
def test_the_interval_is_that_of_wilson(right: int, wrong: int, low: float, high: float) -> None:
    """Figures from the formula in Wilson (1927), by hand."""
    assert interval(TrackRecord(right=right, wrong=wrong)) == pytest.approx((low, high), abs=5e-4)


def test_who_is_new_or_was_wrong_is_asked_about_more() -> None:
    said = SpotChecks(rate=0.05, new_rate=0.25)
    known, new, doubtful = (
        TrackRecord(right=40),
        TrackRecord(right=15),
        TrackRecord(right=40, wrong=6),
    )
    assert [rate_for(said, [known, one]) for one in (known, new, doubtful)] == [0.05, 0.25, 0.25]
    assert rate_for(SpotChecks(rate=0.3, new_rate=0.25), [new]) == 0.3
    assert rate_for(SpotChecks(rate=0.05), [new]) == 0.05


def test_what_is_spoken_of_is_stored_only_while_its_agent_is_shown_to_be_right(
    store: Store, tmp_path: Path
) -> None:
    with bench(store, tmp_path, measured()) as here:
        records_of(here)
        queue = queue_of(store)
        first = [send(here, number) for number in range(3)]
        assert [(one.rule, one.tier) for one in first] == [("spoken_of", "tier_2")] * 3
        assert "not shown to be right often enough" in first[0].reason
        for one in first[:2]:
            assert isinstance(queue.approve(reviewer(), str(one.queue_id), version=1, now=NOW), Approved)
        stored = send(here, 3)
        assert (stored.rule, stored.tier) == ("spoken_of", "tier_1")
        assert stored.evidence.track is not None
        assert stored.evidence.track.agent == TrackRecord(right=2)
        forged = stored.evidence.model_copy(update={"track": None})
        assert not same_again(here, stored.model_copy(update={"evidence": forged}))
        drawn = spot_checks.answer(
            store, reviewer(), str(stored.memory_id), SpotVerdict.WRONG, NOW, policy=measured()
        )
        assert isinstance(drawn, Drawn)
        assert (drawn.check.agent, drawn.check.kind, drawn.check.publisher) == ("agent-1", "adr", None)
        after = send(here, 4)
        assert (after.rule, after.tier) == ("spoken_of", "tier_2")
        spot_checks.answer(
            store, reviewer(), str(stored.memory_id), SpotVerdict.RIGHT, NOW, policy=measured()
        )
        again = send(here, 5)
        assert again.tier == "tier_1"
        assert isinstance(
            queue.reject(reviewer(), str(first[2].queue_id), version=1, reason="Not true", now=NOW), Rejected
        )
        assert send(here, 6).tier == "tier_1"  # three of four
        for each in (*first, stored, after, again):
            assert same_again(here, each)
        found = {
            (one.owner_id, one.of, one.name): (one.right, one.wrong)
            for one in spot_checks.records(store, reviewer())
        }
        assert found == {("ann", "agent", "agent-1"): (3, 1), ("ann", "kind", "adr"): (1, 0)}
        assert spot_checks.records(store, reviewer("bob")) == []
        behind = reviewer().model_copy(update={"id": "agent-1"})
        barred = spot_checks.answer(
            store, behind, str(stored.memory_id), SpotVerdict.CANNOT_TELL, NOW, policy=measured()
        )
        assert isinstance(barred, ApprovalRefused)


@pytest.mark.on("sqlite")
def test_what_is_drawn_follows_from_log_evidence_and_policy(store: Store, tmp_path: Path) -> None:
    under = measured(spoken_of_floor=0.0, spot_checks={"rate": 0.5, "new_rate": 1.0, "known_at": 0.2})
    with bench(store, tmp_path, under) as here:
        records_of(here)
        answers = [send(here, number) for number in range(4)]
        first = next(one.memory.id for one in spot_checks.search(store, reviewer(), NOW, limit=9))
        for verdict in (SpotVerdict.CANNOT_TELL, SpotVerdict.RIGHT):
            spot_checks.answer(store, reviewer(), first, verdict, NOW, policy=measured())
        answers += [send(here, number) for number in range(4, 8)]
    assert [one.evidence.track is None for one in answers] == [True] * 4 + [False] * 4
    with store.read() as connection:
        entries = log.events(connection, frozenset({"ann"}), after=None, limit=200)
    digests = {entry.subject_id: entry.content_digest for entry in entries}
    rates = [rate_of(one.evidence, under, by_owner=False) for one in answers]
    assert rates == [1.0] * 4 + [0.5] * 4  # one of one right shows more than 0.2
    expected = {
        one.memory_id
        for one, rate in zip(answers, rates, strict=True)
        if is_sampled(digests[str(one.decision_id)], rate)
    }
    listed = {one.memory.id for one in spot_checks.search(store, reviewer(), NOW, limit=9)}
    assert listed | {first} == expected


@pytest.mark.on("sqlite")
def test_the_latest_verdicts_count() -> None:
    said = [(NOW.replace(microsecond=n), {"agent": "a", "kind": None}, n >= 50) for n in range(WINDOW + 50)]
    assert sayings.count_latest(said) == {("agent", "a"): TrackRecord(right=WINDOW)}
