"""The one door. HTTP, the command line and every client that comes later submit claims here and nowhere else.

build_claim -> inspect -> gather -> examine -> (write transaction: decide again, write) -> answer
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from vouchgate.gate.gathering import SourceReader, gather, timed_out
from vouchgate.gate.incoming import ClaimRefused, given_citations, owner_for, refuse_over_limits
from vouchgate.gate.judge import Judge, weigh
from vouchgate.gate.masking import unasked_readings, without_secrets
from vouchgate.gate.paraphrases import ParaphraseLookup, Paraphraser, ParaphraseResult
from vouchgate.ingest.checks.dedup import tokens
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.checks.secrets import SecretDetector, mask
from vouchgate.ingest.citations import TooManyCitations
from vouchgate.ingest.claims.types import (
    AtPlace,
    Claim,
    DedupFacts,
    DedupUnavailable,
    DeliveryTarget,
    EchoFacts,
    Embedding,
    Neighbours,
    PendingMemory,
    Principal,
    RejectedBefore,
    SecretMatch,
    SimilarMemory,
    Source,
    SourceReading,
    Tier,
    ValidationResult,
)
from vouchgate.ingest.dedup.paraphrase import stored_only
from vouchgate.ingest.dedup.signature import signature_keys
from vouchgate.ingest.dedup.similar import prepare
from vouchgate.ingest.pipeline import Examined, Inspected, examine, focus, inspect, removes
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.priority import words_digest
from vouchgate.storage.claims import echoes
from vouchgate.storage.claims.submit import Idempotency, Submission, SubmitAnswer
from vouchgate.storage.dedup import index, similar
from vouchgate.storage.errors import StorageError
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.outgoing.outbox import Outbox
from vouchgate.storage.queue import rejections
from vouchgate.storage.store import Store
from vouchgate.wire import ClaimIn

log = logging.getLogger(__name__)

# Seconds an answer waits for what is similar, which takes some milliseconds: it is only shown.
ADVICE_SECONDS = 1.0
# Seconds that holding a claim against its sources may take although reading them took all the time there was.
HOLDING_SECONDS = 1.0


class Examiner:
    """What can be said of a claim without a database. Thread-safe; `close` it when done."""

    def __init__(
        self,
        policy: Policy,
        sources: SourceReader,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.policy = policy
        self.detector = HedgeDetector(policy.lexicon)
        self.secrets = SecretDetector()
        self._sources = sources
        self._clock = clock
        # For what takes the processor or a look-up too long for the event loop.
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="examine")

    def close(self) -> None:
        """Waits for work under way. The sources are not closed with it."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def mask_secrets(self, sent: ClaimIn) -> tuple[ClaimIn, tuple[SecretMatch, ...]]:
        """What was sent, with masks in place of credentials, and where they were. Raises ClaimRefused for what is
        larger than the policy allows, and for an owner who is called like one."""
        refuse_over_limits(sent, self.policy.limits)
        self.refuse_secret("user_id", sent.user_id)
        return without_secrets(self.secrets, sent)

    def refuse_secret(self, what: str, value: str | None) -> None:
        """Raises ClaimRefused for a credential in what is kept as it is, because something is found by it."""
        if value is not None and self.secrets.find(value):
            raise ClaimRefused("credential", f"{what} holds a credential; nothing of the request was kept")

    def build_claim(self, principal: Principal, sent: ClaimIn) -> Claim:
        """The claim as it counts: without credentials, with owner, granted source and citations. Raises
        ClaimRefused."""
        sent, secrets = self.mask_secrets(sent)
        granted = sent.source is Source.AI_SYNTHESIS or sent.source in principal.sources
        return Claim(
            content=sent.content,
            memory_type=sent.memory_type,
            asserted_source=sent.source,
            source=sent.source if granted else Source.AI_SYNTHESIS,
            owner_id=owner_for(principal, sent.user_id),
            citations=given_citations(sent),
            validity_horizon=sent.validity_horizon,
            metadata=sent.metadata,
            delivery=sent.delivery and DeliveryTarget.model_validate(sent.delivery.model_dump()),
            secrets=secrets,
        )

    def inspect(self, claim: Claim) -> Inspected:
        """Runs the text checks. Raises ClaimRefused when the claim cites more than the policy's limit."""
        try:
            inspected = inspect(claim, self.detector)
        except TooManyCitations as error:
            raise ClaimRefused("too_many_citations", str(error)) from error
        cited = len(inspected.cited())
        if cited > self.policy.limits.citations:
            raise ClaimRefused(
                "too_many_citations",
                f"the claim cites {cited} things; at most {self.policy.limits.citations} are checked",
            )
        return inspected

    async def examine(self, claim: Claim, *, fresh: bool = False) -> Examined:
        """Text checks and readings, all within the policy's deadline; with `fresh`, sources are asked again
        whatever was kept of them. Raises ClaimRefused."""
        started = time.perf_counter()
        inspected = self.inspect(claim)
        captured = self._clock()
        cited = inspected.cited()
        if claim.secrets:
            return examine(inspected, unasked_readings(cited), self.policy, captured)
        by_meaning = self._start_paraphrase_lookup(claim, captured)
        if cited:
            readings = await gather(self._sources, cited, self.policy.deadline_seconds, fresh=fresh)
            # Beside the event loop: texts are long, and holding a claim against one takes some milliseconds.
            left = started + self.policy.deadline_seconds - time.perf_counter()
            examined = await self._compare_within_time(
                inspected, readings, captured, max(left, HOLDING_SECONDS)
            )
        else:
            examined = examine(inspected, (), self.policy, captured)
        if by_meaning is not None:
            paraphrases, embedding = await by_meaning
            examined = replace(examined, paraphrases=paraphrases, embedding=embedding)
        if not self.policy.judge.enabled:
            return examined
        left = started + self.policy.deadline_seconds - time.perf_counter()
        return await self._ask_judge(inspected, examined, left)

    async def _ask_judge(self, inspected: Inspected, examined: Examined, seconds: float) -> Examined:
        """With what the judge says; here, without one, that there is none."""
        return await weigh(None, inspected, examined, seconds=seconds)

    def _start_paraphrase_lookup(self, claim: Claim, now: datetime) -> asyncio.Task[ParaphraseResult] | None:
        """A look-up by meaning beside the readings; None where nobody asks, and only a gate can."""
        return None

    async def examine_edit(self, item: PendingMemory, content: str) -> Examined:
        """A pending item's claim with the owner's text in place of the agent's. Raises ClaimRefused."""
        secrets = self.secrets.find(content)
        claim = Claim(
            content=mask(content, secrets),
            memory_type=item.memory_type,
            asserted_source=item.source,
            source=item.source,
            owner_id=item.owner_id,
            validity_horizon=item.validity_horizon,
            metadata=item.metadata,
            secrets=secrets,
        )
        return await self.examine(claim)

    async def _compare_within_time(
        self, inspected: Inspected, readings: Sequence[SourceReading], captured: datetime, seconds: float
    ) -> Examined:
        """The claim held against what was read of its sources; UNKNOWN is every source with a text, when that
        takes longer: long texts cost processor time, and a claim may cite many."""
        until = time.perf_counter() + seconds
        held = asyncio.get_running_loop().run_in_executor(
            self._pool, self._compare_with_sources, inspected, readings, captured, until
        )
        try:
            return await asyncio.wait_for(held, seconds)
        except TimeoutError:
            log.warning("a claim could not be held against its sources within %.3g s", seconds)
        return examine(inspected, [timed_out(reading) for reading in readings], self.policy, captured)

    def _compare_with_sources(
        self, inspected: Inspected, readings: Sequence[SourceReading], captured: datetime, until: float
    ) -> Examined:
        held: list[SourceReading] = []
        for reading in readings:  # nobody waits any more after that time
            held += focus(inspected, [reading]) if time.perf_counter() < until else [timed_out(reading)]
        return examine(inspected, held, self.policy, captured)


