"""When the client sends a request again, and how long it waits."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate import ApiError, OddAnswer, QueueFull
from vouchgate.client import calls
from vouchgate.client.exchange import LONGEST_WAIT, MOST_WAITED, backoff, exchange, wait_before
from vouchgate.client.steps import HttpReply, NoReply, Pause, Reply, Send

BUSY = HttpReply(503, "text/plain", b"")
FULL = HttpReply(
    429,
    "application/problem+json",
    json.dumps({"status": 429, "code": "queue_full", "detail": "x"}).encode(),
    1,
)


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_waits_grow_and_are_spread(tries: int, share: float) -> None:
    assert 0.125 <= backoff(tries, share) <= LONGEST_WAIT
    assert backoff(tries, 0.0) * 2 == backoff(tries, 1.0)
    assert backoff(tries, share) <= backoff(tries + 1, share)


def test_what_is_tried_again() -> None:
    assert wait_before(BUSY, 0, 1.0) == 0.25
    assert wait_before(HttpReply(429, "", b"", 7), 0, 1.0) == 7
    assert wait_before(HttpReply(503, "", b"", 0), 3, 1.0) == 2.0
    assert wait_before(NoReply("gone", passing=True), 1, 0.0) == 0.25
    answers: list[HttpReply | NoReply] = [FULL, NoReply("odd", passing=False)]
    answers += [HttpReply(status, "", b"") for status in (200, 302, 409, 422, 500, 501)]
    for answer in answers:
        assert wait_before(answer, 0, 1.0) is None


@pytest.mark.parametrize("retry_after", [None, 0.0, 1.0, 15.0, 59.0, 61.0])
@pytest.mark.parametrize("retries", [0, 1, 4, 1000])
def test_a_request_ends(retries: int, retry_after: float | None) -> None:
    """However often it may be tried, and whatever the service asks for, waiting for it takes a minute at most."""
    body = json.dumps({"status": 503, "code": "busy", "detail": "x"}).encode()
    busy = HttpReply(503, "application/problem+json", body, retry_after)
    operation = exchange(calls.memory("mem_1"), retries)
    reply: Reply = None
    tries, waited = 0, 0.0
    with pytest.raises(ApiError) as caught:
        while True:
            step = operation.send(reply)
            if isinstance(step, Send):
                tries, reply = tries + 1, busy
            else:
                assert isinstance(step, Pause)
                assert step.seconds >= (retry_after or 0)
                waited, reply = waited + step.seconds, None
    assert caught.value.retry_after == retry_after
    assert 1 <= tries <= retries + 1
    assert waited <= MOST_WAITED
    if retry_after is not None and retry_after > MOST_WAITED:
        assert tries == 1
    elif retries <= 4 and (retry_after or 0) <= 1:
        assert tries == retries + 1


def test_an_error_gets_to_another_process_whole() -> None:
    full = QueueFull(429, "queue_full", "Later.", retry_after=7)
    full.idempotency_key = "run 7"
    for error in (full, OddAnswer("No JSON.", 200)):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301  (our own)
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    assert str(full) == "429 queue_full: Later."
