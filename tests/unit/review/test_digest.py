"""The digest says what matters, reads well in a mail, and cannot be bent by what claims say."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.rules import Rule
from vouchgate.review.digests.text import MOST_CLAIM, WIDTH, DigestFigures, digest_document, digest_text
from vouchgate.review.pages.wording.text import plain_line
from vouchgate.storage.outgoing.webhooks import Event, Webhook
from vouchgate.storage.queue.overview import EventCounts

NOW = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
DAY = timedelta(days=1)
PAGE = "https://gate.example.org/review"


def item(
    number: int = 1, content: str = "The hall is cold", rule: str = "ungrounded", age: timedelta = DAY
) -> PendingMemory:
    """A waiting claim."""
    return PendingMemory(
        id=f"rev_{number:032x}",
        owner_id="ann",
        memory_type=MemoryType.FACT,
        content=content,
        source=Source.AI_SYNTHESIS,
        reason="Ungrounded assertion needs verification",
        status=ReviewStatus.PENDING,
        version=1,
        seen=1,
        created_at=NOW - age,
        expires_at=NOW - age + 30 * DAY,
        decision_id=f"dec_{number:032x}",
        submitted_by="agent-1",
        rule=rule,
        priority_at=NOW - age,
    )


def webhook(**fields: Any) -> Webhook:
    """One that fails."""
    values: dict[str, Any] = {
        "id": "hook_" + "1" * 32,
        "owner_id": "ann",
        "url": "https://hooks.example.com/T0/very-secret-path",
        "events": frozenset({Event.WAITING}),
        "created_at": NOW - 9 * DAY,
        "told_seq": 3,
        "due_at": NOW + DAY,
        "attempts": 2,
        "failing_since": NOW - DAY,
        "last_error": "HTTP status 500",
    }
    return Webhook.model_validate(values | fields)


def figures(**fields: Any) -> DigestFigures:
    """A queue with nothing in it, but for `fields`."""
    values: dict[str, Any] = {
        "owner_id": "ann",
        "at": NOW,
        "hours": 24,
        "waiting": 0,
        "by_rule": {},
        "oldest": None,
        "expiring": 0,
        "first": (),
        "happened": EventCounts({}, complete=True),
        "failing": (),
        "page": PAGE,
    }
    return DigestFigures(**(values | fields))


FULL = figures(
    waiting=1012,
    by_rule={Rule.UNGROUNDED: 1000, Rule.CONFLICT: 10, Rule.TRUSTED_SOURCE: 2},
    oldest=NOW - 28 * DAY,
    expiring=1,
    first=[
        item(
            1,
            "The nightly export starts at 02:00 and must end before the billing run begins at 06:30. " * 2,
            "conflict",
        ),
        item(2, "The hall is cold", age=28 * DAY),
    ],
    happened=EventCounts(
        {
            Action.CLAIM_STORED: 40,
            Action.CLAIM_QUEUED: 12,
            Action.CLAIM_BLOCKED: 3,
            Action.REVIEW_APPROVED: 1,
            Action.MEMORY_STALE: 2,
            Action.SESSION_STARTED: 7,
        },
        complete=True,
    ),
    failing=[webhook()],
)


def test_a_full_digest_reads_well() -> None:
    assert (
        digest_text(FULL)
        == """\
1,012 claims wait for you. The oldest has waited 28 days. 1 expires
within 3 days.

Why they wait
   1,000  Ungrounded
      10  Conflict
       2  Waits

First in line

  Conflict, waits 1 day
    “The nightly export starts at 02:00 and must end before the billing
    run begins at 06:30. The nightly…”
    rev_00000000000000000000000000000001

  Ungrounded, waits 28 days, expires in 2 days
    “The hall is cold”
    rev_00000000000000000000000000000002

In the last 24 hours
  40 stored, 3 blocked, 12 queued, 1 approved, 2 found stale.

Your webhook at hooks.example.com has not answered since 2026-11-20
06:00 UTC. It is tried again. The last error:
  HTTP status 500
  vouchgate webhook test hook_11111111111111111111111111111111

Clear the queue: https://gate.example.org/review"""
    )


