"""DOIs, arXiv papers, RFCs, PEPs and CVEs, against real servers that answer as the registries do, or badly, or late."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pytest

from tests.running.hangs import given_up_after
from tests.web import Answer, Route, WebServer, web_server
from vouchgate.ingest.citations.kinds.arxiv import Arxiv
from vouchgate.ingest.citations.kinds.cve import Cve
from vouchgate.ingest.citations.kinds.doi import Doi
from vouchgate.ingest.citations.kinds.pep import Pep
from vouchgate.ingest.citations.kinds.rfc import Rfc, plain_pages
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Standing, Unreachable
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.sources.answers import linked_sites, retry_after

HERE = ipaddress.ip_network("127.0.0.0/8")
TLS = ssl.SSLContext(
    ssl.PROTOCOL_TLS_CLIENT
)  # nothing here is asked over TLS; making one of the public kind takes time
JSON = {"Content-Type": "application/json;charset=UTF-8"}
CSL = {"Content-Type": "application/vnd.citationstyles.csl+json"}
ATOM = {"Content-Type": "application/atom+xml; charset=utf-8"}
NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


class Registry(Protocol):
    async def read(self, citation: Citation) -> SourceReading: ...


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


def cited(key: str) -> Citation:
    kind, _, name = key.partition(":")
    return Citation(type=CitationType(kind), value=name, key=key)


def read_all(
    kind: Callable[..., Registry], base: str, keys: Sequence[str], **options: Any
) -> list[SourceReading]:
    async def running() -> list[SourceReading]:
        outbound = Outbound(allow_networks=(HERE,), spacing_seconds=0, tls=TLS)
        registry = kind(outbound, base=base, **({"seconds": 5.0} | options))
        return await asyncio.gather(*(registry.read(cited(key)) for key in keys))

    return asyncio.run(running())


def read(kind: Callable[..., Registry], site: WebServer, key: str, **options: Any) -> SourceReading:
    return read_all(kind, site.url, [key], **options)[0]


def found(reading: SourceReading) -> Found:
    assert isinstance(reading, Found), reading
    return reading


def missing(reading: SourceReading) -> Missing:
    assert isinstance(reading, Missing), reading
    return reading


def unreachable(reading: SourceReading, code: str) -> Unreachable:
    assert isinstance(reading, Unreachable), reading
    assert reading.code == code, reading
    return reading


def answer(document: object, status: int = 200, headers: dict[str, str] = JSON) -> Answer:
    return Answer(json.dumps(document), status, headers)


# --- every registry: what is no answer

FIRST: list[tuple[type[Any], str, str]] = [
    (Doi, "doi:10.5555/abc.1", "/api/handles/10.5555/abc.1"),
    (Arxiv, "arxiv:2101.00001", "/api/query?id_list=2101.00001&max_results=1"),
    (Rfc, "rfc:9999", "/rfc/rfc9999.json"),
    (Pep, "pep:8", "/pep-0008/"),
    (Cve, "cve:CVE-2024-12345", "/api/cve/CVE-2024-12345"),
]
ODD: list[tuple[str, Route, str]] = [
    ("time-out", Answer("{}", 200, JSON, delay=1.0), "timeout"),
    ("forbidden", Answer("no", 403), "forbidden"),
    ("too many", Answer("", 429, {"Retry-After": "30"}), "rate_limited"),
    ("failed", Answer("", 503), "server_error"),
    ("teapot", Answer("", 418), "odd_answer"),
    ("empty", Answer("", 200, JSON), "odd_answer"),
    ("a page", Answer("<html><title>Welcome</title><p>Hello</html>"), "odd_answer"),
    (
        "another page",
        Answer("<html><section id='pep-content'><h1>PEP 9 – Ours</h1></section></html>"),
        "odd_answer",
    ),
    ("cut off", Answer('{"doc_id": "RFC9999", "ti', 200, JSON), "odd_answer"),
    ("empty object", answer({}), "odd_answer"),
    ("a list", answer([]), "odd_answer"),
    ("deep", Answer("[" * 100_000, 200, JSON), "odd_answer"),
    ("deep tags", Answer("<a>" * 100_000, 200, ATOM), "odd_answer"),
    ("huge", Answer("x" * 2_100_000, 200, JSON), "odd_answer"),
    ("not text", Answer(b"\xff\xfe\x00\x01", 200, JSON), "odd_answer"),
]


@pytest.mark.parametrize(("route", "code"), [row[1:] for row in ODD], ids=[row[0] for row in ODD])
@pytest.mark.parametrize(("kind", "key", "path"), FIRST, ids=[row[0].__name__ for row in FIRST])
def test_what_is_no_answer(
    site: WebServer,
    *,
    kind: type[Any],
    key: str,
    path: str,
    route: Route,
    code: str,
) -> None:
    site.routes[path] = route
    unreachable(read(kind, site, key, seconds=0.2 if code == "timeout" else 5.0), code)
    assert site.paths() == [f"GET {path}"]


@pytest.mark.parametrize(("kind", "key", "path"), FIRST, ids=[row[0].__name__ for row in FIRST])
def test_a_service_without_an_address_says_nothing_about_the_thing(
    kind: type[Any], key: str, path: str
) -> None:
    code = "dns" if kind is not Pep else "connection"
    base = "http://registry.invalid:8080" if kind is not Pep else "http://127.0.0.1:9"
    unreachable(read_all(kind, base, [key])[0], code)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (Doi, "doi:10.5555/.."),
        (Doi, "doi:10.5555/a/../../../admin"),
        (Doi, "doi:10.5555/a//b"),
        (Doi, "doi:10.5555/a b"),
        (Doi, "doi:10.5555/a\nb"),
        (Doi, "doi:11.5555/a"),
        (Arxiv, "arxiv:2101.00001&max_results=9"),
        (Arxiv, "arxiv:../x"),
        (Rfc, "rfc:0"),
        (Rfc, "rfc:123456"),
        (Rfc, "rfc:9110.json"),
        (Pep, "pep:8/../9"),
        (Pep, "pep:12345"),
        (Cve, "cve:CVE-2024-1"),
        (Cve, "cve:CVE-2024-12345/../x"),
        (Cve, "rfc:9110"),
    ],
)
def test_nothing_but_names_reaches_the_registry(site: WebServer, kind: type[Any], key: str) -> None:
    unreachable(read(kind, site, key), "not_supported")
    assert site.asked == []


# --- DOI

HANDLE = {
    "responseCode": 1,
    "handle": "10.5555/ABC.1",
    "values": [
        {
            "index": 100,
            "type": "HS_ADMIN",
            "data": {"format": "admin", "value": {"handle": "0.na/10.5555"}},
            "ttl": 86400,
        },
        {
            "index": 1,
            "type": "URL",
            "data": {"format": "string", "value": "https://journals.example.org/a/1"},
            "ttl": 86400,
        },
    ],
}
WORK = {
    "type": "article-journal",
    "DOI": "10.5555/abc.1",
    "title": "Queues and <i>back-pressure</i>",
    "container-title": "Journal of Queues",
    "publisher": "Example Press",
    "issued": {"date-parts": [[2019, 7, 25]]},
    "abstract": (
        "<jats:title>Abstract</jats:title><jats:p>A full queue &amp; a slow\n  reader "
        "<jats:italic>block</jats:italic> each other if 1 &lt; n.</jats:p>"
    ),
    "author": [{"given": "Ada", "family": "Example"}],
}
DOI = "doi:10.5555/abc.1"


def doi(site: WebServer, work: Route, handle: object = HANDLE) -> SourceReading:
    site.routes["/api/handles/10.5555/abc.1"] = answer(handle)
    site.routes["/10.5555/abc.1"] = work
    return read(Doi, site, DOI)


def test_a_doi_is_found_with_its_work(site: WebServer) -> None:
    reading = found(doi(site, answer(WORK, headers=CSL)))
    assert reading.source_id == DOI
    assert reading.standing is Standing.IN_FORCE
    assert reading.title == "Queues and back-pressure"
    assert reading.text == (
        "Queues and back-pressure\n\nJournal of Queues, Example Press\n\n"
        "Abstract\nA full queue & a slow reader block each other if 1 < n."
    )
    assert reading.dated == datetime(2019, 7, 25, tzinfo=UTC)
    assert reading.site == "example.org"
    assert site.asked[1].headers["accept"] == "application/vnd.citationstyles.csl+json"


def test_a_work_may_be_described_elsewhere(site: WebServer) -> None:
    with web_server(
        {
            "/works/1": answer(
                WORK | {"title": ["Queues"], "container-title": [], "issued": {"date-parts": [[2019]]}},
                headers=CSL,
            )
        }
    ) as agency:
        reading = found(doi(site, Answer("", 302, {"Location": f"{agency.url}/works/1"})))
    assert reading.title == "Queues"
    assert reading.dated == datetime(2019, 1, 1, tzinfo=UTC)


def test_a_doi_that_is_not_registered_is_missing(site: WebServer) -> None:
    site.routes["/api/handles/10.5555/abc.1"] = answer({"responseCode": 100, "handle": "10.5555/abc.1"}, 404)
    assert missing(read(Doi, site, DOI)).status == 404
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    "work", [Answer("", 404), Answer("", 406), Answer("", 204), Answer("<html>A page</html>")]
)
def test_a_doi_without_a_record_exists_and_has_no_text(site: WebServer, work: Answer) -> None:
    reading = found(doi(site, work))
    assert (reading.title, reading.text) == ("", "")
    assert reading.site == "example.org"


@pytest.mark.parametrize(
    ("work", "code"),
    [
        (Answer("", 500), "server_error"),
        (Answer("", 403), "forbidden"),
        (Answer('{"title": 5}', 200, CSL), "odd_answer"),
        (Answer("{", 200, CSL), "odd_answer"),
    ],
)
def test_a_record_that_cannot_be_had_now_is_not_the_same_as_none(
    site: WebServer, work: Answer, code: str
) -> None:
    unreachable(doi(site, work), code)


@pytest.mark.parametrize(
    "changes",
    [
        {
            "updated-by": [
                {"type": "correction", "DOI": "10.5555/c"},
                {"type": "retraction", "DOI": "10.5555/r"},
            ]
        },
        {"title": "RETRACTED: Queues"},
        {"title": "Retracted Article: Queues"},
        {"title": "[Withdrawn] Queues"},
    ],
)
def test_a_retracted_work_is_not_in_force(site: WebServer, changes: dict[str, object]) -> None:
    reading = found(doi(site, answer(WORK | changes, headers=CSL)))
    assert reading.standing is Standing.DEPRECATED
    assert "retracted" in reading.detail
    assert reading.successor == ("doi:10.5555/r" if "updated-by" in changes else None)


@pytest.mark.parametrize(
    "handle",
    [
        {"responseCode": 1, "handle": "10.5555/other"},
        {"responseCode": 2, "handle": "10.5555/abc.1"},
        {"responseCode": 200, "handle": "10.5555/abc.1"},
        {"responseCode": 100, "handle": "10.5555/abc.1"},
        {"responseCode": "1", "handle": "10.5555/abc.1"},
    ],
)
def test_a_handle_that_is_not_the_one_asked_for(site: WebServer, handle: object) -> None:
    unreachable(doi(site, answer(WORK, headers=CSL), handle), "odd_answer")


def test_a_404_that_says_nothing_about_the_doi_is_not_missing(site: WebServer) -> None:
    unreachable(read(Doi, site, DOI), "odd_answer")


def test_odd_characters_of_a_doi_are_written_for_a_path(site: WebServer) -> None:
    path = "/10.5555/%28sici%29a%3Cb%3E3.0%3F%23%25/c"
    name = "10.5555/(sici)a<b>3.0?#%/c"
    site.routes[f"/api/handles{path}"] = answer({"responseCode": 1, "handle": name})
    site.routes[path] = answer(WORK, headers=CSL)
    reading = found(read(Doi, site, f"doi:{name}"))
    assert reading.site == ""


# --- arXiv

ENTRY = """  <entry>
    <id>http://arxiv.org/abs/2101.00001v2</id>
    <title>Queues under
  load</title>
    <updated>2021-06-12T17:57:34Z</updated>
    <link href="https://arxiv.org/abs/2101.00001v2" rel="alternate" type="text/html"/>
    <summary>  We show that a queue
