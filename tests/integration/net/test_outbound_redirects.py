"""The outbound client and redirects: each hop is a new check, and secrets stay behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hostile import PUBLIC, Line, answer, client_of, failed, fetched, get, hostile, names, played
from tests.web import Answer, Asked, web_server


def test_redirects_are_followed_and_told() -> None:
    routes: dict[str, Any] = {
        "/a/1": Answer("", 301, {"Location": "2"}),
        "/a/2": Answer("", 302, {"Location": "../3?x#y"}),
        "/3?x": Answer("", 307, {"Location": "/4"}),
        "/4": Answer("there"),
    }
    with web_server(routes) as site:
        page = fetched(get(f"{site.url}/a/1"))
    assert (page.url, page.body) == (f"{site.url}/4", b"there")
    assert page.hops == (f"{site.url}/a/1", f"{site.url}/a/2", f"{site.url}/3?x")


@pytest.mark.parametrize("routes", [5, 6])
def test_five_redirects_and_no_more(routes: int) -> None:
    table: dict[str, Any] = {f"/{n}": Answer("", 302, {"Location": f"/{n + 1}"}) for n in range(routes)}
    table[f"/{routes}"] = Answer("there")
    with web_server(table) as site:
        outcome = get(f"{site.url}/0")
    if routes == 5:
        assert len(fetched(outcome).hops) == 5
    else:
        refused = failed(outcome, "refused")
        assert (refused.detail, refused.url) == ("refused: more than 5 redirects", f"{site.url}/5")
        assert len(site.asked) == 6


def test_without_following_a_redirect_is_an_answer() -> None:
    with web_server({"/": Answer("see there", 307, {"Location": "/b"}), "/b": Answer("there")}) as site:
        for method in ("GET", "POST"):
            page = fetched(get(site.url, method=method, follow=False))
            assert (page.status, page.body, page.hops) == (307, b"see there", ())
        assert site.paths() == ["GET /", "POST /"]


def test_each_hop_is_checked_anew() -> None:
    bad = ["http://10.0.0.1/", "//[::1]/", "http://wiki/", "http://inside.example/", "https://me@a.example/"]
    bad = [*bad, "ftp://a.example/", "http://a.example:25/", "http://2130706433/", "/\\b.example"]
    locations = iter(bad)
    dialled: list[tuple[str, int]] = []

    def behave(line: Line, head: bytes) -> None:
        line.send(answer(status="302 Found", headers=[f"Location: {next(locations)}"]))

    with hostile(behave) as server:
        table = {"a.example": [PUBLIC], "inside.example": ["192.168.1.1"]}
        client = client_of(resolve=names(table), dial=played(dialled, http=server.port))
        for _ in bad:
            refused = failed(get("http://a.example/x", client), "refused")
            assert refused.hops == ("http://a.example/x",)
    assert dialled == [(PUBLIC, 80)] * len(bad)


def test_two_locations_are_none() -> None:
    with hostile(
        lambda line, head: line.send(answer(status="302 Found", headers=["Location: /a", "Location: /b"]))
    ) as server:
        failed(get(f"http://127.0.0.1:{server.port}/"), "odd_answer")


def test_a_redirect_without_a_location_is_an_answer() -> None:
    with web_server({"/": Answer("where?", 302, {}), "/b": Answer("", 304, {"Location": "/c"})}) as site:
        assert fetched(get(site.url)).status == 302
        assert fetched(get(f"{site.url}/b")).status == 304


def test_secrets_stay_with_the_origin_that_was_asked() -> None:
    def back(asked: Asked) -> Answer:
        return Answer("", 302, {"Location": f"{first.url}/end"})

    with web_server() as first, web_server({"/": back}) as other:
        first.routes["/"] = Answer("", 302, {"Location": "/same"})
        first.routes["/same"] = Answer("", 302, {"Location": other.url})
        first.routes["/end"] = Answer("ok")
        secret = {"Authorization": "Bearer abc"}
        page = fetched(get(first.url, headers={"X-A": "b"}, secret_headers=secret))
    assert page.url == f"{first.url}/end"
    assert [asked.headers.get("authorization") for asked in first.asked] == ["Bearer abc", "Bearer abc", None]
    assert [asked.headers.get("authorization") for asked in other.asked] == [None]
    assert [asked.headers["x-a"] for asked in (*first.asked, *other.asked)] == ["b"] * 4


@pytest.mark.parametrize(
    ("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")]
)
def test_what_becomes_of_a_body(status: int, method: str) -> None:
    with web_server({"/b": Answer("ok")}) as site:
        site.routes["/"] = Answer("", status, {"Location": "/b"})
        fetched(get(site.url, method="POST", body=b"text", headers={"Content-Type": "text/plain"}))
    last = site.asked[-1]
    assert (last.method, last.body) == (method, b"text" if method == "POST" else b"")
    assert ("content-type" in last.headers) == (method == "POST")


def test_a_body_is_not_carried_to_another_origin() -> None:
    with web_server({"/": Answer("ok")}) as other, web_server() as site:
        site.routes["/"] = Answer("", 307, {"Location": other.url})
        refused = failed(get(site.url, method="POST", body=b"text"), "refused")
        assert "another origin" in refused.detail
    assert not other.asked
