"""The people behind tokens and sessions. A person has a name by which commands and rules call them, and an id by which
rows and the log do, so that a name can be used again, or forgotten. What they sign in with elsewhere is in
`storage.identity.identities`.
"""

from __future__ import annotations

import re
import secrets
from datetime import datetime

from sqlalchemy import Connection, Table, bindparam, delete, insert, or_, select, update

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Person, Role
from vouchgate.storage.identity import memberships, tokens
from vouchgate.storage.identity.grants import TOKEN
from vouchgate.storage.identity.tokens import SERVICE_OWNER
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store
from vouchgate.storage.tables.doors import SessionRow, SignInLinkRow
from vouchgate.storage.tables.people import IdentityRow, PersonRow

TABLE: Table = PersonRow.metadata.tables["person"]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # what stands after an @ in owner rules
_LIKE_AN_ID = re.compile(r"[0-9a-f]{16}|per_.*")  # of a token, or of a person
_INSERT = insert(TABLE)
_THERE = TABLE.c.ended_at.is_(None)
_FIND = select(TABLE).where(
    _THERE, or_(TABLE.c.name == bindparam("wanted"), TABLE.c.id == bindparam("wanted"))
)
_END = update(TABLE).where(TABLE.c.id == bindparam("wanted"), _THERE).values(ended_at=bindparam("at"))
_OF_PERSON = select(TOKEN.c.id).where(TOKEN.c.person_id == bindparam("wanted"))
_REVOKE = (
    update(TOKEN)
    .where(TOKEN.c.person_id == bindparam("wanted"), TOKEN.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"))
)


def create(store: Store, name: str, *, actor: str, now: datetime) -> Person:
    """A new person. Raises ValueError, with a sentence for whoever asked, for a name that is none or is taken."""
    if NAME.fullmatch(name) is None or _LIKE_AN_ID.fullmatch(name) is not None:
        raise ValueError("A person's name has 1 to 64 letters, digits, . _ and -, and is not like an id.")
    person = Person(id=f"per_{secrets.token_hex(8)}", name=name, created_at=now)

    def work(connection: Connection) -> None:
        if find(connection, name) is not None:
            raise ValueError(f"There is a person {name} already.")
        connection.execute(_INSERT, dict(person))
        document = log.document_of({"person": person.id, "name": name})
        log.append(connection, SERVICE_OWNER, Action.PERSON_CREATED, person.id, document, by=actor, now=now)

    store.writer.run([SERVICE_OWNER], work).result()
    return person


def end(store: Store, person: Person, *, actor: str, now: datetime) -> bool:
    """Ends a person's rights at once: tokens, sessions, identities, memberships. False when they had ended before.
    Who they were stays known, so that what their agents proposed is theirs still."""
    with store.read() as connection:
        owner_ids = {each.owner_id for each in memberships.of_member(connection, person.id)}

    def work(connection: Connection) -> bool:
        asked = {"wanted": person.id, "at": now}
        if connection.execute(_END, asked).rowcount != 1:
            return False
        if {each.owner_id for each in memberships.of_member(connection, person.id)} - owner_ids:
            raise ValueError("Somebody gave them a role just now. Do it again.")
        connection.execute(_REVOKE, asked)
        for row in (SessionRow, SignInLinkRow, IdentityRow):
            table = row.metadata.tables[str(row.__tablename__)]
            connection.execute(delete(table).where(table.c.token_id.in_(_OF_PERSON)), asked)
        memberships.end_all(connection, person.id, actor=actor, now=now)
        document = log.document_of({"person": person.id})
        log.append(connection, SERVICE_OWNER, Action.PERSON_ENDED, person.id, document, by=actor, now=now)
        return True

    return store.writer.run([SERVICE_OWNER, *owner_ids], work).result()


def find(connection: Connection, name: str) -> Person | None:
    """The person who is there under this name or id."""
    if NAME.fullmatch(name) is None:
        return None
    row = connection.execute(_FIND, {"wanted": name}).mappings().one_or_none()
    return None if row is None else Person.model_validate(dict(row))


def member_id(connection: Connection, name: str, role: Role) -> str:
    """The id of the person of this name or id, or of the token of this id, who is to have a role. Raises ValueError,
    with a sentence for whoever asked, when there is none, or it is a token of another role."""
    person = find(connection, name)
    if person is not None:
        return person.id
    token = tokens.find(connection, name)
    if token is None:
        raise ValueError(f"There is no person and no token {name[:64]!a}.")
    if token.role != role.value:
        raise ValueError(f"Token {token.id} is of role {token.role}, and a token has one role only.")
    return token.id


def listing(connection: Connection) -> list[Person]:
    """Everybody, by name, those who ended too."""
    rows = connection.execute(select(TABLE).order_by(TABLE.c.name, TABLE.c.id)).mappings()
    return [Person.model_validate(dict(row)) for row in rows]
