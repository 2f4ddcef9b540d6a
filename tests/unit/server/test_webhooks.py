"""What an outcome means for a message, how it is signed, and when it is tried again: pure, no clock and no network."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from tests.claims import NOW, examined
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.net.fetched import Fetched, FetchFailed
from vouchgate.ingest.rules import BY_CITATION, Rule
from vouchgate.storage.outgoing.webhook_messages import REASONS, body, message_id
from vouchgate.workers.webhooks import WAITS, RetryDecision, SendResult, decide_retry, headers_of, sign

URL = "https://example.com/hook/secret-path"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def answered(status: int, **headers: str) -> Fetched:
    return Fetched(URL, status, {name.replace("_", "-"): value for name, value in headers.items()}, b"", True)


def after(verdict: RetryDecision) -> float:
    """Seconds until the next try."""
    assert verdict.due_at is not None
    return (verdict.due_at - NOW).total_seconds()


def test_the_signature_is_the_one_of_the_specification() -> None:
    text = body("webhook.test", NOW, {"owner_id": "änn \N{SNOWMAN}"})
    assert text.isascii()
    theirs = Webhook(SECRET).sign("msg_1", NOW, text)
    assert sign(SECRET, "msg_1", int(NOW.timestamp()), text) == theirs
    headers = headers_of(SECRET, "msg_1", text, NOW)
    assert headers == {
        "content-type": "application/json",
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(NOW.timestamp())),
        "webhook-signature": theirs,
    }
    assert sign(SECRET, "msg_2", int(NOW.timestamp()), text) != theirs


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_taken_in(status: int) -> None:
    assert decide_retry(answered(status, retry_after="99"), "msg_1", 7, NOW) == RetryDecision(SendResult.TOLD)


@pytest.mark.parametrize("status", [100, 301, 302, 307, 400, 404, 409, 429, 500, 503])
def test_anything_else_is_tried_again_until_it_is_given_up(status: int) -> None:
    waits, attempts = [], 0
    while (verdict := decide_retry(answered(status), "msg_1", attempts, NOW)).result is SendResult.FAILED:
        attempts = verdict.attempts
        assert str(status) in verdict.error
        waits.append(after(verdict))
    assert (verdict.result, verdict.attempts, verdict.due_at) == (SendResult.GIVEN_UP, 10, None)
    assert len(waits) == len(WAITS)
    for planned, wait in zip(WAITS, waits, strict=True):
        assert planned <= wait <= 1.1 * planned
    assert timedelta(days=3) < timedelta(seconds=sum(waits)) < timedelta(days=4)


def test_a_receiver_that_is_gone_is_given_up_at_once() -> None:
    verdict = decide_retry(answered(410, retry_after="5"), "msg_1", 0, NOW)
    assert (verdict.result, verdict.due_at, verdict.attempts) == (SendResult.GIVEN_UP, None, 1)


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [
        ("1", 5, 5.5),
        ("7200", 7200, 7200),
        ("Mon, 04 May 2026 14:30:15 GMT", 7199, 7200),
        ("Mon, 04 May 2020 14:30:15 GMT", 5, 5.5),
        ("9999999", 86_400, 86_400),
        ("soon", 5, 5.5),
        ("-1", 5, 5.5),
    ],
)
def test_a_receiver_may_ask_for_more_time_up_to_a_day(asked: str, low: float, high: float) -> None:
    assert low <= after(decide_retry(answered(503, retry_after=asked), "msg_1", 0, NOW)) <= high


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [
        (None, 5, 5.5),
        (NOW - timedelta(hours=1), 5, 5.5),
        (NOW + timedelta(hours=1), 3600, 3960),
        (datetime.max.replace(tzinfo=UTC), 86_400, 95_040),
    ],
)
def test_what_was_not_sent_is_no_try(asked: datetime | None, low: float, high: float) -> None:
    held = FetchFailed("rate_limited", "rate limited: example.com wants no requests", URL, retry_after=asked)
    verdict = decide_retry(held, "msg_1", 9, NOW)
    assert (verdict.result, verdict.attempts) == (SendResult.NOT_SENT, 9)
    assert low <= after(verdict) <= high


@pytest.mark.parametrize(
    "code", ["refused", "missing_host", "dns", "timeout", "tls", "connection", "offline"]
)
def test_no_answer_is_a_try_that_failed(code: str) -> None:
    verdict = decide_retry(FetchFailed(code, f"{code}: why", URL), "msg_1", 0, NOW)
    assert (verdict.result, verdict.error) == (SendResult.FAILED, f"{code}: why")


@given(st.text(), st.integers(0, 8))
def test_waits_are_spread_and_always_the_same_for_one_message(name: str, attempts: int) -> None:
    one = decide_retry(answered(500), name, attempts, NOW)
    assert one == decide_retry(answered(500), name, attempts, NOW)
    assert WAITS[attempts] <= after(one) <= 1.1 * WAITS[attempts]


def test_messages_that_failed_together_do_not_come_back_together() -> None:
    names = [message_id("hook_1", str(number)) for number in range(500)]
    assert len(set(names)) == 500
    times = sorted(after(decide_retry(answered(500), name, 5, NOW)) for name in names)
    assert times[250] - times[0] > 1000  # of the 3,600 seconds that a tenth of the wait is


def test_the_path_of_a_url_is_told_to_nobody() -> None:
    for status in (302, 404, 410):
        assert "secret-path" not in decide_retry(answered(status), "msg_1", 0, NOW).error


def test_a_reason_is_known_for_each_rule_that_queues() -> None:
    """What waits already makes no item of its own, and these others store or block."""
    stored = BY_CITATION | {Rule.TRUSTED_SOURCE, Rule.STATED_IN_CONVERSATION, Rule.STANDING_RULING}
    blocked = {Rule.CREDENTIAL, Rule.SPECULATION, Rule.DUPLICATE}
    assert set(REASONS) == set(Rule) - stored - blocked - {Rule.ALREADY_PENDING}
    assert examined("The hall is cold", source=Source.AI_SYNTHESIS).claim.content not in REASONS.values()
