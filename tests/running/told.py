"""What callers were told, held against what a database has: everything answered is there once, word for word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.acceptance.site import without_promises
from tests.running.invariants import Kept
from tests.running.load import Ledger, Reply, Sent
from vouchgate.ingest.claims.decision import Outcome
from vouchgate.ingest.claims.source import Found
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.data.policy_file import load_policy

STATUS = {"stored": {201}, "queued": {202}, "blocked": {409, 422}}


def untrue(ledger: Ledger, kept: Kept) -> Iterator[str]:
    """One sentence for each thing that somebody was told and that is not so. A claim for which there was no room (429)
    is none of them, nor is what was erased since."""
    yield from ledger.failures
    stored_for: dict[str, str] = {}
    for sent, reply in ledger.answered:
        if reply.status == 429:
            continue
        rows = reply.json["results"] if sent.batch else [reply.json]
        if len(rows) != len(sent.rows):
            yield f"{len(sent.rows)} claims were answered by {len(rows)} verdicts"
        for asked, row in zip(sent.rows, rows, strict=False):
            if "outcome" not in row:
                if row.get("status") != 429:
                    yield f"a claim was answered {row}"
                continue
            if row["decision_id"] in kept.gone:
                continue
            yield from _row(asked, row, kept)
            memory_id, name = row["memory_id"], row["decision_id"]
            if memory_id is not None and stored_for.setdefault(memory_id, name) != name:
                yield f"{memory_id} was stored for two decisions"
        yield from _words(sent, reply, rows, kept)
    yield from _rulings(ledger, kept)
    if len({memory.decision_id for memory in kept.memories.values()}) != len(kept.memories):
        yield "one decision stored two memories"


def _words(sent: Sent, reply: Reply, rows: list[Any], kept: Kept) -> Iterator[str]:
    if not sent.batch and reply.status not in STATUS[rows[0]["outcome"]]:
        yield f"{rows[0]['decision_id']} was answered {reply.status} {rows[0]['outcome']}"
    decided = [row.get("decision_id") for row in rows]
    if None in decided or kept.gone.intersection(decided) or '"private":true' in reply.body:
        return  # a row that had no room, one that nobody reads any more, or one of which agents are shown a part
    texts = [kept.decisions[one].answer if one in kept.decisions else "" for one in decided]
    if without_promises(reply.body) != (f'{{"results":[{",".join(texts)}]}}' if sent.batch else texts[0]):
        yield f"{', '.join(decided)}: the answer is not in the database word for word"


def _row(asked: dict[str, Any], row: dict[str, Any], kept: Kept) -> Iterator[str]:
    """One verdict and what it says became of the claim."""
    claim, name = row["evidence"]["claim"], row["decision_id"]
    if (claim["content"], claim["owner_id"]) != (asked["content"], asked["user_id"]):
        yield f"{name} is about another claim than the one that was sent"
    where: dict[str, Any]
    match row["outcome"]:
        case "stored":
            where, item = kept.memories, row["memory_id"]
        case "queued":
            where, item = kept.pending, row["queue_id"]
        case "blocked" if row["rule"] == "duplicate":
            where, item = kept.memories, row["conflicting_memory_id"]
        case _:
            return
    if item in kept.gone:
        return
    if item not in where:
        yield f"{name} was answered {row['outcome']}, and {item} is not there"
    elif where[item].content != asked["content"]:
        yield f"{name} was answered {row['outcome']}, and {item} has another text"


def _rulings(ledger: Ledger, kept: Kept) -> Iterator[str]:
    approved: set[str] = set()
    for item_id, act, reply in ledger.ruled:
        if reply.status == 503 or item_id in kept.gone:
            continue
        if reply.status == 409 and reply.json["code"] == "already_decided":
            continue  # an earlier act whose answer was lost
        item = kept.pending.get(item_id)
        if reply.status != 200 or item is None:
            yield f"{item_id}: {act} was answered {reply.status} {reply.body[:200]}"
        elif act == "reject":
            if item.status != ReviewStatus.REJECTED:
                yield f"{item_id} was rejected, and is {item.status}"
        else:
            memory = reply.json["memory"]
            found = kept.memories.get(memory["id"])
            if (item.status, item.memory_id) != (ReviewStatus.APPROVED, memory["id"]) or found is None:
                yield f"{item_id} was approved as {memory['id']}, and is {item.status} as {item.memory_id}"
            elif memory["id"] not in kept.gone and not found.content == memory["content"] == item.content:
                yield f"{item_id} was approved with another text than {memory['id']} has"
            if item_id in approved:
                yield f"{item_id} was approved twice"
            approved.add(item_id)


def kept_though_refused(ledger: Ledger, kept: Kept) -> Iterator[str]:
    """Where the answer said that nothing was kept, nothing was: for claims that were sent only once."""
    everything = [*(sent for sent, _ in ledger.answered + ledger.refused), *ledger.lost]
    times = Counter(row["content"] for sent in everything for row in sent.rows)
    decided = {answer.evidence.claim.content for answer in kept.answers.values()}
    for sent, reply in ledger.refused:
        content = sent.rows[0]["content"]
        kept_though = sent.key is None and times[content] == 1 and content in decided
        if kept_though and "may have been kept" not in reply.json["detail"]:
            yield f"it was said that nothing was kept of: {content}"


def unvouched(kept: Kept) -> Iterator[str]:
    """What was stored at once although nothing vouches for it, by the evidence of its decision: neither a granted
    source that is trusted, nor a source that was read and is the one that it names."""
    trusted = load_policy().trusted_sources
    for name, answer in kept.answers.items():
        evidence = answer.evidence
        read = {source.source_id for source in evidence.sources if isinstance(source, Found)}
        if answer.outcome is Outcome.STORED and not (
            evidence.claim.source in trusted
            or (evidence.source_id is not None and evidence.source_id in read)
        ):
            yield f"{name} was stored by {answer.rule}, and nothing vouches for it"
    for memory_id, memory in kept.memories.items():
        decided = kept.answers.get(memory.decision_id)
        if decided is None or memory_id in kept.gone or memory.approved_by is not None:
            continue
        if decided.outcome is not Outcome.STORED:
            yield f"{memory_id} was {decided.outcome}, nobody approved it, and it is stored"
