"""The kinds of citation, each one file here: how it is written, what people call it, its settings and its source.

People outside of this repository name a kind of theirs in the entry points of their package, which
`vouchgate.sources.plugins` reads; a tracker needs a TOML file alone (`ingest.sources.tracker`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import SourceReading

if TYPE_CHECKING:
    from vouchgate.ingest.net.client import Outbound


class KindError(ValueError):
    """A kind that cannot be used; the message says which, and why, in a sentence."""


class FoundCitation(NamedTuple):
    """One citation in the text a kind was handed: its offsets there and its canonical form."""

    start: int
    end: int
    key: str


class Reader(Protocol):
    """Reads what citations of a kind point at. Never raises: what goes wrong is Unreachable."""

    async def read(self, citation: Citation) -> SourceReading: ...


# Makes the reader of a kind, of the one client for all that leaves the machine, and the values of its settings.
OpenSource = Callable[["Outbound", Mapping[str, str]], Reader]


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationKind:
    """One kind of citation. All but the URL's functions see text with plain signs (`plain_signs`)."""

    name: str  # the `type` of its citations
    label: str  # what people call such a thing, on the pages
    needles: tuple[str, ...]  # lower case; a text with none of them has no such citation. Empty: always look
    find: Callable[[str], Iterator[FoundCitation]]  # in running text, where the surroundings count
    whole: Callable[[str], str | None]  # key of a string that is this citation and nothing else, or None
    bare: Callable[[str], str | None]  # the same once the kind is known, so that "3" will do for an ADR
    forms: tuple[str, ...]  # how it may be written, for error sentences; it finds the first in a sentence
    settings: tuple[str, ...] = ()  # environment variables whose values `source` is given
    # None: nobody can be asked, so every one is UNKNOWN; but for those that share a reader (`vouchgate.sources.setup`).
    source: OpenSource | None = None


def full_match(pattern: re.Pattern[str], key: Callable[[re.Match[str]], str]) -> Callable[[str], str | None]:
    """A `whole` or `bare` function: the key when the pattern matches the string from end to end."""

    def decide(value: str) -> str | None:
        match = pattern.fullmatch(value)
        return None if match is None else key(match)

    return decide


def each_match(
    pattern: re.Pattern[str], key: Callable[[re.Match[str]], str]
) -> Callable[[str], Iterator[FoundCitation]]:
    """A `find` function: a citation wherever the pattern matches."""
    return lambda text: (FoundCitation(*match.span(), key(match)) for match in pattern.finditer(text))
