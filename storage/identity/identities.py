"""What people sign in with elsewhere: an issuer and its `sub`, never a mail address or a name, which others could come
to have. Only the operator says whose one is; nothing that a provider claims makes anybody a person or a role.

Each identity acts through a token of its person of the role reviewer, whose secret nobody was told: so sessions, votes,
four eyes and the log know one kind of principal, and what ends the token ends the sessions.

Here, too, is what is kept of a sign-in until the browser is back from the provider. State, nonce and PKCE verifier
follow from a secret that only the browser's cookie holds, so that the database could give none of them away.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, Table, and_, bindparam, delete, insert, select

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Person, Role
from vouchgate.storage.identity import persons, tokens
from vouchgate.storage.identity.grants import TOKEN
from vouchgate.storage.identity.tokens import SERVICE_OWNER
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store
from vouchgate.storage.tables.doors import SignInFlowRow
from vouchgate.storage.tables.people import IdentityRow

FLOW_LIFETIME = timedelta(minutes=10)  # to sign in at the provider, a second factor included

_TABLE: Table = IdentityRow.metadata.tables["identity"]
_FLOW: Table = SignInFlowRow.metadata.tables["sign_in_flow"]
_SUB = re.compile(r"[ -~]{1,255}")  # OpenID Connect Core 1.0, section 2: at most 255 ASCII characters
_ISSUER = re.compile(r"https?://[!-~]{1,500}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_INSERT = insert(_TABLE)
_THIS = (_TABLE.c.issuer == bindparam("of_issuer"), _TABLE.c.sub == bindparam("of_sub"))
_LINKED = _TABLE.join(TOKEN, and_(TOKEN.c.id == _TABLE.c.token_id, TOKEN.c.revoked_at.is_(None)))
_DELETE = delete(_TABLE).where(*_THIS)
_ANY = select(_TABLE.c.issuer, _TABLE.c.sub, TOKEN.c.person_id, _TABLE.c.token_id).select_from(_LINKED)
_ONE = _ANY.where(*_THIS)
_ALL = _ANY.order_by(TOKEN.c.person_id, _TABLE.c.issuer, _TABLE.c.sub)
_THIS_FLOW = _FLOW.c.digest == bindparam("of_digest")


class Identity(NamedTuple):
    """Whom an issuer's `sub` stands for, and the token that they act through."""

    issuer: str
    sub: str
    person_id: str
    token_id: str


class SignInFlow(NamedTuple):
    """Where a sign-in leads, and whether it is to prove anew who is signed in already."""

    next_path: str
    again: bool


def valid_sub(sub: object) -> bool:
    """Whether this can be a `sub`."""
    return isinstance(sub, str) and _SUB.fullmatch(sub) is not None


def link(store: Store, person: Person, issuer: str, sub: str, *, actor: str, now: datetime) -> str:
    """Has whoever signs in as this `sub` of this issuer act as the person; gives the id of the token they act through.
    Raises ValueError, with a sentence for whoever asked, when it is linked already or is no identity."""
    if _ISSUER.fullmatch(issuer) is None:
        raise ValueError("An issuer is an address such as https://login.example.org.")
    if not valid_sub(sub):
        raise ValueError("A sub has 1 to 255 ASCII characters.")

    def also(connection: Connection, token_id: str) -> None:
        if persons.find(connection, person.id) is None:
            raise ValueError(f"{person.name} ended just now.")
        if token_of(connection, issuer, sub) is not None:
            raise ValueError("This identity is linked already; vouchgate person list shows to whom.")
        row = {"issuer": issuer, "sub": sub, "token_id": token_id, "linked_at": now}
        connection.execute(_DELETE, {"of_issuer": issuer, "of_sub": sub})  # of a token that was revoked
        connection.execute(_INSERT, row)
        linked = Identity(issuer, sub, person.id, token_id)
        _log(connection, Action.IDENTITY_LINKED, linked, actor, now)

    principal, _ = tokens.create(
        store, role=Role.REVIEWER, name=person.name, person=person.id, actor=actor, now=now, also=also
    )
    return principal.id


def unlink(store: Store, issuer: str, sub: str, *, actor: str, now: datetime) -> bool:
    """Nobody is this identity any more, and its sessions end at once. False when nobody was."""
    if not valid_sub(sub) or _ISSUER.fullmatch(issuer) is None:
        return False

    def work(connection: Connection) -> bool:
        row = connection.execute(_ONE, {"of_issuer": issuer, "of_sub": sub}).one_or_none()
        if row is None:
            return False
        ended = Identity(*row)
        connection.execute(_DELETE, {"of_issuer": issuer, "of_sub": sub})
        tokens.end(connection, ended.token_id, actor=actor, now=now)
        _log(connection, Action.IDENTITY_UNLINKED, ended, actor, now)
        return True

    return store.writer.run([SERVICE_OWNER], work).result()


def token_of(connection: Connection, issuer: str, sub: str) -> str | None:
    """The id of the token that an identity acts through; None when nobody is this, or the token is revoked."""
    row = connection.execute(_ONE, {"of_issuer": issuer, "of_sub": sub}).one_or_none()
    return None if row is None else Identity(*row).token_id


def listing(connection: Connection) -> list[Identity]:
    """Every identity, by person."""
    return [Identity(*row) for row in connection.execute(_ALL)]


def begin_flow(store: Store, flow: SignInFlow, *, now: datetime) -> str:
    """The secret of a new sign-in, for the browser's cookie."""
    secret = secrets.token_urlsafe(32)
    row = {"digest": tokens.sha256_of(secret), **flow._asdict(), "expires_at": now + FLOW_LIFETIME}
    store.writer.run((), lambda connection: connection.execute(insert(_FLOW), row)).result()
    return secret


def end_flow(store: Store, secret: str, *, now: datetime) -> SignInFlow | None:
    """The sign-in of this secret, which is used up by it; None when there is none (any more), or its time is over."""
    if _SECRET.fullmatch(secret) is None:
        return None
    this = {"of_digest": tokens.sha256_of(secret)}
    query = select(_FLOW).where(_THIS_FLOW, _FLOW.c.expires_at > now)
    with store.read() as connection:  # strangers' guesses take no lock
        row = connection.execute(query, this).one_or_none()
    ended = (
        row is not None
        and store.writer.run(
            (), lambda c: c.execute(delete(_FLOW).where(_THIS_FLOW), this).rowcount == 1
        ).result()
    )
    return SignInFlow(row.next_path, row.again) if row is not None and ended else None


def derived(secret: str, purpose: str) -> str:
    """What a sign-in shows of its secret for one purpose (`state`, `nonce`, `verifier`): 43 characters, as RFC 7636
    wants at least of a verifier. None gives away another."""
    mac = hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()


def _log(connection: Connection, action: Action, about: Identity, actor: str, now: datetime) -> None:
    document = log.document_of(about._asdict())
    log.append(connection, SERVICE_OWNER, action, about.token_id, document, by=actor, now=now)
