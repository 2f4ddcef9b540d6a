"""Decisions, and the memories that came of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Row, Table, select

from vouchgate.ingest.claims.decision import Confidence, Label
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.rules import CHANGE_REASON, NUMBERS, Rule
from vouchgate.ingest.scoring.score import confidence_of
from vouchgate.ingest.transparency.verifier import DECIDED
from vouchgate.storage.claims import lineage
from vouchgate.storage.log import chain
from vouchgate.storage.log.data.differences import (
    DECISION,
    MEMORY,
    PENDING,
    Entry,
    Kind,
    Look,
    batched,
    parsed,
    plain,
    time_of,
)
from vouchgate.storage.log.data.erased import is_left
from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import StandingRulingActRow
from vouchgate.storage.tables.doors import DeliveryRow

ACT: Table = StandingRulingActRow.metadata.tables["standing_ruling_act"]
LINEAGE = lineage.TABLE
DELIVERY: Table = DeliveryRow.metadata.tables["delivery"]
_DECIDED = (*map(Action, sorted(DECIDED)), Action.MEMORY_ERASED)
_OF_MEMORY = (
    Action.MEMORY_SUPERSEDED,
    Action.MEMORY_RETRACTED,
    Action.MEMORY_EXPIRED,
    Action.MEMORY_RESTORED,
    Action.MEMORY_STALE,
    Action.MEMORY_FRESH,
    Action.MEMORY_CONFIRMED,
    Action.MEMORY_RELABELLED,
)


_NUMBERS = {rule.value: number for rule, number in NUMBERS.items()}


def number_of(answer: Any) -> int | None:
    """The number of the rule that decided; None for a rule that only a newer service knows."""
    rule = answer["rule"]
    if isinstance(rule, str):
        return _NUMBERS.get(rule)
    changes = rule == NUMBERS[Rule.REMOVAL] and answer["reason"] == CHANGE_REASON
    return NUMBERS[Rule.PLACE_CHANGE] if changes else int(rule)


def decisions(look: Look) -> None:
    """Every decision is as it was given, and what it made is there."""
    wanted = plain(DECISION).where(DECISION.c.owner_id == look.owner_id)
    rests = _Lineage(look)
    for batch in batched(look.side_by_side(wanted, DECISION.c.id, _DECIDED)):
        made: dict[Table, dict[str, tuple[str, Entry]]] = {MEMORY: {}, PENDING: {}, ACT: {}}
        for key, rows, entries in batch:
            if key.startswith(("ers_", "ruling_")):
                continue
            if key not in look.erased:
                rests.compare(key, _decision(look, key, rows, entries, made))
                continue
            rests.compare(key, None)
            for row, entry in zip(rows, entries, strict=False):
                look.compare(
                    "decision", key, row, {"created_at": entry.at, "principal_id": entry.actor}, entry
                )
                look.uncovered["the tier, rule and policy of a decision that was erased"] += 1
        for table, column in ((MEMORY, "id"), (PENDING, "id"), (ACT, "decision_id")):
            there = look.there(table, column, made[table])
            for name, (decision, entry) in made[table].items():
                if name not in there:
                    look.note(Kind.MISSING, table.name, name, entry=entry, why=f"decision {decision} made it")
    rests.compare(None, None)


class _Lineage:
    """What each decision rests on, read in the order of the decisions."""

    def __init__(self, look: Look) -> None:
        self._look = look
        order = (look.ordered(LINEAGE.c.decision_id), LINEAGE.c.name)
        wanted = select(LINEAGE).where(LINEAGE.c.owner_id == look.owner_id).order_by(*order)
        self._rows = groupby(look.rows(wanted), attrgetter("decision_id"))
        self._next = next(self._rows, None)

    def compare(self, key: str | None, answer: Any) -> None:
        """Holds the rows up to this decision's (None: all that are left) against its answer, None of one that is gone
        or altered."""
        while self._next is not None and (key is None or self._next[0] <= key):
            name, rows = self._next
            there = {row.name: (row.harvested, row.others) for row in rows}
            self._next = next(self._rows, None)
            if name == key:
                return self._differ(name, answer, there)
            self._differ(name, None, there)
        return None if key is None else self._differ(key, answer, {})

    def _differ(self, decision: str, answer: Any, there: dict[str, tuple[bool, int]]) -> None:
        if answer is None and decision in self._look.unusable:
            return
        made = [] if answer is None else lineage.rows_of_stored(answer)
        expected = {row["name"]: (row["harvested"], row["others"]) for row in made}
        for name in sorted(expected.keys() | there.keys()):
            if expected.get(name) != there.get(name):
                kind = Kind.MISSING if name not in there else Kind.ALTERED if name in expected else Kind.EXTRA
                self._look.note(kind, LINEAGE.name, f"{decision} {name}")


def _decision(
    look: Look,
    key: str,
    rows: Sequence[Row[Any]],
    entries: Sequence[Entry],
    made: dict[Table, dict[str, tuple[str, Entry]]],
) -> Any:
    """Notes what is wrong with a decision, and what it `made`; its answer, None of one that is gone or altered."""
    if not rows:
        look.unusable.add(key)
        look.note(Kind.MISSING, "decision", key, entry=entries[0])
        return None
    if not entries:
        look.note(Kind.EXTRA, "decision", key)
        return None
    row, entry = rows[0], entries[0]
    last = entries[-1]
    shown = last.action == Action.MEMORY_ERASED
    if not (is_left(last, key, row.answer) if shown else entry.holds(chain.Document(row.answer.encode()))):
        look.unusable.add(key)
        look.note(Kind.ALTERED, "decision", key, "answer", entry)
        return None
    answer = parsed(row.answer)
    expected = {
        "created_at": entry.at,
        "principal_id": entry.actor,
        "tier": answer["tier"],
        "policy_digest": answer["policy_digest"],
    }
    if (number := number_of(answer)) is not None:
        expected["rule"] = number
    look.compare("decision", key, row, expected, entry)
    if (digest := answer["policy_digest"]) not in look.policies and digest not in look.without:
        look.without.add(digest)
        look.note(
            Kind.MISSING, "policy", digest, entry=entry, why=f"decision {key} rests on it, the first of all"
        )
    action, item_id = entry.action, answer["queue_id"]
    if action in (Action.CLAIM_STORED, Action.CLAIM_LET_THROUGH, Action.CLAIM_PROMOTED):
        made[MEMORY][answer["memory_id"]] = key, entry
    elif action in (Action.CLAIM_QUEUED, Action.CLAIM_REPEATED):
        made[PENDING][item_id] = key, entry
    if action == Action.CLAIM_PROMOTED:
        look.promoted[key] = entry
    elif action == Action.REVIEW_EDITED:
        look.edited.add(key)
    elif action == Action.CLAIM_RECHECKED:
        look.redecided.setdefault(item_id, []).append((entry.seq, key))
    ruled = answer["rule"] in (Rule.STANDING_RULING, NUMBERS[Rule.STANDING_RULING])
    if (
        ruled
        and action in (Action.CLAIM_STORED, Action.CLAIM_BLOCKED)
        and answer["evidence"].get("standing_ruling")
    ):
        made[ACT][key] = key, entry
    return answer


def memories(look: Look) -> None:
    """Every memory is what its decision and the acts on it since make of it."""
    wanted = select(MEMORY).where(MEMORY.c.owner_id == look.owner_id)
    became = select(
        PENDING.c.memory_id, PENDING.c.decision_id, PENDING.c.decided_at, PENDING.c.decided_by
    ).where(
        PENDING.c.owner_id == look.owner_id,
        among(PENDING.c.memory_id, "wanted"),
        PENDING.c.removal_of.is_(None),
    )
    for batch in batched(look.side_by_side(wanted, MEMORY.c.id, _OF_MEMORY)):
        rows = [row for _, found, _ in batch for row in found]
        answers = look.answers({row.decision_id for row in rows})
        items = {}
        by_others = [
            row for row in rows if row.id[4:] != row.decision_id[4:] or row.decision_id in look.edited
        ]
        if approved := [row.id for row in by_others]:
            items = {item.memory_id: item for item in look.connection.execute(became, {"wanted": approved})}
        placed: dict[str, Any] = {}
        for key, found, entries in batch:
            if key in look.erased:
                continue
            if not found:
                look.note(Kind.MISSING, "memory", key, entry=entries[0])
                continue
            if found[0].decision_id in look.unusable:
                continue
            row, made = found[0], answers.get(found[0].decision_id)
            if made is None:
                look.note(Kind.EXTRA, "memory", key, "decision_id", why="there is no such decision")
                continue
            if row.decision_id in look.erased:
                why = "its decision was erased, and it was not: erase it, too"
                look.note(Kind.EXTRA, "memory", key, why=why)
                continue
            _born(look, row, made, items.get(key), entries)
            _state(look, row, entries)
            _promises(look, row, entries)
            if delivery := made[1]["evidence"]["claim"].get("delivery"):
                placed[key] = delivery
        for missing in placed.keys() - look.there(DELIVERY, "memory_id", placed):
            look.note(Kind.MISSING, "delivery", missing, why="the memory's claim names a place")


def _born(look: Look, row: Row[Any], made: tuple[Any, Any], item: Any, entries: Sequence[Entry]) -> None:
    """What its decision says, and whoever approved it."""
    key, decision, answer, evidence = row.id, made[0], made[1], made[1]["evidence"]
    claim, edited = evidence["claim"], row.decision_id in look.edited
    by_itself = answer["memory_id"] == key and not edited
    taken_back = any(entry.action == Action.MEMORY_RETRACTED for entry in entries)
    if not by_itself and item is None and not taken_back:
        return look.note(Kind.EXTRA, "memory", key, why="neither its decision nor an item became it")
    label, confidence, born = evidence["label"], evidence["confidence"], dict[str, Any]()
    if by_itself and not answer["approved"] and answer.get("held") is False:
        label, confidence = Label.UNVOUCHED.value, Confidence.LOW.value
    if by_itself:
        born = {"created_at": decision.created_at, "approved_by": None}
    else:
        confidence = confidence_of(Label(evidence["label"]), evidence["confidence_score"], vouched=True).value
        if item is not None:
            born = {"created_at": item.decided_at, "approved_by": item.decided_by}
            if row.decision_id != item.decision_id and not (edited and row.decision_id[4:] == key[4:]):
                look.note(Kind.ALTERED, "memory", key, "decision_id")
        elif edited:
            born = {"created_at": decision.created_at, "approved_by": decision.principal_id}
        else:
            look.uncovered["who had approved a memory whose approval was taken back"] += 1
    expected: dict[str, Any] = {
        "memory_type": claim["memory_type"],
        "content": claim["content"],
        "source": claim["source"],
        "confidence_score": evidence["confidence_score"],
        "source_id": evidence["source_id"],
        "validity_horizon": time_of(evidence["validity_horizon"]),
        "details": evidence["metadata"],
        **born,
    }
    if all(entry.action != Action.MEMORY_RELABELLED for entry in entries):
        expected |= {
            "label": label,
            "confidence": confidence,
            "lowered_at": None,
            "lowered_reason": None,
        }
    look.compare("memory", key, row, expected)
    return None


def _state(look: Look, row: Row[Any], entries: Sequence[Entry]) -> None:
    """What became of it since."""
    key = row.id
    last: dict[str, Entry] = {}
    status, since, confirmed = "active", None, None
    by: Entry | None = None
    for entry in entries:
        last[entry.action] = entry
        match entry.action:
            case Action.MEMORY_SUPERSEDED:
                status, by = "superseded", entry
            case Action.MEMORY_RESTORED:
                status, by = "active", entry
            case Action.MEMORY_RETRACTED:
                status, by = "retracted", entry
            case Action.MEMORY_EXPIRED:
                status, by = "expired", entry
            case Action.MEMORY_STALE:
                since = since or entry.at
            case Action.MEMORY_FRESH | Action.MEMORY_CONFIRMED:
                since, confirmed = None, entry
    look.compare("memory", key, row, {"status": status}, by)
    look.compare("memory", key, row, {"stale_since": since}, last.get(Action.MEMORY_STALE))
    stale = last.get(Action.MEMORY_STALE) if since is not None else None
    held: list[tuple[str, Entry | None, dict[str, str | None]]] = [
        ("superseded_by", by if status == "superseded" else None, {"superseded_by": row.superseded_by}),
        ("retracted_reason", last.get(Action.MEMORY_RETRACTED), {"note": row.retracted_reason}),
        ("stale_reason", stale, {"note": row.stale_reason}),
        ("confirmed_despite", last.get(Action.MEMORY_CONFIRMED), {"despite": row.confirmed_despite or ""}),
    ]
    for column, rests_on, about in held:
        if rests_on is None:
            look.compare("memory", key, row, {column: None})
        elif not rests_on.commits_to(memory=key, **about):
            look.note(Kind.ALTERED, "memory", key, column, rests_on)
    if confirmed is not None and (row.confirmed_at is None or row.confirmed_at < confirmed.at):
        look.note(Kind.ALTERED, "memory", key, "confirmed_at", confirmed)


def _promises(look: Look, row: Row[Any], entries: Sequence[Entry]) -> None:
    """What it promises, where that was lowered since."""
    lowered = next((e for e in reversed(entries) if e.action == Action.MEMORY_RELABELLED), None)
    if lowered is not None:
        look.compare("memory", row.id, row, {"lowered_at": lowered.at}, lowered)
        about = {"label": row.label, "confidence": row.confidence, "note": row.lowered_reason}
        if not lowered.commits_to(memory=row.id, **about):
            look.note(Kind.ALTERED, "memory", row.id, "label, confidence or lowered_reason", lowered)
