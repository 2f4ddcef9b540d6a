"""An owner trusts or bans a publisher: for their own memories, for a time, on the record, and never an agent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path

import pytest

from tests.claims import NOW
from tests.claims import policy as built_in
from tests.desk import Desk, run
from tests.rechecking import Bench, bench
from tests.reviews import everything, history, memory, queue_of, reviewer
from tests.visiting import is_page
from tests.web import Answer, WebServer, web_server
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.decision import Label, ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Membership, Principal, Role
from vouchgate.ingest.claims.trust import OwnPublishers, PublisherTrust, Trust
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.policy import Policy
from vouchgate.review.answers import ApprovalRefused, Approved
from vouchgate.review.trust import publishers
from vouchgate.review.trust.publishers import MOST, TooManyPublishers
from vouchgate.service import Service, open_service
from vouchgate.settings import load_settings
from vouchgate.storage.identity import memberships, tokens
from vouchgate.storage.store import Store

SITE = "127.0.0.1"
SAYS = "<h1>Broker</h1> The broker of the hosted plan takes 40 connections of every tenant at once."
CLAIM = "The broker of the hosted plan takes 40 connections of every tenant at once, see {}/limits"
DAY = timedelta(days=1)


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A site that nobody listed."""
    with web_server({"/limits": Answer(SAYS)}) as server:
        yield server


@pytest.fixture
def here(store: Store, tmp_path: Path) -> Iterator[Bench]:
    """A bench whose policy stores nothing on the word of an unlisted page alone."""
    careful = Policy.model_validate(built_in().model_dump() | {"unlisted_pages": "queue"})
    with bench(store, tmp_path, careful) as made:
        yield made


def decide(here: Bench, trust: Trust, *, days: int = 30) -> PublisherTrust:
    """Ann's word on the site, as the bench's clock stands."""
    said = publishers.decide(
        here.store, reviewer(), "ann", SITE, trust, days=days, policy=built_in(), now=here.clock()
    )
    assert isinstance(said, PublisherTrust)
    return said


@pytest.mark.on("sqlite")
def test_who_was_let_go_meanwhile_trusts_nobody(store: Store) -> None:
    memberships.create_owner(store, "ann", actor="test", now=NOW)
    who, _ = tokens.create(store, role=Role.REVIEWER, name="r", owners=["ann"], actor="test", now=NOW)
    said = publishers.decide(store, who, "ann", SITE, Trust.BANNED, days=30, policy=built_in(), now=NOW)
    assert isinstance(said, PublisherTrust)
    role = Membership(owner_id="ann", member_id=who.id, role=Role.REVIEWER, since=NOW)
    assert memberships.end(store, role, actor="test", now=NOW)
    before = everything(store)
    with pytest.raises(PermissionError):
        publishers.decide(store, who, "ann", SITE, Trust.TRUSTED, days=30, policy=built_in(), now=NOW)
    with pytest.raises(PermissionError):
        publishers.clear(store, who, "ann", SITE, NOW)
    assert everything(store) == before


@pytest.mark.on("sqlite")
def test_where_nobody_vouches_alone_nobody_trusts_a_publisher(store: Store) -> None:
    always = Policy.model_validate(built_in().model_dump() | {"four_eyes": "always"})
    memberships.create_owner(store, "ann", actor="test", now=NOW)
    before = everything(store)
    decide = partial(publishers.decide, store, reviewer(), "ann", SITE, days=30, policy=always, now=NOW)
    refused = decide(Trust.TRUSTED)
    assert isinstance(refused, ApprovalRefused)
    assert (refused.code, everything(store)) == ("four_eyes", before)
    assert isinstance(decide(Trust.BANNED), PublisherTrust)


def same_again(here: Bench, answer: ValidationResult) -> bool:
    """Whether the decision follows from its evidence alone."""
    return replay(answer, here.policy, HedgeDetector(here.policy.lexicon)) == ()


def test_a_trusted_publisher_counts_as_listed_for_its_owner_until_the_end(
    here: Bench, web: WebServer
) -> None:
    before = here.send(CLAIM.format(web.url))
    assert (before.memory_id, [f.code for f in before.findings if f.check == "statements"]) == (
        None,
        ["unlisted"],
    )
    assert "publishers" not in before.evidence.model_dump(mode="json")
    queue_of(here.store).reject(reviewer(), str(before.queue_id), version=1, reason="no", now=NOW)
    decide(here, Trust.TRUSTED)
    assert here.send(CLAIM.format(web.url), owner_id="bob").memory_id is None
    stored = here.send(CLAIM.format(web.url))
    assert (stored.rule, stored.evidence.label) == ("stated", Label.INFERENCE)  # it is not official by that
    assert stored.evidence.publishers == OwnPublishers(trusted=(SITE,))
    assert stored.policy_digest == before.policy_digest == here.policy.digest
    assert same_again(here, before)
    assert same_again(here, stored)
    forged = stored.evidence.model_copy(update={"publishers": OwnPublishers()})
    assert not same_again(here, stored.model_copy(update={"evidence": forged}))
    here.clock.now = NOW + 30 * DAY
    late = here.send(CLAIM.format(web.url).replace("every tenant", "each customer"))
    assert late.memory_id is None
    assert late.evidence.publishers == OwnPublishers()


