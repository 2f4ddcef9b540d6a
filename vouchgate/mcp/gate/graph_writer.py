"""How the tools of the knowledge-graph memory server write: what each call comes to, and doing it later.

What is written is read back and compared, because the server loses writes that come together, and because at least
once means that a delivery may be done already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from vouchgate.client import DeadLetter
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.mcp.gate.config import GraphWrite
from vouchgate.mcp.gate.graph import (
    ADDITIONS,
    DELETIONS,
    ENTITIES,
    NAMES,
    RELATIONS,
    Additions,
    Deletions,
    Entity,
    Graph,
    Relation,
    bare_entity,
    dump_models,
    edited_observation,
    edited_relation,
    edited_type,
    entity_place,
    entity_removal,
    graph_of,
    is_plain_kind,
    is_unedited,
    observation,
    observation_place,
    observation_prefix,
    relation_place,
    relation_write,
    removal_lines,
    sentence,
    written_entities,
    written_observations,
)
from vouchgate.mcp.gate.writes import (
    CallRefused,
    Plan,
    Server,
    ServerDeclined,
    Write,
    digest,
    distinct_writes,
    texts_in,
    until_seen,
)

T = TypeVar("T", bound=BaseModel)
_PUT, _REMOVE = DeliveryOp.PUT, DeliveryOp.REMOVE


def _parse_items(kind: str, arguments: Mapping[str, Any], name: str, adapter: TypeAdapter[Any]) -> Any:
    try:
        return adapter.validate_python(arguments.get(name))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, [name, *first["loc"]]))
        raise CallRefused(f"The arguments do not fit ({kind}): {where}: {first['msg']}.") from None


def _require_text(kind: str, asked: list[T]) -> list[T]:
    """What is to be written, when all of it says something. Raises Refused: what is blank could not be told apart."""
    for text in texts_in([thing.model_dump() for thing in asked]):
        if not text.strip():
            raise CallRefused(f"The arguments do not fit ({kind}): no name, type or text may be empty.")
    return asked


def _require_plain_kind(entity: Entity) -> None:
    if not is_plain_kind(entity.type):
        raise CallRefused(
            f"The type of {entity.name} says more than what kind of thing it is: {entity.type!r}. A type has letters, "
            "digits, spaces and hyphens; say the rest in observations."
        )


class GraphWriter:
    """How the tools of the knowledge-graph memory server write."""

    def __init__(self, server: Server, tools: Mapping[str, GraphWrite]) -> None:
        self._server = server
        self._kinds = {tool: write.kind for tool, write in tools.items()}

    async def plan(self, tool: str, arguments: Mapping[str, Any]) -> Plan:
        """See `Writer`."""
        match self._kinds[tool]:
            case "entities":
                return await self._entities(
                    _require_text(tool, _parse_items(tool, arguments, "entities", ENTITIES))
                )
            case "observations":
                return await self._observations(
                    _require_text(tool, _parse_items(tool, arguments, "observations", ADDITIONS))
                )
            case "relations":
                asked = _require_text(tool, _parse_items(tool, arguments, "relations", RELATIONS))
                return Plan(distinct_writes([relation_write(relation, _PUT) for relation in asked]))
            case "remove-entities":
                return await self._entities_to_go(_parse_items(tool, arguments, "entityNames", NAMES))
            case "remove-observations":
                return await self._observations_to_go(_parse_items(tool, arguments, "deletions", DELETIONS))
            case "remove-relations":
                return await self._relations_to_go(_parse_items(tool, arguments, "relations", RELATIONS))

    async def _entities(self, asked: list[Entity]) -> Plan:
        known = await self._open([entity.name for entity in asked])
        writes, notes = list[Write](), list[str]()
        for entity in asked:
            if known.entity(entity.name) is not None:  # as the server does: an entity it has is left as it is
                notes.append(
                    f"{entity.name} is there already and was left as it is: add_observations adds to it."
                )
            elif entity.observations:
                _require_plain_kind(entity)
                writes += [observation(entity.name, entity.type, text) for text in entity.observations]
            else:
                writes.append(bare_entity(entity.name, entity.type))
        return Plan(distinct_writes(writes), tuple(notes))

    async def _observations(self, asked: list[Additions]) -> Plan:
        known = await self._open([addition.name for addition in asked])
        writes, notes = list[Write](), list[str]()
        for addition in asked:
            entity = known.entity(addition.name)
            if entity is None:  # as the server does: all of the call fails
                raise CallRefused(
                    f"Entity with name {addition.name} not found, so nothing was written. It may wait for its owner; "
                    "create_entities takes observations too."
                )
            _require_plain_kind(entity)
            for text in addition.contents:
                if text in entity.observations:
                    notes.append(f"{entity.name} has this observation already: {text}")
                else:
                    writes.append(observation(entity.name, entity.type, text))
        return Plan(distinct_writes(writes), tuple(notes))

    async def _entities_to_go(self, names: list[str]) -> Plan:
        known = await self._open(names)
        found = {name: known.entity(name) for name in names}
        writes = [entity_removal(entity, known) for entity in found.values() if entity is not None]
        return Plan(
            tuple(writes), tuple(f"There is no {name}." for name, one in found.items() if one is None)
        )

    async def _observations_to_go(self, asked: list[Deletions]) -> Plan:
        known = await self._open([deletion.name for deletion in asked])
        writes, notes = list[Write](), list[str]()
        for deletion in asked:
            entity = known.entity(deletion.name)
            for text in deletion.observations:
                if entity is None or text not in entity.observations:
                    notes.append(f"{deletion.name} has no such observation: {text}")
                    continue
                content = observation_prefix(entity.name, entity.type) + text
                data = {"tool": "delete_observations", "name": entity.name, "digest": digest(text)}
                writes.append(Write(_REMOVE, observation_place(entity.name, text), content, {**data}))
        return Plan(distinct_writes(writes), tuple(notes))

    async def _relations_to_go(self, asked: list[Relation]) -> Plan:
        known = (
            await self._relations()
        )  # all: open_nodes leaves out those between entities that are not there
        there = [relation for relation in asked if relation in known]
        notes = tuple(f"There is no such relation: {sentence(one)}" for one in asked if one not in known)
        return Plan(distinct_writes([relation_write(relation, _REMOVE) for relation in there]), notes)

    def is_unedited(self, op: DeliveryOp, place: str, content: str, data: Mapping[str, JsonValue]) -> bool:
        """See `Writer`. With a type that may hide what it is, an observation is one of another program."""
        told = is_unedited(place, content, data)
        hides = data.get("tool") == "add_observations" and not is_plain_kind(str(data.get("type")))
        return told and not (hides and op is _PUT)

    async def apply(
        self,
        op: DeliveryOp,
        place: str,
        content: str,
        data: Mapping[str, JsonValue],
        *,
        replacing: bool = False,
    ) -> None:
        """See `Writer`."""
        start, end = str(data.get("from")), str(data.get("to"))
        match op, data.get("tool"), data.get("name"), data.get("type"):
            case DeliveryOp.PUT, "add_observations", str(name), str(kind):
                await self._put_observation(name, kind, edited_observation(content, name, kind))
            case DeliveryOp.PUT, "create_entities", str(name), str():
                await self._put_entity(name, edited_type(content, name))
            case DeliveryOp.PUT, "create_relations", _, str():
                await self._put_relation(edited_relation(content, start, end))
            case DeliveryOp.REMOVE, "add_observations", str(name), str(kind):  # its owner took it back
                await self._drop_observation(name, digest(edited_observation(content, name, kind)))
            case DeliveryOp.REMOVE, "create_entities", str(name), str():
                await self._drop_bare_entity(name)
            case DeliveryOp.REMOVE, "create_relations", _, str():
                await self._drop_relation(edited_relation(content, start, end))
            case DeliveryOp.REMOVE, "delete_observations", str(name), _:
                await self._drop_observation(name, str(data.get("digest")))
            case DeliveryOp.REMOVE, "delete_relations", _, str(kind):
                await self._drop_relation(Relation(start=start, type=kind, end=end))
            case DeliveryOp.REMOVE, "delete_entities", str(name), _:
                shown = data.get("shown")
                await self._drop_entity(name, frozenset(map(str, shown if isinstance(shown, list) else [])))
            case _:
                raise DeadLetter("It does not say what to write; it was not sent by this gate.")

    async def _drop_bare_entity(self, name: str) -> None:
        """An entity of which more is known by now stays: that is other memories'."""
        graph = await self._open([name])
        entity = graph.entity(name)
        if entity is not None and not entity.observations and not graph.about(name):
            await self._drop_entity(name, frozenset())

    async def _put_observation(self, name: str, kind: str, text: str) -> None:
        entity = (await self._open([name])).entity(name)
        if entity is None:
            made = Entity(name=name, type=kind, observations=[text])
            await self._server.call("create_entities", {"entities": dump_models([made])})
        elif text not in entity.observations:
            added = Additions(name=name, contents=[text])
            await self._server.call("add_observations", {"observations": dump_models([added])})

        async def seen() -> bool:
            after = (await self._open([name])).entity(name)
            return after is not None and text in after.observations

        if not await until_seen(seen):
            raise ServerDeclined("The observation was written, and is not there when it is read back.")

    async def _put_entity(self, name: str, kind: str) -> None:
        if (await self._open([name])).entity(name) is None:
            made = Entity(name=name, type=kind, observations=[])
            await self._server.call("create_entities", {"entities": dump_models([made])})
        after: Entity | None = None

        async def seen() -> bool:
            nonlocal after
            after = (await self._open([name])).entity(name)
            return after is not None

        if not await until_seen(seen) or after is None:
            raise ServerDeclined("The entity was written, and is not there when it is read back.")
        if after.type != kind:
            raise DeadLetter(f"There is a {name} already, of another type.")

    async def _put_relation(self, relation: Relation) -> None:
        if relation not in (await self._open([relation.start])).relations:
            await self._server.call("create_relations", {"relations": dump_models([relation])})
        if not await until_seen(lambda: self._has_relation(relation)):
            raise ServerDeclined("The relation was written, and is not there when it is read back.")

    async def _drop_relation(self, relation: Relation) -> None:
        await self._server.call("delete_relations", {"relations": dump_models([relation])})
        if await self._has_relation(relation):
            raise ServerDeclined("The relation is still there.")

    async def _drop_observation(self, name: str, named: str) -> None:
        entity = (await self._open([name])).entity(name)
        gone = [text for text in (entity.observations if entity else []) if digest(text) == named]
        if gone:
            deletion = Deletions(name=name, observations=gone)
            await self._server.call("delete_observations", {"deletions": dump_models([deletion])})
        after = (await self._open([name])).entity(name)
        if after is not None and any(digest(text) == named for text in after.observations):
            raise ServerDeclined("The observation is still there.")

    async def _drop_entity(self, name: str, shown: frozenset[str]) -> None:
        graph = await self._open([name])
        if (entity := graph.entity(name)) is None:
            return
        if {digest(part)[:12] for part in removal_lines(entity, graph)} - shown:
            raise DeadLetter(
                f"{name} holds more by now than its owner was shown, so it was left: ask for its removal again."
            )
        await self._server.call("delete_entities", {"entityNames": [name]})
        after = await self._open([name])
        if after.entity(name) is not None or after.about(name):
            raise ServerDeclined("The entity is still there.")

    async def written_places(self, writes: Collection[Write]) -> frozenset[str]:
        """See `Writer`. Only what `plan` made is asked for, unedited."""
        if not writes:
            return frozenset()
        graph = await self._read("read_graph", {})
        there = {entity_place(entity.name) for entity in graph.entities}
        there |= {relation_place(relation) for relation in graph.relations}
        there |= {
            observation_place(entity.name, text) for entity in graph.entities for text in entity.observations
        }
        return frozenset(write.place for write in writes if (write.place in there) is (write.op is _PUT))

    def structured_content(
        self, tool: str, arguments: Mapping[str, Any], plan: Plan, done: Collection[str], words: str
    ) -> dict[str, Any] | None:
        """See `Writer`: what the server would have answered, had it been asked for what was written only."""
        match self._kinds[tool]:
            case "entities":
                return {"entities": written_entities(ENTITIES.validate_python(arguments["entities"]), done)}
            case "observations":
                asked = ADDITIONS.validate_python(arguments["observations"])
                return {"results": [written_observations(addition, done) for addition in asked]}
            case "relations":
                relations = RELATIONS.validate_python(arguments["relations"])
                return {"relations": dump_models(one for one in relations if relation_place(one) in done)}
            case "remove-entities" | "remove-observations" | "remove-relations":
                return {"success": all(write.place in done for write in plan.writes), "message": words}

    async def _relations(self) -> list[Relation]:
        return (await self._read("read_graph", {})).relations

    async def _has_relation(self, relation: Relation) -> bool:
        return relation in await self._relations()

    async def _open(self, names: list[str]) -> Graph:
        return await self._read("open_nodes", {"names": names})

    async def _read(self, tool: str, arguments: Mapping[str, Any]) -> Graph:
        return graph_of(await self._server.call(tool, arguments))
