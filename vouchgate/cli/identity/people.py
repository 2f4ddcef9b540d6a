"""`vouchgate owners`, `person` and `member`: for whom memories are kept, and who acts for them."""
# ruff: noqa: PLC0415  (a command loads what it needs when it runs)

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vouchgate.cli import operator
from vouchgate.cli.identity.tokens import ACTOR
from vouchgate.cli.output import FAILED, Failure, hint, one_line, say, show_table, write_json

if TYPE_CHECKING:
    from vouchgate.ingest.claims.people import Membership, Person
    from vouchgate.storage.store import Store

owners = typer.Typer(
    name="owners", help="Make and list owners; say who is asked about their claims.", rich_markup_mode=None
)
person = typer.Typer(
    name="person",
    help="Make, list and end the people behind tokens; say what they sign in with.",
    rich_markup_mode=None,
)
member = typer.Typer(name="member", help="Say who has which role for an owner.", rich_markup_mode=None)

PersonName = Annotated[str, typer.Argument(metavar="NAME", help="A person's name or id.")]
Member = Annotated[str, typer.Argument(metavar="WHO", help="A person's name, or a token's id.")]
OwnerOption = Annotated[str, typer.Option(metavar="ID", help="The owner it is about.")]
RoleOption = Annotated[str, typer.Option(metavar="ROLE", help="agent, recorder, reviewer, auditor or admin.")]
_MOST_OWNERS = 1000  # of one page of the list


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    for group in (owners, person, member):
        app.add_typer(group)


@contextmanager
def open_people(database_url: str | None) -> Iterator[Store]:
    """The store; what it says against a request is a Failure."""
    from vouchgate.cli.database import open_store

    with open_store(operator.settings_from(database_url=database_url)) as store:
        try:
            yield store
        except ValueError as error:
            raise Failure(str(error)) from error


@owners.command("create", epilog="Example: vouchgate owners create acme-platform")
def create_owner(
    owner: Annotated[str, typer.Argument(metavar="ID")], database_url: operator.DatabaseUrl = None
) -> None:
    """Make an owner. Naming one in a claim makes none, unless its token may: `token create --new-owners`."""
    from vouchgate.storage.identity import memberships

    with open_people(database_url) as store:
        made = memberships.create_owner(store, owner, actor=ACTOR, now=datetime.now(UTC))
    hint(f"The owner {owner} is made." if made else f"There is an owner {owner} already.")


