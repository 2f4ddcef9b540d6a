"""People and memberships: whom a token acts for, from when on, and until when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from alembic import command
from sqlalchemy import text

from tests.claims import examined, submission_of
from tests.conftest import THRESHOLD
from tests.reviews import everything
from vouchgate.cli.app import run
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.modes import ModeSwitch
from vouchgate.ingest.claims.people import Membership, Person, Principal, Role
from vouchgate.review.trust import modes
from vouchgate.storage.claims.submit import Decided, OwnerRefused, TokenGone
from vouchgate.storage.engine import migration_config, open_engine, writing
from vouchgate.storage.identity import memberships, owners, persons, sessions, tokens
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def person(store: Store, name: str) -> Person:
    return persons.create(store, name, actor="operator", now=NOW)


def token(store: Store, role: Role, *owner_ids: str, **more: Any) -> tuple[Principal, str]:
    return tokens.create(store, role=role, name="t", owners=owner_ids, actor="operator", now=NOW, **more)


def grant(store: Store, owner_id: str, member_id: str, role: Role) -> bool:
    wanted = Membership(owner_id=owner_id, member_id=member_id, role=role, since=NOW)
    return memberships.grant(store, wanted, actor="operator")


def end(store: Store, owner_id: str, member_id: str, role: Role) -> bool:
    wanted = Membership(owner_id=owner_id, member_id=member_id, role=role, since=NOW)
    return memberships.end(store, wanted, actor="operator", now=NOW)


def who(store: Store, presented: str) -> Principal | None:
    with store.read() as connection:
        return tokens.authenticate(connection, presented, NOW)


def owners_of(store: Store, presented: str) -> frozenset[str]:
    found = who(store, presented)
    assert found is not None
    return found.owners


def actions(store: Store, owner_id: str) -> list[Action]:
    with store.read() as connection:
        assert log.verify(connection) == []
        return [each.action for each in log.events(connection, frozenset({owner_id}), after=None, limit=50)]


def test_a_token_acts_for_its_own_owners_and_its_persons_in_its_own_role_only(store: Store) -> None:
    for owner_id in ("acme", "beta"):
        assert memberships.create_owner(store, owner_id, actor="operator", now=NOW)
    assert not memberships.create_owner(store, "acme", actor="operator", now=NOW)
    ann = person(store, "ann")
    reviewer, secret = token(store, Role.REVIEWER, "own", person=ann.id)
    agent, agents = token(store, Role.AGENT, person=ann.id)
    assert (reviewer.owners, owners_of(store, agents)) == (frozenset({"own"}), frozenset())
    assert grant(store, "acme", ann.id, Role.REVIEWER)
    assert not grant(store, "acme", ann.id, Role.REVIEWER)
    assert grant(store, "beta", ann.id, Role.AGENT)
    assert grant(store, "beta", reviewer.id, Role.REVIEWER)
    assert owners_of(store, secret) == {"own", "acme", "beta"}
    assert owners_of(store, agents) == {"beta"}
    assert (found := who(store, secret)) is not None
    assert found.person == ann.id
    assert end(store, "acme", ann.id, Role.REVIEWER)
    assert not end(store, "acme", ann.id, Role.REVIEWER)
    assert owners_of(store, secret) == {"own", "beta"}
    assert actions(store, "acme") == [
        Action.OWNER_CREATED,
        Action.MEMBERSHIP_GRANTED,
        Action.MEMBERSHIP_ENDED,
    ]
    with store.read() as connection:
        listed = {one.id: (one.owners, one.person_id) for one in tokens.listing(connection)}
        assert owners.names(connection, "acme", 10) == ["beta", "own"]
    assert listed == {agent.id: (("beta",), ann.id), reviewer.id: (("beta", "own"), ann.id)}


@pytest.mark.on("sqlite")
def test_naming_an_owner_makes_none(store: Store) -> None:
    ann = person(store, "ann")
    with pytest.raises(memberships.UnknownOwner):
        grant(store, "nobody", ann.id, Role.REVIEWER)
    with pytest.raises(memberships.UnknownOwner):
        grant(store, "no\x00body", ann.id, Role.REVIEWER)
    assert not end(store, "nobody", ann.id, Role.REVIEWER)
    with store.read() as connection:
        assert owners.names(connection, "", 10) == []


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    "command",
    [
        "stop --reason slip",
        "resume --reason slip",
        "mode set read_only --reason slip",
        "mode review-unvouched",
        "log verify",
        "audit reviews",
        "numbers",
        "impact ADR-1",
        "policy show --at 2026-03-01",
        "policy test now",
        "member list",
        "delivery list",
        "delivery hand-over --sink graph --to {any_owner}",
        "index verify",
        "index repair",
        "webhook create --url https://example.com/hook",
    ],
)
def test_a_mistyped_owner_is_refused_by_every_command_and_made_by_none(
    store: Store, database_url: str, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    agent, _ = token(store, Role.AGENT, any_owner=True)
    memberships.create_owner(store, "acme", actor="operator", now=NOW)
    before = everything(store)
    words = [*command.format(any_owner=agent.id).split(), "--database-url", database_url]
    for named, meant in (("acne", " (did you mean acme?)"), ("", "")):
        assert run([*words, "--owner", named]) == 1
        told = capsys.readouterr()
        assert (told.out, f"there is no owner '{named}'{meant};" in told.err) == ("", True), told
    assert everything(store) == before


@pytest.mark.on("sqlite")
def test_who_is_behind_a_token_is_said_once(store: Store) -> None:
    ann, bea = person(store, "ann"), person(store, "bea")
    agent, secret = token(store, Role.AGENT, "acme")
    tokens.assign(store, agent.id, ann.id, actor="operator", now=NOW)
    for other in (bea, ann):
        with pytest.raises(ValueError, match="for good"):
            tokens.assign(store, agent.id, other.id, actor="operator", now=NOW)
    with pytest.raises(ValueError, match="no token"):
        tokens.assign(store, "0" * 16, ann.id, actor="operator", now=NOW)
    assert (found := who(store, secret)) is not None
    assert found.person == ann.id
    assert actions(store, "")[-1] is Action.TOKEN_ASSIGNED


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("name", ["", "a b", "@ann", "ännchen", "a" * 65, "0" * 16, "per_1", "a\x00"])
def test_a_persons_name_is_a_handle(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="name has 1 to 64"):
        person(store, name)


@pytest.mark.on("sqlite")
def test_a_member_is_a_person_or_a_token_of_that_role(store: Store) -> None:
    ann, (agent, _) = person(store, "ann"), token(store, Role.AGENT, "acme")
    with store.read() as connection:
        for name in ("ann", ann.id):
            assert persons.member_id(connection, name, Role.REVIEWER) == ann.id
        assert persons.member_id(connection, agent.id, Role.AGENT) == agent.id
        with pytest.raises(ValueError, match="one role only"):
            persons.member_id(connection, agent.id, Role.REVIEWER)
        with pytest.raises(ValueError, match="no person and no token"):
            persons.member_id(connection, "\ud800\x00", Role.REVIEWER)


def test_when_a_person_ends_so_does_all_they_had_but_not_who_they_were(store: Store) -> None:
    ann = person(store, "ann")
    with pytest.raises(ValueError, match="already"):
        person(store, "ann")
    _, secret = token(store, Role.REVIEWER, "acme", person=ann.id)
    agent, _ = token(store, Role.AGENT, "acme", person=ann.id)
    assert grant(store, "acme", ann.id, Role.AUDITOR)
    session = sessions.start(store, secret, now=NOW)
    assert isinstance(session, str)
    assert persons.end(store, ann, actor="operator", now=NOW)
    assert not persons.end(store, ann, actor="operator", now=NOW)
    with store.read() as connection:
        assert sessions.find(connection, session, NOW) is None
        assert persons.find(connection, "ann") is None
        assert memberships.of_member(connection, ann.id) == []
        assert (kept := tokens.find(connection, agent.id)) is not None
        assert kept.person_id == ann.id
    assert who(store, secret) is None
    assert actions(store, "acme") == [Action.MEMBERSHIP_GRANTED, Action.MEMBERSHIP_ENDED]
    assert person(store, "ann").id != ann.id


def test_what_was_taken_back_ends_claims_that_are_under_way(store: Store) -> None:
    """The principal was looked up before; the transaction of the claim sees how it stands by then."""
    agent, _ = token(store, Role.AGENT, "acme", "beta", sources=[Source.USER])
    anybody, _ = token(store, Role.AGENT, any_owner=True, sources=[Source.USER])

    def send(content: str, owner_id: str, by: Principal, *, new_owners: bool = False) -> object:
        one = examined(content, owner_id=owner_id, source=Source.USER, now=NOW)
        sent = submission_of(one, principal_id=by.id)
        return store.writer.submit(replace(sent, recheck_token=True, new_owners=new_owners)).result()

    assert isinstance(send("The gate opens at nine.", "acme", agent), Decided)
    assert end(store, "acme", agent.id, Role.AGENT)
    assert send("The gate closes at five.", "acme", agent) == OwnerRefused(unknown=False)
    assert isinstance(send("The gate closes at five.", "beta", agent), Decided)
    assert isinstance(send("The yard is closed at night.", "acme", anybody), Decided)
    assert send("The yard is lit at night.", "gamma", anybody) == OwnerRefused(unknown=True)
    assert isinstance(send("The yard is lit at night.", "gamma", anybody, new_owners=True), Decided)
    assert tokens.revoke(store, agent.id, actor="operator", now=NOW)
    assert send("The bell rings twice.", "beta", agent) == TokenGone()
    with store.read() as connection:
        assert owners.names(connection, "", 10) == ["acme", "beta", "gamma"]


@pytest.mark.on("sqlite")
def test_who_was_let_go_meanwhile_stops_nobody_and_lets_nobody_go_on(store: Store) -> None:
    reviewer, _ = token(store, Role.REVIEWER, "acme", "beta")
    admin, _ = token(store, Role.ADMIN, any_owner=True)
    wanted = ModeSwitch(
        owner_id="acme", agent="", stopped=True, reason="Look at this.", by=reviewer.id, since=NOW
    )
    modes.switch(store, wanted, reviewer)
    modes.switch(store, wanted.model_copy(update={"owner_id": "", "by": admin.id}), admin)
    assert end(store, "acme", reviewer.id, Role.REVIEWER)
    assert tokens.revoke(store, admin.id, actor="operator", now=NOW)
    before, over = everything(store), wanted.model_copy(update={"stopped": False})
    for by, owner_id in ((reviewer, "acme"), (admin, ""), (admin, "acme")):
        with pytest.raises(PermissionError):
            modes.switch(store, over.model_copy(update={"owner_id": owner_id, "by": by.id}), by)
    assert everything(store) == before


def test_tokens_from_before_keep_what_they_were_granted_there_and_back(database_url: str) -> None:
    """Down to the tables of before and up again: each token acts for whom it did."""
    store = Store.open(database_url, threshold=THRESHOLD)
    made = [
        token(store, Role.AGENT, "ann", "bob"),
        token(store, Role.REVIEWER, "ann"),
        token(store, Role.AGENT, any_owner=True),
        token(store, Role.AUDITOR, any_owner=True),
    ]
    store.close()
    engine, config = open_engine(database_url), migration_config()
    with writing(engine) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0015")
        kept = connection.execute(text("SELECT owners FROM token ORDER BY created_at, id")).all()
        assert len(kept) == len(made)
        command.upgrade(config, "head")
    engine.dispose()
    store = Store.open(database_url, threshold=THRESHOLD)
    for principal, secret in made:
        may_name_new = principal.any_owner and principal.role is Role.AGENT
        assert who(store, secret) == principal.model_copy(update={"new_owners": may_name_new})
    store.close()
