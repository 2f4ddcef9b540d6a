"""The log as auditors read it, and tokens that end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.acceptance.site import Site, claim, is_problem, queue, store, submit
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.log import Action, LogEntry
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.identity import tokens

pytestmark = pytest.mark.on("postgresql")

LONG = (
    "The night train calls at nineteen stations, carries letters in the third car, serves warm bread from"
    " the second, and leaves its home town every evening at {} from the platform beside the tower"
)


def pages(caller: httpx.Client, limit: int, **more: Any) -> list[LogEntry]:
    """Every entry, page by page, until a page is empty."""
    found: list[LogEntry] = []
    after: str | None = None
    while True:
        params = {"limit": limit} | more | ({"after": after} if after else {})
        page = caller.get("/v1/audit/events", params=params)
        assert page.status_code == 200, page.text
        items = [LogEntry.model_validate(item) for item in page.json()["items"]]
        if not items:
            assert page.json()["next"] is None
            return found
        found += items
        after = page.json()["next"]


def test_every_act_is_logged_with_its_actor_and_time(site: Site, owner: str) -> None:
    start = datetime.now(UTC)
    agent_principal, agent_token = site.token(Role.AGENT, owner, sources=frozenset({Source.USER}))
    reviewer_principal, reviewer_token = site.token(Role.REVIEWER, owner)
    agent, reviewer = site.caller(agent_token), site.caller(reviewer_token)
    old = store(agent, LONG.format("21:15"))
    conflict = queue(agent, LONG.format("22:45"))
    waiting = queue(agent, "The night train has a new engine")
    queue(agent, "The night train has a new engine")
    submit(agent, claim("I think the night train is late"), 422)
    approved = reviewer.post(f"/v1/reviews/{conflict}/approve", json={"version": 1, "supersede": True}).json()
    reviewer.post(f"/v1/reviews/{waiting}/reject", json={"version": 1, "reason": "not so"})
    reviewer.delete(f"/v1/memories/{approved['memory']['id']}")
    entries = pages(site.auditor(owner), 200)
    acts = [(entry.action.value, entry.actor, entry.subject_id) for entry in entries]
    assert [action for action, _, _ in acts] == [
        *("claim.stored", "claim.queued", "claim.queued", "claim.repeated", "claim.blocked"),
        *("review.approved", "memory.superseded", "review.rejected", "memory.retracted"),
    ]
    assert {actor for _, actor, _ in acts[:5]} == {agent_principal.id}
    assert {actor for _, actor, _ in acts[5:]} == {reviewer_principal.id}
    assert [subject for _, _, subject in acts[5:8]] == [conflict, old, waiting]
    times = [entry.at for entry in entries]
    assert start <= times[0]
    assert times == sorted(times)
    assert times[-1] <= datetime.now(UTC)


def test_tokens_are_in_the_services_own_log(site: Site) -> None:
    principal, _ = site.token(Role.AGENT, any_owner=True)
    for _ in range(2):  # the second time changes nothing
        tokens.revoke(site.store, principal.id, actor="somebody", now=datetime.now(UTC))
    about = [entry for entry in pages(site.auditor(), 200) if entry.subject_id == principal.id]
    assert [(entry.owner_id, entry.action, entry.actor) for entry in about] == [
        ("", Action.TOKEN_CREATED, "test"),
        ("", Action.TOKEN_REVOKED, "somebody"),
    ]


def test_pages_are_gap_free_whatever_their_size(site: Site, owner: str) -> None:
    other = site.owner()
    agent = site.agent(owner, other)
    for number in range(7):
        for one in (owner, other):
            submit(agent, claim(f"Tram {number} has {number * 11} seats", user_id=one), 201)
    auditor = site.auditor(owner, other)
    whole = pages(auditor, 200)
    assert len(whole) == 14
    for size in (1, 3, 7):
        assert pages(auditor, size) == whole
    for one in (owner, other):
        chain = pages(auditor, 3, user_id=one)
        assert [entry.seq for entry in chain] == list(range(1, 8))
        assert [entry.previous for entry in chain] == ["0" * 64, *(entry.digest for entry in chain[:-1])]
        assert {entry.owner_id for entry in chain} == {one}


def test_whoever_follows_an_owner_gets_what_was_added(site: Site, owner: str) -> None:
    agent, auditor = site.agent(owner), site.auditor(owner)
    store(agent, "The ferry sails on Sundays")
    page = auditor.get("/v1/audit/events", params={"user_id": owner}).json()
    params = {"user_id": owner, "after": page["next"]}
    assert auditor.get("/v1/audit/events", params=params).json() == {"items": [], "next": None}
    store(agent, "The ferry has two decks")
    assert [item["seq"] for item in auditor.get("/v1/audit/events", params=params).json()["items"]] == [2]


def test_an_auditor_sees_its_owners_alone(site: Site, owner: str) -> None:
    other = site.owner()
    store(site.agent(owner), "The mill grinds rye")
    store(site.agent(other), "The mill grinds wheat")
    auditor = site.auditor(owner)
    assert {entry.owner_id for entry in pages(auditor, 5)} == {owner}
    is_problem(auditor.get("/v1/audit/events", params={"user_id": other}), 403, "owner_not_allowed")
    # A cursor of somebody else's gives nothing of theirs.
    crafted = auditor.get("/v1/audit/events", params={"after": f"0:{other}"}).json()["items"]
    assert {item["owner_id"] for item in crafted} <= {owner}
    everyone = {entry.owner_id for entry in pages(site.auditor(), 200)}
    assert {owner, other, ""} <= everyone


def test_an_auditor_reads_items_with_their_notes_and_who_ruled(site: Site, owner: str) -> None:
    other, agent, reviewer = site.owner(), site.agent(owner), site.reviewer(owner)
    names = ("oak", "elm", "ash", "fir")
    items = [queue(agent, f"The {name} beam carries the roof of the {name} barn") for name in names]
    rows = [{"action": "reject", "id": one, "version": 1, "reason": "who knows"} for one in items[:3]]
    assert reviewer.post("/v1/reviews/batch", json={"items": rows}).status_code == 200
    done = {"version": 1, "note": "I saw it"}
    assert reviewer.post(f"/v1/reviews/{items[3]}/approve", json=done).status_code == 200
    auditor, everybodys = site.auditor(owner), site.auditor()
    for caller, params in ((auditor, {}), (everybodys, {"user_id": owner})):
        listed = caller.get("/v1/reviews", params={"status": "approved"} | params).json()["items"]
        assert [one["note"] for one in listed] == ["I saw it"]
        assert caller.get(f"/v1/reviews/{items[0]}").json()["note"] == "who knows"
    is_problem(everybodys.get("/v1/reviews"), 422, "owner_needed")
    is_problem(site.auditor(other).get(f"/v1/reviews/{items[0]}"), 404, "not_found")
    is_problem(auditor.get("/v1/audit/reviews", params={"user_id": other}), 403, "owner_not_allowed")
    whole = auditor.get("/v1/audit/reviews").json()
    told = [(one["item_id"], one["what"], one["together"]) for one in whole["items"]]
    assert told == [*((one, "rejected", 3) for one in items[:3]), (items[3], "approved", 1)]
    first = auditor.get("/v1/audit/reviews", params={"limit": 1}).json()
    assert (first["items"], whole["next"]) == (whole["items"][:3], None)  # one act is on one page
    after = auditor.get("/v1/audit/reviews", params={"after": first["next"]}).json()
    assert after == {"items": whole["items"][3:], "next": None}
    params = {"user_id": owner, "to": whole["items"][0]["at"]}
    assert everybodys.get("/v1/audit/reviews", params=params).json()["items"] == []
    for wrong in (
        {"from": "0001-01-01T00:00+14:00"},
        {"from": "soon"},
        {"after": "1:a\x00"},
        {"reviewer": "\x00"},
    ):
        assert auditor.get("/v1/audit/reviews", params=wrong).status_code == 422, wrong


def test_only_auditors_and_admins_read_the_log(site: Site, owner: str) -> None:
    for caller in (site.agent(owner), site.reviewer(owner)):
        is_problem(caller.get("/v1/audit/events"), 403, "role_not_allowed")
    admin = site.caller(site.token(Role.ADMIN, any_owner=True)[1])
    assert admin.get("/v1/audit/events").status_code == 200


def test_the_log_holds_no_text(site: Site, owner: str) -> None:
    submit(site.agent(owner), claim("Zanzibar exports cloves"), 201)
    assert "Zanzibar" not in site.auditor(owner).get("/v1/audit/events").text


def requests_of(body: dict[str, Any]) -> list[tuple[str, str, dict[str, Any] | None]]:
    """Every kind of request of an agent."""
    return [
        ("POST", "/v1/claims", body),
        ("POST", "/v1/claims/check", body),
        ("POST", "/v1/claims/batch", {"claims": [body, None]}),
        ("POST", "/v1/claims/batch", {"claims": [None]}),
        ("GET", "/v1/memories", None),
        ("GET", "/v1/memories/mem_x", None),
        ("GET", "/v1/decisions/dec_x", None),
    ]


@pytest.mark.parametrize("number", range(7))
def test_a_revoked_token_ends_at_the_next_call(site: Site, owner: str, number: int) -> None:
    principal, token = site.token(Role.AGENT, owner)
    caller, key = site.caller(token), {"Idempotency-Key": "k"}
    method, path, body = requests_of(claim("The lighthouse is automatic", "ai_synthesis"))[number]
    assert caller.request(method, path, json=body, headers=key).status_code in (200, 202, 404)
    before = site.events(owner)
    assert tokens.revoke(site.store, principal.id, actor="test", now=datetime.now(UTC))
    for headers in (key, {}):  # a repeat under its key needs a token, too
        answer = caller.request(method, path, json=body, headers=headers)
        assert token not in str(is_problem(answer, 401, "token_needed"))
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert site.events(owner) == before


def test_an_expired_token_ends_at_its_time(site: Site, owner: str) -> None:
    ends = datetime.now(UTC) + timedelta(seconds=1.5)
    caller = site.caller(site.token(Role.AGENT, owner, expires_at=ends)[1])
    requests = requests_of(claim("The lighthouse was painted", "ai_synthesis"))
    for method, path, body in requests:
        assert caller.request(method, path, json=body).status_code in (200, 202, 404)
    before = site.events(owner)
    while datetime.now(UTC) <= ends:
        caller.get("/healthz")
    for method, path, body in requests:
        is_problem(caller.request(method, path, json=body), 401, "token_needed")
    assert site.events(owner) == before


def test_what_is_no_token_is_refused(site: Site, owner: str) -> None:
    _, token = site.token(Role.AGENT, owner)
    anonymous = site.caller()
    for presented in (
        None,
        "",
        "Bearer",
        token,
        f"Basic {token}",
        f"Bearer {token[:-1]}",
        f"Bearer {token}x",
        f"Bearer {token} {token}",
        f"Bearer {token.upper()}",
        "Bearer vg_0123456789abcdef_" + "a" * 43,
        "Bearer " + "x" * 10_000,
        "Bearer vg_ü",
    ):
        headers = httpx.Headers({} if presented is None else {b"Authorization": presented.encode()})
        is_problem(anonymous.get("/v1/memories", headers=headers), 401, "token_needed")
    for presented in (f"Bearer {token}", f"bearer {token}"):
        assert anonymous.get("/v1/memories", headers={"Authorization": presented}).status_code == 200