def test_an_empty_queue_is_one_line() -> None:
    assert digest_text(figures()) == "Nothing waits for you: the queue is clear."
    assert (
        digest_text(figures(page=None, happened=EventCounts({Action.TOKEN_CREATED: 1}, True))).count("\n")
        == 0
    )


def test_what_happened_is_told_of_an_empty_queue_too() -> None:
    text = digest_text(figures(hours=1, happened=EventCounts({Action.REVIEW_EXPIRED: 1}, False)))
    assert "In the last hour\n  1 expired without a decision." in text
    assert "only the last 100,000 entries of the log" in " ".join(text.split())
    assert PAGE not in text


def test_one_claim_is_not_many() -> None:
    text = digest_text(
        figures(
            waiting=1,
            by_rule={Rule.TECHNICAL_HEDGE: 1},
            oldest=NOW - DAY,
            first=[item(rule="technical_hedge")],
            page=None,
        )
    )
    assert text.startswith("1 claim waits for you. It has waited 1 day.\n\nWhy it waits\n       1  Hedged\n")
    assert text.endswith("vouchgate review list.")


def test_a_webhook_that_was_given_up_says_so_and_keeps_its_path_to_itself() -> None:
    text = digest_text(figures(failing=[webhook(due_at=None, last_error=None)]))
    assert "It was given up." in text
    for told in (text, json.dumps(digest_document(figures(failing=[webhook()])))):
        assert "very-secret-path" not in told


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("safe\n\nClear the queue: https://evil.example\n", "“safe Clear the queue: https://evil.example”"),
        ("pay \u202elatot\u202c now", "“pay ⟨U+202E⟩latot⟨U+202C⟩ now”"),
        ("a\x1b[31mred\x07", "“a⟨U+001B⟩[31mred⟨U+0007⟩”"),
        ("zero\u200bwidth", "“zero⟨U+200B⟩width”"),
        ("", "“”"),
    ],
)
def test_a_claim_cannot_leave_its_quotes(content: str, shown: str) -> None:
    text = digest_text(figures(waiting=1, first=[item(content=content)]))
    assert f"    {shown}\n" in text


@example(
    "", "\u0300\u0301\u0300\u0301\u0300" + "0" * 9 + "\u0300" * 5 + "\u03010\u0300"
)  # a line ended before an accent
@example("", "x" * 69 + "\U0001f469\u200d\U0001f4bb")
@example("", "\u3000\u0301")  # an accent on white space, at which a line begins
@example("\u200b " * 9 + "\u0301", "")
@example("", "\u0903\u0301\u0301" * 40)  # nothing but what goes with the character before it
@example("\ufe0f\u200d\U0001f469", "")  # joined to something that is not shown
@example("\U0001f469\u200d" * 60, "")  # all of it joined
@example("x" * 98 + "\U0001f469\u200d\U0001f4bb" * 9, "")  # cut at a joiner
@given(st.text(max_size=400), st.text(max_size=300))
def test_any_text_keeps_the_lines_short_and_in_place(content: str, error: str) -> None:
    queue = figures(waiting=1, first=[item(content=content)], failing=[webhook(last_error=error)])
    text = digest_text(queue)
    assert all(len(line) <= WIDTH for line in text.split("\n"))
    assert all(
        plain_line(line, 1000) == " ".join(line.split()) for line in text.split("\n")
    )  # nothing unseen
    assert len(text.splitlines()) == text.count("\n") + 1
    (start,) = [n for n, line in enumerate(text.split("\n")) if line.startswith("    “")]
    end = text.split("\n").index(f"    rev_{1:032x}")
    assert 1 <= end - start <= 4
    assert sum(len(line) - 4 for line in text.split("\n")[start:end]) <= MOST_CLAIM + 2
    json.dumps(digest_document(queue))


def test_programs_get_the_same_figures_whole() -> None:
    document = digest_document(FULL)
    assert json.loads(json.dumps(document)) == document
    assert document["waiting"] == 1012
    assert document["reasons"] == {"ungrounded": 1000, "conflict": 10, "other": 2}
    assert document["oldest_at"] == "2026-10-24T06:00:00+00:00"
    assert [one["content"] for one in document["first"]] == [one.content for one in FULL.first]
    assert document["happened"]["stored"] == 40
    assert document["happened"]["rejected"] == 0
    assert document["webhooks_failing"][0]["host"] == "hooks.example.com"
