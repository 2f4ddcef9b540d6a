"""What is to vouch for a claim: how far references reach, in the shapes that people and models write."""

from __future__ import annotations

import pytest

from tests.unit.documents.desk import claims, read, vouching
from vouchgate.ingest.documents import Slip

A, B, C = "https://oven.example/a", "https://oven.example/b", "https://oven.example/c"


def test_a_reference_reaches_back_to_the_one_before_it() -> None:
    text = (
        f"It is old. It is hot ([log]({A})). It is red. It is dry ([book]({B}), [map]({C})). It is small.\n"
    )
    assert vouching(text) == {
        "It is old.": [A],
        "It is hot.": [A],
        "It is red.": [B, C],
        "It is dry.": [B, C],
        "It is small.": [],
    }


def test_a_reference_reaches_at_most_its_paragraph() -> None:
    assert vouching(f"It is old.\n\nIt is hot, see [log]({A}).\n") == {
        "It is old.": [],
        "It is hot, see log.": [A],
    }


def test_two_references_in_one_sentence_both_vouch_for_it() -> None:
    text = f"It is old. The [log]({A}) says it is hot and the [book]({B}) that it is dry."
    said = "The log says it is hot and the book that it is dry."
    assert vouching(text) == {"It is old.": [A], said: [A, B]}


@pytest.mark.parametrize(
    "source",
    [
        A,
        f"<{A}>",
        f"Source: {A}",
        f"Source: the [log]({A})",
        f"**Source:** {A}",
        f"Sources:  \n{A}",
        f"(Source: {A})",
        f"Log of the kiln: {A}",
        f"Supporting reference: the kiln's log, {A}",
        f"[log]({A})",
        f"- {A}",
        f"Sources:\n- log: {A}",
        f"See also: {A}",
    ],
)
@pytest.mark.parametrize("between", ["  \n", "\n\n"])
def test_a_line_of_sources_is_for_the_paragraph_above(between: str, source: str) -> None:
    text = f"It is cold.\n\nIt is old. It is hot.{between}{source}\n\nIt is dry.\n"
    assert vouching(text) == {"It is cold.": [], "It is old.": [A], "It is hot.": [A], "It is dry.": []}


def test_a_bare_address_under_a_list_is_for_the_list_and_what_leads_in_to_it() -> None:
    text = f"The kiln is good:\n\n- it is old\n- it is hot\n{A}\n\nIt is dry.\n"
    assert vouching(text) == {"The kiln is good:": [A], "it is old": [A], "it is hot": [A], "It is dry.": []}
    assert vouching(f"The kiln is good:\n- it is old\n- it is hot\n\nSources:\n{A}\n{B}\n") == {
        "The kiln is good:": [A, B],
        "it is old": [A, B],
        "it is hot": [A, B],
    }


def test_an_indented_source_is_for_its_item() -> None:
    text = f"The kiln is good:\n\n- it is old  \n  Source: {A}\n- it is hot\n\n  Source: {B}\n- it is dry\n"
    assert vouching(text) == {"The kiln is good:": [], "it is old": [A], "it is hot": [B], "it is dry": []}


def test_addresses_between_items_are_each_for_the_item_above() -> None:
    assert vouching(f"- it is old\n{A}\n- it is hot\n{B}\n") == {"it is old": [A], "it is hot": [B]}


def test_a_lead_in_covers_the_items_that_have_no_source() -> None:
    text = f"It is cold. The [log]({A}) says that it is:\n\n- old\n- hot ({B})\n"
    assert vouching(text) == {"It is cold.": [A], "The log says that it is:": [A], "old": [A], "hot": [B]}


def test_a_source_under_a_heading_of_its_own_is_for_nothing() -> None:
    assert vouching(f"It is old.\n\n## More\n\n{A}\n") == {"It is old.": []}


def test_tables_go_by_row_by_header_and_by_what_stands_under_them() -> None:
    rows = f"|---|---|\n| oak | hot ({A}) |\n| pine | cold |\n"
    oak, pine = "Wood: oak; Heat: hot", "Wood: pine; Heat: cold"
    assert vouching(f"| Wood | Heat |\n{rows}") == {oak: [A], pine: []}
    assert vouching(f"| Wood | Heat ([log]({B})) |\n{rows}") == {oak: [B, A], pine: [B]}
    assert vouching(f"| Wood | Heat |\n{rows}\nSource: {B}\n") == {oak: [A], pine: [B]}


