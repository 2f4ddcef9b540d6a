"""What the pure part asks the drivers to do. `Client` and `AsyncClient` run the same operations, one step at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Value: TypeAlias = str | int | float | bool | None
Parameters: TypeAlias = Mapping[str, Value | Sequence[Value]]


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An HTTP answer, read to its end."""

    status: int
    media_type: str  # in lower case, without parameters
    body: bytes
    retry_after: float | None = None  # seconds


@dataclass(frozen=True, slots=True)
class NoReply:
    """No answer: what happened, in words without anything that was sent. `passing`: another try may end otherwise."""

    what: str
    passing: bool


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One request, and how to read the answer to it. `read` raises OddAnswer for what it cannot read."""

    method: str
    path: str
    read: Callable[[HttpReply], T_co]
    statuses: frozenset[int] = frozenset({200})  # those whose body `read` knows
    parameters: Parameters = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    key: str | None = None  # the Idempotency-Key
    prefer: str | None = None  # as in RFC 7240: what an older service does not know, it passes over
    patience: float = 0.0  # seconds that an answer may take beyond the client's time-out


@dataclass(frozen=True, slots=True)
class Send:
    """Send this once. The reply is an Answer or a Lost."""

    call: Call[object]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds. The reply is None."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Call this, and wait for it where it can be waited for. The reply is the exception that came out, or None."""

    action: Callable[[], Awaitable[None] | None]


Step: TypeAlias = Send | Pause | CallFunction
Reply: TypeAlias = HttpReply | NoReply | Exception | None
Operation: TypeAlias = Generator[Step, Reply, T]
