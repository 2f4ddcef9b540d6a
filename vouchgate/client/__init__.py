"""The Python client of the HTTP API.

`Client` and `AsyncClient` differ in who waits and in nothing else: what is asked, what an answer means and when a
request is sent again are in `calls`, `answers`, `exchange` and `deliver`, which know no network and no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vouchgate.client.advice import next_step
from vouchgate.client.errors import (
    ApiError,
    CannotOpen,
    DeadLetter,
    GateClosed,
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
    DeliveryState,
    DocumentReport,
    OwnPending,
    Page,
    Problem,
    Record,
    Review,
    Ruling,
    Who,
)
from vouchgate.client.sync import Client, Reviews
from vouchgate.ingest.claims.leased import Delivery

if TYPE_CHECKING:
    from vouchgate.client.aio import AsyncClient, AsyncReviews

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncReviews",
    "CannotOpen",
    "Client",
    "DeadLetter",
    "Delivered",
    "Delivery",
    "DeliveryState",
    "DocumentReport",
    "GateClosed",
    "Gated",
    "Halted",
    "OddAnswer",
    "OwnPending",
    "Page",
    "Problem",
    "QueueFull",
    "Record",
    "Review",
    "Reviews",
    "Ruling",
    "Unreachable",
    "Unsendable",
    "VouchgateError",
    "Who",
    "next_step",
]


if not TYPE_CHECKING:  # a type checker that saw it would take every name for one of the package's

    def __getattr__(name: str) -> object:
        """What waits for nothing, imported when it is first asked for: a program that waits does not load asyncio."""
        if name not in ("AsyncClient", "AsyncReviews"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from vouchgate.client import aio  # noqa: PLC0415  (see above)

        return getattr(aio, name)