of fixed length is enough. See https://code.example.net/q for code.
</summary>
    <published>2021-01-01T10:00:00Z</published>
    <arxiv:comment>12 pages</arxiv:comment>
    <author><name>Ada Example</name></author>
  </entry>
"""
PAPER = "/api/query?id_list=2101.00001&max_results=1"


def feed(entry: str = ENTRY, total: int = 1) -> Answer:
    return Answer(
        "<?xml version='1.0' encoding='UTF-8'?>\n"
        '<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom" '
        'xmlns="http://www.w3.org/2005/Atom">\n  <id>https://arxiv.org/api/x</id>\n  <title>arXiv Query</title>\n'
        f"  <opensearch:totalResults>{total}</opensearch:totalResults>\n{entry}</feed>\n",
        200,
        ATOM,
    )


def arxiv(site: WebServer, route: Route, key: str = "arxiv:2101.00001") -> SourceReading:
    name = key.removeprefix("arxiv:").replace("/", "%2F")
    site.routes[f"/api/query?id_list={name}&max_results=1"] = route
    return read(Arxiv, site, key)


def test_a_paper_is_found_with_its_abstract(site: WebServer) -> None:
    reading = found(arxiv(site, feed()))
    assert reading.source_id == "arxiv:2101.00001"
    assert reading.standing is Standing.IN_FORCE
    assert reading.title == "Queues under load"
    assert reading.text == (
        "Queues under load\n\nWe show that a queue of fixed length is enough."
        " See https://code.example.net/q for code.\n\n12 pages"
    )
    assert reading.dated == datetime(2021, 6, 12, 17, 57, 34, tzinfo=UTC)
    assert reading.site == "arxiv.org"
    assert reading.links == ("example.net",)


@pytest.mark.parametrize(
    ("key", "identity"),
    [
        ("arxiv:2101.00001v1", "2101.00001v1"),
        ("arxiv:hep-th/9901001", "hep-th/9901001v3"),
        ("arxiv:math.GT/0309136", "math/0309136v1"),
    ],
)
def test_every_form_of_id(site: WebServer, key: str, identity: str) -> None:
    assert found(arxiv(site, feed(ENTRY.replace("2101.00001v2", identity)), key)).source_id == key


ERROR = ENTRY.replace("abs/2101.00001v2", "api/errors#incorrect_id_format_for_2101.00001").replace(
    "Queues", "Error"
)


@pytest.mark.parametrize("route", [feed("", 0), feed(ERROR), Answer(feed(ERROR).body, 400, ATOM)])
def test_a_paper_that_does_not_exist_is_missing(site: WebServer, route: Answer) -> None:
    missing(arxiv(site, route))


@pytest.mark.parametrize(
    "changes",
    [
        ("We show that", "This paper has been withdrawn by the author because"),
        ("12 pages", "This submission was withdrawn"),
        ("12 pages", "Withdrawn: a step in the proof is wrong"),
    ],
)
def test_a_withdrawn_paper_is_not_in_force(site: WebServer, changes: tuple[str, str]) -> None:
    reading = found(arxiv(site, feed(ENTRY.replace(*changes))))
    assert reading.standing is Standing.DEPRECATED
    assert "withdrawn" in reading.detail


def test_a_paper_about_withdrawing_is_in_force(site: WebServer) -> None:
    about = "We study why a patch is withdrawn and how funds are withdrawn. It"
    assert found(arxiv(site, feed(ENTRY.replace("We show that", about)))).standing is Standing.IN_FORCE


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>&b;</title></feed>'
)


@pytest.mark.parametrize(
    "route",
    [
        feed(ENTRY.replace("2101.00001v2", "2101.00002v1")),
        feed(ENTRY.replace("2101.00001v2", "2101.00001")),
        feed(ENTRY.replace("http://arxiv.org", "http://example.org")),
        feed("", 1),
        feed(ENTRY.replace("<title>Queues under\n  load</title>", "")),
        feed(ENTRY[: ENTRY.index("<summary>")] + "</entry>"),
        Answer(BOMB, 200, ATOM),
        Answer(BOMB.encode("utf-16"), 200, ATOM),
        Answer(feed().body, 404, ATOM),
        Answer("<feed/>", 200, ATOM),
        Answer(feed(ENTRY * 500).body, 200, ATOM),
    ],
)
def test_an_odd_feed_is_no_answer(site: WebServer, route: Answer) -> None:
    unreachable(arxiv(site, route), "odd_answer")


def test_another_version_than_the_one_asked_for_is_no_answer(site: WebServer) -> None:
    unreachable(arxiv(site, feed(), "arxiv:2101.00001v1"), "odd_answer")


def test_an_odd_date_is_none(site: WebServer) -> None:
    assert found(arxiv(site, feed(ENTRY.replace("2021-06-12T17:57:34Z", "last June")))).dated is None


def test_papers_are_asked_for_one_at_a_time_with_a_gap(site: WebServer) -> None:
    site.routes[PAPER] = feed()
    readings = read_all(Arxiv, site.url, ["arxiv:2101.00001"] * 3, spacing_seconds=0.2)
    assert all(isinstance(reading, Found) for reading in readings)
    assert site.most_at_once == 1
    times = [asked.at for asked in site.asked]
    assert all(later - earlier >= 0.2 for earlier, later in itertools.pairwise(times))


def test_who_would_wait_too_long_is_told_so(site: WebServer) -> None:
    site.routes[PAPER] = feed()
    first, second = read_all(Arxiv, site.url, ["arxiv:2101.00001"] * 2, spacing_seconds=600.0, seconds=1.0)
    found(first)
    unreachable(second, "timeout")


# --- RFC

RECORD = {
    "draft": "draft-example-queue-07",
    "doc_id": "RFC9999",
    "title": "A Queue Protocol",
    "authors": ["A. Example, Ed."],
    "format": ["HTML", "TEXT", "XML"],
    "page_count": "12",
    "pub_status": "PROPOSED STANDARD",
    "status": "PROPOSED STANDARD",
    "source": "Queue Working Group",
    "abstract": "This document defines a protocol\r\nfor queues.",
    "pub_date": "June 2022",
    "keywords": ["queue"],
    "obsoletes": [],
    "obsoleted_by": [],
    "updates": [],
    "updated_by": [],
    "see_also": [],
    "doi": "10.17487/RFC9999",
    "errata_url": None,
}
PAGES = """



