"""The sources of stored memories are read again: what went away or changed marks a memory, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.claims import NOW
from tests.rechecking import CONTENT, NO_CHECKS, SAYS, Bench, bench
from tests.reviews import all_memories, assert_consistent, history, memory, queue_of, reviewer, stored
from tests.web import Answer, WebServer, web_server
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.review.answers import NotFound
from vouchgate.review.vouching.confirming import confirm
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.store import Store

SOON = NOW + timedelta(seconds=30)
WEEK = timedelta(days=7.8)  # a week and the most of the spread

PAGE = (
    "<h1>Limits</h1> Today is {day}, {visits} people were here. {advert} "
    "Every tenant of the hosted plan may open 40 connections to the message broker at once. "
    "More connections are refused with an error until an old one was closed. {more}"
)
CITES = "The hosted plan gives every tenant 40 connections to the message broker at once, see {}/limits"


def page(day: str = "Monday", advert: str = "Buy our socks, they are warm.", more: str = "") -> Answer:
    """The page as it is on one day."""
    return Answer(PAGE.format(day=day, visits=len(day) * 311, advert=advert, more=more))


@pytest.fixture
def here(store: Store, tmp_path: Path) -> Iterator[Bench]:
    """A bench under the built-in policy."""
    with bench(store, tmp_path) as made:
        yield made


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A web server without pages."""
    with web_server() as server:
        yield server


def one(here: Bench, memory_id: str | None, now: datetime = NOW) -> Memory:
    """The memory as it stands."""
    return memory(here.store, str(memory_id), now)


def cite(here: Bench, web: WebServer) -> str:
    """Stores a claim that cites the page of limits."""
    sent = here.send(CITES.format(web.url), source=Source.USER)
    assert sent.memory_id is not None, sent.reason
    return sent.memory_id


def test_a_memory_whose_adr_was_superseded_is_stale_until_it_holds_again(here: Bench) -> None:
    sent = here.send()
    assert here.work(NOW + WEEK).same == 1
    here.adr("Superseded by ADR-0002")
    week2 = NOW + 2 * WEEK
    assert here.work(week2).stale == 1
    marked = one(here, sent.memory_id, week2)
    assert marked.status is MemoryStatus.ACTIVE
    assert marked.stale_since is not None
    assert abs(marked.stale_since - week2) < timedelta(minutes=1)
    assert "Superseded by ADR-0002" in str(marked.stale_reason)
    assert here.work(NOW + 3 * WEEK).same == 1
    assert one(here, sent.memory_id, week2) == marked
    here.repository.revert("HEAD")
    assert here.work(NOW + 4 * WEEK).fresh == 1
    again = one(here, sent.memory_id)
    assert (again.stale_since, again.stale_reason) == (None, None)
    actions = [(e.action, e.subject_id, e.actor) for e in history(here.store)[1:]]
    assert actions == [(a, sent.memory_id, "service") for a in (Action.MEMORY_STALE, Action.MEMORY_FRESH)]
    assert_consistent(here.store, NOW + 4 * WEEK)


def test_a_page_that_nobody_listed_is_looked_at_again_before_the_others(here: Bench, web: WebServer) -> None:
    says = "Every tenant of the hosted plan has 40 connections to the message broker at once"
    web.routes["/limits"] = Answer(f"<h1>Limits</h1> {says}.")
    sent = here.send(f"{says}, see {web.url}/limits")
    assert sent.rule == "stated", sent.reason
    record = here.send()
    assert record.memory_id is not None
    web.routes["/limits"] = Answer("<h1>Limits</h1> This page was moved to our shop, where socks are warm.")
    late = NOW + timedelta(days=3)
    came = here.work(late)
    assert (came.stale, came.same) == (1, 0)
    assert one(here, sent.memory_id, late).stale_since is not None
    assert min(row.due_at for row in here.schedule()) >= NOW + timedelta(days=7)  # and then as every memory


