"""`vouchgate mail`: digests by mail, to whom, of whose queues, and when."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.identity.tokens import ACTOR
from vouchgate.cli.output import USAGE, Failure, hint, one_line, say, show_table, write_json

if TYPE_CHECKING:
    from vouchgate.settings import Settings
    from vouchgate.storage.outgoing.mail import Mail
    from vouchgate.storage.outgoing.mail_schedule import MailSchedule
    from vouchgate.storage.store import Store

Id = Annotated[str, typer.Argument(metavar="ID", help="As in `mail list`.")]
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_QUIET = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", re.ASCII)

mail = typer.Typer(name="mail", help="Digests by mail.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(mail)


@mail.command(
    "add",
    epilog="Example: vouchgate mail add ann@example.org --person ann --hour 8 --zone Europe/Berlin --weekday mon",
)
def add(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Where it goes: ann@example.org")],
    *,
    person: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of all owners this person reviews for, as that changes."),
    ] = None,
    owner: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Of this owner; of a person's, only this. Repeat it."),
    ] = None,
    hour: Annotated[
        list[int] | None, typer.Option(min=0, max=23, metavar="N", help="When. Repeat it. [default: 8]")
    ] = None,
    hourly: Annotated[bool, typer.Option("--hourly", help="At every full hour.")] = False,
    weekday: Annotated[
        list[str] | None, typer.Option(metavar="DAY", help="mon, tue … Repeat it. [default: every day]")
    ] = None,
    zone: Annotated[str, typer.Option(metavar="NAME", help="By whose clock, such as Europe/Berlin.")] = "UTC",
    quiet: Annotated[
        str | None, typer.Option(metavar="FROM-TO", help="Nothing is sent then, as in 22:00-07:00.")
    ] = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Have an address get a digest of queues, at hours of the day, when there is something to tell.

    The address identifies nobody and gives no rights.
    """
    from vouchgate.cli.database import open_store
    from vouchgate.storage.outgoing import mail as mails

    if hourly and hour:
        raise typer.BadParameter("give --hour or --hourly", param_hint="--hourly")
    schedule = _schedule(tuple(range(24)) if hourly else tuple(hour or (8,)), weekday, zone, quiet)
    settings = operator.settings_from(database_url=database_url)
    with open_store(settings) as store:
        try:
            made = mails.create(
                store,
                address=address,
                person=person,
                owner_ids=owner or (),
                schedule=schedule,
                actor=ACTOR,
                now=datetime.now(UTC),
            )
        except ValueError as error:
            raise Failure(str(error), USAGE) from error
    say(made.id)
    hint(f"The first is due {_time(made.due_at)}. Try it: vouchgate mail test {made.id}")
    if settings.smtp_url is None:
        hint("No mail server is set, so none is sent: set VOUCHGATE_SMTP_URL and VOUCHGATE_MAIL_FROM.")


def _schedule(
    hours: tuple[int, ...], weekdays: list[str] | None, zone: str, quiet: str | None
) -> MailSchedule:
    from pydantic import ValidationError

    from vouchgate.ingest.language.validation import plain_message
    from vouchgate.storage.outgoing.mail_schedule import MailSchedule

    unknown = [day for day in weekdays or () if day not in DAYS]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(DAYS)}", param_hint="--weekday")
    minutes = None
    if quiet is not None:
        match = _QUIET.fullmatch(quiet)
        if match is None:
            raise typer.BadParameter("is like 22:00-07:00", param_hint="--quiet")
        begin, begin_minute, end, end_minute = map(int, match.groups())
        minutes = (begin * 60 + begin_minute, end * 60 + end_minute)
    days = sorted({DAYS.index(day) for day in weekdays or DAYS})
    try:
        return MailSchedule(hours=tuple(sorted(set(hours))), weekdays=tuple(days), zone=zone, quiet=minutes)
    except ValidationError as error:
        raise Failure(plain_message(error.errors()[0]), USAGE) from error


