"""What is erased is gone: from every table, from the indexes and from the raw files; and the log proves the rest."""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import Connection, text, update

from tests.claims import NOW, examined, policy, submission_of
from tests.conftest import Postgresql
from tests.integration.queue.test_audits import opened, row, take
from tests.rechecking import bench
from tests.reviews import everything, history, queue_of, reviewer, set_mode, stored, waiting
from tests.running.patience import until
from vouchgate.cli.app import run
from vouchgate.ingest.checks.hedge import HedgeDetector
from vouchgate.ingest.citations import parse_citation
from vouchgate.ingest.claims.claim import Claim, Source
from vouchgate.ingest.claims.delivery import DeliveryTarget
from vouchgate.ingest.claims.likeness import ItemKind, Paraphrase, Paraphrases
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.modes import Mode, ModeSwitch
from vouchgate.ingest.claims.people import Membership, Principal, Role
from vouchgate.ingest.claims.source import Found, Standing
from vouchgate.ingest.claims.standing_rulings import RulingDraft, StandingRuling, template_of
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import DocumentPolicy, Policy, RecordsPolicy
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.support.texts import pack
from vouchgate.review import acts
from vouchgate.review.answers import Approved, NotFound, Rejected, Undone
from vouchgate.review.attending.answering import Answered
from vouchgate.review.attending.attention import send_back
from vouchgate.review.ending.erasing import (
    BY_OPERATOR,
    EraseAsked,
    Erased,
    ErasedBefore,
    EraseRefused,
    Erasing,
)
from vouchgate.review.numbers import NumbersCounter
from vouchgate.review.trust.modes import review_unvouched
from vouchgate.review.trust.standing_rulings import RulingRefused, StandingRulings
from vouchgate.review.trust.taking_back import RulingEnded, Then, take_back
from vouchgate.review.vouching.owner_rules import parse
from vouchgate.service import open_service
from vouchgate.settings import Settings
from vouchgate.storage import modes
from vouchgate.storage.claims import decisions, memories, records, source_cache
from vouchgate.storage.claims.sayings import load_records
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.dedup import contradicting
from vouchgate.storage.engine import open_engine
from vouchgate.storage.erasing import apply, listed, plan, scrub, tombstones
from vouchgate.storage.erasing.listed import Listed
from vouchgate.storage.erasing.plan import RULING
from vouchgate.storage.errors import ReadOnly, SourceErased, StorageError, StoreBusy
from vouchgate.storage.identity import memberships, persons, tokens
from vouchgate.storage.log import chain
from vouchgate.storage.log.data.walk import Walk
from vouchgate.storage.outgoing import deliveries
from vouchgate.storage.queue import audits, documents, pending, rulings
from vouchgate.storage.queue.pending import Order, QueueFilter
from vouchgate.storage.queue.rulings import RulingFilter
from vouchgate.storage.store import Store
from vouchgate.workers.word_index import take_in

RITA, BASIS, DAY = reviewer(), "GDPR Art. 17(1)(b), request 4711", timedelta(days=1)
MARK = 'Zörgel"Quambo97531'
# Two of these are near each other; the secret is in the first alone.
NEAR = (
    "After the spring migration every internal gateway of our billing platform accepts encrypted traffic only when {}"
    " calls it from the front desk and forwards anything else to a quiet host that logs it for later study by people"
    " who have been told which colour means trouble"
)
SECRET = NEAR.format(MARK)
PLACE = DeliveryTarget(sink="graph", place=f"people/{MARK}", data={"name": MARK})


def raw(directory: Path) -> bytes:
    """Every byte of the files below a directory."""
    return b"".join(each.read_bytes() for each in sorted(directory.rglob("*")) if each.is_file())


def holds(content: bytes) -> bool:
    """Whether the secret is in there, as it is or in JSON."""
    spellings: tuple[str, ...] = (
        MARK,
        json.dumps(MARK)[1:-1],
        json.dumps(MARK, ensure_ascii=False)[1:-1],
        "Quambo97531",
    )
    spellings += ("quambo97531",)  # as it is searched by
    return any(each.encode() in content for each in spellings)


def page() -> Found:
    return Found(
        citation=parse_citation("https://example.com/people"),
        source_id="https://example.com/people",
        standing=Standing.IN_FORCE,
        detail="It was read.",
        excerpt=f"{MARK} takes calls.",
        text=f"{MARK} takes calls at the desk.",
        text_digest=pack(f"{MARK} takes calls at the desk.").digest,
        packed=(pack(f"{MARK} takes calls at the desk."),),
    )


