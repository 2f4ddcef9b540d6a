"""Verifies citations of what lives in git: architecture decision records and commits.

Every configured repository is asked. What one of them has was found; a thing is missing only when every one
of them could say so; anything else could not be found out.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from pathlib import Path

from vouchgate.ingest.claims.types import (
    EXCERPT_CHARACTERS,
    Citation,
    CitationType,
    Found,
    Frozen,
    Missing,
    SourceReading,
    Standing,
    Unreachable,
)
from vouchgate.ingest.sources.git.adr_files import (
    AdrFiles,
    AdrRecord,
    checked_directories,
    read_blob,
    text_of,
)
from vouchgate.ingest.sources.git.adr_status import adr_id
from vouchgate.ingest.sources.git.adr_text import parse
from vouchgate.ingest.sources.git.commits import Candidates, CommitRecord, Commits
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.plain_text import plain

_log = logging.getLogger(__name__)


class _Adr(Frozen):
    """A record found in one repository. `data` is its text in bytes when it is the only one there."""

    repository: str
    record: AdrRecord
    superseded_by: str | None
    data: bytes


class _Grounding:
    """One configured repository, with what is kept about it between two look-ups."""

    def __init__(self, path: Path, adr_dirs: Sequence[str]) -> None:
        self.path = path
        self.adrs = AdrFiles(adr_dirs)
        self.commits = Commits()


class GitSource:
    """Reads ADRs and commits from the configured repositories.

    `repositories` are top directories of work trees, or bare repositories. `adr_dirs` are directories
    relative to the top of each; ValueError is raised for one that would leave it. `timeout_seconds` bounds
    one reading over all repositories. Safe to call from several threads.
    """

    def __init__(
        self, repositories: Sequence[Path], adr_dirs: Sequence[str], *, timeout_seconds: float = 5.0
    ) -> None:
        self._adr_dirs = checked_directories(adr_dirs)
        self._groundings = tuple(_Grounding(path.absolute(), self._adr_dirs) for path in repositories)
        self._timeout = timeout_seconds

    def read(self, citation: Citation) -> SourceReading:
        """Looks up one `adr` or `commit` citation. Blocking: it reads files and starts git processes.

        Never raises: what goes wrong is an Unreachable and a log line.
        """
        try:
            return self._read(citation)
        except SourceError as error:
            _log.warning("%s could not be checked (%s): %s", citation.key, error.code, error.detail)
            return Unreachable(citation=citation, code=error.code, detail=error.detail)
        except Exception:  # noqa: BLE001  (whatever goes wrong must become "could not be found out")
            _log.exception("Reading %s failed", citation.key)
            return Unreachable(
                citation=citation, code="error", detail="The git repository could not be read."
            )

    def problems(self) -> tuple[str, ...]:
        """Configured repositories that cannot be opened or have no commit, one sentence each."""
        sentences: list[str] = []
        for grounding in self._groundings:
            try:
                with Repository(grounding.path, time.monotonic() + self._timeout) as repository:
                    repository.run("rev-parse", "-q", "--verify", "HEAD^{tree}")
            except SourceError as error:
                sentences.append(
                    error.detail
                    if error.code != "error"
                    else f"{grounding.path.name} has no commit that can be read at HEAD."
                )
            except Exception:  # noqa: BLE001  (a broken repository must not stop the others)
                _log.exception("Opening the repository %s failed", grounding.path.name)
                sentences.append(f"{grounding.path.name} cannot be opened as a git repository.")
        return tuple(sentences)

    def _read(self, citation: Citation) -> SourceReading:
        if not self._groundings:
            raise SourceError("no_repository", "No git repository is configured to check this in.")
        kind, _, name = citation.key.partition(":")
        deadline = time.monotonic() + self._timeout
        if citation.type is CitationType.ADR and kind == "adr" and name.isascii() and name.isdigit():
            return self._read_adr(citation, int(name), deadline)
        if citation.type is CitationType.COMMIT and kind == "commit":
            return self._read_commit(citation, name, deadline)
        raise SourceError("not_supported", f"A citation like {citation.key!r} is not checked in git.")

    # --- commits

    def _read_commit(self, citation: Citation, prefix: str, deadline: float) -> SourceReading:
        found: list[tuple[str, CommitRecord]] = []
        named: dict[str, str] = {}  # every commit the id can mean, and the repository that has it
        others: list[str] = []
        failures: list[SourceError] = []
        for grounding in self._groundings:
            try:
                with Repository(grounding.path, deadline) as repository:
                    names = grounding.commits.candidates(repository, prefix)
                    named.update(dict.fromkeys(names.commits, repository.name))
                    others += [f"{other} in {repository.name}" for other in names.others]
                    found += self._only(grounding, repository, names)
            except SourceError as error:
                _log.info("%s in %s: %s", citation.key, grounding.path.name, error.detail)
                failures.append(error)
        if len(named) > 1:
            return _ambiguous_commit(citation, prefix, named)
        if found:
            # The same commit in two clones: one that knows it was undone knows more, one that has lost the
            # branch knows less.
            order = (Standing.REVERTED, Standing.IN_FORCE, Standing.DETACHED)
            return _found_commit(citation, *min(found, key=lambda item: order.index(item[1].standing)))
        if failures:
            raise failures[0]
        if others:
            detail = f"{prefix} is not a commit: it names {', '.join(others[:5])}."
            return Missing(citation=citation, detail=detail)
        return Missing(citation=citation, detail=f"No commit {prefix} exists in {self._names()}.")

    @staticmethod
    def _only(
        grounding: _Grounding, repository: Repository, names: Candidates
    ) -> list[tuple[str, CommitRecord]]:
        if len(names.commits) != 1:
            return []
        return [(repository.name, grounding.commits.read(repository, names.commits[0], names.short))]

    # --- ADRs

    def _read_adr(self, citation: Citation, number: int, deadline: float) -> SourceReading:
        found: list[_Adr] = []
        uncommitted: list[str] = []
        failures: list[SourceError] = []
        for grounding in self._groundings:
            try:
                with Repository(grounding.path, deadline) as repository:
                    here = _adrs_in(grounding.adrs, repository, number)
                    found += here
                    if not here:
                        uncommitted += _not_committed(grounding.adrs, repository, number)
            except SourceError as error:
                _log.info("%s in %s: %s", citation.key, grounding.path.name, error.detail)
                failures.append(error)
        if found:
            return _judge_adr(citation, number, found)
        if uncommitted:
            return Found(
                citation=citation,
                source_id=adr_id(number),
                called=citation.name,
                standing=Standing.PROPOSED,
                detail=f"{uncommitted[0]} is not committed, so nothing but a file vouches for it.",
            )
        if failures:
            raise failures[0]
        places = ", ".join(self._adr_dirs) or "any directory"
        detail = f"No {citation.name} exists in {self._names()} (looked in {places})."
        return Missing(citation=citation, detail=detail)

    def _names(self) -> str:
        return ", ".join(grounding.path.name for grounding in self._groundings)


def _ambiguous_commit(citation: Citation, prefix: str, named: dict[str, str]) -> Found:
    shown = ", ".join(f"{commit[:12]} ({name})" for commit, name in sorted(named.items())[:8])
    return Found(
        citation=citation,
        source_id=f"commit:{prefix}",
        standing=Standing.AMBIGUOUS,
        detail=f"{prefix} is short for {len(named)} commits: {shown}.",
    )


def _found_commit(citation: Citation, name: str, commit: CommitRecord) -> Found:
    said = f"Commit {commit.short} “{commit.subject[:120]}”"
    match commit.standing:
        case Standing.REVERTED:
            detail = f"{said} was reverted by {commit.reverted_by} in {name}."
        case Standing.DETACHED:
            detail = f"{said} is on no branch and under no tag of {name}."
        case _:
            detail = f"{said} is part of {name}."
    return Found(
        citation=citation,
        source_id=f"commit:{commit.short}",
        standing=commit.standing,
        detail=detail,
        title=commit.subject,
        excerpt=commit.text[:EXCERPT_CHARACTERS],
        text=commit.text,
        digest=commit.digest,
        dated=commit.dated,
        successor=f"commit:{commit.reverted_by}" if commit.reverted_by else None,
        official=True,
    )


def _adrs_in(files: AdrFiles, repository: Repository, number: int) -> list[_Adr]:
    try:
        return _numbered(files, repository, number)
    except SourceError as error:
        if error.code == "error" and repository.is_partial():
            detail = f"{repository.name} is a partial clone, and not all its records are here."
            raise SourceError("shallow_clone", detail) from error
        raise


def _numbered(files: AdrFiles, repository: Repository, number: int) -> list[_Adr]:
    index = files.index(repository)
    if index is None:
        return []
    records = index.numbered(number)
    newer = index.superseding(number)
    alone = len({record.object_id for record in records}) == 1 and records[0].obstacle is None
    data = read_blob(repository, records[0].object_id) if alone else b""
    return [
        _Adr(repository=repository.name, record=record, superseded_by=newer, data=data) for record in records
    ]


def _not_committed(files: AdrFiles, repository: Repository, number: int) -> list[str]:
    """The file with this number that is only in the work tree. Raises SourceError when the committed records
    could not all be seen, so that "there is none" would be a guess."""
    path = files.uncommitted(repository, number)
    if path is not None:
        return [f"{plain(path)} in {repository.name}"]
    index = files.index(repository)
    if index is None:
        raise SourceError("error", f"{repository.name} has no commits yet.")
    if index.links:
        raise SourceError(
            "not_supported",
            f"{index.links[0]} in {repository.name} is a link or a submodule, which is not followed.",
        )
    return []


def _judge_adr(citation: Citation, number: int, found: Sequence[_Adr]) -> SourceReading:
    name = citation.name
    first = found[0]
    if len({adr.record.object_id for adr in found}) > 1:
        places = ", ".join(f"{adr.record.path} ({adr.repository})" for adr in found[:8])
        return Found(
            citation=citation,
            source_id=adr_id(number),
            called=citation.name,
            standing=Standing.AMBIGUOUS,
            detail=f"{len(found)} files are {name}: {places}.",
        )
    place = f"{first.record.path} in {first.repository}"
    if first.record.obstacle is not None:
        raise SourceError("not_supported", f"{place} {first.record.obstacle}.")
    page = parse(text_of(first.data) or "")
    standing, detail, successor = _standing(name, place, first)
    return Found(
        citation=citation,
        source_id=adr_id(number),
        called=citation.name,
        standing=standing,
        detail=detail,
        title=page.title,
        excerpt=page.excerpt,
        text=page.text,
        digest=hashlib.sha256(first.data).hexdigest(),
        dated=page.dated,
        successor=successor,
        official=True,
    )


def _standing(name: str, place: str, adr: _Adr) -> tuple[Standing, str, str | None]:
    statement = adr.record.statement
    if len(adr.record.numbers) > 1:
        both = " and ".join(adr_id(number) for number in sorted(adr.record.numbers))
        return Standing.AMBIGUOUS, f"{place} goes by two numbers, {both}: file name and heading differ.", None
    says = f"“{statement.quoted}”" if statement and statement.quoted else "an empty status"
    standing = statement.standing if statement else Standing.IN_FORCE
    if standing is Standing.IN_FORCE and adr.superseded_by:
        return (
            Standing.SUPERSEDED,
            f"{adr.superseded_by} says that it supersedes {name}, though {place} does not say so.",
            adr.superseded_by,
        )
    if statement is None:
        return standing, f"{name} is {place}, which states no status and counts as accepted.", None
    if standing is Standing.IN_FORCE:
        return standing, f"{name} is in force: {place} says {says}.", None
    return standing, f"{name} is not in force: {place} says {says}.", statement.successor
