"""Stores behind the gate fetch over HTTP what they are to be told: who may, in what order, and what owners see of it.
What both databases do is in `tests/integration/outgoing/test_deliveries.py`."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.site import Site, approve, claim, is_problem, open_site, queue, store, submit
from tests.visiting import Browser, is_page
from vouchgate.cli.app import run
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.identity import tokens

LEASE = "/v1/deliveries/lease"


@pytest.fixture(scope="module")
def site(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gate with the built-in policy and no repository, on SQLite."""
    file = tmp_path_factory.mktemp("deliveries") / "vouchgate.db"
    shutil.copyfile(migrated_file, file)
    with open_site(f"sqlite:///{file}") as opened:
        yield opened


def to(place: str, sink: str = "shelf", **more: Any) -> dict[str, Any]:
    """Where a claim is to be written."""
    return {"sink": sink, "place": place, **more}


def lease(agent: httpx.Client, sink: str = "shelf", **more: Any) -> list[dict[str, Any]]:
    """What is due."""
    answer = agent.post(LEASE, json={"sink": sink, **more})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["deliveries"]
    return found


def report(agent: httpx.Client, one: dict[str, Any], what: str = "done", **more: Any) -> httpx.Response:
    """Says what came of a delivery."""
    return agent.post(f"/v1/deliveries/{one['id']}/{what}", json={"lease": one["lease"], **more})


