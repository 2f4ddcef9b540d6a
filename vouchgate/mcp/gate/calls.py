"""Tools of which a call writes one thing: the call as a claim, and the same call again when it may be made.

The claim shows every argument. One of them (`text` in the configuration) may be edited by the owner; the others stand
above it, a line each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Literal

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable

from vouchgate.adapters.rendering import render_value
from vouchgate.client import DeadLetter
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.mcp.gate.config import CallWrite, ReadBack
from vouchgate.mcp.gate.reading import (
    Arguments,
    Found,
    fill_arguments,
    fill_place,
    fill_template,
    has,
    pick,
    proves,
    says_missing,
    texts_found,
)
from vouchgate.mcp.gate.writes import (
    CONTENT,
    CallRefused,
    Plan,
    Server,
    ServerAnswer,
    ServerDeclined,
    ServerFailed,
    ServerLost,
    Write,
    digest,
    other_place_message,
    until_seen,
)


def content_heading(tool: str, arguments: Arguments, text: str | None) -> str:
    """What stands above the text: the tool, and each other argument."""
    lines = [tool, *(f"{name}: {render_value(value)}" for name, value in arguments.items() if name != text)]
    return "\n".join(lines)


def content_of(tool: str, arguments: Arguments, text: str | None) -> str:
    """The claim: all text that the call would write."""
    above = content_heading(tool, arguments, text)
    return above if text is None or text not in arguments else f"{above}\n\n{render_value(arguments[text])}"


def approved_arguments(
    tool: str, arguments: Arguments, text: str | None, sent: object, content: str
) -> dict[str, Any]:
    """The arguments to call with, given what the owner approved. `sent` is what the text argument was if it was no
    text: "json", or "none" when it was left out. Raises DeadLetter when an edit went beyond the text."""
    above = content_heading(tool, arguments, text)
    if text is None or sent == "none":
        if content != above:
            raise DeadLetter("The text was edited, but none of these arguments can be.")
        return dict(arguments)
    rest = content.removeprefix(f"{above}\n\n")
    if rest == content and content.split("\n", 1)[0].strip() == tool:
        raise DeadLetter("The lines above the text were edited; only the text below them can be.")
    if sent != "json":
        return {**arguments, text: rest}
    try:
        return {**arguments, text: json.loads(rest, strict=False)}
    except ValueError:
        raise DeadLetter(f"The text was edited, and {text} is no JSON any more.") from None


def fit_to_schema(schema: Mapping[str, Any] | None, words: str) -> dict[str, Any] | None:
    """Structured content that says these words in the shape a tool promises; None when it promises another shape."""
    told = {"result": words}
    return told if schema is not None and _problem(schema, told) is None else None


def _problem(schema: Mapping[str, Any], value: object) -> str | None:
    """What is wrong with a value, in words. An empty registry, so that no schema makes us ask an address."""
    try:
        Draft202012Validator.check_schema(schema)
        checker = Draft202012Validator(dict(schema), registry=Registry())
        found: ValidationError | None = next(checker.iter_errors(value), None)
    except (SchemaError, Unresolvable) as error:
        return f"the tool's own schema cannot be read ({type(error).__name__})"
    return None if found is None else f"{'.'.join(map(str, found.absolute_path))} {found.message}".strip()


def _unshown(write: CallWrite) -> str:
    return "nothing shows" if write.read is False else f"what {write.read.tool} answers does not show"


def _unconfirmed(write: CallWrite, error: str = "") -> DeadLetter:
    """To send it again would be as unsure, and might write it twice."""
    return DeadLetter(f"Sent, not confirmed: {_unshown(write)} that it is there. {error}".strip())


class CallWriter:
    """How tools write of which a call writes one thing. `schemas` are the tools' input and output schemas."""

    def __init__(
        self,
        server: Server,
        tools: Mapping[str, CallWrite],
        schemas: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any] | None]],
    ) -> None:
        self._server = server
        self._tools = tools
        self._schemas = schemas

    async def plan(self, tool: str, arguments: Arguments) -> Plan:
        """See `Writer`."""
        write = self._tools[tool]
        self._check(tool, write, arguments)
        given = {name: value for name, value in arguments.items() if value is not None}
        if write.op is DeliveryOp.REMOVE:
            return await self._removal(tool, write, given)
        if write.new and await self._is_something_else_there(write, given):
            raise CallRefused(
                f"There is something else at {fill_template(write.place, given)} already, and {tool} would take it "
                "away without its owner being asked. Choose another name, or ask for its removal first."
            )
        kept: dict[str, JsonValue] = {name: value for name, value in given.items() if name != write.text}
        data: dict[str, JsonValue] = {"tool": tool, "arguments": kept}
        if write.text is not None and not isinstance(given.get(write.text), str):
            data["text"] = "json" if write.text in given else "none"
        return Plan(
            (Write(write.op, fill_place(write.place, given), content_of(tool, given, write.text), data),)
        )

    def _check(self, tool: str, write: CallWrite, arguments: Arguments) -> None:
        """Raises Refused for arguments that a call may not have."""
        if (problem := _problem(self._schemas[tool][0], dict(arguments))) is not None:
            raise CallRefused(f"The arguments do not fit ({tool}): {problem}.")
        for name, allowed in write.only.items():
            if name in arguments and arguments[name] not in allowed:
                offered = " or ".join(json.dumps(value) for value in allowed) or f"without {name}"
                raise CallRefused(
                    f"{tool} with {name} = {render_value(arguments[name])} is not passed on by Vouchgate, only "
                    f"{offered}: what it takes away would go without its owner being asked."
                )
        many = None if write.one is None else arguments.get(write.one)
        if isinstance(many, list) and len(many) != 1:
            raise CallRefused(
                f"Vouchgate passes {tool} on with one of {write.one} at a time: call it for each."
            )
        if missing := [name for name in write.need if arguments.get(name) is None]:
            raise CallRefused(f"Vouchgate passes {tool} on only with {', '.join(missing)}.")

    async def _removal(self, tool: str, write: CallWrite, given: dict[str, Any]) -> Plan:
        found = await self._read(write.read, given)
        if found is None:
            return Plan((), (f"There is nothing to remove: {tool} {render_value(given)}.",))
        content = f"{content_heading(tool, given, None)}\n\n{found.text}"
        if len(content) > CONTENT:
            cut = f"\n… and {len(content) - CONTENT + 100} more characters"
            content = content[: CONTENT - 100] + cut
        data: dict[str, JsonValue] = {"tool": tool, "arguments": given, "shown": digest(found.text)}
        return Plan((Write(DeliveryOp.REMOVE, fill_place(write.place, given, found.within), content, data),))

    def is_unedited(self, op: DeliveryOp, place: str, content: str, data: Mapping[str, JsonValue]) -> bool:
        """See `Writer`. The place of what is to go is known when it was read."""
        tool, write, kept = self._named(op, data)
        if write.op is DeliveryOp.REMOVE:
            return True
        arguments = approved_arguments(tool, kept, write.text, data.get("text"), content)
        try:
            self._check(tool, write, arguments)
        except CallRefused as error:
            raise DeadLetter(str(error)) from None
        whole = content == content_of(tool, arguments, write.text)
        # An edit changes the digest of the text, where it is a part of the place.
        if (whole or "{#" not in write.place) and place != fill_place(write.place, arguments):
            raise other_place_message(place)
        return whole

    def _named(
        self, op: DeliveryOp, data: Mapping[str, JsonValue]
    ) -> tuple[str, CallWrite, dict[str, JsonValue]]:
        """The tool that a delivery names, and its arguments. Raises DeadLetter."""
        tool, kept = str(data.get("tool")), data.get("arguments")
        write = self._tools[tool]
        if not isinstance(kept, dict) or (write.op is DeliveryOp.REMOVE and op is DeliveryOp.PUT):
            raise DeadLetter("It does not say what to call; it was not sent by this gate.")
        return tool, write, kept

    async def apply(
        self,
        op: DeliveryOp,
        place: str,
        content: str,
        data: Mapping[str, JsonValue],
        *,
        replacing: bool = False,
    ) -> ServerAnswer | None:
        """See `Writer`."""
        tool, write, kept = self._named(op, data)
        if write.op is DeliveryOp.REMOVE:
            return await self._remove(tool, write, place, kept, data.get("shown"))
        arguments = approved_arguments(tool, kept, write.text, data.get("text"), content)
        if op is DeliveryOp.REMOVE:
            await self._take_back(tool, write, arguments)
            return None
        there = await self._is_there(write, arguments)
        if there:
            return None
        if write.new and await self._is_something_else_there(write, arguments):
            raise DeadLetter("Something else came there since, and would be taken away: look at it by hand.")
        more = write.replace if replacing else {}
        try:
            answer = await self._server.call(tool, {**write.always, **arguments, **more})
        except (ServerDeclined, ServerLost) as error:  # which may have been done all the same
            with suppress(ServerFailed):
                there = await self._is_there(write, arguments)
            if there is None:
                raise _unconfirmed(write, str(error)) from None
            if not there:
                raise
            return None
        match await until_seen(lambda: self._is_there(write, arguments)):
            case True:
                return answer
            case False:
                raise ServerDeclined(
                    f"It was written, and is not there when it is read back. {tool} answered: {answer.text}"
                )
            case None:
                raise _unconfirmed(write)

    async def _remove(
        self, tool: str, write: CallWrite, place: str, given: Arguments, was: object
    ) -> ServerAnswer | None:
        found = await self._read(write.read, given)
        if found is None:
            return None
        if fill_place(write.place, given, found.within) != place:
            raise other_place_message(place)
        if digest(found.text) != was:
            raise DeadLetter(
                "It has changed since its owner was asked, so it was left: ask for its removal again."
            )
        answer = await self._server.call(tool, {**write.always, **given})
        if await self._read(write.read, given) is not None:
            raise ServerDeclined(f"It is still there. {tool} answered: {answer.text}")
        return answer

    async def _take_back(self, tool: str, write: CallWrite, arguments: Arguments) -> None:
        """What the gate wrote is no memory any more."""
        there = await self._is_there(write, arguments)
        if there is False:
            return
        if there is None:
            raise DeadLetter(f"It has to be undone by hand: {_unshown(write)} whether it is there.")
        undo, text = write.undo, arguments.get(write.text or "")
        if undo is None or not isinstance(text, str):
            raise DeadLetter(f"The gate cannot take back what {tool} did: it has to be undone by hand.")
        found = await self._read(write.read, arguments, text)
        if not undo.part and found is not None and found.text.strip() != text.strip():
            raise DeadLetter("There is more by now than the gate wrote, so it was left: look at it by hand.")
        within = None if found is None else found.within
        answer = await self._server.call(undo.tool, fill_arguments(undo.arguments, arguments, within))
        if await self._is_there(write, arguments):  # what was shown before, and is not any more, is gone
            raise ServerDeclined(f"It is still there. {undo.tool} answered: {answer.text}")

    async def _is_there(self, write: CallWrite, arguments: Arguments) -> bool | None:
        """None: what was read does not show it."""
        read, wanted = write.read, None if write.text is None else arguments.get(write.text, "")
        if read is False:
            return None
        if read.expect is not None:
            wanted = fill_template(read.expect, arguments)
        found = await self._read(read, arguments, wanted)
        if found is None or not has(found.text, wanted):
            return False
        return proves(read, fill_arguments(read.arguments, arguments), found, wanted) or None

    async def _is_something_else_there(self, write: CallWrite, given: Arguments) -> bool:
        return await self._read(write.read, given) is not None and not await self._is_there(write, given)

    async def _read(
        self, read: ReadBack | Literal[False], arguments: Arguments, wanted: object = None
    ) -> Found | None:
        """The text that is there; of several the one that has what is wanted. None when there is none."""
        if read is False:
            return None
        asked = fill_arguments(read.arguments, arguments)
        try:
            answer = await self._server.call(read.tool, asked)
        except ServerDeclined as error:
            if says_missing(read, asked, str(error)):
                return None
            raise
        found = texts_found(read, arguments, asked, answer)
        return pick(found, wanted) if read.items is not None else next(iter(found), None)

    async def written_places(self, writes: Collection[Write]) -> frozenset[str]:
        """See `Writer`."""
        found = set[str]()
        for write in writes:
            tool, kept = str(write.data["tool"]), write.data["arguments"]
            if not isinstance(kept, dict):
                continue
            configured = self._tools[tool]
            if write.op is DeliveryOp.REMOVE:
                done = await self._read(configured.read, kept) is None
            else:
                arguments = approved_arguments(
                    tool, kept, configured.text, write.data.get("text"), write.content
                )
                done = await self._is_there(configured, arguments) is True
            if done:
                found.add(write.place)
        return frozenset(found)

    def structured_content(
        self, tool: str, arguments: Arguments, plan: Plan, done: Collection[str], words: str
    ) -> dict[str, Any] | None:
        """See `Writer`."""
        return fit_to_schema(self._schemas[tool][1], words)
