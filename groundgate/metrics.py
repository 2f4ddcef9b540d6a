"""Counters for operators, in the Prometheus text format. They hold no owner, no text and no token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from groundgate.recheck import RecheckCounts
from ingest.types import Tier, ValidationResult

# The client library reads this variable when it is first imported, and from then on keeps the figures of this
# process in files of the directory named there, so that one page can tell of several processes.
SHARED = "PROMETHEUS_MULTIPROC_DIR"
# From a tenth of a millisecond, the text checks alone, to the ten seconds of the default deadline.
BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """One set of counters for one running app, or with `shared` for all processes that count in that directory."""

    def __init__(self, shared: Path | None = None) -> None:
        if shared is not None and values.ValueClass is values.MutexValue:
            raise RuntimeError(f"{SHARED} was not set before the metrics library was loaded")
        self._shared = shared
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

        self._rechecks = Counter(
            "groundgate_rechecks",
            "Waiting claims and stored memories whose sources were read again, by what came of it.",
            ("result",),
            registry=self._registry,
        )

    def rechecked(self, counts: RecheckCounts) -> None:
        """Counts what checking again came to."""
        for result, count in asdict(counts).items():
            if count:
                self._rechecks.labels(result).inc(count)

    def decided(self, answer: ValidationResult) -> None:
        """Counts one decision."""
        kind = (answer.tier, answer.rule)
        counter = self._by_kind.get(kind)
        if counter is None:
            counter = self._by_kind[kind] = self._claims.labels(answer.tier.value, str(answer.rule))
        counter.inc()
        self._seconds.observe(answer.took_ms / 1000)

    def text(self, waiting: int, oldest_seconds: float) -> bytes:
        """The page for the scraper, with the state of the queue as read just now; -1 where it is not known."""
        page = CollectorRegistry()
        if self._shared is None:
            page.register(self._registry)
        else:
            MultiProcessCollector(page, path=str(self._shared))  # type: ignore[no-untyped-call]  # it has no types
        page.register(_Queue(waiting, oldest_seconds))
        return generate_latest(page)


class _Queue(Collector):
    """What the database says, so every process says the same."""

    def __init__(self, waiting: int, oldest_seconds: float) -> None:
        self._gauges = (
            ("groundgate_queue_items", "Claims that wait for their owner.", waiting),
            ("groundgate_queue_oldest_seconds", "Age of the claim that waits longest.", oldest_seconds),
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, meaning, value in self._gauges:
            yield GaugeMetricFamily(name, meaning, value=value)
