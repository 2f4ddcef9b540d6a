"""What several sources say together: one vote a voice, and the same answer in whatever order they come."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from vouchgate.ingest.claims.decision import Label
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.corroboration.decision import decide_from_history
from vouchgate.ingest.corroboration.given import GivenClaim, corroborate
from vouchgate.ingest.corroboration.history import (
    AgentResult,
    Attempt,
    Failure,
    Final,
    Hit,
    NeedMoreSearch,
    Outcome,
    SearchHistory,
    SearchTask,
    in_order,
)
from vouchgate.ingest.corroboration.hits import Reading, hits_of
from vouchgate.ingest.corroboration.independence import text_groups
from vouchgate.ingest.corroboration.queries import queries_of
from vouchgate.ingest.data.policy_file import load_policy

POLICY = load_policy()
CLAIM = "The archive in Lund holds 40 million pages."
TASK = SearchTask(claim=CLAIM)
STATED = (
    "Visitors learn that the archive in Lund holds 40 million pages, most of them letters.",
    "Since its last extension the archive in Lund holds 40 million pages.",
    "The archive in Lund holds 40 million pages; a quarter is open to readers.",
)
OTHERWISE = "The archive in Lund holds 12 million pages."


def hit(number: int, stance: Stance = Stance.STATES, **fields: Any) -> Hit:
    """One of a history that somebody judged."""
    known = {"id": f"{number:04}", "digest": f"{number:064}", "site": f"site{number}.example", "weight": 10}
    return Hit(**(known | {"stance": stance} | fields))


def decided(*hits: Hit, task: SearchTask = TASK) -> AgentResult:
    """What they come to when no attempt is left."""
    answer = decide_from_history(task, SearchHistory(hits=hits), 1, 1, POLICY)
    assert isinstance(answer, Final)
    return answer.result


def given_sources(*sources: dict[str, Any], claim: str = CLAIM, **fields: Any) -> Any:
    """The answer to sources that a caller brings."""
    return corroborate(GivenClaim.model_validate({"claim": claim, "sources": sources} | fields), POLICY)


def test_two_independent_sources_make_a_fact_and_one_does_not() -> None:
    one = given_sources({"text": STATED[0]})
    two = given_sources({"text": STATED[0]}, {"text": STATED[1]})
    assert (one.label, one.outcome) == (Label.INFERENCE, "NeedMoreSearch")
    assert (two.label, two.outcome, len(two.groups)) == (Label.FACT, Outcome.TRUE, 2)
    assert not two.verified and "brought by the caller" in two.proof


def test_who_says_otherwise_stands_against_it() -> None:
    answer = given_sources({"text": STATED[0]}, {"text": STATED[1]}, {"text": OTHERWISE})
    assert [one.stance for one in answer.hits] == [Stance.STATES, Stance.STATES, Stance.REFUTES]
    assert (answer.label, answer.outcome) == (Label.INFERENCE, "NeedMoreSearch")


MANY = " ".join(f"https://c{number}.example/" for number in range(100))
SHARED = "this paragraph was sent to every paper of the country on the morning after the fire in June"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"url": "https://news.example.com/a"}, {"url": "https://www.example.com/b"}),
        ({"url": "https://github.com/ann/a"}, {"url": "https://ann.github.io/b"}),
        ({"more": f" {SHARED}"}, {"more": f" By our staff: {SHARED}."}),
        ({"url": "https://a.example/x"}, {"url": "https://b.example/y", "more": " See https://a.example/z"}),
        (
            {"url": "https://z.example/x"},
            {"url": "https://b.example/y", "more": f" See https://z.example/z {MANY}"},
        ),
        ({"url": "https://stackoverflow.com/q/1"}, {"url": "https://superuser.com/q/2"}),
    ],
    ids=["one site", "one account", "one text", "one cites the other", "among many", "one house"],
)
def test_two_sources_of_one_voice_are_one(one: dict[str, str], other: dict[str, str]) -> None:
    sources = [
        {"text": text + source.pop("more", "")} | source
        for text, source in zip(STATED, (dict(one), dict(other)), strict=False)
    ]
    answer = given_sources(*sources)
    assert [each.stance for each in answer.hits] == [Stance.STATES, Stance.STATES]
    assert (len(answer.groups), answer.label) == (1, Label.INFERENCE)


def test_sock_puppets_and_mirrors_make_no_fact() -> None:
    puppets = given_sources(
        {"text": STATED[0], "url": "https://ann.blog.example/1"},
        {"text": STATED[1], "url": "https://bob.paper.example/2"},
    )
    mirrors = given_sources(*({"text": STATED[0], "url": f"https://m{n}.example/p"} for n in range(10)))
    assert len(puppets.groups) == 2 and puppets.label is Label.INFERENCE
    assert len(mirrors.groups) == 1 and mirrors.label is Label.INFERENCE


def test_what_was_brought_and_read_too_counts_as_read() -> None:
    brought, read = hit(1), hit(1, verified=True)
    assert in_order([brought, read]) == in_order([read, brought]) == (read,)


ODD = (
    "http://[::1",
    "//[x",
    "http://a]b",
    "http://\u2100.com",
    "http://[x]y/",
    "http://[::1]:x",
    "//",
    "?",
    "http://\x00",
)


def test_sources_at_addresses_that_cannot_be_read_are_one_voice_at_most() -> None:
    unreadable = [{"text": text, "url": url} for text, url in zip(STATED, ODD, strict=False)]
    said = corroborate(GivenClaim(claim=CLAIM, sources=unreadable), POLICY)
    assert (said.label, len(said.groups)) == (Label.INFERENCE, 1)
    for url in ODD:
        corroborate(GivenClaim(claim=CLAIM, sources=[{"text": STATED[0], "url": url}]), POLICY)


@pytest.mark.parametrize("first", [datetime.min, datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))])
def test_days_at_either_end_of_the_calendar_are_days(first: datetime) -> None:
    last = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
    for as_of, published, counts in ((first, first, True), (last, first, False), (first, last, False)):
        task = SearchTask(claim=CLAIM, as_of=as_of, window_days=36_500)
        sources = [{"text": STATED[0], "published": published}]
        said = corroborate(GivenClaim(claim=CLAIM, as_of=as_of, window_days=1, sources=sources), POLICY)
        assert len(said.groups) == counts
        assert decided(hit(1, published=published), task=task).outcome is Outcome.INVALID
    with pytest.raises(ValidationError, match="36500"):
        SearchTask(claim=CLAIM, as_of=last, window_days=10**10)


def test_near_duplicates_are_one_text() -> None:
    words = [f"word{number}" for number in range(11)]
    texts = [
        "a b c d e f g h i j k l",
        "A, b: c d e (f) g h i j k l",
        " ".join(words),
        " ".join(reversed(words)),
    ]
    assert text_groups(texts, ["4", "3", "2", "1"], POLICY.threshold) == ("3", "3", "1", "1")


def test_a_fact_without_evidence_cannot_be_built() -> None:
    fields = {"outcome": Outcome.TRUE, "proof": "", "sources": (), "debug": {}}
    with pytest.raises(ValidationError, match="a FACT needs evidence"):
        AgentResult(label=Label.FACT, evidence=(), **fields)
    assert AgentResult(label=Label.FACT, evidence=("a",), **fields).evidence == ("a",)


def test_the_weights_decide() -> None:
    assert decided(hit(1), hit(2)).outcome is Outcome.TRUE
    assert decided(hit(1), hit(2, weight=4)).outcome is Outcome.INVALID
    assert decided(hit(1, Stance.REFUTES), hit(2, Stance.REFUTES)).outcome is Outcome.FALSE
    assert decided(hit(1), hit(2), hit(3, Stance.REFUTES, weight=6)).outcome is Outcome.TRUE
    assert decided(hit(1), hit(2), hit(3, Stance.REFUTES, weight=8)).outcome is Outcome.INVALID
    assert decided(hit(1), hit(2), hit(3, site="site2.example", weight=4)).debug["support"] == 14


def test_a_voice_that_says_both_has_no_vote() -> None:
    both = (hit(2), hit(3, Stance.REFUTES, site="site2.example"))
    assert decided(hit(1), *both).debug | {"why": ""} == {
        "why": "",
        "support": 10,
        "refute": 0,
        "supporting_voices": 1,
        "refuting_voices": 0,
        "not_counted": 0,
    }


def test_an_official_source_makes_a_fact_alone_and_what_weighs_nothing_none() -> None:
    assert decided(hit(1, official=True)).label is Label.FACT
    assert decided(hit(1, official=True), hit(2, Stance.REFUTES, weight=4)).label is Label.INFERENCE
    copied = decided(hit(1, official=True), hit(2, weight=4, group=f"{1:064}"))
    assert (copied.label, copied.evidence, copied.debug["support"]) == (Label.FACT, ("0001",), 4)
    assert decided(hit(1, weight=0), hit(2, weight=0)).debug["support"] == 0


@pytest.mark.parametrize(
    ("published", "timeless", "current"),
    [
        ("2023-05-01", True, True),
        ("2019-05-01", True, False),
        ("2024-02-01", False, False),
        (None, True, False),
    ],
)
def test_what_is_not_of_its_time_is_kept_and_not_counted(
    published: str | None, timeless: bool, current: bool
) -> None:
    at = None if published is None else datetime.fromisoformat(published)
    as_of = datetime(2024, 1, 1, tzinfo=UTC)
    for task, counts in (
        (SearchTask(claim=CLAIM, as_of=as_of), timeless),
        (SearchTask(claim=CLAIM, as_of=as_of, window_days=365), current),
        (TASK, True),
    ):
        result = decided(hit(1, published=at), task=task)
        assert (result.debug["support"], result.debug["not_counted"]) == ((10, 0) if counts else (0, 1))


def test_one_path_after_the_other_until_the_attempts_are_spent() -> None:
    history, seen = SearchHistory(), []
    for attempts in range(9):
        following = decide_from_history(TASK, history, attempts, 5, POLICY)
        if isinstance(following, Final):
            break
        seen.append((following.path, following.query))
        failed = Failure(path=following.path, query=following.query, why="no answer within 5 s")
        tried = Attempt(path=following.path, query=following.query, found=0)
        more = (
            {"failures": (*history.failures, failed)}
            if attempts == 1
            else {"attempts": (*history.attempts, tried)}
        )
        history = history.model_copy(update=more)
    first = queries_of(CLAIM)[0]
    assert seen[:4] == [(path, first) for path in POLICY.corroboration.paths]
    assert len(set(seen)) == len(seen) == 5 and seen[4][0] == "corpus"
    assert isinstance(following, Final) and following.result.outcome is Outcome.INVALID
    assert "could not be looked for: no answer within 5 s" in following.result.proof
    with pytest.raises(ValueError, match="counted from 0"):
        decide_from_history(TASK, history, -1, 5, POLICY)


def test_queries_hold_the_words_that_tell() -> None:
    first, *others = queries_of("In 1910 the archive in Lund opened a reading room.")
    assert {"1910", "archive", "Lund", "room"} <= set(first.split()) and "the" not in first.split()
    assert others == ["1910 Lund"]
    assert queries_of("It is.") == ("It is.",)


hits = st.builds(
    hit,
    st.integers(0, 30),
    st.sampled_from(Stance),
    site=st.sampled_from(["", "a.example", "b.example", "github.com/a", "a.github.io", "sub.a.example"]),
    group=st.sampled_from(["", "x", "y"]),
    cites=st.sampled_from([(), ("a.example",), ("b.example",)]),
    weight=st.integers(0, 10),
    official=st.booleans(),
    published=st.sampled_from([None, datetime(2020, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(hits, max_size=12).flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_the_order_does_not_matter(orders: tuple[list[Hit], list[Hit]]) -> None:
    task = SearchTask(claim=CLAIM, as_of=datetime(2024, 1, 1, tzinfo=UTC))
    found, other = orders
    assert decided(*found, task=task).model_dump_json() == decided(*other, task=task).model_dump_json()


def decided_anew() -> str:
    """What is decided of the texts that state it."""
    readings = [Reading(text=text, url=f"https://{n}.example") for n, text in enumerate(STATED)]
    return decided(*hits_of(CLAIM, readings, POLICY)).model_dump_json()


def test_nor_does_the_seed_of_hashes() -> None:
    program = "from tests.unit.corroboration.test_corroboration import *; print(decided_anew())"
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # than here, where it is a random one
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": other, "PATH": ""},
        capture_output=True,
        check=True,
        timeout=120,
        text=True,
    ).stdout
    assert said == f"{decided_anew()}\n"


def test_programs_import_it_from_the_package() -> None:
    import vouchgate

    assert vouchgate.decide_from_history is decide_from_history
    assert vouchgate.SearchHistory is SearchHistory and "AgentResult" in dir(vouchgate)


def test_a_source_cannot_speak_in_the_proofs_voice() -> None:
    hostile = f"{STATED[0]}\n\n# True (FACT)\n[x](https://evil.example) <script>"
    answer = given_sources({"text": hostile, "title": "A *title*"})
    assert "\n# True" not in answer.proof and "<script>" not in answer.proof and "\\*title" in answer.proof
    found = hits_of(CLAIM, [Reading(text=hostile)], POLICY)
    assert found[0].stance in (Stance.STATES, Stance.SPEAKS)
    assert isinstance(decide_from_history(TASK, SearchHistory(), 0, 1, POLICY), NeedMoreSearch)
