"""Save only if it passes: what a decorated function gives back, and how its arguments become a claim. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_type_hints

from vouchgate.client.advice import next_step
from vouchgate.client.calls import SaveOptions
from vouchgate.ingest.claims.decision import ValidationResult

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gated(Generic[T]):
    """What a gated function gives back: the verdict, and what the function returned if it ran. True when it ran."""

    verdict: ValidationResult
    value: T | None = None

    def __bool__(self) -> bool:
        return self.verdict.passed

    @property
    def next_step(self) -> str:
        """What the agent should do now, in one sentence."""
        return next_step(self.verdict)


_OPTIONS = frozenset(get_type_hints(SaveOptions))

ClaimFrom = Callable[..., str | Mapping[str, Any]]  # Any: of a claim's fields, each with a type of its own


@dataclass(frozen=True, slots=True)
class Arguments:
    """How the arguments of one function become the text of a claim and its options.

    `text` names the argument that is the claim, `claim` is called with all of them instead. Without either it is the
    first one that is not `self` or `cls`.
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
        named = [
            name
            for name, one in signature.parameters.items()
            if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and name not in ("self", "cls")
        ]
        chosen = text if text is not None else next(iter(named), None)
        if chosen not in named:
            raise TypeError(f"{_name(function)} has no argument {text or ''!r} to take the claim from")
        return cls(signature, chosen, None)

    def read(
        self, options: SaveOptions, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> tuple[str, SaveOptions]:
        """The text of the claim, and its options. Raises TypeError when that is no text: then nothing is sent, and the
        function does not run."""
        if self.claim is None:
            bound = self.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return _text(bound.arguments[self.text or ""]), options
        found = self.claim(*args, **kwargs)
        if not isinstance(found, Mapping):
            return _text(found), options
        more = dict(found)
        content = _text(more.pop("content", None))
        if unknown := sorted(set(more) - _OPTIONS):
            raise TypeError(f"a claim has no field {unknown[0]!r}")
        return content, SaveOptions(**{**options, **more})  # type: ignore[typeddict-item]  # names compared above


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
