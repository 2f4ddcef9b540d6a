"""The worker that checks again what is due: waiting claims whose citation could not be checked, and the sources of
stored memories. What is due is in the database (`storage.queue.rechecks`), so any number of processes may have one.

lease -> examine, with nothing locked -> one transaction that settles it (`review.recheck`)
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol

from sqlalchemy import Connection

from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.likeness import ItemKind, Neighbours
from vouchgate.ingest.claims.source import Found, SourceReading, Unreachable
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.net.turns import on_behalf_of
from vouchgate.ingest.pipeline import MAX_MENTIONS, Examined, Inspected, examine, focus
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.reputation import publishers_of
from vouchgate.review import acts, recheck
from vouchgate.review.attending import answering
from vouchgate.review.attending.answering import Answered, AnswerRefused
from vouchgate.review.recheck import RecheckResult, Reexamined
from vouchgate.review.staleness import Standings, compare, refuted
from vouchgate.storage.claims import publishers
from vouchgate.storage.dedup import similar
from vouchgate.storage.errors import StoreBusy
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.queue import rechecks
from vouchgate.storage.queue.rechecks import LeasedRecheck
from vouchgate.storage.store import Store
from vouchgate.workers.runner import AT_ONCE, Job, end, now_in_utc, write

log = logging.getLogger(__name__)

POLL_SECONDS = 5.0  # the longest sleep: work may have come from another process
_SPARE_SECONDS = 60.0  # of a lease, over the time that examining may take: for waiting and writing


class Examine(Protocol):
    """Examines a claim, reading its sources anew when it must be `fresh`. May raise."""

    def __call__(self, claim: Claim, *, fresh: bool = False) -> Awaitable[Examined]: ...


class Read(Protocol):
    """Reads what a citation points at, with its whole text; anew when it must be `fresh`. Does not raise."""

    def __call__(self, citation: Citation, *, fresh: bool = False) -> Awaitable[SourceReading]: ...


class Rechecker:
    """Checks again what is due, which is its `job`. Its coroutines belong to one event loop."""

    def __init__(
        self,
        store: Store,
        policy: Policy,
        examine: Examine,
        read: Read,
        *,
        clock: Callable[[], datetime] = now_in_utc,
    ) -> None:
        """`examine` and `read` are those of the gate and its sources."""
        self._store = store
        self._policy = policy
        self._examine = examine
        self._read = read
        self._clock = clock
        # Examining keeps to the policy's deadline by itself; what does not is given up here.
        self._patience = 2 * policy.deadline_seconds + 5
        poll = min(POLL_SECONDS, policy.recheck.first_seconds)
        self.job = Job("checking again", store, rechecks.next_due, self._lease, self._settle, poll, clock)

    async def before_approval(self, *items: PendingMemory) -> None:
        """Looks at the sources of items that their owner is about to approve. Where one is refuted now and was
        not when the item was queued, the item gets the decision that follows, and a new version: the approval
        is then stale, and says so. What cannot be found out within the policy's deadline changes nothing.
        """
        if not items:
            return
        room = asyncio.Semaphore(AT_ONCE)
        tasks = [asyncio.create_task(self._look_before(item, room)) for item in items]
        try:
            await asyncio.wait(tasks, timeout=self._policy.deadline_seconds)
        finally:
            await end(tasks)

    async def _look_before(self, item: PendingMemory, room: asyncio.Semaphore) -> None:
        try:
            async with room:
                then = await asyncio.to_thread(self._decision, item)
                if not any(isinstance(reading, Found) for reading in then.evidence.sources):
                    return
                again = await self._reexamine(item.decision_id, then, self._clock(), fresh=False)
                news = refuted(again.examined.knowing(dedup=Neighbours()).decide().findings) - refuted(
                    then.findings
                )
                if news:
                    settle = partial(recheck.settle_before_approval, item=item, again=again)
                    await write(self._store, [item.owner_id], settle)
        except Exception:
            log.exception("the sources of %s could not be looked at before its approval", item.id)

    async def answer(
        self, item: PendingMemory, then: ValidationResult, claim: Claim, *, by: str, key: str | None
    ) -> Answered | AnswerRefused:
        """Decides about a waiting item again, as the `claim` of its agent's answer; `then` is its decision so far.
        Raises ClaimRefused and StorageError."""
        again = await self._reexamine(item.decision_id, then, self._clock(), fresh=True, claim=claim)
        settle = partial(
            answering.settle, seen=item, again=again, then=then, policy=self._policy, by=by, key=key
        )
        return await write(self._store, [item.owner_id], settle)

    def _decision(self, item: PendingMemory) -> ValidationResult:
        with self._store.read() as connection:
            return acts.stored_answer(connection, item)

    async def _lease(self, now: datetime, room: int) -> list[LeasedRecheck]:
        name, seconds = new_id_suffix(now), self._patience + _SPARE_SECONDS
        return await write(self._store, (), lambda c: rechecks.lease(c, now, room, seconds, name))

    async def _settle(self, due: LeasedRecheck, now: datetime) -> list[RecheckResult]:
        """Does one piece of work. Whatever goes wrong in examining counts as not found out; what goes wrong in
        writing what was found does too, so that work that can never be written does not come back for ever."""
        found: Reexamined | Standings | None = None
        try:
            async with asyncio.timeout(self._patience):
                found = await self._look(due, now)
        except TimeoutError:
            log.warning("checking %s again took over %.3g s and was given up", due.item_id, self._patience)
        except Exception:
            log.exception("checking %s again failed", due.item_id)
        for result in [None] if found is None else [found, None]:
            try:
                return [await write(self._store, [due.owner_id], self._settling(due, result, now))]
            except StoreBusy as error:
                log.warning("what checking %s again came to could not be written: %s", due.item_id, error)
                break
            except Exception:
                log.exception("what checking %s again came to could not be written", due.item_id)
        return [RecheckResult.FAILED]

    def _settling(
        self, due: LeasedRecheck, found: Reexamined | Standings | None, now: datetime
    ) -> Callable[[Connection], RecheckResult]:
        policy = self._policy
        if due.kind is ItemKind.PENDING:
            again = found if isinstance(found, Reexamined) else None
            return lambda c: recheck.settle_item(c, due, again, policy, now)
        standings = None if isinstance(found, Reexamined) else found
        return lambda c: recheck.settle_memory(c, due, standings, policy, now)

    async def _look(self, due: LeasedRecheck, now: datetime) -> Reexamined | Standings | None:
        """What there is to be seen now; None when there is nothing left to look at."""
        known = await asyncio.to_thread(self._subject, due, now)
        if known is None:
            return None
        decision_id, then = known
        if due.kind is ItemKind.PENDING:
            # What could not be found out is never kept, so what is kept of it by now was found out since: by a
            # reading that came too late for the claim, or for another claim.
            return await self._reexamine(decision_id, then, now, fresh=False)
        inspected = _inspected(then)
        with on_behalf_of(due.owner_id):
            readings = await self._read_all(inspected.cited())
        return await asyncio.to_thread(self._compare, then, due, inspected, readings, now)

    def _compare(
        self,
        then: ValidationResult,
        due: LeasedRecheck,
        inspected: Inspected,
        readings: Sequence[SourceReading],
        now: datetime,
    ) -> Standings:
        names = frozenset[str]().union(*map(publishers_of, readings))
        with self._store.read() as connection:
            own = publishers.said_of(connection, due.owner_id, names, now)
        return _compared(then, due, inspected, readings, policy=self._policy.heeding(own), now=now)

    def _subject(self, due: LeasedRecheck, now: datetime) -> tuple[str, ValidationResult] | None:
        with self._store.read() as connection:
            return recheck.decision_to_recheck(connection, due, now)

    async def _reexamine(
        self,
        decision_id: str,
        then: ValidationResult,
        now: datetime,
        *,
        fresh: bool,
        claim: Claim | None = None,
    ) -> Reexamined:
        """The claim of a decision looked at again, or another in its place."""
        begun = time.perf_counter()
        examined = await self._examine(claim or then.evidence.claim, fresh=fresh)
        if examined.similar is None:  # what the owner was shown stays shown
            examined = replace(examined, similar=then.similar)
        if not examined.suggested and then.suggested:
            examined = replace(examined, suggested=then.suggested)
        took_ms = (time.perf_counter() - begun) * 1000
        again = await asyncio.to_thread(_prepared, decision_id, examined, now, took_ms)
        await asyncio.wrap_future(self._store.comparer.look(again.examined, again.keys))
        # Asking again is not sending again, so it counts as often sent as it did then.
        examined = again.examined.knowing(echo=then.evidence.echo)
        return replace(again, examined=examined, rejected_before=then.rejected_before)

    async def _read_all(self, cited: Sequence[Citation]) -> list[SourceReading]:
        """A reading of each, with its text; UNKNOWN for what is later than the policy's deadline."""
        tasks = [asyncio.ensure_future(self._read(citation, fresh=True)) for citation in cited]
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=self._policy.deadline_seconds)
        finally:
            late = [task for task in tasks if not task.done()]
            await end(late)
        detail = "{} could not be looked up in time."
        return [
            Unreachable(citation=citation, code="timeout", detail=detail.format(citation.value))
            if task in late
            else task.result()
            for citation, task in zip(cited, tasks, strict=True)
        ]


