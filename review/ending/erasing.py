"""Erasing for good what came of claims: who may, how many must ask for it, and what policies have erased by themselves.
What goes, and how, is in `storage.erasing`; ADR-0051."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, exists, func, select

from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.language.words import split_words
from vouchgate.ingest.policy import Policy
from vouchgate.review.acts import SERVICE
from vouchgate.review.answers import NotFound
from vouchgate.review.ending import asking
from vouchgate.review.ending.asking import OPERATOR, Asker
from vouchgate.review.reading import own_owners, parse_decision
from vouchgate.review.rules import Act
from vouchgate.review.vouching import voting
from vouchgate.review.vouching.owner_rules import NO_RULES, OwnerRules
from vouchgate.storage import ids as id_kinds
from vouchgate.storage import modes
from vouchgate.storage.claims import decisions, known_keys, memories, records, source_texts
from vouchgate.storage.erasing import apply, listed, plan, scrub, tombstones
from vouchgate.storage.erasing.listed import Listed
from vouchgate.storage.erasing.plan import RULING, Plan
from vouchgate.storage.erasing.tombstones import Tombstone
from vouchgate.storage.errors import ReadOnly, StoreBusy
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.queue import documents, pending, proposers
from vouchgate.storage.sql import among
from vouchgate.storage.store import Store

log = logging.getLogger(__name__)

MOST_BASIS = 300  # characters
MOST_AT_ONCE = 100  # ids of one erasure, and of one of a policy
_TRIES = 5  # to find the owner's decisions as they were when it was planned
_BETWEEN = "something about it was written again and again meanwhile; try again later"
_KEYS_AT_ONCE = 500
_RUN = 4  # words in a row that a legal basis may not share with what it erases
_TABLES: tuple[Table, ...] = (memories.TABLE, pending.TABLE, decisions.TABLE, records.TABLE)

BY_OPERATOR = Asker(OPERATOR, OPERATOR)


@dataclass(frozen=True, slots=True)
class Erased:
    """What went, as counts by kind; `in_free_pages`: copies may be in the database's free pages until these are."""

    erasure_id: str
    ids: tuple[str, ...]
    counts: dict[str, int]
    in_free_pages: bool = False


@dataclass(frozen=True, slots=True)
class EraseAsked:
    """`given` of the `needed` persons have asked for it in these words, within seven days."""

    given: int
    needed: int


