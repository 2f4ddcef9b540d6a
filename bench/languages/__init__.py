"""Sentences and pairs of memories in other languages, labelled before there were rules for them.

Rows whose `sha256(id)` is even are looked at while words are added; the others are held back, and scored at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
CODES = ("de", "es", "fr", "ja", "pt", "zh")


def is_held(row_id: str) -> bool:
    """Whether a row is of the half that is held back."""
    return sha256(row_id.encode()).digest()[-1] % 2 == 1


def rows_of(name: str, *, held: bool) -> Iterator[dict[str, Any]]:
    """The rows of one half of a file: `de`, or `de_pairs`."""
    for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if is_held(row["id"]) is held:
            yield row
