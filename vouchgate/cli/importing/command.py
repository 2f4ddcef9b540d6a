"""`vouchgate import` and its options; what it does is in `vouchgate.cli.importing.run`."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator

if TYPE_CHECKING:
    from vouchgate.cli.importing.run import ImportRequest

_FORMATS = (
    "jsonl, graph (memory.jsonl of the knowledge-graph server), mem0, langgraph, parquet, markdown (also a folder of "
    "documents). [default: recognised]"
)

Report = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="A folder, or one .html, .md or .jsonl file (a line for each row). [default: ./vouchgate-audit.*]",
    ),
]
FormatName = Annotated[str | None, typer.Option("--format", metavar="FORMAT", help=_FORMATS)]
Owner = Annotated[str | None, typer.Option(metavar="ID", help="Whose the rows are that do not say it.")]
Type = Annotated[str, typer.Option(metavar="TYPE", help="Of rows that do not say it.")]
SourceName = Annotated[
    str,
    typer.Option(
        metavar="SOURCE", help="What is asserted for rows that do not say it; the token must be granted it."
    ),
]


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
    report: Report = None,
    form: FormatName = None,
    owner: Owner = None,
    memory_type: Type = "fact",
    source: SourceName = "ai_synthesis",
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="End after so many rows.")] = None,
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

    settings = operator.settings_from(
        database_url=database_url, repo=repo, policy=policy, offline=offline or None
    )
    asked = requested(file, form, owner, memory_type, source, limit)
    if report is not None and not dry_run:
        raise typer.BadParameter("goes with --dry-run only", param_hint="--report")
    raise typer.Exit(command.audit(asked, settings, report) if dry_run else command.send(asked, settings))


def requested(  # noqa: PLR0917  (as the options stand)
    file: str, form: str | None, owner: str | None, memory_type: str, source: str, limit: int | None = None
) -> ImportRequest:
    """What the options say of the file; a usage error for a word that is none."""
    from vouchgate.cli.importing.run import ImportRequest
    from vouchgate.importing.formats import Format
    from vouchgate.importing.rows import Defaults
    from vouchgate.ingest.claims.claim import MemoryType, Source

    return ImportRequest(
        file=file,
        form=None if form is None else operator.word(form, Format, "--format"),
        defaults=Defaults(
            owner=owner,
            memory_type=operator.word(memory_type, MemoryType, "--memory-type"),
            source=operator.word(source, Source, "--source"),
        ),
        limit=limit,
    )
