"""Spot checks: what rules store as INFERENCE is drawn at random, and its owner says whether it is right."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from lxml import html
from sqlalchemy import update

from tests.claims import NOW, examined, policy, submission_of
from tests.desk import Desk, run
from tests.rechecking import SAYS, bench, policy_with
from tests.reviews import history, queue_of, reviewer, waiting
from tests.visiting import hidden, is_page
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.waiting import SpotVerdict
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.sampling import is_sampled
from vouchgate.review.answers import Approved, NotFound
from vouchgate.review.ending.erasing import BY_OPERATOR, Erased, Erasing
from vouchgate.review.trust import spot_checks
from vouchgate.review.trust.spot_checks import Drawn
from vouchgate.service import Service, open_service
from vouchgate.settings import load_settings
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.engine import migration_config, writing
from vouchgate.storage.log import chain as log
from vouchgate.storage.log.data.walk import Walk
from vouchgate.storage.queue.spot_checks import TABLE
from vouchgate.storage.store import Store


def drawing(rate: float, base: Policy | None = None) -> Policy:
    """A policy that draws this share."""
    return Policy.model_validate((base or policy()).model_dump() | {"spot_checks": {"rate": rate}})


def send(
    store: Store, content: str, *, rate: float = 1.0, source: Source = Source.USER, owner: str = "ann"
) -> Decided:
    """Submits a claim that cites nothing, under a policy that draws this share."""
    one = examined(content, owner_id=owner, source=source, under=drawing(rate))
    answer = store.writer.submit(submission_of(one)).result()
    assert isinstance(answer, Decided)
    return answer


def listed(store: Store, who: Principal | None = None, **more: SpotVerdict) -> list[Drawn]:
    """What this reviewer, else Ann's, is asked about."""
    return list(spot_checks.search(store, who or reviewer(), NOW, limit=50, **more))


def test_the_share_is_that_of_the_policy_and_can_be_drawn_again() -> None:
    digests = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(20_000)]
    drawn = [digest for digest in digests if is_sampled(digest, 0.05)]
    assert 850 < len(drawn) < 1150  # 1000 and five times its standard deviation of 31
    assert drawn == [digest for digest in digests if is_sampled(digest, 0.05)]
    assert set(drawn) <= {digest for digest in digests if is_sampled(digest, 0.2)}
    assert is_sampled("f" * 64, 1.0)
    assert not is_sampled("0" * 64, 0.0)


@pytest.mark.on("sqlite")
def test_what_is_drawn_follows_from_the_log(store: Store) -> None:
    answers = [
        send(store, f"The lamp of room {n} hangs over table {n * 7}.", rate=0.3).answer for n in range(20)
    ]
    with store.read() as connection:
        entries = log.events(connection, frozenset({"ann"}), after=None, limit=200)
    digests = {entry.subject_id: entry.content_digest for entry in entries}
    expected = {a.memory_id for a in answers if is_sampled(digests[str(a.decision_id)], 0.3)}
    assert {one.memory.id for one in listed(store)} == expected


@pytest.mark.on("sqlite")
def test_only_inferences_that_a_rule_stored_are_drawn(store: Store, tmp_path: Path) -> None:
    assert send(store, "I guess the lamp is red.", source=Source.AI_SYNTHESIS).answer.memory_id is None
    item = waiting(store, "The lamp in the hall is green.", under=drawing(1.0))
    assert isinstance(queue_of(store).approve(reviewer(), item.id, version=1, now=NOW), Approved)
    with bench(store, tmp_path, drawing(1.0)) as here:
        fact = here.send()
        assert (fact.memory_id is not None, fact.evidence.label) == (True, "FACT")
        assert listed(store) == []
        vouched = here.send("The lamp in the cellar is blue.", source=Source.USER)
    (one,) = listed(store)
    assert (one.memory.id, one.check.rule) == (vouched.memory_id, Rule.TRUSTED_SOURCE)


