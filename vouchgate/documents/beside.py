"""Links to files beside a document: what they are called in its repository."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.documents.types import Document, Reference
from vouchgate.ingest.sources.git.adr_status import file_number

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_LINES = re.compile(r"#L\d")


def with_files_beside(document: Document, root: Path | None) -> Document:
    """The document, whose links to files are citations of these files in the repository whose top is `root`."""
    place = path_in(document.name, root)
    return document if place is None else with_files_at(document, place)


def with_files_at(document: Document, place: str) -> Document:
    """The same for a document that is a file at this path of the repository, or would be."""
    folder = str(PurePosixPath(place).parent)

    def named(reference: Reference) -> Reference:
        if reference.dangling or not _is_link_to_file(reference, document.text):
            return reference
        return replace(reference, citation=_citation(folder, reference.target))

    claims = tuple(replace(each, references=tuple(map(named, each.references))) for each in document.claims)
    return replace(document, claims=claims, references=tuple(map(named, document.references)))


def work_tree_of(name: str, roots: Sequence[Path]) -> Path | None:
    """The top of the work tree that a file or folder lies in: the innermost of those at `roots`; else the one around
    it, which may be another copy of what is read. None outside of one."""
    inside = [root for root in roots if path_in(name, root) is not None]
    if inside or name == "-":
        return max(inside, key=lambda root: len(_real(root).parts), default=None)
    here = _real(name)
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)


def path_in(name: str, root: Path | None) -> str | None:
    """The path of a file in the work tree at `root`; None for one outside of it."""
    if root is None or name == "-":
        return None
    try:
        return _real(name).relative_to(_real(root)).as_posix()
    except (OSError, ValueError):
        return None


def _real(path: str | Path) -> Path:
    """What a path leads to, also where links lead in a circle; `Path.resolve` raises RuntimeError there."""
    return Path(os.path.realpath(path))


def is_itself(citation: Citation, own: str | None, reading: SourceReading | None = None) -> bool:
    """Whether a citation names the document that cites it, `own` its path in the repository: as a path, or as the
    record that was read there. Of one that was not read, the number in the document's name has to do."""
    if own is None:
        return False
    if citation.type == CitationType.ADR:
        if isinstance(reading, Found) and reading.path:
            return reading.path == own
        unread = reading is None or isinstance(reading, Found)  # or it names none, or several
        return unread and citation.key == f"adr:{file_number(own)}"
    return citation.type == CitationType.PATH and file_of(citation) == own


def file_of(citation: Citation) -> str:
    """The path of a file that is cited, without lines and commit."""
    return re.split(r"[:#@]", citation.value, maxsplit=1)[0]


def _is_link_to_file(reference: Reference, text: str) -> bool:
    """Whether it is a link to a file, written as it lies to the document: not a path that stands in the text, which is
    one from the top of the repository."""
    cited = reference.citation
    if _SCHEME.match(reference.target) or text[reference.start : reference.end] == reference.target:
        return False
    return cited is None or cited.type == CitationType.PATH


def _citation(folder: str, target: str) -> Citation | None:
    place, mark, lines = target.partition("#")
    kept = f"#{lines}" if _LINES.match(mark + lines) else ""
    path = unquote(place.partition("?")[0])
    if not path or path.endswith("/"):
        return None  # a part of the document itself, or a folder: no text that could vouch
    path = path.lstrip("/") if path.startswith("/") else posixpath.normpath(posixpath.join(folder, path))
    if path.startswith("../") or path in ("..", "."):
        return None
    try:
        return given_citation(CitationType.PATH, path + kept)
    except ValueError:
        return None
