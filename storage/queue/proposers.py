"""Who proposed what, and the people behind that: what four eyes are about. Read in the transaction of the act."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, func, literal, or_, select

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.storage import ids
from vouchgate.storage.claims import decisions
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.identity.grants import LASTS, MEMBER, TOKEN, WITH_OWNERS
from vouchgate.storage.log.chain import TABLE as LOG
from vouchgate.storage.queue import pending
from vouchgate.storage.sql import among
from vouchgate.storage.tables.people import PersonRow

_PERSONS = select(TOKEN.c.id, TOKEN.c.person_id).where(
    among(TOKEN.c.id, "ids"), TOKEN.c.person_id.is_not(None)
)
_HOLDS = or_(TOKEN.c.expires_at.is_(None), TOKEN.c.expires_at > bindparam("now", type_=UtcTime))
_PERSON, _ABSENT = (PersonRow.metadata.tables["person"].alias(name) for name in ("ruler", "absent"))
# A person is a member who is no token, or who is behind a token that is one and holds.
_RULERS = (
    select(_PERSON.c.id, _PERSON.c.name, MEMBER.c.acts_for, _ABSENT.c.name.label("absent"))
    .distinct()
    .select_from(
        MEMBER.outerjoin(TOKEN, TOKEN.c.id == MEMBER.c.member_id)
        .join(_PERSON, _PERSON.c.id == func.coalesce(TOKEN.c.person_id, MEMBER.c.member_id))
        .outerjoin(_ABSENT, _ABSENT.c.id == MEMBER.c.acts_for)
    )
    .where(
        MEMBER.c.owner_id == bindparam("of_owner"),
        MEMBER.c.role == Role.REVIEWER.value,
        or_(TOKEN.c.id.is_(None), TOKEN.c.revoked_at.is_(None) & _HOLDS),
        _PERSON.c.ended_at.is_(None),
        LASTS,
    )
    .order_by(_PERSON.c.name, MEMBER.c.acts_for)
)
_TOKEN = WITH_OWNERS.with_only_columns(
    TOKEN.c.any_owner, MEMBER.c.owner_id, (TOKEN.c.revoked_at.is_(None) & _HOLDS).label("holds")
).where(TOKEN.c.id == bindparam("of_token"))
_ITEM = select(pending.TABLE.c.submitted_by).where(
    pending.TABLE.c.owner_id == bindparam("of_owner"),
    pending.TABLE.c.memory_id == bindparam("of_memory"),
    pending.TABLE.c.removal_of.is_(None),
)
_DECISION = select(decisions.TABLE.c.principal_id).where(
    decisions.TABLE.c.owner_id == bindparam("of_owner"), decisions.TABLE.c.id == bindparam("of_decision")
)

_SENT = [
    action.value
    for action in (
        Action.CLAIM_STORED,
        Action.CLAIM_QUEUED,
        Action.CLAIM_REPEATED,
        Action.CLAIM_BLOCKED,
        Action.CLAIM_LET_THROUGH,
    )
]
# Whoever took a standing ruling back had its claims wait, and did not send them: the item says who did.
_SENDERS = (
    select(LOG.c.subject_id, func.coalesce(pending.TABLE.c.submitted_by, LOG.c.actor).label("sender"))
    .select_from(
        LOG.outerjoin(
            pending.TABLE,
            and_(
                LOG.c.action == Action.CLAIM_QUEUED.value,
                pending.TABLE.c.owner_id == LOG.c.owner_id,
                pending.TABLE.c.id
                == literal(ids.queue_id("")) + func.substr(LOG.c.subject_id, len(ids.decision_id("")) + 1),
            ),
        )
    )
    .where(
        LOG.c.owner_id == bindparam("of_owner"), LOG.c.action.in_(_SENT), among(LOG.c.subject_id, "wanted")
    )
)


def persons_of(connection: Connection, principal_ids: set[str]) -> dict[str, str]:
    """By the id of a principal that of the person behind it; who is behind the others is not known."""
    return {row.id: row.person_id for row in connection.execute(_PERSONS, {"ids": sorted(principal_ids)})}


class Ruler(NamedTuple):
    """A person who rules for an owner: in the stead of another, whose id `acts_for` is, or, where that is empty, in
    their own right."""

    id: str
    name: str
    acts_for: str
    absent: str | None  # what the other is called


def rulers(connection: Connection, owner_id: str, now: datetime) -> list[Ruler]:
    """Everybody who is known to rule for the owner by now, by name; who does in several ways, several times."""
    return [Ruler(*row) for row in connection.execute(_RULERS, {"of_owner": owner_id, "now": now})]


def may_still_rule(connection: Connection, principal: Principal, owner_id: str, now: datetime) -> bool:
    """Whether the token of this principal still holds and still rules for the owner, by itself or through its person:
    the principal was looked up before the transaction."""
    return acts_still_for(connection, principal.id, owner_id, now)


def acts_still_for(connection: Connection, principal_id: str, owner_id: str, now: datetime) -> bool:
    """Whether the token of this id, if it is one, holds and acts for the owner in its role."""
    rows = connection.execute(_TOKEN, {"of_token": principal_id, "now": now}).all()
    return not rows or any(row.any_owner or row.owner_id == owner_id for row in rows if row.holds)


def senders_of(connection: Connection, owner_id: str, decision_ids: Collection[str]) -> dict[str, str]:
    """By decision the principal who sent the claim, of those that were made on a claim as it came; who rules on a
    claim, and who looks at it again, makes others."""
    asked = {"of_owner": owner_id, "wanted": list(decision_ids)}
    return {row.subject_id: row.sender for row in connection.execute(_SENDERS, asked)}


def proposer_of(connection: Connection, memory: Memory) -> str | None:
    """The principal whose claim the memory was: before its owner approved it, or when the gate stored it."""
    asked = {"of_owner": memory.owner_id, "of_memory": memory.id, "of_decision": memory.decision_id}
    found = connection.scalar(_ITEM, asked) or connection.scalar(_DECISION, asked)
    return None if found is None else str(found)
