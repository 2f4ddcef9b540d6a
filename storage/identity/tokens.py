"""Tokens: who may call. `vg_<id>_<secret>`, shown once; only the sha256 of the secret is kept. Those made before the
product had its name begin with `gg_`, and hold."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, func, insert, or_, select, update

from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Membership, Principal, Role
from vouchgate.storage.identity import memberships
from vouchgate.storage.identity.grants import MEMBER, WITH_OWN, WITH_OWNERS
from vouchgate.storage.identity.grants import TOKEN as TABLE
from vouchgate.storage.identity.names import MAX_NAME_CHARACTERS, valid_name, valid_owner_id
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.log import chain as log
from vouchgate.storage.sql import among
from vouchgate.storage.store import Store

_INSERT = insert(TABLE)
_BY_ID = WITH_OWNERS.where(TABLE.c.id == bindparam("wanted"))
_NAMES = select(TABLE.c.id, TABLE.c.name).where(among(TABLE.c.id, "ids"))
_IN_ORDER = (TABLE.c.created_at, TABLE.c.id, MEMBER.c.owner_id)
_ALL = WITH_OWN.order_by(*_IN_ORDER)
_KNOWN = select(TABLE.c.id, TABLE.c.role, TABLE.c.person_id).where(TABLE.c.id == bindparam("wanted"))
_ASSIGN = (
    update(TABLE)
    .where(TABLE.c.id == bindparam("wanted"), TABLE.c.person_id.is_(None))
    .values(person_id=bindparam("to_person"))
)
_REVOKE = (
    update(TABLE)
    .where(TABLE.c.id == bindparam("wanted"), TABLE.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"))
)
PREFIX = "vg_"
EMBEDDED = " (embedded)"  # ends the names of those that stand for a gate inside a program
# 16 hex digits, then 32 random bytes as 43 url-safe characters (which may hold "_" too, hence the lengths).
_PRESENTED = re.compile(rf"(?:{PREFIX}|gg_)([0-9a-f]{{16}})_([A-Za-z0-9_-]{{43}})")
_NO_DIGEST = hashlib.sha256(b"").hexdigest()  # of no secret: every secret has 43 characters


class TokenInfo(Frozen):
    """A token as it may be shown: everything but its secret. `id` is the principal's id; `owners` are all that it acts
    for, by itself or through its person, but not where that one stands in for another."""

    id: str
    name: str
    role: Role
    owners: tuple[str, ...]
    any_owner: bool
    new_owners: bool
    person_id: str | None
    sources: tuple[Source, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @property
    def embedded(self) -> bool:
        """Whether it stands for a gate inside a program: then nobody has its text."""
        return self.name.endswith(EMBEDDED)


class KnownToken(NamedTuple):
    """What bears on who a token's principal is."""

    id: str
    role: str
    person_id: str | None


def create(
    store: Store,
    *,
    role: Role,
    name: str,
    owners: Iterable[str] = (),
    any_owner: bool = False,
    new_owners: bool = False,
    person: str | None = None,
    sources: Iterable[Source] = (),
    expires_at: datetime | None = None,
    actor: str,
    now: datetime,
    also: Callable[[Connection, str], None] = lambda connection, token_id: None,
) -> tuple[Principal, str]:
    """Makes a principal and its token; the token text is nowhere else, so it is shown now or never. Owners that are
    new are made. `person` is the id of one that is there: the principal acts for that one's owners, too. `also` is
    done in the same transaction, and given the token's id.

    `actor` is who asked, for the log: a principal id, or `service`. Raises ValueError, with a sentence for
    whoever asked, when the grant makes no sense; StorageError when it could not be written.
    """
    token_id = secrets.token_hex(8)
    secret = secrets.token_urlsafe(32)
    principal = Principal(
        id=token_id,
        name=name,
        role=role,
        owners=frozenset(owners),
        any_owner=any_owner,
        sources=frozenset(sources),
        new_owners=new_owners,
        person=person,
    )
    problem = grant_problem(principal, expires_at, now)
    if problem is not None:
        raise ValueError(problem)
    grant = _grant(principal)
    row = {
        **grant,
        "new_owners": new_owners,
        "person_id": person,
        "secret_digest": sha256_of(secret),
        "created_at": now,
        "expires_at": expires_at,
        "revoked_at": None,
    }
    shown_expiry = None if expires_at is None else expires_at.astimezone(UTC).isoformat()
    wider = {name: value for name, value in (("new_owners", new_owners), ("person", person)) if value}
    about = {**grant, "owners": sorted(principal.owners), "expires_at": shown_expiry, **wider}
    logged = log.document_of(about | {"secret": row["secret_digest"]}, form=2)

    def work(connection: Connection) -> None:
        also(connection, token_id)
        connection.execute(_INSERT, row)
        for owner_id in sorted(principal.owners):
            memberships.write(
                connection, Membership(owner_id=owner_id, member_id=token_id, role=role, since=now)
            )
        log.append(connection, SERVICE_OWNER, Action.TOKEN_CREATED, token_id, logged, by=actor, now=now)

    store.writer.run([SERVICE_OWNER, *principal.owners], work).result()
    return principal, f"{PREFIX}{token_id}_{secret}"


