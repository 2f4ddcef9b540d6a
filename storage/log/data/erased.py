"""What was erased: an empty row is excused by the entry that says so, and by nothing else."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Table, select

from vouchgate.ingest.claims.log import Action
from vouchgate.storage.claims.records import EMPTY
from vouchgate.storage.claims.records import TABLE as RECORD
from vouchgate.storage.erasing import apply
from vouchgate.storage.erasing.plan import RULING
from vouchgate.storage.erasing.tombstones import TABLE as ERASED
from vouchgate.storage.log.data.differences import DECISION, MEMORY, PENDING, Entry, Kind, Look, batched
from vouchgate.storage.sql import among

_EMPTY: dict[Table, dict[str, Any]] = {
    MEMORY: {"content": "", "status": apply.STATUS, "details": {}, "source_id": None},
    PENDING: {
        "content": "",
        "reason": "",
        "details": {},
        "note": None,
        "question": None,
        "words_digest": None,
    },
    DECISION: {"answer": ""},
    RECORD: {**EMPTY},
}


def erasures(look: Look) -> None:
    """Every tombstone is as the log has it, and what it is of is empty."""
    wanted = select(ERASED).where(ERASED.c.owner_id == look.owner_id)
    sides = look.side_by_side(wanted, ERASED.c.erasure_id, (Action.MEMORY_ERASED,))
    for key, rows, entries in sides:
        if not key.startswith("ers_"):  # a decision on another claim, or a ruling; see there
            look.unsalted.add(key)
            continue
        entry = entries[0] if entries else None
        if entry is None:
            look.note(Kind.EXTRA, ERASED.name, key)
        elif not rows:
            look.note(Kind.MISSING, ERASED.name, key, entry=entry)
        elif len(bases := {row.basis for row in rows}) > 1 or not entry.commits_to(
            **apply.committed(bases.pop(), (row.item_id for row in rows))
        ):
            look.note(Kind.ALTERED, ERASED.name, key, "item_id or basis", entry)
        else:
            for row in rows:
                look.compare(ERASED.name, row.item_id, row, {"at": entry.at, "by": entry.actor}, entry)
            look.erased |= {row.item_id for row in rows}
    rulings = select(RULING.c.id).where(RULING.c.owner_id == look.owner_id, among(RULING.c.item_id, "wanted"))
    look.unsalted |= look.erased | set(look.connection.scalars(rulings, {"wanted": list(look.erased)}))
    for table, empty in _EMPTY.items():
        prefix = {MEMORY: "mem_", PENDING: "rev_", DECISION: "dec_", RECORD: "rec_"}[table]
        for ids in batched(sorted(each for each in look.erased if each.startswith(prefix))):
            found = select(table.c.id, *(table.c[name] for name in empty)).where(
                table.c.owner_id == look.owner_id, among(table.c.id, "wanted")
            )
            for row in look.connection.execute(found, {"wanted": ids}):
                look.compare(table.name, row.id, row, empty)
                ids.remove(row.id)
            for each in ids:
                look.note(Kind.MISSING, table.name, each, why="it was erased, and its row is to stay")


def is_left(entry: Entry, decision_id: str, answer: str) -> bool:
    """Whether this is what was left of a decision which had shown something that was erased."""
    return entry.commits_to(**apply.left_of(decision_id, answer))
