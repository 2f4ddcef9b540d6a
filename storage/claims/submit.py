"""The end of a claim's way: dedup, decision, and every row that follows from it, in one transaction.

Many claims are decided together, as if they came one after the other: each sees what those before it in
the same group are about to store. All reads come first and all writes last, so the number of statements
does not grow with the number of an owner's claims.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlalchemy import Connection, and_, select

from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.claims.decision import RejectedBefore, Tier, ValidationResult
from vouchgate.ingest.claims.leased import Delivery
from vouchgate.ingest.claims.likeness import DedupFacts, ItemKind, Neighbour, Neighbours
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.modes import Bearing, Mode, bearing
from vouchgate.ingest.claims.waiting import Lane
from vouchgate.ingest.dedup.compare import Allowance
from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.pipeline import Examined, is_held
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import digest_of
from vouchgate.ingest.transparency.promises import Commit
from vouchgate.storage import ids, modes
from vouchgate.storage.claims import echoes, known_keys
from vouchgate.storage.claims.decision_rows import DecisionRows
from vouchgate.storage.claims.echoes import Echoes
from vouchgate.storage.claims.sayings import Sayings, SayingsCache
from vouchgate.storage.dedup import contradicting, index, similar
from vouchgate.storage.dedup.builds import in_use
from vouchgate.storage.dedup.similar import TailCache
from vouchgate.storage.dedup.window import Candidate, DedupIndexView
from vouchgate.storage.erasing import tombstones
from vouchgate.storage.identity import owners
from vouchgate.storage.identity.grants import GRANTED, MEMBER, TOKEN
from vouchgate.storage.log import chain as log
from vouchgate.storage.modes import Halted
from vouchgate.storage.outgoing import deliveries, sink_consumers
from vouchgate.storage.outgoing.outbox import Outbox
from vouchgate.storage.queue import rejections
from vouchgate.storage.queue.capacity import QueueCapacity, QueueFull
from vouchgate.storage.sql import PreparedSelect, among

# A row for each of these owners that a token acts for by name, and one for a token that does for none of them.
_LIVE_TOKENS = PreparedSelect(
    select(TOKEN.c.id, TOKEN.c.expires_at, TOKEN.c.any_owner, MEMBER.c.owner_id, TOKEN.c.person_id)
    .select_from(TOKEN.outerjoin(MEMBER, and_(GRANTED, among(MEMBER.c.owner_id, "owner_ids"))))
    .where(among(TOKEN.c.id, "ids"), TOKEN.c.revoked_at.is_(None))
)
_ENFORCED = Bearing()
_LONG_AGO = datetime.min.replace(tzinfo=UTC)  # when a token ended that is not there, or is revoked


@dataclass(frozen=True, slots=True)
class Idempotency:
    """The caller's key for a request, and the digest of its body."""

    key: str
    body_digest: str


@dataclass(frozen=True, slots=True)
class Submission:
    """A claim that has been examined and now wants its place."""

    examined: Examined
    principal_id: str
    suffix: str  # storage.ids.new_id_suffix
    keys: SignatureKeys  # for the threshold of the examined policy
    idempotency: Idempotency | None
    started: float  # time.perf_counter() when the request came
    recheck_token: bool = False  # the principal was remembered: see again here that its token still holds
    bands: tuple[int, ...] | None = None  # storage.dedup.similar.keys_of, when made before
    new_owners: bool = True  # the principal may name an owner that nobody has made yet
    lane: Lane = Lane.AGENT
    hand_over: bool = False  # the caller wants its delivery with the answer, where that can be
    straight: bool = False  # nobody compared it before: when that takes too long here, it is sent back
    counted: echoes.Name | None = None  # what it is counted under when it repeats no other; once `prepared`
    is_prepared: bool = False

    @property
    def owner_id(self) -> str:
        """Whose claim it is."""
        return self.examined.claim.owner_id


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision that is on disk. `json` is the stored text of `answer`."""

    answer: ValidationResult
    json: str
    commit: Commit | None = None  # with the entries of all that was written together, of which this is number
    index: int = 0
    delivery: Delivery | None = None  # handed over with it


@dataclass(frozen=True, slots=True)
class Repeated:
    """The same Idempotency-Key with the same body as before: the answer given then."""

    json: str
    delivery: Delivery | None = None  # handed over with it, then or again


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The same Idempotency-Key with another body. Nothing was written."""


