"""When a request is sent again. Pure: waiting and sending are steps that the clients take."""

from __future__ import annotations

import random
from typing import TypeVar

from vouchgate.client.answers import error_of, problem_of, result_of
from vouchgate.client.errors import Halted, QueueFull, VouchgateError
from vouchgate.client.steps import Call, HttpReply, NoReply, Operation, Pause, Send

T = TypeVar("T")

FIRST_WAIT = 0.25  # seconds; doubled for each try
LONGEST_WAIT = 8.0
MOST_WAITED = 60.0  # seconds waited between the tries of one request, in all
PASSING = frozenset({502, 503, 504})


def exchange(call: Call[T], retries: int) -> Operation[T]:
    """Sends a request until there is an answer that counts, at most `retries` times again.

    Every write has an Idempotency-Key that stays the same, so that one which was kept, and whose answer was lost, is
    answered and not done again. Raises VouchgateError with that key.
    """
    tries, waited = 0, 0.0
    while True:
        reply = yield Send(call)
        assert isinstance(reply, HttpReply | NoReply)  # noqa: S101  (what a driver replies to Send)
        seconds = wait_before(reply, tries, random.random())  # noqa: S311  (spreads tries, guards nothing)
        if seconds is None or tries >= retries or waited + seconds > MOST_WAITED:
            break
        yield Pause(seconds)
        tries, waited = tries + 1, waited + seconds
    try:
        if isinstance(reply, NoReply):
            raise error_of(reply)
        return result_of(call, reply)
    except VouchgateError as error:
        error.idempotency_key = call.key
        raise


def wait_before(reply: HttpReply | NoReply, tries: int, share: float) -> float | None:
    """Seconds to wait before another try, None when it would not end otherwise. `share`, 0 to 1, is what spreads the
    clients of a service that was down, so that they do not all come back at once.

    Tried again: what no answer came to, 502, 503, 504, and 429; but for a full queue, which only its owner can clear,
    and what somebody stopped or made read-only.
    """
    if isinstance(reply, NoReply):
        return backoff(tries, share) if reply.passing else None
    if isinstance(problem_of(reply), QueueFull | Halted):
        return None
    if reply.status != 429 and reply.status not in PASSING:
        return None
    return max(backoff(tries, share), reply.retry_after or 0.0)


def backoff(tries: int, share: float) -> float:
    """Seconds: twice as long for each try before, and between half and all of that."""
    whole = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(tries, 16))
    return whole * (0.5 + share / 2)
