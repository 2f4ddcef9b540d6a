"""What a page says that approving an item will do, before anybody does it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.answers import (
    CHANGED,
    LOW,
    NOW,
    SENT,
    UNCLEAR,
    answer_of,
    claim_of,
    memory_of,
    missing,
    near,
    policy_with,
    view_of,
)
from vouchgate.ingest.claims.decision import ValidationResult

PLAIN = "Redis is on port 6379."
UNGROUNDED = answer_of(claim_of(PLAIN))
CONFLICT = answer_of(claim_of(CHANGED), dedup=near(), policy=LOW)
STRICT = policy_with(auto_approve_ai_synthesis=False)


def test_approving_says_what_it_will_store() -> None:
    def lines(answer: ValidationResult, **more: Any) -> list[tuple[str, str, bool | None]]:
        return [(o.label, o.line, o.supersede) for o in view_of(answer, **more).effect.options]

    medium = "Stores it as an inference of medium confidence that you vouch for"
    assert lines(UNGROUNDED) == [("Approve", f"{medium}.", None)]
    assert lines(CONFLICT, conflict=memory_of(), policy=LOW) == [
        ("Approve and replace", f"{medium}, in place of mem_1.", True),
        ("Approve and keep both", f"{medium}, and keeps mem_1 too.", False),
    ]
    until = answer_of(claim_of(PLAIN, validity_horizon=NOW + timedelta(days=1)))
    assert lines(until) == [("Approve", f"{medium} until 2026-03-05.", None)]
    assert lines(answer_of(claim_of(UNCLEAR), policy=STRICT)) == [
        ("Approve", "Stores it as a fact of high confidence that you vouch for.", None)
    ]
    assert (
        view_of(answer_of(claim_of(UNCLEAR), policy=STRICT)).effect.before
        == "Its sources are looked at again first."
    )
    assert view_of(missing("ADR-999 says so of Redis.")).effect.before == ""


def test_what_cannot_be_approved_says_why() -> None:
    over = answer_of(claim_of(PLAIN, validity_horizon=NOW - timedelta(days=1)))
    view = view_of(over)
    assert (view.effect.options, view.waiting) == ((), True)
    assert "which has passed" in view.effect.blocked
    assert view.valid_until is not None
    assert view.valid_until.ago == "1 day ago"
    late = view_of(UNGROUNDED, now=SENT + timedelta(days=30))
    assert (late.effect.options, late.waiting, late.priority) == ((), False, ())
    assert "time is over" in late.effect.blocked
    assert late.waited == "waits 30 days, its time is over"
    # Stored meanwhile, in the very words: the same rules as at the approval itself.
    same = answer_of(claim_of(CHANGED), dedup=near(), policy=LOW)
    view = view_of(same, conflict=memory_of(CHANGED), policy=LOW)
    assert view.effect.options == ()
    assert "stored meanwhile, as mem_1" in view.effect.blocked
