"""Figures of what came and what was cleared, held against small histories that were counted by hand."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from tests.claims import NOW, examined, policy, submission_of
from tests.integration.review.test_spot_checks import send
from tests.integration.review.test_standing_rulings import book, confirm, ruling, ticket
from tests.integration.review.test_standing_rulings import send as send_ticket
from tests.reviews import reviewer
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.modes import Mode, ModeSwitch
from vouchgate.ingest.claims.trust import RulingVerdict
from vouchgate.ingest.claims.waiting import PendingMemory, SpotVerdict
from vouchgate.ingest.rules import Rule
from vouchgate.review.answers import Approved, Undone
from vouchgate.review.attending.attention import let_go, send_back
from vouchgate.review.numbers import OTHERS, Flow, Numbers, NumbersCounter
from vouchgate.review.queue import ReviewQueue
from vouchgate.review.trust import modes, spot_checks
from vouchgate.review.trust.taking_back import Then, take_back
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.store import Store

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TODAY = NOW.date()


class History:
    """Claims of agents and what reviewers do, with figures that are looked at after each."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.policy = policy(undo_minutes=60 * 24 * 7)
        self.queue = ReviewQueue(store, self.policy)
        self.counter = NumbersCounter()
        self.now = NOW  # when figures are looked at

    def send(
        self,
        content: str,
        *,
        ago: timedelta = timedelta(0),
        agent: str = "agent-1",
        owner: str = "ann",
        source: Source = Source.AI_SYNTHESIS,
        speculates: bool = False,
    ) -> str:
        """The id of the item, if it waits; of the memory, if it is stored."""
        one = examined(content, owner_id=owner, source=source, speculates=speculates, now=NOW - ago)
        answer = self.store.writer.submit(submission_of(one, principal_id=agent)).result()
        assert isinstance(answer, Decided)
        self.look()
        return answer.answer.queue_id or answer.answer.memory_id or ""

    def item(self, item_id: str) -> PendingMemory:
        found = self.queue.get_by_id(reviewer(), item_id)
        assert found is not None
        return found

    def approve(self, item_id: str, now: datetime = NOW, edit: str | None = None) -> None:
        edited = None if edit is None else examined(edit, under=self.policy, now=now)
        done = self.queue.approve(reviewer(), item_id, version=1, edited=edited, now=now)
        assert isinstance(done, Approved), done
        self.look()

    def undo(self, item_id: str) -> None:
        done = self.queue.undo(reviewer(), item_id, version=2, now=NOW)
        assert isinstance(done, Undone), done
        self.look()

    def reject(self, item_id: str) -> None:
        self.queue.reject(reviewer(), item_id, version=1, reason="no", now=NOW)
        self.look()

    def look(self, *owners: str, days: int = 14, anew: bool = False) -> Numbers:
        counter = NumbersCounter() if anew else self.counter
        with self.store.read() as connection:
            return counter.numbers_of(connection, owners or ["ann"], self.now, days)


@pytest.fixture
def history(store: Store) -> History:
    made = History(store)
    old = made.send("The old kiln leaks", ago=31 * DAY)
    made.send("The hall is cold", source=Source.USER, ago=DAY)
    made.send("The hall might be haunted", speculates=True, ago=DAY)
    names = {
        name: made.send(f"The {name} cellar is dry, as anybody can see", ago=DAY + hours * HOUR)
        for hours, name in enumerate(("north", "south", "east"))
    }
    assert made.send("The north cellar is dry, as anybody can see", agent="agent-2") == names["north"]
    for name in ("red", "blue", "green"):
        names[name] = made.send(f"The {name} lamp hangs over the table of oak", agent="agent-2", ago=3 * HOUR)
    made.approve(names["north"], edit="The north cellar was dry on Monday")
    made.reject(names["south"])
    made.approve(names["red"])
    made.undo(names["red"])
    let_go(made.queue, reviewer(), [made.item(names["blue"])], reason="who knows", now=NOW)
    send_back(made.queue, reviewer(), names["green"], version=None, question="Who says so?", now=NOW)
    assert made.queue.expire(NOW) == 1, old
    made.send("The barn is dry", owner="bob", agent="agent-3", source=Source.USER)
    made.send("The attic is dark by day", owner="bob", agent="agent-3")
    return made


