"""Who rules in the stead of another: until when, for whom, and that no person counts twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.claims import NOW, examined, policy, submission_of
from tests.reviews import history
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Membership, Person, Principal, Role
from vouchgate.review.answers import ApprovalRefused, Approved, NotFound, Objected, Rejected, Voted
from vouchgate.review.queue import ReviewQueue
from vouchgate.review.vouching.owner_rules import NO_RULES, OwnerRules, parse
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.identity import memberships, persons, tokens
from vouchgate.storage.log.data.walk import Walk
from vouchgate.storage.queue import pending
from vouchgate.storage.store import Store

NAMES = ("ann", "bea", "cleo", "dana")


@dataclass
class Office:
    """Ann and Cleo review for acme; Bea and Dana have tokens, and no owner. The agent is Ann's."""

    store: Store
    people: dict[str, Person]
    secrets: dict[str, str]
    agent: Principal
    rules: OwnerRules = NO_RULES

    def membership(self, name: str, **more: Any) -> Membership:
        fields = {"owner_id": "acme", "member_id": self.people[name].id, "role": Role.REVIEWER, "since": NOW}
        return Membership.model_validate(fields | more)

    def lend(self, absent: str, name: str, days: float = 10) -> None:
        until = NOW + timedelta(days=days)
        wanted = self.membership(name, acts_for=self.people[absent].id, until=until)
        memberships.let_stand_in(self.store, wanted, actor="test")

    def end(self, name: str, **more: Any) -> bool:
        return memberships.end(self.store, self.membership(name, **more), actor="test", now=NOW)

    def principal(self, name: str, at: datetime = NOW) -> Principal:
        with self.store.read() as connection:
            found = tokens.authenticate(connection, self.secrets[name], at)
        assert found is not None
        return found

    def propose(self, content: str, by: Principal | None = None) -> str:
        one = examined(content, owner_id="acme", source=Source.AI_SYNTHESIS)
        answer = self.store.writer.submit(submission_of(one, principal_id=(by or self.agent).id)).result()
        assert isinstance(answer, Decided)
        return str(answer.answer.queue_id)

    def approve(self, who: str | Principal, item_id: str, at: datetime = NOW, **more: Any) -> object:
        principal = self.principal(who, at) if isinstance(who, str) else who
        queue = ReviewQueue(self.store, policy(), self.rules)
        with self.store.read() as connection:
            seen = pending.get(connection, item_id, owners=None)
        assert seen is not None
        return queue.approve(principal, item_id, version=seen.version, now=at, **more)

    def reject(self, who: str, item_id: str) -> object:
        queue = ReviewQueue(self.store, policy(), self.rules)
        return queue.reject(self.principal(who), item_id, version=1, reason="Not so.", now=NOW)

    def token(self, name: str, role: Role, *owners: str) -> tuple[Principal, str]:
        person = self.people[name].id
        return tokens.create(
            self.store, role=role, name="t", owners=owners, person=person, actor="test", now=NOW
        )


@pytest.fixture
def office(store: Store) -> Office:
    memberships.create_owner(store, "acme", actor="test", now=NOW)
    people = {name: persons.create(store, name, actor="test", now=NOW) for name in NAMES}
    made = Office(store, people, {}, Principal(id="", name="", role=Role.AGENT))
    for name in NAMES:
        made.secrets[name] = made.token(name, Role.REVIEWER)[1]
    for name in ("ann", "cleo"):
        assert memberships.grant(store, made.membership(name), actor="test")
    made.agent, _ = made.token("ann", Role.AGENT, "acme")
    return made


def walked(store: Store) -> list[str]:
    return [str(difference) for difference in Walk(store.read).differences()]


def code(answer: object) -> str:
    assert isinstance(answer, ApprovalRefused), answer
    return answer.code


def test_it_ends_by_itself_and_before_and_with_the_right_of_who_is_away(office: Office) -> None:
    stray = office.token("dana", Role.AGENT, "acme")[0]
    items = [
        office.propose(f"The {what} is painted.", stray) for what in ("door", "fence", "gate", "wall", "shed")
    ]
    assert office.principal("bea").owners == frozenset()
    office.lend("cleo", "bea")
    bea = office.principal("bea")
    late = NOW + timedelta(days=10)
    assert isinstance(office.approve(bea, items[0]), Approved)
    assert isinstance(office.approve(bea, items[1], late), NotFound)  # looked up before it ended
    assert office.principal("bea", late).owners == frozenset()
    ended: list[Callable[[], bool]] = [
        lambda: office.end("bea", acts_for=office.people["cleo"].id),
        lambda: office.end("cleo"),
    ]
    for end in ended:
        assert end()
        assert office.principal("bea").owners == frozenset()
        assert memberships.grant(office.store, office.membership("cleo"), actor="test") is (end is ended[1])
        assert isinstance(office.approve(bea, items[2]), NotFound)
        office.lend("cleo", "bea")
    assert persons.end(office.store, office.people["cleo"], actor="test", now=NOW)
    assert office.principal("bea").owners == frozenset()
    said = [entry.action for entry in history(office.store, "acme") if "stand_in" in entry.action]
    assert said == ["stand_in.granted", "stand_in.ended"] * 3


