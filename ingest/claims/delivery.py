"""What a sink is told to do."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, JsonValue

from vouchgate.ingest.claims.frozen import Frozen

# The gate's own memories, by their ids: no store, and only asked to let one go.
OWN_SINK = "vouchgate"


class DeliveryOp(StrEnum):
    """What a store behind the gate is asked to do with one place of it."""

    PUT = "put"
    REMOVE = "remove"


class DeliveryTarget(Frozen):
    """Where in a store behind the gate (a sink) a claim is to be written once it is a memory, or what is to go from
    there. The same sink and place is the same thing."""

    sink: str
    place: str
    op: DeliveryOp = DeliveryOp.PUT
    data: dict[str, JsonValue] = Field(default_factory=dict)  # what the sink needs besides the text
    # The caller found something else there already, which may be older than the gate.
    replaces: bool = False

    @property
    def name(self) -> str:
        """Sink and place as one text; a sink's name has no white space."""
        return f"{self.sink} {self.place}"
