"""What reviewers say about an item without ruling on it: not now, mine, yours, I am looking, what is your source.
None of it changes who may rule on it. And what ends many items at once: letting go of what cannot be decided well.

Rights are those of the queue: who may rule on an item may say this of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.review import acts, record
from vouchgate.review.answers import AlreadyDecided, ItemChanged, NotFound
from vouchgate.review.queue import ReviewQueue
from vouchgate.review.rules import may_rule_on
from vouchgate.storage.errors import StorageError
from vouchgate.storage.identity import tokens
from vouchgate.storage.queue import pending, proposers
from vouchgate.storage.queue.pending import Order, QueueFilter
from vouchgate.storage.queue.query import Query

LOOK_MINUTES = 10  # that somebody is shown as looking at an item
MOST_QUESTION = 500  # characters: it is one sentence of an agent's next step
MOST_LET_GO = 1000  # items in one act


@dataclass(frozen=True, slots=True)
class Attended:
    """What was said is kept; the item as it now stands."""

    item: PendingMemory


@dataclass(frozen=True, slots=True)
class NotPossible:
    """It makes no sense for this item; nothing was changed. `code` is one of: `snooze_time`, `no_reviewer`,
    `several_reviewers`, `removal`, `question`. `message` is for the reviewer."""

    code: str
    message: str


AttentionAnswer = Attended | NotPossible | NotFound | ItemChanged | AlreadyDecided


def snooze(
    queue: ReviewQueue, principal: Principal, item_id: str, *, until: datetime, now: datetime
) -> AttentionAnswer:
    """Takes an item out of the list until then, when it is back by itself. It keeps its place in the limits, and
    expires when it would have."""

    def work(connection: Connection, item: PendingMemory) -> Attended | NotPossible:
        if not now < until < item.expires_at:
            message = (
                f"Snooze it until a time to come before {item.expires_at:%Y-%m-%d %H:%M}Z, when it expires."
            )
            return NotPossible("snooze_time", message)
        values, by, at = {"snoozed_until": until}, principal.id, until.astimezone(UTC).isoformat()
        return _say(connection, item, values, Action.REVIEW_SNOOZED, by=by, now=now, until=at)

    return queue.act(principal, item_id, None, now, work)


def resume(queue: ReviewQueue, principal: Principal, item_id: str, *, now: datetime) -> AttentionAnswer:
    """Has an item that is snoozed or sent back stand in the list again, at once."""
    nothing = {"snoozed_until": None, "sent_back_at": None}

    def work(connection: Connection, item: PendingMemory) -> Attended | NotPossible:
        return _say(connection, item, nothing, Action.REVIEW_RESUMED, by=principal.id, now=now)

    return queue.act(principal, item_id, None, now, work)


def assign(
    queue: ReviewQueue, principal: Principal, item_id: str, *, to: str, now: datetime
) -> AttentionAnswer:
    """Says who is to rule on an item: the name or id of a token that may, `me`, or `nobody`. Others still can."""

    def work(connection: Connection, item: PendingMemory) -> Attended | NotPossible:
        found = [principal] if to == "me" else tokens.holding(connection, to, now)
        # By person: of several tokens of one it is the newest.
        who = {each.person or each.id: each.id for each in found if may_rule_on(each, item)}
        if to != "nobody" and len(who) != 1:
            code = "several_reviewers" if who else "no_reviewer"
            several = "Several reviewers have this name: give the id of one."
            return NotPossible(code, several if who else "No reviewer of this owner has this name or id.")
        chosen = None if to == "nobody" else next(iter(who.values()))
        values, by = {"assigned_to": chosen}, principal.id
        return _say(connection, item, values, Action.REVIEW_ASSIGNED, by=by, now=now, to=chosen)

    return queue.act(principal, item_id, None, now, work)


def look(
    queue: ReviewQueue, principal: Principal, item_id: str, *, now: datetime, stop: bool = False
) -> AttentionAnswer:
    """Tells others for LOOK_MINUTES that this reviewer looks at an item, or with `stop` no longer. It keeps nobody from
    anything: the answer names who said so first, while that holds. The log has nothing of it."""

    def work(connection: Connection, item: PendingMemory) -> Attended:
        others = item.viewer not in (None, principal.id) and (item.viewing_until or now) > now
        if not others:
            until = None if stop else now + timedelta(minutes=LOOK_MINUTES)
            who = None if stop else principal.id
            _change(connection, item, {"viewer": who, "viewing_until": until})
        return Attended(acts.reload(connection, item))

    return queue.act(principal, item_id, None, now, work)


def send_back(
    queue: ReviewQueue,
    principal: Principal,
    item_id: str,
    *,
    version: int | None,
    question: str,
    now: datetime,
) -> AttentionAnswer:
    """Asks the agent of an item, in this version or whichever, for what is missing. Until the agent answers
    (`review.attending.answering`) the item is out of the list; it expires as any other, and `resume` takes it back."""
    asked = acts.storable_text(question.strip())

    def work(connection: Connection, item: PendingMemory) -> Attended | NotPossible:
        if not 0 < len(asked) <= MOST_QUESTION:
            return NotPossible("question", f"Ask something, in at most {MOST_QUESTION} characters.")
        if item.removal_of is not None:
            return NotPossible("removal", "It asks for a removal, which no source can vouch for.")
        values = {"question": asked, "sent_back_at": now, "asked_decision": item.decision_id}
        by = principal.id
        return _say(connection, item, values, Action.REVIEW_SENT_BACK, by=by, now=now, question=asked)

    answer = queue.act(principal, item_id, version, now, work)
    queue.tell(Action.REVIEW_SENT_BACK, int(isinstance(answer, Attended)))
    return answer


def _say(
    connection: Connection,
    item: PendingMemory,
    values: Mapping[str, Any],
    action: Action,
    *,
    by: str,
    now: datetime,
    **about: str | None,
) -> Attended:
    _change(connection, item, values)
    record.entry(
        connection, item.owner_id, action, item.id, record.document(item=item.id, **about), by=by, now=now
    )
    return Attended(acts.reload(connection, item))


def _change(connection: Connection, item: PendingMemory, values: Mapping[str, Any]) -> None:
    if not pending.change(connection, item, values):
        raise StorageError(f"item {item.id} changed although its owner was locked")


def matching(
    queue: ReviewQueue, principal: Principal, query: Query, *, now: datetime, order: Order = "priority"
) -> Iterator[PendingMemory]:
    """The reviewer's own waiting items that a query finds, in order; what this reviewer may not rule on is left out."""
    after: str | None = None
    while True:
        wanted = QueueFilter(query=query, order=order, after=after, limit=pending.MAX_PAGE, now=now)
        found = queue.search(principal, wanted)
        yield from (item for item in found if may_rule_on(principal, item))
        if len(found) < pending.MAX_PAGE:
            return
        after = pending.cursor_of(found[-1], order)


