"""Signing in at a provider, as browsers do it, and as those do who should not get in."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey
from sqlalchemy import update

from tests.acceptance.site import Site, open_site, queue
from tests.identity_provider import (
    CLIENT,
    EC,
    SECRET,
    Provider,
    keyed_with_what_is_published,
    provider,
    signed_by,
    unsigned,
)
from tests.visiting import SIGN_IN, Browser, cookie, hidden, is_page
from tests.web import Answer
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Membership, Person, Role
from vouchgate.storage.identity import identities, memberships, persons, sessions, tokens
from vouchgate.storage.log import chain as log
from vouchgate.storage.tables.doors import SessionRow
from vouchgate.web.sign_in import ALL_ATTEMPTS_PER_MINUTE, ATTEMPTS_PER_MINUTE

OIDC = f"{SIGN_IN}/oidc"
SESSIONS = "/review/sessions"


@pytest.fixture(scope="module")
def idp() -> Iterator[Provider]:
    with provider() as opened:
        yield opened


@pytest.fixture(scope="module", params=["sqlite"])
def site(tmp_path_factory: pytest.TempPathFactory, idp: Provider) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("oidc")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        "VOUCHGATE_OIDC_ISSUER": idp.issuer,
        "VOUCHGATE_OIDC_CLIENT_ID": CLIENT,
        "VOUCHGATE_OIDC_CLIENT_SECRET": SECRET,
        "VOUCHGATE_OIDC_LABEL": "Example Login",
        "VOUCHGATE_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.1/32",
    }
    with open_site(f"sqlite:///{folder}/vouchgate.db", environment=environment, port=port) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _as_it_was(idp: Provider) -> None:
    """What the test before changed at the provider."""
    fresh = Provider(idp.web)
    for name in ("claims", "sign", "publishes", "describes", "lax", "codes"):
        setattr(idp, name, getattr(fresh, name))
    idp.open()


@dataclass
class Reviewing:
    """A person who rules for an owner of their own, and what they sign in with."""

    person: Person
    owner: str
    sub: str


@dataclass
class Door:
    """The way in, from a place of its own for each browser."""

    site: Site
    idp: Provider
    last: int = 0
    opened: list[Browser] = field(default_factory=list)

    def browser(self) -> Browser:
        self.last += 1
        client = self.site.caller()
        client.headers["X-Forwarded-For"] = f"198.51.100.{self.last}"
        client.headers["User-Agent"] = (
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
        )
        return Browser(client)

    def person(self, name: str = "ann") -> Reviewing:
        now, owner = datetime.now(UTC), self.site.owner(name)
        made = persons.create(self.site.store, owner, actor="test", now=now)
        memberships.create_owner(self.site.store, owner, actor="test", now=now)
        role = Membership(owner_id=owner, member_id=made.id, role=Role.REVIEWER, since=now)
        memberships.grant(self.site.store, role, actor="test")
        return Reviewing(made, owner, f"sub of {owner}")

    def linked(self, name: str = "ann") -> Reviewing:
        found = self.person(name)
        identities.link(
            self.site.store, found.person, self.idp.issuer, found.sub, actor="test", now=datetime.now(UTC)
        )
        return found

    def sent(self, browser: Browser, **asked: str) -> str:
        """Where the browser is sent to sign in."""
        answer = browser.client.get(OIDC, params=asked)
        assert answer.status_code == 303, answer.text
        kept = cookie(answer, "vg_sign_in")
        assert kept is not None
        assert (kept["httponly"], kept["samesite"], kept["path"]) == (True, "lax", OIDC)
        return answer.headers["location"]

    def back(self, browser: Browser, address: str) -> httpx.Response:
        assert address.startswith(f"{self.site.running.url}{OIDC}/back?")
        return browser.client.get(address)

    def through(self, browser: Browser, sub: str, **asked: str) -> httpx.Response:
        """What is answered to somebody who is back."""
        self.idp.sub = sub
        return self.back(browser, self.idp.answer_of(self.sent(browser, **asked)))

    def age(self, browser: Browser) -> None:
        """Has this browser's session begun so long ago that it cannot do what weighs more."""
        table = SessionRow.metadata.tables["session"]
        old = update(table).where(table.c.digest.startswith(sessions.session_id(browser.secret)))
        long_ago = datetime(2026, 1, 1, tzinfo=UTC)
        self.site.store.writer.run((), lambda c: c.execute(old.values(proved_at=long_ago))).result()


