"""One memory of a file: what it says, whose it is, and what its store knows of it besides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from vouchgate.ingest.citations.detection import detect_citations
from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.wire import ClaimIn


@dataclass(frozen=True, slots=True)
class Fields:
    """Under which names a row has what: the first that has a value counts. `a.b` is the field b of the object a."""

    text: tuple[str, ...] = ("content", "text", "memory", "fact", "observation")
    kind: tuple[str, ...] = ("memory_type",)  # one of MemoryType
    source: tuple[str, ...] = ("source",)  # one of Source
    citations: tuple[str, ...] = ("citations",)
    owner: tuple[str, ...] = ("user_id", "owner_id", "owner")
    # When it was saved; the first that can be read counts.
    time: tuple[str, ...] = ("created_at", "createdAt", "timestamp", "saved_at", "date", "updated_at")
    list: str | None = None  # of a JSON object: under which name the rows stand


KNOWN = Fields()
# From when on its own store takes it for no longer true: Zep's edges, mem0.
_END_FIELDS = ("invalid_at", "expired_at", "expiration_date")
# Who saved it, or under which key: shown beside an echo.
ORIGIN_FIELDS = ("agent_id", "agent", "run_id", "session_id", "thread_id", "namespace", "key")
_SHAPE = 40  # fields of a row that are described
_NAME_WORDS = 8  # of a subject; more are a sentence
_VERBS = re.compile(
    r"\b(is|are|was|were|be|will|has|have|had|does|do|did|can|could|must|may|might|should|would|not|never|no)\b",
    re.IGNORECASE,
)
# Numbers that only their own store can read, and digests of the text, by which a masked credential could be tried out.
_DROPPED = frozenset({"embedding", "embeddings", "vector", "score", "hash"})
_MEMORY_TYPES = frozenset(member.value for member in MemoryType)
_SOURCES = frozenset(member.value for member in Source)
_SECONDS = range(10**9, 10**10)  # 2001 to 2286 as Unix time; in milliseconds a thousand times as much
_ORIGIN_CHARACTERS = 80
_FRACTION = re.compile(r"\.\d+")
_UTC_NAMED = re.compile(r"\s*(?:UTC|GMT|Z)$", re.IGNORECASE)
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_DAY = 8  # digits of a day, as 20260301


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
    shape: tuple[tuple[str, str], ...] = ()  # of a row without a text: its fields, and what each is


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


def parse_row(place: str, fields: Mapping[str, Any], known: Fields = KNOWN) -> ImportRow | BadRow:
    """The memory in a JSON object: its text, what the gate knows of by name, and all the rest as metadata. A word that
    is no memory type or source of ours is metadata too; whose a memory is, what it cites and when it ends is never
    passed over where it is given."""
    rest = {key: value for key, value in fields.items() if key not in _DROPPED}
    content = _taken(rest, known.text, str)
    if content is None:
        message = f"has no text: none of {', '.join(known.text)} is a string"
        return BadRow(place, message, tuple(_shape(fields)))
    try:
        owner, end = _owner(rest, known.owner), _end(rest)
        cited = _given(rest, known.citations)
        if cited is not None and cited[1] and not isinstance(cited[1], str | list):
            raise _Unfit(f"{cited[0]} must be a list or a text")
    except _Unfit as error:
        return BadRow(place, str(error))
    given = rest.pop("metadata", None)
    metadata = dict(given) if isinstance(given, dict) else {} if given is None else {"metadata": given}
    listed = _taken(rest, known.citations, list)
    # What is named in a text ("src/a.py:12 - the retry") is a citation each, and the text is metadata.
    told = _taken(rest, known.citations, str, keep=True) if listed is None else None
    origin = next((str(rest[key]) for key in ORIGIN_FIELDS if isinstance(rest.get(key), str | int)), None)
    row = ImportRow(
        place=place,
        content=content,
        owner=owner,
        memory_type=_taken(rest, known.kind, str, _MEMORY_TYPES.__contains__),
        source=_taken(rest, known.source, str, _SOURCES.__contains__),
        citations=_named_in(told or "") if listed is None else [one for each in listed for one in _one(each)],
        validity_horizon=end,
        metadata=metadata,
        saved_at=parse_time(_taken(rest, known.time, object, parse_time, keep=True)),
        origin=None if origin is None else origin[:_ORIGIN_CHARACTERS],
    )
    metadata.update((key, value) for key, value in rest.items() if value not in (None, "", [], {}))
    # Memories of coding assistants: a fact about a subject.
    subject = fields.get("subject")
    return about(subject, row) if isinstance(subject, str) and content is fields.get("fact") else row


def about(subject: str, row: ImportRow) -> ImportRow:
    """The row with what it is about before its text: as context, where that says nothing by itself. It may be a whole
    sentence, which a source has to say. One that says nothing stays so, and is refused."""
    if not row.content.strip():
        return row
    before = f"{subject.strip()}: " if subject.strip() else ""
    says_nothing = len(before.split()) <= _NAME_WORDS and _VERBS.search(before) is None
    return replace(row, content=before + row.content, context=len(before) if says_nothing else 0)


class _Unfit(ValueError):
    """A field is given, and cannot be read. One sentence."""


def _owner(rest: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Whose the memory is; a number is that owner as text, as it is in a table of texts."""
    found = _given(rest, names)
    if found is None:
        return None
    name, value = found
    if (
        isinstance(value, float) and value.is_integer()
    ):  # whole numbers beside empty cells, as pandas keeps them
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _Unfit(f"{name} must be a text or a whole number")
    _taken(rest, [name], object)
    return str(value)


