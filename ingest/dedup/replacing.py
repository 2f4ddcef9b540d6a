"""Whether a memory says that it takes the place of an earlier one."""

from __future__ import annotations

import re

from vouchgate.ingest.data import read_data

_REPLACING = re.compile(
    r"\b(?:" + "|".join(re.escape(words) for words in read_data("memories.toml")["replacing"]) + r")\b",
    re.IGNORECASE,
)


def says_it_replaces(text: str) -> bool:
    """Whether there are words that tell of a change: of two memories that say different things, one that has them is an
    update of the other."""
    return _REPLACING.search(" ".join(text.split())) is not None
