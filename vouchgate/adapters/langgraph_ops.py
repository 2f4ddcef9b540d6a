"""A write of a LangGraph store as a claim, and a delivery as the write it allows. Pure.

Only this is needed to know what gets into the store: `build_write` and `build_removal` say what the gate is shown,
`op_for_delivery` what is written when the gate or an owner has let it through.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langgraph.store.base import GetOp, Item, PutOp, Result, validate_op_namespace
from pydantic import JsonValue

from vouchgate.adapters.rendering import (
    Unrenderable,
    Unrestorable,
    labels_of,
    place_of,
    render,
    restore,
    without_kind,
)
from vouchgate.client import DeadLetter, Delivery, next_step
from vouchgate.client.calls import ClaimOptions
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.policy import MAX_CONTENT_CHARACTERS, MAX_METADATA_BYTES

Namespace = tuple[str, ...]
Index = Literal[False] | list[str] | None


@dataclass(frozen=True, slots=True)
class Terms:
    """What is said of every claim of one store; `user_id` may depend on the namespace, None is the token's owner."""

    sink: str
    memory_type: str
    source: str
    user_id: str | Callable[[Namespace], str] | None

    def owner(self, namespace: Namespace) -> str | None:
        """Whose memories this namespace holds."""
        return self.user_id(namespace) if callable(self.user_id) else self.user_id


@dataclass(frozen=True, slots=True)
class Write:
    """A put or delete, and the claim that asks for it. `value` is what the store will hold; None: it is to go."""

    namespace: Namespace
    key: str
    owner: str | None
    content: str
    options: ClaimOptions
    value: dict[str, JsonValue] | None


@dataclass(frozen=True, slots=True)
class WriteAnswer:
    """What became of one put, or delete (`removal`).

    `written`: the store behind the gate is as the caller wanted it. A claim can be stored at the gate and not written
    yet: `error` then says what the store behind it raised, if it was that."""

    namespace: Namespace
    key: str
    removal: bool
    verdict: ValidationResult
    written: bool
    error: str | None = None

    def __str__(self) -> str:
        """One or two sentences for the agent: what happened, why, and what to do now."""
        what = "deleted" if self.removal else "saved"
        if self.written:
            masked = self.verdict.passed and not self.verdict.as_sent and not self.removal
            return f"The memory is {what}" + (", with masks in place of personal data." if masked else ".")
        if self.verdict.passed:
            why = f": {self.error}" if self.error else "."
            return f"The memory is stored at the gate, and not yet in the store behind it; it will be{why}"
        reason = self.verdict.reason.rstrip(".")
        return f"The memory was not {what}: {reason}. {next_step(self.verdict)}"


def build_write(op: PutOp, terms: Terms) -> Write:
    """The claim that a put makes. Raises Unrenderable (a ValueError) for what the gate could not judge or keep."""
    assert op.value is not None  # noqa: S101  (a delete is `build_removal`'s)
    named = without_kind(op.value)
    done = render(_labels(op), op.value if named is None else named)
    data: dict[str, JsonValue] = {
        "path": None if done.path is None else list(done.path),
        **({} if named is None else {"kind": True}),
        "index": list(op.index) if isinstance(op.index, list | tuple) else op.index,
        "ttl": op.ttl,
    }
    _check_data(data)
    options = _options(op, terms, "put", data)
    value = done.value if named is None else _with_kind(done.value)
    return Write(op.namespace, op.key, terms.owner(op.namespace), done.text, options, value)


def as_replacement(put: Write) -> Write:
    """The same, where something else is in the store already: whatever it is, its owner is asked."""
    delivery = {**(put.options["delivery"] or {}), "replaces": True}
    return dataclasses.replace(put, options={**put.options, "delivery": delivery})


def build_removal(op: PutOp, there: Item, terms: Terms) -> Write:
    """The claim that asks for a removal: its text is what is to go, as far as a claim can hold it."""
    try:
        text = render(_labels(op), there.value).text
    except Unrenderable:  # it was there before the gate
        told = json.dumps(there.value, default=str, ensure_ascii=False)
        text = told.encode(errors="replace").decode()[:MAX_CONTENT_CHARACTERS]
    options = _options(op, terms, "remove", {})
    return Write(op.namespace, op.key, terms.owner(op.namespace), text, options, None)


