"""One configured repository, with what is kept about it between two look-ups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vouchgate.ingest.sources.git.adr_files import AdrFiles, AdrIndex
from vouchgate.ingest.sources.git.commits import Commits
from vouchgate.ingest.sources.git.history import Messages
from vouchgate.ingest.sources.git.mirror import Mirror
from vouchgate.ingest.sources.git.prose import Prose
from vouchgate.ingest.sources.git.refs import Tip, commit_tip, full_name, protected_tip
from vouchgate.ingest.sources.git.repository import ObjectAnswers, Repository, SourceError
from vouchgate.ingest.sources.patterns import PathPatterns


@dataclass(frozen=True, slots=True)
class RefWriter:
    """Where the protected ref of a repository is written: at an `address`, of which `path` is a mirror, or below the
    `path`. `ref` is its full name."""

    path: Path
    ref: str
    address: str | None
    bare: bool


class Grounding:
    """A repository that vouches: by its protected ref, but for what `memory` and nobody else wrote. `official` are the
    files that may make a FACT."""

    def __init__(
        self,
        where: Path | Mirror,
        adr_dirs: Sequence[str],
        ref: str | None,
        memory: PathPatterns,
        official: PathPatterns,
        *,
        commit: str | None = None,
    ) -> None:
        """What vouches is at `ref`, or stood at `commit`, its full id."""
        self.mirror = where if isinstance(where, Mirror) else None
        self.path = where.path if isinstance(where, Mirror) else where.absolute()
        self.commits = Commits()
        self.memory = memory
        self.official = official
        self._ref, self._commit = ref, commit
        self._adr_dirs = adr_dirs
        self._answers = ObjectAnswers()
        self._adrs = AdrFiles(adr_dirs, memory)
        self.prose = Prose(memory)
        self.messages = Messages()

    def at(self, commit: str) -> Grounding:
        """The same repository as if the protected ref pointed at this commit, given by its full id."""
        where = self.mirror or self.path
        return Grounding(where, self._adr_dirs, self._ref, self.memory, self.official, commit=commit)

    def open(self, deadline: float) -> Repository:
        """The repository, for one reading until `deadline` (`time.monotonic()`). Raises SourceError."""
        if self.mirror is not None:
            self.mirror.refresh(deadline)
        return Repository(self.path, deadline, self._answers)

    def tip(self, repository: Repository) -> Tip | None:
        """What the protected ref points at; None without a commit. Raises SourceError."""
        try:
            if self._commit is not None:
                return commit_tip(repository, self._commit)
            return protected_tip(repository, self._ref)
        except SourceError as error:
            raise missing_objects(repository, error) from error

    def writer(self, deadline: float) -> RefWriter:
        """Who writes the protected ref. Raises SourceError."""
        with self.open(deadline) as repository:
            ref = full_name(repository, self._ref)
            bare = repository.work_tree is None
        return RefWriter(self.path, ref, None if self.mirror is None else self.mirror.address, bare)

    def records(self, repository: Repository, tip: Tip) -> AdrIndex:
        """The records at the protected ref. Raises SourceError."""
        try:
            if not tip.tree:
                raise SourceError("error", f"The newest commit of {repository.name} cannot be read.")
            return self._adrs.index(repository, tip.tree)
        except SourceError as error:
            raise missing_objects(repository, error) from error

    def uncommitted(self, repository: Repository, index: AdrIndex | None, number: int) -> str | None:
        """The path of a record with this number that is only in the work tree; or None."""
        return self._adrs.uncommitted(repository, index, number)

    def unmerged(self, repository: Repository, index: AdrIndex, tip: Tip, number: int) -> str | None:
        """The path of a record with this number that is only on a ref that is not merged; or None."""
        return self._adrs.unmerged(repository, index, tip, number)

    def where_else(self, repository: Repository, tip: Tip | None, path: str) -> str:
        """Why a file of the work tree at this path does not count, as the end of a sentence."""
        listed = repository.run("ls-tree", "--full-tree", "HEAD", "--", path, ok=(0, 128))
        if tip is not None and listed:
            return f"is not merged into {tip.name}"
        return "is not committed"


def missing_objects(repository: Repository, error: SourceError) -> SourceError:
    """The same error, or where objects were left out when the repository was cloned, that one."""
    if error.code == "error" and repository.is_partial():
        return SourceError(
            "shallow_clone", f"{repository.name} is a partial clone, and not all of it is here."
        )
    return error
