"""Counters for operators, in the Prometheus text format. They hold no owner, no text and no token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from vouchgate.ingest.claims.decision import Tier, ValidationResult
from vouchgate.ingest.claims.log import Action
from vouchgate.review import recheck
from vouchgate.storage.outgoing.streams import DeliveryFigures
from vouchgate.storage.queue.overview import QueueFigures
from vouchgate.storage.queue.spot_checks import VerdictCounts
from vouchgate.workers.documents import DocumentResult
from vouchgate.workers.mail import MailResult
from vouchgate.workers.webhooks import SendResult

# The client library reads this variable when it is first imported, and from then on keeps the figures of this
# process in files of the directory named there, so that one page can tell of several processes.
SHARED = "PROMETHEUS_MULTIPROC_DIR"
# From a tenth of a millisecond, the text checks alone, to the ten seconds of the default deadline.
BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
# From a minute to the 30 days after which the built-in policy has a claim expire.
WAITS = tuple(60 * minutes for minutes in (1, 10, 60, 240, 1440, 4320, 10080, 20160, 43200))


class Metrics:
    """One set of counters for one running app, or with `shared` for all processes that count in that directory."""

    def __init__(self, shared: Path | None = None) -> None:
        if shared is not None and values.ValueClass is values.MutexValue:
            raise RuntimeError(f"{SHARED} was not set before the metrics library was loaded")
        self._shared = shared
        self._registry = CollectorRegistry()
        self._claims = Counter(
            "vouchgate_claims",
            "Claims decided, by tier and rule.",
            ("tier", "rule"),
            registry=self._registry,
        )
        self._let_through = Counter(
            "vouchgate_claims_let_through",
            "Claims that would have been held, by the tier and rule they would have had: the gate only observed.",
            ("tier", "rule"),
            registry=self._registry,
        )
        self._by_kind: dict[tuple[Tier, str], Counter] = {}  # finding a label costs more than counting
        self._seconds = Histogram(
            "vouchgate_claim_seconds",
            "Seconds from a claim's arrival to its decision.",
            buckets=BUCKETS,
            registry=self._registry,
        )

        self._rechecks = Counter(
            "vouchgate_rechecks",
            "Waiting claims and stored memories whose sources were read again, by what came of it.",
            ("result",),
            registry=self._registry,
        )

        self._reviews = Counter(
            "vouchgate_reviews",
            "Waiting claims that were approved, rejected or expired, and decisions that were taken back.",
            ("action",),
            registry=self._registry,
        )

        self._waited = Histogram(
            "vouchgate_review_wait_seconds",
            "Seconds from a claim's decision to wait to its approval or rejection.",
            buckets=WAITS,
            registry=self._registry,
        )

        self._streams = Gauge(
            "vouchgate_event_streams",
            "Review pages that are open and told of changes.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )

        self._webhooks = Counter(
            "vouchgate_webhook_messages",
            "Tries to send a message or a memory to a webhook, by what came of it.",
            ("result",),
            registry=self._registry,
        )

        self._mails = Counter(
            "vouchgate_mails",
            "Digests by mail that were due, by what came of it.",
            ("result",),
            registry=self._registry,
        )

        self._documents = Counter(
            "vouchgate_documents",
            "Checks of documents, by what came of them.",
            ("result",),
            registry=self._registry,
        )

    def count_documents(self, results: Mapping[DocumentResult, int]) -> None:
        """Counts what checking documents came to."""
        for result, count in results.items():
            self._documents.labels(result.value).inc(count)

    def count_reviews(self, action: Action, items: int, waited: timedelta | None = None) -> None:
        """Counts what became of items that waited, and how long one did that was ruled on."""
        self._reviews.labels(action.value.removeprefix("review.")).inc(items)
        if waited is not None:
            self._waited.observe(max(0.0, waited.total_seconds()))

    def set_streams(self, count: int) -> None:
        """So many pages of this process are told of changes now."""
        self._streams.set(count)

    def count_messages(self, results: Mapping[SendResult, int]) -> None:
        """Counts what tries to send messages came to."""
        for result, count in results.items():
            self._webhooks.labels(result.value).inc(count)

    def count_mails(self, results: Mapping[MailResult, int]) -> None:
        """Counts what digests that were due came to."""
        for result, count in results.items():
            self._mails.labels(result.value).inc(count)

    def count_rechecks(self, results: Mapping[recheck.RecheckResult, int]) -> None:
        """Counts what checking again came to."""
        for result, count in results.items():
            self._rechecks.labels(result.value).inc(count)

    def count_decision(self, answer: ValidationResult) -> None:
        """Counts one decision."""
        kind = (answer.tier, answer.rule)
        counter = self._by_kind.get(kind)
        if counter is None:
            counter = self._by_kind[kind] = self._claims.labels(answer.tier.value, str(answer.rule))
        counter.inc()
        if answer.passed and not answer.approved:
            self._let_through.labels(answer.tier.value, str(answer.rule)).inc()
        self._seconds.observe(answer.took_ms / 1000)

    def text(
        self,
        waiting: int,
        oldest_seconds: float,
        queues: QueueFigures | None,
        deliveries: DeliveryFigures | None,
        spot_checks: VerdictCounts | None,
        *,
        scopes: Mapping[str, int] | None = None,
        unvouched: int = -1,
    ) -> bytes:
        """The page for the scraper, with the state of queues, deliveries and spot checks as read just now. What is not
        known is -1, or where it is None left out."""
        page = CollectorRegistry()
        if self._shared is None:
            page.register(self._registry)
        else:
            MultiProcessCollector(page, path=str(self._shared))  # type: ignore[no-untyped-call]  # it has no types
        page.register(_Queue(waiting, oldest_seconds, queues, deliveries, spot_checks))
        page.register(_Modes(scopes or {}, unvouched))
        return generate_latest(page)


class _Queue(Collector):
    """What the database says, so every process says the same."""

    def __init__(
        self,
        waiting: int,
        oldest_seconds: float,
        queues: QueueFigures | None,
        deliveries: DeliveryFigures | None,
        spot_checks: VerdictCounts | None,
    ) -> None:
        self._queues = queues
        self._spot_checks = spot_checks or {}
        self._gauges = [
            ("vouchgate_queue_items", "Claims that wait for their owner.", waiting),
            ("vouchgate_queue_oldest_seconds", "Age of the claim that waits longest.", oldest_seconds),
        ]
        if queues is not None:
            self._gauges += [
                ("vouchgate_queue_owners", "Owners for whom a claim waits.", queues.owners),
                ("vouchgate_queue_largest_items", "Claims that wait for the owner of most.", queues.largest),
                ("vouchgate_queue_expiring_items", "Claims that expire within 3 days.", queues.expiring),
            ]

        if deliveries is not None:
            self._gauges += [
                ("vouchgate_deliveries_waiting", "What sinks have yet to be told.", deliveries.waiting),
                (
                    "vouchgate_deliveries_dead",
                    "What sinks were to be told, and was given up.",
                    deliveries.dead,
                ),
            ]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, meaning, value in self._gauges:
            yield GaugeMetricFamily(name, meaning, value=value)
        if self._queues is not None:
            ages = GaugeMetricFamily(
                "vouchgate_queue_items_by_age",
                "Claims that wait, by how long they have: each is in one of the ranges.",
                labels=["age"],
            )
            for age in ("under_1h", "under_1d", "under_7d", "older"):
                ages.add_metric([age], getattr(self._queues, age))
            yield ages
        checks = GaugeMetricFamily(
            "vouchgate_spot_checks",
            "Memories that were drawn for their owners, by the rule that stored them and what was said of them.",
            labels=["rule", "verdict"],
        )
        for rule, times in self._spot_checks.items():
            for verdict, count in times.items():
                checks.add_metric([rule.value, verdict], count)
        yield checks


class _Modes(Collector):
    """Where the gate does not enforce."""

    def __init__(self, scopes: Mapping[str, int], unvouched: int) -> None:
        self._scopes = scopes
        self._unvouched = unvouched

    def collect(self) -> Iterator[GaugeMetricFamily]:
        what = "Of the service, owners and agents, those that are observed, read-only or stopped."
        scopes = GaugeMetricFamily("vouchgate_scopes", what, labels=["state"])
        for state, count in self._scopes.items():
            scopes.add_metric([state], count)
        yield scopes
        let_through = "Memories that were let through while the gate observed, and nobody vouches for."
        yield GaugeMetricFamily("vouchgate_memories_unvouched", let_through, value=self._unvouched)
