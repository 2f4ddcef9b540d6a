"""The Python client against the real service, over a real port. What holds for both kinds is asked of both. One page
although it is long, because its tests share one gate, which takes seconds to start."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import vouchgate
from tests.acceptance.site import Site, open_site
from tests.calling import KINDS, Kind, calling
from tests.repos import TestRepository
from tests.running.service import ALL_SOURCES
from vouchgate import (
    ApiError,
    AsyncClient,
    Client,
    DeadLetter,
    Gated,
    QueueFull,
    Unreachable,
    Unsendable,
    VouchgateError,
)
from vouchgate.client import Delivered, Delivery, Problem, errors, next_step
from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.claims.decision import Outcome, ValidationResult
from vouchgate.ingest.claims.people import Role

POLICY = """
[queue]
per_owner = 3
retry_after_seconds = 7

[limits]
batch_claims = 4
"""
ADR = "# 7. Exports are written at night\n\nDate: 2026-01-05\n\n## Status\n\nAccepted\n\n## Decision\n\n{}\n"
SOON = datetime(2031, 1, 1, tzinfo=UTC)
DECIDED = "The export job writes its files to the ledger at two in the night."


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gate on SQLite: which database it is cannot matter to who calls it."""
    directory = tmp_path_factory.mktemp("client")
    policy = directory / "policy.toml"
    policy.write_text(POLICY)
    repository = TestRepository(directory / "repository")
    repository.commit("Exports", {"docs/adrs/0007-exports.md": ADR.format(DECIDED)})
    with open_site(
        f"sqlite:///{directory / 'vouchgate.db'}", repos=[repository.path], policy=policy
    ) as opened:
        yield opened


@pytest.fixture
def token(site: Site) -> str:
    """Of an agent that may assert every source, for an owner of its own."""
    return site.token(Role.AGENT, site.owner(), sources=ALL_SOURCES)[1]


@pytest.fixture(params=KINDS)
def client(request: pytest.FixtureRequest, site: Site, token: str) -> Iterator[Client]:
    """A client of either kind."""
    kind: Kind = request.param
    with calling(kind, site.running.url, token) as opened:
        yield opened


def test_a_verdict_is_given_back_whatever_it_is(client: Client) -> None:
    stored = client.save(f"{DECIDED} See ADR-0007.", memory_type="decision")
    assert (stored.outcome, stored.approved, stored.rule) == (Outcome.STORED, True, "stated")
    assert stored.memory_id
    assert next_step(stored) == f"Nothing more to do: it is stored as {stored.memory_id}."

    queued = client.save("The ledger is kept for eleven years.")
    assert (queued.outcome, queued.approved, queued.rule) == (Outcome.QUEUED, False, "ungrounded")
    assert queued.queue_id
    assert "nothing but you vouches for it" in next_step(queued)

    blocked = client.save("I think the ledger might be lost.")
    assert (blocked.outcome, blocked.rule, blocked.memory_id) == (Outcome.BLOCKED, "speculation", None)

    duplicate = client.save(f"{DECIDED} See ADR-0007.", memory_type="decision")
    assert (duplicate.outcome, duplicate.rule) == (Outcome.BLOCKED, "duplicate")
    assert next_step(duplicate) == f"Nothing to do: the same is stored already, as {stored.memory_id}."


def test_what_next_step_tells_to_do_works(client: Client) -> None:
    queued = client.save("It is for the ledger that the export job has its two hours of every night.")
    assert "docs/adrs/0007-exports.md speaks of it: read it" in next_step(queued)
    assert client.save("The export job writes to the ledger at night, see ADR-0007.").approved


def test_everything_that_can_be_said_of_a_claim_arrives(client: Client) -> None:
    until = datetime.now(UTC) + timedelta(days=30)
    stored = client.save(
        "The ledger is in Vilnius.",
        memory_type="fact",
        source="user",
        citations=["ADR-0007", {"type": "adr", "value": "ADR-7"}],
        validity_horizon=until,
        metadata={"run": 7, "tags": ["é", None, 1.5]},
    )
    claim = stored.evidence.claim
    assert [citation.key for citation in claim.citations] == ["adr:7", "adr:7"]
    assert claim.validity_horizon == until
    assert claim.metadata == {"run": 7, "tags": ["é", None, 1.5]}


