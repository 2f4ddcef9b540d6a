"""What an owner said beside the queue: of publishers, of drawn memories, of claims like one; and records. And how many
items are counted as waiting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Row, Table, func, or_, select

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.standing_rulings import StandingRuling
from vouchgate.ingest.claims.trust import Trust
from vouchgate.ingest.scoring.sampling import NOTHING
from vouchgate.storage import switches
from vouchgate.storage.claims import records
from vouchgate.storage.erasing.apply import STATUS
from vouchgate.storage.log.data.claims import ACT, number_of
from vouchgate.storage.log.data.differences import LOG, MEMORY, PENDING, Entry, Kind, Look, batched, plain
from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import (
    OwnerRow,
    PublisherTrustRow,
    QueueTotalRow,
    SpotCheckRow,
    StandingRulingRow,
)

SWITCH: Table = switches.TABLE
RECORD: Table = records.TABLE
TRUST: Table = PublisherTrustRow.metadata.tables["publisher_trust"]
RULING: Table = StandingRulingRow.metadata.tables["standing_ruling"]
SPOT: Table = SpotCheckRow.metadata.tables["spot_check"]
OWNER: Table = OwnerRow.metadata.tables["owner"]
TOTAL: Table = QueueTotalRow.metadata.tables["queue_total"]
_SPOT = {
    Action.SPOT_CHECK_RIGHT: "right",
    Action.SPOT_CHECK_WRONG: "wrong",
    Action.SPOT_CHECK_CANNOT_TELL: "cannot_tell",
}
_PUBLISHER = {
    Action.PUBLISHER_TRUSTED: Trust.TRUSTED.value,
    Action.PUBLISHER_BANNED: Trust.BANNED.value,
    Action.PUBLISHER_CLEARED: None,
}
MOST_DAYS = 3_700  # that a word on a publisher may last


def salts(look: Look) -> None:
    """The salt is there of every entry that was made with one and is about nothing that was erased, and of no other."""
    salted = LOG.c.content_digest.like("_s:%")
    wrong = or_(salted & LOG.c.salt.is_(None), ~salted & LOG.c.salt.is_not(None))
    for row in look.rows(
        select(LOG.c.seq, LOG.c.subject_id, LOG.c.salt).where(LOG.c.owner_id == look.owner_id, wrong)
    ):
        if row.salt is not None or row.subject_id not in look.unsalted:
            look.note(
                Kind.ALTERED, LOG.name, str(row.seq), "salt", why="its entry cannot be held against rows"
            )


def publishers(look: Look) -> None:
    """What the owner says of publishers. What is over may have been forgotten."""
    wanted = select(TRUST).where(TRUST.c.owner_id == look.owner_id)
    for key, rows, entries in look.side_by_side(wanted, TRUST.c.publisher, _PUBLISHER):
        entry = entries[-1] if entries else None
        if entry is None or entry.action == Action.PUBLISHER_CLEARED:
            if rows:
                look.note(Kind.EXTRA, TRUST.name, key, entry=entry)
            continue
        if not rows:
            _maybe_over(look, key, entry)
            continue
        row, trust = rows[0], _PUBLISHER[Action(entry.action)]
        look.compare(TRUST.name, key, row, {"created_at": entry.at, "decided_by": entry.actor}, entry)
        if row.trust != trust:
            look.note(Kind.ALTERED, TRUST.name, key, "trust", entry)
        elif not entry.commits_to(entry.form, publisher=key, trust=trust, until=row.until.isoformat()):
            look.note(Kind.ALTERED, TRUST.name, key, "until", entry)


def switched(look: Look) -> None:
    """What was put in force, when and by whom, is what the entries of the log say, one by one."""
    entries = {entry.seq: entry for entry in look.entries(switches.KIND_OF)}
    wanted = select(SWITCH).where(SWITCH.c.owner_id == look.owner_id).order_by(SWITCH.c.seq)
    for row in look.rows(wanted):
        entry, key = entries.pop(row.seq, None), str(row.seq)
        if entry is None:
            look.note(Kind.EXTRA, SWITCH.name, key)
            continue
        kind = switches.KIND_OF[Action(entry.action)].value
        expected = {"kind": kind, "subject": entry.subject_id, "at": entry.at, "by": entry.actor}
        look.compare(SWITCH.name, key, row, expected, entry)
        if not entry.commits_to(switches.FORM, **from_json(row.document)):
            look.note(Kind.ALTERED, SWITCH.name, key, "document", entry)
    for entry in entries.values():
        if entry.form == switches.FORM:
            look.note(Kind.MISSING, SWITCH.name, str(entry.seq), entry=entry)
        else:
            look.uncovered["what an owner said of a publisher before that was kept for good"] += 1


def _maybe_over(look: Look, key: str, entry: Entry) -> None:
    """A word that is not there was forgotten with the next one, if its time, some days, was over then."""
    trust, days = _PUBLISHER[Action(entry.action)], range(1, MOST_DAYS)
    untils = (entry.at + timedelta(days=each) for each in days)
    over = next(
        (
            at
            for at in untils
            if entry.commits_to(entry.form, publisher=key, trust=trust, until=at.isoformat())
        ),
        None,
    )
    said = [Action.PUBLISHER_TRUSTED.value, Action.PUBLISHER_BANNED.value]
    later = select(func.count()).where(
        LOG.c.owner_id == look.owner_id, LOG.c.seq > entry.seq, LOG.c.action.in_(said), LOG.c.at >= over
    )
    if over is None or not look.connection.scalar(later):
        look.note(Kind.MISSING, TRUST.name, key, entry=entry)


def spot_checks(look: Look) -> None:
    """What the owner said of memories that were drawn, and by which rule and of whose agent these are."""
    wanted = plain(SPOT).where(SPOT.c.owner_id == look.owner_id)
    of_memory = select(MEMORY.c.id, MEMORY.c.decision_id).where(
        MEMORY.c.owner_id == look.owner_id, among(MEMORY.c.id, "wanted")
    )
    of_item = select(PENDING.c.memory_id, PENDING.c.submitted_by).where(
        PENDING.c.owner_id == look.owner_id,
        PENDING.c.removal_of.is_(None),
        among(PENDING.c.memory_id, "wanted"),
    )
    for batch in batched(look.side_by_side(wanted, SPOT.c.memory_id, _SPOT)):
        asked = {"wanted": [key for key, _, _ in batch]}
        decided = {row.id: row.decision_id for row in look.connection.execute(of_memory, asked)}
        senders = {row.memory_id: row.submitted_by for row in look.connection.execute(of_item, asked)}
        answers = look.answers(set(decided.values()))
        for key, rows, entries in batch:
            entry = entries[-1] if entries else None
            if key in look.erased:
                continue
            if not rows:
                look.note(Kind.MISSING, SPOT.name, key, entry=entry)
                continue
            decision, answer = answers.get(decided.get(key, ""), (None, None))
            if answer is None:
                look.note(Kind.EXTRA, SPOT.name, key, why="it is about no memory")
                continue
            verdict = None if entry is None else _SPOT[Action(entry.action)]
            said: dict[str, Any] = {
                "verdict": verdict,
                "decided_at": entry and entry.at,
                "decided_by": entry and entry.actor,
            }
            first = next(iter(answer["evidence"]["sources"]), {"citation": {"type": NOTHING}})
            agent = senders.get(key) if decided[key] in look.promoted else decision.principal_id
            said |= {"agent": agent, "created_at": decision.created_at}
            said |= {"kind": first["citation"]["type"], "publisher": first.get("site") or None}
            number = number_of(answer)
            look.compare(SPOT.name, key, rows[0], said | ({} if number is None else {"rule": number}), entry)


def rulings(look: Look) -> None:
    """Standing rulings, and what each did; that none of these is missing is seen with the decisions."""
    wanted = select(RULING).where(RULING.c.owner_id == look.owner_id)
    actions = (Action.STANDING_RULING_CONFIRMED, Action.STANDING_RULING_ENDED)
    for key, rows, entries in look.side_by_side(wanted, RULING.c.id, actions):
        made = next((e for e in entries if e.action == Action.STANDING_RULING_CONFIRMED), None)
        end = next((e for e in entries if e.action == Action.STANDING_RULING_ENDED), None)
        if not rows or made is None:
            look.note(Kind.EXTRA if rows else Kind.MISSING, RULING.name, key, entry=made)
            continue
        row = rows[0]
        if row.item_id in look.erased or key in look.unsalted:
            look.compare(RULING.name, key, row, {"terms": {"agent": STATUS}})
            continue
        look.compare(RULING.name, key, row, {"ended_at": end and end.at, "ended_by": end and end.actor}, end)
        look.compare(RULING.name, key, row, {"created_at": made.at, "confirmed_by": made.actor}, made)
        if not made.commits_to(ruling=_as_confirmed(row)):
            look.note(Kind.ALTERED, RULING.name, key, "name, verdict, terms, until or item_id", made)
    done = select(ACT).where(ACT.c.owner_id == look.owner_id).order_by(ACT.c.ruling_id, ACT.c.decision_id)
    for batch in batched(look.rows(done)):
        answers = look.answers({row.decision_id for row in batch})
        for row in batch:
            _, answer = answers.get(row.decision_id, (None, None))
            by = (answer or {}).get("evidence", {}).get("standing_ruling") or {}
            name = f"{row.ruling_id} {row.decision_id}"
            if row.decision_id in look.erased:
                continue
            if answer is None or by.get("id") != row.ruling_id:
                look.note(Kind.EXTRA, ACT.name, name, why="the decision does not rest on this ruling")
            else:
                look.compare(ACT.name, name, row, {"memory_id": answer["memory_id"]})


def _as_confirmed(row: Row[Any]) -> str | None:
    """The document that was committed to; None when the row is none any more."""
    try:
        ruling = StandingRuling.model_validate(dict(row._mapping) | {"ended_at": None, "ended_by": None})
    except ValueError:
        return None
    return ruling.model_dump_json()


def kept_records(look: Look) -> None:
    """Records are as they were put down. The words of one may have gone because its time is over."""
    wanted, now = select(RECORD).where(RECORD.c.owner_id == look.owner_id), datetime.now(UTC)
    for key, rows, entries in look.side_by_side(wanted, RECORD.c.id, (Action.RECORD_KEPT,)):
        if not rows or not entries:
            look.note(Kind.EXTRA if rows else Kind.MISSING, RECORD.name, key, entry=next(iter(entries), None))
            continue
        row, made = rows[0]._mapping, entries[0]
        look.compare(RECORD.name, key, rows[0], {"created_at": made.at, "submitted_by": made.actor}, made)
        if key in look.erased:
            look.uncovered["the kind, times and digest of a record that was erased"] += 1
        elif not made.commits_to(**records.committed(row)):
            look.note(Kind.ALTERED, RECORD.name, key, "kind, said_at, kept_until or digest", made)
        elif row["salt"] is None and (row["kept_until"] > now or {**row} != {**row, **records.EMPTY}):
            why = "its words went, and not because of the time"
            look.note(Kind.ALTERED, RECORD.name, key, "text", made, why=why)
        elif row["salt"] is not None and not records.holds(row):
            look.note(Kind.ALTERED, RECORD.name, key, "who, conversation, text or masked", made)


def total(look: Look) -> None:
    """What waits in all is the sum of what waits for each owner."""
    summed = select(*(func.coalesce(func.sum(OWNER.c[name]), 0) for name in ("pending", "imported")))
    pending, imported = look.connection.execute(summed).one()
    row = look.connection.execute(select(TOTAL).where(TOTAL.c.id == 1)).one_or_none()
    if row is None:
        look.note(Kind.MISSING, TOTAL.name, "1", why="how many wait in all")
    else:
        look.compare(TOTAL.name, "1", row, {"pending": pending, "imported": imported})


def counts(look: Look) -> None:
    """The owner's row counts what waits."""
    waits = PENDING.c.status == "pending"
    counted = {
        "pending": select(func.count()).where(PENDING.c.owner_id == look.owner_id, waits),
        "imported": select(func.count()).where(
            PENDING.c.owner_id == look.owner_id, waits, PENDING.c.lane == "import"
        ),
    }
    row = look.connection.execute(select(OWNER).where(OWNER.c.owner_id == look.owner_id)).one_or_none()
    if row is not None:
        expected = {name: look.connection.scalar(statement) for name, statement in counted.items()}
        look.compare("owner", look.owner_id, row, expected)
