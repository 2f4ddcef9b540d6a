"""The commands, their options and their help. What each does is in the module of its name, loaded when it runs.

`app` holds the commands of every day; the others are in a module for each group of them.
"""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs, so that `detect` starts fast)

from __future__ import annotations

import errno
import io
import sys
import traceback
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from vouchgate.cli import deliveries, index, mcp, mcp_gate, operator, output, webhooks
from vouchgate.cli.identity import modes, people, signing_in, tokens
from vouchgate.cli.importing import command as imports
from vouchgate.cli.lines.hook import hook
from vouchgate.cli.looking import audit, impact
from vouchgate.cli.records import commands as records
from vouchgate.cli.reviewing import erasing, mail
from vouchgate.extras import missing

PORTS = {"min": 0, "max": 65535}

# Exceptions whose message says what is wrong. By name, so that nothing is loaded to ask.
_EXPECTED = {
    "vouchgate.importing.bulk.run.BulkError",
    "vouchgate.importing.rows.Unreadable",
    "vouchgate.sources.repositories.RepositoryError",
    "vouchgate.settings.SettingsError",
    "vouchgate.ingest.data.policy_file.PolicyError",
    "vouchgate.review.vouching.owner_rules.OwnerRulesError",
    "vouchgate.storage.errors.StorageError",
}


# What a machine refuses to do with a path that it was given, where no other sentence was found for it.
_REFUSED = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EMFILE,
    errno.ENFILE,
}