def _inspected(then: ValidationResult) -> Inspected:
    """The claim with those of its citations that the decision knew."""
    claim = then.evidence.claim
    known = {reading.citation.key for reading in then.evidence.sources}
    every = detect_citations(claim.content, MAX_MENTIONS) + claim.citations
    return Inspected(claim, (), tuple(citation for citation in every if citation.key in known))


def _compared(
    then: ValidationResult,
    due: LeasedRecheck,
    inspected: Inspected,
    readings: Sequence[SourceReading],
    *,
    policy: Policy,
    now: datetime,
) -> Standings:
    texts = {reading.citation.key: reading.text for reading in readings if isinstance(reading, Found)}
    examined = examine(inspected, focus(inspected, readings), policy, now)
    return compare(then, due.learned, examined, texts)


def _prepared(decision_id: str, examined: Examined, now: datetime, took_ms: float) -> Reexamined:
    """With what the write transaction needs and is slow to make."""
    claim, kind = examined.claim, examined.claim.memory_type.value
    return Reexamined(
        decision_id=decision_id,
        examined=examined.comparing(),
        keys=signature_keys(tokens(claim.content), kind, examined.policy.threshold),
        bands=similar.keys_of(claim.content, kind),
        suffix=new_id_suffix(now),
        now=now,
        took_ms=took_ms,
    )
