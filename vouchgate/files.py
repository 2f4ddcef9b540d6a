"""Files that are there whole, whatever happens while they are written."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def write_durably(path: Path, data: bytes) -> None:
    """Puts `data` in place of what is at `path`, whose mode stays: on disk before this returns, and at no moment
    anything between the old and the new. What cannot be written leaves nothing behind. Raises OSError."""
    made = path.with_name(f"{path.name}.new")
    try:
        with made.open("wb") as file:
            if path.exists():  # before anything is in it: the old may be one that nobody else is to read
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    except OSError:
        made.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
