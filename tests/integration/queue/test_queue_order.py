"""The queue in its order and in groups: pages, filters, counts, and how much of the database they touch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, insert, text

from tests.claims import NOW, policy
from tests.reviews import queue_of, reviewer, waiting
from tests.unit.scoring.test_priority import item as made
from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import head_start
from vouchgate.review.answers import Rejected
from vouchgate.review.attending import attention
from vouchgate.review.counts import QueueCounts
from vouchgate.review.queue import ReviewQueue
from vouchgate.storage.queue import overview, pending
from vouchgate.storage.queue.history import HistoryFilter
from vouchgate.storage.queue.overview import Facets
from vouchgate.storage.queue.pending import Order, QueueFilter
from vouchgate.storage.queue.query import NO_QUERY, parse, text_test
from vouchgate.storage.store import Store

LATER = NOW + timedelta(hours=1)
SENDERS = ("agent-1", "agent-2", "agent-3")
CITED = (None, "url:https://a.example/", "adr:7")
RULES = (
    Rule.CONFLICT,
    Rule.TECHNICAL_HEDGE,
    Rule.REFUTED,
    Rule.CITATION_UNKNOWN,
    Rule.UNGROUNDED,
)
ORDERS: tuple[Order, ...] = ("priority", "oldest", "newest")


def put(store: Store, *items: PendingMemory) -> None:
    """Items as they are, into the table and the owners' counters alone."""
    count = text("UPDATE owner SET pending = pending + :more, log_seq = log_seq + 1 WHERE owner_id = :owner")

    def work(connection: Any) -> None:
        for item in items:
            connection.execute(insert(pending.TABLE), pending.row_of(item))
            more = int(item.status is ReviewStatus.PENDING)
            connection.execute(count, {"owner": item.owner_id, "more": more})

    store.writer.run(sorted({item.owner_id for item in items}), work).result()


def some(number: int, owner_id: str = "ann", *, seed: int = 1, **more: Any) -> list[PendingMemory]:
    """Items of all sorts, oldest first; several came at the same moment."""
    chance = random.Random(seed)  # noqa: S311  (the same items every time)
    found = []
    for place in range(number):
        at = NOW + timedelta(hours=place // 3)
        rule = chance.choice(RULES)
        fields: dict[str, Any] = {
            "id": f"rev_{place:020x}{chance.getrandbits(48):012x}",
            "owner_id": owner_id,
            "content": f"Claim {place} of {owner_id} says 100 % {chance.choice(['Rye', 'rye', 'oats'])}",
            "memory_type": chance.choice(list(MemoryType)),
            "created_at": at,
            "expires_at": at + timedelta(days=30),
            "submitted_by": chance.choice(SENDERS),
            "cited": chance.choice(CITED),
            "priority_at": at - head_start(rule, policy().queue.head_start_days),
        }
        found.append(made(rule, **(fields | more)))
    return found


def in_order(items: list[PendingMemory], order: Order) -> list[str]:
    """What the order means, in plain Python."""
    if order == "priority":
        return [item.id for item in sorted(items, key=lambda item: (item.priority_at, item.id))]
    return [item.id for item in sorted(items, key=lambda item: item.id, reverse=order == "newest")]


def paged(queue: ReviewQueue, principal: Principal, limit: int, **wanted: Any) -> list[str]:
    """All pages, one after the other."""
    seen: list[str] = []
    after: str | None = None
    while len(seen) == len(set(seen)):
        page = queue.search(principal, QueueFilter(after=after, limit=limit, **wanted))
        seen += [item.id for item in page]
        if len(page) < limit:
            return seen
        after = page[-1].id
    pytest.fail("an item is on two pages")


@pytest.fixture(scope="module")
def full(module_database_url: str) -> Iterator[tuple[Store, list[PendingMemory]]]:
    """A store with a queue of ninety items, and those of two other owners."""
    opened = Store.open(module_database_url, threshold=policy().threshold)
    items = some(90)
    put(opened, *items, *some(20, "bob", seed=2), *some(5, "cid", seed=3))
    put(opened, *some(9, "ann", seed=4, status=ReviewStatus.APPROVED, decided_at=LATER))
    yield opened, items
    opened.close()


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "rule": st.sampled_from([*RULES, Rule.SPECULATION]),
        "sender": st.sampled_from([*SENDERS, "nobody", "\x00"]),
        "cited": st.sampled_from([*CITED[1:], "adr:8"]),
        "memory_type": st.sampled_from(MemoryType),
        "query": st.sampled_from(
            [parse(typed, NOW) for typed in ("rye", "RYE", "oats 100 %", '"of ann"', "_b")]
        ),
    },
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=FILTERS, order=st.sampled_from(ORDERS), limit=st.integers(1, 40))
def test_pages_hold_what_matches_in_order(
    full: tuple[Store, list[PendingMemory]], wanted: dict[str, Any], order: Order, limit: int
) -> None:
    store, items = full
    fields = {"rule": "rule", "sender": "submitted_by", "cited": "cited", "memory_type": "memory_type"}
    expected = [
        item
        for item in items
        if all(getattr(item, fields[name]) == value for name, value in wanted.items() if name in fields)
        and text_test(wanted.get("query", NO_QUERY).texts)(item.content)
    ]
    found = paged(queue_of(store), reviewer(), limit, order=order, **wanted)
    assert found == in_order(expected, order)


