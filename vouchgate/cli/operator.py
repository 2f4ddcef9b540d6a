"""The commands for the review queue, and the options that many commands share."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import StrEnum

    from vouchgate.cli.reviewing.many import Choice
    from vouchgate.settings import Settings

E = TypeVar("E", bound="StrEnum")
V = TypeVar("V")

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="sqlite:///file.db (an absolute path has four slashes) or postgresql://…"
    ),
]
PolicyFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A TOML file laid over the built-in policy.")
]
Token = Annotated[
    str | None, typer.Option(metavar="TOKEN", help="A reviewer's token; or set VOUCHGATE_TOKEN.")
]
Repos = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DIR",
        help="A git work tree, or an address, that ADRs, commits, files and code are checked in. Repeat it.",
    ),
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Use no network; what lives elsewhere is then UNKNOWN.")
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


PublicUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Where people open the pages; or set VOUCHGATE_PUBLIC_URL."),
]

review = typer.Typer(
    name="review",
    help="See what waits for its owner, approve or reject it, or take that back.",
    rich_markup_mode=None,
)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    from vouchgate.cli.reviewing import commands  # noqa: F401  (it adds its own to `review`)

    app.add_typer(review)


def settings_from(**flags: object) -> Settings:
    """Flags over environment over file. Raises SettingsError."""
    from vouchgate.settings import load_settings

    return load_settings(os.environ, **flags)


def settings_for_texts(**flags: object) -> Settings:
    """As `settings_from`, for a command that looks for citations: of all kinds that this installation has, from now on.
    Raises SettingsError."""
    from vouchgate.sources.plugins import install_kinds

    settings = settings_from(**flags)
    install_kinds(settings)
    return settings


def word(text: str, kind: type[E], option: str) -> E:
    """The member of an enum that a word names; a usage error that lists the known ones otherwise."""
    return _one_of(text, {member.value: member for member in kind}, option)


def _one_of(text: str, known: Mapping[str, V], option: str) -> V:
    """What a word stands for; a usage error that lists the known ones otherwise."""
    if text not in known:
        message = f"{text!r} is unknown; known are {', '.join(known)}"
        raise typer.BadParameter(message, param_hint=option)
    return known[text]


@review.command("list", epilog="Example: VOUCHGATE_TOKEN=vg_… vouchgate review list")
def review_list(
    *,
    database_url: DatabaseUrl = None,
    token: Token = None,
    status: Annotated[
        str, typer.Option(metavar="STATUS", help="pending, approved, rejected, let_go, expired or promoted.")
    ] = "pending",
    order: Annotated[
        str, typer.Option(metavar="ORDER", help="priority (what presses most first), oldest or newest.")
    ] = "priority",
    reason: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Only: conflict, hedge, refuted (a citation that does not hold), unchecked (one that could not "
            "be checked yet), unknown (not comparable with what is stored) or ungrounded.",
        ),
    ] = None,
    query: Filter = None,
    view: Annotated[str | None, typer.Option(metavar="NAME", help="As --filter, by a saved name.")] = None,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Show what comes after this item.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, metavar="N", help="At most so many items.")] = 50,
    as_json: Json = False,
) -> None:
    """Show your queue, what presses most first."""
    from vouchgate.cli import review as command
    from vouchgate.cli.reviewing import many
    from vouchgate.ingest.claims.waiting import ReviewStatus
    from vouchgate.storage.queue.query import NO_QUERY

    settings = settings_from(database_url=database_url, token=token)
    if query is not None and view is not None:
        raise typer.BadParameter("give --filter or --view", param_hint="--view")
    answer = command.listing(
        settings,
        status=word(status, ReviewStatus, "--status"),
        order=_one_of(order, command.ORDERS, "--order"),
        rule=None if reason is None else _one_of(reason, command.REASONS, "--reason"),
        query=NO_QUERY if query is None else many.parsed(query),
        view=view,
        after=after,
        limit=limit,
        as_json=as_json,
    )
    raise typer.Exit(answer)


@review.command("show", epilog="Example: vouchgate review show ID --token vg_…")
def review_show(
    item: Annotated[str, typer.Argument(metavar="ID")],
    database_url: DatabaseUrl = None,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Show one item, why it waits, and its version."""
    from vouchgate.cli import review as command

    settings = settings_from(database_url=database_url, token=token)
    raise typer.Exit(command.show(settings, item, as_json=as_json))