Internet Engineering Task Force (IETF)                   A. Example, Ed.
Request for Comments: 9999                                   Example Org
Category: Standards Track                                      June 2022

                            A Queue Protocol

Table of Contents

   1.  Introduction  . . . . . . . . . . . . . . . . . . . . . . . .   3
   2.  Limits ....................................................4

1.  Introduction

   A queue has a default length of 512
   entries and a reader that




Example                      Standards Track                    [Page 3]
\f
RFC 9999                    A Queue Protocol                   June 2022


   takes them in order.

   It never grows. See https://queues.example.net/spec.
"""


TEXT = Answer(PAGES, 200, {"Content-Type": "text/plain; charset=utf-8"})


def rfc(site: WebServer, record: object = RECORD, text: Route = TEXT) -> SourceReading:
    site.routes["/rfc/rfc9999.json"] = answer(record)
    site.routes["/rfc/rfc9999.txt"] = text
    return read(Rfc, site, "rfc:9999")


def test_an_rfc_is_found_with_its_text(site: WebServer) -> None:
    reading = found(rfc(site))
    assert reading.source_id == "RFC 9999"
    assert reading.standing is Standing.IN_FORCE
    assert reading.title == "RFC 9999: A Queue Protocol"
    assert reading.text.startswith(
        "RFC 9999: A Queue Protocol\n\nStatus: Proposed standard.\n\nThis document defines a protocol for queues.\n\n"
    )
    assert (
        "1.  Introduction\n\nA queue has a default length of 512\nentries and a reader that\n"
        "takes them in order.\n\nIt never" in reading.text
    )
    assert ". . ." not in reading.text
    assert reading.dated == datetime(2022, 6, 1, tzinfo=UTC)
    assert reading.site == "rfc-editor.org"
    assert reading.links == ("example.net",)
    assert reading.successor is None


def test_an_obsolete_rfc_names_what_came_after(site: WebServer) -> None:
    reading = found(
        rfc(site, RECORD | {"status": "INTERNET STANDARD", "obsoleted_by": ["RFC10001", "RFC0793"]})
    )
    assert reading.standing is Standing.SUPERSEDED
    assert reading.successor == "RFC 10001"
    assert "made obsolete by RFC 10001, RFC 793" in reading.detail


@pytest.mark.parametrize(
    ("changes", "standing", "words"),
    [
        ({"status": "HISTORIC"}, Standing.DEPRECATED, "It is historic."),
        ({"updated_by": ["RFC10002"]}, Standing.IN_FORCE, "It was updated by RFC 10002."),
        (
            {"doc_id": "RFC09999", "abstract": None, "pub_date": "1 April 2022"},
            Standing.IN_FORCE,
            "proposed standard",
        ),
        ({"pub_date": "Spring of that year"}, Standing.IN_FORCE, "proposed standard"),
    ],
)
def test_other_records(site: WebServer, changes: dict[str, object], standing: Standing, words: str) -> None:
    reading = found(rfc(site, RECORD | changes))
    assert reading.standing is standing
    assert words in reading.detail


def test_an_rfc_that_does_not_exist_is_missing(site: WebServer) -> None:
    missing(read(Rfc, site, "rfc:9999"))


def test_an_rfc_without_a_text_has_its_abstract(site: WebServer) -> None:
    assert found(rfc(site, text=Answer("", 404))).text.endswith(
        "This document defines a protocol for queues."
    )


def test_of_a_long_rfc_the_beginning_is_read(site: WebServer) -> None:
    long = Answer("A line of the text.\n" * 100_000, 200, {"Content-Type": "text/plain"})
    assert len(found(rfc(site, text=long)).text) == TEXT_CHARACTERS


@pytest.mark.parametrize(
    ("text", "code"), [(Answer("", 500), "server_error"), (Answer("", 403), "forbidden")]
)
def test_a_text_that_cannot_be_had_now_is_not_the_same_as_none(
    site: WebServer, text: Answer, code: str
) -> None:
    unreachable(rfc(site, text=text), code)


@pytest.mark.parametrize(
    "changes",
    [{"doc_id": "RFC1"}, {"doc_id": "STD99"}, {"title": None}, {"obsoleted_by": "RFC1"}, {"status": 3}],
)
def test_an_odd_record_is_no_answer(site: WebServer, changes: dict[str, object]) -> None:
    unreachable(rfc(site, RECORD | changes), "odd_answer")


def test_pages_are_put_together_in_linear_time() -> None:
    with given_up_after(8):
        for line in (". " * 100, "x" * 200, "RFC 1 " * 30, "[Page " * 30, " " * 200):
            plain_pages(f"{line}\n" * 2_000)
        plain_pages("." * 400_000)


def test_a_new_paragraph_after_a_page_break_stays_one() -> None:
    assert (
        plain_pages("   It ends.\n\nA [Page 1]\n\f\nRFC 1 A B May 1999\n\n   It begins.")
        == "It ends.\n\nIt begins."
    )


# --- PEP


def pep_page(status: str = "Active", number: int = 8, more: str = "") -> Answer:
    """A page as peps.python.org has it."""
    return Answer(
        f"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>PEP {number} – Naming</title>
<script>var x = "never";</script></head><body><section id="pep-page-section">
<header><h1>Python Enhancement Proposals</h1></header>
<article><section id="pep-content">
<h1 class="page-title">PEP {number} – Naming of
 Things</h1>
<dl class="rfc2822 field-list simple">
<dt class="field-odd">Author<span class="colon">:</span></dt>
<dd class="field-odd">Ada Example &lt;ada&#32;&#97;t&#32;example.org&gt;</dd>
<dt class="field-even">Status<span class="colon">:</span></dt>
<dd class="field-even"><abbr title="What it means">{status}</abbr></dd>
<dt class="field-odd">Created<span class="colon">:</span></dt>
<dd class="field-odd">05-Jul-2001</dd>{more}
</dl>
<hr class="docutils" />
<section id="contents"><details><summary>Table of Contents</summary>
<ul><li><a href="#a">Abstract</a></li></ul></details></section>
<section id="abstract"><h2><a class="toc-backref" href="#abstract" role="doc-backlink">Abstract</a></h2>
<p>A name says <em>what</em> a thing is.</p>
<p>See <a href="https://names.example.net/">names</a>.</p>
</section>
<hr class="docutils" /><p>Source: <a href="https://github.com/python/peps">source</a></p>
<p>Last modified: <a href="https://x">2025-04-04 07:43:14 GMT</a></p>
</section></article></section></body></html>"""
    )


