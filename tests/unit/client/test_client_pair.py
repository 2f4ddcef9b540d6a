"""The client that waits and the one for asyncio have the same methods, with the same arguments, and say the same."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from vouchgate.client import AsyncClient, Client

ENDS = {"close": "aclose"}  # named as httpx names them
OF_FUNCTIONS = {"apply", "function"}  # what is given may be a coroutine function, so its type differs
CALLED = {"gate", "gated", "recorded"}  # gives a context manager or a decorator, which is not awaited
PUBLIC = sorted(name for name in vars(Client) if not name.startswith("_"))


def arguments(method: Any) -> list[tuple[Any, ...]]:
    found = inspect.signature(method).parameters.values()
    kept = [one.replace(annotation="") if one.name in OF_FUNCTIONS else one for one in found]
    return [(one.name, one.kind, one.default, one.annotation) for one in kept if one.name != "self"]


def test_both_have_the_same_methods() -> None:
    theirs = {name for name in vars(AsyncClient) if not name.startswith("_")}
    assert {ENDS.get(name, name) for name in PUBLIC} == theirs
    assert len(PUBLIC) > 15


@pytest.mark.parametrize("name", ["__init__", *PUBLIC])
def test_a_method_takes_and_says_the_same(name: str) -> None:
    here, there = getattr(Client, name), getattr(AsyncClient, ENDS.get(name, name))
    assert arguments(here) == arguments(there)
    assert here.__doc__
    said = inspect.getdoc(there)
    assert said == inspect.getdoc(here) or str(said).startswith(f"See `Client.{name}`.")
    assert not inspect.iscoroutinefunction(here)
    assert inspect.iscoroutinefunction(there) == (name not in CALLED | {"__init__"})
    if name not in CALLED | {"deliver", "__init__"}:
        assert inspect.signature(here).return_annotation == inspect.signature(there).return_annotation


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_method_that_makes_a_call_is_as_the_call(client: Any) -> None:
    assert str(inspect.signature(client.memory)) == "(self, /, memory_id: 'str') -> 'Memory'"
    assert list(inspect.signature(client("http://127.0.0.1", "token").memory).parameters) == ["memory_id"]
    assert client.memory.__name__ == "memory"
