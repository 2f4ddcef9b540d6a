"""What can be said of a claim before it is compared with what its owner has: text checks, and readings of what it
cites, all within the policy's deadline."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol, TypeVar

from vouchgate.gate.gathering import SourceReader, gather, timed_out
from vouchgate.gate.incoming import ClaimRefused, given_citations, owner_for, refuse_over_limits
from vouchgate.gate.judge import EntailmentModel, Judge, weigh
from vouchgate.gate.masking import mask_claim, misdirected, unasked_readings
from vouchgate.gate.paraphrases import ParaphraseLookup
from vouchgate.ingest.check import NOTHING_NEAR
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.checks.personal import PersonalDataDetector
from vouchgate.ingest.checks.secrets import mask, secret_detector
from vouchgate.ingest.citations import TooManyCitations
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.claim import Claim, SecretMatch, Source, Verdict
from vouchgate.ingest.claims.decision import Looked, Suggested
from vouchgate.ingest.claims.delivery import DeliveryTarget
from vouchgate.ingest.claims.likeness import DedupFacts
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.claims.trust import OwnPublishers
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.net.turns import Turns, on_behalf_of
from vouchgate.ingest.pipeline import Examined, Inspected, examine, focus, inspect
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.reputation import publishers_of
from vouchgate.ingest.scoring.score import is_official
from vouchgate.ingest.support.prepared import PreparedTexts
from vouchgate.ingest.support.unread import says_of_unread
from vouchgate.wire import ClaimIn

log = logging.getLogger(__name__)

T = TypeVar("T")

# Characters of a text that is looked at in the event loop: a hostile one takes 1.6 µs each.
_SHORT = 400
# Seconds that holding a claim against its sources may take although reading them took all the time there was.
HOLDING_SECONDS = 1.0

# What an owner says, at a time, of publishers with these names. Raises StorageError.
PublisherLookup = Callable[[str, Collection[str], datetime], OwnPublishers]


class Harvest(Protocol):
    """Finds what a claim could have cited, and what is only to be looked at, the best first, and says where it looked.
    Never raises."""

    async def find(
        self, claim: str, seconds: float
    ) -> tuple[Sequence[Citation], Sequence[Suggested], Sequence[Looked]]: ...


def waits_for_evidence(examined: Examined) -> bool:
    """Whether a claim will wait for nothing but that it cites nothing, or nothing that could be read."""
    if examined.claim.removes or examined.claim.source is not Source.AI_SYNTHESIS:
        return False
    if any(finding.verdict is not Verdict.UNKNOWN for finding in examined.findings.cited):
        return False  # something could be read, and whether that is enough is told by it
    decision = examined.knowing(dedup=NOTHING_NEAR).decide()
    if decision.rule is Rule.UNGROUNDED:
        return not examined.readings or bool(decision.decided_by)
    return decision.rule is Rule.CITATION_UNKNOWN


class Examiner:
    """Examines claims under one policy. Thread-safe; `close` it when done."""

    def __init__(
        self,
        policy: Policy,
        sources: SourceReader,
        *,
        judge: Judge | None = None,
        entailment: EntailmentModel | None = None,
        meaning: ParaphraseLookup | None = None,
        neighbours: Callable[[Examined], Awaitable[DedupFacts]] | None = None,
        harvest: Sequence[Harvest] = (),
        publishers: PublisherLookup | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Without a database it asks no `judge`, looks nothing up by `meaning`, and knows no `neighbours`: the
        earlier claims like one, which save the judge a question. Nor does it know what owners say of `publishers`.
        `harvest` are the places, in order, where what a claim does not cite is looked for."""
        self.policy = policy
        self.detector = HedgeDetector(policy.lexicon)
        self.secrets = secret_detector()
        self._masked = PersonalDataDetector(policy.personal_data.kinds("mask"))
        self._sources = sources
        self._weigh = partial(weigh, judge, neighbours=neighbours, model=entailment)
        self._meaning = meaning
        self._harvest = tuple(harvest) if policy.harvest != "off" else ()
        self._publishers = publishers
        self._clock = clock
        # For what takes the processor or a look-up too long for the event loop. One thread is always other owners'.
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="examine")
        self._turns = Turns(1, 2)

    def close(self) -> None:
        """Waits for work under way. Nothing that it was given is closed with it."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def mask_claim(self, sent: ClaimIn) -> tuple[ClaimIn, tuple[SecretMatch, ...], tuple[SecretMatch, ...]]:
        """What was sent, with masks in place of personal data that the policy masks and of credentials, and where these
        and those were. Raises ClaimRefused for what is larger than the policy allows, for an owner who is called
        like a credential, and for a place or an id of the delivery that would be masked."""
        refuse_over_limits(sent, self.policy.limits)
        self.refuse_secret("user_id", sent.user_id)
        sent, secrets = mask_claim(self.secrets, sent)
        masked, personal = mask_claim(self._masked, sent)
        if match := misdirected(personal):
            raise ClaimRefused(
                "personal_data",
                f"{match.where} holds personal data ({match.kind}) that the policy masks, and with a mask it would name"
                " something else: use a place or an id without; nothing of the request was kept",
            )
        return masked, personal, secrets

    def mask_text(self, text: str) -> str:
        """A text that is no claim, with the same masks."""
        return self._mask(text)[0]

    def _mask(self, text: str) -> tuple[str, tuple[SecretMatch, ...], tuple[SecretMatch, ...]]:
        """As `mask_claim`, of a text."""
        secrets = self.secrets.find(text)
        text = mask(text, secrets)
        personal = self._masked.find(text)
        return mask(text, personal), personal, secrets

    def refuse_secret(self, what: str, value: str | None) -> None:
        """Raises ClaimRefused for a credential in what is kept as it is, because something is found by it."""
        if value is not None and self.secrets.find(value):
            raise ClaimRefused("credential", f"{what} holds a credential; nothing of the request was kept")

    def build_claim(self, principal: Principal, sent: ClaimIn) -> Claim:
        """The claim as it counts: without credentials, with owner, granted source and citations. Raises
        ClaimRefused."""
        sent, personal, secrets = self.mask_claim(sent)
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
            personal=personal,
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

    async def examine(
        self, claim: Claim, *, fresh: bool = False, texts: PreparedTexts | None = None
    ) -> Examined:
        """Text checks and readings, all within the policy's deadline; with `fresh`, sources are asked again
        whatever was kept of them. `texts` are those that claims which came with it were held against. Raises
        ClaimRefused, and StorageError when what the owner says of a publisher cannot be read: not to know that could
        let pass what they banned."""
        with on_behalf_of(claim.owner_id):
            return await self._examined(claim, fresh, texts)

    async def _examined(self, claim: Claim, fresh: bool, texts: PreparedTexts | None) -> Examined:
        started = time.perf_counter()
        inspected = await self._beside(claim, partial(self.inspect, claim))
        captured = self._clock()
        cited = inspected.cited()
        if claim.secrets:
            return examine(inspected, unasked_readings(cited), self.policy, captured)
        by_meaning = None
        if self._meaning is not None:  # beside the readings
            by_meaning = asyncio.create_task(self._meaning.look_up(claim, captured))
        if cited:
            readings = await gather(self._sources, cited, self.policy.deadline_seconds, fresh=fresh)
            # Beside the event loop: texts are long, and holding a claim against one takes some milliseconds.
            left = started + self.policy.deadline_seconds - time.perf_counter()
            policy = await self._policy_for(claim.owner_id, readings, captured)
            examined = await self._compare_within_time(
                inspected, readings, policy, captured, max(left, HOLDING_SECONDS), texts
            )
        else:
            examined = await self._beside(claim, partial(examine, inspected, (), self.policy, captured))
        if self._harvest and waits_for_evidence(examined):
            left = started + self.policy.deadline_seconds - time.perf_counter()
            examined = await self._corroborated(inspected, examined, max(left, HOLDING_SECONDS))
        if by_meaning is not None:
            paraphrases, embedding = await by_meaning
            examined = replace(examined.knowing(paraphrases=paraphrases), embedding=embedding)
        if not (self.policy.judge.enabled or self.policy.entailment.enabled):
            return examined
        left = started + self.policy.deadline_seconds - time.perf_counter()
        examined = examined.comparing()
        return await self._weigh(inspected, examined, seconds=left)

    async def _beside(self, claim: Claim, work: Callable[[], T]) -> T:
        """Does what takes long for a long text beside the event loop, one thing of an owner after the other."""
        if len(claim.content) <= _SHORT:
            return work()
        return await self._turns.run(claim.owner_id, self._pool, work)

    async def _corroborated(self, inspected: Inspected, examined: Examined, seconds: float) -> Examined:
        """The claim with the source that was found for it, when that may make a FACT alone and states all of it, or
        with those of several people that state it; else as it is, with what its owner may look at. Each place that is
        searched has an equal share of what is left of the time."""
        until = time.perf_counter() + seconds
        ordinary: list[SourceReading] = []
        cited = {reading.citation.key for reading in examined.readings}
        for number, harvest in enumerate(self._harvest):
            share = (until - time.perf_counter()) / (len(self._harvest) - number)
            if share <= 0:
                break
            citations, suggested, looked = await harvest.find(examined.claim.stated, share)
            examined = replace(
                examined,
                suggested=(*(examined.suggested or ()), *suggested),
                looked=(*examined.looked, *looked),
            )
            for citation in citations:
                left = until - time.perf_counter()
                if left <= 0:
                    break
                if citation.key in cited:  # it could not be read
                    continue
                (reading,) = await gather(self._sources, (citation,), left, fresh=False)
                if not isinstance(reading, Found) or not is_official(reading, self.policy):
                    ordinary.append(reading)
                elif found := await self._citing(inspected, examined, [reading], until):
                    return found
        if len(ordinary) > 1 and (found := await self._citing(inspected, examined, ordinary, until)):
            return found
        return examined

    async def _citing(
        self, inspected: Inspected, examined: Examined, found: Sequence[SourceReading], until: float
    ) -> Examined | None:
        """The claim citing these too; None when they do not make it `corroborated`."""
        claim, citations = examined.claim, tuple(reading.citation for reading in found)
        keys = {reading.citation.key for reading in examined.readings}
        unread = [each for each in (*claim.citations, *inspected.citations) if each.key in keys]
        if says_of_unread(claim.content, unread, [each.text for each in found if isinstance(each, Found)]):
            return None
        cited = replace(
            inspected,
            claim=claim.model_copy(update={"citations": (*claim.citations, *citations)}),
            citations=(*inspected.citations, *citations),
        )
        readings = (*examined.readings, *found)
        policy = await self._policy_for(claim.owner_id, readings, examined.capture_time)
        left = max(until - time.perf_counter(), HOLDING_SECONDS)
        held = await self._compare_within_time(cited, readings, policy, examined.capture_time, left)
        rule = held.knowing(dedup=NOTHING_NEAR).decide().rule
        return replace(held, looked=examined.looked) if rule is Rule.CORROBORATED else None

    def claim_of_edit(self, item: PendingMemory, content: str, citations: Sequence[Citation]) -> Claim:
        """A pending item's claim with the owner's text in place of the agent's, and what its agent cited beside it."""
        content, personal, secrets = self._mask(content)
        return Claim(
            content=content,
            memory_type=item.memory_type,
            asserted_source=item.source,
            source=item.source,
            owner_id=item.owner_id,
            citations=tuple(citations),
            validity_horizon=item.validity_horizon,
            metadata=item.metadata,
            secrets=secrets,
            personal=personal,
        )

    async def _policy_for(
        self, owner_id: str, readings: Sequence[SourceReading], captured: datetime
    ) -> Policy:
        """The policy, with what the owner says of the publishers of what was read."""
        names = frozenset[str]().union(*map(publishers_of, readings))
        if self._publishers is None or not names:
            return self.policy
        look_up = partial(self._publishers, owner_id, names, captured)
        own = await self._turns.run(owner_id, self._pool, look_up)
        return self.policy.heeding(own) if own != OwnPublishers() else self.policy

    async def _compare_within_time(  # noqa: PLR0917  (what is held against what, until when)
        self,
        inspected: Inspected,
        readings: Sequence[SourceReading],
        policy: Policy,
        captured: datetime,
        seconds: float,
        texts: PreparedTexts | None = None,
    ) -> Examined:
        """The claim held against what was read of its sources; UNKNOWN is every source with a text, when that
        takes longer: long texts cost processor time, and a claim may cite many."""
        until = time.perf_counter() + seconds
        hold = partial(self._compare_with_sources, inspected, readings, policy, captured, until, texts)
        try:
            return await asyncio.wait_for(
                self._turns.run(inspected.claim.owner_id, self._pool, hold), seconds
            )
        except TimeoutError:
            log.warning("a claim could not be held against its sources within %.3g s", seconds)
        return examine(inspected, [timed_out(reading) for reading in readings], policy, captured)

    def _compare_with_sources(  # noqa: PLR0917  (as above)
        self,
        inspected: Inspected,
        readings: Sequence[SourceReading],
        policy: Policy,
        captured: datetime,
        until: float,
        texts: PreparedTexts | None,
    ) -> Examined:
        held: list[SourceReading] = []
        for reading in readings:  # nobody waits any more after that time
            in_time = time.perf_counter() < until
            held += focus(inspected, [reading], texts) if in_time else [timed_out(reading)]
        return examine(inspected, held, policy, captured)
