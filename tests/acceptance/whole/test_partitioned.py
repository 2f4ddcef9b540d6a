"""A PostgreSQL database whose large tables are cut by owner: all that a gate does goes on, and its statements say whose
rows they are about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlmodel import SQLModel

from tests.acceptance.site import Site, approve, claim, is_problem, open_site, queue, store, submit
from tests.conftest import Postgresql
from tests.running.statements import logged
from vouchgate.cli.app import run
from vouchgate.ingest.claims.people import Role
from vouchgate.storage.engine import migrate, migration_config, open_engine, reading, writing
from vouchgate.storage.tables.partitions import LARGE, partition, partitions

PARTS = 3


@pytest.fixture
def operator(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Operator]:
    """At the command line of the database."""
    for name, value in {
        "DATABASE_URL": database_url,
        "LOG_KEY": str(tmp_path / "key"),
        "ERASURES": str(tmp_path / "erased"),
    }.items():
        monkeypatch.setenv(f"VOUCHGATE_{name}", value)
    yield Operator(tmp_path, capsys)


class Operator:
    """Who runs commands, in a folder of their own."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capture = folder, capture
        self.environment = {
            "VOUCHGATE_OFFLINE": "true",
            "VOUCHGATE_LOG_KEY": str(folder / "key"),
            "VOUCHGATE_ERASURES": str(folder / "erased"),
        }

    def command(self, *words: str | Path, status: int = 0) -> str:
        """All that a command says, which must end with this status."""
        self._capture.readouterr()
        ended = run([str(word) for word in words])
        said = "".join(self._capture.readouterr())
        assert ended == status, said
        return said


@pytest.mark.on("postgresql")
def test_a_partitioned_database_does_all_that_a_whole_one_does(
    database_url: str, operator: Operator, postgresql: Postgresql
) -> None:
    owners = [f"owner-{number}" for number in range(4)]
    with open_site(database_url, environment=operator.environment) as site:
        before = {owner: store(site.agent(owner), f"The depot of {owner} opens at dawn") for owner in owners}
        assert "stop the services" in operator.command("db", "partition", "--into", str(PARTS), status=1)
    said = operator.command("db", "partition", "--into", str(PARTS))
    assert f"memory: {len(owners)} rows in {PARTS} partitions" in said
    assert "partitioned already" in operator.command("db", "partition", "--into", "4", status=1)
    assert "up to date" in operator.command("db", "upgrade")
    name = database_url.rpartition("/test_")[2].partition("?")[0]
    postgresql.run(f"ALTER DATABASE test_{name} SET log_statement = 'all'")
    log = postgresql.data / "log"
    begun = log.stat().st_size
    with open_site(database_url, environment=operator.environment) as site:
        for owner in owners:
            essentials(site, owner, before[owner])
        everybodys(site, owners[0], before[owners[0]])
    operator.command("index", "verify")
    operator.command("audit", "export", "--owner", owners[1], "--out", operator.folder / "period")
    operator.command("replay", "--all")
    operator.command("log", "verify", "--data")
    with log.open(encoding="utf-8", errors="replace") as lines:
        lines.seek(begun)
        sent = logged(lines)
    file = operator.folder / "statements"
    file.write_text("\n".join(sent))
    said = operator.command("db", "doctor", "--distributed", "--statements", file)
    assert f"table memory: in {PARTS} partitions" in said
    assert "Everything else is keyed by owner." in said
    file.write_text("SELECT count(*) FROM memory WHERE memory.approved_by = $1\n")
    said = operator.command("db", "doctor", "--distributed", "--statements", file, status=1)
    assert "select memory of all by approved_by: NOT KEYED BY OWNER" in said
    engine, file_of = open_engine(database_url), text("SELECT pg_relation_filenode('memory_p0')")
    with reading(engine) as connection:
        file_before = connection.scalar(file_of)
    operator.command("db", "scrub")
    with reading(engine) as connection:
        assert (
            connection.scalar(file_of) != file_before
        )  # written anew, as what was erased may be in its free pages
        assert same_tables(connection)
        spread = connection.scalars(text("SELECT count(*) FROM memory GROUP BY tableoid")).all()
    assert len(spread) > 1
    for statement in (
        "TRUNCATE log_entry_p0",
        "TRUNCATE log_entry",
        "DELETE FROM log_entry",
        "UPDATE log_entry_p1 SET at = now()",
    ):
        with pytest.raises(Exception, match="append-only"), writing(engine) as connection:
            connection.execute(text(statement))
    engine.dispose()


