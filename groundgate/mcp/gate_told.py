"""What a model is told of a call that went through the gate. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

from pydantic import JsonValue

from groundgate.client import Problem, next_step
from groundgate.mcp.gate_writes import Answer, Write
from ingest.types import DeliveryOp, Outcome, ValidationResult

_SHOWN = 200  # characters of a claim in an answer

Row = ValidationResult | Problem


class State(StrEnum):
    """What became of one thing that a call wanted written."""

    WRITTEN = "written"
    THERE = "there"  # the same was stored before, and is in the server
    GONE = "gone"  # the same was stored before, and taken out of the server since
    ON_ITS_WAY = "on_its_way"  # stored by the gate; the outbox has it
    FAILED = "failed"  # stored by the gate; the server did not take it yet, or for good
    QUEUED = "queued"
    BLOCKED = "blocked"
    REFUSED = "refused"  # no verdict: it could not be sent, or the queue is full


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to a gated call. `words` tell what became of each thing; `verdicts` say the same for programs.
    `structured` has the shape that the tool promises; where that cannot be made, the answer is an error."""

    words: str
    structured: dict[str, Any] | None = None
    verdicts: tuple[dict[str, JsonValue], ...] = ()
    answer: Answer | None = None
    is_error: bool = False


def state_of(row: Row, *, there: bool, gone: bool, failure: str | None) -> State:
    """`there`: it is in the server. `gone`: it was, and is not now. `failure`: why it could not be written there."""
    if isinstance(row, Problem):
        return State.REFUSED
    match row.outcome:
        case Outcome.STORED:
            return State.WRITTEN if there else State.ON_ITS_WAY if failure is None else State.FAILED
        case Outcome.QUEUED:
            return State.QUEUED
        case Outcome.BLOCKED:
            return State.THERE if there else State.GONE if gone else State.BLOCKED
    assert_never(row.outcome)


def line(write: Write, row: Row, state: State, failure: str | None) -> str:
    """What became of one thing, for the model."""
    what = write.content if len(write.content) <= _SHOWN else write.content[:_SHOWN] + "…"
    if isinstance(row, Problem):
        return f"Not written, Groundgate refused it ({row.code}: {row.detail}): {what}"
    said = {
        State.WRITTEN: "Written",
        State.THERE: "There already",
        State.GONE: "Not written, it was taken out of the memory server and its owner has to bring it back",
        State.ON_ITS_WAY: "Stored by Groundgate, and on its way to the memory server",
        State.FAILED: f"Stored by Groundgate, but not in the memory server ({failure})",
        State.QUEUED: "Not written" if write.op is DeliveryOp.PUT else "Not removed",
    }.get(state, "Not written")
    if state in (State.QUEUED, State.BLOCKED):
        return f"{said}: {what}\n  {row.reason}. {next_step(row)}"
    return f"{said}: {what}"


def verdict_of(write: Write, row: Row, state: State) -> dict[str, JsonValue]:
    """One of the `groundgate/verdicts` in an answer's `_meta`."""
    shown: dict[str, JsonValue] = {
        "content": write.content,
        "place": write.place,
        "op": write.op.value,
        "state": state.value,
    }
    if isinstance(row, Problem):
        return {**shown, "reason": row.detail, "code": row.code}
    told: dict[str, JsonValue] = {
        "outcome": row.outcome.value,
        "reason": row.reason,
        "rule": row.rule,
        "next_step": next_step(row),
        "decision_id": row.decision_id,
        "memory_id": row.memory_id,
        "queue_id": row.queue_id,
        "conflicting_memory_id": row.conflicting_memory_id,
    }
    return {**shown, **{name: value for name, value in told.items() if value is not None}}


def as_text(structured: Mapping[str, Any]) -> str:
    """Structured content as the text that stands beside it, as the servers behind write it."""
    values = list(structured.values())
    return json.dumps(values[0] if len(values) == 1 else structured, ensure_ascii=False, indent=2)
