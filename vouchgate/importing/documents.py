"""Documents as memories: each sentence of a memory file, such as CLAUDE.md or MEMORY.md, is a row."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from vouchgate.documents.beside import is_itself, path_in, with_files_beside
from vouchgate.documents.files import content_of, documents_in
from vouchgate.documents.report import Lines
from vouchgate.importing import rows
from vouchgate.importing.rows import BadRow, ImportRow
from vouchgate.ingest.documents import (
    BlockKind,
    DocumentClaim,
    Reason,
    Unreadable,
    read_document,
)
from vouchgate.ingest.documents.classify import asserts
from vouchgate.ingest.documents.verdict import cited_by

# At the top of each report of an audit, by which it is told from a memory.
REPORT_MARK = "<!-- A report of vouchgate, and no memory -->"
_MARKED = re.compile(rb"\s*(?:<!doctype html>\s*)?" + re.escape(REPORT_MARK.encode()))
_MARKED_BYTES = 200  # in which it stands
_ORIGIN_CHARACTERS = 80
# What no agent takes for a memory. Orders, opinions and questions it does: "Never push on Fridays" is what such a file
# is kept for, and an order to a model is what an audit looks for.
_NO_MEMORY = frozenset({Reason.HEADING, Reason.CODE})


def is_report(head: bytes) -> bool:
    """Whether a document that begins so is a report of an audit: it has the sentences of the memory in it."""
    return _MARKED.match(head[:_MARKED_BYTES]) is not None


def split_reports(folder: Path) -> tuple[list[Path], list[Path]]:
    """The documents in a folder that are memories, and those that are reports of an audit."""
    memories, reports = list[Path](), list[Path]()
    try:
        files = documents_in(folder)
    except Unreadable as error:
        raise rows.Unreadable(f"{folder}: cannot be read: {error}") from error
    for file in files:
        try:
            with file.open("rb") as stream:
                report = is_report(stream.read(_MARKED_BYTES))
        except OSError:
            report = False  # told when it is read
        (reports if report else memories).append(file)
    return memories, reports


def name_in(folder: Path, file: Path) -> str:
    """What a file in a folder is called: by its path from there, which need not be UTF-8."""
    return file.relative_to(folder).as_posix().encode(errors="replace").decode()


def folder_rows(folder: Path, files: Iterable[Path], root: Path | None) -> Iterator[ImportRow | BadRow]:
    """What these documents in a folder say."""
    for file in files:
        name = name_in(folder, file)
        try:
            content = content_of(str(file))
        except Unreadable as error:
            yield BadRow(name, f"cannot be read: {error}")
        else:
            yield from document_rows(str(file), name, content, root)


def document_rows(path: str, name: str, content: bytes, root: Path | None) -> Iterator[ImportRow | BadRow]:
    """What one document says; its links to files are files of the repository whose top is `root`. One bad row where it
    is no document."""
    try:
        document = with_files_beside(read_document(path, content), root)
    except Unreadable as error:
        yield BadRow(name, f"cannot be read: {error}")
        return
    own, lines = path_in(path, root), Lines(document.text)
    claims, before = {claim.start: claim for claim in document.claims}, 0
    for block in document.blocks:
        if block.kind is BlockKind.MARKUP or block.reason in _NO_MEMORY:
            continue
        line, column = lines.at(block.start)
        place = f"{name}:{line}" if line != before else f"{name}:{line}:{column}"
        before = line
        claim = claims.get(block.start)
        if claim is None:
            said = " ".join(document.text[block.start : block.end].split())
            yield ImportRow(place, said, metadata={"file": name}, origin=_origin(name))
        else:
            yield _row_of(claim, place, name, own)


def _row_of(claim: DocumentClaim, place: str, name: str, own: str | None) -> ImportRow:
    """A claim with what is to vouch for it. An item that is no sentence by itself has its lead-in before it, as
    context: repeated before each sentence it would make them alike."""
    lead = f"{claim.lead} " if claim.lead and not asserts(claim.text) else ""
    cited = {each.key: each for each in cited_by(claim) if not is_itself(each, own)}
    section = {"section": " / ".join(claim.section)} if claim.section else {}
    return ImportRow(
        place,
        lead + claim.text,
        citations=[{"type": each.type, "value": each.value} for each in cited.values()],
        metadata={"file": name, **section},
        origin=_origin(name),
        context=len(lead),
    )


def _origin(name: str) -> str:
    return posixpath.basename(name)[:_ORIGIN_CHARACTERS] if len(name) > _ORIGIN_CHARACTERS else name