@pytest.fixture(scope="module")
def door(site: Site, idp: Provider) -> Door:
    return Door(site, idp)


def refused(answer: httpx.Response, browser: Browser, status: int, says: str) -> None:
    assert says in is_page(answer, status)
    assert not browser.is_in()


def test_somebody_who_is_linked_signs_in_and_acts_as_themselves(door: Door, site: Site) -> None:
    ann, browser = door.linked(), door.browser()
    page = browser.client.get(f"{SIGN_IN}?next=/review/history")
    assert "Sign in with Example Login" in is_page(page, 200)
    answer = door.through(browser, ann.sub, next="/review/history")
    assert (answer.status_code, answer.headers["location"]) == (303, "/review/history")
    assert cookie(answer, "vg_sign_in")["max-age"] == "0"  # type: ignore[index]
    assert browser.is_in()
    assert f"{ann.owner}" in browser.client.get("/review").text
    with site.store.read() as connection:
        found = sessions.find(connection, browser.secret, datetime.now(UTC))
        assert found is not None
        principal = found.principal
        assert (principal.person, principal.role, principal.owners) == (
            ann.person.id,
            Role.REVIEWER,
            frozenset({ann.owner}),
        )
        assert tokens.names(connection, {principal.id}) == {principal.id: ann.person.name}
    assert "Firefox on Linux this one signed in at the provider" in is_page(browser.client.get(SESSIONS), 200)


def test_what_is_asked_of_the_provider_is_new_each_time_and_leads_back_here_only(door: Door) -> None:
    browser = door.browser()
    asked = [parse_qs(urlsplit(door.sent(browser, next="https://evil.example")).query) for _ in range(2)]
    for name in ("state", "nonce", "code_challenge"):
        assert asked[0][name] != asked[1][name]
        assert len(asked[0][name][0]) == 43
    assert asked[0]["redirect_uri"] == [f"{door.site.running.url}{OIDC}/back"]
    assert "prompt" not in asked[0]
    answer = door.through(browser, door.linked().sub, next="https://evil.example/review")
    assert answer.headers["location"] == "/review"


def test_who_is_not_linked_is_told_what_to_ask_for_and_nothing_is_made(
    door: Door, site: Site, idp: Provider
) -> None:
    """Not even when their mail address or name is somebody's, or the provider calls them an admin."""
    ann, browser = door.linked(), door.browser()
    with site.store.read() as connection:
        before = (persons.listing(connection), tokens.listing(connection), identities.listing(connection))
    idp.claims = {"email": f"{ann.person.name}@example.org", "email_verified": True, "name": ann.person.name}
    idp.claims |= {"preferred_username": ann.person.name, "roles": ["admin"], "groups": ["admin", ann.owner]}
    answer = door.through(browser, "somebody else's $(sub)")
    refused(answer, browser, 403, "Not known here")
    command = f"vouchgate person link NAME --issuer {idp.issuer} --sub 'somebody else'\"'\"'s $(sub)'"
    assert command in is_page(answer, 403)
    with site.store.read() as connection:
        assert before == (
            persons.listing(connection),
            tokens.listing(connection),
            identities.listing(connection),
        )


def test_claims_grant_nothing(door: Door, site: Site, idp: Provider) -> None:
    ann, bea, browser = door.linked("ann"), door.linked("bea"), door.browser()
    idp.claims = {
        "roles": ["admin"],
        "role": "admin",
        "owners": [bea.owner],
        "email": f"{bea.person.name}@x.example",
    }
    assert door.through(browser, ann.sub).status_code == 303
    with site.store.read() as connection:
        found = sessions.find(connection, browser.secret, datetime.now(UTC))
    assert found is not None
    principal = found.principal
    assert (principal.role, principal.owners, principal.person) == (
        Role.REVIEWER,
        frozenset({ann.owner}),
        ann.person.id,
    )