@pytest.mark.on("sqlite")
def test_a_memory_whose_adr_was_rewritten_or_deleted_is_stale(here: Bench) -> None:
    sent = here.send()
    here.adr("Accepted", "The gateway listens wherever it likes.")
    assert here.work(NOW + WEEK).stale == 1
    told = str(one(here, sent.memory_id).stale_reason)
    assert told.startswith("ADR-0001 was changed since the claim was stored; its text is ")
    confirmed = confirm(here.store, reviewer(), str(sent.memory_id), here.policy, NOW + WEEK)
    assert isinstance(confirmed, Memory)
    assert here.work(NOW + 1.2 * WEEK) == NO_CHECKS
    assert here.work(NOW + 2 * WEEK).same == 1
    here.adr("Accepted", "The gateway does not listen any more.")  # what the owner did not know of
    assert here.work(NOW + 3 * WEEK).stale == 1
    since = NOW + 3 * WEEK
    here.repository.git("rm", "--quiet", "docs/adrs/0001-port.md")
    here.repository.commit("Gone", {"docs/adrs/0002-logs.md": "# 2. Logs\n\nLogs go to a file.\n"})
    assert here.work(NOW + 4 * WEEK).stale == 1
    marked = one(here, sent.memory_id)
    assert "No ADR-0001 exists" in str(marked.stale_reason)
    assert marked.stale_since is not None
    assert marked.stale_since < since + 0.1 * WEEK


@pytest.mark.on("sqlite")
def test_a_memory_whose_cited_lines_changed_is_stale_and_others_in_the_file_are_not_its_matter(
    here: Bench,
) -> None:
    lines = ["# what the gateway does", "listens on port 8080", "", "", "", "", "logs to a file"]

    def commit(at: int, line: str) -> None:
        lines[at] = line
        here.repository.commit("Edit", {"src/gateway.txt": "\n".join(lines) + "\n"})

    commit(0, lines[0])
    sent = here.send("The gateway listens on port 8080 (src/gateway.txt:2).", source=Source.USER)
    assert sent.memory_id is not None, sent.reason
    commit(6, "logs to the console")
    assert here.work(NOW + WEEK).same == 1
    commit(1, "listens on port 9090")
    assert here.work(NOW + 2 * WEEK).stale == 1
    assert "src/gateway.txt:2" in str(one(here, sent.memory_id).stale_reason)
    commit(1, "listens on port 8080")
    assert here.work(NOW + 3 * WEEK).fresh == 1
    here.repository.git("mv", "src/gateway.txt", "src/moved.txt")
    here.repository.commit("Move")
    assert here.work(NOW + 4 * WEEK).stale == 1
    assert "does not exist" in str(one(here, sent.memory_id).stale_reason)


@pytest.mark.on("sqlite")
def test_a_memory_whose_adr_is_changed_by_a_later_one_is_stale(here: Bench) -> None:
    sent = here.send()
    assert here.work(NOW + WEEK).same == 1
    later = "# ADR-0002: Another port\n\nStatus: Accepted\n\nThis amends ADR-0001: the port is 9090.\n"
    here.repository.commit("Another", {"docs/adrs/0002-other-port.md": later})
    assert here.work(NOW + 2 * WEEK).stale == 1
    assert one(here, sent.memory_id).stale_since is not None


def test_what_cannot_be_read_changes_nothing_and_is_tried_at_growing_gaps(here: Bench) -> None:
    sent = here.send()
    here.adr("Rejected")
    now = NOW + WEEK
    assert here.work(now).stale == 1
    marked = one(here, sent.memory_id)
    here.hide()
    now += WEEK
    gaps = []
    for _ in range(9):
        assert here.work(now).again == 1
        (row,) = here.schedule()
        gaps.append((row.due_at - now).total_seconds())
        now = row.due_at
    expected = [30 * 4**n for n in range(1, 8)]
    assert [round(gap / wait, 1) for gap, wait in zip(gaps, expected, strict=False)] == [1.0] * 7
    assert round(gaps[7]) == round(gaps[8]) < WEEK.total_seconds()
    assert one(here, sent.memory_id) == marked
    here.show()
    assert here.work(now).same == 1
    assert [row.attempts for row in here.schedule()] == [0]


