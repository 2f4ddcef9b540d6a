"""Digests by mail: sent at most once for each hour, in silence when there is nothing, and whatever the server does."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

import pytest
import trustme

from tests.claims import NOW
from tests.conftest import THRESHOLD
from tests.mailing import TAKEN, Post, post_office
from tests.rechecking import Clock
from tests.reviews import history
from tests.running.processes import FORKED
from tests.running.racers import Report, race
from tests.webhooking import PAGE, queue
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Membership, Role
from vouchgate.storage.identity import memberships, persons
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.log import chain as log
from vouchgate.storage.outgoing import mail as mails
from vouchgate.storage.outgoing.mail import Mail
from vouchgate.storage.outgoing.mail_schedule import MailSchedule
from vouchgate.storage.store import Store
from vouchgate.workers.mail import LEASE_SECONDS, REFUSED, WAITS, MailResult, MailSender
from vouchgate.workers.smtp import NotTaken, parse_server

HOURLY = MailSchedule(hours=tuple(range(24)))
DAILY = MailSchedule(hours=(13,))
DUE = NOW.replace(hour=13, minute=0, second=0, microsecond=0)  # half an hour after NOW
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
SENDER = "gate@gate.example.org"


@dataclass
class Desk:
    """A store, a mail server, and the worker between them."""

    store: Store
    post: Post
    clock: Clock = field(default_factory=Clock)

    def mail(self, *owners: str, person: str | None = None, **fields: Any) -> Mail:
        """A new digest of these owners, who are made."""
        for name in owners:
            memberships.create_owner(self.store, name, actor="test", now=NOW)
        values: dict[str, Any] = {"address": "ann@example.org", "schedule": DAILY} | fields
        return mails.create(self.store, person=person, owner_ids=owners, actor="test", now=NOW, **values)

    def worker(self, url: str | None = None, tls: ssl.SSLContext | None = None) -> MailSender:
        server = parse_server(url or f"smtp://127.0.0.1:{self.post.port}")
        return MailSender(self.store, server, sender=SENDER, page=PAGE, tls=tls, clock=self.clock)

    def work(self, now: datetime = DUE, url: str | None = None, tls: Any = None) -> Counter[MailResult]:
        """One round of the worker at this time."""
        self.clock.now = now
        return asyncio.run(self.worker(url, tls).job.run_once(now))

    def look(self, mail: Mail) -> Mail:
        """The digest as it is now."""
        with self.store.read() as connection:
            found = mails.get(connection, mail.id)
        assert found is not None
        return found


@pytest.fixture
def desk(store: Store) -> Iterator[Desk]:
    """With a server that takes everything in."""
    with post_office() as post:
        yield Desk(store, post)


def test_a_digest_comes_at_its_hour_once_and_not_at_all_when_there_is_nothing(desk: Desk) -> None:
    mail = desk.mail("ann")
    assert (mail.due_at, desk.work(DUE - timedelta(seconds=5))) == (DUE, {})
    assert desk.work() == {MailResult.SILENT: 1}
    (item,) = queue(desk.store, 1, now=DUE + HOUR)
    assert desk.work(DUE + DAY - timedelta(seconds=5)) == {}
    assert desk.work(DUE + DAY) == {MailResult.SENT: 1}
    assert desk.work(DUE + DAY) == {}
    (message,), (envelope,) = desk.post.messages(), desk.post.came
    assert (envelope.mail_from, envelope.rcpt_tos) == (SENDER, ["ann@example.org"])
    assert message["Subject"] == "Vouchgate: 1 claim waits"
    text = desk.post.text()
    assert f"    {PAGE}/items/{item}\n" in text
    assert "In the last 24 hours\n  1 queued." in text
    shown = desk.look(mail)
    assert (shown.sent_at is not None, shown.due_at) == (True, DUE + 2 * DAY)
    assert mails.remove(desk.store, mail.id, actor="test", now=NOW)
    assert not mails.remove(desk.store, mail.id, actor="test", now=NOW)
    assert [entry.action for entry in history(desk.store, SERVICE_OWNER)] == [
        Action.MAIL_CREATED,
        Action.MAIL_REMOVED,
    ]
    with desk.store.read() as connection:
        assert log.verify(connection) == []


def test_a_person_is_told_of_the_owners_they_review_for_at_that_time(desk: Desk) -> None:
    rita = persons.create(desk.store, "rita", actor="test", now=NOW)
    for name, role in (("ann", Role.REVIEWER), ("bob", Role.REVIEWER), ("eve", Role.AUDITOR)):
        queue(desk.store, 1, name)
        member = Membership(owner_id=name, member_id=rita.id, role=role, since=NOW)
        memberships.grant(desk.store, member, actor="test")
    away = persons.create(desk.store, "carl", actor="test", now=NOW)
    queue(desk.store, 1, "carl")
    theirs = Membership(owner_id="carl", member_id=away.id, role=Role.REVIEWER, since=NOW)
    memberships.grant(desk.store, theirs, actor="test")
    until = {"member_id": rita.id, "acts_for": away.id, "until": DUE + HOUR / 2}
    memberships.let_stand_in(desk.store, theirs.model_copy(update=until), actor="test")
    mail = desk.mail(person="rita", schedule=HOURLY)
    assert desk.work() == {MailResult.SENT: 1}
    assert desk.post.messages()[0]["Subject"] == "Vouchgate: 3 claims wait"
    with desk.store.read() as connection:
        assert mails.owners_of(connection, mail, DUE) == ["ann", "bob", "carl"]
        assert mails.owners_of(connection, mail, DUE + HOUR) == ["ann", "bob"]  # stands in no more
    persons.end(desk.store, rita, actor="test", now=NOW)
    assert desk.work(DUE + HOUR) == {MailResult.SILENT: 1}


def one_round(store: Store, at: str, port: str) -> Report:
    """Works like the service, in a process of its own."""
    server = parse_server(f"smtp://127.0.0.1:{port}")
    worker = MailSender(store, server, sender=SENDER, page=PAGE)
    results = asyncio.run(worker.job.run_once(datetime.fromisoformat(at)))
    return [(result.value, str(count)) for result, count in results.items()]


def test_two_processes_send_nothing_twice(desk: Desk, database_url: str) -> None:
    queue(desk.store, 1)
    addresses = {f"a{number}@example.org" for number in range(12)}
    for address in addresses:
        desk.mail("ann", address=address)
    race(database_url, one_round, [(DUE.isoformat(), str(desk.post.port))] * 2)
    assert Counter(each.rcpt_tos[0] for each in desk.post.came) == dict.fromkeys(addresses, 1)


def work_and_die(url: str, port: str) -> None:
    """A round of the worker, in a process that the mail server kills."""
    store = Store.open(url, threshold=THRESHOLD)
    one_round(store, DUE.isoformat(), port)
    os._exit(0)


@pytest.mark.parametrize("at", ["rcpt", "data"])
def test_a_process_that_is_killed_sends_one_mail_too_few_at_most(
    desk: Desk, database_url: str, at: str
) -> None:
    mail = desk.mail("ann", schedule=HOURLY)
    queue(desk.store, 1)
    arguments = (database_url, str(desk.post.port))
    process = FORKED.Process(target=work_and_die, args=arguments)

    def kill(*_asked: str) -> str:
        os.kill(int(process.pid or 0), signal.SIGKILL)
        return TAKEN

    setattr(desk.post, at, kill)
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    desk.post.rcpt, desk.post.data = Post().rcpt, Post().data
    soon = desk.work(DUE + timedelta(seconds=LEASE_SECONDS + 60))
    if at == "rcpt":  # nothing was handed over: it is sent when the lease ends
        assert soon == {MailResult.SENT: 1}
        assert len(desk.post.came) == 1
        return
    assert soon == {}
    assert desk.look(mail).in_doubt
    assert desk.work(DUE + HOUR) == {MailResult.SENT: 1}
    assert len(desk.post.came) == 2
    assert "In the last 2 hours\n  1 queued." in desk.post.text()  # nobody noted that the first told it


@pytest.mark.on("sqlite")
def test_what_the_server_does_not_take_is_tried_again_and_said(desk: Desk) -> None:
    mail = desk.mail("ann")
    queue(desk.store, 1)
    desk.post.data = lambda: "451 later\x1b[31m"
    at, tries = DUE, []
    while (due_at := desk.look(mail).due_at) is not None and due_at < DUE + DAY:
        at = due_at
        tries.append(at - DUE)
        assert desk.work(at) == {MailResult.FAILED: 1}
        assert desk.work(at) == {}
    assert [round(tried.total_seconds()) for tried in tries] == [0, *accumulate(WAITS)]
    shown = desk.look(mail)
    assert shown.failing_since is not None
    assert shown.failing_since - DUE < timedelta(seconds=5)
    assert (shown.last_error or "").startswith("the text: 451 later")
    assert "\x1b" not in str(shown)
    assert desk.worker().problems() == (
        "1 digest by mail has not been taken by the mail server: see `vouchgate mail list`.",
    )
    assert (shown.attempts, shown.due_at) == (0, DUE + DAY)
    desk.post.data = lambda: TAKEN
    assert desk.work(DUE + DAY) == {MailResult.SENT: 1}
    assert desk.look(mail).failing_since is None
    assert desk.worker().problems() == ()


@pytest.mark.on("sqlite")
def test_what_may_have_arrived_is_not_sent_again(desk: Desk) -> None:
    mail = desk.mail("ann")
    queue(desk.store, 1)
    desk.post.data = lambda: None
    assert desk.work() == {MailResult.FAILED: 1}
    shown = desk.look(mail)
    assert (shown.due_at, shown.told_at) == (DUE + DAY, NOW)
    assert "it may arrive" in (shown.last_error or "")


@pytest.mark.on("sqlite")
def test_an_address_that_is_refused_stops_no_other_and_is_given_up_in_the_end(desk: Desk) -> None:
    bad, good = desk.mail("ann", address="nobody@example.org"), desk.mail("ann")
    queue(desk.store, 1)
    desk.post.rcpt = lambda address: "550 no such user" if address.startswith("nobody") else "250 OK"
    for days in range(REFUSED.days):
        assert desk.work(DUE + days * DAY) == {MailResult.FAILED: 1, MailResult.SENT: 1}
    assert desk.work(DUE + REFUSED + timedelta(minutes=1)) == {MailResult.GIVEN_UP: 1, MailResult.SENT: 1}
    assert desk.look(bad).last_error == "the address: 550 no such user"
    assert (desk.look(bad).due_at, desk.look(good).failing_since) == (None, None)
    desk.post.rcpt = lambda address: "250 OK"
    assert asyncio.run(desk.worker().send(bad.id)) == MailResult.SENT  # the operator says so
    assert desk.look(bad).due_at is not None


@pytest.mark.on("sqlite")
def test_what_fell_due_in_quiet_hours_is_sent_once_when_they_end(desk: Desk) -> None:
    quiet = MailSchedule(hours=tuple(range(24)), quiet=(22 * 60, 7 * 60))
    mail = desk.mail("ann", schedule=quiet)
    queue(desk.store, 1)
    late = NOW.replace(hour=23)  # the service was away since noon
    assert desk.work(late) == {}
    morning = NOW.replace(hour=7, minute=0, second=0, microsecond=0) + DAY
    assert desk.look(mail).due_at == morning
    assert desk.work(morning) == {MailResult.SENT: 1}
    assert desk.look(mail).due_at == morning + HOUR
    evening = morning.replace(hour=21)
    assert desk.work(evening) == {MailResult.SENT: 1}
    assert desk.look(mail).due_at == morning + DAY
    assert len(desk.post.came) == 2


# --- the way to the server


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_tls_and_signing_in(store: Store, scheme: str) -> None:
    authority = trustme.CA()
    certificate = serving(authority.issue_cert("localhost"))
    option = "?starttls=yes" if scheme == "smtp" else ""
    with post_office(certificate, "s3cret pw", from_the_start=scheme == "smtps") as post:
        desk = Desk(store, post)
        mail = desk.mail("ann")
        queue(store, 1)
        place = f"localhost:{post.port}{option}"
        for user, host, tls, says in (
            ("gate:wrong", "localhost", trusting(authority), "not accepted (535)"),
            ("gate:s3cret%20pw", "localhost", None, "its certificate is not accepted"),
            ("gate:s3cret%20pw", "127.0.0.1", trusting(authority), "IP address mismatch"),
        ):
            url = f"{scheme}://{user}@{place.replace('localhost', host)}"
            with pytest.raises(NotTaken, match="not accepted") as refused:
                desk.worker(url, tls).test(mail)
            assert says in str(refused.value)
            assert "s3cret" not in str(refused.value)
        assert set(post.signed_in) == {"gate"}  # no other server was told anything
        good = f"{scheme}://gate:s3cret%20pw@{place}"
        assert "s3cret" not in repr(parse_server(good))
        assert desk.work(url=good, tls=trusting(authority)) == {MailResult.SENT: 1}
        assert (len(post.came), post.encrypted) == (1, [True])


@pytest.mark.on("sqlite")
def test_without_starttls_nothing_is_sent(desk: Desk) -> None:
    mail = desk.mail("ann")
    with pytest.raises(NotTaken, match="does not offer"):
        desk.worker(f"smtp://127.0.0.1:{desk.post.port}?starttls=yes").test(mail)
    with post_office() as gone:
        port = gone.port
    with pytest.raises(NotTaken, match="refused"):
        desk.worker(f"smtp://127.0.0.1:{port}").test(mail)
    assert desk.post.came == []
