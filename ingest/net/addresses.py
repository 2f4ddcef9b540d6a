"""What a URL names, read once and strictly, and which addresses may be contacted. Pure: no look-up is made here.

A URL that two programs could read differently is refused, not repaired: what was checked must be what is asked.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote, urljoin

import idna

from vouchgate.ingest.data import read_data
from vouchgate.ingest.net.fetched import HopFailure

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = frozenset({80, 443, 8080, 8443})
WEB_PORTS = frozenset({80, 443})  # of a network that is opened to citations without naming a port
URL_CHARACTERS = 8_192  # of a URL as given, and of its path and query as sent; servers take about as many

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_AUTHORITY = re.compile(r"(?:\[(?P<six>[^\[\]]*)\]|(?P<name>[^:\[\]]*))(?::(?P<port>.*))?", re.DOTALL)
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_IPV4 = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")
_IPV6 = re.compile(r"[0-9A-Fa-f:.]{2,45}")
_OPENING = re.compile(
    r"(?:\[(.+)\]|([^:\[\]]+))(?::([^:/]*))?|([^\[\]]+/[0-9]+)"
)  # the last: IPv6, which has colons
_NUMERIC = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")  # a last label like this makes the host a number (WHATWG)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_UNSAFE = re.compile(r"[\s\\\x00-\x20\x7f-\x9f\ud800-\udfff]")  # \s has the white space of all scripts
_NAME_CHARACTERS = 253  # RFC 1035, without the final dot
_DEVIATIONS = frozenset("ßẞς\u200c\u200d")  # IDNA of 2003 and of 2008 make different names of them (UTS 46)
_KEPT = "%/?:@!$&'()*+,;=[]-._~"  # characters of path and query that are sent as they are

_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")  # all that IANA has given out
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})  # RFC 5214: the upper half of the interface identifier


@dataclass(frozen=True, slots=True)
class Target:
    """An http(s) URL whose host no parser can misread, without its fragment."""

    scheme: str  # http or https
    host: str  # ASCII, lower case, no trailing dot; an address in its canonical form, without brackets
    port: int
    target: str  # path and query as they are sent; never empty
    address: Address | None  # when the host is an address

    @property
    def authority(self) -> str:
        """Host and port as in a Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Whom secrets may be sent to."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """The URL that is asked for."""
        return self.origin + self.target


class _Unclear(ValueError):
    """Why a URL is not plainly readable."""


def parse_url(url: str) -> Target | HopFailure:
    """The place a URL names, or the refusal of one that is not plainly an http(s) URL."""
    try:
        return _parse_target(url)
    except _Unclear as problem:
        return HopFailure("refused", str(problem))


def follow(place: Target, location: str) -> Target | HopFailure:
    """Where a redirect from `place` leads. The host of a relative one stays the host that was parsed."""
    try:
        there = _resolve_redirect(place, location)
        if place.scheme == "https" and there.scheme == "http":
            raise _Unclear("it leads from https to http")
    except _Unclear as problem:
        return HopFailure("refused", f"the redirect cannot be followed: {problem}")
    return there


def _parse_target(url: str) -> Target:
    if len(url) > URL_CHARACTERS:
        raise _Unclear(f"the URL is longer than {URL_CHARACTERS:,} characters")
    if _UNSAFE.search(url):
        raise _Unclear("the URL has a back slash, white space or a control character")
    named = _SCHEME.match(url)
    scheme = named[0].lower() if named else ""
    if scheme not in _DEFAULT_PORTS:
        raise _Unclear("only http and https URLs are fetched")
    after = url[len(scheme) + 1 :]
    if not after.startswith("//"):
        raise _Unclear("the URL has no // before its host")
    if "@" in after[2:].partition("/")[0]:
        raise _Unclear("the URL has an @ before its path, where a user name can hide the host")
    rest = after[2:].partition("#")[0]
    authority = re.split(r"[/?]", rest, maxsplit=1)[0]
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise _Unclear("the URL has no host that can be read in one way only")
    host, address = _bracketed(parts["six"]) if parts["six"] is not None else _host(parts["name"])
    target = quote(rest[len(authority) :], safe=_KEPT)
    target = target if target.startswith("/") else "/" + target
    if len(target) > URL_CHARACTERS:
        raise _Unclear(f"the path and query are longer than {URL_CHARACTERS:,} characters")
    return Target(scheme, host, _port(parts["port"], _DEFAULT_PORTS[scheme]), target, address)


def _resolve_redirect(place: Target, location: str) -> Target:
    if _UNSAFE.search(location):
        raise _Unclear("its URL has a back slash, white space or a control character")
    if _SCHEME.match(location):
        return _parse_target(location)
    if location.startswith("//"):
        return _parse_target(f"{place.scheme}:{location}")
    try:
        there = _parse_target(urljoin(place.url, location))
    except ValueError as error:
        raise _Unclear(str(error)) from error
    if there.origin != place.origin:
        raise _Unclear("its URL can be read in two ways")
    return there


def _port(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not _PORT.fullmatch(text) or int(text) > 65_535:
        raise _Unclear("the port is not a plain number from 1 to 65535")
    return int(text)


def _bracketed(text: str) -> tuple[str, Address]:
    if not _IPV6.fullmatch(text):
        raise _Unclear("the host in brackets is not an IPv6 address without a zone")
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError as error:
        raise _Unclear("the host in brackets is not an IPv6 address") from error
    return str(address), address


def _host(text: str) -> tuple[str, Address | None]:
    if not text:
        raise _Unclear("the URL has no host")
    if len(text) > _NAME_CHARACTERS + 1:
        raise _Unclear("the host is longer than a name can be")
    full = text.lower() if text.isascii() else _ascii_form(text)
    name = full.removesuffix(".")
    labels = name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        if not _IPV4.fullmatch(full) or max(map(int, labels)) > 255:
            raise _Unclear("the host is a number that is not four plain decimal parts")
        return full, ipaddress.IPv4Address(full)
    if len(name) > _NAME_CHARACTERS or not all(map(_LABEL.fullmatch, labels)):
        raise _Unclear("the host is not a name that the DNS can hold")
    if not all(map(_stands_for_itself, labels)):
        raise _Unclear("the host has an xn-- part that stands for no name")
    return name, None


def _ascii_form(text: str) -> str:
    """The ASCII form of an international name. Nothing but the case of a letter may change on the way: a
    character that stands for another (full-width, enclosed, ignored) is one that programs disagree on."""
    for character in text:
        forms = unicodedata.normalize("NFKC", character) + character.lower()
        if not character.isascii() and (character in _DEVIATIONS or any(map(str.isascii, forms))):
            raise _Unclear("the host has characters that some programs read as others")
    lower = unicodedata.normalize("NFC", text.lower())
    try:
        return idna.encode(lower, strict=True, std3_rules=True).decode("ascii")
    except UnicodeError as error:  # IDNAError is one
        raise _Unclear("the host is not an international name that is allowed") from error


def _stands_for_itself(label: str) -> bool:
    if not label.startswith("xn--"):
        return True
    try:
        return not idna.ulabel(label).isascii()
    except UnicodeError:
        return False


def embedded_address(address: Address) -> tuple[ipaddress.IPv4Address, ...]:
    """The IPv4 addresses that an IPv6 address carries: mapped, compatible, 6to4, Teredo (server and client),
    NAT64, ISATAP."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    found: list[ipaddress.IPv4Address] = []
    low = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    carriers = (_COMPATIBLE, _NAT64, _NAT64_LOCAL)
    if address.ipv4_mapped is not None or (int(address) > 1 and any(address in one for one in carriers)):
        found.append(low)  # :: and ::1 are addresses of their own
    if int(address) >> 32 & 0xFFFF_FFFF in _ISATAP:
        found.append(low)
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found.extend(address.teredo)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Opening:
    """A network that may be contacted although it is not public, by any name. `ports` None: on any port."""

    network: Network
    ports: frozenset[int] | None = None