def test_a_memory_stored_on_its_sources_word_is_looked_at_as_soon_as_what_waits(here: Bench) -> None:
    """Rule 9 carries what could not be read; when it is read and holds, later changes are told from that."""
    here.hide()
    sent = here.send(source=Source.USER)
    assert sent.rule == "trusted_source"
    assert here.work(SOON).again == 1
    here.show()
    assert here.work(SOON + timedelta(minutes=3)).same == 1
    (row,) = here.schedule()
    assert row.readings is not None
    assert one(here, sent.memory_id).stale_since is None
    here.adr("Accepted", SAYS + " Or so they say.")
    assert here.work(NOW + 2 * WEEK).stale == 1
    assert "was changed" in str(one(here, sent.memory_id).stale_reason)


@pytest.mark.on("sqlite")
def test_a_memory_stored_on_its_sources_word_is_stale_when_the_citation_is_false(here: Bench) -> None:
    here.hide()
    sent = here.send("Per ADR-0077 the gateway listens on port 8080.", source=Source.USER)
    here.show()
    assert here.work(SOON).stale == 1
    assert "No ADR-0077 exists" in str(one(here, sent.memory_id).stale_reason)


@pytest.mark.on("sqlite")
def test_what_the_owner_let_in_knowing_it_is_no_news(here: Bench) -> None:
    here.adr("Proposed")
    sent = here.send()
    assert sent.rule == "refuted"
    done = queue_of(here.store).approve(reviewer(), str(sent.queue_id), version=1, now=NOW)
    assert type(done).__name__ == "Approved"
    assert here.work(NOW + WEEK).same == 1
    here.adr("Accepted")
    assert here.work(NOW + 2 * WEEK).same == 1
    here.adr("Accepted", SAYS.replace("8080", "9090"))
    assert here.work(NOW + 3 * WEEK).stale == 1
    here.adr("Rejected")
    assert here.work(NOW + 4 * WEEK).stale == 1
    (made,) = all_memories(here.store)
    assert "“Rejected”" in str(made.stale_reason)


@pytest.mark.on("sqlite")
def test_a_page_may_change_around_what_it_says(here: Bench, web: WebServer) -> None:
    web.routes["/limits"] = page()
    made = cite(here, web)
    adverts = "New: hats! " * 40
    web.routes["/limits"] = page("Tuesday", adverts, "A new chapter on queues has been added, " * 30)
    assert here.work(NOW + WEEK).same == 1
    assert one(here, made).stale_since is None


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("status", [200, 404])
def test_a_page_that_says_something_else_or_is_gone_makes_a_memory_stale(
    here: Bench, web: WebServer, status: int
) -> None:
    web.routes["/limits"] = page()
    made = cite(here, web)
    web.routes["/limits"] = Answer(
        "We were bought. Please visit the shop of our new owner for socks.", status
    )
    assert here.work(NOW + WEEK).stale == 1
    marked = one(here, made)
    said = str(marked.stale_reason).removeprefix(f"{web.url}/limits ")
    assert said.startswith("answered 404" if status == 404 else "does not speak of what the claim says")
    web.routes["/limits"] = page("Friday")
    assert here.work(NOW + 2 * WEEK).fresh == 1
    assert one(here, made).stale_since is None


@pytest.mark.on("sqlite")
def test_an_error_or_an_empty_page_is_not_a_page_that_changed(here: Bench, web: WebServer) -> None:
    web.routes["/limits"] = page()
    made = cite(here, web)
    for number, answer in enumerate((Answer("", 503), Answer("")), 1):
        web.routes["/limits"] = answer
        assert here.work(NOW + number * WEEK).again == 1
        assert one(here, made).stale_since is None


def test_memories_out_of_force_are_not_looked_at(here: Bench) -> None:
    texts = here.houses(4)
    retracted, superseded, expired, kept = (
        str(here.send(t, validity_horizon=NOW + timedelta(days=2) if n == 2 else None).memory_id)
        for n, t in enumerate(texts)
    )
    queue = queue_of(here.store)
    queue.retract(reviewer(), retracted, reason="No.", now=NOW)
    here.store.writer.run(
        ["ann"], lambda c: memories.supersede(c, "ann", superseded, by=kept, at=NOW)
    ).result()
    assert {row.item_id for row in here.schedule()} == {expired, kept}
    counts = here.work(NOW + WEEK)  # not swept yet, and yet expired
    assert (counts.gone, counts.same) == (1, 1)
    assert queue.expire_memories(NOW + WEEK) == 1
    assert {row.item_id for row in here.schedule()} == {kept}


