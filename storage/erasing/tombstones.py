"""What is known of what was erased: when, by whom and on which legal basis."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, Table, bindparam, select

from vouchgate.ingest.citations.kinds.record import PREFIX
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.likeness import Paraphrases
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.pipeline import Examined
from vouchgate.storage.errors import SourceErased
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.log.chain import TABLE as LOG
from vouchgate.storage.sql import among, limited_to
from vouchgate.storage.tables.claims import ErasedRow

TABLE: Table = ErasedRow.metadata.tables["erased"]
_ONE = select(TABLE).where(TABLE.c.item_id == bindparam("wanted"))
_SHOWED = select(LOG.c.subject_id).where(LOG.c.action == Action.MEMORY_ERASED.value)
_KNOWN = select(TABLE.c.item_id).where(
    TABLE.c.owner_id == bindparam("of_owner"), among(TABLE.c.item_id, "wanted")
)


class Tombstone(Frozen):
    """That a memory, item or decision was erased. `by` is a principal's id, `operator`, or `service`."""

    item_id: str
    erasure_id: str  # of all that went together
    at: datetime
    by: str
    basis: str

    def __str__(self) -> str:
        return f"It was erased on {self.at:%Y-%m-%d} ({self.basis})."


def find(connection: Connection, item_id: str, *, owners: frozenset[str] | None) -> Tombstone | None:
    """That of this id, if one of `owners` (None: any) had it and it was erased."""
    if not valid_name(item_id):
        return None
    row = connection.execute(limited_to(owners, _ONE, TABLE), {"wanted": item_id}).mappings().first()
    if row is None:
        return None
    return Tombstone.model_validate({name: row[name] for name in Tombstone.model_fields})


def without_text(connection: Connection) -> set[str]:
    """Every id that was erased, and of decisions on other claims those that showed it."""
    return {*connection.scalars(select(TABLE.c.item_id)), *connection.scalars(_SHOWED)}


def known(connection: Connection, owner_id: str, ids: Collection[str]) -> set[str]:
    """Those of these ids that are erased."""
    return set(connection.scalars(_KNOWN, {"of_owner": owner_id, "wanted": list(ids)}))


def shown_to(examined: Examined) -> set[str]:
    """The ids of the memories, items and records whose words a claim is shown, or rests on, as they were read before
    its transaction."""
    near = examined.facts.paraphrases
    found = {one.id for one in near.items} if isinstance(near, Paraphrases) else set[str]()
    return found | {one.memory_id for one in examined.similar or ()} | _records(examined.readings)


def _records(readings: Collection[SourceReading]) -> set[str]:
    keys = [reading.citation.key for reading in readings if isinstance(reading, Found)]
    return {key.removeprefix(PREFIX) for key in keys if key.startswith(PREFIX)}


def without(examined: Examined, gone: Collection[str]) -> Examined:
    """The claim without what it is shown of these, which would be written again after they were erased. Raises
    SourceErased for one that rests on them."""
    if not gone:
        return examined
    if not _records(examined.readings).isdisjoint(gone):
        raise SourceErased("a record that the claim cites was erased while it was looked at; send it again")
    near, similar = examined.facts.paraphrases, examined.similar
    if isinstance(near, Paraphrases):
        items = tuple(one for one in near.items if one.id not in gone)
        examined = examined.knowing(paraphrases=near.model_copy(update={"items": items}))
    left = None if similar is None else tuple(one for one in similar if one.memory_id not in gone)
    return replace(examined, similar=left)


def without_erased(connection: Connection, examined: Examined) -> Examined:
    """The claim without what is erased by now, in a transaction that holds its owner's lock. Raises SourceErased."""
    shown = shown_to(examined)
    return without(examined, known(connection, examined.claim.owner_id, shown)) if shown else examined
