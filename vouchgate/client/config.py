"""Where the service is, what is shown to it, and how httpx is used. Refuses what would send the token elsewhere."""

from __future__ import annotations

import ipaddress
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import httpx

from vouchgate.client.errors import GateClosed
from vouchgate.client.steps import Call, HttpReply, NoReply

if TYPE_CHECKING:
    from vouchgate.client.in_process import InProcess  # which loads asyncio

DEFAULT_URL = "http://127.0.0.1:8080"
_TOKEN = re.compile(r"[\x21-\x7e]+")
_MOST_TIMEOUT = 1_000_000  # seconds; sockets take some 9,000 times as many
_AGENT = "vouchgate-client"


@dataclass(frozen=True, slots=True)
class Config:
    """How to reach the service. The token is in no representation."""

    url: str
    token: str = field(repr=False)
    timeout: float
    retries: int
    transport: InProcess | None = None  # for a service in this process; then `url` is a name only

    def for_httpx(self) -> dict[str, Any]:  # Any: keyword arguments of two constructors of httpx
        """What both httpx clients are made with. Redirects are not followed: they would carry the claim elsewhere. A
        service on this machine is not asked through a proxy, whatever the environment names."""
        here = _is_here(self.url) or self.transport is not None
        return {
            "transport": self.transport,
            "headers": {"Authorization": f"Bearer {self.token}", "User-Agent": _AGENT},
            "timeout": self.timeout,
            "follow_redirects": False,
            "trust_env": not here,
            # Reading all the authorities takes 50 ms, and nobody asks for one on the way to this very machine without
            # TLS. Everywhere else certificates are verified.
            "verify": not (here and self.url.startswith("http:")),
        }

    def for_request(self, call: Call[object]) -> dict[str, Any]:  # Any: keyword arguments of httpx
        """The request that a call is."""
        headers = {"Accept": "application/json, application/problem+json"}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if call.key is not None:
            headers["Idempotency-Key"] = call.key
        if call.prefer is not None:
            headers["Prefer"] = call.prefer
        return {
            "method": call.method,
            "url": self.url + call.path,
            "params": dict(call.parameters) or None,
            "content": call.body,
            "headers": headers,
            "timeout": httpx.Timeout(self.timeout, read=self.timeout + call.patience),
        }


class Configured(ABC):
    """How every client is made: for an address and a token, or over a way of its own."""

    _config: Config
    _closed = False

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout: float = 30.0, retries: int = 4
    ) -> None:
        """Raises ValueError naming what cannot be used. Nothing is asked yet."""
        self._connect(configured(url, token, timeout=timeout, retries=retries, environment=os.environ))

    @abstractmethod
    def _connect(self, config: Config) -> None: ...

    @classmethod
    def over(cls, config: Config) -> Self:
        """One that reaches the service in another way than by its address."""
        made = cls.__new__(cls)
        made._connect(config)
        return made

    def _closed_error(self) -> GateClosed:
        return GateClosed(f"this {type(self).__name__} is closed: open another one")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._config.url!r})"


def configured(
    url: str | None, token: str | None, *, timeout: float, retries: int, environment: Mapping[str, str]
) -> Config:
    """What was given, else what VOUCHGATE_URL and VOUCHGATE_TOKEN say. Raises ValueError naming what cannot be used,
    and never showing the token."""
    url = url or environment.get("VOUCHGATE_URL") or DEFAULT_URL
    token = token or environment.get("VOUCHGATE_TOKEN")
    if not token:
        raise ValueError(
            "a token is needed: give `token`, or set VOUCHGATE_TOKEN; "
            "vouchgate token create --role agent --owner ID makes one"
        )
    if not _TOKEN.fullmatch(token):
        raise ValueError("the token holds characters that no token has: white space, or letters beyond ASCII")
    check_timeout(timeout)
    if retries < 0:
        raise ValueError("retries must be 0 or more")
    return Config(_checked(url), token, timeout, retries)


def check_timeout(timeout: float) -> None:
    """Raises ValueError."""
    if not 0 < timeout <= _MOST_TIMEOUT:
        raise ValueError(f"timeout must be over 0 and at most {_MOST_TIMEOUT:,} seconds")


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1) > 0
        httpx.URL(url).raw_host.decode().encode("idna")  # raises for a name that none can look up
    except (ValueError, httpx.InvalidURL):
        usable = False
    if "://" not in url:
        raise ValueError(f"the URL must begin with http:// or https://, as in http://{url[:200]}")
    # A name and password in a URL would take the place of the token, and end up in logs.
    if not usable or "@" in parts.netloc or "?" in url or "#" in url:
        raise ValueError("the URL must be like https://gate.example.org: no user name, no query")
    return url.rstrip("/")


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def answer_of(response: httpx.Response) -> HttpReply:
    """A response that was read to its end."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return HttpReply(
        response.status_code, media_type, response.content, _seconds(response.headers.get("retry-after"))
    )


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After in seconds. As a date it is left out: the clocks of two machines differ by more than most waits."""
    return float(retry_after) if retry_after and re.fullmatch(r"[0-9]{1,6}", retry_after.strip()) else None


def describe_lost_request(error: httpx.RequestError) -> NoReply:
    """A request without an answer. The exception itself is not kept: it holds the request, and that the token."""
    kinds = {
        httpx.ConnectTimeout: "The connection was not answered in time",
        httpx.TimeoutException: "No answer came in time",
        httpx.ConnectError: "Nothing answers at the service's address (VOUCHGATE_URL, or the one given), "
        "or its certificate does not hold",
        httpx.NetworkError: "The connection broke off",
        httpx.ProxyError: "The proxy did not let it through",
        httpx.ProtocolError: "The connection was closed before the answer, or what came was no HTTP",
    }
    what = next(
        (text for kind, text in kinds.items() if isinstance(error, kind)), "The answer cannot be read"
    )
    passing = isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol)
    return NoReply(what, passing)
