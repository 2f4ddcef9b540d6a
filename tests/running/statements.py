"""SQL that is written once for all databases of a kind: otherwise every test has it written anew. And what of it
reached a server."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache

from vouchgate.storage import engine

_SENT = re.compile(r" LOG:  (?:execute \S+|statement): (.*)")
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


def logged(lines: Iterable[str]) -> set[str]:
    """The statements in PostgreSQL's own log where `log_statement` is `all`: what every process sent, whichever way."""
    found: list[str] = []
    open_ = False
    for line in lines:
        match = _SENT.search(line)
        if match is not None:
            found.append(match[1].strip())
        elif open_ and line.startswith("\t"):  # the statement goes on
            found[-1] += f" {line.strip()}"
            continue
        open_ = match is not None
    return set(found)