SUPERSEDED = (
    '\n<dt class="field-even">Superseded-By<span class="colon">:</span></dt>\n'
    '<dd class="field-even"><a class="reference external" href="../pep-3333/">3333</a></dd>'
)


def test_a_pep_is_found_with_its_text(site: WebServer) -> None:
    site.routes["/pep-0008/"] = pep_page()
    reading = found(read(Pep, site, "pep:8"))
    assert reading.source_id == "PEP 8"
    assert reading.standing is Standing.IN_FORCE
    assert reading.title == "PEP 8: Naming of Things"
    assert reading.text.startswith(
        "PEP 8: Naming of Things\n\nStatus: Active.\n\nAbstract\nA name says what a thing is.\nSee names."
    )
    assert "never" not in reading.text
    assert "Table of Contents" not in reading.text
    assert reading.dated == datetime(2025, 4, 4, 7, 43, 14, tzinfo=UTC)
    assert reading.site == "python.org"


@pytest.mark.parametrize(
    ("status", "standing"),
    [
        ("Final", Standing.IN_FORCE),
        ("Accepted", Standing.IN_FORCE),
        ("Draft", Standing.PROPOSED),
        ("Provisional", Standing.PROPOSED),
        ("Deferred", Standing.PROPOSED),
        ("Rejected", Standing.REJECTED),
        ("April Fool!", Standing.REJECTED),
        ("Withdrawn", Standing.DEPRECATED),
    ],
)
def test_the_status_of_a_pep_counts(site: WebServer, status: str, standing: Standing) -> None:
    site.routes["/pep-0008/"] = pep_page(status)
    reading = found(read(Pep, site, "pep:8"))
    assert reading.standing is standing
    assert status in reading.detail


