"""The one client that leaves the machine. An agent chooses the URLs, so nothing about them is taken on trust:
see docs/adrs/0009-one-outbound-client.md.

What speaks HTTP is loaded for the first request: to load it takes long, and a gate may never ask anything.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import certifi

from vouchgate.ingest.net.addresses import (
    URL_CHARACTERS,
    Address,
    Network,
    Opening,
    Target,
    follow,
    load_rules,
    parse_url,
)
from vouchgate.ingest.net.fetched import Fetched, FetchFailed, HopFailure
from vouchgate.ingest.net.hosts import HostLimits, LimitsUnavailable, requested_wait
from vouchgate.ingest.net.names import NameResolver, Resolve, system_resolve

if TYPE_CHECKING:
    import httpx

    from vouchgate.ingest.net.transport import Dial, PinnedTransport

__all__ = ["Outbound", "Resolve", "system_resolve"]

REDIRECTS = 5  # hops that are followed

_FRAMING_BYTES = (
    262_144  # what a body may take beside twice its bytes: chunk sizes, and packing that packs nothing
)
_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_KEEPS_METHOD = frozenset({307, 308})
_WAIT_STATUSES = frozenset({429, 503})
# What this client says by itself, and what would let a caller's header change how a message is read.
_OWN_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)

# Without the parser's own words, which repeat the header: it may be a secret.
_UNSENDABLE = HopFailure("refused", "the request cannot be written as HTTP")

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Trail:
    """How far a request has come, for whoever must say where it ended."""

    url: str
    hops: list[str] = field(default_factory=list)
    private: bool = False  # whether a hop was in an opened network


@dataclass(frozen=True, slots=True)
class _Ask:
    """What is asked at every hop; after a redirect some of it is left out."""

    method: str
    headers: Mapping[str, str]
    secrets: Mapping[str, str]
    body: bytes | None
    max_bytes: int
    follow: bool


@cache
def _user_agent() -> str:
    return f"vouchgate/{version('vouchgate')}"


class Outbound:
    """Fetches http(s) URLs that an agent chose, from public addresses only, within bounds of time and size.

    A URL is read once and its host looked up once; every address of it must be public, or in
    `allow_networks` (on any port), and the connection goes to one of those, never to a name. Redirects are new URLs,
    under the same rules. Nothing is remembered from one request to the next but when each host may be asked again.
    Used within one event loop. `shared` is a folder for limits that hold over several processes; `dial` is what makes
    connections, if not `dial_tcp`.
    """

    def __init__(
        self,
        *,
        allow_networks: Sequence[Network] = (),
        extra_ports: frozenset[int] = frozenset(),
        resolve: Resolve = system_resolve,
        tls: ssl.SSLContext | None = None,
        per_host: int = 2,
        spacing_seconds: float = 0.2,
        shared: Path | None = None,
        dial: Dial | None = None,
    ) -> None:
        self._extra_ports = extra_ports
        self._rules = load_rules([Opening(network) for network in allow_networks], extra_ports)
        self._names = NameResolver(resolve)
        self._hosts = HostLimits(per_host, spacing_seconds, shared)
        self._by_url = False
        self._tls = tls  # None: made when it is first needed, for it takes time
        self._dial = dial
        self._agent = _user_agent()

    def opened_to(self, openings: Sequence[Opening]) -> Outbound:
        """The same client, with the same turns at each host, for requests that may reach these networks and no others
        that are not public."""
        other = copy(self)
        other._rules = load_rules(openings, self._extra_ports)
        return other

    def limited_by_url(self) -> Outbound:
        """The same client with limits of each URL instead of each host: what one asks for at a host where others have
        theirs, such as a pause, holds up nobody else."""
        other = copy(self)
        other._by_url = True
        return other

    async def end_pause(self, url: str) -> None:
        """Has what is at this URL asked again at once, whatever pause it asked for: somebody says so."""
        place = parse_url(url)
        if isinstance(place, Target):
            await self._hosts.hold(self._limited_as(place), 0.0)

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        secret_headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        max_bytes: int = 2_000_000,
        seconds: float = 20.0,
        follow: bool = True,
    ) -> Fetched | FetchFailed:
        """The answer to a request for `url`, of any status, or why there is none. Raises nothing but
        CancelledError.

        `seconds` are for all of it: waiting for the host's turn, look-ups, hops and body. A body is cut at
        `max_bytes`, and not read at all where that is 0. `secret_headers` and `body` go to the origin of `url` and
        not along with a redirect to another. Without `follow` a redirect is an answer like any other.
        """
        ask = _Ask(method.upper(), headers or {}, secret_headers or {}, body, max_bytes, follow)
        trail = _Trail(url)
        try:
            async with asyncio.timeout(seconds):
                outcome = await self._follow(ask, trail)
        except TimeoutError:
            outcome = HopFailure("timeout", f"no complete answer within {seconds:g} s")
        except Exception as error:  # noqa: BLE001  (a bug here must not cost the claim its other findings)
            _log.exception("fetching %.200r failed", trail.url)
            outcome = HopFailure("connection", f"an unexpected {type(error).__name__}")
        if isinstance(outcome, HopFailure):
            return outcome.as_failure(trail.url, tuple(trail.hops), private=trail.private)
        return replace(outcome, private=trail.private)

    async def _follow(self, ask: _Ask, trail: _Trail) -> Fetched | HopFailure:
        place = parse_url(trail.url)
        while not isinstance(place, HopFailure):
            trail.url = place.url
            answer = await self._ask_host(place, ask, trail)
            if not isinstance(answer, _Redirect):
                return answer
            if len(trail.hops) == REDIRECTS:
                return HopFailure("refused", f"more than {REDIRECTS} redirects")
            there = follow(place, answer.location)
            trail.hops.append(place.url)
            trail.url = there.url if isinstance(there, Target) else answer.location[:URL_CHARACTERS]
            if isinstance(there, Target):
                if ask.body is not None and answer.status in _KEEPS_METHOD and there.origin != place.origin:
                    return HopFailure("refused", "it redirects what was to be sent to another origin")
                ask = _after_redirect(ask, answer.status, there.origin == place.origin)
            place = there
        return place

    async def _ask_host(self, place: Target, ask: _Ask, trail: _Trail) -> Fetched | _Redirect | HopFailure:
        """One hop, in its turn."""
        doubt = self._rules.doubt(place)
        if place.address is not None:
            doubt = self._rules.objection(place, [place.address])
        if doubt and (place.address is not None or not self._rules.allowed):
            return HopFailure("refused", doubt)
        try:
            async with self._hosts.slot(self._limited_as(place)) as pause:
                if pause:
                    return _limited(place, pause)
                return await self._ask_addresses(place, ask, trail)
        except LimitsUnavailable as error:
            return HopFailure("rate_limited", str(error))

    def _limited_as(self, place: Target) -> str:
        return place.url if self._by_url else place.host

    async def _ask_addresses(
        self, place: Target, ask: _Ask, trail: _Trail
    ) -> Fetched | _Redirect | HopFailure:
        import httpcore

        from vouchgate.ingest.net.transport import PinnedTransport, WrongPeer, dial_tcp

        addresses = await self._addresses(place)
        request = self._request(place, ask)
        if isinstance(addresses, HopFailure):
            return addresses
        if isinstance(request, HopFailure):
            return request
        is_opened = partial(self._rules.is_allowed, port=place.port)
        trail.private |= any(map(is_opened, addresses))
        transport = PinnedTransport(
            place, addresses, tls=self._context(place), own=is_opened, dial=self._dial or dial_tcp
        )
        try:
            return await self._exchange(place, request, transport, ask, tuple(trail.hops))
        except (
            WrongPeer,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
            httpcore.NetworkError,
            OSError,
        ) as error:
            return _broken(place, error)
        finally:
            await transport.aclose()

    async def _addresses(self, place: Target) -> Sequence[Address] | HopFailure:
        """Where to connect to: checked, every one of them."""
        if place.address is not None:
            return [place.address]
        addresses = await self._names.addresses(place.host)
        if isinstance(addresses, HopFailure):
            # A name or port that only an allowed network makes good is refused unless it is found in one.
            doubt = self._rules.doubt(place)
            return HopFailure("refused", doubt) if doubt else addresses
        objection = self._rules.objection(place, addresses)
        return HopFailure("refused", objection) if objection else addresses

    def _context(self, place: Target) -> ssl.SSLContext | None:
        if self._tls is None and place.scheme == "https":
            self._tls = public_authorities()
        return self._tls

    def _request(self, place: Target, ask: _Ask) -> httpx.Request | HopFailure:
        import httpx

        given = {name.lower(): value for name, value in (*ask.headers.items(), *ask.secrets.items())}
        headers = {
            "accept": "*/*",
            **{name: value for name, value in given.items() if name not in _OWN_HEADERS},
            "host": place.authority,
            "user-agent": self._agent,
            # A range of a packed body could not be unpacked.
            "accept-encoding": "identity" if "range" in given else "gzip, deflate",
            "connection": "close",
        }
        try:
            request = httpx.Request(ask.method, place.url, headers=headers, content=ask.body)
        except (httpx.InvalidURL, ValueError, TypeError):
            return _UNSENDABLE
        url = request.url
        if url.raw_host != place.host.encode() or url.netloc != place.authority.encode():
            return HopFailure("refused", "the host can be read in two ways")
        return request

    async def _exchange(
        self,
        place: Target,
        request: httpx.Request,
        transport: PinnedTransport,
        ask: _Ask,
        hops: tuple[str, ...],
    ) -> Fetched | _Redirect | HopFailure:
        from vouchgate.ingest.net.transport import odd_header, read_body

        response = await transport.handle_async_request(request)
        if odd := odd_header(response):
            return HopFailure("odd_answer", odd)
        if response.status_code in _WAIT_STATUSES:
            wait = requested_wait(response.headers.get("retry-after", ""), datetime.now(UTC))
            if wait is not None:
                await self._hosts.hold(self._limited_as(place), wait)
        location = _location(response)
        if ask.follow and location and response.status_code in _REDIRECTING:
            return _Redirect(response.status_code, location)
        body: tuple[bytes, bool] | HopFailure = (b"", ask.method == "HEAD")
        if ask.method != "HEAD" and ask.max_bytes:
            transport.expect(2 * ask.max_bytes + _FRAMING_BYTES)
            body = await read_body(response, ask.max_bytes)
        if isinstance(body, HopFailure):
            return body
        return Fetched(place.url, response.status_code, _header(response), *body, hops)


@dataclass(frozen=True, slots=True)
class _Redirect:
    status: int
    location: str


def _after_redirect(ask: _Ask, status: int, same_origin: bool) -> _Ask:
    """What is asked where a redirect leads. What left the first origin once gets no secrets any more."""
    secrets = ask.secrets if same_origin else {}
    if status in _KEEPS_METHOD or ask.method in ("GET", "HEAD"):
        return replace(ask, secrets=secrets)
    headers = {name: value for name, value in ask.headers.items() if name.lower() != "content-type"}
    return replace(ask, method="GET", body=None, headers=headers, secrets=secrets)


def _limited(place: Target, pause: float) -> HopFailure:
    until = datetime.now(UTC) + timedelta(seconds=pause)
    return HopFailure(
        "rate_limited", f"{place.host} wants no requests before {until:%Y-%m-%d %H:%M:%S} UTC", until
    )


def _broken(place: Target, error: Exception) -> HopFailure:
    """What became of a request that got no answer."""
    import httpcore

    from vouchgate.ingest.net.transport import CONNECT_SECONDS, WrongPeer

    there = place.authority
    cause = error if isinstance(error, ssl.SSLError) else error.__cause__
    if isinstance(error, WrongPeer):
        return HopFailure("refused", str(error))
    if isinstance(error, httpcore.LocalProtocolError):
        return _UNSENDABLE
    if isinstance(error, httpcore.RemoteProtocolError):
        words = str(error).partition(":")[0][:100]  # after a colon h11 repeats what the server sent
        trouble = HopFailure("odd_answer", f"{there} does not speak HTTP as it should ({words})")
    elif isinstance(cause, ssl.SSLError):
        words = getattr(cause, "verify_message", "") or cause.reason or "no agreement"
        trouble = HopFailure("tls", f"no secure connection to {there} ({words})")
    elif isinstance(error, (httpcore.TimeoutException, TimeoutError)):
        trouble = HopFailure("timeout", f"no connection to {there} within {CONNECT_SECONDS:g} s")
    elif isinstance(error, httpcore.ConnectError):
        trouble = HopFailure("connection", f"no connection to {there}")
    else:
        trouble = HopFailure("connection", f"{there} broke the connection off")
    return trouble


def _location(response: httpx.Response) -> str:
    """As text: UTF-8 where it is that, as browsers read it."""
    for name, value in response.headers.raw:
        if name.lower() == b"location":
            try:
                return value.decode("utf-8")
            except UnicodeDecodeError:
                return value.decode("latin-1")
    return ""


def _header(response: httpx.Response) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in response.headers.raw:
        values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return {name: ", ".join(lines) for name, lines in values.items()}


def public_authorities() -> ssl.SSLContext:
    """Certificates are checked against the system's store and the one that certifi brings. Unlike ssl's own
    default it does not read SSLKEYLOGFILE."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_default_certs()
    context.load_verify_locations(cafile=certifi.where())
    return context
