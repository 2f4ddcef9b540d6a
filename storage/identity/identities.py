"""What people sign in with elsewhere: an issuer and its `sub`, never a mail address or a name, which others could come
to have. Only the operator says whose one is; nothing that a provider claims makes anybody a person or a role.

Each identity acts through a token of its person of the role reviewer, whose secret nobody was told: so sessions, votes,
four eyes and the log know one kind of principal, and what ends the token ends the sessions.

Here, too, is what is known of a sign-in until the browser is back from the provider: its cookie says it, sealed. State,
nonce and PKCE verifier follow from the cookie, which the database has not. What is kept is which of them were used.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, Table, and_, bindparam, delete, insert, select, text

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Person, Role
from vouchgate.storage.columns import UtcTime
from vouchgate.storage.identity import persons, tokens
from vouchgate.storage.identity.grants import TOKEN
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import MetaRow
from vouchgate.storage.tables.doors import SignInFlowRow
from vouchgate.storage.tables.people import IdentityRow

FLOW_LIFETIME = timedelta(minutes=10)  # to sign in at the provider, a second factor included

_TABLE: Table = IdentityRow.metadata.tables["identity"]
_FLOW: Table = SignInFlowRow.metadata.tables["sign_in_flow"]
_SUB = re.compile(r"[ -~]{1,255}")  # OpenID Connect Core 1.0, section 2: at most 255 ASCII characters
_ISSUER = re.compile(r"https?://[!-~]{1,500}")
_INSERT = insert(_TABLE)
_THIS = (_TABLE.c.issuer == bindparam("of_issuer"), _TABLE.c.sub == bindparam("of_sub"))
_LINKED = _TABLE.join(TOKEN, and_(TOKEN.c.id == _TABLE.c.token_id, TOKEN.c.revoked_at.is_(None)))
_DELETE = delete(_TABLE).where(*_THIS)
_ANY = select(_TABLE.c.issuer, _TABLE.c.sub, TOKEN.c.person_id, _TABLE.c.token_id).select_from(_LINKED)
_ONE = _ANY.where(*_THIS)
_ALL = _ANY.order_by(TOKEN.c.person_id, _TABLE.c.issuer, _TABLE.c.sub)
_USED = select(_FLOW.c.digest).where(_FLOW.c.digest == bindparam("of_digest"))
_USE_UP = text(
    "INSERT INTO sign_in_flow (digest, next_path, again, expires_at) VALUES (:digest, :next_path, :again, :expires_at)"
    " ON CONFLICT DO NOTHING"
).bindparams(bindparam("expires_at", type_=UtcTime))
_META: Table = MetaRow.metadata.tables["meta"]
_KEY_NAME = "sign_in_key"
_KEY = select(_META.c.value).where(_META.c.name == _KEY_NAME)
_KEEP = text("INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING")


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
    """The cookie of a new sign-in: a secret and the flow, under a seal that this service alone can make. Nothing is
    kept of it, so strangers may begin as many as they like."""
    said = [secrets.token_urlsafe(32), *flow, int((now + FLOW_LIFETIME).timestamp())]
    body = base64.urlsafe_b64encode(json.dumps(said).encode()).decode()
    return f"{body}.{_seal(_flow_key(store), body)}"


def end_flow(store: Store, cookie: str, *, now: datetime) -> SignInFlow | None:
    """The sign-in of this cookie; None when it is none of ours, was used up, or its time is over."""
    body, _, seal = cookie.rpartition(".")
    if not hmac.compare_digest(seal.encode(), _seal(_flow_key(store), body).encode()):
        return None
    _, next_path, again, until = json.loads(base64.urlsafe_b64decode(body))
    with store.read() as connection:
        used = connection.execute(_USED, {"of_digest": tokens.sha256_of(cookie)}).first()
    return None if used is not None or now.timestamp() >= until else SignInFlow(next_path, again)


def use_up(store: Store, cookie: str, *, now: datetime) -> bool:
    """Lets nobody sign in by this cookie any more; False when somebody did."""
    row = {
        "digest": tokens.sha256_of(cookie),
        "next_path": "",
        "again": False,
        "expires_at": now + FLOW_LIFETIME,
    }
    return store.writer.run((), lambda c: c.execute(_USE_UP, row).rowcount == 1).result()


def _flow_key(store: Store) -> bytes:
    """What cookies are sealed with, by every process of the service; made when it is first asked for."""
    with store.read() as connection:
        key = connection.scalar(_KEY)
    if key is None:
        made = {"name": _KEY_NAME, "value": secrets.token_hex(32)}
        store.writer.run((), lambda connection: connection.execute(_KEEP, made)).result()
        with store.read() as connection:
            key = connection.execute(_KEY).scalar_one()
    return bytes.fromhex(key)


def _seal(key: bytes, body: str) -> str:
    return hmac.new(key, body.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def derived(secret: str, purpose: str) -> str:
    """What a sign-in shows of its secret for one purpose (`state`, `nonce`, `verifier`): 43 characters, as RFC 7636
    wants at least of a verifier. None gives away another."""
    mac = hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()


def _log(connection: Connection, action: Action, about: Identity, actor: str, now: datetime) -> None:
    document = log.document_of(about._asdict())
    log.append(connection, SERVICE_OWNER, action, about.token_id, document, by=actor, now=now)
