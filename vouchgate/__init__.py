"""Vouchgate composed: the service, its commands, and what programs that call it import.

Names are looked up when they are first asked for: importing a part of the service must not cost the time
that importing an HTTP client takes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from vouchgate import extras

if TYPE_CHECKING:
    from vouchgate.client import (
        ApiError,
        AsyncClient,
        AsyncReviews,
        CannotOpen,
        Client,
        DeadLetter,
        GateClosed,
        Gated,
        Halted,
        OddAnswer,
        QueueFull,
        Reviews,
        Unreachable,
        Unsendable,
        VouchgateError,
    )
    from vouchgate.ingest.corroboration.decision import decide_from_history
    from vouchgate.ingest.corroboration.history import (
        AgentResult,
        Hit,
        SearchHistory,
        SearchTask,
    )
    from vouchgate.server.embedded import AsyncGate, Gate

__all__ = [
    "AgentResult",
    "ApiError",
    "AsyncClient",
    "AsyncGate",
    "AsyncReviews",
    "CannotOpen",
    "Client",
    "DeadLetter",
    "Gate",
    "GateClosed",
    "Gated",
    "Halted",
    "Hit",
    "OddAnswer",
    "QueueFull",
    "Reviews",
    "SearchHistory",
    "SearchTask",
    "Unreachable",
    "Unsendable",
    "VouchgateError",
    "decide_from_history",
]
_EMBEDDED = ("AsyncGate", "Gate")
_OF_HISTORY = ("AgentResult", "Hit", "SearchHistory", "SearchTask")


if not TYPE_CHECKING:  # a type checker that saw it would take every name for one of the package's

    def __getattr__(name: str) -> object:
        """The names, imported when they are first asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        room = "vouchgate.client"
        if name in _OF_HISTORY:
            room = "vouchgate.ingest.corroboration.history"
        elif name == "decide_from_history":
            room = "vouchgate.ingest.corroboration.decision"
        elif name in _EMBEDDED:
            room = "vouchgate.server.embedded"
        try:
            return getattr(import_module(room), name)
        except ModuleNotFoundError as error:
            if name not in _EMBEDDED or extras.missing(error) is None:
                raise
            raise ImportError(extras.sentence(name, "server"), name=error.name) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
