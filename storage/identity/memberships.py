"""Who acts for whom: a person, or a single token, has a role for an owner. Who has none of these has no right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, insert, select

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Membership, Role
from vouchgate.storage.identity import owners
from vouchgate.storage.identity.grants import LASTS
from vouchgate.storage.identity.grants import MEMBER as TABLE
from vouchgate.storage.identity.names import MAX_NAME_CHARACTERS, valid_name, valid_owner_id
from vouchgate.storage.log import chain as log
from vouchgate.storage.sql import limited_to
from vouchgate.storage.store import Store

MOST_DAYS = 90  # that somebody stands in for another
_INSERT = insert(TABLE)
_THIS = (
    TABLE.c.owner_id == bindparam("of_owner"),
    TABLE.c.member_id == bindparam("of_member"),
    TABLE.c.role == bindparam("of_role"),
    TABLE.c.acts_for == bindparam("of_absent"),
)
_ONE = select(TABLE).where(*_THIS)
_END = delete(TABLE).where(*_THIS)
_END_ALL = delete(TABLE).where(TABLE.c.member_id == bindparam("of_member"))
_STAND_INS = select(TABLE).where(TABLE.c.acts_for == bindparam("of_member"))
_OF_OWNER = TABLE.c.owner_id == bindparam("of_owner")
_IN_ORDER = select(TABLE).order_by(TABLE.c.owner_id, TABLE.c.role, TABLE.c.member_id)


class UnknownOwner(Exception):
    """There is no such owner: whoever runs the service makes owners, and naming one makes none."""


def write(connection: Connection, membership: Membership) -> None:
    """Inserts one that is not there, under its owner's lock."""
    connection.execute(_INSERT, {**dict(membership), "role": membership.role.value})


def create_owner(store: Store, owner_id: str, *, actor: str, now: datetime) -> bool:
    """Makes an owner. False when there is one. Raises ValueError, with a sentence for whoever asked."""
    if not valid_owner_id(owner_id):
        raise ValueError(f"An owner id has 1 to {MAX_NAME_CHARACTERS} printable characters.")
    with store.read() as connection:
        if owners.is_known(connection, owner_id):
            return False
    document = log.document_of({"owner": owner_id})
    store.writer.run(
        [owner_id],
        lambda c: log.append(c, owner_id, Action.OWNER_CREATED, owner_id, document, by=actor, now=now),
    ).result()
    return True


def grant(store: Store, wanted: Membership, *, actor: str) -> bool:
    """Gives a member a role for an owner, from now on; the member is known to be there. False when it had it: then
    nothing changes. Raises UnknownOwner, and StorageError when it could not be written."""
    owner_id = wanted.owner_id
    with store.read() as connection:
        if not valid_owner_id(owner_id) or not owners.is_known(connection, owner_id):
            raise UnknownOwner

    def work(connection: Connection) -> bool:
        if connection.execute(_ONE, _key(wanted)).first() is not None:
            return False
        write(connection, wanted)
        _log(connection, wanted, Action.MEMBERSHIP_GRANTED, actor, wanted.since)
        return True

    return store.writer.run([owner_id], work).result()


def end(store: Store, wanted: Membership, *, actor: str, now: datetime) -> bool:
    """Takes a role for an owner back, at once; nobody stands in for the member there any more. False when there was
    none."""
    if not (valid_owner_id(wanted.owner_id) and valid_name(wanted.member_id)):
        return False
    with store.read() as connection:
        if connection.execute(_ONE, _key(wanted)).first() is None:
            return False

    def work(connection: Connection) -> bool:
        if not _dismiss(connection, _ONE, _key(wanted), actor, now):
            return False
        if wanted.role is Role.REVIEWER and not wanted.acts_for:
            _dismiss(connection, _STAND_INS.where(_OF_OWNER), _key(wanted), actor, now)
        return True

    return store.writer.run([wanted.owner_id], work).result()


