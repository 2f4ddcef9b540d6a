"""The architecture decision records of one repository, as committed.

Records are read from the tree of the protected ref (`refs`), never from the work tree: whoever can write files there
could make up a record and cite it. A file that exists only in the work tree is still found, so that a person sees why
it does not count.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import NamedTuple

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.source import Standing
from vouchgate.ingest.sources.git.adr_links import Links, Ref
from vouchgate.ingest.sources.git.adr_status import Statement, adr_id, file_number, in_folder
from vouchgate.ingest.sources.git.adr_text import is_record, parse
from vouchgate.ingest.sources.git.record_dirs import POINTERS, USUAL, RecordDirectories, named_by
from vouchgate.ingest.sources.git.refs import Tip, added_elsewhere
from vouchgate.ingest.sources.git.repository import Repository, SourceError
from vouchgate.ingest.sources.patterns import PathPatterns

LARGEST = 1_048_576  # bytes of one record; a larger file is not read
NO_SIZE = "BAD"  # what `git ls-tree` has for the size of an object that is not here
_AT_ONCE = 8_388_608  # bytes of records held in memory at one time
_MOST_FILES = 20_000  # files of a work tree that are looked at for an uncommitted record
_MOST_POINTERS = 50  # files that name a directory of records
_POINTER_BYTES = 4_096
_LINK, _SUBMODULE = "120000", "160000"


class _Entry(NamedTuple):
    # A plain tuple, because a tree may have a great many.
    mode: str
    object_id: str
    path: str


class AdrRecord(Frozen):
    """A record in a tree. `obstacle` says why its text is not read: a link, or too large."""

    path: str
    object_id: str
    heading_number: int | None = None
    statement: Statement | None = None
    supersedes: tuple[int, ...] = ()
    links: Links = Links()
    obstacle: str | None = None

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers this record goes by: one, unless file name and heading disagree."""
        both = (file_number(self.path), self.heading_number)
        return frozenset(number for number in both if number is not None)

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return PurePosixPath(self.path).stem

    @property
    def id(self) -> str:
        """What it is called: `ADR-003`, or its file's name where it has no number."""
        return adr_id(min(self.numbers)) if self.numbers else self.stem

    @property
    def is_in_force(self) -> bool:
        """Whether it was read, and its own words say that it holds."""
        if self.obstacle is not None:
            return False
        return self.statement is None or self.statement.standing is Standing.IN_FORCE


class AdrIndex:
    """All records of one tree, by number. `holds` tells which paths may be of one, `links` are ADR directories that are
    links or submodules, `looked_in` says where records were looked for."""

    def __init__(
        self,
        tree: str,
        records: Sequence[AdrRecord],
        holds: Callable[[str], bool],
        links: Sequence[str],
        looked_in: str,
    ) -> None:
        self.tree = tree
        self.records = tuple(records)
        self.holds = holds
        self.links = tuple(links)
        self.looked_in = looked_in
        self._by_path = {record.path: record for record in records}
        self._by_number: dict[int, list[AdrRecord]] = {}
        self._by_stem: dict[str, list[AdrRecord]] = {}
        self._superseding: dict[int, str] = {}
        for record in records:
            self._by_stem.setdefault(record.stem.casefold(), []).append(record)
            for number in record.numbers:
                self._by_number.setdefault(number, []).append(record)
            # One that is itself only proposed, or over, ends nothing.
            if record.is_in_force:
                for number in set(record.supersedes) - record.numbers:
                    self._superseding[number] = record.id
        self._changing: dict[str, dict[str, AdrRecord]] = {}  # by the path of the record that is changed
        for record in records:
            if record.is_in_force and not any(number in self._superseding for number in record.numbers):
                for target in self._changed_by_own_word(record):
                    self._changing.setdefault(target.path, {})[record.path] = record

    @property
    def has_records(self) -> bool:
        """Whether anything here is a record for certain, so that one that is not here does not exist."""
        return any(record.numbers or record.statement for record in self.records)

    def numbered(self, number: int) -> tuple[AdrRecord, ...]:
        """The records that go by this number."""
        return tuple(self._by_number.get(number, ()))

    def at(self, path: str) -> AdrRecord | None:
        """The record in the file at this path."""
        return self._by_path.get(path)

    def called(self, name: str) -> tuple[AdrRecord, ...]:
        """The records whose files have this name, wherever they lie."""
        stem = PurePosixPath(name).stem.casefold()
        return tuple(each for each in self._by_stem.get(stem, ()) if PurePosixPath(each.path).name == name)

    def amending(self, record: AdrRecord) -> dict[str, AdrRecord | None]:
        """The records in force that say they change this one, or of which it says so, by their names; None for one that
        only it knows of."""
        found: dict[str, AdrRecord | None] = {
            other.id: other for other in self._changing.get(record.path, {}).values()
        }
        for ref in record.links.changed_by:
            others = [other for other in self._named(ref) if other.path != record.path]
            if not others:
                found.setdefault(adr_id(ref.number) if ref.number is not None else ref.stem, None)
            found |= {other.id: other for other in others if other.is_in_force}
        return dict(sorted(found.items()))

    def _named(self, ref: Ref) -> Sequence[AdrRecord]:
        if ref.number is not None:
            return self._by_number.get(ref.number, ())
        return self._by_stem.get(ref.stem, ())

    def _changed_by_own_word(self, record: AdrRecord) -> Iterator[AdrRecord]:
        for ref in record.links.changes:
            yield from (other for other in self._named(ref) if other.path != record.path)
        for ref in record.links.recalls:
            # Only what came before it can be recalled.
            later = max(record.numbers, default=0)
            yield from (other for other in self._named(ref) if max(other.numbers, default=later) < later)

    def superseding(self, number: int) -> str | None:
        """A record in force that says it supersedes this number, by its own name; or None."""
        return self._superseding.get(number)