@dataclass(frozen=True, slots=True)
class EraseRefused:
    """It cannot be erased as asked."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ErasedBefore:
    """Nothing is left of it."""

    tombstone: Tombstone


_UNNAMED = EraseRefused(
    "four_eyes", "More than one person must ask for this, and it is not known who is behind your token."
)
Answer = Erased | EraseAsked | EraseRefused | ErasedBefore | NotFound


class Erasing:
    """Erases what is in a store. Safe to share between threads, and between processes."""

    def __init__(
        self, store: Store, policy: Policy, rules: OwnerRules = NO_RULES, path: Path | None = None
    ) -> None:
        """`path` is the list of erasures; None: there is none, and people's erasures are refused."""
        self._store, self._policy, self._rules, self._path = store, policy, rules, path
        self.waiting = 0  # of the list, when it was looked at last

    def by_owner(
        self, principal: Principal, ids: Collection[str], basis: str, now: datetime, *, dry_run: bool = False
    ) -> Answer:
        """Erases what is the reviewer's own. `ids` are of memories, items or decisions. Raises StorageError."""
        owners = own_owners(principal, Act.ERASE)
        with self._store.read() as connection:
            known = proposers.persons_of(connection, {principal.id})
        asker = Asker(principal.id, known.get(principal.id, principal.person), principal)
        return self.erase(owners, ids, basis, asker, now, dry_run=dry_run) if owners else NotFound()

    def erase(
        self,
        owners: Collection[str],
        ids: Collection[str],
        basis: str,
        asker: Asker,
        now: datetime,
        *,
        dry_run: bool = False,
    ) -> Answer:
        """Erases what came of these, which are all of one of `owners`; with `dry_run` it only says what would go."""
        wanted = sorted(set(ids))
        refused = self._badly_asked(wanted, basis)
        if refused is not None:
            return refused
        for _ in range(_TRIES):
            answer = self._erase_as_it_is(owners, wanted, basis, asker, now, dry_run=dry_run)
            if answer is not None:
                return answer
        raise StoreBusy(_BETWEEN)

    def _erase_as_it_is(
        self,
        owners: Collection[str],
        wanted: list[str],
        basis: str,
        asker: Asker,
        now: datetime,
        *,
        dry_run: bool,
    ) -> Answer | None:
        """Plans and erases; None when something came between, and nothing was done."""
        with self._store.read() as connection:
            owner_id = _owner_of(connection, wanted, owners)
            if owner_id is None:
                return NotFound()
            seen = plan.make(connection, owner_id, wanted)
            if not seen.ids:
                gone = tombstones.find(connection, wanted[0], owners=frozenset({owner_id}))
                return NotFound() if gone is None else ErasedBefore(gone)
            needed = self._needed(connection, seen, now)
        refused = _refusal(seen, basis) or (_UNNAMED if needed > 1 and asker.person is None else None)
        fresh, gone_ids = id_kinds.erasure_id(id_kinds.new_id_suffix(now)), tuple(sorted(seen.ids))
        if refused is not None or dry_run:
            return refused or Erased(fresh, gone_ids, counts_of(seen))
        one = Listed(erasure_id=fresh, owner_id=owner_id, ids=gone_ids, basis=basis, by=asker.id, at=now)

        def work(connection: Connection) -> EraseAsked | NotFound | bool:
            """Looks again who asks, and who asked: roles may have ended while it was planned."""
            if asker.principal and not proposers.may_still_rule(connection, asker.principal, owner_id, now):
                return NotFound()
            given = asking.count(connection, owner_id, wanted, basis, asker, now=now)
            if given < needed:
                asking.ask(seen, wanted, basis, asker, connection, now=now)
                return EraseAsked(given, needed)
            return _erase(one, seen, now, connection, path=self._path)

        done = self._store.writer.run([owner_id], work).result()
        if done is True:
            return Erased(fresh, gone_ids, counts_of(seen), self.scrub_if_due(now))
        return done or None

    def _badly_asked(self, ids: Collection[str], basis: str) -> EraseRefused | None:
        named = 0 < len(ids) <= MOST_AT_ONCE and all(map(valid_name, ids))
        if not named or not 0 < len(basis.strip()) <= MOST_BASIS or not basis.isprintable():
            message = f"Give 1 to {MOST_AT_ONCE} ids, and a basis of 1 to {MOST_BASIS} printable characters."
            return EraseRefused("bad_erasure", message)
        if self._path is None:
            message = "There is no list of erasures to keep beside backups: set VOUCHGATE_ERASURES to a file."
            return EraseRefused("no_list", message)
        return None

    def again(self, now: datetime, path: Path | None = None) -> int:
        """Erases whatever a list names and the database still has, as after a restore; how many erasures that were.
        Those of owners for whom nothing is written now wait. Raises StorageError."""
        path = path or self._path
        wanted = listed.read(path) if path is not None else []
        with self._store.read() as connection:
            left = listed.missing(connection, wanted) if wanted else []
        refused = list[str]()
        for one in left:
            # An erasure of before the backup has its id already, where something came of the claim since.
            fresh = id_kinds.erasure_id(id_kinds.new_id_suffix(now))
            try:
                self._apply(one.model_copy(update={"erasure_id": fresh}), now)
            except ReadOnly as error:
                refused.append(str(error))
                log.warning("an erasure of %s that is on the list waits: %s", one.at.date(), error)
        self.waiting = len(refused)
        if left:
            self.scrub_if_due(now)
        return len(left) - len(refused)

    def again_if_waiting(self, now: datetime) -> None:
        """Erases what had to wait when the list was looked at last."""
        if self.waiting:
            self.again(now)

    def problems(self) -> tuple[str, ...]:
        """A sentence about what waits, which names nobody."""
        count = f"{self.waiting} erasure{' waits' if self.waiting == 1 else 's wait'}"
        return (f"{count}: nothing is written for the owner at the moment.",) if self.waiting else ()

    def scrub_if_due(self, now: datetime) -> bool:
        """Writes over free pages if something was erased and the database is small, or it is night; whether something
        may still be in them."""
        with self._store.read() as connection:
            if scrub.due_since(connection) is None:
                return False
            if not scrub.may_now(connection, now):
                return True
        try:
            self._store.scrub()
        except StoreBusy:
            return True
        return False

    def expiring(self, now: datetime) -> dict[str, int]:
        """How many the policy's `[retention]` would have erased by now, by kind, and what other sweeps forget."""
        every = {"read_only": ()}
        with self._store.read() as connection:
            found = {
                kind: connection.scalar(_count(rows), every) or 0 for kind, rows in self._over(now).items()
            }
            for kind, table in (("source texts", source_texts.TABLE), ("documents", documents.TABLE)):
                over = select(table.c.owner_id).where(table.c.kept_until <= now)
                found[kind] = connection.scalar(_count(over)) or 0
            over = select(records.TABLE.c.id).where(records.TABLE.c.kept_until <= now, records.KEPT)
            found["records"] = connection.scalar(_count(over)) or 0
        return found

    def retain(self, now: datetime) -> dict[str, int]:
        """Erases what the policy's `[retention]` says, by kind; each owner's in some erasures of one log entry. What is
        read-only waits until it is not."""
        done: dict[str, int] = {}
        for kind, rows in self._over(now).items():
            while (count := self._retain(kind, rows, now)) > 0:
                done[kind] = done.get(kind, 0) + count
        return done

    def _retain(self, kind: str, rows: Any, now: datetime) -> int:
        with self._store.read() as connection:
            found = connection.execute(rows.limit(_KEYS_AT_ONCE), modes.read_only(connection)).all()
        if kind == "idempotency keys":
            self._store.writer.run((), partial(_forget_keys, found, now)).result()
            return len(found)
        done = 0
        for owner_id, of_owner in groupby(sorted(found), key=lambda row: row[0]):
            ids = [row[1] for row in of_owner]
            for start in range(0, len(ids), MOST_AT_ONCE):
                some = tuple(ids[start : start + MOST_AT_ONCE])
                fresh = id_kinds.erasure_id(id_kinds.new_id_suffix(now))
                basis = f"retention of {kind} by policy {self._policy.digest[:12]}"
                one = Listed(erasure_id=fresh, owner_id=owner_id, ids=some, basis=basis, by=SERVICE, at=now)
                # Not whole: what was blocked may wait since, or be stored, and that is not over its time.
                erased = self._apply(one, now, whole=False)
                done += len(erased.ids.intersection(some))
        return done

    def _over(self, now: datetime) -> dict[str, Any]:
        """What is past its time, by kind: rows of owner and id, or of principal and key. They are asked with the
        owners that are `read_only`."""
        days, item, key, made = self._policy.retention, pending.TABLE.c, known_keys.TABLE.c, decisions.TABLE.c
        held = exists().where(
            RULING.c.owner_id == item.owner_id, RULING.c.item_id == item.id, RULING.c.ended_at.is_(None)
        )
        found: dict[str, Any] = {}
        if days.rejected_days:
            over = item.decided_at <= now - timedelta(days=days.rejected_days)
            found["rejected claims"] = select(item.owner_id, item.id).where(
                item.status == "rejected", over, item.content != "", ~held, modes.writable(item.owner_id)
            )
        if days.blocked_days:
            over = made.created_at <= now - timedelta(days=days.blocked_days)
            found["blocked claims"] = select(made.owner_id, made.id).where(
                made.tier == "tier_3", over, made.answer != "", modes.writable(made.owner_id)
            )
        if days.idempotency_days:
            over = key.created_at <= now - timedelta(days=days.idempotency_days)
            found["idempotency keys"] = select(key.principal_id, key.key).where(over)
        return found

    def _apply(self, one: Listed, now: datetime, *, whole: bool = True) -> Plan:
        """Plans and erases, again and again until nothing came between."""
        for _ in range(_TRIES):
            with self._store.read() as connection:
                seen = plan.make(connection, one.owner_id, one.ids, whole=whole)
            if (
                not seen.ids
                or self._store.writer.run([one.owner_id], partial(_erase, one, seen, now)).result()
            ):
                return seen
        raise StoreBusy(_BETWEEN)

    def _needed(self, connection: Connection, seen: Plan, now: datetime) -> int:
        """How many persons must ask: as many as the owner's rules ask to approve such a claim; two where the policy has
        nobody vouch for what they proposed."""
        needed = 2 if self._policy.four_eyes == "always" else 1
        if not self._rules.rules:
            return needed
        table = decisions.TABLE.c
        wanted = select(table.id, table.answer).where(table.owner_id == seen.owner_id, among(table.id, "ids"))
        sent = proposers.senders_of(connection, seen.owner_id, seen.decisions)
        for row in connection.execute(wanted, {"ids": list(seen.decisions)}):
            if (answer := parse_decision(row.answer)) is None:
                continue
            for sender in {sent[row.id]} if row.id in sent else set(sent.values()):
                asked = voting.required_for(
                    connection, self._rules, answer, owner_id=seen.owner_id, submitted_by=sender, now=now
                )
                needed = max(needed, asked.approvals)
        return needed


