"""Several people who must agree: who counts, when it is enough, what an objection does, and what is kept of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from tests.claims import NOW, examined, policy, submission_of
from tests.reviews import all_memories, assert_consistent, everything, history
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.standing_rulings import RulingDraft
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.review.answers import (
    AlreadyDecided,
    ApprovalRefused,
    Approved,
    ItemChanged,
    NotUndoable,
    Objected,
    Rejected,
    Undone,
    Voted,
)
from vouchgate.review.queue import ReviewQueue
from vouchgate.review.trust.standing_rulings import RulingRefused, StandingRulings
from vouchgate.review.vouching.owner_rules import parse
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.identity import persons, tokens
from vouchgate.storage.queue import votes
from vouchgate.storage.store import Store

RULES = """
@board = @bea @cleo
* 2
type:preference
type:procedure @board 2
agent:loader @cleo
"""


@dataclass
class Room:
    """Ann, Bea, Cleo and Dana rule for acme; the agent is Ann's."""

    store: Store
    people: dict[str, Principal]
    agent: Principal
    queue: ReviewQueue

    def propose(self, content: str, by: Principal | None = None, **claim: Any) -> str:
        one = examined(content, owner_id="acme", source=Source.AI_SYNTHESIS, **claim)
        answer = self.store.writer.submit(submission_of(one, principal_id=(by or self.agent).id)).result()
        assert isinstance(answer, Decided)
        assert answer.answer.queue_id is not None
        return answer.answer.queue_id

    def item(self, item_id: str) -> PendingMemory:
        found = self.queue.get_by_id(self.people["ann"], item_id)
        assert found is not None
        return found

    def approve(self, who: str, item_id: str, **more: Any) -> object:
        version = more.pop("version", self.item(item_id).version)
        return self.queue.approve(self.people[who], item_id, version=version, now=NOW, **more)

    def reject(self, who: str, item_id: str) -> object:
        version = self.item(item_id).version
        return self.queue.reject(self.people[who], item_id, version=version, reason="Not so.", now=NOW)

    def undo(self, who: str, item_id: str) -> object:
        version = self.item(item_id).version
        return self.queue.undo(self.people[who], item_id, version=version, now=NOW)

    def standing(self, item_id: str) -> list[str | None]:
        item = self.item(item_id)
        with self.store.read() as connection:
            cast = votes.of_item(connection, "acme", item_id)
        return [vote.name for vote in votes.standing(cast, item.version)]

    def actions(self) -> list[str]:
        return [str(entry.action) for entry in history(self.store, "acme")]


@pytest.fixture
def room(store: Store) -> Room:
    def token(role: Role, person: str | None, name: str = "t") -> Principal:
        return tokens.create(
            store, role=role, name=name, owners=["acme"], person=person, actor="test", now=NOW
        )[0]

    ids = {
        name: persons.create(store, name, actor="test", now=NOW).id for name in ("ann", "bea", "cleo", "dana")
    }
    people = {name: token(Role.REVIEWER, person) for name, person in ids.items()}
    people |= {"bea2": token(Role.REVIEWER, ids["bea"]), "nobody": token(Role.REVIEWER, None)}
    rules, faults = parse(RULES)
    assert faults == []
    agent = token(Role.AGENT, ids["ann"], "loader-of-old")
    return Room(store, people, agent, ReviewQueue(store, policy(), rules))


def code(answer: object) -> str:
    assert isinstance(answer, ApprovalRefused), answer
    return answer.code


