"""What a user says of rows of an unknown shape: which of their fields is what. And what they are told of such rows."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from vouchgate.importing.rows import KNOWN, Fields, Unreadable
from vouchgate.ingest.claims.claim import MemoryType, Source

_NAMES = tuple(each.name for each in fields(Fields))
_LARGEST = 1 << 16  # bytes of a mapping
_TYPES = {"str": "text", "int": "number", "float": "number"}
_MEANS = {
    "text": "what is claimed",
    "kind": ", ".join(each.value for each in MemoryType),
    "source": ", ".join(each.value for each in Source),
    "citations": "a list, or a text with citations in it",
    "owner": "whose it is",
    "time": "when it was saved",
}


class UnknownShape(Unreadable):
    """No row of a file could be read as a memory. `template` is a mapping to be filled in, as TOML."""

    def __init__(self, message: str, template: str) -> None:
        super().__init__(message)
        self.template = template


def read_mapping(path: Path) -> Fields:
    """What a file says, over what is known. Raises Unreadable."""
    try:
        with path.open("rb") as stream:
            given: dict[str, Any] = tomllib.loads(stream.read(_LARGEST).decode())
    except OSError as error:
        raise Unreadable(f"--map: {path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"--map: {path}: is no TOML: {error}") from error
    said: dict[str, Any] = {}
    for name, value in given.items():
        if name not in _NAMES:
            raise Unreadable(f"--map: {path}: {name!r} is unknown; known are {', '.join(_NAMES)}")
        names = [value] if isinstance(value, str) else value
        good = isinstance(names, list) and all(isinstance(each, str) and each for each in names)
        if not good or not names or (name == "list" and len(names) > 1):
            raise Unreadable(f"--map: {path}: {name} must be a name, or a list of names (of `list` only one)")
        said[name] = names[0] if name == "list" else tuple(names)
    return replace(KNOWN, **said)


def describe_shape(path: str, shapes: Sequence[Iterable[tuple[str, str]]]) -> tuple[str, str]:
    """A sentence about rows without a text that is known, and a mapping to be filled in."""
    found: dict[str, str] = {}
    for shape in shapes:
        for name, kind in shape:
            found.setdefault(name, _TYPES.get(kind, kind))
    has = ", ".join(f"{name} ({kind})" for name, kind in list(found.items())[:20])
    texts = [name for name, kind in found.items() if kind == "text"]
    lines = [f"# {has}", "# Which field is what; a.b is the field b of the object a."]
    for name, means in _MEANS.items():
        guess = json.dumps(texts[0]) if name == "text" and len(texts) == 1 else '""'
        lines.append(f"{'' if name == 'text' and texts else '# '}{name} = {guess}  # {means}")
    lists = (name for name, kind in found.items() if kind == "list")
    lines += [f"# list = {json.dumps(name)}  # in which the rows of one JSON object stand" for name in lists]
    message = (
        f"{path}: no text was found in its first {len(shapes):,} rows, which have {has}. "
        "Say in a file which of these is what, and give it with --map FILE.toml"
    )
    return message, "\n".join(lines)
