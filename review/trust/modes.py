"""Who may say that the gate enforces, only observes or takes nothing; and what becomes of what it let through.

Modes are the operator's. Who rules for an owner may stop an agent, or all, for that owner, and end that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.modes import ModeSwitch
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import Lane
from vouchgate.ingest.policy import Policy
from vouchgate.review.rules import Act, is_allowed
from vouchgate.review.trust.requeue import Requeue
from vouchgate.storage import ids, modes
from vouchgate.storage.claims import unvouched
from vouchgate.storage.identity import owners
from vouchgate.storage.identity.memberships import UnknownOwner
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.queue import proposers
from vouchgate.storage.queue.capacity import QueueCapacity, QueueFull
from vouchgate.storage.store import Store

PUT_BEFORE_ITS_OWNER = "it was let through unvouched, and waits for its owner now"
REFUSED = "Who rules for an owner stops agents for that owner."
_BECAUSE = "let through while the gate only observed"
_AT_ONCE = 50  # memories that one transaction puts before their owner: it holds the owner's lock


def switch(store: Store, wanted: ModeSwitch, by: Principal | None = None) -> None:
    """Sets a mode or a stop, at once and for every process. `by`: whose right to is looked at again, unless it is the
    operator. Raises UnknownOwner, as to lock an owner's row makes one, and PermissionError."""
    owner_id = wanted.owner_id or SERVICE_OWNER
    if wanted.owner_id:
        with store.read() as connection:
            if not owners.is_known(connection, owner_id):
                raise UnknownOwner

    def work(connection: Connection) -> None:
        if by and not proposers.acts_still_for(connection, by.id, wanted.owner_id, wanted.since):
            raise PermissionError(REFUSED)
        modes.put(connection, wanted)

    store.writer.run([owner_id], work, always=True).result()


def may_stop(principal: Principal, owner_id: str) -> bool:
    """Whether this principal may stop agents for an owner, or with an empty id for all of them."""
    if not is_allowed(principal, Act.STOP):
        return False
    return principal.any_owner or (bool(owner_id) and owner_id in principal.owners)


def bearing_on(store: Store, owner_ids: Sequence[str]) -> list[ModeSwitch]:
    """What stands for one of these owners and is not as ever."""
    with store.read() as connection:
        return [one for one in modes.in_force(connection, owner_ids) if one.matters]


@dataclass(frozen=True, slots=True)
class PutBefore:
    """So many memories that were let through wait for their owner now, and so many went because they would be blocked
    or are known by now; so many are left. `full`: the queue has no more room for them."""

    queued: int
    gone: int
    left: int
    full: bool


def review_unvouched(
    store: Store, owner_id: str, *, policy: Policy, detector: HedgeDetector, by: str, now: datetime
) -> PutBefore:
    """Puts what was let through for an owner into their queue, the oldest first, as far as there is room. A memory that
    waits is retracted: it is stored again once somebody vouches for it."""
    queued = gone = 0
    full = False
    crowded = frozenset[str]()  # agents that have no place left: what others sent may have one
    requeue = Requeue(owner_id, by, policy, detector, now)
    while not full:
        suffixes = [ids.new_id_suffix(now) for _ in range(_AT_ONCE)]

        def work(
            connection: Connection, suffixes: list[str] = suffixes, without: frozenset[str] = crowded
        ) -> tuple[int, int, bool, set[str]]:
            state = owners.lock_owners(connection, [owner_id])[owner_id]
            places = QueueCapacity(connection, lock_total=True, at_once=True)
            queued = gone = 0
            full, crowded = False, set[str]()
            found = unvouched.in_force(connection, owner_id, _AT_ONCE, without=without)
            for act, suffix in zip(found, suffixes, strict=False):
                if act.principal_id in crowded:
                    continue
                again = requeue.decide_again(connection, act)
                if again is not None:
                    reserved = places.reserve(state, policy.queue, act.principal_id, Lane.AGENT)
                    if isinstance(reserved, QueueFull) and reserved.which.of_sender:
                        crowded.add(act.principal_id)
                        continue
                    if full := reserved is not None:
                        break
                    requeue.wait(connection, act, suffix, *again, _BECAUSE)
                    queued += 1
                else:
                    gone += 1
                requeue.retract(connection, act, PUT_BEFORE_ITS_OWNER)
            places.write()
            return queued, gone, full, crowded

        some, others, full, more = store.writer.run([owner_id], work).result()
        queued, gone, crowded = queued + some, gone + others, crowded | more
        if not (some or others or more):
            break
    with store.read() as connection:
        return PutBefore(queued, gone, unvouched.count(connection, owner_id), full or bool(crowded))