def test_two_different_people_approve_and_the_proposers_person_is_none_of_them(room: Room) -> None:
    one = room.propose("The quay is eighty metres long.")
    before = everything(room.store)
    assert code(room.approve("ann", one)) == "four_eyes"
    assert code(room.approve("nobody", one)) == "four_eyes"
    edited = examined("The quay is ninety metres long.", owner_id="acme")
    assert code(room.approve("bea", one, edited=edited)) == "edit_votes"
    assert everything(room.store) == before
    first = room.approve("bea", one, note="measured")
    assert isinstance(first, Voted)
    assert (first.given, first.needed, first.item.status) == (1, 2, ReviewStatus.PENDING)
    for again in ("bea", "bea2"):  # one person, however many tokens
        answer = room.approve(again, one)
        assert isinstance(answer, Voted)
        assert answer.given == 1
    assert room.actions().count("review.voted") == 1
    done = room.approve("cleo", one)
    assert isinstance(done, Approved)
    assert done.memory.approved_by == room.people["cleo"].id
    assert room.actions()[-3:] == ["review.voted", "review.approved", "review.voted"]
    with room.store.read() as connection:
        cast = votes.of_memory(connection, "acme", done.memory.id)
    assert sorted((str(vote.name), vote.verdict, vote.version, vote.note or "") for vote in cast) == [
        ("bea", "approve", 1, "measured"),
        ("cleo", "approve", 1, ""),
    ]
    assert_consistent(room.store)


def test_the_first_objection_returns_it_and_a_second_word_ends_it(room: Room) -> None:
    one = room.propose("The crane turns to the left only.")
    assert isinstance(room.approve("bea", one), Voted)
    back = room.reject("dana", one)
    assert isinstance(back, Objected)
    assert (back.voided, back.needed, back.item.version) == (1, 2, 2)
    assert room.item(one).status is ReviewStatus.PENDING
    assert room.standing(one) == []
    assert isinstance(room.approve("cleo", one, version=1), ItemChanged)  # who saw it before the objection
    assert isinstance(room.approve("cleo", one), Voted)
    assert isinstance(room.approve("bea", one), Approved)
    assert isinstance(room.undo("dana", one), Undone)
    assert room.standing(one) == []  # a ruling that is taken back is voted on anew
    assert isinstance(room.reject("dana", one), Rejected)
    with room.store.read() as connection:
        cast = votes.of_item(connection, "acme", one)
    assert sorted((vote.version, str(vote.name), vote.verdict) for vote in cast) == [
        (1, "bea", "approve"),
        (1, "dana", "object"),
        (2, "bea", "approve"),
        (2, "cleo", "approve"),
    ]
    assert_consistent(room.store)


@pytest.mark.on("sqlite")
def test_a_vote_is_taken_back_by_who_gave_it(room: Room) -> None:
    one = room.propose("The lock holds four barges.")
    assert isinstance(room.approve("bea", one), Voted)
    assert not isinstance(room.undo("cleo", one), Undone)
    assert isinstance(room.undo("bea2", one), Undone)
    assert room.standing(one) == []
    assert not isinstance(room.undo("bea", one), Undone)
    assert isinstance(room.approve("cleo", one), Voted)
    assert isinstance(room.reject("cleo", one), Objected)  # who changes their mind objects
    assert room.actions()[-4:] == [
        "review.voted",
        "review.vote_withdrawn",
        "review.voted",
        "review.objected",
    ]


@pytest.mark.on("sqlite")
def test_who_is_asked_and_how_many_go_by_the_rules(room: Room) -> None:
    one = room.propose("Moor the ferry at the bow first.", memory_type="procedure")
    assert code(room.approve("dana", one)) == "not_asked"
    assert isinstance(room.approve("bea", one), Voted)
    assert isinstance(room.reject("dana", one), Objected)  # whoever is not asked may object
    easy = room.propose("I like the ferry in blue.", memory_type="preference")
    assert code(room.approve("ann", easy)) == "four_eyes"
    assert isinstance(room.approve("dana", easy), Approved)
    agent, _ = tokens.create(
        room.store, role=Role.AGENT, name="loader", owners=["acme"], actor="test", now=NOW
    )
    other = room.propose("The dock has nine bollards.", by=agent)
    assert code(room.approve("bea", other)) == "not_asked"
    assert room.queue.votes_of(room.item(other), NOW).required.asked == ("cleo",)
    assert isinstance(room.approve("cleo", other), Approved)