@pytest.mark.on("sqlite")
def test_a_claim_without_sources_is_never_looked_at(here: Bench) -> None:
    stored(here.store, "The lamp in the hall is green.")
    assert here.schedule() == []
    assert here.work(NOW + 10 * WEEK) == NO_CHECKS


def test_reads_can_ask_for_what_is_stale(here: Bench) -> None:
    kept = here.send("The lamp in the hall is green.", source=Source.USER)
    sent = here.send(CONTENT)
    here.adr("Rejected")
    here.work(NOW + WEEK)
    owners = frozenset({"ann"})
    with here.store.read() as connection:
        for asked, expected in (
            (True, [sent.memory_id]),
            (False, [kept.memory_id]),
            (None, sorted([str(sent.memory_id), str(kept.memory_id)], reverse=True)),
        ):
            wanted = MemoryFilter(owners=owners, stale=asked)
            assert [m.id for m in memories.search(connection, wanted, NOW)] == expected


@pytest.mark.on("sqlite")
def test_reading_that_takes_too_long_is_unknown(store: Store, tmp_path: Path, web: WebServer) -> None:
    impatient = load_policy().model_copy(update={"deadline_seconds": 0.3})
    with bench(store, tmp_path, impatient) as here:
        web.routes["/limits"] = page()
        made = cite(here, web)
        web.routes["/limits"] = Answer("Nothing like it.", delay=2.0)
        assert here.work(NOW + WEEK).again == 1
        assert one(here, made).stale_since is None


def test_what_nothing_confirms_for_long_is_stale_until_its_source_can_be_read(
    here: Bench, web: WebServer
) -> None:
    web.routes["/limits"] = page()
    made = cite(here, web)
    assert one(here, made).confirmed_at == one(here, made).created_at
    assert here.work(NOW + WEEK).same == 1
    confirmed = one(here, made).confirmed_at
    assert confirmed is not None and abs(confirmed - NOW - WEEK) < timedelta(seconds=1)
    web.routes["/limits"] = Answer("", status=503)
    for days in (20, 100, 180):
        assert here.work(NOW + timedelta(days=days)).stale == 0
    assert here.work(NOW + WEEK + timedelta(days=188)).stale == 1
    marked = one(here, made)
    assert marked.stale_reason == (
        f"Nothing has confirmed it since {NOW + WEEK:%Y-%m-%d}; the policy asks for that every 180 days."
    )
    web.routes["/limits"] = page(day="Friday")
    assert here.work(NOW + timedelta(days=230)).fresh == 1
    confirmed = one(here, made).confirmed_at
    assert confirmed is not None and abs(confirmed - NOW - timedelta(days=230)) < timedelta(seconds=1)


def test_an_owner_confirms_a_memory_in_spite_of_what_made_it_stale(here: Bench) -> None:
    sent = here.send()
    here.adr("Accepted", "The gateway listens wherever it likes.")
    assert here.work(NOW + WEEK).stale == 1
    name, later = str(sent.memory_id), NOW + WEEK
    stranger = reviewer("somebody-else")
    assert confirm(here.store, stranger, name, here.policy, later) == NotFound()
    confirmed = confirm(here.store, reviewer(), name, here.policy, later)
    assert isinstance(confirmed, Memory)
    assert (confirmed.stale_since, confirmed.stale_reason, confirmed.confirmed_at) == (None, None, later)
    assert history(here.store)[-1].action is Action.MEMORY_CONFIRMED
    assert here.work(NOW + 2 * WEEK).same == 1
    here.repository.git("rm", "--quiet", "docs/adrs/0001-port.md")
    here.repository.commit("Gone", {"docs/adrs/0002-logs.md": "# 2. Logs\n\nLogs go to a file.\n"})
    assert here.work(NOW + 3 * WEEK).stale == 1
