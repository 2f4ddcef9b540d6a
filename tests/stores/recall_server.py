"""A memory server that finds by text and repeats the question in its answers, as many do. It keeps what it is told, or
with `forget` nothing. Run as a program: `python recall_server.py [--breaks] FOLDER keep|forget`; `FOLDER/calls` has
each write. With `--breaks` it has two tools more, which write and do not answer well."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from mcp_types import ToolAnnotations

READS = ToolAnnotations(read_only_hint=True)
server: FastMCP[Any] = FastMCP("recall")
FOLDER, KEEPS = Path(sys.argv[-2]), sys.argv[-1] == "keep"


def kept() -> list[str]:
    """What was written and not forgotten."""
    return [file.read_text("utf-8") for file in sorted(FOLDER.glob("*.memory"))]


def write(content: str) -> str:
    with (FOLDER / "calls").open("a", encoding="utf-8") as log:
        log.write(f"{content}\n")
    if KEEPS:
        (FOLDER / f"{len(kept())}.memory").write_text(content, "utf-8")
    return f"Memory saved: {content}"


def adder(name: str) -> None:
    """Adds a tool that writes; the configuration gives each another way to read back."""
    server.tool(write, name=name)


def by_breaking(content: str) -> str:
    """Writes, and fails."""
    write(content)
    raise ToolError("the index is not refreshed")


def by_dying(content: str) -> str:
    """Writes, and dies."""
    write(content)
    os._exit(3)


if "--breaks" in sys.argv:
    server.tool(by_breaking)
    server.tool(by_dying)


for each in (
    "by_text",
    "by_text_missing",
    "by_listing",
    "by_field",
    "by_question",
    "by_wrapping",
    "by_nothing",
):
    adder(each)


@server.tool
def forget(content: str) -> str:
    """Takes a memory away."""
    for file in FOLDER.glob("*.memory"):
        if file.read_text("utf-8") == content:
            file.unlink()
    return "Forgotten."


@server.tool(annotations=READS)
def search(query: str) -> str:
    """Finds memories."""
    found = [text for text in kept() if query in text]
    return (
        f"Found for '{query}':\n" + "\n".join(found) if found else f"No memories found for query: '{query}'"
    )


@server.tool(annotations=READS)
def recall(query: str) -> str:
    """Says what it was asked, whether it knows it or not."""
    return query


@server.tool(annotations=READS)
def list_all() -> str:
    """Lists memories."""
    return "\n".join(kept()) or "There are no memories."


@server.tool(annotations=READS)
def look_up(query: str) -> dict[str, Any]:
    """Finds one memory, and says what was asked."""
    found = next((text for text in kept() if query in text), None)
    return {"query": query, "message": f"Looked for {query}", "memory": {"content": found}}


if __name__ == "__main__":
    server.run(show_banner=False, log_level="ERROR")
