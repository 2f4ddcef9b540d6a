"""What owners say of publishers, for their own memories: whom they trust, whom they ban, and what that would change.

A trusted publisher counts as a listed one and is never official; a banned one vouches for nothing. Rights are those of
the review queue: a reviewer's, on what is the reviewer's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import names
from vouchgate.ingest.claims.decision import Tier, ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.trust import OwnPublishers, PublisherTrust, Trust
from vouchgate.ingest.pipeline import remake
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.reputation import publishers_of
from vouchgate.review.answers import ApprovalRefused
from vouchgate.review.reading import own_owners, parse_decision
from vouchgate.review.rules import Act
from vouchgate.review.trust.backtest import Backtest, Backtester
from vouchgate.review.vouching import four_eyes
from vouchgate.storage import switches
from vouchgate.storage.claims import decisions, lineage, memories, publishers
from vouchgate.storage.queue import pending, proposers
from vouchgate.storage.store import Store

MOST = 500  # publishers of which one owner says anything
MOST_DAYS = 3650
REFUSED = "Only its owner trusts or bans a publisher."
_ALONE = (
    "Whoever trusts a publisher vouches for what it says, also to their own agent, and by the policy nobody vouches "
    "alone (four_eyes). Rule on each claim instead; a ban is possible."
)
DAYS = 365  # unless the owner says otherwise
MOST_LOOKED_AT = 200  # waiting claims that a preview decides again

MOST_TESTED = 500  # newest decisions that a preview looks through: some half a second
_EVER = datetime(1970, 1, 1, tzinfo=UTC)

_ACTIONS = {Trust.TRUSTED: Action.PUBLISHER_TRUSTED, Trust.BANNED: Action.PUBLISHER_BANNED}


@dataclass(frozen=True, slots=True)
class TooManyPublishers:
    """The owner says something of MOST publishers already."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What bears on a publisher now: `waiting` claims cite it, of which `would_store` would have been stored had its
    owner trusted it (of the newest MOST_LOOKED_AT); `memories` in force rest on it, and would become stale when they
    are looked at under a ban. Of the `last` decisions, those that cite it are made again as if they had been `trusted`,
    and `banned`."""

    waiting: int
    would_store: int
    memories: int
    last: int
    trusted: Backtest
    banned: Backtest


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
    policy: Policy,
    now: datetime,
) -> PublisherTrust | TooManyPublishers | ApprovalRefused:
    """Notes and logs an owner's word on a publisher for so many days, in place of an earlier one. It counts for what is
    examined from now on. Raises PermissionError for who `may_decide` says no of, or does not rule any more."""
    _refuse_others(principal, owner_id)
    if trust is Trust.TRUSTED and policy.four_eyes == "always":
        return ApprovalRefused(four_eyes.CODE, _ALONE)
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
        _refuse_who_left(connection, principal, owner_id, now)
        publishers.put(connection, said)
        if publishers.count(connection, owner_id, now) > MOST:
            publishers.clear(connection, owner_id, publisher)
            return TooManyPublishers()
        about = {"publisher": publisher, "trust": trust.value, "until": until.isoformat()}
        switches.put(connection, owner_id, _ACTIONS[trust], publisher, about, by=principal.id, now=now)
        return said

    return store.writer.run([owner_id], work).result()


def clear(store: Store, principal: Principal, owner_id: str, publisher: str, now: datetime) -> bool:
    """Takes an owner's word on a publisher back, and logs it; whether there was any. Raises PermissionError as
    `decide`."""
    _refuse_others(principal, owner_id)

    def work(connection: Connection) -> bool:
        _refuse_who_left(connection, principal, owner_id, now)
        if not publishers.clear(connection, owner_id, publisher):
            return False
        about = {"publisher": publisher}
        switches.put(
            connection, owner_id, Action.PUBLISHER_CLEARED, publisher, about, by=principal.id, now=now
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
        citing = [parse_decision(decisions.get(connection, each.decision_id, owners=own)) for each in waiting]
        last = decisions.since(connection, owner_id, _EVER, agent=None, most=MOST_TESTED)
    tested = {
        trust: Backtester(policy, store.load_policy, partial(_with, publisher, trust)) for trust in Trust
    }
    for _, document in reversed(last):
        kept = parse_decision(document)
        if kept is not None and any(publisher in publishers_of(each) for each in kept.evidence.sources):
            for one in tested.values():
                one.add([document])
    trusting = policy.heeding(OwnPublishers(trusted=(publisher,)))
    return Preview(
        waiting=waits.get("pending", {}).get("all", 0),
        would_store=sum(each is not None and _is_stored(each, trusting, detector) for each in citing),
        memories=stored.get("active", {}).get("all", 0),
        last=len(last),
        trusted=tested[Trust.TRUSTED].result(),
        banned=tested[Trust.BANNED].result(),
    )


def _with(publisher: str, trust: Trust, said: OwnPublishers) -> OwnPublishers:
    """What an owner said then, with this word on a publisher in place of the one before."""
    others = {each: [name for name in getattr(said, each) if name != publisher] for each in Trust}
    others[trust].append(publisher)
    return OwnPublishers(trusted=tuple(others[Trust.TRUSTED]), banned=tuple(others[Trust.BANNED]))


def _is_stored(kept: ValidationResult, policy: Policy, detector: HedgeDetector) -> bool:
    """Whether a claim would be stored on what was known when it came."""
    try:
        return remake(kept, policy, detector).decide().tier is Tier.STORED
    except ValueError:  # a decision of before, whose evidence lacks what is asked now
        return False


def _refuse_others(principal: Principal, owner_id: str) -> None:
    if not may_decide(principal, owner_id):
        raise PermissionError(REFUSED)


def _refuse_who_left(connection: Connection, principal: Principal, owner_id: str, now: datetime) -> None:
    """Looks again, in the transaction: the principal was looked up before it."""
    if not proposers.may_still_rule(connection, principal, owner_id, now):
        raise PermissionError(REFUSED)
