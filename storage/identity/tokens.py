"""Tokens: who may call. `vg_<id>_<secret>`, shown once; only the sha256 of the secret is kept. Those made before the
product had its name begin with `gg_`, and hold."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Table, bindparam, func, insert, or_, select, update

from vouchgate.ingest.claims.types import Action, Frozen, Principal, Role, Source
from vouchgate.ingest.policy import canonical_json
from vouchgate.storage.identity.names import MAX_NAME_CHARACTERS, valid_name, valid_owner_id
from vouchgate.storage.log import chain as log
from vouchgate.storage.sql import among
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import TokenRow

SERVICE_OWNER = ""  # whose log chain tells of tokens; no claim can have this owner

_TABLE: Table = TokenRow.metadata.tables["token"]
_INSERT = insert(_TABLE)
_BY_ID = select(_TABLE).where(_TABLE.c.id == bindparam("wanted"))
_NAMES = select(_TABLE.c.id, _TABLE.c.name).where(among(_TABLE.c.id, "ids"))
_ALL = select(_TABLE).order_by(_TABLE.c.created_at, _TABLE.c.id)
_REVOKE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("wanted"), _TABLE.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"))
)
PREFIX = "vg_"
# 16 hex digits, then 32 random bytes as 43 url-safe characters (which may hold "_" too, hence the lengths).
_PRESENTED = re.compile(rf"(?:{PREFIX}|gg_)([0-9a-f]{{16}})_([A-Za-z0-9_-]{{43}})")
_NO_DIGEST = hashlib.sha256(b"").hexdigest()  # of no secret: every secret has 43 characters


class TokenInfo(Frozen):
    """A token as it may be shown: everything but its secret. `id` is the principal's id."""

    id: str
    name: str
    role: Role
    owners: tuple[str, ...]
    any_owner: bool
    sources: tuple[Source, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


def create(
    store: Store,
    *,
    role: Role,
    name: str,
    owners: Iterable[str] = (),
    any_owner: bool = False,
    sources: Iterable[Source] = (),
    expires_at: datetime | None = None,
    actor: str,
    now: datetime,
) -> tuple[Principal, str]:
    """Makes a principal and its token; the token text is nowhere else, so it is shown now or never.

    `actor` is who asked, for the log: a principal id, or `service`. Raises ValueError, with a sentence for
    the person who asked, when the grant makes no sense; StorageError when it could not be written.
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
    )
    problem = grant_problem(principal, expires_at, now)
    if problem is not None:
        raise ValueError(problem)
    grant = _grant(principal)
    row = {
        **grant,
        "secret_digest": _digest(secret),
        "created_at": now,
        "expires_at": expires_at,
        "revoked_at": None,
    }
    shown_expiry = None if expires_at is None else expires_at.isoformat()
    logged = _digest(canonical_json({**grant, "expires_at": shown_expiry}))

    def work(connection: Connection) -> None:
        connection.execute(_INSERT, row)
        log.append(connection, SERVICE_OWNER, Action.TOKEN_CREATED, token_id, logged, by=actor, now=now)

    store.writer.run([SERVICE_OWNER], work).result()
    return principal, f"{PREFIX}{token_id}_{secret}"


def _grant(principal: Principal) -> dict[str, Any]:
    """What a token stands for, in columns."""
    return {
        "id": principal.id,
        "name": principal.name,
        "role": principal.role.value,
        "owners": sorted(principal.owners),
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
    if role is Role.REVIEWER and (principal.any_owner or len(owners) != 1):
        yield "A reviewer is the owner of what it rules on: name exactly one owner, and not any owner."
    if role in (Role.AGENT, Role.AUDITOR) and not owners and not principal.any_owner:
        yield f"A token of role {role.value} needs at least one owner, or any owner, to act for."
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
    row = connection.execute(_BY_ID, {"wanted": token_id}).one_or_none()
    right = hmac.compare_digest(_NO_DIGEST if row is None else row.secret_digest, _digest(secret))
    if row is None or not right or row.revoked_at is not None:
        return None
    if row.expires_at is not None and row.expires_at <= now:
        return None
    return principal_of(row)


def principal_of(row: Row[Any]) -> Principal:
    """The principal of a row of the table of tokens, whether or not its token still holds."""
    return Principal(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        owners=frozenset(row.owners),
        any_owner=row.any_owner,
        sources=frozenset(Source(source) for source in row.sources),
    )


def revoke(store: Store, token_id: str, *, actor: str, now: datetime) -> bool:
    """Ends a token for good. True when there is such a token, revoked now or before: a repeat changes
    nothing, and is not logged again. False when there is none."""
    if not valid_name(token_id):
        return False

    def work(connection: Connection) -> bool:
        if connection.execute(_REVOKE, {"wanted": token_id, "at": now}).rowcount == 1:
            digest = _digest(token_id)
            log.append(connection, SERVICE_OWNER, Action.TOKEN_REVOKED, token_id, digest, by=actor, now=now)
            return True
        return connection.execute(_BY_ID, {"wanted": token_id}).one_or_none() is not None

    return store.writer.run([SERVICE_OWNER], work).result()


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
    wanted = or_(_TABLE.c.id == named, func.lower(_TABLE.c.name) == named.lower())
    in_force = _TABLE.c.revoked_at.is_(None) & or_(_TABLE.c.expires_at.is_(None), _TABLE.c.expires_at > now)
    return [principal_of(row) for row in connection.execute(select(_TABLE).where(wanted, in_force))]


def listing(connection: Connection) -> list[TokenInfo]:
    """Every token, oldest first, revoked and expired ones too."""
    shown = TokenInfo.model_fields
    rows = connection.execute(_ALL).mappings()
    return [TokenInfo.model_validate({name: row[name] for name in shown}) for row in rows]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
