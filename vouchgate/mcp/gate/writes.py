"""One thing that a tool call writes, and what is asked of the server behind the gate. Pure, but for the protocols."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
from pydantic import JsonValue

from vouchgate.client import DeadLetter
from vouchgate.ingest.claims.delivery import DeliveryOp

MAX_PLACE = 512  # characters, as the API has it
CONTENT = 8192  # characters; ingest.policy.MAX_CONTENT_CHARACTERS

# Seconds between looks for what was just written: some servers show it a moment later, and what is taken for lost is
# written again.
_LOOKS = (0.0, 0.1, 0.3, 0.8)


class CallRefused(Exception):
    """The call is not passed on, and nothing was sent anywhere. The message is for the model that made it."""


class ServerFailed(Exception):
    """The server behind the gate does not answer, or with nothing that can be read. It is tried again."""


class ServerLost(ServerFailed):
    """A call was sent to it, and no answer came: what it asked for may be done."""


class ServerDeclined(ServerFailed):
    """The server answered, and did not do what it was asked for. It is tried again, but not for hours: what stands
    behind it in the outbox waits for it."""


class NotAllShown(ServerDeclined):
    """What the server lists ends before what is looked for, or without it: nobody knows, however often it is asked."""


@dataclass(frozen=True, slots=True)
class Write:
    """One thing to be written, or to go: what the owner is shown (`content`: all text that will be written), where it
    is (`place`, the same for writing and removing one thing), and what is needed to do it later (`data`)."""

    op: DeliveryOp
    place: str
    content: str
    data: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a tool call comes to: the things it writes, each once, and what is not written because it need not be."""

    writes: tuple[Write, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What a tool of the server answered: `text` of all its text blocks, and the structured content."""

    text: str
    structured: dict[str, Any] | None
    blocks: tuple[Any, ...] = ()  # as they came, for whoever passes them on


class Server(Protocol):
    """The server behind the gate."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ServerAnswer:
        """Calls a tool. Raises Declined when it answers with an error, Lost when it does not answer, and Failed when
        nothing was sent."""
        ...


class Writer(Protocol):
    """How one kind of tool writes: the knowledge graph's (`gate_graph`), or any call (`gate_calls`)."""

    async def plan(self, tool: str, arguments: Mapping[str, Any]) -> Plan:
        """What the call would write; nothing is written. Raises Refused, or Failed when it had to ask."""
        ...

    def is_unedited(self, op: DeliveryOp, place: str, content: str, data: Mapping[str, JsonValue]) -> bool:
        """Whether `content` tells all that `data` would have written, as `plan` makes it. If not, an owner edited it,
        or it comes from another program. Raises DeadLetter for another place than that of `data`: whatever the gate
        and the owner knew of the place, they did not know of this."""
        ...

    async def apply(
        self,
        op: DeliveryOp,
        place: str,
        content: str,
        data: Mapping[str, JsonValue],
        *,
        replacing: bool = False,
    ) -> ServerAnswer | None:
        """Does what a write asked for, with the text that was approved, unless it is done already, and looks whether it
        is there. `replacing`: the owner agreed that it takes the place of what the gate wrote there before. Gives the
        server's answer, when it was one call. Raises Failed to be tried again, DeadLetter when that is of no use."""
        ...

    async def written_places(self, writes: Collection[Write]) -> frozenset[str]:
        """The places of those that are there now as asked for; of removals, of those that are gone."""
        ...

    def structured_content(
        self, tool: str, arguments: Mapping[str, Any], plan: Plan, done: Collection[str], words: str
    ) -> dict[str, Any] | None:
        """Structured content of the tool's own shape for a call of which only the places in `done` were written."""
        ...


async def until_seen(look: Callable[[], Awaitable[bool | None]]) -> bool | None:
    """What `look` finds, looking again as long as that is False."""
    seen: bool | None = False
    for pause in _LOOKS:
        await anyio.sleep(pause)
        if (seen := await look()) is not False:
            break
    return seen


def digest(text: str) -> str:
    """A short name of a text. 96 bits: two texts of one owner with the same are not to be feared."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def other_place_message(place: str) -> DeadLetter:
    """What is said of a delivery whose data are those of another place."""
    return DeadLetter(
        f"It is not for {place[:80]}, as was said when it was sent: it was not sent by this gate."
    )


def place_of(kind: str, *parts: str) -> str:
    """A place that tells its parts apart, readable where they are short."""
    named = json.dumps([kind, *parts], ensure_ascii=False)
    return named if len(named) <= MAX_PLACE else json.dumps([kind, *map(digest, parts)])


def distinct_writes(writes: Sequence[Write]) -> tuple[Write, ...]:
    """Each place once, in order: a call that says a thing twice writes it once."""
    found = dict[str, Write]()
    for write in writes:
        found.setdefault(write.place, write)
    return tuple(found.values())


def texts_in(value: object) -> Iterator[str]:
    """The texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
