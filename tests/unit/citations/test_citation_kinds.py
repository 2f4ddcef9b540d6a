"""Kinds of citation that are not built in: told apart, read where they are not installed, refused where unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from vouchgate.ingest.citations import (
    detect_citations,
    given_citation,
    kinds_in_use,
    label_of,
    parse_citation,
)
from vouchgate.ingest.citations.detection import install
from vouchgate.ingest.citations.kinds import CitationKind, FoundCitation, KindError, each_match, full_match
from vouchgate.ingest.claims.citation import Citation, CitationType

ONE = re.compile(r"MEMO-[0-9]+")


def key(match: re.Match[str]) -> str:
    return f"memo:{match[0][5:]}"


MEMO = CitationKind(
    name="memo",
    label="house memo",
    needles=("memo-",),
    find=each_match(ONE, key),
    whole=full_match(ONE, key),
    bare=full_match(ONE, key),
    forms=("MEMO-12",),
)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    install(())


def test_a_kind_that_is_installed_is_found_read_and_called_by_its_label() -> None:
    assert label_of("memo") == "memo"
    install([MEMO])
    text = "As MEMO-12 and ADR-3 say."
    assert [(each.type, each.key, each.start) for each in detect_citations(text)] == [
        ("memo", "memo:12", 3),
        (CitationType.ADR, "adr:3", 15),
    ]
    assert (
        given_citation("memo", " MEMO-7 ")
        == parse_citation("MEMO-7")
        == Citation(type="memo", value="MEMO-7", key="memo:7")
    )
    assert (label_of("memo"), label_of("adr")) == ("house memo", "ADR")
    install(())
    assert "memo" not in kinds_in_use()
    assert [each.type for each in detect_citations(text)] == [CitationType.ADR]


def test_what_was_kept_is_read_where_the_kind_is_not_installed() -> None:
    kept = '{"type":"memo","value":"MEMO-7","key":"memo:7","start":null,"end":null}'
    assert Citation.model_validate_json(kept).model_dump_json() == kept
    built_in = Citation.model_validate_json(kept.replace("memo", "adr"))
    assert built_in.type is CitationType.ADR
    with pytest.raises(ValueError, match="type"):
        Citation.model_validate_json(kept.replace('"memo"', '"A memo"'))


def test_what_is_given_must_be_known() -> None:
    with pytest.raises(
        ValueError, match="'memo' is no kind of citation that is known here; known are adr, arxiv"
    ):
        given_citation("memo", "MEMO-7")


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        ([MEMO, MEMO], "there are two kinds of citation called 'memo'"),
        ([replace(MEMO, name="adr")], "there are two kinds of citation called 'adr'"),
        ([replace(MEMO, forms=("MEMOS",))], "does not find its example 'MEMOS'"),
        ([replace(MEMO, whole=lambda value: str(1 / 0))], "is broken: division by zero"),
        ([replace(MEMO, name="A memo")], "is broken"),
        (
            [
                replace(
                    MEMO,
                    forms=("RFC 9",),
                    find=lambda text: iter([FoundCitation(3, 8, "memo:9")]),
                    whole=lambda value: "memo:9",
                )
            ],
            "is one of rfc already",
        ),
    ],
)
def test_a_kind_that_cannot_be_told_from_others_is_refused(kinds: list[CitationKind], sentence: str) -> None:
    with pytest.raises(KindError, match=sentence):
        install(kinds)
    assert "memo" not in kinds_in_use()
