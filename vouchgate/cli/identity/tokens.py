"""`vouchgate token`: who may call the service. The new token itself is the only thing on standard output."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.output import USAGE, Failure, hint, show_table, write_json

if TYPE_CHECKING:
    from vouchgate.storage.identity.tokens import TokenInfo

ACTOR = "operator"  # whoever may open the database; the log cannot know more
_DURATION = re.compile(r"([1-9][0-9]{0,5})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

token = typer.Typer(
    name="token",
    help="Make, list and revoke the tokens that callers present, and links to sign in.",
    rich_markup_mode=None,
)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(token)


def lifetime(text: str) -> timedelta:
    """`30m`, `12h`, `90d` or `2w`. Raises ValueError for anything else."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time like 30m, 12h, 90d or 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _expires(text: str, longest: timedelta = timedelta.max) -> timedelta:
    try:
        wanted = lifetime(text)
        if wanted > longest:
            raise ValueError(f"a sign-in link lives for {longest.days} days at most")
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--expires") from error
    return wanted


@token.command(
    "create", epilog="Example: vouchgate token create --role agent --owner me --source user --expires 90d"
)
def create(
    *,
    role: Annotated[str, typer.Option(metavar="ROLE", help="agent, recorder, reviewer, auditor or admin.")],
    owner: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="An owner it may act for. Repeat it for several.")
    ] = None,
    any_owner: Annotated[bool, typer.Option("--any-owner", help="It may act for every owner.")] = False,
    new_owners: Annotated[
        bool,
        typer.Option("--new-owners", help="With --any-owner: its claims make owners that are not there."),
    ] = False,
    person: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who is behind it, for whose owners it acts, too.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE", help="A source it may assert, such as user. Repeat it for several."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="30m, 12h, 90d or 2w; without it the token does not expire."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What it is called in lists. [default: its role]")
    ] = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Make a token.

    It is printed alone on standard output, and is shown this once.
    """
    from sqlalchemy import make_url

    from vouchgate.cli.database import open_store
    from vouchgate.cli.identity.people import find_person
    from vouchgate.ingest.claims.claim import Source
    from vouchgate.ingest.claims.people import Role
    from vouchgate.storage.identity import tokens

    ends_after = None if expires is None else _expires(expires)
    settings, now = operator.settings_from(database_url=database_url), datetime.now(UTC)
    wanted = operator.word(role, Role, "--role")
    sources = [operator.word(each, Source, "--source") for each in source or []]
    with open_store(settings) as store:
        behind = None if person is None else find_person(store, person).id
        try:
            principal, secret = tokens.create(
                store,
                role=wanted,
                name=wanted.value if name is None else name,
                owners=owner or [],
                any_owner=any_owner,
                new_owners=new_owners,
                person=behind,
                sources=sources,
                expires_at=None if ends_after is None else now + ends_after,
                actor=ACTOR,
                now=now,
            )
        except ValueError as error:
            raise Failure(str(error), USAGE) from error
    print(secret, flush=True)
    where = make_url(settings.database_url).render_as_string(hide_password=True)
    hint(f"Token {principal.id} ({role}) made in {where}. It is shown this once; only its digest is kept.")
    if wanted is Role.REVIEWER:
        hint(f"A link to the pages for it: vouchgate token link {principal.id}")
    if wanted is Role.AGENT and not sources:
        hint("It may assert no source: what it sends counts as ai_synthesis. Grant sources with --source.")


@token.command("assign", epilog="Example: vouchgate token assign 0123456789abcdef ann")
def assign(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As in `token list`.")],
    person: Annotated[str, typer.Argument(metavar="NAME", help="A person's name or id.")],
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Say who is behind a token, once and for good."""
    from vouchgate.cli.database import open_store
    from vouchgate.cli.identity.people import find_person
    from vouchgate.storage.identity import tokens

    with open_store(operator.settings_from(database_url=database_url)) as store:
        behind = find_person(store, person)
        try:
            tokens.assign(store, token_id, behind.id, actor=ACTOR, now=datetime.now(UTC))
        except ValueError as error:
            raise Failure(str(error)) from error
    hint(f"Token {token_id} is {behind.name}'s.")


@token.command("list", epilog="Example: vouchgate token list --json")
def show(database_url: operator.DatabaseUrl = None, as_json: operator.Json = False) -> None:
    """Show every token, without its secret."""
    from vouchgate.cli.database import open_store
    from vouchgate.storage.identity import tokens

    with (
        open_store(operator.settings_from(database_url=database_url)) as store,
        store.read() as connection,
    ):
        found = tokens.listing(connection)
    if as_json:
        for one in found:
            write_json(one.model_dump(mode="json"))
    elif not found:
        hint("There is no token yet. Make one: vouchgate token create --role agent --owner me")
    else:
        now = datetime.now(UTC)
        rows = [
            (
                one.id,
                one.role.value,
                "any" if one.any_owner else ", ".join(one.owners) or "-",
                ", ".join(source.value for source in one.sources) or "-",
                _state(one, now),
                one.name,
            )
            for one in found
        ]
        show_table(("id", "role", "owners", "sources", "state", "name"), rows, whole=2)


def _state(token: TokenInfo, now: datetime) -> str:
    if token.revoked_at is not None:
        return f"revoked {token.revoked_at:%Y-%m-%d}"
    if token.expires_at is None:
        return "valid"
    return f"{'expired' if token.expires_at <= now else 'until'} {token.expires_at:%Y-%m-%d %H:%M}Z"


@token.command("link", epilog="Example: vouchgate token link 0123456789abcdef --expires 1h")
def link(
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="A reviewer's or auditor's, as in `token list`.")
    ],
    expires: Annotated[
        str, typer.Option(metavar="TIME", help="How long it can be used: 30m, 12h or 2d, at most 7d.")
    ] = "15m",
    public_url: operator.PublicUrl = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Make a link that signs a reviewer or auditor in to the pages, once.

    It is printed alone on standard output, and is shown this once.
    """
    from vouchgate.cli.database import open_store
    from vouchgate.storage.identity import sessions

    lives = _expires(expires, sessions.LONGEST_LINK)
    settings = operator.settings_from(database_url=database_url, public_url=public_url)
    now = datetime.now(UTC)
    with open_store(settings) as store:
        try:
            code = sessions.create_link(store, token_id, lifetime=lives, actor=ACTOR, now=now)
        except ValueError as error:
            raise Failure(str(error)) from error
    print(link_url(settings.pages_url, code), flush=True)
    hint(f"It signs in once, until {now + lives:%Y-%m-%d %H:%M}Z. Whoever has it acts as this token then.")
    if settings.public_url is None:
        hint("If that is not where the service answers, say where with --public-url or VOUCHGATE_PUBLIC_URL.")


def link_url(pages_url: str, code: str) -> str:
    """The address that a code of `storage.identity.sessions.create_link` is handed over as."""
    return f"{pages_url}/review/sign-in/{code}"


@token.command("revoke", epilog="Example: vouchgate token revoke 0123456789abcdef")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As in `token list`.")],
    database_url: operator.DatabaseUrl = None,
) -> None:
    """End a token at once and for good."""
    from vouchgate.cli.database import open_store
    from vouchgate.storage.identity import tokens

    with open_store(operator.settings_from(database_url=database_url)) as store:
        known = tokens.revoke(store, token_id, actor=ACTOR, now=datetime.now(UTC))
    if not known:
        raise Failure(f"there is no token {token_id!r}; vouchgate token list shows the ids")
    hint(f"Token {token_id} is revoked.")