def test_check_decides_and_keeps_nothing(client: Client) -> None:
    verdict = client.check("The ledger is in Vilnius.", source="user")
    assert verdict.approved
    assert (verdict.decision_id, verdict.memory_id) == (None, None)
    assert next_step(verdict) == "It would be stored: save it, with the same text and citations."
    assert client.memories().items == ()


def test_the_same_key_is_decided_once(client: Client) -> None:
    first = client.save("The ledger is in Vilnius.", source="user", idempotency_key="run 1")
    assert first.promise is not None
    again = client.save("The ledger is in Vilnius.", source="user", idempotency_key="run 1")
    assert again == first.model_copy(update={"promise": None})
    with pytest.raises(ApiError) as caught:
        client.save("The ledger is in Riga.", source="user", idempotency_key="run 1")
    assert (caught.value.status, caught.value.code) == (409, "idempotency_key_reused")
    assert caught.value.idempotency_key == "run 1"


def test_without_a_key_every_call_has_its_own(client: Client) -> None:
    assert client.save("The ledger is in Vilnius.", source="user").outcome is Outcome.STORED
    assert client.save("The ledger is in Vilnius.", source="user").outcome is Outcome.BLOCKED


def test_many_are_sent_in_batches_and_answered_in_order(client: Client) -> None:
    """The policy of this gate takes four rows at a time, which the client does not know before it is told."""
    rows: list[Any] = [
        f"Depot {place} opens at {hour}." for place, hour in zip("ABCDEFGHI", range(9), strict=True)
    ]
    rows[2] = {"content": "I guess depot C is closed."}
    rows[4] = {"content": "Depot E opens at 4.", "memory_type": "rumour"}
    rows[5] = {"content": "half a pair: \ud83d"}
    rows[6] = {"content": "x", "metadata": {"x": "x" * 2**20}}
    rows[7] = {"content": rows[7], "memory_type": "decision", "user_id": None, "validity_horizon": SOON}
    rows += [7, {}, {"content": "Depot K opens at ten.", "idempotency_key": "K"}, ["Depot L"]]
    first = client.save_many(rows, source="user", citations=None, idempotency_key="all")

    def shown(result: ValidationResult | Problem) -> str:
        return result.outcome if isinstance(result, ValidationResult) else f"{result.status} {result.code}"

    assert [shown(result) for result in first] == [
        *("stored", "stored", "blocked", "stored", "422 invalid_request"),
        *("422 invalid_request", "413 body_too_large", "stored", "stored"),
        *["422 invalid_request"] * 4,
    ]
    shown_as = [(type(e.error()), e.error().code) for e in first[4:6] if isinstance(e, Problem)]
    assert shown_as == [(ApiError, "invalid_request")] * 2
    kept = [e.model_copy(update={"promise": None}) if isinstance(e, ValidationResult) else e for e in first]
    again = client.save_many(rows, source="user", citations=None, idempotency_key="all")
    assert again == kept, "the list sent again is answered the same"
    assert len(client.memories().items) == 5
    assert client.save_many([]) == []


def test_reading(client: Client) -> None:
    ids = [
        client.save(text, source="user", memory_type=kind).memory_id or ""
        for text, kind in (
            ("The ledger is in Vilnius.", "fact"),
            ("Ann wants tea in the morning.", "preference"),
            ("Parcels leave from Riga.", "fact"),
        )
    ]
    page = client.memories(limit=2)
    assert [memory.id for memory in page.items] == [ids[2], ids[1]]
    rest = client.memories(limit=2, after=page.next)
    assert [memory.id for memory in rest.items] == [ids[0]]
    assert rest.next is None
    assert [memory.id for memory in client.memories(q="tea").items] == [ids[1]]
    assert [memory.id for memory in client.memories(memory_type="fact").items] == [ids[2], ids[0]]
    assert client.memories(status=["retracted", "superseded"]).items == ()
    memory = client.memory(ids[1])
    assert (memory.content, memory.memory_type) == ("Ann wants tea in the morning.", MemoryType.PREFERENCE)
    verdict = client.decision(memory.decision_id)
    assert verdict.memory_id == ids[1]
    assert client.evidence(ids[1]) == verdict.evidence


