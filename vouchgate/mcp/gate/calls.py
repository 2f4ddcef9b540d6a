"""Tools of which a call writes one thing: the call as a claim, and the same call again when it may be made.

The claim shows every argument. One of them (`text` in the configuration) may be edited by the owner; the others stand
above it, a line each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable

from vouchgate.adapters.rendering import render_value
from vouchgate.client import DeadLetter
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.mcp.gate.config import CallWrite, ReadBack
from vouchgate.mcp.gate.writes import (
    CONTENT,
    MAX_PLACE,
    CallRefused,
    Plan,
    Server,
    ServerAnswer,
    ServerDeclined,
    Write,
    digest,
    other_place_message,
    texts_in,
)

_NAMED = re.compile(r"\{([#@]?)([\w.]+)\}")
_PATH = re.compile(r"\{[\w.]+\}/")  # begins with a part that may be left out
_ALONE = re.compile(r"\{(\w+)\}")
_SLASHES = re.compile("/{2,}")

Arguments = Mapping[str, Any]


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
    """The arguments to call with, given what the owner approved. `sent` is the text argument's first value if that was
    no text. Raises DeadLetter when an edit went beyond the text."""
    above = content_heading(tool, arguments, text)
    if text is None:
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


def fill_template(template: str, arguments: Arguments, found: Any = None) -> str:
    """A template with its names put in: arguments, digests of arguments, and what was found at a path. What stands
    beside a slash is a part of a path, and brings no slashes of its own to its ends."""

    def value(match: re.Match[str]) -> str:
        sign, name = match.groups()
        if sign == "@":
            return render_value(value_at_path(found, name) or "")
        given = arguments.get(name)
        if given is None:
            return ""
        if sign == "#":
            return digest(render_value(given))
        beside = template[: match.start()].endswith("/") or template[match.end() :].startswith("/")
        return render_value(given).strip("/") if beside else render_value(given)

    whole = _NAMED.sub(value, template)
    return whole.lstrip("/") if _PATH.match(template) else whole


def fill_arguments(templates: Mapping[str, JsonValue], arguments: Arguments) -> dict[str, Any]:
    """Arguments for another tool. One that is only an argument of the write is left out when the write was without."""
    found = dict[str, Any]()
    for name, template in templates.items():
        alone = _ALONE.fullmatch(template) if isinstance(template, str) else None
        if alone is None or arguments.get(alone[1]) is not None:
            found[name] = fill_template(template, arguments) if isinstance(template, str) else template
    return found


def fill_place(template: str, arguments: Arguments, found: Any = None) -> str:
    """A place. Parts that are left out leave no gap."""
    place = _SLASHES.sub("/", fill_template(template, arguments, found))
    return place if len(place) <= MAX_PLACE else f"{template[:64]} {digest(place)}"


def value_at_path(found: Any, path: str) -> Any:
    """What stands at a path of names through objects, None when nothing does."""
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def contains_written(text: str, wanted: object) -> bool:
    """Whether a text that was read has what was written: it itself, or of lists and objects each text in them."""
    if isinstance(wanted, str):
        return wanted.strip() in text
    return all(
        leaf in text or json.dumps(leaf, ensure_ascii=False)[1:-1] in text for leaf in texts_in(wanted)
    )


def proves(read: ReadBack, asked: Arguments, answer: ServerAnswer, text: str, wanted: object) -> bool:
    """Whether a text that was read and holds what was written shows that it is there. What was asked with the text
    itself comes back with it whether it is there or not, so then only a field of a structured answer counts that is
    the text, and is not named like an argument."""
    parts, texts = [leaf.strip() for leaf in texts_in(wanted) if leaf.strip()], list(texts_in(asked))
    if not parts:  # that something was read is all there is to go by
        return read.find is not None or read.missing is not None
    if not all(any(part in sent for sent in texts) for part in parts):
        return True
    if read.find is None or _is_text_answer(answer, text) or read.find.rsplit(".", 1)[-1] in asked:
        return False
    return read.expect is not None or (isinstance(wanted, str) and text.strip() == wanted.strip())


def says_missing(read: ReadBack, asked: Arguments, said: str, *, lines: bool = True) -> bool:
    """Whether an answer says that there is nothing, in words that are not those it was asked with. Without `lines`, in
    a single line: a longer text may hold these words as what was written."""
    if read.missing is None:
        return False
    for sent in texts_in(asked):
        if len(sent) >= len(read.missing):  # a shorter one cannot have brought them
            said = said.replace(sent, "")
    return read.missing.casefold() in said.casefold() and (lines or "\n" not in said.strip())


def _is_text_answer(answer: ServerAnswer, text: str) -> bool:
    """Whether a text is all that was answered: structured content of one text is that text in a wrapping."""
    return text.strip() == answer.text.strip()


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
        if write.text is not None and not isinstance(given.get(write.text, ""), str):
            data["text"] = "json"
        return Plan(
            (Write(write.op, fill_place(write.place, given), content_of(tool, given, write.text), data),)
        )

    def _check(self, tool: str, write: CallWrite, arguments: Arguments) -> None:
        """Raises Refused for arguments that a call may not have."""
        if (problem := _problem(self._schemas[tool][0], dict(arguments))) is not None:
            raise CallRefused(f"The arguments do not fit ({tool}): {problem}.")
        for name, allowed in write.only.items():
            if name in arguments and arguments[name] not in allowed:
                offered = " or ".join(json.dumps(value) for value in allowed)
                raise CallRefused(
                    f"{tool} with {name} = {render_value(arguments[name])} is not passed on by Vouchgate, only "
                    f"{offered}: what it takes away would go without its owner being asked."
                )
        if missing := [name for name in write.need if arguments.get(name) is None]:
            raise CallRefused(f"Vouchgate passes {tool} on only with {', '.join(missing)}.")

    async def _removal(self, tool: str, write: CallWrite, given: dict[str, Any]) -> Plan:
        found = await self._read(write.read, given)
        if found is None:
            return Plan((), (f"There is nothing to remove: {tool} {render_value(given)}.",))
        text, answer = found
        content = f"{content_heading(tool, given, None)}\n\n{text}"
        if len(content) > CONTENT:
            cut = f"\n… and {len(content) - CONTENT + 100} more characters"
            content = content[: CONTENT - 100] + cut
        data: dict[str, JsonValue] = {"tool": tool, "arguments": given, "shown": digest(text)}
        return Plan(
            (Write(DeliveryOp.REMOVE, fill_place(write.place, given, answer.structured), content, data),)
        )

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
        if await self._is_there(write, arguments):
            return None
        if write.new and await self._is_something_else_there(write, arguments):
            raise DeadLetter("Something else came there since, and would be taken away: look at it by hand.")
        more = write.replace if replacing else {}
        answer = await self._server.call(tool, {**write.always, **arguments, **more})
        match await self._is_there(write, arguments):
            case True:
                return answer
            case False:
                raise ServerDeclined(
                    f"It was written, and is not there when it is read back. {tool} answered: {answer.text}"
                )
            case None:  # to send it again would be as unsure, and might write it twice
                raise DeadLetter(
                    f"Sent, not confirmed: what {write.read.tool} answers does not show that it is there."
                )

    async def _remove(
        self, tool: str, write: CallWrite, place: str, given: Arguments, was: object
    ) -> ServerAnswer | None:
        found = await self._read(write.read, given)
        if found is None:
            return None
        if fill_place(write.place, given, found[1].structured) != place:
            raise other_place_message(place)
        if digest(found[0]) != was:
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
            raise DeadLetter(
                f"What {write.read.tool} answers does not show whether it is there: it has to be undone by hand."
            )
        undo, text = write.undo, arguments.get(write.text or "")
        if undo is None or not isinstance(text, str):
            raise DeadLetter(f"The gate cannot take back what {tool} did: it has to be undone by hand.")
        found = await self._read(write.read, arguments)
        if not undo.part and found is not None and found[0].strip() != text.strip():
            raise DeadLetter("There is more by now than the gate wrote, so it was left: look at it by hand.")
        answer = await self._server.call(undo.tool, fill_arguments(undo.arguments, arguments))
        if await self._is_there(write, arguments) is not False:
            raise ServerDeclined(f"It is still there. {undo.tool} answered: {answer.text}")

    async def _is_there(self, write: CallWrite, arguments: Arguments) -> bool | None:
        """None: what was read does not show it."""
        read, wanted = write.read, None if write.text is None else arguments.get(write.text, "")
        found = await self._read(read, arguments)
        if found is None:
            return False
        if read.expect is not None:
            wanted = fill_template(read.expect, arguments)
        if not contains_written(found[0], wanted):
            return False
        asked = fill_arguments(read.arguments, arguments)
        return proves(read, asked, found[1], found[0], wanted) or None

    async def _is_something_else_there(self, write: CallWrite, given: Arguments) -> bool:
        return await self._read(write.read, given) is not None and not await self._is_there(write, given)

    async def _read(self, read: ReadBack, arguments: Arguments) -> tuple[str, ServerAnswer] | None:
        """The text that is there and the answer it was in; None when nothing is."""
        asked = fill_arguments(read.arguments, arguments)
        try:
            answer = await self._server.call(read.tool, asked)
        except ServerDeclined as error:
            if says_missing(read, asked, str(error)):
                return None
            raise
        text = answer.text if read.find is None else value_at_path(answer.structured, read.find)
        if not isinstance(text, str):
            return None
        if _is_text_answer(answer, text) and says_missing(read, asked, text, lines=False):
            return None
        for path, template in read.where.items():
            if not str(value_at_path(answer.structured, path)).startswith(fill_template(template, arguments)):
                return None
        return text, answer

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