@dataclass(frozen=True, slots=True)
class TokenGone:
    """The principal's token was revoked or has expired since it was looked up. Nothing was written."""


@dataclass(frozen=True, slots=True)
class OwnerRefused:
    """The principal does not act for this owner any more, or (`unknown`) there is none. Nothing was written."""

    unknown: bool


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Comparing a claim that came `straight` would take too long in a transaction. Nothing was written."""


SubmitAnswer = Decided | Repeated | KeyReused | QueueFull | TokenGone | OwnerRefused | Halted
WriterAnswer = SubmitAnswer | NotCompared


def write_submissions(
    connection: Connection,
    submissions: Sequence[Submission],
    *,
    lock_total: bool = False,
    allow: Callable[[], Allowance] = index.new_allowance,
    said: SayingsCache | None = None,
    tails: TailCache | None = None,
) -> list[WriterAnswer]:
    """Decides the claims in order and writes what follows; answers in the same order.

    They may be told to the callers once the transaction is committed, not before. Takes every lock it needs; raises
    QueueFilledMeanwhile unless `lock_total`. `allow` makes what comparing each owner's claims may cost; `said` and
    `tails` remember what owners say, and what is not indexed yet, from one transaction to the next.
    """
    submissions = [prepared(each) for each in submissions]
    said = SayingsCache() if said is None else said
    tails = TailCache() if tails is None else tails
    group = _SubmissionGroup(
        connection, submissions, lock_total=lock_total, allow=allow, said=said, tails=tails
    )
    answers = [group.settle(each) for each in submissions]
    group.write()
    return [group.handing_over(*pair) for pair in zip(submissions, answers, strict=True)]


class _SubmissionGroup:
    """What was read for a group of submissions, and what they changed since."""

    def __init__(
        self,
        connection: Connection,
        submissions: Sequence[Submission],
        *,
        lock_total: bool,
        allow: Callable[[], Allowance],
        said: SayingsCache,
        tails: TailCache,
    ) -> None:
        self._connection = connection
        self._said = said
        self._allowances: defaultdict[str, Allowance] = defaultdict(allow)
        self._submissions = submissions
        self._rejected: dict[rejections.Name, RejectedBefore] | None = None  # None: not looked up
        built, following = in_use(connection)
        self._threshold = built.threshold
        self._window = DedupIndexView(connection, built)
        self._next = following and (following.threshold, DedupIndexView(connection, following))
        keys: dict[str, set[str]] = {}
        for submission in submissions:
            if submission.idempotency is not None:
                keys.setdefault(submission.principal_id, set()).add(submission.idempotency.key)
        named = list(dict.fromkeys(s.owner_id for s in submissions))
        may_make = {s.owner_id for s in submissions if s.new_owners}
        self._owners = owners.lock_owners(connection, named, may_make=may_make)
        to_check = {s.principal_id for s in submissions if s.recheck_token}
        # When each token that is not revoked expires, and for which of these owners it acts (None: for any).
        self._live: dict[str, tuple[datetime | None, set[str] | None]] = {}
        self._persons: dict[str, str] = {}  # behind these tokens
        for token_id, expires_at, any_owner, owner_id, person_id in (
            _LIVE_TOKENS.rows(connection, {"ids": to_check, "owner_ids": named}) if to_check else ()
        ):
            if person_id is not None:
                self._persons[token_id] = person_id
            _, acts_for = self._live.setdefault(token_id, (expires_at, None if any_owner else set()))
            if acts_for is not None and owner_id is not None:
                acts_for.add(owner_id)
        self._switches = modes.in_force(connection, named)
        shown: dict[str, set[str]] = {}
        for submission in submissions:
            if ids_shown := tombstones.shown_to(submission.examined):
                shown.setdefault(submission.owner_id, set()).update(ids_shown)
        self._erased = {owner: tombstones.known(connection, owner, these) for owner, these in shown.items()}
        self._known = {
            (principal, row.key): (row.body_digest, row.answer)
            for principal, wanted in keys.items()
            for row in known_keys.answered(connection, principal, wanted)
        }
        self._window.prepare((s.owner_id, s.keys) for s in submissions if s.keys.threshold == self._threshold)
        self._places = QueueCapacity(connection, lock_total=lock_total)
        self._outbox = Outbox(connection)
        self._outbox.load(s.examined.claim for s in submissions)
        self._echoes = Echoes(connection)
        self._echoes.prepare((s.examined, s.counted, self._facts(s)) for s in submissions)
        self._rows = DecisionRows()
        self._commit = Commit()
        self._salts = log.new_salts(len(submissions))
        claims = [(s.examined, s.bands or ()) for s in submissions]
        self._contradicting = contradicting.OfGroup(connection, claims, self._owners, tails)

    def settle(self, submission: Submission) -> WriterAnswer:
        """Decides one submission, and notes its rows."""
        refused = self._refusal(submission)
        if refused is not None:
            return refused
        name = submission.idempotency and (submission.principal_id, submission.idempotency.key)
        if submission.idempotency is not None and name in self._known:
            digest, json = self._known[name]
            return Repeated(json) if digest == submission.idempotency.body_digest else KeyReused()
        bears = self._bearing(submission)
        if bears.halted_by is not None:
            return Halted(bears.halted_by)
        examined = tombstones.without(submission.examined, self._erased.get(submission.owner_id, ()))
        said = self._sayings(submission)
        if said is not None:
            examined = said.bearing_on(examined, submission.principal_id)
        dedup = self._facts(submission)
        at_place = self._outbox.find_at_place(examined.claim, examined.capture_time)
        dedup = self._contradicting.added(examined, submission.bands or (), dedup)
        if submission.straight and isinstance(dedup, Neighbours) and not dedup.complete:
            return NotCompared()
        counted = echoes.repeated_key(examined, dedup) or submission.counted
        source = examined.claim.asserted_source
        echo = self._echoes.facts(counted, submission.principal_id, source)
        examined = examined.knowing(dedup=dedup, at_place=at_place, echo=echo)
        decision = examined.decide()
        if said is not None and decision.tier is Tier.STORED:
            examined = said.tracked(examined, submission.principal_id)
        waits_already = decision.rule is Rule.ALREADY_PENDING and decision.nearest is not None
        memory_id = queue_id = None
        if bears.mode is Mode.OBSERVE and decision.tier is not Tier.STORED and not is_held(decision):
            memory_id, action = ids.memory_id(submission.suffix), Action.CLAIM_LET_THROUGH
        elif decision.tier is Tier.STORED:
            memory_id, action = ids.memory_id(submission.suffix), Action.CLAIM_STORED
        elif decision.tier is Tier.BLOCKED:
            action = Action.CLAIM_BLOCKED
        elif waits_already and decision.nearest is not None:
            queue_id, action = decision.nearest.id, Action.CLAIM_REPEATED
        else:
            if (
                full := self._places.reserve(
                    self._owners[submission.owner_id],
                    examined.policy.queue,
                    submission.principal_id,
                    submission.lane,
                )
            ) is not None:
                return full
            queue_id, action = ids.queue_id(submission.suffix), Action.CLAIM_QUEUED
        decision_id = ids.decision_id(submission.suffix)
        rejected_before = None if decision.tier is Tier.STORED else self._rejected_before(submission)
        answer = examined.answer(
            decision,
            decision_id=decision_id,
            memory_id=memory_id,
            queue_id=queue_id,
            took_ms=(time.perf_counter() - submission.started) * 1000,
            rejected_before=rejected_before,
            mode=bears.mode,
        )
        self._echoes.count(counted, submission.principal_id, source, examined.capture_time)
        decided = Decided(answer, answer.model_dump_json(), self._commit, len(self._commit.entries))
        self._note(submission, decided, decision_id, action)
        return decided

    def _refusal(self, submission: Submission) -> TokenGone | OwnerRefused | None:
        """What stands against its principal by now."""
        if submission.recheck_token:
            expires_at, acts_for = self._live.get(submission.principal_id, (_LONG_AGO, None))
            if expires_at is not None and expires_at <= submission.examined.capture_time:
                return TokenGone()
            if acts_for is not None and submission.owner_id not in acts_for:
                return OwnerRefused(unknown=False)
        return None if submission.owner_id in self._owners else OwnerRefused(unknown=True)

    def _bearing(self, submission: Submission) -> Bearing:
        """The mode and the stop that stand for it."""
        if not self._switches:
            return _ENFORCED
        principal_id = submission.principal_id
        known = {principal_id, self._persons.get(principal_id, principal_id)}
        return bearing(self._switches, submission.owner_id, known)

    def _sayings(self, submission: Submission) -> Sayings | None:
        """What its owner says. The owner's row, which is locked, says whether it is as it was last read: most owners
        said nothing, and nothing is read."""
        state = self._owners[submission.owner_id]
        return self._said.of(self._connection, state) if state.said else None

    def _facts(self, submission: Submission) -> DedupFacts:
        """The neighbours on disk and those of this very group."""
        examined, threshold = submission.examined, submission.examined.policy.threshold
        if examined.claim.removes:
            return NOTHING_NEAR
        if threshold != self._threshold:
            return index.unavailable(self._threshold, threshold)
        reached = self._window.find_candidates(submission.owner_id, submission.keys)
        allowance = self._allowances[submission.owner_id]
        return index.select_neighbours(
            submission.keys, reached, examined.capture_time, examined.known, allowance
        )

    def _rejected_before(self, submission: Submission) -> RejectedBefore | None:
        """The owner's rejection of the same words, if one fell lately. Looked up once for the whole group, and
        not at all when nothing of it waits or is blocked."""
        policy = submission.examined.policy
        if self._rejected is None:
            names = {_words_of(each) for each in self._submissions}
            self._rejected = rejections.latest(self._connection, names)
        found = self._rejected.get(_words_of(submission))
        return rejections.lately(found, submission.examined.capture_time, policy.queue.rejected_days)

    def _note(self, submission: Submission, decided: Decided, decision_id: str, action: Action) -> None:
        """Notes every row of a decision, and shows what it makes to the submissions that follow."""
        owner_id, principal_id, examined = submission.owner_id, submission.principal_id, submission.examined
        answer, claim, rows, at = decided.answer, examined.claim, self._rows, examined.capture_time
        self._outbox.claimed(claim, principal_id, at)
        rows.add_decision(examined, answer, decided.json, principal_id)
        owner = self._owners[owner_id]
        entry = log.next_entry(
            owner,
            at=at,
            actor=principal_id,
            action=action,
            subject_id=decision_id,
            document=log.Document(decided.json.encode()),
            salt=next(self._salts),
        )
        rows.log.append(entry)
        self._commit.entries.append((owner.pseudonym, owner.log_seq, owner.log_head))
        if (idempotency := submission.idempotency) is not None:
            self._known[principal_id, idempotency.key] = (idempotency.body_digest, decided.json)
            rows.idempotency.append(
                {
                    "principal_id": principal_id,
                    "key": idempotency.key,
                    "body_digest": idempotency.body_digest,
                    "owner_id": owner_id,
                    "decision_id": decision_id,
                    "created_at": at,
                }
            )
        if action is Action.CLAIM_STORED and answer.memory_id is not None:
            bands = submission.bands or ()
            rows.add_memory(examined, answer, bands, entry["content_digest"], principal_id)
            memory = self._index(submission, ItemKind.MEMORY, answer.memory_id)
            self._contradicting.stored(owner_id, bands, memory)
            self._outbox.note_stored_claim(claim, answer.memory_id, at)
        elif action is Action.CLAIM_LET_THROUGH:  # in no index, so that no claim is ever held against it
            rows.add_unvouched(answer)
            self._outbox.note_stored(owner_id, str(answer.memory_id), claim.delivery, at)
        elif action is Action.CLAIM_QUEUED and answer.queue_id is not None:
            rows.add_item(examined, answer, principal_id, _words_of(submission)[1], submission.lane)
            if claim.removes:  # it says nothing that another claim could repeat
                self._outbox.note_waiting_removal(claim, answer.queue_id)
            else:
                self._index(submission, ItemKind.PENDING, answer.queue_id)
        elif action is Action.CLAIM_REPEATED and answer.queue_id is not None:
            rows.seen[owner_id, answer.queue_id] += 1

    def handing_over(self, submission: Submission, answer: WriterAnswer) -> WriterAnswer:
        """The answer, once all is written, with the delivery that its caller wants with it, if it can be leased."""
        claim, now = submission.examined.claim, datetime.now(UTC)
        if not submission.hand_over or claim.delivery is None or not isinstance(answer, Decided | Repeated):
            return answer
        read = ValidationResult.model_validate_json
        said = answer.answer if isinstance(answer, Decided) else read(answer.json)
        asked = self._connection, claim.owner_id, claim.delivery.sink
        if said.memory_id is None or self._bearing(submission).halted_by is not None:
            return answer
        if not sink_consumers.serves(*asked, submission.principal_id, now):
            return answer
        found = deliveries.lease_with_answer(*asked, now, memory_id=said.memory_id, name=submission.suffix)
        return replace(answer, delivery=None if found is None else found.told())

    def _index(self, submission: Submission, kind: ItemKind, item_id: str) -> Candidate:
        """Notes the keys of a new item, and shows it to the submissions that follow; as they are shown it."""
        claim, keys = submission.examined.claim, submission.keys
        horizon = claim.validity_horizon if kind is ItemKind.MEMORY else None
        candidate = Candidate(Neighbour(kind=kind, id=item_id, content=claim.content), horizon)
        if keys.threshold != self._threshold:
            keys = signature_keys(keys.words, keys.scope, self._threshold)
        self._window.add(claim.owner_id, candidate, keys)
        if self._next is not None:
            threshold, window = self._next
            window.add(claim.owner_id, candidate, signature_keys(keys.words, keys.scope, threshold))
        return candidate

    def write(self) -> None:
        """Writes all that was noted, one statement a table."""
        rows = self._rows
        rows.write(self._connection)
        self._window.write()
        if self._next is not None:
            self._next[1].write()
        self._outbox.write()
        log.write(self._connection, rows.log)
        owners.save(
            self._connection, (self._owners[owner] for owner in {row["owner_id"] for row in rows.log})
        )
        self._echoes.write()
        self._places.write()
        self._contradicting.written()


def prepared(one: Submission) -> Submission:
    """The same with all that its words alone say of it, so that a transaction need not work that out: its keys in the
    similar index, and what it is counted under. It remembers from now on what it is compared with."""
    if one.is_prepared:
        return one
    claim, bands = one.examined.claim, one.bands
    if bands is None:
        bands = similar.keys_of(claim.content, claim.memory_type.value)
    counted = echoes.counting_key(one.examined, one.keys.words)
    return replace(one, examined=one.examined.comparing(), bands=bands, counted=counted, is_prepared=True)


def _words_of(submission: Submission) -> rejections.Name:
    return submission.owner_id, digest_of(submission.keys.words, submission.keys.scope)
