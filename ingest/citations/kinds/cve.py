"""CVE ids: `CVE-2020-11008`, a year of four digits and a number of at least four (numbering since 2014).

Read is the record: what a vulnerability is, what it affects, and whether the record still stands.
An id may be reserved and have no record yet; that is asked for apart. A rejected record is kept, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Literal

from pydantic import AwareDatetime, Field, NaiveDatetime

from vouchgate.ingest.citations.kinds import CitationKind, each_match, full_match
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Missing, SourceReading, Standing
from vouchgate.ingest.sources.answers import (
    NoAnswer,
    Shape,
    build_found,
    parse_answer,
    require_success,
)
from vouchgate.ingest.sources.registry import Registry

_WHO = "The CVE Program"
_KEY = re.compile(r"cve:(?P<id>CVE-(?:19|20)[0-9]{2}-[0-9]{4,9})")
_SHOWN = 200  # versions of all products that are written out


class _Description(Shape):
    lang: str
    value: str


class _Version(Shape):
    version: str = ""
    status: str = ""
    less_than: str | None = Field(default=None, alias="lessThan")
    less_than_or_equal: str | None = Field(default=None, alias="lessThanOrEqual")


class _Affected(Shape):
    vendor: str = ""
    product: str = ""
    versions: tuple[_Version, ...] = ()
    default_status: str = Field(default="", alias="defaultStatus")


class _Reference(Shape):
    url: str


class _Container(Shape):
    title: str = ""
    descriptions: tuple[_Description, ...] = ()
    rejected_reasons: tuple[_Description, ...] = Field(default=(), alias="rejectedReasons")
    replaced_by: tuple[str, ...] = Field(default=(), alias="replacedBy")
    affected: tuple[_Affected, ...] = ()
    references: tuple[_Reference, ...] = ()


class _Containers(Shape):
    cna: _Container


class _Metadata(Shape):
    cve_id: str = Field(alias="cveId")
    state: Literal["PUBLISHED", "REJECTED"]
    date_updated: AwareDatetime | NaiveDatetime | None = Field(default=None, alias="dateUpdated")


class _Record(Shape):
    metadata: _Metadata = Field(alias="cveMetadata")
    containers: _Containers


class _Missing(Shape):
    error: str


class _Id(Shape):
    cve_id: str
    state: str


class Cve(Registry):
    """Reads `cve` citations from the CVE Program's services."""

    async def _read(self, citation: Citation) -> SourceReading:
        match = _KEY.fullmatch(citation.key)
        if citation.type is not CitationType.CVE or match is None:
            raise NoAnswer("not_supported", f"{citation.value} is not a CVE id.")
        name = match["id"]
        answer = await self._ask(_WHO, f"/api/cve/{name}")
        if answer.status == 404:
            return await self._unpublished(citation, name)
        record = parse_answer(require_success(answer, _WHO, self._clock()), _Record, _WHO)
        if record.metadata.cve_id != name:
            raise NoAnswer(
                "odd_answer", f"{_WHO} was asked for {name} and answered with another.", status=200
            )
        return _reading(citation, name, record)

    async def _unpublished(self, citation: Citation, name: str) -> SourceReading:
        """Reserved, or missing: an id that nobody was given is a 404 as well."""
        answer = await self._ask(_WHO, f"/api/cve-id/{name}")
        if answer.status == 404:
            parse_answer(answer, _Missing, _WHO)  # a 404 that is not the service's own says nothing
            return Missing(citation=citation, detail=f"No CVE record {name} exists.", status=404)
        known = parse_answer(require_success(answer, _WHO, self._clock()), _Id, _WHO)
        if known.cve_id != name or known.state != "RESERVED":
            detail = f"{_WHO} has no record of {name}, and says that it is {known.state[:20].lower()}."
            raise NoAnswer("odd_answer", detail, status=200)
        return build_found(
            citation,
            source_id=name,
            url=_page(name),
            title=name,
            text=f"{name} is reserved. Nothing has been published under it yet.",
            detail=f"{name} is reserved, and nothing has been published under it yet.",
            dated=None,
            standing=Standing.PROPOSED,
        )


def _reading(citation: Citation, name: str, record: _Record) -> SourceReading:
    cna = record.containers.cna
    rejected = record.metadata.state == "REJECTED"
    said = _english(cna.rejected_reasons if rejected else cna.descriptions)
    if not said:
        raise NoAnswer("odd_answer", f"The record {name} has no description.", status=200)
    title = cna.title or said[0].partition("\n")[0]
    state = "was rejected" if rejected else "is published"
    dated = record.metadata.date_updated
    return build_found(
        citation,
        source_id=name,
        url=_page(name),
        title=f"{name}: {title}",
        text="\n\n".join(
            (f"{name}: {cna.title}".removesuffix(": "), f"{name} {state}.", *said, *_versions(cna.affected))
        ),
        detail=f"{name} {state}: {' '.join(title.split())[:150].removesuffix('.')}.",
        # Early records were written without a zone, in UTC.
        dated=None if dated is None else dated.replace(tzinfo=dated.tzinfo or UTC),
        standing=Standing.REJECTED if rejected else Standing.IN_FORCE,
        successor=cna.replaced_by[0]
        if rejected and cna.replaced_by and _KEY.fullmatch(f"cve:{cna.replaced_by[0]}")
        else None,
        links=" ".join(reference.url for reference in cna.references[:500]),
    )


def _page(name: str) -> str:
    return f"https://www.cve.org/CVERecord?id={name}"


def _english(descriptions: Sequence[_Description]) -> list[str]:
    return [
        text.value.strip()
        for text in descriptions
        if text.lang.lower().startswith("en") and text.value.strip()
    ]


def _versions(affected: Sequence[_Affected]) -> Iterator[str]:
    """One sentence a product: "Acme Widget: affected from 1.0 before 1.4.2; unaffected 1.4.2."."""
    left = _SHOWN
    for product in affected[:_SHOWN]:
        name = " ".join(filter(None, (product.vendor, product.product)))
        ranges = [_range(version) for version in product.versions[:left]]
        left -= len(ranges)
        if product.default_status:
            ranges.append(f"other versions {product.default_status}" if ranges else product.default_status)
        if name and ranges:
            yield f"{name}: {'; '.join(ranges)}."


def _range(version: _Version) -> str:
    begin = version.version if version.version not in ("0", "", "unspecified", "n/a", "*") else ""
    if version.less_than:
        end = f"before {version.less_than}"
    elif version.less_than_or_equal:
        end = f"up to and including {version.less_than_or_equal}"
    else:
        return " ".join(filter(None, (version.status, begin)))
    return " ".join(filter(None, (version.status, f"from {begin}" if begin else "", end)))


_NUMBER = r"(?P<year>(?:19|20)\d\d)[-–](?P<number>\d{4,9})"
_ONE = rf"[Cc][Vv][Ee][\s–-]{_NUMBER}"


def _key(match: re.Match[str]) -> str:
    return f"cve:CVE-{match['year']}-{match['number']}"


KIND = CitationKind(
    name=CitationType.CVE,
    label="CVE",
    needles=("cve",),
    find=each_match(re.compile(rf"(?<![\w#@$&\\]){_ONE}(?!\w|-\d|\.\d)", re.ASCII), _key),
    whole=full_match(re.compile(_ONE, re.ASCII), _key),
    bare=full_match(re.compile(rf"(?:[Cc][Vv][Ee][\s–-])?{_NUMBER}", re.ASCII), _key),
    forms=("CVE-2020-11008",),
    settings=("VOUCHGATE_CVE_URL",),
    source=Cve.opened_at("https://cveawg.mitre.org"),
)