def test_what_is_promoted_is_drawn_too(store: Store, tmp_path: Path) -> None:
    files = {"src/gateway.txt": f"{SAYS}\n"}
    with bench(store, tmp_path, drawing(1.0, policy_with(first_seconds=1))) as here:
        here.repository.commit("Say it in a file", files)
        here.hide()
        sent = here.send("The gateway listens on port 8080 (src/gateway.txt:1).")
        assert sent.rule == "citation_unknown", sent.reason
        here.show()
        assert here.work(here.schedule()[0].due_at).promoted == 1
        item = here.item(sent.queue_id)
    (one,) = listed(store)
    assert (one.memory.id, one.check.rule) == (item.memory_id, Rule.STATED)
    send(store, "The lamp in the hall is green.")
    config = migration_config()
    with writing(store._engine) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0031")
        # As 0020 left what was drawn before it.
        of_then = {"kind": None, "publisher": None, "agent": "service"}
        connection.execute(update(TABLE).values(of_then))
        command.upgrade(config, "head")
    assert [each for each in Walk(store.read).differences() if each.table == "spot_check"] == []


def test_an_answer_is_logged_counted_and_can_be_changed(store: Store) -> None:
    first, second = (
        str(send(store, text).answer.memory_id) for text in ("The lamp is red.", "A door is oak.")
    )
    assert {one.memory.id for one in listed(store)} == {first, second}
    for verdict in (SpotVerdict.RIGHT, SpotVerdict.WRONG, SpotVerdict.WRONG):
        done = spot_checks.answer(store, reviewer(), first, verdict, NOW, policy=policy())
        assert isinstance(done, Drawn)
        assert (done.check.verdict, done.check.decided_by) == (verdict, "reviewer-rita")
        assert done.memory.status is MemoryStatus.ACTIVE
    assert [one.memory.id for one in listed(store)] == [second]
    assert [one.memory.id for one in listed(store, verdict=SpotVerdict.WRONG)] == [first]
    counted = {"right": 0, "wrong": 1, "cannot_tell": 0, "open": 1}
    assert spot_checks.counts(store, reviewer()) == {Rule.TRUSTED_SOURCE: counted}
    entries = [(entry.action, entry.subject_id, entry.actor) for entry in history(store)[2:]]
    said = (Action.SPOT_CHECK_RIGHT, Action.SPOT_CHECK_WRONG)
    assert entries == [(action, first, "reviewer-rita") for action in said]


def test_what_was_erased_ends_no_page_and_cannot_be_answered(store: Store, tmp_path: Path) -> None:
    texts = ("The lamp is red.", "A door is oak.", "Wool is dyed in May.")
    oldest, *newer = sorted(str(send(store, text).answer.memory_id) for text in texts)
    wrong = SpotVerdict.WRONG
    for each in (oldest, *newer):
        spot_checks.answer(store, reviewer(), each, wrong, NOW, policy=policy())
    erasing = Erasing(store, policy(), path=tmp_path / "list.jsonl")
    gone = erasing.erase(["ann"], newer, "GDPR Art. 17", BY_OPERATOR, NOW)
    assert isinstance(gone, Erased)
    page = spot_checks.search(store, reviewer(), NOW, verdict=wrong, limit=1)
    assert [one.memory.id for one in page] == [oldest]
    again = spot_checks.answer(store, reviewer(), newer[0], wrong, NOW, policy=policy())
    assert again == NotFound()


def test_nobody_but_its_owner_sees_or_answers(store: Store) -> None:
    drawn = str(send(store, "The lamp is red.").answer.memory_id)
    agent = Principal(id="a", name="a", role=Role.AGENT, owners=frozenset({"ann"}))
    others = [
        agent,
        reviewer("bob"),
        agent.model_copy(update={"role": Role.AUDITOR}),
        agent.model_copy(update={"role": Role.ADMIN, "any_owner": True}),
        agent.model_copy(update={"role": Role.REVIEWER, "any_owner": True}),
    ]
    for who in others:
        assert listed(store, who) == []
        assert spot_checks.counts(store, who) == {}
        assert spot_checks.answer(store, who, drawn, SpotVerdict.RIGHT, NOW, policy=policy()) == NotFound()
    assert (
        spot_checks.answer(store, reviewer(), "mem_\x00", SpotVerdict.RIGHT, NOW, policy=policy())
        == NotFound()
    )
    assert [one.check.verdict for one in listed(store)] == [None]


