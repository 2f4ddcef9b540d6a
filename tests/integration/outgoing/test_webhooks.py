"""Owners are told of what waits: what messages say, how they are signed, and the webhooks themselves."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook as Consumer
from standardwebhooks import WebhookVerificationError

from tests.claims import NOW, examined, submission_of
from tests.rechecking import bench
from tests.reviews import history, queue_of, reviewer, waiting
from tests.web import Answer
from tests.webhooking import LATER, PAGE, PATH, READY, Desk, open_desk, queue, store_one
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.net.fetched import Fetched
from vouchgate.review.answers import Undone
from vouchgate.review.attending import attention
from vouchgate.storage.outgoing import webhooks
from vouchgate.storage.outgoing.webhook_messages import GATHER, MOST_ENTRIES
from vouchgate.storage.store import Store
from vouchgate.workers.webhooks import SendResult


@pytest.fixture
def desk(store: Store) -> Iterator[Desk]:
    """With a receiver that takes everything in."""
    with open_desk(store) as made:
        yield made


# --- messages


@pytest.mark.on("sqlite")
def test_a_message_is_signed_and_says_what_waits_without_its_words(desk: Desk) -> None:
    now = datetime.now(UTC)  # the consumer holds the time against its own clock
    hook, secret = desk.hook()
    item = waiting(desk.store, "The king's pin is 4711.", now=now - GATHER)
    assert desk.work(now) == {SendResult.TOLD: 1}
    (asked,) = desk.site.asked
    assert (asked.method, asked.path) == ("POST", PATH)
    message = Consumer(secret).verify(asked.body, dict(asked.headers))
    assert message == {
        "type": "review.waiting",
        "timestamp": item.created_at.isoformat(),
        "data": {
            "owner_id": "ann",
            "waiting": 1,
            "queued": [
                {
                    "queue_id": item.id,
                    "rule": "ungrounded",
                    "reason": "Ungrounded assertion needs verification",
                }
            ],
            "expired": [],
            "let_go": [],
            "promoted": [],
            "stale": [],
            "url": PAGE,
        },
    }
    assert asked.headers["content-type"] == "application/json"
    assert b"4711" not in asked.body
    with pytest.raises(WebhookVerificationError):
        Consumer(secret).verify(asked.body.replace(b"ann", b"bob"), dict(asked.headers))
    other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    with pytest.raises(WebhookVerificationError):
        Consumer(other).verify(asked.body, dict(asked.headers))
    assert desk.look(hook).told_seq == history(desk.store)[-1].seq


def test_a_burst_is_one_message_that_waits_for_its_end(desk: Desk) -> None:
    desk.hook()
    items = queue(desk.store, 50)
    assert desk.work(NOW + timedelta(seconds=1)) == {}
    items += queue(desk.store, 1, now=NOW + timedelta(seconds=2), first=50)
    assert desk.work(READY - timedelta(seconds=1)) == {}
    assert desk.work(READY) == {SendResult.TOLD: 1}
    assert desk.queued() == items
    assert desk.said()[0]["waiting"] == 51


@pytest.mark.on("sqlite")
def test_a_flood_is_cut_and_its_order_kept(desk: Desk) -> None:
    desk.hook()
    items = queue(desk.store, 2 * MOST_ENTRIES + 30)
    assert desk.work(NOW) == {SendResult.TOLD: 2}  # what is full need not wait
    assert desk.work(READY) == {SendResult.TOLD: 1}
    assert [len(data["queued"]) for data in desk.said()] == [MOST_ENTRIES, MOST_ENTRIES, 30]
    assert desk.queued() == items
    assert max(len(one.body) for one in desk.site.asked) < 20_000


def test_what_needs_nobody_is_passed_over(desk: Desk) -> None:
    hook, _ = desk.hook()
    queue(desk.store, 1)  # which does wait, so that the lamps are not all there is
    assert desk.work() == {SendResult.TOLD: 1}
    for number in range(5):
        store_one(desk.store, number)
    before = desk.look(hook).told_seq
    assert desk.work(LATER) == {}
    assert desk.look(hook).told_seq == before + 5
    assert len(desk.site.asked) == 1


def test_owners_with_nothing_to_tell_keep_nobody_waiting(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vouchgate.storage.outgoing.webhook_messages._LOOKED_AT", 2)
    for number in range(5):
        desk.hook(f"quiet-{number}")
        store_one(desk.store, number, f"quiet-{number}")
    url, at = desk.site.url + PATH, NOW + timedelta(seconds=1)
    webhooks.create(desk.store, owner_id="ann", url=url, actor="test", now=at)
    queue(desk.store, 1)
    assert desk.work() == {SendResult.TOLD: 1}


def test_a_webhook_tells_what_happens_from_its_making_on(desk: Desk) -> None:
    queue(desk.store, 3)
    desk.hook()
    later = queue(desk.store, 1, first=3)
    assert desk.work() == {SendResult.TOLD: 1}
    assert desk.queued() == later


@pytest.mark.on("sqlite")
def test_a_claim_that_was_decided_meanwhile_needs_nobody_any_more(desk: Desk) -> None:
    hook, _ = desk.hook()
    one, two, three = queue(desk.store, 3)
    for item in (one, three):
        queue_of(desk.store).reject(reviewer(), item, version=1, reason="no", now=NOW)
    assert desk.work() == {SendResult.TOLD: 1}
    assert desk.queued() == [two]
    (last,) = queue(desk.store, 1, first=3)
    queue_of(desk.store).reject(reviewer(), last, version=1, reason="no", now=NOW)
    assert desk.work(LATER) == {}
    assert desk.look(hook).told_seq == history(desk.store)[-1].seq


def test_repeats_are_not_told_again(desk: Desk) -> None:
    desk.hook()
    queue(desk.store, 1)
    assert desk.work() == {SendResult.TOLD: 1}
    again = examined("Valve v0v stands in cellar c0c.", source=Source.AI_SYNTHESIS)
    desk.store.writer.submit(submission_of(again)).result()
    assert history(desk.store)[-1].action is Action.CLAIM_REPEATED
    assert desk.work(READY + GATHER) == {}


def test_promotions_stale_memories_and_expiries_are_told(desk: Desk, tmp_path: Path) -> None:
    desk.hook()
    soon = NOW + timedelta(seconds=30)
    with bench(desk.store, tmp_path) as here:
        here.hide()
        sent = here.send()
        here.show()
        (left,) = queue(desk.store, 1)
        here.work(soon)
        memory_id = here.item(sent.queue_id).memory_id
        assert memory_id is not None
        assert desk.work(soon) == {SendResult.TOLD: 1}
        here.adr("Rejected")
        here.work(soon + timedelta(days=8))
    assert desk.work(soon + timedelta(days=9)) == {SendResult.TOLD: 1}
    queue_of(desk.store).expire(NOW + timedelta(days=40))
    assert desk.work(NOW + timedelta(days=41)) == {SendResult.TOLD: 1}
    first, second, third = desk.said()
    assert [item["queue_id"] for item in first["queued"]] == [left]  # the other does not wait any more
    assert first["promoted"] == [{"queue_id": sent.queue_id, "memory_id": memory_id}]
    assert (first["expired"], first["stale"], first["waiting"]) == ([], [], 1)
    assert (second["stale"], second["queued"], second["promoted"]) == ([memory_id], [], [])
    assert (third["expired"], third["stale"], third["waiting"]) == ([left], [], 0)


@pytest.mark.on("sqlite")
def test_what_was_let_go_is_told_unless_it_was_taken_back(desk: Desk) -> None:
    desk.hook()
    gone = queue(desk.store, 5)
    acting, soon = queue_of(desk.store), NOW + timedelta(seconds=30)
    items = [item for one in gone if (item := acting.get_by_id(reviewer(), one)) is not None]
    attention.let_go(acting, reviewer(), items, reason="nobody can tell", now=soon)
    assert isinstance(acting.undo(reviewer(), gone[0], version=2, now=soon), Undone)
    assert desk.work(soon + GATHER) == {SendResult.TOLD: 1}
    (told,) = desk.said()
    assert sorted(told["let_go"]) == sorted(gone[1:])
    assert [item["queue_id"] for item in told["queued"]] == gone[:1]


def test_owners_and_webhooks_do_not_wait_for_one_another(desk: Desk) -> None:
    desk.site.routes[PATH] = Answer(status=500)
    desk.hook("ann")
    desk.hook("ann", "/other")
    desk.hook("bob", "/other")
    mine, theirs = queue(desk.store, 2, "ann"), queue(desk.store, 2, "bob")
    assert desk.work() == {SendResult.TOLD: 2, SendResult.FAILED: 1}
    told = [json.loads(one.body)["data"] for one in desk.site.asked if one.path == "/other"]
    by_owner = {data["owner_id"]: [item["queue_id"] for item in data["queued"]] for data in told}
    assert by_owner == {"ann": mine, "bob": theirs}


# --- the webhooks themselves


@pytest.mark.on("sqlite")
def test_a_test_message_says_nothing_and_is_noted_nowhere(desk: Desk) -> None:
    hook, secret = desk.hook()
    queue(desk.store, 1)
    desk.clock.now = datetime.now(UTC)
    with desk.store.read() as connection:
        to = webhooks.endpoint(connection, hook.id)
    assert to is not None
    outcomes = [asyncio.run(desk.worker().test(to)) for _ in range(2)]
    assert [one.status for one in outcomes if isinstance(one, Fetched)] == [200, 200]
    for asked in desk.site.asked:
        message = Consumer(secret).verify(asked.body, dict(asked.headers))
        assert (message["type"], message["data"]) == ("webhook.test", {"owner_id": "ann", "url": PAGE})
    assert len({asked.headers["webhook-id"] for asked in desk.site.asked}) == 2
    assert desk.look(hook) == hook


def test_an_owner_has_five_at_most(desk: Desk) -> None:
    made = [desk.hook()[0] for _ in range(5)]
    with pytest.raises(ValueError, match="has 5 webhooks already"):
        desk.hook()
    desk.hook("bob")
    webhooks.remove(desk.store, made[2].id, actor="test", now=NOW)
    desk.hook()
    with desk.store.read() as connection:
        assert len(webhooks.listing(connection)) == 6
        assert len(webhooks.listing(connection, "bob")) == 1


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    ("owner_id", "url", "says"),
    [
        ("", "https://example.com/", "owner id"),
        ("a\nb", "https://example.com/", "owner id"),
        ("ann", "ftp://example.com/", "only http and https"),
        ("ann", "https://user:pass@example.com/", "user name"),
        ("ann", "example.com/hook", "URL"),
        ("ann", "https://exa mple.com/", "URL"),
    ],
)
def test_what_cannot_be_told_is_refused(store: Store, owner_id: str, url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        webhooks.create(store, owner_id=owner_id, url=url, actor="test", now=NOW)
    with store.read() as connection:
        assert webhooks.listing(connection) == []


@pytest.mark.on("postgresql")
@pytest.mark.parametrize("name", ["hook_0", "", "a\x00b", "x" * 500, "' OR 1=1"])
def test_an_id_of_nothing_is_none(store: Store, name: str) -> None:
    with store.read() as connection:
        assert webhooks.get(connection, name) is None
        assert webhooks.endpoint(connection, name) is None
    assert not webhooks.remove(store, name, actor="test", now=NOW)
    assert not webhooks.resume(store, name, NOW)


@pytest.mark.on("sqlite")
def test_secrets_are_shown_once(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hook, secret = desk.hook()
    queue(desk.store, 1)
    with desk.store.read() as connection:
        to = webhooks.endpoint(connection, hook.id)
        shown: Sequence[Any] = [*webhooks.listing(connection), hook, to]
    desk.site.routes[PATH] = Answer(status=500)
    desk.work()
    desk.site.routes[PATH] = Answer(status=410)
    desk.work(READY + timedelta(hours=1))
    assert caplog.text.count(hook.id) == 2
    for text in (caplog.text, repr(shown)):
        assert secret not in text
        assert secret.removeprefix("whsec_") not in text
    assert "not-for-logs" not in caplog.text
    assert "not-for-logs" not in str(desk.worker().problem("ann"))
