"""What the Python client sends: batches, and reports on deliveries. A local web server stands for the service."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from tests.calling import KINDS, QUEUED, SECRET, STORED, TEXT, Kind, calling, in_turn, keys, problem, reply
from tests.web import Answer, Asked, WebServer, web_server
from vouchgate import ApiError, AsyncClient, Client, DeadLetter, GateClosed, OddAnswer, QueueFull, Unreachable
from vouchgate.client import Delivered, Delivery, Problem, exchange
from vouchgate.client.batches import MOST_BYTES
from vouchgate.ingest.claims.decision import ValidationResult


@pytest.fixture(scope="module")
def module_web() -> Iterator[WebServer]:
    """A web server in place of the service."""
    with web_server() as opened:
        yield opened


@pytest.fixture
def web(module_web: WebServer) -> WebServer:
    """That server, with no routes yet."""
    module_web.routes.clear()
    module_web.asked.clear()
    return module_web


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who tries again waits a moment first; `backoff` has a test of its own."""
    monkeypatch.setattr(exchange, "FIRST_WAIT", 0.02)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of client."""
    found: Kind = request.param
    return found


@pytest.fixture
def client(kind: Kind, web: WebServer) -> Iterator[Client]:
    """A client of the web server."""
    with calling(kind, web.url, SECRET) as opened:
        yield opened


def results(asked: Asked) -> Answer:
    """A batch's answer: every row is queued."""
    return reply({"results": [QUEUED for _ in json.loads(asked.body)["claims"]]})


def test_batches_have_as_many_rows_as_the_service_takes(client: Client, web: WebServer) -> None:
    web.routes["/v1/claims/batch"], web.routes["/v1/claims"] = results, reply(QUEUED, 202)
    rows = [{"content": f"é {n}", "memory_type": "fact", "source": "user"} for n in range(1001)]
    assert len(client.save_many(rows)) == 1001
    bodies = [json.loads(one.body) for one in web.asked]
    sent = [body.get("claims", [body]) for body in bodies]
    assert [len(batch) for batch in sent] == [500, 500, 1] and "claims" not in bodies[2]
    assert [row for batch in sent for row in batch] == rows
    assert len(set(keys(web))) == 3


def test_batches_are_no_larger_than_a_body_may_be(client: Client, web: WebServer) -> None:
    web.routes["/v1/claims/batch"] = results
    said = {"memory_type": "fact", "source": "ai_synthesis"}  # unless a row says otherwise
    rows = [{"content": "é" * 4000, **said, "metadata": {"padding": "x" * n}} for n in range(300)]
    assert len(client.save_many(rows)) == 300
    assert [row for one in web.asked for row in json.loads(one.body)["claims"]] == rows
    assert all(MOST_BYTES - 9000 < len(one.body) <= MOST_BYTES for one in web.asked[:-1])
    assert len(web.asked) == 3


def test_two_batches_of_the_same_rows_have_two_keys(client: Client, web: WebServer) -> None:
    web.routes["/v1/claims/batch"] = results
    rows = [{"content": TEXT, "memory_type": "fact", "source": "user"}] * 1000
    client.save_many(rows, idempotency_key="all")
    client.save_many(rows, idempotency_key="all")
    first, second, *again = keys(web)
    assert first != second
    assert again == [first, second]


def test_rows_that_the_database_did_not_take_are_sent_again(client: Client, web: WebServer) -> None:
    busy = {"status": 503, "code": "storage_unavailable", "detail": "Not now."}
    full = busy | {"status": 429, "code": "queue_full", "retry_after": 7}
    web.routes["/v1/claims/batch"] = in_turn(
        reply({"results": [QUEUED, busy, full]}), reply({"results": [QUEUED, STORED, full]})
    )
    rows = [{"content": f"{TEXT} {n}", "memory_type": "fact", "source": "user"} for n in range(3)]
    found = client.save_many(rows)
    assert [one.outcome for one in found if isinstance(one, ValidationResult)] == ["queued", "stored"]
    refused = found[2]
    assert isinstance(refused, Problem)
    error = refused.error()
    assert (type(error), error.status, error.retry_after, error.detail) == (QueueFull, 429, 7, "Not now.")
    assert len(set(keys(web))) == 1
    assert len(web.asked) == 2


