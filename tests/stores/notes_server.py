"""A stand-in for basic-memory, which needs a newer Python than the tests: its tools with the arguments, the answers
and the refusals of version 0.21.6, on files in a folder. Run as a program: `python notes_server.py FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from mcp_types import ToolAnnotations

READS = ToolAnnotations(read_only_hint=True)
server: FastMCP[Any] = FastMCP("notes", instructions="Keep notes.")
FOLDER = Path(sys.argv[-1])


def path_of(directory: str, name: str) -> Path:
    """A file in the folder."""
    return FOLDER / directory.strip("/") / name


def found(identifier: str) -> Path | None:
    """The note that a title, path or permalink means."""
    for file in sorted(FOLDER.rglob("*.md")):
        path = str(file.relative_to(FOLDER))
        known = (
            path,
            path.removesuffix(".md"),
            file.stem,
            path.removesuffix(".md").lower().replace(" ", "-"),
        )
        if identifier in known:
            return file
    return None


@server.tool
def write_note(  # noqa: PLR0917  (the arguments of a tool come by name)
    title: str,
    content: str,
    directory: str,
    project: str | None = None,
    tags: list[str] | str | None = None,
    note_type: str = "note",
    overwrite: bool | None = None,
    output_format: str = "text",
) -> str | dict[str, Any]:
    """Create a note."""
    file = path_of(directory, f"{title}.md")
    if file.exists() and not overwrite:
        return f"# Error: Note already exists\n\n**{title}**"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\ntitle: {title}\ntags: {tags}\n---\n\n{content}", "utf-8")
    return f"# Created note\nfile_path: {file.relative_to(FOLDER)}"


@server.tool(annotations=READS)
def read_note(
    identifier: str, project: str | None = None, output_format: str = "text"
) -> str | dict[str, Any]:
    """Read a note."""
    file = found(identifier)
    if file is None:
        return {"title": None, "file_path": None, "content": None}
    text = file.read_text("utf-8").split("---\n", 2)[2]
    return {"title": file.stem, "file_path": str(file.relative_to(FOLDER)), "content": text}


@server.tool
def edit_note(  # noqa: PLR0917  (the arguments of a tool come by name)
    identifier: str,
    operation: str,
    content: str,
    project: str | None = None,
    section: str | None = None,
    find_text: str | None = None,
) -> str:
    """Edit a note."""
    file = found(identifier)
    if file is None:
        raise ToolError(f"Entity not found: {identifier}")
    before = file.read_text("utf-8")
    file.write_text(before.replace(find_text, content) if find_text else f"{before}\n{content}", "utf-8")
    return f"# Edited note ({operation})"


@server.tool
def delete_note(identifier: str, is_directory: bool = False, project: str | None = None) -> bool:
    """Delete a note."""
    file = found(identifier)
    if file is not None:
        file.unlink()
    return file is not None


@server.tool
def move_note(identifier: str, destination_path: str = "", project: str | None = None) -> str:
    """Move a note."""
    file, goal = found(identifier), FOLDER / destination_path
    if file is None:
        raise ToolError(f"Entity not found: {identifier}")
    goal.parent.mkdir(parents=True, exist_ok=True)
    file.rename(goal)
    return "Note moved successfully"


@server.tool
def canvas(
    nodes: list[dict[str, Any]],
    edges: list[dict[str, Any]],
    title: str,
    directory: str,
    project: str | None = None,
) -> str:
    """Draw a canvas."""
    file = path_of(directory, f"{title}.canvas")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"nodes": nodes, "edges": edges}, indent=2), "utf-8")
    return f"# Created: {file.relative_to(FOLDER)}"


@server.tool(annotations=READS)
def read_content(path: str, project: str | None = None) -> dict[str, Any]:
    """Read a file."""
    file = FOLDER / path
    if not file.is_file():
        raise ToolError(f"Resource not found: {path}")
    return {"type": "text", "text": file.read_text("utf-8")}


@server.tool
def delete_project(project_name: str) -> str:
    """Forget everything: what a newer version might add, and says nothing of."""
    for file in FOLDER.rglob("*.*"):
        file.unlink()
    return "gone"


@server.tool
def count_notes() -> int:
    """Writes nothing, and does not say so."""
    return len(list(FOLDER.rglob("*.md")))


@server.prompt
def summary(topic: str) -> str:
    """Asks for a summary."""
    return f"Sum up what is known of {topic}."


@server.resource("notes://{name}")
def note(name: str) -> str:
    """One note."""
    file = found(name)
    return "" if file is None else file.read_text("utf-8")


@server.completion
def complete(ref: Any, argument: Any, context: Any) -> list[str]:
    """Completes topics."""
    return [word for word in ("orders", "origins") if word.startswith(argument.value)]


if __name__ == "__main__":
    server.run(show_banner=False, log_level="ERROR")
