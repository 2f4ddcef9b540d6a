"""A file that lines are added to, which are there whole or not at all."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_PRIVATE = 0o600


def append_line(path: Path, line: str) -> None:
    """Adds a line, which is on disk when this returns. A file that is made is readable for its owner alone. Raises
    OSError."""
    new = not path.exists()
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, _PRIVATE)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # of several processes, one at a time
        _append(file, line)
    finally:
        os.close(file)
    if new:
        _sync_folder(path.parent)


def _append(file: int, line: str) -> None:
    """On a line of its own, also after one that was torn. A disk that is full takes a part of it, without an error."""
    before = os.fstat(file).st_size
    ended = before == 0 or os.pread(file, 1, before - 1) == b"\n"
    left = (("" if ended else "\n") + line + "\n").encode()
    try:
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    except OSError:
        os.ftruncate(file, before)
        raise


def _sync_folder(path: Path) -> None:
    """Has it on disk which files a folder has."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
