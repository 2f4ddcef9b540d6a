"""Sizes: what is just small enough is taken, one more is refused, and nothing of it is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.site import Site, claim, is_problem, queue, store, submit

pytestmark = pytest.mark.on("sqlite")

JSON = {"Content-Type": "application/json"}
MIB = 1024 * 1024


def text_of(length: int) -> str:
    """A plain sentence of exactly this many characters."""
    return ("the pier was painted in green and white " * (length // 40 + 1))[: length - 1] + "x"


def test_content_of_8192_characters_is_taken_and_one_more_is_not(site: Site, owner: str) -> None:
    agent, reviewer = site.agent(owner), site.reviewer(owner)
    memory_id = store(agent, text_of(8192))
    assert agent.get(f"/v1/memories/{memory_id}").json()["content"] == text_of(8192)
    # Characters, not bytes: 8,192 of four bytes each.
    assert store(agent, "🛠" * 8192) != memory_id
    for path in ("/v1/claims", "/v1/claims/check"):
        is_problem(agent.post(path, json=claim(text_of(8193))), 422, "invalid_request")
    item_id = queue(agent, "The pier is forty metres long")
    long = {"version": 1, "content": text_of(8193)}
    is_problem(reviewer.post(f"/v1/reviews/{item_id}/approve", json=long), 422, "invalid_request")
    assert len(site.events(owner)) == 3


def test_metadata_of_4096_bytes_is_taken_and_one_more_is_not(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    room = 4096 - len('{"k":""}')
    submit(agent, claim("Metadata fits", metadata={"k": "v" * room}), 201)
    # Bytes, not characters.
    submit(agent, claim("Metadata of two bytes a letter fits", metadata={"k": "ü" * (room // 2)}), 201)
    for value in ("v" * (room + 1), "ü" * (room // 2) + "v"):
        body = claim("Metadata does not fit", metadata={"k": value})
        is_problem(agent.post("/v1/claims", json=body), 422, "metadata_too_large")
    assert len(site.events(owner)) == 2


def test_metadata_may_have_32_levels(site: Site, owner: str) -> None:
    agent = site.agent(owner)

    def nested(levels: int) -> Any:
        value: Any = 1
        for number in range(levels - 1):
            value = [value] if number % 2 else {"a": value}
        return {"root": value}

    body = claim("Metadata is deep", metadata=nested(32))
    answer = submit(agent, body, 201, key="deep")
    assert submit(agent, body, 201, key="deep") == answer
    auditor = site.auditor(owner)
    assert auditor.get(f"/v1/memories/{answer.memory_id}").json()["metadata"] == nested(32)
    assert auditor.get(f"/v1/memories/{answer.memory_id}/evidence").json()["metadata"] == nested(32)
    for levels in (33, 100, 190):
        body = claim("Metadata is deeper", metadata=nested(levels))
        is_problem(agent.post("/v1/claims", json=body), 422, "invalid_request")
    assert len(site.events(owner)) == 1


def test_twenty_citations_are_taken_and_one_more_is_not(site: Site, owner: str) -> None:
    agent = site.agent(owner)
    citations = [f"RFC {number}" for number in range(1000, 1021)]
    submit(agent, claim("The pump speaks twenty protocols", citations=citations[:20]), 201)
    submit(agent, claim("It follows " + ", ".join(citations[:20])), 201)
    for body, code in (
        (claim("The pump speaks too many protocols", citations=citations), "invalid_request"),
        (claim("It follows " + ", ".join(citations)), "too_many_citations"),
        (claim(f"It follows {citations[20]}", citations=citations[:20]), "too_many_citations"),
    ):
        is_problem(agent.post("/v1/claims", json=body), 422, code)
    assert len(site.events(owner)) == 2


@pytest.mark.parametrize("before", [0, 1])
def test_a_body_over_one_mebibyte_is_refused(site: Site, owner: str, before: int) -> None:
    agent = site.agent(owner)
    body = json.dumps(claim("The silo is full")).encode()
    padded = body[:-1] + b" " * (MIB + before - len(body)) + b"}"
    assert len(padded) == MIB + before
    for path in ("/v1/claims/check", "/v1/claims"):
        answer = agent.post(path, content=padded, headers=JSON)
        if before:
            is_problem(answer, 413)
        else:
            assert answer.status_code in (200, 201)
    # The same without a Content-Length.
    parts = (padded[start : start + 65536] for start in range(0, len(padded), 65536))
    answer = agent.post("/v1/claims", content=parts, headers=JSON)
    assert answer.status_code == (413 if before else 409)
    assert len(site.events(owner)) == (0 if before else 2)