def test_a_superseded_pep_names_its_successor(site: WebServer) -> None:
    site.routes["/pep-0333/"] = pep_page("Superseded", 333, SUPERSEDED)
    reading = found(read(Pep, site, "pep:333"))
    assert reading.standing is Standing.SUPERSEDED
    assert reading.successor == "PEP 3333"


def test_a_pep_that_does_not_exist_is_missing(site: WebServer) -> None:
    missing(read(Pep, site, "pep:9998"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("PEP 8 – Naming of", "PEP 9 – Naming of"),
        ("Active", "Beloved"),
        ("Status<", "Mood<"),
        ('id="pep-content"', 'id="content"'),
        ("rfc2822", "fields"),
    ],
)
def test_a_page_that_is_not_the_peps_is_no_answer(site: WebServer, old: str, new: str) -> None:
    body = pep_page().body
    assert isinstance(body, str)
    assert old in body
    site.routes["/pep-0008/"] = Answer(body.replace(old, new))
    unreachable(read(Pep, site, "pep:8"), "odd_answer")


def test_a_page_without_a_change_date_has_the_date_it_was_made(site: WebServer) -> None:
    body = pep_page().body
    assert isinstance(body, str)
    site.routes["/pep-0008/"] = Answer(body.replace("Last modified", "Touched"))
    assert found(read(Pep, site, "pep:8")).dated == datetime(2001, 7, 5, tzinfo=UTC)
    site.routes["/pep-0008/"] = Answer(body.replace("Last modified", "Touched").replace("05-Jul", "35-Jul"))
    assert found(read(Pep, site, "pep:8")).dated is None