class Gate(Examiner):
    """Checks and routes claims under one policy, and keeps what was decided. The store is not closed with it."""

    def __init__(
        self,
        policy: Policy,
        store: Store,
        sources: SourceReader,
        paraphraser: Paraphraser | None = None,
        judge: Judge | None = None,
    ) -> None:
        super().__init__(policy, sources)
        self.store = store
        self._judge = judge
        # Threads of their own: a model that hangs costs no claim its citations, and a repository that hangs costs
        # none what is similar to it.
        self._meaning = (
            None if paraphraser is None else ParaphraseLookup(paraphraser, policy.deadline_seconds)
        )
        self._advice = ThreadPoolExecutor(max_workers=2, thread_name_prefix="similar")
        self._advice.submit(prepare)

    def close(self) -> None:
        """Waits for readings and look-ups under way."""
        super().close()
        self._advice.shutdown(wait=True, cancel_futures=True)
        if self._meaning is not None:
            self._meaning.close()

    async def examine(self, claim: Claim, *, fresh: bool = False) -> Examined:
        """As `Examiner.examine`, and for a claim that will wait for its owner what is similar to it."""
        examined = await super().examine(claim, fresh=fresh)
        if _tier_without_neighbours(examined) is not Tier.QUEUED:
            return examined
        return await self._add_similar(examined)

    async def submit(
        self, principal: Principal, sent: ClaimIn, idempotency: Idempotency | None = None
    ) -> SubmitAnswer:
        """Decides about a claim and keeps claim, decision and log entry, or nothing.

        Raises ClaimRefused (nothing was looked at) and StorageError (nothing was kept, or for
        StoreUnknown perhaps something).
        """
        started = time.perf_counter()
        examined = await self.examine(self.build_claim(principal, sent))
        return await self.send(principal, examined, idempotency, started)

    def send(
        self,
        principal: Principal,
        examined: Examined,
        idempotency: Idempotency | None = None,
        started: float | None = None,
    ) -> asyncio.Future[SubmitAnswer]:
        """Hands an examined claim to the writer; claims sent in order are decided in that order."""
        claim = examined.claim
        # Made here, outside of the write transaction, for what it may store. What will wait has been looked up
        # (`examine`), and a claim never does better there; should that have failed, these are made for nothing.
        may_be_stored = examined.similar is None
        kind = claim.memory_type.value
        submission = Submission(
            examined=examined,
            principal_id=principal.id,
            suffix=new_id_suffix(examined.capture_time),
            keys=signature_keys(tokens(claim.content), kind, self.policy.threshold),
            idempotency=idempotency,
            started=time.perf_counter() if started is None else started,
            recheck_token=True,
            bands=similar.keys_of(claim.content, kind) if may_be_stored else None,
        )
        return self.store.writer.submit_async(submission)

    async def check(self, principal: Principal, sent: ClaimIn) -> ValidationResult:
        """The decision a submit would give now; writes nothing. Raises ClaimRefused."""
        started = time.perf_counter()
        examined = await super().examine(self.build_claim(principal, sent))
        examined = await self._add_similar(examined)
        dedup = Neighbours() if removes(examined.claim) else await self._look_up_neighbours(examined)
        at_place, echo = await self._look_up_place_and_echo(principal, examined, dedup)
        decision = examined.decide(dedup, at_place, echo)
        rejected_before = None
        if decision.tier is not Tier.STORED:
            loop = asyncio.get_running_loop()
            rejected_before = await loop.run_in_executor(self._advice, self._rejected_before, examined)
        return examined.answer(
            decision,
            dedup,
            decision_id=None,
            memory_id=None,
            queue_id=None,
            took_ms=(time.perf_counter() - started) * 1000,
            rejected_before=rejected_before,
            at_place=at_place,
            echo=echo,
        )

    async def _look_up_place_and_echo(
        self, principal: Principal, examined: Examined, dedup: DedupFacts
    ) -> tuple[AtPlace | None, EchoFacts | None]:
        """What is known of the claim's place, and how often it was sent, this time counted in as a submit would.
        Raises StorageError: not to know could look like a free place, or like never."""

        def look() -> tuple[AtPlace | None, EchoFacts | None]:
            with self.store.read() as connection:
                outbox = Outbox(connection)
                outbox.load([examined.claim])
                at_place = outbox.find_at_place(examined.claim, examined.capture_time)
                return at_place, echoes.read_facts(connection, examined, dedup, principal.id)

        return await asyncio.get_running_loop().run_in_executor(self._advice, look)

    def _rejected_before(self, examined: Examined) -> RejectedBefore | None:
        claim, days = examined.claim, self.policy.queue.rejected_days
        name = (claim.owner_id, words_digest(claim.content, claim.memory_type))
        try:
            with self.store.read() as connection:
                found = rejections.latest(connection, [name])
        except StorageError:  # it is shown, and decides nothing
            log.exception("earlier rejections could not be looked up")
            return None
        return rejections.lately(found.get(name), examined.capture_time, days)

    async def examine_edit(self, item: PendingMemory, content: str) -> Examined:
        """As `Examiner.examine_edit`. Waiting items, of which this is one, say nothing against an edit."""
        examined = await super().examine_edit(item, content)
        return replace(examined, paraphrases=stored_only(examined.paraphrases))

    async def _ask_judge(self, inspected: Inspected, examined: Examined, seconds: float) -> Examined:
        return await weigh(
            self._judge, inspected, examined, seconds=seconds, neighbours=self._look_up_neighbours
        )

    def _start_paraphrase_lookup(self, claim: Claim, now: datetime) -> asyncio.Task[ParaphraseResult] | None:
        return None if self._meaning is None else asyncio.create_task(self._meaning.look_up(claim, now))

    async def embed(self, text: str) -> Embedding | None:
        """The vector of a text, made by the policy's model in time; None when it was not, or there is none."""
        return None if self._meaning is None else await self._meaning.embed(text)

    async def _look_up_neighbours(self, examined: Examined) -> DedupFacts:
        return await asyncio.get_running_loop().run_in_executor(self._advice, self._neighbours, examined)

    def _neighbours(self, examined: Examined) -> DedupFacts:
        claim = examined.claim
        keys = signature_keys(tokens(claim.content), claim.memory_type.value, self.policy.threshold)
        try:
            with self.store.read() as connection:
                return index.find_neighbours(connection, claim.owner_id, keys, examined.capture_time)
        except StorageError as error:
            log.exception("the dedup index could not be asked")
            return DedupUnavailable(detail=str(error))

    async def _add_similar(self, examined: Examined) -> Examined:
        """With what is similar to it; as it is, and with a line in the log, when that is not known in time. A
        claim whose sources took all of its time has this look-up all the same: its owner will look at it."""
        asked = asyncio.get_running_loop().run_in_executor(self._advice, self._similar, examined)
        try:
            return replace(examined, similar=await asyncio.wait_for(asked, ADVICE_SECONDS))
        except TimeoutError:
            log.warning("similar memories could not be looked up within %g s", ADVICE_SECONDS)
        return examined

    def _similar(self, examined: Examined) -> tuple[SimilarMemory, ...] | None:
        claim = examined.claim
        try:
            with self.store.read() as connection:
                return similar.find(
                    connection,
                    claim.owner_id,
                    claim.content,
                    claim.memory_type.value,
                    threshold=self.policy.threshold,
                    now=examined.capture_time,
                )
        except Exception:  # it is advice: the decision stands without it, and the answer says null
            log.exception("similar memories could not be looked up")
            return None


def _tier_without_neighbours(examined: Examined) -> Tier:
    """Where the claim goes when its owner has stored nothing like it: no neighbour ever lets it do better."""
    return examined.decide(Neighbours()).tier