@pytest.mark.parametrize(
    "unknown", ["mem_" + "0" * 32, "", "..", "../decisions/x", "a/b", "mem_\n", "é", None, 7]
)
def test_an_unknown_id_is_not_found(client: Client, unknown: Any) -> None:
    for read in (client.memory, client.evidence, client.decision, client.receipt, client.pending_claim):
        with pytest.raises(ApiError) as caught:
            read(unknown)
        assert (caught.value.status, caught.value.code) == (404, "not_found")


def test_errors_are_raised(client: Client, site: Site) -> None:
    with pytest.raises(ApiError) as caught:
        client.save("The ledger is in Vilnius.", user_id=site.owner())
    assert (caught.value.status, caught.value.code) == (403, "owner_not_allowed")
    with pytest.raises(ApiError) as caught:
        client.save("The ledger is in Vilnius.", memory_type="rumour")
    assert (caught.value.status, caught.value.code) == (422, "invalid_request")
    with pytest.raises(ApiError) as caught:
        client.memories(colour="red")
    assert caught.value.code == "unknown_parameter"


def test_a_full_queue_is_said_at_once(client: Client) -> None:
    for text in ("Depot A is large.", "Sugar is sold by weight.", "Trains to Riga are blue."):
        assert client.save(text).outcome is Outcome.QUEUED
    with pytest.raises(QueueFull) as caught:
        client.save("Nobody works on the first of May.")
    assert (caught.value.status, caught.value.retry_after) == (429, 7.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_that_does_not_hold(site: Site, kind: Kind) -> None:
    with calling(kind, site.running.url, "vg_not-a-token") as client, pytest.raises(ApiError) as caught:
        client.memories()
    assert (caught.value.status, caught.value.code) == (401, "token_needed")
    assert "vg_not-a-token" not in f"{client!r} {caught.value!r} {caught.value}"


def test_threads_share_a_client(site: Site, token: str) -> None:
    with Client(site.running.url, token) as client, ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda _: client.save("Vilnius has the ledger.", source="user", idempotency_key="one"),
                range(16),
            )
        )
    assert len({answer.decision_id for answer in answers}) == 1


def test_tasks_share_a_client(site: Site, token: str) -> None:
    async def main() -> list[ValidationResult]:
        async with AsyncClient(site.running.url, token) as client:
            texts = [f"Shelf {number} holds box {number}." for number in range(8)]
            return await asyncio.gather(*(client.save(text, source="user") for text in texts))

    assert [answer.outcome for answer in asyncio.run(main())] == [Outcome.STORED] * 8


def test_the_address_and_the_token_come_from_the_environment(
    site: Site, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOUCHGATE_URL", f"{site.running.url}/")
    monkeypatch.setenv("VOUCHGATE_TOKEN", token)
    with Client() as client:
        assert client.save("The ledger is in Vilnius.", source="user").approved
    monkeypatch.delenv("VOUCHGATE_TOKEN")
    with pytest.raises(ValueError, match="VOUCHGATE_TOKEN"):
        Client()


SECRET = "vg_this-is-secret"


@pytest.mark.parametrize(
    ("url", "token", "timeout"),
    [
        ("ftp://gate.example.org", SECRET, 30),
        ("gate.example.org", SECRET, 30),
        ("http://ann:word@gate.example.org", SECRET, 30),
        ("http://gate.example.org/?x=1", SECRET, 30),
        ("http://gate.example.org:99999", SECRET, 30),
        ("http://", SECRET, 30),
        ("http://gate.example.org?", SECRET, 30),
        ("http://gate.example.org#", SECRET, 30),
        ("http://gate..example.org", SECRET, 30),
        (f"http://{'a' * 70}.example.org", SECRET, 30),
        ("http://gate.example.org", f"{SECRET}\n", 30),
        ("http://gate.example.org", f"{SECRET}é", 30),
        ("http://gate.example.org", f"{SECRET} ", 30),
        ("http://gate.example.org", SECRET, 0),
        ("http://gate.example.org", SECRET, float("inf")),
        ("http://gate.example.org", SECRET, 1e10),
    ],
)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_what_cannot_be_used_is_refused_without_showing_the_token(
    kind: type[Client] | type[AsyncClient], url: str, token: str, timeout: float
) -> None:
    with pytest.raises(ValueError) as caught:
        kind(url, token, timeout=timeout)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"x": float("nan")}},
        {"metadata": {"x": object()}},
        {"metadata": {"x": b"bytes"}},
        {"user_id": "\udc80"},
        {"idempotency_key": "é"},
        {"idempotency_key": ""},
        {"idempotency_key": "a\nb"},
    ],
)
def test_what_no_request_can_hold_is_not_sent(client: Client, more: dict[str, object]) -> None:
    with pytest.raises(Unsendable) as caught:
        client.save("The ledger is in Vilnius.", **more)  # type: ignore[arg-type]  # that is what is tested
    assert isinstance(caught.value, VouchgateError)
    with pytest.raises(Unsendable):
        client.memories(q="\udc80")
    assert client.memories().items == ()


