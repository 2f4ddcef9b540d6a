"""What owners say of publishers, for their own memories: whom they trust, whom they ban, and what that would change.

A trusted publisher counts as a listed one and is never official; a banned one vouches for nothing. Rights are those of
the review queue: a reviewer's, on what is the reviewer's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import names
from vouchgate.ingest.claims.decision import Tier, ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.trust import OwnPublishers, PublisherTrust, Trust
from vouchgate.ingest.pipeline import remake
from vouchgate.ingest.policy import Policy
from vouchgate.review import record
from vouchgate.review.reading import own_owners, parse_decision
from vouchgate.review.rules import Act
from vouchgate.storage.claims import decisions, lineage, memories, publishers
from vouchgate.storage.queue import pending
from vouchgate.storage.store import Store

MOST = 500  # publishers of which one owner says anything
MOST_DAYS = 3650
DAYS = 365  # unless the owner says otherwise
MOST_LOOKED_AT = 200  # waiting claims that a preview decides again

_ACTIONS = {Trust.TRUSTED: Action.PUBLISHER_TRUSTED, Trust.BANNED: Action.PUBLISHER_BANNED}


@dataclass(frozen=True, slots=True)
class TooManyPublishers:
    """The owner says something of MOST publishers already."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What bears on a publisher now: `waiting` claims cite it, of which `would_store` would have been stored had its
    owner trusted it (of the newest MOST_LOOKED_AT); `memories` in force rest on it, and would become stale when they
    are looked at under a ban."""

    waiting: int
    would_store: int
    memories: int


def may_decide(principal: Principal, owner_id: str) -> bool:
    """Whether this principal may trust or ban publishers for this owner."""
    return owner_id in own_owners(principal, Act.REVIEW)


def listing(store: Store, principal: Principal, now: datetime) -> Sequence[PublisherTrust]:
    """All that the reviewer says of publishers at this time, by name; nothing for any other principal."""
    owners = own_owners(principal, Act.READ_REVIEWS)
    if not owners:
        return []
    with store.read() as connection:
        return publishers.listing(connection, owners, now)


def decide(
    store: Store,
    principal: Principal,
    owner_id: str,
    publisher: str,
    trust: Trust,
    *,
    days: int,
    now: datetime,
) -> PublisherTrust | TooManyPublishers:
    """Notes and logs an owner's word on a publisher for so many days, in place of an earlier one. It counts for what is
    examined from now on. Raises PermissionError for who `may_decide` says no of."""
    _refuse_others(principal, owner_id)
    until = now + timedelta(days=days)
    said = PublisherTrust(
        owner_id=owner_id,
        publisher=publisher,
        trust=trust,
        until=until,
        created_at=now,
        decided_by=principal.id,
    )

    def work(connection: Connection) -> PublisherTrust | TooManyPublishers:
        publishers.put(connection, said)
        if publishers.count(connection, owner_id, now) > MOST:
            publishers.clear(connection, owner_id, publisher)
            return TooManyPublishers()
        document = record.document(publisher=publisher, trust=trust.value, until=until.isoformat())
        record.entry(connection, owner_id, _ACTIONS[trust], publisher, document, by=principal.id, now=now)
        return said

    return store.writer.run([owner_id], work).result()


def clear(store: Store, principal: Principal, owner_id: str, publisher: str, now: datetime) -> bool:
    """Takes an owner's word on a publisher back, and logs it; whether there was any. Raises PermissionError as
    `decide`."""
    _refuse_others(principal, owner_id)

    def work(connection: Connection) -> bool:
        if not publishers.clear(connection, owner_id, publisher):
            return False
        document = record.document(publisher=publisher)
        record.entry(
            connection, owner_id, Action.PUBLISHER_CLEARED, publisher, document, by=principal.id, now=now
        )
        return True

    return store.writer.run([owner_id], work).result()


def preview(
    store: Store,
    principal: Principal,
    owner_id: str,
    publisher: str,
    *,
    policy: Policy,
    detector: HedgeDetector,
    now: datetime,
) -> Preview:
    """What an owner's word on a publisher would bear on. Raises PermissionError as `decide`."""
    _refuse_others(principal, owner_id)
    own = frozenset({owner_id})
    wanted = names.wanted(f"site:{publisher}")
    with store.read() as connection:
        stored = lineage.counts(connection, memories.TABLE, owner_id, wanted, {})
        waits = lineage.counts(connection, pending.TABLE, owner_id, wanted, {})
        newest = pending.QueueFilter(
            owners=own, rests_on=wanted, order="newest", away=True, limit=MOST_LOOKED_AT
        )
        waiting = pending.search(connection, newest)
        kept = [parse_decision(decisions.get(connection, each.decision_id, owners=own)) for each in waiting]
    trusting = policy.heeding(OwnPublishers(trusted=(publisher,)))
    return Preview(
        waiting=waits.get("pending", {}).get("all", 0),
        would_store=sum(each is not None and _is_stored(each, trusting, detector) for each in kept),
        memories=stored.get("active", {}).get("all", 0),
    )


def _is_stored(kept: ValidationResult, policy: Policy, detector: HedgeDetector) -> bool:
    """Whether a claim would be stored on what was known when it came."""
    try:
        return remake(kept, policy, detector).decide().tier is Tier.STORED
    except ValueError:  # a decision of before, whose evidence lacks what is asked now
        return False


def _refuse_others(principal: Principal, owner_id: str) -> None:
    if not may_decide(principal, owner_id):
        raise PermissionError("only its owner trusts or bans a publisher")
