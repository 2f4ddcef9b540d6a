"""The commands of `vouchgate review` that rule on nothing: snooze, assign, look, send back, saved views."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from vouchgate.cli.operator import DatabaseUrl, Latest, Token, Version, choose_version, review, settings_from

Ids = Annotated[list[str], typer.Argument(metavar="ID...")]


@review.command("snooze", epilog="Example: vouchgate review snooze ID --until 3d")
def review_snooze(
    items: Ids,
    *,
    until: Annotated[str, typer.Option(metavar="WHEN", help="A day, a time, or 12h, 3d, 2w from now.")],
    database_url: DatabaseUrl = None,
    token: Token = None,
) -> None:
    """Take items out of the list until then. They keep their places and expire when they would have."""
    from vouchgate.cli.reviewing import many
    from vouchgate.review.attending.attention import snooze

    act, said = partial(snooze, until=many.later(until)), "snoozed until {item.snoozed_until:%Y-%m-%d %H:%M}Z"
    raise typer.Exit(many.attend(settings_from(database_url=database_url, token=token), items, said, act))


@review.command("resume", epilog="Example: vouchgate review resume ID")
def review_resume(items: Ids, *, database_url: DatabaseUrl = None, token: Token = None) -> None:
    """Have items that are snoozed or sent back stand in the list again, at once."""
    from vouchgate.cli.reviewing import many
    from vouchgate.review.attending.attention import resume

    settings = settings_from(database_url=database_url, token=token)
    raise typer.Exit(many.attend(settings, items, "in the list again", resume))


@review.command("assign", epilog="Example: vouchgate review assign ID --to bea")
def review_assign(
    items: Ids,
    *,
    to: Annotated[
        str, typer.Option(metavar="WHO", help="me, nobody, or the name or id of a reviewer's token.")
    ],
    database_url: DatabaseUrl = None,
    token: Token = None,
) -> None:
    """Say who is to rule on items. Every other reviewer of the owner still can."""
    from vouchgate.cli.reviewing import many
    from vouchgate.review.attending.attention import assign

    settings, act = settings_from(database_url=database_url, token=token), partial(assign, to=to)
    raise typer.Exit(many.attend(settings, items, "assigned to {item.assigned_to}", act))


@review.command("look", epilog="Example: vouchgate review look ID")
def review_look(
    items: Ids,
    *,
    stop: Annotated[bool, typer.Option("--stop", help="You look at them no longer.")] = False,
    database_url: DatabaseUrl = None,
    token: Token = None,
) -> None:
    """Tell others for some minutes that you look at items. It keeps nobody from anything."""
    from vouchgate.cli.reviewing import many
    from vouchgate.review.attending.attention import look

    settings, act = settings_from(database_url=database_url, token=token), partial(look, stop=stop)
    raise typer.Exit(many.attend(settings, items, "looked at by {item.viewer}", act))


@review.command(
    "send-back", epilog="Example: vouchgate review send-back ID --latest --question 'Which page?'"
)
def review_send_back(
    item: Annotated[str, typer.Argument(metavar="ID")],
    *,
    question: Annotated[str, typer.Option(metavar="TEXT", help="What its agent is asked.")],
    version: Version = None,
    latest: Latest = False,
    database_url: DatabaseUrl = None,
    token: Token = None,
) -> None:
    """Ask an item's agent for a source. Until it answers, the item is out of the list."""
    from vouchgate.cli.reviewing import many
    from vouchgate.review.attending.attention import send_back

    act = partial(send_back, version=choose_version(version, latest), question=question)
    settings = settings_from(database_url=database_url, token=token)
    raise typer.Exit(many.attend(settings, [item], "sent back to its agent", act))


@review.command("views", epilog="Example: vouchgate review views --save mine 'assigned:me before:7d'")
def review_views(
    *,
    save: Annotated[
        tuple[str, str] | None, typer.Option(metavar="NAME QUERY", help="Keep a query under a name.")
    ] = None,
    delete: Annotated[str | None, typer.Option(metavar="NAME", help="Forget one.")] = None,
    database_url: DatabaseUrl = None,
    token: Token = None,
) -> None:
    """List your saved queries, keep one, or forget one."""
    from vouchgate.cli.output import Failure, say
    from vouchgate.cli.review import open_review_session
    from vouchgate.review.attending import views
    from vouchgate.storage.queue.query import QueryError

    with open_review_session(settings_from(database_url=database_url, token=token)) as desk:
        if save is not None:
            try:
                kept = views.save(desk.store, desk.principal, *save, datetime.now(UTC))
            except QueryError as error:
                raise Failure(str(error)) from error
            if isinstance(kept, views.TooManyViews):
                raise Failure("you have as many views as there can be; delete one first")
        if delete is not None and not views.remove(desk.store, desk.principal, delete):
            raise Failure(f"there is no view {delete!r}")
        for view in views.listing(desk.store, desk.principal):
            say(f"{view.name}  {view.query}")
