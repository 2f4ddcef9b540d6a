"""What holds for every type: offsets, order, keys, citations given on their own, and any text at all."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.ingest.citations import BUILT_IN, detect_citations, given_citation, parse_citation
from vouchgate.ingest.claims.citation import CitationType


def test_every_type_has_one_kind_that_finds_its_example() -> None:
    assert sorted(kind.name for kind in BUILT_IN) == sorted(CitationType)
    for kind in BUILT_IN:
        (found,) = detect_citations(f"As {kind.forms[0]} says, it is so.")
        assert (found.type, found.value) == (kind.name, kind.forms[0])


def test_offsets_order_and_repeats() -> None:
    text = "ADR-3 and ADR 003, see #12, https://example.com/x#12, 9c1d8e3 and RFC\u00a09110 (ADR-3)."
    found = detect_citations(text)
    assert [citation.key for citation in found] == [
        "adr:3",
        "adr:3",
        "issue:#12",
        "url:https://example.com/x#12",
        "commit:9c1d8e3",
        "rfc:9110",
        "adr:3",
    ]
    assert [(citation.start, citation.end) for citation in found][:3] == [(0, 5), (10, 17), (23, 26)]
    assert all(text[citation.start : citation.end] == citation.value for citation in found)


def test_offsets_survive_dropped_characters() -> None:
    text = "\u200b\u00adper A\u200bDR\u2060-\u200b7\u200b, and 9c1d\u00ad8e3"
    assert [(citation.value, citation.start, citation.key) for citation in detect_citations(text)] == [
        ("A\u200bDR\u2060-\u200b7", 6, "adr:7"),
        ("9c1d\u00ad8e3", 21, "commit:9c1d8e3"),
    ]


@pytest.mark.parametrize("text", ["", " ", "\0", "no citation here", "\ud800", "3" * 50, "://"])
def test_nothing_to_find(text: str) -> None:
    assert detect_citations(text) == ()


@pytest.mark.parametrize(
    ("type_", "value", "key"),
    [
        (CitationType.ADR, "3", "adr:3"),
        (CitationType.ADR, "0003", "adr:3"),
        (CitationType.ADR, " ADR-003\n", "adr:3"),
        (CitationType.ADR, "adr 3", "adr:3"),
        (CitationType.COMMIT, "9c1d8e3", "commit:9c1d8e3"),
        (CitationType.COMMIT, "1234567", "commit:1234567"),
        (CitationType.COMMIT, "DEADBEEF", "commit:deadbeef"),
        (CitationType.COMMIT, "commit 9c1d8e3", "commit:9c1d8e3"),
        (CitationType.URL, "https://Example.com/A", "url:https://example.com/A"),
        (CitationType.URL, "http://[::1]:80/x", "url:http://[::1]:80/x"),
        (CitationType.URL, "https://example.com/a\u2011b", "url:https://example.com/a\u2011b"),
        (CitationType.ISSUE, "#12", "issue:#12"),
        (CitationType.ISSUE, "12", "issue:#12"),
        (CitationType.ISSUE, "GH-12", "issue:#12"),
        (CitationType.ISSUE, "PR #12", "issue:#12"),
        (CitationType.ISSUE, "pull request 12", "issue:#12"),
        (CitationType.ISSUE, "Owner/Repo#12", "issue:owner/repo#12"),
        (CitationType.DOI, "10.1038/Nature14539", "doi:10.1038/nature14539"),
        (CitationType.DOI, "doi:10.1038/nature14539", "doi:10.1038/nature14539"),
        (CitationType.DOI, "https://doi.org/10.1038/nature14539", "doi:10.1038/nature14539"),
        (CitationType.ARXIV, "1706.03762v2", "arxiv:1706.03762v2"),
        (CitationType.ARXIV, "arXiv:hep-th/9711200", "arxiv:hep-th/9711200"),
        (CitationType.RFC, "9110", "rfc:9110"),
        (CitationType.RFC, "RFC9110", "rfc:9110"),
        (CitationType.PEP, "8", "pep:8"),
        (CitationType.CVE, "cve-2020-11008", "cve:CVE-2020-11008"),
        (CitationType.CVE, "2020-11008", "cve:CVE-2020-11008"),
    ],
)
def test_given(type_: CitationType, value: str, key: str) -> None:
    citation = given_citation(type_, value)
    assert (citation.type, citation.value, citation.key) == (type_, value.strip(), key)
    assert citation.start is None
    assert citation.end is None


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        *[
            (type_, value)
            for type_ in CitationType
            for value in ("", " ", "none of them", "ADR-3 and 4", "\ud800", "-1")
        ],
        (CitationType.ADR, "RFC 9110"),
        (CitationType.ADR, "ADR-3.1"),
        (CitationType.ADR, "123456"),
        (CitationType.COMMIT, "9c1d8e"),
        (CitationType.COMMIT, "9c1d8e3" * 6),
        (CitationType.COMMIT, "main"),
        (CitationType.URL, "example.com/x"),
        (CitationType.URL, "ftp://example.com/x"),
        (CitationType.URL, "https://example.com/a b"),
        (CitationType.URL, "https://"),
        (CitationType.URL, "http://[::1/x"),
        (CitationType.URL, "http://example.com:99999/"),
        (CitationType.ISSUE, "#0"),
        (CitationType.ISSUE, "a/b/c#1"),
        (CitationType.DOI, "10.15.7"),
        (CitationType.DOI, "10.1000/1 10.1000/2"),
        (CitationType.ARXIV, "1713.03762"),
        (CitationType.RFC, "RFC"),
        (CitationType.CVE, "CVE-2020-1"),
    ],
)
def test_given_is_refused_with_a_sentence(type_: CitationType, value: str) -> None:
    with pytest.raises(ValueError, match=rf"is not one {type_} citation; write it like .+\.$"):
        given_citation(type_, value)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("ADR-003", "adr:3"),
        ("1234567", "commit:1234567"),
        (" 9c1d8e3 ", "commit:9c1d8e3"),
        ("#12", "issue:#12"),
        ("owner/repo#12", "issue:owner/repo#12"),
        ("https://doi.org/10.1038/nature14539", "url:https://doi.org/10.1038/nature14539"),
        ("10.1038/nature14539", "doi:10.1038/nature14539"),
        ("arXiv:1706.03762", "arxiv:1706.03762"),
        ("hep-th/9711200", "arxiv:hep-th/9711200"),
        ("RFC 9110", "rfc:9110"),
        ("PEP8", "pep:8"),
        ("cve-2020-11008", "cve:CVE-2020-11008"),
    ],
)
def test_parse(value: str, key: str) -> None:
    citation = parse_citation(value)
    assert (citation.key, citation.value, citation.start) == (key, value.strip(), None)


@pytest.mark.parametrize(
    "value", ["", "3", "12", "main", "example.com", "ADR-3, ADR-4", "1706.03762", "x" * 5000]
)
def test_parse_names_the_accepted_forms(value: str) -> None:
    with pytest.raises(ValueError, match=r"accepted forms: .*ADR-003.*RFC 9110") as refused:
        parse_citation(value)
    assert len(str(refused.value)) < 400


WORDS = """
    ADR adr ADRs - – \u2011 _ # : 3 0003 RFC PEP CVE-2020- 11008 arXiv: 1706.03762 hep-th/9711200
    10.1000/ a(b)c 10. v2 http:// https://[::1] https://example.com/ owner/repo #12 GH-12 PR commit
    9c1d8e3 1234567 .. ** ` ' ’ 。 ( ) [ ] { } < > , . ; ! ? / \\ \0 \u200b é 文 ＃ １ index id is the
    sha256: 's &gt; * @ = key
"""
PIECES = st.sampled_from([*WORDS.split(), " ", "\u00a0", "\n", '"'])
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join))


@given(TEXTS)
def test_any_text(text: str) -> None:
    found = detect_citations(text)
    end = 0
    for citation in found:
        assert citation.start is not None
        assert citation.end is not None
        assert end <= citation.start < citation.end <= len(text)
        assert citation.value == text[citation.start : citation.end]
        assert citation.key.startswith(f"{citation.type}:")
        end = citation.end


@given(TEXTS)
def test_what_is_detected_is_accepted_when_given(text: str) -> None:
    for citation in detect_citations(text):
        assert given_citation(citation.type, citation.value).key == citation.key
        assert parse_citation(citation.value).key == citation.key


@given(st.sampled_from(CitationType), TEXTS)
def test_given_answers_or_raises_value_error(type_: CitationType, text: str) -> None:
    for read in (partial(given_citation, type_), parse_citation):
        try:
            assert read(text).value == text.strip()
        except ValueError as error:
            assert str(error).endswith(".")
