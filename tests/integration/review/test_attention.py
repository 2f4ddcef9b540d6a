"""What reviewers say about items without ruling on them, what a query finds, and letting go, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, Update, update

from tests.claims import NOW, examined, submission_of
from tests.reviews import assert_consistent, history, queue_of, reviewer, waiting
from vouchgate.ingest.citations.detection import detect_citations
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.source import Unreachable
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.review.answers import AlreadyDecided, ItemChanged, NotFound, Undone
from vouchgate.review.attending import attention, views
from vouchgate.review.attending.attention import Attended, LetGo, NotPossible
from vouchgate.storage.identity import persons, tokens
from vouchgate.storage.queue import pending
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.storage.queue.query import QueryError, parse
from vouchgate.storage.queue.views import MOST_VIEWS, SavedView
from vouchgate.storage.store import Store

RITA = reviewer()
SOON = NOW + timedelta(days=2)


def found(store: Store, typed: str, *, now: Any = NOW, **wanted: Any) -> set[str]:
    """The texts of the items that a query finds."""
    query = parse(typed, now)
    items = queue_of(store).search(RITA, QueueFilter(query=query, now=now, **wanted))
    return {item.content for item in items}


def person(
    store: Store, name: str, owner: str = "ann", role: Role = Role.REVIEWER, person: str | None = None
) -> Principal:
    """A principal with a token that holds."""
    return tokens.create(store, role=role, name=name, owners=[owner], person=person, actor="test", now=NOW)[0]


def item(store: Store, item_id: str) -> PendingMemory:
    """As it stands."""
    one = queue_of(store).get_by_id(RITA, item_id)
    assert one is not None
    return one


def _execute(statement: Update, connection: Connection) -> None:
    connection.execute(statement)


def test_a_query_finds_by_words_sender_reason_source_and_time(store: Store) -> None:
    bea = person(store, "Bea's importer", role=Role.AGENT)
    texts = {
        "bowls": "Three bowls were returned in May, see ADR-12.",
        "kiln": "Perhaps the kiln of https://kiln.example/manual reaches 1200 degrees.",
        "sieve": "The sieve has 100 % steel wire.",
    }
    made = {name: waiting(store, text) for name, text in texts.items()}
    change = update(pending.TABLE).where(pending.TABLE.c.id == made["kiln"].id).values(rule="technical_hedge")
    store.writer.run(["ann"], partial(_execute, change)).result()
    one = submission_of(examined("Returned jugs go to the shelf of Bea.", source=made["kiln"].source))
    store.writer.submit(replace(one, principal_id=bea.id)).result()
    jugs = "Returned jugs go to the shelf of Bea."
    second = "The saw is oiled in June, see ADR-3, adr 12 and https://second.example/a."
    cited = tuple(Unreachable(citation=c, code="timeout", detail="Late.") for c in detect_citations(second))
    sent = replace(examined(second, source=Source.AI_SYNTHESIS), readings=cited)
    store.writer.submit(submission_of(sent)).result()
    for typed, names in {
        "returned bowl": {texts["bowls"]},
        "return": {texts["bowls"], jugs},
        '"were returned"': {texts["bowls"]},
        "100": {texts["sieve"]},
        "agent:bea's\timporter": set(),
        'agent:"bea\'s importer"': {jugs},
        f"agent:{bea.id} shelf": {jugs},
        "reason:technical-hedge": {texts["kiln"]},
        "source:kiln.example": {texts["kiln"]},
        "source:100%": set(),
        "source:ADR-0012": {second},
        "source:ADR-12": {texts["bowls"], second},
        "source:second.example": {second},
        "after:1d": {*texts.values(), jugs, second},
        "before:1d": set(),
        "before:2026-05-05 steel": {texts["sieve"]},
        "assigned:nobody is:imported": set(),
    }.items():
        assert found(store, typed) == names, typed
    # Pages of a search by words go on where the last ended.
    first = queue_of(store).search(RITA, QueueFilter(query=parse("return", NOW), limit=1, now=NOW))
    rest = queue_of(store).search(
        RITA, QueueFilter(query=parse("return", NOW), after=first[0].id, limit=5, now=NOW)
    )
    assert {first[0].content, *(one.content for one in rest)} == {texts["bowls"], jugs}
    assert queue_of(store).search(reviewer("bob"), QueueFilter(query=parse("return", NOW), now=NOW)) == []


def test_a_snoozed_item_is_back_by_itself_and_keeps_place_and_end(store: Store) -> None:
    made = waiting(store, "The door is oak.")
    queue = queue_of(store)
    for until in (NOW, NOW - timedelta(days=1), made.expires_at):
        answer = attention.snooze(queue, RITA, made.id, until=until, now=NOW)
        assert isinstance(answer, NotPossible)
    answer = attention.snooze(queue, RITA, made.id, until=SOON, now=NOW)
    assert isinstance(answer, Attended)
    assert (answer.item.version, answer.item.expires_at) == (made.version, made.expires_at)
    assert found(store, "") == set()
    assert found(store, "is:snoozed") == found(store, "", away=True) == {made.content}
    assert found(store, "", now=SOON) == {made.content}
    assert found(store, "is:snoozed", now=SOON) == set()
    assert_consistent(store)  # it counts as before
    assert isinstance(attention.resume(queue, RITA, made.id, now=NOW), Attended)
    assert found(store, "") == {made.content}
    assert [entry.action.value for entry in history(store)][-2:] == ["review.snoozed", "review.resumed"]
    # What is snoozed can be ruled on all the same.
    attention.snooze(queue, RITA, made.id, until=SOON, now=NOW)
    queue.reject(RITA, made.id, version=made.version, reason="it is pine", now=NOW)
    assert isinstance(attention.snooze(queue, RITA, made.id, until=SOON, now=NOW), AlreadyDecided)
    # Who takes that back wants to see it.
    assert isinstance(queue.undo(RITA, made.id, version=made.version + 1, now=NOW), Undone)
    assert found(store, "") == {made.content}


def test_an_item_is_assigned_to_who_may_rule_on_it(store: Store) -> None:
    made, queue = waiting(store, "The door is oak."), queue_of(store)
    bea, _, _ = person(store, "Bea"), person(store, "Cal", "bob"), person(store, "Dan", role=Role.AUDITOR)
    for to, code in (("Cal", "no_reviewer"), ("Dan", "no_reviewer"), ("nobody else", "no_reviewer")):
        answer = attention.assign(queue, RITA, made.id, to=to, now=NOW)
        assert isinstance(answer, NotPossible)
        assert answer.code == code
    assert isinstance(attention.assign(queue, RITA, made.id, to="bea", now=NOW), Attended)
    assert item(store, made.id).assigned_to == bea.id
    assert found(store, "assigned:bea") == found(store, f"assigned:{bea.id}") == {made.content}
    assert found(store, "assigned:me") == found(store, "assigned:nobody") == set()
    assert [i.content for i in queue.search(bea, QueueFilter(query=parse("assigned:me", NOW), now=NOW))] == [
        made.content
    ]
    assert isinstance(attention.assign(queue, RITA, made.id, to="nobody", now=NOW), Attended)
    assert item(store, made.id).assigned_to is None
    person(store, "Bea")
    several = attention.assign(queue, RITA, made.id, to="BEA", now=NOW)
    assert isinstance(several, NotPossible)
    assert several.code == "several_reviewers"
    tokens.revoke(store, bea.id, actor="test", now=NOW)
    assert isinstance(attention.assign(queue, RITA, made.id, to="Bea", now=NOW), Attended)
    # Tokens of one person are one.
    ella = persons.create(store, "ella", actor="test", now=NOW)
    for one in (both := [person(store, "Ella", person=ella.id) for _ in range(2)]):
        assert isinstance(attention.assign(queue, one, made.id, to="ella", now=NOW), Attended)
        assert item(store, made.id).assigned_to in {each.id for each in both}
        mine = QueueFilter(query=parse("assigned:me", NOW), now=NOW)
        assert [i.content for i in queue.search(one, mine)] == [made.content]
    # Who is assigned is no bar to anybody.
    assert not isinstance(
        queue.reject(RITA, made.id, version=1, reason="it is pine", now=NOW), NotFound | ItemChanged
    )


def test_who_looks_is_told_and_keeps_nobody_away(store: Store) -> None:
    made, queue, bea = waiting(store, "The door is oak."), queue_of(store), reviewer(name="bea")
    before = len(history(store))
    first = attention.look(queue, bea, made.id, now=NOW)
    assert isinstance(first, Attended)
    assert first.item.viewer == bea.id
    second = attention.look(queue, RITA, made.id, now=NOW + timedelta(minutes=1))
    assert isinstance(second, Attended)
    assert second.item.viewer == bea.id  # she was first
    stopped = attention.look(queue, RITA, made.id, now=NOW, stop=True)
    assert isinstance(stopped, Attended)
    assert stopped.item.viewer == bea.id  # which is hers to say
    later = attention.look(queue, RITA, made.id, now=NOW + timedelta(minutes=attention.LOOK_MINUTES))
    assert isinstance(later, Attended)
    assert later.item.viewer == RITA.id
    assert len(history(store)) == before
    assert queue.approve(bea, made.id, version=1, now=NOW) is not None
    assert item(store, made.id).status is ReviewStatus.APPROVED


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("who", ["another owner", "the sender", "an agent", "an auditor"])
def test_nobody_else_can_say_anything_of_an_item(store: Store, who: str) -> None:
    made, queue = waiting(store, "The door is oak."), queue_of(store)
    role = {"an agent": Role.AGENT, "an auditor": Role.AUDITOR}.get(who, Role.REVIEWER)
    asker = Principal(
        id=made.submitted_by if who == "the sender" else "someone",
        name="s",
        role=role,
        owners=frozenset({"bob" if who == "another owner" else "ann"}),
    )
    before = item(store, made.id)
    assert [
        attention.snooze(queue, asker, made.id, until=SOON, now=NOW),
        attention.resume(queue, asker, made.id, now=NOW),
        attention.assign(queue, asker, made.id, to="me", now=NOW),
        attention.look(queue, asker, made.id, now=NOW),
        attention.send_back(queue, asker, made.id, version=1, question="Who says so?", now=NOW),
        attention.let_go_one(queue, asker, made.id, version=1, reason="old", now=NOW),
    ] == [NotFound()] * 6
    assert attention.let_go(queue, asker, [made], reason="old", now=NOW) == LetGo(0, 1)
    assert item(store, made.id) == before


def test_what_cannot_be_decided_is_let_go_in_one_act_and_can_be_taken_back(store: Store) -> None:
    queue = queue_of(store)
    made = [waiting(store, f"The {name} is oak.") for name in ("door", "table", "roof", "floor")]
    keep = waiting(store, "The kiln is brick.")
    items = list(attention.matching(queue, RITA, parse("oak", NOW), now=NOW))
    assert {one.id for one in items} == {one.id for one in made}
    queue.reject(RITA, made[0].id, version=1, reason="it is pine", now=NOW)
    with pytest.raises(ValueError, match="needs a reason"):
        attention.let_go(queue, RITA, items, reason=" ", now=NOW)
    assert attention.let_go(queue, RITA, items, reason="no source", now=NOW) == LetGo(3, 1)
    ended = [item(store, one.id) for one in made[1:]]
    assert {(one.status, one.note, one.decided_by) for one in ended} == {
        (ReviewStatus.LET_GO, "no source", RITA.id)
    }
    assert [entry.action.value for entry in history(store)].count("review.let_go") == 3
    assert item(store, keep.id).status is ReviewStatus.PENDING
    assert_consistent(store)
    # It says nothing about the words: the same claim may come again, and waits without a word of a rejection.
    again = waiting(store, made[1].content)
    assert again.rejected_before is None
    back = queue.undo(RITA, made[2].id, version=2, now=NOW)
    assert isinstance(back, Undone)
    assert_consistent(store)
    assert attention.let_go(queue, RITA, [], reason="none", now=NOW) == LetGo(0, 0)


def test_a_claim_that_was_sent_back_leaves_the_list_and_expires_as_any_other(store: Store) -> None:
    made, queue = waiting(store, "The door is oak."), queue_of(store)

    def ask(version: int, question: str = "Which page says so?") -> object:
        return attention.send_back(queue, RITA, made.id, version=version, question=question, now=NOW)

    assert isinstance(ask(7), ItemChanged)
    for question in (" ", "x" * 501):
        assert isinstance(ask(1, question), NotPossible)
    assert isinstance(ask(1), Attended)
    assert found(store, "") == set()
    assert found(store, "is:sent-back") == {made.content}
    assert item(store, made.id).question == "Which page says so?"
    assert_consistent(store)
    assert isinstance(attention.resume(queue, RITA, made.id, now=NOW), Attended)
    assert found(store, "is:answered") == found(store, "") == {made.content}
    ask(1)
    assert queue.expire(made.expires_at) == 1
    assert item(store, made.id).status is ReviewStatus.EXPIRED
    assert_consistent(store)


def test_views_are_a_persons_own(store: Store) -> None:
    bea = reviewer(name="bea")
    assert views.save(store, RITA, " old ", "before:7d", NOW) == SavedView("old", "before:7d")
    views.save(store, RITA, "old", "before:14d", NOW)
    assert views.listing(store, RITA) == [SavedView("old", "before:14d")]
    assert views.listing(store, bea) == []
    assert not views.remove(store, bea, "old")
    for name, query in (("", "kiln"), ("x\n", "agnet:bea"), ("x", "agnet:bea"), ("x", "  ")):
        with pytest.raises(QueryError):
            views.save(store, RITA, name, query, NOW)
    for number in range(MOST_VIEWS - 1):
        views.save(store, RITA, f"view {number}", "kiln", NOW)
    assert isinstance(views.save(store, RITA, "one more", "kiln", NOW), views.TooManyViews)
    assert views.remove(store, RITA, "old")
    assert len(views.listing(store, RITA)) == MOST_VIEWS - 1
