"""The worker that sends digests by mail: what waits for owners and what happened, at the hours they asked for.

lease -> make the mail -> connect, up to the text -> one transaction that moves it to its next hour -> the text -> one
transaction that notes what came of it
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from email.message import EmailMessage
from enum import StrEnum
from functools import partial

from sqlalchemy import Connection

from vouchgate.review.digests.figures import figures_of
from vouchgate.review.digests.mail import compose, compose_test
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.outgoing import mail as mails
from vouchgate.storage.outgoing.mail import LeasedMail, Mail
from vouchgate.storage.outgoing.mail_schedule import after_quiet, next_due
from vouchgate.storage.store import Store
from vouchgate.workers.runner import Job, now_in_utc, write
from vouchgate.workers.smtp import Handover, MailServer, NotTaken

log = logging.getLogger(__name__)

POLL_SECONDS = 30.0  # the longest sleep: a digest may have been asked for by another process
LEASE_SECONDS = 600.0  # longer than all of one try
# The waits between the tries of one digest, in seconds. After the last, the one of the next hour takes its place.
WAITS = (60, 300, 900, 3_600)
REFUSED = timedelta(days=7)  # of an address that fails and is refused: then it is given up
TROUBLE = timedelta(hours=1)  # of tries that fail, then the operator is told


class MailResult(StrEnum):
    """What became of one digest that was due."""

    SENT = "sent"
    SILENT = "silent"  # there was nothing to tell
    FAILED = "failed"  # it is tried again, or told with the one that follows
    GIVEN_UP = "given_up"  # the address was refused for days
    LOST = "lost"  # another process has it, or it is gone: nothing was noted


class MailSender:
    """Sends what is due (`job`), and says what is not well. `server` None: nothing is sent."""

    def __init__(
        self,
        store: Store,
        server: MailServer | None,
        *,
        sender: str,
        page: str,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], datetime] = now_in_utc,
    ) -> None:
        """`sender` is the address that mail is from, `page` that of the review page; `tls` is for tests."""
        self._store = store
        self._server = server
        self._sender = sender
        self._page = page
        self._tls = tls
        self._clock = clock
        self.job = Job("sending mail", store, mails.next_due_at, self._lease, self._work, POLL_SECONDS, clock)

    @property
    def jobs(self) -> tuple[Job[LeasedMail, MailResult], ...]:
        """What is to be run; nothing without a server."""
        return () if self._server is None else (self.job,)

    def test(self, mail: Mail) -> None:
        """Sends a mail that says nothing, now. Raises NotTaken."""
        about = {"mail_id": mail.id, "to": mail.address, "sender": self._sender, "page": self._page}
        with self._handover(mail.address) as open_now:
            open_now.send(compose_test(**about, at=self._clock()))

    async def send(self, mail_id: str) -> MailResult:
        """Sends the digest of this id now, due or not. LOST when there is none."""
        now = self._clock()
        take = partial(
            mails.lease, mail_id=mail_id, now=now, lease_seconds=LEASE_SECONDS, name=new_id_suffix(now)
        )
        leased = await write(self._store, (), take)
        return MailResult.LOST if leased is None else (await self._work(leased, now))[0]

    def problems(self) -> tuple[str, ...]:
        """What is not well with mail, a sentence each: no address is named. Raises StorageError."""
        with self._store.read() as connection:
            found = mails.listing(connection)
        if not found:
            return ()
        if self._server is None:
            return ("Digests by mail are not sent, because the service is offline or has no mail server.",)
        failing = [mail for mail in found if self._in_trouble(mail)]
        if not failing:
            return ()
        are = "1 digest by mail has" if len(failing) == 1 else f"{len(failing)} digests by mail have"
        return (f"{are} not been taken by the mail server: see `vouchgate mail list`.",)

    def _in_trouble(self, mail: Mail) -> bool:
        since = mail.failing_since
        return since is not None and (mail.due_at is None or self._clock() - since >= TROUBLE)

    async def _lease(self, now: datetime, room: int) -> list[LeasedMail]:
        name = new_id_suffix(now)
        return await write(self._store, (), lambda c: mails.lease_due(c, now, room, LEASE_SECONDS, name))

    async def _work(self, leased: LeasedMail, at: datetime) -> list[MailResult]:
        message = await asyncio.to_thread(self._compose, leased.mail, at)
        if message is None:
            return [await self._note(partial(mails.mark_silent, leased=leased, now=at), MailResult.SILENT)]
        try:
            if not await self._hand_over(leased, message, at):
                return [MailResult.LOST]
        except NotTaken as error:
            return [await self._failed(leased, error, at)]
        return [await self._note(partial(mails.mark_sent, leased=leased, now=at), MailResult.SENT)]

    async def _hand_over(self, leased: LeasedMail, message: EmailMessage, at: datetime) -> bool:
        """Whether it was still ours to send. Raises NotTaken."""
        handover = self._handover(leased.mail.address)
        await asyncio.to_thread(handover.__enter__)
        try:
            if not await write(self._store, (), partial(mails.begin, leased=leased, now=at)):
                return False
            await asyncio.to_thread(handover.send, message)
            return True
        finally:
            await asyncio.to_thread(handover.close)

    def _handover(self, to: str) -> Handover:
        if self._server is None:
            raise NotTaken("there is no mail server, or the service is offline")
        return Handover(self._server, self._sender, to, self._tls)

    def _compose(self, mail: Mail, at: datetime) -> EmailMessage | None:
        with self._store.read() as connection:
            digests = [
                figures_of(connection, owner_id, since=mail.told_at, page=self._page, now=at)
                for owner_id in mails.owners_of(connection, mail, at)
            ]
        about = {"mail_id": mail.id, "to": mail.address, "sender": self._sender, "page": self._page}
        return compose(digests, **about, at=at)

    async def _failed(self, leased: LeasedMail, error: NotTaken, at: datetime) -> MailResult:
        due_at, attempts = decide_retry(leased.mail, error, at)
        result = MailResult.FAILED if due_at else MailResult.GIVEN_UP
        log.warning(
            "%s: %s (%s)", leased.mail.id, result, "address refused" if error.refused else "not taken"
        )
        note = partial(
            mails.mark_failed, leased=leased, now=at, error=str(error), attempts=attempts, due_at=due_at
        )
        return await self._note(note, result)

    async def _note(self, note: Callable[[Connection], bool], result: MailResult) -> MailResult:
        return result if await write(self._store, (), note) else MailResult.LOST


def decide_retry(mail: Mail, error: NotTaken, at: datetime) -> tuple[datetime | None, int]:
    """When a digest that was not taken at `at` is due again, and the tries that count then. None gives it up. Pure.

    One that may have arrived, or whose address is refused, is not tried again before its next hour.
    """
    following = next_due(mail.schedule, at)
    if error.refused and mail.failing_since is not None and at - mail.failing_since >= REFUSED:
        return None, mail.attempts + 1
    if error.refused or error.unsure or mail.attempts >= len(WAITS):
        return following, 0
    again = after_quiet(mail.schedule, at + timedelta(seconds=WAITS[mail.attempts]))
    return (again, mail.attempts + 1) if again < following else (following, 0)
