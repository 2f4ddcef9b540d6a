"""Audits that owners clear: what is handed over is here once, acts are whole and can be undone, and time ends it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import insert

from tests.claims import NOW
from tests.reviews import history, queue_of, reviewer
from vouchgate.ingest.claims.people import Principal, Role
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
        assert audits.named(connection, audit, ["1", "2", "none"]).keys() == {"1", "2"}
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
    told = [entry.action for entry in history(store)]
    assert told == ["audit.cleared", "audit.cleared", "audit.kept", "audit.undone"]

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
    audit = opened(store)
    take(store, audit, [row(1, "fine"), row(2, "update", other="1"), row(3, "update", other="2"), row(4)], 0)
    chosen = {"name": audits.REPLACED}
    assert clearing.move(store, RITA, audit.id, RowState.CLEARED, chosen, now=NOW) == 2
    with store.read() as connection:
        cleared = audits.search(connection, audit, [RowState.CLEARED], limit=9)
    assert [each.position for each in cleared] == [1, 2]