def parse_opening(text: str) -> Opening:
    """`10.1.0.0/16`, `127.0.0.1:8443` or `[::1]:8000`: a network with a port, or with those of the web when none is
    named. Raises ValueError."""
    match = _OPENING.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a network with or without a port, like 10.1.0.0/16 or [::1]:8000")
    network = ipaddress.ip_network(match[1] or match[2] or match[4])
    return Opening(network, WEB_PORTS if match[3] is None else frozenset({_port(match[3], 0)}))


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Which names, ports and addresses may be contacted. What is in `allowed` may be although it is not public."""

    special: tuple[tuple[Network, str], ...]  # with what an address in it is
    internal: frozenset[str]
    allowed: tuple[Opening, ...]
    ports: frozenset[int]

    def is_allowed(self, address: Address, port: int) -> bool:
        """Whether it was opened by name."""
        return any(
            address in one.network and (one.ports is None or port in one.ports) for one in self.allowed
        )

    def kind(self, address: Address) -> str:
        """What an address is that is not public, such as "a loopback address"; "" for a public one."""
        for inner in embedded_address(address):
            if kind := self.kind(inner):
                return f"an address that carries {inner}, {kind}"
        for network, kind in self.special:
            if address in network:
                return kind
        if isinstance(address, ipaddress.IPv6Address):
            if address.scope_id is not None:
                return "an address of one link only"
            if address not in _GLOBAL_IPV6 and address not in _NAT64:
                return "a reserved address"
        return ""

    def doubt(self, place: Target) -> str:
        """Why this place may be contacted only inside the allowed networks; "" when it may be anywhere."""
        if place.port not in self.ports:
            return f"port {place.port} is not one of {', '.join(map(str, sorted(self.ports)))}"
        if place.address is None and self._is_internal(place.host):
            return f"{place.host} is a name for inside a network"
        return ""

    def objection(self, place: Target, addresses: Sequence[Address]) -> str:
        """Why none of the addresses that `place` resolved to may be contacted; "" when all of them may."""
        for address in addresses:
            if self.is_allowed(address, place.port):
                continue
            if doubt := self.doubt(place):
                return doubt
            if kind := self.kind(address):
                named = place.address is None
                return f"{place.host} resolves to {address}, {kind}" if named else f"{address} is {kind}"
        return ""

    def _is_internal(self, host: str) -> bool:
        labels = host.split(".")
        return len(labels) == 1 or any(".".join(labels[at:]) in self.internal for at in range(len(labels)))


def load_rules(allowed: Sequence[Opening] = (), extra_ports: frozenset[int] = frozenset()) -> AddressRules:
    """The rules of `ingest/data/outbound.toml`, with what the settings and the policy open."""
    special, internal = _never_public()
    return AddressRules(special, internal, tuple(allowed), PORTS | extra_ports)


@cache
def _never_public() -> tuple[tuple[tuple[Network, str], ...], frozenset[str]]:
    """Networks with what they are, and names."""
    raw = read_data("outbound.toml")
    special = tuple(
        (ipaddress.ip_network(network), kind)
        for kind, networks in raw["networks"].items()
        for network in networks
    )
    return special, frozenset(raw["names"]["internal"])
