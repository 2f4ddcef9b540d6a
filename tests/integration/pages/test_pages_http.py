"""The pages as HTTP: how many statements they cost, what acts answer, and what they do not tell."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, select
from sqlmodel import col

from tests.claims import submission_of
from tests.desk import Desk, add, claim_words, run
from tests.repos import TestRepository
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.review import acts
from vouchgate.review.ending.erasing import BY_OPERATOR, Erased
from vouchgate.service import Service, open_service
from vouchgate.settings import load_settings
from vouchgate.storage.queue import pending, rechecks
from vouchgate.storage.tables.people import OpeningRow
from vouchgate.wire import ClaimIn

pytestmark = pytest.mark.on("sqlite")


@pytest.fixture(scope="module")
def service(module_database_url: str) -> Iterator[Service]:
    with open_service(load_settings({}, database_url=module_database_url, offline=True)) as opened:
        yield opened


@contextmanager
def statements(service: Service) -> Iterator[list[str]]:
    """What the database is asked meanwhile."""
    engine: Engine = service.store._engine
    seen: list[str] = []

    def note(_c: object, _k: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_what_a_page_asks_does_not_grow_with_its_rows(service: Service) -> None:
    async def work(desk: Desk) -> None:
        counts: dict[str, list[int]] = {}
        for many in (2, 40):
            desk.fill(many - len(desk.waiting()), start=len(desk.waiting()))
            for item in desk.waiting()[:1]:
                await desk.act(do=f"reject:{item.id}:{item.version}", canned="Not true")
            desk.add(claim_words(1000 + many), Source.USER)
            first = desk.waiting()[0]
            await desk.get(f"/review/items/{first.id}")  # that it was opened is written once
            service.store.writer.run((), lambda connection: None).result()
            for name, path in (
                ("queue", "/review"),
                ("item", f"/review/items/{first.id}"),
                ("memories", "/review/memories"),
                ("memory", f"/review/memories/{desk.memories()[0].id}"),
                ("history", "/review/history"),
            ):
                with statements(service) as seen:
                    answer = await desk.get(path)
                assert answer.status_code == 200, answer.text
                counts.setdefault(name, []).append(len([s for s in seen if s.lstrip().startswith("SELECT")]))
        assert all(few == many for few, many in counts.values()), counts
        assert counts["queue"][0] > 0

    run(service, "counted", work)


def test_one_act_and_its_way_back(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(3)
        first, second, third = desk.waiting()
        answer = await desk.act(do=f"approve:{first.id}:{first.version}")
        (row,) = answer["results"]
        assert (row["done"], row["outcome"], answer["waiting"]) == (True, "approved", 2)
        assert [m.content for m in desk.memories()] == [first.content]
        answer = await desk.act(do=f"undo:{first.id}:{row['undo_version']}")
        assert (answer["results"][0]["outcome"], answer["waiting"]) == ("waits again", 3)
        assert desk.memories() == []
        # Without a script the same button leads back to the list, which tells of it and offers the way back.
        done = await desk.post("/review/act", do=f"reject:{second.id}:{second.version}", canned="Not true")
        assert done.status_code == 303
        assert done.headers["location"] == f"/review?done={second.id}"
        page = (await desk.get(done.headers["location"])).text
        assert "Rejected:" in page
        assert f"/review/items/{second.id}/undo" in page
        assert desk.item(second.id).note == "Not true"
        assert desk.item(third.id).status is ReviewStatus.PENDING

    run(service, "one-act", work)


def test_an_act_on_several_says_what_came_of_each(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(4)
        one, two, three, four = desk.waiting()
        await desk.act(do=f"reject:{two.id}:{two.version}", canned="Not true")
        add(service, "somebody-else", claim_words(77))
        with service.store.read() as connection:
            foreign = pending.search(
                connection, pending.QueueFilter(owners=frozenset({"somebody-else"}), limit=1)
            )[0]
        unknown = "rev_" + "0" * 32
        rows = [
            f"{one.id}:{one.version}",
            f"{two.id}:{two.version}",
            f"{three.id}:{three.version + 7}",
            f"{foreign.id}:{foreign.version}",
            f"{unknown}:1",
        ]
        answer = await desk.act(do="approve-ticked", row=rows)
        assert [row["outcome"] for row in answer["results"]] == [
            "approved",
            "decided before",
            "changed",
            "not found",
            "not found",
        ]
        shown = [{**row, "id": ""} for row in answer["results"]]
        assert shown[3] == shown[4]  # nothing tells a foreign row from one that is not there
        assert answer["summary"] == "1 approved, 1 decided before, 1 changed, 2 not found"
        page = await desk.post(
            "/review/act", do="reject-listed", listed=[rows[3], f"{four.id}:{four.version}"]
        )
        assert page.status_code == 422  # no reason
        page = await desk.post(
            "/review/act",
            do="reject-listed",
            canned="Out of date",
            listed=[rows[3], f"{four.id}:{four.version}"],
        )
        assert page.status_code == 200
        assert page.text.count("data-result=") == 2
        assert foreign.content not in page.text
        assert desk.item(foreign.id).status is ReviewStatus.PENDING
        assert desk.item(four.id).status is ReviewStatus.REJECTED

    run(service, "several", work)


NONSENSE: list[tuple[dict[str, Any], str]] = [
    ({}, "nothing that can be done"),
    ({"do": "destroy:rev_1:1"}, "nothing that can be done"),
    ({"do": "approve:rev_1"}, "which claim"),
    ({"do": "approve:rev_1:x"}, "which claim"),
    ({"do": "approve:rev_1:²"}, "which claim"),
    ({"do": "approve-ticked"}, "Nothing is ticked"),
    ({"do": "approve-ticked", "row": ["rev_1:1"] * 101}, "At most 100"),
    ({"do": "approve-all"}, "nothing that can be done"),
    ({"do": "reject:rev_1:1"}, "needs a reason"),
    ({"do": "reject:rev_1:1", "reason": "x" * 2001}, "at most 2000"),
    ({"do": "approve:rev_1:1", "supersede": "perhaps"}, "conflict"),
]


def test_a_form_that_makes_no_sense(service: Service) -> None:
    async def work(desk: Desk) -> None:
        for fields, says in NONSENSE:
            answer = await desk.post("/review/act", **fields)
            assert answer.status_code == 422, fields
            assert says in answer.text, fields

    run(service, "nonsense", work)


def test_an_address_that_makes_no_sense(service: Service) -> None:
    queries = ("rule=x", "rule=9999", "order=best", "type=poem", "q=" + "x" * 501, "sender=%00")

    async def work(desk: Desk) -> None:
        for query in (*queries, "cited=" + "x" * 5000):
            answer = await desk.get(f"/review?{query}")
            assert answer.status_code == 422, query
            assert "text/html" in answer.headers["content-type"], query
        for query in ("until=9999-12-31", "since=soon", "since=0000-01-01"):
            assert (await desk.get(f"/review/history?{query}")).status_code == 422, query

    run(service, "nonsense", work)


def test_a_choice_of_memories_that_there_is_not(service: Service) -> None:
    queries = (
        *("type=poem", "confidence=some", "label=x", "state=x", "stale=x", "q=%00"),
        *("as_of=soon", "as_of=0001-01-01T00:00%2B14:00"),
    )

    async def work(desk: Desk) -> None:
        for query in queries:
            assert (await desk.get(f"/review/memories?{query}")).status_code == 422, query

    run(service, "nonsense", work)


def test_a_page_of_what_was_erased_says_so(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(1)
        desk.add(claim_words(6), Source.USER)
        gone = [desk.waiting()[0].id, desk.memories()[0].id]
        places = [f"/review/items/{gone[0]}", f"/review/items/{gone[0]}/pane", f"/review/memories/{gone[1]}"]
        assert [(await desk.get(each)).status_code for each in places] == [200] * 3
        done = service.erasing.erase(["forgotten"], gone, "GDPR Art. 17", BY_OPERATOR, datetime.now(UTC))
        assert isinstance(done, Erased)
        for each in places:
            answer = await desk.get(each)
            assert answer.status_code == 410
            assert "GDPR Art. 17" in answer.text

    run(service, "forgotten", work)


def test_what_is_not_ones_own_is_not_there(service: Service) -> None:
    async def other(desk: Desk) -> None:
        desk.fill(1)
        desk.add(claim_words(5), Source.USER)

    run(service, "theirs", other)

    async def work(desk: Desk) -> None:
        theirs = Desk(service, "theirs", desk.http)
        item, memory = theirs.waiting()[0], theirs.memories()[0]
        pairs = [
            (f"/review/items/{item.id}", "/review/items/rev_" + "0" * 32),
            (f"/review/memories/{memory.id}", "/review/memories/mem_" + "0" * 32),
        ]
        for foreign, unknown in pairs:
            one, two = await desk.get(foreign), await desk.get(unknown)
            assert (one.status_code, one.text) == (404, two.text)
        for path, fields in (
            (f"/review/items/{item.id}/approve", {"version": "1"}),
            (f"/review/items/{item.id}/reject", {"version": "1", "canned": "Not true"}),
            (f"/review/items/{item.id}/undo", {"version": "1"}),
            (f"/review/memories/{memory.id}/retract", {"reason": "Not true"}),
            (f"/review/memories/{memory.id}/confirm", {}),
        ):
            answer = await desk.post(path, **fields)
            assert answer.status_code == 404
            assert item.content not in answer.text
        assert theirs.waiting() == [item]
        assert theirs.memories() == [memory]
        # As in a link of somebody else's: nothing is told of an act on it.
        assert item.content not in (await desk.get(f"/review?done={item.id}")).text

    run(service, "mine", work)


def test_a_version_that_has_passed_is_told_and_nothing_typed_is_lost(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(1)
        (item,) = desk.waiting()
        answer = await desk.post(
            f"/review/items/{item.id}/approve",
            version=item.version + 1,
            note="As Ann said",
            content="My wording",
        )
        assert answer.status_code == 409
        assert "It has changed since you looked" in answer.text
        assert "As Ann said" in answer.text
        assert "My wording" in answer.text
        assert desk.item(item.id) == item

    run(service, "passed", work)


def test_own_words_are_stored_and_both_texts_are_shown(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(1)
        (item,) = desk.waiting()
        own = item.content + " It was seen on Monday."
        answer = await desk.post(f"/review/items/{item.id}/approve", version=item.version, content=own)
        assert answer.status_code == 303
        assert [memory.content for memory in desk.memories()] == [own]
        page = (await desk.get(f"/review/items/{item.id}")).text
        assert "What was stored instead" in page
        assert desk.item(item.id).content == item.content
        # What speculates is not stored, and says so beside what was typed.
        desk.fill(1, start=9)
        (item,) = desk.waiting()
        guess = "I think that the queue is perhaps slow."
        answer = await desk.post(f"/review/items/{item.id}/approve", version=item.version, content=guess)
        assert answer.status_code == 409
        assert guess in answer.text
        assert "cannot be stored" in answer.text
        assert desk.waiting() == [item]

    run(service, "own-words", work)


def test_a_memory_is_taken_out_of_force_with_its_reason(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.add(claim_words(3), Source.USER)
        (memory,) = desk.memories()
        assert (await desk.post(f"/review/memories/{memory.id}/confirm")).status_code == 303
        confirmed = desk.memories()[0].confirmed_at
        assert confirmed is not None and confirmed > memory.created_at
        words = max(memory.content.split(), key=len)
        ranked = (await desk.get(f"/review/memories?q={words}+unheard")).text
        assert memory.id in ranked and "best first" in ranked
        assert memory.id not in (await desk.get(f"/review/memories?q={words}&as_of=2020-01-01")).text
        path = f"/review/memories/{memory.id}/retract"
        assert (await desk.post(path, reason="  ")).status_code == 422
        assert (await desk.post(path, reason="It was never so")).status_code == 303
        assert desk.memories() == []
        assert "It was never so" in (await desk.get(f"/review/memories/{memory.id}")).text
        assert (await desk.post(path, reason="Again")).status_code == 409
        assert (await desk.post(f"/review/memories/{memory.id}/confirm")).status_code == 409
        listed = (await desk.get("/review/memories?state=retracted")).text
        assert memory.id in listed
        assert memory.id not in (await desk.get("/review/memories")).text

    run(service, "retracting", work)


def test_what_rests_on_a_source_is_listed_and_read_again(service: Service) -> None:
    async def work(desk: Desk) -> None:
        agent = Principal(
            id="agent-1",
            name="agent",
            role=Role.AGENT,
            owners=frozenset({desk.owner}),
            sources=frozenset({Source.USER}),
        )
        for said, source in (
            ("The kiln is fired on Fridays, see ADR-0042 and ADR-41.", Source.USER),
            ("The mill is shut, see ADR 42.", Source.AI_SYNTHESIS),
        ):
            sent = ClaimIn(content=said, memory_type=MemoryType.FACT, source=source)
            examined_claim = await service.gate.examine(service.gate.examiner.build_claim(agent, sent))
            service.store.writer.submit(submission_of(examined_claim)).result()
        (memory,) = desk.memories()
        page = (await desk.get(f"/review/memories/{memory.id}")).text
        hrefs = [html.unescape(one) for one in re.findall('href="([^"]+)">What rests on it', page)]
        assert hrefs == [f"/review/memories?source=adr%3A{number}&state=all" for number in (42, 41)]
        for href in (*hrefs, "/review/memories?source=adr-0041"):
            assert memory.id in (await desk.get(href)).text
        listed = (await desk.get(hrefs[0])).text
        assert "1 waiting rests on it, too" in listed
        waiting = html.unescape(re.findall('href="(/review[?]q=[^"]+)"', listed)[0])
        assert "The mill is shut" in (await desk.get(waiting)).text
        assert "waiting rest" not in (await desk.get("/review/memories?source=ADR-41")).text
        path = "/review/memories/recheck"
        assert (await desk.post(path, source=" ")).status_code == 422
        asked = await desk.post(path, source="ADR 42")
        assert (asked.status_code, asked.headers["location"]) == (
            303,
            "/review/memories?source=ADR+42&state=all",
        )
        with service.store.read() as connection:
            due = rechecks.next_recheck_at(connection, memory.owner_id, memory.id)
        assert due is not None and due <= datetime.now(UTC)

    run(service, "lineage", work)


def test_a_source_that_went_back_on_it_is_shown_before_the_approval(
    module_database_url: str, tmp_path: Path
) -> None:
    adr = "# 1. Port\n\n## Status\n\n{}\n\n## Decision\n\nThe gateway listens on port 8080.\n"
    repository = TestRepository(tmp_path / "repository")
    repository.commit("Decide on a port", {"docs/adrs/0001-port.md": adr.format("Accepted")})
    settings = load_settings({}, database_url=module_database_url, offline=True, repo=[repository.path])
    agent = Principal(id="agent-1", name="agent", role=Role.AGENT, owners=frozenset({"stale"}))

    async def work(desk: Desk) -> None:
        said = "Per ADR-0001 the gateway may listen on port 8080."
        sent = ClaimIn(content=said, memory_type=MemoryType.FACT, source=Source.AI_SYNTHESIS)
        examined_claim = await desk.service.gate.examine(desk.service.gate.examiner.build_claim(agent, sent))
        desk.service.store.writer.submit(submission_of(examined_claim)).result()
        (item,) = desk.waiting()
        page = (await desk.get(f"/review/items/{item.id}")).text
        assert "What changed since you looked" not in page
        repository.commit("Another port", {"docs/adrs/0001-port.md": adr.format("Deprecated")})
        answer = await desk.post(
            f"/review/items/{item.id}/approve", version=item.version, seen=item.decision_id
        )
        assert answer.status_code == 409
        assert "What changed since you looked" in answer.text
        assert "deprecated" in answer.text.lower()
        assert desk.memories() == []
        # Having seen it, the owner may approve it all the same.
        (now,) = desk.waiting()
        assert now.version == item.version + 1
        answer = await desk.post(
            f"/review/items/{item.id}/approve", version=now.version, seen=now.decision_id
        )
        assert answer.status_code == 303
        assert [memory.content for memory in desk.memories()] == [said]
        # Of what was cited beside it, an edit keeps what is not false: its owner cannot take that out.
        repository.commit("A port again", {"docs/adrs/0002-log.md": "# 2. Log\n\nThe log has a port.\n"})
        sent = ClaimIn(
            content="The log is on port 99.", memory_type=MemoryType.FACT, citations=["ADR-2", "ADR-9"]
        )
        examined_claim = await desk.service.gate.examine(desk.service.gate.examiner.build_claim(agent, sent))
        desk.service.store.writer.submit(submission_of(examined_claim)).result()
        (item,) = desk.waiting()
        own = "The log of ours is on port 98."
        answer = await desk.post(f"/review/items/{item.id}/approve", version=1, content=own)
        assert answer.status_code == 303, answer.text
        with desk.service.store.read() as connection:
            (kept,) = (memory for memory in desk.memories() if memory.content == own)
            sources = acts.stored_answer(connection, kept).evidence.sources
            assert [source.citation.key for source in sources] == ["adr:2"]
            assert rechecks.next_recheck_at(connection, "stale", kept.id) is not None

    with open_service(settings) as opened:
        run(opened, "stale", work)


def test_claims_that_cite_one_very_long_address_are_one_group(service: Service) -> None:
    async def work(desk: Desk) -> None:
        address = "https://docs.example.org/" + "ä" * 1900
        agent = Principal(id="agent-1", name="agent", role=Role.AGENT, owners=frozenset({desk.owner}))
        for number in (1, 2):
            said = f"{claim_words(number)} See {address}"
            sent = ClaimIn(content=said, memory_type=MemoryType.FACT, source=Source.AI_SYNTHESIS)
            examined_claim = await service.gate.examine(service.gate.examiner.build_claim(agent, sent))
            service.store.writer.submit(submission_of(examined_claim)).result()
        desk.fill(1)
        group = re.search(r'href="(/review\?cited=[^"]+)"', (await desk.get("/review")).text)
        assert group is not None
        listed = (await desk.get(html.unescape(group[1]))).text
        assert listed.count('class="row"') == 2

    run(service, "ö" * 200, work)  # the longest owner there is


def test_what_the_list_shows_in_part_is_not_approved_from_it(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.add(f"{claim_words(1)} {'It goes on and on. ' * 60}At the very end it says something else.")
        desk.fill(1, start=50)
        long, short = sorted(desk.waiting(), key=lambda item: -len(item.content))
        page = (await desk.get("/review")).text
        assert f'value="approve:{long.id}' not in page
        assert f'value="approve:{short.id}' in page
        answer = await desk.act(do="approve-ticked", row=[f"{one.id}:{one.version}" for one in (long, short)])
        assert [row["outcome"] for row in answer["results"]] == ["left waiting", "approved"]
        assert "longer than the list shows" in answer["results"][0]["message"]
        assert [item.id for item in desk.waiting()] == [long.id]
        await desk.act(do=f"approve:{long.id}:{long.version}")
        assert [item.id for item in desk.waiting()] == [long.id]
        answer = await desk.act(do=f"reject:{long.id}:{long.version}", canned="Not true")
        assert answer["waiting"] == 0

    run(service, "cut", work)


def test_a_claim_is_opened_by_its_page_and_by_the_script_not_by_what_is_read_ahead(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(3)
        one, two, three = desk.waiting()
        await desk.get("/review")
        await desk.get(f"/review/items/{three.id}/pane")
        for _ in range(2):
            assert (await desk.get(f"/review/items/{one.id}")).status_code == 200
            assert (await desk.post(f"/review/items/{two.id}/opened")).status_code == 204
        assert (await desk.post("/review/items/rev_0/opened")).status_code == 404
        assert (
            await desk.http.post(f"/review/items/{three.id}/opened", data={"csrf": "guessed"})
        ).status_code == 403
        service.store.writer.run((), lambda connection: None).result()  # behind them
        with service.store.read() as connection:
            opened = connection.execute(
                select(col(OpeningRow.item_id)).where(col(OpeningRow.owner_id) == desk.owner)
            ).all()
        assert {row.item_id for row in opened} == {one.id, two.id}

    run(service, "opened", work)


def test_what_is_said_of_an_item_without_ruling_on_it(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(4)
        one, two, three, four = desk.waiting()
        page = (await desk.get(f"/review/items/{one.id}")).text
        assert 'action="/review/items/' in page
        assert 'name="say" value="send-back"' in page

        async def say(item_id: str, **fields: str) -> str:
            answer = await desk.post(f"/review/items/{item_id}/attend", version="1", **fields)
            assert answer.status_code == 303, answer.text
            found: str = answer.headers["location"]
            return found

        # It is shown, it was never gone, and what was listed still is.
        to = await say(one.id, say="look", back="/review?rule=ungrounded&order=newest")
        assert to == f"/review/items/{one.id}?rule=ungrounded&order=newest"
        assert "You are shown as looking at it." in (await desk.get(f"/review/items/{one.id}")).text
        await say(one.id, say="assign-me")
        assert "Assigned to you." in (await desk.get(f"/review/items/{one.id}")).text
        # What leaves the list leads to the next one, where it is told.
        question = "Who says <b>so</b>?"
        to = await say(
            two.id, say="send-back", question=question, next=f"/review/items/{three.id}", back="/review"
        )
        assert to == f"/review/items/{three.id}?done={two.id}"
        assert "Sent back to its agent:" in (await desk.get(to)).text
        page = (await desk.get(f"/review/items/{two.id}")).text
        assert f"Its agent was asked: “{html.escape(question)}” It has not been answered yet." in page
        await say(three.id, say="snooze-3d")
        assert "it is back in the list in 3 days" in (await desk.get(f"/review/items/{three.id}")).text
        to = await say(four.id, say="let-go", why="no source", back="/review")
        assert "Let go:" in (await desk.get(to)).text
        assert desk.item(four.id).note == "no source"
        assert [item.id for item in desk.waiting()] == [one.id]
        shown = (await desk.get("/review")).text
        assert one.id in shown
        assert three.id not in shown
        for fields, status in (
            ({"say": "dance"}, 422),
            ({"say": "assign", "to": "nobody there"}, 409),
            ({"say": "send-back", "question": " "}, 409),
            ({"say": "send-back", "question": "Why?", "version": "7"}, 409),
        ):
            sent = {"version": "1"} | fields
            answer = await desk.post(f"/review/items/{one.id}/attend", **sent)
            assert answer.status_code == status, fields
        refused = await desk.post(f"/review/items/{four.id}/attend", say="look", version="1")
        assert refused.status_code == 409
        unknown = await desk.post("/review/items/rev_" + "0" * 32 + "/attend", say="look", version="1")
        assert unknown.status_code == 404

    run(service, "attended", work)
