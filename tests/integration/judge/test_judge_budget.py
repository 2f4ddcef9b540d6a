"""The judge's questions of a day: never one too many, whoever asks, on both databases."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from tests.conftest import THRESHOLD
from tests.hostile import TLS
from tests.integration.judge.test_judge import CLAIM, HERE, PATH, YES, adr, completion
from tests.running.racers import Report, race
from tests.web import Answer, WebServer, web_server
from vouchgate.gate.judge import Judge, Question
from vouchgate.ingest.claims.source import NotJudged
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.policy import JudgePolicy
from vouchgate.ingest.sources.judge import JudgeClient
from vouchgate.storage.judge_budget import take_questions
from vouchgate.storage.store import Store

DAY = date(2026, 5, 4)


def try_to_take(store: Store, day: date, wanted: int, limit: int, times: int) -> Report:
    """Takes `wanted` questions so many times over, each in a write of its own; what came of each."""

    def work(connection: Connection) -> bool:
        return take_questions(connection, day, wanted, limit)

    return [(str(store.writer.run((), work).result()),) for _ in range(times)]


def got(store: Store, wanted: int, limit: int, day: date = DAY) -> bool:
    return try_to_take(store, day, wanted, limit, 1) == [("True",)]


def asked(store: Store) -> dict[str, int]:
    with store.read() as connection:
        return {row.day: row.asked for row in connection.execute(text("SELECT day, asked FROM judge_day"))}


def test_a_days_questions_end(store: Store) -> None:
    assert [got(store, 1, 3) for _ in range(5)] == [True, True, True, False, False]
    assert asked(store) == {"2026-05-04": 3}


def test_the_next_day_has_its_own(store: Store) -> None:
    assert got(store, 2, 2)
    assert not got(store, 1, 2)
    assert got(store, 1, 2, date(2026, 5, 5))
    assert asked(store) == {"2026-05-04": 2, "2026-05-05": 1}


def test_all_of_them_or_none(store: Store) -> None:
    assert got(store, 2, 5)
    assert not got(store, 4, 5)
    assert asked(store) == {"2026-05-04": 2}
    assert got(store, 3, 5)
    assert not got(store, 6, 5, date(2026, 5, 5))  # more than a day has, and the first of that day
    assert asked(store) == {"2026-05-04": 5}


def test_a_limit_of_none_allows_none_and_writes_nothing(store: Store) -> None:
    assert not got(store, 1, 0)
    assert asked(store) == {}


def test_a_lower_limit_counts_from_now_on(store: Store) -> None:
    assert got(store, 5, 10)
    assert not got(store, 1, 4)
    assert got(store, 1, 6)


def test_what_is_rolled_back_was_not_taken(store: Store) -> None:
    def work(connection: Connection) -> bool:
        assert take_questions(connection, DAY, 1, 10)
        raise LookupError("changed its mind")

    with pytest.raises(LookupError):
        store.writer.run((), work).result()
    assert asked(store) == {}


def test_threads_at_a_barrier(store: Store) -> None:
    barrier = threading.Barrier(16)

    def one(_: int) -> Report:
        barrier.wait(120)
        return try_to_take(store, DAY, 1, 20, 4)

    with ThreadPoolExecutor(16) as pool:
        counts = Counter(said for report in pool.map(one, range(16)) for (said,) in report)
    assert counts == {"True": 20, "False": 44}
    assert asked(store) == {"2026-05-04": 20}


@pytest.mark.parametrize(("wanted", "limit", "granted"), [(1, 30, 30), (3, 31, 10)])
def test_processes_at_a_barrier(database_url: str, wanted: int, limit: int, granted: int) -> None:
    reports = race(database_url, try_to_take, [(DAY, wanted, limit, 15)] * 4)
    counts = Counter(said for report in reports for (said,) in report)
    assert counts == {"True": granted, "False": 60 - granted}
    store = Store.open(database_url, threshold=THRESHOLD)
    try:
        assert asked(store) == {"2026-05-04": granted * wanted}
    finally:
        store.close()


# From here on with the judge that spends it, and what it says of its own state.

JUDGE = load_policy().judge
NOW = datetime(2026, 5, 4, 23, 59, 50, tzinfo=UTC)


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web_server({PATH: completion(YES)}) as server:
        yield server


class Clock:
    """Where the tests' judge gets the day from."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def run_with(
    store: Store,
    site: WebServer,
    policy: JudgePolicy,
    clock: Clock,
    steps: Callable[[Judge], Coroutine[Any, Any, None]],
) -> None:
    async def run() -> None:
        client = Outbound(allow_networks=(HERE,), spacing_seconds=0, tls=TLS)
        first = JudgeClient(client, url=f"{site.url}/v1", model="small", token=None, seconds=5)
        await steps(Judge(policy, store, first, clock=clock))

    asyncio.run(run())


ONE = [Question(adr(), rules_disagree=False)]
TWO = [*ONE, Question(adr(name="ADR-0008"), rules_disagree=False)]


@pytest.mark.on("sqlite")
def test_the_days_budget_ends_shows_and_begins_anew(store: Store, site: WebServer) -> None:
    clock = Clock()

    async def steps(judge: Judge) -> None:
        assert [answer.kind for answer in (await judge.ask(CLAIM, TWO, 5)).values()] == ["judged"] * 2
        assert judge.problems() == ()
        refused = list((await judge.ask(CLAIM, TWO, 5)).values())
        assert [a.code for a in refused if isinstance(a, NotJudged)] == ["budget"] * 2
        assert len(site.asked) == 2
        assert len(judge.problems()) == 1
        assert "2026-05-04" in judge.problems()[0]
        clock.now += timedelta(seconds=20)
        assert judge.problems() == ()
        assert [answer.kind for answer in (await judge.ask(CLAIM, TWO, 5)).values()] == ["judged"] * 2

    run_with(store, site, JUDGE.model_copy(update={"questions_per_day": 3}), clock, steps)
    assert len(site.asked) == 4


@pytest.mark.on("sqlite")
def test_idle_costs_nothing(store: Store, site: WebServer) -> None:
    async def steps(judge: Judge) -> None:
        assert judge.problems() == ()

    run_with(store, site, JUDGE, Clock(), steps)
    assert site.asked == []
    assert asked(store) == {}


@pytest.mark.on("sqlite")
def test_questions_that_fail_one_after_another_show_until_one_is_answered(
    store: Store, site: WebServer
) -> None:
    async def steps(judge: Judge) -> None:
        site.routes[PATH] = Answer("", 503)
        for _ in range(2):
            await judge.ask(CLAIM, ONE, 5)
        assert judge.problems() == ()
        await judge.ask(CLAIM, ONE, 5)
        (problem,) = judge.problems()
        assert problem.startswith("judge: the last 3 questions to small")
        assert "503" in problem
        site.routes[PATH] = completion(YES | {"contains": "no"})
        await judge.ask(CLAIM, ONE, 5)
        assert judge.problems() == ()

    run_with(store, site, JUDGE, Clock(), steps)


@pytest.mark.on("sqlite")
def test_a_budget_that_cannot_be_asked_is_no_question(store: Store, site: WebServer) -> None:
    async def steps(judge: Judge) -> None:
        store.writer.close()
        (answer,) = (await judge.ask(CLAIM, ONE, 5)).values()
        assert isinstance(answer, NotJudged)
        assert answer.code == "error"

    run_with(store, site, JUDGE, Clock(), steps)
    assert site.asked == []