def read_blob(repository: Repository, object_id: str) -> bytes:
    """The bytes of a file in the object store. Raises SourceError when they are not what the id says."""
    data = repository.ask("cat-file", "blob", object_id)
    _check(repository, object_id, data)
    return data


def read_blobs(repository: Repository, object_ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The bytes of files in the object store, read by one command. Raises SourceError as `read_blob` does."""
    if not object_ids:
        return
    asked = "\n".join(object_ids).encode() + b"\n"
    output = memoryview(repository.run("cat-file", "--batch", stdin=asked))
    at = 0
    for object_id in object_ids:
        header = bytes(output[at : at + 200]).partition(b"\n")[0]
        words = header.split()
        if len(words) != 3:
            raise SourceError("error", f"A file of {repository.name} cannot be read.")
        start = at + len(header) + 1
        data = bytes(output[start : start + int(words[2])])
        at = start + int(words[2]) + 1
        _check(repository, object_id, data)
        yield object_id, data


class AdrFiles:
    """The records of one repository. Parsed records are kept by the id of their content, and the list by the
    id of the tree, so a second look-up costs few git commands and a moved ref is seen at once."""

    def __init__(self, adr_dirs: Sequence[str], memory: PathPatterns) -> None:
        """`memory` are files that never vouch, and so are no records."""
        self._memory = memory
        self._configured = tuple(adr_dirs)
        self._lock = Lock()
        self._index: AdrIndex | None = None
        self._pages: dict[str, AdrRecord] = {}

    def index(self, repository: Repository, tree: str) -> AdrIndex:
        """The records of one tree. Raises SourceError."""
        # One thread parses, the others wait for it; not longer than their own time.
        if not self._lock.acquire(timeout=repository.remaining()):
            raise SourceError("timeout", f"Reading the ADRs of {repository.name} took too long.")
        try:
            if self._index is None or self._index.tree != tree:
                self._index = self._read(repository, tree)
            return self._index
        finally:
            self._lock.release()

    def _read(self, repository: Repository, tree: str) -> AdrIndex:
        listing = _listing(repository, tree)
        directories = self._directories_of(repository, listing)
        entries = [each for each in listing if directories.hold(each.path) and self._is_record(each.path)]
        if numbered := not entries:
            entries = [
                each for each in listing if directories.may_hold(each.path) and self._is_record(each.path)
            ]
        files = {each.path: each.object_id for each in entries if each.mode not in {_LINK, _SUBMODULE}}
        self._parse_new(repository, {object_id: path for path, object_id in files.items()})
        records = [
            self._pages[object_id].model_copy(update={"path": path}) for path, object_id in files.items()
        ]
        if numbered and not any(record.statement for record in records):
            records = []  # numbered like records, but none of them has a status
        records = [
            one.model_copy(update={"statement": in_folder(one.path, one.statement)}) for one in records
        ]
        records += [
            AdrRecord(
                path=each.path,
                object_id=each.object_id,
                obstacle="is a symbolic link, which is not followed",
            )
            for each in entries
            if each.mode == _LINK
        ]
        self._pages = {object_id: self._pages[object_id] for object_id in files.values()}
        links = [
            each.path
            for each in listing
            if each.mode in {_LINK, _SUBMODULE} and directories.lead_through(each.path)
        ]
        holds = directories.may_hold if numbered else directories.hold
        return AdrIndex(tree, records, holds, links, directories.describe())

    def _is_record(self, path: str) -> bool:
        return is_record(path) and not self._memory.match(path)

    def _directories_of(self, repository: Repository, listing: Sequence[_Entry]) -> RecordDirectories:
        if self._configured:
            return RecordDirectories(self._configured, {})
        pointers = {
            entry.object_id: entry.path
            for entry in listing
            if entry.path.endswith(POINTERS)
            and PurePosixPath(entry.path).name in POINTERS
            and entry.mode not in {_LINK, _SUBMODULE}
        }
        pointed: dict[str, tuple[str, ...]] = {}
        some = list(pointers)[:_MOST_POINTERS]
        for object_id, length in _sizes(repository, some) if some else ():
            if length <= _POINTER_BYTES:
                text = read_blob(repository, object_id).decode(errors="replace")
                pointed[pointers[object_id]] = named_by(pointers[object_id], text)
        return RecordDirectories((), pointed)

    def _parse_new(self, repository: Repository, files: dict[str, str]) -> None:
        new = [object_id for object_id in files if object_id not in self._pages]
        if not new:
            return
        batch: list[str] = []
        size = 0
        for object_id, length in _sizes(repository, new):
            if length > LARGEST:
                self._pages[object_id] = AdrRecord(
                    path="", object_id=object_id, obstacle="is larger than 1 MiB, and was not read"
                )
                continue
            if size + length > _AT_ONCE:
                self._parse_batch(repository, batch)
                batch, size = [], 0
            batch.append(object_id)
            size += length
        self._parse_batch(repository, batch)

    def _parse_batch(self, repository: Repository, batch: Sequence[str]) -> None:
        for object_id, data in read_blobs(repository, batch):
            # What was parsed stays parsed when time runs out, so that a later look-up gets further.
            repository.remaining()
            self._pages[object_id] = _record(object_id, data)

    def uncommitted(self, repository: Repository, index: AdrIndex | None, number: int) -> str | None:
        """A file of the work tree with this number, for when the tree that is read (`index`) has none; its path, or
        None. Only directories that have records, or have their usual names, are looked at."""
        if repository.work_tree is None:
            return None
        root = repository.work_tree.resolve()
        holds = index.holds if index else RecordDirectories(self._configured, {}).may_hold
        seen = 0
        for name in self._places(index):
            start = (root / name).resolve()
            if not start.is_relative_to(root):
                continue
            for directory, subdirectories, files in os.walk(start, followlinks=False):
                subdirectories[:] = [sub for sub in subdirectories if sub != ".git"]
                seen += len(files) + 1
                if seen > _MOST_FILES:
                    return None
                repository.remaining()
                for file in files:
                    path = Path(directory) / file
                    if not is_record(file) or file_number(file) != number or path.is_symlink():
                        continue
                    if holds(relative := path.relative_to(root).as_posix()):
                        return relative
        return None

    def unmerged(self, repository: Repository, index: AdrIndex, tip: Tip, number: int) -> str | None:
        """The path of a record with this number on a ref that is not merged, for when `index` has none; or None."""
        added = added_elsewhere(repository, tip, *self._places(index))
        fits = (
            path for path in added if is_record(path) and file_number(path) == number and index.holds(path)
        )
        return next(fits, None)

    def _places(self, index: AdrIndex | None) -> Sequence[str]:
        """The directories that have records, or have their usual names."""
        known = {str(PurePosixPath(record.path).parent) for record in (index.records if index else ())}
        return self._configured or sorted({*known, *USUAL})


def text_of(data: bytes) -> str | None:
    """The text of a record; None when it is not text in an encoding that shows its status."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return None if b"\x00" in data else data.decode("utf-8", errors="replace")


def _record(object_id: str, data: bytes) -> AdrRecord:
    text = text_of(data)
    if text is None:
        return AdrRecord(path="", object_id=object_id, obstacle="is not text")
    page = parse(text)
    return AdrRecord(
        path="",
        object_id=object_id,
        heading_number=page.number,
        statement=page.statement,
        supersedes=page.supersedes,
        links=page.links,
    )


def _listing(repository: Repository, tree: str) -> list[_Entry]:
    """Every file of a tree, from one command."""
    output = repository.run("ls-tree", "-r", "-z", "--full-tree", tree)
    entries: list[_Entry] = []
    for line in output.decode(errors="replace").split("\x00"):
        description, _, path = line.partition("\t")
        if path:
            mode, _, object_id = description.split()
            entries.append(_Entry(mode, object_id, path))
    return entries


def _sizes(repository: Repository, object_ids: Sequence[str]) -> Iterator[tuple[str, int]]:
    output = repository.run("cat-file", "--batch-check", stdin="\n".join(object_ids).encode() + b"\n")
    lines = output.decode().splitlines()
    if len(lines) != len(object_ids):
        raise SourceError("error", f"The ADR files of {repository.name} cannot be read.")
    for object_id, line in zip(object_ids, lines, strict=True):
        words = line.split()
        if len(words) != 3:
            raise SourceError("error", f"An ADR file of {repository.name} is missing from its object store.")
        yield object_id, int(words[2])


def _check(repository: Repository, object_id: str, data: bytes) -> None:
    if object_digest(object_id, "blob", data) != object_id:
        raise SourceError("error", f"An object of {repository.name} is not what its id says: {object_id}.")


def object_digest(object_id: str, kind: str, data: bytes) -> str:
    """The id that git gives an object of this kind and content, in the same hash as `object_id`."""
    hasher = hashlib.sha256() if len(object_id) == 64 else hashlib.sha1(usedforsecurity=False)
    hasher.update(f"{kind} {len(data)}\x00".encode())
    hasher.update(data)
    return hasher.hexdigest()