@owners.command("list", epilog="Example: vouchgate owners list --after m")
def list_owners(
    after: Annotated[str, typer.Option(metavar="ID", help="Show what comes after this one.")] = "",
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Show owners, one a line, a thousand at most."""
    from vouchgate.storage.identity import owners as kept

    with open_people(database_url) as store, store.read() as connection:
        for name in kept.names(connection, after, _MOST_OWNERS):
            say(one_line(name))


@owners.command("check", epilog="Example: vouchgate owners check OWNERS --names")
def check_rules(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Or VOUCHGATE_OWNER_RULES.")] = None,
    *,
    names: Annotated[
        bool, typer.Option("--names", help="Look up in the database whether the people are there.")
    ] = False,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Look for faults in a file of owner rules. Exit status 1 when there are any."""
    from vouchgate.review.vouching.loading import read_rules
    from vouchgate.review.vouching.owner_rules import parse, unknown_persons
    from vouchgate.storage.identity import persons

    path = _rules_file(file)
    rules, faults = parse(read_rules(path))
    if names:
        with open_people(database_url) as store, store.read() as connection:
            there = [one.name for one in persons.listing(connection) if one.ended_at is None]
        faults += unknown_persons(rules, there)
    for fault in sorted(faults, key=lambda fault: fault.line):
        say(one_line(f"{path}:{fault.line}: {fault.message}"))
    if faults:
        raise typer.Exit(FAILED)
    hint(f"{path}: {len(rules.rules)} rules, no fault.")


@owners.command("who", epilog="Example: vouchgate check claims.jsonl | vouchgate owners who --rules OWNERS")
def who_is_asked(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Lines that `check` wrote; - for standard input.")
    ] = "-",
    *,
    claim: Annotated[
        str | None, typer.Option(metavar="ID", help="A waiting item of the database, instead.")
    ] = None,
    rules: Annotated[Path | None, typer.Option(metavar="FILE", help="Or VOUCHGATE_OWNER_RULES.")] = None,
    agent: Annotated[str, typer.Option(metavar="NAME", help="Who would send the claims.")] = "",
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Say who would be asked about claims, how many must approve, and which line says so."""
    from vouchgate.cli.identity import rules as command

    if claim is None:
        raise typer.Exit(command.of_lines(file, _rules_file(rules), agent))
    with open_people(database_url) as store:
        command.of_item(store, claim, _rules_file(rules))


def _rules_file(named: Path | None) -> Path:
    found = named or operator.settings_from().owner_rules
    if found is None:
        raise typer.BadParameter("name a file of owner rules, or set VOUCHGATE_OWNER_RULES")
    return found


@person.command("create", epilog="Example: vouchgate person create ann")
def create_person(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, dots, dashes, underscores.")],
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Make a person. Alone they may do nothing: give them a token, and roles with `member grant`."""
    from vouchgate.storage.identity import persons

    with open_people(database_url) as store:
        made = persons.create(store, name, actor=ACTOR, now=datetime.now(UTC))
    say(made.id)


@person.command("list", epilog="Example: vouchgate person list --json")
def list_persons(database_url: operator.DatabaseUrl = None, as_json: operator.Json = False) -> None:
    """Show everybody, those who ended too, and what they sign in with elsewhere."""
    from vouchgate.storage.identity import identities, persons

    with open_people(database_url) as store, store.read() as connection:
        found, linked = persons.listing(connection), identities.listing(connection)
    of = {one.id: [each for each in linked if each.person_id == one.id] for one in found}
    if as_json:
        for one in found:
            signs_in_as = [each._asdict() for each in of[one.id]]
            write_json({**one.model_dump(mode="json"), "identities": signs_in_as})
        return
    rows = [
        (
            one.name,
            one.id,
            f"ended {one.ended_at:%Y-%m-%d}" if one.ended_at else "-",
            ", ".join(one_line(f"{each.sub} at {each.issuer}") for each in of[one.id]) or "-",
        )
        for one in found
    ]
    show_table(("name", "id", "state", "signs in as"), rows, whole=2)


@person.command("end", epilog="Example: vouchgate person end ann")
def end_person(name: PersonName, database_url: operator.DatabaseUrl = None) -> None:
    """End a person's tokens, sessions, identities and roles at once and for good."""
    from vouchgate.storage.identity import persons

    with open_people(database_url) as store:
        found = find_person(store, name)
        persons.end(store, found, actor=ACTOR, now=datetime.now(UTC))
    hint(f"{found.name} is ended.")


@person.command(
    "stand-in", epilog="Example: vouchgate person stand-in ann bea --owner acme --until 2026-04-01"
)
def stand_in(
    absent: Annotated[str, typer.Argument(metavar="NAME", help="Who is away.")],
    name: Annotated[str, typer.Argument(metavar="WHO", help="Who rules in their stead.")],
    *,
    owner: OwnerOption,
    until: Annotated[
        datetime | None, typer.Option(metavar="DATE", help="Until then, in UTC; 90 days at most.")
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="End that now.")] = False,
    database_url: operator.DatabaseUrl = None,
) -> None:
    """Have somebody rule for an owner in the stead of another, until a date."""
    from vouchgate.ingest.claims.people import Membership, Role
    from vouchgate.storage.identity import memberships

    if (until is None) is not end:
        raise typer.BadParameter("say either --until or --end")
    now = datetime.now(UTC)
    with open_people(database_url) as store:
        ids = {"member_id": find_person(store, name).id, "acts_for": find_person(store, absent).id}
        wanted = Membership(owner_id=owner, role=Role.REVIEWER, since=now, **ids)
        if until is not None:
            last = until.replace(tzinfo=UTC)
            memberships.let_stand_in(store, wanted.model_copy(update={"until": last}), actor=ACTOR)
        elif not memberships.end(store, wanted, actor=ACTOR, now=now):
            raise Failure(f"{name} does not stand in for {absent}; vouchgate member list shows who does")
    hint(f"{name} rules for {owner} in the stead of {absent} " + ("no more." if end else f"until {until}."))