def _grant(principal: Principal) -> dict[str, Any]:
    """What a token stands for by itself, in columns."""
    return {
        "id": principal.id,
        "name": principal.name,
        "role": principal.role.value,
        "any_owner": principal.any_owner,
        "sources": sorted(source.value for source in principal.sources),
    }


def grant_problem(principal: Principal, expires_at: datetime | None, now: datetime) -> str | None:
    """The first thing wrong with a grant, as a sentence; None when it makes sense. Pure."""
    return next(_grant_problems(principal, expires_at, now), None)


def _grant_problems(principal: Principal, expires_at: datetime | None, now: datetime) -> Iterator[str]:
    role, owners, most = principal.role, principal.owners, MAX_NAME_CHARACTERS
    if not valid_name(principal.name):
        yield f"A token's name has 1 to {most} printable characters."
    for owner_id in sorted(owners):
        if not valid_owner_id(owner_id):
            yield f"An owner id has 1 to {most} printable characters; this one has not: {owner_id[:most]!a}."
    if principal.sources and role is not Role.AGENT:
        yield f"Only an agent asserts sources; a token of role {role.value} can be granted none."
    alone = principal.person is None
    if role is Role.REVIEWER and (principal.any_owner or (alone and not owners)):
        yield "A reviewer rules for owners by name: give at least one, or a person, and not any owner."
    if role is Role.RECORDER and principal.any_owner:
        yield "A recorder puts records down for owners by name, and not for any owner."
    if role not in (Role.ADMIN, Role.REVIEWER) and alone and not owners and not principal.any_owner:
        yield f"A token of role {role.value} needs at least one owner to act for (--owner), or any (--any-owner)."
    if principal.new_owners and not (role is Role.AGENT and principal.any_owner):
        yield "Only an agent for any owner may name new ones."
    if expires_at is not None and expires_at.tzinfo is None:
        yield "The time a token expires needs a time zone."
    elif expires_at is not None and expires_at <= now:
        yield "The time this token would expire has already passed."


def authenticate(connection: Connection, presented: str, now: datetime) -> Principal | None:
    """Who this token text belongs to; None when it is not one of ours, expired or revoked.

    Any text may be presented. An unknown id costs the same comparison as a wrong secret, so that the time
    taken does not tell which ids exist.
    """
    match = _PRESENTED.fullmatch(presented)
    if match is None:
        return None
    token_id, secret = match.groups()
    rows = connection.execute(_BY_ID, {"wanted": token_id, "now": now}).all()
    right = hmac.compare_digest(rows[0].secret_digest if rows else _NO_DIGEST, sha256_of(secret))
    if not rows or not right or rows[0].revoked_at is not None:
        return None
    if rows[0].expires_at is not None and rows[0].expires_at <= now:
        return None
    return principal_of(rows)