@pytest.fixture
def service(database_url: str, tmp_path: Path) -> Iterator[Service]:
    """A service that draws everything."""
    file = tmp_path / "policy.toml"
    file.write_text("[spot_checks]\nrate = 1.0\n")
    settings = load_settings({}, database_url=database_url, policy=file, offline=True)
    with open_service(settings) as opened:
        yield opened


@pytest.mark.on("sqlite")
def test_the_page_shows_what_was_drawn_and_wrong_offers_to_retract(service: Service) -> None:
    async def work(desk: Desk) -> None:
        hidden = "The lamp\u202e is <b>red</b>."
        for text in (hidden, "A door is oak."):
            send(service.store, text, owner=desk.owner)
        shown = is_page(await desk.get("/review/spot-checks"), 200)
        assert "A door is oak." in shown
        assert "<b>red</b>" in shown
        assert "trusted_source" in shown
        ids = {memory.content: memory.id for memory in desk.memories()}
        answer = await desk.post(f"/review/spot-checks/{ids['A door is oak.']}", verdict="right")
        assert (answer.status_code, answer.headers["location"]) == (303, "/review/spot-checks")
        answer = await desk.post(f"/review/spot-checks/{ids[hidden]}", verdict="wrong")
        assert answer.status_code == 303
        page = await desk.get(answer.headers["location"])
        assert "You said that it is wrong" in is_page(page, 200)
        assert '<details class="card" open>' in page.text
        assert "1 right, 1 wrong, 0 cannot tell, 0 not said yet" in is_page(
            await desk.get("/review/spot-checks"), 200
        )
        assert "you said: wrong" in is_page(await desk.get("/review/spot-checks?verdict=wrong"), 200)
        for path in ("?verdict=maybe", "?after=%00"):
            is_page(await desk.get(f"/review/spot-checks{path}"), 422)
        is_page(await desk.post(f"/review/spot-checks/{ids[hidden]}", verdict="maybe"), 422)
        is_page(await desk.post("/review/spot-checks/mem_nothing", verdict="right"), 404)
        metrics = (await desk.http.get("/metrics")).text
        assert 'vouchgate_spot_checks{rule="trusted_source",verdict="wrong"} 1.0' in metrics
        assert 'vouchgate_spot_checks{rule="trusted_source",verdict="open"} 0.0' in metrics

    run(service, "ann", work)


@pytest.mark.on("sqlite")
def test_an_answer_goes_back_to_where_in_the_list_it_was_given(service: Service) -> None:
    async def work(desk: Desk) -> None:
        for number in range(12):
            send(service.store, f"The lamp of room {number} hangs over table {number * 7}.", owner=desk.owner)
        first = await desk.get("/review/spot-checks")
        (older,) = html.fromstring(first.text).xpath("//p[@class='more']/a/@href")
        page = await desk.get(older)
        memory = html.fromstring(page.text).xpath("//li//form/@action")[0]
        answer = await desk.post(memory, verdict="right", back=hidden(page)["back"])
        assert answer.headers["location"] == older
        right = await desk.get("/review/spot-checks?verdict=right")
        answer = await desk.post(memory, verdict="cannot_tell", back=hidden(right)["back"])
        assert answer.headers["location"] == "/review/spot-checks?verdict=right"
        answer = await desk.post(memory, verdict="right", back="https://evil.example/")
        assert answer.headers["location"] == "/review"

    run(service, "ann", work)
