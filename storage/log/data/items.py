"""What waits or waited for its owner, what was done about it, and the votes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import lru_cache
from itertools import combinations, islice
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Row, Table, select

from vouchgate.ingest.claims.log import Action
from vouchgate.storage.log.data.claims import number_of
from vouchgate.storage.log.data.differences import (
    MEMORY,
    PENDING,
    Entry,
    Kind,
    Look,
    batched,
    plain,
    spellings,
    time_of,
)
from vouchgate.storage.queue.proposers import persons_of
from vouchgate.storage.sql import among
from vouchgate.storage.tables.people import VoteRow

VOTE: Table = VoteRow.metadata.tables["vote"]
MOST_RULINGS = 20_000  # ways to count the votes of an item that are tried: each of 8 votes, two less of 12
MOST_TOGETHER = 20_000  # items that were let go together, up to which a number that is in no row is tried
_ENDED = {
    Action.REVIEW_APPROVED: "approved",
    Action.REVIEW_REJECTED: "rejected",
    Action.REVIEW_LET_GO: "let_go",
    Action.REVIEW_EXPIRED: "expired",
}
_VOTES = (Action.REVIEW_VOTED, Action.REVIEW_OBJECTED, Action.REVIEW_VOTE_WITHDRAWN)
_OF_ITEM = (
    *_ENDED,
    *_VOTES,
    Action.REVIEW_UNDONE,
    Action.REVIEW_SNOOZED,
    Action.REVIEW_ASSIGNED,
    Action.REVIEW_SENT_BACK,
    Action.REVIEW_RESUMED,
    Action.CLAIM_ANSWERED,
)


def items(look: Look) -> None:
    """Every item is what its decisions and the acts on it make of it."""
    wanted = plain(PENDING).where(PENDING.c.owner_id == look.owner_id)
    cast = select(VOTE).where(VOTE.c.owner_id == look.owner_id, among(VOTE.c.item_id, "wanted"))
    cast = cast.order_by(VOTE.c.version, VOTE.c.at, VOTE.c.person_id)
    texts = select(MEMORY.c.id, MEMORY.c.content).where(
        MEMORY.c.owner_id == look.owner_id, among(MEMORY.c.id, "wanted")
    )
    promoted = dict(look.promoted)
    for batch in batched(look.side_by_side(wanted, PENDING.c.id, _OF_ITEM)):
        rows = [row for _, found, _ in batch for row in found]
        decisions = {row.decision_id for row in rows} | {f"dec_{row.id[4:]}" for row in rows}
        answers = look.answers(decisions)
        became = [row.memory_id for row in rows if row.memory_id is not None]
        contents = {m.id: m.content for m in look.connection.execute(texts, {"wanted": became})}
        votes: dict[str, list[Row[Any]]] = {}
        for vote in look.connection.execute(cast, {"wanted": [key for key, _, _ in batch]}):
            votes.setdefault(vote.item_id, []).append(vote)
        for key, found, entries in batch:
            if key in look.erased:
                continue
            if not found:
                look.note(Kind.MISSING, "pending", key, entry=entries[0])
                continue
            row, first = found[0], answers.get(f"dec_{key[4:]}")
            if not look.unusable.isdisjoint((row.decision_id, f"dec_{key[4:]}")):
                continue
            if first is None or first[1] is None or first[1]["queue_id"] != key:
                look.note(Kind.EXTRA, "pending", key, why="no decision queued it")
                continue
            if row.decision_id in promoted:
                promoted.pop(row.decision_id)
            _says(look, row, first, answers.get(row.decision_id))
            _acts(look, row, entries, contents.get(row.memory_id), votes.get(key, []))
            _votes(look, key, entries, votes.get(key, []))
    for decision, entry in promoted.items():
        look.note(Kind.ALTERED, "pending", decision, "decision_id", entry, why="no item became it")


def _says(look: Look, row: Row[Any], first: tuple[Any, Any], now: tuple[Any, Any] | None) -> None:
    """What its decisions say: the one that queued it, and the one under which it waits."""
    key, (queued, then) = row.id, first
    again = look.redecided.get(key, ())
    current = max(again)[1] if again else queued.id
    promoted = row.decision_id in look.promoted
    if now is None or now[1] is None or (row.decision_id != current and not promoted):
        return look.note(Kind.ALTERED, "pending", key, "decision_id")
    answer = now[1]
    claim, conflicting = answer["evidence"]["claim"], answer["conflicting_memory_id"]
    delivery = claim.get("delivery")
    removes = delivery is not None and delivery.get("op") == "remove"
    expected = {
        "memory_type": claim["memory_type"],
        "content": claim["content"],
        "source": claim["source"],
        "validity_horizon": time_of(claim["validity_horizon"]),
        "details": claim["metadata"],
        "removal_of": f"{delivery['sink']} {delivery['place']}" if removes else None,
        "created_at": queued.created_at,
    }
    if not promoted:
        expected |= {"conflicting_memory_id": conflicting}
        if (number := number_of(answer)) is not None:
            expected["rule"] = number
    if (policy := look.policies.get(then["policy_digest"])) is not None:
        expected["expires_at"] = queued.created_at + timedelta(days=_expire_days(policy))
    waits_again = time_of(then["evidence"]["capture_time"]) != queued.created_at
    if waits_again:
        look.uncovered["who sent, and why waits, what a standing ruling had decided"] += 1
    else:
        expected["submitted_by"] = queued.principal_id
        if not promoted and row.reason != answer["reason"]:
            if again and row.reason.startswith(answer["reason"].removesuffix(".")):
                look.uncovered["what a re-check found besides, in the reason of an item"] += 1
            elif number_of(then) == number_of(answer) and _may_be_explained(answer):
                look.uncovered["the reason of an item whose source was tried again"] += 1
            else:
                expected["reason"] = answer["reason"]
    look.compare("pending", key, row, expected)
    return None


@lru_cache
def _expire_days(policy: str) -> float:
    """What a policy's document says of the queue; it is long, and the same for most items."""
    days: float = from_json(policy)["queue"]["expire_days"]
    return days


