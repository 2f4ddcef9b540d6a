"""`vouchgate log`, `db`, `backup`, `restore`, `replay` and `policy`: what an operator asks of the records."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.output import FAILED, USAGE, Failure, complain, hint, one_line, say, write_json

if TYPE_CHECKING:
    from vouchgate.storage.log.data.walk import Walk
    from vouchgate.storage.store import Store

log = typer.Typer(name="log", help="The append-only log of every action.", rich_markup_mode=None)
db = typer.Typer(name="db", help="The database.", rich_markup_mode=None)
policy = typer.Typer(name="policy", help="What claims are decided by.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    for group in (log, db, policy):
        app.add_typer(group)
    app.command(epilog="Example: vouchgate backup vouchgate-monday.backup")(backup)
    app.command(epilog="Example: vouchgate restore vouchgate-monday.backup --data")(restore)
    app.command(epilog="Example: vouchgate replay --all --database-url sqlite:///vouchgate.db")(replay)
    app.command(epilog="Example: vouchgate receipt DECISION_ID --token vg_… > receipt.json")(receipt)


@log.command("verify", epilog="Example: vouchgate log verify --data --database-url sqlite:///vouchgate.db")
def log_verify(
    data: Annotated[bool, typer.Option("--data", help="Hold every row against the log, too.")] = False,
    owner: Annotated[str | None, typer.Option(metavar="ID", help="Only this owner's. [default: all]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Check that the log is unbroken, and with --data that the rows are what it says.

    Walks every chain of it, makes the tree over all of them anew, and prints each break. With --data, what decisions,
    reviews, memories, tokens and the rest rest on is computed anew from the log, and each difference is named with its
    row. The service may go on meanwhile.
    The exit status is 1 when anything is found.
    """
    from vouchgate.cli.database import open_store, refuse_unknown_owner
    from vouchgate.gate.signing import missing_of_signed

    settings = operator.settings_from(database_url=database_url)
    with open_store(settings) as store:
        with store.read() as connection:
            refuse_unknown_owner(connection, owner)
        missing = None if owner is not None else missing_of_signed(settings, store)
        if not verify_log(store, owner, data=data, as_json=as_json, missing=missing):
            raise typer.Exit(FAILED)


def verify_log(
    store: Store, owner: str | None = None, *, data: bool, as_json: bool = False, missing: str | None = None
) -> bool:
    """Prints what is wrong with the log, what is `missing` of what was signed, and with `data` what the rows are that
    it does not commit to; whether nothing is."""
    from vouchgate.cli.progress import Progress
    from vouchgate.storage.log import chain as log
    from vouchgate.storage.log import tree_check
    from vouchgate.storage.log.data.walk import Walk

    found = 0
    with store.read() as connection:
        breaks = [
            *log.verify(connection, owner),
            *(tree_check.verify(connection) if owner is None else ()),
            *(() if missing is None else (missing,)),
        ]
    for sentence in breaks:
        write_json({"kind": "broken", "why": sentence}) if as_json else say(sentence)
    if data:
        with Progress("rows and entries looked at") as progress:
            walk = Walk(store.read, owner, progress)
            for difference in walk.differences():
                found += 1
                write_json(asdict(difference)) if as_json else say(str(difference))
        _close(walk, found, as_json=as_json)
    if breaks:
        complain(f"the log is broken in {len(breaks)} places; restore the database from a backup and compare")
    elif not as_json:
        say("The log is unbroken.")
    return not (breaks or found)


def _close(walk: Walk, found: int, *, as_json: bool) -> None:
    """What was looked at, what no entry commits to, and what can not be shown at all."""
    if as_json:
        uncovered = dict(sorted(walk.uncovered.items()))
        write_json({"kind": "end", "looked_at": walk.seen, "differences": found, "uncovered": uncovered})
        return
    for what, many in sorted(walk.uncovered.items()):
        say(f"not covered: {many:,} times {what}")
    say(f"Looked at {walk.seen:,} rows and entries: {found or 'no'} difference{'s' if found != 1 else ''}.")
    say("Not shown: whoever can write the whole file can make rows and chain anew so that they agree.")


