"""Ids: a word for what it names, then 32 hex digits that sort by time (the layout of UUID version 7)."""

from __future__ import annotations

import os
import re
from datetime import datetime
from random import Random

ID = re.compile(r"(?:mem|rev|dec|rec)_[0-9a-f]{32}")  # of what is kept of claims, in any text
# Ids need to be different, not secret: who may see what is asked of every request. The system's generator
# gives up the interpreter for each number, and under load waits to get it back.
_random = Random()  # noqa: S311
if hasattr(os, "register_at_fork"):  # where there is no fork there is nothing to do
    os.register_at_fork(after_in_child=_random.seed)


def new_id_suffix(now: datetime) -> str:
    """32 hex digits: 48 bits of milliseconds since 1970, then version, variant and 74 random bits."""
    milliseconds = int(now.timestamp() * 1000)
    low = _random.getrandbits(74)
    value = (milliseconds << 80) | (0x7 << 76) | ((low >> 62) << 64) | (0b10 << 62) | (low & ((1 << 62) - 1))
    return f"{value:032x}"


def decision_id(suffix: str) -> str:
    """Id of a decision."""
    return f"dec_{suffix}"


def first_decision_id(at: datetime) -> str:
    """What every id of a decision made at that time or later is not less than."""
    return decision_id(f"{int(at.timestamp() * 1000):012x}")


def memory_id(suffix: str) -> str:
    """Id of a memory; it shares its suffix with the decision that stored it."""
    return f"mem_{suffix}"


def queue_id(suffix: str) -> str:
    """Id of a pending item; it shares its suffix with the decision that queued it."""
    return f"rev_{suffix}"


def document_id(suffix: str) -> str:
    """Id of a document that is to be checked."""
    return f"doc_{suffix}"


def webhook_id(suffix: str) -> str:
    """Id of a webhook."""
    return f"hook_{suffix}"


def sink_id(suffix: str) -> str:
    """Id of a webhook that is told of memories. No claim may name a sink that begins like it."""
    return f"sink_{suffix}"


def ruling_id(suffix: str) -> str:
    """Id of a standing ruling."""
    return f"ruling_{suffix}"


def mail_id(suffix: str) -> str:
    """Id of a digest by mail."""
    return f"mail_{suffix}"


def erasure_id(suffix: str) -> str:
    """Id of an erasure."""
    return f"ers_{suffix}"
