"""Work that was taken while a clock was ahead comes back; what waits on purpose goes on waiting."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, insert, update

from tests.claims import policy
from tests.delivering import SINK, put
from tests.integration.queue.test_documents import NOW, kept
from vouchgate.ingest.claims.likeness import ItemKind
from vouchgate.storage.log import tree
from vouchgate.storage.outgoing import deliveries, mail
from vouchgate.storage.outgoing.deliveries import LeasedDelivery
from vouchgate.storage.outgoing.mail_schedule import MailSchedule
from vouchgate.storage.queue import documents, leases, rechecks
from vouchgate.storage.store import Store

YEAR, WEEK, DAY = timedelta(days=365), timedelta(days=7), timedelta(days=1)


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
    assert leases.end_impossible(store, policy(), NOW) == 2
    assert leases.end_impossible(store, policy(), NOW) == 0
    with store.read() as connection:
        assert documents.next_due(connection) == NOW
        waits = mail.get(connection, digest.id)
        assert waits is not None
        assert (waits.due_at, waits.lease) == (NOW + WEEK, "begun")
    (taken,) = store.writer.run((), lambda c: documents.lease(c, NOW, 1, 60.0, "later")).result()
    assert taken.attempts == 2
    assert store.writer.run((), lambda c: tree.lease(c, "later", NOW, 10.0)).result()
    assert leases.end_impossible(store, policy(), NOW) == 0  # a lease of today


def test_what_was_written_while_a_clock_was_ahead_waits_no_longer_than_it_ever_may(store: Store) -> None:
    def recheck(name: str, kind: ItemKind, after: timedelta) -> dict[str, object]:
        about = {"owner_id": "ann", "item_id": name, "kind": kind.value, "due_at": NOW + after}
        return about | {"attempts": 0, "lease": None, "readings": None}

    def take() -> list[str]:
        def lease(connection: Connection) -> list[LeasedDelivery]:
            return deliveries.lease(connection, "ann", SINK, NOW, most=9, name="now")

        return [handed.record.place for handed in store.writer.run(["ann"], lease).result()]

    put(store, 1, now=NOW + DAY)  # in front of all others of its stream
    put(store, 2, now=NOW)
    assert take() == []
    rows = [
        recheck("mem_ahead", ItemKind.MEMORY, YEAR),
        recheck("rev_ahead", ItemKind.PENDING, YEAR),
        recheck("mem_next", ItemKind.MEMORY, WEEK),
    ]
    store.writer.run((), lambda c: c.execute(insert(rechecks.TABLE), rows)).result()
    store.writer.run((), lambda c: tree.lease_witnesses(c, NOW + YEAR, NOW + YEAR)).result()
    assert leases.end_impossible(store, policy(), NOW) == 4
    assert leases.end_impossible(store, policy(), NOW) == 0
    assert take() == ["row 1", "row 2"]
    leased = store.writer.run((), lambda c: rechecks.lease(c, NOW, 9, 60.0, "now")).result()
    assert [due.item_id for due in leased] == ["rev_ahead", "mem_ahead"]
    assert store.writer.run((), lambda c: tree.lease_witnesses(c, NOW, NOW)).result()
