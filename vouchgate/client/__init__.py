"""The Python client of the HTTP API.

`Client` and `AsyncClient` differ in who waits and in nothing else: what is asked, what an answer means and when a
request is sent again are in `calls`, `answers`, `exchange` and `deliver`, which know no network and no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vouchgate.client.advice import next_step
from vouchgate.client.errors import (
    ApiError,
    DeadLetter,
    Halted,
    OddAnswer,
    QueueFull,
    Unreachable,
    Unsendable,
    VouchgateError,
)
from vouchgate.client.gating import Gated
from vouchgate.client.models import (
    Delivered,
    Delivery,
    DeliveryState,
    DocumentReport,
    OwnPending,
    Page,
    Problem,
    Who,
)
from vouchgate.client.sync import Client

if TYPE_CHECKING:
    from vouchgate.client.aio import AsyncClient

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "DeadLetter",
    "Delivered",
    "Delivery",
    "DeliveryState",
    "DocumentReport",
    "Gated",
    "Halted",
    "OddAnswer",
    "OwnPending",
    "Page",
    "Problem",
    "QueueFull",
    "Unreachable",
    "Unsendable",
    "VouchgateError",
    "Who",
    "next_step",
]


if not TYPE_CHECKING:  # a type checker that saw it would take every name for one of the package's

    def __getattr__(name: str) -> object:
        """`AsyncClient`, imported when it is first asked for: a program that waits does not load asyncio."""
        if name != "AsyncClient":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from vouchgate.client.aio import AsyncClient  # noqa: PLC0415  (see above)

        return AsyncClient
