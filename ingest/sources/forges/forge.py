"""Issues and pull requests on a forge, read through its API. What GitHub, GitLab and Forgejo share.

A forge answers 404 both for what does not exist and for what the caller may not see. An issue is missing only
when its repository can be seen; a repository that cannot be seen may be private, and that is not the same as
missing (`Forge.lacks_owner` says when it certainly does not exist).
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar
from urllib.parse import quote

from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, Missing, SourceReading
from vouchgate.ingest.net.client import Outbound
from vouchgate.ingest.net.fetched import Fetched
from vouchgate.ingest.sources.answers import (
    LONGEST_PAUSE,
    READING_SECONDS,
    AnyShape,
    Clock,
    NoAnswer,
    build_found,
    fetch_answer,
    one_line,
    origin_of,
    parse_answer,
    read_or_unreachable,
    require_success,
    retry_after,
    split_address,
)
from vouchgate.ingest.sources.plain_text import without_comments

_AT_ONCE = 2  # requests to one forge; GitHub counts concurrent ones towards its secondary limits
_RESERVE = 3  # requests that a reading may take: with fewer left none is begun
_PAUSE = timedelta(minutes=1)  # when a forge refuses for the rate and does not say for how long
_KEY = re.compile(r"issue:(?P<repository>[^#!]{0,300})(?P<mark>[#!])(?P<number>[1-9][0-9]{0,9})")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class IssueAddress:
    """Where an issue is: `merge_request` for GitLab's, which count apart; `comment` when one of its comments is
    meant, as the forge writes it after the `#` of a URL."""

    repository: str
    number: int
    merge_request: bool = False
    comment: str = ""

    @property
    def key(self) -> str:
        return f"issue:{self.repository.lower()}{'!' if self.merge_request else '#'}{self.number}"


@dataclass(frozen=True, slots=True)
class Thread:
    """An issue or pull request as read. `repository` is where it is now; `status` is a sentence without its
    subject, such as "is closed as not planned"."""

    repository: str
    number: int
    kind: str
    title: str
    status: str
    body: str
    labels: tuple[str, ...]
    updated: datetime | None
    url: str


class Forge(ABC):
    """One forge. `base` is the address of its API, or of itself where the API has a fixed place below it;
    `repository` is the one that a bare `#12` means.

    Raises ValueError for a `repository` that cannot be one. Its methods belong to one event loop.
    """

    name: ClassVar[str]
    setting: ClassVar[str]  # beginning of the names of its settings
    deepest: ClassVar[int] = 2  # names in the path of a repository

    def __init__(
        self,
        outbound: Outbound,
        *,
        base: str,
        token: str | None = None,
        repository: str | None = None,
        clock: Clock,
        seconds: float = READING_SECONDS,
    ) -> None:
        self.base = base.rstrip("/")
        self._outbound = outbound
        self._secrets = {} if token is None else self.secret_headers(token)
        self._clock = clock
        self._seconds = seconds
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._paused_until: datetime | None = None  # nothing is asked before
        self._low_until: datetime | None = None  # no reading is begun before
        if repository is not None and not self._is_repository(repository):
            raise ValueError(f"{self.setting}_REPO: {repository!r} is not the path of a repository.")
        self._repository = repository

    # --- what each forge says for itself

    @abstractmethod
    def headers(self) -> Mapping[str, str]:
        """What every request to the API carries."""

    @abstractmethod
    def secret_headers(self, token: str) -> Mapping[str, str]:
        """What a request carries to be recognised."""

    @abstractmethod
    def web(self) -> str:
        """The address under which people see the forge, without a slash at its end."""

    @abstractmethod
    def address_of(self, path: tuple[str, ...], fragment: str) -> IssueAddress | None:
        """The issue at this path below `web`; None when it is no issue's."""

    @abstractmethod
    def issue_url(self, place: IssueAddress) -> str:
        """Where the API has the issue."""

    @abstractmethod
    def repository_url(self, repository: str) -> str:
        """Where the API has the repository: a 200 shows that its issues could be seen."""

    @abstractmethod
    def thread(self, answer: Fetched, place: IssueAddress) -> Thread:
        """The issue in the API's answer. Raises NoAnswer when it is none."""

    @abstractmethod
    async def comment(self, place: IssueAddress) -> str | None:
        """The text of the comment that `place` names; None when the issue has no such comment. Raises NoAnswer."""

    async def lacks_owner(self, repository: str) -> bool:
        """Whether the forge shows that nobody has the account this repository would be under."""
        return False

    async def absent(self, citation: Citation, place: IssueAddress, repository: Fetched) -> SourceReading:
        """The reading for an issue that is not there, although its repository, as answered, can be seen."""
        detail = f"{self.name} shows {place.repository}, which has no {_words(place)} {place.number}."
        return Missing(citation=citation, detail=detail, status=404)

    # --- readings

    def issue_at(self, url: str) -> str | None:
        """The key of the issue or pull request whose page this URL of the forge is; None for every other URL."""
        place = self._find_address(url)
        return None if place is None else place.key

    async def read(self, citation: Citation) -> SourceReading:
        """Looks up one `issue` citation. Never raises but CancelledError."""
        return await read_or_unreachable(citation, self._cited(citation), seconds=self._seconds)

    async def read_url(self, citation: Citation) -> SourceReading:
        """Looks up a `url` citation for which `issue_at` has an answer. Never raises but CancelledError."""
        return await read_or_unreachable(citation, self._linked(citation), seconds=self._seconds)

    async def _cited(self, citation: Citation) -> SourceReading:
        match = _KEY.fullmatch(citation.key)
        if citation.type is not CitationType.ISSUE or match is None:
            raise NoAnswer("not_supported", f"{citation.value} is not the name of an issue.")
        repository = match["repository"] or self._repository
        if repository is None:
            detail = (
                f"{citation.value} names no repository: set {self.setting}_REPO to say which one it means."
            )
            raise NoAnswer("not_supported", detail)
        if not self._is_repository(repository):
            raise NoAnswer("not_supported", f"{self.name} has no repositories with names like {repository}.")
        return await self._read(
            citation, IssueAddress(repository, int(match["number"]), match["mark"] == "!")
        )

    async def _linked(self, citation: Citation) -> SourceReading:
        place = self._find_address(citation.value)
        if place is None:
            raise NoAnswer("not_supported", f"{citation.value} is not the page of an issue of {self.name}.")
        return await self._read(citation, place)

    async def _read(self, citation: Citation, place: IssueAddress) -> SourceReading:
        answer = await self.ask(self.issue_url(place), begins=True)
        where = f"{place.repository}{'!' if place.merge_request else '#'}{place.number}"
        if answer.status == 410:
            detail = (
                f"{where} is gone: {self.name} says that it was deleted or that its repository has no issues."
            )
            return Missing(citation=citation, detail=detail, status=410)
        if answer.status == 404:
            return await self._not_there(citation, place)
        thread = self.thread(self.require_success(answer), place)
        now_at = IssueAddress(thread.repository, thread.number, place.merge_request)
        moved = now_at.key != place.key
        if moved and not answer.hops:
            detail = (
                f"{self.name} was asked for {where} and answered with {thread.repository}#{thread.number}."
            )
            raise NoAnswer("odd_answer", detail, status=answer.status)
        comment = ""
        if place.comment:
            said = await self.comment(place)
            if said is None:
                detail = f"{where} exists, but has no comment {place.comment}."
                return Missing(citation=citation, detail=detail, status=404)
            comment = said
        return _found(citation, now_at, thread, comment, f"{where} was moved: " if moved else "")

    async def _not_there(self, citation: Citation, place: IssueAddress) -> SourceReading:
        answer = await self.ask(self.repository_url(place.repository))
        if answer.status not in (404, 410):
            return await self.absent(citation, place, self.require_success(answer))
        if self._repository is not None and place.repository.lower() == self._repository.lower():
            token = "that the token may read it" if self._secrets else "and whether it needs a token"
            detail = (
                f"{self.name} does not show the configured repository {place.repository}:"
                f" check {self.setting}_REPO, {token} ({self.setting}_TOKEN)."
            )
            raise NoAnswer("forbidden", detail, status=404)
        if await self.lacks_owner(place.repository):
            detail = f"{self.name} has no repository {place.repository}: nobody there has that name."
            return Missing(citation=citation, detail=detail, status=404)
        detail = f"{self.name} shows no repository {place.repository} here: it is private, or does not exist."
        raise NoAnswer("forbidden", detail, status=404)

    # --- requests

    async def ask(self, url: str, *, begins: bool = False) -> Fetched:
        """One request to the API, at the forge's own pace. Raises NoAnswer `rate_limited` without asking for as
        long as the forge has said not to ask; when a reading `begins`, also when hardly any are left."""
        async with self._turn:
            self._wait(self._paused_until)
            if begins:
                self._wait(self._low_until)
            answer = await fetch_answer(
                self._outbound, url, self.name, headers=self.headers(), secret_headers=self._secrets
            )
            self._note_pause(answer)
        if origin_of(answer.url) != origin_of(self.base):  # a page to sign in at, or anybody's
            detail = f"{self.name} sent the request on to another host, whose answer does not count."
            raise NoAnswer("odd_answer", detail, status=answer.status)
        return answer

    def require_success(self, answer: Fetched) -> Fetched:
        """The answer itself when it is a whole 200. Raises NoAnswer for any other."""
        if answer.status == 401 and self._secrets:
            detail = f"{self.name} does not accept the token in {self.setting}_TOKEN."
            raise NoAnswer("forbidden", detail, status=401)
        return require_success(answer, self.name, self._clock())

    def shaped(self, answer: Fetched, shape: type[AnyShape]) -> AnyShape:
        """The answer's JSON in its shape. Raises NoAnswer."""
        return parse_answer(self.require_success(answer), shape, self.name)

    def _wait(self, until: datetime | None) -> None:
        if until is not None and self._clock() < until:
            detail = f"{self.name} has been asked as often as it allows; it may be asked again from {until:%H:%M} UTC."
            raise NoAnswer("rate_limited", detail, retry_after=until)

    def _note_pause(self, answer: Fetched) -> None:
        """Keeps what the answer says about further requests. Raises NoAnswer when it is a refusal for the rate."""
        now = self._clock()
        left = _number(answer.headers, "x-ratelimit-remaining", "ratelimit-remaining")
        resets = _number(answer.headers, "x-ratelimit-reset", "ratelimit-reset")
        until = None if resets is None else _moment(resets, now)
        refused = answer.status == 429 or (
            answer.status == 403
            and (left == 0 or "retry-after" in answer.headers or b"rate limit" in answer.body[:2_000].lower())
        )
        if refused:
            told = retry_after(answer.headers, now) or (until if left == 0 else None)
            self._paused_until = told if told is not None and told > now else now + _PAUSE
            detail = f"{self.name} asks for fewer requests (HTTP status {answer.status})."
            raise NoAnswer("rate_limited", detail, status=answer.status, retry_after=self._paused_until)
        if left == 0 and until is not None:
            self._paused_until = until
        self._low_until = until if left is not None and left < _RESERVE else None

    # --- names

    def _is_repository(self, path: str) -> bool:
        names = path.split("/")
        return 2 <= len(names) <= self.deepest and all(map(is_name, names))

    def _find_address(self, url: str) -> IssueAddress | None:
        here, there = split_address(self.web()), split_address(url)
        if here is None or there is None or origin_of(self.web()) != origin_of(url):
            return None
        root = here.path.rstrip("/") + "/"
        if not there.path.startswith(root):
            return None
        # Names are the same in any case, and one spelling keeps answers to them the same.
        path = tuple(there.path[len(root) :].lower().split("/"))
        place = self.address_of(path, there.fragment)
        return place if place is not None and self._is_repository(place.repository) else None