def test_a_list_of_one_goes_the_way_of_one_and_is_answered_as_a_row(client: Client, web: WebServer) -> None:
    web.routes["/v1/claims"] = reply(STORED, 201)
    for _ in range(2):
        (found,) = client.save_many([TEXT], source="user", idempotency_key="all", hand_over=True)
        assert isinstance(found, ValidationResult) and (found.stored, found.delivery) == (True, None), (
            "an older service passes over what is preferred"
        )
    client.save(TEXT, source="user")
    client.save(TEXT, source="user", hand_over=True)
    first, second, *_ = keys(web)
    assert first == second and len({one.body for one in web.asked}) == 1, "it is no part of what is said"
    assert [one.headers.get("prefer") for one in web.asked] == ["hand-over", "hand-over", None, "hand-over"]
    web.routes["/v1/claims"] = reply(STORED | {"delivery": leased(1) | {"of_a_newer_service": 1}}, 201)
    (found,) = client.save_many([{"content": TEXT}], hand_over=True)
    assert isinstance(found, ValidationResult) and found.delivery is not None
    assert (found.delivery.id, "delivery" in found.model_dump(exclude={"evidence"})) == ("dlv_1", True)
    web.routes["/v1/claims/batch"] = results
    client.save_many([TEXT, TEXT + " So."], hand_over=True)
    assert web.asked[-1].headers.get("prefer") is None
    # What is wrong with the claim is a row; what is wrong with whoever sends it is raised, as for any list.
    for status, code, raised in (
        (422, "invalid_request", False),
        (409, "idempotency_key_reused", False),
        (403, "owner_not_allowed", False),
        (403, "stopped", False),
        (503, "read_only", False),
        (429, "queue_full", False),
        (401, "token_needed", True),
        (403, "role_not_allowed", True),
    ):
        web.routes["/v1/claims"] = problem(status, code)
        if raised:
            with pytest.raises(ApiError) as caught:
                client.save_many([TEXT], idempotency_key="all")
            assert (caught.value.code, caught.value.idempotency_key) == (code, "all")
        else:
            (row,) = client.save_many([TEXT])
            assert isinstance(row, Problem) and (row.status, row.code) == (status, code)


def test_what_is_no_list_is_not_taken_apart(client: Client, web: WebServer) -> None:
    web.routes["/v1/claims/batch"], web.routes["/v1/claims"] = results, reply(QUEUED, 202)
    wrong: Any
    for wrong in ({"content": TEXT}, TEXT, TEXT.encode()):
        with pytest.raises(TypeError, match=f"claims must be a list, not {type(wrong).__name__}"):
            client.save_many(wrong)
    for call in (client.save, client.check, partial(client.answer, "rev_1")):
        with pytest.raises(TypeError, match="citations must be a list, not str"):
            call(content=TEXT, citations="ADR-0029")
    with pytest.raises(TypeError, match="fail_on must be a list"):
        client.check_document(TEXT, fail_on="UNCITED")
    (row,) = client.save_many([{"content": TEXT, "citations": "ADR-0029"}])
    assert isinstance(row, Problem) and "citations must be a list, not str" in row.detail
    assert web.asked == []
    assert len(client.save_many(each for each in (TEXT, f"{TEXT} So."))) == 2  # type: ignore[arg-type]  # it ends


