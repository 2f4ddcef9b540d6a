"""Vouchgate composed: the service, its commands, and what programs that call it import.

The client's names are looked up when they are first asked for: importing a part of the service must not cost the time
that importing an HTTP client takes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vouchgate.client import (
        ApiError,
        AsyncClient,
        Client,
        DeadLetter,
        Gated,
        OddAnswer,
        QueueFull,
        Unreachable,
        Unsendable,
        VouchgateError,
    )

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "DeadLetter",
    "Gated",
    "OddAnswer",
    "QueueFull",
    "Unreachable",
    "Unsendable",
    "VouchgateError",
]


if not TYPE_CHECKING:  # a type checker that saw it would take every name for one of the package's

    def __getattr__(name: str) -> object:
        """The client's names, imported when they are first asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module("vouchgate.client"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