def told(flow: Flow) -> dict[str, int]:
    """What is not zero."""
    dumped = flow.model_dump(exclude={"day", "id", "name", "rule", "approved_share"})
    return {name: count for name, count in dumped.items() if count}


def test_the_figures_of_an_owner(history: History) -> None:
    found = history.look(anew=True)
    assert history.look() == found  # which was counted step by step
    assert (found.owners, found.complete, found.since.date(), len(found.days)) == (
        ("ann",),
        True,
        TODAY - 13 * DAY,
        14,
    )
    assert {day.day: told(day) for day in found.days if told(day)} == {
        date(2026, 5, 3): {"came": 5, "stored": 1, "queued": 3, "blocked": 1},
        TODAY: {
            **{"came": 4, "queued": 3, "repeated": 1, "sent_back": 1, "undone": 1},
            **{"cleared": 4, "approved": 1, "rejected": 1, "let_go": 1, "expired": 1},
        },
    }
    assert told(found.total) == {
        **{"came": 9, "stored": 1, "queued": 6, "repeated": 1, "blocked": 1, "sent_back": 1, "undone": 1},
        **{"cleared": 4, "approved": 1, "rejected": 1, "let_go": 1, "expired": 1},
    }
    assert found.total.approved_share == 0.5
    assert {each.id: told(each) for each in found.agents} == {
        "agent-1": {
            **{"came": 5, "stored": 1, "queued": 3, "blocked": 1},
            **{"cleared": 3, "approved": 1, "rejected": 1, "expired": 1},
        },
        "agent-2": {
            **{"came": 4, "queued": 3, "repeated": 1, "sent_back": 1, "undone": 1},
            **{"cleared": 1, "let_go": 1},
        },
    }
    by_rule = {each.rule: told(each) for each in found.reasons}
    assert by_rule.pop(Rule.UNGROUNDED) == {
        **{"came": 6, "queued": 6, "sent_back": 1, "undone": 1},
        **{"cleared": 4, "approved": 1, "rejected": 1, "let_go": 1, "expired": 1},
    }
    assert by_rule.pop(Rule.ALREADY_PENDING) == {"came": 1, "repeated": 1}
    assert by_rule.pop(Rule.SPECULATION) == {"came": 1, "blocked": 1}
    assert list(by_rule.values()) == [{"came": 1, "stored": 1}]
    # Waited: 31 days, 25 hours, 24 hours, 3 hours. Waits: for 26 hours, and 3 hours twice.
    assert found.median_cleared_seconds == (25 + 24) / 2 * 3600
    assert (found.waiting.items, found.waiting.oldest_at) == (3, NOW - 26 * HOUR)
    assert found.waiting.median_seconds == 3 * 3600


def test_several_owners_are_one_sum(history: History) -> None:
    both = history.look("bob", "ann", anew=True)
    assert both.owners == ("ann", "bob")
    assert (both.total.came, both.total.stored, both.total.cleared, both.waiting.items) == (11, 2, 4, 4)
    assert both.waiting.median_seconds == 3 * 3600  # of 26, 3, 3 and 0 hours
    assert {each.id: each.came for each in both.agents} == {"agent-1": 5, "agent-2": 4, "agent-3": 2}
    nobody = history.look("nobody", anew=True)
    assert (nobody.total.came, nobody.waiting.items, nobody.agents, nobody.median_cleared_seconds) == (
        0,
        0,
        (),
        None,
    )


def test_the_window_is_of_whole_days(history: History) -> None:
    assert told(history.look(days=1).total) == told(history.look().days[-1])
    assert history.look(days=90).total.queued == 7


def test_a_clock_that_was_ahead_leaves_no_days_out(history: History) -> None:
    history.now = NOW + 200 * DAY
    history.counter = NumbersCounter()
    assert history.look(days=90).total.queued == 0
    history.now = NOW
    assert history.look(days=90) == history.look(days=90, anew=True)