@log.command("keys", epilog="Example: vouchgate log keys --add")
def log_keys(
    *,
    add: Annotated[bool, typer.Option("--add", help="Make one more key, in the file of keys.")] = False,
    retire: Annotated[
        str | None, typer.Option(metavar="ID", help="End a key. What it signed stays valid.")
    ] = None,
    rename: Annotated[
        str | None,
        typer.Option(metavar="ORIGIN", help="Give the log another name, after entries were lost for good."),
    ] = None,
    database_url: operator.DatabaseUrl = None,
    as_json: operator.Json = False,
) -> None:
    """Show the keys that sign the log, add one or end one.

    To change keys: --add, restart the service, tell those who check the log, and after a while --retire the old one.
    Checkpoints are signed by every key that is in use.
    """
    from datetime import UTC, datetime

    from vouchgate.cli.database import open_store
    from vouchgate.cli.identity.tokens import ACTOR
    from vouchgate.gate.signing import add_key, read_keys
    from vouchgate.storage.log import keys

    settings, now = operator.settings_from(database_url=database_url), datetime.now(UTC)
    if add + (retire is not None) + (rename is not None) > 1:
        raise typer.BadParameter("give one of --add, --retire and --rename")
    with open_store(settings) as store:
        with store.read() as connection:
            origin = keys.origin(connection)
        if origin is None:
            raise Failure("the log was never signed: start the service, which makes its first key")
        try:
            if add:
                keys.add(store, add_key(settings, origin).key, actor=ACTOR, now=now)
            elif retire is not None:
                keys.retire(store, retire, actor=ACTOR, now=now)
            elif rename is not None:
                kept = [each.key for each in read_keys(settings)]
                keys.rename(store, rename, kept, actor=ACTOR, now=now)
        except ValueError as error:
            raise Failure(str(error), USAGE) from error
        with store.read() as connection:
            found = keys.known(connection)
    if add or retire or rename:
        hint("Restart the service, so that it signs with these.")
    if as_json:
        for each in found:
            times = {"added_at": each.added_at, "retired_at": each.retired_at}
            write_json(
                {"id": each.id, "key": str(each.key)} | {n: at and at.isoformat() for n, at in times.items()}
            )
    else:
        for each in found:
            say(f"{'ended ' if each.retired_at else 'in use'}  {each.key}")


@db.command("upgrade", epilog="Example: vouchgate db upgrade --database-url sqlite:///vouchgate.db")
def db_upgrade(database_url: operator.DatabaseUrl = None) -> None:
    """Make the tables, or bring them up to date."""
    from vouchgate.settings import database_to_open
    from vouchgate.storage.engine import migrate, needs_migration, open_engine

    engine = open_engine(database_to_open(operator.settings_from(database_url=database_url)))
    try:
        needed = needs_migration(engine)
        migrate(engine)
    finally:
        engine.dispose()
    say("The database was brought up to date." if needed else "The database is up to date.")


