"""The store: one database, opened for one threshold, with the thread that writes to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from typing import Self

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

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


class Store:
    """What the service holds: reads through `read`, writes through `writer`, claims through `comparer`, which hands
    them to the writer. Close it at the end."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
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
    ) -> Self:
        """Opens the database, brings its tables up to date and its dedup index to `threshold`.

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
            return cls(engine)
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
        try:
            with engines.reading(self._engine) as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise StorageError(f"the database cannot be read: {cause}") from error

    def probe(self) -> None:
        """That something can be written; see `storage.disk.probe`. Raises StorageError with a sentence that says why
        not."""
        self._probe.look()

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
        """Writes what still waits, then closes every connection."""
        self.comparer.close()
        self.writer.close()
        self._engine.dispose()


def _build_index(engine: Engine, threshold: Fraction, report: Report) -> None:
    try:
        with engines.reading(engine) as connection:
            if is_ready(connection, threshold):
                return
    except DBAPIError as error:
        raise StorageError(f"the dedup index cannot be read: {error.orig}") from error
    reindex(engine, threshold, report)
