"""What owners see and say of the memories that were drawn for them to judge (`storage.queue.spot_checks`). Rights are
those of the review queue: a reviewer's, on what is the reviewer's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import SpotCheck, SpotVerdict
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.sampling import interval
from vouchgate.review import record
from vouchgate.review.answers import ApprovalRefused, NotFound
from vouchgate.review.reading import own_owners
from vouchgate.review.rules import Act
from vouchgate.review.vouching import four_eyes
from vouchgate.storage.claims import memories, sayings
from vouchgate.storage.queue import spot_checks
from vouchgate.storage.queue.proposers import may_still_rule, proposer_of
from vouchgate.storage.queue.spot_checks import OPEN, Open, VerdictCounts
from vouchgate.storage.store import Store

_ACTIONS = {
    SpotVerdict.RIGHT: Action.SPOT_CHECK_RIGHT,
    SpotVerdict.WRONG: Action.SPOT_CHECK_WRONG,
    SpotVerdict.CANNOT_TELL: Action.SPOT_CHECK_CANNOT_TELL,
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A spot check with the memory it is about, in whatever status that is by now."""

    check: SpotCheck
    memory: Memory


def search(
    store: Store,
    principal: Principal,
    now: datetime,
    *,
    verdict: SpotVerdict | Open = OPEN,
    after: str | None = None,
    limit: int,
) -> Sequence[Drawn]:
    """The reviewer's own spot checks of this verdict, the newest memory first; none for any other principal."""
    owners = own_owners(principal, Act.READ_REVIEWS)
    with store.read() as connection:
        found = spot_checks.search(connection, owners, verdict=verdict, after=after, limit=limit)
        return _drawn(connection, found, now)


def counts(store: Store, principal: Principal) -> VerdictCounts:
    """How often the reviewer said what of which rule."""
    with store.read() as connection:
        return spot_checks.counts(connection, own_owners(principal, Act.READ_REVIEWS))


@dataclass(frozen=True, slots=True)
class Judged:
    """How often claims of an agent, with a kind of citation or of a publisher (`of`) were right, by the latest verdicts
    of one owner, and between which shares the true one lies at 95 %."""

    owner_id: str
    of: str
    name: str
    right: int
    wrong: int
    low: float
    high: float


def records(store: Store, principal: Principal) -> list[Judged]:
    """All of whom the reviewer judged anything, by owner, agents first, those who were judged most before others."""
    found: list[Judged] = []
    with store.read() as connection:
        for owner_id in sorted(own_owners(principal, Act.READ_REVIEWS)):
            for (of, name), said in sayings.load_records(connection, owner_id).items():
                low, high = interval(said)
                found.append(
                    Judged(owner_id, of, name, said.right, said.wrong, round(low, 3), round(high, 3))
                )
    return sorted(found, key=lambda one: (one.owner_id, one.of, -one.right - one.wrong, one.name))


def answer(
    store: Store, principal: Principal, memory_id: str, verdict: SpotVerdict, now: datetime, *, policy: Policy
) -> Drawn | NotFound | ApprovalRefused:
    """Notes and logs what the owner says of a memory, in place of what was said before; saying the same again writes
    nothing. The person behind the agent may say `wrong`, and nothing better. The memory stays as it is: whoever said
    `wrong` may retract it."""
    owners = own_owners(principal, Act.REVIEW)
    with store.read() as connection:
        seen = spot_checks.get(connection, memory_id, owners=owners)
    if seen is None:
        return NotFound()
    owner_id = seen.owner_id

    def work(connection: Connection) -> Drawn | NotFound | ApprovalRefused:
        check = spot_checks.get(connection, memory_id, owners=frozenset({owner_id}))
        memory = memories.by_ids(connection, owner_id, [memory_id], now).get(memory_id)
        if check is None or memory is None or not may_still_rule(connection, principal, owner_id, now):
            return NotFound()
        if check.verdict is not verdict:
            barred = four_eyes.find_problem(
                connection, principal, proposer_of(connection, memory), owner_id, policy=policy, now=now
            )
            if barred is not None and verdict is not SpotVerdict.WRONG:
                return ApprovalRefused(four_eyes.CODE, barred)
            check = spot_checks.answer(connection, check, verdict, by=principal.id, at=now)
            document = record.document(memory=memory_id, verdict=verdict.value)
            record.entry(
                connection, owner_id, _ACTIONS[verdict], memory_id, document, by=principal.id, now=now
            )
        return Drawn(check, memory)

    return store.writer.run([owner_id], work).result()


def _drawn(connection: Connection, checks: Sequence[SpotCheck], now: datetime) -> list[Drawn]:
    """With their memories."""
    found: dict[str, Memory] = {}
    for owner_id in {check.owner_id for check in checks}:
        wanted = [check.memory_id for check in checks if check.owner_id == owner_id]
        found |= memories.by_ids(connection, owner_id, wanted, now)
    return [Drawn(check, found[check.memory_id]) for check in checks if check.memory_id in found]