@db.command("scrub", epilog="Example: vouchgate db scrub --database-url sqlite:///vouchgate.db")
def db_scrub(database_url: operator.DatabaseUrl = None) -> None:
    """Write over free pages, where copies of what was erased may be. Nobody can write meanwhile."""
    from vouchgate.cli.database import open_store

    with open_store(operator.settings_from(database_url=database_url)) as store:
        store.scrub()
    say("Free pages were written over.")


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup; nothing may be there yet.")],
    key: Annotated[
        bool, typer.Option("--key", help="Put the key that signs the log in, too. Whoever has both can sign.")
    ] = False,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Copy the whole database into one file, as it is at one moment. The service goes on meanwhile.

    In it are the list of erasures and a manifest with digests and the head of the log. It holds every text, so only you
    may read it. PostgreSQL is copied by pg_dump.
    """
    from vouchgate.cli.records.backups import make_backup
    from vouchgate.gate.signing import key_file

    settings = operator.settings_from(database_url=database_url)
    made = make_backup(settings, file, with_key=key, now=datetime.now(UTC))
    parts = ", ".join(f"{name} ({part.bytes:,} bytes)" for name, part in made.parts.items())
    say(f"{one_line(str(file))}: {parts}.")
    if made.log is not None:
        say(f"The log's tree has {made.log.size:,} entries and the root {made.log.root}.")
    if not key and (path := key_file(settings)) is not None and path.exists():
        hint(f"Not in it is the key of the log, {path}: keep a copy in another place.")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `vouchgate backup` wrote.")],
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Give a database that is there another name first.")
    ] = False,
    data: Annotated[bool, typer.Option("--data", help="Hold every row against the log, too.")] = False,
    database_url: operator.DatabaseUrl = None,
    policy: operator.PolicyFile = None,
) -> None:
    """Bring a backup back, held against its digests and its log. Stop the service first.

    Its tables are brought up to date, and what was erased since is erased again. Last it says what the log needs.
    Exit status 1: nothing was put in place (with PostgreSQL: the database named is not to be used).
    """
    from vouchgate.cli.records.backups import restore_backup

    restore_backup(
        operator.settings_from(database_url=database_url, policy=policy),
        file,
        replace=replace,
        tell=say,
        verify=lambda store: verify_log(store, data=data),
        now=datetime.now(UTC),
    )


@db.command("partition", epilog="Example: vouchgate db partition --into 16 --database-url postgresql://…")
def db_partition(
    into: Annotated[int, typer.Option(min=2, metavar="N", help="How many partitions each large table gets.")],
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Cut the large tables of a PostgreSQL database into partitions by owner. Stop the services first.

    It is one transaction, which keeps what is there or changes nothing. It takes as long as copying the tables, and as
    much room again until it is done.
    """
    from vouchgate.cli.database import open_existing
    from vouchgate.storage.engine import writing
    from vouchgate.storage.tables.partitions import partition

    engine = open_existing(operator.settings_from(database_url=database_url))
    try:
        with writing(engine) as connection:
            counted = partition(connection, into)
    finally:
        engine.dispose()
    for name, rows in counted.items():
        say(f"{name}: {rows:,} rows in {into} partitions")


@db.command("doctor", epilog="Example: vouchgate db doctor --distributed --statements statements.txt")
def db_doctor(
    distributed: Annotated[
        bool, typer.Option("--distributed", help="What does not go by owner, in tables and statements.")
    ] = False,
    statements: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="SQL that a service sent, one statement a line, as PostgreSQL logs it."
        ),
    ] = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Tell whether the database can be spread over machines by owner.

    Names each table, unique index, trigger and sequence, and each way in which a statement finds rows, that does not go
    by owner, and why that may be so. The exit status is 1 when for one of them nobody has said why.
    """
    from vouchgate.cli.looking import distributed as command

    if not distributed:
        raise typer.BadParameter("say what to look at: --distributed", param_hint="--distributed")
    raise typer.Exit(command.run(operator.settings_from(database_url=database_url), statements))


Owner = Annotated[str | None, typer.Option(metavar="ID", help="Only this owner's. [default: all]")]


@policy.command("show", epilog="Example: vouchgate policy show --at 2026-11-01")
def policy_show(
    digest: Annotated[
        str | None, typer.Argument(metavar="[DIGEST]", help="Of one that was kept; its beginning is enough.")
    ] = None,
    at: Annotated[
        datetime | None,
        typer.Option("--at", metavar="TIME", help="What was in force then (UTC), with owners' own words."),
    ] = None,
    owner: Owner = None,
    policy: operator.PolicyFile = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Print a policy as JSON, with its digest: that of the settings, one by its digest, or that of a time."""
    from vouchgate.cli.looking import policies as command

    if digest is not None and at is not None:
        raise typer.BadParameter("give a DIGEST or --at", param_hint="--at")
    settings = operator.settings_from(policy=policy, database_url=database_url)
    if digest is None and at is None:
        command.write_policy(command.named(settings, command.NOW))
        return
    raise typer.Exit(command.show(settings, digest, at and at.replace(tzinfo=UTC), owner))