def test_footnotes_numbers_and_reference_links() -> None:
    assert vouching(f"It is old.[^1] It is hot.[^log]\n\n[^1]: The book, {A}\n[^log]: {B}\n") == {
        "It is old.": [A],
        "It is hot.": [B],
    }
    assert vouching(
        f"It is old [1]. It is hot [2, 3].\n\n## References\n\n[1] {A}\n[2] {B}\n[3] Map of 1920\n"
    ) == {
        "It is old.": [A],
        "It is hot.": [B, "Map of 1920"],
    }
    assert vouching(f"It is old [2].\n\n## References\n\n1. Book. {A}\n2. Log. {B}\n") == {"It is old.": [B]}
    assert vouching(f"It is [old][book] and [hot].\n\n[book]: {A}\n[Hot]: <{B}>\n") == {
        "It is old and hot.": [A, B]
    }
    assert vouching("It is old [1-3].\n\n## Sources\n\n" + "".join(f"[{n}] {A}{n}\n" for n in (1, 2, 3))) == {
        "It is old.": [f"{A}1", f"{A}2", f"{A}3"]
    }


def test_a_footnote_is_read_too() -> None:
    text = f"It is old.[^1]\n\n[^1]: It was built in 1920, says the [book]({A}).\n"
    assert vouching(text) == {"It is old.": [A], "It was built in 1920, says the book.": [A]}


def test_notes_that_refer_to_each_other_end() -> None:
    text = "It is old.[^1]\n\n[^1]: See [^2]\n[^2]: See [^1]\n"
    assert [reference.citation for reference in read(text).references if reference.start < 12] == [None]


@pytest.mark.parametrize(
    "cited",
    [
        "ADR-0005",
        "RFC 9110",
        "https://oven.example/d",
        "src/kiln.py:12",
        "10.1234/kiln.5",
        "CVE-2024-3094",
        "PEP 8",
    ],
)
def test_what_is_cited_in_the_text(cited: str) -> None:
    (claim,) = read(f"The kiln is hot ({cited}).\n").claims
    (reference,) = claim.references
    assert (reference.target, reference.citation and reference.citation.value) == (cited, cited)
    assert read(f"The kiln is hot ({cited}).\n").text[reference.start : reference.end] == cited


def test_links_to_files_lead_from_the_folder_of_the_document() -> None:
    text = "It is so ([a](../src/kiln.py)). And ([b](oak.md#heat)). And ([c](/README.md)). And ([d](../../x.md))."
    found = [one.citation and one.citation.key for one in read(text, "docs/kilns.md").references]
    assert found == ["path:src/kiln.py", "path:docs/oak.md", "path:README.md", None]


def test_destinations_are_as_they_are_written_and_the_checks_know_them() -> None:
    text = (
        "It is so ([a](https://oven.example/k%20b?x=1&y=ü)). And ([ADR-0005](../adrs/0005-oak.md#why)). "
        "And ([kiln](src/kiln.py#L3)). And ([up](../x/y.md))."
    )
    found = [(one.target, one.citation and one.citation.key) for one in read(text).references]
    assert found == [
        ("https://oven.example/k%20b?x=1&y=ü", "url:https://oven.example/k%20b?x=1&y=ü"),
        ("../adrs/0005-oak.md#why", "adr:5"),
        ("src/kiln.py#L3", "path:src/kiln.py#L3-L3"),
        ("../x/y.md", None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"The kiln is hot `{A}`.",
        f"The kiln is hot `[log]({A})`.",
        f"The kiln is hot.\n\n    {A}\n",
        f"The kiln is hot.\n\n```\n{A}\n```\n",
        f"The kiln is hot ![log]({A}).",
        f"The kiln is hot <!-- {A} -->.",
        "The kiln is hot, and `[7]` or `[^7]` is how to cite.",
        "The kiln is hot, and “[7]” or '[7]' is how to cite.",
        "The kiln is hot, and `ADR-0005` or `RFC 9110` is how to cite.",
        "The kiln is hot after `make fire src/kiln.py`.",
        "The kiln is [hot](#heat).",
        "The kiln is [hot](mailto:a@oven.example).",
        f"[![badge]({A})]({B})\n\nThe kiln is hot.",
    ],
)
def test_what_cites_nothing(text: str) -> None:
    assert read(text).references == ()


