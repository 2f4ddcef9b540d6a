"""The git repositories that claims are checked in, as configured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vouchgate.ingest.sources.git.source import GitSource


class RepositoryError(ValueError):
    """A configured repository or ADR directory cannot be used; the message says which and why."""


def open_repositories(
    repositories: Sequence[Path], adr_dirs: Sequence[str], *, needed: bool = True
) -> GitSource:
    """Reads ADRs and commits from these work trees. Raises RepositoryError when one of them cannot be read;
    unless they are `needed`, that is not asked."""
    try:
        source = GitSource(repositories, adr_dirs)
    except ValueError as error:
        raise RepositoryError(str(error)) from error
    problems = source.problems() if needed else ()
    if problems:
        raise RepositoryError(f"{' '.join(problems)} Give --repo the top directory of a git work tree.")
    return source


def work_tree_here() -> tuple[Path, ...]:
    """The work tree around the current directory: what a command that only looks is about where no repository is
    configured. Empty outside of one."""
    here = Path.cwd()
    return tuple(folder for folder in (here, *here.parents) if (folder / ".git").exists())[:1]
