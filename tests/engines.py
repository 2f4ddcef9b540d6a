"""A search engine that speaks SearXNG's JSON over HTTP, and the pages of several hosts, at one local server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.hostile import PUBLIC, client_of, names, played
from tests.web import Answer, Asked, Route, WebServer, web_server
from vouchgate.ingest.net.client import Outbound

ENGINE = "searx.example"
JSON = {"Content-Type": "application/json"}
PLAIN = {"Content-Type": "text/plain; charset=utf-8"}


def page(text: str) -> Answer:
    """A page that says this and no more."""
    return Answer(text, headers=PLAIN)


class _Hosts(dict[str, Route]):
    """Whatever path is asked for, by the host that it is asked of."""

    def __init__(self, web: Web) -> None:
        self._web = web

    def get(self, path: str, default: Any = None) -> Any:
        return self._web.answer


@dataclass
class Web:
    """`pages` by address, `found` the addresses the engine finds for any query, with a snippet each. `engine`, when it
    is set, is what the engine answers in place of a list."""

    pages: dict[str, Answer] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    snippet: str = "a snippet"
    engine: Answer | None = None
    queries: list[str] = field(default_factory=list)
    server: WebServer = field(init=False)

    def answer(self, asked: Asked) -> Answer:
        host = asked.headers["host"].partition(":")[0]
        if host in (ENGINE, "127.0.0.1") and asked.path.startswith("/search?"):
            return self._results(asked.path)
        return self.pages.get(f"http://{asked.headers['host']}{asked.path}", Answer("no such page", 404))

    def _results(self, path: str) -> Answer:
        query = parse_qs(urlsplit(path).query)
        self.queries += query["q"]
        if self.engine is not None:
            return self.engine
        assert query["format"] == ["json"]
        results = [
            {"url": url, "title": "a title", "content": self.snippet, "engine": "x"} for url in self.found
        ]
        body = {
            "query": query["q"][0],
            "number_of_results": 0,
            "results": results,
            "unresponsive_engines": [],
        }
        return Answer(json.dumps(body), headers=JSON)

    def client(self, others: Mapping[str, list[str]] | None = None) -> Outbound:
        """A client to which the engine and the hosts of all pages have public addresses."""
        hosts = {urlsplit(url).hostname or "" for url in (*self.pages, *self.found)} | {ENGINE}
        table = {host: [PUBLIC] for host in hosts} | dict(others or {})
        return client_of(resolve=names(table), dial=played([], http=int(self.server.url.rpartition(":")[2])))


@contextmanager
def web() -> Iterator[Web]:
    """The engine and its pages, until the end of the block."""
    made = Web()
    with web_server(_Hosts(made)) as server:
        made.server = server
        yield made