def test_what_a_gated_body_writes_is_what_was_checked(kind: Kind, web: WebServer) -> None:
    """The caller adds to its list while the gate is asked."""
    turn: list[Any] = []
    kept: list[Any] = []

    def answer(_: Asked) -> Answer:
        turn[0].append("The model made this up.")
        turn.append("And this.")
        return reply(STORED, 201)

    class Keeper(dict[str, str]):
        def put(self, lines: object, *, more: object = ()) -> None:
            self["kept"] = "yes"
            kept.append((lines, more))

        async def aput(self, lines: object, *, more: object = ()) -> None:
            self.put(lines, more=more)

    web.routes["/v1/claims"] = answer
    for claim in (None, lambda self, lines, *, more: lines[0][0]):
        turn[:], keeper = [[TEXT]], Keeper()
        if kind == "Client":
            with Client(web.url, SECRET) as client:
                assert client.gated(claim=claim)(Keeper.put)(keeper, turn, more={"of": turn, "and": (turn,)})
        else:

            async def main(claim: Any = claim, keeper: Keeper = keeper) -> None:
                async with AsyncClient(web.url, SECRET) as client:
                    put = client.gated(claim=claim)(Keeper.aput)
                    assert await put(keeper, turn, more={"of": turn, "and": (turn,)})

            asyncio.run(main())
        assert turn == [[TEXT, "The model made this up."], "And this."]
        assert kept.pop() == ([[TEXT]], {"of": [[TEXT]], "and": ([[TEXT]],)})
        assert keeper == {"kept": "yes"}, "whose method it is is no copy"


@pytest.mark.parametrize(
    "body",
    [
        {"results": [QUEUED]},
        {"results": [QUEUED, QUEUED, QUEUED]},
        {"results": [QUEUED, QUEUED | {"approved": True}]},
        {"results": [QUEUED, QUEUED | {"decision_id": None}]},
        {"results": [QUEUED, {}]},
        {"results": None},
        {},
    ],
)
def test_an_odd_answer_to_a_batch_is_an_error(client: Client, web: WebServer, body: object) -> None:
    web.routes["/v1/claims/batch"] = reply(body)
    with pytest.raises(OddAnswer):
        client.save_many([{"content": TEXT}, {"content": TEXT}])


def leased(number: int, owner: str = "ada") -> dict[str, Any]:
    """A delivery as it is leased."""
    return {
        "id": f"dlv_{number}",
        "lease": f"lease {number}",
        "owner_id": owner,
        "sink": "notes",
        "place": f"note {number}",
        "op": "put",
        "data": {"tags": ["a"]},
        "content": f"Note {number}.",
        "memory_id": f"mem_{number}",
        "memory_type": "fact",
        "attempts": 0,
        "created_at": "2026-05-04T12:30:15Z",
    }


def gate_with(web: WebServer, *batches: Sequence[dict[str, Any]], **answers: Answer) -> list[Any]:
    """Routes that lease these, one list a call; `answers` is to `done_1` and the like. Gives what was reported."""
    told: list[Any] = []

    def report(asked: Asked) -> Answer:
        number, what = asked.path.removeprefix("/v1/deliveries/dlv_").split("/")
        told.append((what, int(number), json.loads(asked.body)))
        return answers.get(
            f"{what}_{number}", reply({"state": "waiting" if what == "failed" else "delivered"})
        )

    web.routes["/v1/deliveries/lease"] = in_turn(
        *(reply({"deliveries": list(one)}) for one in (*batches, ()))
    )
    for one in (one for batch in batches for one in batch):
        for what in ("done", "failed"):
            web.routes[f"/v1/deliveries/{one['id']}/{what}"] = report
    return told


def test_deliveries_are_applied_in_order_until_nothing_is_left(client: Client, web: WebServer) -> None:
    told = gate_with(web, [leased(1), leased(2)], [leased(3)])
    applied: list[Delivery] = []
    assert client.deliver("notes", applied.append, user_id="ada") == Delivered(done=3, failed=0, dead=0)
    assert [one.content for one in applied] == ["Note 1.", "Note 2.", "Note 3."]
    assert applied[0].data == {"tags": ["a"]}
    assert told == [("done", number, {"lease": f"lease {number}"}) for number in (1, 2, 3)]
    leases = [json.loads(one.body) for one in web.asked if one.path.endswith("lease")]
    assert leases == [{"sink": "notes", "most": most, "user_id": "ada"} for most in (2, 20)], (
        "a lease that is not full is the last"
    )