def test_whoever_is_behind_an_agent_does_not_approve_its_claims_and_another_does(
    door: Door, site: Site
) -> None:
    ann, bea = door.linked("ann"), door.linked("bea")
    now = datetime.now(UTC)
    role = Membership(owner_id=ann.owner, member_id=bea.person.id, role=Role.REVIEWER, since=now)
    memberships.grant(site.store, role, actor="test")
    _, agent = tokens.create(
        site.store,
        role=Role.AGENT,
        name="a",
        owners=[ann.owner],
        person=ann.person.id,
        actor="test",
        now=now,
    )
    item = f"/review/items/{queue(site.caller(agent), 'The canteen serves soup on Thursdays')}"
    hers, theirs = door.browser(), door.browser()
    for who, browser in ((ann, hers), (bea, theirs)):
        door.through(browser, who.sub)
        browser.client.post("/review/owner", data={"csrf": browser.csrf(), "owner": ann.owner})
    assert "You are the person behind the agent" in is_page(hers.client.get(item), 200)
    refusal = hers.client.post(f"{item}/approve", data={"csrf": hers.csrf(), "version": "1"})
    assert refusal.status_code == 409, refusal.text
    approval = theirs.client.post(f"{item}/approve", data={"csrf": theirs.csrf(), "version": "1"})
    assert approval.status_code == 303, approval.text
    (event,) = (one for one in site.events(ann.owner) if one["action"] == Action.REVIEW_APPROVED)
    with site.store.read() as connection:
        assert tokens.names(connection, [event["actor"]]) == {event["actor"]: bea.person.name}


def test_who_is_not_signed_in_sees_and_ends_no_sessions(door: Door) -> None:
    browser = door.browser()
    answer = browser.client.get(SESSIONS)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{SIGN_IN}?next=%2Freview%2Fsessions")
    is_page(browser.client.post(SESSIONS, data={"end": "others"}), 401)
    door.through(browser, door.linked().sub)
    for csrf in ("", "0" * 64):
        is_page(browser.client.post(SESSIONS, data={"csrf": csrf, "end": "others"}), 403)


def test_unlinked_or_ended_nobody_is_signed_in_any_more(door: Door, site: Site, idp: Provider) -> None:
    now = datetime.now(UTC)
    ways: tuple[Callable[[Reviewing], bool], ...] = (
        lambda who: identities.unlink(site.store, idp.issuer, who.sub, actor="test", now=now),
        lambda who: persons.end(site.store, who.person, actor="test", now=now),
    )
    for end in ways:
        who, browser = door.linked(), door.browser()
        door.through(browser, who.sub)
        assert browser.is_in()
        assert end(who)
        assert not browser.is_in()
        refused(door.through(browser, who.sub), browser, 403, "Not known here")
    with site.store.read() as connection:
        entries = log.events(connection, frozenset({""}), after=None, limit=200)
    said = [one.action for one in entries]
    assert {Action.IDENTITY_LINKED, Action.IDENTITY_UNLINKED} <= set(said)


def test_a_state_is_of_one_browser_and_used_once(door: Door, idp: Provider) -> None:
    ann, browser, other = door.linked(), door.browser(), door.browser()
    idp.sub, idp.lax = ann.sub, True
    address = idp.answer_of(door.sent(browser))
    refused(door.back(other, address), other, 403, "not begun in this browser")
    door.sent(other)
    refused(door.back(other, address), other, 403, "not begun in this browser")
    kept = browser.client.cookies["vg_sign_in"]
    assert door.back(browser, address).status_code == 303
    assert browser.is_in()
    browser.client.cookies.clear()
    refused(door.back(browser, address), browser, 403, "not begun in this browser")
    browser.client.cookies.set("vg_sign_in", kept, domain="127.0.0.1", path=OIDC)
    refused(door.back(browser, address), browser, 410, "used already")


def test_strangers_who_begin_or_come_back_lock_nobody_out(door: Door) -> None:
    ann, stranger = door.linked(), door.browser()
    for _ in range(ALL_ATTEMPTS_PER_MINUTE + 10):
        state = parse_qs(urlsplit(door.sent(stranger)).query)["state"][0]
    came = [
        stranger.client.get(f"{OIDC}/back", params={"state": state, "code": "x"}).status_code
        for _ in range(ATTEMPTS_PER_MINUTE + 2)
    ]
    assert came == [403] * ATTEMPTS_PER_MINUTE + [429] * 2  # the provider is not asked without end
    browser = door.browser()
    assert door.through(browser, ann.sub).status_code == 303
    assert browser.is_in()