def find_person(store: Store, name: str) -> Person:
    """The person of this name or id. Raises Failure."""
    from vouchgate.storage.identity import persons

    with store.read() as connection:
        found = persons.find(connection, name)
    if found is None:
        raise Failure(f"there is no person {name[:64]!a}; vouchgate person list shows them")
    return found


@member.command("grant", epilog="Example: vouchgate member grant ann --owner acme --role reviewer")
def grant(
    who: Member, *, owner: OwnerOption, role: RoleOption, database_url: operator.DatabaseUrl = None
) -> None:
    """Give a person, or a single token, a role for an owner."""
    from vouchgate.storage.identity import memberships

    now = datetime.now(UTC)
    with open_people(database_url) as store:
        wanted = _membership(store, who, owner, role, now)
        try:
            given = memberships.grant(store, wanted, actor=ACTOR)
        except memberships.UnknownOwner as error:
            raise Failure(f"there is no owner {owner!a}; vouchgate owners create makes one") from error
    hint(f"{who} is {wanted.role} of {owner}." if given else f"{who} is {wanted.role} of {owner} already.")


@member.command("end", epilog="Example: vouchgate member end ann --owner acme --role reviewer")
def end(
    who: Member, *, owner: OwnerOption, role: RoleOption, database_url: operator.DatabaseUrl = None
) -> None:
    """Take a role for an owner back, at once."""
    from vouchgate.storage.identity import memberships

    now = datetime.now(UTC)
    with open_people(database_url) as store:
        wanted = _membership(store, who, owner, role, now)
        if not memberships.end(store, wanted, actor=ACTOR, now=now):
            raise Failure(f"{who} is no {wanted.role} of {owner!a}; vouchgate member list shows who is")
    hint(f"{who} is no {wanted.role} of {owner} any more.")


def _membership(store: Store, who: str, owner: str, role: str, now: datetime) -> Membership:
    from vouchgate.ingest.claims.people import Membership, Role
    from vouchgate.storage.identity import persons

    wanted = operator.word(role, Role, "--role")
    with store.read() as connection:
        member_id = persons.member_id(connection, who, wanted)
    return Membership(owner_id=owner, member_id=member_id, role=wanted, since=now)


@member.command("list", epilog="Example: vouchgate member list --owner acme")
def list_members(
    owner: Annotated[str | None, typer.Option(metavar="ID", help="Only of this owner.")] = None,
    database_url: operator.DatabaseUrl = None,
    as_json: operator.Json = False,
) -> None:
    """Show who has which role for whom. Tokens for any owner are not among them: see `token list`."""
    from vouchgate.cli.database import refuse_unknown_owner
    from vouchgate.storage.identity import memberships, persons, tokens

    with open_people(database_url) as store, store.read() as connection:
        refuse_unknown_owner(connection, owner)
        scope, now = None if owner is None else frozenset({owner}), datetime.now(UTC)
        found = memberships.of_owners(connection, scope, now)
        names = {one.id: one.name for one in persons.listing(connection)}
        names |= tokens.names(connection, {one.member_id for one in found} - names.keys())
    if as_json:
        for one in found:
            write_json({**one.model_dump(mode="json"), "name": names.get(one.member_id)})
        return
    rows = [
        (
            one.owner_id,
            one.role.value,
            one.member_id,
            names.get(one.member_id, "-"),
            f"{one.since:%Y-%m-%d}",
            f"{names.get(one.acts_for)} until {one.until:%Y-%m-%d}" if one.until else "-",
        )
        for one in found
    ]
    show_table(("owner", "role", "member", "name", "since", "stands in for"), rows, whole=3)
