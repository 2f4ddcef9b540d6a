"""Hits made of texts: what a source that was read does to a claim, and what it weighs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Form, Found, Held, Stance, Standing
from vouchgate.ingest.corroboration.history import TENTHS, Hit
from vouchgate.ingest.corroboration.independence import text_groups
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.reputation import SiteGroup, is_below
from vouchgate.ingest.scoring.score import is_official
from vouchgate.ingest.scoring.sites import host_of, site_of
from vouchgate.ingest.support.holding import hold, text_held
from vouchgate.ingest.support.texts import digest_of

MOST_HITS = 64  # of one history; texts are compared two by two
MOST_CITED = 2_000  # sites that a text names: one that is left out would be independent of it
MOST_QUOTED = 600  # characters of a quotation
UNREADABLE = "an address that cannot be read"
BETWEEN = " … "  # the places that a quotation is made of
_ORDER = (Stance.REFUTES, Stance.UNKNOWN, Stance.SILENT, Stance.SPEAKS, Stance.STATES)  # the worst first


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as somebody brought or read it."""

    text: str
    url: str = ""
    title: str = ""
    published: datetime | None = None
    revised: datetime | None = None  # as of `Found`
    read_at: datetime | None = None
    name: str = ""  # what tells it from others of the same text, where it has no address
    site: str = ""  # whose it is, where that does not follow from the address
    form: Form = "page"
    project: str = ""
    official: bool = False
    verified: bool = False
    links: tuple[
        str, ...
    ] = ()  # sites that its page links to, beside those whose addresses stand in the text


def hits_of(
    claim: str, readings: Sequence[Reading], policy: Policy, groups: Sequence[str] | None = None
) -> tuple[Hit, ...]:
    """Holds a claim against each text. At most MOST_HITS are read. Linear in the texts; never raises for what a text
    holds. `groups` spares grouping the same texts for each of several claims."""
    readings = readings[:MOST_HITS]
    groups = groups_of(readings, policy) if groups is None else groups
    return tuple(
        _hit(claim, reading, reading.text[:TEXT_CHARACTERS], group, policy)
        for reading, group in zip(readings, groups, strict=True)
    )


def groups_of(readings: Sequence[Reading], policy: Policy) -> tuple[str, ...]:
    """Which of the first MOST_HITS texts are one text: the same name for those."""
    texts = [reading.text[:TEXT_CHARACTERS] for reading in readings[:MOST_HITS]]
    return text_groups(texts, [digest_of(text) for text in texts], policy.threshold)


def stance_of(held: Sequence[Held]) -> Stance:
    """What a source does to a claim as a whole: what it does to the statement it does worst to, where to refute one is
    to refute all. UNKNOWN when there is none."""
    return min((one.stance for one in held), key=_ORDER.index, default=Stance.UNKNOWN)


def weight_of(source: Found, policy: Policy) -> int:
    """What a source weighs, in tenths; a text without an address weighs as much as its caller vouches for."""
    rules = policy.corroboration
    if is_below(host_of(source.source_id), policy.banned) or source.site in policy.banned:
        return 0
    if not source.source_id or is_official(source, policy):
        return TENTHS
    wire = is_below(host_of(source.source_id), frozenset(rules.wire))
    if wire and not policy.reputation.anybody_writes(source):
        return rules.weights.wire
    group = policy.reputation.group_of(source)
    if group is SiteGroup.UNLISTED and "/" in source.site:
        return rules.weights.visitors
    return rules.weights.of(group)


def _hit(claim: str, reading: Reading, text: str, group: str, policy: Policy) -> Hit:
    found = Found(
        citation=Citation(type=CitationType.URL, value=reading.url, key=reading.url),
        source_id=reading.url,
        standing=Standing.IN_FORCE,
        detail="",
        title=reading.title,
        text=text,
        site=reading.site or site_of(reading.url),
        official=reading.official,
        form=reading.form,
        project=reading.project,
        cut=len(reading.text) > TEXT_CHARACTERS,
        revised=reading.revised,
    )
    if reading.verified and reading.read_at is not None:  # for what others bring they vouch themselves
        found = policy.reputation.settle(found, reading.read_at)
    found = hold(claim, (), found)
    held, digest = found.held or (), found.text_digest
    stance = stance_of(held)
    name = f"{reading.url or reading.name}\n{reading.title}\n{digest}"
    return Hit(
        id=hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest(),
        url=reading.url,
        title=reading.title,
        published=reading.published,
        read_at=reading.read_at,
        digest=digest,
        stance=stance,
        held=held,
        quotation=quotation_of(held, stance, text_held(found, text))[:MOST_QUOTED],
        site=found.site or _place_of(reading.url),
        group=group,
        cites=_cited_sites(text, reading.links, found.site),
        weight=weight_of(found, policy),
        official=is_official(found, policy),
        verified=reading.verified,
    )


def _place_of(url: str) -> str:
    """Where an odd address says that it is. All that cannot be read are one place, as nobody can tell them apart."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return UNREADABLE


def quotation_of(held: Sequence[Held], stance: Stance, text: str) -> str:
    """The places of a source's text that make its stance to a claim, in its own words."""
    places = dict.fromkeys(one.place for one in held if one.stance is stance and one.place is not None)
    whole = (one for one in places if not any(one != other and _within(one, other) for other in places))
    return BETWEEN.join(" ".join(text[start:end].split()) for start, end in whole)


def _within(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return other[0] <= one[0] and one[1] <= other[1]


def _cited_sites(text: str, links: Sequence[str], own: str) -> tuple[str, ...]:
    sites = {
        site_of(citation.value) for citation in detect_citations(text) if citation.type is CitationType.URL
    }
    return tuple(sorted({*sites, *links} - {"", own})[:MOST_CITED])
