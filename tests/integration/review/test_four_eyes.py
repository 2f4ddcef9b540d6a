"""The person behind an agent does not vouch for what it proposed, by any act, and as things are when it is written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import pytest

from tests.claims import NOW, examined, policy, submission_of
from tests.reviews import everything, history, memory
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Membership, Person, Principal, Role
from vouchgate.ingest.claims.standing_rulings import RulingDraft, StandingRuling
from vouchgate.ingest.claims.trust import RulingVerdict
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus, SpotVerdict
from vouchgate.ingest.policy import Policy
from vouchgate.review.answers import (
    ApprovalRefused,
    Approved,
    NotFound,
    NotUndoable,
    Rejected,
    Retracted,
    Undone,
)
from vouchgate.review.queue import ReviewQueue
from vouchgate.review.trust import spot_checks
from vouchgate.review.trust.spot_checks import Drawn
from vouchgate.review.trust.standing_rulings import RulingRefused, StandingRulings
from vouchgate.review.vouching.confirming import confirm
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.identity import memberships, persons, tokens
from vouchgate.storage.queue import spot_checks as drawn
from vouchgate.storage.sql import BulkInsert
from vouchgate.storage.store import Store

Rule = Literal["off", "teams", "always"]


def under(rule: Rule) -> Policy:
    return policy().model_copy(update={"four_eyes": rule})


@dataclass
class Team:
    """Ann, whose agent proposes, and Bea, who rule for acme; and tokens of nobody by name."""

    store: Store
    ann: Principal
    bea: Principal
    agent: Principal
    unnamed: Principal
    stray: Principal  # an agent of nobody by name

    def queue(self, rule: Rule = "teams") -> ReviewQueue:
        return ReviewQueue(self.store, under(rule))

    def propose(self, content: str, by: Principal | None = None, source: Source = Source.AI_SYNTHESIS) -> str:
        """The id of the item that waits, or of the memory."""
        one = examined(content, owner_id="acme", source=source)
        answer = self.store.writer.submit(submission_of(one, principal_id=(by or self.agent).id)).result()
        assert isinstance(answer, Decided)
        return str(answer.answer.queue_id or answer.answer.memory_id)

    def item(self, item_id: str) -> PendingMemory:
        found = self.queue().get_by_id(self.bea, item_id)
        assert found is not None
        return found

    def approve(self, who: Principal, item_id: str, rule: Rule = "teams", **more: object) -> object:
        version = self.item(item_id).version
        return self.queue(rule).approve(who, item_id, version=version, now=NOW, **more)  # type: ignore[arg-type]


def person(store: Store, name: str) -> Person:
    return persons.create(store, name, actor="test", now=NOW)


def token(store: Store, role: Role, person_id: str | None) -> Principal:
    principal, _ = tokens.create(
        store, role=role, name="t", owners=["acme"], person=person_id, actor="test", now=NOW
    )
    return principal


@pytest.fixture
def team(store: Store) -> Team:
    ann, bea = person(store, "ann"), person(store, "bea")
    return Team(
        store,
        token(store, Role.REVIEWER, ann.id),
        token(store, Role.REVIEWER, bea.id),
        token(store, Role.AGENT, ann.id),
        token(store, Role.REVIEWER, None),
        token(store, Role.AGENT, None),
    )


def barred(answer: object) -> bool:
    return isinstance(answer, ApprovalRefused | NotUndoable) and answer.code == "four_eyes"


@pytest.mark.on("sqlite")
def test_nobody_vouches_for_what_their_own_agent_proposed(team: Team) -> None:
    one = team.propose("The boiler is drained in May.")
    before = everything(team.store)
    assert barred(team.approve(team.ann, one))
    assert barred(team.approve(team.ann, one, supersede=True))
    assert barred(
        team.approve(team.ann, one, edited=examined("The boiler is drained in June.", owner_id="acme"))
    )
    assert barred(team.approve(team.unnamed, one))  # who may be Ann
    assert everything(team.store) == before
    seen = team.item(one)
    assert team.queue().barred(team.ann, seen, NOW) is not None
    assert team.queue().barred(team.bea, seen, NOW) is None
    assert isinstance(team.approve(team.bea, one), Approved)


@pytest.mark.on("sqlite")
def test_a_removal_is_approved_by_somebody_else_too(team: Team) -> None:
    """Of every act the same is asked, and rejecting vouches for nothing."""
    one = team.propose("The lift is serviced in March.")
    rejected = team.queue().reject(team.ann, one, version=1, reason="It is not.", now=NOW)
    assert isinstance(rejected, Rejected)
    undone = team.queue().undo(team.ann, one, version=2, now=NOW)
    assert barred(undone)
    assert team.item(one).status is ReviewStatus.REJECTED
    assert isinstance(team.queue().undo(team.bea, one, version=2, now=NOW), Undone)
    assert isinstance(team.approve(team.bea, one), Approved)
    assert barred(team.queue().undo(team.ann, one, version=4, now=NOW))


@pytest.mark.on("sqlite")
def test_who_proposed_a_memory_neither_confirms_it_nor_calls_it_right(team: Team) -> None:
    approved = team.approve(team.bea, team.propose("The gauge reads bar."))
    assert isinstance(approved, Approved)
    edited = team.approve(
        team.bea,
        team.propose("The pump has four seals."),
        edited=examined("The pump has five seals.", owner_id="acme"),
    )
    assert isinstance(edited, Approved)
    own = team.propose("I like the valves in red.", source=Source.USER)
    rows = BulkInsert(drawn.TABLE, known_ok=True)
    for one in (approved.memory, edited.memory, memory(team.store, own)):
        assert barred(confirm(team.store, team.ann, one.id, under("teams"), NOW))
        assert isinstance(confirm(team.store, team.ann, one.id, under("off"), NOW), Memory)
        assert isinstance(confirm(team.store, team.bea, one.id, under("teams"), NOW), Memory)
        row = {"owner_id": "acme", "memory_id": one.id, "rule": "stated", "created_at": NOW}
        row |= dict.fromkeys(("verdict", "decided_at", "decided_by", "agent", "kind", "publisher"))
        team.store.writer.run(["acme"], lambda c, row=row: rows.write(c, [row])).result()  # type: ignore[misc]
        for verdict, allowed in (
            (SpotVerdict.RIGHT, False),
            (SpotVerdict.CANNOT_TELL, False),
            (SpotVerdict.WRONG, True),
        ):
            said = spot_checks.answer(team.store, team.ann, one.id, verdict, NOW, policy=under("teams"))
            assert isinstance(said, Drawn) is allowed
            assert barred(said) is not allowed
    retracted = team.queue().retract(team.ann, own, reason="no more", now=NOW)
    assert isinstance(retracted, Retracted)


@pytest.mark.on("sqlite")
def test_who_is_behind_an_agent_confirms_no_standing_ruling_that_stores_what_it_sends(team: Team) -> None:
    def confirm_ruling(who: Principal, rule: Rule = "teams") -> object:
        terms = {"agent": team.agent.id, "template": "locker * has the key *"}
        draft = RulingDraft.model_validate({"verdict": RulingVerdict.STORE, "terms": terms})
        made = StandingRulings(team.store, under(rule))
        return made.confirm(who, "acme", draft, name="lockers", days=30, now=NOW)

    before = everything(team.store)
    for who in (team.ann, team.unnamed):  # the latter may be Ann
        assert who.id != team.agent.id
        refused = confirm_ruling(who)
        assert isinstance(refused, RulingRefused)
        assert refused.code == "four_eyes"
    assert everything(team.store) == before
    made = confirm_ruling(team.bea)
    assert isinstance(made, StandingRuling)
    assert memory(team.store, team.propose("Locker 4 has the key K17.")).approved_by is None
    assert team.item(team.propose("Locker 5 has the key K19.", team.stray)).status is ReviewStatus.PENDING
    assert isinstance(confirm_ruling(team.ann, "off"), StandingRuling)


@pytest.mark.on("sqlite")
def test_who_is_alone_rules_until_there_is_somebody_else(store: Store) -> None:
    ann = person(store, "ann")
    team = Team(
        store,
        token(store, Role.REVIEWER, ann.id),
        token(store, Role.REVIEWER, ann.id),  # another of her own
        token(store, Role.AGENT, ann.id),
        token(store, Role.REVIEWER, None),
        token(store, Role.AGENT, None),
    )
    assert isinstance(team.approve(team.ann, team.propose("The crane lifts two tonnes.")), Approved)
    assert barred(team.approve(team.ann, team.propose("The hoist lifts a tonne."), "always"))
    bea = person(store, "bea")
    given = Membership(owner_id="acme", member_id=bea.id, role=Role.REVIEWER, since=NOW)
    assert memberships.grant(store, given, actor="test")
    assert barred(team.approve(team.ann, team.propose("The winch holds nine metres of rope.")))
    assert memberships.end(store, given, actor="test", now=NOW)
    assert isinstance(team.approve(team.ann, team.propose("The ramp is made of oak.")), Approved)
    ending = tokens.create(
        store,
        role=Role.REVIEWER,
        name="for a day",
        owners=["acme"],
        person=bea.id,
        expires_at=NOW + timedelta(days=1),
        actor="test",
        now=NOW,
    )[0]
    item = team.item(team.propose("The hatch opens inwards."))
    assert team.queue().barred(team.ann, item, NOW) is not None
    assert team.queue().barred(team.ann, item, NOW + timedelta(days=2)) is None
    assert tokens.revoke(store, ending.id, actor="test", now=NOW)
    assert team.queue().barred(team.ann, item, NOW) is None


@pytest.mark.on("sqlite")
def test_who_is_not_known_by_name_may_unless_that_must_be_known(team: Team) -> None:
    contents = ("The yard is swept on Mondays.", "The fence has two gates.", "The shed has no lock.")
    first, second, third = (team.propose(content, team.stray) for content in contents)
    assert isinstance(team.approve(team.ann, first), Approved)
    assert barred(team.approve(team.bea, second, "always"))
    assert barred(team.approve(team.unnamed, team.propose("The gate is green."), "always"))
    assert isinstance(team.approve(team.unnamed, third), Approved)
    own = team.propose("The path is of gravel.")
    assert isinstance(team.approve(team.ann, own, "off"), Approved)


def test_it_is_asked_as_things_are_when_the_act_is_written(team: Team) -> None:
    """Ann's principal and the item were read before it was known that the agent is hers; and of many at once nobody
    comes through."""
    one = team.propose("The tank holds ninety litres.", team.stray)
    seen = team.queue().barred(team.ann, team.item(one), NOW)
    assert seen is None
    tokens.assign(team.store, team.stray.id, str(team.ann.person), actor="test", now=NOW)
    stale = team.ann.model_copy(update={"person": None})
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: team.approve((team.ann, stale)[n % 2], one), range(16)))
    assert all(map(barred, answers))
    assert "review.approved" not in [entry.action for entry in history(team.store, "acme")]


@pytest.mark.on("sqlite")
def test_a_token_that_ended_while_its_act_was_under_way_does_nothing(team: Team) -> None:
    """An approval reads its sources first, for seconds, and its token may be revoked meanwhile, or its role taken."""
    one = team.propose("The mill grinds rye.")
    kept = team.propose("The weir is of oak.", source=Source.MANUAL)
    token(team.store, Role.REVIEWER, team.ann.person)  # by which Ann goes on ruling
    role = Membership(owner_id="acme", member_id=team.unnamed.id, role=Role.REVIEWER, since=NOW)
    memberships.end(team.store, role, actor="test", now=NOW)
    tokens.revoke(team.store, team.ann.id, actor="test", now=NOW)
    before = everything(team.store)
    reject = RulingDraft.model_validate({"verdict": "reject", "terms": {"memory_type": "fact"}})
    rulings = StandingRulings(team.store, under("teams"))
    for who in (team.ann, team.unnamed):
        assert isinstance(team.approve(who, one), NotFound)
        assert isinstance(team.queue().retract(who, kept, reason="no", now=NOW), NotFound)
        assert isinstance(rulings.confirm(who, "acme", reject, name="all", days=1, now=NOW), RulingRefused)
    assert everything(team.store) == before
    assert isinstance(team.approve(team.bea, one), Approved)