def test_nobody_there() -> None:
    for kind in KINDS:
        with (
            calling(kind, "http://127.0.0.1:9", SECRET, retries=1) as client,
            pytest.raises(Unreachable) as caught,
        ):
            client.save("The ledger is in Vilnius.")
        assert caught.value.idempotency_key, "so that the write can be repeated safely"


def test_a_gated_body_runs_only_for_what_is_stored(site: Site, token: str) -> None:
    ran: list[tuple[str, str]] = []
    with Client(site.running.url, token) as client:

        @client.gated(source="user")
        def remember(text: str, tag: str = "none") -> int:
            """Keeps a text."""
            ran.append((text, tag))
            return len(ran)

        stored = remember("The ledger is in Vilnius.", tag="place")
        assert (stored.value, bool(stored), stored.verdict.outcome) == (1, True, Outcome.STORED)
        assert stored.verdict.evidence.claim.content == "The ledger is in Vilnius.\nplace", "every text"
        repeated = remember(tag="place", text="The ledger is in Vilnius.")
        assert (repeated.value, bool(repeated), repeated.verdict.rule) == (None, False, "duplicate")
        blocked = remember(text="I think the ledger is lost.")
        assert not blocked
        assert blocked.next_step == next_step(blocked.verdict)
        masked = remember("The office pays with 4111 1111 1111 1111.")
        assert (masked.value, bool(masked), masked.verdict.outcome) == (None, False, Outcome.STORED)
        assert "with masks" in masked.next_step, "what it would write still has the number"
        for wrong in (("a", "b", "c"), (7,), ()):
            with pytest.raises(TypeError):
                remember(*wrong)
        assert ran == [("The ledger is in Vilnius.", "place")]

        assert (remember.__name__, remember.__doc__) == ("remember", "Keeps a text.")
        assert list(inspect.signature(remember).parameters) == ["text", "tag"]
        assert inspect.signature(remember).return_annotation is Gated
        assert not hasattr(remember, "__wrapped__"), "nothing leads past the gate"


def test_what_is_gated_can_be_named_or_made_of_all_arguments(site: Site) -> None:
    owners = site.owner(), site.owner()
    _, token = site.token(Role.AGENT, *owners, sources=ALL_SOURCES)
    ran: list[str] = []

    with Client(site.running.url, token) as client:

        class Memory:
            @client.gated(source="user", user_id=owners[0])
            def add(self, text: str) -> None:
                ran.append(text)

            @client.gated(text="note", source="user", user_id=owners[1])
            def note(self, title: str, note: str) -> None:
                ran.append(f"{title} {note}")

        @client.gated(
            source="user",
            claim=lambda title, body, owner: {"content": f"{title}: {body}", "user_id": owner},
        )
        def write(title: str, body: str, owner: str) -> str:
            ran.append(body)
            return owner

        @client.gated
        def plain(text: str) -> None:
            ran.append(text)

        @client.gated(source="user", user_id=owners[1])
        def every(*texts: object, **more: object) -> str:
            return f"{texts} {more}"

        looked_into = every(
            "Sugar is sold by weight.", 7, None, [date(2027, 1, 1), {"tea": ("by the cup",)}], a=""
        )
        assert looked_into.verdict.evidence.claim.content == "Sugar is sold by weight.\ntea\nby the cup\na"
        for unseen in (b"Sugar", object(), [iter("ab")], {"a": Path("b")}):
            with pytest.raises(TypeError, match="nobody can see which texts are in 'texts'"):
                every("Sugar is sold by weight.", unseen)
        assert Memory().add("The ledger is in Vilnius.")
        assert Memory().note("Trains", "Trains to Riga are blue.")
        assert write("Depot", "It opens at nine.", owners[1]).value == owners[1]
        assert not write("Depot", "It probably opens at nine or so, I guess.", owners[1])
        with pytest.raises(ApiError):  # two owners, and none is said
            plain("Sugar is sold by weight.")
        texts = [client.memories(user_id=owner).items[0].content for owner in owners]
        assert texts == ["The ledger is in Vilnius.", "Depot: It opens at nine."]
    assert ran == ["The ledger is in Vilnius.", "Trains Trains to Riga are blue.", "It opens at nine."]