@review.command("digest", epilog="Example: vouchgate review digest --hours 24 --token vg_…")
def review_digest(
    *,
    hours: Annotated[
        int, typer.Option(min=1, max=24 * 366, metavar="N", help="Tell what happened in so many hours.")
    ] = 24,
    owner: Annotated[str | None, typer.Option(metavar="ID", help="Of a token that has several.")] = None,
    public_url: PublicUrl = None,
    database_url: DatabaseUrl = None,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Sum up what waits for you and what happened.

    Plain text for a daily mail: `vouchgate review digest | mail -s Claims ann` in a timer.
    """
    from vouchgate.cli.reviewing import digest as command

    settings = settings_from(database_url=database_url, token=token, public_url=public_url)
    raise typer.Exit(command.digest(settings, hours=hours, owner=owner, as_json=as_json))


Version = Annotated[
    int | None,
    typer.Option(min=1, max=2**31 - 1, metavar="N", help="The version you looked at, from `review show`."),
]
Latest = Annotated[bool, typer.Option("--latest", help="Whatever version it is in now.")]


def choose_version(version: int | None, latest: bool) -> int | None:
    """The version that an act names; None is whichever it is in. A usage error unless one of both is given."""
    if (version is None) != latest:
        raise typer.BadParameter("say which version you looked at, or --latest", param_hint="--version")
    return version


Items = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", show_default=False)]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filter", metavar="QUERY", help="All that it finds: words, agent:, reason:, source:, before: …"
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell which items, and how many.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask, about what --filter found.")]


def _choice(
    items: list[str] | None,
    query: str | None,
    *,
    version: int | None = None,
    latest: bool = True,
    dry_run: bool,
    yes: bool,
) -> Choice:
    from vouchgate.cli.reviewing.many import Choice

    ids = items or []
    if bool(ids) == (query is not None):
        raise typer.BadParameter("name items, or give a --filter")
    if query is not None:
        if version is not None:
            raise typer.BadParameter(
                "is for one item; --filter names versions itself", param_hint="--version"
            )
        return Choice(query=query, dry_run=dry_run, yes=yes)
    if len(ids) > 1 and version is not None:
        raise typer.BadParameter("is for one item; say --latest", param_hint="--version")
    return Choice(ids, version=choose_version(version, latest), dry_run=dry_run, yes=yes)


@review.command("approve", epilog="Example: vouchgate review approve ID --version 1 --note 'checked by hand'")
def review_approve(
    items: Items = None,
    *,
    version: Version = None,
    latest: Latest = False,
    query: Filter = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Kept with each item.")] = None,
    supersede: Annotated[
        bool | None,
        typer.Option("--supersede/--keep-both", help="What becomes of a stored memory it conflicts with."),
    ] = None,
    database_url: DatabaseUrl = None,
    token: Token = None,
    policy: PolicyFile = None,
) -> None:
    """Store what waits: you vouch for it. Items, or all that a query finds."""
    from vouchgate.cli import review as command
    from vouchgate.cli.reviewing import many

    chosen = _choice(items, query, version=version, latest=latest, dry_run=dry_run, yes=yes)
    settings = settings_from(database_url=database_url, token=token, policy=policy)
    act = partial(command.approve, note=note, supersede=supersede)
    raise typer.Exit(many.rule_on(settings, chosen, "approve", act))


@review.command(
    "reject", epilog="Example: vouchgate review reject --filter 'agent:importer kettle' --reason 'too vague'"
)
def review_reject(
    items: Items = None,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Kept with each item.")],
    version: Version = None,
    latest: Latest = False,
    query: Filter = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    token: Token = None,
) -> None:
    """End the wait of items without storing them."""
    from vouchgate.cli import review as command
    from vouchgate.cli.reviewing import many

    chosen = _choice(items, query, version=version, latest=latest, dry_run=dry_run, yes=yes)
    settings = settings_from(database_url=database_url, token=token)
    raise typer.Exit(many.rule_on(settings, chosen, "reject", partial(command.reject, reason=reason)))


@review.command(
    "let-go",
    epilog="Example: vouchgate review let-go --filter 'reason:ungrounded before:20d' --reason 'no source'",
)
def review_let_go(
    items: Items = None,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Kept with each item.")],
    query: Filter = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    token: Token = None,
) -> None:
    """End the wait of what can never be decided well. It says nothing of whether it is so."""
    from vouchgate.cli.reviewing import many

    chosen = _choice(items, query, dry_run=dry_run, yes=yes)
    settings = settings_from(database_url=database_url, token=token)
    raise typer.Exit(many.let_go(settings, chosen, reason))


@review.command("undo", epilog="Example: vouchgate review undo ID --version 2")
def review_undo(
    item: Annotated[str, typer.Argument(metavar="ID")],
    *,
    version: Version = None,
    latest: Latest = False,
    database_url: DatabaseUrl = None,
    token: Token = None,
    policy: PolicyFile = None,
) -> None:
    """Take an approval or a rejection back: the item waits again."""
    from vouchgate.cli import review as command

    seen = choose_version(version, latest)
    settings = settings_from(database_url=database_url, token=token, policy=policy)
    raise typer.Exit(command.undo(settings, item, version=seen))


@review.command("publisher", epilog="Example: vouchgate review publisher example.com --trust --days 90")
def review_publisher(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A domain, or an account: github.com/alice.")
    ] = None,
    *,
    trust: Annotated[bool, typer.Option("--trust", help="It counts as listed, for your memories.")] = False,
    ban: Annotated[bool, typer.Option("--ban", help="It vouches for nothing of yours.")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Take your word on it back.")] = False,
    days: Annotated[int, typer.Option(min=1, max=3650, metavar="N", help="For how long.")] = 365,
    owner: Annotated[str | None, typer.Option(metavar="ID", help="Of a token that has several.")] = None,
    database_url: DatabaseUrl = None,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Trust or ban a publisher, or list what you said. It counts for claims that come from then on."""
    from vouchgate.cli import review as command
    from vouchgate.ingest.claims.trust import Trust

    settings = settings_from(database_url=database_url, token=token)
    if trust + ban + clear != (name is not None):
        raise typer.BadParameter("give a NAME with one of --trust, --ban and --clear; or nothing, to list")
    if name is None:
        raise typer.Exit(command.list_publishers(settings, as_json=as_json))
    said = None if clear else Trust.TRUSTED if trust else Trust.BANNED
    raise typer.Exit(command.decide_publisher(settings, name, trust=said, days=days, owner=owner))


@review.command("standing", epilog="Example: vouchgate review standing --item rev_… --reject --term template")
def review_standing(
    *,
    item: Annotated[str | None, typer.Option(metavar="ID", help="Whose ruling it is made of.")] = None,
    store: Annotated[bool, typer.Option("--store", help="Store claims like it.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject claims like it.")] = False,
    term: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="What makes a claim like it. Repeat it.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Confirm it, under this name; else it is a preview.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, metavar="N", help="For how long.")] = 90,
    end: Annotated[str | None, typer.Option(metavar="ID", help="Take this standing ruling back.")] = None,
    then: Annotated[str, typer.Option(metavar="WHAT", help="What it did: keep, queue or retract.")] = "keep",
    database_url: DatabaseUrl = None,
    policy: PolicyFile = None,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Make a standing ruling, take one back, or list them with what each did."""
    from vouchgate.cli.reviewing import standing as command
    from vouchgate.ingest.claims.trust import RulingVerdict
    from vouchgate.review.trust.taking_back import Then

    settings = settings_from(database_url=database_url, policy=policy, token=token)
    if store + reject != (item is not None) or (item and end) or then not in tuple(Then):
        raise typer.BadParameter(
            "give --item with --store or --reject; or --end with --then; or nothing, to list"
        )
    if end is not None:
        raise typer.Exit(command.end_ruling(settings, end, Then(then)))
    if item is None:
        raise typer.Exit(command.list_rulings(settings, as_json=as_json))
    verdict = RulingVerdict.STORE if store else RulingVerdict.REJECT
    terms = term or ["agent", "kind", "template"]
    raise typer.Exit(command.make_ruling(settings, item, verdict, terms=terms, days=days, name=name))