@pytest.mark.on("sqlite")
def test_what_is_not_ones_own_is_not_passed_on_and_has_an_end(office: Office) -> None:
    office.lend("cleo", "bea")
    with pytest.raises(ValueError, match="in their own right"):
        office.lend("bea", "dana")
    with pytest.raises(ValueError, match="for themselves"):
        office.lend("ann", "ann")
    for days in (0, -1, 90.1):
        with pytest.raises(ValueError, match="90 days"):
            office.lend("ann", "bea", days)
    assert office.principal("dana").owners == frozenset()
    wanted = office.membership("bea", owner_id="no", acts_for=office.people["ann"].id, until=NOW)
    with pytest.raises(ValueError, match="90 days"):
        memberships.let_stand_in(office.store, wanted, actor="test")


def test_four_eyes_count_both(office: Office) -> None:
    """Neither who stands in for the person behind the agent, nor who stands in and is behind it."""
    office.lend("ann", "bea")
    office.lend("cleo", "dana")
    one = office.propose("The hoist lifts a tonne.")
    own = office.propose("The crane lifts two tonnes.", office.token("dana", Role.AGENT, "acme")[0])
    assert code(office.approve("ann", one)) == "four_eyes"
    assert code(office.approve("bea", one)) == "four_eyes"
    assert code(office.approve("dana", own)) == "four_eyes"
    assert isinstance(office.approve("dana", one), Approved)
    assert isinstance(office.approve("bea", own), Approved)
    office.rules = parse("* 2")[0]
    two = office.propose("The winch holds nine metres of rope.")
    assert code(office.approve("bea", two)) == "four_eyes"


@pytest.mark.on("sqlite")
def test_who_is_alone_is_not_joined_by_who_stands_in_for_them(office: Office) -> None:
    assert office.end("cleo")
    office.lend("ann", "bea")
    assert isinstance(office.approve("ann", office.propose("The ramp is made of oak.")), Approved)


def test_rules_that_name_who_is_away_accept_who_stands_in_and_nobody_counts_twice(office: Office) -> None:
    office.rules, faults = parse("* @ann @cleo 2")
    assert faults == []
    agent = office.token("dana", Role.AGENT, "acme")[0]
    one = office.propose("The quay is eighty metres long.", agent)
    assert isinstance(office.approve("ann", one), Voted)
    assert isinstance(office.approve("bea", one), NotFound)
    office.lend("ann", "bea")
    office.lend("cleo", "bea")
    queue = ReviewQueue(office.store, policy(), office.rules)
    item = queue.get_by_id(office.principal("cleo"), one)
    assert item is not None
    assert set(queue.votes_of(item, NOW).required.stand_ins) == {("bea", "ann"), ("bea", "cleo")}
    done = office.approve("bea", one)  # in Cleo's stead, as Ann has voted
    assert isinstance(done, Approved)
    assert office.end("bea", acts_for=office.people["cleo"].id)
    two = office.propose("The pier is ninety metres long.", agent)
    for _ in range(2):
        given = office.approve("bea", two)  # one human, of whichever right
        assert isinstance(given, Voted)
        assert given.given == 1
    given = office.approve("ann", two)  # whose approval Bea's is
    assert isinstance(given, Voted)
    assert given.given == 1
    assert isinstance(office.approve("cleo", two), Approved)


def test_the_vote_of_who_may_not_rule_any_more_is_not_counted(office: Office) -> None:
    office.store.save_policy(policy(), NOW)
    office.rules = parse("* 2")[0]
    agent = office.token("dana", Role.AGENT, "acme")[0]
    office.lend("cleo", "bea", days=1)
    one, two = (office.propose(f"The {what} has two keys.", agent) for what in ("safe", "vault"))
    for item in (one, two):
        assert isinstance(office.approve("bea", item), Voted)
    later = NOW + timedelta(days=2)
    left = office.approve("ann", one, later)
    assert isinstance(left, Voted)
    assert left.given == 1
    assert isinstance(office.approve("cleo", one, later), Approved)
    assert walked(office.store) == []
    assert memberships.grant(office.store, office.membership("bea"), actor="test")
    assert office.end("bea", acts_for=office.people["cleo"].id)
    again = office.approve("bea", two)  # in her own right, in place of the other
    assert isinstance(again, Voted)
    assert again.given == 1
    assert walked(office.store) == []
    assert isinstance(office.reject("ann", two), Objected)
    three = office.propose("The chest has two keys.", agent)
    assert isinstance(office.approve("cleo", three), Voted)
    assert persons.end(office.store, office.people["cleo"], actor="test", now=NOW)
    assert isinstance(office.reject("ann", three), Rejected)  # no approval stands
