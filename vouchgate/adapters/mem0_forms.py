"""What a call to mem0 would write, as the gate sees it, and what a delivery may write. Pure: no I/O, no mem0."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from vouchgate.adapters.rendering import render_value
from vouchgate.ingest.claims.texts import is_plain_name
from vouchgate.ingest.policy import MAX_CONTENT_CHARACTERS

# Kept in a memory's metadata, so that a delivery finds what it has written already.
PLACE, DELIVERY, MEMORY = "vouchgate_place", "vouchgate_delivery", "vouchgate_memory"
_OURS = "vouchgate_"
_NEW, _OLD = "new:", "id:"
# Set by mem0 itself, or taken out of metadata by it: what stands under them would not be written as given.
_TAKEN = frozenset(
    {
        "actor_id",
        "agent_id",
        "data",
        "hash",
        "id",
        "role",
        "run_id",
        "text_lemmatized",
        "updated_at",
        "user_id",
    }
)
_MAX_ID_CHARACTERS = 200  # as the gate's owner ids
_MAX_NAME_CHARACTERS = 200
_ROLE = re.compile(
    r"[A-Za-z]{1,20}(?:[_-][A-Za-z]{1,10})?"
)  # written beside the text: a word or two, not prose


@dataclass(frozen=True)
class Scope:
    """Whose a memory is in mem0: at least one of the three ids."""

    user_id: str | None
    agent_id: str | None
    run_id: str | None

    @classmethod
    def of(cls, user_id: object = None, agent_id: object = None, run_id: object = None) -> Scope:
        """The scope of these ids, trimmed and made text as mem0 does it. Raises ValueError when one is empty, holds
        white space or is too long, or none is given."""
        scope = cls(_id("user_id", user_id), _id("agent_id", agent_id), _id("run_id", run_id))
        if not scope.ids():
            raise ValueError("one of user_id, agent_id and run_id is needed")
        return scope

    def ids(self) -> dict[str, str]:
        """Those that are given, by their names in mem0."""
        named = {"user_id": self.user_id, "agent_id": self.agent_id, "run_id": self.run_id}
        return {name: value for name, value in named.items() if value is not None}


def _id(name: str, value: object) -> str | None:
    if value is None:
        return None
    text = str(value).strip()
    if not text or len(text) > _MAX_ID_CHARACTERS or any(character.isspace() for character in text):
        raise ValueError(f"{name} must be 1 to {_MAX_ID_CHARACTERS} characters without white space")
    return text


@dataclass(frozen=True)
class MemoryText:
    """One text that mem0 would save as one memory. `role` is whose words they are, `actor` that speaker's name."""

    text: str
    role: str
    actor: str | None = None


def memory_texts(messages: object) -> list[MemoryText]:
    """What `Memory.add(messages, infer=False)` would save: every message but those of the system.

    Raises ValueError for a message that is not text: of a picture, a model would write the words.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, Mapping):
        messages = [messages]
    if not isinstance(messages, list):
        raise ValueError("messages must be a text, a message or a list of messages")
    return [_memory_text(message) for message in messages if not _is_of_system(message)]


def _is_of_system(message: object) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "system"


def _memory_text(message: object) -> MemoryText:
    if not isinstance(message, Mapping) or not isinstance(content := message.get("content"), str):
        raise ValueError('a message must be {"role": …, "content": a text}: only text can be checked')
    role, name = message.get("role"), message.get("name") or None
    return MemoryText(content, _role(role), _actor(name))


def _role(role: object) -> str:
    if not isinstance(role, str) or not _ROLE.fullmatch(role):
        raise ValueError("a message's role must be a word, such as user or assistant")
    return role


def _actor(name: object) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or not name.strip() or len(name) > _MAX_NAME_CHARACTERS:
        raise ValueError(f"a message's name must be a text of at most {_MAX_NAME_CHARACTERS} characters")
    return name


def checked_metadata(metadata: object) -> dict[str, Any]:
    """The metadata as it can be kept by the gate and written by mem0. Raises ValueError when it cannot."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise ValueError("metadata must be a mapping")
    given = dict(metadata or {})
    for key in given:
        if not isinstance(key, str) or key in _TAKEN or key.startswith(_OURS):
            raise ValueError(f"metadata cannot have {key!r}: mem0 or the gate sets it")
    try:
        copied: dict[str, Any] = json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata must be JSON: {error}") from error
    return copied


