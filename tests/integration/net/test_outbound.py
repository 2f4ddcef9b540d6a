"""The outbound client: what it sends, and where it connects to."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpcore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile import PUBLIC, answer, client_of, failed, fetched, get, hostile, local, names, played
from tests.web import Answer, web_server
from vouchgate.ingest.net.fetched import Fetched, FetchFailed
from vouchgate.ingest.net.transport import dial_tcp


def test_an_answer_of_any_status_is_an_answer() -> None:
    with web_server({"/a?b": Answer("found"), "/gone": Answer("gone", 410)}) as site:
        page = fetched(get(f"{site.url}/a?b#c"))
        assert (page.url, page.status, page.body, page.whole) == (f"{site.url}/a?b", 200, b"found", True)
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert fetched(get(f"{site.url}/gone")).status == 410
        assert fetched(get(f"{site.url}/none")).status == 404
        head = fetched(get(f"{site.url}/a?b", method="HEAD"))
        assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "5")
    assert site.paths() == ["GET /a?b", "GET /gone", "GET /none", "HEAD /a?b"]


def test_what_is_sent() -> None:
    given = {
        "X-A": "b",
        "Host": "other.test",
        "Connection": "upgrade",
        "Content-Length": "9",
        "TE": "trailers",
    }
    with web_server({"/": Answer("ok")}) as site:
        get(site.url, method="POST", body=b"{}", headers={**given, "Transfer-Encoding": "chunked"})
    (asked,) = site.asked
    host = site.url.removeprefix("http://")
    agent = asked.headers["user-agent"]
    assert agent.startswith("vouchgate/")
    assert asked.headers == {
        "host": host,
        "accept": "*/*",
        "accept-encoding": "gzip, deflate",
        "connection": "close",
        "content-length": "2",
        "user-agent": agent,
        "x-a": "b",
    }
    assert asked.body == b"{}"


def test_a_range_is_asked_for_unpacked() -> None:
    with web_server({"/": Answer("ok")}) as site:
        get(site.url, headers={"Range": "bytes=0-99"})
    assert site.asked[0].headers["accept-encoding"] == "identity"
    assert site.asked[0].headers["range"] == "bytes=0-99"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: b", "a\x00", "é"])
def test_a_header_that_cannot_be_sent_is_not_sent(value: str) -> None:
    with web_server({"/": Answer("ok")}) as site:
        refused = failed(get(site.url, secret_headers={"Authorization": f"Bearer abc{value}"}), "refused")
    assert "abc" not in refused.detail
    assert not site.asked


def test_a_long_body_is_cut() -> None:
    with web_server({"/": Answer(b"x" * 5000)}) as site:
        page = fetched(get(site.url, max_bytes=4999))
        assert (len(page.body), page.whole) == (4999, False)
        page = fetched(get(site.url, max_bytes=5000))
        assert (len(page.body), page.whole) == (5000, True)
        page = fetched(get(site.url, max_bytes=0))
        assert (page.status, page.body, page.whole) == (200, b"", False)


def test_the_environment_is_not_asked_about_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_server() as proxy, web_server({"/": Answer("direct")}) as site:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert fetched(get(site.url)).body == b"direct"
    assert not proxy.asked


def test_no_cookie_comes_back() -> None:
    with web_server(
        {"/": Answer("", 302, {"Location": "/b", "Set-Cookie": "a=b"}), "/b": Answer("ok")}
    ) as site:
        client = local()
        get(site.url, client)
        get(site.url, client)
    assert [asked.headers.get("cookie") for asked in site.asked] == [None] * 4


# Where it connects to


def test_the_name_is_looked_up_once_and_the_connection_goes_to_that_answer() -> None:
    turns = [[PUBLIC], ["127.0.0.1"]]
    dialled: list[tuple[str, int]] = []
    with hostile(lambda line, head: line.send(answer(b"public"))) as server:
        client = client_of(resolve=lambda host: turns.pop(0), dial=played(dialled, http=server.port))
        assert fetched(get("http://turning.example/", client)).body == b"public"
        assert (dialled, len(turns)) == ([(PUBLIC, 80)], 1)
        assert b"Host: turning.example\r\n" in server.heads[0].replace(b"host:", b"Host:")
        refused = failed(get("http://turning.example/", client), "refused")
    assert refused.detail == "refused: turning.example resolves to 127.0.0.1, a loopback address"
    assert len(dialled) == 1


def test_the_system_is_asked_once_through_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def look_up(host: str, port: Any, *rest: Any, **named: Any) -> Any:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    with web_server({"/": Answer("ok")}) as site:
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        page = get(site.url.replace("127.0.0.1", "pages.example"))
    assert fetched(page).body == b"ok"
    assert asked == ["pages.example"]


def test_one_private_answer_among_public_ones_refuses_all() -> None:
    dialled: list[tuple[str, int]] = []
    for answers in (
        [PUBLIC, "10.0.0.1"],
        ["10.0.0.1", PUBLIC],
        [PUBLIC, "::ffff:10.0.0.1"],
        [PUBLIC, "fe80::1%lo"],
    ):
        client = client_of(resolve=names({"a.example": answers}), dial=played(dialled))
        failed(get("http://a.example/", client), "refused")
    assert not dialled


def test_the_next_address_is_tried() -> None:
    other = "2a00:1450::1"
    tried: list[tuple[str, int]] = []
    with hostile(lambda line, head: line.send(answer(b"ok"))) as server:
        reach = played(tried, http=server.port)

        async def dial(address: str, port: int) -> httpcore.AsyncNetworkStream:
            if address == other:
                tried.append((address, port))
                raise httpcore.ConnectError("no route")
            return await reach(address, port)

        client = client_of(resolve=names({"a.example": [other, PUBLIC]}), dial=dial)
        assert fetched(get("http://a.example/", client)).body == b"ok"
    assert tried == [(other, 80), (PUBLIC, 80)]


def test_a_connection_that_ends_up_elsewhere_is_not_used() -> None:
    with web_server({"/": Answer("inside")}) as site:

        async def astray(address: str, port: int) -> httpcore.AsyncNetworkStream:
            return await dial_tcp("127.0.0.1", int(site.url.rpartition(":")[2]))

        client = client_of(resolve=names({"a.example": [PUBLIC]}), dial=astray)
        refused = failed(get("http://a.example/", client), "refused")
    assert refused.detail == f"refused: the connection to {PUBLIC} ended up at 127.0.0.1"
    assert not site.asked


def test_this_machine_is_refused_under_its_public_address_too() -> None:
    class Ours(httpcore.AsyncNetworkStream):
        closed = False

        def get_extra_info(self, info: str) -> Any:
            return (PUBLIC, 0) if info.endswith("_addr") else None

        async def aclose(self) -> None:
            self.closed = True

    ours = Ours()

    async def dial(address: str, port: int) -> httpcore.AsyncNetworkStream:
        return ours

    refused = failed(get(f"http://{PUBLIC}/", client_of(dial=dial)), "refused")
    assert refused.detail == f"refused: {PUBLIC} is an address of this machine"
    assert ours.closed


def test_nothing_private_is_contacted_unless_it_is_allowed() -> None:
    with web_server({"/": Answer("inside")}) as site:
        port = site.url.rpartition(":")[2]
        refused = failed(get(site.url, client_of()), "refused")
        assert "port" in refused.detail
        refused = failed(get(site.url, client_of(extra_ports=frozenset({int(port)}))), "refused")
        assert refused.detail == "refused: 127.0.0.1 is a loopback address"
        assert not site.asked
        inside = local(resolve=names({"wiki": ["127.0.0.1"], "mixed": ["127.0.0.1", PUBLIC]}))
        assert fetched(get(f"http://wiki:{port}/", inside)).body == b"inside"
        for host in ("mixed", "unknown"):
            refused = failed(get(f"http://{host}/", inside), "refused")
            assert refused.detail == f"refused: {host} is a name for inside a network"
        assert "port" in failed(get(f"http://a.example:{port}/", inside), "refused").detail
    assert len(site.asked) == 1


def test_a_name_for_inside_a_network_is_not_even_looked_up() -> None:
    asked: list[str] = []
    client = client_of(resolve=names({}, asked))
    for url in ("http://metadata/", "http://db.internal/", "http://a.example:9000/", "http://10.0.0.1/"):
        failed(get(url, client), "refused")
    assert not asked


def raising(error: Exception) -> Callable[[str], Sequence[str]]:
    def resolve(host: str) -> Sequence[str]:
        raise error

    return resolve


@pytest.mark.parametrize(
    ("resolve", "code"),
    [
        (raising(socket.gaierror(socket.EAI_NONAME, "Name or service not known")), "missing_host"),
        (raising(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")), "dns"),
        (raising(socket.gaierror(socket.EAI_FAIL, "Non-recoverable failure")), "dns"),
        (raising(UnicodeError("label too long")), "dns"),
        (lambda host: [], "dns"),
        (lambda host: ["not an address"], "dns"),
    ],
)
def test_look_ups_that_fail(resolve: Callable[[str], Sequence[str]], code: str) -> None:
    failed(get("http://a.example/", client_of(resolve=resolve)), code)


def test_a_look_up_that_hangs_ends_in_time_and_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vouchgate.ingest.net.names.LOOKUP_SECONDS", 0.3)
    ticks = 0

    def resolve(host: str) -> Sequence[str]:
        if host.startswith("slow"):
            time.sleep(0.6)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def run() -> list[Fetched | FetchFailed]:
        nonlocal ticks
        client = client_of(resolve=resolve)
        slow = [asyncio.create_task(client.fetch(f"http://slow{n}.example/")) for n in range(40)]
        quick = await client.fetch("http://quick.example/")
        while not all(task.done() for task in slow):
            ticks += 1
            await asyncio.sleep(0.01)
        return [quick, *(task.result() for task in slow)]

    quick, *slow = asyncio.run(run())
    failed(quick, "missing_host")
    for outcome in slow:
        assert failed(outcome, "dns").detail.endswith("within 0.3 s")
    assert ticks > 3, "the event loop ran on"
    time.sleep(0.6)  # the threads end after their loop: nobody hears of it


# Whatever the URL


@settings(max_examples=150)
@given(
    st.one_of(
        st.text(max_size=60),
        st.builds(
            "{}://{}/{}".format, st.sampled_from(["http", "https"]), st.text(max_size=30), st.text(max_size=9)
        ),
        st.builds("http://{}".format, st.ip_addresses().map(str)),
        st.builds("http://[{}]/".format, st.ip_addresses(v=6).map(str)),
    ),
    st.lists(st.ip_addresses().map(str), max_size=3),
)
def test_no_url_and_no_answer_leads_to_an_address_that_is_not_public(url: str, answers: list[str]) -> None:
    dialled: list[tuple[str, int]] = []
    client = client_of(resolve=lambda host: answers, dial=played(dialled))
    outcome = get(url, client)
    assert isinstance(outcome, FetchFailed)
    for address, port in dialled:
        assert ipaddress.ip_address(address).is_global
        assert port in (80, 443, 8080, 8443)
        assert outcome.code == "connection"


def test_nothing_stays_open() -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with web_server({"/": Answer("x" * 100_000), "/r": Answer("", 302, {"Location": "/"})}) as site:
        client = local()
        for _ in range(5):
            get(f"{site.url}/r", client, max_bytes=10)
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
