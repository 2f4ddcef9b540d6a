"""The architecture decision records of one repository, as committed.

Records are read from the tree of HEAD, never from the work tree: whoever can write files there could make
up a record and cite it, and a commit is the least that shows it was meant to be kept. A file that exists only
in the work tree is still found, so that a person sees why it does not count.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from threading import Lock

from vouchgate.ingest.claims.types import Frozen, Standing
from vouchgate.ingest.sources.git.adr_status import Statement, adr_id
from vouchgate.ingest.sources.git.adr_text import file_number, is_record, parse
from vouchgate.ingest.sources.git.repository import Repository, SourceError

LARGEST = 1_048_576  # bytes of one record; a larger file is not read
_AT_ONCE = 8_388_608  # bytes of records held in memory at one time
_MOST_FILES = 20_000  # files of a work tree that are looked at for an uncommitted record
_LINK, _SUBMODULE = "120000", "160000"


class AdrRecord(Frozen):
    """A record in the tree of HEAD. `obstacle` says why its text is not read: a link, or too large."""

    path: str
    object_id: str
    heading_number: int | None = None
    statement: Statement | None = None
    supersedes: tuple[int, ...] = ()
    obstacle: str | None = None

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers this record goes by: one, unless file name and heading disagree."""
        both = (file_number(self.path), self.heading_number)
        return frozenset(number for number in both if number is not None)


class AdrIndex:
    """All records of one tree, by number. `links` are ADR directories that are links or submodules."""

    def __init__(self, tree: str, records: Sequence[AdrRecord], links: Sequence[str]) -> None:
        self.tree = tree
        self.records = tuple(records)
        self.links = tuple(links)
        self._by_number: dict[int, list[AdrRecord]] = {}
        self._superseding: dict[int, str] = {}
        for record in records:
            for number in record.numbers:
                self._by_number.setdefault(number, []).append(record)
            # One that is itself only proposed, or over, ends nothing.
            if record.statement is None or record.statement.standing is Standing.IN_FORCE:
                for number in set(record.supersedes) - record.numbers:
                    name = adr_id(min(record.numbers)) if record.numbers else PurePosixPath(record.path).stem
                    self._superseding[number] = name

    def numbered(self, number: int) -> tuple[AdrRecord, ...]:
        """The records that go by this number."""
        return tuple(self._by_number.get(number, ()))

    def superseding(self, number: int) -> str | None:
        """A record in force that says it supersedes this number, by its own name; or None."""
        return self._superseding.get(number)


def checked_directories(adr_dirs: Sequence[str]) -> tuple[str, ...]:
    """ADR directories in one spelling. Raises ValueError for one that is not inside the repository."""
    checked: list[str] = []
    for name in adr_dirs:
        path = PurePosixPath(name.replace("\\", "/"))
        if not name.strip() or "\x00" in name or path.is_absolute() or ".." in path.parts or ":" in name:
            raise ValueError(f"The ADR directory {name!r} is not a relative path inside a repository.")
        checked.append(str(path))
    return tuple(dict.fromkeys(checked))


def read_blob(repository: Repository, object_id: str) -> bytes:
    """The bytes of a file in the object store. Raises SourceError when they are not what the id says."""
    data = repository.run("cat-file", "blob", object_id)
    _check(repository, object_id, data)
    return data


class AdrFiles:
    """The records of one repository. Parsed records are kept by the id of their content, and the list by the
    id of HEAD's tree, so a second look-up costs two git commands and a moved HEAD is seen at once."""

    def __init__(self, adr_dirs: Sequence[str]) -> None:
        self._directories = tuple(adr_dirs)
        self._lock = Lock()
        self._index: AdrIndex | None = None
        self._pages: dict[str, AdrRecord] = {}

    def index(self, repository: Repository) -> AdrIndex | None:
        """The records of HEAD; None when there is no commit yet. Raises SourceError."""
        tree = _head_tree(repository)
        if tree is None:
            return None
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
        entries = list(self._entries(repository, tree))
        files = {path: object_id for mode, object_id, path in entries if mode not in {_LINK, _SUBMODULE}}
        self._parse_new(repository, {object_id: path for path, object_id in files.items()})
        records = [
            self._pages[object_id].model_copy(update={"path": path}) for path, object_id in files.items()
        ]
        records += [
            AdrRecord(path=path, object_id=object_id, obstacle="is a symbolic link, which is not followed")
            for mode, object_id, path in entries
            if mode == _LINK
        ]
        self._pages = {object_id: self._pages[object_id] for object_id in files.values()}
        return AdrIndex(tree, records, self._links(repository, tree))

    def _entries(self, repository: Repository, tree: str) -> Iterator[tuple[str, str, str]]:
        paths = [] if "." in self._directories else [f"{name}/" for name in self._directories]
        listing = repository.run("ls-tree", "-r", "-z", "--full-tree", tree, *paths)
        for entry in listing.decode(errors="replace").split("\x00"):
            description, _, path = entry.partition("\t")
            if path and is_record(path):
                mode, _, object_id = description.split()
                yield mode, object_id, path

    def _links(self, repository: Repository, tree: str) -> tuple[str, ...]:
        names = {PurePosixPath(name) for name in self._directories if name != "."}
        names |= {parent for name in names for parent in name.parents if str(parent) != "."}
        if not names:
            return ()
        listing = repository.run("ls-tree", "-z", "--full-tree", tree, *sorted(map(str, names)))
        entries = [entry.partition("\t") for entry in listing.decode(errors="replace").split("\x00") if entry]
        return tuple(path for what, _, path in entries if what.split()[0] in {_LINK, _SUBMODULE})

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
        if not batch:
            return
        output = memoryview(repository.run("cat-file", "--batch", stdin="\n".join(batch).encode() + b"\n"))
        at = 0
        for object_id in batch:
            header = bytes(output[at : at + 200]).partition(b"\n")[0]
            words = header.split()
            if len(words) != 3:
                raise SourceError("error", f"An ADR file of {repository.name} cannot be read.")
            start = at + len(header) + 1
            data = bytes(output[start : start + int(words[2])])
            at = start + int(words[2]) + 1
            _check(repository, object_id, data)
            # What was parsed stays parsed when time runs out, so that a later look-up gets further.
            repository.remaining()
            self._pages[object_id] = _record(object_id, data)

    def uncommitted(self, repository: Repository, number: int) -> str | None:
        """A file of the work tree with this number, for when the tree of HEAD has none; its path, or None."""
        if repository.work_tree is None:
            return None
        root = repository.work_tree.resolve()
        seen = 0
        for name in self._directories:
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
                    if is_record(file) and file_number(file) == number and not path.is_symlink():
                        return path.relative_to(root).as_posix()
        return None


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
    )


def _head_tree(repository: Repository) -> str | None:
    status, output, _ = repository.call("rev-parse", "-q", "--verify", "HEAD^{tree}", ok=(0, 1, 128))
    if status == 0:
        return output.decode().strip()
    status, output, _ = repository.call("rev-parse", "-q", "--verify", "HEAD", ok=(0, 1))
    if status == 0:
        raise SourceError("error", f"The newest commit of {repository.name} cannot be read.")
    if repository.run("for-each-ref", "--count=1"):
        raise SourceError("error", f"HEAD of {repository.name} points at a branch that does not exist.")
    return None


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
