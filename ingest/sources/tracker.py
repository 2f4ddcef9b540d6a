"""Trackers with an address for each ticket, each described by a table of a TOML file: how a ticket is written, where it
is asked for, and where its title, text and date lie in the answer. docs/extending.md has one in full."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vouchgate.ingest.citations.kinds import CitationKind, KindError, each_match, full_match
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import Found, Missing, SourceReading
from vouchgate.ingest.language.validation import plain_messages
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import FetchFailed
from vouchgate.ingest.sources.answers import NoAnswer, build_found, origin_of, require_success
from vouchgate.ingest.sources.json_answers import at, filled, text_of, time_of
from vouchgate.ingest.sources.registry import Registry

_PROJECT = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}")
_BYTES = 1_000_000


class Tracker(BaseModel):
    """One tracker. Templates (`address`, `page`, `body`) have `{base}` and the named groups of `pattern` in braces."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")  # the type of its citations
    label: str = Field(min_length=1, max_length=60)
    projects: tuple[str, ...]  # whose tickets these are: without, UTF-8 would be one
    pattern: str = r"(?P<project>{projects})-(?P<number>[1-9][0-9]{0,8})"
    example: str
    base: str = Field(pattern=r"^https?://")
    address: str
    page: str
    token: str | None = None  # the environment variable that holds it
    scheme: str = "Bearer"  # before the token in Authorization; empty: the token alone
    body: str | None = None  # of a POST; without, it is a GET
    found: tuple[int, ...] = (200,)
    missing: tuple[int, ...] = (404,)
    errors: str | None = (
        None  # where an answer says that it is none, though its status is one of `build_found`
    )
    record: str = ""  # where the ticket lies; a list that is empty there means missing
    id: str
    title: str
    text: str
    dated: str | None = None

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if not self.projects or any(_PROJECT.fullmatch(each) is None for each in self.projects):
            raise ValueError("projects must be the keys of projects, like OPS")
        groups = dict.fromkeys(self.expression.groupindex, "1") | {"base": self.base}
        for template in (self.address, self.page):
            template.format_map(groups)
        if not self.address.startswith("{base}"):
            raise ValueError("address must begin with {base}")
        return self

    @property
    def expression(self) -> re.Pattern[str]:
        """How a ticket is written."""
        return re.compile(self.pattern.replace("{projects}", "|".join(self.projects)), re.ASCII)

    def kind(self) -> CitationKind:
        """The kind of citation that its tickets are."""
        one = self.expression
        running = re.compile(rf"(?<![\w#@$&\\/.-]){one.pattern}(?![\w-]|\.\d)", re.ASCII)

        def key(match: re.Match[str]) -> str:
            return f"{self.name}:{match[0]}"

        whole = full_match(one, key)
        return CitationKind(
            name=self.name,
            label=self.label,
            needles=tuple(each.lower() for each in self.projects),
            find=each_match(running, key),
            whole=whole,
            bare=whole,
            forms=(self.example,),
            settings=() if self.token is None else (self.token,),
            source=lambda outbound, settings: Tickets(outbound, self, settings),
        )


class Tickets(Registry):
    """Reads the tickets of one tracker."""

    def __init__(self, outbound: Outbound, tracker: Tracker, settings: Mapping[str, str]) -> None:
        super().__init__(outbound, base=tracker.base)
        self._tracker = tracker
        token = "" if tracker.token is None else settings.get(tracker.token, "")
        self._secret = {"Authorization": f"{tracker.scheme} {token}".strip()} if token else {}

    async def _read(self, citation: Citation) -> SourceReading:
        tracker, who = self._tracker, f"The {self._tracker.label} tracker"
        name = citation.key.removeprefix(f"{tracker.name}:")
        match = tracker.expression.fullmatch(name)
        if citation.type != tracker.name or match is None:
            raise NoAnswer("not_supported", f"{citation.value} is not the name of a {tracker.label}.")
        groups = {group: quote(value or "", safe="") for group, value in match.groupdict().items()}
        groups |= {"key": quote(name, safe=""), "base": self._base}
        body = None if tracker.body is None else filled(tracker.body, match.groupdict() | {"key": name})
        address = tracker.address.format_map(groups)
        answer = await self._outbound.fetch(
            address,
            method="GET" if body is None else "POST",
            headers={"Accept": "application/json"}
            | ({} if body is None else {"Content-Type": "application/json"}),
            secret_headers=self._secret,
            body=body,
            max_bytes=_BYTES,
        )
        if isinstance(answer, FetchFailed):
            code = "dns" if answer.code == "missing_host" else answer.code
            raise NoAnswer(code, f"{who} could not be asked: {answer.detail}", retry_after=answer.retry_after)
        if origin_of(answer.url) != origin_of(address):  # a page to sign in at, or anybody's
            detail = f"{who} sent the request on to another host, whose answer does not count."
            raise NoAnswer("odd_answer", detail, status=answer.status)
        gone = Missing(citation=citation, detail=f"There is no {tracker.label} {name}.", status=answer.status)
        if answer.status in tracker.missing:
            return gone
        if answer.status not in tracker.found or not answer.whole:
            require_success(answer, who, self._clock())
            raise NoAnswer(
                "odd_answer", f"{who} answered with HTTP status {answer.status}.", status=answer.status
            )
        try:
            document = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise NoAnswer(
                "odd_answer", f"{who} sent something other than JSON.", status=answer.status
            ) from error
        if tracker.errors is not None and at(document, tracker.errors):
            raise NoAnswer("odd_answer", f"{who} says that it could not answer.", status=answer.status)
        record = at(document, tracker.record)
        if record == []:
            return gone
        record = record[0] if isinstance(record, list) else record
        if str(at(record, tracker.id) or "").lower() != name.lower():
            raise NoAnswer(
                "odd_answer", f"{who} was asked for {name} and answered with another.", status=answer.status
            )
        title = text_of(at(record, tracker.title))
        found = build_found(
            citation,
            source_id=f"{tracker.name}:{name}",
            url=tracker.page.format_map(groups),
            title=f"{name}: {title}",
            text=f"{title}\n\n{text_of(at(record, tracker.text))}",
            detail=f"{name} “{title[:120]}” is there.",
            dated=None if tracker.dated is None else time_of(at(record, tracker.dated)),
        )
        return _of_project(found, name.rpartition("-")[0].lower() or tracker.name)


def _of_project(found: Found, project: str) -> Found:
    """The ticket as the word of those who may write tickets of a project, and not of whose site it is."""
    return found.model_copy(update={"site": f"{found.site}/{project}"} if found.site else {})


def load_trackers(file: Path) -> list[Tracker]:
    """The trackers of a file. Raises KindError, which names it."""
    try:
        document = tomllib.loads(file.read_text("utf-8"))
        if set(document) != {"trackers"}:
            raise ValueError("it must have [[trackers]] and nothing else")
        return [Tracker.model_validate(table) for table in document["trackers"]]
    except ValidationError as error:
        raise KindError(
            f"{file}: {plain_messages(error.errors()[:1], Tracker, whole='a tracker')}"
        ) from error
    except OSError as error:
        raise KindError(f"{file}: {error.strerror}") from error
    except (ValueError, KeyError, re.error) as error:
        raise KindError(f"{file}: {error}") from error
