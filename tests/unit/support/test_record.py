"""A record is told into its parts in every template in use, and an option that was weighed is not the decision."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running.hangs import given_up_after
from vouchgate.ingest.checks.support import judge
from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.source import Found, Stance, Standing
from vouchgate.ingest.support.holding import hold
from vouchgate.ingest.support.record import MOST_OPTIONS, Part, Record, looks_like_record, read_record

MADR = """# ADR-0012: Keep sessions in Redis

## Context and Problem Statement

Sessions are lost when a node restarts.

## Considered Options

* PostgreSQL, which is there already
* Redis
* [Signed cookies](https://cookies.example/signed) – nothing to run

## Decision Outcome

Chosen option: "Redis", because it forgets by itself.

### Positive Consequences

* A session ends after 30 minutes.

## Pros and Cons of the Options

### PostgreSQL

* Good, because nobody has to learn it.

### Signed cookies

* Bad, because a cookie cannot be taken back.
"""
NYGARD = """# 4. Use PostgreSQL for the queue

Date: 2025-01-03

## Status

Accepted

## Context

RabbitMQ was looked at, too.

## Decision

We will use PostgreSQL for the queue.

## Consequences

Workers poll every second.
"""
LOG4BRAINS = """# Ship logs with Vector

- Status: accepted
- Deciders: Ana, Ben

Technical Story: logs were lost in May.

## Considered Options

### Option 1: Fluent Bit

- Good, because many know it

### Option 2: Vector

- Good, because it is small

## Decision Outcome

We chose Vector.

## Links

- Refines the record on log formats
"""
UNDERLINED = """Use Kafka between services
==========================

Status
------

Accepted

Alternatives
~~~~~~~~~~~~

- RabbitMQ: two teams run it
- Kafka

Decision
--------

We decided to use Kafka between services.

Consequences
------------

Messages are kept for seven days.
"""
FREE = """Deploys start from the main branch only. Release branches were an option.

**Decision**

Whoever merges deploys.
"""


def said(record: Record, part: Part) -> str:
    """All that stands in parts of this kind."""
    ends = (*record.starts[1:], len(record.text))
    stretches = zip(record.starts, ends, record.parts, strict=True)
    return "".join(record.text[start:end] for start, end, kind in stretches if kind is part)


@pytest.mark.parametrize(
    ("text", "title", "decided", "followed", "unsaid"),
    [
        (MADR, "Keep sessions in Redis", "because it forgets", "30 minutes", "cannot be taken back"),
        (NYGARD, "Use PostgreSQL for the queue", "We will use", "poll every second", "was looked at"),
        (LOG4BRAINS, "Ship logs with Vector", "We chose Vector", "", "many know it"),
        (UNDERLINED, "Use Kafka between services", "to use Kafka", "seven days", "two teams run it"),
        (FREE, "", "Whoever merges", "", ""),
    ],
    ids=["madr", "nygard", "log4brains", "underlined", "free"],
)
def test_a_record_of_any_template_has_its_parts(
    text: str, title: str, decided: str, followed: str, unsaid: str
) -> None:
    record = read_record(text)
    assert record.title == title
    assert decided in said(record, Part.DECISION)
    assert followed in said(record, Part.CONSEQUENCES)
    assert title in record.spoken
    assert decided in record.spoken
    assert followed in record.spoken
    if unsaid:
        assert unsaid not in record.spoken
    assert len(record.spoken) == len(text)
    assert record.part_at(text.index(decided)) is Part.DECISION


def test_what_looks_like_a_record_has_a_decision_and_more() -> None:
    assert all(map(looks_like_record, (MADR, NYGARD, LOG4BRAINS, UNDERLINED)))
    assert not any(map(looks_like_record, (FREE, "", "# Notes\n\n## Ideas\n", "## Decision\n\nNone.\n")))


@pytest.mark.parametrize(
    ("text", "options", "chosen"),
    [
        (MADR, ["PostgreSQL", "Redis", "Signed cookies"], ["Redis"]),
        (NYGARD, [], []),
        (LOG4BRAINS, ["Fluent Bit", "Vector"], ["Vector"]),
        (UNDERLINED, ["RabbitMQ", "Kafka"], ["Kafka"]),
        # The title decides where no sentence does; and where neither names one, nobody knows what was chosen.
        (
            "# Pay by card\n\n## Options\n\n- Pay by card\n- Pay by bill\n",
            ["Pay by card", "Pay by bill"],
            ["Pay by card"],
        ),
        (
            "# Payment\n\n## Options\n\n- Card\n- Bill\n\n## Decision\n\nWe will decide in May.\n",
            ["Card", "Bill"],
            [],
        ),
    ],
)
def test_the_options_and_the_chosen_one(text: str, options: list[str], chosen: list[str]) -> None:
    record = read_record(text)
    assert [option.name for option in record.options] == options
    assert [option.name for option in record.chosen] == chosen
    for option in record.options:
        assert option.name.split()[-1] in text[option.start : option.end]
    assert not record.rejected or {option.name for option in record.rejected} == {*options} - {*chosen}


@pytest.mark.parametrize(
    ("text", "statement", "told"),
    [
        (MADR, "Sessions are kept in PostgreSQL.", "PostgreSQL"),
        (MADR, "Sessions live in signed cookies now.", "Signed cookies"),
        (LOG4BRAINS, "Fluent Bit ships the logs.", "Fluent Bit"),
        (UNDERLINED, "Services talk to each other over RabbitMQ.", "RabbitMQ"),
        (MADR, "Sessions are kept in Redis.", None),
        (MADR, "Sessions are kept in Redis, not in PostgreSQL.", None),
        (MADR, "PostgreSQL was considered.", None),
        (MADR, "Signed cookies were rejected.", None),
        (MADR, "Sessions are not kept in PostgreSQL.", None),
        (MADR, "Sessions aren't kept in signed cookies.", None),
        (MADR, "A cookie is set at sign-in.", None),
        (NYGARD, "The queue is RabbitMQ.", None),  # it lists no options
        (FREE, "Deploys start from release branches.", None),
    ],
)
def test_a_rejected_option_that_is_told_as_chosen_is_found(
    text: str, statement: str, told: str | None
) -> None:
    option = read_record(text).told_as_chosen(statement)
    assert (option.name if option else None) == told


def test_options_that_differ_by_a_denial_are_two() -> None:
    record = read_record(
        "# Do not add links\n\n## Options\n\n- Add links\n- Do not add links\n\n## Decision\n\nDo not add links.\n"
    )
    assert [option.name for option in record.chosen] == ["Do not add links"]


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_headings_in_code_are_none(fence: str) -> None:
    code = f"{fence}\n## Options\n\n- Redis\n{fence}\n"
    record = read_record(f"# Title\n\n## Decision\n\n{code}\nWe use it.\n")
    assert record.options == ()
    assert "We use it." in said(record, Part.DECISION)


pieces = st.sampled_from(
    [
        *(
            "# ",
            "## ",
            "### ",
            "Options",
            "Option 1: ",
            "Decision",
            "Consequences",
            "Status",
            "Title",
            "* ",
            "- ",
        ),
        *(
            "\n",
            "\n\n",
            "----",
            "====",
            "**",
            "```",
            "~~~",
            "Chosen option: ",
            '"',
            "Redis",
            "because ",
            "not ",
        ),
        *("\x00", "\x1b[31m", "\u2028", "\udcff", "<b>", "[", "](", ")", "\r\n"),
    ]
)


@given(st.lists(pieces, max_size=80).map("".join) | st.text(max_size=200))
def test_any_text_gives_parts_and_keeps_its_offsets(text: str) -> None:
    record = read_record(text)
    assert list(record.starts) == sorted(record.starts)
    assert len(record.starts) == len(record.parts)
    assert len(record.spoken) == len(text)
    assert all(after in {" ", before} for before, after in zip(text, record.spoken, strict=True))
    assert all(0 <= option.start < option.end <= len(text) for option in record.options)
    assert set(record.chosen) <= set(record.options)
    record.told_as_chosen(text)


@pytest.mark.parametrize(
    "repeated",
    [
        "# Options\n* a fast one\n",
        "## Fast one\n* Vector\n",
        "## Option 1: Kafka\n",
        "chosen option: banana pie\n",
        "We decided ",
        "a\n===\n",
        "```\n",
        '"a ',
        "[a](",
        "**a** ",
        "#",
        "\x00\x1b[31m<b>",
    ],
)
def test_a_record_of_250_000_characters_is_read_in_linear_time(repeated: str) -> None:
    start = "# Keep it\n\n## Options\n\n* Vector\n* Kafka\n\n## Decision\n\n"
    text = start + repeated * (250_000 // len(repeated))
    with given_up_after(3):
        record = read_record(text)
        assert len(record.spoken) == len(text)
        record.told_as_chosen("Logs go to Kafka, " * 400)
    assert len(record.options) <= MOST_OPTIONS


WHY = """# ADR-7: Sessions live in the gateway

## Status

Accepted

## Context

Nine boats were lost in May, when a storm broke the pier.

## Decision

Sessions live in the gateway.
"""


def test_what_only_the_context_of_a_record_has_is_told_as_such() -> None:
    for claim, code in (
        ("Nine boats were lost in May (ADR-7).", "its context"),
        ("Ada Holm sold the boat in March (ADR-7).", "nothing of"),
    ):
        (citation,) = detect_citations(claim)
        found = Found(
            citation=citation,
            source_id="ADR-007",
            standing=Standing.IN_FORCE,
            detail="ADR-007 is in force.",
            title="Sessions live in the gateway",
            text=WHY,
            form="record",
        )
        held = hold(claim, (citation,), found)
        assert [one.stance for one in held.held or ()] == [Stance.SILENT]
        assert code in judge(claim, (citation,), held).message
