"""Addresses that claims and sources name: where they really lead, and whether a page should open them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlsplit, urlunsplit

import idna

from vouchgate.ingest.scoring.sites import host_of
from vouchgate.review.pages.wording.text import Pieces, pieces, plain_line

_PATH = "/:@!$&'()*+,;=~-._%"
_QUERY = _PATH + "?"
_NAME = 253  # characters of a host name, at most

_NOT_OPENED = "It is not opened from here: its host cannot be told for certain, or it is no web address."
_LETTERS = (
    "The host's name has letters beyond a to z, which can look like others; this is how it is really asked."
)


@dataclass(frozen=True, slots=True)
class LinkView:
    """An address as written (`shown`), the host that is asked when it is opened (punycode; "" when nobody can tell),
    that host in its own letters when it has some beyond a to z (`named`), a sentence to go with it, and what to put
    into a link: ASCII, http or https; None when it must not be opened."""

    shown: Pieces
    host: str
    named: str
    note: str
    href: str | None


def link_of(url: str) -> LinkView:
    """What a page shows of an address. Never raises."""
    host = host_of(url)
    if not host:
        return LinkView(pieces(url), "", "", _NOT_OPENED, None)
    named = _named(host)
    return LinkView(pieces(url), host, named, _LETTERS if named else "", _href(url, host))


def leads_elsewhere(cited: str, final: str) -> bool:
    """Whether what was read is at another address than the one cited. Going from http to https is the same one, and a
    fragment names a place on it."""
    return _address(cited) != _address(final)


def _address(url: str) -> tuple[str, ...]:
    host = host_of(url)
    if not host:
        return (url,)
    parts = urlsplit(url)
    standard = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, standard) else str(parts.port)
    return host, port, parts.path or "/", parts.query


def _named(host: str) -> str:
    if not any(label.startswith("xn--") for label in host.split(".")):
        return ""
    try:
        return plain_line(idna.decode(host), _NAME)
    except (idna.IDNAError, UnicodeError):
        return ""


def _href(url: str, host: str) -> str:
    """The address in ASCII, with the host that `host_of` read, so that a browser cannot read another one."""
    parts = urlsplit(url)
    netloc = f"[{host}]" if ":" in host else host
    if parts.port is not None:
        netloc = f"{netloc}:{parts.port}"
    path, query, fragment = (
        quote(part, safe=safe, errors="replace")
        for part, safe in ((parts.path, _PATH), (parts.query, _QUERY), (parts.fragment, _QUERY))
    )
    return urlunsplit((parts.scheme, netloc, path, query, fragment))
