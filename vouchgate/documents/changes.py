"""What changed in a work tree since a revision: lines of documents, and files that they cite."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from vouchgate.documents.beside import file_of, path_in
from vouchgate.documents.report import Lines
from vouchgate.ingest.claims.citation import IN_REPOSITORIES, CitationType
from vouchgate.ingest.documents.types import Document, DocumentClaim
from vouchgate.ingest.sources.git.repository import Repository

SECONDS = 30.0
_HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed in the work tree at `root` since a commit: `files`."""

    root: Path
    commit: str
    files: frozenset[str]

    def lines_of(self, document: Document) -> frozenset[int] | None:
        """Lines of a document that are new or changed; None for one that is new as a whole. Raises SourceError."""
        place = path_in(document.name, self.root)
        with Repository(self.root, time.monotonic() + SECONDS) as repository:
            if place is None or not repository.run("ls-tree", "--name-only", self.commit, "--", place):
                return None
            diff = repository.run(
                "diff", "--unified=0", "--no-renames", "--no-color", self.commit, "--", place
            )
        changed: set[int] = set()
        for start, length in _HUNK.findall(diff):
            first = int(start)
            changed.update(range(first, first + (int(length) if length else 1)))
        return frozenset(changed)


def changes_since(revision: str, root: Path) -> Changes:
    """What changed since a revision, up to what lies in the work tree: everything since a HEAD without a commit. Raises
    SourceError, and ValueError for what is no revision here."""
    if revision.startswith("-"):
        raise ValueError(f"{revision} is no revision")
    with Repository(root, time.monotonic() + SECONDS) as repository:
        commit = _commit_of(revision, repository)
        names = repository.run("diff", "--name-only", "-z", "--no-renames", commit, "--").split(b"\x00")
    return Changes(root, commit, frozenset(name.decode(errors="surrogateescape") for name in names if name))


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
    """The document with those claims alone that stand on changed lines, or cite a file that changed, and what is wrong
    with its references on changed lines. Raises SourceError."""
    wanted = changes.lines_of(document)
    if wanted is None:
        return document
    lines = Lines(document.text)

    def touched(claim: DocumentClaim) -> bool:
        first, last = lines.at(claim.start)[0], lines.at(max(claim.start, claim.end - 1))[0]
        places = {*range(first, last + 1), *(lines.at(each.start)[0] for each in claim.references)}
        cited = (each.citation for each in claim.references)
        return not wanted.isdisjoint(places) or any(
            one is not None
            and one.type in IN_REPOSITORIES
            and (file_of(one) in changes.files or (one.type == CitationType.SYMBOL and changes.files))
            for one in cited
        )

    findings = tuple(each for each in document.findings if lines.at(each.start)[0] in wanted)
    return replace(document, claims=tuple(filter(touched, document.claims)), findings=findings)
