"""Jira, Linear and trackers of one's own, against a real server: found, missing, not known."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web import Answer, Asked, WebServer, web_server
from vouchgate.cli.app import run
from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.citations.detection import install
from vouchgate.ingest.claims.source import Found, Missing, SourceReading, Unreachable
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.scoring.score import is_official
from vouchgate.settings import Settings, SettingsError
from vouchgate.sources.plugins import install_kinds, sources_of

JSON = {"Content-Type": "application/json"}
JIRA_PATH = "/rest/api/2/issue/OPS-12?fields=summary,description,updated"
TICKET = {
    "key": "OPS-12",
    "fields": {
        "summary": "Move the depot",
        "description": {"content": [{"text": "The depot moves to Leeds."}, {"text": "In May."}]},
        "updated": "2026-05-04T10:00:00.000+0000",
    },
}
ISSUE = {
    "identifier": "ENG-3",
    "title": "Use queues",
    "description": "Jobs go through queues.",
    "updatedAt": "x",
}


@pytest.fixture
def site() -> Iterator[WebServer]:
    with web_server() as server:
        yield server
    install(())


def read(site: WebServer, text: str, **settings: Any) -> SourceReading:
    """What is read of the only thing that a text cites."""
    chosen = Settings(**settings)
    kinds = install_kinds(chosen)
    (cited,) = detect_citations(text)

    async def run() -> SourceReading:
        outbound = Outbound(allow_networks=[ipaddress.ip_network("127.0.0.0/8")])
        return await sources_of(kinds, chosen, outbound)[str(cited.type)].read(cited)

    return asyncio.run(run())


def jira(site: WebServer, answer: Answer) -> SourceReading:
    site.routes[JIRA_PATH] = answer
    return read(site, "As OPS-12 says.", jira_url=site.url, jira_projects=("OPS",), jira_token="s3cret")


def linear(site: WebServer, document: object, status: int = 200) -> SourceReading:
    site.routes["/graphql"] = Answer(json.dumps(document), status, JSON)
    return read(site, "As ENG-3 says.", linear_url=site.url, linear_teams=("ENG",), linear_token="s3cret")


def test_a_ticket_is_found_with_its_text(site: WebServer) -> None:
    found = jira(site, Answer(json.dumps(TICKET), 200, JSON))
    assert isinstance(found, Found)
    assert (found.source_id, found.title) == ("jira:OPS-12", "OPS-12: Move the depot")
    assert "The depot moves to Leeds.\nIn May." in found.text
    assert found.dated is not None
    assert found.dated.isoformat() == "2026-05-04T10:00:00+00:00"
    assert site.asked[0].headers["authorization"] == "Bearer s3cret"


def adf(kind: str, *parts: object, **attributes: object) -> dict[str, object]:
    return {"type": kind, "content": list(parts), "attrs": attributes}


def words(text: str, **more: object) -> dict[str, object]:
    return {"type": "text", "text": text, **more}


def test_a_document_of_jira_is_read_in_its_form(site: WebServer) -> None:
    document = adf(
        "doc",
        adf("heading", words("Rejected"), level=2),
        adf("paragraph", words("It moves to "), words("York", marks=[{"type": "strike"}]), words("Hull.")),
        adf("bulletList", adf("listItem", adf("paragraph", words("By boat.")))),
        adf("blockquote", adf("paragraph", words("No."))),
        adf("codeBlock", words("move --all")),
        adf("table", adf("tableRow", adf("tableCell", adf("paragraph", words("a"))), adf("tableCell"))),
    )
    ticket = TICKET | {"fields": {"summary": "Move", "description": document}}
    found = jira(site, Answer(json.dumps(ticket), 200, JSON))
    assert isinstance(found, Found)
    said = (
        "## Rejected\n\nIt moves to Hull.\n\n- By boat.\n\n> No.\n\n```\nmove --all\n```\n\n| a |  |\n|---|"
    )
    assert found.text == f"Move\n\n{said}"


def test_a_ticket_is_the_word_of_who_wrote_it_and_not_of_the_site(site: WebServer) -> None:
    found = jira(site, Answer(json.dumps(TICKET), 200, JSON))
    assert isinstance(found, Found)
    assert found.site == "127.0.0.1/ops"
    policy = load_policy().model_copy(update={"official_domains": ("127.0.0.1",)})
    assert not is_official(found, policy)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer("{}", 401, JSON), "forbidden"),
        (Answer("{}", 429, JSON), "rate_limited"),
        (Answer("{}", 503, JSON), "server_error"),
        (Answer("<html>", 200), "odd_answer"),
        (Answer("[" * 100_000, 200, JSON), "odd_answer"),
        (Answer(json.dumps(TICKET | {"key": "OPS-13"}), 200, JSON), "odd_answer"),
    ],
)
def test_what_is_no_answer_is_not_known(site: WebServer, answer: Answer, code: str) -> None:
    reading = jira(site, answer)
    assert isinstance(reading, Unreachable)
    assert reading.code == code


def test_a_ticket_that_is_not_there_is_missing(site: WebServer) -> None:
    assert isinstance(jira(site, Answer("{}", 404, JSON)), Missing)


@pytest.mark.parametrize("answer", [Answer("{}", 404, JSON), Answer(json.dumps(TICKET), 200, JSON)])
def test_what_another_host_answers_is_not_the_trackers_word(site: WebServer, answer: Answer) -> None:
    with web_server() as other:
        other.routes["/login"] = answer
        reading = jira(site, Answer("", 302, {"Location": f"{other.url}/login"}))
    assert isinstance(reading, Unreachable)
    assert reading.code == "odd_answer"


def test_linear_is_asked_with_a_query(site: WebServer) -> None:
    def answered(asked: Asked) -> Answer:
        assert json.loads(asked.body)["variables"] == {"team": "ENG", "number": 3}
        assert asked.headers["authorization"] == "s3cret"
        return Answer(json.dumps({"data": {"issues": {"nodes": [ISSUE]}}}), 200, JSON)

    site.routes["/graphql"] = answered
    found = read(site, "As ENG-3 says.", linear_url=site.url, linear_teams=("ENG",), linear_token="s3cret")
    assert isinstance(found, Found)
    assert (found.source_id, found.dated) == ("linear:ENG-3", None)
    assert "Jobs go through queues." in found.text


def test_linear_says_by_an_empty_list_that_there_is_none(site: WebServer) -> None:
    assert isinstance(linear(site, {"data": {"issues": {"nodes": []}}}), Missing)
    for document, status in (({"errors": [{"message": "x"}], "data": None}, 200), ({}, 200), ({}, 404)):
        assert isinstance(linear(site, document, status), Unreachable)


def test_every_command_that_reads_texts_knows_tickets_before_it_reads(
    site: WebServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    ticket = TICKET | {"fields": {"summary": "Kiln", "description": "The kiln cools for 90 minutes."}}
    site.routes[JIRA_PATH] = Answer(json.dumps(ticket), 200, JSON)
    site.routes[JIRA_PATH.replace("12", "99")] = Answer("{}", 404, JSON)
    document = "The kiln cools for 20 minutes, as OPS-12 says.\n\nThe kiln is red, as OPS-99 says.\n"
    (tmp_path / "doc.md").write_text(document, "utf-8")
    settings = {"JIRA_URL": site.url, "JIRA_PROJECTS": "OPS", "ALLOW_NETWORKS": "127.0.0.0/8"}
    for name, value in settings.items():
        monkeypatch.setenv(f"VOUCHGATE_{name}", value)
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> tuple[int, list[dict[str, Any]]]:
        install(())  # as in a process of its own
        status = run(words)
        return status, [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]

    _, blocks = said("extract", "doc.md")
    assert [cited["target"] for block in blocks for cited in block["citations"]] == ["OPS-12", "OPS-99"]
    status, readings = said("verify", "--json", "OPS-12", "OPS-99")
    assert (status, [each["verdict"] for each in readings]) == (1, ["exists", "missing"])
    install(())
    assert run(["gate-doc", "doc.md", "--format", "json", "--fail-on", "false,broken"]) == 1
    (checked,) = json.loads(capsysbinary.readouterr().out)["documents"]
    assert [claim["verdict"] for claim in checked["claims"]] == ["FALSE", "BROKEN_CITATION"]


def test_without_settings_nothing_is_a_ticket() -> None:
    assert install_kinds(Settings()) == ()
    assert detect_citations("UTF-8, SHA-256, COVID-19 and OPS-12") == ()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ('name = "rfc"', "two kinds of citation called 'rfc'"),
        ('name = "No"', "name: String should match pattern"),
        ("projects = []", "projects must be the keys of projects"),
        ('address = "https://elsewhere.example/{number}"', "address must begin with {base}"),
        ('example = "BAR-1"', "does not find its example 'BAR-1'"),
        ('pattern = "("', "missing )"),
        ('page = "{base}/{nothing}"', "nothing"),
        ('colour = "red"', "colour: is unknown"),
    ],
)
def test_a_table_that_cannot_be_used_stops_the_start(tmp_path: Path, change: str, sentence: str) -> None:
    name = change.partition(" =")[0]
    table = {
        "name": '"ticket"',
        "label": '"ticket"',
        "projects": '["OPS"]',
        "example": '"OPS-1"',
        "base": '"https://t.example"',
        "address": '"{base}/{number}"',
        "page": '"{base}/{number}"',
        "id": '"id"',
        "title": '"title"',
        "text": '"text"',
    }
    lines = [f"{key} = {value}" for key, value in table.items() if key != name]
    file = tmp_path / "t.toml"
    file.write_text("\n".join(["[[trackers]]", change, *lines]), "utf-8")
    with pytest.raises(
        SettingsError, match=sentence.replace("(", r"\(").replace(")", r"\)").replace("{", r"\{")
    ):
        install_kinds(Settings(trackers=(file,)))
    install(())
