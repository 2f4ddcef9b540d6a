"""The documents of one folder. What lies there is somebody else's: no link is followed, nothing but a regular file is
opened, nothing large is read, and a folder of any size and depth ends in time."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from vouchgate.ingest.citations.kinds.corpus import ENDINGS, is_path
from vouchgate.ingest.sources.answers import NoAnswer

LARGEST = 2_000_000  # bytes of one document, as of a page
MOST_DOCUMENTS = 100_000  # of one corpus
MOST_ENTRIES = 1_000_000  # files and folders of one corpus that are looked at
DEEPEST = 64  # folders in one another
_LOOK_AT_CLOCK = 1_000  # entries
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# A pipe that nobody writes to must not keep anybody waiting.
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Version(NamedTuple):
    """What changes when a file does."""

    size: int
    changed_ns: int
    inode: int


class Listing(NamedTuple):
    """The documents of a folder by path. `left_out` says why others are not read, and how many."""

    documents: dict[str, Version]
    left_out: tuple[tuple[str, int], ...]


class FileRead(NamedTuple):
    """A document's bytes, and when it was changed."""

    data: bytes
    changed: datetime


def list_folder(folder: Path, deadline: float) -> Listing:
    """The documents in `folder` and below, but for folders whose name begins with a dot. Raises NoAnswer when it cannot
    be listed until `deadline` (`time.monotonic()`)."""
    documents: dict[str, Version] = {}
    left_out: Counter[str] = Counter()
    waiting: list[tuple[str, ...]] = [()]
    entries = 0
    while waiting:
        parts = waiting.pop()
        try:
            with _opened(folder, parts) as at, os.scandir(at) as listed:
                for entry in listed:
                    entries += 1
                    if entries % _LOOK_AT_CLOCK == 0:
                        _in_time(folder, deadline)
                    if entries > MOST_ENTRIES or len(documents) >= MOST_DOCUMENTS:
                        left_out[f"what comes after the first {len(documents):,} documents"] = 1
                        return Listing(documents, tuple(sorted(left_out.items())))
                    if entry.is_dir(follow_symlinks=False):
                        if len(parts) >= DEEPEST:
                            left_out["a folder too deep in others"] += 1
                        elif not entry.name.startswith("."):
                            waiting.append((*parts, entry.name))
                    elif entry.name.lower().endswith(ENDINGS):
                        path = "/".join((*parts, entry.name))
                        version = _version_of(entry, path)
                        if isinstance(version, Version):
                            documents[path] = version
                        else:
                            left_out[version] += 1
        except OSError as error:
            if not parts:
                raise _unusable(folder, error) from error
            left_out["a folder that cannot be read"] += 1
        _in_time(folder, deadline)
    return Listing(documents, tuple(sorted(left_out.items())))


def _version_of(entry: os.DirEntry[str], path: str) -> Version | str:
    """The version of a document, or why it is none."""
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return "gone while the folder was listed"
    return _obstacle(path, found) or Version(found.st_size, found.st_mtime_ns, found.st_ino)


def _obstacle(path: str, found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "a link, or no regular file"
    if found.st_size > LARGEST:
        return f"larger than {LARGEST:,} bytes"
    return None if is_path(path) else "its name cannot be cited"


def read_document(folder: Path, path: str) -> FileRead | None:
    """The bytes of the document at this path; None when it is not there. Raises NoAnswer for what is there and not
    read, and where nobody can tell."""
    *parts, name = path.split("/")
    try:
        with _opened(folder, parts) as at:
            _check(path, os.stat(name, dir_fd=at, follow_symlinks=False))
            with os.fdopen(os.open(name, _FILE, dir_fd=at), "rb") as opened:
                found = os.fstat(opened.fileno())  # of what was opened, which may be another by now
                _check(path, found)
                data = opened.read(LARGEST + 1)
    except FileNotFoundError as error:
        if folder.is_dir():
            return None
        raise _unusable(folder, error) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise NoAnswer("not_supported", f"{path} is a link, or lies behind one.") from error
        raise NoAnswer("error", f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > LARGEST:
        raise NoAnswer("not_supported", f"{path} grew while it was read.")
    return FileRead(data, datetime.fromtimestamp(found.st_mtime, UTC))


def _check(path: str, found: os.stat_result) -> None:
    if (why := _obstacle(path, found)) is not None:
        raise NoAnswer("not_supported", f"{path} is not read: {why}.")


@contextmanager
def _opened(folder: Path, parts: Sequence[str]) -> Iterator[int]:
    """A folder below, opened step by step, so that none of the steps is a link. Raises OSError."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # the operator's own path may be a link
    try:
        for part in parts:
            below = os.open(part, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def _in_time(folder: Path, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise NoAnswer("timeout", f"Listing {folder.name} took too long.")


def _unusable(folder: Path, error: OSError) -> NoAnswer:
    return NoAnswer("error", f"The folder {folder.name} cannot be read: {error.strerror}.")
