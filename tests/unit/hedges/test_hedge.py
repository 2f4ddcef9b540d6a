"""Hedge detection: what blocks, what goes to review, what must not fire, and what the finding says."""

from __future__ import annotations

import pytest

from tests.unit.hedges.hedge_sentences import (
    BLOCK,
    CONTINUE,
    HEDGED,
    REVIEW,
    ROUGH,
    SPECULATION,
    TECHNICAL,
    rows,
)
from vouchgate.ingest.checks.hedge import HedgeDetector, action_of, judge
from vouchgate.ingest.claims.claim import Verdict
from vouchgate.ingest.claims.hedges import HedgeAction, HedgeCategory, HedgeMatch
from vouchgate.ingest.hedges.lexicon import load_lexicon
from vouchgate.ingest.language.normalise import normalise

DETECTOR = HedgeDetector(load_lexicon())


def action(text: str) -> HedgeAction:
    return action_of(DETECTOR.detect(text))


def categories(text: str) -> set[HedgeCategory]:
    return {match.category for match in DETECTOR.detect(text)}


@pytest.mark.parametrize(
    ("category", "text"), [(c, text) for c, table in BLOCK.items() for text in rows(table)]
)
def test_what_blocks(category: HedgeCategory, text: str) -> None:
    assert category in categories(text)
    assert action(text) is HedgeAction.BLOCK


@pytest.mark.parametrize(
    ("category", "text"), [(c, text) for c, table in REVIEW.items() for text in rows(table)]
)
def test_what_goes_to_review(category: HedgeCategory, text: str) -> None:
    assert category in categories(text)
    assert action(text) is HedgeAction.REVIEW


@pytest.mark.parametrize("text", [text for table in CONTINUE.values() for text in rows(table)])
def test_what_is_no_hedge(text: str) -> None:
    assert DETECTOR.detect(text) == ()


def test_a_fenced_block_is_no_speech_but_its_neighbours_are() -> None:
    fence = "```c\nif (maybe) retry(); /* I think */\n```\n"
    assert action(fence + "The block runs once a request.") is HedgeAction.CONTINUE
    assert action(fence + "I think the block runs once a request.") is HedgeAction.BLOCK


@pytest.mark.parametrize(
    "text",
    [
        '"I think the pool is too small."',
        "“I think the pool is too small.”",
        "`I think the pool is too small.`",
        "```\nI think the pool is too small.\n```",
        '"I think" the pool is too small.',
        "`I think` the pool is too small.",
        'I "think" the pool is too small.',
        "I `think` the pool is too small.",
        "`I guess` Redis is used.",
        "The port is 8080, `I guess`.",
        "The port is 8080 `I think`",
        "`I am not sure` whether the port is open.",
        'My reaction: "I think the pool is too small."',
        'I said: "I think the pool is too small."',
        'As said, "I think the pool is too small."',
        'The assistant said: "I think the pool is too small."',
        'Note: "I think the pool is too small."',
        'Ben agreed. "I think the pool is too small."',
        '"I think the pool is too small", I wrote to Ben.',
    ],
)
def test_quoting_does_not_hide_the_writers_own_words(text: str) -> None:
    assert action(text) is HedgeAction.BLOCK


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The port is `probably` 8080.", HedgeAction.REVIEW),
        ("The job `usually` runs at night.", HedgeAction.REVIEW),
        ("The flag `maybe` is set.", HedgeAction.CONTINUE),
        ("The state `probably` is rare.", HedgeAction.CONTINUE),
        ("The `I guess` button is gone.", HedgeAction.CONTINUE),
        ("Run `git guess` or `might`.", HedgeAction.CONTINUE),
    ],
)
def test_a_hedge_in_a_code_span_is_said_unless_it_names_something(text: str, expected: HedgeAction) -> None:
    assert action(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I th1nk the pool is too small.", HedgeAction.BLOCK),
        ("I gu3$$ it is the proxy.", HedgeAction.BLOCK),
        ("We bel1eve the port is 8080.", HedgeAction.BLOCK),
        ("1 think the pool is too small.", HedgeAction.BLOCK),
        ("I d0n't know why.", HedgeAction.BLOCK),
        ("Pr0bably the port is 8080.", HedgeAction.REVIEW),
        ("The port m!ght be 8080.", HedgeAction.REVIEW),
        ("The i18n and l10n files, 4th8 and p5s2 are kept.", HedgeAction.CONTINUE),
        ("Option 1 thinks in rows; 12 think tanks met.", HedgeAction.CONTINUE),
    ],
)
def test_digits_for_letters_hide_nothing(text: str, expected: HedgeAction) -> None:
    assert action(text) is expected


def test_advice_with_a_case_or_code_is_no_suggestion() -> None:
    assert action("You may want to pass `null` there.") is HedgeAction.REVIEW
    assert action("If it is unset, you might want to set it.") is HedgeAction.REVIEW
    assert action("You may want to set it.") is HedgeAction.BLOCK


def test_spans_point_into_the_text_as_sent() -> None:
    text = "So <b>I</b>&nbsp;*th\u0456nk* it takes ~\u200b10 s."
    assert [(m.category, m.text) for m in DETECTOR.detect(text)] == [
        (SPECULATION, "I</b>&nbsp;*th\u0456nk"),
        (ROUGH, "~\u200b10"),
    ]


def test_the_finding_names_the_words_that_decided() -> None:
    text = "I think it may fail; not sure,\nI  think."
    finding = judge(DETECTOR.detect(text))
    assert (finding.check, finding.verdict, finding.code) == ("hedge", Verdict.FAIL, "personal_speculation")
    assert finding.facts == {"words": ["I think", "not sure"]}
    assert "I think, not sure" in finding.message
    assert [text[span.start : span.end] for span in finding.spans] == ["I think", "not sure", "I  think"]

    finding = judge(DETECTOR.detect("It takes about 5 s and may fail."))
    assert (finding.verdict, finding.code) == (Verdict.DOUBT, "approximation")
    assert finding.facts == {"words": ["about 5", "may"]}

    finding = judge(())
    assert (finding.verdict, finding.code, finding.spans, finding.facts) == (Verdict.PASS, "no_hedge", (), {})


@pytest.mark.parametrize("category", HedgeCategory)
def test_the_category_sets_the_action(category: HedgeCategory) -> None:
    match = HedgeMatch(category=category, text="x", start=0, end=1)
    review = HedgeMatch(category=TECHNICAL, text="y", start=2, end=3)
    blocks = category in BLOCK
    assert action_of((match,)) is (HedgeAction.BLOCK if blocks else HedgeAction.REVIEW)
    assert action_of((review, match)) is action_of((match, review)) is action_of((match,))
    assert judge((match,)).code == category.value
    assert judge((review, match)).verdict is (Verdict.FAIL if blocks else Verdict.DOUBT)


def test_normalising_once_gives_the_same() -> None:
    for text in HEDGED[::7]:
        assert DETECTOR.detect_normalised(text, normalise(text)) == DETECTOR.detect(text)
