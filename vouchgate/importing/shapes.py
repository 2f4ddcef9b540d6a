"""Things of other stores that are no memory by themselves: entities with observations, relations, blocks of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vouchgate.importing.documents import document_rows
from vouchgate.importing.lines import BadLine, Line
from vouchgate.importing.rows import KNOWN, BadRow, Fields, ImportRow, about, parse_row
from vouchgate.ingest.support.clauses.signs import is_kind

_ORIGIN_CHARACTERS = 80


def graph_rows(lines: Iterable[Line | BadLine]) -> Iterator[ImportRow | BadRow]:
    """The claims of `memory.jsonl` of the knowledge-graph memory server. An entity nobody says anything of is none."""
    seen = Counter[str]()
    for line in lines:
        place = f"line {line.number}"
        if isinstance(line, BadLine):
            yield BadRow(place, line.message)
            continue
        found = of_graph(line.fields, place, seen)
        if found is None:
            yield BadRow(place, "is neither an entity with observations nor a relation of a knowledge graph")
        else:
            yield from found


def item_rows(
    values: Iterable[Any], root: Path | None, known: Fields = KNOWN
) -> Iterator[ImportRow | BadRow]:
    """The claims of the items of a list: memories, texts, entities and relations of a graph, blocks of Letta."""
    seen = Counter[str]()
    for number, item in enumerate(values, start=1):
        place = f"item {number}"
        if isinstance(item, str):
            yield ImportRow(place, item)
        elif not isinstance(item, dict):
            yield BadRow(place, getattr(item, "message", "is neither an object nor a text"))
        elif _is_block(item):
            yield from _block_rows(item, root)
        else:
            found = of_graph(item, place, seen)
            yield from [parse_row(place, item, known)] if found is None else found


def of_graph(fields: Mapping[str, Any], place: str, seen: Counter[str]) -> list[ImportRow | BadRow] | None:
    """Each observation of an entity, and each relation, is a claim; None for what is neither. `seen` counts them."""
    name, observations, of = fields.get("name"), fields.get("observations"), fields.get("entityType")
    if isinstance(name, str) and isinstance(observations, list):
        subject = f"{name} ({of})" if isinstance(of, str) and of else name
        found = []
        for observation in observations:
            row = _observation(observation, _next("observation", place, seen))
            if isinstance(row, ImportRow):
                metadata = {**row.metadata, "entity": name}
                row = about(subject, replace(row, metadata=metadata, origin=_cut(name)))
                if isinstance(of, str) and not is_kind(of):  # it says more of it, and a source has to say it
                    row = replace(row, context=0)
            found.append(row)
        return found
    ends = [fields.get(end) for end in ("from", "relationType", "to")]
    if all(isinstance(end, str) for end in ends):
        text, at = " ".join(map(str, ends)), _next("relation", place, seen)
        return [ImportRow(at, text, metadata={"relation": True}, origin=_cut(str(ends[0])))]
    return None


def _observation(observation: object, place: str) -> ImportRow | BadRow:
    """A text, or an object with one and what else its server keeps of it, such as when it was made."""
    if isinstance(observation, dict):
        return parse_row(place, observation)
    if isinstance(observation, str):
        return ImportRow(place, observation)
    return BadRow(place, "is neither a text nor an object")


def _next(what: str, place: str, seen: Counter[str]) -> str:
    seen[what] += 1
    return f"{what} {seen[what]} ({place})"


def _cut(name: str) -> str:
    return name[:_ORIGIN_CHARACTERS]


def _is_block(item: Mapping[str, Any]) -> bool:
    """Whether it is a memory block of Letta, as agent files have them."""
    return isinstance(item.get("label"), str) and isinstance(item.get("value"), str) and "limit" in item


def _block_rows(block: Mapping[str, Any], root: Path | None) -> Iterator[ImportRow | BadRow]:
    """What a block says: it is a page of notes. An empty one says nothing."""
    if block["value"].strip():
        content = block["value"].encode("utf-8", "surrogatepass")
        yield from document_rows("block.md", f"block {_cut(block['label'])}", content, root)