def let_stand_in(store: Store, wanted: Membership, *, actor: str) -> None:
    """Lets a person (`member_id`) rule in the stead of another (`acts_for`), who is a reviewer of the owner by name and
    in their own right, until a time: what was passed on is not passed on again. Who stands in already does until then.
    Raises ValueError, with a sentence for whoever asked, and StorageError."""
    if wanted.until is None or not wanted.since < wanted.until <= wanted.since + timedelta(days=MOST_DAYS):
        raise ValueError(f"Somebody stands in until a time that is within the next {MOST_DAYS} days.")
    if wanted.member_id == wanted.acts_for:
        raise ValueError("Nobody stands in for themselves.")
    absent = wanted.model_copy(update={"member_id": wanted.acts_for, "acts_for": "", "until": None})
    with store.read() as connection:
        _must_be(connection, absent)

    def work(connection: Connection) -> None:
        _must_be(connection, absent)
        _dismiss(connection, _ONE, _key(wanted), actor, wanted.since)
        write(connection, wanted)
        _log(connection, wanted, Action.STAND_IN_GRANTED, actor, wanted.since)

    store.writer.run([wanted.owner_id], work).result()


def _must_be(connection: Connection, wanted: Membership) -> None:
    if not valid_owner_id(wanted.owner_id) or connection.execute(_ONE, _key(wanted)).first() is None:
        raise ValueError(
            "Only a reviewer of that owner by name, and in their own right, has somebody stand in."
        )


def end_all(connection: Connection, member_id: str, *, actor: str, now: datetime) -> None:
    """Takes every role of a member back. The caller holds the locks of all owners that `of_member` names."""
    _dismiss(connection, _STAND_INS, {"of_member": member_id}, actor, now)
    for membership in of_member(connection, member_id):
        _log(connection, membership, Action.MEMBERSHIP_ENDED, actor, now)
    connection.execute(_END_ALL, {"of_member": member_id})


def of_member(connection: Connection, member_id: str, now: datetime | None = None) -> list[Membership]:
    """The roles of a person, or of a token by itself: every row, or those that hold `now`."""
    statement = _IN_ORDER.where(TABLE.c.member_id == member_id)
    return _read(connection, statement if now is None else statement.where(LASTS), {"now": now})


def of_owners(connection: Connection, owner_ids: frozenset[str] | None, now: datetime) -> list[Membership]:
    """The members of these owners (None: of all) by owner, then role; without whoever stood in and does no more."""
    return _read(connection, limited_to(owner_ids, _IN_ORDER, TABLE).where(LASTS), {"now": now})


def _read(
    connection: Connection, statement: Select[Any], asked: dict[str, Any] | None = None
) -> list[Membership]:
    return [Membership.model_validate(dict(row)) for row in connection.execute(statement, asked).mappings()]


def _dismiss(
    connection: Connection, statement: Select[Any], asked: dict[str, Any], actor: str, now: datetime
) -> bool:
    """Ends these memberships; whether there were any."""
    found = _read(connection, statement, asked)
    for one in found:
        connection.execute(_END, _key(one))
        _log(connection, one, Action.MEMBERSHIP_ENDED, actor, now)
    return bool(found)


def _key(membership: Membership) -> dict[str, str]:
    return {
        "of_owner": membership.owner_id,
        "of_member": membership.member_id,
        "of_role": membership.role.value,
        "of_absent": membership.acts_for,
    }


def _log(connection: Connection, about: Membership, action: Action, actor: str, now: datetime) -> None:
    said = {"owner": about.owner_id, "member": about.member_id, "role": about.role.value}
    if about.until is not None:
        said |= {"acts_for": about.acts_for, "until": about.until.astimezone(UTC).isoformat()}
        action = Action.STAND_IN_ENDED if action is Action.MEMBERSHIP_ENDED else action
    document = log.document_of(said)
    log.append(connection, about.owner_id, action, about.member_id, document, by=actor, now=now)
