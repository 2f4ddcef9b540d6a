"""Verifies citations of what lives in git: architecture decision records, commits, files and lines of them.

Every configured repository is asked. What one of them has was found; a thing is missing only when every one
of them could say so; anything else could not be found out. Only what is at a repository's protected ref counts.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from copy import copy
from pathlib import Path

from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import (
    EXCERPT_CHARACTERS,
    Found,
    Missing,
    SourceReading,
    Standing,
    Unreachable,
)
from vouchgate.ingest.sources.git.commits import Candidates, CommitRecord
from vouchgate.ingest.sources.git.files import read_file
from vouchgate.ingest.sources.git.grounding import Grounding, RefWriter
from vouchgate.ingest.sources.git.history import code_lines
from vouchgate.ingest.sources.git.mirror import Mirror
from vouchgate.ingest.sources.git.record_dirs import checked_directories
from vouchgate.ingest.sources.git.records import read_by_number
from vouchgate.ingest.sources.git.refs import Tip, checked_ref
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.passage_index import FoundPassage, Search
from vouchgate.ingest.sources.patterns import MEMORY_FILES, PathPatterns

_log = logging.getLogger(__name__)


MOST_HINTS = 3  # messages of commits, and as many lines of code


class GitSource:
    """Reads ADRs, commits and files from the configured repositories.

    `repositories` are top directories of work trees, bare repositories, or mirrors of what is elsewhere. `adr_dirs` are
    directories relative to the top of each; without any they are found by themselves. `refs` names the protected ref:
    none (see `refs.py`), one for all, or one for each. `memory_files` never vouch, and `official` may make a FACT:
    patterns as in `patterns.py`. ValueError is raised for a setting that cannot be used. `timeout_seconds` bounds one
    reading over all repositories. Safe to call from several threads.
    """

    def __init__(
        self,
        repositories: Sequence[Path | Mirror],
        adr_dirs: Sequence[str] = (),
        *,
        refs: Sequence[str] = (),
        memory_files: Sequence[str] = MEMORY_FILES,
        official: Sequence[str] = (),
        timeout_seconds: float = 5.0,
    ) -> None:
        directories = checked_directories(adr_dirs)
        memory, marked = PathPatterns(memory_files, any_case=True), PathPatterns(official)
        self._groundings = tuple(
            Grounding(where, directories, ref, memory, marked)
            for where, ref in zip(repositories, _refs(refs, len(repositories)), strict=True)
        )
        self._timeout = timeout_seconds

    def alone(self, path: Path, commit: str | None = None) -> GitSource:
        """The repository at this path by itself; where a commit is given by its full id, as it stood there."""
        one = copy(self)
        same = (each for each in self._groundings if each.path == path.absolute())
        one._groundings = tuple(each if commit is None else each.at(commit) for each in same)
        return one

    def read(self, citation: Citation) -> SourceReading:
        """Looks up one `adr`, `commit`, `path` or `symbol` citation. Blocking: it reads files and starts git processes.

        Never raises: what goes wrong is an Unreachable and a log line.
        """
        try:
            reading = self._read(citation)
            behind = [
                each.mirror.name for each in self._groundings if each.mirror and each.mirror.is_behind()
            ]
            if isinstance(reading, Missing) and behind:
                detail = f"{reading.detail.removesuffix('.')}, but {', '.join(behind)} could not be fetched lately."
                raise SourceError("connection", detail)
            return reading
        except SourceError as error:
            _log.warning("%s could not be checked (%s): %s", citation.key, error.code, error.detail)
            return Unreachable(citation=citation, code=error.code, detail=error.detail)
        except Exception:  # noqa: BLE001  (whatever goes wrong must become "could not be found out")
            _log.exception("Reading %s failed", citation.key)
            return Unreachable(
                citation=citation, code="error", detail="The git repository could not be read."
            )

    def search(self, words: str, most: int, seconds: float) -> Search:
        """The passages of every repository's prose that have most of the words; as hints, the messages of commits that
        have them, and the lines of code that have their identifiers. Blocking."""
        deadline = time.monotonic() + seconds
        found: list[FoundPassage] = []
        failures: list[str] = []
        for grounding in self._groundings:
            try:
                with grounding.open(deadline) as repository:
                    tip = grounding.tip(repository)
                    if tip is None or not tip.tree:
                        continue
                    passages = grounding.prose.search(repository, tip.tree, words, most)
                    found += [FoundPassage(repository.name, passage) for passage in passages]
                    hints = grounding.messages.search(repository, tip, words, MOST_HINTS)
                    hints += code_lines(repository, tip, words, MOST_HINTS, grounding.memory)
                    found += [FoundPassage(repository.name, passage, may_vouch=False) for passage in hints]
            except SourceError as error:
                failures.append(error.detail)
        return Search(tuple(found), tuple(failures))

    def digest(self, seconds: float) -> str:
        """What changes when a protected ref moves, sha256 hex. Blocking. Raises SourceError."""
        deadline, tips = time.monotonic() + seconds, []
        for grounding in self._groundings:
            with grounding.open(deadline) as repository:
                tip = grounding.tip(repository)
                tips.append("" if tip is None else tip.tree)
        return hashlib.sha256("\n".join(tips).encode()).hexdigest()

    def __len__(self) -> int:
        """How many repositories there are."""
        return len(self._groundings)

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the configured repositories, one sentence each: what `unusable` says, and addresses that
        could not be fetched lately."""
        fetches = (each.mirror.problem for each in self._groundings if each.mirror is not None)
        return (*self.unusable(), *filter(None, fetches))

    def writers(self) -> tuple[RefWriter, ...]:
        """Who writes the protected ref of each repository. Raises SourceError for one that is unusable."""
        return tuple(each.writer(time.monotonic() + self._timeout) for each in self._groundings)

    def unusable(self) -> tuple[str, ...]:
        """Configured repositories that cannot be opened or have nothing at the ref that counts, one sentence each."""
        sentences: list[str] = []
        for grounding in self._groundings:
            try:
                with grounding.open(time.monotonic() + self._timeout) as repository:
                    if grounding.tip(repository) is None:
                        sentences.append(f"{grounding.path.name} has no commit that can be read at HEAD.")
            except SourceError as error:
                sentences.append(error.detail)
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
            return read_by_number(self._groundings, citation, int(name), deadline)
        if citation.type is CitationType.COMMIT and kind == "commit":
            return self._read_commit(citation, name, deadline)
        if citation.type in (CitationType.PATH, CitationType.SYMBOL) and kind == citation.type:
            return read_file(self._groundings, citation, deadline)
        raise SourceError("not_supported", f"A citation like {citation.key!r} is not checked in git.")

    def _read_commit(self, citation: Citation, prefix: str, deadline: float) -> SourceReading:
        found: list[tuple[CommitRecord, str, str]] = []  # with the repository's name and the protected ref's
        named: dict[str, str] = {}  # every commit the id can mean, and the repository that has it
        others: list[str] = []
        failures: list[SourceError] = []
        for grounding in self._groundings:
            try:
                with grounding.open(deadline) as repository:
                    names = grounding.commits.candidates(repository, prefix)
                    named.update(dict.fromkeys(names.commits, repository.name))
                    others += [f"{other} in {repository.name}" for other in names.others]
                    if len(names.commits) == 1:
                        found.append(_read_one(grounding, repository, names))
            except SourceError as error:
                _log.info("%s in %s: %s", citation.key, grounding.path.name, error.detail)
                failures.append(error)
        if len(named) > 1:
            return _ambiguous_commit(citation, prefix, named)
        if found:
            # The same commit in two clones: one that knows it was undone knows more, one that has lost the
            # branch knows less.
            order = (Standing.REVERTED, Standing.IN_FORCE, Standing.NOT_MERGED, Standing.DETACHED)
            return _found_commit(citation, *min(found, key=lambda item: order.index(item[0].standing)))
        if failures:
            raise failures[0]
        if others:
            detail = f"{prefix} is not a commit: it names {', '.join(others[:5])}."
            return Missing(citation=citation, detail=detail)
        repositories = ", ".join(grounding.path.name for grounding in self._groundings)
        return Missing(citation=citation, detail=f"No commit {prefix} exists in {repositories}.")


