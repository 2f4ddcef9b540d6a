"""A database that the first version wrote, before the product had its name, is read and gone on with.

`earlier_database.sql` is such a database as text, made at commit 28ebed9: a small bakery's claims, decided from its
git repository (which is not kept), with an approval, a rejection, a delivery, a conflict and a masked credential. The
product's name of then is in the policy that it holds, written in two halves, because the policy's digest rests on it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.acceptance.cli_program import cli, json_lines
from tests.conftest import THRESHOLD
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.storage.identity import tokens
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store

EARLIER = Path(__file__).with_name("earlier_database.sql")
AGENT, REVIEWER, REVOKED = re.findall(r"^-- \w+ (gg_\S+)$", EARLIER.read_text("utf-8"), re.MULTILINE)
KEPT = [
    "Rye bread is raised with a sourdough starter, see ADR-0007.",
    "The deck oven is heated to 230 degrees since 1a353db475.",
    "I want my rolls without caraway.",
    "The shop opens at six in the morning from Monday to Saturday, the first rolls lie in the window by then, and the "
    "ovens are lit four hours before the doors are unlocked.",
    "The second oven may be replaced in spring.",
]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Where a copy of that database is."""
    file = tmp_path / "earlier.db"
    with sqlite3.connect(file) as made:
        made.executescript(EARLIER.read_text("utf-8"))
    made.close()
    return f"sqlite:///{file}"


@pytest.fixture
def opened(url: str) -> Iterator[Store]:
    """The same, opened by today's program."""
    store = Store.open(url, threshold=THRESHOLD)
    yield store
    store.close()


def who(store: Store, presented: str) -> Principal | None:
    """Whose token this is."""
    with store.read() as connection:
        return tokens.authenticate(connection, presented, datetime.now(UTC))


def test_tokens_made_then_hold_and_a_revoked_one_does_not(opened: Store) -> None:
    agent, reviewer = who(opened, AGENT), who(opened, REVIEWER)
    assert agent is not None
    assert (agent.role, agent.owners, agent.sources) == (
        Role.AGENT,
        frozenset({"ann"}),
        frozenset({Source.USER}),
    )
    assert reviewer is not None
    assert (reviewer.role, reviewer.owners) == (Role.REVIEWER, frozenset({"ann"}))
    assert who(opened, REVOKED) is None
    assert who(opened, AGENT[:-1] + "A") is None


def test_tokens_made_in_it_now_have_the_prefix_of_now(opened: Store) -> None:
    principal, made = tokens.create(
        opened, role=Role.AUDITOR, name="new", owners=["ann"], actor="operator", now=datetime.now(UTC)
    )
    assert made.startswith("vg_")
    assert who(opened, made) == principal


def test_its_log_is_unbroken_and_goes_on(opened: Store) -> None:
    with opened.read() as connection:
        before = log.events(connection, frozenset({"ann"}), after=None, limit=100)
    assert len(before) > 10
    agent = who(opened, AGENT)
    assert agent is not None
    assert tokens.revoke(opened, agent.id, actor="operator", now=datetime.now(UTC))
    with opened.read() as connection:
        assert log.verify(connection) == []


def test_its_decisions_are_the_same_when_made_again(url: str, tmp_path: Path) -> None:
    done = cli("replay", "--all", "--database-url", url, cwd=tmp_path)
    assert done.stdout.decode() == "12 decisions: 12 the same when made again, 0 not.\n"
    assert done.returncode == 0
    assert cli("log", "verify", "--database-url", url, cwd=tmp_path).returncode == 0
    data = cli("log", "verify", "--data", "--database-url", url, cwd=tmp_path)
    *rows, uncovered, looked_at, _limits, unbroken = data.stdout.decode().splitlines()
    assert (data.returncode, rows, unbroken) == (0, [], "The log is unbroken.")
    assert (
        uncovered
        == "not covered: 3 times the digest of a token's secret (made before version 2 of its entry)"
    )
    assert looked_at.endswith("rows and entries: no differences.")
    assert cli("index", "verify", "--database-url", url, cwd=tmp_path).returncode == 0


def test_its_memories_and_its_queue_are_there(url: str, tmp_path: Path) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as plain:
        kept = [content for (content,) in plain.execute("SELECT content FROM memory ORDER BY id")]
    plain.close()
    assert sorted(kept) == sorted(KEPT)
    listed = cli("review", "list", "--json", "--token", REVIEWER, "--database-url", url, cwd=tmp_path)
    assert len(json_lines(listed.stdout)) == 3, listed.stderr
    again = cli("check", "--database-url", url, cwd=tmp_path, stdin=_sent(KEPT[2]))
    (answer,) = json_lines(again.stdout)
    assert (answer["outcome"], answer["reason"]) == ("blocked", "Duplicate of existing memory")


def _sent(content: str) -> str:
    return f'{{"content": "{content}", "memory_type": "preference", "source": "user", "user_id": "ann"}}\n'
