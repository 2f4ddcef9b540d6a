"""What is new in documents since a revision: claims, and what vouches for them.

Both states are read and compared here. A comparison of git's own runs programs that a repository names, and leaves out
what its attributes hide.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from vouchgate.documents.beside import path_in, with_files_at
from vouchgate.ingest.claims.citation import IN_REPOSITORIES, Citation
from vouchgate.ingest.claims.source import Found, SourceReading, Unreachable
from vouchgate.ingest.documents import Document, Unreadable, read_document
from vouchgate.ingest.documents.types import DocumentClaim
from vouchgate.ingest.documents.verdict import cited_by
from vouchgate.ingest.sources.git.adr_files import read_blob
from vouchgate.ingest.sources.git.repository import Repository
from vouchgate.ingest.sources.git.source import GitSource

SECONDS = 30.0
T = TypeVar("T")


class Changes:
    """What changed in the work tree at `root`, one of the repositories of `git`, since a revision."""

    def __init__(self, revision: str, root: Path, git: GitSource) -> None:
        """Everything, since a HEAD without a commit. Raises SourceError, and ValueError of what is no revision."""
        if revision.startswith("-"):
            raise ValueError(f"{revision} is no revision")
        with Repository(root, time.monotonic() + SECONDS) as repository:
            self._root, self._commit = root, _commit_of(revision, repository)
        self._now, self._then = git.alone(root), git.alone(root, self._commit)
        self._other: dict[str, bool] = {}

    def before(self, document: Document) -> Document | None:
        """The document as it was; None where there was none. Raises SourceError."""
        place = path_in(document.name, self._root)
        if place is None:
            return None
        with Repository(self._root, time.monotonic() + SECONDS) as repository:
            listed = repository.run("ls-tree", "-z", "--full-tree", self._commit, "--", place).split()
            content = read_blob(repository, listed[2].decode()) if listed[1:2] == [b"blob"] else b""
        try:
            return with_files_at(read_document(document.name, content), place)
        except Unreadable:
            return None

    def reads_otherwise(self, citation: Citation) -> bool:
        """Whether what is cited in the repository is not what it was, or that cannot be found out."""
        if citation.type not in IN_REPOSITORIES:
            return False
        if citation.key not in self._other:
            now, then = _said(self._now.read(citation)), _said(self._then.read(citation))
            self._other[citation.key] = now is None or now != then
        return self._other[citation.key]


def _commit_of(revision: str, repository: Repository) -> str:
    """The id of the commit, or of the empty tree before the first one. Raises SourceError and ValueError."""

    def id_of(name: str) -> str:
        refused = (0, 1, 128)  # 128 of what cannot be read as a revision, or may be several
        return repository.run("rev-parse", "--verify", "--quiet", name, ok=refused).decode().strip()

    if commit := id_of(f"{revision}^{{commit}}"):
        return commit
    if revision in ("HEAD", "@") and not id_of("HEAD"):
        return repository.run("hash-object", "-t", "tree", "--stdin", stdin=b"").decode().strip()
    shallow = (repository.common_dir / "shallow").is_file()
    more = ", which has not all commits: fetch more, as with git fetch --unshallow" if shallow else ""
    raise ValueError(f"there is no such revision in {repository.name}{more}")


def only_changed(document: Document, changes: Changes) -> Document:
    """The document with those claims alone that were not in it before with the same words, lead-in and references, or
    that cite what changed; and what is wrong with its references now and was not. Raises SourceError."""
    before = changes.before(document)
    if before is None:
        return document
    new = {claim.start for claim in _new(document.claims, before.claims, _apart_from_place)}
    claims = tuple(
        claim
        for claim in document.claims
        if claim.start in new or any(map(changes.reads_otherwise, cited_by(claim)))
    )
    findings = tuple(_new(document.findings, before.findings, lambda one: (one.slip, one.text)))
    return replace(document, claims=claims, findings=findings)


def _new(now: Sequence[T], before: Sequence[T], key: Callable[[T], Hashable]) -> Iterator[T]:
    left = Counter(map(key, before))
    for one in now:
        if left[key(one)] > 0:
            left[key(one)] -= 1
        else:
            yield one


def _apart_from_place(claim: DocumentClaim) -> DocumentClaim:
    """All that its verdict depends on."""
    references = tuple(replace(each, start=0, end=0) for each in claim.references)
    return replace(claim, start=0, end=0, section=(), references=references)


def _said(reading: SourceReading) -> tuple[object, ...] | None:
    """What was read, without the words for it; None where that could not be found out."""
    if isinstance(reading, Unreachable):
        return None
    if isinstance(reading, Found):
        return reading.standing, reading.text, reading.later, reading.successor, reading.amended_by
    return ()