class _Root(typer.core.TyperGroup):
    """Commands, of which a name may have two words: `mcp-gate` takes any words itself, so it can be no group."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        joined = " ".join(args[:2])
        return super().resolve_command(ctx, [joined, *args[2:]] if joined in self.commands else args)


app = typer.Typer(
    name="vouchgate",
    cls=_Root,
    help="A gatekeeper for AI memory: a claim is stored only when something other than the model vouches for it.",
    epilog="Start with: vouchgate demo",
    rich_markup_mode=None,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Corpora = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=DIR", help="A folder of documents that claims are looked up in. Repeat it."),
]
Input = Annotated[str, typer.Argument(metavar="FILE", help="A file of JSON lines, or - for standard input.")]

Official = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB",
        help="What may make a FACT: files of the repository, such as docs/**/*.md, or corpus:NAME. Repeat it.",
    ),
]
_CHECK_EXAMPLE = 'Example: vouchgate check "Per ADR-003, sessions live in Redis" --repo .'


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        output.say(f"vouchgate {version('vouchgate')}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        output.hint(context.get_help())
        raise typer.Exit(output.USAGE)


@app.command(epilog="Example: vouchgate serve --repo . --port 8080")
def serve(
    *,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The address to listen on. [default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(**PORTS, metavar="PORT", help="The port; 0 picks a free one. [default: 8080]"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=64, metavar="N", help="How many processes answer at the port. [default: 1]"),
    ] = None,
    database_url: operator.DatabaseUrl = None,
    repo: operator.Repos = None,
    policy: operator.PolicyFile = None,
    offline: operator.Offline = False,
) -> None:
    """Run the service.

    It makes or migrates its database by itself. On the very first start it makes two tokens, one for an agent
    and one for the owner of what the agent sends, and shows them once.
    """
    settings = operator.settings_from(
        host=host,
        port=port,
        workers=workers,
        database_url=database_url,
        repo=repo,
        policy=policy,
        offline=offline or None,
    )
    from vouchgate.cli import serve as command

    raise typer.Exit(command.run(settings))


@app.command(
    epilog="Example: vouchgate witness --log gate.example.org+1a2b3c4d+AWPX... --folder /var/lib/witness"
)
def witness(
    *,
    log: Annotated[
        list[str], typer.Option(metavar="KEY", help="The key of a log, or a file of keys. Repeat it.")
    ],
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Where its key and what it saw are kept.")
    ] = Path("vouchgate-witness"),
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What it is called, from the first start on.")
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(**PORTS, metavar="PORT", help="The port; 0 picks a free one.")] = 8080,
) -> None:
    """Watch that logs of gates only grow, on an auditor's own machine.

    It cosigns each checkpoint that adds to the last one it saw, and refuses any other. Its key is shown at the start.
    """
    from vouchgate.cli import serve as command

    raise typer.Exit(command.run_witness(log, folder, name, host, port))


@app.command(epilog="Example: vouchgate demo --once")
def demo(
    *,
    once: Annotated[bool, typer.Option("--once", help="End after the table.")] = False,
    port: Annotated[int, typer.Option(**PORTS, metavar="PORT", help="The port; 0 picks a free one.")] = 0,
) -> None:
    """Watch sample claims go through a gate, and why.

    A gate of its own is started, each claim is sent over HTTP, and what became of it is shown as a table.
    The database and the git repository are temporary; nothing else is read or written.
    """
    from vouchgate.cli.demo import run as command

    raise typer.Exit(command.run(once=once, port=port))


@app.command(epilog=_CHECK_EXAMPLE)
def check(
    claims: Annotated[
        str,
        typer.Argument(metavar="CLAIMS", help="A text, a file of JSON lines, or - for standard input."),
    ] = "-",
    *,
    repo: operator.Repos = None,
    policy: operator.PolicyFile = None,
    database_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Compare with what is kept in this database too; it is not written to."
        ),
    ] = None,
    official: Official = None,
    corpus: Corpora = None,
    offline: operator.Offline = False,
) -> None:
    """Say what would become of claims; write nothing.

    In: a claim as a text, or one JSON object a line with the fields of POST /v1/claims, and an `id` of your own if you
    like. Without memory_type and source it is a fact that a model made up its mind about.
    Out: one ValidationResult a line, in the same order. Every source counts as granted, every owner as yours.
    """
    settings = operator.settings_for_texts(
        repo=repo,
        policy=policy,
        database_url=database_url,
        official_paths=[each for each in official or () if not each.startswith("corpus:")],
        corpora=corpus,
        official_corpora=[
            each.removeprefix("corpus:") for each in official or () if each.startswith("corpus:")
        ],
        offline=offline or None,
    )
    from vouchgate.cli import check as command

    raise typer.Exit(command.run(claims, settings, compare_with_database=database_url is not None))


@app.command("gate-doc", epilog="Example: vouchgate gate-doc report.md --format github")
def gate_doc(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Documents, folders of them, or -.")],
    *,
    repo: operator.Repos = None,
    policy: operator.PolicyFile = None,
    official: Official = None,
    offline: operator.Offline = False,
    format_: Annotated[
        str, typer.Option("--format", metavar="NAME", help="text, json, sarif, html, github or junit.")
    ] = "text",
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            help="Only fail on these: false, broken, unknown, unverified, verified, score, no_claims.",
        ),
    ] = None,
    allow_no_claims: Annotated[
        bool, typer.Option("--allow-no-claims", help="Pass a document in which nothing can be checked.")
    ] = False,
    only_marked: Annotated[
        bool, typer.Option("--only-marked", help="Check what is marked [citation needed] or [verify].")
    ] = False,
    harvest: Annotated[
        bool, typer.Option("--harvest", help="Look for official sources of claims that cite nothing.")
    ] = False,
    changed_since: Annotated[
        str | None,
        typer.Option(metavar="REV", help="Check claims that are new, or whose cited files changed."),
    ] = None,
    record: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep what was read.")] = None,
    replay: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Read what was kept, offline, as of then.")
    ] = None,
    replay_links: Annotated[
        Path | None, typer.Option(metavar="DIR", help="As --replay, but read repositories as they are now.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Share what was read with later runs.")
    ] = None,
    cache_hours: Annotated[float, typer.Option(min=0, help="How long that is used.")] = 24.0,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML of claims that pass until a day.")
    ] = None,
    retry_seconds: Annotated[
        float, typer.Option(min=0, max=600, help="Until a source that was down is asked again.")
    ] = 30.0,
) -> None:
    """Check every claim of documents against what it cites.

    Status 0: passed. 1: a claim is false, a citation is broken, or too little is verified. 3: something could not
    be found out. 2: a document cannot be read, or an option makes no sense.
    """
    settings = operator.settings_for_texts(
        repo=repo,
        policy=policy,
        official_paths=official,
        offline=offline or replay is not None or replay_links is not None or None,
    )
    from vouchgate.cli.lines import gate_doc as command

    options = command.Options(
        format=format_,
        fail_on=command.Options().fail_on
        if fail_on is None
        else tuple(filter(None, map(str.strip, fail_on.split(",")))),
        allow_no_claims=allow_no_claims,
        only_marked=only_marked,
        harvest=harvest,
        changed_since=changed_since,
        record=record,
        replay=replay,
        replay_links=replay_links,
        cache=cache,
        cache_hours=cache_hours,
        baseline=baseline,
        retry_seconds=retry_seconds,
    )
    raise typer.Exit(command.run(files, settings, options))


@app.command(epilog="""Example: echo '{"text":"Maybe it fails, see ADR-003"}' | vouchgate detect""")
def detect(file: Input = "-") -> None:
    """Find the hedges and citations in texts.

    Nothing is looked up.

    In: one JSON object a line, {"id"?, "text"}. Out: {"id", "hedge": {"action", "matches"}, "citations"}.
    """
    from vouchgate.cli.lines import detect as command

    raise typer.Exit(command.run(file))


@app.command(
    epilog="""Example: echo '{"claim":"It holds 5 MB","source_text":"It holds 8 MB."}' | vouchgate support"""
)
def support(file: Input = "-") -> None:
    """Say whether sources speak of what claims say, or say otherwise.

    Nothing is looked up. Rules alone never say that a source supports a claim.

    In: one JSON object a line, {"id"?, "claim", "source_text"}. Out: {"id", "verdict", "score", "spans"}.
    """
    from vouchgate.cli.lines import support as command

    raise typer.Exit(command.run(file))


@app.command(
    epilog="""Example: echo '{"earlier":"It is on port 80.","claim":"It is on port 81."}' | vouchgate compare"""
)
def compare(file: Input = "-") -> None:
    """Say whether claims repeat or contradict earlier memories.

    Nothing is looked up.

    In: one JSON object a line, {"id"?, "earlier", "claim"}. Out: {"id", "relation", "similarity", "changed"}.
    """
    from vouchgate.cli.lines import compare as command

    raise typer.Exit(command.run(file))


@app.command(
    epilog="""Example: echo '{"claim":"It is 5.","sources":[{"text":"It is 5."}]}' | vouchgate corroborate"""
)
def corroborate(
    file: Input = "-",
    *,
    harvest: Annotated[
        bool, typer.Option("--harvest", help="Look for more along the paths that the settings name.")
    ] = False,
    repo: operator.Repos = None,
    corpus: Corpora = None,
    policy: operator.PolicyFile = None,
    offline: operator.Offline = False,
) -> None:
    """Say what the sources given with claims say together: how many independent ones state or refute each.

    Nothing is looked up without --harvest: it is advice about what you bring. The other options go with it.

    In: one JSON object a line, {"id"?, "claim", "as_of"?, "window_days"?, "sources": [{"id"?, "text", "url"?, "title"?,
    "published"?}]}. Out: {"id", "label", "outcome", "why", "groups", "hits", "proof", "verified"}.
    """
    if harvest:
        settings = operator.settings_for_texts(
            repo=repo, corpora=corpus, policy=policy, offline=offline or None
        )
        from vouchgate.cli.lines import harvest as looking

        raise typer.Exit(looking.run(file, settings))
    if repo or corpus or policy or offline:
        raise output.Failure("--repo, --corpus, --policy and --offline go with --harvest", output.USAGE)
    from vouchgate.cli.lines import corroborate as command

    raise typer.Exit(command.run(file))


@app.command(epilog="Example: vouchgate research 'How long does the kiln cool?' --repo .")
def research(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is to be found out.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of Markdown.")] = False,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep what was read and what the model wrote.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Answer from such a file; nothing is read or asked.")
    ] = None,
    repo: operator.Repos = None,
    corpus: Corpora = None,
    policy: operator.PolicyFile = None,
    offline: operator.Offline = False,
) -> None:
    """Answer a question by what sources state: facts, inferences, and what could not be found out.

    A model reads claims out of the texts that are found; whether they hold is decided by rules.

    Exit status 0: something was found. 3: it could not be found out. 2: the command line, or no model.
    """
    settings = operator.settings_for_texts(repo=repo, corpora=corpus, policy=policy, offline=offline or None)
    from vouchgate.cli.looking import research as command

    raise typer.Exit(command.run(question, settings, as_json=as_json, record=record, replay=replay))


@app.command(epilog="Example: vouchgate extract report.md | grep '\"claim\"'")
def extract(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Markdown, reStructuredText, HTML or text; - for standard input."
        ),
    ],
) -> None:
    """Say which sentences of documents are claims, and which references are to vouch for them.

    Nothing is looked up, and no model is asked. What a format is, the name of the file says.

    Out: one JSON object for every stretch of the text, in order: {"file", "start", "end", "kind", "reason"?, "text",
    "citations": [{"target", "start", "end"}]}.
    """
    operator.settings_for_texts()
    from vouchgate.cli.lines.extract import run as command

    raise typer.Exit(command(files))


@app.command(epilog="Example: vouchgate prompt >> AGENTS.md")
def prompt() -> None:
    """Print a few lines for an agent's system prompt: how to cite and to quote, so that what it saves is stored."""
    from vouchgate.client.prompt import PROMPT

    typer.echo(PROMPT, nl=False)


