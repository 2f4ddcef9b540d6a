"""What a gate in front of another MCP server is told: which tools write, and how what they write becomes claims.

A TOML file; an unknown key in it is an error. `presets/` holds those that come with Vouchgate. A file may start from
one of them (`preset = "knowledge-graph"`) and change or add keys.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.language.validation import plain_message

SINK = r"[a-z0-9][a-z0-9._:-]{0,63}"  # as the API has it

_PRESETS = files("vouchgate.mcp.gate") / "presets"


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says which and why."""


class Strict(BaseModel):
    """Base of the configuration: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ReadBack(Strict):
    """How to find out what is there: the tool to call, and where in its answer the text is.

    In `arguments`, `{name}` stands for an argument of the write; an argument that is only that, of a write without it,
    is left out. `missing`: what an error says when there is nothing, or a text answer of one line, or several such
    words; any other error is one. `find` is a path through the structured answer, or the text read as JSON
    (`result.content`); without one, it is the whole text. `items`: the path of a list, in whose objects `find` (`.` is
    all of one) and `where` are; `most`: how many it has at most, so that a full one does not show that something is not
    there. `where`: what must stand at other paths, or begin so (of an item: be so), for it to be the same thing.
    `expect`: what has to be there, instead of the text that was written. Arguments that hold the text itself prove
    nothing by a text answer, which may repeat them: then `find` has to name the field that is the text.
    """

    tool: str
    arguments: dict[str, JsonValue]
    missing: str | tuple[str, ...] = ()
    items: str | None = None
    most: Annotated[int, Field(ge=1)] | None = None
    find: str | None = None
    where: dict[str, str] = Field(default_factory=dict)
    expect: str | None = None


class Undo(Strict):
    """How what a call wrote is taken away again, when its owner takes the memory back. `{name}` in `arguments` stands
    for an argument of the write, `{@path}` for what stands beside the text that was read back. `part`: it takes away
    that text alone; without, it takes away all that is there, and is only called when that is the text and nothing
    more."""

    tool: str
    arguments: dict[str, JsonValue]
    part: bool = False


class CallWrite(Strict):
    """A tool of which each call writes one thing, or removes one.

    `text` is the argument that holds what an owner may edit; all other arguments are shown above it. `place` says
    where it is written: `{name}` an argument, `{#name}` the digest of one, `{@path}` what the reading tool found there,
    `{#@path}` its digest; a path goes through objects and lists (`{entities.0.name}`). `one`: a list that may have one
    thing, because more could not be read back together. `only`: an argument may be left out, or be one of these.
    `need`: arguments that may not be left out. `always`: what an argument is when it is left out, so that no default of
    the server is something else. `replace`: what to add when the owner agreed to replace what the gate wrote there
    before. `new`: refuse to write where something else is. `undo`: how to take it away when the owner takes the memory
    back. With `read = false` it is sent and never confirmed.
    """

    kind: Literal["call"]
    op: DeliveryOp = DeliveryOp.PUT
    text: str | None = None
    place: Annotated[str, Field(min_length=1)]
    read: ReadBack | Literal[False]
    only: dict[str, list[JsonValue]] = Field(default_factory=dict)
    need: tuple[str, ...] = ()
    one: str | None = None
    always: dict[str, JsonValue] = Field(default_factory=dict)
    replace: dict[str, JsonValue] = Field(default_factory=dict)
    new: bool = False
    undo: Undo | None = None

    @model_validator(mode="after")
    def _can_find_the_one(self) -> CallWrite:
        read = self.read
        if read is False:
            if self.op is DeliveryOp.REMOVE or self.new:
                raise ValueError("with read = false nobody knows what is there")
            return self
        if read.items is not None and read.find is None:
            raise ValueError("read.items needs read.find, which says where the text is in each of them")
        if self.op is DeliveryOp.REMOVE and read.items is not None and not read.where:
            raise ValueError("read.items needs read.where, or it could be any of them that is to go")
        return self


class GraphWrite(Strict):
    """A tool with the arguments of one of the knowledge-graph memory server's."""

    kind: Literal[
        "entities",
        "observations",
        "relations",
        "remove-entities",
        "remove-observations",
        "remove-relations",
    ]


ToolWrite = Annotated[CallWrite | GraphWrite, Field(discriminator="kind")]


class Config(Strict):
    """The whole of it. `passed` (`pass` in the file) are tools that write nothing."""

    sink: Annotated[str, Field(pattern=f"^{SINK}$")]
    passed: frozenset[str] = Field(default=frozenset(), alias="pass")
    write: dict[str, ToolWrite]
    memory_type: MemoryType = MemoryType.FACT
    source: Source = Source.AI_SYNTHESIS


def presets() -> list[str]:
    """The names of the presets."""
    names = (found.name for found in _PRESETS.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load(preset: str | None, file: Path | None, *, sink: str | None = None) -> Config:
    """The configuration of a preset, or of a file, which may name a preset to start from; `sink` is put in place of
    theirs. Raises ConfigError."""
    if (preset is None) == (file is None):
        raise ConfigError(
            f"give one of --preset {'|'.join(presets())} and --config FILE: nothing is passed on unnamed"
        )
    found = _preset(preset) if preset is not None else _started(_read(file))
    where = f"the preset {preset}" if file is None else str(file)
    try:
        return Config.model_validate(found | ({} if sink is None else {"sink": sink}))
    except ValidationError as error:
        problems = "; ".join(
            f"{_path(item['loc'])}: {plain_message(item, Config)}" for item in error.errors()
        )
        raise ConfigError(f"{where}: {problems}") from None


def _path(location: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in location if part not in ("call",)) or "the file"


def _preset(name: str) -> dict[str, object]:
    if name not in presets():
        raise ConfigError(f"there is no preset {name!r}; there are {', '.join(presets())}")
    return tomllib.loads((_PRESETS / f"{name}.toml").read_text("utf-8"))


def _read(file: Path | None) -> dict[str, object]:
    try:
        return tomllib.loads(Path(file or "").read_text("utf-8"))
    except (OSError, ValueError) as error:  # cannot be read, is no UTF-8, or no TOML
        raise ConfigError(f"{file}: {error}") from None


def _started(given: dict[str, object]) -> dict[str, object]:
    """The file over the preset it names: its lists and its tables of tools are added to those of the preset."""
    name = given.pop("preset", None)
    if name is None:
        return given
    base = _preset(str(name))
    merged = base | given
    if isinstance(passed := given.get("pass"), list) and isinstance(theirs := base.get("pass"), list):
        merged["pass"] = [*theirs, *passed]
    if isinstance(write := given.get("write"), dict) and isinstance(others := base.get("write"), dict):
        merged["write"] = others | write
    return merged