@pytest.mark.on("sqlite")
def test_a_banned_publisher_vouches_for_nothing_and_its_memories_are_stale(
    store: Store, tmp_path: Path, web: WebServer
) -> None:
    with bench(store, tmp_path) as here:
        stored = here.send(CLAIM.format(web.url))
        assert stored.rule == "stated"
        decide(here, Trust.BANNED, days=300)
        other = here.send(
            "The hosted plan takes 40 connections of every tenant.", cites=(f"{web.url}/limits",)
        )
        assert (other.rule, other.memory_id) == ("refuted", None)
        assert "citation_banned" in {finding.code for finding in other.findings}
        assert other.evidence.publishers == OwnPublishers(banned=(SITE,))
        assert same_again(here, other)
        unread = here.send("It takes 50 at once.", cites=(f"{web.url}/gone",))
        assert "citation_banned" in {finding.code for finding in unread.findings}
        assert here.send(CLAIM.format(web.url), owner_id="bob").rule == "stated"
        weeks = NOW + 20 * DAY
        came = here.work(weeks)
        assert (came.stale, came.same) == (1, 1)  # Ann's, and Bob's
        assert "banned" in str(memory(store, str(stored.memory_id), weeks).stale_reason)
        assert publishers.clear(store, reviewer(), "ann", SITE, weeks)
        assert not publishers.clear(store, reviewer(), "ann", SITE, weeks)
        assert here.work(weeks + 20 * DAY).fresh == 1


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("trusted", [False, True])
def test_a_page_that_comes_back_promotes_only_where_its_publisher_counts(
    store: Store, tmp_path: Path, web: WebServer, trusted: bool
) -> None:
    with bench(store, tmp_path) as here:
        web.routes["/limits"] = Answer("busy", 503)
        sent = here.send(CLAIM.format(web.url))
        assert sent.rule == "citation_unknown"
        if trusted:
            decide(here, Trust.TRUSTED)
        web.routes["/limits"] = Answer(SAYS)
        came = here.work(NOW + timedelta(seconds=30))
        assert (came.promoted, came.over) == (int(trusted), int(not trusted))
        item = here.item(sent.queue_id)
        assert item.status is (ReviewStatus.PROMOTED if trusted else ReviewStatus.PENDING)


def wiki(modified: datetime | None) -> Answer:
    """A page of a site where anybody changes any page, with when that was, as its software says."""
    said = {} if modified is None else {"Last-Modified": format_datetime(modified, usegmt=True)}
    return Answer(SAYS, headers=said)


@pytest.fixture
def beside_a_wiki(store: Store, tmp_path: Path) -> Iterator[Bench]:
    policy = built_in().model_dump() | {"unlisted_pages": "queue"}
    policy["reputation"]["sites"]["secondary"] += (SITE,)
    policy["reputation"]["visitors"]["edited"] += (SITE,)
    with bench(store, tmp_path, Policy.model_validate(policy)) as made:
        yield made


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    ("modified", "rule"),
    [
        (NOW - 8 * DAY, "stated"),
        (NOW - 6 * DAY, "unlisted"),
        (None, "unlisted"),
    ],
)
def test_a_page_that_anybody_changes_counts_when_it_has_stood_for_a_week(
    beside_a_wiki: Bench, web: WebServer, modified: datetime | None, rule: str
) -> None:
    here = beside_a_wiki
    web.routes["/limits"] = wiki(modified)
    sent = here.send(CLAIM.format(web.url))
    codes = {finding.code for finding in sent.findings if finding.check == "statements"}
    assert (sent.memory_id is not None, codes) == (rule == "stated", {rule})
    assert same_again(here, sent)


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(("modified", "promoted"), [(NOW - 8 * DAY, True), (NOW, False)])
def test_what_was_changed_after_a_claim_came_never_promotes_it(
    beside_a_wiki: Bench, web: WebServer, modified: datetime, promoted: bool
) -> None:
    here = beside_a_wiki
    web.routes["/limits"] = Answer("busy", 503)
    sent = here.send(CLAIM.format(web.url))
    assert sent.rule == "citation_unknown"
    web.routes["/limits"] = wiki(modified)
    came = here.work(NOW + 10 * DAY)
    assert (came.promoted, came.over) == (int(promoted), int(not promoted))


def test_what_is_said_is_listed_logged_replaced_and_forgotten_when_it_is_over(here: Bench) -> None:
    store = here.store
    decide(here, Trust.TRUSTED, days=1)
    said = decide(here, Trust.BANNED, days=2)
    assert publishers.listing(store, reviewer(), NOW) == [said]
    assert (said.until, said.decided_by) == (NOW + 2 * DAY, reviewer().id)
    here.clock.now = NOW + 2 * DAY
    assert publishers.listing(store, reviewer(), here.clock()) == []
    publishers.clear(store, reviewer(), "ann", SITE, here.clock())
    logged = [(entry.action, entry.subject_id, entry.actor) for entry in history(store)]
    actions = (Action.PUBLISHER_TRUSTED, Action.PUBLISHER_BANNED, Action.PUBLISHER_CLEARED)
    assert logged == [(action, SITE, reviewer().id) for action in actions]


