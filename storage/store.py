"""The store: one database, opened for one threshold, with the thread that writes to it."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from typing import Self

from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import PoolProxiedConnection

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.policy import Policy, canonical_json
from vouchgate.storage import engine as engines
from vouchgate.storage import policies, switches
from vouchgate.storage.dedup.comparing import Comparer
from vouchgate.storage.dedup.reindex import Report, is_ready, reindex
from vouchgate.storage.disk.probe import WriteProbe
from vouchgate.storage.erasing.scrub import scrub
from vouchgate.storage.errors import StorageError
from vouchgate.storage.identity.owners import SERVICE_OWNER
from vouchgate.storage.writer import Writer

_SNAPSHOT = text("SELECT pg_current_snapshot()::text")

log = logging.getLogger(__name__)

CATCH_UP_SECONDS = 0.1  # for a replica to replay what was just written: streaming takes some milliseconds
ANSWER_SECONDS = 2.0  # for it to answer at all
ASIDE_SECONDS = 5.0  # for which it is not asked, once it did not


class Replica:
    """A streaming standby, asked only for what it knows: it must have replayed all that the primary had on disk when
    the question came, whoever wrote it. So nobody misses what a gate, this or another one, has answered (ADR-0058)."""

    def __init__(self, primary: Engine, url: str) -> None:
        """Raises StorageError for what is no PostgreSQL. It need not be there yet."""
        if primary.dialect.name != "postgresql" or not url.startswith(("postgresql", "postgres:")):
            raise StorageError("VOUCHGATE_READ_URL is for a standby of a PostgreSQL database")
        parsed = make_url(url)
        self._url = parsed.update_query_dict({"connect_timeout": "2"} | dict(parsed.query))
        self._primary = primary
        self._engine: Engine | None = None
        self._aside_until = 0.0
        self._opening = threading.Lock()
        self._unanswered: Future[Engine] | None = None
        self.trouble: str | None = None  # why it was not asked the last time

    def choose(self) -> Engine:
        """The standby if it knows enough, else the primary. Raises SQLAlchemyError when the primary does not answer."""
        if time.monotonic() < self._aside_until:
            return self._primary
        with self._primary.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            position = str(connection.scalar(text("SELECT pg_current_wal_flush_lsn()::text")))
        try:
            engine = self._ask(position)
        except TimeoutError:
            self.leave("it does not answer")
        except SQLAlchemyError as error:
            self.leave(str(error.orig if isinstance(error, DBAPIError) else error))
        except StorageError as error:
            self.leave(str(error))
        else:
            self.trouble = None
            return engine
        return self._primary

    def leave(self, why: str) -> None:
        """Asks the primary alone for a while."""
        if self.trouble is None:
            log.warning("the read replica is not read: %s", why)
        self.trouble, self._aside_until = why, time.monotonic() + ASIDE_SECONDS

    def _ask(self, position: str) -> Engine:
        """In a thread, because whoever waits for a standby that hangs waits for good; in one that the program's end
        does not wait for, and no second one while it does."""
        if self._unanswered is not None and not self._unanswered.done():
            raise TimeoutError
        answer: Future[Engine] = Future()

        def work() -> None:
            try:
                answer.set_result(self._caught_up(position))
            except Exception as error:  # noqa: BLE001  (it goes to whoever asked)
                answer.set_exception(error)

        threading.Thread(target=work, name="vouchgate-replica", daemon=True).start()
        try:
            return answer.result(ANSWER_SECONDS)
        except TimeoutError:
            self._unanswered = answer
            raise

    def _caught_up(self, position: str) -> Engine:
        """It, once it has replayed this far. Raises StorageError when it is behind, or not of this database."""
        with self._opening:
            if self._engine is None:
                opened = engines.open_engine(self._url.render_as_string(hide_password=False))
                try:
                    if _identity(opened) != _identity(self._primary):
                        raise StorageError("it is a copy of another database")
                except BaseException:
                    opened.dispose()
                    raise
                self._engine = opened
        asked = text("SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() >= CAST(:position AS pg_lsn)")
        end = time.monotonic() + CATCH_UP_SECONDS
        with engines.reading(self._engine) as connection:
            while True:
                follows, known = connection.execute(asked, {"position": position}).one()
                if not follows:
                    raise StorageError("it is no standby any more")
                if known:
                    return self._engine
                if time.monotonic() > end:
                    raise StorageError("it is behind the primary")
                time.sleep(0.002)

    def close(self) -> None:
        """Closes its connections."""
        if self._engine is not None:
            engines.close_engine(self._engine)


def _identity(engine: Engine) -> tuple[str, ...]:
    with engines.reading(engine) as connection:
        asked = "SELECT system_identifier::text, current_database()::text FROM pg_control_system()"
        return tuple(connection.execute(text(asked)).one())


class Store:
    """What the service holds: reads through `read`, writes through `writer`, claims through `comparer`, which hands
    them to the writer. Close it at the end."""

    def __init__(self, engine: Engine, replica: Replica | None = None) -> None:
        self._engine = engine
        self._watch: PoolProxiedConnection | None = None  # of `version`, on SQLite
        self._watched = threading.Lock()
        self._replica = replica
        self.writer = Writer(engine)
        self.comparer = Comparer(self.read, self.writer)
        self._probe = WriteProbe(self.writer)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        threshold: Fraction,
        migrate: bool = True,
        report: Report = lambda done, total: None,
        vectors: bool = False,
        read_url: str | None = None,
    ) -> Self:
        """Opens the database, brings its tables up to date and its dedup index to `threshold`.

        `read_url` is that of a streaming standby, for `browse`.

        With `vectors` it can compare vectors, which `dedup_method = "vector"` needs. `report` is told how far
        the index is when it has to be built anew; an interrupted job goes on. With `migrate` False an older
        database is refused. Raises StorageError with a sentence for the user.
        """
        engine = engines.open_engine(url, vectors=vectors)
        try:
            if migrate:
                engines.migrate(engine)
            elif engines.needs_migration(engine):
                raise StorageError(
                    "the database must be brought up to date first: run `vouchgate db upgrade`"
                )
            if vectors:
                engines.prepare_vectors(engine)
            _build_index(engine, threshold, report)
            return cls(engine, None if read_url is None else Replica(engine, read_url))
        except BaseException:
            engine.dispose()
            raise

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._engine.dialect.name

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read-only transaction that sees one state of the database.

        Raises StorageError when the database cannot be read; what goes wrong elsewhere goes through as it is.
        """
        with self._reading(None) as connection:
            yield connection

    @contextmanager
    def browse(self) -> Iterator[Connection]:
        """As `read`, on the standby where there is one that has replayed all that was committed by now. For what people
        and auditors look at; what decides whether somebody may, and what is written, reads the primary."""
        with self._reading(self._replica) as connection:
            yield connection

    def problems(self) -> tuple[str, ...]:
        """Why the standby is not read, if that is so. Raises StorageError."""
        if self._replica is None:
            return ()
        with self.browse():
            why = self._replica.trouble
        return () if why is None else (f"The read replica is not read, the primary is: {why}.",)

    @contextmanager
    def _reading(self, replica: Replica | None) -> Iterator[Connection]:
        engine = self._engine
        try:
            engine = engine if replica is None else replica.choose()
            with engines.reading(engine) as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            if replica is not None and engine is not self._engine:
                replica.leave(str(cause))
            raise StorageError(f"the database cannot be read: {cause}") from error

    def probe(self) -> None:
        """That something can be written; see `storage.disk.probe`. Raises StorageError with a sentence that says why
        not."""
        self._probe.look()

    def version(self) -> str:
        """Another text than before when somebody committed something since, in whatever process: who found nothing to
        do need not look again before. Raises StorageError."""
        if self.dialect == "postgresql":
            with self.read() as connection:
                return str(connection.scalar(_SNAPSHOT))
        with self._watched:  # a connection of its own, which never commits anything
            try:
                self._watch = self._watch or self._engine.raw_connection()
                cursor = self._watch.cursor()
                cursor.execute("PRAGMA data_version")
                ((version,),) = cursor.fetchall()  # to the end, or it would go on reading
                cursor.close()
                return str(version)
            except (SQLAlchemyError, sqlite3.Error) as error:
                raise StorageError(f"the database cannot be read: {error}") from error

    def save_policy(self, policy: Policy, now: datetime) -> None:
        """Keeps the policy for replays; once for every digest."""
        self.writer.run((), lambda c: policies.save(c, policy.digest, policy.document, now)).result()

    def put_in_force(self, policy: Policy, owner_rules: str | None, now: datetime) -> str | None:
        """Notes and logs that the service begins under this policy and this file of owner rules, where that is another
        than at its last start; the digest of the policy before, if there was another one."""
        rules = canonical_json({"owner_rules": owner_rules or ""})
        documents = {
            Action.POLICY_IN_FORCE: (policy.digest, policy.document),
            Action.OWNER_RULES_IN_FORCE: (hashlib.sha256(rules.encode()).hexdigest(), rules),
        }

        def work(connection: Connection) -> str | None:
            before = None
            for action, (digest, document) in documents.items():
                last = switches.in_force(connection, switches.KIND_OF[action])
                if last and last[0].about["digest"] == digest:
                    continue
                if action is Action.OWNER_RULES_IN_FORCE and not last and owner_rules is None:
                    continue  # there never was one
                if last and action is Action.POLICY_IN_FORCE:
                    before = str(last[0].about["digest"])
                policies.save(connection, digest, document, now)
                about = {"digest": digest}
                switches.put(connection, SERVICE_OWNER, action, "", about, by="operator", now=now)
            return before

        return self.writer.run([SERVICE_OWNER], work).result()

    def load_policy(self, digest: str) -> Policy | None:
        """The policy of this digest, or None when it never was in force here."""
        with self.read() as connection:
            document = policies.document(connection, digest)
        return None if document is None else Policy.model_validate_json(document)

    def scrub(self) -> None:
        """Writes over what was erased and may be in free pages; see `storage.erasing.scrub`. Nobody writes meanwhile.
        Raises StoreBusy."""
        scrub(self._engine)

    def close(self) -> None:
        """Writes what still waits, then closes every connection; one that somebody still reads from, when they end."""
        self.comparer.close()
        self.writer.close()
        with self._watched:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
        if self._replica is not None:
            self._replica.close()
        engines.close_engine(self._engine)


def _build_index(engine: Engine, threshold: Fraction, report: Report) -> None:
    try:
        with engines.reading(engine) as connection:
            if is_ready(connection, threshold):
                return
    except DBAPIError as error:
        raise StorageError(f"the dedup index cannot be read: {error.orig}") from error
    reindex(engine, threshold, report)