def listed(caller: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    """Deliveries as a caller reads them."""
    answer = caller.get("/v1/deliveries", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def test_a_stored_claim_is_fetched_delivered_and_seen_so(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    data = {"key": ["a", 1, None, {"ä": "ö"}]}
    memory_id = store(agent, "The kiln reaches 1280 degrees", delivery=to("kilns/1", data=data))
    (one,) = lease(agent)
    assert one | {"created_at": None, "lease": None, "id": None} == {
        "id": None,
        "lease": None,
        "owner_id": owner,
        "sink": "shelf",
        "place": "kilns/1",
        "op": "put",
        "data": data,
        "content": "The kiln reaches 1280 degrees",
        "memory_id": memory_id,
        "memory_type": "fact",
        "attempts": 0,
        "created_at": None,
    }
    assert lease(agent) == []
    for _ in range(2):  # the answer may have been lost
        answer = report(agent, one)
        assert (answer.status_code, answer.json()["state"]) == (200, "delivered")
    assert lease(agent) == []
    memory = agent.get(f"/v1/memories/{memory_id}").json()
    (seen,) = memory["deliveries"]
    assert (seen["state"], seen["place"], seen["id"]) == ("delivered", "kilns/1", one["id"])
    assert seen["delivered_at"] is not None
    (in_list,) = agent.get("/v1/memories").json()["items"]
    assert in_list["deliveries"] == [seen]
    assert listed(site.reviewer(owner), memory_id=memory_id) == [seen]


def test_what_is_preferred_is_handed_over_with_the_answer(site: Site, owner: str) -> None:
    agent = site.agent(owner)

    def send(number: int, prefer: str | None, key: str = "") -> httpx.Response:
        headers = {"Idempotency-Key": key or f"key {number}"} | ({} if prefer is None else {"Prefer": prefer})
        body = claim(f"Loft l{number}l holds chair k{number}k", delivery=to(f"loft/{number}"))
        answer = agent.post("/v1/claims", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        return answer

    first = send(3, "hand-over")
    one = first.json()["delivery"]
    assert (one["owner_id"], one["place"], one["content"]) == (owner, "loft/3", "Loft l3l holds chair k3k")
    assert one["memory_id"] == first.json()["memory_id"]
    again = send(3, "hand-over")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json()["delivery"] | {"lease": None} == one | {"lease": None}
    # What is kept, and what a receipt proves, is the decision alone.
    kept = agent.get(f"/v1/decisions/{first.json()['decision_id']}")
    assert kept.json() == {n: v for n, v in first.json().items() if n not in ("delivery", "promise")}
    assert send(3, None).content == kept.content
    assert lease(agent) == []
    is_problem(report(agent, one), 409, "lease_lost")
    assert report(agent, again.json()["delivery"]).json()["state"] == "delivered"
    assert "delivery" not in send(3, "hand-over").json()
    for number, prefer in enumerate((None, "", "wait=5", "hand-over-all", "x; a=hand-over"), 10):
        assert "delivery" not in send(number, prefer).json(), prefer
    for each in lease(agent):
        report(agent, each)
    handed = send(20, "respond-async, wait=10, Hand-Over")
    # As a lease gives it, to the last name.
    assert report(agent, handed.json()["delivery"]).is_success
    send(21, None)
    (leased,) = lease(agent)
    assert list(leased) == list(handed.json()["delivery"])


def test_memories_of_a_list_have_their_own_deliveries(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    ids = [store(agent, f"Jar {n} holds {n + 3} olives", delivery=to(f"jar {n}")) for n in range(3)]
    plain = store(agent, "The cellar has two doors")
    items = agent.get("/v1/memories").json()["items"]
    assert {item["id"]: [one["place"] for one in item.get("deliveries", ())] for item in items} == {
        **{memory_id: [f"jar {n}"] for n, memory_id in enumerate(ids)},
        plain: [],
    }
    assert [item["id"] for item in items if "deliveries" not in item] == [plain]


def test_what_waits_is_not_delivered_and_what_its_owner_edited_is(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    approved = queue(agent, "The roof was tiled in May", delivery=to("roof"))
    edited = queue(agent, "The gate was painted in June", delivery=to("gate"))
    rejected = queue(agent, "The well was dug in July", delivery=to("well"))
    assert lease(agent) == []
    assert reviewer.post(f"/v1/reviews/{rejected}/reject", json={"version": 1, "reason": "no"}).is_success
    assert reviewer.post(f"/v1/reviews/{approved}/approve", json={"version": 1}).is_success
    text = "The gate was painted on 3 June"
    body = {"version": 1, "content": text}
    assert reviewer.post(f"/v1/reviews/{edited}/approve", json=body).is_success
    assert [(one["place"], one["content"]) for one in lease(agent)] == [
        ("roof", "The roof was tiled in May"),
        ("gate", text),
    ]


def test_a_removal_waits_for_the_owner_and_then_is_delivered(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    memory_id = store(agent, "The shed is locked at night", delivery=to("shed"))
    assert report(agent, lease(agent)[0]).is_success
    item = queue(agent, "The shed is locked at night", delivery=to("shed", op="remove"))
    assert lease(agent) == []
    assert reviewer.post(f"/v1/reviews/{item}/approve", json={"version": 1}).is_success
    (one,) = lease(agent)
    assert (one["op"], one["place"], one["memory_id"]) == ("remove", "shed", memory_id)
    unknown = queue(agent, "The barn is locked at night", delivery=to("barn", op="remove"))
    assert report(agent, one).is_success
    assert reviewer.post(f"/v1/reviews/{unknown}/approve", json={"version": 1}).is_success
    (one,) = lease(agent)
    assert (one["op"], one["place"], one["memory_id"], one["content"]) == ("remove", "barn", None, "")


def test_the_order_holds_when_one_fails_and_a_dead_letter_lets_the_others_by(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    for number in range(3):
        store(agent, f"Drawer {number} holds {number + 5} keys", delivery=to(f"drawer {number}"))
    first, second, third = lease(agent)
    answer = report(agent, first, "failed", error="the lock is broken\x1b[0m", final=True)
    assert (answer.status_code, answer.json()["state"]) == (200, "dead")
    answer = report(agent, second, "failed", error="try later")
    assert (answer.json()["state"], answer.json()["attempts"]) == ("waiting", 1)
    problem = is_problem(report(agent, third), 409, "lease_lost")
    assert problem["current"]["state"] == "waiting"
    assert lease(agent) == []
    (dead,) = listed(reviewer, state="dead")
    assert (dead["id"], dead["last_error"]) == (first["id"], "the lock is broken [0m")
    page = reviewer.get(f"/v1/memories/{dead['memory_id']}").json()
    assert page["deliveries"][0]["last_error"] == "the lock is broken [0m"
    answer = reviewer.post(f"/v1/deliveries/{dead['id']}/retry")
    assert (answer.status_code, answer.json()["state"], answer.json()["attempts"]) == (200, "waiting", 0)
    is_problem(reviewer.post(f"/v1/deliveries/{dead['id']}/retry"), 409, "not_dead")
    (again,) = lease(agent)
    assert (again["id"], again["place"]) == (first["id"], "drawer 0")
    assert report(agent, again, "failed", error="no", final=True).json()["state"] == "dead"
    assert reviewer.delete(f"/v1/memories/{dead['memory_id']}").is_success
    is_problem(reviewer.post(f"/v1/deliveries/{dead['id']}/retry"), 409, "outdated")
    assert site.actions(owner).count("delivery.retried") == 1


def test_nobody_reads_or_reports_what_is_of_another_owner(site: Site, owner: str) -> None:
    agent, other = site.agent(owner), site.owner()
    stranger = site.agent(other)
    memory_id = store(agent, "The safe opens at nine", delivery=to("safe"))
    assert lease(stranger) == []
    is_problem(stranger.post(LEASE, json={"sink": "shelf", "user_id": owner}), 403, "owner_not_allowed")
    (one,) = lease(agent)
    for what, more in (("done", {}), ("failed", {"error": "no", "final": True})):
        is_problem(report(stranger, one, what, **more), 404, "not_found")
    assert listed(stranger) == []
    assert listed(stranger, memory_id=memory_id) == []
    is_problem(stranger.get("/v1/deliveries", params={"user_id": owner}), 403, "owner_not_allowed")
    assert report(agent, one, "failed", error="no", final=True).is_success
    is_problem(site.reviewer(other).post(f"/v1/deliveries/{one['id']}/retry"), 404, "not_found")
    assert [found["id"] for found in listed(site.auditor(owner, other), user_id=owner)] == [one["id"]]


def test_one_token_for_several_owners_fetches_for_each_of_them(site: Site) -> None:
    first, second = site.owner(), site.owner()
    both = site.agent(first, second)
    sink = f"shelf-{uuid.uuid4().hex[:8]}"
    for number, owner in enumerate((first, second, first)):
        store(
            both, f"Hook {number} carries {number + 7} ropes", user_id=owner, delivery=to(f"{number}", sink)
        )
    assert [one["owner_id"] for one in lease(both, sink, user_id=second)] == [second]
    any_owner = site.agent()
    third = site.owner()
    store(any_owner, "Hook 9 carries 3 ropes", user_id=third, delivery=to("9", sink))
    assert [one["owner_id"] for one in lease(any_owner, sink)] == [
        third
    ]  # the others are served by another token
    assert [(one["owner_id"], one["place"]) for one in lease(both, sink)] == [(first, "0"), (first, "2")]
    assert lease(both, sink) == []


def test_no_other_agent_swallows_what_the_owner_takes_back(site: Site, owner: str) -> None:
    consumer, thief, reviewer = site.agent(owner), site.agent(owner), site.reviewer(owner)
    assert lease(thief) == []  # asking first gives no right to it
    memory_id = store(consumer, "The safe holds 12 bars", delivery=to("safe"))
    store(thief, "The safe was made in 1911", delivery=to("safe/made"))
    first, second = lease(consumer)
    assert report(consumer, first).is_success
    assert report(consumer, second).is_success
    assert reviewer.delete(f"/v1/memories/{memory_id}").is_success
    for body in ({"sink": "shelf"}, {"sink": "shelf", "user_id": owner}):
        is_problem(thief.post(LEASE, json=body), 403, "sink_of_another_token")
    (removal,) = lease(consumer)
    for what, more in (("done", {}), ("failed", {"error": "no", "final": True})):
        is_problem(report(thief, removal, what, **more), 403, "sink_of_another_token")
    assert listed(consumer, state="waiting")[0]["attempts"] == 0
    assert report(consumer, removal).json()["state"] == "delivered"
    assert (removal["op"], removal["place"]) == ("remove", "safe")


def test_the_operator_hands_the_sinks_of_a_token_to_another(
    site: Site, owner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        status = run(["delivery", *arguments, "--database-url", site.url])
        output, errors = capsys.readouterr()
        return status, output + errors

    (old, old_secret), (new, new_secret) = (
        site.token(Role.AGENT, owner, sources=frozenset({Source.USER})) for _ in range(2)
    )
    before, after = site.caller(old_secret), site.caller(new_secret)
    store(before, "The dam is 40 metres high", delivery=to("dam"))
    (held,) = lease(before)
    status, said = command("sinks")
    assert (status, [owner, "shelf", old.id] in [line.split()[:3] for line in said.splitlines()]) == (
        0,
        True,
    ), said
    stranger, _ = site.token(Role.AGENT, site.owner())
    reviewer, _ = site.token(Role.REVIEWER, owner)
    for refused, why in (
        (stranger.id, "does not act for"),
        (reviewer.id, "no agent's token"),
        ("0" * 16, "no agent's token"),
    ):
        status, said = command("hand-over", "--from", old.id, "--to", refused)
        assert (status, why in said) == (2, True), said
    for wrong in (
        ["--owner", owner],
        [],
        ["--from", old.id, "--owner", owner, "--sink", "shelf"],
        ["--owner", owner, "--sink", "sink_01"],
    ):
        assert command("hand-over", "--to", new.id, *wrong)[0] == 2
    assert command("hand-over", "--from", "0" * 16, "--to", new.id)[0] == 1
    is_problem(after.post(LEASE, json={"sink": "shelf"}), 403, "sink_of_another_token")
    status, said = command("hand-over", "--from", old.id, "--to", new.id)
    assert (status, "1 sink handed over" in said) == (0, True), said
    is_problem(report(before, held), 403, "sink_of_another_token")
    is_problem(before.post(LEASE, json={"sink": "shelf"}), 403, "sink_of_another_token")
    assert lease(after) == []  # until the old lease ends
    assert site.actions(owner).count("sink.handed_over") == 1
    assert tokens.revoke(site.store, new.id, actor="test", now=datetime.now(UTC))
    status, said = command("hand-over", "--from", new.id, "--to", new.id)
    assert (status, "was revoked" in said) == (2, True), said


def test_a_sink_can_be_given_to_a_token_before_anybody_names_it(site: Site, owner: str) -> None:
    (consumer, secret), other = site.token(Role.AGENT, owner), site.agent(owner)
    arguments = ["--owner", owner, "--sink", "shelf", "--to", consumer.id, "--database-url", site.url]
    assert run(["delivery", "hand-over", *arguments]) == 0
    store(other, "The mill grinds 3 sacks", delivery=to("mill"))
    is_problem(other.post(LEASE, json={"sink": "shelf"}), 403, "sink_of_another_token")
    assert [one["place"] for one in lease(site.caller(secret))] == ["mill"]


def test_pages_go_from_the_newest_to_the_oldest(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    for number in range(5):
        store(agent, f"Lamp {number} burns for {number + 2} hours", delivery=to(f"lamp {number}"))
    found, after = list[str](), None
    while True:
        page = agent.get("/v1/deliveries", params={"limit": 2} | ({"after": after} if after else {})).json()
        found += [one["place"] for one in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert found == [f"lamp {number}" for number in (4, 3, 2, 1, 0)]
    assert [one["place"] for one in listed(agent, sink="shelf", limit=1)] == ["lamp 4"]
    assert listed(agent, sink="other") == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"sink": "Shelf"},
        {"sink": "sink_0123"},  # webhooks are served by the service alone
        {"sink": "shelf", "most": 0},
        {"sink": "shelf", "most": 101},
        {"sink": "shelf", "most": "3"},
        {"sink": "shelf", "user_id": ""},
        {"sink": "shelf", "more": 1},
    ],
)
def test_a_lease_of_another_shape_is_refused(site: Site, owner: str, body: dict[str, Any]) -> None:
    is_problem(site.agent(owner).post(LEASE, json=body), 422, "invalid_request")


def test_no_claim_names_a_webhook_as_its_sink(site: Site, owner: str) -> None:
    sent = claim("The door is open", delivery=to("door", "sink_0123"))
    problem = is_problem(site.agent(owner).post("/v1/claims", json=sent), 422, "invalid_request")
    assert "must not begin with sink_" in problem["detail"]


def test_what_is_stuck_or_given_up_is_told_to_the_operator(
    site: Site, owner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = site.agent(owner)
    store(agent, "The bell rings at seven", delivery=to("bell\nof the tower"))
    (one,) = lease(agent)
    before = _gauge(site, "vouchgate_deliveries_dead")
    assert report(agent, one, "failed", error="no such tower", final=True).is_success
    assert _gauge(site, "vouchgate_deliveries_dead") == before + 1
    assert any("given up" in text for text in site.caller().get("/readyz").json()["degraded"])

    def command(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        status = run(["delivery", *arguments, "--database-url", site.url])
        output, errors = capsys.readouterr()
        return status, output + errors

    status, said = command("list", "--owner", owner, "--state", "dead")
    assert status == 0
    assert one["id"] in said
    assert command("list", "--owner", owner, "--state", "delivered") == (0, "There is no such delivery.\n")
    status, said = command("list", "--owner", owner, "--state", "gone")
    assert status == 2
    assert "waiting, delivered, dead, skipped" in said
    assert command("retry", one["id"]) == (0, f"{one['id']} is tried again.\n")
    status, said = command("retry", one["id"], "dlv_0")
    assert status == 1
    assert "is waiting, no dead letter" in said
    assert "no delivery 'dlv_0'" in said
    (again,) = lease(agent)
    assert report(agent, again, "failed", error="still none", final=True).is_success
    assert command("drop", one["id"]) == (0, f"{one['id']} is dropped.\n")
    assert _gauge(site, "vouchgate_deliveries_dead") == before
    assert listed(agent)[0]["state"] == "skipped"
    status, said = command("list", "--owner", owner, "--json")
    assert '"state":"skipped"' in said


def _gauge(site: Site, name: str) -> float:
    lines = site.caller().get("/metrics").text.splitlines()
    (value,) = (line.split()[1] for line in lines if line.startswith(f"{name} "))
    return float(value)


def test_the_page_of_a_memory_shows_its_deliveries(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    place = to("<b>tower</b>\N{RIGHT-TO-LEFT OVERRIDE}")  # which only an owner lets pass
    approve(agent, site.reviewer(owner), "The clock strikes at noon", delivery=place)
    (one,) = lease(agent)
    assert report(agent, one, "failed", error="<script>", final=True).is_success
    _, secret = site.token(Role.REVIEWER, owner)
    with httpx.Client(base_url=site.running.url, timeout=120, trust_env=False) as client:
        Browser(client).sign_in(secret, Origin=site.running.url)
        answer = client.get(f"/review/memories/{one['memory_id']}")
        shown, text = is_page(answer, 200), answer.text
    assert "given up to be written to shelf, <b>tower</b>U+202E" in shown
    assert "failed once" in shown
    assert "“<script>”" in shown
    assert "&lt;b&gt;tower&lt;/b&gt;" in text
    assert submit(agent, claim("The clock strikes at noon"), 409).rule == "duplicate"
