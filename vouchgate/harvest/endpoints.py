"""Official interfaces and web searches, each described by a table of a TOML file: how it is asked, and where in its
answer the list of what was found lies. docs/extending.md has one of each in full.

What an official interface publishes is a text to hold a claim against. What a search engine shows is an address to
read a page at, and never evidence: its own words say what somebody made it say.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, quote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vouchgate.harvest.paths import Look
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.corroboration.hits import Reading
from vouchgate.ingest.language.validation import plain_messages
from vouchgate.ingest.language.words import RUN
from vouchgate.ingest.net.addresses import Target, parse_url
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import Fetched, FetchFailed
from vouchgate.ingest.scoring.sites import host_of, is_public_suffix, site_of
from vouchgate.ingest.sources.answers import Clock, NoAnswer, one_line, require_success, utc_now
from vouchgate.ingest.sources.json_answers import at, filled, text_of, time_of
from vouchgate.ingest.sources.plain_text import plain
from vouchgate.ingest.sources.web.page import Page, without_echo

MOST_RESULTS = 200  # in one answer; no engine sends more on a page, and one that does answers something else
_BYTES = 1_000_000
_PAUSE = 60.0  # seconds after an answer that wants fewer requests, or none, and does not say for how long
_NO_MORE = frozenset({401, 402, 403, 429})


class EndpointError(ValueError):
    """An endpoint that cannot be used; the message says which, and why, in a sentence."""


class Endpoint(BaseModel):
    """One interface. `address` has `{query}`, percent-encoded, or `{words}`, joined by `+`; `body`, the JSON of a POST,
    has `<query>`. The places (`results` and below) are like `data.items.0.title`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["official_api", "web_search"]
    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")
    address: str
    body: str | None = None
    headers: dict[str, str] = {}
    token: str | None = None  # the environment variable that holds it
    header: str = "Authorization"  # in which it is sent, to this origin only
    scheme: str = "Bearer"  # before the token; empty: the token alone
    results: str  # where the list of what was found lies
    errors: str = ""  # where an answer says what it could not find out
    url: str
    title: str = ""
    text: str = ""
    date: str = ""
    domain: str = ""  # whose word the records are: each has an address there
    official: bool = False  # whether one of them makes a FACT alone
    most: int = Field(default=5, ge=1, le=20)  # results of one answer that are looked at

    @model_validator(mode="after")
    def _usable(self) -> Self:
        try:
            asked = [parse_url(self.asked(words)) for words in ("one", "two words")]
        except (LookupError, ValueError) as error:
            raise ValueError("address may have {query} and {words} in braces, and nothing else") from error
        hosts = {place.origin for place in asked if isinstance(place, Target)}
        if len(hosts) != 1 or not all(isinstance(place, Target) for place in asked):
            raise ValueError(
                "address must be an http(s) address of one host, such as https://a.example/?q={query}"
            )
        if asked[0] == asked[1] and (self.body is None or "<query>" not in self.body):
            raise ValueError("address must have {query} or {words}, or body <query>")
        if self.body is not None:
            json.loads(filled(self.body, {"query": "one"}))
        if self.kind == "web_search" and (self.text or self.domain or self.official):
            raise ValueError("a web search has no text, domain or official: what it shows is no evidence")
        if self.kind == "official_api":
            known = host_of(f"https://{self.domain}") == self.domain.lower() != ""
            if not self.text or not known or is_public_suffix(self.domain.lower()):
                raise ValueError("an official interface has a text, and the domain of one publisher")
        return self

    def asked(self, query: str) -> str:
        """The address that is asked for a query."""
        words = "+".join(quote(word, safe="") for word in query.split())
        return self.address.format_map({"query": quote(query, safe=""), "words": words})

    @property
    def path(self) -> str:
        """Its name as a path: `web_search.searx`."""
        return f"{self.kind}.{self.name}"