# --- CVE

CVE = "CVE-2024-12345"


def cve_record(**changes: object) -> dict[str, object]:
    cna: dict[str, object] = {
        "providerMetadata": {"orgId": "00000000-0000-4000-8000-000000000000"},
        "title": "Widget reads past a buffer",
        "descriptions": [
            {"lang": "de", "value": "Widget liest zu weit."},
            {"lang": "en", "value": "Widget before 1.4.2 reads past a buffer."},
        ],
        "affected": [
            {
                "vendor": "Acme",
                "product": "Widget",
                "defaultStatus": "unaffected",
                "versions": [
                    {"version": "1.0", "lessThan": "1.4.2", "status": "affected", "versionType": "semver"},
                    {"version": "0", "lessThanOrEqual": "0.9", "status": "affected"},
                    {"version": "2.0.1", "status": "affected"},
                ],
            }
        ],
        "references": [
            {"url": "https://github.com/acme/widget/security/advisories/GHSA-x"},
            {"url": "https://www.cve.org/x"},
            {"url": "https://www.example.net/post", "tags": ["patch"]},
        ],
    }
    return {
        "dataType": "CVE_RECORD",
        "dataVersion": "5.1",
        "cveMetadata": {
            "cveId": CVE,
            "assignerOrgId": "00000000-0000-4000-8000-000000000000",
            "state": "PUBLISHED",
            "dateReserved": "2024-01-01T00:00:00.000Z",
            "dateUpdated": "2024-08-01T12:00:00.000Z",
        },
        "containers": {"cna": cna | changes, "adp": [{"title": "Another"}]},
    }