def _may_be_explained(answer: Any) -> bool:
    """Whether the service may have said in other words why it waits on: a source was tried again, in vain."""
    return any(finding["verdict"] == "UNKNOWN" for finding in answer["findings"])


def _folded(entries: Sequence[Entry]) -> tuple[Entry | None, int, dict[str, Entry | None]]:
    """What ended its wait, how often it changed since it was queued, and what was said of it that still stands."""
    end, changes = None, 0
    away: dict[str, Entry | None] = {"snoozed_until": None, "sent_back_at": None}
    said: dict[str, Entry | None] = {**away, "assigned_to": None, "question": None}
    for entry in entries:
        match entry.action:
            case Action.REVIEW_UNDONE:
                end, changes = None, changes + 1
                said |= away
            case Action.REVIEW_SNOOZED:
                said["snoozed_until"] = entry
            case Action.REVIEW_ASSIGNED:
                said["assigned_to"] = entry
            case Action.REVIEW_SENT_BACK:
                said |= {"question": entry, "sent_back_at": entry}
            case Action.REVIEW_RESUMED | Action.CLAIM_ANSWERED:
                said |= away
            case Action.REVIEW_OBJECTED:
                changes += 1
            case action if action in _ENDED:
                end, changes = entry, changes + 1
    return end, changes, said


def _acts(
    look: Look, row: Row[Any], entries: Sequence[Entry], content: str | None, votes: Sequence[Row[Any]]
) -> None:
    """What was done about it: how it ended, if it did, and what stands while it waits."""
    key, (end, changes, said) = row.id, _folded(entries)
    version = 1 + len(look.redecided.get(key, ())) + changes
    promoted = look.promoted.get(row.decision_id)
    if promoted is not None:
        end, version = promoted, version + 1
    status = "pending" if end is None else "promoted" if promoted else _ENDED[Action(end.action)]
    ended = {"decided_at": end and end.at, "decided_by": end and end.actor}
    look.compare("pending", key, row, {"status": status, "version": version, **ended}, end)
    if row.status == status:
        _ruling(look, row, end, content, [v for v in votes if v.version == version - 1])
    holds: dict[str, Callable[[Entry], bool]] = {
        "snoozed_until": lambda e: any(
            e.commits_to(item=key, until=at) for at in spellings(row.snoozed_until)
        ),
        "assigned_to": lambda e: e.commits_to(item=key, to=row.assigned_to),
        "question": lambda e: e.commits_to(item=key, question=row.question),
        "sent_back_at": lambda e: bool(e.at == row.sent_back_at),
    }
    for column, rests_on in said.items():
        if rests_on is None:
            look.compare("pending", key, row, {column: None})
        elif not holds[column](rests_on):
            look.note(Kind.ALTERED, "pending", key, column, rests_on)