def counts_of(seen: Plan) -> dict[str, int]:
    """What a plan names, by kind."""
    every = {
        "memories": seen.memories,
        "items": seen.items,
        "decisions": seen.decisions,
        "decisions on other claims that showed it": seen.shown_in,
        "source texts": seen.source_texts,
        "documents": seen.documents,
        "records": seen.records,
    }
    return {kind: len(found) for kind, found in every.items() if found}


def _refusal(seen: Plan, basis: str) -> EraseRefused | None:
    if seen.standing:
        message = f"Standing rulings hold words of it; end them first: {', '.join(sorted(seen.standing))}."
        return EraseRefused("standing_ruling", message)
    if any(text in basis or _runs_of_words(text) & _runs_of_words(basis) for text, _ in seen.texts):
        return EraseRefused("basis_holds_text", "The legal basis is kept, so it must not hold what is to go.")
    return None


def _erase(
    one: Listed, seen: Plan, now: datetime, connection: Connection, *, path: Path | None = None
) -> bool:
    """`path`: the list that it comes on when nothing refuses it any more, and before it is committed: what is on it and
    not erased is, at the next start."""
    if not apply.still_holds(connection, seen):
        return False
    apply.apply(connection, seen, erasure_id=one.erasure_id, basis=one.basis, by=one.by, now=now)
    if path is not None:
        listed.add(path, one)
    return True


def _owner_of(connection: Connection, ids: Collection[str], owners: Collection[str]) -> str | None:
    """The one of these owners who has all of these; None when there is none."""
    found: dict[str, set[str]] = {}
    for table in _TABLES:
        wanted = select(table.c.owner_id, table.c.id).where(
            among(table.c.id, "ids"), among(table.c.owner_id, "owners")
        )
        for owner_id, one in connection.execute(wanted, {"ids": list(ids), "owners": list(owners)}):
            found.setdefault(owner_id, set()).add(one)
    return next((owner_id for owner_id, has in found.items() if has == set(ids)), None)


def _forget_keys(rows: Collection[Any], now: datetime, connection: Connection) -> None:
    table = known_keys.TABLE
    with scrub.overwriting(connection):
        for principal_id, key in rows:
            connection.execute(table.delete().where(table.c.principal_id == principal_id, table.c.key == key))
        scrub.note_due(connection, now)


def _count(rows: Any) -> Any:
    return select(func.count()).select_from(rows.subquery())


def _runs_of_words(text: str) -> set[tuple[str, ...]]:
    words = split_words(text)
    return {tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)}
