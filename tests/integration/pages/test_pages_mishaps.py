"""The pages where something is not as it was meant: claims that hide things, records that cannot be read, forms that
lack something, and claims that conflict with one another."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from lxml import html
from sqlalchemy import update

from tests.desk import Desk, add, claim_words, run
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.service import Service, open_service
from vouchgate.settings import load_settings
from vouchgate.storage.claims import decisions

pytestmark = pytest.mark.on("sqlite")

EXPORT = (
    "The nightly alpha export starts at 02:00 UTC, writes one compressed beta file per customer to the gamma archive"
    " bucket, and must finish before the delta billing run begins at {}."
)


@pytest.fixture(scope="module")
def service(module_database_url: str) -> Iterator[Service]:
    with open_service(load_settings({}, database_url=module_database_url, offline=True)) as opened:
        yield opened


def shown(page: str) -> str:
    text: str = html.fromstring(page).text_content()
    return " ".join(text.split())


def test_lists_of_claims_that_hide_things_stay_small(service: Service) -> None:
    async def work(desk: Desk) -> None:
        def hidden(number: int) -> str:
            name = chr(ord("a") + number % 26) * (3 + number // 26)  # a number would contradict the others
            return f"Claim {name} " + "a\u200bb\u202e" * 600

        for number in range(10):
            desk.add(hidden(number))
        for number in range(50, 54):
            desk.add(hidden(number), Source.USER)
        for item in desk.waiting()[:3]:
            await desk.act(do=f"reject:{item.id}:{item.version}", canned="Not true")
        rows = [f"{item.id}:{item.version}" for item in desk.waiting()[:3]]
        pages = [await desk.post("/review/act", do="approve-ticked", row=rows)]
        pages += [await desk.get(f"/review{path}") for path in ("", "/memories", "/history")]
        for page in pages:
            assert page.status_code == 200
            assert 2 < page.text.count("Claim ") <= 40
            assert len(page.content) < 150_000  # a claim as a whole has some 40 KB
            assert "\u202e" not in page.text

    run(service, "hidden", work)


@pytest.mark.parametrize("after", ["", "nonsense", "%00", "rev_" + "0" * 32])
def test_a_page_behind_the_last_claim_does_not_say_that_nothing_waits(service: Service, after: str) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(2 - len(desk.waiting()))
        page = await desk.get(f"/review?after={after or desk.waiting()[-1].id}")
        assert page.status_code == 200
        assert "2 claims wait for you" in page.text
        assert "Nothing waits for you" not in page.text
        assert 'href="/review">Show everything that does' in page.text

    run(service, "behind", work)


@pytest.mark.parametrize("line_end", ["\r\n", "\r", "\n"])
def test_a_wording_that_nobody_changed_is_the_claim_as_it_was_sent(service: Service, line_end: str) -> None:
    async def work(desk: Desk) -> None:
        desk.add(f"{claim_words(ord(line_end[0]) + len(line_end))}{line_end}It is swept on Mondays.")
        (item,) = desk.waiting()
        typed = item.content.replace(line_end, "\r\n")  # as every browser sends it
        answer = await desk.post(f"/review/items/{item.id}/approve", version=item.version, content=typed)
        assert answer.status_code == 303
        memory = next(one for one in desk.memories() if one.decision_id == item.decision_id)
        assert memory.content == item.content

    run(service, "lines", work)


def test_a_form_that_lacks_something_is_shown_again_with_what_was_typed(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(1)
        (item,) = desk.waiting()
        path = f"/review/items/{item.id}"
        for answer, says, typed in (
            (await desk.post(f"{path}/reject", version=1), "A rejection needs a reason", None),
            (await desk.post(f"{path}/reject", version=1, reason="x" * 2001), "at most 2000", "x" * 2001),
            (await desk.post(f"{path}/approve", version=1, content=" "), "1 to 8192 characters", None),
            (await desk.post(f"{path}/approve", version=1, content="y" * 8193), "1 to 8192", "y" * 8193),
            (await desk.post(f"{path}/approve", version=1, note="z" * 2001), "at most 2000", "z" * 2001),
        ):
            assert answer.status_code == 422
            assert says in shown(answer.text)
            assert item.content in shown(answer.text)
            assert typed is None or typed in answer.text
        assert desk.waiting() == [item]

    run(service, "lacks", work)


def test_a_chosen_reason_and_the_part_of_the_queue_outlive_an_act_that_failed(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(2)
        desk.add(claim_words(5), Source.USER)
        item, following = desk.waiting()
        answer = await desk.post(
            f"/review/items/{item.id}/reject",
            version=9,
            canned="Out of date",
            back="/review?rule=ungrounded&order=oldest",
        )
        assert answer.status_code == 409
        page = html.fromstring(answer.text)
        assert page.xpath("//form[@id='reject']//input[@checked]/@value") == ["Out of date"]
        part = "rule=ungrounded&order=oldest"
        assert page.xpath("//form[@id='reject']/input[@name='back']/@value") == [f"/review?{part}"]
        assert page.xpath("//a[@id='skip']/@href") == [f"/review/items/{following.id}?{part}"]

    run(service, "outlives", work)


def spoil(service: Service, owner: str, decision_id: str) -> None:
    statement = update(decisions.TABLE).where(decisions.TABLE.c.id == decision_id).values(answer="{}")
    service.store.writer.run([owner], lambda connection: connection.execute(statement) and None).result()


def test_a_claim_whose_record_cannot_be_read_says_so_and_can_be_rejected(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(2)
        item, other = desk.waiting()
        spoil(service, desk.owner, item.decision_id)
        assert "cannot be approved" in shown((await desk.get(f"/review/items/{item.id}")).text)
        (row,) = (await desk.act(do=f"approve:{item.id}:{item.version}"))["results"]
        assert (row["done"], row["outcome"]) == (False, "not kept")
        assert "cannot be read" in row["message"]
        assert "Do it again" not in row["message"]  # it would fail for ever
        (row,) = (await desk.act(do=f"reject:{item.id}:{item.version}", canned="Not true"))["results"]
        assert row["done"]
        (row,) = (await desk.act(do=f"undo:{item.id}:{row['undo_version']}"))["results"]
        assert row["done"]
        # Named as what another page had shown, it is no reason for that page to fail.
        answer = await desk.post(f"/review/items/{other.id}/approve", version=9, seen=item.decision_id)
        assert answer.status_code == 409
        assert "What changed since you looked" not in answer.text
        assert {one.id for one in desk.waiting()} == {item.id, other.id}

    run(service, "unreadable", work)


def test_claims_that_conflict_with_one_another_are_approved_one_by_one(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.add(EXPORT.format("05:30"))
        desk.add(EXPORT.format("06:30"))
        first, second = sorted(desk.waiting(), key=lambda item: item.created_at)
        path = f"/review/items/{second.id}"
        before = html.fromstring((await desk.get(path)).text)
        assert before.xpath("//form[@id='approve-form']//input[@name='supersede']") == []
        await desk.act(do=f"approve:{first.id}:{first.version}")
        (stored,) = desk.memories()

        # From the list: it says what is missing.
        (row,) = (await desk.act(do=f"approve:{second.id}:{second.version}"))["results"]
        assert (row["done"], row["asks"]) == (False, True)
        # The item's page asks by itself, and shows what is stored by now.
        page = (await desk.get(path)).text
        assert "It conflicts with what is stored" in page
        assert f'href="/review/memories/{stored.id}">The stored memory' in page
        choices = html.fromstring(page).xpath("//form[@id='approve-form']//input[@name='supersede']/@value")
        assert choices == ["true", "false"]
        answer = await desk.post(f"{path}/approve", version=second.version, supersede="true")
        assert answer.status_code == 303
        (now,) = desk.memories()
        assert now.content == second.content
        assert desk.item(first.id).status is ReviewStatus.APPROVED

        # Taken back the last first, as the list's script does it.
        answers = await desk.act(do="undo-ticked", row=[f"{second.id}:2", f"{first.id}:2"])
        assert answers["summary"] == "2 taken back"
        assert desk.memories() == []

    run(service, "one-by-one", work)


def test_own_words_that_conflict_can_be_resolved_too(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.add(EXPORT.format("05:30"), Source.USER)
        desk.fill(1)
        (stored,), (item,) = desk.memories(), desk.waiting()
        path, own = f"/review/items/{item.id}/approve", EXPORT.format("07:45")
        answer = await desk.post(path, version=item.version, content=own)
        assert answer.status_code == 409
        page = html.fromstring(answer.text)
        assert page.xpath("//textarea[@name='content']")[0].text.strip() == own
        assert page.xpath("//details[@id='edit']//input[@name='supersede']/@value") == ["true", "false"]
        # The claim as it was sent conflicts with nothing.
        assert page.xpath("//form[@id='approve-form']//input[@name='supersede']") == []
        answer = await desk.post(path, version=item.version, content=own, supersede="false")
        assert answer.status_code == 303
        assert {memory.content for memory in desk.memories()} == {stored.content, own}
        assert all(memory.status is MemoryStatus.ACTIVE for memory in desk.memories())

    run(service, "own-conflict", work)


def test_enter_on_a_tick_asks_for_nothing(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(1)
        page = html.fromstring((await desk.get("/review")).text)
        # What a browser presses then is the first button of the form, wherever it stands.
        buttons = page.xpath("//button[@form='act' or ancestor::form[@id='act']]")
        assert buttons[0].get("value") is None
        assert re.match("Approve", buttons[1].text or "")
        (item,) = desk.waiting()
        answer = await desk.post("/review/act", row=f"{item.id}:{item.version}")
        assert answer.status_code == 422
        assert desk.waiting() == [item]

    run(service, "enter", work)


def test_a_form_acts_for_the_owner_of_its_page_whatever_another_tab_shows(service: Service) -> None:
    async def work(desk: Desk) -> None:
        desk.fill(2)
        edited, rejected = desk.waiting()
        await desk.get("/review/publishers")
        mine = desk.csrf
        chosen = await desk.post("/review/owner", owner="tab-2")
        assert (chosen.status_code, chosen.headers["Location"]) == (303, "/review")
        add(service, "tab-2", claim_words(7))
        assert claim_words(7) in shown((await desk.get("/review")).text)
        assert desk.csrf != mine

        banned = {"publisher": "kiln.example", "trust": "banned", "days": "30"}
        answer = await desk.post("/review/publishers", csrf=mine, **banned)
        assert answer.status_code == 303
        assert "kiln.example" in shown((await desk.get(answer.headers["Location"])).text)
        assert "kiln.example" not in shown((await desk.get("/review/publishers?owner=tab-2")).text)

        await desk.post("/review/owner", owner="tab-2")
        path = f"/review/items/{edited.id}"
        refused = await desk.post(
            f"{path}/approve", csrf=mine, version=1, note="z" * 2001, content="As typed."
        )
        assert (refused.status_code, "As typed." in refused.text) == (422, True)
        done = await desk.post(f"{path}/approve", csrf=mine, version=1, content="As typed.")
        assert (done.status_code, desk.item(edited.id).status) == (303, ReviewStatus.APPROVED)
        assert "Approved: As typed." in shown((await desk.get(done.headers["Location"])).text)

        await desk.post("/review/owner", owner="tab-2")
        told = await desk.act(csrf=mine, do=f"reject:{rejected.id}:1", reason="Not so")
        assert ([one["done"] for one in told["results"]], told["waiting"]) == ([True], 0)
        assert claim_words(7) in shown(
            (await desk.get("/review")).text
        )  # a script's act leaves other tabs alone

        listed = await desk.get("/review?owner=tab-1")
        assert claim_words(7) not in shown(listed.text)
        assert (await desk.get(f"{path}/pane?owner=tab-1")).status_code == 200
        assert (await desk.get("/review?owner=tab-3")).status_code == 403

    run(service, "tab-1", work, "tab-2")