@pytest.mark.parametrize("cited", ["docs/kiln.md", "src/kiln.py:12", "./docs/kiln.md#L3", "4e5d6c7a"])
def test_a_file_or_commit_may_be_set_as_code(cited: str) -> None:
    (reference,) = read(f"The kiln is hot, see `{cited}`.").references
    assert (reference.target, reference.dangling) == (cited, False)


def test_a_number_in_a_quotation_of_more_is_a_reference() -> None:
    assert [one.dangling for one in read('The log says "it is hot [7]".').references] == [True]


def test_slips_are_found() -> None:
    text = "It is old [7]. It is hot.[^x] It is dry. [citation needed]\n\n"
    text += f"[^y]: {A}\n\n[z]: {B}\n\n## References\n\n[1] {C}\n"
    document = read(text)
    assert [(finding.slip, finding.text) for finding in document.findings] == [
        (Slip.DANGLING, "[7]"),
        (Slip.DANGLING, "[^x]"),
        (Slip.CITATION_NEEDED, "[citation needed]"),
        (Slip.UNUSED, A),
        (Slip.UNUSED, f"[z]: {B}"),
        (Slip.UNUSED, C),
    ]
    assert [(claim.text, claim.marked) for claim in document.claims] == [
        ("It is old.", ""),
        ("It is hot.", ""),
        ("It is dry.", "[citation needed]"),
    ]
    assert [reference.dangling for claim in document.claims for reference in claim.references] == [True, True]


def test_an_index_or_a_year_is_no_reference() -> None:
    assert read("The value of pots[3] is in [2024].").references == ()


def test_entries_are_no_claims_and_hide_none() -> None:
    text = (
        f"It is old [1].\n\n## References\n\n1. The kiln is old. Potters' Press. {A}\n\nThe kiln is empty.\n"
    )
    assert claims(text) == ["It is old.", "The kiln is empty."]


def test_thousands_of_notes_are_each_for_their_own_sentence() -> None:
    numbers = range(2000)
    text = "".join(f"Pot {n} is whole.[^{n}]\n\n" for n in numbers) + "".join(
        f"[^{n}]: {A}{n}\n" for n in numbers
    )
    assert vouching(text) == {f"Pot {n} is whole.": [f"{A}{n}"] for n in numbers}


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        (f"It is [a [b]({A}) c](x.md).", [A]),  # no link in a link
        (f"It is [a [b] c]({A}).", [A]),
        (f"It is ![a [b]({A})]({B}).", []),  # nor one in the words of a picture
        (f"It is [hot ![a]({A})]({B}).", [B]),
        (f"It is [a `]({A})` b]({B}).", [B]),
        (f"It is \\[a]({A}).", [A]),
        (f"It is [a\\]({A}).", [A]),
        (f"It is [a](<{A}> 'b').", [A]),
        (f"It is [a][x] and [x] and [b][].\n\n[x]: {A}\n[b]: {B}\n", [A, A, B]),
        (f"It is [a]\n({A}).", [A]),
        (f"It is <b title='[a]({B})'>[b]({A})</b>.", [A]),
    ],
)
def test_what_is_a_link_is_as_in_commonmark(text: str, targets: list[str]) -> None:
    assert [reference.target for reference in read(text).references] == targets


def test_a_definition_that_only_a_picture_needs_is_used() -> None:
    assert read(f"The kiln is hot ![log].\n\n[log]: {A}\n").findings == ()


def test_a_backslash_before_a_letter_is_text() -> None:
    assert claims("The kiln is in C:\\apps, not in D:\\\\b.") == ["The kiln is in C:\\apps, not in D:\\b."]