def cve(site: WebServer, record: object) -> SourceReading:
    site.routes[f"/api/cve/{CVE}"] = answer(record)
    return read(Cve, site, f"cve:{CVE}")


def test_a_cve_is_found_with_what_it_affects(site: WebServer) -> None:
    reading = found(cve(site, cve_record()))
    assert reading.source_id == CVE
    assert reading.standing is Standing.IN_FORCE
    assert reading.title == f"{CVE}: Widget reads past a buffer"
    assert reading.text == (
        f"{CVE}: Widget reads past a buffer\n\n{CVE} is published.\n\nWidget before 1.4.2 reads past a buffer.\n\n"
        "Acme Widget: affected from 1.0 before 1.4.2; affected up to and including 0.9; affected 2.0.1;"
        " other versions unaffected."
    )
    assert reading.dated == datetime(2024, 8, 1, 12, tzinfo=UTC)
    assert reading.site == "cve.org"
    assert reading.links == ("example.net", "github.com/acme")


def test_a_record_without_a_title_or_versions(site: WebServer) -> None:
    reading = found(cve(site, cve_record(title="", affected=[], references=[])))
    assert reading.title == f"{CVE}: Widget before 1.4.2 reads past a buffer."
    assert reading.text == f"{CVE}\n\n{CVE} is published.\n\nWidget before 1.4.2 reads past a buffer."


