"""`groundgate verify`: what each citation points at, and whether it holds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

from groundgate.cli.output import FAILED, USAGE, Failure, show_table, write_json
from groundgate.gate import GIT_TYPES
from groundgate.repositories import open_repositories
from groundgate.settings import Settings
from ingest.citations import parse_citation
from ingest.sources.git import GitSource
from ingest.types import Citation, Found, Missing, SourceReading, Standing, Unreachable


def run(values: Sequence[str], settings: Settings, *, as_json: bool) -> int:
    """0 only when every citation exists and is in force."""
    logging.basicConfig(level=logging.ERROR)  # that a source could not be read is in the answer already
    citations = [_parse(value) for value in values]
    source = git_source(settings, needed=any(c.type in GIT_TYPES for c in citations))
    readings = [read(source, citation) for citation in citations]
    if as_json:
        for reading in readings:
            write_json(_as_json(reading))
    else:
        rows = [(r.citation.value, verdict(r), _found(r)) for r in readings]
        show_table(("citation", "verdict", "what was found"), rows, whole=2)
    return 0 if all(verdict(reading) == "in force" for reading in readings) else FAILED


def git_source(settings: Settings, *, needed: bool = True) -> GitSource:
    """The configured repositories, else the work tree around the current directory. Raises RepositoryError
    when one cannot be used; nothing is opened unless `needed`."""
    return open_repositories(settings.repo or _work_tree(Path.cwd()), settings.adr_dirs, needed=needed)


def _work_tree(directory: Path) -> tuple[Path, ...]:
    found = (folder for folder in (directory, *directory.parents) if (folder / ".git").exists())
    return tuple(found)[:1]


def _parse(value: str) -> Citation:
    try:
        return parse_citation(value)
    except ValueError as error:
        raise Failure(str(error), USAGE) from error


def read(source: GitSource, citation: Citation) -> SourceReading:
    """Reads what is in git; the rest cannot be looked up yet, and that is said."""
    if citation.type in GIT_TYPES:
        return source.read(citation)
    detail = f"A citation of type {citation.type.value} cannot be looked up yet."
    return Unreachable(citation=citation, code="not_supported", detail=detail)


def verdict(reading: SourceReading) -> str:
    """The reading in a word or two: `in force`, what it is instead, `missing`, or `UNKNOWN`."""
    match reading:
        case Found(standing=Standing.IN_FORCE):
            return "in force"
        case Found():
            return reading.standing.value
        case Missing():
            return "missing"
        case Unreachable():
            return "UNKNOWN"
        case _:
            assert_never(reading)


def _found(reading: SourceReading) -> str:
    if isinstance(reading, Found) and reading.successor:
        return f"{reading.detail} Its successor: {reading.successor}."
    return reading.detail


def _as_json(reading: SourceReading) -> dict[str, object]:
    return {
        "citation": {"type": reading.citation.type.value, "value": reading.citation.value},
        "verdict": verdict(reading),
        "reading": reading.model_dump(mode="json"),
    }
