"""Bodies and queries that make no sense: a problem document, nothing stored, never a 500."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.acceptance.site import PROBLEM, Site, claim, is_problem, store, submit

pytestmark = pytest.mark.on("sqlite")

JSON = {"Content-Type": "application/json"}

# Bodies of a claim with one thing wrong, and what is answered.
WRONG_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "no content": ({"content": None}, "invalid_request"),
    "empty": ({"content": ""}, "invalid_request"),
    "white space": ({"content": " \t\r\n\u3000\u00a0"}, "invalid_request"),
    "NUL": ({"content": "a\x00b"}, "invalid_request"),
    "content number": ({"content": 7}, "invalid_request"),
    "content list": ({"content": ["a"]}, "invalid_request"),
    "content object": ({"content": {"text": "a"}}, "invalid_request"),
    "unknown field": ({"confidence": 0.9}, "invalid_request"),
    "unknown field with a long name": ({"x" * 5000: 1}, "invalid_request"),
    "unknown type": ({"memory_type": "rumour" * 500}, "invalid_request"),
    "type in capitals": ({"memory_type": "FACT"}, "invalid_request"),
    "type number": ({"memory_type": 1}, "invalid_request"),
    "unknown source": ({"source": "oracle"}, "invalid_request"),
    "source null": ({"source": None}, "invalid_request"),
    "owner number": ({"user_id": 3}, "invalid_request"),
    "owner empty": ({"user_id": ""}, "invalid_request"),
    "owner blank": ({"user_id": "   "}, "invalid_request"),
    "owner NUL": ({"user_id": "a\x00"}, "invalid_request"),
    "owner line break": ({"user_id": "a\nb"}, "invalid_request"),
    "owner right-to-left mark": ({"user_id": "ada\u202e"}, "invalid_request"),
    "owner long": ({"user_id": "a" * 201}, "invalid_request"),
    "citations text": ({"citations": "ADR-1"}, "invalid_request"),
    "citations object": ({"citations": {"type": "adr", "value": "ADR-1"}}, "invalid_request"),
    "citation number": ({"citations": [3]}, "invalid_request"),
    "citation empty": ({"citations": [""]}, "invalid_request"),
    "citation NUL": ({"citations": ["ADR-1\x00"]}, "invalid_request"),
    "citation long": ({"citations": ["https://a.example/" + "a" * 2048]}, "invalid_request"),
    "long citation of nothing": ({"citations": ["what everybody says " * 100]}, "citation_malformed"),
    "citation of nothing": ({"citations": ["what everybody says"]}, "citation_malformed"),
    "citation of two": ({"citations": ["ADR-1 and ADR-2"]}, "citation_malformed"),
    "citation of another type": ({"citations": [{"type": "adr", "value": "RFC 2119"}]}, "citation_malformed"),
    "citation of no type": ({"citations": [{"type": "book", "value": "x"}]}, "citation_malformed"),
    "citation extra": ({"citations": [{"type": "adr", "value": "ADR-1", "x": 1}]}, "invalid_request"),
    "metadata list": ({"metadata": []}, "invalid_request"),
    "metadata null": ({"metadata": None}, "invalid_request"),
    "metadata NUL": ({"metadata": {"a": ["\x00"]}}, "invalid_request"),
    "metadata NUL key": ({"metadata": {"a": {"\x00": 1}}}, "invalid_request"),
    "horizon text": ({"validity_horizon": "next week"}, "invalid_request"),
    "horizon list": ({"validity_horizon": []}, "invalid_request"),
}


@pytest.mark.parametrize("name", WRONG_FIELDS)
def test_a_claim_with_something_wrong_is_refused(site: Site, owner: str, name: str) -> None:
    agent = site.agent()  # for any owner, so that no owner is refused for being another's
    change, code = WRONG_FIELDS[name]
    body = claim("The crane was inspected in spring", user_id=owner) | change
    for path in ("/v1/claims", "/v1/claims/check"):
        problem = is_problem(agent.post(path, json=body, headers={"Idempotency-Key": "k"}), 422, code)
        assert len(str(problem)) < 1000  # what was sent is not sent back
        assert "function" not in str(problem)
    batch = agent.post("/v1/claims/batch", json={"claims": [body, claim("Cranes are tall", user_id=owner)]})
    bad, good = batch.json()["results"]
    assert (bad, good["rule"]) == (problem, "trusted_source")  # word for word what the single call answers
    assert site.actions(owner) == ["claim.stored"]
    # The key was not used up by what was refused.
    submit(agent, claim("Cranes are yellow", user_id=owner), 201, key="k")


def test_a_mistyped_name_is_told_with_what_it_was_meant_to_be(site: Site, owner: str) -> None:
    agent, body = site.agent(), {"contents": "Cranes are tall", "memory_type": "facts", "user_id": owner}
    said = is_problem(agent.post("/v1/claims", json=body), 422)["detail"]
    assert said == (
        "body.content: is missing; body.memory_type: must be 'fact', 'decision', 'preference' or 'procedure'; "
        "body.contents: is unknown (did you mean content?)"
    )
    said = is_problem(agent.get("/v1/memories?limt=3"), 422)["detail"]
    assert "'limt' here (did you mean limit?); known are: after," in said


def raw(metadata: str) -> bytes:
    """A good claim whose metadata has this JSON text as a value."""
    body = json.dumps(claim("The dam holds back two lakes", metadata={"n": 0}))
    return body.replace('"n": 0', f'"n": {metadata}').encode("utf-8", "surrogatepass")


WRONG_BODIES: dict[str, tuple[bytes, int]] = {
    "null": (b"null", 422),
    "list": (b"[]", 422),
    "text": (b'"claim"', 422),
    "number": (b"1e9", 422),
    "not JSON": (b"content=x", 400),
    "cut off": (raw("0")[:-5], 400),
    "two values": (raw("0") + raw("0"), 400),
    "trailing comma": (raw("0")[:-1] + b",}", 400),
    "byte order mark": (b"\xef\xbb\xbf" + raw("0"), 400),
    "UTF-16": (raw("0").decode().encode("utf-16"), 400),
    "invalid UTF-8": (raw('"\udcff"').replace(b"\xed\xb3\xbf", b"\xff"), 400),
    "encoded surrogate": (raw('"\ud800"'), 400),
    "lone high surrogate": (raw(r'"\ud83d"'), 400),
    "lone low surrogate": (raw(r'"\ude00 x"'), 400),
    "surrogates the wrong way": (raw(r'"\ude00\ud83d"'), 400),
    "surrogate in content": (raw("0").replace(b"The dam", rb"The \udfff dam"), 400),
    "surrogate in a name": (raw("0").replace(b'"n"', rb'"\ud800"'), 400),
    "bad escape": (raw(r'"\x41"'), 400),
    "control character": (raw('"\x01"'), 400),
    "NaN": (raw("NaN"), 400),
    "Infinity": (raw("-Infinity"), 400),
    "infinite by size": (raw("1e400"), 422),
    "infinite by size, negative": (raw("-1e400"), 422),
    "integer of 20,000 digits": (raw("7" * 20_000), 400),
    "integer of 4,200 digits": (raw("7" * 4_200), 422),
    "lists 100,000 deep": (raw("[" * 100_000 + "]" * 100_000), 400),
    "lists that never end": (b"[" * 100_000, 400),
    "objects 100,000 deep": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 400),
}


@pytest.mark.parametrize("name", WRONG_BODIES)
def test_a_body_that_is_no_claim_is_refused(site: Site, owner: str, name: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    body, status = WRONG_BODIES[name]
    for path in ("/v1/claims", "/v1/claims/check"):
        is_problem(agent.post(path, content=body, headers=JSON), status)
    # The other routes with a body read it in the same way; there, a good claim is of the wrong shape.
    for caller, path in (
        (agent, "/v1/claims/batch"),
        (reviewer, "/v1/reviews/batch"),
        (reviewer, "/v1/reviews/rev_x/approve"),
        (reviewer, "/v1/reviews/rev_x/reject"),
        (reviewer, "/v1/reviews/rev_x/undo"),
    ):
        is_problem(caller.post(path, content=body, headers=JSON), status)
    assert site.events(owner) == []


@pytest.mark.parametrize("path", ["/v1/claims", "/v1/claims/check", "/v1/claims/batch"])
def test_no_body_is_no_claim(site: Site, owner: str, path: str) -> None:
    answer = site.agent(owner).post(path, content=b"", headers=JSON)
    assert is_problem(answer, answer.status_code)["code"] in ("malformed_json", "invalid_request")
    assert answer.status_code in (400, 422)
    assert site.events(owner) == []


def test_of_two_values_with_one_name_the_last_counts(site: Site, owner: str) -> None:
    body = raw("0").replace(b'{"content"', b'{"content": "I guess it leaks", "content"')
    answer = site.agent(owner).post("/v1/claims", content=body, headers=JSON)
    assert answer.json()["evidence"]["claim"]["content"] == "The dam holds back two lakes"


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx", ";"]
)
def test_a_body_must_say_that_it_is_json(site: Site, owner: str, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    body = json.dumps(claim("The dam was built in 1931"))
    is_problem(site.agent(owner).post("/v1/claims", content=body, headers=headers), 415, "not_json")
    review = site.reviewer(owner).post("/v1/reviews/rev_x/reject", content=b"{}", headers=headers)
    is_problem(review, 415, "not_json")
    assert site.events(owner) == []


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_may_be_said_in_several_ways(site: Site, owner: str, kind: str) -> None:
    body = json.dumps(claim("The dam has nine gates"))
    assert (
        site.agent(owner).post("/v1/claims", content=body, headers={"Content-Type": kind}).status_code == 201
    )


@pytest.mark.parametrize("key", ["", "k" * 256, "a\tb", "schlüssel", "a\x7fb", "a\x01b", "é"])
def test_an_idempotency_key_is_visible_ascii(site: Site, owner: str, key: str) -> None:
    agent = site.agent(owner)
    for path, body in (
        ("/v1/claims", claim("The key is odd")),
        ("/v1/claims/batch", {"claims": [claim("The key is odd")]}),
    ):
        # Control characters are refused by the server itself, before the service sees the request.
        answer = agent.post(path, json=body, headers=httpx.Headers({b"Idempotency-Key": key.encode()}))
        if "\x01" in key or "\x7f" in key:
            assert answer.status_code == 400
        else:
            is_problem(answer, 422, "invalid_request")
    assert site.events(owner) == []


LONG = "x" * 5000
ODD_IDS = (
    "%00",
    "a%00b",
    "%ff%fe",
    "%ED%A0%80",
    "%0A",
    "..%2F..",
    "%F0%9F%9B%A0",
    "mem_",
    LONG,
    "'; DROP TABLE memory; --",
)


@pytest.mark.parametrize("odd", ODD_IDS)
def test_an_id_that_can_name_nothing_is_not_found(site: Site, owner: str, odd: str) -> None:
    reviewer = site.reviewer(owner)
    act = {"version": 1, "reason": "r"}
    for method, path, body in (
        ("GET", f"/v1/memories/{odd}", None),
        ("GET", f"/v1/memories/{odd}/evidence", None),
        ("DELETE", f"/v1/memories/{odd}", None),
        ("GET", f"/v1/decisions/{odd}", None),
        ("GET", f"/v1/reviews/{odd}", None),
        ("POST", f"/v1/reviews/{odd}/reject", act),
        ("POST", f"/v1/reviews/{odd}/undo", {"version": 1}),
        ("POST", f"/v1/reviews/{odd}/approve", {"version": 1}),
        ("POST", f"/v1/reviews/{odd}/approve", {"version": 1, "content": "The ferry is blue"}),
    ):
        is_problem(reviewer.request(method, path, json=body), 404, "not_found")
    for caller in (site.auditor(), site.agent()):  # for any owner, so that no list of owners narrows it
        is_problem(caller.get(f"/v1/memories/{odd}"), 404, "not_found")
        is_problem(caller.get(f"/v1/decisions/{odd}"), 404, "not_found")


ODD_QUERIES = {
    "/v1/memories": [
        *(
            "limit=0",
            "limit=-1",
            "limit=201",
            "limit=x",
            "limit=1.5",
            f"limit={'9' * 400}",
            f"limit={'9' * 20_000}",
        ),
        *(
            "after=x",
            "after=%00",
            "after=mem_",
            "after=%EF%BF%BD",
            f"after={LONG}",
            "text=%00",
            f"text={LONG}",
        ),
        *("user_id=%00", "user_id=", f"user_id={LONG}", "source_id=%00", f"source_id={LONG}", "status=gone"),
        *("memory_type=rumour", "confidence=1", "label=fact", "include_expired=perhaps", "status="),
        *("owner=ada", "limits=3", "%00=1", "text=a&text_=b"),
    ],
    "/v1/reviews": [
        *("limit=0", "limit=1000", "after=mem_x", "after=%00", "status=open", "user_id=%00", "x"),
        *(
            "order=best",
            "rule=x",
            "rule=12",
            "submitted_by=%00",
            "cited=%00",
            "text=%00",
            "memory_type=rumour",
        ),
    ],
    "/v1/audit/events": [
        *("limit=-5", "after=x", "after=1", "after=-1:ada", "after=1:%00", f"after=1:{LONG}", "after=:"),
        *("after=99999999999999999999:ada", "after=%D9%A1:ada", "user_id=%00", "user_id=", "actor=me"),
    ],
}


@pytest.mark.parametrize(
    ("path", "query"), [(path, query) for path, many in ODD_QUERIES.items() for query in many]
)
def test_a_query_that_makes_no_sense_is_refused(site: Site, path: str, query: str) -> None:
    caller = site.reviewer("reader") if path == "/v1/reviews" else site.auditor()
    answer = caller.get(f"{path}?{query}")
    problem = is_problem(answer, 422)
    assert problem["code"] in ("invalid_request", "unknown_parameter")
    assert query.partition("=")[0][:3] in problem["detail"] or "%00" in query or "text_" in query


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/v1", 404),
        ("GET", "/v2/claims", 404),
        ("GET", "/v1/memories/", 404),
        ("POST", "/v1/claims/", 404),
        ("GET", "/v1//memories", 404),
        ("GET", "/v1/memories/a/b", 404),
        ("GET", "/%00", 404),
        ("GET", "/" + LONG, 404),
        ("GET", "/v1/claims", 405),
        ("GET", "/openapi.json/", 404),
        ("POST", "/openapi.json", 405),
        ("PUT", "/v1/claims", 405),
        ("PATCH", "/v1/memories/x", 405),
        ("DELETE", "/v1/decisions/x", 405),
        ("DELETE", "/v1/audit/events", 405),
        ("POST", "/v1/audit/events", 405),
        ("POST", "/healthz", 405),
        ("OPTIONS", "/v1/claims", 405),
        ("HEAD", "/v1/memories", 405),
        ("TRACE", "/v1/memories", 405),
        ("OPTIONS", "/v1/reviews/batch", 405),
    ],
)
def test_what_is_not_there_is_said_in_a_problem_document(
    site: Site, owner: str, method: str, path: str, status: int
) -> None:
    answer = site.agent(owner).request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    if path.startswith("/v1/") and status == 405:
        assert (
            answer.headers["allow"]
            == {
                "/v1/claims": "POST",
                "/v1/memories": "GET",
                "/v1/memories/x": "DELETE, GET",
                "/v1/decisions/x": "GET",
                "/v1/audit/events": "GET",
                "/v1/reviews/batch": "POST",
            }[path]
        )
    if method == "HEAD":
        assert answer.content == b""
    else:
        is_problem(answer, status)


def test_a_request_that_is_no_http_does_no_harm(site: Site, owner: str) -> None:
    where = urlsplit(site.running.url)
    for bytes_sent in (
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1",
        b"POST /v1/claims HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n",
        b"POST /v1/claims HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{}",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00" * 1000,
    ):
        with socket.create_connection((str(where.hostname), int(where.port or 0)), timeout=5) as connection:
            connection.sendall(bytes_sent)
            connection.shutdown(socket.SHUT_WR)
            assert b" 500 " not in connection.recv(1000)
    assert store(site.agent(owner), "The service still answers")
