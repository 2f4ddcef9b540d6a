"""Who gets a digest by mail, and when (docs/adrs/0045-a-digest-is-sent-at-most-once.md).

A digest is leased when it is due, as a webhook's message is. What is its own: right before its text goes to the mail
server, `begin` moves the row to the next due time. Whoever dies after that has sent it once or not at all, and nobody
sends it again; the digest that follows tells of the time since the last one whose sending was noted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, insert, select, update

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Role
from vouchgate.storage import ids
from vouchgate.storage.identity import memberships, owners, persons
from vouchgate.storage.identity.names import valid_name, valid_owner_id
from vouchgate.storage.identity.tokens import SERVICE_OWNER
from vouchgate.storage.log import chain as log
from vouchgate.storage.outgoing.mail_schedule import MailSchedule, after_quiet, next_due
from vouchgate.storage.outgoing.tries import failed, readable
from vouchgate.storage.store import Store
from vouchgate.storage.tables.doors import MailRow

TABLE: Table = MailRow.metadata.tables["mail"]
MOST_OWNERS = 100  # that one mail may be about by name: each is some statements
# What every mail server takes, and nothing that means something in a header: no display name, quotes or comments.
_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*", re.ASCII
)

_ONE = select(TABLE).where(TABLE.c.id == bindparam("wanted"))
_ALL = select(TABLE).order_by(TABLE.c.created_at, TABLE.c.id)
_NEXT = select(func.min(TABLE.c.due_at))
_DUE = (
    select(TABLE)
    .where(TABLE.c.due_at <= bindparam("now"))
    .order_by(TABLE.c.due_at, TABLE.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_MOVE = update(TABLE).where(TABLE.c.id == bindparam("wanted")).values(due_at=bindparam("next_due"))
_LEASE = _MOVE.values(lease=bindparam("name"))
_HELD = and_(TABLE.c.id == bindparam("wanted"), TABLE.c.lease == bindparam("of_lease"))
_BEGIN = update(TABLE).where(_HELD).values(due_at=bindparam("next_due"))
_TELL = (
    update(TABLE)
    .where(_HELD)
    .values(due_at=bindparam("next_due"), told_at=bindparam("at"), attempts=0, lease=None)
)
_SEND = _TELL.values(sent_at=bindparam("at"), failing_since=None, last_error=None)
_FAIL = failed(TABLE, _HELD)


class Mail(Frozen):
    """A digest by mail. Of a person: about the owners that person reviews for when it is sent, and of these only
    `owners` if there are any. Else about `owners`. `told_at` is up to when what happened was told; `due_at` None: it
    was given up."""

    id: str
    address: str
    person_id: str | None
    owners: tuple[str, ...]
    schedule: MailSchedule
    created_at: datetime
    told_at: datetime
    sent_at: datetime | None
    due_at: datetime | None
    attempts: int
    lease: str | None
    failing_since: datetime | None
    last_error: str | None

    @property
    def in_doubt(self) -> bool:
        """Whether it was begun, and nobody noted what came of it; or it is being sent."""
        return self.lease is not None


@dataclass(frozen=True, slots=True)
class LeasedMail:
    """A digest that this process is to send, and nobody else until the lease ends."""

    mail: Mail
    lease: str


def valid_address(text: str) -> bool:
    """Whether mail can be sent to `text`: an address alone, in ASCII."""
    return len(text) <= 254 and _ADDRESS.fullmatch(text) is not None


def create(
    store: Store,
    *,
    address: str,
    person: str | None,
    owner_ids: Sequence[str],
    schedule: MailSchedule,
    actor: str,
    now: datetime,
) -> Mail:
    """Has an address get digests of what happens from now on. Raises ValueError, with a sentence for whoever asked;
    StorageError when it could not be written."""
    if not valid_address(address):
        raise ValueError("An address is like ann@example.org, without a name, in ASCII.")
    if person is None and not owner_ids:
        raise ValueError("Say whose queues it is about: a person, or owners.")
    if len(owner_ids) > MOST_OWNERS:
        raise ValueError(
            f"One digest is about {MOST_OWNERS} owners by name at most; a person's is about all."
        )
    with store.read() as connection:
        found = None if person is None else persons.find(connection, person)
        unknown = [
            name for name in owner_ids if not valid_owner_id(name) or not owners.is_known(connection, name)
        ]
    if person is not None and found is None:
        raise ValueError(f"There is no person {person[:64]!a}.")
    if unknown:
        raise ValueError(f"There is no owner {unknown[0][:64]!a}.")
    about = {
        "id": ids.mail_id(ids.new_id_suffix(now)),
        "address": address,
        "person_id": None if found is None else found.id,
        "owners": list(dict.fromkeys(owner_ids)),
        "schedule": schedule.model_dump(mode="json"),
    }
    row = about | {"created_at": now, "told_at": now, "due_at": next_due(schedule, now), "attempts": 0}

    def work(connection: Connection) -> Mail:
        connection.execute(insert(TABLE), row)
        _log(connection, Action.MAIL_CREATED, about, actor, now)
        return _shown(connection.execute(_ONE, {"wanted": about["id"]}).one())

    return store.writer.run([SERVICE_OWNER], work).result()


def remove(store: Store, mail_id: str, *, actor: str, now: datetime) -> bool:
    """Ends a digest. False when there is none of this id."""
    if not valid_name(mail_id):
        return False

    def work(connection: Connection) -> bool:
        if connection.execute(delete(TABLE).where(TABLE.c.id == mail_id)).rowcount != 1:
            return False
        _log(connection, Action.MAIL_REMOVED, {"id": mail_id}, actor, now)
        return True

    return store.writer.run([SERVICE_OWNER], work).result()


def get(connection: Connection, mail_id: str) -> Mail | None:
    """The digest of this id."""
    row = connection.execute(_ONE, {"wanted": mail_id}).one_or_none() if valid_name(mail_id) else None
    return None if row is None else _shown(row)


def listing(connection: Connection) -> list[Mail]:
    """Every digest, oldest first."""
    return [_shown(row) for row in connection.execute(_ALL)]


def owners_of(connection: Connection, mail: Mail, now: datetime) -> list[str]:
    """The owners it is about `now`, in order."""
    if mail.person_id is None:
        return sorted(mail.owners)
    roles = memberships.of_member(connection, mail.person_id, now)
    reviewed = {each.owner_id for each in roles if each.role is Role.REVIEWER}
    return sorted(reviewed & set(mail.owners) if mail.owners else reviewed)


def next_due_at(connection: Connection) -> datetime | None:
    """When a digest can be looked at next; None when there is none."""
    found: datetime | None = connection.scalar(_NEXT)
    return found


def lease_due(
    connection: Connection, now: datetime, most: int, lease_seconds: float, name: str
) -> list[LeasedMail]:
    """Takes up to `most` digests that are due, for so long; those that are late, and whose quiet hours it is, wait for
    their end. `name` must be new each time. In a write transaction of its own."""
    taken = []
    for row in connection.execute(_DUE, {"now": now, "most": most}).all():
        mail = _shown(row)
        at = after_quiet(mail.schedule, now)
        if at > now:
            connection.execute(_MOVE, {"wanted": mail.id, "next_due": at})
        else:
            taken.append(_leased(connection, mail, now, lease_seconds, name))
    return taken


def lease(
    connection: Connection, mail_id: str, now: datetime, lease_seconds: float, name: str
) -> LeasedMail | None:
    """Takes this one, due or not, quiet hours or not: the operator says so. None when there is none."""
    mail = get(connection, mail_id)
    return None if mail is None else _leased(connection, mail, now, lease_seconds, name)


def _leased(connection: Connection, mail: Mail, now: datetime, lease_seconds: float, name: str) -> LeasedMail:
    until = now + timedelta(seconds=lease_seconds)
    connection.execute(_LEASE, {"wanted": mail.id, "next_due": until, "name": name})
    return LeasedMail(mail, name)


def begin(connection: Connection, leased: LeasedMail, now: datetime) -> bool:
    """From here on nobody sends it for this due time again, unless `mark_failed` says that it was not taken in. False
    when the lease was lost: then it must not be sent."""
    return connection.execute(_BEGIN, _key(leased) | _next(leased, now)).rowcount == 1


def mark_sent(connection: Connection, leased: LeasedMail, now: datetime) -> bool:
    """Notes that it was taken in, with all that happened until `now`. False when the lease was lost."""
    return connection.execute(_SEND, _key(leased) | _next(leased, now) | {"at": now}).rowcount == 1


def mark_silent(connection: Connection, leased: LeasedMail, now: datetime) -> bool:
    """Notes that there was nothing to tell. Else as `mark_sent`."""
    return connection.execute(_TELL, _key(leased) | _next(leased, now) | {"at": now}).rowcount == 1


def mark_failed(
    connection: Connection,
    leased: LeasedMail,
    now: datetime,
    *,
    error: str,
    attempts: int,
    due_at: datetime | None,
) -> bool:
    """Notes that it was not taken in, or that nobody knows. It is due again at `due_at`; None gives it up. Else as
    `mark_sent`."""
    values = {"at": now, "tried": attempts, "next_due": due_at, "error": readable(error)}
    return connection.execute(_FAIL, _key(leased) | values).rowcount == 1


def _key(leased: LeasedMail) -> dict[str, Any]:
    return {"wanted": leased.mail.id, "of_lease": leased.lease}


def _next(leased: LeasedMail, now: datetime) -> dict[str, Any]:
    return {"next_due": next_due(leased.mail.schedule, now)}


def _log(connection: Connection, action: Action, about: dict[str, Any], actor: str, now: datetime) -> None:
    log.append(connection, SERVICE_OWNER, action, about["id"], log.document_of(about), by=actor, now=now)


def _shown(row: Any) -> Mail:
    return Mail.model_validate({name: getattr(row, name) for name in Mail.model_fields})
