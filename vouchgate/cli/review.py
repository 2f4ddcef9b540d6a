"""`vouchgate review`: the owner's queue, straight from the database, with the same rules as over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from vouchgate.cli.database import open_store
from vouchgate.cli.output import USAGE, Failure, one_line, say, write_json
from vouchgate.ingest.claims.claim import Verdict
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.likeness import Embedding
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.trust import Trust
from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import explain
from vouchgate.ingest.scoring.reputation import parse_publisher
from vouchgate.review.answers import (
    AlreadyDecided,
    ApprovalRefused,
    Approved,
    ItemChanged,
    NotFound,
    NotUndoable,
    Objected,
    Rejected,
    Removed,
    Undone,
    Voted,
)
from vouchgate.review.attending import views
from vouchgate.review.pages.reasons import kind_of
from vouchgate.review.queue import ReviewQueue
from vouchgate.review.rules import Act, is_allowed, is_owner
from vouchgate.review.trust import publishers
from vouchgate.review.trust.publishers import MOST, TooManyPublishers
from vouchgate.review.vouching.loading import load_rules
from vouchgate.review.vouching.owner_rules import OwnerRules
from vouchgate.settings import Settings
from vouchgate.storage.identity import tokens
from vouchgate.storage.queue.pending import Order, QueueFilter, cursor_of
from vouchgate.storage.queue.query import Query, parse
from vouchgate.storage.store import Store

_QUEUES = (
    Rule.CONFLICT,
    Rule.TECHNICAL_HEDGE,
    Rule.DEDUP_UNKNOWN,
    Rule.REFUTED,
    Rule.UNCOVERED,
    Rule.HIDDEN_TEXT,
    Rule.INSTRUCTION,
    Rule.PERSONAL_DATA,
    Rule.DOUBTED,
    Rule.CITATION_UNKNOWN,
    Rule.UNGROUNDED,
)
REASONS = {kind_of(rule).slug: rule for rule in _QUEUES}
ORDERS: dict[str, Order] = {"priority": "priority", "oldest": "oldest", "newest": "newest"}
CONFLICT_HELP = "add --supersede to replace the stored memory, or --keep-both"


@dataclass(frozen=True, slots=True)
class ReviewSession:
    """A reviewer before an open queue."""

    store: Store
    queue: ReviewQueue
    policy: Policy
    rules: OwnerRules
    principal: Principal

    def one_owner(self, named: str | None) -> str:
        """The owner that a command is about. Raises Failure when it is not said, or not this reviewer's."""
        own = sorted(self.principal.owners) if named is None else [named]
        if len(own) != 1 or not is_owner(self.principal, own[0]):
            raise Failure("name the owner whose memories it is about with --owner; this token must be theirs")
        return own[0]


@contextmanager
def open_review_session(settings: Settings) -> Iterator[ReviewSession]:
    """Raises Failure unless a reviewer's token is given, by --token or VOUCHGATE_TOKEN."""
    if settings.token is None:
        raise Failure(
            "a reviewer's token is needed: give --token or set VOUCHGATE_TOKEN; "
            "vouchgate token create --role reviewer --owner ID makes one"
        )
    policy, rules = load_policy(settings.policy), load_rules(settings.owner_rules)
    with open_store(settings) as store:
        with store.read() as connection:
            principal = tokens.authenticate(connection, settings.token.get_secret_value(), datetime.now(UTC))
        if principal is None:
            raise Failure("this token is not known in this database, or it is revoked or expired")
        if not is_allowed(principal, Act.REVIEW):
            raise Failure(
                f"only an owner's reviewer may do this; this token is for the role {principal.role}"
            )
        yield ReviewSession(store, ReviewQueue(store, policy, rules), policy, rules, principal)


