"""Save only if it passes: what a decorated function gives back, and how its arguments become a claim. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Generic, TypeVar, cast, get_type_hints
from uuid import UUID

from vouchgate.client.advice import next_step
from vouchgate.client.calls import SaveOptions
from vouchgate.ingest.claims.decision import ValidationResult

T = TypeVar("T")
A = TypeVar("A", bound=tuple[object, ...])
K = TypeVar("K", bound=Mapping[str, object])


@dataclass(frozen=True, slots=True)
class Gated(Generic[T]):
    """What a gated function gives back: the verdict, and what the function returned if it ran. True when it ran."""

    verdict: ValidationResult
    value: T | None = None

    def __bool__(self) -> bool:
        return self.verdict.as_sent

    @property
    def next_step(self) -> str:
        """What the agent should do now, in one sentence."""
        return next_step(self.verdict)


_RECEIVERS = ("self", "cls")
_OPTIONS = frozenset(get_type_hints(SaveOptions))

ClaimFrom = Callable[..., str | Mapping[str, Any]]  # Any: of a claim's fields, each with a type of its own
# What holds no words of whoever calls.
_NO_TEXT = (bool, int, float, complex, Decimal, date, time, timedelta, UUID, Enum, type(None))
_SEVERAL = (Mapping, list, tuple, AbstractSet)  # what is looked into
_MOST_LEVELS = 32  # of lists and mappings within an argument, as of a claim's metadata


@dataclass(frozen=True, slots=True)
class Arguments:
    """How the arguments of one function become the text of a claim and its options.

    `text` names the argument that is the claim, `claim` is called with all of them instead. Without either it is every
    text among those that are given, a line each: what none of them shows, nobody has checked.
    """

    signature: inspect.Signature
    text: str | None
    claim: ClaimFrom | None

    @classmethod
    def of(cls, function: Callable[..., object], text: str | None, claim: ClaimFrom | None) -> Arguments:
        """Raises TypeError when the function has no such argument."""
        signature = inspect.signature(function)
        if claim is not None:
            if text is not None:
                raise TypeError("give `text` or `claim`, not both")
            return cls(signature, None, claim)
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        named = [
            name for name, one in signature.parameters.items() if text is None or one.kind not in several
        ]
        if not set(named) - set(_RECEIVERS) or text not in (None, *named):
            raise TypeError(f"{_name(function)} has no argument {text or ''!r} to take the claim from")
        return cls(signature, text, None)

    def copied(self, args: A, kwargs: K) -> tuple[A, K]:
        """The arguments as they are now, for what is checked and what is written: what a caller changes while the gate
        is asked, nobody has checked. Lists and mappings are copied; what `claim` knows how to read in them is not, nor
        is the object of a method. Raises TypeError."""
        if self.text is not None:  # a text does not change
            return args, kwargs
        kept = args[:1] if next(iter(self.signature.parameters), None) in _RECEIVERS else ()
        done = dict[int, object]()
        copies = (*kept, *(self._copied(each, done, _MOST_LEVELS) for each in args[len(kept) :]))
        named = {name: self._copied(each, done, _MOST_LEVELS) for name, each in kwargs.items()}
        return cast(A, copies), cast(K, named)

    def _copied(self, value: object, done: dict[int, object], levels: int) -> object:
        if id(value) in done or not isinstance(value, _SEVERAL) or not levels:
            return done.get(id(value), value)
        kind = type(value)
        if kind is list:
            done[id(value)] = several = list[object]()
            several += [self._copied(each, done, levels - 1) for each in value]
        elif isinstance(value, dict) and kind is dict:
            done[id(value)] = named = dict[object, object]()
            named |= {key: self._copied(each, done, levels - 1) for key, each in value.items()}
        elif kind is tuple:
            done[id(value)] = tuple(self._copied(each, done, levels - 1) for each in value)
        elif kind is set:
            done[id(value)] = set(value)
        elif self.claim is None:
            done[id(value)] = deepcopy(value)
        return done.get(id(value), value)

    def read(
        self, options: SaveOptions, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> tuple[str, SaveOptions]:
        """The text of the claim, and its options. Raises TypeError when that is no text: then nothing is sent, and the
        function does not run."""
        if self.claim is None:
            bound = self.signature.bind(*args, **kwargs)
            if self.text is None:
                return _every_text(bound.arguments), options
            bound.apply_defaults()
            return _text(bound.arguments[self.text]), options
        found = self.claim(*args, **kwargs)
        if not isinstance(found, Mapping):
            return _text(found), options
        more = dict(found)
        content = _text(more.pop("content", None))
        if unknown := sorted(set(more) - _OPTIONS):
            raise TypeError(f"a claim has no field {unknown[0]!r}")
        return content, SaveOptions(**{**options, **more})  # type: ignore[typeddict-item]  # names compared above


def _every_text(given: Mapping[str, object]) -> str:
    """The texts of all arguments in their order, a line each. Raises TypeError where there is none, or where one may be
    in what cannot be looked into."""
    texts = [
        text
        for place, (name, value) in enumerate(given.items())
        if place or name not in _RECEIVERS
        for text in _texts(name, value, _MOST_LEVELS)
        if text.strip()
    ]
    if not texts:
        raise TypeError("the claim must be a text, and no argument holds one")
    return "\n".join(texts)


def _texts(name: str, value: object, levels: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, _SEVERAL) and levels:
        parts = (part for pair in value.items() for part in pair) if isinstance(value, Mapping) else value
        for part in parts:
            yield from _texts(name, part, levels - 1)
    elif not isinstance(value, _NO_TEXT):
        raise TypeError(
            f"nobody can see which texts are in {name!r}, a {type(value).__name__}: name the argument that is the whole"
            " claim with `text`, or make the claim of all of them with `claim`"
        )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the claim must be a text, not {type(value).__name__}")
    return value


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def copy_metadata(
    wrapper: Callable[..., object], function: Callable[..., object], signature: inspect.Signature
) -> None:
    """Gives the wrapper the function's name, text and signature, and not `__wrapped__`, as `functools.wraps` would:
    that leads to the function itself, past the gate."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        if hasattr(function, name):
            setattr(wrapper, name, getattr(function, name))
    annotations = dict(getattr(function, "__annotations__", {})) | {"return": Gated}
    wrapper.__annotations__ = annotations
    vars(wrapper)["__signature__"] = signature.replace(return_annotation=Gated)


def add_verdict_note(error: BaseException, verdict: ValidationResult) -> None:
    """Says on an exception that came out of a gated write what the gate has kept all the same."""
    if verdict.passed and verdict.memory_id is not None:
        error.add_note(
            f"vouchgate: the claim is stored as {verdict.memory_id} (decision {verdict.decision_id}), and what came"
            " after it failed. Sent again with the same idempotency_key it is answered the same."
        )
