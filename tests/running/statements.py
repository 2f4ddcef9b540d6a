"""SQL that is written once for all databases of a kind: otherwise every test has it written anew."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache

from vouchgate.storage import engine

_KEPT = LRUCache[Any, Any](5000)


def share_statements() -> None:
    """From now on the engines that are opened in this process have the SQL of their statements in common. They are
    engines of one version of one server each, and differ in nothing that SQL depends on."""
    DefaultDialect.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign]
    DefaultDialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]
    engine.create_engine = _open  # type: ignore[attr-defined]


def _open(*arguments: Any, **options: Any) -> Engine:
    made = create_engine(*arguments, **options)
    made._compiled_cache = _KEPT
    return made
