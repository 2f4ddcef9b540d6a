"""The gate in front of another MCP server, without the protocol: a tool call becomes claims, and what the gate lets
through is written by draining the outbox.

Nothing is written to the server but by a delivery: at once for what was stored, later for what its owner approved.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import JsonValue

from vouchgate.adapters.under_way import UnderWay
from vouchgate.client import (
    ApiError,
    AsyncClient,
    DeadLetter,
    Delivered,
    Delivery,
    DeliveryState,
    Unsendable,
    VouchgateError,
)
from vouchgate.client.deliver import BEGIN_WITHIN
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.rules import Rule
from vouchgate.mcp.gate.calls import CallWriter
from vouchgate.mcp.gate.config import CallWrite, Config, GraphWrite
from vouchgate.mcp.gate.graph_writer import GraphWriter
from vouchgate.mcp.gate.owner import Owner, UnusableToken
from vouchgate.mcp.gate.replies import (
    GatedAnswer,
    VerdictOrProblem,
    WriteState,
    build_verdict,
    describe_write,
    earlier_state,
    state_of,
)
from vouchgate.mcp.gate.writes import (
    CallRefused,
    NotAllShown,
    Plan,
    Server,
    ServerAnswer,
    ServerDeclined,
    ServerFailed,
    Write,
    Writer,
)

# How long a call waits for what was stored to be written, in seconds between looks: another gate of the same owner may
# be at it. Later it is said to be on its way.
_LOOKS = (0.0, 0.2, 0.5, 1.0)
# How often what the server declines is tried before it is given up, so that what stands behind it can go on.
_TRIES = 3
_ERASED = "Its memory was erased, and the server finds it by its text alone: take it out by hand."
_REMEMBERED = 1000  # outcomes of deliveries that no call has asked for

T = TypeVar("T")
Schemas = Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any] | None]]


@dataclass(slots=True)
class _DeliveryOutcomes:
    """What became of the deliveries that this process applied, by memory, until a call asks."""

    applied: OrderedDict[str, None] = field(default_factory=OrderedDict)
    answers: OrderedDict[str, ServerAnswer] = field(default_factory=OrderedDict)
    failures: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def keep(self, where: OrderedDict[str, T], memory_id: str | None, value: T) -> None:
        if memory_id is not None:
            where[memory_id] = value
            while len(where) > _REMEMBERED:
                where.popitem(last=False)


@dataclass(slots=True)
class _WrittenPlaces:
    """The places of a call's writes that the server has, those of them that this call brought, and of those that it has
    not, although the gate stored the same before, the newest delivery."""

    there: set[str] = field(default_factory=set)
    new: set[str] = field(default_factory=set)
    earlier: dict[str, DeliveryState] = field(default_factory=dict)


class Unavailable(Exception):
    """The gate could not be asked. The message is a sentence for the model."""


class MemoryGate:
    """One server behind the gate. `schemas` are the input and output schemas of its tools."""

    def __init__(
        self, client: AsyncClient, server: Server, config: Config, schemas: Schemas, owner: Owner
    ) -> None:
        graph = {tool: write for tool, write in config.write.items() if isinstance(write, GraphWrite)}
        calls = {tool: write for tool, write in config.write.items() if isinstance(write, CallWrite)}
        self._client, self._config, self._schemas, self._owner = client, config, schemas, owner
        self._graph, self._calls = GraphWriter(server, graph), CallWriter(server, calls, schemas)
        self._written_by_calls = frozenset(calls)
        self._remembered = _DeliveryOutcomes()
        # One write at a time: the servers behind read all, change it and write all back.
        self._writing = asyncio.Lock()
        self._under_way = UnderWay()

    def _writer(self, tool: str) -> Writer:
        return self._calls if tool in self._written_by_calls else self._graph

    async def deliver_pending(self) -> Delivered:
        """Writes what may be written by now. Raises VouchgateError when the gate cannot be asked, and Unusable."""
        return await self._deliver(await self._owner.id(), None)

    async def wait_for_writes(self, seconds: float) -> None:
        """Waits for what is being written, so that no lease is left behind, but not for longer than this."""
        await self._under_way.wait(seconds)

    async def _deliver(
        self, owner: str, memories: Collection[str] | None, handed: Delivery | None = None
    ) -> Delivered:
        """Writes what was `handed` over, or drains the outbox, unless another call, whose turn came first, has written
        these memories too."""
        return await self._under_way.to_its_end(self._in_turn(owner, memories, handed))

    async def _in_turn(
        self, owner: str, memories: Collection[str] | None, handed: Delivery | None
    ) -> Delivered:
        latest = time.monotonic() + BEGIN_WITHIN
        async with self._writing:
            if memories is not None and all(one in self._remembered.applied for one in memories):
                return Delivered(0, 0, 0)
            handed = handed if time.monotonic() < latest else None
            return await self._client.deliver(self._config.sink, self._apply, user_id=owner, handed=handed)

    async def _apply(self, delivery: Delivery) -> None:
        kept, memory_id = self._remembered, delivery.memory_id
        tool = str(delivery.data.get("tool"))
        try:
            writer, what = self._writer(tool), (delivery.op, delivery.place, delivery.content, delivery.data)
            if delivery.op is DeliveryOp.REMOVE and delivery.memory_id is not None and not delivery.content:
                raise DeadLetter(_ERASED)
            if not writer.is_unedited(*what):
                await self._require_approval(delivery)
            answer = await writer.apply(*what, replacing=await self._replaces(tool, delivery))
        except (ServerFailed, DeadLetter) as error:
            kept.keep(kept.failures, memory_id, str(error))
            declined = isinstance(error, ServerDeclined) and delivery.attempts >= _TRIES - 1
            if declined or isinstance(error, NotAllShown):
                raise DeadLetter(str(error)) from None
            raise
        kept.keep(kept.applied, memory_id, None)
        if answer is not None:
            kept.keep(kept.answers, memory_id, answer)

    async def _require_approval(self, delivery: Delivery) -> None:
        """Raises DeadLetter unless an owner, who is shown the data too, let the claim through."""
        if delivery.memory_id is not None:
            memory = await self._client.memory(delivery.memory_id)
            if memory.approved_by is not None:
                return
        raise DeadLetter(
            "It would write more than was checked, and no owner approved it: it was not sent by this gate."
        )

    async def _replaces(self, tool: str, delivery: Delivery) -> bool:
        """Whether the owner agreed to replace what the gate had written at this place. What stands there now may be
        something else, which nobody was asked about; so only tools that are told how to replace are told to."""
        write = self._config.write.get(tool)
        if not (isinstance(write, CallWrite) and write.replace) or delivery.memory_id is None:
            return False
        known = (await self._client.evidence(delivery.memory_id)).at_place
        return known is not None and known.memory is not None

    async def write(self, tool: str, arguments: Mapping[str, Any]) -> GatedAnswer:
        """A call of a tool that writes. Never raises for what a model can be told."""
        writer = self._writer(tool)
        try:
            plan = await writer.plan(tool, arguments)
            rows, done = await self._under_way.to_its_end(self._ask_and_write(writer, plan))
        except CallRefused as error:
            return GatedAnswer(str(error), is_error=True)
        except ServerFailed as error:
            return GatedAnswer(
                f"{error} Nothing was sent to Vouchgate, and nothing was written.", is_error=True
            )
        except Unavailable as error:
            return GatedAnswer(str(error), is_error=True)
        return self._build_answer(tool, arguments, plan, rows, done)

    async def _ask_and_write(
        self, writer: Writer, plan: Plan
    ) -> tuple[Sequence[VerdictOrProblem], _WrittenPlaces]:
        rows = await self._ask(plan)
        return rows, await self._carry_out(writer, plan, rows)

    async def _ask(self, plan: Plan) -> Sequence[VerdictOrProblem]:
        if not plan.writes:
            return ()
        try:
            owner = await self._owner.id()
            claims = [self._claim(write, owner) for write in plan.writes]
            return await self._client.save_many(claims, hand_over=True)
        except (UnusableToken, Unsendable) as error:
            raise Unavailable(f"Vouchgate cannot be asked: {error}. Nothing was written.") from None
        except ApiError as error:
            raise Unavailable(f"Vouchgate refused: {error.detail} Nothing was written.") from None
        except VouchgateError as error:
            raise Unavailable(
                f"Vouchgate could not be asked ({type(error).__name__}), so nothing was written. Say so to the user, "
                "and try again later."
            ) from None

    def _claim(self, write: Write, owner: str) -> dict[str, object]:
        delivery = {"sink": self._config.sink, "place": write.place, "op": write.op.value, "data": write.data}
        return {
            "content": write.content,
            "memory_type": self._config.memory_type.value,
            "source": self._config.source.value,
            "user_id": owner,
            "delivery": delivery,
        }

    async def _carry_out(
        self, writer: Writer, plan: Plan, rows: Sequence[VerdictOrProblem]
    ) -> _WrittenPlaces:
        """Sees to it that what was stored is written."""
        verdicts = [
            (write, row)
            for write, row in zip(plan.writes, rows, strict=True)
            if isinstance(row, ValidationResult)
        ]
        stored = [(write, row) for write, row in verdicts if row.passed]
        doubles = [
            (write, row)
            for write, row in verdicts
            if row.rule == Rule.DUPLICATE and write.op is DeliveryOp.PUT
        ]
        ids = [row.memory_id for _, row in stored if row.memory_id is not None]
        found = _WrittenPlaces()
        try:
            owner = await self._owner.id()
            await self._find_duplicates(writer, doubles, owner, found)
            handed = stored[0][1].delivery if stored else None
            for pause in _LOOKS if stored else ():
                await asyncio.sleep(pause)
                await self._deliver(owner, ids, handed)
                handed = None
                # What this process wrote was read back then; another may have written the rest.
                applied = self._remembered.applied
                found.new |= {write.place for write, row in stored if row.memory_id in applied}
                others = [write for write, _ in stored if write.place not in found.new]
                found.new |= await writer.written_places(others) if others else frozenset()
                left = [row.memory_id or "" for write, row in stored if write.place not in found.new]
                if not left or any(memory_id in self._remembered.failures for memory_id in left):
                    break
        except (ServerFailed, DeadLetter, VouchgateError) as error:
            for write, row in stored:
                if write.place not in found.new and row.memory_id not in self._remembered.failures:
                    self._remembered.keep(self._remembered.failures, row.memory_id, _describe_error(error))
        return found

    async def _find_duplicates(
        self,
        writer: Writer,
        doubles: Collection[tuple[Write, ValidationResult]],
        owner: str,
        found: _WrittenPlaces,
    ) -> None:
        """Of what the gate keeps already, in these very words: what never was sent to this server is written to it.
        What was, and is not there, is on its way, or was not taken, or was taken away there, and is not brought back
        by an agent."""
        found.there |= await writer.written_places([write for write, _ in doubles])
        for write, row in doubles:
            if write.place in found.there or row.conflicting_memory_id is None:
                continue
            memory = await self._client.memory(row.conflicting_memory_id)
            if memory.content != write.content or memory.status is not MemoryStatus.ACTIVE:
                continue
            known = await self._client.deliveries(
                user_id=owner, sink=self._config.sink, memory_id=memory.id, limit=100
            )
            if earlier := [each for each in known.items if each.place == write.place]:
                found.earlier[write.place] = earlier[0]
                continue
            if writer is self._calls:  # the text alone says neither which tool writes it nor where
                continue
            async with self._writing:
                await writer.apply(write.op, write.place, write.content, write.data)
            found.new.add(write.place)

    def _build_answer(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        plan: Plan,
        rows: Sequence[VerdictOrProblem],
        done: _WrittenPlaces,
    ) -> GatedAnswer:
        failures = self._remembered.failures
        lines, verdicts, states = list(plan.notes), list[dict[str, JsonValue]](), set[WriteState]()
        for write, row in zip(plan.writes, rows, strict=True):
            failure = failures.pop(row.memory_id or "", None) if isinstance(row, ValidationResult) else None
            place = write.place
            before = None
            if (earlier := done.earlier.get(place)) is not None:
                before, failure = earlier_state(earlier), earlier.last_error or f"it is {earlier.state}"
            there = place in done.there | done.new
            state = state_of(row, there=there, earlier=before, failure=failure)
            states.add(state)
            lines.append(describe_write(write, row, state, failure))
            verdicts.append(build_verdict(write, row, state))
        words = "\n".join(lines) or "There was nothing to write."
        wrong = bool(states & {WriteState.REFUSED, WriteState.FAILED})
        answer = self._answer(rows)
        if answer is not None and answer.structured is not None:
            return GatedAnswer(words, answer.structured, tuple(verdicts), answer, wrong)
        shaped = self._writer(tool).structured_content(tool, arguments, plan, done.new, words)
        unshaped = shaped is None and self._schemas[tool][1] is not None
        return GatedAnswer(words, shaped, tuple(verdicts), answer, wrong or unshaped)

    def _answer(self, rows: Sequence[VerdictOrProblem]) -> ServerAnswer | None:
        """What the server answered, when the call was passed on as it is."""
        ids = [row.memory_id for row in rows if isinstance(row, ValidationResult) and row.memory_id]
        for memory_id in ids:
            self._remembered.applied.pop(memory_id, None)
        found = [self._remembered.answers.pop(memory_id, None) for memory_id in ids]
        return found[0] if len(found) == len(rows) == 1 else None


def _describe_error(error: Exception) -> str:
    return (
        str(error) if isinstance(error, ServerFailed) else f"Vouchgate could not be asked for it ({error})."
    )
