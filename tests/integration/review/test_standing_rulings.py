"""Standing rulings of owners: what they store and reject, who may confirm one, and taking one back
with all it did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, select

from tests.claims import NOW, policy, submission_of
from tests.desk import Desk, run
from tests.rechecking import bench
from tests.reviews import (
    all_memories,
    assert_consistent,
    everything,
    history,
    memory,
    queue_of,
    reviewer,
)
from tests.visiting import is_page
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.decision import Label, Looked, ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.standing_rulings import RulingDraft, RulingTerms, StandingRuling, template_of
from vouchgate.ingest.claims.trust import AppliedRuling, RulingVerdict
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.pipeline import examine, inspect, replay
from vouchgate.ingest.policy import Policy
from vouchgate.review.answers import Approved, NotFound, Rejected
from vouchgate.review.trust import taking_back
from vouchgate.review.trust.standing_rulings import Proposal, Ruled, RulingRefused, StandingRulings
from vouchgate.review.trust.taking_back import RulingEnded, Then
from vouchgate.service import Service, open_service
from vouchgate.settings import load_settings
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup import window
from vouchgate.storage.queue import rechecks
from vouchgate.storage.store import Store

DETECTOR = HedgeDetector(policy().lexicon)
TICKETS = "room * belongs to the team *"
DAY = timedelta(days=1)
LOOKED = (Looked(path="repositories", query="room team", found=0),)


def ticket(number: int) -> str:
    """One of many claims of one template, none like another by its words."""
    return f"Room {number} belongs to the team T{number * 7}."


def send(
    store: Store,
    content: str,
    *,
    agent: str = "agent-1",
    source: Source = Source.AI_SYNTHESIS,
    now: datetime = NOW,
    owner_id: str = "ann",
) -> ValidationResult:
    """Submits a claim that cites nothing."""
    claim = Claim(
        content=content,
        memory_type=MemoryType.FACT,
        asserted_source=source,
        source=source,
        owner_id=owner_id,
    )
    one = replace(examine(inspect(claim, DETECTOR), (), policy(), now), looked=LOOKED)
    answer = store.writer.submit(submission_of(one, principal_id=agent)).result()
    assert isinstance(answer, Decided)
    return answer.answer


def book(store: Store, under: Policy | None = None) -> StandingRulings:
    """The standing rulings under the built-in policy, or another."""
    return StandingRulings(store, under or policy())


def confirm(
    store: Store,
    verdict: RulingVerdict = RulingVerdict.STORE,
    *,
    who: Principal | None = None,
    under: Policy | None = None,
    days: int = 30,
    **terms: Any,
) -> StandingRuling | RulingRefused:
    """Rita confirms a standing ruling about rooms."""
    named = {"agent": "agent-1", "template": TICKETS} | terms
    draft = RulingDraft.model_validate({"verdict": verdict, "terms": named})
    return book(store, under).confirm(who or reviewer(), "ann", draft, name="tickets", days=days, now=NOW)


def ruling(store: Store, verdict: RulingVerdict = RulingVerdict.STORE, **terms: Any) -> StandingRuling:
    """The same, which is taken."""
    made = confirm(store, verdict, **terms)
    assert isinstance(made, StandingRuling), made
    return made


def take_back(store: Store, made: StandingRuling, then: Then, under: Policy | None = None) -> RulingEnded:
    """Rita takes a standing ruling back."""
    ended = taking_back.take_back(book(store, under), reviewer(), made.id, then, NOW + DAY)
    assert isinstance(ended, RulingEnded)
    return ended


def same_again(answer: ValidationResult) -> bool:
    """Whether the decision follows from its evidence alone."""
    return replay(answer, policy(), DETECTOR) == ()


def test_a_standing_ruling_stores_what_its_template_fits_and_the_decision_can_be_made_again(
    store: Store,
) -> None:
    before = send(store, ticket(1))
    assert (before.rule, "standing_ruling" in before.evidence.model_dump(mode="json")) == (
        "ungrounded",
        False,
    )
    made = ruling(store)
    stored = send(store, ticket(2))
    assert (stored.rule, stored.reason) == (
        "standing_ruling",
        "Stored by a standing ruling of its owner: tickets",
    )
    assert (stored.evidence.label, stored.evidence.confidence) == (Label.INFERENCE, "medium")
    assert stored.evidence.standing_ruling == AppliedRuling(
        id=made.id, name="tickets", verdict=RulingVerdict.STORE
    )
    assert stored.policy_digest == before.policy_digest == policy().digest
    assert same_again(stored)
    forged = stored.evidence.model_copy(update={"standing_ruling": None})
    assert not same_again(stored.model_copy(update={"evidence": forged}))
    others = [
        send(store, ticket(3), agent="agent-2"),
        send(store, ticket(4), now=NOW + 30 * DAY),
        send(store, "Room 5 belongs to the team and to nobody else."),
        send(store, f"I guess that {ticket(6)}"),
        send(store, ticket(7), owner_id="bob"),
    ]
    assert [each.rule for each in others] == ["ungrounded"] * 3 + ["speculation", "ungrounded"]
    ((_, counts),) = book(store).listing(reviewer())
    assert (counts.stored, counts.in_force, counts.rejected, counts.open) == (1, 1, 0, 1)
    assert history(store)[1].action is Action.STANDING_RULING_CONFIRMED
    assert_consistent(store)


@pytest.mark.on("sqlite")
def test_what_conflicts_with_a_memory_waits_whatever_a_standing_ruling_says(store: Store) -> None:
    ruling(store, template="the gateway of * listens on port *")
    assert send(store, "The gateway of Oslo listens on port 8080.").rule == "standing_ruling"
    assert send(store, "The gateway of Oslo listens on port 8081.").rule == "conflict"
    assert send(store, "The gateway of Oslo listens on port 8080.").rule == "duplicate"


@pytest.mark.on("sqlite")
def test_a_standing_ruling_stores_what_its_source_does_not_cover_and_never_what_it_refutes(
    store: Store, tmp_path: Path
) -> None:
    with bench(store, tmp_path) as here:
        here.repository.commit(
            "A guide", {"docs/guide.md": "The gateway listens on port 8080 behind the proxy.\n"}
        )
        ruling(store, path="docs/guide.md", template=None)
        assert here.send(
            "The gateway listens on port 8080 and on Fridays it is cleaned (docs/guide.md)."
        ).rule == ("standing_ruling")
        assert (
            here.send("The gateway listens on port 9090 behind the proxy (docs/guide.md).").rule == "refuted"
        )
        stated = here.send("The gateway listens on port 8080 behind the proxy (docs/guide.md).")
        assert stated.rule == "stated"
        assert here.send("The kitchen has green tea (docs/nothing.md).").memory_id is None
        for answer in (stated,):
            assert same_again(answer)


@pytest.mark.on("sqlite")
def test_a_standing_ruling_that_rejects_blocks_with_its_name_until_it_is_over(store: Store) -> None:
    made = ruling(store, RulingVerdict.REJECT, agent=None, days=3)
    blocked = send(store, ticket(1), agent="agent-9", source=Source.USER)
    assert (blocked.rule, blocked.tier) == ("standing_ruling", "tier_3")
    assert blocked.reason == "Rejected by a standing ruling of its owner: tickets"
    assert same_again(blocked)
    assert send(store, ticket(1), now=NOW + 3 * DAY).rule == "ungrounded"
    ((_, counts),) = book(store).listing(reviewer())
    assert (counts.stored, counts.rejected) == (0, 1)
    assert made.until == NOW + 3 * DAY


@pytest.mark.on("sqlite")
def test_a_standing_ruling_is_narrow_and_not_confirmed_by_who_runs_the_agent_nor_for_longer_than_the_policy_says(
    store: Store,
) -> None:
    for terms in ({"agent": None}, {"template": None}, {"template": None, "source": "chat"}):
        with pytest.raises(ValueError, match="names an agent"):
            confirm(store, **terms)
    with pytest.raises(ValueError, match="every claim"):
        RulingTerms()
    for odd in ("", "a\x00b"):
        with pytest.raises(ValueError, match="agent"):
            RulingTerms(agent=odd)
    for template in ("* * went *", "x " * 61):
        with pytest.raises(ValueError, match="template"):
            RulingTerms(template=template)
    nothing = Policy.model_validate(policy().model_dump() | {"standing_rulings": {"store": False}})
    refused = [confirm(store, agent=reviewer().id), confirm(store, days=181), confirm(store, under=nothing)]
    assert [one.code for one in refused if isinstance(one, RulingRefused)] == [
        "four_eyes",
        "too_long",
        "standing_rulings_store_nothing",
    ]
    agent = Principal(id="a", name="a", role=Role.AGENT, owners=frozenset({"ann"}))
    others = [agent, reviewer("bob"), agent.model_copy(update={"role": Role.AUDITOR})]
    others.append(agent.model_copy(update={"role": Role.REVIEWER, "any_owner": True}))
    made = ruling(store)
    before = everything(store)
    for who in others:
        assert book(store).listing(who) == []
        with pytest.raises(PermissionError):
            confirm(store, who=who)
        gone = taking_back.take_back(book(store), who, made.id, Then.RETRACT, NOW)
        assert gone == NotFound()
    assert everything(store) == before


def test_a_preview_tells_what_would_have_been_done_and_what_was_ruled_otherwise(store: Store) -> None:
    queue = queue_of(store)
    items = [str(send(store, ticket(number)).queue_id) for number in range(4)]
    old = send(store, ticket(9), now=NOW - 91 * DAY)
    send(store, "The kitchen has green tea.")
    send(store, f"I guess that {ticket(8)}")
    assert isinstance(queue.approve(reviewer(), items[0], version=1, now=NOW), Approved)
    assert isinstance(queue.approve(reviewer(), items[1], version=1, now=NOW), Approved)
    assert isinstance(queue.reject(reviewer(), items[2], version=1, reason="no", now=NOW), Rejected)
    assert old.queue_id
    proposal = book(store).propose(reviewer(), items[0])
    assert isinstance(proposal, Proposal)
    assert proposal.verdict is RulingVerdict.STORE
    assert (proposal.terms.agent, proposal.terms.template, proposal.terms.kind) == (
        "agent-1",
        TICKETS,
        "none",
    )
    before = everything(store)
    for verdict, same, otherwise in ((RulingVerdict.STORE, 2, 1), (RulingVerdict.REJECT, 1, 2)):
        draft = RulingDraft(verdict=verdict, terms=proposal.terms)
        seen = book(store).preview(reviewer(), "ann", draft, NOW)
        assert (seen.would, seen.same, seen.otherwise, seen.nobody) == (4, same, otherwise, 1)
        assert seen.shown[0].ruled is Ruled.OTHERWISE
    assert everything(store) == before
    assert template_of("It is 4711.") is None


@pytest.mark.parametrize("then", list(Then))
def test_a_standing_ruling_is_taken_back_with_all_it_did(store: Store, then: Then) -> None:
    made = ruling(store)
    stored = [str(send(store, ticket(number)).memory_id) for number in range(60)]
    ended = take_back(store, made, then)
    statuses = {each.status for each in all_memories(store, NOW)}
    waits = {
        Then.KEEP: (0, 0, 60, MemoryStatus.ACTIVE),
        Then.QUEUE: (60, 60, 0, MemoryStatus.RETRACTED),
        Then.RETRACT: (0, 60, 0, MemoryStatus.RETRACTED),
    }
    assert (ended.queued, ended.retracted, ended.left, *statuses) == waits[then]
    assert send(store, ticket(99)).rule == "ungrounded"
    assert_consistent(store)
    assert sum(each.action is Action.STANDING_RULING_ENDED for each in history(store)) == 1
    if then is not Then.QUEUE:
        return
    assert memory(store, stored[0]).retracted_reason == taking_back.TAKEN_BACK
    with store.read() as connection:
        items = window_items(connection)
    assert len(items) == 61
    answer = send(store, ticket(7))  # it waits already
    assert answer.rule == "already_pending"
    item = queue_of(store).get_by_id(reviewer(), str(answer.queue_id))
    assert item is not None
    assert (item.submitted_by, item.status, item.expires_at) == (
        "agent-1",
        ReviewStatus.PENDING,
        NOW + 31 * DAY,
    )
    assert "a standing ruling stored it that you took back: tickets" in item.reason
    kept = queue_of(store).decision_of(item)
    assert kept is not None
    assert (kept.evidence.standing_ruling, same_again(kept)) == (None, True)
    assert isinstance(
        queue_of(store).approve(reviewer(), item.id, version=item.version, now=NOW + DAY), Approved
    )


def window_items(connection: Any) -> set[str]:
    """Ids of all that is in the dedup index."""
    return set(connection.scalars(select(window.TABLE.c.item_id).distinct()))


@pytest.mark.on("sqlite")
def test_what_a_standing_ruling_rejected_waits_once_and_a_full_queue_takes_the_rest_later(
    store: Store,
) -> None:
    made = ruling(store, RulingVerdict.REJECT, agent=None)
    for number in (1, 2, 3, 1, 1):
        assert send(store, ticket(number)).rule == "standing_ruling"
    for number in (4, 5, 6):
        assert send(store, ticket(number), agent="agent-2").rule == "standing_ruling"
    # An agent that has all its places keeps what another sent from none.
    first = take_back(store, made, Then.QUEUE, policy(per_owner=9, per_agent=2))
    assert (first.queued, first.retracted, first.full) == (4, 0, True)
    assert 2 <= first.left <= 4  # in whatever order they came
    second = take_back(store, made, Then.QUEUE, policy(per_owner=5))
    assert (second.queued, second.full) == (1, True)
    assert 1 <= second.left <= 3
    again = take_back(store, made, Then.QUEUE)
    assert (again.queued, again.full, again.left) == (1, False, 0)
    with store.read() as connection:  # what was looked up in vain is looked up again
        assert len(connection.execute(select(rechecks.TABLE)).all()) == 6
    assert_consistent(store)


def test_other_processes_see_a_standing_ruling_at_once(store: Store, database_url: str) -> None:
    from vouchgate.storage.store import Store as Opened

    other = Opened.open(database_url, threshold=policy().threshold)
    try:
        assert send(other, ticket(1)).rule == "ungrounded"
        made = ruling(store)
        assert send(other, ticket(2)).rule == "standing_ruling"
        take_back(store, made, Then.KEEP)
        assert send(other, ticket(3)).rule == "ungrounded"
    finally:
        other.close()


@pytest.mark.on("sqlite")
def test_standing_rulings_are_read_once_a_change_and_cost_no_query_else(store: Store) -> None:
    asked: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        if "standing_ruling" in statement or "spot_check" in statement:
            asked.append(statement.split(maxsplit=1)[0])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        send(store, ticket(1))
        assert asked == []
        ruling(store)
        asked.clear()
        for number in range(2, 6):
            send(store, f"The kitchen of floor {number} has tea number {number * 9}.")
        assert asked == ["SELECT", "SELECT"]  # the standing rulings, and the verdicts
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.fixture
def service(database_url: str) -> Iterator[Service]:
    """A service that looks nothing up."""
    with open_service(load_settings({}, database_url=database_url, offline=True)) as opened:
        yield opened


@pytest.mark.on("sqlite")
def test_the_page_proposes_previews_confirms_and_takes_back(service: Service) -> None:
    store = service.store

    async def work(desk: Desk) -> None:
        now = datetime.now(UTC)
        item_id = send(store, ticket(1), now=now).queue_id
        assert "Always like this" in is_page(await desk.get(f"/review/items/{item_id}"), 200)
        assert "What would it have stored?" in is_page(
            await desk.get(f"/review/standing-rulings?item={item_id}"), 200
        )
        asked = f"/review/standing-rulings?item={item_id}&verdict=store"
        for term, said in (
            ("term=kind", "names an agent"),
            ("", "about every claim"),
            ("term=template&template=*", ""),
        ):
            assert said in is_page(await desk.get(f"{asked}&{term}"), 200).replace("&#39;", "'")
        seen = is_page(await desk.get(f"{asked}&term=agent&term=template"), 200)
        assert "would have stored 1." in seen
        assert "nobody ruled" in seen
        terms = {"agent": "agent-1", "template": TICKETS}
        answer = await desk.post(
            "/review/standing-rulings", item=item_id, verdict="store", name="rooms", days="30", **terms
        )
        ((made, _),) = book(store).listing(reviewer())
        assert (answer.status_code, answer.headers["location"]) == (
            303,
            f"/review/standing-rulings?made={made.id}",
        )
        assert send(store, ticket(2), now=now + DAY).rule == "standing_ruling"
        shown = is_page(await desk.get("/review/standing-rulings"), 200)
        assert "stored 1, 1 in force" in shown
        ((made, _),) = book(store).listing(reviewer())
        end = f"/review/standing-rulings/{made.id}"
        gone = await desk.post(end, then="queue")
        assert "1 went to the queue, 1 memories are retracted" in is_page(gone, 200)
        assert sorted(each.content for each in desk.waiting()) == [ticket(1), ticket(2)]
        for fields in (
            {"verdict": "burn", "name": "x", "days": "30"},
            {"verdict": "store", "name": "", "days": "30"},
            {"verdict": "store", "name": "x", "days": "-1"},
        ):
            is_page(await desk.post("/review/standing-rulings", item=item_id, **(terms | fields)), 422)
        is_page(
            await desk.post(
                "/review/standing-rulings", verdict="store", name="x", days="30", template=TICKETS
            ),
            422,
        )
        is_page(
            await desk.post(
                "/review/standing-rulings", item=item_id, verdict="store", name="x", days="181", **terms
            ),
            409,
        )
        is_page(await desk.post(end, then="burn"), 422)
        is_page(await desk.post("/review/standing-rulings/ruling_1", then="keep"), 404)
        is_page(await desk.get("/review/standing-rulings?item=rev_1"), 404)

    run(service, "ann", work)


def test_what_waits_already_is_ruled_on_by_its_owner_and_taken_back_at_once(service: Service) -> None:
    store = service.store

    async def work(desk: Desk) -> None:
        now = datetime.now(UTC)
        items = [send(store, ticket(number), now=now).queue_id for number in (1, 2, 3)]
        other = send(store, "The shed has a green door.", now=now).queue_id
        terms = {"agent": "agent-1", "template": TICKETS}
        fields = {"verdict": "store", "name": "rooms", "days": "30", **terms}
        answer = await desk.post("/review/standing-rulings", item=items[0], **fields)
        offered = is_page(await desk.get(answer.headers["location"]), 200)
        assert "3 like it wait already" in offered
        assert f"{other}:1" not in offered
        assert "wait already" not in is_page(await desk.get("/review/standing-rulings"), 200)
        assert len(desk.waiting()) == 4  # never by itself
        ((made, _),) = book(store).listing(reviewer())
        act = f"/review/standing-rulings/{made.id}/waiting"
        for row in (f"{other}:1", f"{items[0]}:2", "x"):  # of another form, or not as it was seen
            assert "0 of 1 ruled on" in is_page(await desk.post(act, row=row), 200)
        is_page(await desk.post("/review/standing-rulings/ruling_1/waiting", row=f"{items[0]}:1"), 404)
        assert "3 of 3 ruled on" in is_page(await desk.post(act, row=[f"{item}:1" for item in items]), 200)
        assert [each.id for each in desk.waiting()] == [other]
        ruled = queue_of(store).get_by_id(reviewer(), str(items[0]))
        assert ruled is not None
        assert ruled.status is ReviewStatus.APPROVED
        assert "3 taken back" in is_page(await desk.post("/review/act", do="undo-last"), 200)
        assert len(desk.waiting()) == 4

    run(service, "ann", work)
