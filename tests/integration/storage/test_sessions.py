"""Sessions of the pages and the links that start one: used once, nowhere readable, over when their token is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Table, func, select

from tests.reviews import queue_of
from tests.running.racers import Report, race
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.review.ending.expiry import Expired, expire
from vouchgate.storage.identity import persons, sessions, tokens
from vouchgate.storage.identity.sessions import LINK_LIFETIME, LONGEST_LINK, SESSION_LIFETIME, SignInRefusal
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store
from vouchgate.storage.tables.doors import SessionRow, SignInLinkRow

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)
SESSIONS: Table = SessionRow.metadata.tables["session"]
LINKS: Table = SignInLinkRow.metadata.tables["sign_in_link"]


def token(
    store: Store, role: Role = Role.REVIEWER, owner: str = "ann", expires_at: datetime | None = None
) -> tuple[Principal, str]:
    """A new principal for this owner, and its token."""
    return tokens.create(
        store, role=role, name="test", owners=[owner], expires_at=expires_at, actor="service", now=NOW
    )


def link(store: Store, token_id: str, lifetime: timedelta = LINK_LIFETIME) -> str:
    """A new link's code."""
    return sessions.create_link(store, token_id, lifetime=lifetime, actor="operator", now=NOW)


def started(store: Store, text: str, now: datetime = NOW, instead_of: str | None = None) -> str:
    """The secret of a session of this token."""
    secret = sessions.start(store, text, now=now, instead_of=instead_of)
    assert isinstance(secret, str)
    return secret


def who(store: Store, secret: str, now: datetime = NOW) -> Principal | None:
    """Who is signed in with this."""
    with store.read() as connection:
        found = sessions.find(connection, secret, now)
    return None if found is None else found.principal


def rows(store: Store, table: Table) -> int:
    """How many there are."""
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def logged(store: Store) -> list[tuple[str, Action, str]]:
    """(actor, action, subject) of the service's chain after the tokens; every chain is unbroken."""
    with store.read() as connection:
        assert log.verify(connection) == []
        entries = log.events(connection, frozenset({""}), after=None, limit=200)
    return [(e.actor, e.action, e.subject_id) for e in entries if e.action is not Action.TOKEN_CREATED]


def test_what_a_clock_that_was_ahead_began_is_not_good_until_then(store: Store) -> None:
    principal, text = token(store)
    ahead = NOW + timedelta(days=300)
    secret = started(store, text, ahead)
    code = sessions.create_link(store, principal.id, actor="operator", now=ahead)
    assert who(store, secret) is None
    assert sessions.redeem(store, code, now=NOW) is None
    with store.read() as connection:
        assert sessions.listing(connection, NOW) == []
    assert who(store, secret, ahead) == principal
    assert (
        who(store, started(store, text, NOW + timedelta(minutes=1))) == principal
    )  # another machine's clock


def test_a_token_starts_a_session_of_its_principal(store: Store) -> None:
    principal, text = token(store)
    secret = started(store, text)
    assert who(store, secret) == principal
    assert logged(store) == [(principal.id, Action.SESSION_STARTED, principal.id)]


def test_a_link_starts_a_session_once(store: Store) -> None:
    principal, _ = token(store)
    code = link(store, principal.id)
    assert rows(store, SESSIONS) == 0
    secret = sessions.redeem(store, code, now=NOW)
    assert secret is not None
    assert secret != code
    assert who(store, secret) == principal
    assert sessions.redeem(store, code, now=NOW) is None
    assert rows(store, SESSIONS) == 1
    assert logged(store) == [
        ("operator", Action.LINK_CREATED, principal.id),
        (principal.id, Action.SESSION_STARTED, principal.id),
    ]


@pytest.mark.on("sqlite")
def test_neither_secret_nor_code_is_kept(store: Store) -> None:
    principal, text = token(store)
    secret, code = started(store, text), link(store, principal.id)
    assert len(secret) == len(code) == 43  # 32 bytes, 6 bits a character
    with store.read() as connection:
        kept = connection.execute(select(SESSIONS)).one(), connection.execute(select(LINKS)).one()
        events = log.events(connection, None, after=None, limit=100)
    assert kept[0].digest == hashlib.sha256(secret.encode()).hexdigest()
    assert kept[1].digest == hashlib.sha256(code.encode()).hexdigest()
    assert not [s for s in (secret, code) if s in f"{kept}{events}"]
    assert who(store, kept[0].digest) is None
    assert sessions.redeem(store, kept[1].digest[:43], now=NOW) is None