def test_a_rejected_cve_says_why(site: WebServer) -> None:
    record = cve_record(
        rejectedReasons=[{"lang": "en", "value": "It is not a weakness."}], replacedBy=["CVE-2024-11111"]
    )
    record["cveMetadata"] = {"cveId": CVE, "state": "REJECTED", "dateUpdated": "2024-08-01T12:00:00"}
    reading = found(cve(site, record))
    assert reading.standing is Standing.REJECTED
    assert reading.successor == "CVE-2024-11111"
    assert "It is not a weakness." in reading.text
    assert reading.dated == datetime(2024, 8, 1, 12, tzinfo=UTC)


DNE = answer({"error": "CVE_RECORD_DNE", "message": "The CVE record for the cve id does not exist."}, 404)


def test_an_id_that_nobody_was_given_is_missing(site: WebServer) -> None:
    site.routes[f"/api/cve/{CVE}"] = DNE
    site.routes[f"/api/cve-id/{CVE}"] = answer({"error": "CVEID_DNE", "message": "…"}, 404)
    missing(read(Cve, site, f"cve:{CVE}"))


def test_a_reserved_id_is_only_proposed(site: WebServer) -> None:
    site.routes[f"/api/cve/{CVE}"] = DNE
    site.routes[f"/api/cve-id/{CVE}"] = answer(
        {"cve_id": CVE, "cve_year": "2024", "state": "RESERVED", "owning_cna": "[REDACTED]"}
    )
    reading = found(read(Cve, site, f"cve:{CVE}"))
    assert reading.standing is Standing.PROPOSED
    assert "reserved" in reading.detail


@pytest.mark.parametrize(
    ("route", "code"),
    [
        (Answer("<html>no such page</html>", 404), "odd_answer"),
        (answer({"cve_id": CVE, "state": "PUBLISHED"}), "odd_answer"),
        (answer({"cve_id": "CVE-2024-54321", "state": "RESERVED"}), "odd_answer"),
        (Answer("", 500), "server_error"),
    ],
)
def test_without_a_record_only_the_service_itself_can_say_missing(
    site: WebServer, route: Answer, code: str
) -> None:
    site.routes[f"/api/cve/{CVE}"] = DNE
    site.routes[f"/api/cve-id/{CVE}"] = route
    unreachable(read(Cve, site, f"cve:{CVE}"), code)


@pytest.mark.parametrize(
    "record",
    [
        cve_record() | {"cveMetadata": {"cveId": "CVE-2024-54321", "state": "PUBLISHED"}},
        cve_record() | {"cveMetadata": {"cveId": CVE, "state": "AVAILABLE"}},
        cve_record() | {"containers": {}},
        cve_record(descriptions=[]),
        cve_record(descriptions=[{"lang": "de", "value": "Nur deutsch."}]),
        cve_record(descriptions="a text"),
        cve_record(affected=[{"versions": 4}]),
    ],
)
def test_an_odd_cve_is_no_answer(site: WebServer, record: object) -> None:
    unreachable(cve(site, record), "odd_answer")


def test_very_many_versions_are_cut(site: WebServer) -> None:
    versions = [{"version": f"1.{number}", "status": "affected"} for number in range(5_000)]
    products = [{"vendor": "Acme", "product": f"P{number}", "versions": versions} for number in range(5)]
    text = found(cve(site, cve_record(affected=products))).text
    assert text.count("affected 1.") == 200


# --- what all share


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("999999999", 3600),
        ("Wed, 04 Mar 2026 12:00:30 GMT", 30),
        ("Wed, 04 Mar 2099 12:00:30 GMT", 3600),
        ("Wed, 04 Mar 2026 12:00:30 -0000", None),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("9" * 400, None),
        ("Wed, 04 Mar 2026 99:99:99 GMT", None),
    ],
)
def test_when_to_come_back(value: str, seconds: int | None) -> None:
    expected = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert retry_after({"retry-after": value}, NOW) == expected


def test_the_sites_a_text_links_to() -> None:
    text = "See https://a.example.org/x, (http://example.net/y) and HTTPS://own.example.com/; ftp://no.example http://"
    assert linked_sites(text, "example.com") == ("example.net", "example.org")
    many = " ".join(f"https://site-{number}.example{number}.org/" for number in range(200))
    assert len(linked_sites(many, "")) == 50
