"""Who asked for an erasure, where more than one must."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, select

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal
from vouchgate.review import record
from vouchgate.storage.erasing.plan import Plan
from vouchgate.storage.log import chain
from vouchgate.storage.queue import proposers

OPERATOR = "operator"  # who erases by a command on the machine itself
_OPEN = timedelta(days=7)  # how long somebody's asking stands, where more than one must ask


class Asker(NamedTuple):
    """Who asks: the id that the log has, and the person behind it, if that is known; whose right to ask is looked at
    again, if it is a reviewer."""

    id: str
    person: str | None
    principal: Principal | None = None


def _about(ids: Collection[str], basis: str) -> dict[str, str]:
    return {"items": " ".join(ids), "basis": basis}


def ask(
    seen: Plan, ids: Collection[str], basis: str, asker: Asker, connection: Connection, *, now: datetime
) -> None:
    """Notes that somebody asks for just this. The caller holds the owner's lock."""
    document = record.document(**_about(ids, basis))
    record.entry(
        connection, seen.owner_id, Action.MEMORY_ERASE_ASKED, min(ids), document, by=asker.id, now=now
    )


def count(
    connection: Connection, owner_id: str, ids: Collection[str], basis: str, asker: Asker, *, now: datetime
) -> int:
    """How many different people ask for just this: who does now, and who did and still rules for the owner. Who rules
    in the stead of others only counts as one of them, as where they vote."""
    who = asker.person or asker.id
    everybody = {who, *_asked_by(connection, owner_id, ids, basis, now)}
    rights: dict[str, set[str]] = {}
    for ruler in proposers.rulers(connection, owner_id, now):
        rights.setdefault(ruler.id, set()).add(ruler.acts_for or ruler.id)
    for known in (who, OPERATOR):
        rights.setdefault(known, {known})
    taken = {person for person in everybody if person in rights.get(person, ())}
    for person in sorted(everybody - taken):
        taken |= set(sorted(rights.get(person, set()) - taken)[:1])
    return len(taken)


def _asked_by(
    connection: Connection, owner_id: str, ids: Collection[str], basis: str, now: datetime
) -> set[str]:
    """The persons who asked for just this lately."""
    log = chain.TABLE.c
    asked = select(log.actor, log.content_digest, log.salt).where(
        log.owner_id == owner_id,
        log.subject_id == min(ids),
        log.action == Action.MEMORY_ERASE_ASKED.value,
        log.at > now - _OPEN,
    )
    document = record.document(**_about(ids, basis))
    rows = connection.execute(asked)
    actors = {row.actor for row in rows if row.content_digest == document.commitment(row.salt)}
    known = proposers.persons_of(connection, actors) | {OPERATOR: OPERATOR}
    return {known[actor] for actor in actors if actor in known}