def expiration(value: object) -> str:
    """An expiration date as mem0 keeps it: the last day on which the memory is shown, like 2027-01-31."""
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return date.fromisoformat(value).isoformat()
    raise ValueError("expiration_date must be a date, like 2027-01-31")


def horizon(expires: str) -> datetime | None:
    """When a memory with this expiration date counts as expired in the gate: when that day ends, in UTC. None for
    the last day that there is."""
    day = date.fromisoformat(expires)
    return None if day == date.max else datetime.combine(day + timedelta(days=1), time.min, UTC)


def render(piece: MemoryText, metadata: Mapping[str, Any], scope: Scope) -> str:
    """The claim's content: all that would be written as text, so that nothing gets past the checks. The memory comes
    first, as it is; then a line for each part of its metadata, and for an id or a name that could be prose."""
    return piece.text + _tail({**metadata, **_prose(piece, scope)})


def _prose(piece: MemoryText, scope: Scope) -> dict[str, str]:
    named = {"actor_id": piece.actor, "agent_id": scope.agent_id, "run_id": scope.run_id}
    return {name: value for name, value in named.items() if value is not None and not is_plain_name(value)}


def _tail(beside: Mapping[str, Any]) -> str:
    if not beside:
        return ""
    # Sorted, because the gate may give the same metadata back in another order.
    lines = (f"{name}: {render_value(value)}" for name, value in sorted(beside.items()))
    return "\n\n" + "\n".join(lines)


def new_place(unique: str) -> str:
    """The place of a memory that mem0 does not have yet. Its own id is not known before it is written."""
    return _NEW + unique


def place_of(row: Mapping[str, Any]) -> str:
    """The place of a memory that mem0 has: the one it was delivered to, or its own id when the gate never wrote it."""
    given = (row.get("metadata") or {}).get(PLACE)
    return given if isinstance(given, str) else _OLD + str(row["id"])


def last_delivery_id(row: Mapping[str, Any]) -> object:
    """The id of the delivery that wrote a memory last; None when none did."""
    return (row.get("metadata") or {}).get(DELIVERY)


def removal_content(text: str) -> str:
    """What is to be removed, as the content of a claim: a memory from before the gate may be longer, or empty."""
    if len(text) > MAX_CONTENT_CHARACTERS:
        return text[: MAX_CONTENT_CHARACTERS - 1] + "…"
    return text if text.strip() else "(no text)"


def memory_id_of_place(place: str) -> str | None:
    """The id in mem0 that a place names; None for one that was new to mem0."""
    return place.removeprefix(_OLD) if place.startswith(_OLD) else None


@dataclass(frozen=True)
class MemoryWrite:
    """What a delivery writes. `expires` holds an expiration date, or None to take one away, when one is set."""

    piece: MemoryText
    metadata: dict[str, Any]
    scope: Scope
    expires: dict[str, str | None]


def delivery_data(
    piece: MemoryText, metadata: Mapping[str, Any], scope: Scope, expires: Mapping[str, Any]
) -> dict[str, Any]:
    """What the gate keeps for a delivery beside the text."""
    actor = {} if piece.actor is None else {"actor_id": piece.actor}
    rest = {"metadata": dict(metadata)} if metadata else {}
    return {**scope.ids(), "role": piece.role, **actor, **rest, **expires}


def parse_write(content: str, data: Mapping[str, Any]) -> MemoryWrite:
    """What is to be written of a content that was decided on, and the data sent beside it.

    What stands beside the text is written only when the content still ends with its rendering. When the owner edited it
    away, or whoever sent the claim never showed it to the checks, the content alone is written. Raises ValueError
    when the data is not what `delivery_data` makes, or names a scope that was not shown.
    """
    metadata = checked_metadata(data.get("metadata"))
    scope = Scope.of(data.get("user_id"), data.get("agent_id"), data.get("run_id"))
    piece = MemoryText("", _role(data.get("role")), _actor(data.get("actor_id")))
    tail = render(piece, metadata, scope)
    if content.endswith(tail):
        text = content.removesuffix(tail)
    else:
        text, metadata, piece = content, {}, replace(piece, actor=None)
        if _prose(piece, scope):
            raise ValueError(
                "its agent_id or run_id could be prose and is not in the content that was let through"
            )
    if not text.strip():
        raise ValueError("there is no text to write")
    return MemoryWrite(replace(piece, text=text), metadata, scope, _expires(data))


def _expires(data: Mapping[str, Any]) -> dict[str, str | None]:
    if "expiration_date" not in data:
        return {}
    given = data["expiration_date"]
    return {"expiration_date": None if given is None else expiration(given)}
