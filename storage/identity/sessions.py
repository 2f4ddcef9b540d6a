"""Who is signed in to the pages: sessions, and the links that start one, once.

Secret and code are 32 random bytes each; only their sha256 is kept. They are looked up by that digest: how far
a wrong one agrees with a right one tells nothing about the secret, so nothing has to be compared in constant time.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.identity import identities, tokens
from vouchgate.storage.identity.grants import TOKEN, WITH_OWNERS
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store
from vouchgate.storage.tables.doors import SessionRow, SignInFlowRow, SignInLinkRow

# Absolute, however busy: who clears a queue every morning signs in once a week, and a stolen cookie ends with it.
SESSION_LIFETIME = timedelta(days=7)
# Long enough to carry a link to another screen, too short to be worth finding in a mail or a log later.
LINK_LIFETIME = timedelta(minutes=15)
# What was begun later than so long from now has the time of a clock that was ahead, and would be good until then.
_AHEAD = timedelta(minutes=5)
LONGEST_LINK = SESSION_LIFETIME  # a link is a password that is written down: never longer than what it starts

VISITORS = (Role.REVIEWER.value, Role.AUDITOR.value)  # who has pages
_SESSION: Table = SessionRow.metadata.tables["session"]
_LINK: Table = SignInLinkRow.metadata.tables["sign_in_link"]
_FLOW: Table = SignInFlowRow.metadata.tables["sign_in_flow"]
_NOW = bindparam("now", type_=UtcTime)
_HOLDS = (
    TOKEN.c.role.in_(VISITORS),
    TOKEN.c.revoked_at.is_(None),
    or_(TOKEN.c.expires_at.is_(None), TOKEN.c.expires_at > _NOW),
)
_LATEST = bindparam("latest", type_=UtcTime)
_OPEN = (_SESSION.c.expires_at > _NOW, _SESSION.c.created_at <= _LATEST, *_HOLDS)
_PRINCIPAL = (
    WITH_OWNERS.add_columns(_SESSION.c.proved_at)
    .join(_SESSION, _SESSION.c.token_id == TOKEN.c.id)
    .where(_SESSION.c.digest == bindparam("wanted"), *_OPEN)
)
_SESSIONS = (
    select(_SESSION, TOKEN.c.name, TOKEN.c.person_id)
    .join(TOKEN, TOKEN.c.id == _SESSION.c.token_id)
    .where(*_OPEN)
    .order_by(_SESSION.c.created_at.desc(), _SESSION.c.digest)
)
_VISITOR = select(TOKEN).where(TOKEN.c.id == bindparam("wanted"), *_HOLDS)
_ANY_TOKEN = select(TOKEN).where(TOKEN.c.id == bindparam("wanted"))
_OPEN_LINK = (
    select(_LINK.c.token_id)
    .join(TOKEN, TOKEN.c.id == _LINK.c.token_id)
    .where(
        _LINK.c.digest == bindparam("wanted"),
        _LINK.c.used_at.is_(None),
        _LINK.c.expires_at > _NOW,
        _LINK.c.created_at <= _LATEST,
        *_HOLDS,
    )
)
_USE_LINK = (
    update(_LINK)
    .where(_LINK.c.digest == bindparam("wanted"), _LINK.c.used_at.is_(None), _LINK.c.expires_at > _NOW)
    .values(used_at=_NOW)
)
_ADD_SESSION, _ADD_LINK = insert(_SESSION), insert(_LINK)
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 bytes, 6 bits a character
_ID = re.compile(r"[0-9a-f]{16}")
_ID_IN_TABLE = func.substr(_SESSION.c.digest, 1, 16)


class SessionInfo(Frozen):
    """A session as it may be shown. `id` begins the digest of its secret, which does not give that away; `method` is
    token, link or oidc, and None, as `browser`, where it is not known."""

    id: str
    token_id: str
    name: str
    person_id: str | None
    method: str | None
    browser: str | None
    created_at: datetime
    expires_at: datetime


class SignedIn(NamedTuple):
    """Who is signed in, and when they last showed who they are, if that is known."""

    principal: Principal
    proved_at: datetime | None


class SignInRefusal(Enum):
    """Why a token does not sign anybody in."""

    UNKNOWN = "unknown"  # no token of ours, or one that is expired or revoked: which of them is not told
    NOT_A_VISITOR = "not_a_visitor"  # of a role that has no pages


def create_link(
    store: Store, token_id: str, *, lifetime: timedelta = LINK_LIFETIME, actor: str, now: datetime
) -> str:
    """A code that signs this reviewer or auditor in, once, until `lifetime` is over; it is shown now or never.

    `actor` is who asked, for the log. Raises ValueError, with a sentence for the person who asked, when the token
    is of another role or does not hold; StorageError when it could not be written.
    """
    if not timedelta(0) < lifetime <= LONGEST_LINK:
        raise ValueError(f"A sign-in link lives for {LONGEST_LINK.days} days at most.")
    code = secrets.token_urlsafe(32)
    row = {
        "digest": tokens.sha256_of(code),
        "token_id": token_id,
        "created_at": now,
        "expires_at": now + lifetime,
        "used_at": None,
    }

    def work(connection: Connection) -> None:
        problem = _link_problem(connection, token_id, now)
        if problem is not None:
            raise ValueError(problem)
        connection.execute(_ADD_LINK, row)
        _log(connection, Action.LINK_CREATED, row, actor, now)

    store.writer.run([SERVICE_OWNER], work).result()
    return code


def _link_problem(connection: Connection, token_id: str, now: datetime) -> str | None:
    row = None
    if valid_name(token_id):  # what is no name must not reach a query
        row = connection.execute(_ANY_TOKEN, {"wanted": token_id}).one_or_none()
    if row is None:
        return f"There is no token {token_id[:50]!a}; vouchgate token list shows the ids."
    if row.role not in VISITORS:
        return f"Token {token_id} is of role {row.role}; only reviewers and auditors sign in to the pages."
    if row.revoked_at is not None:
        return f"Token {token_id} is revoked."
    if row.expires_at is not None and row.expires_at <= now:
        return f"Token {token_id} is expired."
    return None


def redeem(
    store: Store, code: str, *, now: datetime, instead_of: str | None = None, browser: str | None = None
) -> str | None:
    """The secret of a new session for a link's code, which is used up by it; None when there is no such link, it
    was used or is expired, or its token ended. One of several who come at the same moment gets in.

    `instead_of` is the secret of the session that this browser had, which ends; `browser` what it calls itself. Raises
    StorageError.
    """
    token_id = link_holder(store, code, now)  # strangers' guesses take no lock
    if token_id is None:
        return None
    wanted = {"wanted": tokens.sha256_of(code), "now": now}

    def use(connection: Connection) -> bool:
        return connection.execute(_USE_LINK, wanted).rowcount == 1

    return _begin(store, token_id, _How("link", now, browser, instead_of), now, use)


def link_holder(store: Store, code: str, now: datetime) -> str | None:
    """The id of the token that a link's code signs in, if it still does. Nothing is used up by it."""
    if _SECRET.fullmatch(code) is None:
        return None
    with store.read() as connection:
        return connection.scalar(_OPEN_LINK, {"wanted": tokens.sha256_of(code)} | _at(now))


