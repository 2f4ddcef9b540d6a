"""Tokens: made once, known again, never readable from the database, ended by time or by hand."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.storage.identity import tokens
from vouchgate.storage.identity.names import valid_owner_id
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import TokenRow

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(days=30)


def agent(
    store: Store, *, expires_at: datetime | None = None, name: str = "crawler"
) -> tuple[Principal, str]:
    """A new agent for ann, who may assert two sources."""
    return tokens.create(
        store,
        role=Role.AGENT,
        name=name,
        owners=["ann"],
        sources=[Source.USER, Source.COMMIT],
        expires_at=expires_at,
        actor="service",
        now=NOW,
    )


def who(store: Store, presented: str, now: datetime = NOW) -> Principal | None:
    """Whose token this is."""
    with store.read() as connection:
        return tokens.authenticate(connection, presented, now)


def service_log(store: Store) -> list[tuple[str, Action, str]]:
    """(actor, action, subject) of the service's own chain; every chain is unbroken."""
    with store.read() as connection:
        assert log.verify(connection) == []
        entries = log.events(connection, frozenset({""}), after=None, limit=100)
    return [(entry.actor, entry.action, entry.subject_id) for entry in entries]


def test_a_token_is_its_principal_again(store: Store) -> None:
    principal, text = agent(store)
    assert who(store, text) == principal
    assert principal == Principal(
        id=principal.id,
        name="crawler",
        role=Role.AGENT,
        owners=frozenset({"ann"}),
        sources=frozenset({Source.USER, Source.COMMIT}),
    )
    assert text.startswith(f"vg_{principal.id}_")
    assert service_log(store) == [("service", Action.TOKEN_CREATED, principal.id)]


@pytest.mark.on("sqlite")
def test_two_tokens_share_nothing(store: Store) -> None:
    (one, text), (other, other_text) = agent(store), agent(store)
    assert one.id != other.id
    assert text[20:] != other_text[20:]
    assert who(store, text[:20] + other_text[20:]) is None


@pytest.mark.on("sqlite")
def test_the_secret_is_nowhere(store: Store) -> None:
    principal, text = agent(store)
    secret = text.removeprefix(f"vg_{principal.id}_")
    assert len(secret) >= 43  # 32 bytes, 6 bits a character
    table = TokenRow.metadata.tables["token"]
    with store.read() as connection:
        row = connection.execute(select(table)).one()
        shown = tokens.listing(connection)
    assert secret not in str(row)
    assert row.secret_digest == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in str(shown)
    assert row.secret_digest not in str(shown)


def test_the_listing_says_all_but_the_secret(store: Store) -> None:
    principal, _ = agent(store, expires_at=LATER)
    auditor, _ = tokens.create(
        store, role=Role.AUDITOR, name="yearly audit", any_owner=True, actor="service", now=LATER
    )
    assert tokens.revoke(store, principal.id, actor=auditor.id, now=LATER)
    with store.read() as connection:
        first, second = tokens.listing(connection)
    assert first.model_dump() == {
        "id": principal.id,
        "name": "crawler",
        "role": Role.AGENT,
        "owners": ("ann",),
        "any_owner": False,
        "new_owners": False,
        "person_id": None,
        "sources": (Source.COMMIT, Source.USER),
        "created_at": NOW,
        "expires_at": LATER,
        "revoked_at": LATER,
    }
    assert (second.id, second.any_owner, second.expires_at, second.revoked_at) == (
        auditor.id,
        True,
        None,
        None,
    )


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text.upper(),
        lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"),
        lambda text: text.replace("vg_", "gx_", 1),
        lambda text: "vg_" + "0" * 16 + text[19:],
        lambda text: "vg__" + text[20:],
        lambda text: text[:-1] + "é",
        lambda text: text[:-1] + "\ud800",
        lambda text: text[:-1] + "\x00",
        lambda text: text.replace("vg_", "ｖｇ_", 1),
        lambda text: text * 50_000,
        lambda text: f"Bearer {text}",
    ],
)
def test_a_spoilt_token_is_nobody(store: Store, spoil: object) -> None:
    _, text = agent(store)
    assert callable(spoil)
    presented = spoil(text)
    assert presented != text
    assert who(store, presented) is None
    assert who(store, text) is not None


@pytest.mark.on("postgresql")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.text(st.characters(codec=None))
    | st.from_regex(r"[vg]g_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", fullmatch=True)
)
def test_no_text_raises_and_none_gets_in(store: Store, presented: str) -> None:
    assert who(store, presented) is None


def test_a_token_ends_at_its_time(store: Store) -> None:
    principal, text = agent(store, expires_at=LATER)
    assert who(store, text, LATER - timedelta(microseconds=1)) == principal
    assert who(store, text, LATER) is None


def test_a_revoked_token_is_nobody_and_revoking_again_changes_nothing(store: Store) -> None:
    principal, text = agent(store)
    other, other_text = agent(store, name="other")
    assert tokens.revoke(store, principal.id, actor="admin-1", now=NOW)
    assert who(store, text) is None
    assert who(store, other_text) == other
    assert tokens.revoke(store, principal.id, actor="admin-2", now=LATER)
    with store.read() as connection:
        revoked = {info.id: info.revoked_at for info in tokens.listing(connection)}
    assert revoked == {principal.id: NOW, other.id: None}
    assert service_log(store)[2:] == [("admin-1", Action.TOKEN_REVOKED, principal.id)]


