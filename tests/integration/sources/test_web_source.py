"""Reading what a URL points at, against real local servers."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from tests.hostile import TLS
from tests.web import Answer, Asked, Route, WebServer, web_server
from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Unreachable
from vouchgate.ingest.net.client import Outbound, system_resolve
from vouchgate.ingest.sources.web.extractor import Extractor
from vouchgate.ingest.sources.web.source import WebSource

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
LOCAL = ipaddress.ip_network("127.0.0.0/8")
TEXT = "A project has at most 40 queues, and a queue keeps messages for 14 days."
PDF = {"Content-Type": "application/pdf", "Last-Modified": "Wed, 01 May 2024 10:00:00 GMT"}
PLAIN = {"Content-Type": "text/plain; charset=utf-8"}
Reader = Callable[[str], SourceReading]


def html(title: str = "Quotas", text: str = TEXT, head: str = "") -> str:
    return (
        f"<!doctype html><html><head><title>{title}</title>{head}</head><body><nav><a href='/'>Start</a></nav>"
        f"<main><h1>{title}</h1><p>{text}</p></main></body></html>"
    )


def cited(url: str) -> Citation:
    (citation,) = detect_citations(f"See {url} for it.")
    return citation


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    made = Extractor(seconds=4)
    yield made
    made.close()


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web_server({"/quotas": Answer(html())}) as server:
        yield server


def read_with(
    extractor: Extractor,
    citation: Citation,
    *,
    networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network] = (LOCAL,),
    resolve: Callable[[str], Sequence[str]] = system_resolve,
    seconds: float = 10.0,
) -> SourceReading:
    async def main() -> SourceReading:
        outbound = Outbound(allow_networks=networks, resolve=resolve, spacing_seconds=0, tls=TLS)
        return await WebSource(outbound, extractor, lambda: NOW, seconds=seconds).read(citation)

    return asyncio.run(main())


@pytest.fixture
def read(extractor: Extractor) -> Reader:
    return lambda url: read_with(extractor, cited(url))


def found(reading: SourceReading) -> Found:
    assert isinstance(reading, Found), reading
    return reading


def missing(reading: SourceReading) -> Missing:
    assert isinstance(reading, Missing), reading
    return reading


def unreachable(reading: SourceReading, code: str) -> Unreachable:
    assert isinstance(reading, Unreachable), reading
    assert reading.code == code
    return reading


def only_get(answer: Answer, head: Answer) -> Route:
    def route(asked: Asked) -> Answer:
        return head if asked.method == "HEAD" else answer

    return route


# --- it exists


def test_a_page_that_is_there(site: WebServer, read: Reader) -> None:
    reading = found(read(f"{site.url}/quotas#days"))
    assert reading.source_id == f"{site.url}/quotas"
    assert reading.title == "Quotas"
    assert TEXT in reading.text
    assert "Start" not in reading.text
    assert reading.digest == hashlib.sha256(reading.text.encode()).hexdigest()
    assert (reading.site, reading.status, reading.excerpt, reading.cut) == ("127.0.0.1", 200, "", False)
    assert reading.detail == f"{site.url}/quotas exists: “Quotas”."
    assert site.paths() == ["HEAD /quotas", "GET /quotas"]


def test_what_cannot_be_read_is_not_fetched(site: WebServer, read: Reader) -> None:
    site.routes["/paper.pdf"] = Answer(b"%PDF-1.7 and so on", headers=PDF)
    reading = found(read(f"{site.url}/paper.pdf"))
    assert (reading.text, reading.digest) == ("", "")
    assert reading.dated == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert "application/pdf is not read" in reading.detail
    assert site.paths() == ["HEAD /paper.pdf"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer("# Limits\n\nAt most 40.", headers={"Content-Type": "text/markdown"}), "# Limits\n\nAt most 40."),
        (Answer('{"limit": 40}', headers={"Content-Type": "application/json"}), '{"limit": 40}'),
        (Answer("<a><b>40</b><c>days</c></a>", headers={"Content-Type": "application/xml"}), "40\ndays"),
        (Answer("Größe".encode("latin-1"), headers={"Content-Type": "text/plain; charset=latin1"}), "Größe"),
        (Answer("Größe".encode(), headers={"Content-Type": "text/plain; charset=us-ascii"}), "Größe"),
        (Answer(b"At\0 most\x08 40", headers={"Content-Type": "text/html"}), "At most 40"),
        (Answer(html(), headers={}), f"# Quotas\n\n{TEXT}"),
        (Answer("", headers=PLAIN), ""),
        (Answer("", 204, headers={}), ""),
        (Answer(b"\x7fELF\0\0\0", headers=PLAIN), ""),
        (Answer(html(), 203), f"# Quotas\n\n{TEXT}"),
        (Answer(html("App", "You need to enable JavaScript to run this app.")), ""),
    ],
    ids="markdown json xml latin-1 wrong controls untyped empty 204 binary 203 script".split(),  # noqa: SIM905
)  # fmt: skip
def test_what_a_page_says(site: WebServer, read: Reader, answer: Answer, text: str) -> None:
    site.routes["/x"] = answer
    reading = found(read(f"{site.url}/x"))
    assert reading.text == text
    assert bool(reading.digest) == bool(text)


def test_what_was_asked_for_is_not_what_a_page_says(site: WebServer, read: Reader) -> None:
    query = "/find?q=each+queue+keeps+messages+for+90+days"
    site.routes[query] = Answer(
        html("Search", f"No results for: each queue keeps messages for 90 days. {TEXT}")
    )
    assert found(read(f"{site.url}{query}")).text == f"# Search\n\nNo results for: . {TEXT}"
    site.routes["/old"] = Answer(status=302, headers={"Location": query})
    assert "90" not in found(read(f"{site.url}/old")).text


def test_dates_and_links(site: WebServer, read: Reader) -> None:
    more = "See <a href='https://b.example.org/x'>b</a>, <a href='https://a.example.com/'>a</a> and <a href='/y'>y</a>."
    head = '<meta property="article:modified_time" content="2023-05-01T09:00:00Z">'
    headers = {"Content-Type": "text/html", "Last-Modified": "Wed, 01 May 2024 10:00:00 GMT"}
    site.routes["/x"] = Answer(html(text=f"{TEXT} {more} {TEXT}", head=head), headers=headers)
    site.routes["/y"] = Answer(html(), headers=headers)
    reading = found(read(f"{site.url}/x"))
    assert reading.links == ("example.com", "example.org")
    assert reading.dated == datetime(2023, 5, 1, tzinfo=UTC)
    assert found(read(f"{site.url}/y")).dated == datetime(2024, 5, 1, 10, tzinfo=UTC)


def test_a_long_page_is_cut(site: WebServer, read: Reader) -> None:
    site.routes["/x"] = Answer("word " * 500_000, headers=PLAIN)
    reading = found(read(f"{site.url}/x"))
    assert TEXT_CHARACTERS - 10 < len(reading.text) <= TEXT_CHARACTERS
    assert reading.cut
    assert site.asked[-1].headers["range"] == "bytes=0-1999999"


# --- servers that lie to HEAD, ranges


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 500, 501, 502, 503])
def test_only_a_get_says_what_is_there(site: WebServer, read: Reader, status: int) -> None:
    site.routes["/x"] = only_get(Answer(html()), head=Answer(status=status))
    assert TEXT in found(read(f"{site.url}/x")).text
    assert site.paths() == ["HEAD /x", "GET /x"]


def test_a_head_that_says_yes_to_everything(site: WebServer, read: Reader) -> None:
    site.routes["/x"] = only_get(Answer(status=404), head=Answer(status=200))
    assert missing(read(f"{site.url}/x")).status == 404


def test_a_head_that_is_never_answered(site: WebServer, extractor: Extractor) -> None:
    site.routes["/x"] = only_get(Answer(html()), head=Answer(delay=3))
    assert TEXT in found(read_with(extractor, cited(f"{site.url}/x"), seconds=3)).text


def test_a_head_that_redirects_and_a_get_that_does_not(site: WebServer, read: Reader) -> None:
    site.routes["/deep/x"] = only_get(Answer(html()), head=Answer(status=302, headers={"Location": "/"}))
    site.routes["/"] = Answer(html("Start"))
    assert found(read(f"{site.url}/deep/x")).source_id == f"{site.url}/deep/x"


def test_a_server_that_sends_the_range_it_is_asked_for(site: WebServer, read: Reader) -> None:
    def route(asked: Asked) -> Answer:
        if asked.method == "HEAD":
            return Answer(status=405)
        assert asked.headers["range"] == "bytes=0-1999999"
        return Answer(TEXT, 206, {**PLAIN, "Content-Range": f"bytes 0-{len(TEXT) - 1}/{len(TEXT)}"})

    site.routes["/x"] = route
    reading = found(read(f"{site.url}/x"))
    assert (reading.text, reading.status, reading.cut) == (TEXT, 206, False)


@pytest.mark.parametrize("total", ["9000", "*", "x"])
def test_a_part_of_a_page_is_known_to_be_a_part(site: WebServer, read: Reader, total: str) -> None:
    part = Answer(TEXT, 206, {**PLAIN, "Content-Range": f"bytes 0-{len(TEXT) - 1}/{total}"})
    site.routes["/x"] = only_get(part, head=Answer(status=405))
    assert found(read(f"{site.url}/x")).cut


def test_a_server_that_sends_another_range(site: WebServer, read: Reader) -> None:
    part = Answer(TEXT[10:], 206, {**PLAIN, "Content-Range": f"bytes 10-{len(TEXT) - 1}/{len(TEXT)}"})
    site.routes["/x"] = only_get(part, head=Answer(status=405))
    unreachable(read(f"{site.url}/x"), "odd_answer")


def test_a_server_that_refuses_ranges(site: WebServer, read: Reader) -> None:
    def route(asked: Asked) -> Answer:
        if asked.method == "HEAD":
            return Answer(status=405)
        return Answer(status=416) if "range" in asked.headers else Answer(TEXT, headers=PLAIN)

    site.routes["/x"] = route
    assert found(read(f"{site.url}/x")).text == TEXT
    assert site.paths() == ["HEAD /x", "GET /x", "GET /x"]


# --- redirects


def to(place: str, status: int = 301) -> Answer:
    return Answer(status=status, headers={"Location": place})


def test_the_final_address_is_the_source(site: WebServer, read: Reader) -> None:
    site.routes |= {"/a": to("/b"), "/b": to("/c?x=1#y", 307), "/c?x=1": Answer(html())}
    reading = found(read(f"{site.url}/a"))
    assert reading.source_id == f"{site.url}/c?x=1"
    assert reading.detail == f"{site.url}/a redirects to {site.url}/c?x=1, which exists: “Quotas”."
    assert site.paths() == ["HEAD /a", "HEAD /b", "HEAD /c?x=1", "GET /c?x=1"]


def test_a_page_that_only_sends_a_browser_on(site: WebServer, read: Reader) -> None:
    site.routes["/old"] = Answer('<meta http-equiv="refresh" content="0; url=/quotas"><p>Redirecting…</p>')
    reading = found(read(f"{site.url}/old"))
    assert reading.source_id == f"{site.url}/quotas"
    assert "redirects to" in reading.detail
    site.routes["/quotas"] = Answer('<meta http-equiv="refresh" content="0; url=/old">')
    found(read(f"{site.url}/old"))  # a ring has an end
    assert len(site.asked) < 12


def test_redirects_of_both_kinds_in_one_chain(site: WebServer, read: Reader) -> None:
    sign = '<meta http-equiv="refresh" content="0; url={}">'
    site.routes |= {"/1": to("/2"), "/2": to("/3"), "/3": to("/4"), "/4": Answer(sign.format("/5"))}
    site.routes |= {"/5": to("/6"), "/6": to("/7"), "/7": Answer(sign.format("/quotas"))}
    reading = found(read(f"{site.url}/1"))
    assert reading.source_id == f"{site.url}/quotas"
    site.routes["/quotas"] = Answer(sign.format("/1"))
    assert found(read(f"{site.url}/1")).text == ""  # and an endless one ends


@pytest.mark.parametrize(
    ("routes", "kind", "says"),
    [
        ({"/deep/x": to("/"), "/": Answer(html("Start"))}, "missing", "start page"),
        ({"/deep/x": to("/404.html"), "/404.html": Answer(html("Hm"))}, "missing", "says so"),
        ({"/deep/x": to("/login?next=/deep/x"), "/login?next=/deep/x": Answer(html("Hello"))}, "login", "sign in"),
        ({"/deep/x": Answer(html("Page not found | Tern"))}, "missing", "says so, with HTTP status 200"),
        ({"/deep/x": Answer(html("tern.example", "This domain is for sale."))}, "missing", "for sale"),
        ({"/deep/x": Answer(html("Just a moment..."))}, "forbidden", "lets only people in"),
        ({"/deep/x": Answer(html("Sign in", "<input type=password>"))}, "login", "sign in"),
        ({"/deep/x": Answer('<meta http-equiv=refresh content="0;url=/">'), "/": Answer(html())}, "missing", "start"),
    ],
    ids=["home", "error", "login", "words", "parked", "wall", "form", "refresh"],
)  # fmt: skip
def test_a_200_that_is_not_the_page(
    site: WebServer, read: Reader, routes: dict[str, Route], kind: str, says: str
) -> None:
    site.routes |= routes
    reading = read(f"{site.url}/deep/x")
    if kind == "missing":
        assert says in missing(reading).detail
    else:
        assert says in unreachable(reading, kind).detail


def test_a_start_page_that_was_cited_is_a_page(site: WebServer, read: Reader) -> None:
    site.routes |= {"/": to("/en/"), "/en/": Answer(html("Start"))}
    assert found(read(f"{site.url}/")).title == "Start"


# --- it is missing


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_that_is_not_there(site: WebServer, read: Reader, status: int) -> None:
    site.routes["/gone"] = Answer("gone", status)
    reading = missing(read(f"{site.url}/gone"))
    assert reading.status == status
    assert reading.detail == f"{site.url}/gone does not exist (HTTP status {status})."


def no_such_host(host: str) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def names_are_down(host: str) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


def test_a_host_that_does_not_exist(extractor: Extractor) -> None:
    reading = missing(
        read_with(extractor, cited("https://made-up.example.org/x"), networks=(), resolve=no_such_host)
    )
    assert reading.status is None


# --- it could not be found out


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (300, "odd_answer"),
        (304, "odd_answer"),
        (400, "odd_answer"),
        (401, "forbidden"),
        (402, "forbidden"),
        (403, "forbidden"),
        (405, "forbidden"),
        (406, "odd_answer"),
        (408, "timeout"),
        (418, "odd_answer"),
        (429, "rate_limited"),
        (451, "forbidden"),
        (500, "server_error"),
        (503, "server_error"),
        (599, "server_error"),
        (999, "odd_answer"),
    ],
)
def test_statuses_that_say_neither(site: WebServer, read: Reader, status: int, code: str) -> None:
    site.routes["/x"] = Answer(html(), status)
    reading = unreachable(read(f"{site.url}/x"), code)
    assert reading.status == status
    assert str(status) in reading.detail
    assert len(site.asked) == (1 if status == 429 else 2)


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_says_when_to_come_back(site: WebServer, read: Reader, status: int) -> None:
    site.routes["/x"] = Answer(status=status, headers={"Retry-After": "120"})
    reading = read(f"{site.url}/x")
    assert isinstance(reading, Unreachable)
    assert reading.retry_after == NOW + timedelta(seconds=120)
    assert site.paths() == ["HEAD /x"]


def test_a_server_that_is_too_slow(site: WebServer, extractor: Extractor) -> None:
    site.routes["/x"] = Answer(html(), delay=3)
    unreachable(read_with(extractor, cited(f"{site.url}/x"), seconds=0.6), "timeout")


def test_an_address_that_is_not_public(site: WebServer, extractor: Extractor) -> None:
    reading = unreachable(read_with(extractor, cited(f"{site.url}/quotas"), networks=()), "refused")
    assert reading.detail.startswith("refused: ")
    assert site.asked == []


def test_a_redirect_to_an_address_that_is_not_allowed(site: WebServer, read: Reader) -> None:
    site.routes["/x"] = to("http://10.0.0.1/secret")
    assert "redirected to http://10.0.0.1/secret" in unreachable(read(f"{site.url}/x"), "refused").detail


def test_a_server_that_speaks_no_tls(site: WebServer, read: Reader) -> None:
    unreachable(read(site.url.replace("http:", "https:") + "/quotas"), "tls")


def test_names_that_cannot_be_looked_up(extractor: Extractor) -> None:
    unreachable(
        read_with(extractor, cited("https://a.example.org/x"), networks=(), resolve=names_are_down), "dns"
    )


def test_a_port_where_nobody_listens(read: Reader) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        unreachable(read(f"http://127.0.0.1:{unused.getsockname()[1]}/x"), "connection")


def test_a_page_that_cannot_be_read_passes_nothing(site: WebServer) -> None:
    attributes = b" ".join(b"a%d=1" % number for number in range(180_000))
    site.routes["/x"] = Answer(b"<html><body><p " + attributes + b">" + TEXT.encode() + b"</p>")
    with closing(Extractor(seconds=1)) as soon:
        reading = unreachable(read_with(soon, cited(f"{site.url}/x")), "odd_answer")
    assert "longer than 1 s" in reading.detail


def test_what_is_no_url_citation(extractor: Extractor) -> None:
    citation = Citation(type=CitationType.DOI, value="10.1/x", key="doi:10.1/x")
    unreachable(read_with(extractor, citation), "not_supported")


def test_a_failure_of_our_own_is_unknown_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    closed = Extractor()
    closed.close()
    with web_server({"/x": Answer(html())}) as site, caplog.at_level(logging.INFO):
        citation = cited(f"{site.url}/x")
        unreachable(read_with(closed, citation), "timeout")
    (line,) = [record.getMessage() for record in caplog.records if citation.key in record.getMessage()]
    assert TEXT not in line


def test_when_a_page_was_changed_its_software_says_or_the_server(read: Reader) -> None:
    linked = '<script type="application/ld+json">{"dateModified": "2025-05-20T10:00:00Z"}</script>'
    sent = {"Content-Type": "text/html", "Last-Modified": "Wed, 01 May 2024 10:00:00 GMT"}
    first = Answer(html(head=linked), headers=sent)
    with web_server({"/a": first, "/b": Answer(html(), headers=sent), "/c": Answer(html())}) as server:
        dates = [found(read(f"{server.url}/{name}")).revised for name in "abc"]
    assert dates == [datetime(2025, 5, 20, 10, tzinfo=UTC), datetime(2024, 5, 1, 10, tzinfo=UTC), None]