def _end(rest: dict[str, Any]) -> object:
    """Until when it holds: as an agent would say it, else as its store does."""
    horizon = rest.pop("validity_horizon", None)
    if horizon not in (None, ""):
        return horizon
    found = _given(rest, _END_FIELDS)
    if found is None:
        return None
    at = parse_time(found[1])
    if at is None:
        raise _Unfit(f"{found[0]} must be a date or time, like 2027-01-31T00:00:00Z or seconds since 1970")
    return at


def _given(rest: Mapping[str, Any], names: Iterable[str]) -> tuple[str, Any] | None:
    """The first of these fields in which anything stands, and what."""
    other = None
    for name in names:
        value: Any = rest
        for step in [name] if name in rest else name.split("."):
            if not isinstance(value, dict):
                other, value = name, None
                break
            value = value.get(step)
            if value is None:
                break
        if value not in (None, ""):
            return name, value
    if other is not None:
        raise _Unfit(f"{other} is not there: something else stands where it should be")
    return None


def _taken(
    rest: dict[str, Any],
    names: Iterable[str],
    kind: type,
    fits: Callable[[Any], object] = lambda _: True,
    *,
    keep: bool = False,
) -> Any:
    """Takes out the first of these fields whose value is of this kind and fits, or with `keep` only looks. Objects on
    the way are copied: they are not ours."""
    for name in names:
        *path, last = [name] if name in rest else name.split(".")
        holder = rest
        for step in path:
            inner = holder.get(step)
            if not isinstance(inner, dict):
                holder = {}
                break
            holder[step] = holder = dict(inner)
        value = holder.get(last)
        if value is not None and isinstance(value, kind) and fits(value):
            return value if keep else holder.pop(last)
    return None


def _one(given: object) -> list[Any]:
    """The citations in one of a list: most often it is one."""
    return (_named_in(given) if isinstance(given, str) and len(given.split()) > 1 else []) or [given]


def _named_in(text: str) -> list[Any]:
    return [{"type": each.type, "value": each.value} for each in detect_citations(text)]


def _shape(fields: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """The names of the fields of a row, at most so many, and what each holds, without a word of it."""
    for name, value in islice(fields.items(), _SHAPE):
        if isinstance(value, dict) and not before:
            yield from islice(_shape(value, f"{name}."), _SHAPE)
        else:
            yield " ".join(f"{before}{name}".split())[:_ORIGIN_CHARACTERS], type(value).__name__


def parse_time(value: object) -> datetime | None:
    """The time in a field of another store: ISO 8601, or Unix time in seconds or milliseconds, also in digits. None
    when it is neither."""
    try:
        if isinstance(value, str):
            value = _UTC_NAMED.sub("", value.strip())
            digits = _DIGITS.fullmatch(value)
            if digits is not None and len(value) != _DAY:
                return parse_time(float(value))
            # Python 3.11 reads fractions of any length but for more than six digits that end in a zone.
            shortened = _FRACTION.sub(lambda match: match.group()[:7], value)
            at = datetime.fromisoformat(shortened)
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value if int(value) in _SECONDS else value / 1000
            return datetime.fromtimestamp(seconds, UTC) if int(seconds) in _SECONDS else None
    except (ValueError, OverflowError):
        return None
    return None