@mail.command("list", epilog="Example: vouchgate mail list --json")
def show(database_url: operator.DatabaseUrl = None, as_json: operator.Json = False) -> None:
    """Show every digest by mail, and how it does."""
    from vouchgate.cli.database import open_store
    from vouchgate.storage.outgoing import mail as mails

    settings = operator.settings_from(database_url=database_url)
    sends = settings.smtp_url is not None and not settings.offline
    with open_store(settings) as store, store.read() as connection:
        now = datetime.now(UTC)
        found = [(one, mails.owners_of(connection, one, now)) for one in mails.listing(connection)]
    if as_json:
        for one, owners in found:
            about = one.model_dump(mode="json", exclude={"lease"})
            write_json(about | {"owners_now": owners, "state": _state(one, sends=sends)})
    elif not found:
        hint("No digest goes by mail. Have one sent: vouchgate mail add ADDRESS --person NAME")
    else:
        rows = [
            (
                one.id,
                one.address,
                one_line(", ".join(owners[:3]) + (f" and {len(owners) - 3} more" if len(owners) > 3 else "")),
                _time(one.sent_at),
                one_line(_state(one, sends=sends)),
            )
            for one, owners in found
        ]
        show_table(("id", "address", "owners", "last sent", "state"), rows)


def _state(one: Mail, *, sends: bool) -> str:
    if one.due_at is None:
        return f"given up, failing since {_time(one.failing_since)}: {one.last_error}"
    if not sends:
        return "not sent: no mail server is set, or offline"
    due = f"due {_time(one.due_at)}"
    if one.failing_since is not None:
        return f"failing since {_time(one.failing_since)}, {due}: {one.last_error}"
    if one.in_doubt:
        return f"is being sent, or was cut off in that; {due}"
    return due


def _time(at: datetime | None) -> str:
    return "-" if at is None else f"{at:%Y-%m-%d %H:%M}Z"


@mail.command("test", epilog="Example: vouchgate mail test ID")
def test(mail_id: Id, database_url: operator.DatabaseUrl = None) -> None:
    """Send a mail that says nothing, now, and say whether the mail server took it."""
    from vouchgate.cli.database import open_store
    from vouchgate.service import open_mail
    from vouchgate.workers.smtp import NotTaken

    settings = _that_send(database_url)
    with open_store(settings) as store:
        known = _known(store, mail_id)
        try:
            open_mail(settings, store).test(known)
        except NotTaken as error:
            raise Failure(f"not taken: {error}") from error
    say("Taken by the mail server.")


@mail.command("send", epilog="Example: vouchgate mail send ID")
def send(mail_id: Id, database_url: operator.DatabaseUrl = None) -> None:
    """Send a digest now, due or not, also one that was given up. Nothing is sent where there is nothing to tell."""
    import asyncio

    from vouchgate.cli.database import open_store
    from vouchgate.service import open_mail
    from vouchgate.workers.mail import MailResult

    settings = _that_send(database_url)
    with open_store(settings) as store:
        _known(store, mail_id)
        result = asyncio.run(open_mail(settings, store).send(mail_id))
        after = _known(store, mail_id)
    if result is MailResult.SENT:
        say("Taken by the mail server.")
    elif result is MailResult.SILENT:
        say("There is nothing to tell, so nothing was sent.")
    else:
        raise Failure(f"not taken: {after.last_error}")


@mail.command("remove", epilog="Example: vouchgate mail remove ID")
def remove(mail_id: Id, database_url: operator.DatabaseUrl = None) -> None:
    """End a digest by mail."""
    from vouchgate.cli.database import open_store
    from vouchgate.storage.outgoing import mail as mails

    with open_store(operator.settings_from(database_url=database_url)) as store:
        known = mails.remove(store, mail_id, actor=ACTOR, now=datetime.now(UTC))
    if not known:
        raise _unknown(mail_id)
    hint(f"{mail_id} is removed.")


def _that_send(database_url: str | None) -> Settings:
    settings = operator.settings_from(database_url=database_url)
    if settings.smtp_url is None:
        raise Failure("no mail server is set: see VOUCHGATE_SMTP_URL")
    if settings.offline:
        raise Failure("nothing is sent, because the setting VOUCHGATE_OFFLINE is on")
    return settings


def _known(store: Store, mail_id: str) -> Mail:
    from vouchgate.storage.outgoing import mail as mails

    with store.read() as connection:
        found = mails.get(connection, mail_id)
    if found is None:
        raise _unknown(mail_id)
    return found


def _unknown(mail_id: str) -> Failure:
    return Failure(f"there is no digest {mail_id[:64]!a}; vouchgate mail list shows the ids")
