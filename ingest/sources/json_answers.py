"""Parts of JSON questions and answers that a TOML file describes: where something lies, and what stands there. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def filled(template: str, groups: Mapping[str, str | None]) -> bytes:
    """A JSON text with the groups in `<brackets>`: braces belong to the JSON."""
    for group, value in groups.items():
        template = template.replace(f"<{group}>", json.dumps(value or "")[1:-1])
    return template.encode()


def at(document: Any, path: str) -> Any:
    """What lies at `fields.summary`, or `data.nodes.0.title`; None where nothing does."""
    for step in filter(None, path.split(".")):
        if isinstance(document, list):
            document = document[int(step)] if step.isdecimal() and int(step) < len(document) else None
        else:
            document = document.get(step) if isinstance(document, dict) else None
    return document


def text_of(value: Any) -> str:
    """A text; of what is made of parts, as a document of Jira's newer API is, the texts in it."""
    if isinstance(value, str):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "\n".join(filter(None, (text_of(part) for part in parts)))


def time_of(value: Any) -> datetime | None:
    """A moment written as ISO 8601, without a zone in UTC; None for all else."""
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
