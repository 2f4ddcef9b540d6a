"""What a site is worth as a source, before anybody reads its page: the table of `ingest/data/reputation.toml`.

The table is a field of the policy. A policy file changes it site by site; see `extend_reputation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field, model_validator

from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.data import read_data
from vouchgate.ingest.scoring.sites import host_of, is_public_suffix, parts_of_path, site_of

MAX_PUBLISHER_CHARACTERS = 512  # a host has 253, an account on it some fewer
_PATH_PARTS = 3  # of a path that may say that visitors write there; the first is often a language
# On a platform the first two name the account and the repository, which may be called anything.
_ACCOUNT_PARTS = slice(2, 6)
_FILES = frozenset({"blame", "blob", "raw", "src", "tree"})  # behind which a ref and a file are named
_REFS = _FILES | {"archive", "commit", "commits", "tar.gz", "zip"}
_LONGEST_QUERY = 2_000  # characters that are looked at
_WIKIS = frozenset({"wiki", "wikis", "cwiki"})
# GitHub shows a commit of any fork as one of the repository it was forked from.
_COMMIT = re.compile(r"[0-9a-f]{7,64}(?:\.\w+)*")
_OF_FORKS = frozenset({"actions", "activity", "checks", "forks", "network", "runs", "suites"})
_GITHUB = "github.com/"


class SiteGroup(StrEnum):
    """What kind of house a site is. The scores are in the table; the words are those of design section 3."""

    PEER_REVIEWED = "peer_reviewed"
    PRIMARY = "primary"  # institutions, and makers about what they make
    SECONDARY = "secondary"
    UNLISTED = "unlisted"
    SHORTENER = "shortener"
    BANNED = "banned"


class Visitors(Frozen):
    """Words in a host or a path that say that visitors write there, and not the site's owner. `beginnings` of a part of
    the path, and names of `parameters`, say so of sites that are listed for how they moderate, too."""

    hosts: tuple[str, ...]
    paths: tuple[str, ...]
    beginnings: tuple[str, ...] = Field(default=(), exclude_if=lambda words: not words)
    parameters: tuple[str, ...] = Field(default=(), exclude_if=lambda words: not words)
    # Sites where anybody changes any page at once, and for how many days one has to stand before a claim to count.
    edited: tuple[str, ...] = Field(default=(), exclude_if=lambda sites: not sites)
    settled_days: int = Field(default=7, ge=0, le=365, exclude_if=lambda days: days == 7)


class Reputation(Frozen):
    """The table. Every group has a score; a site is in one group at most, and UNLISTED when in none. That
    entries are sites (`check_entry`) was seen to when the table was made, so that a stored one can be read again
    whatever the Public Suffix List says by then."""

    scores: dict[SiteGroup, Annotated[float, Field(ge=0, le=1)]]
    visitors: Visitors
    sites: dict[SiteGroup, tuple[str, ...]]

    @model_validator(mode="after")
    def _one_group_each(self) -> Self:
        unscored = [group.value for group in SiteGroup if group not in self.scores]
        if unscored:
            raise ValueError(f"no score for {', '.join(unscored)}")
        if self.scores[SiteGroup.BANNED] != 0:
            raise ValueError("the score of banned sites is 0")
        seen: set[str] = set()
        for site in (site for sites in self.sites.values() for site in sites):
            if site in seen:
                raise ValueError(f"{site} is listed twice")
            seen.add(site)
        return self

    @cached_property
    def groups(self) -> dict[str, SiteGroup]:
        """The group of every site listed."""
        return {site: group for group, sites in self.sites.items() for site in sites}

    def group_of(self, source: Found) -> SiteGroup:
        """The group of the site that a source is on."""
        host = host_of(source.source_id)
        listed = next((name for name in _names(source.site, host) if name in self.groups), None)
        if listed is None:
            return SiteGroup.UNLISTED
        group = self.groups[listed]
        if source.fresh:
            return SiteGroup.UNLISTED
        moderated = group not in (SiteGroup.PEER_REVIEWED, SiteGroup.PRIMARY)
        by_visitors = self.anybody_writes(source) if moderated else self.visitors_write(source, listed)
        return SiteGroup.UNLISTED if by_visitors else group

    def settle(self, source: Found, at: datetime) -> Found:
        """The source, `fresh` where its page may have been changed for a claim of that time."""
        names = _names(source.site, host_of(source.source_id))
        if not any(name in self.visitors.edited for name in names):
            return source
        latest = at - timedelta(days=self.visitors.settled_days)
        fresh = source.revised is None or source.revised > latest
        return source if fresh == source.fresh else source.model_copy(update={"fresh": fresh})

    def of(self, source: Found) -> float:
        """The reputation term of its score, 0 to 1."""
        return self.scores[self.group_of(source)]

    def is_own_word(self, source: Found, publisher: str) -> bool:
        """Whether it is a page of this publisher, and not one that visitors write."""
        host = host_of(source.source_id)
        return bool(host) and source.site == publisher and not self.visitors_write(source, publisher)

    def visitors_write(self, source: Found, listed: str, *, wikis: bool = True) -> bool:
        """Whether visitors, and not whom `listed` names, write a page on its site. `wikis` of a host of one's own
        are not, where those who may write there were chosen; one of a platform may be open to all its users."""
        if self.anybody_writes(source):
            return True
        host = host_of(source.source_id)
        if not host:
            return False
        besides = _WIKIS if not wikis and "/" not in listed else frozenset[str]()
        hosts, paths = (set(self.visitors.hosts) - besides, set(self.visitors.paths) - besides)
        labels = () if "/" in listed else host.removesuffix(listed).split(".")
        return not hosts.isdisjoint(labels) or not paths.isdisjoint(_parts(source))

    def anybody_writes(self, source: Found) -> bool:
        """Whether anybody may write it, and nobody looks at it before it is there."""
        if source.citation.type is CitationType.ISSUE or source.source_id.startswith("issue:"):
            return True
        if not host_of(source.source_id):
            return False
        address = urlsplit(source.source_id)
        parts = [unquote(part) for part in parts_of_path(address.path)]
        asked = {name.lower(): value.lower() for name, value in parse_qsl(address.query[:_LONGEST_QUERY])}
        beginnings = tuple(
            begin.rpartition("/")[2]
            for begin in self.visitors.beginnings
            if "/" not in begin or begin.startswith(f"{source.site}/")
        )
        return (
            any(said.startswith(beginnings) for said in (*parts, *asked.values()))
            or not asked.keys().isdisjoint(self.visitors.parameters)
            or (source.site.startswith(_GITHUB) and _may_be_a_forks(parts, asked))
        )


def _may_be_a_forks(parts: Sequence[str], asked: Mapping[str, str]) -> bool:
    """Whether a page of a repository at GitHub shows a commit by its id, a pull request, what ran for one, or forks:
    anybody may have made it."""
    behind = {part for at, part in enumerate(parts) if parts[max(at - 1, 0)] in _REFS} | set(parts[2:4])
    behind |= {part.rpartition("@")[2] for part in parts if "@" in part} | {asked.get("ref", "")}
    pulled = any("pull" in parts[at + 1 : at + 3] for at, part in enumerate(parts) if part in _FILES)
    return pulled or not _OF_FORKS.isdisjoint(parts[2:3]) or any(map(_COMMIT.fullmatch, behind))


def _parts(source: Found) -> Sequence[str]:
    """The parts of its path that may say that visitors write there."""
    parts = parts_of_path(urlsplit(source.source_id).path)
    if "/" not in source.site:
        return parts[:_PATH_PARTS]
    ends = (at for at, part in enumerate(parts) if part in _FILES)
    return parts[: next(ends, len(parts))][_ACCOUNT_PARTS]


def _names(site: str, host: str) -> Iterator[str]:
    """What may be listed for a page, the nearest first: its host and the hosts above up to the site, the site,
    then the suffixes the site is registered below. An account is only ever listed by itself."""
    if "/" not in site:
        name = host
        while name.endswith("." + site):
            yield name
            name = name.partition(".")[2]
    yield site
    if "/" not in site:
        above = site.partition(".")[2]
        while above:
            yield "." + above
            above = above.partition(".")[2]


def is_below(name: str, listed: frozenset[str]) -> bool:
    """Whether a host is one of the domains listed, or below one."""
    while name:
        if name in listed:
            return True
        name = name.partition(".")[2]
    return False


def is_banned(source: Found, banned: frozenset[str]) -> bool:
    """Whether the page it is, at the end of all redirects, is on a banned site (`Policy.banned`) or below one."""
    hosts = (source.site.partition("/")[0], host_of(source.source_id))
    return source.site in banned or any(is_below(host, banned) for host in hosts)


def publishers_of(reading: SourceReading) -> frozenset[str]:
    """The names by which the publisher of what is cited can be trusted or banned, of the page that was read and of the
    address as cited. Empty for what lives in a repository."""
    urls = {reading.citation.value} if reading.citation.type is CitationType.URL else set()
    names = {""}
    if isinstance(reading, Found):
        urls.add(reading.source_id)
        names |= {reading.site, reading.site.partition("/")[0]}
    return frozenset(names.union(*map(publishers_at, urls)) - {""})


def publishers_at(url: str) -> set[str]:
    """The same of an address: whose page it is, and every host above it. Empty for what is no address."""
    site, host = site_of(url), host_of(url)
    names = {site, site.partition("/")[0]} - {""}
    while host:
        names.add(host)
        host = host.partition(".")[2]
    return names


def parse_publisher(text: str) -> str:
    """A publisher as `site_of` names one: a domain that somebody registered, or an account of a platform. Raises
    ValueError for anything else, also a host below such a domain."""
    name = text.strip().lower()
    if not name or len(name) > MAX_PUBLISHER_CHARACTERS or site_of(f"https://{name}") != name:
        raise ValueError(
            "a publisher is a domain such as example.com, or an account such as github.com/alice"
        )
    return name


def load_reputation() -> dict[str, Any]:
    """The built-in table as a document for `Reputation`. That each entry is a site is held by a test, for it
    costs every command a fifth of a second."""
    raw = read_data("reputation.toml")
    sites: dict[str, list[str]] = {}
    for topic in raw["domains"].values():
        sites.setdefault(topic["group"], []).extend(topic["sites"])
    return {
        "scores": raw["scores"],
        "visitors": raw["visitors"],
        "sites": {group: sorted(listed) for group, listed in sites.items()},
    }


def extend_reputation(table: Mapping[str, Any], changes: Any) -> dict[str, Any]:
    """The table with a policy file's `[reputation]` laid over it: `scores` and `visitors` key by key, and in
    `domains` a site and its group, as in `"example.com" = "primary"`.

    Raises ValueError for a key, a group or an entry that cannot be. The groups' names and the values are
    checked by `Reputation`.
    """
    if not isinstance(changes, dict) or not changes.keys() <= {"scores", "visitors", "domains"}:
        raise ValueError("reputation has the tables scores, visitors and domains")
    if not all(isinstance(part, dict) for part in changes.values()):
        raise ValueError("scores, visitors and domains are tables")
    moved: dict[str, Any] = changes.get("domains", {})
    sites = {
        group: [site for site in listed if site not in moved] for group, listed in table["sites"].items()
    }
    for site, group in moved.items():
        check_entry(site)
        if group not in tuple(SiteGroup):
            raise ValueError(f"{site}: no group {group!r}; there are {', '.join(SiteGroup)}")
        sites.setdefault(group, []).append(site)
    return {
        "scores": {**table["scores"], **changes.get("scores", {})},
        "visitors": {**table["visitors"], **changes.get("visitors", {})},
        "sites": {group: sorted(listed) for group, listed in sites.items()},
    }


def check_entry(entry: str) -> None:
    """Raises ValueError unless `entry` is a domain somebody registered, a host below one or an account on a
    platform, spelled as `site_of` spells it, or a dot and a public suffix."""
    if entry.startswith("."):
        if not is_public_suffix(entry[1:]):
            raise ValueError(f"{entry!r} is not a dot and a public suffix")
        return
    url = f"https://{entry}"
    fits = site_of(url) == entry if "/" in entry else site_of(url) != "" and host_of(url) == entry
    if not fits:
        raise ValueError(
            f"{entry!r} is no registrable domain, no host below one and no account of a platform"
        )
