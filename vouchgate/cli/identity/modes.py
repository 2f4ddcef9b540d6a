"""`vouchgate mode`, `stop` and `resume`: whether the gate enforces, only watches, or takes nothing."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.identity.people import open_people
from vouchgate.cli.identity.tokens import ACTOR
from vouchgate.cli.output import hint, one_line, say, show_table, write_json

if TYPE_CHECKING:
    from vouchgate.ingest.claims.modes import Mode

mode = typer.Typer(
    name="mode", help="Enforce, only observe, or write nothing; see what stands.", rich_markup_mode=None
)

OwnerScope = Annotated[str | None, typer.Option("--owner", metavar="ID", help="For this owner.")]
AgentScope = Annotated[
    str | None, typer.Option("--agent", metavar="WHO", help="Of this person's name, or token's id.")
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Kept, and told to whoever it concerns.")]
Everything = Annotated[bool, typer.Option("--all", help="For every agent and owner.")]


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(mode)
    app.command(epilog="Example: vouchgate stop --agent 1f2e3d4c5b6a7988 --reason 'writes nonsense'")(stop)
    app.command(epilog="Example: vouchgate resume --agent 1f2e3d4c5b6a7988 --reason 'was a bad prompt'")(
        resume
    )


@mode.command("show", epilog="Example: vouchgate mode show")
def show(database_url: operator.DatabaseUrl = None, as_json: operator.Json = False) -> None:
    """Show every mode and stop that was set, as it stands."""
    from vouchgate.storage import modes
    from vouchgate.storage.claims import unvouched

    with open_people(database_url) as store, store.read() as connection:
        found, left = modes.everything(connection), unvouched.count(connection)
    if as_json:
        write_json({"switches": [one.model_dump(mode="json") for one in found], "unvouched": left})
        return
    rows = [(one.scope, one_line(one.sentence), f"{one.since:%Y-%m-%d %H:%M}", one.by) for one in found]
    if rows:
        show_table(("scope", "stands", "since (UTC)", "by"), rows)
    if not any(not one.owner_id and not one.agent and one.mode for one in found):
        say("Mode of the whole service: enforce.")
    say(f"{left:,} memories that were let through are unvouched.")


@mode.command("set", epilog="Example: vouchgate mode set observe --owner ann --reason 'trial until May'")
def set_mode(
    what: Annotated[str, typer.Argument(metavar="MODE", help="enforce, observe or read_only.")],
    *,
    reason: Reason,
    owner: OwnerScope = None,
    agent: AgentScope = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Set the mode of the service, of an owner or of an agent, from now on.

    observe lets through what nobody vouches for: it is stored unvouched, and never vouches for anything itself.
    """
    from vouchgate.ingest.claims.modes import Mode

    _switch(owner, agent, reason, database_url, mode=operator.word(what, Mode, "MODE"))


@mode.command("review-unvouched", epilog="Example: vouchgate mode review-unvouched --owner ann")
def review_unvouched(
    owner: Annotated[str, typer.Option(metavar="ID", help="Whose queue they go to.")],
    policy: operator.PolicyFile = None,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Put what was let through before its owner, as far as the queue has room."""
    from vouchgate.cli.database import open_store, refuse_unknown_owner
    from vouchgate.ingest.checks.hedge import HedgeDetector
    from vouchgate.ingest.data.policy_file import load_policy
    from vouchgate.review.trust import modes

    settings = operator.settings_from(policy=policy, database_url=database_url)
    loaded, now = load_policy(settings.policy), datetime.now(UTC)
    with open_store(settings) as store:
        with store.read() as connection:
            refuse_unknown_owner(connection, owner)
        store.save_policy(loaded, now)
        detector = HedgeDetector(loaded.lexicon)
        done = modes.review_unvouched(store, owner, policy=loaded, detector=detector, by=ACTOR, now=now)
    say(
        f"{done.queued:,} wait for {owner} now, {done.gone:,} would be blocked or are known and are retracted."
    )
    if done.left:
        why = "the queue has no more room for them" if done.full else "more came meanwhile"
        say(f"{done.left:,} are left: {why}. Run it again later.")


def stop(
    *,
    reason: Reason,
    agent: AgentScope = None,
    owner: OwnerScope = None,
    everything: Everything = False,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Take nothing more of an agent, for an owner, or at all. What waits, and what is stored, stays."""
    _scoped(agent, owner, everything=everything)
    _switch(owner, agent, reason, database_url, stopped=True)


def resume(
    *,
    reason: Reason,
    agent: AgentScope = None,
    owner: OwnerScope = None,
    everything: Everything = False,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """End a stop."""
    _scoped(agent, owner, everything=everything)
    _switch(owner, agent, reason, database_url, stopped=False)


def _scoped(agent: str | None, owner: str | None, *, everything: bool) -> None:
    if everything is (agent is not None or owner is not None):
        raise typer.BadParameter("say --agent, --owner or both, or --all", param_hint="--all")


def _switch(
    owner: str | None,
    agent: str | None,
    reason: str,
    database_url: str | None,
    *,
    mode: Mode | None = None,
    stopped: bool | None = None,
) -> None:
    from vouchgate.cli.database import refuse_unknown_owner
    from vouchgate.ingest.claims.modes import ModeSwitch
    from vouchgate.ingest.claims.people import Role
    from vouchgate.review.trust import modes
    from vouchgate.storage.identity import persons

    with open_people(database_url) as store:
        with store.read() as connection:
            refuse_unknown_owner(connection, owner)
            who = "" if agent is None else persons.member_id(connection, agent, Role.AGENT)
        switch = ModeSwitch(
            owner_id=owner or "",
            agent=who,
            mode=mode,
            stopped=stopped,
            reason=reason.strip(),
            by=ACTOR,
            since=datetime.now(UTC),
        )
        modes.switch(store, switch)
    hint(switch.sentence)
