"""What the server behind the gate said of its tools when it was first seen. A tool of which it says something else
later, or that is new, is withheld until the operator has seen the difference and accepted it (ADR-0057)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

from mcp_types import Tool

from vouchgate.files import write_durably
from vouchgate.mcp.gate.writes import ServerFailed

Definition = dict[str, Any]  # a tool but for its name, with what it has not left out

_PINNED = {"title", "description", "input_schema", "output_schema", "annotations"}
_ACCEPT = "vouchgate mcp-gate --accept, with the options and the command that the gate is started with,"


class PinsUnusable(ServerFailed):
    """Without the file of pins no tool can be told from a changed one, so none is used. The message is for people."""


def definition_of(tool: Tool) -> Definition:
    """All that a client or model is told of a tool. Icons and `_meta`, which are for display, are left out."""
    return tool.model_dump(mode="json", by_alias=True, include=_PINNED, exclude_none=True)


def default_file(config: Path | None, sink: str, environment: Mapping[str, str]) -> Path:
    """Beside the configuration; with a preset, by the name of the store where programs of this user keep state."""
    if config is not None:
        return config.with_suffix(".pins.json")
    state = (
        environment.get("XDG_STATE_HOME")
        or Path(environment.get("HOME") or "~").expanduser() / ".local/state"
    )
    return Path(state) / "vouchgate/mcp-gate" / f"{sink}.pins.json"


class Pins:
    """The pins in a file, which is read at every look: the operator may accept while the gate runs. `say` is for the
    person who runs it."""

    def __init__(self, file: Path, say: Callable[[str], None]) -> None:
        self._file, self._say = file, say
        self._withheld: dict[str, str] = {}

    def pin_first(self, tools: Sequence[Tool]) -> None:
        """Pins all tools, unless some are pinned already. Raises PinsUnusable."""
        if self._file.exists():
            return
        made = self._file.with_name(f"{self._file.name}.{os.getpid()}.new")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_durably(made, _as_bytes(_by_name(tools)))
            try:
                self._file.hardlink_to(made)
            except FileExistsError:  # another gate was first; what it saw is what counts
                return
            finally:
                made.unlink()
        except OSError as error:
            raise PinsUnusable(
                f"the pins of the server's tools cannot be kept in {self._file}: {error}"
            ) from None
        self._say(f"Pinned the server's {len(tools)} tools, seen for the first time, in {self._file}.")

    def admit(self, tools: Sequence[Tool]) -> list[Tool]:
        """Those that are as they were pinned. Raises PinsUnusable."""
        pinned = self._read()
        other = {tool.name: tool for tool in tools if pinned.get(tool.name) != definition_of(tool)}
        before, self._withheld = self._withheld, {name: _why(tool, pinned) for name, tool in other.items()}
        for name, why in self._withheld.items():
            if before.get(name) != why:
                self._say(f"Withheld: {name}, because {why}. {_ACCEPT} shows the difference and accepts it.")
        return [tool for tool in tools if tool.name not in other]

    def refusal(self, name: str) -> str | None:
        """For a tool that was withheld at the last look: a sentence for the model that called it."""
        why = self._withheld.get(name)
        if why is None:
            return None
        return (
            f"Vouchgate withholds {name}: {why}. Whoever runs the gate can look at it: {_ACCEPT} accepts it."
        )

    def differences(self, tools: Sequence[Tool]) -> Iterator[str]:
        """What is not as it was pinned, line by line, whole. Raises PinsUnusable."""
        pinned = self._read()
        for name, definition in _by_name(tools).items():
            if (before := pinned.get(name)) != definition:
                yield f"{name}: {'new' if before is None else 'changed'}"
                yield from [*unified_diff(_lines(before), _lines(definition), lineterm="", n=1)][2:]

    def accept(self, tools: Sequence[Tool]) -> None:
        """Pins these as they are. A tool that is gone stays pinned: it may come back. Raises PinsUnusable, OSError."""
        write_durably(self._file, _as_bytes(self._read() | _by_name(tools)))

    def _read(self) -> dict[str, Definition]:
        try:
            found = json.loads(self._file.read_bytes())
        except (OSError, ValueError) as error:
            raise PinsUnusable(
                f"the pins of the server's tools cannot be read in {self._file}: {error}"
            ) from None
        if not isinstance(found, dict):
            raise PinsUnusable(
                f"{self._file} holds no pins of tools; without it, all are seen for the first time"
            )
        return found


def _by_name(tools: Sequence[Tool]) -> dict[str, Definition]:
    """Of a name that is listed twice the last, so that the other is none that was pinned, and the name is withheld."""
    return {tool.name: definition_of(tool) for tool in tools}


def _why(tool: Tool, pinned: Mapping[str, Definition]) -> str:
    before, now = pinned.get(tool.name), definition_of(tool)
    if before is None:
        return "the server did not have it when its tools were pinned"
    changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    return f"the server says something else of it than when it was pinned ({', '.join(changed)})"


def _lines(definition: Definition | None) -> list[str]:
    if definition is None:
        return []
    return json.dumps(definition, indent=2, ensure_ascii=False, sort_keys=True).splitlines()


def _as_bytes(pins: Mapping[str, Definition]) -> bytes:
    return json.dumps(pins, indent=1, sort_keys=True).encode()  # ASCII, so that any string survives
