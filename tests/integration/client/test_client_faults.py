"""The Python client when things go wrong: lost answers, busy services, odd answers. Real sockets, real answers."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Sequence

import httpx
import pytest

from tests.acceptance.site import Site, open_site
from tests.answers import answer_of, claim_of
from tests.calling import (
    JSON,
    KINDS,
    PROBLEM,
    QUEUED,
    SECRET,
    STORED,
    TEXT,
    Kind,
    calling,
    in_turn,
    keys,
    problem,
    reply,
)
from tests.hostile import Line, hostile
from tests.running.service import ALL_SOURCES
from tests.web import Answer, Asked, WebServer, web_server
from vouchgate import ApiError, Client, OddAnswer, QueueFull, Unreachable, VouchgateError
from vouchgate.client import exchange
from vouchgate.ingest.claims.decision import Outcome, ValidationResult
from vouchgate.ingest.claims.people import Role


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gate on SQLite: which database it is cannot matter to who calls it. It takes 8 rows at a time."""
    directory = tmp_path_factory.mktemp("client")
    policy = directory / "policy.toml"
    policy.write_text("[limits]\nbatch_claims = 8\n")
    with open_site(f"sqlite:///{directory / 'vouchgate.db'}", policy=policy) as opened:
        yield opened


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


@pytest.mark.parametrize("fault", ["dropped", "late", "gateway"])
def test_a_claim_whose_answer_was_lost_is_kept_once(
    site: Site, kind: Kind, web: WebServer, fault: str
) -> None:
    """The service commits, and the answer does not arrive."""
    owner = site.owner()
    token = site.token(Role.AGENT, owner, sources=ALL_SOURCES)[1]
    answered: list[httpx.Response] = []

    def forward(asked: Asked) -> Answer:
        headers = {name: asked.headers[name] for name in ("authorization", "idempotency-key", "content-type")}
        with site.caller() as behind:
            answered.append(behind.post(asked.path, content=asked.body, headers=headers))
        if len(answered) == 1:
            match fault:
                case "dropped":
                    raise ConnectionResetError
                case "late":
                    return Answer(delay=30)
                case _:
                    return Answer("<h1>Bad gateway</h1>", 502)
        return Answer(answered[-1].content, answered[-1].status_code, JSON)

    web.routes["/v1/claims"] = forward
    with calling(kind, web.url, token, timeout=0.5 if fault == "late" else 30) as client:
        verdict = client.save(TEXT, source="user")
    assert len(answered) >= 2  # more, when the machine is so busy that the next answer is late, too
    assert [one.headers.get("idempotency-replayed") for one in answered] == [
        None,
        *["true"] * (len(answered) - 1),
    ]
    assert {one.json()["decision_id"] for one in answered} == {verdict.decision_id}
    assert len(set(keys(web))) == 1
    with site.agent(owner) as agent:
        assert [memory["id"] for memory in agent.get("/v1/memories").json()["items"]] == [verdict.memory_id]


def test_a_list_that_broke_off_goes_on_and_doubles_nothing(site: Site, kind: Kind, web: WebServer) -> None:
    """The second of several batches is kept, and then the service is gone."""
    owner = site.owner()
    token = site.token(Role.AGENT, owner, sources=ALL_SOURCES)[1]
    gone, kept = False, 0

    def forward(asked: Asked) -> Answer:
        nonlocal gone, kept
        if gone:
            raise ConnectionResetError
        headers = {name: asked.headers[name] for name in ("authorization", "idempotency-key", "content-type")}
        with site.caller() as behind:
            answer = behind.post(asked.path, content=asked.body, headers=headers)
        if answer.status_code == 200:
            kept += 1
            if kept == 2:
                gone = True
                raise ConnectionResetError
        return Answer(answer.content, answer.status_code, {"Content-Type": answer.headers["content-type"]})

    web.routes["/v1/claims/batch"] = forward
    rows = [
        {"content": f"Box {n} is on shelf {n}.", "memory_type": "fact", "source": "user"} for n in range(24)
    ]
    with calling(kind, web.url, token, retries=1) as client:
        with pytest.raises(Unreachable) as caught:
            client.save_many(rows)
        assert kept == 2
        gone = False
        results = client.save_many(rows, idempotency_key=caught.value.idempotency_key)
    decided = [one for one in results if isinstance(one, ValidationResult)]
    assert [one.outcome for one in decided] == [Outcome.STORED] * 24, "none is its own duplicate"
    assert len({one.memory_id for one in decided}) == 24
    assert [one.evidence.claim.content for one in decided] == [row["content"] for row in rows]


