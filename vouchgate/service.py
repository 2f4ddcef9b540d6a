"""Puts the parts together from settings. A configured part that cannot start stops the start."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from vouchgate.documents.gating import DocumentGate
from vouchgate.gate.examiner import Harvest
from vouchgate.gate.gate import Gate
from vouchgate.gate.judge import Judge, open_entailment, open_judge
from vouchgate.gate.signing import LogSigner, key_file, open_signer
from vouchgate.harvest.documents import open_harvest
from vouchgate.harvest.network import NetworkSearch
from vouchgate.harvest.setup import world_of
from vouchgate.ingest.data.policy_file import PolicyError, load_policy
from vouchgate.ingest.policy import Policy
from vouchgate.review.ending.erasing import Erasing
from vouchgate.review.queue import ReviewQueue
from vouchgate.review.trust.standing_rulings import StandingRulings
from vouchgate.review.vouching.loading import load_rules, read_rules
from vouchgate.settings import Settings, database_to_open, erasures_file, plain
from vouchgate.sources.cache import SourceCache
from vouchgate.sources.reader import Sources
from vouchgate.sources.records import RecordSource
from vouchgate.sources.repositories import open_repositories
from vouchgate.sources.setup import open_sources, outbound_of
from vouchgate.storage import modes
from vouchgate.storage.dedup.reindex import Report
from vouchgate.storage.disk.check import check_file, database_file
from vouchgate.storage.disk.files import tighten
from vouchgate.storage.store import Store
from vouchgate.workers.changes import ChangeWatch
from vouchgate.workers.documents import DocumentWorker
from vouchgate.workers.log_mirror import LogMirror
from vouchgate.workers.mail import MailSender
from vouchgate.workers.recheck import Rechecker
from vouchgate.workers.runner import AT_ONCE
from vouchgate.workers.sequencer import Sequencer
from vouchgate.workers.smtp import parse_server
from vouchgate.workers.webhooks import Webhooks
from vouchgate.workers.witnesses import Witnesses, parse_witness
from vouchgate.workers.word_index import WordIndexer

log = logging.getLogger(__name__)

JUDGE_QUESTIONS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Service:
    """Everything a running gate holds."""

    settings: Settings
    policy: Policy
    store: Store
    sources: Sources
    judge: Judge | None
    gate: Gate
    queue: ReviewQueue
    erasing: Erasing
    standing_rulings: StandingRulings
    rechecker: Rechecker
    changes: ChangeWatch
    webhooks: Webhooks
    mail: MailSender
    documents: DocumentGate
    document_worker: DocumentWorker
    signer: LogSigner | None
    sequencer: Sequencer
    witnesses: Witnesses
    log_mirror: LogMirror | None
    word_indexer: WordIndexer

    def problems(self) -> tuple[str, ...]:
        """What it goes without at the moment, a sentence each: claims that need it wait. Raises StorageError."""
        judge = () if self.judge is None else self.judge.problems()
        mirror = () if self.log_mirror is None else self.log_mirror.problems()
        sending = (*self.webhooks.problems(), *self.mail.problems())
        outsiders = (*self.sequencer.problems(), *self.witnesses.problems(), *mirror)
        kept = (*self.store.problems(), *self.erasing.problems())
        return (*kept, *self.sources.git.problems(), *judge, *sending, *outsiders)


@contextmanager
def open_service(
    settings: Settings, report: Report = lambda done, total: None, shared: Path | None = None
) -> Iterator[Service]:
    """Opens the database (migrating it), reads the policy and the repositories; closes them at the end.
    `report` is told how far the dedup index is when it has to be built anew; `shared` is a folder in which
    several processes keep to common limits.

    Raises PolicyError, OwnerRulesError, StorageError or RepositoryError, each with a sentence for whoever starts it.
    """
    policy, rules = load_policy(settings.policy), load_rules(settings.owner_rules)
    git = open_repositories(settings)
    by_meaning = policy.dedup_method == "vector"
    with ExitStack() as opened:
        embedder = None
        if by_meaning:
            from vouchgate.embedding import paraphraser as embeddings  # noqa: PLC0415  (of the extra: nothing else may need it)

            embedder = embeddings.load_embedder(policy)
        entailment = open_entailment(policy, settings.entailment_model)
        if entailment is not None:
            opened.callback(entailment.close)
        store = Store.open(
            database_to_open(settings),
            threshold=policy.threshold,
            vectors=by_meaning,
            report=report,
            read_url=settings.read_url,
        )
        opened.callback(store.close)
        store.save_policy(policy, datetime.now(UTC))
        signer = open_signer(settings, store, datetime.now(UTC))
        paraphraser = None
        if embedder is not None:
            paraphraser = embeddings.Paraphraser(store, embedder, policy.vector_threshold)
            opened.callback(paraphraser.close)
        kept, records = SourceCache(store, policy.remember), RecordSource(store, policy.records)
        sources = opened.enter_context(open_sources(settings, policy, git, kept, shared, records=records))
        judge = _judge(settings, policy, store)
        harvest = opened.enter_context(open_harvest(policy, sources.corpora, git))
        looks: list[Harvest] = [*harvest]
        if policy.harvest == "network":
            looks.append(NetworkSearch(world_of(settings, policy, sources), policy))
        gate = Gate(policy, store, sources, paraphraser, judge, entailment=entailment, harvest=looks)
        opened.callback(gate.close)
        rechecker = Rechecker(store, policy, gate.examine, sources.read)
        changes = ChangeWatch(store, harvest)
        queue = ReviewQueue(store, policy, rules)
        tighten(*filter(None, (key_file(settings), erasures_file(settings))))
        erasing = Erasing(store, policy, rules, erasures_file(settings))
        erasing.again(datetime.now(UTC))  # what a restored database has brought back
        standing_rulings = StandingRulings(store, policy, rules)
        webhooks = open_webhooks(settings, policy, store)
        mail = open_mail(settings, store)
        documents = DocumentGate(gate, sources)
        opened.callback(documents.close)
        document_worker = DocumentWorker(store, policy, documents)
        yield Service(
            settings,
            policy,
            store,
            sources,
            judge,
            gate,
            queue,
            erasing,
            standing_rulings,
            rechecker,
            changes,
            webhooks,
            mail,
            documents,
            document_worker,
            signer,
            Sequencer(store, signer, publish=not settings.witnesses),
            open_witnesses(settings, policy, store),
            None if settings.log_mirror is None else LogMirror(store, settings.log_mirror),
            WordIndexer(store),
        )


@contextmanager
def open_to_serve(settings: Settings, report: Report = lambda done, total: None) -> Iterator[Service]:
    """As `open_service`, for what takes claims from now on: the database's file is looked at first, and what decides is
    noted. Raises EarlierDatabase, too."""
    if (database := database_file(database_to_open(settings))) is not None:
        check_file(database)
    with open_service(settings, report) as service:
        note_in_force(service)
        yield service


def note_in_force(service: Service) -> None:
    """Keeps what decides from now on, and says so when that is another policy than at the last start."""
    rules = service.settings.owner_rules
    text = None if rules is None else read_rules(rules)
    before = service.store.put_in_force(service.policy, text, datetime.now(UTC))
    if before is not None:
        message = (
            "the policy is another than at the last start: vouchgate policy diff %s, vouchgate policy test %s"
        )
        log.warning(message, before[:12], service.policy.digest[:12])
    with service.store.read() as connection:
        for switch in modes.everything(connection):
            if switch.matters:
                log.warning("%s", switch.sentence)


def open_webhooks(settings: Settings, policy: Policy, store: Store) -> Webhooks:
    """What tells owners, with a client of its own, in which there is room for all that both of its jobs send at
    once."""
    outbound = None if settings.offline else outbound_of(settings, policy, 2 * AT_ONCE, 0.0)
    page = None if settings.public_url is None else f"{settings.public_url}/review"
    return Webhooks(store, outbound, page=page)


def open_witnesses(settings: Settings, policy: Policy, store: Store) -> Witnesses:
    """What shows the log to its witnesses, with a client of its own."""
    witnesses = [parse_witness(each) for each in settings.witnesses]
    needed = len(witnesses) if settings.witnesses_needed is None else settings.witnesses_needed
    return Witnesses(store, outbound_of(settings, policy, AT_ONCE, 0.0), witnesses, needed)


def open_mail(settings: Settings, store: Store) -> MailSender:
    """What sends digests; it sends none where no mail server is set, or offline."""
    url = plain(settings.smtp_url)
    server = None if url is None or settings.offline else parse_server(url, plain(settings.smtp_password))
    return MailSender(store, server, sender=settings.mail_from or "", page=f"{settings.pages_url}/review")


def _judge(settings: Settings, policy: Policy, store: Store) -> Judge | None:
    if settings.offline and policy.judge.enabled:
        raise PolicyError("the policy enables the judge, which cannot be asked offline")
    return open_judge(
        policy,
        # Of its own: a model is asked more at once than a stranger's page may be.
        outbound_of(settings, policy, JUDGE_QUESTIONS_AT_ONCE, 0.0),
        store,
        url=settings.judge_url,
        model=settings.judge_model,
        second_model=settings.judge_second_model,
        token=plain(settings.judge_token),
    )
