"""The names by which what a claim rests on is found again: one for each thing, however it was written. Pure.

    adr:6  commit:a1b2c3d  path:src/auth.py  path:src/auth.py#L42-L42  url:docs.example.org/limits
    site:docs.example.org  site:example.org  site:github.com/alice  repository:acme/shop

A page has the name of the address that was given and of the one where it ended, and those of its host, of the hosts
above and of its publisher (`ingest.scoring.sites`). Lines of a file, and what it defines, are found by the file, too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from vouchgate.ingest.citations.detection import given_citation, kinds_in_use, parse_citation
from vouchgate.ingest.citations.kinds.path import parse_key
from vouchgate.ingest.scoring.sites import host_of, registrable_domain, site_of

MOST = 400  # bytes of a name; indexes of PostgreSQL take some 2,700 a row
_SHOWN = 300  # bytes at its beginning that a longer one keeps, before its digest
_RECORD = re.compile(r"ADR-(\d{1,5})", re.ASCII)
_REPOSITORY = re.compile(r"[\w.-]{1,100}(?:/[\w.-]{1,100})?", re.ASCII)
_OWN = frozenset({"url", "site", "repository"})  # kinds of names that are no citation as they stand
_ISSUE = re.compile(r"issue:([^#/]+/[^#/]+)#\d+", re.ASCII)
_SHORTEST = 7  # digits of a commit


class Cited(NamedTuple):
    """One thing that a decision rests on."""

    key: str  # ingest.claims.citation.Citation.key
    found: str | None = None  # the id under which it was read; None: it was not
    site: str = ""  # ingest.scoring.sites.site_of the address where it was found
    project: str = ""  # the repository it is in, if that has a name
    harvested: bool = False


class Basis(NamedTuple):
    """How a decision rests on what has a name: `others` counts the other things that were read for it."""

    harvested: bool  # only because the gate found it
    others: int


class Wanted(NamedTuple):
    """What a text asks for: any of these names, or a commit of whose id these are the first digits."""

    names: frozenset[str]
    commit: str = ""


def lineage_of(cited: Iterable[Cited]) -> dict[str, Basis]:
    """Every name by which a decision that rests on these is found."""
    named: dict[str, list[Cited]] = {}
    read = set()
    for one in cited:
        if one.found is not None:
            read.add(one.key)
        for name in set(_names(one)):
            named.setdefault(_bounded(name), []).append(one)
    return {
        name: Basis(all(one.harvested for one in ones), len(read.difference(one.key for one in ones)))
        for name, ones in sorted(named.items())
    }


def wanted(text: str) -> Wanted:
    """What somebody means who writes a source: a citation in any spelling, a host, a publisher, a repository, or a name
    as it is here."""
    text = text.strip()
    kind, _, rest = text.partition(":")
    names: set[str] = set()
    if kind in _OWN and "://" not in rest:
        names.add(text if kind == "url" else text.lower())
    try:
        citation = given_citation(kind, rest) if kind in kinds_in_use() else parse_citation(text)
    except ValueError:
        citation = None
    if citation is None:
        address = f"https://{text}"
        names |= set(_as_address(address)) if host_of(address) else set()
        if _REPOSITORY.fullmatch(text):
            names.add(f"repository:{text.lower()}")
    elif citation.key.startswith("commit:"):
        digits = citation.key.removeprefix("commit:")
        shorter = {f"commit:{digits[:size]}" for size in range(_SHORTEST, len(digits))}
        return Wanted(frozenset({citation.key, *shorter}), digits)
    elif citation.key.startswith("url:"):
        names |= set(_as_address(citation.key.removeprefix("url:")))
    else:
        names.add(citation.key)
    return Wanted(frozenset(map(_bounded, names)))


def _as_address(url: str) -> Iterator[str]:
    """A page; and a host or a publisher, where the address is no more than that."""
    host = host_of(url)
    yield _page(url, host)
    path = urlsplit(url).path.strip("/").lower() if host else ""
    if host and not path:
        yield f"site:{host}"
    elif host and f"{host}/{path}" == site_of(url):
        yield f"site:{host}/{path}"


def _names(one: Cited) -> Iterator[str]:
    kind, _, rest = one.key.partition(":")
    found = one.found or ""
    if kind == "url":
        if rest != found:
            yield from _of_address(rest)
    elif kind == "commit":
        full = found.removeprefix("commit:")
        yield f"commit:{full}" if full.startswith(rest) else one.key
    else:
        yield one.key
    file, defines, _ = found.partition("::") if kind == "symbol" else ("", "", "")
    if (place := parse_key(f"path:{file}" if defines else one.key)) is not None:
        yield f"path:{place.path}"
        if place.commit is not None:
            yield f"commit:{place.commit}"
    if (record := _RECORD.fullmatch(found)) is not None:
        yield f"adr:{int(record[1])}"
    elif found.startswith("issue:"):
        yield found.lower()
    elif "://" in found:
        yield from _of_address(found, one.site)
    for key in (one.key, found.lower()):
        if (issue := _ISSUE.fullmatch(key)) is not None:
            yield f"repository:{issue[1]}"
    if one.project:
        yield f"repository:{one.project.lower()}"


def _of_address(url: str, site: str = "") -> Iterator[str]:
    """The names of a page, of its host and the hosts above, and of whose page it is (`site`, if that is known)."""
    host = host_of(url)
    yield _page(url, host)
    site = site or site_of(url)
    if host and site:
        yield f"site:{site}"
    domain = registrable_domain(host) if host else ""
    while host:
        yield f"site:{host}"
        host = host.partition(".")[2] if host != domain and host.endswith(f".{domain}") else ""


def _page(url: str, host: str) -> str:
    """One name for the spellings of an address: without scheme, default port, `www.`, fragment and the last slash."""
    if not host:
        return f"url:{url}"
    parts = urlsplit(url)
    port = "" if parts.port in (None, 80, 443) else f":{parts.port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"url:{host.removeprefix('www.')}{port}{parts.path.rstrip('/')}{query}"


def _bounded(name: str) -> str:
    """The name as a database can hold it: of a long one its beginning and its digest."""
    encoded = name.replace("\x00", "?").encode("utf-8", "replace")
    if len(encoded) <= MOST:
        return encoded.decode()
    return f"{encoded[:_SHOWN].decode('utf-8', 'ignore')}…{hashlib.sha256(encoded).hexdigest()}"