def _refs(refs: Sequence[str], repositories: int) -> Sequence[str | None]:
    named = tuple(checked_ref(ref) for ref in refs)
    if len(named) <= 1:
        return (named[0] if named else None,) * repositories
    if len(named) != repositories:
        raise ValueError(
            f"There are {len(named)} refs for {repositories} repositories: give one, or one for each."
        )
    return named


def _read_one(
    grounding: Grounding, repository: Repository, names: Candidates
) -> tuple[CommitRecord, str, str]:
    tip = grounding.tip(repository)
    commit = grounding.commits.read(repository, names, tip)
    return commit, repository.name, _name_if_needed(repository, tip, commit)


def _name_if_needed(repository: Repository, tip: Tip | None, commit: CommitRecord) -> str:
    if commit.standing is not Standing.NOT_MERGED:
        return ""
    return "what is checked out" if tip is None else tip.name


def _ambiguous_commit(citation: Citation, prefix: str, named: dict[str, str]) -> Found:
    shown = ", ".join(f"{commit[:12]} ({name})" for commit, name in sorted(named.items())[:8])
    return Found(
        citation=citation,
        source_id=f"commit:{prefix}",
        form="commit",
        standing=Standing.AMBIGUOUS,
        detail=f"{prefix} is short for {len(named)} commits: {shown}.",
    )


def _found_commit(citation: Citation, commit: CommitRecord, name: str, ref: str) -> Found:
    said = f"Commit {commit.short} “{commit.subject[:120]}”"
    match commit.standing:
        case Standing.REVERTED:
            detail = f"{said} was reverted by {commit.reverted_by} in {name}."
        case Standing.NOT_MERGED:
            detail = f"{said} is not merged into {ref} in {name}."
        case Standing.DETACHED:
            detail = f"{said} is on no branch and under no tag of {name}."
        case _:
            detail = f"{said} is part of {name}."
    # Not official: whoever writes a message speaks for the change, not for the project.
    return Found(
        citation=citation,
        source_id=f"commit:{commit.short}",
        form="commit",
        standing=commit.standing,
        detail=detail,
        title=commit.subject,
        excerpt=commit.text[:EXCERPT_CHARACTERS],
        text=commit.text,
        digest=commit.digest,
        dated=commit.dated,
        successor=f"commit:{commit.reverted_by}" if commit.reverted_by else None,
    )