@pytest.mark.on("sqlite")
def test_all_say_the_same_of_what_it_conflicts_with(room: Room) -> None:
    first = room.propose("The pilot boat leaves the north pier at 7:00 every day.", memory_type="preference")
    assert isinstance(room.approve("dana", first), Approved)
    one = room.propose("The pilot boat leaves the north pier at 8:00 every day.", memory_type="preference")
    strict = parse("* 2")[0]
    room.queue = ReviewQueue(room.store, policy(), strict)
    assert code(room.approve("bea", one)) == "conflict_unresolved"
    assert isinstance(room.approve("bea", one, supersede=True), Voted)
    assert code(room.approve("cleo", one, supersede=False)) == "votes_differ"
    done = room.approve("cleo", one, supersede=True)
    assert isinstance(done, Approved)
    assert done.superseded is not None


def test_of_many_at_once_each_person_counts_once(room: Room) -> None:
    one = room.propose("The buoy is painted every spring.")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: room.approve(("bea", "bea2")[n % 2], one, version=1), range(12)))
    assert all(isinstance(answer, Voted) and answer.given == 1 for answer in answers)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: room.approve(("cleo", "dana")[n % 2], one, version=1), range(12)))
    assert sum(isinstance(answer, Approved) for answer in answers) == 1
    assert all(isinstance(answer, Approved | AlreadyDecided) for answer in answers)
    assert [memory.content for memory in all_memories(room.store)] == ["The buoy is painted every spring."]
    assert room.actions().count("review.voted") == 2


def test_the_last_act_may_be_a_vote_and_an_objection_is_not_passed_over(room: Room) -> None:
    bea, queue = room.people["bea"], room.queue
    ruled = room.propose("Prefers tea.", memory_type=MemoryType.PREFERENCE)
    voted = room.propose("The quay is eighty metres long.")
    assert isinstance(room.approve("bea", ruled), Approved)
    later, now = NOW + timedelta(seconds=1), NOW + timedelta(seconds=5)
    assert isinstance(queue.approve(bea, voted, version=1, now=later), Voted)
    assert [item.id for item in queue.last_act(bea, now).items] == [voted]
    assert isinstance(room.undo("bea", voted), Undone)
    assert [item.id for item in queue.last_act(bea, now).items] == [ruled]
    assert isinstance(room.approve("cleo", voted), Voted)
    assert isinstance(queue.reject(bea, voted, version=1, reason="Not so.", now=later), Objected)
    assert [item.id for item in queue.last_act(bea, now).items] == [voted]
    assert isinstance(room.undo("bea", voted), NotUndoable)
    assert queue.last_act(bea, NOW + timedelta(days=1)).items == ()
    # A clock that was put back makes nothing that was done before the last.
    before = room.propose("The crane lifts nine tonnes.")
    assert isinstance(queue.approve(bea, before, version=1, now=NOW - timedelta(minutes=5)), Voted)
    assert [item.id for item in queue.last_act(bea, now).items] == [before]


@pytest.mark.on("sqlite")
def test_nobody_alone_confirms_a_standing_ruling_that_stores_what_others_must_approve(room: Room) -> None:
    loader, _ = tokens.create(
        room.store, role=Role.AGENT, name="loader", owners=["acme"], actor="test", now=NOW
    )

    def confirm(who: str, agent: Principal = room.agent, verdict: str = "store", **terms: str) -> str:
        terms |= {"agent": agent.id, "template": "locker * has the key *"}
        draft = RulingDraft.model_validate({"verdict": verdict, "terms": terms})
        book = StandingRulings(room.store, policy(), parse(RULES + "risk:high 3\n")[0])
        made = book.confirm(room.people[who], "acme", draft, name="lockers", days=30, now=NOW)
        return made.code if isinstance(made, RulingRefused) else "made"

    before = everything(room.store)
    assert confirm("bea") == "ruling_votes"  # it may store a procedure
    assert confirm("bea", memory_type="decision") == "ruling_votes"
    assert confirm("bea", loader, memory_type="decision") == "not_asked"
    assert everything(room.store) == before
    assert confirm("bea", memory_type="preference") == "made"
    assert confirm("cleo", loader) == "made"
    assert confirm("dana", verdict="reject") == "made"