class EndpointPath:
    """Looks at one endpoint. `clock` gives the time now, aware. Belongs to one event loop."""

    def __init__(
        self,
        outbound: Outbound,
        endpoint: Endpoint,
        environment: Mapping[str, str],
        *,
        clock: Clock = utc_now,
    ) -> None:
        """Raises EndpointError when the token it names is not there."""
        token = "" if endpoint.token is None else environment.get(endpoint.token, "")
        if endpoint.token is not None and not token:
            raise EndpointError(
                f"{endpoint.path} needs its token in the environment variable {endpoint.token}"
            )
        self.name = endpoint.path
        self._endpoint = endpoint
        self._outbound = outbound
        self._secret = {endpoint.header: f"{endpoint.scheme} {token}".strip()} if token else {}
        self._clock = clock
        self._paused = 0.0  # until when, by the monotonic clock, nothing is asked

    async def look(self, query: str, seconds: float) -> Look:
        """As of `SearchPath`."""
        if (pause := self._paused - time.monotonic()) > 0:
            return Look(failures=(f"it wants no requests for another {pause:.0f} s",))
        try:
            answer = await self._ask(query, seconds)
            document = json.loads(answer.body)
        except NoAnswer as error:
            return Look(failures=(error.detail.removesuffix("."),))
        except (ValueError, RecursionError):
            return Look(failures=("it sent something other than JSON",))
        return self._read(document, query)

    async def _ask(self, query: str, seconds: float) -> Fetched:
        one = self._endpoint
        body = None if one.body is None else filled(one.body, {"query": query})
        answer = await self._outbound.fetch(
            one.asked(query),
            method="GET" if body is None else "POST",
            headers={"Accept": "application/json"}
            | ({} if body is None else {"Content-Type": "application/json"})
            | one.headers,
            secret_headers=self._secret,
            body=body,
            max_bytes=_BYTES,
            seconds=seconds,
            follow=False,  # to what may be asked at all by the list of the operator's own endpoints
        )
        if isinstance(answer, FetchFailed):
            raise NoAnswer(answer.code, answer.detail)
        if answer.status in _NO_MORE:
            self._paused = time.monotonic() + _PAUSE
        return require_success(answer, "it", self._clock())

    def _read(self, document: Any, query: str) -> Look:
        one = self._endpoint
        results, wrong = at(document, one.results), at(document, one.errors) if one.errors else None
        failures = [f"it says that it could not look everywhere: {_shown(wrong)}"] if wrong else []
        if not isinstance(results, list):
            return Look(failures=(*failures, f"its answer has no list at {one.results}"))
        if len(results) > MOST_RESULTS:
            return Look(
                failures=(*failures, f"it answered with {len(results):,} results, which is no answer")
            )
        readings: list[Reading] = []
        addresses: list[str] = []
        for number, result in enumerate(results[: one.most], 1):
            url = at(result, one.url)
            url = url if isinstance(url, str) else ""
            reading = self._record(result, url, query) if one.kind == "official_api" else None
            why = self._objection(url, query) if reading is None else ""
            if why:
                failures.append(f"its result {number} is not read: {why}")
            elif reading is not None:
                readings.append(reading)
            else:
                addresses.append(url)
        return Look(tuple(readings), tuple(failures), tuple(dict.fromkeys(addresses)))

    def _objection(self, url: str, query: str) -> str:
        """Why what is at an address that somebody else chose is not read; "" when nothing speaks against it."""
        place = parse_url(url)
        if not isinstance(place, Target):
            return f"{_shown(url)}: {place.reason}"
        if self._endpoint.kind == "official_api":
            return f"{_shown(url)} is not of {self._endpoint.domain}, or there is no text"
        if place.host == urlsplit(self._endpoint.asked("")).hostname:
            return f"{_shown(url)} is of the search engine itself"
        asked = {
            word.casefold() for _, value in parse_qsl(urlsplit(url).query) for word in RUN.findall(value)
        }
        if asked and asked >= {word.casefold() for word in RUN.findall(query)}:
            return f"{_shown(url)} asks the same question"
        return ""

    def _record(self, result: Any, url: str, query: str) -> Reading | None:
        """What a publisher says in a record; None when it is not at an address of the publisher, or says nothing but
        what it was asked."""
        one, host = self._endpoint, host_of(url)
        own = host == one.domain.lower() or host.endswith(f".{one.domain.lower()}")
        if not own or "/" in site_of(url):  # an account there is its user's
            return None
        title, text = (text_of(at(result, place)) if place else "" for place in (one.title, one.text))
        echo = f"{one.asked(query)}{'&' if '?' in one.address else '?'}q={quote(query, safe='')}"
        page = without_echo(Page(title=one_line(title), text=plain(text).strip()[:TEXT_CHARACTERS]), (echo,))
        if not RUN.search(page.text):
            return None
        return Reading(
            text=page.text,
            url=url,
            title=page.title,
            published=time_of(at(result, one.date)) if one.date else None,
            read_at=self._clock(),
            official=one.official,
            verified=True,
        )


def load_endpoints(file: Path) -> list[Endpoint]:
    """The endpoints of a file. Raises EndpointError, which names it."""
    try:
        document = tomllib.loads(file.read_text("utf-8"))
        if set(document) != {"endpoints"} or not isinstance(document["endpoints"], list):
            raise ValueError("it must have [[endpoints]] and nothing else")
        return [Endpoint.model_validate(table) for table in document["endpoints"]]
    except ValidationError as error:
        raise EndpointError(
            f"{file}: {plain_messages(error.errors()[:1], Endpoint, whole='an endpoint')}"
        ) from error
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise EndpointError(f"{file}: {error}") from error


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return one_line(text)[:120] or "nothing"
