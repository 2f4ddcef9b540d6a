"""Applying what was delivered, in order, until nothing is left. Pure but for the clock that is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

from vouchgate.client import calls
from vouchgate.client.errors import ApiError, DeadLetter
from vouchgate.client.exchange import exchange
from vouchgate.client.models import Delivered
from vouchgate.client.steps import CallFunction, Operation, Reply
from vouchgate.ingest.claims.leased import Delivery

LEASE_SECONDS = 60.0
# Nothing is begun on a lease older than this: who applies for longer than the rest is overtaken by the next holder.
BEGIN_WITHIN = LEASE_SECONDS / 2
MOST_AT_ONCE = 20
MOST_ERROR = 500  # characters of an error that the service keeps

Apply = Callable[[Delivery], Awaitable[None] | None]


def deliver(
    sink: str,
    apply: Apply,
    *,
    user_id: str | None,
    retries: int,
    clock: Callable[[], float],
    handed: Delivery | None = None,
) -> Operation[Delivered]:
    """Leases until nothing is left, and applies each delivery in order; `clock` gives seconds that only rise. One
    that was `handed` over with a verdict just now is applied, and nothing is leased.

    An exception of `apply` marks its delivery as failed, DeadLetter as given up. After a failure nothing more of that
    owner is applied from this lease: the order holds per owner. Raises VouchgateError when the service cannot be asked
    any more; what was applied then may be leased, and applied, a second time.
    """
    done = failed = dead = 0
    more = True
    most, slowest = 2, 0.0  # few at first: nobody knows yet how long `apply` takes
    while more:
        leased_at = clock()
        if handed is None:
            leased = yield from exchange(calls.lease_deliveries(sink, most=most, user_id=user_id), retries)
        else:
            leased = [handed]
        heard = False  # whether the service took anything of what was told about this lease
        ended = len(leased) < most  # one that is not full has all that is due
        held_up = set[str]()
        since: dict[
            str, float
        ] = {}  # the lease of an owner's deliveries is renewed by every report on one of them
        for delivery in leased:
            owner, begun = delivery.owner_id, clock()
            if owner in held_up or begun - since.get(owner, leased_at) > BEGIN_WITHIN:
                ended = ended and owner in held_up
                continue
            error = yield CallFunction(partial(apply, delivery))
            slowest = max(slowest, clock() - begun)
            told = yield from _report(delivery, error, retries)
            done, failed, dead = done + (told == "done"), failed + (told == "failed"), dead + (told == "dead")
            if told == "lost":
                held_up.add(owner)
                continue
            heard, since[owner] = True, clock()
            if told == "failed":
                held_up.add(owner)
        more = heard and not ended
        most = max(1, min(MOST_AT_ONCE, int(BEGIN_WITHIN / slowest))) if slowest else MOST_AT_ONCE
    return Delivered(done, failed, dead)


def _report(
    delivery: Delivery, error: Reply, retries: int
) -> Operation[Literal["done", "failed", "dead", "lost"]]:
    """What became of a delivery. `lost`: the service did not take the report, because the lease has ended; somebody
    else may have the delivery now, and tells what becomes of it."""
    try:
        if not isinstance(error, Exception):
            yield from exchange(calls.delivery_done(delivery), retries)
            return "done"
        call = calls.report_failed(delivery, _describe_error(error), final=isinstance(error, DeadLetter))
        return "dead" if (yield from exchange(call, retries)) else "failed"
    except ApiError as refused:
        if refused.status in (404, 409):
            return "lost"
        raise


def _describe_error(error: Exception) -> str:
    """What to show the owner of an exception: a dead letter's own sentence, else the kind and the message."""
    said = str(error) if isinstance(error, DeadLetter) else f"{type(error).__name__}: {error}"
    readable = "".join(sign if sign.isprintable() else " " for sign in said).strip()
    return readable[:MOST_ERROR] or type(error).__name__
