"""The knowledge-graph memory server: its entities, observations and relations as claims, and back. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from vouchgate.client import DeadLetter
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.mcp.gate.writes import (
    CONTENT,
    CallRefused,
    ServerAnswer,
    ServerFailed,
    Write,
    digest,
    other_place_message,
    place_of,
)

_PUT, _REMOVE = DeliveryOp.PUT, DeliveryOp.REMOVE
# Of an entity that is to go. Their digests travel with the request, so that nothing goes that was not shown, and they
# have to fit into the 4 KiB that may.
_MOST_PARTS = 100


_PLAIN_KIND = re.compile(r"(?:[\w /+#&'’-]|\.(?=\w))+")


class _Wire(BaseModel):
    """What else a caller adds is dropped: only what is named here is written, and shown."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, frozen=True, strict=True)


class Entity(_Wire):
    """A node. Its name is its identity."""

    name: str
    type: str = Field(alias="entityType")
    observations: list[str]


class Relation(_Wire):
    """An edge. All three together are its identity."""

    start: str = Field(alias="from")
    type: str = Field(alias="relationType")
    end: str = Field(alias="to")


class Additions(_Wire):
    """What `add_observations` takes for one entity."""

    name: str = Field(alias="entityName")
    contents: list[str]


class Deletions(_Wire):
    """What `delete_observations` takes for one entity."""

    name: str = Field(alias="entityName")
    observations: list[str]


class Graph(_Wire):
    """A part of the graph, as the server answers."""

    entities: list[Entity]
    relations: list[Relation]

    def entity(self, name: str) -> Entity | None:
        """The entity of this name."""
        return next((found for found in self.entities if found.name == name), None)

    def about(self, name: str) -> list[Relation]:
        """The relations that go with an entity when it goes."""
        return [found for found in self.relations if name in (found.start, found.end)]


ENTITIES, RELATIONS = TypeAdapter(list[Entity]), TypeAdapter(list[Relation])
ADDITIONS, DELETIONS = TypeAdapter(list[Additions]), TypeAdapter(list[Deletions])
NAMES = TypeAdapter(list[str])


def is_plain_kind(kind: str) -> bool:
    """Whether the type of an entity is the name of a kind of thing, and nothing in it ends the brackets in which it
    stands in a claim, or a sentence: so it is seen as what it is there."""
    return _PLAIN_KIND.fullmatch(kind) is not None


def observation_prefix(name: str, kind: str) -> str:
    """What stands before an observation in its claim."""
    return f"{name} ({kind}): "


def sentence(relation: Relation) -> str:
    """A relation as a claim."""
    return f"{relation.start} {relation.type} {relation.end}"


def observation_place(name: str, observation: str) -> str:
    """Where an observation is."""
    return place_of("observation", name, digest(observation))


def relation_place(relation: Relation) -> str:
    """Where a relation is."""
    return place_of("relation", relation.start, relation.type, relation.end)


def entity_place(name: str) -> str:
    """Where an entity is."""
    return place_of("entity", name)


def observation(name: str, kind: str, text: str) -> Write:
    """An observation to be written."""
    data = {"tool": "add_observations", "name": name, "type": kind}
    content = observation_prefix(name, kind) + text
    return Write(_PUT, observation_place(name, text), content, {**data})


def bare_entity(name: str, kind: str) -> Write:
    """An entity of which nothing is known but its type."""
    return Write(
        _PUT,
        entity_place(name),
        f"{name} is a {kind}",
        {"tool": "create_entities", "name": name, "type": kind},
    )


def relation_write(relation: Relation, op: DeliveryOp) -> Write:
    """A relation to be written, or to go."""
    tool = "create_relations" if op is _PUT else "delete_relations"
    data = {"tool": tool, "from": relation.start, "type": relation.type, "to": relation.end}
    return Write(op, relation_place(relation), sentence(relation), {**data})


