"""Stored decisions made again, from what was kept of them alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection

from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.claims.decision import Tier, ValidationResult
from vouchgate.ingest.pipeline import replay
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.support.rereading import digests_of, reread
from vouchgate.storage.claims import decisions, source_texts
from vouchgate.storage.store import Store


class Replayer:
    """Keeps the policies and detectors that the decisions of one run ask for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[Policy, HedgeDetector] | None] = {}

    def replay(self, connection: Connection, document: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The differences, and the sources whose texts are gone."""
        if document is None:
            return ("there is no such decision",), ()
        try:
            stored = ValidationResult.model_validate_json(document)
            loaded = self._load(stored.policy_digest)
            if loaded is None:
                return (f"its policy {stored.policy_digest} is not in the database",), ()
            differences = replay(stored, *loaded)
        except ValueError as error:  # evidence that was tampered with, or lacks what the claim calls for
            return (f"it cannot be made again: {error}",), ()
        if stored.tier is Tier.BLOCKED:  # nothing rests on it, so nothing was kept for it
            return differences, ()
        evidence = stored.evidence
        texts = source_texts.load(connection, evidence.claim.owner_id, digests_of(evidence))
        again = reread(evidence, texts)
        return (*differences, *again.differences), again.gone

    def _load(self, digest: str) -> tuple[Policy, HedgeDetector] | None:
        if digest not in self._known:
            policy = self._store.load_policy(digest)
            self._known[digest] = None if policy is None else (policy, HedgeDetector(policy.lexicon))
        return self._known[digest]


def documents(connection: Connection, wanted: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """The decisions of these ids, or all of them, with their documents; None for one that is not there."""
    if not wanted:
        yield from decisions.walk(connection)
    for decision_id in wanted:
        yield decision_id, decisions.get(connection, decision_id, owners=None)
