"""Votes on waiting items: who approves one in the version that it has, and who objected. A vote counts for the version
it was given for: what changes an item voids the votes on it, and keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import Connection, Table, and_, bindparam, delete, insert, or_, select

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.storage.queue.pending import TABLE as PENDING
from vouchgate.storage.tables.people import PersonRow, VoteRow

TABLE: Table = VoteRow.metadata.tables["vote"]
_PERSON: Table = PersonRow.metadata.tables["person"]
_INSERT = insert(TABLE)
_OF_ITEM = (
    select(TABLE, _PERSON.c.name)
    .select_from(TABLE.outerjoin(_PERSON, _PERSON.c.id == TABLE.c.person_id))
    .where(TABLE.c.owner_id == bindparam("of_owner"), TABLE.c.item_id == bindparam("of_item"))
    .order_by(TABLE.c.version, TABLE.c.at, TABLE.c.person_id)
)
_ITEM = select(PENDING.c.id).where(
    PENDING.c.owner_id == bindparam("of_owner"),
    PENDING.c.memory_id == bindparam("of_memory"),
    PENDING.c.removal_of.is_(None),
)
_LATELY = (
    select(PENDING.c.id, TABLE.c.at)
    .join(TABLE, and_(TABLE.c.owner_id == PENDING.c.owner_id, TABLE.c.item_id == PENDING.c.id))
    .where(
        PENDING.c.owner_id == bindparam("of_owner"),
        PENDING.c.status == ReviewStatus.PENDING.value,
        TABLE.c.by == bindparam("of_by"),
        TABLE.c.at >= bindparam("from_at"),
        # One that others' acts have voided since is nobody's last word; an objection voids those of its own version.
        or_(
            and_(TABLE.c.verdict == "approve", TABLE.c.version == PENDING.c.version),
            and_(TABLE.c.verdict == "object", TABLE.c.version == PENDING.c.version - 1),
        ),
    )
)
_WITHDRAW = delete(TABLE).where(
    TABLE.c.owner_id == bindparam("of_owner"),
    TABLE.c.item_id == bindparam("of_item"),
    TABLE.c.version == bindparam("of_version"),
    TABLE.c.person_id == bindparam("of_person"),
)


class Vote(Frozen):
    """One person's word on an item in one version. `supersede` is what an approval said of a conflict, `note` what it
    said besides, or why somebody objects."""

    version: int
    person_id: str
    name: str | None = None  # what the person is called by now
    verdict: Literal["approve", "object"]
    by: str  # a principal's id
    at: datetime
    note: str | None = None
    supersede: bool | None = None
    acts_for: str = Field(default="", exclude_if=lambda absent: not absent)  # the person in whose stead

    @property
    def seat(self) -> str:
        """The person whose approval it is: of one and whoever stands in for them, one counts."""
        return self.acts_for or self.person_id


def of_item(connection: Connection, owner_id: str, item_id: str) -> list[Vote]:
    """Every vote on an item, in order."""
    rows = connection.execute(_OF_ITEM, {"of_owner": owner_id, "of_item": item_id}).mappings()
    return [Vote.model_validate({name: row[name] for name in Vote.model_fields}) for row in rows]


def of_memory(connection: Connection, owner_id: str, memory_id: str) -> list[Vote]:
    """The votes on the item that a memory was; those of the ruling have the version before the last."""
    item_id = connection.scalar(_ITEM, {"of_owner": owner_id, "of_memory": memory_id})
    return [] if item_id is None else of_item(connection, owner_id, item_id)


def on_waiting(connection: Connection, owner_id: str, by: str, since: datetime) -> list[tuple[str, datetime]]:
    """The items that wait as this principal's votes since then left them, by id, and when each vote was given."""
    rows = connection.execute(_LATELY, {"of_owner": owner_id, "of_by": by, "from_at": since})
    return [(item_id, at) for item_id, at in rows]


def standing(votes: Sequence[Vote], version: int) -> list[Vote]:
    """The approvals of an item in this version; those of whoever may not rule any more too."""
    return [vote for vote in votes if vote.version == version and vote.verdict == "approve"]


def write(connection: Connection, owner_id: str, item_id: str, vote: Vote) -> None:
    """Keeps a vote, in place of an earlier one of this person on the item in that version, which does not count any
    more. Under the owner's lock."""
    withdraw(connection, owner_id, item_id, vote.version, vote.person_id)
    row: dict[str, Any] = {name: value for name, value in vote if name != "name"}
    connection.execute(_INSERT, {"owner_id": owner_id, "item_id": item_id, **row})


def withdraw(connection: Connection, owner_id: str, item_id: str, version: int, person_id: str) -> bool:
    """Takes a vote back; False when there is none."""
    asked = {"of_owner": owner_id, "of_item": item_id, "of_version": version, "of_person": person_id}
    return connection.execute(_WITHDRAW, asked).rowcount == 1