@pytest.mark.parametrize("order", ORDERS)
def test_after_each_item_comes_the_next(full: tuple[Store, list[PendingMemory]], order: Order) -> None:
    store, items = full
    queue = queue_of(store)
    wanted = QueueFilter(owners=frozenset({"bob"}), order=order, rule="ungrounded")  # its owners do not count
    expected = in_order([item for item in items if item.rule == "ungrounded"], order)
    following = [queue.neighbours(reviewer(), name, wanted) for name in expected]
    assert following == [*expected[1:], None]
    assert queue.neighbours(reviewer("bob"), expected[0], wanted) is None
    assert queue.neighbours(reviewer(), "rev_0", wanted) is None


def test_the_queues_of_several_owners_are_one_list(full: tuple[Store, list[PendingMemory]]) -> None:
    store, items = full
    both = Principal(id="r", name="r", role=Role.REVIEWER, owners=frozenset({"ann", "cid"}))
    every = items + some(5, "cid", seed=3)
    queue = queue_of(store)
    for order in ORDERS:
        assert paged(queue, both, 7, order=order) == in_order(every, order)
    counted = queue.facets(both)
    assert counted.waiting == len(every)
    assert counted.by_rule == Counter(item.rule for item in every)


def test_nobody_else_sees_any_of_it(full: tuple[Store, list[PendingMemory]]) -> None:
    store, items = full
    queue = queue_of(store)
    for principal in (
        Principal(id="a", name="a", role=Role.AGENT, owners=frozenset({"ann"})),
        Principal(id="b", name="b", role=Role.ADMIN, any_owner=True),
        Principal(id="c", name="c", role=Role.REVIEWER, owners=frozenset({"ann"}), any_owner=True),
        reviewer("dan"),
    ):
        assert queue.search(principal) == []
        assert queue.history(principal) == []
        assert queue.facets(principal) == Facets(0, {}, {}, {}, 0)
        assert queue.neighbours(principal, items[0].id, QueueFilter(owners=frozenset({"ann"}))) is None
    assert queue.search(reviewer("bob"), QueueFilter(after=items[0].id)) == []  # not an item of this owner


