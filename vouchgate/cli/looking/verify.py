"""`vouchgate verify`: what each citation points at, and whether it holds."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence

from vouchgate.cli.input import is_file, open_input
from vouchgate.cli.output import FAILED, USAGE, Failure, show_table, write_json
from vouchgate.ingest.citations import TooManyCitations, detect_citations, kinds_in_use, parse_citation
from vouchgate.ingest.claims.citation import IN_REPOSITORIES, KEPT_BY_OPERATOR, Citation, CitationType
from vouchgate.ingest.claims.source import (
    EXCERPT_CHARACTERS,
    Found,
    Missing,
    SourceReading,
    Standing,
    Unreachable,
)
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import MAX_DOCUMENT_BYTES
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.settings import Settings
from vouchgate.sources.reader import Sources
from vouchgate.sources.repositories import open_repositories, work_tree_here
from vouchgate.sources.setup import open_sources

_MOST_CITED = 500  # in one text
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)


def run(values: Sequence[str], settings: Settings, *, as_json: bool) -> int:
    """0 only when every citation exists and is in force."""
    logging.basicConfig(level=logging.ERROR)  # that a source could not be read is in the answer already
    citations = [each for value in values for each in _cited(value)]
    git = git_source(settings, needed=any(c.type in IN_REPOSITORIES for c in citations))
    with open_sources(settings, load_policy(settings.policy), git) as sources:
        readings = asyncio.run(_read(sources, citations))
    if as_json:
        for reading in readings:
            write_json(_as_json(reading))
    else:
        rows = [(r.citation.value, verdict(r), _found(r)) for r in readings]
        show_table(("citation", "verdict", "what was found"), rows, whole=2)
    good = {"exists", "in force"}
    return 0 if all(verdict(reading) in good for reading in readings) else FAILED


async def _read(sources: Sources, citations: Sequence[Citation]) -> list[SourceReading]:
    try:
        return await asyncio.gather(*(sources.read(citation) for citation in citations))
    finally:
        await sources.stop_reading()


def git_source(settings: Settings, *, needed: bool = True) -> GitSource:
    """The configured repositories, else the work tree around the current directory. Raises RepositoryError
    when one cannot be used; nothing is opened unless `needed`."""
    return open_repositories(settings, settings.repo or work_tree_here(), needed=needed)


def _cited(value: str) -> Sequence[Citation]:
    """The citation that a value is, or those of a text, a file, or standard input for `-`. What could be a path in the
    repository is one, so a file is named as `./notes.md`. Raises Failure where nothing is cited."""
    if value == "-" or (not _is_citation(value) and is_file(value)):
        with open_input(value) as stream:
            text, what = stream.read(MAX_DOCUMENT_BYTES + 1), "standard input" if value == "-" else value
        if len(text) > MAX_DOCUMENT_BYTES:
            raise Failure(f"{what} has over {MAX_DOCUMENT_BYTES:,} bytes; give a part of it", USAGE)
        return _detected(text.decode("utf-8", "replace"), what)
    if _is_citation(value) or not any(map(str.isspace, value.strip())):
        return [_parse(value)]
    return _detected(value, "the text")


def _detected(text: str, what: str) -> Sequence[Citation]:
    try:
        found = {each.key: each for each in detect_citations(text, _MOST_CITED)}
    except TooManyCitations as error:
        raise Failure(f"{what}: {error}", USAGE) from error
    if not found:
        raise Failure(f"{what} cites nothing; cite as in ADR-003, a commit id, a URL, #12 or RFC 9110", USAGE)
    return [*found.values()]


def _is_citation(value: str) -> bool:
    try:
        parse_citation(value)
    except ValueError:
        return False
    return True


def _parse(value: str) -> Citation:
    """The citation it is. What is meant as an address is looked up as one, however odd it is: that it cannot
    be asked safely is the answer then."""
    try:
        return parse_citation(value)
    except ValueError as error:
        scheme = _SCHEME.match(value)
        if scheme is None or scheme[1].lower() in kinds_in_use():
            raise Failure(
                f"there is no file {value}, and {error}", USAGE
            ) from error  # one that is there was read
        return Citation(type=CitationType.URL, value=value, key=f"url:{value}")


def verdict(reading: SourceReading) -> str:
    """The reading in a word or two: `exists` or, for what can lose its force, `in force`; what it is instead;
    `missing`; `refused`, for an address that is not safe to ask; `UNKNOWN`."""
    match reading:
        case Found(standing=Standing.IN_FORCE):
            return "in force" if reading.citation.type in KEPT_BY_OPERATOR else "exists"
        case Found():
            return reading.standing.value
        case Missing():
            return "missing"
        case Unreachable(code="refused"):
            return "refused"
        case Unreachable():
            return "UNKNOWN"


def _found(reading: SourceReading) -> str:
    if isinstance(reading, Found) and reading.successor:
        return f"{reading.detail} Its successor: {reading.successor}."
    return reading.detail


def _as_json(reading: SourceReading) -> dict[str, object]:
    if isinstance(reading, Found) and not reading.excerpt:  # no claim to choose passages for: the beginning
        reading = reading.model_copy(update={"excerpt": reading.text[:EXCERPT_CHARACTERS]})
    return {
        "citation": {"type": reading.citation.type, "value": reading.citation.value},
        "verdict": verdict(reading),
        "reading": reading.model_dump(mode="json"),
    }