@dataclass(frozen=True, slots=True)
class LetGo:
    """How many items were let go, and how many of those that were meant had changed meanwhile and wait on or were
    decided."""

    count: int
    left: int


def let_go(
    queue: ReviewQueue, principal: Principal, items: Sequence[PendingMemory], *, reason: str, now: datetime
) -> LetGo:
    """Ends the wait of items that can never be decided well, as they were seen. It says nothing of whether they are so,
    and can be taken back as a ruling can. Each has its entry in the log, with the reason and how many went with it.
    ValueError when the reason is blank."""
    if not reason.strip():
        raise ValueError("letting go needs a reason")
    seen = {item.id: item.version for item in items if may_rule_on(principal, item)}
    end = partial(_end, versions=seen, by=principal, reason=reason, now=now)
    ended = queue.sweep([(item.owner_id, item.id) for item in items if item.id in seen], end)
    queue.tell(Action.REVIEW_LET_GO, ended)
    return LetGo(ended, len(items) - ended)


def let_go_one(
    queue: ReviewQueue, principal: Principal, item_id: str, *, version: int, reason: str, now: datetime
) -> AttentionAnswer:
    """As `let_go`, of one item."""

    def work(connection: Connection, item: PendingMemory) -> Attended:
        acts.let_go(connection, item, by=principal.id, reason=reason, now=now, together=1)
        return Attended(acts.reload(connection, item))

    answer = queue.act(principal, item_id, version, now, work)
    if isinstance(answer, Attended):
        queue.tell(Action.REVIEW_LET_GO, 1)
    return answer


def _end(
    connection: Connection,
    owner_id: str,
    item_id: str,
    *,
    versions: Mapping[str, int],
    by: Principal,
    reason: str,
    now: datetime,
) -> bool:
    item = pending.get(connection, item_id, owners=frozenset({owner_id}))
    if item is None or item.version != versions[item_id]:  # every ending makes a new version
        return False
    if not proposers.may_still_rule(connection, by, owner_id, now):
        return False
    acts.let_go(connection, item, by=by.id, reason=reason, now=now, together=len(versions))
    return True