def test_an_item_that_was_decided_is_still_a_place_in_the_list(store: Store) -> None:
    put(store, *some(12))
    queue = queue_of(store)
    expected = in_order(some(12), "priority")
    first = queue.search(reviewer(), QueueFilter(limit=5))
    rejected = queue.reject(reviewer(), first[-1].id, version=1, reason="No.", now=LATER)
    assert isinstance(rejected, Rejected)
    rest = queue.search(reviewer(), QueueFilter(after=first[-1].id))
    assert [item.id for item in rest] == expected[5:]


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """Every statement that is run meanwhile."""
    seen: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        seen.append(statement)

    event.listen(store._engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(store._engine, "before_cursor_execute", note)


def test_groups_are_counted_once_for_each_state_of_the_queue(store: Store) -> None:
    items = some(40)
    put(store, *items)
    queue = queue_of(store)
    counted = queue.facets(reviewer())
    assert counted == Facets(
        40,
        dict(Counter(item.rule for item in items)),
        dict(Counter(item.submitted_by for item in items)),
        dict(Counter(item.cited for item in items if item.cited is not None)),
        40,
    )
    with statements(store) as seen:
        assert queue.facets(reviewer()) == counted
    assert sum("GROUP BY" in statement for statement in seen) == 0
    gone = items[0]
    queue.reject(reviewer(), gone.id, version=1, reason="No.", now=LATER)
    fewer = queue.facets(reviewer())
    assert (fewer.waiting, fewer.by_rule[gone.rule]) == (39, counted.by_rule[gone.rule] - 1)
    assert fewer.seq > counted.seq


def test_what_is_snoozed_or_sent_back_is_not_counted_until_it_is_back(store: Store) -> None:
    items = some(12)
    put(store, *items)
    queue, one, other = queue_of(store), items[0], items[1]
    until = LATER + timedelta(hours=2)
    everything = queue.facets(reviewer(), LATER)
    attention.snooze(queue, reviewer(), one.id, until=until, now=LATER)
    attention.send_back(queue, reviewer(), other.id, version=1, question="Who says so?", now=LATER)
    left = Counter(item.rule for item in items[2:])
    with store.read() as connection:
        assert overview.away(connection, ["ann", "bob"], LATER) == {"ann": 2}
    for _ in range(2):  # counted, and remembered
        counted = queue.facets(reviewer(), LATER)
        assert (counted.waiting, counted.by_rule) == (10, dict(left))
        assert sum(counted.by_sender.values()) == 10
    back = queue.facets(reviewer(), until)
    assert (back.waiting, back.by_rule) == (11, dict(left + Counter([one.rule])))
    assert queue.facets(reviewer(), LATER).waiting == 10  # the clock was put back
    attention.resume(queue, reviewer(), other.id, now=until)
    assert queue.facets(reviewer(), until).by_rule == everything.by_rule


def test_the_groups_of_a_long_queue_are_not_counted_for_every_change(store: Store) -> None:
    items = some(6)
    put(store, *items)
    counts = QueueCounts(long=4)
    with store.read() as connection:
        counted = counts.counts_of(connection, "ann", LATER)
    for left, item in zip((5, 4), items[:2], strict=True):
        queue_of(store).reject(reviewer(), item.id, version=1, reason="No.", now=LATER)
        with store.read() as connection, statements(store) as seen:
            now = counts.counts_of(connection, "ann", LATER)
        assert (now.waiting, now.seq > counted.seq) == (left, True)
        recounted = any("GROUP BY" in statement for statement in seen)
        assert recounted is (left == 4)  # it is no long one any more
        assert (now.by_rule == counted.by_rule) is not recounted


def test_of_many_groups_the_largest_are_counted(store: Store) -> None:
    every = [
        item.model_copy(update={"submitted_by": f"agent-{place % 30:02}", "cited": f"adr:{place % 25:02}"})
        for place, item in enumerate(some(60))
    ]
    put(store, *every)
    counted = queue_of(store).facets(reviewer())
    senders = Counter(item.submitted_by for item in every)
    assert len(counted.by_sender) == len(counted.by_cited) == overview.MOST_GROUPS
    assert sorted(counted.by_sender.values(), reverse=True) == [n for _, n in senders.most_common(20)]


def test_the_history_is_what_was_decided_last_first(store: Store) -> None:
    queue, items = queue_of(store), [waiting(store, f"Barn {n} holds {n * 9} bales") for n in range(6)]
    foreign = waiting(store, "Somebody else's barn is empty", owner_id="bob")
    assert queue.history(reviewer()) == []
    for place, item in enumerate(items[:4]):
        at = LATER + timedelta(minutes=-place if place else 0)
        if place % 2:
            queue.approve(reviewer(), item.id, version=1, now=at)
        else:
            queue.reject(reviewer(), item.id, version=1, reason="No.", now=at)
    queue.reject(reviewer("bob"), foreign.id, version=1, reason="No.", now=LATER)
    queue.expire(items[0].expires_at)
    expired = sorted([items[5].id, items[4].id], reverse=True)
    decided = [item.id for item in items[:4]]
    assert [item.id for item in queue.history(reviewer())] == expired + decided
    for limit in (1, 2, 4):
        seen: list[str] = []
        after: str | None = None
        while page := queue.history(reviewer(), after=after, limit=limit):
            seen += [item.id for item in page]
            after = page[-1].id
        assert seen == expired + decided
    found = queue.history(reviewer(), wanted=HistoryFilter(status=ReviewStatus.APPROVED))
    assert [item.id for item in found] == [items[1].id, items[3].id]
    assert queue.history(reviewer("bob"), after=items[0].id) == []
    # A decision that was taken back has no place in it any more: what follows it is given from the beginning.
    queue.undo(reviewer(), items[0].id, version=2, now=LATER)
    again = queue.history(reviewer(), after=items[0].id)
    assert [item.id for item in again] == expired + decided[1:]


def test_a_new_decision_gives_an_item_the_place_of_its_rule(store: Store) -> None:
    item = waiting(store, "The kiln burns for forty hours")
    place = item.created_at - timedelta(days=7)

    def decide(of: PendingMemory, rule: str, place: datetime) -> bool:
        return store.writer.run(
            ["ann"],
            lambda connection: pending.redecide(
                connection,
                of,
                decision_id=of.decision_id,
                reason="r",
                conflicting_memory_id=None,
                rule=rule,
                priority_at=place,
            ),
        ).result()

    assert decide(item, "refuted", place)
    now = queue_of(store).search(reviewer(), QueueFilter(rule=Rule.REFUTED))
    assert [(one.id, one.rule, one.priority_at, one.version) for one in now] == [
        (item.id, "refuted", place, 2)
    ]
    # Where a page ends that was seen, whatever place its last item has by now.
    other = waiting(store, "Glass jars are washed twice by hand")
    cursor = pending.cursor_of(now[0], "priority")
    assert decide(now[0], "ungrounded", other.created_at + timedelta(seconds=1))
    rest = queue_of(store).search(reviewer(), QueueFilter(after=cursor))
    assert [one.id for one in rest] == [other.id, item.id]
    for nobodys in (f"{item.id}@x", f"{item.id}@" + "9" * 18, "rev_0@5"):
        assert queue_of(store).search(reviewer(), QueueFilter(after=nobodys)) == []


PLANS: list[tuple[dict[str, Any], str]] = [
    ({}, "pending_by_priority"),
    ({"rule": "ungrounded"}, "pending_by_rule"),
    ({"sender": "agent-1"}, "pending_by_sender"),
    ({"cited": "adr:7"}, "pending_by_cited"),
    ({"order": "oldest"}, "pending_by_status"),
    ({"order": "newest"}, "pending_by_status"),
]


@pytest.mark.parametrize(("wanted", "index"), PLANS, ids=[index + str(w) for w, index in PLANS])
@pytest.mark.parametrize("further", [False, True])
def test_a_page_is_read_from_an_index_in_its_order(
    full: tuple[Store, list[PendingMemory]], wanted: dict[str, Any], index: str, further: bool
) -> None:
    store, items = full
    order: Order = wanted.get("order", "priority")
    last = pending.Place(items[40].id, items[40].priority_at, None)
    beyond = [pending._after_item(last, order)] if further else []
    asked = QueueFilter(owners=frozenset({"ann"}), **wanted)
    plan = "\n".join(plan_of(store, pending._listing("ann", asked, beyond)))
    if store.dialect == "sqlite":
        assert f"USING INDEX {index} " in plan
        assert "TEMP B-TREE" not in plan
    else:  # with sequential scans and sorts made dear: that few rows are as cheap to sort
        assert "Index Scan" in plan
        assert "Sort" not in plan


def plan_of(store: Store, statement: Any) -> list[str]:
    """How the database would run it."""
    with store.read() as connection:
        sqlite = connection.dialect.name == "sqlite"
        compiled = statement.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
        if not sqlite:
            for knob in ("enable_sort", "enable_seqscan", "enable_bitmapscan"):
                connection.execute(text(f"SET LOCAL {knob} = off"))
        prefix = "EXPLAIN QUERY PLAN " if sqlite else "EXPLAIN "
        return [str(row[-1]) for row in connection.exec_driver_sql(prefix + str(compiled).replace("%", "%%"))]