def is_unedited(place: str, content: str, data: Mapping[str, JsonValue]) -> bool:
    """See `Writer`. Of an observation that its owner edited, the place tells the entity alone; of what is to go, the
    place tells all."""
    name, kind = str(data.get("name")), str(data.get("type"))
    relation = Relation(start=str(data.get("from")), type=kind, end=str(data.get("to")))
    match data.get("tool"):
        case "add_observations":
            whole = observation(name, kind, content.removeprefix(observation_prefix(name, kind)))
            if whole.place != place and not _is_of(place, name):
                raise other_place_message(place)
            return (whole.place, whole.content) == (place, content)
        case "create_entities":
            whole = bare_entity(name, kind)
        case "create_relations":
            whole = relation_write(relation, _PUT)
        case "delete_observations":
            whole = Write(_REMOVE, place_of("observation", name, str(data.get("digest"))), content, {})
        case "delete_relations":
            whole = Write(_REMOVE, relation_place(relation), content, {})
        case "delete_entities":
            whole = Write(_REMOVE, entity_place(name), content, {})
        case _:
            raise DeadLetter("It does not say what to write; it was not sent by this gate.")
    if whole.place != place:
        raise other_place_message(place)
    return whole.content == content


def _is_of(place: str, name: str) -> bool:
    """Whether a place is that of an observation of this entity."""
    try:
        parts = json.loads(place)
    except (ValueError, RecursionError):
        return False
    return isinstance(parts, list) and parts[:1] == ["observation"] and parts[1:2] in ([name], [digest(name)])


def removal_lines(entity: Entity, graph: Graph) -> list[str]:
    """Everything that goes when an entity goes, a line each."""
    prefix = observation_prefix(entity.name, entity.type)
    return [
        *(prefix + text for text in entity.observations),
        *(sentence(relation) for relation in graph.about(entity.name)),
    ]


def entity_removal(entity: Entity, graph: Graph) -> Write:
    """An entity that is to go, with all that goes with it shown. Raises Refused when that is too much to show."""
    parts = removal_lines(entity, graph)
    heading = f"{entity.name} is a {entity.type}"
    content = "\n".join([heading, *parts])
    if len(parts) > _MOST_PARTS or len(content) > CONTENT:
        raise CallRefused(
            f"{entity.name} holds {len(parts)} observations and relations: too much to show its owner at once. "
            "Delete observations and relations of it first."
        )
    shown: list[JsonValue] = [digest(part)[:12] for part in parts]
    data: dict[str, JsonValue] = {"tool": "delete_entities", "name": entity.name, "shown": shown}
    return Write(_REMOVE, entity_place(entity.name), content, data)


def edited_observation(content: str, name: str, kind: str) -> str:
    """The observation in what the owner approved: without the prefix, when it is still there, else all of it."""
    return content.removeprefix(observation_prefix(name, kind))


def edited_type(content: str, name: str) -> str:
    """The type in what the owner approved of a bare entity. Raises DeadLetter when it is no such sentence any more."""
    heading = f"{name} is a "
    kind = content.removeprefix(heading)
    if kind == content or not kind.strip():
        raise DeadLetter(f"The text was edited, and no longer says what {name} is: begin with “{heading}”.")
    return kind


def edited_relation(content: str, start: str, end: str) -> Relation:
    """The relation in what the owner approved. Raises DeadLetter when both ends are not there any more."""
    head, tail = f"{start} ", f" {end}"
    kind = content[len(head) : len(content) - len(tail)]
    if not (content.startswith(head) and content.endswith(tail) and kind.strip()):
        raise DeadLetter(
            f"The text was edited, and is no longer a relation: begin with “{start}”, end with “{end}”."
        )
    return Relation(start=start, type=kind, end=end)


def dump_models(items: Iterable[BaseModel]) -> list[dict[str, Any]]:
    """As the server takes them."""
    return [item.model_dump(by_alias=True) for item in items]


def written_entities(asked: Iterable[Entity], done: Collection[str]) -> list[dict[str, Any]]:
    """Of entities that were to be created, what was written, as the server takes them."""
    found = list[Entity]()
    for entity in asked:
        kept = [text for text in entity.observations if observation_place(entity.name, text) in done]
        if kept or entity_place(entity.name) in done:
            found.append(entity.model_copy(update={"observations": kept}))
    return dump_models(found)


def written_observations(addition: Additions, done: Collection[str]) -> dict[str, Any]:
    """Of observations that were to be added, what was written, as the server answers."""
    kept = [text for text in addition.contents if observation_place(addition.name, text) in done]
    return {"entityName": addition.name, "addedObservations": kept}


def graph_of(answer: ServerAnswer) -> Graph:
    """A graph as the server answered; older ones answer with JSON text only. Raises Failed."""
    try:
        return Graph.model_validate(
            answer.structured if answer.structured is not None else json.loads(answer.text)
        )
    except ValueError as error:  # no JSON, or another shape (pydantic's error is one too)
        raise ServerFailed(
            f"The memory server answered with something that is no graph ({type(error).__name__})."
        ) from None
