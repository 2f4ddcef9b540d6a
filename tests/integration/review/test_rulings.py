"""Who ruled on what, held against a history whose people, looks and acts are known."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

import pytest

from tests.claims import NOW
from tests.desk import claim_words
from tests.integration.review.test_four_eyes import Team, person, token
from tests.reviews import queue_of, reviewer, waiting
from vouchgate.cli.looking.reviews import COLUMNS, csv_line
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.answers import Approved, Undone
from vouchgate.review.attending.attention import let_go
from vouchgate.review.attending.reviewers import reviewers_of
from vouchgate.storage.errors import StorageError
from vouchgate.storage.queue import rulings
from vouchgate.storage.queue.rulings import Ruling, RulingFilter
from vouchgate.storage.store import Store

SECOND, TICK = timedelta(seconds=1), timedelta(microseconds=1)


@dataclass
class Desk:
    """Ann, whose agent proposes, and Bea rule; every item is known by a word."""

    team: Team
    ids: dict[str, str] = field(default_factory=dict)
    memories: dict[str, str] = field(default_factory=dict)

    def propose(self, *words: str) -> None:
        for word in words:
            self.ids[word] = self.team.propose(claim_words(len(self.ids)))

    def open(self, who: Principal, word: str, at: datetime) -> None:
        queue = self.team.queue("off")
        item = queue.get_by_id(who, self.ids[word])
        assert item is not None
        queue.note_opened(who, item, at)
        self.team.store.writer.run((), lambda connection: None).result()  # behind it, so it is written

    def approve(self, who: Principal, word: str, at: datetime) -> None:
        done = self.team.queue("off").approve(who, self.ids[word], version=1, note="seen", now=at)
        assert isinstance(done, Approved), done
        self.memories[word] = done.memory.id

    def walk(self, **wanted: object) -> list[Ruling]:
        with self.team.store.read() as connection:
            return [*chain(*rulings.walk(connection, RulingFilter.model_validate(wanted)))]


@pytest.fixture
def desk(store: Store) -> Desk:
    return lived(store)


def lived(store: Store) -> Desk:
    """A day of Ann and Bea."""
    people = {name: person(store, name).id for name in ("ann", "bea")}
    ann, bea = (token(store, Role.REVIEWER, one) for one in people.values())
    stray = token(store, Role.AGENT, None)
    team = Team(store, ann, bea, token(store, Role.AGENT, people["ann"]), stray, stray)
    made, queue = Desk(team), team.queue("off")
    made.propose("north", "south", "east", "west", "red", "blue", "green", "black")
    made.open(bea, "north", NOW + SECOND)
    made.open(bea, "north", NOW + 5 * SECOND)  # the first counts
    made.approve(bea, "north", NOW + 31 * SECOND)
    made.approve(bea, "south", NOW + 31.5 * SECOND)
    queue.reject(bea, made.ids["east"], version=1, reason='=HYPERLINK("x")', now=NOW + 32 * SECOND)
    made.approve(ann, "west", NOW + 40 * SECOND)
    for number, word in enumerate(("red", "blue")):  # one act, as the pages write it
        made.approve(bea, word, NOW.replace(microsecond=250_000) + 60 * SECOND + number * TICK)
    items = [queue.get_by_id(bea, made.ids[word]) for word in ("green", "black")]
    let_go(queue, bea, [item for item in items if item], reason="who knows", now=NOW + 90 * SECOND)
    assert isinstance(queue.undo(bea, made.ids["blue"], version=2, now=NOW + 100 * SECOND), Undone)
    queue.retract(bea, made.memories["north"], reason="it is wet", now=NOW + 101 * SECOND)
    made.open(bea, "blue", NOW + 110 * SECOND)  # after the ruling that was taken back: no look at that
    return made


def test_who_ruled_on_what_after_how_long_a_look(desk: Desk) -> None:
    found = {word: one for one in desk.walk() for word, item in desk.ids.items() if item == one.item_id}
    assert len(found) == 8
    told = {
        word: (one.what, one.look_seconds, one.together, one.taken_back, one.own_agent)
        for word, one in found.items()
    }
    assert told == {
        "north": ("approved", 30.0, 1, False, False),
        "south": ("approved", None, 1, False, False),
        "east": ("rejected", None, 1, False, False),
        "west": ("approved", None, 1, False, True),
        "red": ("approved", None, 2, False, False),
        "blue": ("approved", None, 2, True, False),
        "green": ("let_go", None, 2, False, False),
        "black": ("let_go", None, 2, False, False),
    }
    north = found["north"]
    assert (north.role, north.person_name, north.agents_person_name) == ("reviewer", "bea", "ann")
    assert (north.note, north.memory_id, north.retracted_reason) == (
        "seen",
        desk.memories["north"],
        "it is wet",
    )
    assert (found["blue"].note, found["blue"].memory_id) == (None, None)
    with desk.team.store.read() as connection:
        people = {one.name: one for one in reviewers_of(rulings.walk(connection, RulingFilter()))}
    bea = people["bea"]
    assert (bea.rulings, bea.median_look, bea.streak, bea.bulk) == (7, 30.0, 3, 4)
    assert (bea.own_agent, bea.taken_back, bea.retracted) == (0, 1, 1)
    assert (people["ann"].rulings, people["ann"].own_agent, people["ann"].streak) == (1, 1, 1)


def test_filters_restrict_and_an_act_is_never_cut(desk: Desk) -> None:
    everything = desk.walk()
    assert [one.at for one in everything] == sorted(one.at for one in everything)
    assert desk.walk(since=NOW + 32 * SECOND, until=NOW + 60 * SECOND) == everything[2:4]
    for name in ("ann", desk.team.ann.id, desk.team.ann.person):
        assert [one.item_id for one in desk.walk(reviewer=name)] == [desk.ids["west"]]
    assert desk.walk(reviewer="nobody") == desk.walk(owners=frozenset({"bob"})) == []
    assert desk.walk(after=("acme", everything[4].at)) != everything[6:]  # behind a time, not behind an act
    with desk.team.store.read() as connection:
        acts = [*rulings.walk(connection, RulingFilter(owners=frozenset({"acme"})))]
    assert [len(act) for act in acts] == [1, 1, 1, 1, 2, 2]
    assert desk.walk(after=("acme", acts[4][-1].at)) == everything[6:]


def test_csv_is_read_back_and_holds_no_formula(desk: Desk) -> None:
    lines = [csv_line(one.model_dump(mode="json").values()) for one in desk.walk()]
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in csv.reader(io.StringIO("\n".join(lines)))]
    assert rows[2]["note"] == """'=HYPERLINK("x")"""
    whole = [json.loads(one.model_dump_json()) for one in desk.walk()]
    for row, one in zip(rows, whole, strict=True):
        for name, value in one.items():
            text = row[name].removeprefix("'")
            assert text == ("" if value is None else value if isinstance(value, str) else json.dumps(value))
    starts = ("=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "'=1")
    assert [next(csv.reader(io.StringIO(csv_line([each]), newline="")))[0] for each in starts] == [
        f"'{each}" for each in starts
    ]


@pytest.mark.on("sqlite")
def test_a_look_that_cannot_be_kept_stands_in_nobodys_way(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    item = waiting(store, "The north cellar is dry", owner_id="ann")
    queue = queue_of(store)
    queue.note_opened(reviewer("bob"), item, NOW)  # not theirs to rule on
    with store.read() as connection:
        assert not rulings.is_opened(connection, "ann", item.id, "reviewer-rita")
    store.writer.close()
    queue.note_opened(reviewer(), item, NOW)
    assert "could not be kept" in caplog.text
    with pytest.raises(StorageError):
        queue.reject(reviewer(), item.id, version=1, reason="no", now=NOW)
