"""What a batch of a gated LangGraph store does, in which order. Pure: each step is taken by a driver that waits for it,
with or without `await`, and puts what came of it into the step.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from langgraph.store.base import GetOp, Item, Op, PutOp, Result, validate_op_namespace

from vouchgate.adapters.langgraph_ops import (
    Namespace,
    Terms,
    Write,
    WriteAnswer,
    as_masked,
    as_replacement,
    build_removal,
    build_write,
)
from vouchgate.client import ApiError, Problem
from vouchgate.client.calls import new_key
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.leased import Delivery
from vouchgate.ingest.rules import Rule

# Seconds between looks whether another process, which holds the owner's deliveries just now, has written ours.
WAITS = (0.05, 0.1, 0.2)


@dataclass(slots=True)
class RunInStore:
    """Run these on the store behind the gate."""

    ops: Sequence[Op]
    results: list[Result] = field(default_factory=list)


@dataclass(slots=True)
class SendClaims:
    """Send the claims of these."""

    writes: Sequence[Write]
    key: str = field(default_factory=new_key)
    results: list[ValidationResult | Problem] = field(default_factory=list)


@dataclass(slots=True)
class DeliverWrites:
    """Write what the gate lets through for this owner, or what it `handed` over. `errors` is what the store raised."""

    owner: str | None
    handed: Delivery | None = None
    errors: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Pause:
    """Wait."""

    seconds: float


Step = RunInStore | SendClaims | DeliverWrites | Pause


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The results of a batch, what became of each gated write, and the error of the first that was not decided."""

    results: list[Result]
    answers: Sequence[WriteAnswer] = ()
    error: ApiError | None = None


def batch(
    ops: Sequence[Op], terms: Terms, ungated: Sequence[Namespace]
) -> Generator[Step, None, BatchResult]:
    """As in every store the reads see what was there before the batch, and of two writes to one key the last counts.
    Raises Unrenderable, and InvalidNamespaceError, before any step."""
    for op in ops:
        validate_op_namespace(op)
    gated = {
        at: op for at, op in enumerate(ops) if isinstance(op, PutOp) and not _passes_ungated(op, ungated)
    }
    last = list({(op.namespace, op.key): op for op in gated.values()}.values())
    puts = {id(op): build_write(op, terms) for op in last if op.value is not None}
    # Also when there is nothing to run: a store that does not know this way of asking says so before the gate is asked.
    rest = RunInStore([op for at, op in enumerate(ops) if at not in gated])
    yield rest
    # A store in memory hands out what it keeps, and its readers are not to change that.
    passed = iter(copy.deepcopy(rest.results))
    results: list[Result] = [None if at in gated else next(passed) for at in range(len(ops))]
    writes: list[Write] = []
    for op in last:
        write = yield from _requested_write(op, puts.get(id(op)), terms)
        if write is not None:
            writes.append(write)
    if not writes:
        return BatchResult(results)
    saved = SendClaims(writes)
    yield saved
    pairs = list(zip(writes, saved.results, strict=True))
    answers = yield from _answers(
        [(as_masked(write, one), one) for write, one in pairs if isinstance(one, ValidationResult)]
    )
    errors = [_error(one, saved.key) for one in saved.results if isinstance(one, Problem)]
    return BatchResult(results, answers, errors[0] if errors else None)


def _passes_ungated(op: PutOp, ungated: Sequence[Namespace]) -> bool:
    return any(op.namespace[: len(prefix)] == prefix for prefix in ungated)


def _requested_write(op: PutOp, put: Write | None, terms: Terms) -> Generator[Step, None, Write | None]:
    """What to ask the gate for a put or delete; None for a delete of what is not there.

    The owner is asked before a memory is overwritten. Of what was in the store before the gate the gate knows nothing,
    so that this looks, and says that something is there.
    """
    there = yield from _existing_item(op)
    nothing_to_delete = put is None and there is None
    if nothing_to_delete or (put is not None and _differs(there, put)):
        yield DeliverWrites(terms.owner(op.namespace))  # it may be on its way in, or out
        there = yield from _existing_item(op)
    if put is None:
        return None if there is None else build_removal(op, there, terms)
    return as_replacement(put) if _differs(there, put) else put


def _existing_item(op: PutOp) -> Generator[Step, None, Item | None]:
    look = RunInStore([GetOp(op.namespace, op.key, refresh_ttl=False)])
    yield look
    (found,) = look.results
    return found if isinstance(found, Item) else None


def _differs(there: Item | None, put: Write) -> bool:
    return there is not None and there.value != put.value


def _answers(pairs: list[tuple[Write, ValidationResult]]) -> Generator[Step, None, list[WriteAnswer]]:
    """Writes what the gate let through, and looks what the store shows of each write."""
    # A duplicate may be of what is on its way to this very place, or stands there already.
    owners = {write.owner: None for write, one in pairs if _stored(one) or one.rule == Rule.DUPLICATE}
    handed = {write.owner: one.delivery for write, one in pairs}
    errors: list[str] = []
    written: list[bool] = []
    for wait in (None, *WAITS):
        if wait is not None:
            yield Pause(wait)
        for owner in owners:
            delivered = DeliverWrites(owner, handed.pop(owner, None))
            yield delivered
            errors += delivered.errors
        look = RunInStore([GetOp(write.namespace, write.key, refresh_ttl=False) for write, _ in pairs])
        yield look
        written = [_holds(item, write) for item, (write, _) in zip(look.results, pairs, strict=True)]
        if errors or all(done for done, (_, one) in zip(written, pairs, strict=True) if _stored(one)):
            break
    return [
        WriteAnswer(
            write.namespace,
            write.key,
            removal=write.value is None,
            verdict=one,
            written=done,
            error=errors[-1] if errors and _stored(one) and not done else None,
        )
        for done, (write, one) in zip(written, pairs, strict=True)
    ]


def _stored(verdict: ValidationResult) -> bool:
    return verdict.passed


def _holds(item: Result, write: Write) -> bool:
    if write.value is None:
        return item is None
    return isinstance(item, Item) and item.value == write.value


def _error(problem: Problem, key: str) -> ApiError:
    error = problem.error()
    error.idempotency_key = key
    return error
