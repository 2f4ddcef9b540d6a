"""Whom `vouchgate mcp` lets in, with whose token, and what it says when there is no gate."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.cli_program import PROGRAM, clean_environment, cli, complaint
from tests.acceptance.site import Site, open_site
from tests.stores.mcp_session import http_server, over_http
from tests.web import Answer, web_server
from vouchgate.ingest.claims.people import Role
from vouchgate.mcp.connection import GateConnection
from vouchgate.storage.identity import tokens

NOBODY = "http://127.0.0.1:1"  # no unprivileged program can listen there
DOWN = (
    "The memory gate cannot be reached. Try again later. Do not count it as saved; nothing is stored twice if you "
    "send it again."
)
ASKING = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture(scope="module")
def site(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gate without a repository. On SQLite alone: nothing here meets the database but through it."""
    file = tmp_path_factory.mktemp("mcp") / "vouchgate.db"
    file.write_bytes(migrated_file.read_bytes())
    with open_site(f"sqlite:///{file}") as opened:
        yield opened


@pytest.fixture(scope="module")
def door(site: Site) -> Iterator[str]:
    """The URL of a server over HTTP, whose environment holds a token that nobody brought."""
    token = site.token(Role.AGENT, "nobodys")[1]
    with http_server(site.running.url, environment={"VOUCHGATE_TOKEN": token}) as url:
        yield url


def test_a_gate_that_is_down_is_an_error_and_nothing_is_said_to_be_saved(site: Site) -> None:
    """Over HTTP; the test of standard output has the same over stdio."""
    token = site.token(Role.AGENT, site.owner())[1]
    with http_server(NOBODY) as url, over_http(url, token) as session:
        assert session.error("save_memory", content="The ferry leaves at six") == DOWN
        assert session.error("search_memories") == "The memory gate cannot be reached. Try again later."


def test_something_else_at_the_gates_address_is_never_a_yes(site: Site) -> None:
    token = site.token(Role.AGENT, site.owner())[1]
    who = site.caller(token).get("/v1/whoami")
    page = Answer("<h1>Welcome</h1>", 201)
    json_type = {"Content-Type": "application/json"}
    with web_server({"/v1/whoami": Answer(who.content, headers=json_type), "/v1/claims": page}) as web:
        with http_server(web.url) as url, over_http(url, token) as session:
            said = session.error("save_memory", content="The ferry leaves at seven")
            assert "cannot be understood" in said
            assert "Do not count it as saved" in said
            assert "Welcome" not in said
        web.routes["/v1/whoami"] = page
        done = cli("mcp", "--url", web.url, cwd=Path.cwd(), env={"VOUCHGATE_TOKEN": token})
        assert web.url in complaint(done)


