"""The log: append-only, chained, and every way of tampering with it is found."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tests.claims import NOW, examined, submission_of
from vouchgate.ingest.claims.log import Action, LogEntry
from vouchgate.storage.engine import writing
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store

ZEROS = "0" * 64


def _append(store: Store, owner_id: str, subject_id: str) -> LogEntry:
    return store.writer.run(
        [owner_id],
        lambda connection: log.append(
            connection,
            owner_id,
            Action.REVIEW_REJECTED,
            subject_id,
            log.Document(b"about"),
            by="rüdiger\n",
            now=NOW + timedelta(seconds=1),
        ),
    ).result(120)


@pytest.fixture
def chained(store: Store) -> Store:
    """Owner ann has five entries, bob two, and the service itself one."""
    for number in range(3):
        store.writer.submit(submission_of(examined(f"Gate {number} is closed."))).result(120)
    for owner_id in ("bob", "ann", "bob", "ann", ""):
        _append(store, owner_id, f"rev_{owner_id}")
    return store


def _verify(store: Store) -> list[str]:
    with store.read() as connection:
        return log.verify(connection)


def _tamper(store: Store, statement: str) -> None:
    with writing(store._engine) as connection:
        if connection.dialect.name == "sqlite":
            connection.execute(text("DROP TRIGGER IF EXISTS log_entry_no_update"))
            connection.execute(text("DROP TRIGGER IF EXISTS log_entry_no_delete"))
        else:
            connection.execute(text("ALTER TABLE log_entry DISABLE TRIGGER ALL"))
        assert connection.execute(text(statement)).rowcount > 0


def test_a_chain_is_numbered_and_linked(chained: Store) -> None:
    assert _verify(chained) == []
    with chained.read() as connection:
        entries = log.events(connection, None, after=None, limit=100)
    by_owner = {owner: [e for e in entries if e.owner_id == owner] for owner in ("", "ann", "bob")}
    assert {owner: [e.seq for e in found] for owner, found in by_owner.items()} == {
        "": [1],
        "ann": [1, 2, 3, 4, 5],
        "bob": [1, 2],
    }
    for found in by_owner.values():
        assert [e.previous for e in found] == [ZEROS, *[e.digest for e in found[:-1]]]
    last = by_owner["ann"][-1]
    assert (last.actor, last.at, last.action) == (
        "rüdiger\n",
        NOW + timedelta(seconds=1),
        Action.REVIEW_REJECTED,
    )


def test_what_append_returns_is_what_is_read(chained: Store) -> None:
    entry = _append(chained, "cem", "rev_1")
    with chained.read() as connection:
        assert log.events(connection, frozenset({"cem"}), after=None, limit=5) == [entry]


def test_pages_have_no_gaps(chained: Store) -> None:
    with chained.read() as connection:
        everything = log.events(connection, None, after=None, limit=100)
        seen: list[LogEntry] = []
        after = None
        while page := log.events(connection, None, after=after, limit=3):
            seen += page
            after = page[-1].owner_id, page[-1].seq
        assert seen == everything
        assert len(seen) == 8
        only_bob = log.events(connection, frozenset({"bob", "nobody"}), after=("ann", 3), limit=9)
        assert [(e.owner_id, e.seq) for e in only_bob] == [("bob", 1), ("bob", 2)]
        assert log.events(connection, frozenset(), after=None, limit=9) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE log_entry SET actor = 'x'",
        "UPDATE log_entry SET actor = 'x', salt = NULL",
        "UPDATE log_entry SET salt = 'x'",
        "DELETE FROM log_entry",
        "DELETE FROM log_entry WHERE seq = 5",
    ],
)
def test_the_database_itself_refuses_changes(chained: Store, statement: str) -> None:
    with pytest.raises(DBAPIError, match="append-only"), writing(chained._engine) as connection:
        connection.execute(text(statement))
    assert _verify(chained) == []


def test_postgresql_refuses_to_empty_the_log(chained: Store) -> None:
    with writing(chained._engine) as connection:
        if connection.dialect.name == "sqlite":
            return  # it has no TRUNCATE
        with pytest.raises(DBAPIError, match="append-only"):
            connection.execute(text("TRUNCATE log_entry"))
        connection.rollback()


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    "change",
    [
        "actor = 'somebody'",
        "action = 'review.approved'",
        "subject_id = 'other'",
        f"content_digest = '{ZEROS}'",
        "at = '2026-05-04 12:30:15.250001+00'",
    ],
)
def test_an_altered_entry_is_found(chained: Store, change: str) -> None:
    if chained._engine.dialect.name == "sqlite":
        change = change.replace("+00", "")
    _tamper(chained, f"UPDATE log_entry SET {change} WHERE owner_id = 'ann' AND seq = 2")  # noqa: S608
    assert _verify(chained) == ["Log of owner 'ann', entry 2: was altered."]


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    ("statement", "sentences"),
    [
        (
            "DELETE FROM log_entry WHERE owner_id = 'ann' AND seq = 2",
            ["Log of owner 'ann': entry 2 is missing; the next one is 3."],
        ),
        (
            "DELETE FROM log_entry WHERE owner_id = 'ann' AND seq = 5",
            ["Log of owner 'ann': ends at entry 4, but entry 5 was written."],
        ),
        (
            "DELETE FROM log_entry WHERE owner_id = 'bob'",
            ["Log of owner 'bob': ends at entry 0, but entry 2 was written."],
        ),
        (
            f"UPDATE log_entry SET previous = '{ZEROS}' WHERE owner_id = 'ann' AND seq = 3",  # noqa: S608
            [
                "Log of owner 'ann', entry 3: does not continue the entry before it.",
                "Log of owner 'ann', entry 3: was altered.",
            ],
        ),
        (
            "UPDATE log_entry SET owner_id = 'dee' WHERE owner_id = ''",
            [
                "Log of owner '': ends at entry 0, but entry 1 was written.",
                "Log of owner 'dee': the owner's row is gone.",
            ],
        ),
        ("DELETE FROM owner WHERE owner_id = 'bob'", ["Log of owner 'bob': the owner's row is gone."]),
        (
            f"UPDATE owner SET log_head = '{ZEROS}' WHERE owner_id = 'bob'",  # noqa: S608
            ["Log of owner 'bob': its last entry 2 is not the one the owner's row names."],
        ),
        (
            "UPDATE owner SET log_seq = 1 WHERE owner_id = 'bob'",
            ["Log of owner 'bob': its last entry 2 is not the one the owner's row names."],
        ),
        # What cannot be read at all is named, and the rest is looked at.
        (
            "UPDATE log_entry SET at = 'garbage', digest = 'x' WHERE owner_id = 'ann' AND seq = 5",
            [
                "Log of owner 'ann', entry 5: was altered.",
                "Log of owner 'ann': its last entry 5 is not the one the owner's row names.",
            ],
        ),
        (
            "UPDATE log_entry SET actor = x'00' WHERE owner_id = 'ann' AND seq = 2",
            ["Log of owner 'ann', entry 2: was altered."],
        ),
        (
            "UPDATE log_entry SET seq = 'garbage' WHERE owner_id = 'ann' AND seq = 5",
            [
                "Log of owner 'ann', entry garbage: was altered: that is no number.",
                "Log of owner 'ann': ends at entry 4, but entry 5 was written.",
            ],
        ),
        (
            "UPDATE owner SET log_seq = 'x' WHERE owner_id = 'bob'",
            ["Log of owner 'bob': the owner's row was altered: the number of its last entry is none."],
        ),
    ],
)
def test_a_broken_chain_is_found(chained: Store, statement: str, sentences: list[str]) -> None:
    _tamper(chained, statement)
    assert _verify(chained) == sentences


def test_a_salt_alone_may_be_erased(chained: Store) -> None:
    with writing(chained._engine) as connection:
        assert (
            connection.execute(text("UPDATE log_entry SET salt = NULL WHERE owner_id = 'ann'")).rowcount == 5
        )
    assert _verify(chained) == []


@pytest.mark.on("sqlite")
def test_erasing_text_leaves_the_log_whole(chained: Store) -> None:
    with writing(chained._engine) as connection:
        for table in ("memory", "decision", "dedup_key"):
            connection.execute(text(f"DELETE FROM {table}"))  # noqa: S608
    assert _verify(chained) == []