@policy.command("diff", epilog="Example: vouchgate policy diff 3fa9 strict.toml")
def policy_diff(
    first: Annotated[str, typer.Argument(metavar="A", help="A file, a digest, or now.")],
    second: Annotated[str, typer.Argument(metavar="[B]", help="The same.")] = "now",
    policy: operator.PolicyFile = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Say how two policies differ, field by field."""
    from vouchgate.cli.looking import policies as command

    settings = operator.settings_from(policy=policy, database_url=database_url)
    raise typer.Exit(command.diff(settings, first, second))


@policy.command("test", epilog="Example: vouchgate policy test strict.toml --since 2026-11-01")
def policy_test(
    other: Annotated[str, typer.Argument(metavar="NEW", help="A file, a digest, or now.")],
    *,
    since: Annotated[
        datetime | None, typer.Option(metavar="TIME", help="Only decisions from then (UTC) on.")
    ] = None,
    owner: Owner = None,
    as_json: operator.Json = False,
    policy: operator.PolicyFile = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Make every decision again under another policy, and say what would have gone elsewhere.

    From what was kept alone, each by itself; what cannot be judged from that is counted apart. Nothing is written.
    """
    from vouchgate.cli.looking import policies as command

    settings = operator.settings_from(policy=policy, database_url=database_url)
    first = since and since.replace(tzinfo=UTC)
    raise typer.Exit(command.test(settings, other, since=first, owner=owner, as_json=as_json))


def receipt(
    decision: Annotated[str, typer.Argument(metavar="DECISION_ID")],
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the service is; or set VOUCHGATE_URL.")
    ] = None,
    token: operator.Token = None,
) -> None:
    """Fetch the proof that the log is bound to a decision.

    It is checked with `vouchgate-verify`, without the service. The exit status is 1 while there is none yet.
    """
    from vouchgate.client import Client, VouchgateError

    try:
        with Client(url, token) as client:
            found = client.receipt(decision)
    except (VouchgateError, ValueError) as error:
        raise Failure(str(error)) from error
    if found.proof is None:
        raise Failure("there is no receipt yet: ask again in a second")
    write_json(found.model_dump())


def replay(
    decision: Annotated[list[str] | None, typer.Argument(metavar="DECISION_ID")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every decision in the database.")] = False,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Make stored decisions again, from their evidence alone.

    Every difference is printed. Each decision is made with the policy that was in force, and nothing is
    looked up. Statements are held again against the texts of their sources, as far as these are kept; a text
    that is gone is no difference, nor is what was erased. Exit status 1 on a difference.
    """
    from vouchgate.cli.database import open_store
    from vouchgate.cli.records.replay import Replayer, documents
    from vouchgate.storage.erasing import tombstones

    if bool(decision) == everything:
        raise typer.BadParameter("name decisions, or say --all", param_hint="DECISION_ID")
    same = different = gone = erased = 0
    settings = operator.settings_from(database_url=database_url)
    with open_store(settings) as store, store.read() as connection:
        replayer, erased_ids = Replayer(store), tombstones.without_text(connection)
        for decision_id, document in documents(connection, decision or []):
            if decision_id in erased_ids:
                erased += 1
                continue
            differences, without_text = replayer.replay(connection, document)
            for sentence in differences:
                say(f"{decision_id}: {sentence}")
            gone += len(without_text)
            for source in without_text if decision else ():
                say(f"{decision_id}: source text gone: {source}")
            different += bool(differences)
            same += not differences
    say(f"{same + different} decisions: {same} the same when made again, {different} not.")
    if erased:
        say(f"Erased, or what they showed of others was: {erased}. They cannot be made again.")
    if gone:
        say(f"The texts of {gone} sources are not kept any more; what was kept of them was replayed.")
    raise typer.Exit(FAILED if different else 0)
