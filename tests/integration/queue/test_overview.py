"""Figures of queues: right to the item, and nothing of what is over."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.claims import NOW
from tests.reviews import queue_of, reviewer, stored, waiting
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.rules import Rule
from vouchgate.review.digests.figures import figures_of
from vouchgate.review.digests.text import digest_text
from vouchgate.storage.outgoing import webhooks
from vouchgate.storage.queue import overview
from vouchgate.storage.queue.overview import EventCounts, QueueFigures
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import PendingRow
from vouchgate.storage.tables.doors import WebhookRow

SOON = timedelta(days=3)
EXPIRES = timedelta(days=30)  # of the built-in policy


def figures(store: Store, now: datetime = NOW) -> QueueFigures:
    """Of all queues."""
    with store.read() as connection:
        return overview.queue_figures(connection, now, SOON)


def wait_for(store: Store, owner_id: str, *ages: timedelta) -> None:
    """Makes claims wait that were sent so long ago."""
    for number, age in enumerate(ages):
        item = waiting(store, f"Cellar {number} is dry, as anybody can see", owner_id=owner_id)
        table = PendingRow.metadata.tables["pending"]
        moved = table.update().where(table.c.owner_id == owner_id, table.c.id == item.id)
        values = {"created_at": NOW - age, "expires_at": NOW - age + EXPIRES}
        store.writer.run((), lambda c, moved=moved, values=values: c.execute(moved.values(values))).result()  # type: ignore[misc]


def test_nothing_waits(store: Store) -> None:
    stored(store, "The hall is cold")
    item = waiting(store, "The hall is dark")
    queue_of(store).reject(reviewer(), item.id, version=1, reason="no", now=NOW)
    assert figures(store) == QueueFigures(0, 0, 0, 0, 0, 0, 0)
    with store.read() as connection:
        assert overview.oldest_wait_since(connection, "ann") is None
        assert overview.expiring(connection, "ann", NOW + 2 * EXPIRES) == 0


def test_each_waiting_item_is_in_one_range_of_age(store: Store) -> None:
    second, hour, day = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
    wait_for(store, "ann", second, hour - second, hour, day - second, day)
    wait_for(store, "bob", 7 * day - second, 7 * day, 27 * day - second, 27 * day, 29 * day, 31 * day, second)
    wait_for(store, "cid", second)
    assert figures(store) == QueueFigures(
        owners=3, largest=7, expiring=3, under_1h=4, under_1d=2, under_7d=2, older=5
    )
    with store.read() as connection:
        assert overview.expiring(connection, "bob", NOW + SOON) == 3
        assert overview.expiring(connection, "ann", NOW + SOON) == 0
        assert overview.oldest_wait_since(connection, "cid") == NOW - second


def test_what_happened_is_counted_from_a_time_on(store: Store) -> None:
    first = waiting(store, "The hall is cold", now=NOW - timedelta(hours=30))
    waiting(store, "The hall is dark", now=NOW - timedelta(hours=2))
    stored(store, "The attic is dry", now=NOW - timedelta(hours=1))
    stored(store, "The barn is dry", owner_id="bob", now=NOW)
    queue_of(store).reject(reviewer(), first.id, version=1, reason="no", now=NOW)
    expected = {Action.CLAIM_QUEUED: 1, Action.CLAIM_STORED: 1, Action.REVIEW_REJECTED: 1}
    with store.read() as connection:
        day = overview.count_events(connection, "ann", NOW - timedelta(hours=24), 4)
        assert day == EventCounts(expected, complete=True)
        week = overview.count_events(connection, "ann", NOW - timedelta(days=7), 4)
        assert week == EventCounts(expected | {Action.CLAIM_QUEUED: 2}, complete=True)
        assert overview.count_events(connection, "nobody", NOW - timedelta(days=7), 0) == EventCounts(
            {}, complete=True
        )


@pytest.mark.parametrize(("most", "complete"), [(4, True), (3, False), (5, True)])
def test_a_long_log_is_counted_from_its_end(store: Store, most: int, complete: bool) -> None:
    for number in range(4):
        waiting(store, f"Cellar {number} is dry, as anybody can see")
    with store.read() as connection:
        found = overview.count_events(connection, "ann", NOW - timedelta(days=1), 4, most)
    assert found == EventCounts({Action.CLAIM_QUEUED: min(most, 4)}, complete)


def test_a_digest_is_of_one_owner_and_in_the_order_of_the_queue(store: Store) -> None:
    kept = (
        "the report job reads forty tables in order and writes one file for each of them to shelf two"
        " at {} sharp every day"
    )
    waiting(store, "The hall is cold")
    waiting(store, "The attic is dry", owner_id="bob")
    stored(store, kept.format("05:30"))
    conflict = waiting(store, kept.format("06:30"))
    gone = waiting(store, "The hall is dark")
    queue_of(store).reject(reviewer(), gone.id, version=1, reason="no", now=NOW)
    hook, _ = webhooks.create(store, owner_id="bob", url="https://example.org/x", actor="test", now=NOW)
    with store.read() as connection:
        found = figures_of(
            connection, "ann", since=NOW - timedelta(hours=23), page=None, now=NOW + timedelta(hours=1)
        )
        of_bob = figures_of(
            connection, "bob", since=NOW - timedelta(hours=23), page=None, now=NOW + timedelta(hours=1)
        )
        of_nobody = figures_of(connection, "nobody", since=NOW - timedelta(hours=24), page=None, now=NOW)
    assert (found.waiting, found.by_rule, found.oldest, found.expiring) == (
        2,
        {Rule.CONFLICT: 1, Rule.UNGROUNDED: 1},
        NOW,
        0,
    )
    assert [one.content for one in found.first] == [conflict.content, "The hall is cold"]
    assert found.happened.counts == {
        Action.CLAIM_QUEUED: 3,
        Action.CLAIM_STORED: 1,
        Action.REVIEW_REJECTED: 1,
    }
    assert found.failing == of_bob.failing == []
    assert [one.content for one in of_bob.first] == ["The attic is dry"]
    assert digest_text(of_nobody) == "Nothing waits for you: the queue is clear."
    fail = (
        WebhookRow.metadata.tables["webhook"].update().values(failing_since=NOW, last_error="HTTP status 500")
    )
    store.writer.run((), lambda connection: connection.execute(fail)).result()
    with store.read() as connection:
        of_bob = figures_of(connection, "bob", since=NOW - timedelta(hours=24), page=None, now=NOW)
        assert (
            figures_of(connection, "ann", since=NOW - timedelta(hours=24), page=None, now=NOW).failing == []
        )
    assert [one.id for one in of_bob.failing] == [hook.id]
