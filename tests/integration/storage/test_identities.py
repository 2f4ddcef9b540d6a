"""What people sign in with elsewhere, sign-ins on their way, and the one who is back first."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from tests.reviews import queue_of
from tests.running.racers import Report, race
from vouchgate.ingest.claims.people import Person
from vouchgate.review.ending.expiry import expire
from vouchgate.storage.identity import identities, persons, sessions, tokens
from vouchgate.storage.identity.identities import FLOW_LIFETIME, SignInFlow, derived
from vouchgate.storage.store import Store

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ISSUER, SUB = "https://login.example.org", "248289761001"


@pytest.fixture
def ann(store: Store) -> Person:
    return persons.create(store, "ann", actor="operator", now=NOW)


def link(store: Store, person: Person, sub: str = SUB, issuer: str = ISSUER) -> str:
    return identities.link(store, person, issuer, sub, actor="operator", now=NOW)


def unlink(store: Store) -> bool:
    return identities.unlink(store, ISSUER, SUB, actor="operator", now=NOW)


def start(store: Store, sub: str = SUB, issuer: str = ISSUER) -> str | None:
    return sessions.start_as(store, issuer, sub, proved_at=None, now=NOW)


def test_an_identity_is_one_persons_until_it_is_unlinked(store: Store, ann: Person) -> None:
    bea = persons.create(store, "bea", actor="operator", now=NOW)
    token_id = link(store, ann)
    for person in (ann, bea):
        with pytest.raises(ValueError, match="linked already"):
            link(store, person)
    secret = start(store)
    assert secret is not None
    for other in (("https://login.example.org/", SUB), (ISSUER, SUB + " "), (ISSUER, SUB[:-1]), (ISSUER, "")):
        assert start(store, other[1], other[0]) is None
    assert unlink(store)
    assert not unlink(store)
    assert start(store) is None
    link(store, bea)
    with store.read() as connection:
        assert sessions.find(connection, secret, NOW) is None
        (linked,) = identities.listing(connection)
        assert tokens.names(connection, [token_id, linked.token_id]) == {
            token_id: "ann",
            linked.token_id: "bea",
        }
    assert (linked.issuer, linked.sub, linked.person_id) == (ISSUER, SUB, bea.id)


def test_a_revoked_token_unlinks_it_too(store: Store, ann: Person) -> None:
    tokens.revoke(store, link(store, ann), actor="operator", now=NOW)
    assert start(store) is None
    assert not unlink(store)
    link(store, ann)
    assert start(store) is not None


@pytest.mark.parametrize("sub", ["", "x" * 256, "a\nb", "ä", "\x00"])
@pytest.mark.on("sqlite")
def test_what_is_no_identity_is_linked_to_nobody(store: Store, ann: Person, sub: str) -> None:
    with pytest.raises(ValueError, match="A sub has"):
        link(store, ann, sub)
    with pytest.raises(ValueError, match="An issuer is"):
        link(store, ann, issuer=sub or "login.example.org")
    assert not identities.unlink(store, ISSUER, sub, actor="operator", now=NOW)


def test_nobody_who_ended_is_linked(store: Store, ann: Person) -> None:
    persons.end(store, ann, actor="operator", now=NOW)
    with pytest.raises(ValueError, match="ended just now"):
        link(store, ann)
    with store.read() as connection:
        assert tokens.listing(connection) == []


def begin(store: Store) -> str:
    return identities.begin_flow(store, SignInFlow("/review", again=True), now=NOW)


def rows_of_flows(store: Store) -> int:
    with store.read() as connection:
        return int(connection.execute(text("SELECT count(*) FROM sign_in_flow")).scalar_one())


def test_a_sign_in_is_taken_once_and_in_its_time(store: Store) -> None:
    cookie, other = begin(store), begin(store)
    assert cookie != other
    assert rows_of_flows(store) == 0  # whoever begins one costs nothing
    body, _, seal = cookie.rpartition(".")
    said = json.loads(base64.urlsafe_b64decode(body))
    forged = base64.urlsafe_b64encode(json.dumps([*said[:2], False, said[3]]).encode()).decode()
    for wrong in (
        cookie[:-1],
        "x" * 43,
        "",
        ".",
        f"{forged}.{seal}",
        f"{other.rpartition('.')[0]}.{seal}",
        "\ud800.x",
    ):
        assert identities.end_flow(store, wrong, now=NOW) is None
    assert identities.end_flow(store, cookie, now=NOW) == SignInFlow("/review", again=True)
    assert identities.use_up(store, cookie, now=NOW)
    assert not identities.use_up(store, cookie, now=NOW)
    assert identities.end_flow(store, cookie, now=NOW) is None
    assert identities.end_flow(store, other, now=NOW + FLOW_LIFETIME) is None
    assert rows_of_flows(store) == 1
    expire(queue_of(store), NOW + FLOW_LIFETIME)
    assert rows_of_flows(store) == 0


def test_what_a_sign_in_shows_gives_nothing_else_away() -> None:
    shown = {derived("x" * 43, purpose) for purpose in ("state", "nonce", "verifier")}
    assert len(shown) == 3
    assert {len(each) for each in shown} == {43}


def come_back(store: Store, secret: str) -> Report:
    """One of several processes that are asked with the same cookie."""
    return [("in" if identities.use_up(store, secret, now=NOW) else "out",)]


def test_of_several_processes_that_are_asked_at_once_one_takes_it(database_url: str, store: Store) -> None:
    assert sorted(race(database_url, come_back, [(begin(store),)] * 3)) == [[("in",)], [("out",)], [("out",)]]
