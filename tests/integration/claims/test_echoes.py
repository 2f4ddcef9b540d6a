"""Submissions of one claim are counted, once each, whoever sends them and whatever becomes of them."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from tests.claims import NOW, examined, policy, submission_of
from tests.desk import Desk, run
from vouchgate.cli import check
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Tier, ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp, DeliveryTarget
from vouchgate.ingest.claims.likeness import EchoFacts
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.pipeline import Examined, replay
from vouchgate.ingest.policy import Policy
from vouchgate.service import open_service
from vouchgate.settings import Settings
from vouchgate.storage.claims.submit import Decided, Repeated, write_submissions
from vouchgate.storage.queue.capacity import QueueFull
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import EchoRow
from vouchgate.wire import ClaimIn

TABLE = EchoRow.metadata.tables["echo"]
CLAIM = (
    "The delivery service of the northern region retries every failed delivery eight times within one hour and then"
    " asks the operator on call what to do about it by telephone"
)
NEARLY = CLAIM.replace("every failed delivery", "each failed delivery")  # a duplicate: 22 of 24 words


def send(store: Store, one: Examined, by: str = "agent-1", key: str | None = None) -> ValidationResult:
    answer = store.writer.submit(submission_of(one, principal_id=by, key=key)).result()
    assert isinstance(answer, Decided)
    return answer.answer


def echo_of(answer: ValidationResult) -> tuple[int, int] | None:
    """How often it was sent and by how many, as the answer says."""
    echo = answer.evidence.echo
    return None if echo is None else (echo.count, len(echo.agents))


def messages(answer: ValidationResult) -> list[str]:
    return [finding.message for finding in answer.findings if finding.check == "echo"]


def rows(store: Store) -> list[dict[str, Any]]:
    with store.read() as connection:
        return [dict(row._mapping) for row in connection.execute(select(TABLE))]


def under(action: str) -> Policy:
    return Policy.model_validate(policy().model_dump() | {"echo": {"count": 2, "action": action}})


def test_count_first_time_and_senders_are_told(store: Store) -> None:
    later = NOW + timedelta(days=3)
    first = send(store, examined(CLAIM), "agent-1")
    second = send(store, examined(CLAIM, source=Source.CHAT), "agent-2")
    third = send(store, examined(CLAIM.upper(), now=later), "agent-1")
    assert [echo_of(each) for each in (first, second, third)] == [None, (2, 2), (3, 2)]
    assert [messages(each) for each in (first, second)] == [[], []]
    assert messages(third) == [f"Sent 3 times since {NOW:%Y-%m-%d} by 2 agents."]
    assert "echo" in third.checks_failed
    assert third.evidence.echo == EchoFacts(
        count=3,
        first_seen=NOW,
        first_by="agent-1",
        agents=("agent-1", "agent-2"),
        sources=(Source.USER, Source.CHAT),
    )
    (row,) = rows(store)
    assert (row["count"], row["first_at"], row["last_at"]) == (3, NOW, later)
    assert CLAIM.split()[1] not in str(row)


def test_what_is_nearly_the_same_counts_with_what_it_repeats(store: Store) -> None:
    send(store, examined(CLAIM))
    assert [echo_of(send(store, examined(NEARLY))) for _ in range(2)] == [(2, 1), (3, 1)]
    assert len(rows(store)) == 1


def test_what_is_kept_nowhere_is_counted_in_its_own_words(store: Store) -> None:
    """A blocked claim, its small words and their order changed each time."""
    said = [
        "I think the depot in Leeds closes early",
        "the depot in Leeds, I think, closes early",
        "I think that in Leeds the depots are closing early!",
    ]
    answers = [send(store, examined(text, speculates=True)) for text in said]
    assert [each.rule for each in answers] == ["speculation", "speculation", "speculation"]
    assert [echo_of(each) for each in answers] == [None, (2, 1), (3, 1)]


@pytest.mark.on("sqlite")
def test_owners_are_counted_apart(store: Store) -> None:
    assert echo_of(send(store, examined(CLAIM, owner_id="ann"))) is None
    assert echo_of(send(store, examined(CLAIM, owner_id="ben"))) is None


def test_within_one_group_each_sees_those_before_it(store: Store) -> None:
    claims = [CLAIM, NEARLY, CLAIM, "Something else that nobody has said so far", NEARLY]
    answers = store.writer.run(
        ("ann",),
        lambda connection: write_submissions(
            connection,
            [submission_of(examined(c), principal_id=f"agent-{n}") for n, c in enumerate(claims)],
        ),
    ).result()
    found = [echo_of(each.answer) for each in answers if isinstance(each, Decided)]
    assert found == [None, (2, 2), (3, 3), None, (4, 4)]
    assert sorted(row["count"] for row in rows(store)) == [1, 4]


def test_a_repeated_key_and_a_full_queue_are_no_submissions(store: Store) -> None:
    small = policy(per_owner=1)
    waits = examined(CLAIM, source=Source.AI_SYNTHESIS, under=small)
    send(store, waits, key="k")
    again = store.writer.submit(submission_of(waits, key="k")).result()
    assert isinstance(again, Repeated)
    other = examined("The other depot keeps nothing at all", source=Source.AI_SYNTHESIS, under=small)
    assert isinstance(store.writer.submit(submission_of(other)).result(), QueueFull)
    assert [row["count"] for row in rows(store)] == [1]


@pytest.mark.on("sqlite")
def test_a_removal_is_not_counted(store: Store) -> None:
    place = DeliveryTarget(sink="kg", place="a/1", op=DeliveryOp.REMOVE)
    for _ in range(3):
        answer = send(store, examined(CLAIM, delivery=place, source=Source.AI_SYNTHESIS))
        assert echo_of(answer) is None
    assert rows(store) == []


def test_twenty_agents_are_kept_by_name(store: Store) -> None:
    for number in range(23):
        last = send(store, examined(CLAIM), f"agent-{number:02}")
    assert messages(last) == [f"Sent 23 times since {NOW:%Y-%m-%d} by 20 or more agents."]
    assert rows(store)[0]["agents"] == [f"agent-{number:02}" for number in range(20)]


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("report", ("trusted_source", Tier.STORED)),
        ("queue", ("echo", Tier.QUEUED)),
        ("block", ("echo", Tier.BLOCKED)),
    ],
)
def test_the_policy_decides_and_the_decision_can_be_made_again(
    store: Store, action: str, expected: tuple[str, Tier]
) -> None:
    rules = under(action)
    said = "The depot in Leeds is closed"
    send(store, examined(said, source=Source.USER, speculates=True, under=rules))  # kept nowhere
    answer = send(store, examined(said, under=rules))
    assert (answer.rule, answer.tier) == expected
    assert messages(answer) == [f"Sent 2 times since {NOW:%Y-%m-%d} by 1 agent."]
    kept = ValidationResult.model_validate_json(answer.model_dump_json())
    assert kept == answer
    one = examined(said, under=rules)
    again = one.knowing(dedup=kept.evidence.dedup, echo=kept.evidence.echo).decide()
    assert (again.rule, again.findings) == (answer.rule, answer.findings)


def test_many_at_once_are_all_counted(store: Store) -> None:
    def one(number: int) -> int:
        answer = send(store, examined(CLAIM, speculates=True), f"agent-{number % 4}")
        return 1 if answer.evidence.echo is None else answer.evidence.echo.count

    with ThreadPoolExecutor(8) as pool:
        counts = sorted(pool.map(one, range(40)))
    assert counts == list(range(1, 41))
    assert [row["count"] for row in rows(store)] == [40]


def test_the_command_counts_the_lines_that_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = json.dumps({"content": "I think the depot closes early", "memory_type": "fact", "source": "user"})
    (tmp_path / "claims.jsonl").write_text(f"{line}\n" * 3, "utf-8")
    settings = Settings(offline=True, database_url=f"sqlite:///{tmp_path}/none.db")
    assert check.run(str(tmp_path / "claims.jsonl"), settings, compare_with_database=False) == 0
    answers = [ValidationResult.model_validate_json(each) for each in capsys.readouterr().out.splitlines()]
    assert [echo_of(each) for each in answers] == [None, (2, 1), (3, 1)]
    assert [bool(messages(each)) for each in answers] == [False, False, True]


@pytest.mark.on("sqlite")
def test_the_gate_tells_it_and_a_check_counts_nothing(database_url: str) -> None:
    agents = [
        Principal(id=f"agent-{n}", name="a", role=Role.AGENT, any_owner=True, sources=frozenset(Source))
        for n in (1, 2)
    ]
    sent = ClaimIn(content="I think " + CLAIM, memory_type=MemoryType.FACT, source=Source.USER, user_id="ann")

    async def all_of_it() -> list[ValidationResult]:
        found = []
        for agent in (agents[0], agents[0], agents[1]):
            found.append(await service.gate.check(agent, sent))
            found.append(await service.gate.check(agent, sent))
            examined_claim = await service.gate.examine(service.gate.examiner.build_claim(agent, sent))
            found.append(send(service.store, examined_claim, agent.id))
        return found

    with open_service(Settings(database_url=database_url)) as service:
        answers = asyncio.run(all_of_it())
        assert replay(answers[-1], service.policy, service.gate.examiner.detector) == ()
    assert [echo_of(each) for each in answers] == [
        *(None, None, None),
        *((2, 1), (2, 1), (2, 1)),
        *((3, 2), (3, 2), (3, 2)),
    ]
    told = [bool(messages(each)) for each in answers]
    assert told == [False] * 6 + [True] * 3


def test_the_owner_reads_it_on_the_page_of_what_waits_for_it(tmp_path: Path) -> None:
    rules = tmp_path / "policy.toml"
    rules.write_text('[echo]\ncount = 2\naction = "queue"\n', "utf-8")
    settings = Settings(database_url=f"sqlite:///{tmp_path}/echo.db", policy=rules, offline=True)

    async def work(desk: Desk) -> None:
        for speculates in (True, False):
            one = examined(CLAIM, owner_id=desk.owner, speculates=speculates, under=desk.service.policy)
            send(desk.service.store, one)
        (item,) = desk.waiting()
        assert (item.rule, item.reason) == ("echo", "Sent again and again")
        page = (await desk.get(f"/review/items/{item.id}")).text
        assert "Sent before" in page
        assert f"Sent 2 times since {NOW:%Y-%m-%d} by 1 agent." in page
        assert 'class="chip echo"' in (await desk.get("/review")).text

    with open_service(settings) as service:
        run(service, "ann", work)
