"""An agent's answer to a question: what of it vouches for the claim, and what is left to the owner."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.claims import NOW
from tests.rechecking import CONTENT, SAYS, Bench, bench, reject_like
from tests.reviews import assert_consistent, everything, queue_of, reviewer
from tests.web import Answer, web_server
from vouchgate.ingest.citations import parse_citation
from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.decision import Looked
from vouchgate.ingest.claims.people import Membership, Role
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.pipeline import Examined
from vouchgate.review import acts
from vouchgate.review.attending import attention
from vouchgate.review.attending.answering import Answered, AnswerRefused, step_of
from vouchgate.review.attending.attention import Attended
from vouchgate.storage.identity import memberships, persons, tokens
from vouchgate.storage.log.data.walk import Walk
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.storage.store import Store

CLAIM = CONTENT.removeprefix("Per ADR-0001 ").capitalize()


@pytest.fixture
def here(store: Store, tmp_path: Path) -> Iterator[Bench]:
    """A bench under the built-in policy."""
    with bench(store, tmp_path) as opened:
        yield opened


def asked(here: Bench, content: str = CLAIM, **claim: tuple[str, ...]) -> PendingMemory:
    """A claim that was sent back."""
    item = here.item(here.send(content, **claim).queue_id)
    queue, version = queue_of(here.store), item.version
    attention.send_back(queue, reviewer(), item.id, version=version, question="Who says so?", now=NOW)
    return here.item(item.id)


def answer(here: Bench, item: PendingMemory, content: str, *cites: str) -> Answered | AnswerRefused:
    """What the service makes of an answer."""
    with here.store.read() as connection:
        then = acts.stored_answer(connection, item)
    claim = then.evidence.claim.model_copy(
        update={"content": content, "citations": tuple(map(parse_citation, cites))}
    )
    return asyncio.run(here.rechecker.answer(item, then, claim, by=item.submitted_by, key=None))


def test_a_page_that_came_to_be_after_the_question_vouches_for_nothing(here: Bench) -> None:
    with web_server() as web:
        address = f"{web.url}/port"
        item = asked(here, cites=(address,))
        web.routes["/port"] = Answer(SAYS)
        refused = answer(here, item, f"{CLAIM} It is so.", address)
        assert isinstance(refused, AnswerRefused)
        assert refused.code == "page_new"
        assert here.item(item.id) == item
    done = answer(here, item, CONTENT)  # another source is as good as at first
    assert isinstance(done, Answered)
    assert done.answer.memory_id is not None
    assert_consistent(here.store)


def test_a_record_that_says_so_has_the_claim_stored_in_its_new_words(here: Bench) -> None:
    item = asked(here)
    step = step_of(item)
    assert step is not None
    assert item.id in step
    done = answer(here, item, CONTENT)
    assert isinstance(done, Answered)
    became = here.item(item.id)
    assert (became.status, became.content, became.decided_by) == (ReviewStatus.PROMOTED, CONTENT, "service")
    assert done.answer.memory_id == became.memory_id
    assert step_of(became) is None
    assert_consistent(here.store)
    assert isinstance(answer(here, became, CONTENT), AnswerRefused)


def test_an_answer_ends_a_snooze_which_is_no_alteration(here: Bench) -> None:
    item, queue = asked(here), queue_of(here.store)
    until = NOW + timedelta(days=1)
    assert isinstance(attention.snooze(queue, reviewer(), item.id, until=until, now=NOW), Attended)
    assert isinstance(answer(here, here.item(item.id), f"{CLAIM} It is so."), Answered)
    became = here.item(item.id)
    assert (became.status, became.snoozed_until) == (ReviewStatus.PENDING, None)
    assert list(Walk(here.store.read).differences()) == []


@pytest.mark.parametrize("end", ["token", "role"])
def test_an_answer_under_way_ends_with_its_token_and_its_role(here: Bench, end: str) -> None:
    person = persons.create(here.store, "ada", actor="test", now=NOW)
    agents = Membership(owner_id="ann", member_id=person.id, role=Role.AGENT, since=NOW)
    item = asked(here)
    assert memberships.grant(here.store, agents, actor="test")
    agent, _ = tokens.create(here.store, role=Role.AGENT, name="a", person=person.id, actor="test", now=NOW)
    sent = item.model_copy(update={"submitted_by": agent.id})  # who answers it, see `answer`
    if end == "token":
        assert tokens.revoke(here.store, agent.id, actor="test", now=NOW)
    else:
        assert memberships.end(here.store, agents, actor="test", now=NOW)
    before = everything(here.store)
    refused = answer(here, sent, CONTENT)
    assert isinstance(refused, AnswerRefused), refused
    assert refused.code == "token_gone"
    assert everything(here.store) == before
    assert isinstance(answer(here, item, CONTENT), Answered)


@pytest.mark.on("sqlite")
def test_an_answer_that_a_standing_ruling_rejects_is_not_stored(here: Bench) -> None:
    item = asked(here)
    reject_like(here, kind="adr")
    done = answer(here, item, CONTENT)
    assert isinstance(done, Answered)
    assert (done.answer.rule, done.answer.memory_id) == ("standing_ruling", None)
    assert here.item(item.id) == item
    assert_consistent(here.store)


@pytest.mark.on("sqlite")
def test_an_answer_that_was_looked_up_in_vain_is_looked_up_again(store: Store, tmp_path: Path) -> None:
    looked = (Looked(path="repositories", query="gateway", found=0),)

    async def examine(claim: Claim, *, fresh: bool = False) -> Examined:
        return replace(await made.examiner.examine(claim, fresh=fresh), suggested=(), looked=looked)

    with bench(store, tmp_path, examine=examine) as made:
        item, queue = asked(made), queue_of(store)
        attention.snooze(queue, reviewer(), item.id, until=NOW + timedelta(days=1), now=NOW)
        done = answer(made, item, f"{CLAIM} It is so.")
        assert isinstance(done, Answered)
        assert done.answer.rule == "ungrounded"
        assert [one.id for one in queue.search(reviewer(), QueueFilter(now=NOW))] == [item.id]  # awake again
        (row,) = made.schedule()
        assert row.item_id == item.id
        assert made.work(row.due_at).again == 1
        assert_consistent(made.store)


def test_an_answer_that_came_too_late_changes_nothing(here: Bench) -> None:
    item = asked(here)
    here.clock.now = item.expires_at + timedelta(seconds=1)
    late = answer(here, item, CONTENT)
    assert isinstance(late, AnswerRefused)
    assert late.code == "not_sent_back"
    here.clock.now = NOW
    queue = queue_of(here.store)
    attention.resume(queue, reviewer(), item.id, now=NOW)
    assert isinstance(answer(here, item, CONTENT), AnswerRefused)
    assert here.item(item.id).content == CLAIM
    assert_consistent(here.store)