def test_a_code_of_another_sign_in_is_no_way_in(door: Door, idp: Provider) -> None:
    """A code that somebody else was given, brought back with the own state: its nonce and verifier are others."""
    idp.sub = door.linked().sub
    theirs, browser = door.browser(), door.browser()
    stolen = parse_qs(urlsplit(idp.answer_of(door.sent(theirs))).query)["code"][0]
    own = idp.answer_of(door.sent(browser))
    mixed = own.replace(parse_qs(urlsplit(own).query)["code"][0], stolen)
    refused(door.back(browser, mixed), browser, 403, "did not prove")


WRONG: dict[str, Callable[[Provider], None]] = {
    "nonce": lambda idp: idp.claims.update(nonce="x" * 43),
    "audience": lambda idp: idp.claims.update(aud="another client"),
    "issuer": lambda idp: idp.claims.update(iss="https://evil.example"),
    "expired": lambda idp: idp.claims.update(exp=1),
    "none": lambda idp: setattr(idp, "sign", unsigned),
    "hmac": lambda idp: setattr(idp, "sign", keyed_with_what_is_published),
    "key": lambda idp: setattr(idp, "sign", signed_by(RSAKey.generate_key(2048, {"kid": "other"}), "RS256")),
    "refused": lambda idp: idp.web.routes.update({"/token": Answer('{"error": "invalid_grant"}', 400)}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_answer_that_is_wrong_signs_nobody_in(door: Door, idp: Provider, wrong: str) -> None:
    ann, browser = door.linked(), door.browser()
    WRONG[wrong](idp)
    refused(door.through(browser, ann.sub), browser, 403, "did not prove who you are")


DOWN: dict[str, Answer] = {
    "broken": Answer("", 503),
    "huge": Answer("x" * 300_000),
    "page": Answer("<h1>Sign in</h1>"),
    "moved": Answer("", 302, {"Location": "https://example.org/token"}),
    "deep": Answer("[" * 100_000),
}


@pytest.mark.parametrize("down", DOWN)
def test_a_provider_that_does_not_answer_as_it_should_signs_nobody_in(
    door: Door, idp: Provider, down: str
) -> None:
    ann, browser = door.linked(), door.browser()
    idp.web.routes["/token"] = DOWN[down]
    status = 403 if down == "moved" else 503
    refused(door.through(browser, ann.sub), browser, status, "")
    idp.open()
    assert door.through(browser, ann.sub).status_code == 303


def test_an_answer_of_another_issuer_or_a_refusal_signs_nobody_in(door: Door, idp: Provider) -> None:
    idp.sub = door.linked().sub
    browser = door.browser()
    mixed_up = idp.answer_of(door.sent(browser), iss="https://evil.example")
    refused(door.back(browser, mixed_up), browser, 403, "did not prove")
    address = idp.answer_of(door.sent(browser), error="access_denied")
    refused(door.back(browser, address), browser, 403, "did not sign you in (access_denied)")
    address = idp.answer_of(door.sent(browser), error="<script>alert(1)</script>")
    refused(door.back(browser, address), browser, 403, "The provider did not sign you in.")
    assert door.back(browser, idp.answer_of(door.sent(browser), iss=idp.issuer)).status_code == 303


def test_other_sites_begin_no_sign_in(door: Door) -> None:
    browser = door.browser()
    answer = browser.client.get(OIDC, headers={"Sec-Fetch-Site": "cross-site"})
    refused(answer, browser, 403, "Another site sent this")


def test_what_weighs_more_asks_to_sign_in_again_and_comes_back(door: Door, site: Site, idp: Provider) -> None:
    ann, browser = door.linked(), door.browser()
    door.through(browser, ann.sub)
    door.age(browser)
    asked = "/review/publishers?publisher=example.com"
    fields = hidden(browser.client.get(asked)) | {"trust": "banned", "days": "90"}
    answer = browser.client.post("/review/publishers", data=fields)
    again = answer.headers["location"]
    assert (answer.status_code, urlsplit(again).path) == (303, SIGN_IN)
    page = browser.client.get(again)
    assert "Nothing is done yet" in is_page(page, 200)
    assert "banned" not in browser.client.get("/review/publishers").text.lower().split("<main")[1]

    # The provider is to ask them, and to say that it did.
    sent = door.sent(browser, next=asked, again="1")
    wanted = parse_qs(urlsplit(sent).query)
    assert (wanted["prompt"], wanted["max_age"]) == (["login"], ["900"])
    for said in (None, 1_700_000_000):
        idp.claims = {"auth_time": said}
        page = door.through(browser, ann.sub, next=asked, again="1")
        assert "did not prove" in is_page(page, 403)
        assert browser.client.post("/review/publishers", data=fields).headers["location"] == again
    idp.claims = {}
    answer = door.through(browser, ann.sub, next=asked, again="1")
    assert answer.headers["location"] == asked
    fields = hidden(browser.client.get(asked)) | {"trust": "banned", "days": "90"}
    assert browser.client.post("/review/publishers", data=fields).headers["location"] == "/review/publishers"


def test_a_token_proves_it_too_and_every_act_that_weighs_more_asks(door: Door, site: Site) -> None:
    ann, browser = door.linked(), door.browser()
    _, token = tokens.create(
        site.store, role=Role.REVIEWER, name="t", person=ann.person.id, actor="test", now=datetime.now(UTC)
    )
    assert browser.sign_in(token).status_code == 303
    door.age(browser)
    ruling = {"verdict": "reject", "agent": "0" * 16, "item": "itm_1", "name": "x", "days": "9"}
    for path, fields, back in (
        ("/review/standing-rulings", ruling, "/review/standing-rulings?item=itm_1&verdict=reject&term=agent"),
        ("/review/standing-rulings/srl_1", {"then": "keep"}, "/review/standing-rulings"),
        (SESSIONS, {"end": "others"}, SESSIONS),
    ):
        answer = browser.client.post(path, data={"csrf": browser.csrf(), **fields})
        assert answer.status_code == 303, answer.text
        asked = parse_qs(urlsplit(answer.headers["location"]).query)
        assert asked == {"again": ["1"], "next": [back]}
    wrong = browser.sign_in("vg_nonsense", answer.headers["location"])
    assert "Sign in again" in is_page(wrong, 403)
    assert browser.sign_in(token, answer.headers["location"]).headers["location"] == SESSIONS
    assert browser.client.post(SESSIONS, data={"csrf": browser.csrf(), "end": "others"}).status_code == 303


def test_sessions_are_listed_and_ended_whatever_began_them(door: Door, site: Site) -> None:
    ann, stranger = door.linked(), door.linked("bea")
    principal, token = tokens.create(
        site.store, role=Role.REVIEWER, name="t", person=ann.person.id, actor="test", now=datetime.now(UTC)
    )
    here, second, third, other = (door.browser() for _ in range(4))
    door.through(here, ann.sub)
    second.sign_in(token)
    third.follow(sessions.create_link(site.store, principal.id, actor="test", now=datetime.now(UTC)))
    door.through(other, stranger.sub)
    shown = is_page(here.client.get(SESSIONS), 200)
    assert [
        shown.count(f"signed in {way}") for way in ("at the provider", "with a token", "with a link")
    ] == [1, 1, 1]

    def end(which: str) -> httpx.Response:
        return here.client.post(SESSIONS, data={"csrf": here.csrf(), "end": which})

    for odd in (sessions.session_id(other.secret), sessions.session_id(here.secret), "0" * 16, "x", ""):
        assert "no such session" in is_page(end(odd), 404)
    assert end(sessions.session_id(second.secret)).status_code == 303
    assert [each.is_in() for each in (here, second, third, other)] == [True, False, True, True]
    assert end("others").status_code == 303
    assert [each.is_in() for each in (here, third, other)] == [True, False, True]
    with site.store.read() as connection:
        entries = log.events(connection, frozenset({""}), after=None, limit=500)
        found = sessions.find(connection, here.secret, datetime.now(UTC))
    assert found is not None
    me = found.principal
    ended = [one for one in entries if one.action is Action.SESSION_ENDED and one.subject_id == principal.id]
    assert [one.actor for one in ended] == [me.id, me.id]


def test_keys_are_fetched_again_for_a_new_one_but_not_for_each(door: Door, idp: Provider) -> None:
    """It was looked a moment ago: a key that is new since is not known for a minute, and nobody is asked."""
    browser, ann = door.browser(), door.linked()
    assert door.through(browser, ann.sub).status_code == 303
    before = idp.web.paths().count("GET /keys")
    idp.sign = signed_by(RSAKey.generate_key(2048, {"kid": "rsa-2"}), "RS256")
    for _ in range(3):
        assert door.through(browser, ann.sub).status_code == 403
    assert idp.web.paths().count("GET /keys") <= before + 1
    idp.sign = signed_by(EC, "ES256")
    assert door.through(browser, ann.sub).status_code == 303