@pytest.mark.on("postgresql")
@pytest.mark.parametrize("token_id", ["", "0" * 16, "nobody", "a\x00b", "\ud800", "x" * 5000])
def test_revoking_what_is_no_token_says_so(store: Store, token_id: str) -> None:
    agent(store)
    assert tokens.revoke(store, token_id, actor="admin-1", now=NOW) is False
    assert len(service_log(store)) == 1


@dataclass(frozen=True)
class Grant:
    """A grant as asked for."""

    role: Role
    owners: tuple[str, ...] = ()
    any_owner: bool = False
    new_owners: bool = False
    sources: tuple[Source, ...] = ()

    def create(self, store: Store) -> tuple[Principal, str]:
        """Asks for it."""
        return tokens.create(
            store,
            role=self.role,
            name="Früh-Bot 7",
            owners=self.owners,
            any_owner=self.any_owner,
            new_owners=self.new_owners,
            sources=self.sources,
            actor="service",
            now=NOW,
        )


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    ("grant", "says"),
    [
        (Grant(Role.REVIEWER), "for owners by name"),
        (Grant(Role.REVIEWER, any_owner=True), "for owners by name"),
        (Grant(Role.REVIEWER, ("ann",), any_owner=True), "for owners by name"),
        (Grant(Role.RECORDER, any_owner=True), "not for any owner"),
        (Grant(Role.RECORDER), "at least one owner"),
        (Grant(Role.AGENT, ("ann",), new_owners=True), "may name new ones"),
        (Grant(Role.AUDITOR, any_owner=True, new_owners=True), "may name new ones"),
        (Grant(Role.REVIEWER, ("ann",), sources=(Source.USER,)), "Only an agent asserts sources"),
        (Grant(Role.AUDITOR, any_owner=True, sources=(Source.USER,)), "Only an agent asserts sources"),
        (Grant(Role.ADMIN, any_owner=True, sources=(Source.MANUAL,)), "Only an agent asserts sources"),
        (Grant(Role.AGENT), "at least one owner"),
        (Grant(Role.AUDITOR), "at least one owner"),
        (Grant(Role.AGENT, ("",)), "An owner id has"),
        (Grant(Role.AGENT, ("ann", "x" * 201)), "An owner id has"),
        (Grant(Role.REVIEWER, ("line\nbreak",)), "An owner id has"),
        (Grant(Role.AGENT, ("\ud800",)), "An owner id has"),
    ],
)
def test_a_grant_that_makes_no_sense_is_refused_with_a_sentence(
    store: Store, grant: Grant, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        grant.create(store)
    with store.read() as connection:
        assert tokens.listing(connection) == []
    assert service_log(store) == []


@pytest.mark.on("sqlite")
@pytest.mark.parametrize(
    "grant",
    [
        Grant(Role.REVIEWER, ("ann",)),
        Grant(Role.REVIEWER, ("ann", "bob")),
        Grant(Role.RECORDER, ("ann",)),
        Grant(Role.AGENT, any_owner=True, new_owners=True),
        Grant(Role.AGENT, ("ann", "bob"), sources=(Source.CHAT,)),
        Grant(Role.AGENT, any_owner=True, sources=tuple(Source)),
        Grant(Role.AUDITOR, any_owner=True),
        Grant(Role.AUDITOR, ("ann",)),
        Grant(Role.ADMIN, any_owner=True),
        Grant(Role.ADMIN),
    ],
)
def test_a_grant_that_makes_sense_is_given_as_asked(store: Store, grant: Grant) -> None:
    principal, text = grant.create(store)
    assert who(store, text) == principal
    assert principal == Principal(
        id=principal.id,
        name="Früh-Bot 7",
        role=grant.role,
        owners=frozenset(grant.owners),
        any_owner=grant.any_owner,
        new_owners=grant.new_owners,
        sources=frozenset(grant.sources),
    )


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\x00", "\ud800"])
def test_a_name_is_printable(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="name has 1 to 200"):
        agent(store, name=name)


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("expires_at", [NOW, NOW - timedelta(days=1), datetime(2027, 1, 1)])
def test_an_expiry_is_in_the_future_and_has_a_zone(store: Store, expires_at: datetime) -> None:
    with pytest.raises(ValueError, match="expire"):
        agent(store, expires_at=expires_at)


def test_a_token_that_cannot_be_logged_is_not_made(store: Store) -> None:
    agent(store)

    def block_the_next_entry(connection: Connection) -> None:
        row = connection.execute(select(log.TABLE).where(log.TABLE.c.owner_id == "")).mappings().one()
        connection.execute(log.TABLE.insert(), dict(row) | {"seq": 2})

    store.writer.run([""], block_the_next_entry).result()
    with pytest.raises(Exception, match=r"(?i)unique|refused"):
        agent(store)
    with store.read() as connection:
        assert len(tokens.listing(connection)) == 1


@pytest.mark.parametrize(
    "text", ["ann", "a", "x" * 200, "Ann Müller", "用户-7", "user@host.example", "a/b:c", "%_'\"\\", "🦊"]
)
def test_owner_ids(text: str) -> None:
    assert valid_owner_id(text)


@pytest.mark.parametrize(
    "text",
    ["", "x" * 201, "a\tb", "a\nb", "\x00", "\x7f", "a\u200bb", "a\u202eb", "\ud800", "\u2028", "a\xa0b"],
)
def test_no_owner_ids(text: str) -> None:
    assert not valid_owner_id(text)
