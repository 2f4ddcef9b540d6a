"""Where architecture decision records lie in a tree, told by the names in it. Pure, and linear in them.

A directory holds records by its own name, because a file tells so (`.adr-dir` of adr-tools, `.log4brains.yml`), or
because the operator names it, and then no other does. A file that calls itself one (`adr-012-queues.md`) is a record
wherever it lies; and where there is none of all that, the numbered files of a directory `architecture` are.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

# Wherever they stand in the tree: the names that adr-tools, MADR, log4brains and public repositories use. "arch" means
# other things, too, and counts below a directory of documents only.
COMMON = (
    "adr",
    "adrs",
    "decision-records",
    "architecture-decisions",
    "architecture-decision-record",
    "architecture-decision-records",
    "decisions",
    "doc/arch",
    "docs/arch",
)
# Where a record that nobody has committed yet is most likely to be.
USUAL = tuple(
    f"{parent}{name}"
    for parent in ("", "doc/", "docs/", "docs/architecture/")
    for name in COMMON
    if "/" not in name
)
POINTERS = (".adr-dir", ".log4brains.yml")
# Below these, records are somebody else's, or made up for a test.
_ELSEWHERE = (
    "node_modules",
    "vendor",
    "third_party",
    "third-party",
    "site-packages",
    "test",
    "tests",
    "testdata",
    "fixtures",
    "templates",
)
_FOLDER_OF_BRAINS = re.compile(r"^\s{0,20}adrFolder:\s{0,20}['\"]?([^'\"#\n]{1,500})", re.MULTILINE)


def _directories(names: Sequence[str]) -> str:
    # A hyphen, an underscore or nothing at all: `architecture_decisions` is the same name.
    return "|".join(re.escape(name).replace(r"\-", "[-_]?") for name in names)


_COMMON = re.compile(rf"(?:^|/)(?:{_directories(COMMON)})/", re.IGNORECASE)
_IS_COMMON = re.compile(rf"(?:^|/)(?:{_directories(COMMON)})$", re.IGNORECASE)
_NOT_HERE = re.compile(rf"(?:^|/)(?:{_directories(_ELSEWHERE)})/", re.IGNORECASE)
# Three digits at least: chapters of a book on the architecture have two.
_CALLED_SO = re.compile(r"(?:^|/)adr[-_ ]?\d{1,6}[-_ .][^/]*$", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:^|/)architecture/\d{3,5}[-_ ][^/]*$", re.IGNORECASE)
_UPON_THE_WAY = re.compile(r"(?:^|/)(?:docs?|docs?/architecture|architecture)$", re.IGNORECASE)


def checked_directories(adr_dirs: Sequence[str]) -> tuple[str, ...]:
    """ADR directories in one spelling. Raises ValueError for one that is not inside the repository."""
    checked: list[str] = []
    for name in adr_dirs:
        path = PurePosixPath(name.replace("\\", "/"))
        if not name.strip() or "\x00" in name or path.is_absolute() or ".." in path.parts or ":" in name:
            raise ValueError(f"The ADR directory {name!r} is not a relative path inside a repository.")
        checked.append(str(path))
    return tuple(dict.fromkeys(checked))


def named_by(path: str, text: str) -> tuple[str, ...]:
    """The directories that the file at `path`, one of POINTERS, names relative to where it lies. One that would leave
    the repository is left out."""
    name = posixpath.basename(path)
    said = _FOLDER_OF_BRAINS.findall(text) if name == ".log4brains.yml" else text.splitlines()[:1]
    found: list[str] = []
    for one in said[:50]:
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), one.strip().replace("\\", "/")))
        if one.strip() and inside != ".." and not inside.startswith(("../", "/")):
            found.append(inside)
    return tuple(found)


class RecordDirectories:
    """Which paths of one tree lie in a directory of records. `configured` are the only ones where there are any;
    `pointed` are those that a file in the tree names, by the path of that file."""

    def __init__(self, configured: Sequence[str], pointed: Mapping[str, Sequence[str]]) -> None:
        self._configured = tuple(configured)
        self._pointed = {file: tuple(names) for file, names in pointed.items()}
        exact = self._configured or [name for names in self._pointed.values() for name in names]
        self._everywhere = "." in exact
        self._exact = tuple(f"{name}/" for name in dict.fromkeys(exact))

    def hold(self, path: str) -> bool:
        """Whether a file with this path is in one of them, or in a directory below one."""
        if self._everywhere or path.startswith(self._exact):
            return True
        if self._configured:
            return False
        common = _COMMON.search(path) is not None or _CALLED_SO.search(path) is not None
        return common and _NOT_HERE.search(path) is None

    def may_hold(self, path: str) -> bool:
        """The same, in a tree of which `hold` says so of no file."""
        numbered = not self._configured and _NUMBERED.search(path) is not None
        return self.hold(path) or (numbered and _NOT_HERE.search(path) is None)

    def lead_through(self, path: str) -> bool:
        """Whether one of them may lie behind the link or submodule at this path, where nobody looks."""
        if any(name.startswith(f"{path}/") for name in self._exact):
            return True
        if self._configured or _NOT_HERE.search(f"{path}/"):
            return False
        return (_IS_COMMON.search(path) or _UPON_THE_WAY.search(path)) is not None

    def describe(self) -> str:
        """Where was looked, for a sentence."""
        if self._configured:
            return ", ".join(self._configured)
        named = [f"{name} ({file})" for file, names in self._pointed.items() for name in names]
        return ", ".join([*named, "every directory with a common name, such as docs/adr or docs/decisions"])
