"""Puts the parts together from settings. A configured part that cannot start stops the start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from groundgate.gate import Gate
from groundgate.repositories import open_repositories
from groundgate.settings import Settings
from ingest.policy import Policy, load_policy
from ingest.sources.git import GitSource
from review.queue import ReviewQueue
from storage.reindex import Report
from storage.store import Store


@dataclass(frozen=True, slots=True)
class Service:
    """Everything a running gate holds."""

    settings: Settings
    policy: Policy
    store: Store
    git: GitSource
    gate: Gate
    queue: ReviewQueue


@contextmanager
def open_service(settings: Settings, report: Report = lambda done, total: None) -> Iterator[Service]:
    """Opens the database (migrating it), reads the policy and the repositories; closes them at the end.
    `report` is told how far the dedup index is when it has to be built anew.

    Raises PolicyError, StorageError or RepositoryError, each with a sentence for the person who starts it.
    """
    policy = load_policy(settings.policy)
    git = open_repositories(settings.repo, settings.adr_dirs)
    by_meaning = policy.dedup_method == "vector"
    with ExitStack() as opened:
        embedder = None
        if by_meaning:
            from groundgate import embeddings  # noqa: PLC0415  (of the extra: nothing else may need it)

            embedder = embeddings.load_embedder(policy)
        store = Store.open(
            settings.database_url, threshold=policy.threshold, vectors=by_meaning, report=report
        )
        opened.callback(store.close)
        store.save_policy(policy, datetime.now(UTC))
        paraphraser = None
        if embedder is not None:
            paraphraser = embeddings.Paraphraser(store, embedder, policy.vector_threshold)
            opened.callback(paraphraser.close)
        gate = Gate(policy, store, git, paraphraser)
        opened.callback(gate.close)
        yield Service(settings, policy, store, git, gate, ReviewQueue(store, policy))
