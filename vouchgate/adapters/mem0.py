"""mem0 behind the gate: what an agent adds to a `mem0.Memory` is decided on first, and written after.

Nothing reaches the memory but through deliveries of the gate (sink "mem0"): what was stored at once, and what its
owner approved. The ways of mem0 that would write past the gate are refused. docs/mem0.md tells the rest.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from vouchgate import extras

try:
    from mem0 import Memory  # type: ignore[import-untyped]  # the package has no types: its rows are Any below
except ImportError as error:
    raise ImportError(extras.sentence("GatedMemory", "mem0"), name=error.name) from error

from vouchgate.adapters import mem0_forms as forms
from vouchgate.adapters.mem0_extraction import extract
from vouchgate.client import Client, DeadLetter, Delivered, Delivery, VouchgateError
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.rules import Rule

SINK = "mem0"
# Removals that one delete_all may ask for: as many as an owner's queue holds.
MOST_REMOVALS = 100
_READERS = frozenset({"get", "get_all", "history", "search"})
_KEEP: Any = object()
_log = logging.getLogger(__name__)


class Ungated(AttributeError):
    """What was called would write, or might, without the gate having been asked."""


class GatedMemory:
    """A `mem0.Memory` that is written through the gate only. `get`, `get_all`, `search` and `history` are mem0's own.

    `client` presents an agent's token; a memory's owner in the gate is its `user_id`. `owner` is who owns the
    memories that have none, only an `agent_id` or a `run_id`; without it they are refused with a ValueError. Claims
    are sent with `memory_type` and `source`, unless `add` is told otherwise. `close` closes the memory, not the
    client. It may be used by several threads.

    Every method raises ValueError for arguments that mem0 or the gate cannot take, and what the client raises when
    the gate cannot be asked (`VouchgateError`). A verdict is never an exception: it stands under "vouchgate" in
    what is returned, one a claim, in order.
    """

    def __init__(
        self,
        memory: Memory,
        client: Client,
        *,
        owner: str | None = None,
        memory_type: str = "fact",
        source: str = "ai_synthesis",
    ) -> None:
        if not isinstance(memory, Memory):
            raise TypeError(f"GatedMemory is for mem0.Memory, not for {type(memory).__name__}")
        self._memory, self._client, self._owner = memory, client, owner
        self._memory_type, self._source = memory_type, source
        # One at a time: who waits here would find the deliveries leased and nothing to do.
        self._delivering = threading.Lock()

    def add(
        self,
        messages: Any,
        *,
        user_id: object = None,
        agent_id: object = None,
        run_id: object = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: object = None,
        expiration_date: object = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        source: str | None = None,
        citations: Sequence[Any] = (),
    ) -> dict[str, Any]:
        """Asks the gate for each text that mem0 would save, and writes those that are stored at once.

        The texts are the messages with `infer=False`; with `infer=True` the facts that mem0's model finds in them, by
        one call of that model. `memory_type` is the gate's here ("fact", "decision", "preference", "procedure");
        mem0's "procedural_memory" is refused.

        Returns `results` as mem0 does, for what was really written, and `vouchgate`.
        """
        if timestamp is not None:
            raise ValueError("timestamp is not supported by mem0's open memory")
        if memory_type == "procedural_memory":
            raise Ungated("mem0 writes procedural memories itself: add your own summary with infer=False")
        scope = forms.Scope.of(user_id, agent_id, run_id)
        owner, kept = self._owner_of(scope.user_id), forms.checked_metadata(metadata)
        expires = {} if expiration_date is None else {"expiration_date": forms.expiration(expiration_date)}
        pieces = (
            extract(self._memory, messages, scope.ids(), prompt) if infer else forms.memory_texts(messages)
        )
        asked: list[tuple[str, str, ValidationResult]] = []
        try:
            for piece in pieces:
                place = forms.new_place(uuid.uuid4().hex)
                result = self._client.save(
                    forms.render(piece, kept, scope),
                    memory_type=memory_type or self._memory_type,
                    source=source or self._source,
                    user_id=owner,
                    citations=citations,
                    validity_horizon=forms.horizon(expires["expiration_date"]) if expires else None,
                    delivery=_delivery(place, forms.delivery_data(piece, kept, scope, expires)),
                )
                asked.append((place, piece.text, result))
        except VouchgateError:
            if any(_may_be_due(one) for _, _, one in asked):
                with suppress(VouchgateError):  # that it could not be asked is told already
                    self._deliver(owner)
            raise
        return self._answer(owner, asked, scope)

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _KEEP,
        data: str | None = None,
        *,
        source: str | None = None,
        citations: Sequence[Any] = (),
    ) -> dict[str, Any]:
        """Asks the gate to change a memory. That waits for its owner, whatever vouches for the new text.

        Raises ValueError when mem0 has no such memory.
        """
        row, scope, owner = self._known(memory_id)
        text = text if text is not None else data
        kept = forms.checked_metadata(metadata)
        if text is None and not kept and expiration_date is _KEEP:
            raise ValueError("one of text, metadata and expiration_date is needed")
        expires: dict[str, str | None] = {}
        if expiration_date is not _KEEP:
            expires["expiration_date"] = (
                None if expiration_date is None else forms.expiration(expiration_date)
            )
        ends = expires.get("expiration_date")
        # mem0 leaves role and name as they are.
        piece = forms.MemoryText(str(row["memory"]) if text is None else text, "user")
        place = forms.place_of(row)
        result = self._client.save(
            forms.render(piece, kept, scope),
            memory_type=self._memory_type,
            source=source or self._source,
            user_id=owner,
            citations=citations,
            validity_horizon=forms.horizon(ends) if ends else None,
            delivery=_delivery(
                place,
                {**forms.delivery_data(piece, kept, scope, expires), "memory_id": str(row["id"])},
                replaces=True,
            ),
        )
        return self._answer(owner, [(place, piece.text, result)], scope)

    def delete(self, memory_id: str) -> dict[str, Any]:
        """Asks the memory's owner to have it removed. Raises ValueError when mem0 has no such memory."""
        row, scope, owner = self._known(memory_id)
        return self._removals([(row, scope, owner)])

    def delete_all(
        self, user_id: object = None, agent_id: object = None, run_id: object = None
    ) -> dict[str, Any]:
        """Asks the owners to have these memories removed, each by a request of its own.

        Raises ValueError when there are more than 100, before anything is asked.
        """
        scope = forms.Scope.of(user_id, agent_id, run_id)
        rows = self._rows(scope.ids(), MOST_REMOVALS + 1)
        if len(rows) > MOST_REMOVALS:
            raise ValueError(
                f"these are more than {MOST_REMOVALS} memories: an owner's queue cannot hold them all"
            )
        return self._removals([self._owned(row) for row in rows])

    def reset(self) -> None:
        """Always raises Ungated: it would throw away every owner's memories."""
        raise Ungated("reset() would remove the memories of every owner: the gate cannot ask them all")

    def deliver(self, user_id: str | None = None) -> Delivered:
        """Writes what owners have approved since, in order. Without `user_id`, of all owners of the token.

        `add` and `update` do that for their owner when something was stored. Call it now and then for what is approved
        later. What fails is tried again later, by whoever calls this then; the gate shows it as a delivery.
        """
        return self._deliver(user_id)[0]

    def apply(self, delivery: Delivery) -> None:
        """Writes one delivery of the sink "mem0", for those who lease deliveries themselves. Twice is as good as once.

        Raises DeadLetter for one that can never be written: its data is not what this class sends, or it names
        somebody else's memory.
        """
        self._apply(delivery)

    def close(self) -> None:
        """Closes the memory; the client is its maker's to close."""
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        """The reading methods of mem0. All else raises Ungated, also what a later mem0 may bring."""
        if name in _READERS:
            return getattr(self._memory, name)
        raise Ungated(
            f"{name} is not behind the gate: of mem0's own methods only {', '.join(sorted(_READERS))} are"
        )

    # --- asking ---

    def _owner_of(self, user_id: str | None) -> str:
        owner = user_id if user_id is not None else self._owner
        if owner is None:
            raise ValueError("a memory without user_id has no owner: say GatedMemory(…, owner=…)")
        return owner

    def _known(self, memory_id: str) -> tuple[Any, forms.Scope, str]:
        row = self._memory.get(memory_id)
        if row is None:
            raise ValueError(f"Memory with id {memory_id} not found")
        return self._owned(row)

    def _owned(self, row: Any) -> tuple[Any, forms.Scope, str]:
        scope = forms.Scope.of(row.get("user_id"), row.get("agent_id"), row.get("run_id"))
        return row, scope, self._owner_of(scope.user_id)

    def _removals(self, rows: Sequence[tuple[Any, forms.Scope, str]]) -> dict[str, Any]:
        verdicts = []
        for row, scope, owner in rows:
            data = {**scope.ids(), "memory_id": str(row["id"])}
            result = self._client.save(
                forms.removal_content(str(row["memory"])),
                memory_type=self._memory_type,
                source=self._source,
                user_id=owner,
                delivery=_delivery(forms.place_of(row), data, DeliveryOp.REMOVE),
            )
            verdicts.append(_verdict(str(row["memory"]), result, written=False))
        waiting = sum(verdict["outcome"] == "queued" for verdict in verdicts)
        return {"message": f"{waiting} waiting for the owner, 0 deleted", "vouchgate": verdicts}

    def _answer(
        self, owner: str, asked: Sequence[tuple[str, str, ValidationResult]], scope: forms.Scope
    ) -> dict[str, Any]:
        """Delivers when something was stored, now or before, and tells what came of each claim."""
        rows: dict[str, Any] = {}
        stored = [place for place, _, result in asked if result.passed]
        if any(_may_be_due(result) for _, _, result in asked):
            _, rows = self._deliver(owner)
            for place in set(stored) - set(rows):  # another process was the one to write it, or nobody yet
                if (row := self._find(place, scope.ids(), None)) is not None:
                    rows[place] = _result(row, "ADD")
        return {
            "results": [rows[place] for place in stored if place in rows],
            "vouchgate": [_verdict(text, result, written=place in rows) for place, text, result in asked],
        }

    # --- writing ---

    def _deliver(self, user_id: str | None) -> tuple[Delivered, dict[str, Any]]:
        rows: dict[str, Any] = {}

        def apply(delivery: Delivery) -> None:
            row = self._apply(delivery)
            if row is not None:
                rows[delivery.place] = row

        with self._delivering:
            delivered = self._client.deliver(SINK, apply, user_id=user_id)
        if delivered.failed or delivered.dead:
            _log.warning("%s of mem0 could not be written: see the gate's deliveries", delivered)
        return delivered, rows

    def _apply(self, delivery: Delivery) -> dict[str, Any] | None:
        """Writes one delivery, or finds it written. Raises DeadLetter for what can never be written; what mem0 raises
        may be otherwise the next time."""
        data = delivery.data
        try:
            scope = forms.Scope.of(data.get("user_id"), data.get("agent_id"), data.get("run_id"))
            owner = self._owner_of(scope.user_id)
            put = None if delivery.op is DeliveryOp.REMOVE else forms.parse_write(delivery.content, data)
        except ValueError as error:
            raise DeadLetter(str(error)) from error
        if owner != delivery.owner_id:
            raise DeadLetter("it names a memory of somebody else")
        named = data.get("memory_id")
        row = self._find(delivery.place, scope.ids(), named if isinstance(named, str) else None)
        if row is not None and (row.get("user_id") or self._owner) != delivery.owner_id:
            raise DeadLetter("the memory belongs to somebody else")
        if put is None:
            self._remove(row)
            return None
        return self._put(delivery, put, row)

    def _put(self, delivery: Delivery, put: forms.MemoryWrite, row: Any) -> dict[str, Any]:
        text = put.piece.text
        if row is not None and forms.last_delivery_id(row) == delivery.id and row["memory"] == text:
            return _result(row, "ADD")  # written by an earlier try whose answer was lost
        if row is not None and forms.last_delivery_id(row) != delivery.id:
            self._require_approval(delivery)
        metadata = {
            **put.metadata,
            forms.PLACE: delivery.place,
            forms.DELIVERY: delivery.id,
            forms.MEMORY: delivery.memory_id,
        }
        if row is not None:
            self._memory.update(str(row["id"]), text=text, metadata=metadata, **put.expires)
            memory_id, event = str(row["id"]), "UPDATE"
        else:
            speaker = {} if put.piece.actor is None else {"name": put.piece.actor}
            message = {"role": put.piece.role, "content": text, **speaker}
            ids = put.scope.ids()
            added = self._memory.add([message], **ids, metadata=metadata, infer=False, **put.expires)
            memory_id, event = str(added["results"][0]["id"]), "ADD"
        read = self._memory.get(memory_id)
        if read is None or read["memory"] != text:
            raise RuntimeError(f"mem0 reads back something else than was written to {memory_id}")
        return _result(read, event)

    def _require_approval(self, delivery: Delivery) -> None:
        """Raises DeadLetter unless an owner let the claim through: what is put at once is for a place that the gate
        took for free, and whoever sent it may have kept from the gate that a memory is there."""
        if self._client.memory(str(delivery.memory_id)).approved_by is None:
            raise DeadLetter("another memory is there already, and nobody agreed to replace it")

    def _remove(self, row: Any) -> None:
        if row is None:
            return  # gone already, by an earlier try or another hand
        self._memory.delete(str(row["id"]))
        if self._memory.get(str(row["id"])) is not None:
            raise RuntimeError(f"mem0 still has {row['id']} after its removal")

    def _find(self, place: str, ids: Mapping[str, str], named: str | None) -> Any:
        """The memory at a place: by its id where that is known, else by the place in its metadata."""
        memory_id = forms.memory_id_of_place(place) or named
        if memory_id is not None:
            row = self._memory.get(memory_id)
            if row is not None and forms.place_of(row) == place:
                return row
        rows = [row for row in self._rows({**ids, forms.PLACE: place}, 2) if forms.place_of(row) == place]
        return rows[0] if rows else None

    def _rows(self, filters: Mapping[str, str], most: int) -> list[Any]:
        answer = self._memory.get_all(filters=dict(filters), top_k=most, show_expired=True)
        rows: list[Any] = answer["results"]
        return rows


def _delivery(
    place: str, data: Mapping[str, Any], op: DeliveryOp = DeliveryOp.PUT, *, replaces: bool = False
) -> dict[str, Any]:
    return {"sink": SINK, "place": place, "op": op.value, "data": dict(data), "replaces": replaces}


def _may_be_due(result: ValidationResult) -> bool:
    """Whether something may be on its way to mem0: what a repeat repeats may not have been written yet."""
    return result.passed or result.rule == Rule.DUPLICATE


def _result(row: Any, event: str) -> dict[str, Any]:
    """A memory in the form of mem0's own results."""
    return {
        "id": str(row["id"]),
        "memory": row["memory"],
        "event": event,
        "actor_id": row.get("actor_id"),
        "role": row.get("role"),
    }


def _verdict(text: str, result: ValidationResult, *, written: bool) -> dict[str, Any]:
    """What the gate said of one text, in plain JSON. `written` says whether mem0 has it by now."""
    whole = result.model_dump(mode="json")
    names = ("outcome", "rule", "reason", "memory_id", "queue_id", "decision_id", "conflicting_memory_id")
    return {"text": text, **{name: whole[name] for name in names}, "written": written}