def essentials(site: Site, owner: str, earlier: str) -> None:
    """What agents, reviewers and auditors of an owner do."""
    agent, reviewer, auditor = site.agent(owner), site.reviewer(owner), site.auditor(owner)
    said = f"The depot of {owner} opens at dawn"
    assert submit(agent, claim(said), 409).conflicting_memory_id == earlier
    stored = submit(agent, claim(f"The crane of {owner} lifts nine tons"), 201, key="once")
    assert submit(agent, claim(f"The crane of {owner} lifts nine tons"), 201, key="once") == stored
    submit(agent, claim(f"I guess the cellar of {owner} is damp"), 422)
    kept = approve(agent, reviewer, f"The ferry of {owner} sails on Mondays", source="ai_synthesis")
    item = queue(agent, f"The clerk of {owner} has gone fishing")
    assert [each["id"] for each in reviewer.get("/v1/reviews").json()["items"]] == [item]
    body = {"version": 1, "reason": "it is not so"}
    assert reviewer.post(f"/v1/reviews/{item}/reject", json=body).status_code == 200
    for path in ("/v1/claims/pending", f"/v1/decisions/{stored.decision_id}", f"/v1/memories/{kept}"):
        assert agent.get(path).status_code == 200, path
    searched = f"/v1/memories?q=cranes&agent=nobody&as_of=2026-05-01&user_id={owner}"
    for path in (
        "/v1/memories",
        f"/v1/memories/{kept}/evidence",
        "/v1/audit/events",
        "/v1/audit/reviews",
        searched,
    ):
        assert auditor.get(path).status_code == 200, path
    assert reviewer.delete(f"/v1/memories/{kept}", params={"reason": "sold"}).status_code == 200
    basis = {"basis": "GDPR Art. 17(1)(b)"}
    assert reviewer.post(f"/v1/erasures/{stored.memory_id}", json=basis).json()["status"] == "erased"
    is_problem(auditor.get(f"/v1/memories/{stored.memory_id}"), 410)


def everybodys(site: Site, owner: str, earlier: str) -> None:
    """What those ask who act for every owner, and the pages."""
    auditor, reviewer = site.auditor(), site.caller()
    by_id = (f"/v1/memories/{earlier}", f"/v1/decisions/dec_{earlier[4:]}")
    for path in ("/v1/memories", "/v1/audit/events", "/v1/audit/reviews", "/readyz", "/metrics", *by_id):
        assert auditor.get(path).status_code == 200, path
    _, secret = site.token(Role.REVIEWER, owner)
    form = re.search(r'name="csrf" value="(\w+)"', reviewer.get("/review/sign-in").text)
    assert form is not None
    reviewer.post("/review/sign-in", data={"csrf": form[1], "token": secret})
    for path in (
        "/review",
        "/review/numbers",
        "/review/history",
        "/review/memories",
        "/review/memories?q=crane",
    ):
        assert reviewer.get(path).status_code == 200, path


def same_tables(connection: Connection) -> bool:
    """Whether the tables are those of the program, but for partitions."""
    cut = partitions(connection)
    assert set(cut) == set(LARGE)

    def whole(name: str | None, kind: str, _: object) -> bool:
        return kind != "table" or (name or "").rpartition("_p")[0] not in cut

    options = {"compare_type": True, "include_name": whole}
    return not compare_metadata(MigrationContext.configure(connection, opts=options), SQLModel.metadata)


@pytest.mark.on("postgresql")
def test_migrations_go_on_from_a_database_that_was_partitioned(empty_database_url: str) -> None:
    engine = open_engine(empty_database_url)
    with writing(engine) as connection:
        config = migration_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0024")  # the next ones add columns, indexes and a trigger to what is cut
    with writing(engine) as connection:
        partition(connection, PARTS)
    migrate(engine)
    with reading(engine) as connection:
        assert same_tables(connection)
    engine.dispose()


@pytest.mark.on("sqlite")
def test_sqlite_has_no_partitions(operator: Operator) -> None:
    assert "only PostgreSQL" in operator.command("db", "partition", "--into", "4", status=1)
    assert "Everything else is keyed by owner." in operator.command("db", "doctor", "--distributed")