def holder(store: Store, token_text: str, now: datetime) -> str | SignInRefusal:
    """The id of the token that is presented, if it signs somebody in."""
    with store.read() as connection:
        principal = tokens.authenticate(connection, token_text, now)
    if principal is None:
        return SignInRefusal.UNKNOWN
    return principal.id if principal.role.value in VISITORS else SignInRefusal.NOT_A_VISITOR


def start(
    store: Store, token_text: str, *, now: datetime, instead_of: str | None = None, browser: str | None = None
) -> str | SignInRefusal:
    """The secret of a new session for whoever presents a reviewer's or an auditor's token; else as `redeem`."""
    token_id = holder(store, token_text, now)
    if isinstance(token_id, SignInRefusal):
        return token_id
    how = _How("token", now, browser, instead_of)
    return _begin(store, token_id, how, now) or SignInRefusal.UNKNOWN


def start_as(
    store: Store,
    issuer: str,
    sub: str,
    *,
    proved_at: datetime | None,
    now: datetime,
    instead_of: str | None = None,
    browser: str | None = None,
) -> str | None:
    """The secret of a new session for the person who is this identity; None when nobody is. `proved_at` is when the
    provider had them sign in, if it says; see `redeem` for the rest."""
    with store.read() as connection:
        token_id = identities.token_of(connection, issuer, sub)
    if token_id is None:
        return None
    return _begin(store, token_id, _How("oidc", proved_at, browser, instead_of), now)


class _How(NamedTuple):
    method: str
    proved_at: datetime | None
    browser: str | None
    instead_of: str | None


def _begin(
    store: Store,
    token_id: str,
    how: _How,
    now: datetime,
    may: Callable[[Connection], bool] = lambda connection: True,
) -> str | None:
    """A session of this token in one transaction, if `may` says so in it and the token still holds."""
    secret = secrets.token_urlsafe(32)
    row = {
        "digest": tokens.sha256_of(secret),
        "token_id": token_id,
        "created_at": now,
        "expires_at": now + SESSION_LIFETIME,
        "method": how.method,
        "browser": how.browser,
        "proved_at": how.proved_at,
    }

    def work(connection: Connection) -> bool:
        if not may(connection) or _visitor(connection, token_id, now) is None:
            return False
        if how.instead_of is not None:
            _end(connection, how.instead_of, now)
        connection.execute(_ADD_SESSION, row)
        _log(connection, Action.SESSION_STARTED, row, token_id, now)
        return True

    return secret if store.writer.run([SERVICE_OWNER], work).result() else None