@app.command(epilog="Example: vouchgate verify ADR-003 a1b2c3d https://example.com/page --repo .")
def verify(
    citation: Annotated[
        list[str],
        typer.Argument(
            metavar="CITATION",
            help="ADR-003, a commit id, a URL, #12, RFC 9110, …; a text that cites, a file of one, or -.",
        ),
    ],
    repo: operator.Repos = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line instead of a table.")
    ] = False,
    policy: operator.PolicyFile = None,
    offline: operator.Offline = False,
) -> None:
    """Look up what each citation points at. Exit status 0 only if all exist and are in force.

    Of a text, of a file (./notes.md), and of standard input (-) it is what is cited there.
    ADRs and commits are looked up in git, all else over the network. An address that is not safe to ask is
    refused. Without --repo and without a configured repository, the work tree of the current directory is asked.
    """
    settings = operator.settings_for_texts(repo=repo, policy=policy, offline=offline or None)
    from vouchgate.cli.looking import verify as command

    raise typer.Exit(command.run(citation, settings, as_json=as_json))


@app.command(epilog="Example: vouchgate numbers --owner ann --days 30")
def numbers(
    *,
    owner: Annotated[str | None, typer.Option(metavar="ID", help="Of this owner alone.")] = None,
    days: Annotated[int, typer.Option(min=1, max=90, metavar="N", help="So many days, with today.")] = 14,
    database_url: operator.DatabaseUrl = None,
    as_json: operator.Json = False,
) -> None:
    """Say what came in, what was cleared and how long it waited: by day, agent and reason.

    Of all owners together, unless one is named. It reads the database and needs no token.
    """
    settings = operator.settings_from(database_url=database_url)
    from vouchgate.cli.looking import numbers as command

    raise typer.Exit(command.run(settings, owner=owner, days=days, as_json=as_json))


