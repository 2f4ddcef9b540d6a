"""The phases of a question after the world was asked, each by itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.harvest.research import (
    MOST_CLAIMS,
    Normalized,
    Recording,
    Reply,
    answer,
    corroborate,
    distinct,
    normalize,
    render,
    score,
)
from vouchgate.ingest.claims.decision import Label
from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.corroboration.history import Attempt, Failure
from vouchgate.ingest.corroboration.hits import Reading
from vouchgate.ingest.corroboration.queries import plan
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import Policy

POLICY = load_policy()
QUESTION = "How many pages does the archive in Lund hold?"
CLAIM = "The archive in Lund holds 40 million pages."
READ_AT = datetime(2026, 5, 4, 12, tzinfo=UTC)


def reading(text: str, url: str, **fields: Any) -> Reading:
    return Reading(text=text, url=url, verified=True, read_at=READ_AT, **fields)


BBC = reading(
    "Visitors learn that the archive in Lund holds 40 million pages, most of them letters.",
    "https://www.bbc.com/a",
)
REUTERS = reading(
    "Since its last extension the archive in Lund holds 40 million pages.", "https://www.reuters.com/b"
)
BLOG = reading("The archive in Lund was built by four brothers in 1911.", "https://blog.example/c")


def reply(*claims: tuple[str, str]) -> Reply:
    body = {"claims": [{"claim": claim, "quote": quote} for claim, quote in claims]}
    return Reply(content=json.dumps(body))


def test_plan_tries_the_best_query_along_every_path_first() -> None:
    steps = plan(QUESTION, ("corpus", "web_search.a"))
    assert [path for path, _ in steps[:2]] == ["corpus", "web_search.a"]
    assert steps[0][1] == steps[1][1] and "Lund" in steps[0][1]


def test_normalize_keeps_claims_whose_words_stand_in_the_text_and_counts_the_others() -> None:
    said = normalize(
        BBC,
        reply(
            (CLAIM, "the archive in Lund holds  40 MILLION pages"),
            ("Most are letters.", "most of them letters"),
            ("It holds 41 million.", "holds 41 million pages"),
            ("It is old.", "of"),
        ),
    )
    assert said.claims == (CLAIM, "Most are letters.")
    assert said.failures == ("2 of 4 claims were dropped: their quotations do not stand in the text",)


GOOD = reply((CLAIM, "archive in Lund")).content


@pytest.mark.parametrize(
    "content",
    [
        "",
        "No claims.",
        f"Here: {GOOD}",
        f"{GOOD}{GOOD}",
        "[]",
        "{}",
        '{"claims": null}',
        '{"claims": [], "claims": []}',
        '{"claims": [], "note": "x"}',
        '{"claims": [{"claim": "", "quote": "archive in Lund"}]}',
        '{"claims": [{"claim": 1, "quote": "archive in Lund"}]}',
        '{"claims": [{"claim": "\\ud800", "quote": "archive in Lund"}]}',
        "[" * 100_000,
    ],
)
def test_a_reply_of_another_form_is_a_gap_and_no_claim(content: str) -> None:
    why = "the model did not answer in the form it was asked for"
    assert normalize(BBC, Reply(content=content)) == Normalized((), (why,))
    research = answer(
        Recording(question=QUESTION, readings=(BBC,), replies=(Reply(content=content),)), POLICY
    )
    assert (research.facts, research.inferences) == ((), ())
    assert Failure(path="claims", query=BBC.url, why=why) in research.gaps


@given(st.text())
def test_any_reply_is_read_without_an_exception(content: str) -> None:
    assert normalize(BBC, Reply(content=content)).claims == ()


def test_corroborate_and_score_hold_each_claim_against_every_text() -> None:
    held = corroborate([CLAIM], [BBC, REUTERS, BLOG], POLICY)
    assert [hit.stance for hit in held[0][1]][:2] == [Stance.STATES, Stance.STATES]
    (finding,) = score(held, POLICY)
    assert (finding.claim, finding.result.label) == (CLAIM, Label.FACT)
    assert distinct([CLAIM, CLAIM.lower(), CLAIM.replace("40", "12")], POLICY) == (
        CLAIM,
        CLAIM.replace("40", "12"),
    )


BROTHERS = "The archive in Lund was built by four brothers in 1911."
RECORDING = Recording(
    question=QUESTION,
    readings=(BBC, REUTERS, BLOG),
    attempts=(Attempt(path="corpus", query="pages archive Lund", found=0),),
    failures=(Failure(path="web_search.a", query="Lund", why="no answer within 5 s"),),
    replies=(
        reply((CLAIM, "the archive in Lund holds 40 million pages")),
        Reply(failed="the model answered with HTTP status 500"),
        reply(
            (BROTHERS, "built by four brothers"), ("The archive in Lund is a ruin.", "built by four brothers")
        ),
    ),
)


def test_facts_inferences_and_gaps() -> None:
    research = answer(RECORDING, POLICY)
    assert [one.claim for one in research.facts] == [CLAIM]
    assert [one.claim for one in research.inferences] == [BROTHERS]
    assert [(gap.path, gap.why) for gap in research.gaps] == [
        ("web_search.a", "no answer within 5 s"),
        ("corpus", "nothing was found"),
        ("claims", "the model answered with HTTP status 500"),
        ("claims", "no text that was read states it in words that the rules can follow"),
    ]
    told = render(research)
    assert told.index("## Facts") < told.index("40 million") < told.index("## Inferences")
    assert "https://www.bbc.com/a" in told and "HTTP status 500" in told


@pytest.mark.parametrize(
    ("urls", "why"),
    [
        (("https://www.bbc.com/a", "https://blog.example/c"), "say otherwise, and others state it"),
        (("https://spam.example/a",), "what states it is banned"),
    ],
)
def test_a_claim_that_stands_on_nothing_says_why(urls: tuple[str, ...], why: str) -> None:
    texts = (BBC.text, "The archive in Lund holds 12 million pages.")
    readings = tuple(reading(text, url) for text, url in zip(texts, urls, strict=False))
    said = reply((CLAIM, "the archive in Lund holds 40 million pages"))
    policy = Policy.model_validate_json(
        json.dumps(json.loads(POLICY.document) | {"banned_domains": ["spam.example"]})
    )
    research = answer(Recording(question=QUESTION, readings=readings, replies=(said,)), policy)
    assert (research.facts, research.inferences) == ((), ())
    assert any(why in gap.why for gap in research.gaps), research.gaps


def test_what_was_kept_gives_the_same_answer_byte_for_byte() -> None:
    again = Recording.model_validate_json(RECORDING.model_dump_json())
    assert answer(again, POLICY).model_dump_json() == answer(RECORDING, POLICY).model_dump_json()
    assert render(answer(again, POLICY)) == render(answer(RECORDING, POLICY))


def test_nothing_that_was_left_out_is_silent() -> None:
    many = reply(
        *((f"Shelf {number} of the archive is full.", "built by four brothers") for number in range(20))
    )
    more = reply(
        *((f"Room {number} of the archive is cold.", "built by four brothers") for number in range(20))
    )
    other = reading(BLOG.text, "https://other.example/")
    recording = Recording(question=QUESTION, readings=(BLOG, other, BBC), replies=(many, more))
    research = answer(recording, POLICY)
    whys = [gap.why for gap in research.gaps]
    left_out = (
        len(distinct([*normalize(BLOG, many).claims, *normalize(BLOG, more).claims], POLICY)) - MOST_CLAIMS
    )
    assert left_out > 0
    assert whys.count(f"{MOST_CLAIMS} claims are looked at, and this is one more") == left_out
    assert "texts that were found and no model was asked about: 1" in whys
    empty = answer(Recording(question=QUESTION), POLICY)
    assert [gap.why for gap in empty.gaps] == ["nothing was read"]