def test_a_session_lasts_seven_days_and_a_link_its_time(store: Store) -> None:
    principal, text = token(store)
    secret, code, long = (
        started(store, text),
        link(store, principal.id),
        link(store, principal.id, LONGEST_LINK),
    )
    assert who(store, secret, NOW + SESSION_LIFETIME - TICK) == principal
    assert who(store, secret, NOW + SESSION_LIFETIME) is None
    assert sessions.redeem(store, code, now=NOW + LINK_LIFETIME) is None
    assert sessions.redeem(store, code, now=NOW + LINK_LIFETIME - TICK) is not None
    assert sessions.redeem(store, long, now=NOW + LONGEST_LINK - TICK) is not None


def test_a_session_ends_with_its_token(store: Store) -> None:
    (revoked, revoked_text), (_, passing_text) = (
        token(store),
        token(store, expires_at=NOW + timedelta(hours=1)),
    )
    ended, over, code = started(store, revoked_text), started(store, passing_text), link(store, revoked.id)
    tokens.revoke(store, revoked.id, actor="operator", now=NOW)
    assert who(store, ended) is None
    assert sessions.redeem(store, code, now=NOW) is None
    assert sessions.start(store, revoked_text, now=NOW) is SignInRefusal.UNKNOWN
    assert who(store, over, NOW + timedelta(hours=1) - TICK) is not None
    assert who(store, over, NOW + timedelta(hours=1)) is None
    assert sessions.start(store, passing_text, now=NOW + timedelta(hours=1)) is SignInRefusal.UNKNOWN
    assert rows(store, SESSIONS) == 2


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("role", [role for role in Role if role not in (Role.REVIEWER, Role.AUDITOR)])
def test_only_who_has_pages_signs_in(store: Store, role: Role) -> None:
    principal, text = token(store, role)
    assert sessions.start(store, text, now=NOW) is SignInRefusal.NOT_A_VISITOR
    with pytest.raises(ValueError, match=f"of role {role.value}; only reviewers and auditors"):
        link(store, principal.id)
    assert (rows(store, SESSIONS), rows(store, LINKS), logged(store)) == (0, 0, [])


@pytest.mark.on("postgresql")
@pytest.mark.parametrize("text", ["", "vg_", "vg_" + "0" * 16 + "_" + "A" * 43, "\ud800", "x" * 100_000])
def test_what_is_no_token_of_ours_is_unknown(store: Store, text: str) -> None:
    token(store)
    assert sessions.start(store, text, now=NOW) is SignInRefusal.UNKNOWN


@pytest.mark.on("postgresql")
@pytest.mark.parametrize("token_id", ["", "0" * 16, "nobody", "a\x00b", "\ud800", "x" * 5000])
def test_a_link_for_nobody_is_refused_with_a_sentence(store: Store, token_id: str) -> None:
    with pytest.raises(ValueError, match="There is no token"):
        link(store, token_id)
    assert rows(store, LINKS) == 0


@pytest.mark.on("sqlite")
def test_a_link_for_a_token_that_ended_is_refused_with_a_sentence(store: Store) -> None:
    (revoked, _), (passing, _) = token(store), token(store, expires_at=NOW + TICK)
    tokens.revoke(store, revoked.id, actor="operator", now=NOW)
    with pytest.raises(ValueError, match="is revoked"):
        link(store, revoked.id)
    with pytest.raises(ValueError, match="is expired"):
        sessions.create_link(store, passing.id, actor="operator", now=NOW + TICK)


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("lifetime", [timedelta(0), -TICK, LONGEST_LINK + TICK])
def test_a_link_lives_for_some_time_and_not_for_long(store: Store, lifetime: timedelta) -> None:
    principal, _ = token(store)
    with pytest.raises(ValueError, match="7 days at most"):
        link(store, principal.id, lifetime)


def test_signing_in_again_ends_the_session_before_in_the_same_step(store: Store) -> None:
    principal, text = token(store)
    other, other_text = token(store, owner="bob")
    first = started(store, text)
    second = started(store, other_text, instead_of=first)
    assert (who(store, first), who(store, second)) == (None, other)
    code = link(store, principal.id)
    third = sessions.redeem(store, code, now=NOW, instead_of=second)
    assert third is not None
    assert (who(store, second), who(store, third)) == (None, principal)
    assert sessions.redeem(store, code, now=NOW, instead_of=third) is None
    assert sessions.start(store, "vg_", now=NOW, instead_of=third) is SignInRefusal.UNKNOWN
    assert who(store, third) == principal  # what fails ends nothing
    assert [action for _, action, _ in logged(store)] == [
        Action.SESSION_STARTED,
        *(Action.SESSION_ENDED, Action.SESSION_STARTED),
        Action.LINK_CREATED,
        *(Action.SESSION_ENDED, Action.SESSION_STARTED),
    ]