@app.command(epilog="Example: vouchgate doctor --repo https://git.example.com/acme/app")
def doctor(
    repo: operator.Repos = None,
    database_url: operator.DatabaseUrl = None,
    policy: operator.PolicyFile = None,
) -> None:
    """Say who may vouch, and what is missing before claims are stored, in the order to mend it.

    Who writes the ref of a repository that counts, or in an official corpus, vouches for whatever it says; there is a
    warning where that may be an agent. Nothing is made or written.
    """
    from vouchgate.cli import doctor as command

    settings = operator.settings_from(repo=repo, database_url=database_url, policy=policy)
    raise typer.Exit(command.run(settings))


# In this order they are listed.
for part in (
    tokens,
    people,
    signing_in,
    modes,
    operator,
    impact,
    deliveries,
    imports,
    index,
    mcp,
    mcp_gate,
    records,
    audit,
    webhooks,
    mail,
    erasing,
):
    part.register(app)
app.add_typer(hook)


@cache
def commands() -> Callable[..., Any]:
    """Every command, read out of the signatures above: once, which takes longer than most of them run."""
    return typer.main.get_command(app)


@cache
def command_for(name: str) -> Callable[..., Any]:
    """What runs the command of that name, without the others; of every command where a group, an option or nothing has
    the name."""
    named = {
        each.name or each.callback.__name__: each
        for each in app.registered_commands
        if each.callback is not None
    }
    if name not in named or any(other.startswith(f"{name} ") for other in named):
        return commands()
    alone = copy(app)
    alone.registered_commands, alone.registered_groups = [named[name]], []
    return typer.main.get_command(alone)


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit status; whatever goes wrong becomes one line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a locale without a character is no reason to fail
    try:
        status = command_for(next(iter(arguments), ""))(
            list(arguments), prog_name="vouchgate", standalone_mode=False
        )
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return output.INTERRUPTED
    except BrokenPipeError:
        output.quiet_stdout()
        return output.FAILED
    except Exception as error:  # noqa: BLE001  (the last line of defence: told in one line, exit status 1)
        told = missing(error, *arguments[:1])
        if told is not None:
            output.complain(told)
            return output.USAGE
        if isinstance(error, OSError | AttributeError) and (why := output.unwritable(error)) is not None:
            output.complain(why)
            return output.FAILED
        return _explain(error)
    return status if isinstance(status, int) else 0


