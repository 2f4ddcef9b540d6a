"""What an architecture decision record says of itself, whatever convention it follows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.claims.source import Standing
from vouchgate.ingest.sources.git.adr_status import (
    Statement,
    file_number,
    in_folder,
    judge,
    judge_section,
    references,
    successor_of,
)
from vouchgate.ingest.sources.git.adr_text import is_record, parse

IN_FORCE, PROPOSED, REJECTED = Standing.IN_FORCE, Standing.PROPOSED, Standing.REJECTED
SUPERSEDED, DEPRECATED = Standing.SUPERSEDED, Standing.DEPRECATED


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("0003-use-queues.md", 3),
        ("003_use_queues.md", 3),
        ("3.md", 3),
        ("0000-record-decisions.md", 0),
        ("000123-use-queues.markdown", 123),
        ("ADR-0003-use-queues.md", 3),
        ("adr003-use-queues.md", 3),
        ("adr-003-use-queues.md", 3),
        ("Adr_3_Use.rst", 3),
        ("docs/adr/nested/0042-x.adoc", 42),
        ("003 Use queues.txt", 3),
        ("20240103-use-queues.md", None),
        ("2024-01-03-use-queues.md", None),
        ("use-queues.md", None),
        ("use-3-queues.md", None),
        ("0003x.md", None),
        ("12345678901234.md", None),
        ("adr.md", None),
        ("", None),
    ],
)
def test_the_number_in_a_file_name(name: str, number: int | None) -> None:
    assert file_number(name) == number


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("0003-use-queues.md", True),
        ("0003-USE.MD", True),
        ("use.rst", True),
        ("README.md", False),
        ("index.md", False),
        ("template.md", False),
        ("adr-template-short.md", False),
        ("0000-adr-template.md", False),
        ("0003-template.md", False),
        ("adr-0003-template-for-decisions.md", True),
        ("0014-project-templates.md", True),
        ("adr012-template-engine.md", True),
        ("20240103-use-templates.md", True),
        ("0003-diagram.png", False),
        ("0003", False),
        ("0003-x.md/README.md", False),
    ],
)
def test_which_files_are_records(name: str, expected: bool) -> None:
    assert is_record(name) is expected


@pytest.mark.parametrize(
    ("status", "standing", "successor"),
    [
        ("Accepted", IN_FORCE, None),
        ("accepted", IN_FORCE, None),
        ("**Approved** on 2024-02-01 by the storage team", IN_FORCE, None),
        ("✅ Done", IN_FORCE, None),
        ("2024-02-01 Accepted", IN_FORCE, None),
        ("[Active]", IN_FORCE, None),
        ("Adopted.", IN_FORCE, None),
        (
            "Accepted, supersedes [2. Remove deprecated calls](0002-remove-deprecated-calls.md)",
            IN_FORCE,
            None,
        ),
        ("Proposed", PROPOSED, None),
        ("Draft", PROPOSED, None),
        ("RFC", PROPOSED, None),
        ("Pending", PROPOSED, None),
        ("In review", PROPOSED, None),
        ("Superseded by ADR-0005", SUPERSEDED, "ADR-005"),
        ("Superceded by [5. Use logs](0005-use-logs.md)", SUPERSEDED, "ADR-005"),
        ("superseded by [ADR-0005](0005-use-logs.md)", SUPERSEDED, "ADR-005"),
        ("Superseded by [Use PostgreSQL 16](0009-use-postgresql-16.md)", SUPERSEDED, "ADR-009"),
        ("superseded by [20240105-use-logs](20240105-use-logs.md)", SUPERSEDED, "20240105-use-logs"),
        ("Replaced by 7", SUPERSEDED, "ADR-007"),
        ("Superseded by #16", SUPERSEDED, None),
        ("Superseded by [ADR 0007](./adrs/0007-use-logs.md) (2024-02-01).", SUPERSEDED, "ADR-007"),
        ("superseded by [2024-01-05 Logs](./2024-01-05-logs.md)", SUPERSEDED, "2024-01-05-logs"),
        ("Obsoleted by adr_12", SUPERSEDED, "ADR-012"),
        ("Superseded by ADR-5 on 2024-02-01", SUPERSEDED, "ADR-005"),
        ("Superseded", SUPERSEDED, None),
        ("Superseded by [5. Reject unsigned commits](0005-reject.md)", SUPERSEDED, "ADR-005"),
        ("Accepted, then proposed again, then superseded by ADR-1234", SUPERSEDED, "ADR-1234"),
        ("Accepted; superseded by ADR-4", SUPERSEDED, "ADR-004"),
        ("~~Accepted~~ Deprecated", DEPRECATED, None),
        ("~~Accepted~~", PROPOSED, None),
        ("Rejected", REJECTED, None),
        ("Declined", REJECTED, None),
        ("Deprecated", DEPRECATED, None),
        ("Withdrawn", DEPRECATED, None),
        ("Retired in spring", DEPRECATED, None),
        ("{proposed | rejected | accepted | deprecated | superseded by ADR-0123}", PROPOSED, None),
        ("accepted | rejected", PROPOSED, None),
        ("Such as proposed, accepted, rejected, deprecated", PROPOSED, None),
        ("Accepted?", PROPOSED, None),
        ("Not accepted", PROPOSED, None),
        ("Unaccepted", PROPOSED, None),
        ("Accepted pending an audit", PROPOSED, None),
        ("Accepted unless finance objects", PROPOSED, None),
        ("No longer active", PROPOSED, None),
        ("Active discussion", PROPOSED, None),
        ("Decided against", PROPOSED, None),
        ("Final draft", PROPOSED, None),
        ("To be accepted", PROPOSED, None),
        ("Angenommen", PROPOSED, None),
        ("404", PROPOSED, None),
        ("", PROPOSED, None),
    ],
)
def test_one_status_in_every_form(status: str, standing: Standing, successor: str | None) -> None:
    statement = judge(status)
    assert statement is not None
    assert (statement.standing, statement.successor) == (standing, successor)
    # The same words mean the same wherever a page may have them.
    section = judge_section([status])
    assert (section.standing, section.successor) == (standing, successor)
    forms = [
        f"# 3. Use queues\n\n## Status\n\n{status}\n\n## Context\n\nWe need them.\n",
        f"# 3. Use queues\n\n* Status: {status}\n* Deciders: Ada\n\n## Context\n",
        f"# 3. Use queues\n\n- **Status:** {status}\n\n## Context\n",
        f"# Use queues\n\nStatus: {status}\n\n## Context\n",
        f"Use queues\n==========\n\nStatus\n------\n\n{status}\n\nContext\n-------\nx\n",
        f"= Use queues\n\n== Status\n\n{status}\n\n== Context\n",
    ]
    for form in forms:
        read = parse(form).statement
        assert read is not None, form
        assert (read.standing, read.successor) == (standing, successor), form


@pytest.mark.parametrize(
    "text", ["Amended by ADR-9", "Supersedes ADR-2", "Replaces [2. Use files](0002-use-files.md)"]
)
def test_links_to_other_records_are_no_status(text: str) -> None:
    assert judge(text) is None
    statement = parse(f"# 3. Use queues\n\n## Status\n\nAccepted\n\n{text}\n\n## Context\n").statement
    assert statement is not None
    assert statement.standing is IN_FORCE


@pytest.mark.parametrize(
    ("page", "standing"),
    [
        ("# [SUPERSEDED] 3. Use queues", SUPERSEDED),
        ("# 3. Use queues (rejected)", REJECTED),
        ("# 3. Use queues (superseded by [ADR-9](0009-use-logs.md))", SUPERSEDED),
        ("# 3. Use queues\n\n**This ADR is deprecated.**", DEPRECATED),
        ("# 3. Use queues\n\n## Status\n\nAccepted\n\nThis record is about withdrawn calls.", IN_FORCE),
        ("# 3. Use queues\n\n## Status\n\nAccepted\n\nThis record was withdrawn in May.", DEPRECATED),
        ("# 3. Use queues\n\n**Deprecated since May 2024.**", DEPRECATED),
        ("# 3. Use queues\n\n## Status\n\nAccepted\n\n## Superseded by\n\nADR-9", SUPERSEDED),
        ("# 3. Use queues\n\n## Status\n\nAccepted\n\n## Superseded by\n\nNone", IN_FORCE),
        ("# 3. Use queues\n\n## Status\n\nAccepted\n\nThis is no longer in use.", DEPRECATED),
        ("# 3. Use queues\n\n## Status\n\n- ( ) Accepted\n- (x) Rejected", REJECTED),
        ("# 3. Use queues\n\n## Status\n\nAccepted, later dropped", PROPOSED),
        ("# 3. Use queues\n\n## Status\n\n❌ Accepted", PROPOSED),
        ("# 3. Use queues\n\n**Rejected**, 2023-04-04.", REJECTED),
        ("# 3. Use queues\n\nRejected on 4 April 2023", REJECTED),
        ("# 3. Use queues\n\n*Superseded* (2024-01)", SUPERSEDED),
        ("# 3. Use queues\n\nProposed, 2023-04-04", PROPOSED),
        ("# 3. Use queues\n\nProposed 2023-04-01\nAccepted 2023-05-01", None),
        ("# 3. Use queues\n\nAccepted, 2023-04-04", None),
        ("# 3. Use queues\n\nIn use since 2020-01-01, rejected options are below.", None),
        ("# 3. Use JSON (RFC 8259)", None),
        ("# 3. Handle (pending) uploads", None),
        ("# 3. Replace the deprecated API", None),
    ],
)
def test_what_a_title_or_a_sentence_says_of_the_record(page: str, standing: Standing | None) -> None:
    statement = parse(f"{page}\n\n## Decision\n\nUploads go to a queue.\n").statement
    assert (statement and statement.standing) == standing


@pytest.mark.parametrize(
    ("path", "alone", "accepted"),
    [
        ("docs/adr/rejected/0055-use-x.md", REJECTED, REJECTED),
        ("docs/adr/Archived/0055-use-x.md", DEPRECATED, DEPRECATED),
        ("docs/drafts/0055-use-x.md", PROPOSED, IN_FORCE),
        ("docs/rfcs/0055-rejected.md", None, IN_FORCE),
    ],
)
def test_what_its_folder_says_of_a_record(path: str, alone: Standing | None, accepted: Standing) -> None:
    said = in_folder(path, None)
    assert (said and said.standing) == alone
    said = in_folder(path, Statement(standing=IN_FORCE, quoted="Accepted"))
    assert said is not None and said.standing is accepted


@pytest.mark.parametrize(
    ("lines", "standing"),
    [
        (["Proposed", "Accepted"], IN_FORCE),
        (["Accepted", "Proposed again"], PROPOSED),
        (["Accepted", "", "Superseded by [5. Use logs](0005-use-logs.md)"], SUPERSEDED),
        (["Superseded by ADR-5", "Accepted"], SUPERSEDED),
        (["Accepted", "No longer in use since May."], DEPRECATED),
        (["- [ ] Proposed", "- [ ] Accepted", "- [x] Rejected"], REJECTED),
        (["- [ ] Proposed", "- [X] Accepted", "- [ ] Deprecated"], IN_FORCE),
        (["☐ Proposed", "☑ Accepted", "☐ Deprecated"], IN_FORCE),
        (["[ ] Accepted [x] Superseded by ADR-5"], SUPERSEDED),
        (["* [ ] Proposed", "* [ ] Accepted"], PROPOSED),
        (["Accepted", "* [ ] Write the guide", "* [x] Tell the team"], IN_FORCE),
        (["* 2024-01-01 Proposed", "* 2024-02-01 Accepted", "* 2024-03-01 Deprecated"], DEPRECATED),
        (["Accepted", "", "The alternatives were weighed and some rejected."], IN_FORCE),
        (
            ["| Date | State |", "|---|---|", "| 2024-01-01 | Proposed |", "| 2024-02-01 | Accepted |"],
            IN_FORCE,
        ),
        (["| Date | State |", "|---|---|", "| 2024-01-01 | Rejected |"], REJECTED),
        ([], PROPOSED),
        (["Amended by ADR-4"], PROPOSED),
    ],
)
def test_a_status_section_of_several_lines(lines: list[str], standing: Standing) -> None:
    assert judge_section(lines).standing is standing


@pytest.mark.parametrize(
    ("head", "standing"),
    [
        ("| Status | Accepted |\n|---|---|\n| Date | 2024-01-03 |", IN_FORCE),
        ("| Field | Value |\n|---|---|\n| **Status** | Rejected |", REJECTED),
        ("| Status | Date | Deciders |\n|---|---|---|\n| Deprecated | 2024-01-03 | Ada |", DEPRECATED),
        ("| Date | Status |\n|---|---|\n| 2024-01-03 | Accepted |", IN_FORCE),
        ("| Status |\n|---|\n| Draft |", PROPOSED),
        ("**Status**: Rejected", REJECTED),
        ("**Status** Rejected", REJECTED),
        ("> Status: Rejected", REJECTED),
        (":Status: Rejected", REJECTED),
        ("Current status: Rejected", REJECTED),
        ("Estado: rechazado", PROPOSED),
        ("## 状态\n\n已拒绝", PROPOSED),
        ("状态：已拒绝", PROPOSED),
        ("STATUS = Rejected", REJECTED),
        ("* Status: Accepted\n* Superseded by: ADR-9", SUPERSEDED),
        ("* Status: Accepted\n* Superseded by: none", IN_FORCE),
        ("* Status: Accepted\n* Superseded by: -", IN_FORCE),
        ("* Status:", PROPOSED),
        ("## Metadata\n\n* Status: Rejected", REJECTED),
        ("## 1. Status: Rejected", REJECTED),
        ("### Decision status\nRejected", REJECTED),
        ("```\nan unclosed fence\n\n## Status\nRejected", REJECTED),
        ("<!-- never closed\n\n## Status\nRejected", REJECTED),
    ],
)
def test_status_in_the_head_of_a_page(head: str, standing: Standing) -> None:
    statement = parse(f"# 3. Use queues\n\n{head}\n\n## Context\n\nWe need them.\n").statement
    assert statement is not None
    assert statement.standing is standing


@pytest.mark.parametrize(
    "body",
    [
        "# 3. Use queues\n\n## Context\n\nWe need them.\n",
        "# 3. Use queues\n\n## Context\n\nStatus: 404 is what the old service said.\n",
        "# 3. Use queues\n\n```\nStatus: Rejected\n```\n\n## HTTP status codes\n\nRejected calls.\n",
        "# 3. Use queues\n\n<!-- status: {proposed | accepted} -->\n",
        "# 3. Use queues\n\nThe status quo is files.\n",
        "",
    ],
)
def test_a_page_that_says_nothing_about_its_status(body: str) -> None:
    assert parse(body).statement is None


@pytest.mark.parametrize(
    ("matter", "standing", "successor"),
    [
        ("status: accepted", IN_FORCE, None),
        ("status: superseded by [ADR-0005](0005-use-logs.md)", SUPERSEDED, "ADR-005"),
        ('status: "superseded by ADR-0005"', SUPERSEDED, "ADR-005"),
        ("Status: Rejected", REJECTED, None),
        ("status: [accepted]", IN_FORCE, None),
        ("status:", PROPOSED, None),
        ("status: {proposed | rejected | accepted}", PROPOSED, None),
        ("status: {accepted: true}", PROPOSED, None),
        ("status: 1", PROPOSED, None),
        ("status: true", PROPOSED, None),
        ("status: rejected: too slow", REJECTED, None),
        ("title: a: b: c\nstatus: rejected", REJECTED, None),
        ("status: accepted\nsuperseded_by: ADR-7", SUPERSEDED, "ADR-007"),
        ("status: accepted\nsuperseded-by: 7", SUPERSEDED, "ADR-007"),
        ("status: superseded\nsuperseded_by: ADR-7", SUPERSEDED, "ADR-007"),
        ("status: accepted\nsuperseded_by:", IN_FORCE, None),
        ("status: accepted\nsuperseded_by: []", IN_FORCE, None),
    ],
)
def test_front_matter(matter: str, standing: Standing, successor: str | None) -> None:
    statement = parse(f"---\n{matter}\n---\n\n# Use queues\n\n## Context\n").statement
    assert statement is not None
    assert (statement.standing, statement.successor) == (standing, successor)


def test_of_two_places_the_worse_counts() -> None:
    page = parse("---\nstatus: accepted\n---\n# Use queues\n\n## Status\n\nRejected\n")
    assert page.statement is not None
    assert page.statement.standing is REJECTED


@pytest.mark.parametrize(
    ("heading", "number", "title"),
    [
        ("# 3. Use queues", 3, "Use queues"),
        ("# ADR-003: Use queues", 3, "Use queues"),
        ("# ADR 3 - Use queues", 3, "Use queues"),
        ("# [ADR-0003] Use queues", 3, "Use queues"),
        ("# 0. Record decisions", 0, "Record decisions"),
        ("# Use 3 queues", None, "Use 3 queues"),
        ("# 12 factor apps", None, "12 factor apps"),
        ("# 2.0 migration", None, "2.0 migration"),
        ("# `Queues` and **logs**", None, "Queues and logs"),
        ("3. Use queues\n=============", 3, "Use queues"),
        ("---\ntitle: ADR-3 Use queues\n---", 3, "Use queues"),
        ("---\ntitle: Use queues\n---\n# 3. Another", 3, "Use queues"),
    ],
)
def test_number_and_title_of_the_heading(heading: str, number: int | None, title: str) -> None:
    page = parse(f"{heading}\n\nText.\n")
    assert page.number == number
    assert page.title == title


@pytest.mark.parametrize(
    "text",
    [
        "---\ndate: 2024-01-03\n---\n# Use queues\n",
        "---\ndate: 2024-01-03T10:00:00Z\n---\n# Use queues\n",
        "# 3. Use queues\n\nDate: 2024-01-03\n\n## Status\n\nAccepted\n",
        "# Use queues\n\n* Status: accepted\n* Date: 2024-01-03\n",
        "# Use queues\n\n## Status\n\nAccepted on 2024-01-03\n",
        "# Use queues\n\n| Status | Date |\n|---|---|\n| Accepted | 2024/1/3 |\n",
    ],
)
def test_the_date(text: str) -> None:
    assert parse(text).dated == datetime(2024, 1, 3, tzinfo=UTC)


def test_an_impossible_date_is_none() -> None:
    assert parse("---\ndate: 2024-13-45\nstatus: rejected\n---\n# Use queues\n").dated is None
    statement = parse("---\ndate: 2024-13-45\nstatus: rejected\n---\n# Use queues\n").statement
    assert statement is not None
    assert statement.standing is REJECTED


@pytest.mark.parametrize(
    "text",
    [
        "# 5. Use logs\n\n## Status\n\nAccepted\n\nSupersedes [3. Use queues](0003-use-queues.md)\n",
        "# 5. Use logs\n\n## Status\n\nAccepted, supercedes ADR-3\n",
        "# 5. Use logs\n\n* Status: accepted\n* Supersedes: ADR-0003\n",
        "---\nstatus: accepted\nsupersedes: [ADR-003]\n---\n# Use logs\n",
        "---\nstatus: accepted\nsupersedes: 3\n---\n# Use logs\n",
    ],
)
def test_what_a_page_supersedes(text: str) -> None:
    page = parse(text)
    assert page.supersedes == (3,)
    assert page.statement is not None
    assert page.statement.standing is IN_FORCE


def test_the_excerpt_begins_with_the_decision() -> None:
    page = parse(
        "# 3. Use queues\n\n## Status\n\nAccepted\n\n## Context\n\nFiles get lost.\n\n"
        "## Decision\n\nWe use [queues](https://example.org/queues) for **every** upload.\n"
    )
    assert page.excerpt.startswith("Decision\nWe use queues for every upload.")
    assert "Files get lost." in page.excerpt
    assert "Accepted" not in page.excerpt


def test_references_are_numbers_of_records_only() -> None:
    assert references("[2. Use files](0002-use-files.md), ADR-4 and 7") == (2, 4, 7)
    assert references("https://example.org/2024/01/03/adr/0009-x.md") == (9,)
    assert references("since 2024-01-03") == ()
    assert successor_of("nothing") is None


PIECES = st.sampled_from(
    ["---\n", "# ", "## Status\n", "status: ", "Superseded by ", "ADR-3", "```\n", "<!--", "-->", "[", "]("]
)
YAML = st.sampled_from(
    [
        "&a [*a]",
        "!!binary x",
        "!!timestamp x",
        "!!int ''",
        "!!bool x",
        "!!set x",
        "<<: *a",
        "%YAML 9",
        "- - - -",
    ]
)
ODD = st.sampled_from("|\n\x00\ud800\u2028\ufeff\x85")


@given(st.one_of(st.text(max_size=400), st.lists(PIECES | YAML | ODD, max_size=30).map("".join)))
def test_no_text_makes_it_raise(text: str) -> None:
    for page in (parse(text), parse(f"---\n{text}\n---\n{text}")):
        assert len(page.excerpt) <= 2_000
        shown = page.excerpt + page.title + (page.statement.quoted if page.statement else "")
        assert "\x00" not in shown
        shown.encode()
    file_number(text)
    is_record(text)
    references(text)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60))
def test_a_status_nobody_knows_is_never_in_force(text: str) -> None:
    statement = judge(f"zz{text}")
    assert statement is None or statement.standing is not IN_FORCE


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "![",
        "<!--",
        "| a ",
        "# ",
        "*",
        "adr-",
        "---\n",
        "0",
        "~~",
        "a: ",
        "```\n",
        "[a](",
        " ",
        "\n",
        "=\n",
        "# a\n",
        "a\n===\n",
        "## Status\nAccepted\n",
        "amends ADR-1 ",
        "\n\nADR-1 is amended\n",
        "## Context\nADR-1 decided.\n## Decision\nno longer\n",
        "amends [5. x](y.md). A\n",
    ],
)
def test_a_hostile_page_takes_linear_time(piece: str) -> None:
    """A page of a size that no ADR has: a quadratic way would take a minute for it."""
    text = f"---\n{piece * 400}\n---\n# 3. {piece * 100}\n\n## Status\n" + piece * (50_000 // len(piece))
    with given_up_after(1):
        parse(text)