def lived(store: Store) -> tuple[str, str]:
    """A claim that was queued, repeated, approved and delivered, with everything that came of it; the ids of its memory
    and of its item."""
    store.save_policy(policy(), NOW)
    cited = replace(examined(SECRET, source=Source.AI_SYNTHESIS, delivery=PLACE), readings=(page(),))
    first = store.writer.submit(submission_of(cited, key="key-1")).result()
    again = store.writer.submit(submission_of(cited, principal_id="agent-2", key="key-2")).result()
    assert isinstance(first, Decided)
    assert isinstance(again, Decided)
    item_id = str(first.answer.queue_id)
    assert again.answer.queue_id == item_id
    keeping = source_cache.keeping(
        "url:https://example.com/people", page(), checked_at=NOW, expires_at=NOW + DAY
    )
    store.writer.run((), keeping).result()
    sent = {"owner_id": "ann", "id": f"doc_{'0' * 32}", "submitted_by": "agent-1", "created_at": NOW}
    sent |= {"sent": json.dumps({"text": f"So. {SECRET}."}), "sent_digest": "0" * 64, "idempotency_key": None}
    store.writer.run(["ann"], lambda c: documents.add(c, sent, DocumentPolicy())).result()
    audit = opened(store)
    about = {"other": "2", "reason": f"Not {MARK}."}
    rows = [row(1, **about), row(2, text=SECRET, claim={"metadata": {"name": MARK}}), row(3, **about)]
    assert take(store, audit, rows, 0) == 3
    approved = queue_of(store).approve(RITA, item_id, version=1, note=f"{MARK}: I know him", now=NOW)
    assert isinstance(approved, Approved), approved
    return approved.memory.id, item_id


def walked(store: Store) -> list[str]:
    """What `log verify --data` finds."""
    with store.read() as connection:
        assert chain.verify(connection) == []
    return [str(difference) for difference in Walk(store.read).differences()]


def count(connection: Connection, table: str) -> int:
    return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())  # noqa: S608


