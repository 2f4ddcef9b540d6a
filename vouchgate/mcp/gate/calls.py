"""Tools of which a call writes one thing: the call as a claim, and the same call again when it may be made.

The claim is what the call says: every value that an agent wrote and that is more than a plain name of the place. One of
them (`text` in the configuration) may be edited by the owner; the others stand above it, a paragraph each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable

from vouchgate.adapters.rendering import render_value
from vouchgate.client import DeadLetter
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.texts import is_plain_name, words_in_name
from vouchgate.mcp.gate.config import CallWrite, ReadBack
from vouchgate.mcp.gate.reading import (
    Arguments,
    Found,
    choose,
    fill_arguments,
    fill_place,
    fill_template,
    has,
    proves,
    says_missing,
    texts_found,
    unclear_name,
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

PLACE_WORDS = 4  # of all plain names of a place together, as of one: a sentence can be cut into them


class CallForm(NamedTuple):
    """A tool, how it writes, and the names of arguments that it has itself: whoever calls it may bring others."""

    tool: str
    write: CallWrite
    named: Collection[str]


def list_arguments(tool: str, arguments: Arguments) -> str:
    """A call as its owner is shown it: the tool, and each argument."""
    return "\n".join([tool, *(f"{name}: {render_value(value)}" for name, value in arguments.items())])


def texts_beside(form: CallForm, arguments: Arguments) -> list[str]:
    """What an agent wrote beside the text, value by value. What it did not write is no statement, and left out: the
    names that the tool gives its arguments, what `only` allows, yes and no. So are plain names in the place, which is
    judged with the claim (`said_beside`) and shown to its owner."""
    write, named = form.write, form.named
    plain = {
        name: words_in_name(value)
        for name, value in arguments.items()
        if f"{{{name}}}" in write.place and isinstance(value, str) and _only_names(value)
    }
    if sum(plain.values()) > PLACE_WORDS:
        plain = {}
    found = list[str]()
    for name, value in arguments.items():
        unsaid = name in plain or isinstance(value, bool) or value in write.only.get(name, ())
        if name == write.text or (unsaid and name in named):
            continue
        told = render_value(value)
        found.append(told if name in named else f"{name}: {told}")
    return found


def _only_names(value: str) -> bool:
    """A number may be what is false, and `said_beside` looks at none."""
    return is_plain_name(value) and not any(map(str.isdigit, value))


def says_something(form: CallForm, arguments: Arguments) -> bool:
    """Whether a call that may have a text brings more than where that is written."""
    return form.write.text is not None and bool(_all_texts(form, arguments).strip())


def _all_texts(form: CallForm, arguments: Arguments) -> str:
    text = [render_value(value) for name, value in arguments.items() if name == form.write.text]
    return "\n\n".join([*texts_beside(form, arguments), *text])


def content_of(form: CallForm, arguments: Arguments) -> str:
    """The claim: all that the call says, a paragraph each, the text last. The whole call when it says nothing."""
    says = says_something(form, arguments)
    return _all_texts(form, arguments) if says else list_arguments(form.tool, arguments)


def approved_arguments(form: CallForm, arguments: Arguments, sent: object, content: str) -> dict[str, Any]:
    """The arguments to call with, given what the owner approved. `sent` is what the text argument was if it was no
    text: "json", or "none" when it was left out or the call says nothing. Raises DeadLetter when an edit went beyond
    the text."""
    text = form.write.text
    if text is None or sent == "none":
        if content != content_of(form, arguments):
            raise DeadLetter("The text was edited, but none of these arguments can be.")
        return dict(arguments)
    above = "".join(f"{told}\n\n" for told in texts_beside(form, arguments))
    rest = content.removeprefix(above)
    if rest == content and (above or content.split("\n", 1)[0].strip() == form.tool):
        raise DeadLetter("What stands above the text was edited; only the text below it can be.")
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
        data: dict[str, JsonValue] = {"tool": tool, "arguments": given}
        if write.text in given and says_something(self._form(tool), given):
            data["arguments"] = {name: value for name, value in given.items() if name != write.text}
            if not isinstance(given[write.text or ""], str):
                data["text"] = "json"
        elif write.text is not None:
            data["text"] = "none"
        content = content_of(self._form(tool), given)
        return Plan((Write(write.op, fill_place(write.place, given), content, data),))

    def _form(self, tool: str) -> CallForm:
        found = self._schemas[tool][0].get("properties")
        return CallForm(tool, self._tools[tool], found if isinstance(found, dict) else ())

    def _approved(
        self, tool: str, kept: Arguments, data: Mapping[str, JsonValue], content: str
    ) -> dict[str, Any]:
        return approved_arguments(self._form(tool), kept, data.get("text"), content)

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
        if write.new and (unclear := unclear_name(write.place, arguments)) is not None:
            raise CallRefused(
                f"The name {unclear!r} has white space at an end, or characters that do not print. The server may "
                "take it for another name, and what is there would go without its owner being asked: leave them out."
            )

    async def _removal(self, tool: str, write: CallWrite, given: dict[str, Any]) -> Plan:
        found = await self._read(write.read, given, surely=True)
        if found is None:
            return Plan((), (f"There is nothing to remove: {tool} {render_value(given)}.",))
        content = f"{list_arguments(tool, given)}\n\n{found.text}"
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
        arguments = self._approved(tool, kept, data, content)
        try:
            self._check(tool, write, arguments)
        except CallRefused as error:
            raise DeadLetter(str(error)) from None
        whole = content == content_of(self._form(tool), arguments)
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
        arguments = self._approved(tool, kept, data, content)
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
        found = await self._read(write.read, given, surely=True)
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
        there = await self._is_there(write, arguments, surely=True)
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

    async def _is_there(self, write: CallWrite, arguments: Arguments, *, surely: bool = False) -> bool | None:
        """None: what was read does not show it."""
        read, wanted = write.read, None if write.text is None else arguments.get(write.text, "")
        if read is False:
            return None
        if read.expect is not None:
            wanted = fill_template(read.expect, arguments)
        found = await self._read(read, arguments, wanted, surely=surely)
        if found is None or not has(found.text, wanted):
            return False
        return proves(read, fill_arguments(read.arguments, arguments), found, wanted) or None

    async def _is_something_else_there(self, write: CallWrite, given: Arguments) -> bool:
        found = await self._read(write.read, given, surely=True)
        return found is not None and not await self._is_there(write, given)

    async def _read(
        self,
        read: ReadBack | Literal[False],
        arguments: Arguments,
        wanted: object = None,
        *,
        surely: bool = False,
    ) -> Found | None:
        """The text that is there; of several the one that has what is wanted. None when there is none. See `choose`."""
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
        return choose(read, answer, wanted, found, surely=surely)

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
                arguments = self._approved(tool, kept, write.data, write.content)
                done = await self._is_there(configured, arguments) is True
            if done:
                found.add(write.place)
        return frozenset(found)

    def structured_content(
        self, tool: str, arguments: Arguments, plan: Plan, done: Collection[str], words: str
    ) -> dict[str, Any] | None:
        """See `Writer`."""
        return fit_to_schema(self._schemas[tool][1], words)