def op_for_delivery(delivery: Delivery, terms: Terms) -> PutOp:
    """The write that a delivery allows. Raises DeadLetter when it allows none: the owner edited it out of shape, or it
    is not from here, or it is for a namespace of somebody else's."""
    try:
        *namespace, key = labels_of(delivery.place)
        if not namespace:
            raise Unrestorable(f"{delivery.place} names no namespace.")
        op = PutOp(tuple(namespace), key, None)
        validate_op_namespace(op)
        _check_owner(op.namespace, delivery.owner_id, terms)
        if delivery.op is DeliveryOp.REMOVE:
            return op
        value = _restored(delivery.place, delivery.data, delivery.content)
        return op._replace(value=value, index=_index(delivery.data), ttl=_ttl(delivery.data))
    except ValueError as error:
        raise DeadLetter(f"It cannot be written to the LangGraph store. {error}") from error


def _restored(place: str, data: Mapping[str, JsonValue], text: str) -> dict[str, JsonValue]:
    path = data.get("path")
    if path is not None and not isinstance(path, list):
        raise Unrestorable("Its path is none.")
    value = restore(place, path, text)
    return _with_kind(value) if data.get("kind") is True else value


def _with_kind(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    ((kind, content),) = value.items()
    return {"kind": kind, "content": content}


def as_masked(write: Write, verdict: ValidationResult) -> Write:
    """What the store will hold where the gate has masked personal data in the text."""
    text = verdict.evidence.claim.content
    if write.value is None or text == write.content:
        return write
    target: Any = write.options["delivery"]
    try:
        return dataclasses.replace(write, value=_restored(target["place"], target["data"], text))
    except ValueError:  # then it can never be written, and its delivery says why
        return write


def get_op_for(op: PutOp) -> GetOp:
    """Reads what is where this is to be written."""
    return GetOp(op.namespace, op.key, refresh_ttl=False)


def overwrites_other_content(op: PutOp, there: Result) -> bool:
    """Whether the write takes something away. What is put at once is for a place that the gate took for free: whoever
    sent it may have kept from the gate that something older is there."""
    return op.value is not None and isinstance(there, Item) and there.value != op.value


def unapproved_error(delivery: Delivery) -> DeadLetter:
    """Why such a write is not made, where no owner has approved it."""
    return DeadLetter(
        f"Something else is at {delivery.place} already, and nobody agreed to replace it. Retract the memory, and put "
        "it through the gated store, which asks."
    )


def _check_owner(namespace: Namespace, owner_id: str, terms: Terms) -> None:
    """A place says nothing of whose it is; where the namespace does, it must be that of who let the claim through."""
    if not callable(terms.user_id):
        return
    try:
        whose = terms.user_id(namespace)
    except Exception as error:  # of the application's own function, on a namespace that an agent made up
        raise Unrestorable(f"Nobody owns the namespace {namespace}.") from error
    if whose != owner_id:
        raise Unrestorable(f"The namespace {namespace} is of another owner.")


def _labels(op: PutOp) -> tuple[str, ...]:
    if not op.namespace:
        raise Unrenderable("A memory needs a namespace.")
    return *op.namespace, op.key


def _options(op: PutOp, terms: Terms, what: str, data: dict[str, JsonValue]) -> ClaimOptions:
    options: ClaimOptions = {
        "memory_type": terms.memory_type,
        "source": terms.source,
        "delivery": {"sink": terms.sink, "place": place_of(_labels(op)), "op": what, "data": data},
    }
    owner = terms.owner(op.namespace)
    return options if owner is None else {**options, "user_id": owner}


def _check_data(data: dict[str, JsonValue]) -> None:
    _index(data)
    _ttl(data)
    size = len(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))
    if size > MAX_METADATA_BYTES:
        raise Unrenderable(
            f"`index` and `ttl` have {size} bytes as JSON; the gate keeps {MAX_METADATA_BYTES}."
        )


def _index(data: Mapping[str, JsonValue]) -> Index:
    index = data.get("index")
    if index is None or index is False:
        return index
    if isinstance(index, list):
        fields = [field for field in index if isinstance(field, str)]
        if len(fields) == len(index):
            return fields
    raise Unrenderable("`index` must be False, None or a list of paths.")


def _ttl(data: Mapping[str, JsonValue]) -> float | None:
    ttl = data.get("ttl")
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not math.isfinite(ttl):
        raise Unrenderable("`ttl` must be a number of minutes.")
    return ttl