def test_a_function_that_cannot_be_gated_is_refused_when_it_is_decorated(site: Site, token: str) -> None:
    async def coroutine(text: str) -> None:
        raise AssertionError(text)

    def function(text: str) -> None:
        raise AssertionError(text)

    with Client(site.running.url, token) as client:
        with pytest.raises(TypeError, match="AsyncClient"):
            client.gated(coroutine)
        with pytest.raises(TypeError, match="no argument 'note'"):
            client.gated(text="note")(function)
        with pytest.raises(TypeError, match="not both"):
            client.gated(text="text", claim=str)(function)
        with pytest.raises(TypeError, match="no argument"):
            client.gated(lambda: None)
        with pytest.raises(TypeError, match="no field 'colour'"):
            client.gated(claim=lambda text: {"content": text, "colour": "red"})(function)("Sugar is sweet.")
        with pytest.raises(TypeError, match="no field 'approved'"):
            client.gated(claim=lambda text: {"content": text, "approved": True})(function)("Sugar is sweet.")

    async def main() -> None:
        async with AsyncClient(site.running.url, token) as client:
            with pytest.raises(TypeError, match=r"Client\.gated"):
                client.gated(function)  # type: ignore[arg-type]  # that is what is tested

    asyncio.run(main())


def test_a_write_that_fails_after_the_gate_has_stored_says_so(site: Site, token: str) -> None:
    with Client(site.running.url, token) as client:

        @client.gated(claim=lambda text: {"content": text, "source": "user", "idempotency_key": "note 7"})
        def remember(text: str) -> str:
            if not found:
                raise OSError("the disk is full")
            return text

        found: list[str] = []
        with pytest.raises(OSError) as caught:
            remember("The ledger is in Vilnius.")
        (memory,) = client.memories().items
        assert memory.id in caught.value.__notes__[0]
        found.append("room")
        assert remember("The ledger is in Vilnius.").value, "the same key is answered the same: it runs again"


def test_the_gate_as_a_context(site: Site, token: str) -> None:
    written: list[str] = []
    with Client(site.running.url, token) as client:
        for text in ("The ledger is in Vilnius.", "I think the ledger is lost.", "Trains to Riga are blue."):
            with client.gate(text, source="user") as verdict:
                if verdict.approved:
                    written.append(text)
        with pytest.raises(KeyError) as caught, client.gate("Sugar is sold by weight.", source="user"):
            raise KeyError("no such shelf")
        assert "is stored as mem_" in caught.value.__notes__[0]
        with pytest.raises(KeyError) as caught, client.gate("I guess it is so."):
            raise KeyError("no such shelf")
        assert not hasattr(caught.value, "__notes__")
    assert written == ["The ledger is in Vilnius.", "Trains to Riga are blue."]


