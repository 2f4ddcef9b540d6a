"""Audits that owners clear: what is handed over is here once, acts are whole and can be undone, and time ends it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import insert

from tests.claims import NOW
from tests.reviews import commits_to, history, queue_of, reviewer
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review import record
from vouchgate.review.answers import NotFound
from vouchgate.review.audit import clearing
from vouchgate.review.ending.expiry import expire
from vouchgate.storage.queue import audits
from vouchgate.storage.queue.audits import AT_ONCE, AUDIT, Audit, RowState
from vouchgate.storage.store import Store

RITA = reviewer()
MANY = 2 * AT_ONCE + 3


def row(at: int, label: str = "repeat", **more: Any) -> dict[str, Any]:
    """A row as it is handed over."""
    about = {
        "name": str(at),
        "other": None,
        "label": label,
        "reason": "So it is.",
        "claim": {"metadata": {"n": at}},
    }
    return {**about, "text": f"Row {at}.", **more}


def opened(store: Store, audit_id: str = "aud_1", owner: str = "ann") -> Audit:
    """An audit of which no rows are here."""
    about = {"owner_id": owner, "id": audit_id, "name": "m.jsonl", "total": MANY, "token_id": "tok"}
    times = {"created_at": NOW, "kept_until": NOW + timedelta(days=30)}
    store.writer.run([owner], lambda c: c.execute(insert(AUDIT), [{**about, **times}])).result()
    with store.read() as connection:
        return audits.listing(connection, frozenset({owner}))[0]


def take(store: Store, audit: Audit, rows: list[dict[str, Any]], after: int) -> int:
    return store.writer.run(
        [audit.owner_id], lambda c: audits.take(c, audit.owner_id, audit.id, rows, after)
    ).result()


def counts(store: Store, audit: Audit) -> dict[str, dict[str, int]]:
    """Those that are not 0."""
    with store.read() as connection:
        found = audits.counts(connection, audit)
    return {label: {state: n for state, n in states.items() if n} for label, states in found.items()}


def test_rows_are_cleared_kept_and_put_back(store: Store) -> None:
    audit = opened(store)
    rows = [
        row(at, "fine" if at % 2 else "repeat", other="1" if at > 1 else None) for at in range(1, MANY + 1)
    ]
    taken = 0
    for after in (0, 0, 500, 500):  # what comes twice, or too early, adds nothing
        taken = take(store, audit, rows[after : after + 500], after)
    assert taken == 1000
    assert take(store, audit, rows[1000:], 1000) == MANY
    with store.read() as connection:
        page = audits.search(connection, audit, ["open"], "fine", after=3, limit=2)
        assert [each.position for each in page] == [5, 7]
        assert page[0].claim == {"metadata": {"n": 5}}
        assert audits.search(connection, audit, ["open"], "fine", after=MANY, limit=2) == []
        assert {at: each.position for at, each in audits.others(connection, audit, [1, 2, 3]).items()} == {
            2: 1,
            3: 1,
        }
    assert counts(store, audit) == {"fine": {"open": AT_ONCE + 2}, "repeat": {"open": AT_ONCE + 1}}

    def move(to: RowState, who: Principal = RITA, minutes: int = 0, **chosen: Any) -> int | NotFound:
        return clearing.move(store, who, "aud_1", to, chosen, now=NOW + timedelta(minutes=minutes))

    whole: dict[str, Any] = {"label": ["repeat"], "state": ["open"]}
    assert move(RowState.CLEARED, **whole) == AT_ONCE + 1  # in two steps
    assert move(RowState.CLEARED, **whole) == 0
    assert move(RowState.KEPT, minutes=1, position=[1, 2]) == 2
    assert counts(store, audit)["repeat"] == {"cleared": AT_ONCE, "kept": 1}
    with store.read() as connection:
        last, first = audits.acts(connection, audit, 5)[0], audits.acts(connection, audit, 5)[-1]
    assert (last.state, last.acted_by, first.rows) == ("kept", RITA.id, AT_ONCE)
    # The gate has row 4 meanwhile, so that it stays there.
    store.writer.run(["ann"], lambda c: audits.move(c, audit, RowState.STORED, {"position": [4]})).result()
    assert move(RowState.OPEN, act=[first.act]) == AT_ONCE - 1
    assert move(RowState.OPEN, act=[first.act]) == 0
    assert counts(store, audit)["repeat"] == {"open": AT_ONCE - 1, "kept": 1, "stored": 1}
    with (
        store.read() as connection
    ):  # what is at the gate cannot be taken back, and what was is no act any more
        assert [(each.state, each.rows) for each in audits.acts(connection, audit, 5)] == [("kept", 2)]
    told = history(store)
    assert [each.action for each in told] == ["audit.cleared", "audit.cleared", "audit.kept", "audit.undone"]
    undone = record.document(audit="aud_1", act=str(first.act), rows=str(AT_ONCE - 1))
    assert commits_to(store, told[-1], undone.content.decode())

    for other in (reviewer("bob"), Principal(id="a", name="a", role=Role.AGENT, owners=frozenset({"ann"}))):
        assert isinstance(move(RowState.CLEARED, other, **whole), NotFound)
        assert clearing.listing(store, other) == []
    auditor = Principal(id="x", name="x", role=Role.AUDITOR, owners=frozenset({"ann"}))
    assert isinstance(move(RowState.CLEARED, auditor, **whole), NotFound)
    assert [each.id for each in clearing.listing(store, auditor)] == ["aud_1"]

    bobs = opened(store, owner="bob")
    assert take(store, bobs, [row(1)], 0) == 1
    assert expire(queue_of(store), NOW + timedelta(days=29)).audited == 0
    assert expire(queue_of(store), NOW + timedelta(days=30)).audited == MANY + 3  # with both audits
    assert counts(store, audit) == counts(store, bobs) == {}


def test_of_an_update_the_row_that_it_replaces_is_cleared(store: Store) -> None:
    every: dict[str, Any] = {"label": ["update"], "state": ["open", "cleared"]}
    same = {"name": "CLAUDE.md:3"}  # two sentences of a line
    chain = [row(1, "fine"), row(2, "update", other="1"), row(3, "update", other="2"), row(4)]
    cases: list[
        tuple[list[dict[str, Any]], dict[str, Any], list[int], list[int]]
    ] = [  # with what is kept before
        (chain, every, [], [1, 2]),
        (chain, {"position": [2, 4]}, [], [1, 4]),
        (chain, every, [1, 2], []),  # the row, and what an update is that was found wrongly
        (chain, {"position": [2]}, [1], []),
        (chain, {"position": [1]}, [1], [1]),  # of rows that are no update those that are chosen
        ([row(1, **same), row(2, "update", other="CLAUDE.md:3", **same)], every, [], [1]),
        ([row(1, "update", other="CLAUDE.md:3", **same), row(2, **same)], every, [], [2]),
        ([row(1, **same), row(2, **same), row(3, "update", other="CLAUDE.md:3")], every, [], []),
        ([row(1, "update", other="1"), row(2, "update", other="none"), row(3, "update")], every, [], []),
    ]
    for number, (rows, chosen, kept, gone) in enumerate(cases):
        audit = opened(store, f"aud_{number}", f"owner{number}")
        who = reviewer(audit.owner_id)
        take(store, audit, rows, 0)
        assert clearing.move(store, who, audit.id, RowState.KEPT, {"position": kept}, now=NOW) == len(kept)
        done = clearing.move(store, who, audit.id, RowState.CLEARED, chosen, now=NOW + timedelta(seconds=1))
        with store.read() as connection:
            cleared = audits.search(connection, audit, [RowState.CLEARED], limit=9)
        assert ([each.position for each in cleared], done) == (gone, len(gone)), rows


def test_of_many_updates_each_row_that_is_replaced_is_cleared(store: Store) -> None:
    """In steps, of which one may clear an update whose own row another one clears."""
    audit = opened(store)
    rows = [row(at, "update", other=str(at + 1)) for at in range(1, MANY)]  # the newest first
    take(store, audit, [*rows, row(MANY, "fine")], 0)
    chosen = {"label": ["update"], "state": ["open", "cleared"]}
    assert clearing.move(store, RITA, audit.id, RowState.CLEARED, chosen, now=NOW) == MANY - 1
    assert counts(store, audit) == {"update": {"open": 1, "cleared": MANY - 2}, "fine": {"cleared": 1}}
