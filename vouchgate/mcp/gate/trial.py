"""What `vouchgate mcp-gate init` does with a server: it writes a probe, finds where it can be read back, and takes it
away again with the gate's own means."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_types import Tool

from vouchgate.client import DeadLetter
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.mcp.gate.calls import CallWriter
from vouchgate.mcp.gate.config import CallWrite, GraphWrite, ReadBack, ToolWrite, Undo, load
from vouchgate.mcp.gate.graph_writer import GraphWriter
from vouchgate.mcp.gate.guessing import (
    ToolRole,
    arguments_of,
    guess_preset,
    guess_reads,
    guess_removal,
    keys_of,
    locate,
    sample_arguments,
)
from vouchgate.mcp.gate.reading import Found, fill_arguments, pick, proves, texts_found
from vouchgate.mcp.gate.writes import (
    CallRefused,
    Server,
    ServerDeclined,
    ServerFailed,
    Writer,
    texts_in,
    until_seen,
)

_UNTRIED = "not tried, no arguments for a call could be made up"


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of the probe of one tool, in words for the operator. `read` and `undo` are how it was read back and
    taken away, None where it was not. `refused`: the server did not take it, so the tool is left out."""

    words: str
    refused: bool = False
    read: ReadBack | None = None
    undo: Undo | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """A server that is tried. `roles` say what its tools do, `may_leave` whether a probe may be written that perhaps
    cannot be removed; it is given the reason."""

    server: Server
    tools: Mapping[str, Tool]
    roles: Mapping[str, ToolRole]
    may_leave: Callable[[str], bool]

    def _with(self, role: ToolRole) -> list[Tool]:
        return [tool for name, tool in self.tools.items() if self.roles.get(name) is role]

    async def configure(
        self, sink: str | None, texts: Mapping[str, str]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """A configuration, and of each tool what was found. `texts` are the arguments that are the text. Raises
        ServerFailed when the server does not answer."""
        passed, write = [tool.name for tool in self._with(ToolRole.READS)], dict[str, Any]()
        notes = {tool.name: "refused" for tool in self._with(ToolRole.REFUSED)}
        if (preset := guess_preset(set(self.tools))) is not None:
            known = load(preset, None)
            notes = {
                name: note for name, note in notes.items() if name not in known.passed | set(known.write)
            }
            passed = [name for name in passed if name not in known.passed | set(known.write)]
            name = next(iter(known.write))
            notes |= {name: await self._try_preset(name, known.write[name])}
            return {"preset": preset, "sink": sink or known.sink, "pass": passed, "write": {}}, notes
        for tool in self._with(ToolRole.WRITES):
            text = texts[tool.name]
            tried = await self._try(tool, text)
            notes[tool.name] = tried.words
            if not tried.refused:
                write[tool.name] = _configured(tool, text, tried)
            for remover in self._with(ToolRole.REMOVES):
                if (table := _removal_configured(remover, tool, text, tried)) is not None:
                    write.setdefault(remover.name, table)
        for tool in self._with(ToolRole.REMOVES):
            if tool.name not in write:
                notes[tool.name] = "refused, because what is to go could not be read by its arguments first"
        return {"sink": sink or "memory", "pass": passed, "write": write}, notes

    async def _try(self, tool: Tool, text: str) -> Tried:
        """Writes a probe with a tool, and looks for it in every way there is."""
        made = self._sample(tool, text)
        if made is None:
            return Tried(_UNTRIED, refused=True)
        probe, arguments = made
        if not any(guess_removal(tool, remover, None) for remover in self._with(ToolRole.REMOVES)):
            names = ", ".join(remover.name for remover in self._with(ToolRole.REMOVES))
            why = f"{names} may need what no answer shows" if names else "no tool removes what it writes"
            if not self.may_leave(f"A probe of {tool.name} may stay in the server: {why}"):
                return Tried(f"not tried, as its probe might stay ({why}); --leave-probe writes it")
        reads, found = guess_reads(tool, text, self._with(ToolRole.READS)), list[tuple[ReadBack, Found]]()
        # A field that has the probe before it was written repeats the question.
        echoes = [exact for read in reads for exact, _ in await self._shown(read, arguments, probe)]
        try:
            said = await self.server.call(tool.name, arguments)
        except ServerDeclined as error:
            return Tried(f"refused, as the server refused a probe ({error})", refused=True)

        async def look() -> bool:
            for read in reads:
                shown = await self._shown(read, arguments, probe)
                found.extend(one for one in shown if one[0] not in echoes)
            return bool(found)

        if not await until_seen(look):
            return Tried(f"sent, not confirmed: nothing shows {probe!r}. It answered: {said.text[:200]}")
        read, shown = found[0]
        if keys := [name for name in keys_of(tool, text) if f"{{{name}}}" in read.arguments.values()]:
            read = read.model_copy(update={"missing": await self._missing(read, arguments, keys)})
        return await self._take_away(tool, text, arguments, read, shown)

    async def _missing(
        self, read: ReadBack, arguments: Mapping[str, Any], keys: list[str]
    ) -> tuple[str, ...]:
        """What is answered of a name that is not there: the longest part without the names that were asked for."""
        said = dict[str, None]()
        for changed in (keys, keys[-1:]):
            asked = fill_arguments(read.arguments, {**arguments, **dict.fromkeys(changed, "not-there")})
            try:
                answer = (await self.server.call(read.tool, asked)).text
            except ServerDeclined as error:
                answer = str(error).partition(": ")[2]
            names = "|".join(re.escape(name) for name in texts_in(asked))
            said[max(re.split(names, answer), key=len)] = None
        return tuple(said)

    def _sample(self, tool: Tool, text: str) -> tuple[str, dict[str, Any]] | None:
        """A text that no memory has, and the arguments of a call that writes it."""
        probe = f"Probe {secrets.token_hex(6)} of vouchgate mcp-gate init, to be removed"
        arguments = sample_arguments(tool, text, probe, f"vouchgate-probe-{secrets.token_hex(4)}")
        return None if arguments is None else (probe, arguments)

    async def _shown(
        self, read: ReadBack, arguments: Mapping[str, Any], probe: str
    ) -> list[tuple[ReadBack, Found]]:
        """Where an answer has the probe so that it would prove something: fields first, then the whole text."""
        asked, shown = fill_arguments(read.arguments, arguments), list[tuple[ReadBack, Found]]()
        try:
            answer = await self.server.call(read.tool, asked)
        except ServerDeclined:
            return []
        for items, path in [*locate(answer, probe), (None, None)]:
            exact = read.model_copy(update={"items": items, "find": path})
            there = pick(texts_found(exact, arguments, asked, answer), probe)
            wrapping = path is not None and there is not None and there.within is None
            if there is not None and not wrapping and proves(exact, asked, there, probe):
                shown.append((exact, there))
        return shown

    async def _take_away(
        self, tool: Tool, text: str, arguments: Mapping[str, Any], read: ReadBack, found: Found
    ) -> Tried:
        """Takes the probe away as the gate would, by the first tool with which it is gone."""
        shown = f"written and read back with {read.tool}"
        for remover in self._with(ToolRole.REMOVES):
            if (by := guess_removal(tool, remover, found.within)) is None:
                continue
            undo = Undo(tool=remover.name, arguments=by, part=found.text.strip() != arguments[text])
            write = CallWrite(kind="call", text=text, place="probe", read=read, undo=undo)
            if await self._round(self._writer(tool.name, write), tool.name, arguments) is None:
                return Tried(f"{shown}, removed again with {remover.name}", read=read, undo=undo)
        return Tried(f"{shown}; its probe could not be removed: {arguments[text]}", read=read)

    def _writer(self, name: str, write: ToolWrite) -> Writer:
        if isinstance(write, GraphWrite):
            return GraphWriter(self.server, {name: write})
        tool = self.tools[name]
        return CallWriter(self.server, {name: write}, {name: (tool.input_schema, tool.output_schema)})

    async def _round(self, writer: Writer, name: str, arguments: Mapping[str, Any]) -> str | None:
        """Has a writer write, unless it is there, and take back. None when both came about, else why not."""
        try:
            (sent,) = (await writer.plan(name, arguments)).writes
            await writer.apply(DeliveryOp.PUT, sent.place, sent.content, sent.data)
            if not await writer.written_places([sent]):
                return "it could not be read back"
            await writer.apply(DeliveryOp.REMOVE, sent.place, sent.content, sent.data)
        except (ServerFailed, DeadLetter, CallRefused) as error:
            return str(error)
        return None

    async def _try_preset(self, name: str, write: ToolWrite) -> str:
        """Tries the first tool of a preset that fits."""
        made: Any = {"entities": [{"name": f"Probe {secrets.token_hex(6)}", "entityType": "probe"}]}
        made["entities"][0]["observations"] = []
        if isinstance(write, CallWrite):
            sample = self._sample(self.tools[name], write.text or "")
            made = None if sample is None else sample[1]
            if made is None:
                return _UNTRIED
            why = f"A probe of {name} would stay in the server: the gate cannot take back what it writes"
            if write.undo is None and not self.may_leave(why):
                return "not tried, as its probe would stay; --leave-probe writes it"
        problem = await self._round(self._writer(name, write), name, made)
        return f"written and read back, {'removed again' if problem is None else f'but: {problem}'}"


def _configured(tool: Tool, text: str, tried: Tried) -> dict[str, Any]:
    """The table of a tool that writes. A place that has a name may be taken, and what is there is not taken away
    unasked (`new`). What could not be read back is sent, and never confirmed."""
    table: dict[str, Any] = {"kind": "call", "text": text, "place": f"memory/{{#{text}}}"}
    if tried.read is None:
        return table | {"read": False}
    if keys := [name for name in keys_of(tool, text) if f"{{{name}}}" in tried.read.arguments.values()]:
        table |= {"place": "/".join(f"{{{name}}}" for name in keys), "new": True}
    table["read"] = tried.read.model_dump(exclude_defaults=True)
    return table if tried.undo is None else table | {"undo": tried.undo.model_dump(exclude_defaults=True)}


def _removal_configured(remover: Tool, tool: Tool, text: str, tried: Tried) -> dict[str, Any] | None:
    """The table of a tool that removes, the inverse of how it took the probe away; None where what is to go cannot be
    shown to its owner before it goes."""
    read, undo = tried.read, tried.undo
    if read is None or undo is None or undo.tool != remover.name:
        return None
    used = {str(field)[1:-1]: f"{{{name}}}" for name, field in undo.arguments.items()}
    table: dict[str, Any] = {"kind": "call", "op": "remove", "need": list(undo.arguments)}
    if others := [name for name in arguments_of(remover) if name not in undo.arguments]:
        table["only"] = {name: [] for name in others}  # more might go by them
    shown = read.model_dump(exclude_defaults=True)
    if read.items is not None:
        where = {field[1:] if field.startswith("@") else read.find: by for field, by in used.items()}
        return table | {"place": f"memory/{{#@{read.find}}}", "read": {**shown, "where": where}}
    if set(used) != set(keys_of(tool, text)):
        return None
    asked = {name: used.get(str(value)[1:-1], value) for name, value in read.arguments.items()}
    return table | {"place": "/".join(used[key] for key in used), "read": {**shown, "arguments": asked}}
