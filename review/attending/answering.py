"""An agent's answer to a question about its claim: the same item, with another text or other citations.

The rules decide as they do about any claim. What they vouch for is stored; all else is before the reviewers again, with
what the agent brought. The agent decides nothing, and neither does the question.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, update

from vouchgate.ingest.claims.decision import Tier, ValidationResult
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.source import Found
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.priority import cited_key, words_digest
from vouchgate.ingest.scoring.score import is_listed
from vouchgate.review import acts, record
from vouchgate.review.recheck import Reexamined, decide_again, new_decision, not_erased
from vouchgate.storage import modes
from vouchgate.storage.claims import standing_rulings
from vouchgate.storage.dedup import index, vectors
from vouchgate.storage.errors import StorageError
from vouchgate.storage.queue import pending, proposers
from vouchgate.storage.tables.claims import IdempotencyRow

_KEYS: Table = IdempotencyRow.metadata.tables["idempotency"]


@dataclass(frozen=True, slots=True)
class Answered:
    """The decision that fell on the answer; `text` is what was written of it."""

    answer: ValidationResult
    text: str


@dataclass(frozen=True, slots=True)
class AnswerRefused:
    """Nothing was decided, and nothing changed. `code` is one of: `not_sent_back` (it is not the agent's turn),
    `nothing_new` (it says and cites what it did), `page_new` (a page that nobody listed, and that was not there at
    first), `stopped` (nothing is taken of it), `changed` (the item changed meanwhile: look again)."""

    code: str
    message: str


def step_of(item: PendingMemory) -> str | None:
    """What its agent does now about an item that was sent back; None while it is not. Here alone an owner's words are
    given to an agent: in quotes, and they are a person's who may rule on the claim."""
    if item.sent_back_at is None or item.status is not ReviewStatus.PENDING:
        return None
    return (
        f"Its owner asks: “{item.question}” Send it again as the answer to {item.id}, with the source that says so "
        "cited and quoted, in words that the source covers; without one, tell the user that it waits for a source."
    )


def settle(
    connection: Connection,
    seen: PendingMemory,
    again: Reexamined,
    then: ValidationResult,
    policy: Policy,
    *,
    by: str,
    key: str | None,
) -> Answered | AnswerRefused:
    """Decides about an answer, in a write transaction that holds the lock of the owner. `then` is the decision under
    which the item was sent back, `by` the agent, `key` its Idempotency-Key: a repeat is given this decision."""
    item = acts.reload(connection, seen)
    if not proposers.acts_still_for(connection, by, item.owner_id, again.now):
        return AnswerRefused("token_gone", "Your token does not hold any more, or not for this owner.")
    who = {by, *proposers.persons_of(connection, {by}).values()}
    if (halted := modes.halted(connection, item.owner_id, who)) is not None:
        return AnswerRefused("stopped", halted.sentence)
    over = item.status is not ReviewStatus.PENDING or item.expires_at <= again.now
    if over or item.sent_back_at is None:
        return AnswerRefused("not_sent_back", "This claim does not wait for an answer of yours.")
    if item.decision_id != again.decision_id:
        return AnswerRefused("changed", "The claim changed meanwhile. Look at what is asked of you now.")
    again = not_erased(connection, again)
    examined, decision = decide_again(connection, item, again)
    late = _written_since(examined, then)
    if decision.tier is Tier.STORED and late is not None:
        message = f"{late} was not there when the claim was first checked, and nobody vouches for that page."
        return AnswerRefused("page_new", f"{message} Cite another source, or leave it to the owner.")
    made = new_decision(item, again, examined, decision)
    if decision.tier is Tier.BLOCKED:
        acts.keep_decision(
            connection, made.answer, Action.CLAIM_BLOCKED, made.readings, policy, by=by, now=again.now
        )
        standing_rulings.ACTS.write(connection, standing_rulings.act_rows(made.answer))
    else:
        item = _take(connection, item, examined, by=by, now=again.now)
        if decision.tier is Tier.STORED:
            acts.promote(connection, item, made, again.bands, policy)
        else:
            acts.redecide(connection, item, made, policy)
    if key is not None:
        of_key = (_KEYS.c.principal_id == by) & (_KEYS.c.key == key)
        connection.execute(update(_KEYS).where(of_key).values(decision_id=made.decision_id))
    return Answered(made.answer, made.answer.model_dump_json())


def _written_since(examined: Examined, then: ValidationResult) -> str | None:
    """A source of a publisher that nobody listed, which is there now and was not: the agent may have written it."""
    absent = {r.citation.key for r in then.evidence.sources if not isinstance(r, Found)}
    for reading in examined.readings:
        found = isinstance(reading, Found) and reading.citation.key in absent
        if found and isinstance(reading, Found) and not is_listed(reading, examined.policy):
            return reading.citation.value
    return None


def _take(
    connection: Connection, item: PendingMemory, examined: Examined, *, by: str, now: datetime
) -> PendingMemory:
    """The item with the text and the citations of the answer, in the list again."""
    content, sources = examined.claim.content, examined.readings
    values: dict[str, Any] = {
        "sent_back_at": None,
        "snoozed_until": None,
        "content": content,
        "words_digest": words_digest(content, item.memory_type),
        "cited": cited_key(sources[0].citation.key) if sources else None,
    }
    if content != item.content:
        index.remove(connection, item.owner_id, ItemKind.PENDING, item.id)  # by the text that it still has
        vectors.remove(connection, item.owner_id, item.id)
    if not pending.change(connection, item, values):
        raise StorageError(f"item {item.id} changed although its owner was locked")
    if content != item.content:
        one = Neighbour(kind=ItemKind.PENDING, id=item.id, content=content)
        index.add(connection, item.owner_id, one, item.memory_type.value)
        if examined.embedding is not None:
            vectors.add(connection, item.owner_id, ItemKind.PENDING, item.id, examined.embedding)
    document = record.document(item=item.id, question=item.question)
    record.entry(connection, item.owner_id, Action.CLAIM_ANSWERED, item.id, document, by=by, now=now)
    return acts.reload(connection, item)