def test_what_was_handed_over_is_applied_alone_and_reported_as_any(client: Client, web: WebServer) -> None:
    given_up, gone = reply({"state": "dead"}), problem(409, "lease_lost")
    told = gate_with(web, [leased(n) for n in (1, 2, 3, 4)], failed_3=given_up, done_4=gone)
    applied: list[str] = []

    def apply(delivery: Delivery) -> None:
        applied.append(delivery.id)
        if delivery.id in ("dlv_2", "dlv_3"):
            raise (OSError if delivery.id == "dlv_2" else DeadLetter)("no room")

    counted = [client.deliver("notes", apply, handed=Delivery(**leased(n))) for n in (1, 2, 3, 4)]
    assert counted == [Delivered(1, 0, 0), Delivered(0, 1, 0), Delivered(0, 0, 1), Delivered(0, 0, 0)]
    assert applied == ["dlv_1", "dlv_2", "dlv_3", "dlv_4"]
    assert [(what, body.get("error"), body.get("final")) for what, _, body in told] == [
        ("done", None, None),
        ("failed", "OSError: no room", False),
        ("failed", "no room", True),
        ("done", None, None),
    ]
    assert all(not one.path.endswith("/lease") for one in web.asked)


def test_after_a_failure_nothing_more_of_that_owner_is_applied(client: Client, web: WebServer) -> None:
    one_owner, other = [leased(1), leased(3)], [leased(2, "bob"), leased(4, "bob")]
    told = gate_with(web, [one_owner[0], other[0], one_owner[1], other[1]])
    applied: list[str] = []

    def apply(delivery: Delivery) -> None:
        applied.append(delivery.id)
        if delivery.owner_id == "ada":
            raise OSError("the disk\nis full \udc80")

    assert client.deliver("notes", apply) == Delivered(done=2, failed=1, dead=0)
    assert applied == ["dlv_1", "dlv_2", "dlv_4"]
    said = {"lease": "lease 1", "error": "OSError: the disk is full", "final": False}
    assert told[0] == ("failed", 1, said)


def test_a_dead_letter_holds_nothing_up(client: Client, web: WebServer) -> None:
    dead = reply({"state": "dead"})
    told = gate_with(web, [leased(1), leased(2), leased(3)], failed_1=dead, failed_2=dead)

    def apply(delivery: Delivery) -> None:
        if delivery.id == "dlv_1":
            raise DeadLetter("There is no such note.")
        if delivery.id == "dlv_2":
            raise OSError  # the eighth time, says the service

    assert client.deliver("notes", apply) == Delivered(done=1, failed=0, dead=2)
    assert told[0] == ("failed", 1, {"lease": "lease 1", "error": "There is no such note.", "final": True})
    assert told[1] == ("failed", 2, {"lease": "lease 2", "error": "OSError:", "final": False})


def test_a_lease_that_was_lost_is_not_counted_and_does_not_go_round_for_ever(
    client: Client, web: WebServer
) -> None:
    gate_with(web, [leased(1), leased(2)], done_1=problem(409, "lease_lost"))
    web.routes["/v1/deliveries/lease"] = reply({"deliveries": [leased(1), leased(2)]})  # again and again
    applied: list[Delivery] = []
    assert client.deliver("notes", applied.append) == Delivered(done=0, failed=0, dead=0)
    assert [one.id for one in applied] == ["dlv_1"], "what comes after it is somebody else's, too"


def test_a_gate_that_goes_away_while_delivering_is_an_error(kind: Kind, web: WebServer) -> None:
    gate_with(web, [leased(1)], done_1=Answer("", 502))
    applied: list[Delivery] = []
    with calling(kind, web.url, SECRET, retries=0) as client, pytest.raises(Unreachable):
        client.deliver("notes", applied.append)
    assert len(applied) == 1


def test_what_is_no_failure_of_a_delivery_is_not_told_as_one(client: Client, web: WebServer) -> None:
    told = gate_with(web, [leased(1)])

    def apply(_: Delivery) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.deliver("notes", apply)
    assert told == [], "the lease ends by itself"


