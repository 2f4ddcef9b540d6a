"""Whose page a URL is: the registrable domain, or the account on a hosting platform.

Pure: the Public Suffix List comes with the library `publicsuffixlist` (its private section counts, so that
alice.github.io is a site), the platforms are `ingest/data/platforms.toml`, and nothing here looks at the network.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import idna
from publicsuffixlist import PublicSuffixList

from vouchgate.ingest.data import read_data

MAX_URL_CHARACTERS = 8192  # as long as the longest claim; nothing that is longer was cited by one
MAX_PART_CHARACTERS = (
    250  # of a path; names of npm packages, the longest that are accounts here, have up to 214
)

_ODD = re.compile(r"[\x00-\x20\x7f\\]")  # what parsers disagree about
_HOST = re.compile(r"(?=.{1,253}\Z)(?:(?!-)[a-z0-9_-]{1,63}(?<!-)\.)*(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line of platforms.toml: `path` may hold one `*`, and `site` the same account."""

    path: tuple[str, ...]
    site: str


@dataclass(frozen=True, slots=True)
class _Platforms:
    """The rules of a host, the longest path first; `subdomains` are those of `*.host`, without a path, `pages` those
    that an account has elsewhere, and `houses` has for each of several sites of one house the first."""

    paths: dict[str, tuple[_Rule, ...]]
    subdomains: dict[str, str]
    pages: dict[str, str]
    houses: dict[str, str]


def site_of(url: str) -> str:
    """Whose page it is: `example.com`, `github.com/alice`, `alice.github.io`, an IP address; "" when the URL
    is odd (`host_of`) or its host is nobody's (`localhost`, `co.uk`)."""
    host = host_of(url)
    if not host or _is_address(host):
        return host
    segments = parts_of_path(urlsplit(url).path)
    site = _on_platform(host, segments) or registrable_domain(host)
    personal = segments and segments[0][0] in "~@" and len(segments[0]) > 1
    if site and "/" not in site and personal:
        return f"{site}/{segments[0]}"  # cs.example.edu/~alice, social.example/@alice
    return site


def author_of(site: str) -> str:
    """Who is behind a site that has another domain, too, or the site itself: both alice.github.io and github.com/alice
    are written by github.com/alice, and who writes in one wiki of Wikimedia may write in all."""
    label, _, domain = site.partition(".")
    account = _platforms().pages.get(domain)
    return _platforms().houses.get(site, site) if account is None else account.replace("*", label)


def host_of(url: str) -> str:
    """The host of an http or https URL in lower case, IDN as punycode, an IP address in its usual form.

    "" for whatever is not one for certain: another scheme, a user before the host, control characters, spaces,
    back slashes, percent signs in the host, numbers that some programs read as an address.
    """
    host = _host_as_written(url)
    if ":" in host:
        return _address(host, ipaddress.IPv6Address)
    host = _ascii(host).removesuffix(".")
    if not _HOST.fullmatch(host):
        return ""
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        return _address(host, ipaddress.IPv4Address)
    return host


@lru_cache(maxsize=4096)
def registrable_domain(host: str) -> str:
    """The domain that somebody registered, out of a host as `host_of` gives it; "" for a public suffix."""
    return _suffixes().privatesuffix(host) or ""


def is_public_suffix(domain: str) -> bool:
    """Whether `domain` is in the Public Suffix List: strangers register names below it."""
    return _suffixes().publicsuffix(domain, accept_unknown=False) == domain


def _host_as_written(url: str) -> str:
    """In lower case; an IPv6 address without its brackets. "" for an odd URL."""
    if len(url) > MAX_URL_CHARACTERS or _ODD.search(url):
        return ""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises when it is no number up to 65535
        host = parts.hostname or ""
    except ValueError:
        return ""
    safe = parts.scheme in ("http", "https") and "@" not in parts.netloc and "%" not in host
    return host if safe and (":" in host) == ("[" in parts.netloc) else ""


def _address(text: str, kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address]) -> str:
    try:
        return str(kind(text))
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    return ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def _ascii(host: str) -> str:
    if host.isascii():
        return host
    try:
        return idna.encode(host, uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        return ""


def parts_of_path(path: str) -> list[str]:
    """The parts of a path as a server sees them: empty ones and dots taken out, one spelling for each."""
    parts: list[str] = []
    for raw in path.split("/"):
        part = unquote(raw).lower()
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(quote(part, safe="~@:!$&'()+,;=")[:MAX_PART_CHARACTERS])
    return parts


def _on_platform(host: str, segments: list[str]) -> str | None:
    """The site of a page on a hosting platform, which is its host where no account shows; None for other hosts."""
    platforms = _platforms()
    for name in (host, host.removeprefix("www.")):
        rules = platforms.paths.get(name)
        if rules is not None:
            return next((site for rule in rules if (site := _site(rule, segments))), name)
    labels = host.split(".")
    for at in range(1, len(labels)):
        template = platforms.subdomains.get(".".join(labels[at:]))
        if template is not None and labels[at - 1] != "www":
            return template.replace("*", labels[at - 1])
    return None


def _site(rule: _Rule, segments: list[str]) -> str | None:
    if len(segments) < len(rule.path):
        return None
    account = ""
    for wanted, part in zip(rule.path, segments, strict=False):
        if wanted == "*":
            account = part
        elif wanted != part:
            return None
    return rule.site.replace("*", account)


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


@cache
def _platforms() -> _Platforms:
    document = read_data("platforms.toml")
    pages = {pattern.removeprefix("*."): site for pattern, site in document["pages"].items()}
    houses = {site: first for first, sites in document["houses"].items() for site in sites}
    paths: dict[str, list[_Rule]] = {}
    subdomains: dict[str, str] = {}
    for pattern, site in _patterns(document):
        host, *path = pattern.split("/")
        if host.startswith("*."):
            subdomains[host.removeprefix("*.")] = site
        else:
            paths.setdefault(host, []).append(_Rule(tuple(path), site))
    return _Platforms(
        {
            host: tuple(sorted(rules, key=lambda rule: (-len(rule.path), "*" in rule.path)))
            for host, rules in paths.items()
        },
        subdomains,
        pages,
        houses,
    )


def _patterns(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for group in (group for name, group in document.items() if name not in ("houses", "pages")):
        yield from ((pattern, pattern) for pattern in group["sites"])
        yield from group.get("same_as", {}).items()
