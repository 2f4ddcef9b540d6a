"""Puts the parts together from settings. A configured part that cannot start stops the start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from groundgate.gate import Gate
from groundgate.settings import Settings
from ingest.policy import Policy, load_policy
from ingest.sources.git import GitSource
from review.queue import ReviewQueue
from storage.store import Store


class ServiceError(RuntimeError):
    """The service cannot start as configured; the message says which part and why."""


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
def open_service(settings: Settings) -> Iterator[Service]:
    """Opens the database (migrating it), reads the policy and the repositories; closes them at the end.

    Raises PolicyError, StorageError or ServiceError, each with a sentence for the person who starts it.
    """
    policy = load_policy(settings.policy)
    git = GitSource(settings.repo, settings.adr_dirs)
    problems = git.problems()
    if problems:
        raise ServiceError(f"{'; '.join(problems)}; give --repo the top directory of a git work tree")
    store = Store.open(settings.database_url, threshold=policy.threshold)
    try:
        store.save_policy(policy, datetime.now(UTC))
        gate = Gate(policy, store, git)
        try:
            yield Service(settings, policy, store, git, gate, ReviewQueue(store, policy))
        finally:
            gate.close()
    finally:
        store.close()
