"""`vouchgate review` on several items at once, and what it says about them without ruling, over one real database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli_program import cli, complaint, json_lines
from tests.claims import policy
from tests.reviews import waiting
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.storage.identity import tokens
from vouchgate.storage.store import Store

NOW = datetime.now(UTC)


@dataclass(frozen=True)
class Desk:
    """A folder with a database of six waiting claims, and its reviewer's token."""

    folder: Path
    items: dict[str, PendingMemory]
    env: dict[str, str]

    def review(self, *arguments: str) -> Any:
        return cli("review", *arguments, cwd=self.folder, env=self.env)

    def status(self, name: str) -> dict[str, Any]:
        (shown,) = json_lines(self.review("show", self.items[name].id, "--json").stdout)
        item: dict[str, Any] = shown["item"]
        return item


@pytest.fixture
def desk(migrated_file: Path, tmp_path: Path) -> Iterator[Desk]:
    file = tmp_path / "vouchgate.db"
    file.write_bytes(migrated_file.read_bytes())
    store = Store.open(f"sqlite:///{file}", threshold=policy().threshold)
    names = ("kettle", "kiln", "sieve", "shelf", "table", "roof")
    items = {name: waiting(store, f"The {name} was returned to house {name}.", now=NOW) for name in names}
    asked: dict[str, Any] = {"owners": ["ann"], "actor": "test", "now": NOW}
    env = {
        "VOUCHGATE_DATABASE_URL": f"sqlite:///{file}",
        "VOUCHGATE_TOKEN": tokens.create(store, role=Role.REVIEWER, name="Rita", **asked)[1],
    }
    tokens.create(store, role=Role.REVIEWER, name="Bea", **asked)
    store.close()
    yield Desk(tmp_path, items, env)


def test_what_a_filter_finds_is_told_before_it_is_ruled_on(desk: Desk) -> None:
    meant = ("--filter", "returning kiln", "--reason", "it is a stove")
    dry = desk.review("reject", *meant, "--dry-run")
    assert dry.returncode == 0
    told = dry.stdout.decode()
    assert desk.items["kiln"].id in told
    assert told.endswith("Would reject 1 item; nothing was done.\n")
    refused = desk.review("reject", *meant)  # nobody can answer here
    assert refused.returncode == 2
    assert "this would reject 1 item: say --yes" in complaint(refused, 2)
    assert desk.status("kiln")["status"] == "pending"
    done = desk.review("reject", *meant, "--yes")
    assert done.returncode == 0
    assert f"Rejected: {desk.items['kiln'].id} will not be stored." in done.stdout.decode()
    assert done.stderr.decode() == "Done: all 1.\n"
    assert desk.status("kiln")["note"] == "it is a stove"
    # Several ids; one that is decided already spoils no other.
    ids = [desk.items[name].id for name in ("kiln", "sieve", "shelf")]
    some = desk.review("approve", *ids, "--latest")
    assert some.returncode == 1
    assert some.stdout.decode().count("Approved: stored as mem_") == 2
    assert f"{ids[0]}: the item does not wait any more: it is rejected" in some.stderr.decode()
    assert some.stderr.decode().endswith("Done: 2 of 3.\n")
    gone = desk.review("let-go", "--filter", "agent:agent house", "--reason", "no source", "--dry-run")
    assert gone.stdout.decode().endswith("nothing was done.\n")
    gone = desk.review("let-go", desk.items["table"].id, desk.items["roof"].id, "--reason", "no source")
    assert gone.stdout.decode() == "Let go: 2 items.\n"
    assert desk.status("roof")["status"] == "let_go"
    back = desk.review("undo", desk.items["roof"].id, "--version", "2")
    assert back.returncode == 0, complaint(back)
    for arguments, says in (
        (("reject", "--reason", "x"), "name items, or give a --filter"),
        (("reject", "--reason", "x", "--filter", "agnet:x"), "did you mean agent:"),
        (("reject", "--reason", "x", "--filter", " "), "finds everything"),
        (("approve", *ids, "--version", "1"), "is for one item"),
    ):
        failed = desk.review(*arguments)
        assert failed.returncode == 2, failed.stdout
        assert says in failed.stderr.decode()


def test_what_is_said_of_items_and_saved_views(desk: Desk) -> None:
    kettle, kiln = desk.items["kettle"].id, desk.items["kiln"].id
    assert "snoozed until" in desk.review("snooze", kettle, kiln, "--until", "2d").stdout.decode()
    assert desk.review("assign", kettle, "--to", "bea").returncode == 0
    asked = desk.review("send-back", desk.items["roof"].id, "--latest", "--question", "Who says so?")
    assert "sent back to its agent" in asked.stdout.decode()
    listed = desk.review("list", "--json")
    assert {item["id"] for item in json_lines(listed.stdout)} == {
        desk.items[name].id for name in ("sieve", "shelf", "table")
    }
    assert desk.review("views", "--save", "hers", "is:snoozed assigned:bea").stdout == (
        b"hers  is:snoozed assigned:bea\n"
    )
    (one,) = json_lines(desk.review("list", "--view", "hers", "--json").stdout)
    assert one["id"] == kettle
    assert desk.review("look", kettle).returncode == 0
    shown = desk.review("show", kettle).stdout.decode()
    assert "snoozed   until" in shown
    assert "assigned  to" in shown
    assert "looked at by" in shown
    assert desk.review("resume", kettle, desk.items["roof"].id).returncode == 0
    assert len(json_lines(desk.review("list", "--json").stdout)) == 5
    assert "no_reviewer" in complaint(desk.review("assign", kettle, "--to", "nobody else"))
    assert "no time" in complaint(desk.review("snooze", kettle, "--until", "soon"), 2)
    assert "no view 'mine'" in complaint(desk.review("list", "--view", "mine"))
