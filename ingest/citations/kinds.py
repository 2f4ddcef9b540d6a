"""The kinds of citation that are not built in: what one says about itself, and which are in use.

A kind is one file. People outside of this repository name it in the entry points of their package
(`vouchgate.sources.plugins`); a tracker needs a TOML file alone (`ingest.sources.tracker`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from vouchgate.ingest.citations.detection import BUILT_IN, detect_citations, use_rules
from vouchgate.ingest.citations.shared import CitationRule
from vouchgate.ingest.claims.types import Citation, SourceReading

if TYPE_CHECKING:
    from vouchgate.ingest.net.client import Outbound


class KindError(ValueError):
    """A kind that cannot be used; the message says which, and why, in a sentence."""


class Reader(Protocol):
    """Reads what citations of a kind point at. Never raises: what goes wrong is Unreachable."""

    async def read(self, citation: Citation) -> SourceReading: ...


# Makes the reader of a kind, of the one client for all that leaves the machine, and the values of its settings.
OpenSource = Callable[["Outbound", Mapping[str, str]], Reader]


@dataclass(frozen=True, slots=True)
class CitationKind:
    """How citations of one kind are written, what people call them, and how what they name is read."""

    rule: CitationRule
    example: str  # one such citation, which the rule must find in a sentence
    settings: tuple[str, ...] = ()  # environment variables whose values `source` is given
    source: OpenSource | None = None  # None: nobody can be asked, so every one is UNKNOWN

    @property
    def name(self) -> str:
        """The `type` of its citations."""
        return str(self.rule.type)


def install(kinds: Iterable[CitationKind]) -> None:
    """Uses these kinds beside those that are built in, and no others. Raises KindError for a name that is taken, and
    for a rule that does not find its own example."""
    added = tuple(kinds)
    taken = {str(rule.type) for rule in BUILT_IN}
    for kind in added:
        if kind.name in taken:
            raise KindError(f"there are two kinds of citation called {kind.name!r}")
        taken.add(kind.name)
    use_rules(())
    for kind in added:
        _try(kind)
    use_rules(kind.rule for kind in added)


def _try(kind: CitationKind) -> None:
    sentence = f"As {kind.example} says, it is so."
    try:
        found = [sentence[one.start : one.end] for one in kind.rule.find(sentence)]
        key = kind.rule.whole(kind.example)
        Citation(type=kind.name, value=kind.example, key=key or "")
    except Exception as error:
        raise KindError(f"the kind of citation {kind.name!r} is broken: {error}") from error
    if found != [kind.example] or key is None or not key.startswith(f"{kind.name}:"):
        raise KindError(f"the kind of citation {kind.name!r} does not find its example {kind.example!r}")
    others = [one for one in detect_citations(sentence) if one.value == kind.example]
    if others:
        raise KindError(f"the example of the kind {kind.name!r} is one of {others[0].type} already")
