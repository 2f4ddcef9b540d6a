"""What owners see of their queue: pages of it, counts, one item with why it waits, and what became of others."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError
from sqlalchemy import Connection

from vouchgate.ingest.claims.decision import RejectedBefore, ValidationResult
from vouchgate.ingest.claims.likeness import SimilarMemory
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.dedup.compare import Comparisons
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.dedup.similar import nearest
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.policy import Policy
from vouchgate.review.answers import ApprovalRefused
from vouchgate.review.approval import check_conflicts, stored_only
from vouchgate.review.counts import QueueCounts, sum_facets
from vouchgate.review.numbers import DAYS, Numbers, NumbersCounter
from vouchgate.review.rules import Act, is_allowed, is_owner, may_rule_on
from vouchgate.review.vouching import voting
from vouchgate.review.vouching.four_eyes import find_problem
from vouchgate.review.vouching.owner_rules import NO_RULES, ONE, OwnerRules, Required
from vouchgate.storage.claims import decisions, memories
from vouchgate.storage.dedup import contradicting, index, similar
from vouchgate.storage.queue import history, pending, rechecks, rulings, votes
from vouchgate.storage.queue.history import EVERYTHING, HistoryFilter
from vouchgate.storage.queue.overview import Facets
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.storage.queue.rejections import rejection_of
from vouchgate.storage.queue.rulings import Done
from vouchgate.storage.queue.votes import Vote
from vouchgate.storage.store import Store

log = logging.getLogger(__name__)

_TAKEN_BACK = (Action.REVIEW_UNDONE, Action.REVIEW_VOTE_WITHDRAWN)
# What people do beside ruling on what waits, and in which words they are told that they did it last.
BY_HAND = {
    Action.REVIEW_SNOOZED: "snoozed a claim",
    Action.REVIEW_SENT_BACK: "sent a claim back to its agent",
    Action.REVIEW_RESUMED: "put a claim into the list again",
    Action.REVIEW_ASSIGNED: "said who is to rule on a claim",
    Action.MEMORY_RETRACTED: "retracted a memory",
    Action.MEMORY_CONFIRMED: "confirmed a memory",
    Action.MEMORY_ERASED: "erased a claim",
    Action.MEMORY_ERASE_ASKED: "asked to erase a claim",
    Action.SPOT_CHECK_RIGHT: "looked at a spot check",
    Action.SPOT_CHECK_WRONG: "looked at a spot check",
    Action.SPOT_CHECK_CANNOT_TELL: "looked at a spot check",
    Action.PUBLISHER_TRUSTED: "trusted a publisher",
    Action.PUBLISHER_BANNED: "banned a publisher",
    Action.PUBLISHER_CLEARED: "took back a word on a publisher",
    Action.STANDING_RULING_CONFIRMED: "made a standing ruling",
    Action.STANDING_RULING_ENDED: "took a standing ruling back",
    Action.AUDIT_CLEARED: "cleared rows of an audit",
    Action.AUDIT_KEPT: "kept rows of an audit",
    Action.AUDIT_UNDONE: "took back an act on an audit",
    Action.DOCUMENT_DELETED: "deleted a document",
    Action.DELIVERY_RETRIED: "put a delivery back",
    Action.DELIVERY_DROPPED: "gave a delivery up",
    Action.MODE_SET: "set a mode",
    Action.STOPPED: "set a stop",
    Action.RESUMED: "ended a stop",
}


@dataclass(frozen=True, slots=True)
class VoteCount:
    """What it takes to approve an item, and every vote on it, also those that count no more; `given` are the approvals
    that count, or counted when it was decided."""

    required: Required
    votes: tuple[Vote, ...]
    given: tuple[Vote, ...]


@dataclass(frozen=True, slots=True)
class LastAct:
    """The items that somebody ruled or voted on last, and what they did after that which is no ruling, such as a
    snooze: taking back what is before it would not take back what they did last."""

    items: tuple[PendingMemory, ...]
    since: Done | None = None


class QueueReader:
    """The reading half of `review.queue.ReviewQueue`. Nothing here writes but that a claim was looked at."""

    def __init__(self, store: Store, policy: Policy, rules: OwnerRules = NO_RULES) -> None:
        self._store = store
        self._policy = policy
        self._rules = rules
        self._counts = QueueCounts()
        self._numbers = NumbersCounter()

    def search(self, principal: Principal, wanted: QueueFilter | None = None) -> list[PendingMemory]:
        """Items that match, in the order asked for. Whatever owners `wanted` names, they are of the reviewer's own
        queue, or of owners that an auditor has by name; none for any other principal. An item past its time is listed
        until `expire` meets it, but cannot be approved any more."""
        owners = own_owners(principal, Act.READ_RULINGS)
        if not owners:
            return []
        with self._store.browse() as connection:
            own = (wanted or QueueFilter()).model_copy(update={"owners": owners, "me": principal.id})
            return pending.search(connection, own)

    def neighbours(self, principal: Principal, item_id: str, wanted: QueueFilter) -> str | None:
        """The id of the item that comes after this one, which may be decided by now, among those that match;
        None after the last. Else as `search`."""
        found = self.search(principal, wanted.model_copy(update={"after": item_id, "limit": 1}))
        return found[0].id if found else None

    def history(
        self,
        principal: Principal,
        *,
        wanted: HistoryFilter = EVERYTHING,
        after: str | None = None,
        limit: int = 50,
    ) -> list[PendingMemory]:
        """Items of the reviewer's own queue that do not wait any more, the last decided first; else as `search`.
        `limit` is cut to 1 to 200."""
        owners = own_owners(principal, Act.READ_REVIEWS)
        if not owners:
            return []
        with self._store.browse() as connection:
            own = wanted.model_copy(update={"me": principal.id})
            return history.history(
                connection, owners, wanted=own, after=after, limit=min(max(limit, 1), pending.MAX_PAGE)
            )

    def last_act(self, principal: Principal, now: datetime) -> LastAct:
        """What this principal, of one owner, did last, a ruling or a vote on what waits, also where it cannot be taken
        back: every item of one act, the last one first. Of what was not done together the log knows what came last,
        whatever the clock said. An act on several gives each a time of its own within one thousandth of a second
        (`server.rulings`). What is older than `undo_minutes` is no act any more."""
        since = now - timedelta(minutes=self._policy.queue.undo_minutes)
        wanted = HistoryFilter(by=principal.id, since=since)
        found = [
            (item.decided_at or item.created_at, item)
            for item in self.history(principal, wanted=wanted, limit=pending.MAX_PAGE)
            if item.status in pending.BY_REVIEWERS
        ]
        owners = own_owners(principal, Act.READ_REVIEWS)
        with self._store.browse() as connection:
            ruled: list[Done] = []
            for owner_id in owners:
                for item_id, at in votes.on_waiting(connection, owner_id, principal.id, since):
                    item = pending.get(connection, item_id, owners=owners)
                    found += [] if item is None else [(at, item)]
                ruled += rulings.ruled_by(connection, owner_id, principal.id, since)
            number = {one.subject_id: one.seq for one in ruled}
            found.sort(key=lambda one: (number.get(one[1].id, 0), one[0]), reverse=True)
            items = tuple(item for at, item in found if _millisecond(at) == _millisecond(found[0][0]))
            last = max((number.get(item.id, 0) for item in items), default=0)
            later = [
                one
                for owner_id in owners
                for one in (rulings.done_after(connection, owner_id, principal.id, last) if last else ())
            ]
        return LastAct(items, _done_since(ruled, later))

    def deciders(self, principal: Principal) -> list[str]:
        """Ids of those who decided something of the reviewer's own queue lately."""
        owners = own_owners(principal, Act.READ_REVIEWS)
        with self._store.browse() as connection:
            return sorted({by for owner in owners for by in history.deciders(connection, owner)})

    def facets(self, principal: Principal, now: datetime | None = None) -> Facets:
        """How many items of the reviewer's own queue are listed, in all and in groups; zeros for any other principal.

        A queue is counted once for each state it is in. What was counted lately is remembered in this process.
        """
        owners = own_owners(principal, Act.READ_REVIEWS)
        with self._store.browse() as connection:
            at = now or datetime.now(UTC)
            return sum_facets([self._counts.counts_of(connection, owner, at) for owner in sorted(owners)])

    def numbers(self, principal: Principal, now: datetime, days: int = DAYS) -> Numbers:
        """What came to the reviewer's own owners, together, and what was cleared; zeros for any other principal. It is
        counted as `facets` are."""
        owners = own_owners(principal, Act.READ_REVIEWS)
        with self._store.browse() as connection:
            return self._numbers.numbers_of(connection, owners, now, days)

    def get_by_id(self, principal: Principal, item_id: str) -> PendingMemory | None:
        """The item in whatever status; None when it is not in the principal's own queue, nor an auditor's to read."""
        every = principal.any_owner and principal.role is Role.AUDITOR
        owners = None if every else own_owners(principal, Act.READ_RULINGS)
        if not (every or owners):
            return None
        with self._store.browse() as connection:
            return pending.get(connection, item_id, owners=owners)

    def note_opened(self, principal: Principal, item: PendingMemory, now: datetime) -> None:
        """Keeps when the person behind a reviewer first had a waiting item before them, which `get_by_id` gave. Nobody
        waits for that: what cannot be kept is not known, and is in the program's log."""
        if item.status is not ReviewStatus.PENDING or not may_rule_on(principal, item):
            return
        seen = (item.owner_id, item.id, principal.person or principal.id)
        with self._store.browse() as connection:
            if rulings.is_opened(connection, *seen):
                return
        written = self._store.writer.run((), lambda connection: rulings.note_opened(connection, *seen, now))
        written.add_done_callback(_tell_lost)

    def barred(self, principal: Principal, item: PendingMemory, now: datetime) -> str | None:
        """What stands against this reviewer vouching for an item which `get_by_id` gave, as things are."""
        with self._store.browse() as connection:
            return find_problem(
                connection, principal, item.submitted_by, item.owner_id, policy=self._policy, now=now
            ) or voting.not_asked(
                connection, self._required(connection, item, now), principal, item.owner_id, now
            )

    def required_of(self, item: PendingMemory, now: datetime) -> Required:
        """What it takes to approve an item which `get_by_id` gave."""
        with self._store.browse() as connection:
            return self._required(connection, item, now)

    def votes_of(self, item: PendingMemory, now: datetime) -> VoteCount:
        """Who approved an item which `get_by_id` gave, or objected to it, and what it takes."""
        with self._store.browse() as connection:
            cast = votes.of_item(connection, item.owner_id, item.id)
            if item.status is ReviewStatus.PENDING:
                given = voting.counted(connection, item, cast, now)
            else:
                given = votes.standing(cast, item.version - 1)
            return VoteCount(self._required(connection, item, now), tuple(cast), tuple(given))

    def _required(self, connection: Connection, item: PendingMemory, now: datetime) -> Required:
        if not self._rules.rules:
            return ONE
        found = decisions.get(connection, item.decision_id, owners=frozenset({item.owner_id}))
        answer = parse_decision(found)
        # Of one that cannot be read anything may be said: nothing is approved on it (`review.acts.stored_answer`).
        if answer is None:
            return ONE
        return voting.required_for(
            connection,
            self._rules,
            answer,
            owner_id=item.owner_id,
            submitted_by=item.submitted_by,
            now=now,
        )

    def decision_of(self, item: PendingMemory) -> ValidationResult | None:
        """The decision that queued an item which `get_by_id` gave, to show. None, and a line in the log, when
        it is not there or cannot be understood: the item can be looked at all the same."""
        with self._store.browse() as connection:
            found = decisions.get(connection, item.decision_id, owners=frozenset({item.owner_id}))
        answer = parse_decision(found)
        if answer is None:
            log.error("decision %s of item %s cannot be read", item.decision_id, item.id)
        return answer

    def rejected_before(self, item: PendingMemory) -> RejectedBefore | None:
        """The earlier rejection of the same words that an item which `get_by_id` gave names, as it stands now:
        None when there was none, or it was taken back."""
        if item.rejected_before is None:
            return None
        with self._store.browse() as connection:
            earlier = pending.get(connection, item.rejected_before, owners=frozenset({item.owner_id}))
        return None if earlier is None else rejection_of(earlier)

    def memory_to_compare(self, item: PendingMemory, now: datetime) -> Memory | None:
        """The stored memory that an approval of an item which `get_by_id` gave would be held against: the one that
        the item names, or one that says nearly the same and was stored since. None when there is neither."""
        owners = frozenset({item.owner_id})
        keys = signature_keys(tokens(item.content), item.memory_type.value, self._policy.threshold)
        with self._store.browse() as connection:
            named = memories.get(connection, item.conflicting_memory_id or "", now, owners=owners)
            if item.status is not ReviewStatus.PENDING:
                return named
            known = Comparisons(item.content, self._policy.threshold, self._policy.values)
            looked_up = contradicting.look_up(
                connection, item.owner_id, item.content, item.memory_type.value, known, now=now
            )
            facts = contradicting.together(
                index.find_neighbours(connection, item.owner_id, keys, now), looked_up
            )
            facts = stored_only(facts)
            recorded = named.id if named is not None and named.status is MemoryStatus.ACTIVE else None
            settled = check_conflicts(item.content, facts, self._policy, supersede=None, recorded=recorded)
            nearest = settled.conflicting_memory_id if isinstance(settled, ApprovalRefused) else None
            if nearest is None or nearest == recorded:
                return named
            return memories.get(connection, nearest, now, owners=owners)

    def similar_to(self, item: PendingMemory, now: datetime) -> tuple[SimilarMemory, ...]:
        """What is stored by now that is like an item which `get_by_id` gave: when it was sent, perhaps nothing was."""
        kind = item.memory_type.value
        with self._store.browse() as connection:
            keys = similar.keys_of(item.content, kind)
            found = similar.candidates(connection, item.owner_id, keys, kind, now=now)
        return nearest(item.content, found, self._policy.threshold)

    def next_check(self, item: PendingMemory) -> datetime | None:
        """When the sources of an item that `get_by_id` gave are read again by themselves; None when they are
        not. While that is under way: when it will be taken for lost."""
        with self._store.browse() as connection:
            return rechecks.next_recheck_at(connection, item.owner_id, item.id)


def _tell_lost(written: Future[None]) -> None:
    if not written.cancelled() and (error := written.exception()) is not None:
        log.warning("when a claim was opened could not be kept: %s", error)


def _done_since(ruled: Sequence[Done], later: Sequence[Done]) -> Done | None:
    """The last of what was done `later` that neither is a ruling nor came of one, or of its undoing."""
    of_rulings = {one.at for one in (*ruled, *(one for one in later if one.action in _TAKEN_BACK))}
    by_hand = [one for one in later if one.action in BY_HAND and one.at not in of_rulings]
    return by_hand[-1] if by_hand else None


def _millisecond(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def parse_decision(text: str | None) -> ValidationResult | None:
    """A decision as it was kept; None when it is not there or cannot be understood."""
    try:
        return ValidationResult.model_validate_json(text or "")
    except ValidationError:
        return None


def own_owners(principal: Principal, act: Act) -> frozenset[str]:
    """The owners this principal *is*, as far as it may do `act` at all; those whose rulings an auditor may read."""
    if not is_allowed(principal, act):
        return frozenset()
    if act is Act.READ_RULINGS and principal.role is Role.AUDITOR:
        return principal.owners
    return frozenset(owner_id for owner_id in principal.owners if is_owner(principal, owner_id))