def _visitor(connection: Connection, token_id: str, now: datetime) -> Row[Any] | None:
    return connection.execute(_VISITOR, {"wanted": token_id, "now": now}).one_or_none()


def find(connection: Connection, secret: str, now: datetime) -> SignedIn | None:
    """Who is signed in with this secret, as the database says now; None when nobody is: the session is over, or
    its token is revoked or expired. Any text may be given."""
    if _SECRET.fullmatch(secret) is None:
        return None
    rows = connection.execute(_PRINCIPAL, {"wanted": tokens.sha256_of(secret)} | _at(now)).all()
    return SignedIn(tokens.principal_of(rows), rows[0].proved_at) if rows else None


def listing(connection: Connection, now: datetime, of: Principal | None = None) -> list[SessionInfo]:
    """The sessions that are open, the newest first: of whoever is behind this principal, or all."""
    statement = _SESSIONS if of is None else _SESSIONS.where(_behind(of))
    rows = connection.execute(statement, _at(now)).mappings()
    return [SessionInfo.model_validate({**row, "id": row["digest"][:16]}, extra="ignore") for row in rows]


def _at(now: datetime) -> dict[str, datetime]:
    return {"now": now, "latest": now + _AHEAD}


def session_id(secret: str) -> str:
    """What `SessionInfo.id` is of the session of this secret."""
    return tokens.sha256_of(secret)[:16]


def end(store: Store, secret: str, *, now: datetime) -> bool:
    """Ends a session. False when there is none of this secret (any more)."""
    if _SECRET.fullmatch(secret) is None:
        return False
    return store.writer.run([SERVICE_OWNER], lambda connection: _end(connection, secret, now)).result()


def _end(connection: Connection, secret: str, now: datetime) -> bool:
    return _end_all(connection, _SESSION.c.digest == tokens.sha256_of(secret), None, now) == 1


def end_by_id(store: Store, wanted: str, *, actor: str, now: datetime) -> bool:
    """Ends the session of this id. False when there is none (any more)."""
    if _ID.fullmatch(wanted) is None:
        return False
    this = _ID_IN_TABLE == wanted
    return store.writer.run([SERVICE_OWNER], lambda c: _end_all(c, this, actor, now) == 1).result()


def end_others(store: Store, of: Principal, secret: str, *, only: str | None = None, now: datetime) -> int:
    """Ends the sessions of whoever is behind this principal but for that of the secret, or only the one of an id; how
    many."""
    if only is not None and _ID.fullmatch(only) is None:
        return 0
    wanted = and_(
        _SESSION.c.digest != tokens.sha256_of(secret),
        _ID_IN_TABLE == only if only is not None else true(),
        _SESSION.c.token_id.in_(select(TOKEN.c.id).where(_behind(of))),
    )
    return store.writer.run([SERVICE_OWNER], lambda c: _end_all(c, wanted, of.id, now)).result()


def _behind(principal: Principal) -> ColumnElement[bool]:
    """Of tokens: this principal's, and those of the same person."""
    own = TOKEN.c.id == principal.id
    return own if principal.person is None else or_(own, TOKEN.c.person_id == principal.person)


def _end_all(connection: Connection, which: ColumnElement[bool], actor: str | None, now: datetime) -> int:
    """Ends sessions, by whoever says so (None: each by itself); how many."""
    rows = connection.execute(select(_SESSION.c.digest, _SESSION.c.token_id).where(which)).mappings().all()
    for row in rows:
        connection.execute(delete(_SESSION).where(_SESSION.c.digest == row["digest"]))
        _log(connection, Action.SESSION_ENDED, dict(row), actor or row["token_id"], now)
    return len(rows)


def has_old(connection: Connection, now: datetime) -> bool:
    """Whether `forget_old` has something to do."""
    return any(
        connection.execute(select(table.c.digest).where(table.c.expires_at <= now).limit(1)).first()
        for table in (_SESSION, _LINK, _FLOW)
    )


def forget_old(connection: Connection, now: datetime, limit: int) -> int:
    """Deletes up to `limit` sessions, and as many links and sign-ins under way, whose time is over, used or not; how
    many. They were of no use any more, so the log says nothing of it."""
    return sum(
        connection.execute(
            delete(table).where(
                table.c.digest.in_(
                    select(table.c.digest)
                    .where(table.c.expires_at <= now)
                    .order_by(table.c.expires_at)
                    .limit(limit)
                )
            )
        ).rowcount
        for table in (_SESSION, _LINK, _FLOW)
    )


def _log(connection: Connection, action: Action, row: dict[str, Any], actor: str, now: datetime) -> None:
    document = log.Document(row["digest"].encode())
    log.append(connection, SERVICE_OWNER, action, row["token_id"], document, by=actor, now=now)
