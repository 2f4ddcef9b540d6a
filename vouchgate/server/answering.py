"""What an agent answers to a question about its claim, from the API: what must be looked up first, and then the act."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool

from vouchgate.gate.incoming import ClaimRefused
from vouchgate.ingest.claims.claim import Claim, Source
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.rules import Rule
from vouchgate.review import acts
from vouchgate.review.answers import NotFound
from vouchgate.review.attending.answering import Answered, AnswerRefused
from vouchgate.service import Service
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.errors import StorageError
from vouchgate.storage.queue import pending
from vouchgate.wire import AnswerIn, ClaimIn

AnswerOutcome = Answered | AnswerRefused | NotFound


def own_item(service: Service, principal: Principal, item_id: str) -> PendingMemory | None:
    """An item that this very principal submitted; None for any other."""
    owners = None if principal.any_owner else principal.owners
    with service.store.read() as connection:
        item = pending.get(connection, item_id, owners=owners)
    return item if item is not None and item.submitted_by == principal.id else None


async def answer(
    service: Service, principal: Principal, item_id: str, sent: AnswerIn, key: str | None = None
) -> AnswerOutcome:
    """Decides about an item again, with the text and the citations that are sent; an answer that comes again gets the
    decision that fell. Type, place, horizon and metadata stay what they were. Raises ClaimRefused and StorageError."""
    item = await run_in_threadpool(own_item, service, principal, item_id)
    if item is None:
        return NotFound()
    then = await run_in_threadpool(decision_on, service, item)
    built = _built(service, principal, item, sent, then.evidence.claim)
    return await _decide(service, principal, item, then, built, key=key)


async def _decide(
    service: Service,
    principal: Principal,
    item: PendingMemory,
    then: ValidationResult,
    built: Claim,
    *,
    key: str | None,
) -> AnswerOutcome:
    """As `answer`: the claim as it was, with what is sent in place of text and given citations."""
    before = then.evidence.claim
    sent = {name: getattr(built, name) for name in ("content", "citations", "secrets", "personal", "source")}
    claim = before.model_copy(update=sent)
    says_the_same = claim.content == before.content
    if item.sent_back_at is None:
        if item.question is not None and says_the_same and _cited(claim) == _cited(before):  # sent again
            return Answered(then, then.model_dump_json())
        return AnswerRefused("not_sent_back", "This claim does not wait for an answer of yours.")
    if says_the_same and _cited(claim) <= _cited(before):
        message = f"It says and cites what it did. Its owner asks: “{item.question}”"
        return AnswerRefused("nothing_new", message)
    return await service.rechecker.answer(item, then, claim, by=principal.id, key=key)


async def answer_repeat(
    service: Service, principal: Principal, sent: ClaimIn | Claim, decided: Decided, key: str | None
) -> Decided:
    """What a claim comes to that repeats a waiting one: where that was sent back to this agent and now comes with other
    citations, the decision on the answer; else the one that fell."""
    queue_id = decided.answer.queue_id
    if decided.answer.rule != Rule.ALREADY_PENDING or queue_id is None or not sent.citations:
        return decided
    try:
        if isinstance(sent, ClaimIn):
            again = AnswerIn(content=sent.content, citations=sent.citations)
            found = await answer(service, principal, queue_id, again, key)
        else:
            item = await run_in_threadpool(own_item, service, principal, queue_id)
            if item is None:
                return decided
            then = await run_in_threadpool(decision_on, service, item)
            found = await _decide(service, principal, item, then, sent, key=key)
    except (ClaimRefused, StorageError):  # it has been decided, and that stands
        return decided
    return Decided(found.answer, found.text) if isinstance(found, Answered) else decided


def decision_on(service: Service, item: PendingMemory) -> ValidationResult:
    """The decision under which an item waits. Raises StorageError."""
    with service.store.read() as connection:
        return acts.stored_answer(connection, item)


def _built(
    service: Service, principal: Principal, item: PendingMemory, sent: AnswerIn, before: Claim
) -> Claim:
    """What is sent, as a claim of its own."""
    granted = before.asserted_source in principal.sources
    return service.gate.examiner.build_claim(
        principal,
        ClaimIn(
            content=item.content if sent.content is None else sent.content,
            memory_type=item.memory_type,
            source=before.asserted_source if granted else Source.AI_SYNTHESIS,
            user_id=item.owner_id,
            citations=sent.citations,
        ),
    )


def _cited(claim: Claim) -> set[tuple[str, str]]:
    return {(citation.key, citation.quote) for citation in claim.citations}
