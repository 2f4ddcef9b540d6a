"""`make soak`: an hour of mixed load on the service, while sources lie and hang and everything is killed now and then,
on SQLite and PostgreSQL. What must hold is looked at throughout and at the end (`Soak.broken`); the rest is measured.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from pathlib import Path

import psycopg

from bench.postgres import leave_on_sigterm
from bench.soak.gauges import END, MIB, Gauges, draw
from tests.acceptance.cli_program import cli
from tests.conftest import Postgresql
from tests.running.invariants import Kept, look
from tests.running.load import Caller, Load, Where, seeded
from tests.running.service import THRESHOLD, Running, make_token, serve, workers_of
from tests.running.told import kept_though_refused, untrue, unvouched
from tests.running.traffic import ENDED, POLICY, VOUCHED, Actor, Paced, Pages, Told, until_stopped
from tests.web import web_server
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.people import Role
from vouchgate.ingest.rules import Rule
from vouchgate.storage.log import chain
from vouchgate.storage.outgoing import webhooks
from vouchgate.storage.store import Store

OWNERS = ("ann", "ben", "cem")  # nobody rules on what waits for the last
SAMPLE = 60  # of what is read back at the end, with receipts
PATIENCE = 150.0  # seconds until what a killed process had leased must be done by another one

Database = tuple[str, str, Postgresql | None]  # its kind, URL and server


@dataclass(frozen=True)
class Options:
    """`rate`: requests a second of each of the eleven callers of a database, at most. `anew`: the service is started as
    its users do, and not forked from the tests."""

    seconds: float = 3600.0
    databases: tuple[str, ...] = ("sqlite", "postgresql")
    rate: float = 2.0
    seed: int = 18
    anew: bool = True
    picture: Path | None = None


class Soak:
    """One database. `broken` names each invariant that did not hold, with what was seen."""

    def __init__(self, options: Options, database: Database, folder: Path) -> None:
        self.kind, self.url, self.server = database
        self.options, self.folder = options, folder
        self.dice, self.pages = seeded(f"{options.seed} {self.kind}"), Pages(f"{options.seed} {self.kind}")
        self.told, self.where = Told(), Where(patience=4 * PATIENCE)
        self.broken, self.note = self.told.broken, self.told.note
        # The database first: who met with an error tries again after a while, for which nobody should wait at the end.
        self.ways = ["database"] * (self.server is not None) + ["kill", "term", "worker"]
        self._turns, self._since = cycle(self.ways), 0.0
        self.gauges = Gauges(self.told, self._sizes, max(0.5, options.seconds / 900))

    def run(self) -> None:
        """All of it: two thirds of the time, or longer, with kills of each kind, one without, and what must hold in the
        end."""
        policy = self.folder / "policy.toml"
        policy.write_text(POLICY.format(places=max(10, int(self.options.seconds / 10))))
        with web_server(self.pages) as site, closing(self.where), self.gauges:
            environment = {
                "VOUCHGATE_ALLOW_NETWORKS": "127.0.0.0/8",
                "VOUCHGATE_CITATION_NETWORKS": site.place,
                "VOUCHGATE_LOG_KEY": str(self.folder / "log-key"),
                "VOUCHGATE_ERASURES": str(self.folder / "erasures.jsonl"),
            }
            given = partial(serve, policy=policy, environment=environment, anew=self.options.anew)
            load, begun = self._load(site.url), partial(given, self.url, workers=2)
            with ExitStack() as stack:
                while not self._live(begun, load, stack):
                    pass

    def _load(self, site: str) -> Load:
        with closing(Store.open(self.url, threshold=THRESHOLD)) as store:
            webhooks.create(store, owner_id="ann", url=f"{site}/hook", actor="soak", now=datetime.now(UTC))
        connect = partial(Paced, told=self.told, rate=self.options.rate)
        token, sources = partial(make_token, self.url), frozenset({Source.USER})
        agents = [token(Role.AGENT, any_owner=True, sources=sources) for _ in range(2)]
        reviewers = [token(Role.REVIEWER, [owner]) for owner in OWNERS[:2]]
        load = Load(self.where, [*agents, *agents], reviewers, OWNERS, connect=connect)

        def actor(owner: str) -> Actor:
            caller = connect(self.where, token(Role.AGENT, [owner], sources=sources))
            return Actor(self.told, load.ledger, caller, site)

        ender, self.checker, self.shelf, citer = map(actor, ("end", "check", "shelf", "cite"))
        ender.owner = connect(self.where, token(Role.REVIEWER, ["end"]))
        auditor = token(Role.AUDITOR, any_owner=True)
        reader = Actor(self.told, load.ledger, connect(self.where, auditor))
        self.auditor = Actor(self.told, load.ledger, Caller(self.where, auditor))
        for act in (citer.cites, ender.ends, self.checker.checks, self.shelf.delivers, reader.reads):
            load.add(until_stopped(act))
        return load

    def _live(
        self, begin: Callable[[], AbstractContextManager[Running]], load: Load, stack: ExitStack
    ) -> bool:
        """One service, until it is killed; or until the end, and that it was."""
        every, quiet = max(2.0, self.options.seconds / 60), self.options.seconds * 2 / 3
        with begin() as running:
            self.gauges.pid = running.process.pid
            self.where.set(running.url)
            if not self._since:  # it begins when there is a service
                self._since = time.monotonic()
                stack.enter_context(load)
            with closing(Store.open(self.url, threshold=THRESHOLD)) as store, store.read() as connection:
                self.note("the log verifies", chain.verify(connection))
            while time.monotonic() - self._since < quiet or len(self.gauges.marks) < len(self.ways):
                self._let_go_on(load, every * self.dice.uniform(0.5, 1.5))
                if self._kill(running, next(self._turns)):
                    return False
            self._let_go_on(load, self._since + self.options.seconds - time.monotonic())
            self._end(load)
        self._ended(running, 0)
        return True

    def _let_go_on(self, load: Load, seconds: float) -> None:
        """For so long, and until something was answered since the last kill."""
        before, begin = load.ledger.count, time.monotonic()
        while (spent := time.monotonic() - begin) < seconds or load.ledger.count < before + 10:
            if spent > seconds + PATIENCE:
                self.note("it answers again", [f"not for {spent:.0f} s after {self.gauges.marks[-1:]}"])
                return
            time.sleep(0.05)

    def _kill(self, running: Running, how: str) -> bool:
        """Whether that was the end of this service."""
        self.gauges.mark(how)
        if how == "worker":
            os.kill(self.dice.choice(sorted(workers_of(running))), signal.SIGKILL)
        elif how == "database" and self.server is not None:
            self.server.crash()
            time.sleep(self.dice.uniform(0, 1))
            self.server.start()
        else:
            self.where.set(None)
            self.gauges.pid = None
            running.process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
            self._ended(running, -signal.SIGKILL if how == "kill" else 0)
            return True
        return False

    def _ended(self, running: Running, expected: int) -> None:
        if (code := running.process.wait(120)) != expected:
            self.note("it ends as it is told", [f"its exit status was {code}, not {expected}"])
        self.note("no unexpected error", [line for line in running.output if "unexpected error" in line])

    def _end(self, load: Load) -> None:
        """Everybody stops, what is under way is done, and everything is held against what was told."""
        self.pages.well.set()
        self.gauges.mark(END)
        self.ledger = ledger = load.finish()
        self.note("what was taken on is done", self._left())
        singles = [reply for sent, reply in ledger.answered if not sent.batch]
        for reply in self.dice.sample(singles, min(SAMPLE, len(singles))):
            self.auditor.read_back(reply, 200)
        self.kept, broken = look(self.url)
        self.note("nothing is half written", broken)
        self.note("what was answered is there once", untrue(ledger, self.kept))
        self.note("what was refused is not there", kept_though_refused(ledger, self.kept))
        self.note(VOUCHED, unvouched(self.kept))
        lied = {name for name, answer in self.kept.answers.items() if answer.memory_id} & self.told.lies
        self.note(VOUCHED, [f"{name} rests on a page that says otherwise" for name in lied])
        cited = [decision for decision in self.kept.decisions.values() if decision.owner_id == "cite"]
        read = [decision for decision in cited if decision.rule is not Rule.CITATION_UNKNOWN]
        if len(read) >= 8 and all(memory.owner_id != "cite" for memory in self.kept.memories.values()):
            self.note(
                "what a page states is stored", [f"of {len(read)} claims whose page was read, none was"]
            )
        self.note(ENDED, self._not_ended(self.kept))
        twice = [name for name, bodies in self.pages.bodies.items() if len(bodies) > 1]
        self.note("a message is the same each time", twice)
        for arguments in (("log", "verify", "--data"), ("replay", "--all")):
            given = (*arguments, "--database-url", self.url)
            # What an hour decided takes minutes to decide again.
            done = cli(*given, cwd=self.folder, anew=self.options.anew, seconds=60 + self.options.seconds / 2)
            if done.returncode != 0:
                self.note(f"vouchgate {' '.join(arguments)}", [(done.stdout + done.stderr).decode()[-1000:]])
        self.note("flat", self.gauges.not_flat(sqlite=self.server is None))

    def _left(self) -> Iterator[str]:
        """Documents and deliveries that nobody does, long after the last kill."""
        # As fast as it is answered: at the pace of the load an hour's documents took all the time there is.
        told, ask = self.told, Caller(self.where, self.checker.caller.token).ask
        self.shelf.caller = Caller(self.where, self.shelf.caller.token)
        documents, end = set(told.documents), time.monotonic() + PATIENCE
        if self.options.seconds < PATIENCE * 2:  # a lease of a process that was killed lasts a minute
            while time.monotonic() < end and self.shelf.fetch():
                pass
            return
        while time.monotonic() < end and (documents or told.to_deliver - set(told.delivered.values())):
            states = {name: ask("GET", f"/v1/documents/{name}").json.get("state") for name in documents}
            documents -= {name for name, state in states.items() if state == "checked"}
            if not self.shelf.fetch():
                time.sleep(0.5)
        yield from (f"{name} was not checked" for name in documents)
        yield from (f"{name} was not delivered" for name in told.to_deliver - set(told.delivered.values()))
        if not self.pages.bodies:
            yield "the receiver of webhooks was told nothing"

    def _not_ended(self, kept: Kept) -> Iterator[str]:
        """What was taken back or erased, and is there. One that could not be erased yet was answered 409."""
        for name, how in self.told.ended.items():
            memory, read = kept.memories[name], self.auditor.caller.ask("GET", f"/v1/memories/{name}")
            if name in kept.gone and (memory.content or read.status != 410):
                yield f"{name} was erased; it reads {read.status} and has the text {memory.content!r}"
            if how == "retracted" and memory.status not in ("retracted", "superseded"):
                yield f"{name} was retracted, and is {memory.status}"

    def _sizes(self) -> tuple[float, float]:
        if self.server is None:
            file = Path(self.url.removeprefix("sqlite:///"))
            log = file.with_name(f"{file.name}-wal")
            return file.stat().st_size / MIB, (log.stat().st_size if log.exists() else 0) / MIB
        logs = [path.stat().st_size for path in (self.server.data / "pg_wal").glob("0*") if path.exists()]
        try:
            with psycopg.connect(self.url) as connection:
                row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        except psycopg.Error:  # it is down
            row = None
        before = self.gauges.rows[-1]["db"] if self.gauges.rows else 0.0
        return (row[0] / MIB if row else before), sum(logs) / MIB

    def report(self) -> Iterator[str]:
        """What happened, for a terminal."""
        told, statuses = self.told, sorted(self.told.statuses.items())
        answers = " ".join(f"{status}:{count}" for status, count in statuses)
        yield f"\n{self.kind}: {sum(told.statuses.values()):,} answers ({answers})"
        yield (
            f"  {len(self.gauges.marks) - 1} kills, {len(self.ledger.retried)} requests sent again,"
            f" {len(self.kept.gone)} rows erased, {len(told.documents)} documents, {len(told.delivered)}"
            f" deliveries, faults of sources {dict(self.pages.faults)}"
        )
        yield from self.gauges.table()
        for name, sentences in self.broken.items():
            yield f"  BROKEN: {name}, {len(sentences)} times, such as: {sentences[0]}"


@contextmanager
def postgresql() -> Iterator[Postgresql]:
    """A server of the soak's own."""
    folder = Path(tempfile.mkdtemp(prefix="gg-"))  # short: the path of a socket may have 107 characters
    try:
        server = Postgresql(folder)
        try:
            yield server
        finally:
            server.crash()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(options: Options, databases: Sequence[Database], folder: Path) -> list[Soak]:
    """Soaks databases side by side."""
    soaks = []
    for kind, url, server in databases:
        (own := folder / f"soak-{kind}").mkdir()
        Store.open(url, threshold=THRESHOLD).close()  # migrates it, which two threads must not do at once
        soaks.append(Soak(options, (kind, url, server), own))
    with ThreadPoolExecutor(len(soaks)) as pool:
        list(pool.map(Soak.run, soaks))
    return soaks


def main(options: Options) -> int:
    """Soaks new databases; prints and draws what was seen. 1 when an invariant did not hold."""
    with leave_on_sigterm(), tempfile.TemporaryDirectory(prefix="soak-") as made, ExitStack() as stack:
        databases = list[Database]()
        for kind in options.databases:
            if kind == "sqlite":
                databases.append((kind, f"sqlite:///{made}/vouchgate.db", None))
            else:
                server = stack.enter_context(postgresql())
                # Full within minutes, so that an hour shows whether more is held back: by default it fills up to 1 GiB.
                server.run("ALTER SYSTEM SET min_wal_size = '64MB'")
                server.run("ALTER SYSTEM SET max_wal_size = '64MB'")
                server.run("SELECT pg_reload_conf()")
                server.run("CREATE DATABASE soak")
                databases.append((kind, server.url("soak"), server))
        soaks = run(options, databases, Path(made))
    for soak in soaks:
        print("\n".join(soak.report()), flush=True)
    if options.picture is not None:
        draw({soak.kind: soak.gauges for soak in soaks}, options.picture)
    return 1 if any(soak.broken for soak in soaks) else 0
