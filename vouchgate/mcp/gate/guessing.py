"""What a server's tools may be for, guessed from what it says of them; `vouchgate mcp-gate init` tries it. Pure.

A guess is for the operator to look at. Nothing rests on it that was not read back: a tool taken for one that reads is
still only passed on because the file names it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from importlib.resources import files
from typing import Any

from mcp_types import Tool
from pydantic import JsonValue

from vouchgate.mcp.gate.config import ReadBack, load, presets
from vouchgate.mcp.gate.reading import structured_parts
from vouchgate.mcp.gate.writes import ServerAnswer


class ToolRole(StrEnum):
    """What a tool does, by name, description and annotations."""

    REMOVES = "removes"
    WRITES = "writes"
    READS = "reads"
    REFUSED = "refused"  # said by the operator: not to be called


_WORDS = tomllib.loads((files("vouchgate.mcp.gate") / "tool_words.toml").read_text("utf-8"))
_MOST = 100  # entries asked of a listing that says no limit: a fresh one is among them
_GRAVEST = (ToolRole.REMOVES, ToolRole.WRITES, ToolRole.READS)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def guess_role(tool: Tool) -> ToolRole | None:
    """What a tool does; None when name, description and annotations do not say, or contradict one another."""
    role = _role_in(_WORD.findall(tool.name)) or _role_in(_WORD.findall(tool.description or "")[:1])
    hints = tool.annotations
    if hints is None or role is None:
        return role
    if role is ToolRole.READS:
        return None if hints.read_only_hint is False or hints.destructive_hint else role
    return None if hints.read_only_hint else role


def _role_in(words: Sequence[str]) -> ToolRole | None:
    found = {word.lower() for word in words}
    found |= {word.removesuffix("s") for word in found}  # "Stores a memory"
    return next((role for role in _GRAVEST if found & set(_WORDS[role])), None)


def arguments_of(tool: Tool) -> dict[str, Mapping[str, Any]]:
    """The arguments of a tool and what is said of each."""
    found = tool.input_schema.get("properties")
    named = found.items() if isinstance(found, Mapping) else ()
    return {name: each for name, each in named if isinstance(each, Mapping)}


def _type_of(said: Mapping[str, Any]) -> str | None:
    """The type of an argument, of one that may be null too the other."""
    kinds = [said.get("type")] if isinstance(said.get("type"), str) else said.get("type")
    return next((kind for kind in kinds if kind != "null"), None) if isinstance(kinds, list) else None


def required_of(tool: Tool) -> list[str]:
    """The arguments that may not be left out."""
    found = tool.input_schema.get("required")
    return [str(name) for name in found] if isinstance(found, list) else []


def guess_text(tool: Tool) -> str | None:
    """The argument that is the text; None when that cannot be told."""
    texts = [
        name for name, said in arguments_of(tool).items() if _type_of(said) == "string" and "enum" not in said
    ]
    required = [name for name in texts if name in required_of(tool)]
    named = [name for name in _WORDS["texts"] if name in required] or [
        name for name in _WORDS["texts"] if name in texts
    ]
    if named or len(required) != 1 or required[0].lower().endswith(tuple(_WORDS["names"])):
        return next(iter(named), None)
    return required[0]


def guess_preset(names: set[str]) -> str | None:
    """The preset of which a server has every tool that writes, of several the one with most."""
    fitting = [(len(tools), name) for name in presets() if (tools := set(load(name, None).write)) <= names]
    return max(fitting)[1] if fitting else None


def sample_arguments(tool: Tool, text: str, probe: str, key: str) -> dict[str, JsonValue] | None:
    """Arguments for a call that writes the probe, with nothing that may be left out; None where none can be made up."""
    made = dict[str, JsonValue]()
    for name in dict.fromkeys([*required_of(tool), text]):
        said = arguments_of(tool).get(name, {})
        options = said.get("enum")
        by_type: dict[str, JsonValue] = {"string": key, "boolean": False, "array": [], "object": {}}
        by_type |= dict.fromkeys(("integer", "number"), said.get("minimum", 1))
        if name == text:
            made[name] = probe
        elif "default" in said:
            made[name] = said["default"]
        elif isinstance(options, list) and options:
            made[name] = options[0]
        elif (kind := _type_of(said)) in by_type:
            made[name] = by_type[kind]
        else:
            return None
    return made


def keys_of(tool: Tool, text: str) -> list[str]:
    """The arguments that name what is written: texts that may not be left out, other than the text."""
    said = arguments_of(tool)
    return [name for name in required_of(tool) if name != text and _type_of(said.get(name, {})) == "string"]


def guess_reads(tool: Tool, text: str, readers: Sequence[Tool]) -> list[ReadBack]:
    """Ways to look for what a tool wrote, those that prove most first: by its name, in a listing, by the text."""
    keys = keys_of(tool, text)
    by_key, listings, by_text = list[ReadBack](), list[ReadBack](), list[ReadBack]()
    for reader in readers:
        required = required_of(reader)
        limits: dict[str, JsonValue] = {
            name: most if isinstance(most := said.get("maximum"), int) else _MOST
            for name, said in arguments_of(reader).items()
            if name.lower() in _WORDS["limits"] and name not in required
        }
        queries = [name for name in required if name not in keys] or ["query"]
        if required and set(required) <= set(keys):
            by_key.append(ReadBack(tool=reader.name, arguments={name: f"{{{name}}}" for name in required}))
        elif not required:
            listings.append(ReadBack(tool=reader.name, arguments=limits))
        if len(queries) == 1 and _type_of(arguments_of(reader).get(queries[0], {})) == "string":
            named: dict[str, JsonValue] = {name: f"{{{name}}}" for name in required if name in keys}
            by_text.append(
                ReadBack(tool=reader.name, arguments={**named, queries[0]: f"{{{text}}}", **limits})
            )
    return [*by_key, *listings, *by_text]


def locate(answer: ServerAnswer, probe: str) -> Iterator[tuple[str | None, str]]:
    """Where an answer has the probe: the path of a list, if it is in one, and the path of the text; where the text is
    nothing but the probe first."""
    found = [one for part in structured_parts(answer) for one in _paths(part, probe)]
    for _, items, path in sorted(found, key=lambda one: one[0]):
        yield items, path


def _paths(part: object, probe: str, path: tuple[str, ...] = (), items: str | None = None) -> Iterator[Any]:
    if isinstance(part, str) and probe in part and path:
        yield part.strip() != probe, items, ".".join(path)
    elif isinstance(part, Mapping):
        for name, value in part.items():
            if isinstance(name, str) and name and "." not in name:
                yield from _paths(value, probe, (*path, name), items)
    elif isinstance(part, list) and items is None:
        for item in part:
            yield from _paths(item, probe, (), ".".join(path))


def guess_removal(tool: Tool, remover: Tool, within: Mapping[str, Any] | None) -> dict[str, JsonValue] | None:
    """Arguments with which a tool takes away what another wrote: arguments of the write, and fields of what was read
    back (`within`), of the same name or `id` for `memory_id`. None where one of them is unknown."""
    found, written = dict[str, JsonValue](), arguments_of(tool)
    fields = {_plain(name): name for name, one in (within or {}).items() if isinstance(one, (str, int))}
    optional = [name for name in arguments_of(remover) if _plain(name) in fields][:1]
    for name in required_of(remover) or optional:
        plain = _plain(name)
        field = fields.get(plain) or (fields.get("id") if plain.endswith("id") else None)
        if name not in written and field is None:
            return None
        found[name] = f"{{{name}}}" if name in written else f"{{@{field}}}"
    return found or None


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def as_toml(value: object) -> str:
    """A value as TOML writes it in a line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {as_toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else as_toml(name)


def render(config: Mapping[str, Any], notes: Mapping[str, str], heading: str) -> str:
    """The file: keys, then a table for each tool under `write`; `notes` stand above a tool's table, or, of a tool
    that has none, at the end, as comments."""
    lines = [f"# {heading}", ""]
    lines += [f"{name} = {as_toml(value)}" for name, value in config.items() if name != "write"]
    for tool, table in config.get("write", {}).items():
        lines += ["", *_comment(tool, notes), f"[write.{_key(tool)}]"]
        lines += [f"{name} = {as_toml(value)}" for name, value in table.items()]
    lines += [
        "",
        *(line for tool in notes if tool not in config.get("write", {}) for line in _comment(tool, notes)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _comment(tool: str, notes: Mapping[str, str]) -> list[str]:
    return ["# " + _CONTROL.sub(" ", f"{tool}: {notes[tool]}")] if tool in notes else []
