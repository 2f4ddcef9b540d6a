"""What the sources that ask a web service share: an answer that can be used, or the reason why there is none.

A service is asked about one thing that it keeps a record of. Its 404 for that thing means missing, which only
the caller can say; here every other answer that is not a plain 200 could not be found out.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import LINKS, Found, SourceReading, Standing, Unreachable
from vouchgate.ingest.net.fetched import Fetched, FetchFailed
from vouchgate.ingest.scoring.sites import site_of
from vouchgate.ingest.sources.plain_text import plain

if TYPE_CHECKING:
    from vouchgate.ingest.net.client import Outbound

_log = logging.getLogger(__name__)

Clock = Callable[[], datetime]

READING_SECONDS = 20.0  # for one reading with all its requests, waiting for a turn at the host included
LARGEST = 2_000_000  # bytes of an answer, unless a service has larger or smaller ones
LONGEST_PAUSE = timedelta(hours=1)  # what a service asks for beyond that is not believed
_TITLE = 300  # characters
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_URL = re.compile(r"https?://[^\s<>()\[\]\"'`|\\^{}]{1,500}", re.IGNORECASE)


class NoAnswer(Exception):
    """It could not be found out. `code` is one of the words of `Unreachable.code`, `detail` one sentence."""

    private = False  # as of `ingest.claims.source.Unreachable`

    def __init__(
        self, code: str, detail: str, *, status: int | None = None, retry_after: datetime | None = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.status = status
        self.retry_after = retry_after


class Shape(BaseModel):
    """Base of the parts of an answer that are read: what else is in it is ignored, a wrong type is an error."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, defer_build=True)


AnyShape = TypeVar("AnyShape", bound=Shape)


def utc_now() -> datetime:
    """The clock of a service; tests pass another."""
    return datetime.now(UTC)


async def read_or_unreachable(
    citation: Citation, work: Awaitable[SourceReading], *, seconds: float = READING_SECONDS
) -> SourceReading:
    """What `work` finds within that time. Never raises but CancelledError: what goes wrong is Unreachable, and
    a line in the log."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except NoAnswer as error:
        _log.info("%.200a could not be checked (%s): %.300a", citation.key, error.code, error.detail)
        return Unreachable(
            citation=citation,
            code=error.code,
            detail=error.detail,
            status=error.status,
            retry_after=error.retry_after,
            private=error.private,
        )
    except TimeoutError:
        _log.info("%.200a could not be checked: no answer within %s s", citation.key, seconds)
        return Unreachable(
            citation=citation, code="timeout", detail=f"{citation.value} could not be looked up in time."
        )
    except Exception:  # noqa: BLE001  (whatever goes wrong must become "could not be found out")
        _log.exception("reading %a failed", citation.key)
        return Unreachable(
            citation=citation, code="error", detail=f"{citation.value} could not be looked up."
        )


async def fetch_answer(
    outbound: Outbound,
    url: str,
    who: str,
    *,
    headers: Mapping[str, str],
    secret_headers: Mapping[str, str] | None = None,
    max_bytes: int = LARGEST,
) -> Fetched:
    """The answer to a GET, of whatever status. Raises NoAnswer when there was none; `who` is the service's name
    for the sentence."""
    outcome = await outbound.fetch(url, headers=headers, secret_headers=secret_headers, max_bytes=max_bytes)
    if isinstance(outcome, FetchFailed):
        # That the service has no address says nothing about the thing it was asked for.
        code = "dns" if outcome.code == "missing_host" else outcome.code
        detail = f"{who} could not be asked: {outcome.detail.removesuffix('.')}."
        raise NoAnswer(code, detail, retry_after=outcome.retry_after)
    return outcome


def require_success(answer: Fetched, who: str, now: datetime) -> Fetched:
    """The answer itself when it is a whole 200. Raises NoAnswer for any other."""
    status = answer.status
    if status == 200 and answer.whole:
        return answer
    if status == 200:
        raise NoAnswer("odd_answer", f"{who} sent a longer answer than is read.", status=status)
    if status in (401, 403, 451):
        raise NoAnswer("forbidden", f"{who} does not show it here (HTTP status {status}).", status=status)
    if status == 429:
        until = retry_after(answer.headers, now)
        detail = f"{who} asks for fewer requests (HTTP status 429)."
        raise NoAnswer("rate_limited", detail, status=status, retry_after=until)
    if status >= 500:
        until = retry_after(answer.headers, now)
        detail = f"{who} failed (HTTP status {status})."
        raise NoAnswer("server_error", detail, status=status, retry_after=until)
    raise NoAnswer("odd_answer", f"{who} answered with HTTP status {status}.", status=status)


def parse_answer(answer: Fetched, shape: type[AnyShape], who: str) -> AnyShape:
    """The answer's JSON in its shape. Raises NoAnswer `odd_answer` for any other."""
    try:
        return shape.model_validate_json(answer.body)
    except ValidationError as error:
        detail = f"{who} sent something other than the record it was asked for."
        raise NoAnswer("odd_answer", detail, status=answer.status) from error


def retry_after(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """When the service said to come back: a Retry-After in seconds or as a date, at most an hour from now."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", value):
        until = now + timedelta(seconds=int(value))
    else:
        try:
            until = parsedate_to_datetime(value)
        except (TypeError, ValueError):
            return None
        if until.tzinfo is None:  # "-0000": a time of which nobody says where
            return None
    return min(until, now + LONGEST_PAUSE)


def build_found(
    citation: Citation,
    *,
    source_id: str,
    url: str,
    title: str,
    text: str,
    detail: str,
    dated: datetime | None,
    standing: Standing = Standing.IN_FORCE,
    successor: str | None = None,
    links: str | None = None,
) -> Found:
    """A thing that was read. `url` is the address of its page for people; the sites it links to are those of the
    URLs in `links`, else in the text."""
    whole = plain(text).strip()[:TEXT_CHARACTERS]
    site = site_of(url)
    return Found(
        citation=citation,
        source_id=source_id,
        standing=standing,
        detail=detail,
        title=one_line(title),
        digest=hashlib.sha256(whole.encode()).hexdigest(),
        dated=dated,
        successor=successor,
        site=site,
        links=linked_sites(whole if links is None else links, site),
        status=200,
        text=whole,
    )


def linked_sites(text: str, own: str) -> tuple[str, ...]:
    """The sites of the URLs in a text, other than its own, sorted; at most 50."""
    urls = dict.fromkeys(match[0].rstrip(".,;:!?*_~") for match in _URL.finditer(text))
    return tuple(sorted({site_of(url) for url in urls} - {own, ""})[:LINKS])


def one_line(text: str) -> str:
    """A title: one line, at most 300 characters."""
    return " ".join(plain(text[: 4 * _TITLE]).split())[:_TITLE]


def split_address(url: str) -> SplitResult | None:
    """The parts of a web address; None when it is none, or names a user."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises when it is no number up to 65535
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc else None


def origin_of(url: str) -> tuple[str, int] | None:
    """Host and port; http and https count as one, for services send the one to the other."""
    parts = split_address(url)
    if parts is None:
        return None
    port = parts.port or 443
    return (parts.hostname or "").removeprefix("www."), 443 if port == 80 else port


def month_number(name: str) -> int | None:
    """1 for `January` and `Jan`, whatever the language of the machine; None for another word."""
    short = name[:3].lower()
    return _MONTHS.index(short) + 1 if short in _MONTHS else None
