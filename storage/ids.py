"""Ids: a word for what it names, then 32 hex digits that sort by time (the layout of UUID version 7)."""

from __future__ import annotations

import secrets
from datetime import datetime


def new_id_suffix(now: datetime) -> str:
    """32 hex digits: 48 bits of milliseconds since 1970, then version, variant and 74 random bits."""
    milliseconds = int(now.timestamp() * 1000)
    low = secrets.randbits(74)
    value = (milliseconds << 80) | (0x7 << 76) | ((low >> 62) << 64) | (0b10 << 62) | (low & ((1 << 62) - 1))
    return f"{value:032x}"


def decision_id(suffix: str) -> str:
    """Id of a decision."""
    return f"dec_{suffix}"


def memory_id(suffix: str) -> str:
    """Id of a memory; it shares its suffix with the decision that stored it."""
    return f"mem_{suffix}"


def queue_id(suffix: str) -> str:
    """Id of a pending item; it shares its suffix with the decision that queued it."""
    return f"rev_{suffix}"
