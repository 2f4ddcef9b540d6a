"""What a model is told of a call that went through the gate. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import JsonValue

from vouchgate.client import DeliveryState, Problem, next_step
from vouchgate.ingest.claims.decision import Outcome, ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.mcp.gate.writes import ServerAnswer, Write

_SHOWN = 200  # characters of a claim in an answer

VerdictOrProblem = ValidationResult | Problem


class WriteState(StrEnum):
    """What became of one thing that a call wanted written."""

    WRITTEN = "written"
    THERE = "there"  # the same was stored before, and is in the server
    GONE = "gone"  # the same was stored before, and taken out of the server since
    ON_ITS_WAY = "on_its_way"  # stored by the gate; the outbox has it
    FAILED = "failed"  # stored by the gate; the server did not take it, or nothing shows that it did
    QUEUED = "queued"
    BLOCKED = "blocked"
    REFUSED = "refused"  # no verdict: it could not be sent, or the queue is full


@dataclass(frozen=True, slots=True)
class GatedAnswer:
    """The answer to a gated call. `words` tell what became of each thing; `verdicts` say the same for programs.
    `structured` has the shape that the tool promises; where that cannot be made, the answer is an error."""

    words: str
    structured: dict[str, Any] | None = None
    verdicts: tuple[dict[str, JsonValue], ...] = ()
    answer: ServerAnswer | None = None
    is_error: bool = False


def earlier_state(delivery: DeliveryState) -> WriteState:
    """What became of what was stored before and is not in the server now, by its newest delivery."""
    match delivery.state:
        case "delivered":
            return WriteState.GONE
        case "waiting":
            return WriteState.ON_ITS_WAY
        case _:
            return WriteState.FAILED


def state_of(
    row: VerdictOrProblem, *, there: bool, earlier: WriteState | None, failure: str | None
) -> WriteState:
    """`there`: it is in the server. `earlier`: what became of the same, stored before. `failure`: why it could not be
    written there."""
    if isinstance(row, Problem):
        return WriteState.REFUSED
    match row.outcome:
        case Outcome.STORED:
            return (
                WriteState.WRITTEN
                if there
                else WriteState.ON_ITS_WAY
                if failure is None
                else WriteState.FAILED
            )
        case Outcome.QUEUED:
            return WriteState.QUEUED
        case Outcome.BLOCKED:
            return WriteState.THERE if there else earlier or WriteState.BLOCKED


def describe_write(write: Write, row: VerdictOrProblem, state: WriteState, failure: str | None) -> str:
    """What became of one thing, for the model."""
    what = write.content if len(write.content) <= _SHOWN else write.content[:_SHOWN] + "…"
    if isinstance(row, Problem):
        return f"Not written, Vouchgate refused it ({row.code}: {row.detail}): {what}"
    said = {
        WriteState.WRITTEN: "Written",
        WriteState.THERE: "There already",
        WriteState.GONE: "Not written, it was taken out of the memory server and its owner has to bring it back",
        WriteState.ON_ITS_WAY: "Stored by Vouchgate, and on its way to the memory server",
        WriteState.FAILED: f"Stored by Vouchgate, but not in the memory server as far as is known ({failure})",
        WriteState.QUEUED: "Not written" if write.op is DeliveryOp.PUT else "Not removed",
    }.get(state, "Not written")
    if state in (WriteState.QUEUED, WriteState.BLOCKED):
        return f"{said}: {what}\n  {row.reason}. {next_step(row)}"
    return f"{said}: {what}"


def build_verdict(write: Write, row: VerdictOrProblem, state: WriteState) -> dict[str, JsonValue]:
    """One of the `vouchgate/verdicts` in an answer's `_meta`."""
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