def test_coroutines_apply_deliveries(web: WebServer) -> None:
    gate_with(web, [leased(1), leased(2)])
    applied: list[str] = []

    async def apply(delivery: Delivery) -> None:
        applied.append(delivery.id)
        if delivery.id == "dlv_2":
            raise OSError

    async def main() -> Delivered:
        async with AsyncClient(web.url, SECRET) as client:
            return await client.deliver("notes", apply)

    assert asyncio.run(main()) == Delivered(done=1, failed=1, dead=0)
    assert applied == ["dlv_1", "dlv_2"]
    # Who waits does not await: it would be told as done, and never written.
    told = gate_with(web, [leased(1)])
    for never in (apply, lambda _: asyncio.sleep(0)):
        with Client(web.url, SECRET) as client, pytest.raises(TypeError, match="called and not awaited"):
            client.deliver("notes", never)  # type: ignore[arg-type]  # that is what is tested
    assert (told, applied) == ([], ["dlv_1", "dlv_2"])


FORKED = """
import asyncio, os, sys
from vouchgate import AsyncClient, Client, GateClosed
kind, url = sys.argv[1:]
client = {"Client": Client, "AsyncClient": AsyncClient}[kind](url, "token")
runner = asyncio.Runner()
run = runner.run if kind == "AsyncClient" else lambda answer: answer
def ask():
    return (asyncio.run if kind == "AsyncClient" else lambda answer: answer)(client.memories())
run(client.memories())
if (child := os.fork()) == 0:
    ask()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
run(client.memories())
run(client.aclose() if kind == "AsyncClient" else client.close())
if (child := os.fork()) == 0:
    try:
        ask()
    except GateClosed:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_process_that_was_forked_asks_over_connections_of_its_own(kind: Kind, web: WebServer) -> None:
    connections: list[int] = []

    def answer(_: Asked) -> Answer:
        connections.append(threading.get_ident())  # each connection has a thread, for as long as it is open
        return reply({"items": [], "next": None})

    web.routes["/v1/memories"] = answer
    subprocess.run([sys.executable, "-c", FORKED, kind, web.url], check=True, timeout=60)
    parent, child, again = connections
    assert parent == again != child


def test_a_client_that_is_closed_says_so(kind: Kind, web: WebServer) -> None:
    with calling(kind, web.url, SECRET) as client:
        client.close() if kind == "Client" else client.aclose()  # type: ignore[attr-defined]  # is its name there
        with pytest.raises(GateClosed, match=f"this {kind} is closed"):
            client.save(TEXT)
    assert web.asked == []


def test_deliveries_one_by_one(client: Client, web: WebServer) -> None:
    told = gate_with(web, [leased(1)])
    (one,) = client.lease_deliveries("notes", most=1)
    client.delivery_done(one)
    client.delivery_failed(one, "no", final=True)
    assert [what for what, *_ in told] == ["done", "failed"]
    state = leased(1) | {"state": "dead", "due_at": None, "delivered_at": None, "last_error": "no"}
    web.routes["/v1/deliveries?sink=notes&state=dead"] = reply({"items": [state], "next": "7:ada"})
    page = client.deliveries(sink="notes", state="dead")
    assert (page.items[0].last_error, page.next) == ("no", "7:ada")


def test_own_pending_claims(client: Client, web: WebServer) -> None:
    item = {
        "queue_id": "rev_1",
        "content": TEXT,
        "memory_type": "fact",
        "reason": "Ungrounded assertion needs verification",
        "status": "rejected",
        "seen": 2,
        "created_at": "2026-05-04T12:30:15Z",
        "decided_at": "2026-05-05T12:30:15Z",
        "note": "It moved.",
        "memory_id": None,
        "of_a_newer_service": 1,
    }
    web.routes["/v1/claims/pending?status=rejected&limit=1"] = reply({"items": [item], "next": None})
    (found,) = client.pending(status="rejected", limit=1).items
    assert (found.queue_id, found.note, found.seen) == ("rev_1", "It moved.", 2)
    web.routes["/v1/claims/pending?status=pending"] = reply({"items": []})
    with pytest.raises(OddAnswer):  # whether there is more must be said
        client.pending()