def _explain(error: Exception) -> int:
    """Known errors speak for themselves; an unknown one says where it happened, for a report."""
    if isinstance(error, output.Failure):
        output.complain(str(error))
        return error.status
    if isinstance(error, typer.TyperException):
        from pydantic_core import ValidationError

        from vouchgate.ingest.language.validation import plain_message

        context = getattr(error, "ctx", None)  # usage errors have it
        if isinstance(error, typer.BadParameter) and isinstance(error.__cause__, ValidationError):
            error.message = plain_message(error.__cause__.errors()[0])
        said = error.format_message().rstrip(".")
        stop = "" if said.endswith("?") else "."  # it may ask what was meant
        output.complain(f"{said}{stop} Try: {context.command_path} --help" if context else said)
        return error.exit_code
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    if _EXPECTED & kinds:
        output.complain(str(error))
        return output.USAGE if "vouchgate.settings.EarlierDatabase" in kinds else output.FAILED
    if (outside := _refusal(error, kinds)) is not None:
        output.complain(outside)
        return output.FAILED
    last = traceback.extract_tb(error.__traceback__)[-1]
    output.complain(
        f"internal error: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno}); "
        "please report it"
    )
    return output.FAILED


def _refusal(error: Exception, kinds: set[str]) -> str | None:
    """What the database, another program or the machine refused; None where the fault is here."""
    if "sqlalchemy.exc.DBAPIError" in kinds:
        return f"the database could not be used: {getattr(error, 'orig', error)}"
    if isinstance(error, ImportError) and "git executable" in str(error):  # GitPython asks when it is loaded
        return "the program git cannot be run; install it, or put its folder into PATH"
    if isinstance(error, OSError) and error.filename is not None and error.errno in _REFUSED:
        return f"{output.one_line(str(error.filename))}: {error.strerror}"
    return None
