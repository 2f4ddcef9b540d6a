"""Work that was taken while a clock was ahead comes back; what waits on purpose goes on waiting."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import update

from tests.integration.queue.test_documents import NOW, kept
from vouchgate.storage.log import tree
from vouchgate.storage.outgoing import mail
from vouchgate.storage.outgoing.mail_schedule import MailSchedule
from vouchgate.storage.queue import documents, leases
from vouchgate.storage.store import Store

YEAR, WEEK = timedelta(days=365), timedelta(days=7)


def test_a_lease_of_a_clock_that_was_ahead_ends(store: Store) -> None:
    kept(store)
    store.writer.run((), lambda c: documents.lease(c, NOW + YEAR, 1, 60.0, "ahead")).result()
    digest = mail.create(
        store,
        address="ann@example.org",
        person=None,
        owner_ids=["ann"],
        schedule=MailSchedule(hours=(8,)),
        actor="test",
        now=NOW,
    )
    in_a_week = {"due_at": NOW + WEEK, "lease": "begun"}
    store.writer.run((), lambda c: c.execute(update(mail.TABLE).values(in_a_week))).result()
    store.writer.run((), lambda c: tree.lease(c, "ahead", NOW + YEAR, 10.0)).result()
    assert leases.end_impossible(store, NOW) == 2
    assert leases.end_impossible(store, NOW) == 0
    with store.read() as connection:
        assert documents.next_due(connection) == NOW
        waits = mail.get(connection, digest.id)
        assert waits is not None
        assert (waits.due_at, waits.lease) == (NOW + WEEK, "begun")
    (taken,) = store.writer.run((), lambda c: documents.lease(c, NOW, 1, 60.0, "later")).result()
    assert taken.attempts == 2
    assert store.writer.run((), lambda c: tree.lease(c, "later", NOW, 10.0)).result()
    assert leases.end_impossible(store, NOW) == 0  # a lease of today
