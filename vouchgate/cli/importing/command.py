"""`vouchgate import` and its options; what it does is in `vouchgate.cli.importing.run`."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vouchgate.cli import operator

_FORMATS = (
    "jsonl, graph (memory.jsonl of the knowledge-graph server), mem0 (a JSON list; also of Letta and Zep), csv, "
    "langgraph, parquet, markdown (also a folder of documents). [default: recognised]"
)


def register(app: typer.Typer) -> None:
    """Adds this command."""
    app.command("import", epilog="Example: vouchgate import --dry-run memory.jsonl")(import_)


def import_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Memories of another store, a document or a folder of them; - for standard input.",
        ),
    ],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing: write a report of what is junk in the file.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A folder, or one .html, .md or .jsonl file (a line for each row). [default: ./vouchgate-audit.*]",
        ),
    ] = None,
    form: Annotated[str | None, typer.Option("--format", metavar="FORMAT", help=_FORMATS)] = None,
    map_: Annotated[
        Path | None,
        typer.Option(
            "--map", metavar="FILE", help="A TOML file that says which fields of the rows are what."
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Send through the service that runs there, not into the database; with --dry-run, "
            "what was found, for its owner (VOUCHGATE_TOKEN: a reviewer's) to clear.",
        ),
    ] = None,
    after: Annotated[
        int, typer.Option(min=0, metavar="N", help="With --url: go on behind the first so many rows.")
    ] = 0,
    owner: Annotated[
        str | None, typer.Option(metavar="ID", help="Whose the rows are that do not say it.")
    ] = None,
    memory_type: Annotated[str, typer.Option(metavar="TYPE", help="Of rows that do not say it.")] = "fact",
    source: Annotated[
        str,
        typer.Option(
            metavar="SOURCE",
            help="What is asserted for rows that do not say it; the token must be granted it.",
        ),
    ] = "ai_synthesis",
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="End after so many rows.")] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="With --dry-run, and of JSON lines or Parquet: look on a Dask cluster, local, local=4 (processes) or "
            "tls://HOST:PORT. It uses no network for what is cited.",
        ),
    ] = None,
    dask_ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The authority of the cluster's certificates, PEM.")
    ] = None,
    dask_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your certificate for the cluster, PEM.")
    ] = None,
    dask_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, PEM.")] = None,
    database_url: operator.DatabaseUrl = None,
    repo: operator.Repos = None,
    policy: operator.PolicyFile = None,
    offline: operator.Offline = False,
) -> None:
    """Send the memories of another store through the gate, or look at what is junk in them.

    Each row is a claim of the agent whose token VOUCHGATE_TOKEN is. Interrupt it whenever you like and run it
    again: what was decided is passed over. With --dry-run no token and no database are needed.
    """
    from vouchgate.cli.importing import run as command
    from vouchgate.importing.formats import Format
    from vouchgate.importing.mapping import read_mapping
    from vouchgate.importing.rows import KNOWN, Defaults
    from vouchgate.ingest.claims.claim import MemoryType, Source

    settings = operator.settings_for_texts(
        database_url=database_url,
        repo=repo,
        policy=policy,
        offline=offline or dask is not None or None,
        dask_ca=dask_ca,
        dask_cert=dask_cert,
        dask_key=dask_key,
    )
    asked = command.ImportRequest(
        file=file,
        form=None if form is None else operator.word(form, Format, "--format"),
        defaults=Defaults(
            owner=owner,
            memory_type=operator.word(memory_type, MemoryType, "--memory-type"),
            source=operator.word(source, Source, "--source"),
        ),
        limit=limit,
        fields=KNOWN if map_ is None else read_mapping(map_),
        map_file=map_,
    )
    if after and (url is None or dry_run):
        raise typer.BadParameter("goes with --url only, and without --dry-run", param_hint="--after")
    if report is not None and not dry_run:
        raise typer.BadParameter("goes with --dry-run only", param_hint="--report")
    if dask is not None and (limit is not None or url is not None or not dry_run):
        raise typer.BadParameter("goes with --dry-run, and without --limit and --url", param_hint="--dask")
    if url is not None and not dry_run:
        raise typer.Exit(command.send_to(url, asked, settings, after=after))
    raise typer.Exit(
        command.audit(asked, settings, report, dask, url) if dry_run else command.send(asked, settings)
    )
