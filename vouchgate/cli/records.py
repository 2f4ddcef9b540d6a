"""`vouchgate log verify`, `db upgrade`, `replay` and `policy show`: what an operator asks of the records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sqlalchemy import Connection

from vouchgate.cli.database import open_store
from vouchgate.cli.output import FAILED, complain, say
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.types import ValidationResult
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.policy import Policy, load_policy
from vouchgate.settings import Settings, database_to_open
from vouchgate.storage.claims import decisions
from vouchgate.storage.engine import migrate, needs_migration, open_engine
from vouchgate.storage.log import chain as log
from vouchgate.storage.store import Store


def verify_log(settings: Settings) -> int:
    """Walks every chain of the log; each break is one line."""
    with open_store(settings) as store, store.read() as connection:
        breaks = log.verify(connection)
    for sentence in breaks:
        say(sentence)
    if breaks:
        complain(f"the log is broken in {len(breaks)} places; restore the database from a backup and compare")
        return FAILED
    say("The log is unbroken.")
    return 0


def upgrade(settings: Settings) -> int:
    """Makes the tables, or brings them up to this program's version."""
    engine = open_engine(database_to_open(settings))
    try:
        needed = needs_migration(engine)
        migrate(engine)
    finally:
        engine.dispose()
    say("The database was brought up to date." if needed else "The database is up to date.")
    return 0


def replay_decisions(settings: Settings, wanted: Sequence[str]) -> int:
    """Makes stored decisions again, all of them when none is named; prints every difference."""
    same = different = 0
    with open_store(settings) as store, store.read() as connection:
        replayer = _Replayer(store)
        for decision_id, document in _documents(connection, wanted):
            differences = replayer.differences(document)
            for sentence in differences:
                say(f"{decision_id}: {sentence}")
            different += bool(differences)
            same += not differences
    say(f"{same + different} decisions: {same} the same when made again, {different} not.")
    return FAILED if different else 0


class _Replayer:
    """Keeps the policies and detectors that the decisions of one run ask for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[Policy, HedgeDetector] | None] = {}

    def differences(self, document: str | None) -> tuple[str, ...]:
        if document is None:
            return ("there is no such decision",)
        try:
            stored = ValidationResult.model_validate_json(document)
            loaded = self._load(stored.policy_digest)
            if loaded is None:
                return (f"its policy {stored.policy_digest} is not in the database",)
            return replay(stored, *loaded)
        except ValueError as error:  # evidence that was tampered with, or lacks what the claim calls for
            return (f"it cannot be made again: {error}",)

    def _load(self, digest: str) -> tuple[Policy, HedgeDetector] | None:
        if digest not in self._known:
            policy = self._store.load_policy(digest)
            self._known[digest] = None if policy is None else (policy, HedgeDetector(policy.lexicon))
        return self._known[digest]


def _documents(connection: Connection, wanted: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    if not wanted:
        yield from decisions.walk(connection)
    for decision_id in wanted:
        yield decision_id, decisions.get(connection, decision_id, owners=None)


def show_policy(settings: Settings) -> int:
    """The policy in force as JSON, with its digest in front."""
    policy = load_policy(settings.policy)
    document = {"digest": policy.digest, "policy": json.loads(policy.document)}
    say(json.dumps(document, indent=2, ensure_ascii=False))
    return 0