def listing(
    settings: Settings,
    *,
    status: ReviewStatus,
    order: Order,
    rule: Rule | None,
    query: Query,
    view: str | None,
    after: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """Items of the reviewer's own queue in this order; of those that wait under this rule only, if one is named, and
    that the query, or the saved one of the name `view`, finds."""
    with open_review_session(settings) as desk:
        if view is not None:
            query = _query_of(desk, view)
        wanted = QueueFilter(status=status, rule=rule, query=query, order=order, after=after, limit=limit)
        items = desk.queue.search(desk.principal, wanted)
    if as_json:
        for item in items:
            write_json(item.model_dump(mode="json"))
        return 0
    if not items:
        say(f"Nothing is {status}." if after is None else "Nothing more.")
        return 0
    for item in items:
        say(f"{item.id}  version {item.version}  since {item.created_at:%Y-%m-%d}")
        say(f"  claim   {one_line(item.content)}")
        say(f"  reason  {one_line(item.reason)}")
    if len(items) == limit:
        say(f"There may be more: --after {cursor_of(items[-1], order)}")
    return 0


def _query_of(desk: ReviewSession, view: str) -> Query:
    known = {each.name: each.query for each in views.listing(desk.store, desk.principal)}
    if view not in known:
        raise Failure(f"there is no view {view!r}; vouchgate review views shows yours")
    return parse(known[view], datetime.now(UTC))


def show(settings: Settings, item_id: str, *, as_json: bool) -> int:
    """One item with why it waits, and the version that an act on it must name."""
    with open_review_session(settings) as desk:
        item = get_item(desk, item_id)
        decision = desk.queue.decision_of(item)
        lines = _item_lines(item, decision) + _now(desk, item)
    if as_json:
        document = None if decision is None else decision.model_dump(mode="json")
        write_json({"item": item.model_dump(mode="json"), "decision": document})
        return 0
    say("\n".join(lines))
    return 0


def _now(desk: ReviewSession, item: PendingMemory) -> list[str]:
    """What is true of the item today."""
    now, lines = datetime.now(UTC), []
    if item.status is ReviewStatus.PENDING:
        lines.append(f"order     {'; '.join(explain(item, desk.policy.queue.head_start_days, now))}")
    rejection = desk.queue.rejected_before(item)
    if rejection is not None:
        lines.append(
            f"before    rejected {rejection.rejected_at:%Y-%m-%d %H:%M}Z as {rejection.queue_id}: "
            f"{one_line(rejection.reason)}"
        )
    next_check = desk.queue.next_check(item)
    if next_check is not None:
        lines.append(f"checked   again by itself at {next_check:%Y-%m-%d %H:%M:%S}Z")
    until = desk.queue.undo_until(item)
    if until is not None and until > now:
        lines.append(f"undo      can be taken back until {until:%Y-%m-%d %H:%M}Z")
    return lines


def _item_lines(item: PendingMemory, decision: ValidationResult | None) -> list[str]:
    lines = [
        f"id        {item.id}",
        f"version   {item.version}",
        f"status    {item.status}",
        f"claim     {one_line(item.content)}",
        f"type      {item.memory_type}, from {item.source}",
        f"reason    {one_line(item.reason)}",
    ]
    lines += [
        f"          {finding.verdict} {one_line(finding.message)}"
        for finding in (() if decision is None else decision.findings)
        if finding.verdict is not Verdict.PASS
    ]
    if item.conflicting_memory_id is not None:
        lines.append(f"conflict  {item.conflicting_memory_id}; to approve, {CONFLICT_HELP}")
        lines += [f"          stored: {one_line(text)}" for text in _conflicting_texts(item, decision)]
    lines += [f"similar   {line}" for line in _similar(decision)]
    lines += [
        f"found     {found.citation} ({found.stance}): {one_line(found.quotation)}"
        for found in (() if decision is None else decision.suggested)
    ]
    lines += [
        f"looked    {look.path}, for {one_line(look.query)}: {one_line(look.failure) or look.found}"
        for look in (() if decision is None else decision.looked)
    ]
    repeated = f", {item.seen} times by now" if item.seen > 1 else ""
    lines.append(f"sent      {item.created_at:%Y-%m-%d %H:%M}Z by {item.submitted_by}{repeated}")
    lines.append(f"expires   {item.expires_at:%Y-%m-%d %H:%M}Z")
    if item.question is not None:
        state = "answered" if item.sent_back_at is None else "not answered yet"
        lines.append(f"asked     {one_line(item.question)} ({state})")
    if item.snoozed_until is not None:
        lines.append(f"snoozed   until {item.snoozed_until:%Y-%m-%d %H:%M}Z")
    if item.assigned_to is not None:
        lines.append(f"assigned  to {item.assigned_to}")
    if item.viewer is not None and item.viewing_until is not None:
        lines.append(f"looked at by {item.viewer} until {item.viewing_until:%H:%M}Z")
    if item.decided_at is not None:
        lines.append(f"decided   {item.decided_at:%Y-%m-%d %H:%M}Z by {item.decided_by}")
    if item.note:
        lines.append(f"note      {one_line(item.note)}")
    if item.memory_id is not None:
        lines.append(f"memory    {item.memory_id}")
    return lines


def _conflicting_texts(item: PendingMemory, decision: ValidationResult | None) -> list[str]:
    facts = None if decision is None else decision.evidence.dedup
    items = facts.items if facts is not None and facts.kind == "neighbours" else ()
    return [neighbour.content for neighbour in items if neighbour.id == item.conflicting_memory_id]


def _similar(decision: ValidationResult | None) -> list[str]:
    """What the owner had stored that is near the claim, nearest first."""
    if decision is None or decision.similar is None:
        return ["not known"]
    return [
        f"{round(near.similarity * 10_000) // 100} % {near.memory_id}: {one_line(near.content)}"
        for near in decision.similar
    ] or ["nothing found"]


def get_item(desk: ReviewSession, item_id: str) -> PendingMemory:
    item = desk.queue.get_by_id(desk.principal, item_id)
    if item is None:
        raise _no_such(item_id)
    return item


def _no_such(item_id: str) -> Failure:
    return Failure(f"there is no item {item_id!r} in your queue; vouchgate review list shows what waits")


def approve(desk: ReviewSession, item: PendingMemory, *, note: str | None, supersede: bool | None) -> str:
    """Stores an item's claim, in the version that it is given in; what was done. Raises Failure when it is not."""
    answer = desk.queue.approve(
        desk.principal,
        item.id,
        version=item.version,
        note=note,
        supersede=supersede,
        now=datetime.now(UTC),
    )
    match answer:
        case Approved():
            replaced = "" if answer.superseded is None else f" It replaces {answer.superseded}."
            return f"Approved: stored as {answer.memory.id}.{replaced}"
        case Removed():
            gone = "it was never stored here" if answer.memory is None else f"{answer.memory.id} is retracted"
            return f"Approved: the removal is passed on; {gone}."
        case Voted():
            return f"Approved by {answer.given} of {answer.needed}: {item.id} waits for the others."
        case _:
            raise not_done(item.id, answer)


def reject(desk: ReviewSession, item: PendingMemory, *, reason: str) -> str:
    """Ends an item's wait without a memory; else as `approve`."""
    try:
        answer = desk.queue.reject(
            desk.principal, item.id, version=item.version, reason=reason, now=datetime.now(UTC)
        )
    except ValueError as error:
        raise Failure(str(error)) from error
    match answer:
        case Rejected():
            return f"Rejected: {item.id} will not be stored."
        case Objected():
            version = answer.item.version
            return f"Returned: {item.id} waits on, in version {version}, and approvals are given anew."
        case _:
            raise not_done(item.id, answer)


def undo(settings: Settings, item_id: str, *, version: int | None) -> int:
    """Takes an approval or a rejection back; the item waits again. Raises Failure when it is not done."""
    with open_review_session(settings) as desk:
        seen = get_item(desk, item_id).version if version is None else version
        answer = desk.queue.undo(
            desk.principal,
            item_id,
            version=seen,
            now=datetime.now(UTC),
            embeddings=_embedded(desk, item_id),
        )
    match answer:
        case Undone():
            gone = "" if answer.retracted is None else f" {answer.retracted} is retracted."
            back = "" if answer.restored is None else f" {answer.restored} is in force again."
            say(f"Taken back: {item_id} waits again, in version {answer.item.version}.{gone}{back}")
            return 0
        case _:
            raise not_done(item_id, answer)


def list_publishers(settings: Settings, *, as_json: bool) -> int:
    """What the reviewer says of publishers now."""
    with open_review_session(settings) as desk:
        found = publishers.listing(desk.store, desk.principal, datetime.now(UTC))
    for said in found:
        if as_json:
            write_json(said.model_dump(mode="json"))
        else:
            say(
                f"{said.publisher} is {said.trust} until {said.until:%Y-%m-%d}, for {one_line(said.owner_id)}"
            )
    if not found and not as_json:
        say("You trust or ban no publisher.")
    return 0


def decide_publisher(
    settings: Settings, name: str, *, trust: Trust | None, days: int, owner: str | None
) -> int:
    """Trusts or bans a publisher, or with None takes that back. Raises Failure when it is not done."""
    try:
        publisher = parse_publisher(name)
    except ValueError as error:
        raise Failure(str(error), USAGE) from error
    now = datetime.now(UTC)
    with open_review_session(settings) as desk:
        own = desk.one_owner(owner)
        if trust is None:
            if not publishers.clear(desk.store, desk.principal, own, publisher, now):
                raise Failure(f"nothing is said of {publisher}")
            say(f"Taken back: {publisher} counts as for everybody.")
            return 0
        decide = partial(publishers.decide, desk.store, desk.principal, own, publisher, trust)
        said = decide(days=days, policy=desk.policy, now=now)
    if isinstance(said, ApprovalRefused):
        raise Failure(said.message)
    if isinstance(said, TooManyPublishers):
        raise Failure(f"you say something of {MOST} publishers already; take one back first")
    say(f"{publisher} is {trust} until {said.until:%Y-%m-%d}.")
    return 0


def _embedded(desk: ReviewSession, item_id: str) -> dict[str, Embedding]:
    """The vectors of what would be back, where the policy asks for vectors."""
    texts = desk.queue.to_embed(desk.principal, item_id)
    if not texts:
        return {}
    from vouchgate.embedding.paraphraser import load_embedder  # noqa: PLC0415  (of the extra: nothing else may need it)

    embedder = load_embedder(desk.policy)
    return {name: embedder.embed(text) for name, text in texts.items()}


def not_done(
    item_id: str, answer: NotFound | ItemChanged | AlreadyDecided | ApprovalRefused | NotUndoable
) -> Failure:
    match answer:
        case ApprovalRefused():
            more = f"; {CONFLICT_HELP}" if answer.code == "conflict_unresolved" else ""
            return Failure(f"not approved ({answer.code}): {answer.message.rstrip('.')}{more}")
        case NotUndoable():
            return Failure(f"not taken back ({answer.code}): {answer.message.rstrip('.')}")
        case NotFound():
            return _no_such(item_id)
        case ItemChanged():
            return Failure(
                f"the item has changed: it is in version {answer.current.version} now; "
                f"look at it again with vouchgate review show {item_id}"
            )
        case AlreadyDecided():
            return Failure(f"the item does not wait any more: it is {answer.current.status}")
