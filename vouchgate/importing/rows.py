"""One memory of a file: what it says, whose it is, and what its store knows of it besides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.wire import ClaimIn

# Where other stores keep the text, in the order in which they are looked for.
TEXT_FIELDS = ("content", "text", "memory", "fact", "observation")
_OWNER_FIELDS = ("user_id", "owner_id", "owner")
# When it was saved; the first that can be read counts.
_TIME_FIELDS = ("created_at", "createdAt", "timestamp", "saved_at", "date", "updated_at")
# Who saved it, or under which key: shown beside an echo.
_ORIGIN_FIELDS = ("agent_id", "agent", "run_id", "session_id", "thread_id", "namespace", "key")
# Numbers that only their own store can read, and digests of the text, by which a masked credential could be tried out.
_DROPPED = frozenset({"embedding", "embeddings", "vector", "score", "hash"})
_MEMORY_TYPES = frozenset(member.value for member in MemoryType)
_SOURCES = frozenset(member.value for member in Source)
_SECONDS = range(10**9, 10**10)  # 2001 to 2286 as Unix time; in milliseconds a thousand times as much
_ORIGIN_CHARACTERS = 80
_FRACTION = re.compile(r"\.\d+")


class Unreadable(ValueError):
    """The file cannot be read as what it was taken for. One sentence."""


@dataclass(frozen=True, slots=True)
class ImportRow:
    """A memory as its store has it. `place` says where it stands in the file, such as `line 7`."""

    place: str
    content: str
    owner: str | None = None
    memory_type: str | None = None  # one of MemoryType, else the import's default
    source: str | None = None  # one of Source, else the import's default
    citations: Any = ()
    validity_horizon: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)
    saved_at: datetime | None = None
    origin: str | None = None
    context: int = 0  # characters at the start of `content` that the import put there: `Claim.context`


@dataclass(frozen=True, slots=True)
class BadRow:
    """What cannot be read as a memory, and why; `message` has none of its text."""

    place: str
    message: str


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for rows that do not say it themselves."""

    owner: str | None = None
    memory_type: MemoryType = MemoryType.FACT
    source: Source = Source.AI_SYNTHESIS


def claim_from_row(row: ImportRow, defaults: Defaults) -> ClaimIn:
    """The claim that an agent would send for the row. Raises ValidationError as for a body over HTTP."""
    return ClaimIn.model_validate(
        {
            "content": row.content,
            "memory_type": row.memory_type or defaults.memory_type,
            "source": row.source or defaults.source,
            "user_id": row.owner or defaults.owner,
            "citations": list(row.citations),
            "validity_horizon": row.validity_horizon,
            "metadata": row.metadata,
        }
    )


def parse_row(place: str, fields: Mapping[str, Any]) -> ImportRow | BadRow:
    """The memory in a JSON object: its text from the first of TEXT_FIELDS, what the gate knows of by name, and all
    the rest as metadata. What stands in a field of ours and is none of its values is metadata too."""
    name = next((name for name in TEXT_FIELDS if isinstance(fields.get(name), str)), None)
    if name is None:
        return BadRow(place, f"has no text: none of {', '.join(TEXT_FIELDS)} is a string")
    rest = {key: value for key, value in fields.items() if key != name and key not in _DROPPED}
    given = rest.pop("metadata", None)
    metadata = dict(given) if isinstance(given, dict) else {} if given is None else {"metadata": given}
    owner = _first(rest, _OWNER_FIELDS, isinstance_of=str)
    memory_type = _word(rest, "memory_type", _MEMORY_TYPES)
    source = _word(rest, "source", _SOURCES)
    citations = rest.pop("citations") if isinstance(rest.get("citations"), list) else ()
    horizon = rest.pop("validity_horizon", None)
    saved_at = next((at for key in _TIME_FIELDS if (at := parse_time(rest.get(key))) is not None), None)
    origin = next((str(rest[key]) for key in _ORIGIN_FIELDS if isinstance(rest.get(key), str | int)), None)
    metadata.update((key, value) for key, value in rest.items() if value not in (None, "", [], {}))
    return ImportRow(
        place=place,
        content=fields[name],
        owner=owner,
        memory_type=memory_type,
        source=source,
        citations=citations,
        validity_horizon=horizon,
        metadata=metadata,
        saved_at=saved_at,
        origin=None if origin is None else origin[:_ORIGIN_CHARACTERS],
    )


def _first(rest: dict[str, Any], names: tuple[str, ...], *, isinstance_of: type) -> Any:
    """Takes out the first of these fields that has a value of this type."""
    for name in names:
        if rest.get(name) and isinstance(rest[name], isinstance_of):
            return rest.pop(name)
    return None


def _word(rest: dict[str, Any], name: str, known: frozenset[str]) -> str | None:
    """Takes out a word that is one of ours."""
    value = rest.get(name)
    if isinstance(value, str) and value in known:
        del rest[name]
        return value
    return None


def parse_time(value: object) -> datetime | None:
    """The time in a field of another store: ISO 8601, or Unix time in seconds or milliseconds. None when it is
    neither: it is only shown, and a memory without one is as good."""
    try:
        if isinstance(value, str):
            # Python 3.11 reads fractions of any length but for more than six digits that end in a zone.
            shortened = _FRACTION.sub(lambda match: match.group()[:7], value.strip())
            at = datetime.fromisoformat(shortened)
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value if int(value) in _SECONDS else value / 1000
            return datetime.fromtimestamp(seconds, UTC) if int(seconds) in _SECONDS else None
    except (ValueError, OverflowError):
        return None
    return None
