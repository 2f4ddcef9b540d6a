"""Who proposed what, and the people behind that: what four eyes are about. Read in the transaction of the act."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, bindparam, func, or_, select

from vouchgate.ingest.claims.types import Memory, Role
from vouchgate.storage.claims import decisions
from vouchgate.storage.identity.grants import MEMBER, TOKEN
from vouchgate.storage.queue import pending
from vouchgate.storage.sql import among

_PERSONS = select(TOKEN.c.id, TOKEN.c.person_id).where(
    among(TOKEN.c.id, "ids"), TOKEN.c.person_id.is_not(None)
)
_PERSON_OF = func.coalesce(TOKEN.c.person_id, MEMBER.c.member_id)
_HOLDS = or_(
    TOKEN.c.expires_at.is_(None), TOKEN.c.expires_at > bindparam("now", type_=TOKEN.c.expires_at.type)
)
# A person is a member who is no token, or who is behind a token that is one and holds.
_OTHER_REVIEWER = (
    select(MEMBER.c.member_id)
    .select_from(MEMBER.outerjoin(TOKEN, TOKEN.c.id == MEMBER.c.member_id))
    .where(
        MEMBER.c.owner_id == bindparam("of_owner"),
        MEMBER.c.role == Role.REVIEWER.value,
        or_(TOKEN.c.id.is_(None), TOKEN.c.person_id.is_not(None) & TOKEN.c.revoked_at.is_(None) & _HOLDS),
        _PERSON_OF != bindparam("person"),
    )
    .limit(1)
)
_ITEM = select(pending.TABLE.c.submitted_by).where(
    pending.TABLE.c.owner_id == bindparam("of_owner"),
    pending.TABLE.c.memory_id == bindparam("of_memory"),
    pending.TABLE.c.removal_of.is_(None),
)
_DECISION = select(decisions.TABLE.c.principal_id).where(
    decisions.TABLE.c.owner_id == bindparam("of_owner"), decisions.TABLE.c.id == bindparam("of_decision")
)


def persons_of(connection: Connection, principal_ids: set[str]) -> dict[str, str]:
    """By the id of a principal that of the person behind it; who is behind the others is not known."""
    return {row.id: row.person_id for row in connection.execute(_PERSONS, {"ids": sorted(principal_ids)})}


def has_other_reviewer(connection: Connection, owner_id: str, person: str, now: datetime) -> bool:
    """Whether somebody else than this person is known to rule for the owner."""
    asked = {"of_owner": owner_id, "person": person, "now": now}
    return connection.execute(_OTHER_REVIEWER, asked).first() is not None


def proposer_of(connection: Connection, memory: Memory) -> str | None:
    """The principal whose claim the memory was: before its owner approved it, or when the gate stored it."""
    asked = {"of_owner": memory.owner_id, "of_memory": memory.id, "of_decision": memory.decision_id}
    found = connection.scalar(_ITEM, asked) or connection.scalar(_DECISION, asked)
    return None if found is None else str(found)
