"""A reviewer of several owners and an owner of several reviewers, over the API and at the pages."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.acceptance.site import Site, claim, is_problem, queue, submit
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Person, Role
from vouchgate.storage.identity import persons, sessions, tokens

pytestmark = pytest.mark.on("sqlite")


def person(site: Site) -> Person:
    name = f"ann-{uuid.uuid4().hex[:8]}"
    return persons.create(site.store, name, actor="test", now=datetime.now(UTC))


def token_of(site: Site, role: Role, who: Person, *owner_ids: str) -> tuple[str, str]:
    """The id and the text of a new token of this person."""
    principal, secret = tokens.create(
        site.store,
        role=role,
        name="t",
        owners=owner_ids,
        person=who.id,
        actor="test",
        now=datetime.now(UTC),
    )
    return principal.id, secret


def admin_of(site: Site, *owner_ids: str) -> httpx.Client:
    return site.caller(site.token(Role.ADMIN, *owner_ids, any_owner=not owner_ids)[1])


def test_an_admin_says_who_reviews_and_it_counts_at_once(site: Site) -> None:
    first, second = site.owner(), site.owner()
    items = {name: queue(site.agent(name), "The shed holds nine bicycles") for name in (first, second)}
    ann = person(site)
    reviewer = site.caller(token_of(site, Role.REVIEWER, ann, first)[1])
    assert [one["id"] for one in reviewer.get("/v1/reviews").json()["items"]] == [items[first]]
    is_problem(reviewer.get("/v1/reviews", params={"user_id": second}), 403, "owner_not_allowed")
    is_problem(reviewer.get(f"/v1/reviews/{items[second]}"), 404, "not_found")
    other, given = admin_of(site, first), {"member": ann.name, "role": "reviewer", "user_id": second}
    is_problem(other.post("/v1/members", json=given), 403, "owner_not_allowed")
    admin = admin_of(site)
    assert admin.post("/v1/members", json=given).json() == {"changed": True}
    assert admin.post("/v1/members", json=given).json() == {"changed": False}
    both = reviewer.get("/v1/reviews").json()["items"]
    assert {one["id"] for one in both} == set(items.values())
    reads = (
        "/v1/reviews",
        "/v1/gaps",
        "/v1/spot-checks",
        "/v1/spot-checks/records",
        "/v1/publishers",
        "/v1/members",
    )
    for path in reads:
        assert reviewer.get(path, params={"user_id": second}).status_code == 200, path
    narrowed = reviewer.get("/v1/reviews", params={"user_id": second}).json()["items"]
    assert [one["id"] for one in narrowed] == [items[second]]
    members = reviewer.get("/v1/members", params={"user_id": second}).json()["items"]
    assert (ann.id, ann.name, "reviewer") in {(one["member_id"], one["name"], one["role"]) for one in members}
    done = reviewer.post(f"/v1/reviews/{items[second]}/approve", json={"version": 1})
    assert done.status_code == 200, done.text
    params = {"member": ann.id, "role": "reviewer", "user_id": second}
    assert admin.delete("/v1/members", params=params).json() == {"changed": True}
    is_problem(reviewer.get(f"/v1/reviews/{items[second]}"), 404, "not_found")
    granted = [action for action in site.actions(second) if action.startswith("membership")]
    assert granted == ["membership.granted", "membership.ended"]


def test_a_reviewer_has_somebody_stand_in_for_themselves_only(site: Site, owner: str) -> None:
    item = queue(site.agent(owner), "The shed holds nine bicycles")
    ann, bea, admin = person(site), person(site), admin_of(site, owner)
    callers = {one.id: site.caller(token_of(site, Role.REVIEWER, one)[1]) for one in (ann, bea)}
    body: dict[str, str] = {"member": bea.name, "until": (datetime.now(UTC) + timedelta(days=5)).isoformat()}
    is_problem(admin.post("/v1/stand-ins", json=body | {"acts_for": ann.name}), 422, "stand_in_refused")
    assert admin.post("/v1/members", json={"member": ann.name, "role": "reviewer"}).status_code == 200
    is_problem(admin.post("/v1/stand-ins", json=body), 422, "member_refused")
    is_problem(
        callers[ann.id].post("/v1/stand-ins", json=body | {"acts_for": bea.name}), 403, "not_your_stead"
    )
    is_problem(callers[ann.id].post("/v1/stand-ins", json=body | {"until": "2020-01-01"}), 422)
    assert callers[ann.id].post("/v1/stand-ins", json=body).json() == {"changed": True}
    listed = admin.get("/v1/members").json()["items"]
    (stands_in,) = [one for one in listed if one["member_id"] == bea.id]
    assert (stands_in["acts_for"], stands_in["absent"]) == (ann.id, ann.name)
    assert callers[bea.id].post(f"/v1/reviews/{item}/approve", json={"version": 1}).status_code == 200
    params = {"member": bea.name, "acts_for": ann.name}
    assert callers[bea.id].delete("/v1/stand-ins", params=params).json() == {"changed": True}
    is_problem(callers[bea.id].get(f"/v1/reviews/{item}"), 404, "not_found")


def test_what_an_admin_cannot_give_is_refused_with_a_reason(site: Site, owner: str) -> None:
    ann, admin = person(site), admin_of(site)
    agent, _ = site.token(Role.AGENT, owner)
    body = {"member": ann.name, "role": "reviewer", "user_id": owner}
    for wrong, code in (
        ({"role": "admin"}, "invalid_request"),
        ({"member": "nobody-at-all"}, "member_refused"),
        ({"member": agent.id}, "member_refused"),
    ):
        is_problem(admin.post("/v1/members", json=body | wrong), 422, code)
    is_problem(admin.post("/v1/members", json=body | {"user_id": site.owner()}), 403, "owner_unknown")
    is_problem(admin.post("/v1/persons", json={"name": ann.name}), 409, "person_refused")
    is_problem(admin.post("/v1/persons", json={"name": "two words"}), 422, "invalid_request")
    assert ann.name in {one["name"] for one in admin.get("/v1/persons").json()["items"]}


def test_an_owner_that_nobody_made_is_not_made_by_a_claim(site: Site, owner: str) -> None:
    site.agent(owner)
    _, secret = tokens.create(
        site.store,
        role=Role.AGENT,
        name="t",
        any_owner=True,
        sources=[Source.USER],
        actor="test",
        now=datetime.now(UTC),
    )
    agent = site.caller(secret)
    assert submit(agent, claim("The shed is green", user_id=owner), 201).memory_id is not None
    nobody = site.owner()
    is_problem(agent.post("/v1/claims", json=claim("It is red", user_id=nobody)), 403, "owner_unknown")
    batch = [claim("It is red", user_id=nobody), claim("The shed has a door", user_id=owner)]
    first, second = agent.post("/v1/claims/batch", json={"claims": batch}).json()["results"]
    assert (first["code"], second["outcome"]) == ("owner_unknown", "stored")
    document = {"content": "The shed is red.", "user_id": nobody}
    is_problem(agent.post("/v1/documents", json=document), 403, "owner_unknown")
    assert site.events(nobody) == []


def test_the_pages_show_one_owner_at_a_time_and_lead_to_the_other(site: Site) -> None:
    first, second = sorted((site.owner(), site.owner()))
    items = {name: queue(site.agent(name), f"The shed of {name} is dry") for name in (first, second)}
    ann = person(site)
    _, secret = token_of(site, Role.REVIEWER, ann, first, second)
    session = sessions.start(site.store, secret, now=datetime.now(UTC))
    assert isinstance(session, str)
    with httpx.Client(
        base_url=site.running.url, cookies={"vg_session": session}, trust_env=False, follow_redirects=True
    ) as pages:
        page = pages.get("/review").text
        assert (items[first] in page, items[second] in page) == (True, False)
        csrf = re.search(r'data-csrf="([0-9a-f]+)"', page)
        assert csrf is not None
        page = pages.post("/review/owner", data={"csrf": csrf[1], "owner": second}).text
        assert (items[first] in page, items[second] in page) == (False, True)
        assert pages.post("/review/owner", data={"csrf": csrf[1], "owner": site.owner()}).status_code == 404
        led = pages.get(f"/review/items/{items[first]}?q=dry")
        assert (led.status_code, led.url.query) == (200, b"q=dry")
        page = pages.get("/review").text
        assert (items[first] in page, items[second] in page) == (True, False)
    single = site.caller(token_of(site, Role.REVIEWER, person(site))[1])
    assert single.get("/v1/reviews").json()["items"] == []
