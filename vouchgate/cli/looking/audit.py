"""`vouchgate audit`: what an auditor takes along."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from vouchgate.cli import operator
from vouchgate.cli.importing.command import import_


class _OrMemories(TyperGroup):
    """What is no command of the group is a file of memories, or an option before one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["memories", *args]
        return super().parse_args(ctx, args[:1] + ["--dry-run"] * (args[:1] == ["memories"]) + args[1:])


audit = typer.Typer(
    name="audit",
    cls=_OrMemories,
    help="What is junk in a file of memories; and what happened, for auditors: who ruled on what, and all of a period.",
    rich_markup_mode=None,
)

Since = Annotated[str | None, typer.Option("--from", metavar="TIME", help="From then on: a day or a time.")]
Until = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Before then.")]
Owners = Annotated[
    list[str] | None, typer.Option("--owner", metavar="ID", help="Only this one's. Repeat it.")
]
Token = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN", help="An auditor's: only for its owners; or set VOUCHGATE_TOKEN. [default: all]"
    ),
]


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(audit)
    example = "Example: vouchgate audit memories.jsonl --dask local=4 --report rows.jsonl"
    audit.command("memories", help="The same as import --dry-run.", epilog=example)(import_)


@audit.command(
    "reviews", epilog="Example: vouchgate audit reviews --from 2026-10-01 --to 2027-01-01 > reviews.csv"
)
def audit_reviews(
    *,
    since: Since = None,
    until: Until = None,
    owner: Owners = None,
    reviewer: Annotated[
        str | None, typer.Option(metavar="WHO", help="Only of this one: a name or id of a token or person.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="csv or jsonl.")] = "csv",
    token: Token = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Print who ruled on what, when, after how long a look, alone or in bulk, and what became of it.

    One line a ruling or vote, by owner and time. A look begins when the claim was first opened on a page; empty where
    that is not known. Reads the database; the service may go on meanwhile.
    """
    from vouchgate.cli.looking import reviews

    settings = operator.settings_from(database_url=database_url, token=token)
    raise typer.Exit(
        reviews.run(settings, since=since, until=until, owners=owner, reviewer=reviewer, form=format_)
    )


@audit.command(
    "export",
    epilog="Example: vouchgate audit export --owner ann --from 2026-10-01 --to 2027-01-01 --out q4.zip",
)
def audit_export(
    *,
    out: Annotated[Path, typer.Option(metavar="DIR|FILE.zip", help="What to write; it must not be there.")],
    since: Since = None,
    until: Until = None,
    owner: Owners = None,
    token: Token = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Write the decisions, the log and the rulings of a period as files that others can check offline.

    Every decision as it was answered and as a signed in-toto Statement, with its policy and receipt; CSV and PROV-JSON
    beside; VERIFY.md says how to check it. The service may go on meanwhile.
    """
    from vouchgate.cli.looking import export

    settings = operator.settings_from(database_url=database_url, token=token)
    raise typer.Exit(export.run(settings, out, since=since, until=until, owners=owner))