@pytest.mark.parametrize(
    "first",
    [
        (problem(503, "storage_unavailable", Retry_After="0"),),
        (problem(429, "rate_limited", Retry_After="0"),),
        (Answer("busy", 502),),
        (Answer("", 504), ConnectionResetError),
    ],
)
def test_what_passes_is_tried_again_with_the_same_key(
    client: Client, web: WebServer, first: Sequence[Answer | type[Exception]]
) -> None:
    web.routes["/v1/claims"] = in_turn(*first, reply(QUEUED, 202))
    assert client.save(TEXT).outcome is Outcome.QUEUED
    assert len(web.asked) == len(first) + 1
    assert len(set(keys(web))) == 1
    assert len({one.body for one in web.asked}) == 1
    assert {one.headers["authorization"] for one in web.asked} == {f"Bearer {SECRET}"}


def test_reads_are_tried_again_too(client: Client, web: WebServer) -> None:
    page: dict[str, object] = {"items": [], "next": None}
    web.routes["/v1/memories?q=tea&limit=3"] = in_turn(ConnectionResetError, reply(page))
    assert client.memories(q="tea", limit=3).items == ()
    assert keys(web) == [None] * 2


@pytest.mark.parametrize(
    ("answer", "error", "status"),
    [
        (problem(503, "storage_unavailable"), ApiError, 503),
        (problem(429, "rate_limited", Retry_After="0"), ApiError, 429),
        (Answer("busy", 503), Unreachable, None),
        (ConnectionResetError, Unreachable, None),
    ],
)
def test_tries_end(
    kind: Kind,
    web: WebServer,
    answer: Answer | type[Exception],
    error: type[VouchgateError],
    status: int | None,
) -> None:
    web.routes["/v1/claims"] = in_turn(answer)
    with calling(kind, web.url, SECRET, retries=1) as client, pytest.raises(error) as caught:
        client.save(TEXT, idempotency_key="run 7")
    assert type(caught.value) is error
    assert getattr(caught.value, "status", None) == status
    assert caught.value.idempotency_key == "run 7"
    assert len(web.asked) == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (problem(429, "queue_full", Retry_After="1"), QueueFull),
        (problem(429, "rate_limited", Retry_After="3600"), ApiError),  # nobody waits for an hour here
        (problem(409, "idempotency_key_reused"), ApiError),
        (problem(422, "invalid_request"), ApiError),
        (problem(500, "internal_error"), ApiError),
        (problem(401, "token_needed"), ApiError),
    ],
)
def test_what_does_not_pass_is_not_tried_again(
    client: Client, web: WebServer, answer: Answer, error: type[ApiError]
) -> None:
    web.routes["/v1/claims"] = answer
    with pytest.raises(error) as caught:
        client.save(TEXT)
    assert type(caught.value) is error
    assert caught.value.detail == "Not now."
    assert caught.value.retry_after == (
        float(answer.headers["Retry-After"]) if answer.status == 429 else None
    )
    assert len(web.asked) == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer("<p>hello", 200), "text/html"),
        (Answer("", 200, {}), "none"),
        (Answer("", 201, JSON), "another shape"),
        (Answer('{"outcome": "stored"', 201, JSON), "another shape"),
        (reply([], 201), "another shape"),
        (reply({"outcome": "stored", "approved": True}, 201), "another shape"),
        (Answer(b'{"outcome": "\xff"}', 201, JSON), "another shape"),
        (reply(STORED | {"outcome": "perhaps"}, 201), "outcome"),
        (reply(STORED, 200), None),
        (reply(STORED | {"approved": False}, 201), "contradicts"),
        (reply(QUEUED | {"approved": True}, 202), "contradicts"),
        (reply(STORED | {"memory_id": None}, 201), "names no memory"),
        (reply(QUEUED | {"held": False, "memory_id": None}, 202), "names no memory"),
        (reply(STORED, 409), "does not go with"),
        (reply(STORED, 422), "does not go with"),
        (reply(QUEUED, 201), "does not go with"),
        (reply(STORED | {"decision_id": None}, 201), "names no decision"),
        (reply(STORED, 404), "is no answer of the service"),
        (Answer("<h1>Nothing here</h1>", 404), "is no answer of the service"),
        (Answer("<h1>Too large</h1>", 413), "is no answer of the service"),
        (Answer("{}", 400, PROBLEM), "is no answer of the service"),
        (Answer("[", 409, PROBLEM), "is no answer of the service"),
        (Answer("not gzip", 201, JSON | {"Content-Encoding": "gzip"}), "cannot be read"),
    ],
)
def test_an_odd_answer_is_an_error(client: Client, web: WebServer, answer: Answer, said: str | None) -> None:
    web.routes["/v1/claims"] = answer
    if said is None:
        assert client.save(TEXT).approved, "a newer service may answer 200"
        return
    with pytest.raises(OddAnswer, match=said) as caught:
        client.save(TEXT)
    assert caught.value.status == (None if said == "cannot be read" else answer.status)
    assert caught.value.idempotency_key == keys(web)[0]
    assert len(web.asked) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_error_and_leads_nowhere(client: Client, web: WebServer, status: int) -> None:
    with web_server({"/v1/claims": reply(STORED, 201)}) as elsewhere:
        web.routes["/v1/claims"] = Answer("", status, {"Location": f"{elsewhere.url}/v1/claims"})
        with pytest.raises(OddAnswer, match="redirect"):
            client.save(TEXT)
        assert elsewhere.asked == []


