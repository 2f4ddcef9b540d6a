"""The memory of the process that others are forked from, in large pages: a fork copies a table of its pages, and the
end of each that was forked takes the copy apart, which is most of the time of one that does little."""

from __future__ import annotations

import ctypes
from pathlib import Path

SIZE = 1 << 21
_COLLAPSE = 25  # MADV_COLLAPSE of Linux; another system, or an earlier Linux, goes on with the pages it has


def use_large_pages() -> None:
    """Makes large pages of what this process has written so far, where the system can."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for place, rights, _, _, _, *name in map(str.split, maps.read_text().splitlines()):
        if rights == "rw-p" and name in ([], ["[heap]"]):
            start, end = (int(each, 16) for each in place.split("-"))
            for page in range(-(-start // SIZE) * SIZE, end - SIZE + 1, SIZE):
                madvise(page, SIZE, _COLLAPSE)