def is_name(text: str) -> bool:
    """Whether this can be one name in the path of a repository. Nothing else is ever put into an address."""
    return _NAME.fullmatch(text) is not None and text not in {".", ".."}


def issue_number(text: str) -> int | None:
    """The number of an issue in a path."""
    return int(text) if _NUMBER.fullmatch(text) else None


def in_path(text: str) -> str:
    """A name, or a path of names, as one segment of an address."""
    return quote(text, safe="")


def labels_line(labels: tuple[str, ...]) -> str:
    """The labels as a line of the text."""
    return f"Labels: {', '.join(one_line(label) for label in labels[:50])}" if labels else ""


def _found(citation: Citation, place: IssueAddress, thread: Thread, comment: str, moved: str) -> Found:
    name = f"{thread.kind.capitalize()} {place.number}"
    said = f"{name} of {thread.repository} “{one_line(thread.title)[:120]}” {thread.status}"
    parts = (
        f"{name} {thread.status}.",
        labels_line(thread.labels),
        without_comments(thread.body).strip(),
        without_comments(comment).strip(),
    )
    return build_found(
        citation,
        source_id=place.key,
        url=thread.url,
        title=thread.title,
        text="\n\n".join((one_line(thread.title), *filter(None, parts))),
        detail=f"{moved}{said}.",
        dated=thread.updated,
    )


def _words(place: IssueAddress) -> str:
    return "merge request" if place.merge_request else "issue"


def _number(headers: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        value = headers.get(name, "").strip()
        if re.fullmatch(r"[0-9]{1,12}", value):
            return int(value)
    return None


def _moment(seconds: int, now: datetime) -> datetime:
    """A time in seconds since 1970, at most an hour from now."""
    return min(datetime.fromtimestamp(min(seconds, 10**10), tz=UTC), now + LONGEST_PAUSE)
