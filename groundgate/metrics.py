"""Counters for operators, in the Prometheus text format. They hold no owner, no text and no token."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ingest.types import Tier, ValidationResult

# From a tenth of a millisecond, the text checks alone, to the ten seconds of the default deadline.
BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """One set of counters for one running app."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._claims = Counter(
            "groundgate_claims",
            "Claims decided, by tier and rule.",
            ("tier", "rule"),
            registry=self._registry,
        )
        self._by_kind: dict[tuple[Tier, int], Counter] = {}  # finding a label costs more than counting
        self._seconds = Histogram(
            "groundgate_claim_seconds",
            "Seconds from a claim's arrival to its decision.",
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._waiting = Gauge(
            "groundgate_queue_items", "Claims that wait for their owner.", registry=self._registry
        )
        self._oldest = Gauge(
            "groundgate_queue_oldest_seconds", "Age of the claim that waits longest.", registry=self._registry
        )

    def decided(self, answer: ValidationResult) -> None:
        """Counts one decision."""
        kind = (answer.tier, answer.rule)
        counter = self._by_kind.get(kind)
        if counter is None:
            counter = self._by_kind[kind] = self._claims.labels(answer.tier.value, str(answer.rule))
        counter.inc()
        self._seconds.observe(answer.took_ms / 1000)

    def queue(self, waiting: int, oldest_seconds: float) -> None:
        """Sets the state of the queue as read just now."""
        self._waiting.set(waiting)
        self._oldest.set(oldest_seconds)

    def text(self) -> bytes:
        """The page for the scraper."""
        return generate_latest(self._registry)
