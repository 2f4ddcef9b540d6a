"""What the list of the queue promises, as HTTP: many as one, the last act taken back, search by words, and history."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.claims import submission_of
from tests.desk import Desk, add, claim_words, run
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.attending import attention
from vouchgate.service import Service, open_service
from vouchgate.settings import load_settings
from vouchgate.storage.identity import tokens
from vouchgate.wire import ClaimIn


@pytest.fixture(scope="module")
def service(module_database_url: str) -> Iterator[Service]:
    with open_service(load_settings({}, database_url=module_database_url, offline=True)) as opened:
        yield opened


def named(desk: Desk, *contents: str) -> str:
    """These waiting claims as a row names them, all of them when none is given."""
    waiting = {item.content: f"{item.id}:{item.version}" for item in desk.waiting()}
    return ",".join(waiting[content] for content in contents or waiting)


def contents(desk: Desk) -> set[str]:
    return {memory.content for memory in desk.memories()}


BUILDS = tuple(f"Build {number} of the harbour app passed all tests." for number in (510, 511, 512, 513))
DEPOT = (
    "Shipping of orders happens from the Leipzig depot.",
    "The Leipzig depot ships orders.",
    "Orders ship from the Leipzig depot.",
)


def listed(page: httpx.Response) -> list[str]:
    """What the rows of a page are named."""
    return re.findall(r'<input type="checkbox" name="row" value="([^"]+)" form="act"></label>', page.text)


def test_a_template_is_ruled_on_as_one_and_taken_back_as_one(service: Service) -> None:
    async def work(desk: Desk) -> None:
        for text in (*BUILDS, claim_words(1)):
            desk.add(text)
        page = await desk.get("/review")
        assert len(listed(page)) == 2
        assert "4 alike" in page.text and "510, 511, 512, 513" in page.text
        # One is excepted; then all of it is taken back at once, whatever was loaded since.
        answer = await desk.act(do=f"approve:{named(desk, *BUILDS[:3])}")
        assert (answer["summary"], answer["waiting"]) == ("3 approved", 2)
        assert contents(desk) == set(BUILDS[:3])
        await desk.get("/review")
        answer = await desk.act(do="undo-last")
        assert (answer["summary"], answer["waiting"]) == ("3 taken back", 5)
        assert contents(desk) == set()
        answer = await desk.act(do="undo-last")
        assert (answer["results"], answer["summary"]) == ([], "There is nothing of yours to take back.")
        answer = await desk.act(do=f"reject:{named(desk, *BUILDS)}", canned="Not worth keeping")
        assert answer["summary"] == "4 rejected"
        # One act after the other goes back, and nobody else's.
        await desk.act(do=f"approve:{named(desk, claim_words(1))}")
        assert (await desk.act(do="undo-last"))["results"][0]["outcome"] == "waits again"
        assert (await desk.act(do="undo-last"))["summary"] == "4 taken back"
        # Without a script too.
        done = await desk.post("/review/act", do=f"approve:{named(desk, *BUILDS)}")
        assert "4 approved" in done.text and 'value="undo:' in done.text
        done = await desk.post("/review/act", do="undo-last")
        assert "4 taken back" in done.text

    run(service, "template", work)


def test_undo_takes_back_nothing_else_than_what_was_done_last(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(3)
        first, second, third = sorted(desk.waiting(), key=lambda item: item.id)
        await desk.act(do=f"approve:{named(desk, first.content)}")
        attend = f"/review/items/{second.id}/attend"
        for said, words in {
            "snooze-1d": "you snoozed a claim",
            "resume": "you put a claim into the list again",
            "assign-me": "you said who is to rule on a claim",
        }.items():
            assert (await desk.post(attend, say=said, version=second.version)).status_code == 303
            answer = await desk.act(do="undo-last")
            assert (answer["results"], len(desk.memories())) == ([], 1)
            assert words in answer["summary"] and second.content[:40] in answer["summary"]
        assert (
            "what you did last is that you said who" in (await desk.post("/review/act", do="undo-last")).text
        )
        # What is done after it can be, and then it is the last once more.
        await desk.act(do=f"reject:{named(desk, third.content)}", canned="Not worth keeping")
        assert (await desk.act(do="undo-last"))["summary"] == "1 taken back"
        assert (await desk.act(do="undo-last"))["results"] == []
        (memory,) = desk.memories()
        await desk.post(f"/review/memories/{memory.id}/retract", reason="Not so.")
        assert "you retracted a memory" in (await desk.act(do="undo-last"))["summary"]

    run(service, "snoozer", work)


def test_what_a_template_would_contradict_is_left_with_why(service: Service) -> None:
    async def work(desk: Desk) -> None:
        for text in BUILDS:
            desk.add(text)
        desk.add("Build 512 of the harbour app failed all tests.", Source.USER)
        answer = await desk.act(do=f"approve:{named(desk, *BUILDS)}")
        left = [row for row in answer["results"] if not row["done"]]
        assert [row["asks"] for row in left] == [True]
        assert contents(desk) == {*BUILDS, "Build 512 of the harbour app failed all tests."} - {BUILDS[2]}

    run(service, "contradicted", work)


def test_of_wordings_one_is_stored_and_the_others_are_known(service: Service) -> None:
    async def work(desk: Desk) -> None:
        for text in DEPOT:
            desk.add(text)
        page = await desk.get("/review")
        assert len(listed(page)) == 1
        assert f'value="keep:{named(desk, DEPOT[0])},' in page.text  # that one says most
        rows = named(desk, *DEPOT)
        answer = await desk.act(do=f"keep:{rows}")
        assert answer["summary"] == "1 approved, 2 rejected as other words for it"
        assert contents(desk) == {DEPOT[0]}
        assert {desk.item(row.partition(":")[0]).note for row in rows.split(",")[1:]} == {
            "Already known in other words"
        }
        assert (await desk.act(do="undo-last"))["waiting"] == 3
        # When it cannot be stored, nothing is rejected for it.
        first, *others = named(desk, *DEPOT).split(",")
        answer = await desk.act(do=f"keep:{first}9,{','.join(others)}")
        assert ([row["outcome"] for row in answer["results"]], answer["waiting"]) == (["changed"], 3)

    run(service, "wordings", work)


def test_a_short_contradiction_shows_its_neighbour_and_is_not_stored_beside_it(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.add("The Oslo shop opens at 8:00.")
        (item,) = desk.waiting()
        assert "Ungrounded" in (await desk.get("/review")).text
        desk.add("The Oslo shop opens at 7:00.", Source.USER)  # stored since
        pane = (await desk.get(f"/review/items/{item.id}/pane")).text
        assert "It conflicts with what is stored" in pane
        assert "<del" in pane and "7:00" in pane and "data-asks" in pane
        (row,) = (await desk.act(do=f"approve:{item.id}:{item.version}"))["results"]
        assert (row["done"], row["asks"]) == (False, True)
        assert contents(desk) == {"The Oslo shop opens at 7:00."}
        (row,) = (await desk.act(do=f"approve:{item.id}:{item.version}", supersede="true"))["results"]
        assert row["done"] and contents(desk) == {"The Oslo shop opens at 8:00."}

    run(service, "short", work)


SITE = "The crane of the quay was looked at by its crew at noon and was found in good order by all of them on site {}."


def test_a_conflict_with_what_waits_says_so(service: Service) -> None:
    async def work(desk: Desk) -> None:
        text = " ".join((SITE.format("12").rstrip("."), "for the whole of the week after the storm"))
        desk.add(f"{text}.")
        desk.add(f"{text.replace('12', '13')}.")
        page = (await desk.get("/review")).text
        assert "Conflict, both wait" in page
        assert "conflicts with another claim that waits" in page
        assert "conflicts with a stored memory" not in page
        item = next(item for item in desk.waiting() if item.rule == "conflict")
        for path in (f"/review/items/{item.id}", f"/review/items/{item.id}/pane"):
            shown = (await desk.get(path)).text
            assert "It conflicts with another claim that waits" in shown
            assert "a stored memory" not in shown and "<del>stored</del>" not in shown
        assert (await desk.act(do=f"approve:{item.id}:{item.version}"))["results"][0]["done"]

    run(service, "both-wait", work)


def test_what_is_like_it_is_not_called_unique(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.add("Refunds above 500 euros wait for a manager of the Bergen desk.", Source.USER)
        agent = Principal(id="agent-1", name="agent", role=Role.AGENT, owners=frozenset({desk.owner}))
        content = "Refunds above 500 euros wait for a manager of the Bergen desk, and are paid on Mondays."
        sent = ClaimIn(content=content, memory_type=MemoryType.FACT, source=Source.AI_SYNTHESIS)
        one = await desk.service.gate.examine(desk.service.gate.examiner.build_claim(agent, sent))
        desk.service.store.writer.submit(submission_of(one)).result()
        (item,) = desk.waiting()
        page = (await desk.get(f"/review/items/{item.id}")).text
        assert "What is stored that is like it" in page and "% the same" in page
        assert "nothing like it" not in page
        assert "It repeats nothing that is stored" in page
        # What was stored since counts too: the next wording of it is not approved unseen.
        desk.add("The Leipzig depot ships orders.")
        ships = next(item for item in desk.waiting() if "Leipzig" in item.content)
        assert "What is stored that is like it" not in (await desk.get(f"/review/items/{ships.id}/pane")).text
        desk.add("Orders ship from the Leipzig depot.", Source.USER)
        pane = (await desk.get(f"/review/items/{ships.id}/pane")).text
        assert "What is stored that is like it" in pane and "data-near" in pane

    run(service, "alike", work)


def test_search_is_by_words_in_any_form_and_order(service: Service) -> None:
    async def work(desk: Desk) -> None:
        pack = "A battery_pack stands there."
        bowls = "The bowls were returned on Friday, and all batteries with them (100 % of 12)."
        for text in (
            bowls,
            "The bowl is blue.",
            "Returned parcels are kept.",
            pack,
        ):
            desk.add(text)
        found: dict[str, set[str]] = {}
        by_row = {f"{item.id}:{item.version}": item.content for item in desk.waiting()}
        for words in (
            "returned bowl",
            "battery",
            '"were returned"',
            '"returned were"',
            "100 %",
            "battery_pack",
            "bowls !",
            'agent:"a test\'s agent" agent:nobody',
            "reason:ungrounded assigned:nobody battery",
            "assigned:me",
        ):
            page = await desk.get(f"/review?{httpx.QueryParams({'q': words})}")
            found[words] = {by_row[row] for row in listed(page)}
        assert found == {
            "returned bowl": {bowls},
            "battery": {bowls, pack},
            '"were returned"': {bowls},
            '"returned were"': set(),
            "100 %": {bowls},
            "battery_pack": {pack},
            "bowls !": {bowls, "The bowl is blue."},
            'agent:"a test\'s agent" agent:nobody': set(),
            "reason:ungrounded assigned:nobody battery": {bowls, pack},
            "assigned:me": set(),
        }
        # The links of the page keep the query; what is wrong with one is told beside it, and nothing is listed.
        assert "q=reason%3Aungrounded" in (await desk.get("/review?q=reason%3Aungrounded")).text
        for path in ("/review", "/review/history"):
            page = await desk.get(f"{path}?q=agnet%3Abea")
            assert (page.status_code, listed(page)) == (422, [])
            assert 'value="agnet:bea"' in page.text and "did you mean agent:?" in page.text
        one = desk.waiting()[0].id
        for path in (f"/review/items/{one}", f"/review/items/{one}/pane"):
            assert (await desk.get(f"{path}?q=agnet%3Abea")).status_code == 200

    run(service, "search", work)


def test_a_search_is_kept_under_a_name_and_what_others_said_stands_beside_the_list(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.add("The bowls were returned on Friday.")
        (item,) = desk.waiting()
        back = "/review?q=reason%3Aungrounded"
        form = {"q": "reason:ungrounded", "name": "my <doubts>", "back": back}
        answer = await desk.post("/review/views", do="save", **form)
        assert (answer.status_code, answer.headers["location"]) == (303, back)
        page = (await desk.get(back)).text
        assert f'href="{back}" aria-current="true">my &lt;doubts&gt;</a>' in page
        assert f'href="{back}">my &lt;doubts&gt;</a>' in (await desk.get("/review")).text
        for fields in ({"q": "agnet:bea"}, {"q": ""}, {"name": "x" * 61}, {"do": "burn"}):
            assert (await desk.post("/review/views", **{"do": "save", **form, **fields})).status_code == 422
        await desk.post("/review/views", do="forget", **form)
        assert "doubts" not in (await desk.get(back)).text

        owners, now = frozenset({desk.owner}), datetime.now(UTC)
        bea, _ = tokens.create(
            service.store, role=Role.REVIEWER, name="Bea", owners=owners, actor="test", now=now
        )
        attention.look(service.queue, bea, item.id, now=now)
        attention.assign(service.queue, bea, item.id, to="me", now=now)
        for path in ("/review", f"/review/items/{item.id}/pane", f"/review/items/{item.id}"):
            shown = (await desk.get(path)).text
            assert "Bea is looking." in shown and "Assigned to Bea." in shown
        assert len(listed(await desk.get("/review?q=assigned%3Abea"))) == 1
        attention.snooze(service.queue, bea, item.id, until=now + timedelta(days=2), now=now)
        away = await desk.get("/review")
        assert listed(away) == [] and 'href="/review?q=is%3Asnoozed">snoozed</a>' in away.text
        away = await desk.get("/review?q=is%3Asnoozed")
        assert len(listed(away)) == 1 and "Snoozed: it is back in the list in" in away.text
        attention.send_back(
            service.queue, bea, item.id, version=item.version, question="Which page says so?", now=now
        )
        away = await desk.get("/review?q=is%3Asent-back")
        assert "Its agent was asked: “Which page says so?” It has not been answered yet." in away.text

    run(service, "views", work)


def test_a_known_number_is_said_in_full_and_no_reason_is_chosen_for_a_bulk_rejection(
    service: Service,
) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(100)
        add(service, desk.owner, "The pantry may be locked at night.")
        page = (await desk.get("/review?rule=ungrounded")).text
        assert "Ungrounded: 100 of 100 waiting" in page
        every = (await desk.get("/review?type=fact")).text
        assert "100 of 100 waiting" in every
        assert "Next page" not in every  # nothing is behind the last one of a full page
        assert re.search(r'<select id="bulk-reason"[^>]*><option value="">', page)
        rows = [f"{item.id}:{item.version}" for item in desk.waiting()[:2]]
        answer = await desk.post("/review/act", do="reject-ticked", row=rows, canned="")
        assert (answer.status_code, len(desk.waiting())) == (422, 100)

    run(service, "known-number", work)


def test_history_marks_edits_and_is_searched_by_words_reviewer_and_day(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.add("The bowls were returned on Friday.")
        desk.add("Parcels are kept in the cellar.")
        bowls, parcels = sorted(desk.waiting(), key=lambda item: item.content, reverse=True)
        own = "The bowls were returned on Monday."
        await desk.post(f"/review/items/{bowls.id}/approve", version=bowls.version, content=own)
        await desk.act(do=f"reject:{parcels.id}:{parcels.version}", canned="Out of date")
        page = (await desk.get("/review/history")).text
        assert page.count(">edited</span>") == 1
        assert "<del>Friday</del>" in page and "<ins>Monday</ins>" in page
        by = desk.item(bowls.id).decided_by or ""
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        assert f'<option value="{by}"' in page
        for query, count in (
            (f"q=returned+bowl&by={by}&since={today}&until={today}", 1),
            ("q=returned+parcel", 0),
            ("by=nobody", 0),
            ("until=2020-01-01", 0),
            ("since=2020-01-01&status=rejected", 1),
            ("q=parcels+after%3A1d", 1),
            ("q=parcels+before%3A1d", 0),
        ):
            found = (await desk.get(f"/review/history?{query}")).text
            assert found.count('<p class="claim clamp"') == count, query
        for query in ("since=yesterday", "until=2026-13-01", "q=" + "x" * 501, "q=%00", "by=%00"):
            assert (await desk.get(f"/review/history?{query}")).status_code == 422

    run(service, "history", work)