def test_an_ended_session_is_over_and_ending_it_again_is_not_logged(store: Store) -> None:
    principal, text = token(store)
    kept, secret = started(store, text), started(store, text)
    assert sessions.end(store, secret, now=NOW)
    assert not sessions.end(store, secret, now=NOW)
    assert not sessions.end(store, "no secret", now=NOW)
    assert (who(store, secret), who(store, kept)) == (None, principal)
    assert [action for _, action, _ in logged(store)].count(Action.SESSION_ENDED) == 1


@pytest.mark.on("postgresql")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(st.characters(codec=None)) | st.from_regex(r"[A-Za-z0-9_-]{43}", fullmatch=True))
def test_no_text_raises_and_none_gets_in(store: Store, text: str) -> None:
    assert who(store, text) is None
    assert sessions.redeem(store, text, now=NOW) is None
    assert sessions.end(store, text, now=NOW) is False


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    "spoil", [lambda text: text[:-1], lambda text: text + "A", lambda text: text + "\n", str.swapcase]
)
def test_a_spoilt_secret_or_code_is_nobody_s(store: Store, spoil: Callable[[str], str]) -> None:
    principal, text = token(store)
    secret, code = started(store, text), link(store, principal.id)
    assert who(store, spoil(secret)) is None
    assert sessions.redeem(store, spoil(code), now=NOW) is None
    assert sessions.redeem(store, code, now=NOW) is not None


def use(store: Store, code: str) -> Report:
    """One of several processes that follow the same link."""
    secret = sessions.redeem(store, code, now=NOW)
    return [("in" if secret is not None else "out",)]


def test_of_several_processes_that_follow_a_link_one_gets_in(database_url: str, store: Store) -> None:
    principal, _ = token(store)
    code = link(store, principal.id)
    reports = race(database_url, use, [(code,)] * 3)
    assert sorted(reports) == [[("in",)], [("out",)], [("out",)]]
    assert rows(store, SESSIONS) == 1
    assert [action for _, action, _ in logged(store)] == [Action.LINK_CREATED, Action.SESSION_STARTED]


def test_the_sweep_forgets_what_nobody_can_use_any_more_and_nothing_else(store: Store) -> None:
    principal, text = token(store)
    late = NOW + timedelta(days=1)
    secrets = [started(store, text), started(store, text), started(store, text, late)]
    link(store, principal.id)
    kept = link(store, principal.id, LONGEST_LINK)
    queue, before = queue_of(store), logged(store)
    assert expire(queue, NOW) == Expired(0, 0)
    assert expire(queue, NOW + LINK_LIFETIME) == Expired(0, 0, 0, 1)
    assert sessions.redeem(store, kept, now=NOW + LONGEST_LINK - TICK) is not None
    assert queue.forget(sessions, NOW + SESSION_LIFETIME, limit=1) == 2  # one of each kind
    assert expire(queue, NOW + SESSION_LIFETIME) == Expired(0, 0, 0, 1)
    assert who(store, secrets[2], NOW + SESSION_LIFETIME) == principal
    assert (rows(store, SESSIONS), rows(store, LINKS)) == (2, 0)
    assert logged(store)[: len(before)] == before


def test_sessions_of_one_person_are_listed_and_ended_and_nobody_elses(store: Store) -> None:
    ann = persons.create(store, "ann", actor="operator", now=NOW)
    (first, text), (other, foreign) = token(store), token(store)
    tokens.assign(store, first.id, ann.id, actor="operator", now=NOW)
    _, second = tokens.create(store, role=Role.REVIEWER, name="t", person=ann.id, actor="operator", now=NOW)
    mine = [started(store, each, NOW + n * TICK) for n, each in enumerate((text, second, text))]
    theirs = started(store, foreign)
    me = who(store, mine[0])
    assert me is not None
    with store.read() as connection:
        listed = sessions.listing(connection, NOW + 2 * TICK, me)
        everybody = sessions.listing(connection, NOW + 2 * TICK)
    assert [one.id for one in listed] == [sessions.session_id(each) for each in reversed(mine)]
    assert {one.person_id for one in listed} == {ann.id}
    assert len(everybody) == 4
    assert sessions.end_others(store, me, mine[0], only=sessions.session_id(theirs), now=NOW) == 0
    assert sessions.end_others(store, me, mine[0], only=sessions.session_id(mine[1]), now=NOW) == 1
    assert sessions.end_others(store, me, mine[0], now=NOW) == 1
    assert [who(store, each) is not None for each in (*mine, theirs)] == [True, False, False, True]
    assert sessions.end_by_id(store, sessions.session_id(theirs), actor="operator", now=NOW)
    assert not sessions.end_by_id(store, sessions.session_id(theirs), actor="operator", now=NOW)
    assert not sessions.end_by_id(store, "x", actor="operator", now=NOW)
    assert logged(store)[-1] == ("operator", Action.SESSION_ENDED, other.id)