def test_everything_that_came_of_a_claim_goes(
    store: Store, database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "list" / "erasures.jsonl"
    path.parent.mkdir()
    erasing = Erasing(store, policy(), path=path)
    memory_id, item_id = lived(store)
    kept = stored(store, "The harbour master sleeps aboard.")
    near = waiting(store, NEAR.format("anybody here"))
    take_in(store, "ann")
    before = everything(store)
    assert {name for name, rows in before.items() if "quambo" in str(rows).lower()} >= {
        "memory",
        "memory_words",
        "pending",
        "decision",
        "source",
    }
    assert walked(store) == []

    shown = erasing.by_owner(RITA, [memory_id], BASIS, NOW, dry_run=True)
    assert isinstance(shown, Erased)
    assert shown.counts["source texts"] == shown.counts["documents"] == 1
    assert everything(store) == before
    done = erasing.by_owner(RITA, [memory_id], BASIS, NOW)
    assert isinstance(done, Erased), done
    assert {memory_id, item_id} < set(done.ids)
    assert kept.id not in done.ids
    assert done.counts["decisions on other claims that showed it"] == 1
    assert not done.in_free_pages
    with store.read() as connection:
        (audit,) = audits.listing(connection, frozenset({"ann"}))
        rows = audits.search(connection, audit, ["open"], limit=9)
    assert [(each.text, each.reason) for each in rows] == [("Row 1.", ""), ("", ""), ("Row 3.", "")]

    after = everything(store)
    emptied = {
        name for name, rows in before.items() if not set(map(repr, rows)) <= set(map(repr, after[name]))
    }
    assert emptied - {"owner", "queue_total"} <= set(scrub.TABLES)
    found = {name: [row for row in rows if "quambo" in str(row).lower()] for name, rows in after.items()}
    waits = found.pop("delivery")  # its sink has to be told where it is
    assert [row for rows in found.values() for row in rows] == []
    assert len(waits) == 1
    assert len(after["source_text"]) == len(after["idempotency"]) == len(after["document"]) == 0
    assert walked(store) == []
    with store.read() as connection:
        assert memories.get(connection, memory_id, NOW, owners=None) is None
        assert decisions.get(connection, f"dec_{item_id[4:]}", owners=None) is None
        stone = tombstones.find(connection, item_id, owners=frozenset({"ann"}))
        assert tombstones.find(connection, item_id, owners=frozenset({"bob"})) is None
        assert queue_of(store).decision_of(near) is not None
    assert stone is not None
    assert (stone.basis, stone.by, stone.at) == (BASIS, RITA.id, NOW)
    with store.read() as connection:
        ((ruling,),) = rulings.walk(connection, RulingFilter())
    assert (ruling.what, ruling.item_id, ruling.memory_id) == ("approved", item_id, memory_id)
    assert (ruling.memory_status, ruling.note) == ("erased", None)
    assert "memory.erased" in [entry.action for entry in history(store)]

    # Whoever got it is told, with its id; then the address of it is gone as well.
    def told(connection: Connection) -> list[deliveries.LeasedDelivery]:
        handed = deliveries.lease(connection, "ann", "graph", NOW, most=9, name="lease-1")
        for each in handed:
            assert deliveries.mark_done(connection, each.record, "lease-1", NOW)
        return handed

    (handed,) = store.writer.run(["ann"], told).result()
    assert (handed.record.op, handed.record.memory_id, handed.memory) == ("remove", memory_id, None)
    assert "Quambo" not in str(everything(store))
    assert not erasing.scrub_if_due(NOW)
    assert walked(store) == []
    if database_url.startswith("sqlite"):
        assert not holds(raw(tmp_path))
    else:
        server: Postgresql = request.getfixturevalue("postgresql")
        server.run("CHECKPOINT")
        assert not holds(raw(server.data / "base"))

    # It is no earlier claim of anything, and the same words are a new one.
    new = waiting(store, SECRET)
    assert new.id != item_id
    assert isinstance(erasing.by_owner(RITA, [memory_id], BASIS, NOW), ErasedBefore)
    assert erasing.again(NOW) == 0
    assert isinstance(erasing.by_owner(reviewer("bob"), [new.id], BASIS, NOW), NotFound)


@pytest.mark.on("sqlite")
def test_a_waiting_item_and_a_blocked_claim_are_erased_too_and_some_are_not(
    store: Store, tmp_path: Path
) -> None:
    erasing = Erasing(store, policy(), path=tmp_path / "list.jsonl")
    store.save_policy(policy(), NOW)
    item, behind = waiting(store, SECRET), waiting(store, "The harbour master sleeps aboard.")
    last = waiting(store, "The baker opens at five.")
    blocked = store.writer.submit(submission_of(examined(f"{MARK} may be ill.", speculates=True))).result()
    assert isinstance(blocked, Decided)
    dec = str(blocked.answer.decision_id)
    agent = Principal(id="agent-1", name="a", role=Role.AGENT, owners=frozenset({"ann"}))
    assert isinstance(erasing.by_owner(agent, [dec], BASIS, NOW), NotFound)
    for ids, basis in (
        ([], BASIS),
        ([dec], " "),
        ([dec], "x" * 301),
        ([dec], f"Art. 17: {MARK} may be ill."),
    ):
        assert isinstance(erasing.by_owner(RITA, ids, basis, NOW), EraseRefused), basis
    assert isinstance(erasing.by_owner(RITA, [dec, f"mem_{'0' * 32}"], BASIS, NOW), NotFound)
    unlisted = Erasing(store, policy()).by_owner(RITA, [dec], BASIS, NOW)
    assert isinstance(unlisted, EraseRefused)
    assert unlisted.code == "no_list"
    assert isinstance(erasing.erase(["ann"], [dec, item.id], BASIS, BY_OPERATOR, NOW), Erased)
    assert "Quambo" not in str(everything(store))
    assert walked(store) == []
    # A page that was read before goes on behind it, and in the figures it came and was cleared by nobody.
    assert isinstance(queue_of(store).reject(RITA, last.id, version=1, reason="no", now=NOW - DAY), Rejected)
    orders: tuple[tuple[Order, Order], ...] = (("priority", "newest"), ("oldest", "newest"))
    for both in orders:  # either before it or behind it: ids of one millisecond are in no order
        pages = [queue_of(store).search(RITA, QueueFilter(after=item.id, order=order)) for order in both]
        assert [each.id for page in pages for each in page] == [behind.id]
    (decided,) = queue_of(store).history(RITA, after=item.id)
    assert decided.id == last.id
    with store.read() as connection:
        assert connection.execute(text("SELECT pending FROM owner WHERE owner_id = 'ann'")).scalar_one() == 1
        total = NumbersCounter().numbers_of(connection, ["ann"], NOW).total
    assert (total.queued, total.rejected, total.cleared) == (3, 1, 1)


@pytest.mark.on("sqlite")
def test_what_was_stored_in_other_words_never_shows_that_its_agent_was_right(
    store: Store, tmp_path: Path
) -> None:
    store.save_policy(policy(), NOW)
    queue, right = queue_of(store), list[int]()
    for content, edited in (("The attic is dry.", None), (SECRET, examined("The cellar is damp."))):
        item = waiting(store, content)
        spoken_of = update(pending.TABLE).where(pending.TABLE.c.id == item.id).values(rule=Rule.SPOKEN_OF)
        store.writer.run((), partial(Connection.execute, statement=spoken_of)).result()
        assert isinstance(queue.approve(RITA, item.id, version=1, edited=edited, now=NOW), Approved)
        for _ in range(2):
            with store.read() as connection:
                right.append(sum(each.right for each in load_records(connection, "ann").values()))
            erasing = Erasing(store, policy(), path=tmp_path / "list.jsonl")
            erasing.erase(["ann"], [item.id], BASIS, BY_OPERATOR, NOW)
    assert right == [1, 1, 1, 1]


@pytest.mark.on("sqlite")
def test_where_two_must_approve_two_must_ask(store: Store, tmp_path: Path) -> None:
    rules, faults = parse("* 2\n")
    assert not faults
    erasing = Erasing(store, policy(), rules, tmp_path / "list.jsonl")
    store.save_policy(policy(), NOW)
    item = waiting(store, SECRET)
    named = RITA.model_copy(update={"person": "per_rita"})
    unnamed = erasing.by_owner(RITA, [item.id], BASIS, NOW)
    assert isinstance(unnamed, EraseRefused)
    assert unnamed.code == "four_eyes"
    first = erasing.erase(["ann"], [item.id], BASIS, BY_OPERATOR, NOW)
    assert first == EraseAsked(1, 2)
    assert erasing.erase(["ann"], [item.id], BASIS, BY_OPERATOR, NOW) == EraseAsked(1, 2)
    assert erasing.by_owner(named, [item.id], "another basis", NOW) == EraseAsked(1, 2)
    assert erasing.by_owner(named, [item.id], BASIS, NOW + 8 * DAY) == EraseAsked(1, 2)
    assert isinstance(erasing.by_owner(named, [item.id], BASIS, NOW + DAY), Erased)
    assert walked(store) == []


@pytest.mark.parametrize("named", ["memory", "item"])
def test_a_claim_that_waits_again_goes_whole_and_is_still_its_agents(
    store: Store, tmp_path: Path, named: str
) -> None:
    """As after `mode review-unvouched`, by whom the decision was made that it waits under."""
    rules, faults = parse("* 1\nagent:agent-1 2\nagent:rita 3\nagent:operator 3\n")
    assert not faults
    erasing = Erasing(store, policy(), rules, tmp_path / "list.jsonl")
    store.save_policy(policy(), NOW)
    other = waiting(store, "The harbour master sleeps aboard.")
    set_mode(store, "ann", Mode.OBSERVE)
    sent = store.writer.submit(submission_of(examined(SECRET, source=Source.AI_SYNTHESIS))).result()
    assert isinstance(sent, Decided)
    set_mode(store, "ann", Mode.ENFORCE)
    detector = HedgeDetector(policy().lexicon)
    put = review_unvouched(store, "ann", policy=policy(), detector=detector, by="operator", now=NOW + DAY)
    assert put.queued == 1
    with store.read() as connection:
        (item,) = pending.search(
            connection, QueueFilter(owners=frozenset({"ann"}), away=True, after=other.id)
        )
    wanted = {"memory": str(sent.answer.memory_id), "item": item.id}[named]
    assert erasing.erase(["ann"], [wanted], BASIS, BY_OPERATOR, NOW) == EraseAsked(1, 2)
    rita = RITA.model_copy(update={"person": "per_rita"})
    done = erasing.by_owner(rita, [wanted], BASIS, NOW)
    assert isinstance(done, Erased), done
    assert {str(sent.answer.memory_id), item.id} < set(done.ids)
    assert "Quambo" not in str(everything(store))
    assert walked(store) == []
    still = queue_of(store).get_by_id(RITA, other.id)
    assert still is not None
    assert still.content == other.content


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("root", ["item", "other wording", "memory"])
def test_other_wordings_that_were_taken_back_go_too(store: Store, tmp_path: Path, root: str) -> None:
    """Nothing but their decisions links them with the item by then."""
    store.save_policy(policy(), NOW)
    queue, item = queue_of(store), waiting(store, "The attic is dry.")
    worded, version = list[str](), 1
    for content in (SECRET, f"{MARK} has the key."):
        edited = examined(content)
        approved = queue.approve(RITA, item.id, version=version, edited=edited, now=NOW)
        assert isinstance(approved, Approved), approved
        worded.append(approved.memory.id)
        undone = queue.undo(RITA, item.id, version=approved.item.version, now=NOW)
        assert isinstance(undone, Undone), undone
        version = undone.item.version
    last = queue.approve(RITA, item.id, version=version, now=NOW)
    assert isinstance(last, Approved), last
    wanted = {"item": item.id, "other wording": worded[0], "memory": last.memory.id}[root]
    done = Erasing(store, policy(), path=tmp_path / "list.jsonl").by_owner(RITA, [wanted], BASIS, NOW)
    assert isinstance(done, Erased), done
    assert {item.id, last.memory.id, *worded} < set(done.ids)
    assert "Quambo" not in str(everything(store))
    assert walked(store) == []


def test_what_was_stored_under_a_decision_that_is_not_the_items_any_more_goes_too(
    store: Store, tmp_path: Path
) -> None:
    store.save_policy(policy(), NOW)
    queue, item = queue_of(store), waiting(store, SECRET)

    def answer() -> None:
        """Its agent says it in other words: that is decided anew, and waits."""
        nonlocal item
        send_back(queue, RITA, item.id, version=item.version, question="Who says so?", now=NOW)
        with store.read() as connection:
            then = acts.stored_answer(connection, item)
        claim = then.evidence.claim.model_copy(update={"content": f"{then.evidence.claim.content} So."})
        with bench(store, tmp_path) as made:
            answered = asyncio.run(made.rechecker.answer(item, then, claim, by=item.submitted_by, key=None))
        assert isinstance(answered, Answered), answered
        found = queue.get_by_id(RITA, item.id)
        assert found is not None
        item = found

    answer()
    approved = queue.approve(RITA, item.id, version=item.version, now=NOW)
    assert isinstance(approved, Approved), approved
    undone = queue.undo(RITA, item.id, version=approved.item.version, now=NOW)
    assert isinstance(undone, Undone), undone
    item = undone.item
    answer()
    answer()
    done = Erasing(store, policy(), path=tmp_path / "list.jsonl").by_owner(RITA, [item.id], BASIS, NOW)
    assert isinstance(done, Erased), done
    assert {item.id, approved.memory.id} < set(done.ids)
    assert "Quambo" not in str(everything(store))
    assert walked(store) == []


def test_a_memory_whose_decision_alone_was_erased_is_named(store: Store, tmp_path: Path) -> None:
    """As versions did that did not know of the other wordings."""
    store.save_policy(policy(), NOW)
    kept, item = stored(store, "The harbour master sleeps aboard."), waiting(store, SECRET)
    approved = queue_of(store).approve(RITA, item.id, version=1, now=NOW)
    assert isinstance(approved, Approved), approved
    gone = approved.memory

    def erase(connection: Connection) -> None:
        part = plan.make(connection, "ann", [gone.id])
        part.memories.clear()
        apply.apply(connection, part, erasure_id="ers_" + "0" * 32, basis=BASIS, by="rita", now=NOW)

    store.writer.run(["ann"], erase).result()
    (difference,) = walked(store)
    assert "its decision was erased, and it was not" in difference
    assert gone.id in difference
    done = Erasing(store, policy(), path=tmp_path / "list.jsonl").by_owner(RITA, [gone.id], BASIS, NOW)
    assert isinstance(done, Erased), done
    assert kept.id not in done.ids
    assert walked(store) == []


def test_who_asked_and_does_not_rule_any_more_does_not_count(store: Store, tmp_path: Path) -> None:
    """Nor does who stands in for somebody, beside them; nor is anything erased by who was let go meanwhile."""
    rules, faults = parse("* 2\n")
    assert not faults
    erasing = Erasing(store, policy(), rules, tmp_path / "list.jsonl")
    store.save_policy(policy(), NOW)
    item = waiting(store, SECRET)
    people = {name: persons.create(store, name, actor="test", now=NOW) for name in ("rita", "bea", "cleo")}
    roles = {
        name: Membership(owner_id="ann", member_id=one.id, role=Role.REVIEWER, since=NOW)
        for name, one in people.items()
    }
    for name in ("rita", "cleo"):
        assert memberships.grant(store, roles[name], actor="test")
    stead = {"acts_for": people["rita"].id, "until": NOW + 9 * DAY}
    memberships.let_stand_in(store, roles["bea"].model_copy(update=stead), actor="test")
    whose = {
        name: tokens.create(store, role=Role.REVIEWER, name=name, person=one.id, actor="test", now=NOW)[1]
        for name, one in people.items()
    }

    def who(name: str) -> Principal:
        with store.read() as connection:
            found = tokens.authenticate(connection, whose[name], NOW)
        assert found is not None
        return found

    rita, bea, cleo = map(who, ("rita", "bea", "cleo"))
    for one in (rita, bea, rita):
        assert erasing.by_owner(one, [item.id], BASIS, NOW) == EraseAsked(1, 2)
    assert memberships.end(store, roles["rita"], actor="test", now=NOW)
    before = everything(store)
    for one in (rita, bea):  # as they were looked up before that
        assert erasing.by_owner(one, [item.id], BASIS, NOW) == NotFound()
    assert everything(store) == before
    assert erasing.by_owner(cleo, [item.id], BASIS, NOW) == EraseAsked(1, 2)
    assert memberships.grant(store, roles["rita"], actor="test")
    assert isinstance(erasing.by_owner(who("rita"), [item.id], BASIS, NOW), Erased)


def shown(store: Store, content: str) -> Examined:
    """A claim on its way to the writer, which will wait for its owner, with what is similar to it."""
    one = examined(content, source=Source.AI_SYNTHESIS).comparing()
    assert one.known is not None
    with store.read() as connection:
        found = contradicting.look_up(connection, "ann", content, "fact", one.known, now=NOW, show=True)
    assert found.similar
    return replace(one, looked_up=found, similar=found.similar)


def test_what_was_shown_to_a_claim_under_way_is_not_written_again(store: Store, tmp_path: Path) -> None:
    erasing = Erasing(store, policy(), path=tmp_path / "list.jsonl")
    store.save_policy(policy(), NOW)
    like = "In winter the lower harbour is closed at night and every boat of the fishermen lies in the inner basin, {}"
    gone = stored(store, like.format(f"where {MARK} keeps a lamp"))
    stays = stored(store, like.format("beside the long green wall"))
    asked = store.writer.submit(
        submission_of(shown(store, like.format("with ropes of hemp and tar")))
    ).result()
    assert isinstance(asked, Decided)
    item = queue_of(store).get_by_id(RITA, str(asked.answer.queue_id))
    assert item is not None
    one = shown(store, like.format("under tarpaulins until spring"))
    near = Paraphrase(kind=ItemKind.MEMORY, id=gone.id, content=gone.content, cosine=0.99)
    one = one.knowing(paraphrases=Paraphrases(model="m", items=(near,)))

    async def examine(claim: Claim, *, fresh: bool = False) -> Examined:
        """Sources that take their time, in which the memory is erased."""
        assert isinstance(erasing.by_owner(RITA, [gone.id], BASIS, NOW), Erased)
        return examined(claim.content, source=Source.AI_SYNTHESIS)

    with bench(store, tmp_path, examine=examine) as made:
        send_back(queue_of(store), RITA, item.id, version=1, question="Who says so?", now=NOW)
        with store.read() as connection:
            then = acts.stored_answer(connection, item)
        assert "Quambo" in then.model_dump_json()
        content = like.format("with chains of iron and rust")
        claim = then.evidence.claim.model_copy(update={"content": content})
        answered = asyncio.run(made.rechecker.answer(item, then, claim, by="agent-1", key=None))
    assert isinstance(answered, Answered)
    sent = store.writer.submit(submission_of(one)).result()
    assert isinstance(sent, Decided)
    assert "Quambo" not in answered.text + sent.json
    assert stays.content in answered.text
    assert stays.content in sent.json
    assert "Quambo" not in str(everything(store))
    assert walked(store) == []


def test_a_claim_that_rests_on_a_record_which_was_erased_meanwhile_is_not_kept(
    store: Store, tmp_path: Path
) -> None:
    erasing = Erasing(store, policy(), path=tmp_path / "list.jsonl")
    store.save_policy(policy(), NOW)
    said = f"I am {MARK}, and I like tea."
    none = dict.fromkeys(("conversation", "said_at", "idempotency_key"))
    row = {"owner_id": "ann", "submitted_by": "host", "kind": "turn", "who": "ann", "masked": False, **none}
    work = partial(records.add, sent=row | {"text": said}, limits=RecordsPolicy(), now=NOW)
    kept = store.writer.run(["ann"], work).result()
    assert isinstance(kept, tuple)
    cited = parse_citation(f"record:{kept[0]['id']}")
    read = replace_text(page(), said).model_copy(update={"citation": cited, "source_id": cited.key})
    one = replace(examined("Ann likes tea.", source=Source.AI_SYNTHESIS), readings=(read,))
    assert isinstance(erasing.by_owner(RITA, [kept[0]["id"]], BASIS, NOW), Erased)
    other = submission_of(examined("The harbour master sleeps aboard.", source=Source.AI_SYNTHESIS))
    sent = store.writer.submit(submission_of(one)), store.writer.submit(other)
    with pytest.raises(SourceErased):
        sent[0].result()
    assert isinstance(sent[1].result(), Decided)
    assert "Quambo" not in str(everything(store))
    assert len(everything(store)["source_text"]) == 0
    assert walked(store) == []


def replace_text(found: Found, text: str) -> Found:
    packed = pack(text)
    return found.model_copy(
        update={"text": text, "excerpt": text, "text_digest": packed.digest, "packed": (packed,)}
    )


@pytest.mark.on("sqlite")
def test_a_restored_database_is_erased_again(store: Store, database_url: str, tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    erasing = Erasing(store, policy(), path=path)
    memory_id, item_id = lived(store)
    file, backup = Path(database_url.removeprefix("sqlite:///")), tmp_path / "backup"
    with sqlite3.connect(file) as source, sqlite3.connect(backup) as copy:
        source.backup(copy)
    assert isinstance(erasing.by_owner(RITA, [item_id], BASIS, NOW), Erased)
    again = Store.open(f"sqlite:///{backup}", threshold=policy().threshold)
    try:
        settings = Settings(database_url=f"sqlite:///{backup}", erasures=path, offline=True)
        with open_service(settings) as service:  # a start does it before it answers
            assert service.erasing.again(NOW + DAY) == 0
        restored = Erasing(again, policy(), path=path)
        assert restored.again(NOW + DAY) == 0
        assert "Quambo" not in str({**everything(again), "delivery": []})
        assert walked(again) == []
        with again.read() as connection:
            stone = tombstones.find(connection, memory_id, owners=None)
        assert stone is not None
        assert (stone.basis, stone.by) == (BASIS, RITA.id)
        path.write_text(path.read_text() + "{torn")
        with pytest.raises(Exception, match="line 2"):
            restored.again(NOW)
    finally:
        again.close()


@pytest.mark.on("sqlite")
def test_what_read_only_refuses_is_not_listed_and_what_is_listed_waits_for_it_to_end(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "list.jsonl"
    item = waiting(store, SECRET)

    def switch(mode: Mode) -> None:
        one = ModeSwitch(owner_id="ann", agent="", mode=mode, reason="moving", by="operator", since=NOW)
        store.writer.run(["ann"], lambda connection: modes.put(connection, one), always=True).result()

    for owner_id in ("ann", "bob"):
        one = examined(f"The pier of {owner_id} may be long.", owner_id=owner_id, speculates=True)
        store.writer.submit(submission_of(one)).result()
    switch(Mode.READ_ONLY)
    stop = ModeSwitch(owner_id="ann", agent="", stopped=True, reason="a leak", by="operator", since=NOW)
    store.writer.run(["ann"], lambda connection: modes.put(connection, stop), always=True).result()
    blocked = Policy.model_validate(policy().model_dump() | {"retention": {"blocked_days": 7}})
    assert Erasing(store, blocked).retain(NOW + 40 * DAY) == {
        "blocked claims": 1
    }  # of bob, who is not held up
    with pytest.raises(ReadOnly):
        Erasing(store, policy(), path=path).by_owner(RITA, [item.id], BASIS, NOW)
    assert not path.exists()
    # As of one that was killed after it came on the list.
    listed.add(
        path, Listed(erasure_id="era_1", owner_id="ann", ids=(item.id,), basis=BASIS, by=RITA.id, at=NOW)
    )
    settings = Settings(database_url=database_url, erasures=path, offline=True)
    with open_service(settings) as service:
        (waits,) = (each for each in service.problems() if "erasure" in each)
        assert waits == "1 erasure waits: nothing is written for the owner at the moment."
        switch(Mode.ENFORCE)
        assert Erasing(store, blocked).retain(NOW + 40 * DAY) == {"blocked claims": 1}
        service.erasing.again_if_waiting(NOW)
        assert service.erasing.problems() == ()
    assert "Quambo" not in str(everything(store))


@pytest.mark.on("sqlite")
def test_what_a_standing_ruling_in_force_has_the_words_of_is_not_erased(store: Store, tmp_path: Path) -> None:
    erasing, book = Erasing(store, policy(), path=tmp_path / "list.jsonl"), StandingRulings(store, policy())
    go = Event()
    item, other = (
        waiting(store, "Ole in room 4 has the flu."),
        waiting(store, "The pier is long.", owner_id="bob"),
    )
    draft = RulingDraft.model_validate(
        {"verdict": "reject", "terms": {"template": template_of(item.content)}}
    )
    confirm = partial(book.confirm, RITA, "ann", draft, name="rooms", days=30, now=NOW)
    for unknown in (other.id, f"rev_{'0' * 32}", "nothing"):
        refused = confirm(item_id=unknown)
        assert isinstance(refused, RulingRefused)
        assert refused.code == "unknown_item"
    held = store.writer.run((), lambda connection: go.wait(60))
    until(held.running)
    with ThreadPoolExecutor(2) as threads:  # confirmed after the erasure was planned
        confirmed = threads.submit(confirm)
        until(lambda: len(store.writer._waiting) == 1)
        erased = threads.submit(erasing.by_owner, RITA, [item.id], BASIS, NOW)
        until(lambda: len(store.writer._waiting) == 2)
        go.set()
        made, answer = confirmed.result(), erased.result()
    assert isinstance(made, StandingRuling)
    assert isinstance(answer, EraseRefused)
    assert (answer.code, made.id in answer.message) == ("standing_ruling", True)
    assert isinstance(erasing.by_owner(RITA, [item.id], BASIS, NOW), EraseRefused)
    assert isinstance(take_back(book, RITA, made.id, Then.KEEP, NOW), RulingEnded)
    assert isinstance(erasing.by_owner(RITA, [item.id], BASIS, NOW), Erased)


@pytest.mark.on("sqlite")
def test_a_standing_ruling_is_taken_back_without_what_was_erased_and_what_waits_again_is_kept(
    store: Store,
) -> None:
    """Of what it rejected, which retention erases after a time, as what was blocked."""
    store.save_policy(policy(), NOW)
    book, first = StandingRulings(store, policy()), waiting(store, "Ole in room 4 has the flu.")
    draft = RulingDraft.model_validate(
        {"verdict": "reject", "terms": {"template": template_of(first.content)}}
    )
    ruling = book.confirm(RITA, "ann", draft, name="rooms", days=30, now=NOW)
    assert isinstance(ruling, StandingRuling)
    over = Policy.model_validate(policy().model_dump() | {"retention": {"blocked_days": 2}})
    for number, days in ((5, 0), (6, 2)):
        said = examined(
            f"Ole in room {number} has the flu.", source=Source.AI_SYNTHESIS, now=NOW + days * DAY
        )
        sent = store.writer.submit(submission_of(said)).result()
        assert isinstance(sent, Decided)
        assert sent.answer.rule == "standing_ruling"
    assert Erasing(store, over).retain(NOW + 3 * DAY) == {"blocked claims": 1}
    ended = take_back(book, RITA, ruling.id, Then.QUEUE, NOW + 3 * DAY)
    assert ended == RulingEnded(queued=1, retracted=0, left=0, full=False)
    assert Erasing(store, over).retain(NOW + 5 * DAY) == {"blocked claims": 1}
    waits = queue_of(store).search(RITA, QueueFilter())
    assert {one.content for one in waits} == {first.content, "Ole in room 6 has the flu."}
    assert walked(store) == []


@pytest.mark.parametrize("verdict", ["reject", "store"])
def test_words_in_the_template_of_a_ruling_that_ended_go_too(
    store: Store, tmp_path: Path, verdict: str
) -> None:
    erasing, book = Erasing(store, policy(), path=tmp_path / "list.jsonl"), StandingRulings(store, policy())
    store.save_policy(policy(), NOW)
    item, made = waiting(store, "Quambo97531 sleeps in room 5 of the mill."), list[StandingRuling]()
    for template in ("quambo97531 sleeps in room * of the mill", "rita sleeps in room * of the mill"):
        terms = {"agent": "agent-1", "template": template}
        draft = RulingDraft.model_validate({"verdict": verdict, "terms": terms})
        ruling = book.confirm(RITA, "ann", draft, name=template, days=30, now=NOW)
        assert isinstance(ruling, StandingRuling)
        assert isinstance(take_back(book, RITA, ruling.id, Then.KEEP, NOW), RulingEnded)
        made.append(ruling)
    assert isinstance(erasing.by_owner(RITA, [item.id], BASIS, NOW), Erased)
    assert "quambo" not in str(everything(store)).lower()
    shown = {one.id: one.name for one, _ in book.listing(RITA)}
    assert shown == {made[0].id: "erased", made[1].id: "rita sleeps in room * of the mill"}
    assert walked(store) == []
    emptied = {"name": "erased", "terms": {"agent": "erased"}}  # as nobody's erasure says
    other = update(RULING).where(RULING.c.id == made[1].id).values(**emptied)
    store.writer.run((), partial(Connection.execute, statement=other)).result()
    assert made[1].id in str(walked(store))


def test_of_several_who_erase_the_same_at_once_one_does(store: Store, tmp_path: Path) -> None:
    path, go = tmp_path / "list.jsonl", Event()
    erasing, item = Erasing(store, policy(), path=path), waiting(store, SECRET)
    held = store.writer.run((), lambda connection: go.wait(60))
    until(held.running)
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(erasing.by_owner, RITA, [item.id], BASIS, NOW) for _ in range(3)]
        until(lambda: len(store.writer._waiting) == 3)
        go.set()
        answers = [each.result() for each in asked]
    assert sorted(type(each).__name__ for each in answers) == ["Erased", "ErasedBefore", "ErasedBefore"]
    (done,) = (each for each in answers if isinstance(each, Erased))
    assert [each.erasure_id for each in listed.read(path)] == [done.erasure_id]
    assert done.erasure_id in {entry.subject_id for entry in history(store)}


@pytest.mark.on("sqlite")
def test_the_commands(
    store: Store, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory_id, item_id = lived(store)
    near = waiting(store, NEAR.format("anybody here"))
    database = ("--database-url", database_url)
    erase = ("memory", "erase", memory_id, "--basis", BASIS, "--owner", "ann", *database)

    def told(*arguments: str, status: int = 0) -> str:
        assert run(arguments) == status
        said = capsys.readouterr()
        return said.err if status else said.out

    assert "--again" in told("memory", "erase", *database, status=2)
    assert "no list" in told("memory", "erase", "--again", str(tmp_path / "none"), *database, status=2)
    assert "one owner must have" not in told(*erase[:-4], "--owner", "bob", *database, status=1)
    assert "'ann' does not have" in told(*erase[:2], "mem_0", *erase[3:], status=1)
    assert told(*erase, "--dry-run").startswith("Would go: memories 1, items 1, decisions 2, ")
    assert "say --yes" in told(*erase, status=2)
    assert "Gone: memories 1" in told(*erase, "--yes")
    assert "nothing is left" in told(*erase, "--yes", status=1)
    assert listed.read(Path(f"{database_url.removeprefix('sqlite:///')}.erasures.jsonl"))[0].by == "operator"
    every = told("replay", "--all", *database)
    assert "0 not." in every
    assert "others was: 3" in every
    for decision_id in (f"dec_{item_id[4:]}", near.decision_id):
        assert "others was: 1" in told("replay", decision_id, *database)
    assert "no differences" in told("log", "verify", "--data", *database)
    assert "written over" in told("db", "scrub", *database)
    assert "source texts" in told("retention", "run", "--dry-run", *database)
    assert told(
        "memory", "erase", "--again", f"{database_url.removeprefix('sqlite:///')}.erasures.jsonl", *database
    ) == ("Erased again: 0.\n")


def test_retention_erases_what_is_over_its_time(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub, "_WAIT_SECONDS", 0.1)
    keeps = Policy.model_validate(
        policy().model_dump() | {"retention": {"rejected_days": 30, "blocked_days": 7, "idempotency_days": 3}}
    )
    store.save_policy(policy(), NOW)
    for number in range(3):
        item = waiting(store, f"{MARK} room {number} is empty.")
        gone = queue_of(store).reject(RITA, item.id, version=1, reason=f"no, {MARK}", now=NOW)
        assert isinstance(gone, Rejected)
    store.writer.submit(submission_of(examined(f"{MARK} may be ill.", speculates=True), key="k")).result()
    free = examined("The harbour master sleeps aboard.", owner_id="bob")
    assert isinstance(store.writer.submit(submission_of(free, key="k2")).result(), Decided)
    erasing = Erasing(store, keeps)
    assert erasing.expiring(NOW + DAY) == {
        "rejected claims": 0,
        "blocked claims": 0,
        "idempotency keys": 0,
        "source texts": 0,
        "documents": 0,
        "records": 0,
    }
    over = {"rejected claims": 3, "blocked claims": 1, "idempotency keys": 2}
    assert over.items() <= erasing.expiring(NOW + 40 * DAY).items()
    assert Erasing(store, policy()).retain(NOW + 40 * DAY) == {}
    assert erasing.retain(NOW + 40 * DAY) == over | {"idempotency keys": 1}  # the other went with its claim
    assert erasing.retain(NOW + 40 * DAY) == {}
    assert "Quambo" not in str(everything(store))
    assert [entry.action for entry in history(store)].count(Action.MEMORY_ERASED) == 2
    assert history(store, "bob")[-1].action == "claim.stored"
    assert free.claim.content in str(everything(store))
    assert walked(store) == []
    with store.read() as connection:
        assert scrub.due_since(connection) is not None
        assert scrub.may_now(connection, NOW)
        assert count(connection, "idempotency") == 0
        if store.dialect == "sqlite":
            assert erasing.scrub_if_due(NOW), "somebody reads what was"
    assert not erasing.scrub_if_due(NOW)
    assert listed.read(tmp_path / "nothing") == []


def test_a_database_that_went_away_has_its_free_pages_written_over_later(postgresql: Postgresql) -> None:
    postgresql.run("CREATE DATABASE went_away")
    engine = open_engine(postgresql.url("went_away"))
    postgresql.run("DROP DATABASE went_away WITH (FORCE)")
    with pytest.raises(StoreBusy, match="tried again"):
        scrub.scrub(engine)
    engine.dispose()


def test_a_line_of_the_list_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "list"
    first, second, third = (
        Listed(erasure_id=f"ers_{n}", owner_id="ann", ids=("mem_1",), basis=BASIS, by=RITA.id, at=NOW)
        for n in range(3)
    )
    listed.add(path, first)
    before, most = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, most[1]))
    try:  # room for a part of the line: the system writes that, and says how much
        with pytest.raises(StorageError, match="nothing is erased"):
            listed.add(path, second)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert path.read_bytes() == before
    path.write_bytes(before[:-1])  # as an editor leaves it, or a power cut
    listed.add(path, third)
    assert listed.read(path) == [first, third]