@pytest.mark.on("sqlite")
def test_there_is_a_limit_to_them(store: Store) -> None:
    for number in range(MOST + 1):
        name = f"site{number}.example"
        said = publishers.decide(
            store, reviewer(), "ann", name, Trust.TRUSTED, days=1, policy=built_in(), now=NOW
        )
        assert isinstance(said, TooManyPublishers) is (number == MOST)
    assert len(publishers.listing(store, reviewer(), NOW)) == MOST == len(history(store))
    again = publishers.decide(
        store, reviewer(), "ann", "site7.example", Trust.BANNED, days=1, policy=built_in(), now=NOW
    )
    assert isinstance(again, PublisherTrust)


@pytest.mark.on("sqlite")
def test_nobody_but_the_owner_decides(here: Bench) -> None:
    decide(here, Trust.TRUSTED)
    agent = Principal(id="a", name="a", role=Role.AGENT, owners=frozenset({"ann"}))
    others = [
        agent,
        reviewer("bob"),
        agent.model_copy(update={"role": Role.AUDITOR}),
        agent.model_copy(update={"role": Role.ADMIN, "any_owner": True}),
        agent.model_copy(update={"role": Role.REVIEWER, "any_owner": True}),
    ]
    before, detector = history(here.store), HedgeDetector(here.policy.lexicon)
    for who in others:
        assert publishers.listing(here.store, who, NOW) == []
        with pytest.raises(PermissionError):
            publishers.decide(here.store, who, "ann", SITE, Trust.BANNED, days=1, policy=built_in(), now=NOW)
        with pytest.raises(PermissionError):
            publishers.clear(here.store, who, "ann", SITE, NOW)
        with pytest.raises(PermissionError):
            publishers.preview(here.store, who, "ann", SITE, policy=here.policy, detector=detector, now=NOW)
    assert history(here.store) == before


def test_a_preview_tells_what_a_word_would_bear_on(here: Bench, web: WebServer) -> None:
    web.routes["/tea"] = Answer("<h1>Tea</h1> The kitchen of the second floor has green tea on Mondays.")
    here.send(CLAIM.format(web.url))
    tea = here.send(f"The kitchen of the second floor has green tea on Mondays, see {web.url}/tea")
    here.send("The hosted plan has 99 brokers.", cites=(f"{web.url}/limits",))
    here.send("The hosted plan has no broker at all.")
    approved = queue_of(here.store).approve(reviewer(), str(tea.queue_id), version=1, now=NOW)
    assert isinstance(approved, Approved)
    detector = HedgeDetector(here.policy.lexicon)
    seen = publishers.preview(
        here.store, reviewer(), "ann", SITE, policy=here.policy, detector=detector, now=NOW
    )
    assert (seen.waiting, seen.would_store, seen.memories) == (2, 1, 1)
    # Of three that cite it, two would be stored; but this bench looks for nothing that would contradict them.
    lacks = {"nobody looked for memories that contradict it": 2}
    assert (seen.last, seen.trusted.decisions, seen.trusted.unknown) == (4, 3, lacks)
    assert (seen.trusted.moved, seen.banned.moved, seen.banned.other_rule) == (0, 0, 3)


@pytest.fixture
def service(database_url: str) -> Iterator[Service]:
    """A service that looks nothing up."""
    with open_service(load_settings({}, database_url=database_url, offline=True)) as opened:
        yield opened


@pytest.mark.on("sqlite")
def test_the_page_previews_decides_and_takes_back(service: Service) -> None:
    async def work(desk: Desk) -> None:
        shown = is_page(await desk.get("/review/publishers?publisher=Example.com"), 200)
        assert "0 waiting claims cite it" in shown
        answer = await desk.post("/review/publishers", publisher="example.com", trust="trusted", days="90")
        assert (answer.status_code, answer.headers["location"]) == (303, "/review/publishers")
        assert "example.com trusted since" in is_page(await desk.get("/review/publishers"), 200)
        await desk.post("/review/publishers", publisher="example.com", trust="none")
        assert "example.com" not in is_page(await desk.get("/review/publishers"), 200).replace(
            "such as example.com", ""
        )
        for name in ("", "docs.example.com", "com", "<b>", "a" * 600 + ".com", "github.com/alice/x"):
            is_page(await desk.post("/review/publishers", publisher=name, trust="banned", days="90"), 422)
        for trust, days in (("maybe", "90"), ("banned", "91"), ("banned", "")):
            fields = {"publisher": "example.com", "trust": trust, "days": days}
            is_page(await desk.post("/review/publishers", **fields), 422)

    run(service, "ann", work)
