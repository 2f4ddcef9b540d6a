"""The Python client of the HTTP API.

`Client` and `AsyncClient` differ in who waits and in nothing else: what is asked, what an answer means and when a
request is sent again are in `calls`, `answers`, `exchange` and `deliver`, which know no network and no clock.
"""

from __future__ import annotations

from groundgate.client.advice import next_step
from groundgate.client.aio import AsyncClient
from groundgate.client.errors import (
    ApiError,
    DeadLetter,
    GroundgateError,
    OddAnswer,
    QueueFull,
    Unreachable,
    Unsendable,
)
from groundgate.client.gating import Gated
from groundgate.client.models import Delivered, Delivery, DeliveryState, OwnPending, Page, Problem, Who
from groundgate.client.sync import Client

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "DeadLetter",
    "Delivered",
    "Delivery",
    "DeliveryState",
    "Gated",
    "GroundgateError",
    "OddAnswer",
    "OwnPending",
    "Page",
    "Problem",
    "QueueFull",
    "Unreachable",
    "Unsendable",
    "Who",
    "next_step",
]
