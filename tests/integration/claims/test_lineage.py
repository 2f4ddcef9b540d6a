"""What rests on a source is found by every name of it: memories of whatever way in, what waits, and nobody else's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from alembic import command
from sqlalchemy import select

from tests.claims import NOW, examined, policy, submission_of
from tests.rechecking import bench
from tests.reviews import all_memories, assert_consistent, queue_of, reviewer
from vouchgate.ingest.citations.detection import given_citation
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.impact import Impact
from vouchgate.ingest.claims.memory import Memory, MemoryStatus
from vouchgate.ingest.claims.source import Found, SourceReading, Standing, Unreachable
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.scoring.sites import site_of
from vouchgate.review.answers import Approved, Removed, Undone
from vouchgate.review.trust import impact
from vouchgate.review.trust.impact import Proposed, impact_of
from vouchgate.storage.claims import lineage, memories
from vouchgate.storage.claims.memories import MemoryFilter
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.engine import migration_config, writing
from vouchgate.storage.log.data.walk import Walk
from vouchgate.storage.queue.pending import QueueFilter
from vouchgate.storage.queue.query import parse
from vouchgate.storage.store import Store

RITA = reviewer()
HEX = "4e5d6c7a8b9c0d1e2f3a4b5c6d7e8f9a0b1c2d3e"
# Each with what is read of it: where that is, and in which repository.
READ = {
    "adr 1": ("adr", "ADR-001", "acme/shop"),
    "adr 3": ("adr", "ADR-003", "acme/shop"),
    HEX[:9]: ("commit", f"commit:{HEX[:12]}", ""),
    "src/auth.py:42": ("path", "src/auth.py#L42-L42", "acme/shop"),
    "https://Docs.Example.org/limits/#plan": ("url", "https://docs.example.org/v2/limits", ""),
    "https://github.com/alice/tool": ("url", "https://github.com/alice/tool", ""),
    "acme/shop#12": ("issue", "issue:acme/shop#12", ""),
}
FOUND_BY = {
    "adr 3": "ADR-3|ADR-003|ADR-0003|adr-003|ADR 3|adr 3|adr:3| ADRs 3 ",
    HEX[:9]: f"{HEX}|{HEX[:12]}|{HEX[:9]}|{HEX[:7]}|{HEX[:8].upper()}|commit {HEX[:10]}|commit:{HEX[:12]}",
    "src/auth.py:42": "src/auth.py|src/auth.py:42|./src/auth.py#L42|path:src/auth.py",
    "https://Docs.Example.org/limits/#plan": (
        "https://docs.example.org/limits|http://DOCS.example.org:80/limits/|https://www.docs.example.org/limits#x"
        "|docs.example.org/limits|https://docs.example.org/v2/limits|docs.example.org/v2/limits/|docs.example.org"
        "|Example.org|https://example.org/|site:example.org"
    ),
    "https://github.com/alice/tool": "github.com/alice|github.com/Alice|github.com/alice/tool|github.com",
    "acme/shop#12": "acme/shop#12|issue:acme/shop#12|Acme/Shop#12",
}
NOT_FOUND_BY = (
    "ADR-33|ADR-30|adr:03x|0000000|4e5d6c|src/auth|src/auth.py:43|src/auth.py:4|docs.example.com|ample.org|org|limits"
    "|https://docs.example.org/limit|https://docs.example.org/limits/more|github.com/ali|acme/shop#1|acme|acme/shoP#2"
    "|site:|url:|repository:|%|_|'|\"|\x00|\ud800|https://[|" + "x" * 9000
)


def claimed(content: str, *cited: str, owner: str = "ann", source: Source = Source.USER) -> Examined:
    """A claim, and what was read of all that it cites; `not read` before one that was not."""
    readings: list[SourceReading] = []
    for one in cited:
        kind, found, project = READ[one.removeprefix("not read ")]
        citation = given_citation(kind, one.removeprefix("not read "))
        if one.startswith("not read "):
            readings.append(Unreachable(citation=citation, code="timeout", detail="Late."))
            continue
        readings.append(
            Found(
                citation=citation,
                source_id=found,
                standing=Standing.IN_FORCE,
                detail="It is.",
                project=project,
                site=site_of(found),
            )
        )
    return replace(examined(content, owner_id=owner, source=source), readings=tuple(readings))


def send(store: Store, claim: Examined) -> str:
    """Submits it; the id of the memory or the item."""
    store.save_policy(policy(), NOW)
    answer = store.writer.submit(submission_of(claim)).result()
    assert isinstance(answer, Decided)
    return str(answer.answer.memory_id or answer.answer.queue_id)


def rest(store: Store, source: str, owner: str = "ann") -> set[str]:
    """What rests on it: in the impact, which the search of memories and of the queue agree with."""
    owners = frozenset({owner})
    found = impact_of(store, owner, source, NOW)
    kept, waits = {one.id for one in found.memories}, {one.id for one in found.waiting}
    assert found.counts["pending"] == len(waits)
    assert sum(many for name, many in found.counts.items() if name in tuple(MemoryStatus)) == len(kept)
    wanted = MemoryFilter(owners=owners, source_id=source, statuses=frozenset(MemoryStatus))
    with store.read() as connection:
        assert {one.id for one in memories.search(connection, wanted, NOW)} == kept, source
    if (
        owner == "ann"
        and source.isascii()
        and source.isprintable()
        and len(source) < 400
        and '"' not in source
    ):
        query = parse(f'source:"{source.strip()}"', NOW)
        listed = queue_of(store).search(RITA, QueueFilter(query=query, now=NOW, away=True))
        assert {one.id for one in listed} == waits, source
    return kept | waits


def test_it_is_found_in_every_spelling_and_by_all_that_it_rests_on(store: Store) -> None:
    alone = {one: send(store, claimed(f"Rule {n} of the kiln is kept.", one)) for n, one in enumerate(READ)}
    both = send(store, claimed("The kiln is fired on Fridays by two people.", "adr 3", "adr 1"))
    waits = send(store, claimed("The mill may be shut.", "adr 3", source=Source.AI_SYNTHESIS))
    theirs = send(store, claimed("Bob's kiln is blue.", "adr 3", owner="bob"))
    unread = send(store, claimed("The raft has nine logs.", "adr 1", "not read adr 3"))
    for one, spellings in FOUND_BY.items():
        expected = {alone[one]} | ({both, waits, unread} if one == "adr 3" else set())
        for spelling in spellings.split("|"):
            assert rest(store, spelling) == expected, spelling
    for spelling in NOT_FOUND_BY.split("|"):
        assert rest(store, spelling) == set(), spelling
    assert rest(store, "ADR-1") == {alone["adr 1"], both, unread}
    in_repository = {alone[one] for one, (_, _, project) in READ.items() if project}
    assert rest(store, "acme/shop") == in_repository | {alone["acme/shop#12"], both, waits, unread}
    # Nobody else's: but of every owner, for whom that was granted.
    assert rest(store, "ADR-3", "bob") == {theirs}
    assert rest(store, "ADR-3", "nobody") == set()
    with store.read() as connection:
        found = memories.search(connection, MemoryFilter(owners=None, source_id="ADR-3"), NOW)
    assert {one.id for one in found} == {alone["adr 3"], both, unread, theirs}
    # Alone: what has nothing else that was read.
    page = impact_of(store, "ann", "adr 3", NOW)
    assert set(page.alone) == {alone["adr 3"], waits}
    shown = {name: many for name, many in page.counts.items() if many}
    assert shown == {"active": 3, "pending": 1, "alone": 2}
    paged, after = [], None
    while True:
        some = impact_of(store, "ann", "adr 3", NOW, after=after, limit=1)
        paged += [one.id for one in some.memories]
        after = some.next
        if after is None:
            break
    assert paged == [one.id for one in page.memories]


def rest_on(found: Impact) -> dict[str, str]:
    """What rests on a source, by its text."""
    both: list[Memory | PendingMemory] = [*found.memories, *found.waiting]
    return {one.content: one.status for one in both}


def test_it_stays_found_whatever_becomes_of_it(store: Store, tmp_path: Path) -> None:
    queue = queue_of(store)
    kept = [
        claimed(f"The {thing} is oak.", "adr 3", source=Source.AI_SYNTHESIS) for thing in ("door", "desk")
    ]
    door, desk = (send(store, one) for one in kept)
    assert isinstance(queue.approve(RITA, door, version=1, now=NOW), Approved)
    edit = claimed("The desk is ash.", "adr 1", source=Source.AI_SYNTHESIS)
    assert isinstance(queue.approve(RITA, desk, version=1, note="so", edited=edit, now=NOW), Approved)
    assert rest_on(impact_of(store, "ann", "ADR-3", NOW)) == {"The door is oak.": "active"}
    assert rest_on(impact_of(store, "ann", "ADR-1", NOW)) == {"The desk is ash.": "active"}
    assert isinstance(queue.undo(RITA, desk, version=2, now=NOW), Undone)
    assert rest_on(impact_of(store, "ann", "ADR-1", NOW)) == {"The desk is ash.": "retracted"}
    back = {"The door is oak.": "active", "The desk is oak.": "pending"}
    assert rest_on(impact_of(store, "ann", "ADR-3", NOW)) == back
    with bench(store, tmp_path) as here:  # promoted, and stale when the record was superseded
        here.hide()
        item = here.send("Per ADR-0001 the gateway listens on port 8080.").queue_id
        assert item in rest(store, "ADR-1")
        here.show()
        assert here.work(NOW + timedelta(hours=2)).promoted == 1
        assert item not in rest(store, "ADR-1")
        assert impact_of(store, "ann", "ADR-1", NOW).counts["active"] == 1
        here.adr("Superseded by ADR-0002")
        assert impact.recheck(store, "bob", "ADR 1", NOW) == 0
        later = NOW + timedelta(hours=3)
        assert here.work(later).stale == 0
        assert impact.recheck(store, "ann", "ADR 1", later) == 1
        assert here.work(later).stale == 1
        found = impact_of(store, "ann", "ADR-1", later)
        assert (found.counts["active"], found.counts["stale"]) == (1, 1)
        assert next(one.stale_reason for one in found.memories if one.status == "active")
    assert differences(store) == []


def differences(store: Store) -> Collection[object]:
    """What the rows say otherwise than the log."""
    return list(Walk(store.read).differences())


def test_a_retraction_is_proposed_and_waits_for_its_owner(store: Store) -> None:
    send(store, claimed("The kiln is fired on Fridays.", "adr 3"))
    send(store, claimed("The mill is shut.", "adr 3", "adr 1"))
    send(store, claimed("Bob's kiln is blue.", "adr 3", owner="bob"))

    def propose(owner: str) -> Proposed:
        return impact.propose_retraction(
            store, owner, "ADR-3", policy(), by="operator", reason="It was withdrawn.", now=NOW
        )

    assert [propose(one) for one in ("ann", "bob", "ann")] == [Proposed(2, 0), Proposed(1, 0), Proposed(0, 2)]
    assert [one.status for one in all_memories(store)] == ["active"] * 3
    queue = queue_of(store)
    asked = queue.search(RITA, QueueFilter())
    assert [one.metadata["reason"] for one in asked] == ["It was withdrawn."] * 2
    kiln = next(one for one in asked if "kiln" in one.content)
    answer = queue.approve(RITA, kiln.id, version=1, now=NOW)
    assert isinstance(answer, Removed)
    assert answer.memory is not None
    assert (answer.memory.content, answer.memory.status) == (kiln.content, "retracted")
    assert sorted(one.status for one in all_memories(store)) == ["active", "active", "retracted"]
    assert impact_of(store, "ann", "ADR-3", NOW).counts["retracted"] == 1
    assert differences(store) == []
    assert queue.reject(RITA, next(one for one in asked if one != kiln).id, version=1, reason="no", now=NOW)
    assert propose("ann") == Proposed(1, 0)


def test_a_database_of_before_is_filled_from_its_decisions(store: Store) -> None:
    send(store, claimed("The kiln is fired on Fridays.", "adr 3", "adr 1"))
    send(store, claimed("The mill may be shut.", HEX[:9], source=Source.AI_SYNTHESIS))
    with store.read() as connection:
        before = connection.execute(select(lineage.TABLE)).all()
    assert len(before) > 3
    config = migration_config()
    with writing(store._engine) as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0023")
        command.upgrade(config, "head")
        assert sorted(connection.execute(select(lineage.TABLE)).all()) == sorted(before)
    assert_consistent(store)
    # Below 0025 there are no salts, so that what was committed to with them cannot be shown any more.
    assert [each for each in map(str, differences(store)) if " lineage " in each] == []
