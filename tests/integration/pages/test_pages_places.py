"""How the pages show that a claim would be written over a memory, or asks for one to be removed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.claims import examined, submission_of
from tests.desk import Desk, claim_words, run
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.delivery import DeliveryOp, DeliveryTarget
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.service import Service, open_service
from vouchgate.settings import load_settings

OLD = "Invoices are sent on the first working day of each month"
NEW = "The finance team prints every letter twice since last winter"
AT = DeliveryTarget(sink="kg", place="invoices", data={"entity": "<i>invoices</i>"})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    path: Path = tmp_path_factory.mktemp("pages") / "gate.db"
    with open_service(load_settings({}, database_url=f"sqlite:///{path}", offline=True)) as opened:
        yield opened


def send(desk: Desk, content: str, delivery: DeliveryTarget) -> None:
    """A claim in the user's words."""
    now = datetime.now(UTC)
    one = examined(content, owner_id=desk.owner, source=Source.USER, delivery=delivery, now=now)
    desk.service.store.writer.submit(submission_of(one)).result()


def test_a_change_is_shown_with_what_it_would_be_written_over(service: Service) -> None:
    async def work(desk: Desk) -> None:
        send(desk, OLD, AT)
        send(desk, NEW, AT)
        (item,) = desk.waiting()
        (old,) = desk.memories()
        page = (await desk.get(f"/review/items/{item.id}")).text
        assert "What it would be written over" in page
        assert f"in place of {old.id}." in page
        assert "keep both" not in page.lower()
        assert "Written to" in page
        assert "&lt;i&gt;invoices&lt;/i&gt;" in page
        answer = await desk.act(do=f"approve:{item.id}:{item.version}")
        assert answer["results"][0]["done"], answer
        assert [memory.content for memory in desk.memories()] == [NEW]
        send(desk, OLD, AT)  # it is not stored any more, so it may come back, if the owner agrees
        assert desk.waiting()[0].rule == "place_change"

    run(service, "changes", work)


def test_a_removal_says_what_goes_and_has_nothing_to_edit(service: Service) -> None:
    async def work(desk: Desk) -> None:
        send(desk, OLD, AT)
        send(desk, OLD, AT.model_copy(update={"op": DeliveryOp.REMOVE}))
        (item,) = desk.waiting()
        desk.fill(1, 1)
        (other,) = [each for each in desk.waiting() if each.id != item.id]
        assert (await desk.act(do=f"approve:{other.id}:1"))["summary"] == "1 approved"
        page = (await desk.get(f"/review/items/{item.id}")).text
        assert "What it would remove" in page
        assert "Has invoices removed from kg, and retracts" in page
        assert "Removed from" in page
        assert "Edit, then approve" not in page
        assert ">Removal<" in (await desk.get("/review")).text
        assert f'value="approve:{item.id}' not in (await desk.get("/review")).text
        told = await desk.act(do="approve-ticked", row=[f"{item.id}:1"])
        assert [(row["done"], row["outcome"]) for row in told["results"]] == [(False, "left waiting")]
        answer = await desk.post(
            f"/review/items/{item.id}/approve", version=item.version, seen=item.decision_id
        )
        assert answer.status_code in (200, 303), answer.text
        assert desk.item(item.id).status is ReviewStatus.APPROVED
        assert [memory.content for memory in desk.memories()] == [claim_words(1)]
        # It is what was done last, and nothing that was done before goes back in its stead.
        told = await desk.act(do="undo-last")
        assert [row["outcome"] for row in told["results"]] == ["not taken back"]
        assert told["results"][0]["message"].startswith("What was removed may be gone")
        assert [memory.content for memory in desk.memories()] == [claim_words(1)]
        assert "it is to be removed" in (await desk.get(f"/review/items/{item.id}")).text

    run(service, "removes", work)
