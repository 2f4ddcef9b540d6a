"""Three memories written by hand, with what is true of each row.

`assistant` is a personal assistant's, `coding` a coding agent's, `research` that of an assistant for
research and operations, a knowledge graph. Rows that are about one another have one `group`, and a
group lies whole in one half: rules are made by looking at the one, and scored on the other (`held`).
`label` is what the audit should call the row, `other_row` the `id` of the row that it repeats,
contradicts or replaces; `fine` are the rows that somebody would keep. Where an update replaces a
row, that row is `fine` too: it was true.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from bench.memories.repository import make_repository

NAMES = ("assistant", "coding", "research")


@dataclass(frozen=True)
class Row:
    id: str
    group: int
    held: bool
    label: str
    text: str
    time: str | None = None  # RFC 3339
    other_row: str | None = None
    entity: str | None = None


def load(name: str, *, held: bool | None = None) -> list[Row]:
    """The rows of a memory in the order of its file, of one half or (None) of both.

    Commits of the repository stand in them as `{commit1}`, counted from 0.
    """
    lines = (Path(__file__).parent / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [Row(**json.loads(line)) for line in lines]
    return [row for row in rows if held is None or row.held is held]


def write(rows: list[Row], name: str, folder: Path) -> tuple[Path, list[Row]]:
    """The memory as its agent would keep it, beside a repository in the folder.

    Returns:
        The file to audit, and the rows in the order in which an import reads them: JSON lines of the
        assistant, a Markdown list of the coding agent, a knowledge graph with a line an entity.
    """
    commits = make_repository(folder)
    words = {f"{{commit{number}}}": full[:10] for number, full in enumerate(commits)}

    def filled(text: str) -> str:
        for word, commit in words.items():
            text = text.replace(word, commit)
        return text

    if name == "coding":
        path = folder / "CLAUDE.md"
        lines = ["# Memory", "", *(f"- {filled(row.text)}" for row in rows)]
    elif name == "assistant":
        path = folder / "memory.jsonl"
        lines = [json.dumps({"memory": filled(r.text), "created_at": r.time}) for r in rows]
    else:
        path = folder / "memory.jsonl"
        entities: dict[str, list[Row]] = {}
        for row in rows:
            entities.setdefault(row.entity or "", []).append(row)
        lines = [
            json.dumps(
                {
                    "type": "entity",
                    "name": entity,
                    "entityType": "thing",
                    "observations": [{"content": filled(row.text), "created_at": row.time} for row in told],
                }
            )
            for entity, told in entities.items()
        ]
        rows = [row for told in entities.values() for row in told]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path, rows
