"""The worker that checks documents. Which of them wait is in the database (`storage.queue.documents`), so any number of
processes may have one.

lease -> check, with nothing locked, renewing the lease -> one transaction that keeps the report
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from enum import StrEnum

from vouchgate.documents.gating import DocumentGate
from vouchgate.documents.report import Report
from vouchgate.ingest.documents.gate import FAILED, PASSED
from vouchgate.ingest.policy import Policy
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.queue import documents
from vouchgate.storage.queue.documents import MOST_ATTEMPTS, DocumentState, LeasedDocument
from vouchgate.storage.store import Store
from vouchgate.wire import DocumentIn
from vouchgate.workers.runner import Job, end, now_in_utc, write

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0  # somebody may wait for the report
LEASE_SECONDS = 60.0
RENEW_SECONDS = 15.0
PATIENCE_SECONDS = 1800.0  # for one document, whose sources may take 630
AGAIN_SECONDS = 10.0  # until a check that failed is tried again
# Most of them wait: for sources, and half a minute before those that are down are asked once more. What takes the
# processor or a connection has limits of its own (`DocumentGate`, `ingest.net.hosts`).
AT_ONCE = 32


class DocumentResult(StrEnum):
    """What came of a check."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"  # something in it could not be found out
    GIVEN_UP = "given_up"
    AGAIN = "again"  # the check failed, and is tried again


def result_of(report: Report) -> DocumentResult:
    """What a check came to."""
    by_status = {PASSED: DocumentResult.PASSED, FAILED: DocumentResult.FAILED}
    return by_status.get(report.gated.status, DocumentResult.OPEN)


class DocumentWorker:
    """Checks documents, which is its `job`. Its coroutines belong to one event loop."""

    def __init__(self, store: Store, policy: Policy, gate: DocumentGate) -> None:
        self._store = store
        self._days = policy.documents.days
        self._gate = gate
        self.job = Job(
            "checking documents",
            store,
            documents.next_due,
            self._lease,
            self._check,
            POLL_SECONDS,
            at_once=AT_ONCE,
        )

    async def _lease(self, now: datetime, room: int) -> list[LeasedDocument]:
        name = new_id_suffix(now)
        return await write(self._store, (), lambda c: documents.lease(c, now, room, LEASE_SECONDS, name))

    async def _check(self, held: LeasedDocument, now: datetime) -> list[DocumentResult]:
        """Checks one document. A check that fails is tried again, so often; work that can never be done does not come
        back for ever."""
        if held.attempts > MOST_ATTEMPTS:  # who had it last died of it
            return [await self._settle(held, DocumentState.GIVEN_UP, DocumentResult.GIVEN_UP, {})]
        renewing = asyncio.create_task(self._renew(held))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                taken = await self._gate.take(DocumentIn.model_validate_json(held.sent), held.owner_id)
                report = await self._gate.check_patiently(taken, held.owner_id)
                forms = await self._gate.forms(report, held.owner_id)
            return [await self._settle(held, DocumentState.CHECKED, result_of(report), forms)]
        except asyncio.CancelledError:  # the service ends: another process goes on at once
            await self._release(held, 0.0, attempts=held.attempts - 1)
            raise
        except Exception:
            log.exception("checking %s failed", held.id)
        finally:
            await end([renewing])
        return await self._failed(held)

    async def _failed(self, held: LeasedDocument) -> list[DocumentResult]:
        try:
            if held.attempts >= MOST_ATTEMPTS:
                return [await self._settle(held, DocumentState.GIVEN_UP, DocumentResult.GIVEN_UP, {})]
            await self._release(held, AGAIN_SECONDS, attempts=held.attempts)
        except Exception:  # then its lease ends by itself
            log.exception("what came of checking %s could not be written", held.id)
        return [DocumentResult.AGAIN]

    async def _settle(
        self, held: LeasedDocument, state: DocumentState, result: DocumentResult, forms: dict[str, str]
    ) -> DocumentResult:
        at, days = now_in_utc(), self._days
        kept = await write(
            self._store,
            [held.owner_id],
            lambda c: documents.settle(c, held, state, at=at, days=days, forms=forms),
        )
        return result if kept else DocumentResult.AGAIN

    async def _release(self, held: LeasedDocument, seconds: float, *, attempts: int) -> None:
        due = now_in_utc() + timedelta(seconds=seconds)
        await write(self._store, (), lambda c: documents.postpone(c, held, due, attempts=attempts))

    async def _renew(self, held: LeasedDocument) -> None:
        """Keeps the lease as long as it is worked at."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await self._release(held, LEASE_SECONDS, attempts=held.attempts)
            except Exception:
                log.exception("the lease of %s could not be renewed", held.id)
