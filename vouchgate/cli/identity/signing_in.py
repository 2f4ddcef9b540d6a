"""`vouchgate person link` and `unlink`, and `session`: what people sign in with elsewhere, and who is signed in."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.identity.people import PersonName, find_person, open_people, person
from vouchgate.cli.identity.tokens import ACTOR
from vouchgate.cli.output import USAGE, Failure, hint, one_line, show_table, write_json

session = typer.Typer(
    name="session", help="See who is signed in to the pages, and end that.", rich_markup_mode=None
)

Issuer = Annotated[
    str | None, typer.Option(metavar="URL", help="The provider; or set VOUCHGATE_OIDC_ISSUER.")
]
Sub = Annotated[str, typer.Option(metavar="SUB", help="Who somebody is there, as its ID tokens say (`sub`).")]


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(session)


def _issuer(given: str | None) -> str:
    found = given or operator.settings_from().oidc_issuer
    if found is None:
        raise Failure("name the provider with --issuer, or set VOUCHGATE_OIDC_ISSUER", USAGE)
    return found


@person.command("link", epilog="Example: vouchgate person link ann --sub 248289761001")
def link(
    name: PersonName, *, sub: Sub, issuer: Issuer = None, database_url: operator.DatabaseUrl = None
) -> None:
    """Say what a person signs in with. The page that refuses somebody who is not known shows the whole command."""
    from vouchgate.storage.identity import identities

    where = _issuer(issuer)
    with open_people(database_url) as store:
        found = find_person(store, name)
        identities.link(store, found, where, sub, actor=ACTOR, now=datetime.now(UTC))
    hint(f"Whoever signs in as {one_line(sub)} at {where} is {found.name}.")


@person.command("unlink", epilog="Example: vouchgate person unlink --sub 248289761001")
def unlink(*, sub: Sub, issuer: Issuer = None, database_url: operator.DatabaseUrl = None) -> None:
    """Take that back; who is signed in with it is signed out at once."""
    from vouchgate.storage.identity import identities

    where = _issuer(issuer)
    with open_people(database_url) as store:
        ended = identities.unlink(store, where, sub, actor=ACTOR, now=datetime.now(UTC))
    if not ended:
        raise Failure("nobody signs in with this; vouchgate person list shows who signs in with what")
    hint(f"{one_line(sub)} at {where} is nobody any more.")


@session.command("list", epilog="Example: vouchgate session list --json")
def list_sessions(database_url: operator.DatabaseUrl = None, as_json: operator.Json = False) -> None:
    """Show every session that is open, the newest first."""
    from vouchgate.storage.identity import sessions

    with open_people(database_url) as store, store.read() as connection:
        found = sessions.listing(connection, datetime.now(UTC))
    if as_json:
        for one in found:
            write_json(one.model_dump(mode="json"))
        return
    rows = [
        (
            *(one.id, one_line(one.name), one.method or "-", one_line(one.browser or "-")),
            *(f"{one.created_at:%Y-%m-%d %H:%M}", f"{one.expires_at:%Y-%m-%d}"),
        )
        for one in found
    ]
    show_table(("id", "name", "with", "browser", "since", "until"), rows)


@session.command("end", epilog="Example: vouchgate session end ID")
def end(
    session_id: Annotated[str, typer.Argument(metavar="ID", help="As in `session list`.")],
    database_url: operator.DatabaseUrl = None,
) -> None:
    """End a session at once."""
    from vouchgate.storage.identity import sessions

    with open_people(database_url) as store:
        ended = sessions.end_by_id(store, session_id, actor=ACTOR, now=datetime.now(UTC))
    if not ended:
        raise Failure("there is no such session, or not any more; vouchgate session list shows them")
    hint("It is ended.")
