"""What an outbound request can come to. A failure is an answer, never an exception."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Fetched:
    """A whole answer, of whatever status, after the redirects that were followed."""

    url: str  # the final URL, as it was asked for: without a fragment, the host in lower case and ASCII
    status: int
    headers: Mapping[str, str]  # names in lower case; of a repeated one the values joined with ", "
    body: bytes  # decoded, at most as many bytes as asked for
    whole: bool  # False: the body went on past that
    hops: tuple[str, ...] = ()  # the URLs that redirected, the one asked for first
    private: bool = False  # some hop was at an address that may be asked only because it was opened


@dataclass(frozen=True, slots=True)
class FetchFailed:
    """No answer that can be used. `code`: `refused` (not safe to ask), `missing_host` (the name does not
    exist), `dns`, `timeout`, `tls`, `connection`, `odd_answer` (not HTTP, or over a bound), `rate_limited` (not
    asked, because the host wants no requests before `retry_after`), `offline`.
    `detail` is one sentence for a human and starts with the code's meaning, such as "refused: …"."""

    code: str
    detail: str
    url: str  # the URL of the hop that failed
    hops: tuple[str, ...] = field(default=())
    retry_after: datetime | None = None
    private: bool = False  # as of Fetched, as far as it came


FetchOutcome = Fetched | FetchFailed


@dataclass(frozen=True, slots=True)
class HopFailure:
    """Why one step of a request went no further, before anyone said which hop it belongs to. `code` as in
    Failed; `reason` goes on where the code's own words end."""

    code: str
    reason: str
    retry_after: datetime | None = None

    def as_failure(self, url: str, hops: tuple[str, ...], *, private: bool = False) -> FetchFailed:
        """The same for the hop at `url`."""
        detail = f"{self.code.replace('_', ' ')}: {self.reason}"
        return FetchFailed(self.code, detail, url, hops, self.retry_after, private)