def test_only_an_agents_token_is_used(site: Site, tmp_path: Path) -> None:
    owner = site.owner()
    revoked, gone = site.token(Role.AGENT, owner)
    tokens.revoke(site.store, revoked.id, actor="test", now=datetime.now(UTC))
    told = {
        site.token(Role.REVIEWER, owner)[1]: "role reviewer",
        site.token(Role.AUDITOR, owner)[1]: "role auditor",
        gone: "does not know",
        "vg_ not a token": "token",
    }
    for token, why in told.items():
        done = cli("mcp", "--url", site.running.url, cwd=tmp_path, env={"VOUCHGATE_TOKEN": token})
        assert why in complaint(done)
        assert done.stdout == b""
        assert token.encode() not in done.stderr
    assert "VOUCHGATE_TOKEN" in complaint(cli("mcp", cwd=tmp_path))
    file = tmp_path / "token"
    for text in ("", "\u00e4"):
        file.write_text(text, "utf-8")
        assert "token" in complaint(cli("mcp", "--token-file", file, cwd=tmp_path))
    file.write_text(site.token(Role.AGENT, owner)[1] + "\n", "ascii")
    done = cli("mcp", "--url", site.running.url, "--token-file", file, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")  # it ends with its input


def test_a_token_that_is_revoked_ends_at_once(site: Site, door: str) -> None:
    principal, token = site.token(Role.AGENT, site.owner())
    with over_http(door, token) as session:
        assert session.result("save_memory", content="The bell rings at noon")["outcome"] == "queued"
        tokens.revoke(site.store, principal.id, actor="test", now=datetime.now(UTC))
        said = session.error("save_memory", content="The bell rings at one")
        assert "does not know this token" in said
        assert said.endswith("Nothing was saved.")


def test_over_http_everybody_brings_a_token(site: Site, door: str) -> None:
    """The server's environment holds one all the same (the fixture's): it is nobody's."""
    owner, other = site.owner(), site.owner()
    own, theirs = site.token(Role.AGENT, owner)[1], site.token(Role.AGENT, other)[1]
    with over_http(door, own) as mine, over_http(door, theirs) as others:
        made = mine.result("save_memory", content="The mast is of spruce")["queue_id"]
        assert [claim["queue_id"] for claim in mine.result("list_my_pending")["claims"]] == [made]
        assert others.result("list_my_pending")["claims"] == []
    with httpx.Client(trust_env=False, headers=ASKING) as client:
        for presented, status in (
            ({}, 401),
            ({"Authorization": f"Basic {own}"}, 401),
            ({"Authorization": "Bearer"}, 401),
            ({"Authorization": "Bearer vg_0000000000000000_" + "x" * 43}, 401),
            ({"Authorization": "Bearer " + "x" * 5000}, 401),
            ({"Authorization": f"Bearer {site.token(Role.REVIEWER, owner)[1]}"}, 403),
            ({"Authorization": f"Bearer {own}"}, 200),
        ):
            answer = client.post(door, json=LIST, headers=presented)
            assert answer.status_code == status, presented
            assert ("WWW-Authenticate" in answer.headers) is (status == 401)


def test_over_http_only_its_own_names_are_answered(site: Site) -> None:
    token = site.token(Role.AGENT, site.owner())[1]
    headers = ASKING | {"Authorization": f"Bearer {token}"}
    with (
        http_server(site.running.url, "--allow-host", "memory.example.org") as url,
        httpx.Client(trust_env=False, headers=headers) as client,
    ):
        for more, status in (
            ({}, 200),
            ({"Host": "localhost"}, 200),
            ({"Host": "memory.example.org:8443"}, 200),
            ({"Host": "rebound.example"}, 421),
            ({"Host": "127.0.0.1.example"}, 421),
            ({"Origin": "http://localhost:3000"}, 403),
            ({"Origin": "null"}, 403),
            ({"Content-Type": "text/plain"}, 400),
        ):
            assert client.post(url, json=LIST, headers=more).status_code == status, more
        assert client.get(url).status_code == 405
        assert client.request("OPTIONS", url).status_code == 405
        assert client.post(url, content=b" " * (1024 * 1024 + 1)).status_code == 413
        assert client.post(url.removesuffix("/mcp") + "/", json=LIST).status_code == 404


def test_clients_of_many_tokens_do_not_pile_up(site: Site) -> None:
    made = [site.token(Role.AGENT, site.owner()) for _ in range(4)]

    async def use() -> None:
        door = GateConnection(site.running.url, keep=2)
        async with door.client(made[0][1]) as first:
            for principal, token in (*made[1:], *made[1:]):  # the second time some are made anew
                async with door.client(token) as client:
                    assert (await client.whoami()).id == principal.id
                assert len(door._kept) <= 3
            assert (await first.whoami()).id == made[0][0].id  # one in use is not closed
        await door.close()

    asyncio.run(use())


def test_many_calls_at_once_are_all_answered(door: str, site: Site) -> None:
    owner = site.owner()
    with over_http(door, site.token(Role.AGENT, owner)[1]) as session, ThreadPoolExecutor(10) as pool:
        saved = pool.map(
            lambda n: session.result("save_memory", content=f"Pier {n} has {n + 60} posts"), range(20)
        )
        assert len({one["queue_id"] for one in saved if one["outcome"] == "queued"}) == 20
    assert site.actions(owner) == ["claim.queued"] * 20


def test_standard_output_carries_the_protocol_alone(site: Site, tmp_path: Path) -> None:
    token = site.token(Role.AGENT, site.owner())[1]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "save_memory", "arguments": {"content": "The ferry leaves at six"}}
    sent = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "no json at all",
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "no/such"}),
        json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}),
    ]
    said = tmp_path / "stderr"
    with (
        said.open("wb") as errors,
        subprocess.Popen(
            [*PROGRAM, "mcp", "--url", NOBODY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=clean_environment({"VOUCHGATE_TOKEN": token}),
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(line + "\n" for line in sent).encode())
        process.stdin.flush()
        answers: list[dict[str, Any]] = []
        while not {1, 2, 3} <= {answer.get("id") for answer in answers}:
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    (refused,) = (answer["result"] for answer in answers if answer.get("id") == 3)
    assert (refused["isError"], refused["content"]) == (True, [{"type": "text", "text": DOWN}])
    assert "cannot be reached yet" in said.read_text("utf-8")
    assert token not in said.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--http", "nowhere"], "--http"),
        (["--http", "127.0.0.1:70000"], "--http"),
        (["--http", ":8090"], "--http"),
        (["--allow-host", "a.example"], "--allow-host"),
        (["--http", "0", "--token-file", "x"], "--token-file"),
    ],
)
def test_options_that_make_no_sense_are_a_usage_error(options: list[str], named: str, tmp_path: Path) -> None:
    assert named in complaint(cli("mcp", *options, cwd=tmp_path), 2)


def test_options_that_cannot_be_used_stop_the_start(tmp_path: Path) -> None:
    env = {"VOUCHGATE_TOKEN": "vg_x"}
    for options in (["--url", "ftp://gate"], ["--url", "http://ann:pass@gate"]):
        assert "url" in complaint(cli("mcp", *options, cwd=tmp_path, env=env)).lower()
    assert "cannot listen on 203.0.113.1" in complaint(cli("mcp", "--http", "203.0.113.1:1", cwd=tmp_path))