def _ruling(
    look: Look, row: Row[Any], end: Entry | None, content: str | None, votes: Sequence[Row[Any]]
) -> None:
    """The note, and what was approved: the words, and the votes they rest on."""
    key, note = row.id, row.note
    if end is None or row.status in ("promoted", "expired"):
        nothing = {"note": None} | ({"memory_id": None} if row.status != "promoted" else {})
        return look.compare("pending", key, row, nothing, end)
    if row.status == "approved":
        about = {"content": content} if row.removal_of is None else {"memory": row.memory_id}
        if row.removal_of is None and content is None:
            return look.note(
                Kind.MISSING, "memory", str(row.memory_id), entry=end, why=f"item {key} became it"
            )
        given = [vote for vote in votes if vote.verdict == "approve"]
        if not any(end.commits_to(item=key, note=note, **about, **each) for each in ({}, *_counted(given))):
            look.note(
                Kind.ALTERED, "pending", key, "note, memory_id, the memory's content, or the votes", end
            )
        return None
    look.compare("pending", key, row, {"memory_id": None}, end)
    if row.status == "rejected":
        held = end.commits_to(item=key, note=note)
    else:  # how many went with it is in no row: what it was last time is tried first
        numbers = (look.together, *range(1, MOST_TOGETHER))
        found = next((n for n in numbers if end.commits_to(item=key, note=note, together=str(n))), None)
        held, look.together = found is not None, found or look.together
    if not held:
        look.note(Kind.ALTERED, "pending", key, "note", end)
    return None


def _counted(given: Sequence[Row[Any]]) -> Iterator[dict[str, str]]:
    """What an entry may say of the approvals that it rests on, the likeliest first: some may not have counted, as of
    who might not rule any more. Which did, it commits to; that each was cast is for `_votes` to see."""
    sizes = range(len(given), 1, -1)
    tried = (
        {"votes": f"{size} of {k}: {', '.join(map(_voter, [*(v for v in some if v is not last), last]))}"}
        for size in sizes
        for some in combinations(given, size)
        for last in reversed(some)  # it stands last, also when another was cast in the same moment
        for k in range(2, size + 1)
    )
    return islice(tried, MOST_RULINGS)


def _votes(look: Look, key: str, entries: Sequence[Entry], votes: Sequence[Row[Any]]) -> None:
    """Every vote is as it was cast, and every one that was cast and not taken back is there."""
    cast = [e for e in entries if e.action in (Action.REVIEW_VOTED, Action.REVIEW_OBJECTED)]
    left, unlike = list(cast), []
    for vote in votes:
        entry = next((e for e in left if _is_of(e, vote)), None)
        if entry is None:
            unlike.append(vote)
            continue
        left.remove(entry)
        if entry.form == 1:
            look.uncovered["what a vote says (made before version 2 of its entries)"] += 1
    for vote in unlike:
        name = f"{key} version {vote.version} {vote.person_id}"
        entry = next(
            (e for e in left if e.actor == vote.by), next((e for e in left if e.at == vote.at), None)
        )
        if entry is None:
            look.note(Kind.EXTRA, "vote", name)
        else:
            left.remove(entry)
            look.note(
                Kind.ALTERED,
                "vote",
                name,
                "version, person, verdict, by, at, note, supersede or acts_for",
                entry,
            )
    gone = [e.seq for e in entries if e.action == Action.REVIEW_VOTE_WITHDRAWN]
    person = persons_of(look.connection, {e.actor for e in cast}) if left else {}
    renewals = [e.seq for e in entries if e.action in (Action.REVIEW_OBJECTED, Action.REVIEW_UNDONE)]
    renewals += [seq for seq, _ in look.redecided.get(key, ())]
    for entry in left:
        later = next((seq for seq in gone if seq > entry.seq), None)
        who = person.get(entry.actor, entry.actor)
        until = min((seq for seq in renewals if seq >= entry.seq), default=None)
        if later is not None:
            gone.remove(later)
        elif not any(  # nor has the same person another word on this version
            e.seq > entry.seq and (until is None or e.seq <= until) and person.get(e.actor, e.actor) == who
            for e in cast
        ):
            look.note(Kind.MISSING, "vote", f"{key} by {entry.actor}", entry=entry)


def _is_of(entry: Entry, vote: Row[Any]) -> bool:
    """Whether an entry is about this vote, as `review.vouching.voting` writes it."""
    action = Action.REVIEW_VOTED if vote.verdict == "approve" else Action.REVIEW_OBJECTED
    if (entry.action, entry.actor, entry.at) != (action, vote.by, vote.at):
        return False
    supersede = None if vote.supersede is None else str(vote.supersede)
    about = {
        "item": vote.item_id,
        "version": str(vote.version),
        "person": vote.person_id,
        "verdict": vote.verdict,
    }
    stead = {"acts_for": vote.acts_for} if vote.acts_for else {}
    before = entry.form == 1
    return before or entry.commits_to(2, **about, note=vote.note, supersede=supersede, **stead)


def _voter(vote: Row[Any]) -> str:
    """As `review.vouching.voting.evidence_of` names who voted."""
    return f"{vote.person_id} {vote.by}" + (f" for {vote.acts_for}" if vote.acts_for else "")
