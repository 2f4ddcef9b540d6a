"""The limit of the whole queue, which all owners share without waiting for one another far from it."""

from __future__ import annotations

import pytest
from sqlalchemy import event, text

from tests.claims import examined, policy, submission_of
from vouchgate.ingest.claims.claim import Source
from vouchgate.storage.claims.submit import Decided, Submission, write_submissions
from vouchgate.storage.engine import open_engine, writing
from vouchgate.storage.queue.capacity import QueueFilledMeanwhile, QueueFull, QueueLimit
from vouchgate.storage.store import Store

LIMITS = policy(per_owner=5000, total=5000)
SET_TOTAL = text("UPDATE queue_total SET pending = :pending WHERE id = 1")


def _submission(content: str) -> Submission:
    return submission_of(examined(content, source=Source.AI_SYNTHESIS, under=LIMITS))


def _total(store: Store) -> int:
    with store.read() as connection:
        return int(connection.exec_driver_sql("SELECT pending FROM queue_total").scalar_one())


@pytest.mark.parametrize(("waiting", "locks"), [(0, False), (3999, False), (4500, True)])
def test_the_count_of_all_is_locked_first_only_near_the_limit(
    database_url: str, waiting: int, *, locks: bool
) -> None:
    store = Store.open(database_url, threshold=LIMITS.threshold)
    with writing(store._engine) as connection:
        connection.execute(SET_TOTAL, {"pending": waiting})
    seen: list[str] = []
    event.listen(
        store._engine, "before_cursor_execute", lambda c, cursor, statement, *rest: seen.append(statement)
    )
    answer = store.writer.submit(_submission("The gate is closed.")).result(120)
    assert isinstance(answer, Decided)
    about_it = [statement for statement in seen if "queue_total" in statement]
    assert sum("FOR UPDATE" in statement for statement in about_it) == (
        1 if locks and store.dialect == "postgresql" else 0
    )
    assert seen[-1].startswith("UPDATE queue_total")
    assert _total(store) == waiting + 1
    store.close()


def test_a_count_of_all_that_was_deleted_is_counted_anew(store: Store) -> None:
    for name in ("north", "south"):
        assert isinstance(
            store.writer.submit(_submission(f"The {name} gate is closed.")).result(120), Decided
        )
        with writing(store._engine) as connection:
            connection.execute(text("DELETE FROM queue_total"))
    assert isinstance(store.writer.submit(_submission("The door is open.")).result(120), Decided)
    assert _total(store) == 3


def test_a_queue_that_fills_meanwhile_is_seen_and_never_overflows(database_url: str) -> None:
    store = Store.open(database_url, threshold=LIMITS.threshold)
    other = open_engine(database_url)
    sent = [_submission(f"The {name} gate is closed.") for name in ("north", "south")]
    filled = False

    def fill(connection: object, cursor: object, statement: str, *rest: object) -> None:
        """Another process takes all places but one, after this one has looked at the count."""
        nonlocal filled
        if "UPDATE owner" in statement and not filled:
            filled = True
            if store.dialect == "postgresql":
                with writing(other) as second:
                    second.execute(SET_TOTAL, {"pending": 4999})
            else:  # nobody else can write: the same within the transaction
                cursor.execute("UPDATE queue_total SET pending = 4999")  # type: ignore[attr-defined]

    event.listen(store._engine, "before_cursor_execute", fill)
    with pytest.raises(QueueFilledMeanwhile), writing(store._engine) as connection:
        write_submissions(connection, sent)
    with writing(store._engine) as connection:
        connection.execute(SET_TOTAL, {"pending": 4999})
        answers = write_submissions(connection, sent, lock_total=True)
    assert isinstance(answers[0], Decided)
    assert isinstance(answers[1], QueueFull)
    assert answers[1].which is QueueLimit.TOTAL
    assert _total(store) == 5000
    other.dispose()
    store.close()


def test_the_writer_tries_again_with_the_count_locked(database_url: str) -> None:
    store = Store.open(database_url, threshold=LIMITS.threshold)
    other = open_engine(database_url)
    filled: list[int] = []

    def fill(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if "INTO pending" in statement and not filled:
            filled.append(1)
            with writing(other) as second:
                second.execute(SET_TOTAL, {"pending": 5000})

    if store.dialect == "postgresql":
        event.listen(store._engine, "before_cursor_execute", fill)
    else:
        with writing(other) as connection:
            connection.execute(SET_TOTAL, {"pending": 5000})
    answer = store.writer.submit(_submission("The gate is closed.")).result(120)
    assert isinstance(answer, QueueFull)
    assert _total(store) == 5000
    other.dispose()
    store.close()
