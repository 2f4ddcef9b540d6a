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
    """A text; of a document of Jira's newer API as Markdown, and of what else is made of parts the texts in it."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value.get("type") == "doc":
        return _document(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "\n".join(filter(None, (text_of(part) for part in parts)))


def _document(node: Any) -> str:
    """A node of the Atlassian Document Format. What is struck out is left out."""
    attributes, marks, content = (node.get(name) for name in ("attrs", "marks", "content"))
    attributes = attributes if isinstance(attributes, dict) else {}
    parts = [_document(part) for part in content or () if isinstance(part, dict)]
    together, blocks = "".join(parts), "\n\n".join(filter(None, parts))
    level = attributes.get("level")
    match node.get("type"):
        case "text":
            said = "" if {"type": "strike"} in (marks or ()) else str(node.get("text", ""))
        case "hardBreak":
            said = "\n"
        case "mention" | "status" | "emoji":
            said = str(attributes.get("text", ""))
        case "paragraph" | "caption":
            said = together
        case "heading":
            said = f"{'#' * (level if isinstance(level, int) else 2)} {together}"
        case "listItem" | "taskItem" | "decisionItem":
            said = f"- {blocks if 'paragraph' in str(content) else together}".replace("\n\n", "\n  ")
        case "bulletList" | "orderedList" | "taskList" | "decisionList":
            said = "\n".join(filter(None, parts))
        case "blockquote":
            said = "\n".join(f"> {line}" for line in blocks.split("\n"))
        case "codeBlock":
            said = f"```\n{together}\n```"
        case "tableRow":
            said = f"| {' | '.join(' '.join(part.split()) for part in parts)} |"
        case "table":
            said = "\n".join((*parts[:1], "|---|", *parts[1:]))
        case _:
            said = blocks
    return said


def time_of(value: Any) -> datetime | None:
    """A moment written as ISO 8601, without a zone in UTC; None for all else."""
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
