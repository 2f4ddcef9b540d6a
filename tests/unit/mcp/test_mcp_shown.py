"""What a model is shown of the gate's answers, and that what the tools teach it is true."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.checks.hedge import HedgeDetector, action_of
from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.hedges import HedgeAction
from vouchgate.ingest.hedges.lexicon import load_lexicon
from vouchgate.mcp.results import visible_text
from vouchgate.mcp.tools import BY_NAME, TOOLS


def test_a_text_keeps_its_lines_and_loses_its_disguise() -> None:
    assert visible_text("one\n\ttwo", 100) == "one\n\ttwo"
    assert visible_text("pay\u202eme", 100) == "pay⟨U+202E⟩me"
    assert visible_text("abc", 3) == "abc"
    assert visible_text("abcd", 3) == "abc…"


@given(st.text(max_size=300), st.integers(min_value=1, max_value=100))
def test_no_text_is_long_and_none_orders_a_terminal_about(given_text: str, most: int) -> None:
    shown = visible_text(given_text, most)
    assert len(shown) <= 12 * most + 1  # each character may have a name
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]", shown)


def test_a_text_of_nothing_but_hidden_characters_is_cut() -> None:
    shown = visible_text("a\u202eb\u2066" * 2000, 8192)
    assert len(shown) < 7000
    assert "more" in shown


SAID_WITH = {
    "I think": "I think the pool holds 20 connections",
    "not sure": "I am not sure that the pool is full",
    "maybe we should": "Maybe we should make the pool larger",
    "maybe": "Maybe the pool is full",
    "could": "We could make the pool larger",
    "usually": "The pool usually holds 30 connections",
    "about 20": "The pool holds about 20 connections",
}


def test_what_is_said_to_block_blocks_and_what_is_said_to_wait_waits() -> None:
    detector = HedgeDetector(load_lexicon())
    _, _, told = BY_NAME["save_memory"].description.partition("plainly: ")
    blocking, _, rest = told.partition(" block it, ")
    waiting, _, _ = rest.partition(" make it wait")
    for words, action in ((blocking, HedgeAction.BLOCK), (waiting, HedgeAction.REVIEW)):
        quoted = re.findall('"([^"]+)"', words)
        assert quoted
        for hedge in quoted:
            assert action_of(detector.detect(SAID_WITH[hedge])) is action, hedge


def test_what_is_said_to_count_as_a_citation_does() -> None:
    described = BY_NAME["save_memory"].description
    for example, kind in (
        ("ADR-007", CitationType.ADR),
        ("owner/repo#12", CitationType.ISSUE),
        ("#12", CitationType.ISSUE),
    ):
        assert example in described
        assert [citation.type for citation in detect_citations(f"It is so, see {example}.")] == [kind]
    for kind, word in {
        CitationType.COMMIT: "commit",
        CitationType.URL: "URL",
        CitationType.DOI: "DOI",
    }.items():
        assert word in described, kind
    for kind in (CitationType.ARXIV, CitationType.RFC, CitationType.PEP, CitationType.CVE):
        assert kind.value in described.lower()
    example = BY_NAME["save_memory"].to_tool().input_schema["properties"]["content"]["description"]
    assert [citation.value for citation in detect_citations(example)] == ["ADR-007"]


def test_no_tool_decides_in_the_owners_place() -> None:
    for tool in TOOLS:
        assert not re.search("approve|reject|review|retract|undo|delete|remove|supersede", tool.name)
        assert tool.reads_only or tool.name == "save_memory"
        fields = set(tool.arguments.model_fields) - (
            {"label"} if tool.reads_only else set()
        )  # of what is listed
        assert not fields & {"source", "approved", "supersede", "version", "confidence", "label", "tier"}
