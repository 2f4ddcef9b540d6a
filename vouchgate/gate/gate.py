"""The one door. HTTP, the command line and every client that comes later submit claims here and nowhere else.

build_claim -> inspect -> gather -> examine -> foresee -> compare -> (write transaction: decide, write) -> answer
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from vouchgate.gate.examiner import Examiner, Harvest
from vouchgate.gate.gathering import SourceReader
from vouchgate.gate.judge import EntailmentModel, Judge
from vouchgate.gate.paraphrases import ParaphraseLookup, Paraphraser
from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.checks.citations import VERIFY
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.claim import Claim, Verdict
from vouchgate.ingest.claims.decision import RejectedBefore, Tier, ValidationResult
from vouchgate.ingest.claims.likeness import DedupFacts, Embedding
from vouchgate.ingest.claims.modes import Mode, bearing
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.trust import OwnPublishers
from vouchgate.ingest.claims.waiting import Lane, PendingMemory
from vouchgate.ingest.dedup.compare import NOT_LOOKED_UP, LookedUp
from vouchgate.ingest.dedup.paraphrase import stored_only
from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.net.turns import Turns
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.priority import words_digest
from vouchgate.ingest.support.prepared import PreparedTexts
from vouchgate.storage import modes
from vouchgate.storage.claims import echoes, publishers, sayings
from vouchgate.storage.claims.submit import Idempotency, Submission, SubmitAnswer
from vouchgate.storage.dedup import contradicting
from vouchgate.storage.errors import StorageError
from vouchgate.storage.ids import new_id_suffix
from vouchgate.storage.outgoing.outbox import Outbox
from vouchgate.storage.queue import rejections
from vouchgate.storage.store import Store
from vouchgate.wire import ClaimIn

log = logging.getLogger(__name__)

T = TypeVar("T")

# Seconds an answer waits, from its owner's turn on, for what is similar or contradicts it, which takes milliseconds.
ADVICE_SECONDS = 1.0
# Checks of one owner's claims that are compared at the same time; the others wait for their turn.
CHECKS_AT_ONCE = 2
# Rows of an owner's batches that are examined at the same time.
ROWS_AT_ONCE = 16


class Gate:
    """Checks and routes claims under one policy, and keeps what was decided. The store is not closed with it."""

    def __init__(
        self,
        policy: Policy,
        store: Store,
        sources: SourceReader,
        paraphraser: Paraphraser | None = None,
        judge: Judge | None = None,
        *,
        entailment: EntailmentModel | None = None,
        harvest: Sequence[Harvest] = (),
    ) -> None:
        self.policy = policy
        self.store = store
        # Threads of their own: a model that hangs costs no claim its citations, and a repository that hangs costs
        # none what is similar to it.
        self._meaning = (
            None if paraphraser is None else ParaphraseLookup(paraphraser, policy.deadline_seconds)
        )
        self.examiner = Examiner(
            policy,
            sources,
            judge=judge,
            entailment=entailment,
            meaning=self._meaning,
            neighbours=self._neighbours,
            harvest=harvest,
            publishers=self.own_publishers,
        )
        self.rows = Turns(ROWS_AT_ONCE)
        self._checks = Turns(CHECKS_AT_ONCE)
        self._advice = ThreadPoolExecutor(max_workers=2, thread_name_prefix="similar")
        self._advised = Turns(1, 2)
        self._weighing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="weigh")
        self._weighs = Turns(1, 1)

    def close(self) -> None:
        """Waits for readings and look-ups under way."""
        self.examiner.close()
        self._advice.shutdown(wait=True, cancel_futures=True)
        self._weighing.shutdown(wait=True, cancel_futures=True)
        if self._meaning is not None:
            self._meaning.close()

    def own_publishers(self, owner_id: str, names: Collection[str], now: datetime) -> OwnPublishers:
        """What an owner says of publishers with these names."""
        with self.store.read() as connection:
            return publishers.said_of(connection, owner_id, names, now)

    async def examine(
        self, claim: Claim, *, fresh: bool = False, texts: PreparedTexts | None = None
    ) -> Examined:
        """As `Examiner.examine`; for a claim that will wait for its owner with what is similar to it. What contradicts
        one that may be stored is looked for on its way to the writer (`storage.dedup.comparing`)."""
        examined, tier = (await self.examiner.examine(claim, fresh=fresh, texts=texts)).foreseeing()
        if tier is not Tier.QUEUED or claim.removes:
            return examined
        return await self._look_up(examined, show=True)

    async def submit(
        self, principal: Principal, sent: ClaimIn, key: Idempotency | None = None, *, hand_over: bool = False
    ) -> SubmitAnswer:
        """Decides about a claim and keeps claim, decision and log entry, or nothing. With `hand_over` the answer has
        its delivery, where that can be.

        Raises ClaimRefused (nothing was looked at) and StorageError (nothing was kept, or for
        StoreUnknown perhaps something).
        """
        started = time.perf_counter()
        examined = await self.examine(self.examiner.build_claim(principal, sent))
        return await self.send(principal, examined, key, started, alone=True, hand_over=hand_over)

    def send(
        self,
        principal: Principal,
        examined: Examined,
        idempotency: Idempotency | None = None,
        started: float | None = None,
        *,
        alone: bool = False,
        lane: Lane = Lane.AGENT,
        hand_over: bool = False,
    ) -> asyncio.Future[SubmitAnswer]:
        """Has an examined claim compared and written; claims of one owner are decided in the order they are sent in.
        `alone`: it is not one of many that come together. `lane`: whose places it takes if it has to wait."""
        claim, looked_up = examined.claim, examined.looked_up
        submission = Submission(
            examined=examined,
            principal_id=principal.id,
            suffix=new_id_suffix(examined.capture_time),
            keys=self._keys(claim),
            idempotency=idempotency,
            started=time.perf_counter() if started is None else started,
            recheck_token=True,
            new_owners=principal.new_owners,
            bands=None if looked_up is None else looked_up.bands,
            lane=lane,
            hand_over=hand_over,
        )
        return self.store.comparer.submit_async(submission, alone=alone)

    async def check(self, principal: Principal, sent: ClaimIn) -> ValidationResult:
        """The decision a submit would give now; writes nothing. Raises ClaimRefused, and StorageError when too much
        waits already."""
        started = time.perf_counter()
        examined = await self.examiner.examine(self.examiner.build_claim(principal, sent))
        async with self._checks.of(examined.claim.owner_id):
            return await self._compared(principal, examined.comparing(), started)

    async def weigh(self, principal: Principal, work: Callable[[], T]) -> T:
        """Does what takes the processor for long beside the event loop: one thing at a time, principals in turn."""
        return await self._weighs.run(principal.id, self._weighing, work)

    async def _compared(self, principal: Principal, examined: Examined, started: float) -> ValidationResult:
        dedup: DedupFacts = NOTHING_NEAR
        if not examined.claim.removes:
            examined = await self._look_up(examined, show=True)
            neighbours = await self._neighbours(examined)
            dedup = neighbours
            if examined.looked_up is not None or examined.knowing(dedup=dedup).decide().tier is Tier.STORED:
                dedup = contradicting.together(dedup, examined.looked_up or NOT_LOOKED_UP)
        examined, mode = await self._look_up_the_rest(principal, examined.knowing(dedup=dedup))
        decision = examined.decide()
        rejected_before = None
        if decision.tier is not Tier.STORED:
            look = partial(self._rejected_before, examined)
            rejected_before = await self._advised.run(examined.claim.owner_id, self._advice, look)
        return examined.answer(
            decision,
            decision_id=None,
            memory_id=None,
            queue_id=None,
            took_ms=(time.perf_counter() - started) * 1000,
            rejected_before=rejected_before,
            mode=Mode.OBSERVE if mode is Mode.OBSERVE else Mode.ENFORCE,
        )

    async def _look_up_the_rest(self, principal: Principal, examined: Examined) -> tuple[Examined, Mode]:
        """With what is known of the claim's place, how often it was sent, this time counted in as a submit would, and
        what its owner says that bears on it; and the mode that stands for it. Raises StorageError: not to know could
        look like a free place, or like never."""

        def look() -> tuple[Examined, Mode]:
            claim, at = examined.claim, examined.capture_time
            with self.store.read() as connection:
                outbox = Outbox(connection)
                outbox.load([claim])
                known = examined.knowing(
                    at_place=outbox.find_at_place(claim, at),
                    echo=echoes.read_facts(connection, examined, examined.facts.dedup, principal.id),
                )
                known = sayings.load(connection, claim.owner_id).bearing_on(known, principal.id)
                stand = modes.in_force(connection, [claim.owner_id])
                who = {principal.id, principal.person or principal.id}
                return known, bearing(stand, claim.owner_id, who).mode

        return await self._advised.run(examined.claim.owner_id, self._advice, look)

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

    async def examine_edit(
        self, item: PendingMemory, content: str, citations: Sequence[Citation]
    ) -> Examined:
        """A pending item's claim with the owner's text in place of the agent's, and those of the `citations` beside it
        that are not false: the owner cannot take them out. Waiting items, of which this is one, say nothing against an
        edit. Raises ClaimRefused."""
        examined = await self.examine(self.examiner.claim_of_edit(item, content, citations))
        refuted = [f for f in examined.findings.of(VERIFY) if f.verdict in (Verdict.FAIL, Verdict.DOUBT)]
        false = {finding.citation.key for finding in refuted if finding.citation is not None}
        kept = [citation for citation in citations if citation.key not in false]
        if len(kept) < len(citations):
            examined = await self.examine(self.examiner.claim_of_edit(item, content, kept))
        return examined.knowing(paraphrases=stored_only(examined.facts.paraphrases))

    async def embed(self, text: str | None) -> Embedding | None:
        """The vector of a text, made by the policy's model in time; None when it was not, or one of them is missing."""
        return None if self._meaning is None or text is None else await self._meaning.embed(text)

    async def _neighbours(self, examined: Examined) -> DedupFacts:
        """The earlier claims like it, each compared with it."""
        looked = self.store.comparer.look(examined.comparing(), self._keys(examined.claim))
        return await asyncio.wrap_future(looked)

    def _keys(self, claim: Claim) -> SignatureKeys:
        return signature_keys(tokens(claim.content), claim.memory_type.value, self.policy.threshold)

    async def _look_up(self, examined: Examined, *, show: bool) -> Examined:
        """With what contradicts it and, with `show`, what is similar to it; as it is, and with a line in the log, when
        that is not known in time: then the write transaction looks for what contradicts it. A claim whose sources took
        all of its time has this look-up all the same: its owner will look at it."""
        examined = examined.comparing()
        look = partial(self._looked_up, examined, show)
        try:
            found = await self._advised.run(examined.claim.owner_id, self._advice, look, ADVICE_SECONDS)
        except TimeoutError:
            log.warning("similar memories could not be looked up within %g s", ADVICE_SECONDS)
            return examined
        return replace(examined, looked_up=found, similar=found.similar if show and found else None)

    def _looked_up(self, examined: Examined, show: bool) -> LookedUp | None:
        known, claim, now = examined.known, examined.claim, examined.capture_time
        if known is None:
            raise ValueError("a claim that remembers nothing cannot be compared")
        try:
            with self.store.read() as connection:
                kind = claim.memory_type.value
                return contradicting.look_up(
                    connection, claim.owner_id, claim.content, kind, known, now=now, show=show
                )
        except Exception:  # the transaction looks again, and the answer says null
            log.exception("similar memories could not be looked up")
            return None
