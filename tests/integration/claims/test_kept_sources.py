"""Kept readings: the next claim is answered from them, as long as the policy says, on the very same text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text

from tests.reviews import queue_of
from tests.running.racers import Report, race
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Judged, Missing, Standing
from vouchgate.review.ending.expiry import Expired, expire
from vouchgate.storage.claims import source_cache as sources
from vouchgate.storage.store import Store

NOW = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)
LATER = NOW + timedelta(hours=24)
KEY = "url:https://docs.example.com/limits"
CITATION = Citation(type=CitationType.URL, value="https://docs.example.com/limits", key=KEY, start=4, end=35)


def found(said: str = "The limit is 40 requests.", **more: Any) -> Found:
    """A page as it was read."""
    values: dict[str, Any] = {
        "citation": CITATION,
        "source_id": "https://docs.example.com/limits",
        "standing": Standing.IN_FORCE,
        "detail": "The page is there.",
        "title": "Limits",
        "digest": "d" * 64,
        "dated": NOW - timedelta(days=90),
        "site": "example.com",
        "links": ("example.net",),
        "status": 200,
        "text": said,
    }
    return Found.model_validate(values | more)


def keep(
    store: Store, reading: Found | Missing, *, at: datetime = NOW, until: datetime = LATER, key: str = KEY
) -> bool:
    """Keeps a reading in a transaction of its own."""
    work = sources.keeping(key, reading, checked_at=at, expires_at=until)
    return store.writer.run((), work).result()


def kept(store: Store, now: datetime = NOW, key: str = KEY) -> Found | Missing | None:
    """What a claim that cites it is answered from."""
    with store.read() as connection:
        return sources.get(connection, key, now)


def rows(store: Store) -> int:
    """How many readings are kept."""
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(sources.TABLE)) or 0


def test_a_reading_comes_back_with_its_text_digest_and_dates(store: Store) -> None:
    page = found()
    assert kept(store) is None
    assert keep(store, page)
    assert kept(store) == page
    gone = Missing(citation=CITATION, detail="It answered 404.", status=404)
    assert keep(store, gone, at=NOW + timedelta(seconds=1))
    assert kept(store) == gone
    assert rows(store) == 1


@pytest.mark.on("sqlite")
def test_what_belongs_to_one_claim_is_not_kept(store: Store) -> None:
    judged = Judged(model="m", contains="yes", attributed="yes", quote="The limit is 40 requests.")
    assert keep(store, found(excerpt="The limit is 40", judgement=judged, took_ms=3.5))
    assert kept(store) == found()


def test_it_is_good_until_its_time_and_not_after(store: Store) -> None:
    assert keep(store, found(), until=LATER)
    assert kept(store, LATER - timedelta(microseconds=1)) is not None
    assert kept(store, LATER) is None


def test_of_two_readings_the_later_one_stays_whichever_is_written_last(store: Store) -> None:
    newer, older = found("New text."), found("Old text.")
    assert keep(store, newer, at=NOW)
    assert keep(store, older, at=NOW - timedelta(seconds=5))
    assert kept(store) == newer


def test_one_of_a_clock_that_was_ahead_is_not_good_until_then(store: Store) -> None:
    ahead = NOW + timedelta(days=300)
    assert keep(store, found("Old text."), at=ahead, until=ahead + timedelta(days=1))
    assert kept(store) is None
    assert keep(store, found("New text."))
    assert kept(store) == found("New text.")


@pytest.mark.on("postgresql")
def test_keys_of_any_length_and_content_do_not_meet(store: Store) -> None:
    keys = [
        KEY,
        KEY + "/",
        "x" * 100_000,
        "issue:a/b#1",
        "url:\x00",
        "url:\ud800",
        "'; DROP TABLE source; --",
    ]
    for number, key in enumerate(keys):
        citation = CITATION.model_copy(update={"key": key})
        reading = found(f"Text {number}.", citation=citation)
        assert keep(store, reading, key=key) is (key != "url:\ud800")
    for number, key in enumerate(keys):
        back = kept(store, key=key)
        assert (back is None) is (key == "url:\ud800")
        assert back is None or (isinstance(back, Found) and back.text == f"Text {number}.")


@pytest.mark.on("postgresql")
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.text(st.characters(), max_size=300), title=st.text(st.characters(), max_size=50))
def test_any_text_is_kept_as_it_is_or_not_at_all(store: Store, said: str, title: str) -> None:
    """What cannot be stored is not kept, and no older reading is put in its place either way."""
    page = found(said, title=title)
    if keep(store, page):
        assert kept(store) == page
    else:
        assert any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in said + title)


@pytest.mark.on("sqlite")
def test_a_text_over_the_limit_is_cut(store: Store) -> None:
    assert keep(store, found("a" * 250_000))
    reading = kept(store)
    assert isinstance(reading, Found)
    assert len(reading.text) == TEXT_CHARACTERS


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE source SET reading = 'x'",
        'UPDATE source SET reading = \'{"kind": "unreachable"}\'',
        "UPDATE source SET reading = replace(reading, 'limits', 'others')",
    ],
)
def test_a_row_that_cannot_be_understood_is_a_miss_and_a_line_in_the_log(
    store: Store, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert keep(store, found())
    store.writer.run((), lambda c: c.execute(text(damage)).rowcount).result()
    assert kept(store) is None
    assert KEY in caplog.text
    assert keep(store, found(), at=NOW + timedelta(seconds=1))
    assert kept(store) == found()


def test_the_sweep_forgets_what_is_too_old_and_nothing_else(store: Store) -> None:
    for number in range(7):
        key = f"url:https://example.org/{number}"
        page = found(citation=CITATION.model_copy(update={"key": key}))
        assert keep(store, page, key=key, until=NOW + timedelta(minutes=number))
    queue = queue_of(store)
    assert queue.forget(sources, NOW + timedelta(minutes=3), limit=2) == 2
    assert expire(queue, NOW + timedelta(minutes=3)) == Expired(0, 0, 2)
    assert rows(store) == 3
    assert expire(queue, NOW + timedelta(minutes=3)) == Expired(0, 0, 0)
    assert kept(store, NOW, "url:https://example.org/3") is None
    assert kept(store, NOW, "url:https://example.org/4") is not None


def write_and_forget(store: Store, who: int) -> Report:
    """Keeps the same readings as others do at this moment, and forgets old ones meanwhile."""
    for number in range(40):
        key = f"url:https://example.org/{number % 8}"
        page = found(f"Page {number} of {who}.", citation=CITATION.model_copy(update={"key": key}))
        at = NOW + timedelta(seconds=number)
        until = at + timedelta(seconds=1 if number % 3 else 3600)
        store.writer.run((), sources.keeping(key, page, checked_at=at, expires_at=until)).result()
        if number % 5 == who % 5:
            store.writer.run((), _forgetting(at)).result()
    return []


def _forgetting(at: datetime) -> Callable[[Any], int]:
    return lambda connection: sources.forget_old(connection, at, 100)


def test_several_processes_keep_and_forget_at_once(store: Store, database_url: str) -> None:
    race(database_url, write_and_forget, [(who,) for who in range(4)])
    assert rows(store) <= 8
    for number in range(32, 40):
        key = f"url:https://example.org/{number % 8}"
        reading = kept(store, NOW + timedelta(seconds=number), key)
        if number % 3 == 0:  # the others were good for a second only
            assert isinstance(reading, Found)
            assert reading.text.startswith(f"Page {number} of ")


def test_no_more_than_so_many_are_kept(store: Store) -> None:
    for number in range(7):
        key = f"url:https://kept.example/{number}"
        reading = found(f"Text {number}.", citation=CITATION.model_copy(update={"key": key}))
        work = sources.keeping(key, reading, checked_at=NOW, expires_at=NOW + timedelta(hours=number + 1))
        store.writer.run((), work).result()
    with store.read() as connection:
        assert not sources.has_old(connection, NOW, kept=7)
        assert sources.has_old(connection, NOW, kept=3)
    assert store.writer.run((), lambda c: sources.forget_old(c, NOW, 100, kept=3)).result() == 4
    with store.read() as connection:
        left = [
            n for n in range(7) if sources.get(connection, f"url:https://kept.example/{n}", NOW) is not None
        ]
        assert left == [4, 5, 6]
        assert not sources.has_old(connection, NOW, kept=3)
