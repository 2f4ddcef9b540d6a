"""Rows of another store, of which it is known what becomes of them."""

from __future__ import annotations

from typing import Any

# 25 different words, so that two which differ in one of them are 24/26 alike, over the threshold.
LONG = (
    "the report job reads forty tables in order and writes one file for each of them to shelf two"
    " at {} sharp every day"
)
ROWS: list[dict[str, Any]] = [
    {"text": "Tea is at four.", "id": 1},
    {"text": "The hall is cold.", "id": 2},
    {"text": "tea is at FOUR", "id": 3},
    {"text": "I think the archive is full.", "id": 4},
    {"text": LONG.format("05:30"), "id": 5},
    {"text": LONG.format("06:30"), "id": 6},
    {"text": "The import usually takes an hour.", "id": 7},
    {"text": "Tea is at four.", "user_id": "bob", "id": 8},
]
