"""Files that are there whole, whatever happens while they are written."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(path: Path, data: bytes) -> None:
    """Puts `data` in place of what is at `path`: on disk before this returns, and at no moment anything between the old
    and the new."""
    made = path.with_name(f"{path.name}.new")
    with made.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    made.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
