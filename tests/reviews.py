"""What tests of the review queue share: people, claims that wait, and a look at everything in a store."""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import select, text

from tests.claims import NOW, examined, policy, submission_of
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.log import LogEntry
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.modes import Mode, ModeSwitch
from vouchgate.ingest.claims.people import Principal, Role
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.review.queue import ReviewQueue
from vouchgate.review.trust import modes
from vouchgate.storage.claims import memories
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup import similar, window
from vouchgate.storage.identity import owners
from vouchgate.storage.log import chain as log
from vouchgate.storage.queue import pending
from vouchgate.storage.store import Store
from vouchgate.storage.tables.claims import OwnerRow


def reviewer(owner_id: str = "ann", name: str = "rita") -> Principal:
    """A reviewer of one owner."""
    return Principal(id=f"reviewer-{name}", name=name, role=Role.REVIEWER, owners=frozenset({owner_id}))


def queue_of(store: Store) -> ReviewQueue:
    """The queue under the built-in policy."""
    return ReviewQueue(store, policy())


def waiting(store: Store, content: str, *, owner_id: str = "ann", **claim: Any) -> PendingMemory:
    """Submits a claim that nothing vouches for, and returns the item that waits for its owner."""
    source = claim.pop("source", Source.AI_SYNTHESIS)
    one = examined(content, owner_id=owner_id, source=source, **claim)
    answer = store.writer.submit(submission_of(one)).result()
    assert isinstance(answer, Decided)
    assert answer.answer.queue_id is not None, answer.answer.reason
    item = queue_of(store).get_by_id(reviewer(owner_id), answer.answer.queue_id)
    assert item is not None
    return item


def stored(store: Store, content: str, *, owner_id: str = "ann", **claim: Any) -> Memory:
    """Submits a claim that its source vouches for, and returns the memory it became."""
    answer = store.writer.submit(submission_of(examined(content, owner_id=owner_id, **claim))).result()
    assert isinstance(answer, Decided)
    assert answer.answer.memory_id is not None, answer.answer.reason
    return memory(store, answer.answer.memory_id)


def memory(store: Store, memory_id: str, now: datetime = NOW) -> Memory:
    """The memory of this id, whoever has it."""
    with store.read() as connection:
        found = memories.get(connection, memory_id, now, owners=None)
    assert found is not None
    return found


def all_memories(store: Store, now: datetime = NOW) -> list[Memory]:
    """Every memory, oldest first."""
    wanted = MemoryFilter(owners=None, statuses=frozenset(MemoryStatus), limit=200)
    with store.read() as connection:
        return memories.search(connection, wanted, now)[::-1]


def history(store: Store, owner_id: str = "ann") -> list[LogEntry]:
    """The owner's log, oldest first."""
    with store.read() as connection:
        return log.events(connection, frozenset({owner_id}), after=None, limit=1000)


def commits_to(store: Store, entry: LogEntry, content: str) -> bool:
    """Whether an entry was made of this text, with its salt before it."""
    with store.read() as connection:
        asked = {"owner": entry.owner_id, "seq": entry.seq}
        salt = connection.scalar(
            text("SELECT salt FROM log_entry WHERE owner_id = :owner AND seq = :seq"), asked
        )
    return entry.content_digest == "1s:" + hashlib.sha256(bytes(salt) + content.encode()).hexdigest()


def everything(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, to see that nothing changed. An owner's row that holds nothing is left out:
    locking an owner makes one."""
    tables = OwnerRow.metadata.sorted_tables
    with store.read() as connection:
        rows = {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr) for table in tables
        }
    rows["owner"] = [row for row in rows["owner"] if row[1:4] != (0, "0" * 64, 0)]
    return rows


def index_tails(store: Store) -> None:
    """Puts what is stored and in no similar index yet into it, as the writer does when there is more of it."""
    with store.read() as connection:
        every = connection.scalars(select(owners.TABLE.c.owner_id)).all()
    for owner_id in every:
        store.writer.run([owner_id], partial(similar.index_tail, owner_id=owner_id)).result()


def assert_consistent(store: Store, now: datetime = NOW) -> None:
    """The log is unbroken, the counters count, and the index holds what is active or waits, no more."""
    with store.read() as connection:
        assert log.verify(connection) == []
        waits = select(pending.TABLE.c.owner_id, pending.TABLE.c.id).where(
            pending.TABLE.c.status == "pending"
        )
        active = select(memories.TABLE.c.owner_id, memories.TABLE.c.id).where(
            memories.TABLE.c.status == "active"
        )
        waiting_rows = {tuple(row) for row in connection.execute(waits)}
        active_rows = {tuple(row) for row in connection.execute(active)}
        indexed = connection.execute(select(window.TABLE.c.owner_id, window.TABLE.c.item_id).distinct())
        assert {tuple(row) for row in indexed} == waiting_rows | active_rows
        for owner_id, count in connection.execute(select(owners.TABLE.c.owner_id, owners.TABLE.c.pending)):
            assert count == sum(owner == owner_id for owner, _ in waiting_rows), owner_id
        imports = pending.TABLE.c.lane == "import"
        imported = {tuple(row) for row in connection.execute(waits.where(imports))}
        for owner_id, count in connection.execute(select(owners.TABLE.c.owner_id, owners.TABLE.c.imported)):
            assert count == sum(owner == owner_id for owner, _ in imported), owner_id
        total = OwnerRow.metadata.tables["queue_total"]
        assert connection.execute(select(total.c.pending, total.c.imported)).one() == (
            len(waiting_rows),
            len(imported),
        )


def set_mode(store: Store, owner_id: str, mode: Mode) -> None:
    """As the operator."""
    modes.switch(
        store, ModeSwitch(owner_id=owner_id, agent="", mode=mode, reason="moving", by="operator", since=NOW)
    )