def test_gating_coroutines(site: Site, token: str) -> None:
    ran: list[str] = []

    async def main() -> None:
        async with AsyncClient(site.running.url, token) as client:

            @client.gated(source="user")
            async def remember(text: str) -> int:
                await asyncio.sleep(0)
                ran.append(text)
                return len(ran)

            assert inspect.iscoroutinefunction(remember)
            assert (await remember("The ledger is in Vilnius.")).value == 1
            assert not await remember("I think the ledger is lost.")
            async with client.gate("Trains to Riga are blue.", source="user") as verdict:
                assert verdict.approved
            with pytest.raises(KeyError) as caught:
                async with client.gate("Sugar is sold by weight.", source="user"):
                    raise KeyError("no such shelf")
            assert "is stored as mem_" in caught.value.__notes__[0]

    asyncio.run(main())
    assert ran == ["The ledger is in Vilnius."]


def test_what_is_stored_is_delivered_once_and_in_order(client: Client) -> None:
    for number in range(3):
        delivery = {"sink": "notes", "place": f"note {number}", "data": {"tags": [number]}}
        assert client.save(f"Box {number} is on shelf {number}.", source="user", delivery=delivery).approved
    applied: list[Delivery] = []

    def apply(delivery: Delivery) -> None:
        applied.append(delivery)
        if delivery.place == "note 1":
            raise DeadLetter("There is no note 1.")

    assert client.deliver("notes", apply) == Delivered(done=2, failed=0, dead=1)
    assert [(one.place, one.content, one.data) for one in applied] == [
        (f"note {number}", f"Box {number} is on shelf {number}.", {"tags": [number]}) for number in range(3)
    ]
    assert client.deliver("notes", apply) == Delivered(done=0, failed=0, dead=0)
    (dead,) = client.deliveries(sink="notes", state="dead").items
    assert (dead.place, dead.last_error) == ("note 1", "There is no note 1.")
    first = client.deliveries(limit=2)
    rest = client.deliveries(limit=2, after=first.next)
    assert [one.place for one in (*first.items, *rest.items)] == ["note 2", "note 1", "note 0"]


def test_a_delivery_that_failed_holds_up_those_behind_it(client: Client) -> None:
    for number in range(2):
        delivery = {"sink": "notes", "place": f"note {number}"}
        assert client.save(f"Box {number} is on shelf {number}.", source="user", delivery=delivery).approved

    def apply(delivery: Delivery) -> None:
        raise OSError("the disk is full")

    assert client.deliver("notes", apply) == Delivered(done=0, failed=1, dead=0)
    states = [(one.place, one.attempts, one.last_error) for one in client.deliveries(state="waiting").items]
    assert states == [("note 1", 0, None), ("note 0", 1, "OSError: the disk is full")]


def test_what_waits_is_found_again(client: Client) -> None:
    queued = client.save("The ledger is kept for eleven years.")
    (item,) = client.pending().items
    assert (item.queue_id, item.reason, item.seen) == (queued.queue_id, queued.reason, 1)
    assert client.pending(status="approved", limit=1).items == ()


def test_the_examples_of_the_manual_run(site: Site, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOUCHGATE_URL", site.running.url)
    monkeypatch.setenv("VOUCHGATE_TOKEN", token)
    manual = (Path(__file__).parents[3] / "docs" / "client.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```$", manual, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/client.md", "exec"), names)  # noqa: S102  (that is what is tested)
    assert names["notes"] == {
        "Ann wants tea in the morning.": "drinks",
        "Depot C": "It opens at eleven.",
        "depot D": "noon",
        "depot-e": "Depot E opens at one.",
        "depot-f": "Depot F opens at two.",
    }


def test_importing_the_package_imports_no_client() -> None:
    program = (
        "import sys, vouchgate\n"
        "assert not {'httpx', 'pydantic'} & set(sys.modules)\n"
        "from vouchgate import Client\n"
        "assert 'httpx' in sys.modules and Client.__name__ == 'Client'\n"
        "assert not {'sqlalchemy', 'fastapi', 'asyncio'} & set(sys.modules), 'nor what it does not need'\n"
        "assert 'AsyncClient' in dir(vouchgate)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, cwd=Path(__file__).parents[3])
    raised = {name for name, one in vars(errors).items() if isinstance(one, type)}
    assert {name for name in raised if issubclass(getattr(errors, name), Exception)} <= set(vouchgate.__all__)
    with pytest.raises(ImportError):
        from vouchgate import Nothing  # type: ignore[attr-defined]  # noqa: F401
