"""`vouchgate token`: who may call the service. The new token itself is the only thing on standard output."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import make_url

from vouchgate.cli.database import open_store
from vouchgate.cli.output import USAGE, Failure, hint, show_table, write_json
from vouchgate.ingest.claims.types import Role, Source
from vouchgate.settings import Settings
from vouchgate.storage.identity import sessions, tokens

ACTOR = "operator"  # whoever may open the database; the log cannot know more
_DURATION = re.compile(r"([1-9][0-9]{0,5})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def lifetime(text: str) -> timedelta:
    """`30m`, `12h`, `90d` or `2w`. Raises ValueError for anything else."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time like 30m, 12h, 90d or 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def link_lifetime(text: str) -> timedelta:
    """As `lifetime`, for a link. Raises ValueError when it is longer than a link's may be."""
    wanted = lifetime(text)
    if wanted > sessions.LONGEST_LINK:
        raise ValueError(f"a sign-in link lives for {sessions.LONGEST_LINK.days} days at most")
    return wanted


def create(
    settings: Settings,
    *,
    role: Role,
    owners: Sequence[str],
    any_owner: bool,
    sources: Sequence[Source],
    expires: timedelta | None,
    name: str | None,
) -> int:
    """Makes a token and prints it, this once."""
    now = datetime.now(UTC)
    with open_store(settings) as store:
        try:
            principal, secret = tokens.create(
                store,
                role=role,
                name=role.value if name is None else name,
                owners=owners,
                any_owner=any_owner,
                sources=sources,
                expires_at=None if expires is None else now + expires,
                actor=ACTOR,
                now=now,
            )
        except ValueError as error:
            raise Failure(str(error), USAGE) from error
    print(secret, flush=True)
    where = make_url(settings.database_url).render_as_string(hide_password=True)
    hint(
        f"Token {principal.id} ({role.value}) made in {where}. It is shown this once; only its digest is kept."
    )
    if role is Role.REVIEWER:
        hint(f"A link to the pages for it: vouchgate token link {principal.id}")
    if role is Role.AGENT and not sources:
        hint("It may assert no source: what it sends counts as ai_synthesis. Grant sources with --source.")
    return 0


def show(settings: Settings, *, as_json: bool) -> int:
    """Every token without its secret, oldest first."""
    with open_store(settings) as store, store.read() as connection:
        found = tokens.listing(connection)
    if as_json:
        for token in found:
            write_json(token.model_dump(mode="json"))
        return 0
    if not found:
        hint("There is no token yet. Make one: vouchgate token create --role agent --owner me")
        return 0
    now = datetime.now(UTC)
    rows = [
        (
            token.id,
            token.role.value,
            "any" if token.any_owner else ", ".join(token.owners) or "-",
            ", ".join(source.value for source in token.sources) or "-",
            _state(token, now),
            token.name,
        )
        for token in found
    ]
    show_table(("id", "role", "owners", "sources", "state", "name"), rows, whole=2)
    return 0


def _state(token: tokens.TokenInfo, now: datetime) -> str:
    if token.revoked_at is not None:
        return f"revoked {token.revoked_at:%Y-%m-%d}"
    if token.expires_at is None:
        return "valid"
    return f"{'expired' if token.expires_at <= now else 'until'} {token.expires_at:%Y-%m-%d %H:%M}Z"


def link(settings: Settings, token_id: str, *, lifetime: timedelta) -> int:
    """Makes a link that signs a reviewer in, once, and prints it alone. Raises Failure when the token is not one
    of a reviewer that holds."""
    now = datetime.now(UTC)
    with open_store(settings) as store:
        try:
            code = sessions.create_link(store, token_id, lifetime=lifetime, actor=ACTOR, now=now)
        except ValueError as error:
            raise Failure(str(error)) from error
    print(link_url(settings.pages_url, code), flush=True)
    hint(f"It signs in once, until {now + lifetime:%Y-%m-%d %H:%M}Z. Whoever has it is the reviewer then.")
    if settings.public_url is None:
        hint("If that is not where the service answers, say where with --public-url or VOUCHGATE_PUBLIC_URL.")
    return 0


def link_url(pages_url: str, code: str) -> str:
    """The address that a code of `storage.identity.sessions.create_link` is handed over as."""
    return f"{pages_url}/review/sign-in/{code}"


def revoke(settings: Settings, token_id: str) -> int:
    """Ends a token. Raises Failure when there is none of this id."""
    with open_store(settings) as store:
        known = tokens.revoke(store, token_id, actor=ACTOR, now=datetime.now(UTC))
    if not known:
        raise Failure(f"there is no token {token_id!r}; vouchgate token list shows the ids")
    hint(f"Token {token_id} is revoked.")
    return 0