def principal_of(rows: Sequence[Row[Any]]) -> Principal:
    """The principal of the rows that `WITH_OWNERS` gives of one token, whether or not it still holds."""
    row = rows[0]
    return Principal(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        owners=_owners(rows),
        any_owner=row.any_owner,
        sources=frozenset(Source(source) for source in row.sources),
        new_owners=row.new_owners,
        person=row.person_id,
    )


def _owners(rows: Iterable[Row[Any]]) -> frozenset[str]:
    return frozenset(row.owner_id for row in rows if row.owner_id is not None)


def assign(store: Store, token_id: str, person_id: str, *, actor: str, now: datetime) -> None:
    """Says who is behind a token, once and for good: whoever could change it could approve what they proposed. Raises
    ValueError, with a sentence for the person who asked, when there is no such token or it has a person."""

    def work(connection: Connection) -> None:
        known = find(connection, token_id)
        if known is None:
            raise ValueError(f"There is no token {token_id[:50]!a}; vouchgate token list shows the ids.")
        if connection.execute(_ASSIGN, {"wanted": token_id, "to_person": person_id}).rowcount != 1:
            raise ValueError(f"Token {token_id} is {known.person_id}'s for good; make a new one instead.")
        document = log.document_of({"token": token_id, "person": person_id})
        log.append(connection, SERVICE_OWNER, Action.TOKEN_ASSIGNED, token_id, document, by=actor, now=now)

    store.writer.run([SERVICE_OWNER], work).result()


def find(connection: Connection, token_id: str) -> KnownToken | None:
    """What is known of a token, whether or not it holds; None when there is none."""
    if not valid_name(token_id):
        return None
    row = connection.execute(_KNOWN, {"wanted": token_id}).one_or_none()
    return None if row is None else KnownToken(*row)


def revoke(store: Store, token_id: str, *, actor: str, now: datetime) -> bool:
    """Ends a token for good. True when there is such a token, revoked now or before: a repeat changes
    nothing, and is not logged again. False when there is none."""
    if not valid_name(token_id):
        return False

    return store.writer.run(
        [SERVICE_OWNER], lambda connection: end(connection, token_id, actor=actor, now=now)
    ).result()


def end(connection: Connection, token_id: str, *, actor: str, now: datetime) -> bool:
    """As `revoke`, for whoever holds the lock of the service's log."""
    if connection.execute(_REVOKE, {"wanted": token_id, "at": now}).rowcount == 1:
        document = log.Document(token_id.encode())
        log.append(connection, SERVICE_OWNER, Action.TOKEN_REVOKED, token_id, document, by=actor, now=now)
        return True
    return find(connection, token_id) is not None


def names(connection: Connection, token_ids: Iterable[str]) -> dict[str, str]:
    """What the tokens of these ids are called, revoked ones too; an id that is not a token's is left out."""
    wanted = {token_id for token_id in token_ids if valid_name(token_id)}
    if not wanted:
        return {}
    return {row.id: row.name for row in connection.execute(_NAMES, {"ids": wanted})}


def holding(connection: Connection, named: str, now: datetime) -> list[Principal]:
    """The principals of tokens with this name or id that hold now."""
    if not valid_name(named):
        return []
    wanted = or_(TABLE.c.id == named, func.lower(TABLE.c.name) == named.lower())
    in_force = TABLE.c.revoked_at.is_(None) & or_(TABLE.c.expires_at.is_(None), TABLE.c.expires_at > now)
    rows = connection.execute(WITH_OWNERS.order_by(*_IN_ORDER).where(wanted, in_force), {"now": now})
    return [principal_of(list(group)) for _, group in groupby(rows, key=lambda row: row.id)]


def listing(connection: Connection) -> list[TokenInfo]:
    """Every token, oldest first, revoked and expired ones too."""
    shown = TokenInfo.model_fields.keys() - {"owners"}
    found = []
    for _, group in groupby(connection.execute(_ALL), key=lambda row: row.id):
        rows = list(group)
        fields = {name: rows[0]._mapping[name] for name in shown}
        found.append(TokenInfo.model_validate(fields | {"owners": sorted(_owners(rows))}))
    return found


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