def test_what_is_taken_back_later_does_not_count(store: Store) -> None:
    history = History(store)
    history.now = NOW - 4 * DAY
    item = history.send("The east gate is shut", ago=5 * DAY)
    history.approve(item, now=history.now)
    history.now = NOW
    history.send("The west gate is shut")  # the days before yesterday are not counted anew
    assert history.look().days[-5].approved == 1
    history.undo(item)
    found = history.look()
    assert (found.total.approved, found.total.undone, found.waiting.items) == (0, 1, 2)
    assert found.waiting.median_seconds == 2.5 * 24 * 3600  # of 5 days and 0 the mean
    assert found == history.look(anew=True)


@pytest.mark.on("sqlite")
def test_of_a_long_log_the_end_is_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vouchgate.storage.queue.overview.MOST_ENTRIES", 3)
    history = History(store)
    for number in range(5):
        history.send(f"Shelf {number} holds box {number * 7}", ago=(5 - number) * DAY, source=Source.USER)
    cut = history.look(anew=True)
    assert (cut.total.stored, cut.complete) == (3, False)
    assert history.look(days=2, anew=True).complete  # the third last is older
    assert (history.look().total.stored, history.look().complete) == (5, True)  # seen one by one


@pytest.mark.on("sqlite")
def test_of_many_agents_the_others_are_summed(store: Store) -> None:
    history = History(store)
    for number in range(23):
        history.send(f"Shelf {number} holds box {number * 7}", agent=f"agent-{number:02}", source=Source.USER)
    lines = history.look().agents
    assert len(lines) == 21
    assert (lines[-1].id, lines[-1].name, lines[-1].stored) == (None, OTHERS, 3)


@pytest.mark.on("sqlite")
def test_spot_checks_and_standing_rulings_are_told(store: Store) -> None:
    memory_ids = [
        str(send(store, f"The lamp of room {n} hangs over table {n * 7}.").answer.memory_id) for n in range(3)
    ]
    for memory_id, verdict in zip(memory_ids, (SpotVerdict.RIGHT, SpotVerdict.WRONG), strict=False):
        spot_checks.answer(store, reviewer(), memory_id, verdict, NOW, policy=policy())
    made = confirm(store, RulingVerdict.REJECT, agent="agent-1")
    found = History(store).look()
    said = found.spot_checks
    assert (said.right, said.wrong, said.cannot_tell, said.open) == (1, 1, 0, 1)
    assert (said.low, said.high) == (0.095, 0.905)  # Wilson's interval of one of two
    (ruling,) = found.standing_rulings
    assert (ruling.id, ruling.counts_now, ruling.did.stored, ruling.did.rejected) == (made.id, True, 0, 0)  # type: ignore[union-attr]


def test_what_a_ruling_that_is_taken_back_has_wait_is_of_its_agent(store: Store) -> None:
    made = ruling(store)
    for number in range(3):
        send_ticket(store, ticket(number))
    history = History(store)
    history.look()
    take_back(book(store), reviewer(), made.id, Then.QUEUE, NOW)
    (line,) = history.look().agents
    assert (line.id, line.stored, line.queued) == ("agent-1", 3, 3)
    assert history.look() == history.look(anew=True)


@pytest.mark.on("sqlite")
def test_what_was_let_through_counts_when_agents_and_reasons_are_sorted(store: Store) -> None:
    history = History(store)
    history.send("The hall is cold", source=Source.USER)
    observing = ModeSwitch(owner_id="ann", agent="", mode=Mode.OBSERVE, reason="trial", by="op", since=NOW)
    modes.switch(store, observing)
    for number in range(2):
        history.send(f"Shelf {number} holds box {number * 7}", agent="agent-2")
    found = history.look()
    assert [(each.id, each.came, each.let_through) for each in found.agents] == [
        ("agent-2", 2, 2),
        ("agent-1", 1, 0),
    ]
    assert found.reasons[0].rule is Rule.UNGROUNDED
