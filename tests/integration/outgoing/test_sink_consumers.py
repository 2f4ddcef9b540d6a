"""One token serves a sink of an owner: which, whoever comes at once, and in a database made before that was so."""

from __future__ import annotations

from functools import partial
from threading import Barrier, Thread

import pytest
from alembic import command
from sqlalchemy import Connection, insert, select, text

from tests.claims import NOW
from tests.conftest import THRESHOLD
from tests.delivering import AGENT, ANN, SINK, ask, places, put, send, states, take
from tests.reviews import queue_of, reviewer
from tests.running.hangs import given_up_after
from vouchgate.gate import deliveries as acts
from vouchgate.gate.deliveries import NotServed
from vouchgate.ingest.claims.claim import Source
from vouchgate.storage import engine as engine_module
from vouchgate.storage.engine import migrate, open_engine, writing
from vouchgate.storage.outgoing import sink_consumers
from vouchgate.storage.store import Store
from vouchgate.storage.tables.doors import DeliveryRow


def bound(store: Store) -> list[tuple[str, str, str]]:
    """Owner, sink and token of each sink that is somebody's."""
    with store.read() as connection:
        return [(one.owner_id, one.sink, one.token_id) for one in sink_consumers.listing(connection)]


def forget(store: Store) -> None:
    """As in a database made before sinks were bound."""
    store.writer.run(
        ["ann"], lambda connection: connection.execute(text("DELETE FROM sink_consumer"))
    ).result()


def refused(store: Store, token_id: str) -> bool:
    """Whether a lease of ann's shelf is refused to this token."""
    return isinstance(acts.lease_deliveries(store, SINK, ANN, NOW, 20, token_id=token_id), NotServed)


@pytest.mark.parametrize("source", [Source.USER, Source.AI_SYNTHESIS])
def test_the_first_claim_that_names_a_sink_binds_it_whatever_becomes_of_it(
    store: Store, source: Source
) -> None:
    send(store, "The press makes 4 prints.", "press", source=source)
    send(store, "The loom makes 9 yards.", "loom", token_id="other")
    send(store, "The maybe I guess loom makes yards.", "guess", token_id="other", sink="third")
    assert bound(store) == [("ann", SINK, AGENT), ("ann", "third", "other")]
    assert refused(store, "other")
    assert not refused(store, AGENT)


def test_claims_of_one_group_bind_a_sink_once(store: Store) -> None:
    """The writer decides what waits together: the second claim sees what the first one bound."""
    for number in range(40):
        put(store, number, sink=f"s{number % 5}", token_id=f"t{number % 5}")
    assert bound(store) == [("ann", f"s{number}", f"t{number}") for number in range(5)]


@pytest.mark.on("sqlite")
def test_who_is_refused_learns_it_however_much_waits_for_a_sink_that_is_nobodys(store: Store) -> None:
    put(store, 1)
    forget(store)

    def multiply(connection: Connection) -> None:
        (row,) = connection.execute(select(delivery)).mappings()
        connection.execute(
            insert(delivery), [{**row, "seq": number, "id": f"dlv_{number}"} for number in range(2, 3000)]
        )

    delivery = DeliveryRow.metadata.tables["delivery"]
    store.writer.run(["ann"], multiply).result()
    with given_up_after(5):
        assert refused(store, "other")


def _claim(barrier: Barrier, owner: str, token_id: str, store: Store) -> None:
    barrier.wait(120)
    put(store, int(token_id), owner_id=owner, token_id=token_id)


def test_of_two_that_name_a_sink_at_once_one_serves_it(store: Store, database_url: str) -> None:
    other = Store.open(database_url, threshold=THRESHOLD)
    try:
        for turn in range(6):
            owner, barrier = f"owner-{turn}", Barrier(4)
            work = partial(_claim, barrier, owner)
            pairs = zip(("1", "2", "3", "4"), (store, other, store, other), strict=True)
            threads = [Thread(target=work, args=pair) for pair in pairs]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
            found = {
                token: acts.lease_deliveries(store, SINK, frozenset({owner}), NOW, 20, token_id=token)
                for token in "1234"
            }
            got = [one for one in found.values() if not isinstance(one, NotServed)]
            assert [len(one) for one in got] == [4], found
            assert sum(name == owner for name, _, _ in bound(store)) == 1
    finally:
        other.close()


def test_a_sink_of_before_is_served_by_the_first_that_put_something_there(store: Store) -> None:
    put(store, 1)
    put(store, 2, token_id="second")
    item = ask(store, "The oven is cold.", "oven", token_id="third")
    forget(store)
    assert refused(store, "stranger")
    put(store, 3, token_id="stranger")  # a claim of somebody who never wrote there binds nothing either
    assert refused(store, "third")  # what waits has put nothing there
    assert bound(store) == []
    queue_of(store).approve(reviewer(), item, version=1, now=NOW)
    assert places(take(store, token_id="third"))[-1] == "oven"
    assert bound(store) == [("ann", SINK, "third")]
    assert refused(store, AGENT)


def test_a_sink_of_before_is_not_refused_to_its_own_while_nothing_is_due(store: Store) -> None:
    put(store, 1)
    taken = take(store)
    forget(store)
    assert take(store) == []
    assert refused(store, "stranger")
    answer = acts.mark_done(store, ANN, taken[0].record.id, taken[0].lease, NOW, token_id="stranger")
    assert isinstance(answer, NotServed)
    assert states(store) == ["waiting"]
    assert not isinstance(
        acts.mark_done(store, ANN, taken[0].record.id, taken[0].lease, NOW, token_id=AGENT), NotServed
    )
    assert bound(store) == [("ann", SINK, AGENT)]


def test_an_owner_whose_sink_is_another_s_does_not_keep_the_others_from_theirs(store: Store) -> None:
    for number in range(3):
        put(store, number, owner_id=f"a{number}", token_id="other")
    put(store, 9, owner_id="z")
    assert places(take(store, most=1, owners=None)) == ["row 9"]
    assert take(store, owners=None) == []
    assert not refused(store, AGENT)


def test_a_database_made_before_opens_and_its_kept_readings_are_made_anew(empty_database_url: str) -> None:
    engine = open_engine(empty_database_url)
    try:
        migrate(engine)
        with writing(engine) as connection:
            config = engine_module.migration_config()
            config.attributes["connection"] = connection
            command.downgrade(config, "0004")
            connection.execute(
                text(
                    "INSERT INTO source (key, reading, text, checked_at, expires_at) "
                    "VALUES ('k', '{}', '', '2026-01-01 00:00:00', '2027-01-01 00:00:00')"
                )
            )
        migrate(engine)
        with engine.begin() as connection:
            assert connection.execute(text("SELECT count(*) FROM source")).scalar() == 0
            assert connection.execute(text("SELECT count(*) FROM sink_consumer")).scalar() == 0
    finally:
        engine.dispose()
