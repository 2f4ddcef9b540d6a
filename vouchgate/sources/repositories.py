"""The git repositories that claims are checked in, as configured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from vouchgate.ingest.sources.git.mirror import Mirror
from vouchgate.ingest.sources.git.record_dirs import checked_directories
from vouchgate.ingest.sources.git.refs import checked_ref
from vouchgate.ingest.sources.git.repository import NO_GIT, SourceError
from vouchgate.ingest.sources.git.source import GitSource
from vouchgate.settings import PREFIX, Settings

_CHECKS: dict[str, Callable[[tuple[str, ...]], object]] = {
    "adr_dirs": checked_directories,
    "ref": lambda refs: [checked_ref(each) for each in refs],
}


class RepositoryError(ValueError):
    """A configured repository or ADR directory cannot be used; the message says which and why."""


def open_repositories(
    settings: Settings, repositories: Sequence[Path | str] | None = None, *, needed: bool = True
) -> GitSource:
    """Reads what is in the configured repositories, or in these work trees. Raises RepositoryError when one of them
    cannot be read; unless they are `needed`, that is not asked."""
    for name, check in _CHECKS.items():
        try:
            check(getattr(settings, name))
        except ValueError as error:
            raise RepositoryError(f"{PREFIX}{name.upper()}: {error}") from error
    try:
        opened = [
            _opened(settings, each) for each in (settings.repo if repositories is None else repositories)
        ]
        source = GitSource(
            opened,
            settings.adr_dirs,
            refs=settings.ref,
            memory_files=settings.memory_files,
            official=settings.official_paths,
        )
    except ValueError as error:
        raise RepositoryError(str(error)) from error
    for mirror in opened if needed else ():
        if isinstance(mirror, Mirror):
            with suppress(SourceError):  # which `unusable` says
                mirror.prepare()
    problems = source.unusable() if needed else ()
    if NO_GIT in problems:
        raise RepositoryError(NO_GIT)
    if problems:
        wanted = "Give --repo the top directory of a git work tree, or an address that can be fetched here."
        raise RepositoryError(f"{' '.join(problems)} {wanted}")
    return source


def _opened(settings: Settings, where: Path | str) -> Path | Mirror:
    if isinstance(where, Path):
        return where
    folder = settings.mirrors.absolute()
    return Mirror(where, folder, files=settings.mirror_files, offline=settings.offline)


def work_tree_here() -> tuple[Path, ...]:
    """The work tree around the current directory: what a command that only looks is about where no repository is
    configured. Empty outside of one."""
    here = Path.cwd()
    return tuple(folder for folder in (here, *here.parents) if (folder / ".git").exists())[:1]