def test_what_is_no_http(kind: Kind) -> None:
    def behave(line: Line, _: bytes) -> None:
        line.send(b"220 mail.example.org ESMTP\r\n")

    url = "http://127.0.0.1:{}"
    with (
        hostile(behave) as server,
        calling(kind, url.format(server.port), SECRET, retries=0) as client,
        pytest.raises(Unreachable),
    ):
        client.save(TEXT)


def everywhere_more(value: object) -> object:
    """The value with a field that nobody knows in every object."""
    if isinstance(value, dict):
        return {name: everywhere_more(part) for name, part in value.items()} | {"of_a_newer_service": [1]}
    return [everywhere_more(part) for part in value] if isinstance(value, list) else value


def test_what_a_newer_service_adds_is_left_out(client: Client, web: WebServer) -> None:
    hedged = answer_of(claim_of(f"{TEXT} It is probably large, see ADR-007."))
    cited = hedged.model_dump(mode="json")
    web.routes["/v1/claims"] = reply(everywhere_more(cited), 202)
    verdict = client.save(TEXT)
    # Any field may stand in metadata and in facts, so that nothing there is unknown.
    assert verdict.evidence.metadata == {"of_a_newer_service": [1]}
    assert json.loads(
        verdict.model_dump_json()
        .replace(',"of_a_newer_service":[1]', "")
        .replace('"of_a_newer_service":[1]', "")
    ) == json.loads(hedged.model_dump_json())


def test_no_error_shows_the_token(kind: Kind, web: WebServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    web.routes["/v1/claims"] = in_turn(ConnectionResetError)
    with calling(kind, web.url, SECRET, retries=0) as client:
        with pytest.raises(Unreachable) as lost:
            client.save(TEXT)
        web.routes["/v1/claims"] = Answer(SECRET, 500)
        with pytest.raises(OddAnswer) as odd:
            client.save(TEXT)
        shown = repr(client)
    for caught in (lost, odd):
        shown += "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None, "httpx's exceptions hold the request, and that the token"
    assert SECRET not in shown
    assert SECRET not in caplog.text


def test_a_service_on_this_machine_is_not_asked_through_a_proxy(
    kind: Kind, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.routes["/v1/claims"] = reply(QUEUED, 202)
    with web_server() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with calling(kind, web.url, SECRET) as client:
            assert client.save(TEXT).outcome is Outcome.QUEUED
        assert proxy.asked == []
