"""What lies in the tables is held against the log: a history of every kind of act agrees with it, and no way of
altering it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, text, update

from tests import delivering
from tests.claims import NOW, examined, policy, submission_of
from tests.conftest import THRESHOLD
from tests.rechecking import Bench, bench
from tests.reviews import queue_of, reviewer, stored, waiting
from vouchgate.gate import deliveries as delivery_acts
from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.delivery import DeliveryOp
from vouchgate.ingest.claims.modes import Mode, ModeSwitch
from vouchgate.ingest.claims.people import Membership, Person, Principal, Role
from vouchgate.ingest.claims.standing_rulings import RulingDraft
from vouchgate.ingest.claims.trust import Trust
from vouchgate.ingest.claims.waiting import PendingMemory, SpotVerdict
from vouchgate.ingest.policy import Policy, RecordsPolicy
from vouchgate.ingest.support.texts import digest_of
from vouchgate.ingest.transparency.note import make_signing_key
from vouchgate.review.answers import Approved, Rejected, Removed, Retracted, Undone
from vouchgate.review.attending import attention
from vouchgate.review.ending.erasing import Erased, Erasing
from vouchgate.review.queue import ReviewQueue
from vouchgate.review.trust import modes, publishers, spot_checks, taking_back
from vouchgate.review.trust.standing_rulings import StandingRulings
from vouchgate.review.trust.taking_back import Then
from vouchgate.review.vouching import confirming
from vouchgate.review.vouching.owner_rules import parse
from vouchgate.storage.claims import records, source_texts
from vouchgate.storage.claims.submit import Decided
from vouchgate.storage.engine import writing
from vouchgate.storage.identity import identities, memberships, persons, sessions, tokens
from vouchgate.storage.log import chain, keys
from vouchgate.storage.log.data.differences import Difference
from vouchgate.storage.log.data.walk import Walk
from vouchgate.storage.outgoing import mail, webhooks
from vouchgate.storage.outgoing.mail_schedule import MailSchedule
from vouchgate.storage.store import Store

RITA, DAY = reviewer(), timedelta(days=1)
DRAWING = Policy.model_validate(policy().model_dump() | {"spot_checks": {"rate": 1.0}})
RULES = "* 2\n"
ISSUER = "https://login.example.org"


def ruled(store: Store, words: str, how: str, **more: Any) -> PendingMemory:
    """A claim that waited, and what Rita did with it."""
    item, queue = waiting(store, words), queue_of(store)
    seen: dict[str, Any] = {"version": item.version, "now": NOW}
    if how == "approve":
        assert isinstance(queue.approve(RITA, item.id, **seen, **more), Approved)
    elif how == "reject":
        assert isinstance(queue.reject(RITA, item.id, **seen, **more), Rejected)
    return item


def attended(store: Store) -> None:
    """What is said of items while they wait."""
    queue = queue_of(store)
    away, asked, given, back = (
        waiting(store, f"The {thing} is oak.") for thing in ("door", "desk", "sill", "gate")
    )
    attention.snooze(queue, RITA, away.id, until=NOW + DAY, now=NOW)
    attention.send_back(queue, RITA, asked.id, version=1, question="Which page says so?", now=NOW)
    attention.assign(queue, RITA, given.id, to="me", now=NOW)
    attention.let_go(queue, RITA, [waiting(store, f"Lamp {n} hums at night in room r{n}r.") for n in range(3)],
                     reason="nobody knows", now=NOW)  # fmt: skip
    attention.snooze(queue, RITA, back.id, until=NOW + DAY, now=NOW)
    attention.resume(queue, RITA, back.id, now=NOW)


def reviewed(store: Store) -> None:
    """Every way in which a wait ends, and what may become of memories."""
    queue = queue_of(store)
    ruled(store, "The kiln is fired on Fridays.", "approve", note="I set it up.")
    edit = examined("The mill is shut on Mondays.", source=Source.AI_SYNTHESIS)
    ruled(store, "The mill is shut.", "approve", note="said exactly", edited=edit)
    ruled(store, "The pond is deep.", "reject", reason="It is not.")
    taken = ruled(store, "The shed is locked.", "approve", note="yes")
    assert isinstance(queue.undo(RITA, taken.id, version=2, now=NOW), Undone)
    old = stored(store, gateway(8443))
    item = waiting(store, gateway(9443))
    assert isinstance(queue.approve(RITA, item.id, version=1, supersede=True, now=NOW), Approved)
    gone = stored(store, "The harbour master sleeps aboard.")
    assert isinstance(queue.retract(RITA, gone.id, reason="He moved.", now=NOW), Retracted)
    held = stored(store, "The crane lifts nine tons.")
    confirming.confirm(store, RITA, held.id, policy(), NOW)
    ends = stored(store, "The fair is on.", validity_horizon=NOW + timedelta(hours=1))
    assert queue.expire_memories(NOW + DAY) == 1
    waiting(store, "The raft is new.", now=NOW - 300 * DAY)
    assert queue.expire(NOW - DAY) == 1
    assert old.id != ends.id


def gateway(port: int) -> str:
    """Two of these are in conflict."""
    return (
        "After the spring migration every internal gateway of our billing platform accepts encrypted traffic"
        f" only on port {port} and forwards anything else to a quiet host that logs it for later study"
    )


def checked(here: Bench) -> None:
    """What rests on a repository: stored, promoted, stale."""
    first, second = here.houses(2)
    assert here.send(first).memory_id is not None
    here.hide()
    assert here.send(second).queue_id is not None
    here.show()
    assert here.work(NOW + timedelta(hours=2)).promoted == 1
    here.adr("Superseded by ADR-0002")
    here.work(NOW + 20 * DAY)


def owned(store: Store) -> None:
    """What an owner says beside the queue, and whom others are told."""
    for publisher, trust in (("good.example", Trust.TRUSTED), ("bad.example", Trust.BANNED)):
        publishers.decide(store, RITA, "ann", publisher, trust, days=30, policy=policy(), now=NOW)
    one = examined("The drawn lamp is red.", under=DRAWING)
    drawn = store.writer.submit(submission_of(one)).result()
    assert isinstance(drawn, Decided)
    spot_checks.answer(store, RITA, str(drawn.answer.memory_id), SpotVerdict.RIGHT, NOW, policy=DRAWING)
    book = StandingRulings(store, policy())
    made = []
    for verdict, kind in (("store", "room"), ("reject", "cellar")):
        terms = {"agent": "agent-1", "template": f"{kind} * belongs to the team *"}
        draft = RulingDraft.model_validate({"verdict": verdict, "terms": terms})
        made.append(book.confirm(RITA, "ann", draft, name=kind, days=30, now=NOW))
        done = store.writer.submit(
            submission_of(examined(f"{kind.title()} 7 belongs to the team T9.", source=Source.AI_SYNTHESIS))
        ).result()
        assert isinstance(done, Decided)
        assert done.answer.rule == "standing_ruling"
    taking_back.take_back(book, RITA, made[1].id, Then.QUEUE, NOW + DAY)  # type: ignore[union-attr]
    webhooks.create(store, owner_id="ann", url="https://hooks.example/a", actor="operator", now=NOW)
    told = {webhooks.Event.MEMORY_STORED}
    webhooks.create(
        store, owner_id="ann", url="https://hooks.example/b", events=told, actor="operator", now=NOW
    )
    for number in range(3):
        delivering.put(store, number)
    handed = delivering.take(store)
    assert isinstance(handed, list)
    dead = delivering.fail(store, handed[0], final=True)
    assert dead is not None
    delivery_acts.drop(store, delivering.ANN, dead.id, actor="operator", now=NOW)
    asks = delivering.ask(store, "Crate 1 is to go.", "row 1", op=DeliveryOp.REMOVE)
    later = NOW + timedelta(hours=1)
    assert isinstance(queue_of(store).approve(RITA, asks, version=1, now=later), Removed)


def switched(store: Store) -> None:
    """What was put in force, what a gate that observes lets through, and who is stopped."""
    store.put_in_force(policy(), None, NOW)
    store.put_in_force(DRAWING, RULES, NOW + DAY)
    for on in (Mode.OBSERVE, Mode.ENFORCE):
        modes.switch(store, ModeSwitch(owner_id="ann", agent="", mode=on, reason="trial", by="op", since=NOW))
        if on is Mode.OBSERVE:
            through = submission_of(examined("The cellar has nine vats.", source=Source.AI_SYNTHESIS))
            made = store.writer.submit(through).result()
            assert isinstance(made, Decided)
            assert made.answer.held is False
    for owner_id, stopped in (("ann", False), ("", True)):
        stop = ModeSwitch(owner_id=owner_id, agent="x", stopped=stopped, reason="no", by="op", since=NOW)
        modes.switch(store, stop)


def erased(store: Store, directory: Path) -> None:
    """What was erased, of which another decision had shown something."""
    words = gateway(7443).replace("spring", "autumn").replace("billing", "kitchen")
    memory = stored(store, words)
    waiting(store, words.replace("7443", "7444"))
    done = Erasing(store, policy(), path=directory / "list").by_owner(RITA, [memory.id], "Art. 17", NOW)
    assert isinstance(done, Erased)
    assert done.counts["decisions on other claims that showed it"] == 1


def recorded(store: Store, directory: Path) -> None:
    """A record that is kept, one whose time is over, and one that was erased."""
    none = dict.fromkeys(("conversation", "said_at", "idempotency_key"))
    sent = {"owner_id": "ann", "submitted_by": "host", "kind": "turn", "who": "ann", "masked": False, **none}
    made = []
    for drink, days in (("tea", 3650), ("milk", 1), ("gin", 3650)):
        row = sent | {"text": f"I like {drink}."}
        work = partial(records.add, sent=row, limits=RecordsPolicy(days=days), now=NOW)
        kept = store.writer.run(["ann"], work).result()
        assert isinstance(kept, tuple)
        made.append(kept[0]["id"])
        decided = {
            "digest": digest_of(f"I like {drink}."),
            "body": b"",
            "kept_until": NOW + 400 * DAY,
            "renewed_from": NOW,
        }
        store.writer.run(["ann"], partial(source_texts.write, rows=[{"owner_id": "ann", **decided}])).result()
    assert queue_of(store).forget(records, NOW + 2 * DAY) == 1
    with store.read() as connection:
        left = set(connection.scalars(select(source_texts.TABLE.c.digest)))
    forgotten = {digest_of(f"I like {drink}.") for drink in ("tea", "milk", "gin")} - left
    assert forgotten == {digest_of("I like milk.")}, "what decisions kept of its text goes with it"
    done = Erasing(store, policy(), path=directory / "list").by_owner(RITA, [made[2]], "Art. 17", NOW + DAY)
    assert isinstance(done, Erased)


def others(store: Store, bea: Person, cleo: Person) -> None:
    """What people sign in with elsewhere, who gets mail, and who stands in for whom."""
    for sub in ("bea-7", "bea-8"):
        identities.link(store, bea, ISSUER, sub, actor="operator", now=NOW)
    identities.unlink(store, ISSUER, "bea-8", actor="operator", now=NOW)
    for address in ("bea@example.org", "old@example.org"):
        schedule = MailSchedule(hours=(8,))
        added = mail.create(store, address=address, person="bea", owner_ids=(), schedule=schedule,
                            actor="operator", now=NOW)  # fmt: skip
    mail.remove(store, added.id, actor="operator", now=NOW)
    own = [Membership(owner_id="ann", member_id=one.id, role=Role.REVIEWER, since=NOW) for one in (bea, cleo)]
    for each in own:
        memberships.grant(store, each, actor="operator")
    until = {"acts_for": bea.id, "until": NOW + 7 * DAY}
    first = own[1].model_copy(update=until)
    for stands in (first, first.model_copy(update={"until": NOW + 8 * DAY})):  # the one in place of the other
        memberships.let_stand_in(store, stands, actor="operator")
    back = own[0].model_copy(update=until | {"acts_for": cleo.id})
    memberships.let_stand_in(store, back, actor="operator")
    memberships.end(store, back, actor="operator", now=NOW)


def people(store: Store) -> None:
    """Who may call; and an item that two people approve, one that somebody objects to."""
    for name in ("log.example/a", "log.example/b"):
        keys.add(store, make_signing_key(name).key, actor="operator", now=NOW)
    with store.read() as connection:
        ended = keys.known(connection)[0].id
    keys.retire(store, ended, actor="operator", now=NOW)
    bea, cleo = (persons.create(store, name, actor="operator", now=NOW) for name in ("bea", "cleo"))
    token = {"owners": ["acme"], "actor": "operator", "now": NOW}
    first, _ = tokens.create(store, role=Role.REVIEWER, name="b", person=bea.id, **token)  # type: ignore[arg-type]
    second, _ = tokens.create(store, role=Role.REVIEWER, name="c", person=cleo.id, **token)  # type: ignore[arg-type]
    agent, _ = tokens.create(store, role=Role.AGENT, name="loader", expires_at=NOW + DAY, **token)  # type: ignore[arg-type]
    gone, _ = tokens.create(store, role=Role.AUDITOR, name="old", **token)  # type: ignore[arg-type]
    tokens.revoke(store, gone.id, actor="operator", now=NOW)
    end = Membership(owner_id="acme", member_id=agent.id, role=Role.AGENT, since=NOW)
    memberships.end(store, end, actor="operator", now=NOW)
    sessions.redeem(store, sessions.create_link(store, first.id, actor="operator", now=NOW), now=NOW)
    sessions.create_link(store, second.id, actor="operator", now=NOW)
    ends = persons.create(store, "dora", actor="operator", now=NOW)
    tokens.create(store, role=Role.REVIEWER, name="d", person=ends.id, **token)  # type: ignore[arg-type]
    persons.end(store, ends, actor="operator", now=NOW + DAY)
    others(store, bea, cleo)
    rules, _ = parse(RULES)
    queue = ReviewQueue(store, policy(), rules)
    for number, words in enumerate(("The quay is long.", "The mole is short.")):
        item = waiting(store, words, owner_id="acme")
        who: Principal
        for who in (first, second):
            if number and who is second:
                queue.reject(who, item.id, version=1, reason="Measured it.", now=NOW)
            else:
                queue.approve(who, item.id, version=1, note="seen", now=NOW)


@pytest.fixture(scope="module")
def lived(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with a history of every kind of act."""
    store = Store.open(module_database_url, threshold=THRESHOLD)
    for one in (policy(), DRAWING):
        store.save_policy(one, NOW)
    for made in (reviewed, attended, owned, people, switched):
        made(store)
    erased(store, tmp_path_factory.mktemp("erasures"))
    recorded(store, tmp_path_factory.mktemp("erased"))
    with bench(store, tmp_path_factory.mktemp("repository")) as here:
        checked(here)
    yield store
    store.close()


def differences(connection: Connection) -> Iterator[Difference]:
    """What the walk finds in this transaction, as far as it is asked."""

    @contextmanager
    def read() -> Iterator[Connection]:
        yield connection

    yield from Walk(read).differences()


def test_what_happened_agrees_with_the_log(lived: Store) -> None:
    walk = Walk(lived.read)
    assert list(walk.differences()) == []
    with lived.read() as connection:
        assert chain.verify(connection) == []
        entries = connection.scalar(text("SELECT count(*) FROM log_entry"))
        actions = set(connection.scalars(text("SELECT DISTINCT action FROM log_entry")))
    assert walk.seen > 2 * (entries or 0)
    assert {
        "claim.promoted",
        "memory.stale",
        "memory.superseded",
        "review.undone",
        "delivery.dropped",
    } <= actions


@dataclass(frozen=True)
class Tampering:
    """One way of altering a row: `key` finds it, `does` is run with it, and the difference names it so."""

    name: str
    key: str
    does: str
    kind: str
    table: str
    column: str = ""


def of(
    table: str, what: str, where: str, column: str, *, key: str = "id", kind: str = "altered"
) -> Tampering:
    """A column set to something else."""
    first = f"SELECT min({key}) FROM {table} WHERE {where}"  # noqa: S608
    does = f"UPDATE {table} SET {what} WHERE {key} = :key AND {where}"  # noqa: S608
    return Tampering(f"{table}: {what}"[:60], first, does, kind, table, column)


def gone(table: str, where: str = "1 = 1", *, key: str = "id", found_in: str | None = None) -> Tampering:
    """A row deleted."""
    first = f"SELECT min({key}) FROM {table} WHERE {where}"  # noqa: S608
    does = f"DELETE FROM {table} WHERE {key} = :key"  # noqa: S608
    return Tampering(f"{table} deleted, {where}"[:60], first, does, "missing", found_in or table)


def copied(table: str, columns: str, **changed: str) -> Tampering:
    """A row that nobody made, like one that is there."""
    names = ["id" if name == "id" else name for name in columns.split()]
    values = [changed.get(name, name) for name in names]
    there = " WHERE status <> 'erased'" if table == "memory" else ""
    first = f"SELECT min({changed.get('by', 'id')}) FROM {table}{there}"  # noqa: S608
    does = f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} FROM {table} WHERE id = :key"  # noqa: S608
    return Tampering(f"{table} inserted", first, does, "extra", table)


MEMORY = (
    "owner_id id memory_type content source status confidence confidence_score label source_id created_at "
    "validity_horizon decision_id approved_by details"
)
DECISION = "owner_id id created_at principal_id tier rule policy_digest answer"
PENDING = (
    "owner_id id memory_type content source reason status version seen created_at expires_at decision_id "
    "submitted_by rule priority_at lane details"
)
TOKEN = "id name role any_owner new_owners person_id sources secret_digest created_at expires_at"
LATE = "'2027-01-01 00:00:00.000000'"
JOINS = (
    "INSERT INTO membership (member_id, role, owner_id, acts_for, since) "
    "VALUES (:key, 'agent', '{}', '', '2026-05-04 12:30:15.250000')"
)
IN_FORCE = "state = 'waiting' AND place = 'row 2' AND sink = 'shelf'"
SHOWED = 'answer LIKE \'%"content":""%\' AND id NOT IN (SELECT item_id FROM erased)'
RESTED_ON = "digest IN (SELECT policy_digest FROM decision WHERE answer <> '') AND document LIKE '%0.92%'"
RECORD = "owner_id id kind said_at created_at kept_until submitted_by digest salt who text masked"
KINDS = [
    of("record", "text = 'I like mud.'", "text <> ''", "text"),
    of("record", "who = 'bob'", "text <> ''", "who"),
    of("record", "kind = 'tool_output'", "text <> ''", "kind"),
    of("record", "kept_until = created_at", "text <> ''", "kept_until"),
    of("record", "text = '', who = '', salt = NULL", "text <> ''", "text"),
    of("record", "text = 'I like mud.'", "text = '' AND id NOT IN (SELECT item_id FROM erased)", "text"),
    of("record", "conversation = 'mud'", "text = '' AND id NOT IN (SELECT item_id FROM erased)", "text"),
    of("record", "text = 'I like mud.'", "text = '' AND id IN (SELECT item_id FROM erased)", "text"),
    gone("record"),
    copied("record", RECORD, id="'rec_ffff'"),
    of("memory", "content = '', status = 'erased', details = '{}'", "status = 'active'", "content"),
    of("memory", "content = 'It is back.'", "status = 'erased'", "content"),
    of("decision", "answer = ''", "answer <> ''", "answer"),
    of("decision", "answer = '{}'", "answer = ''", "answer"),
    of("decision", "answer = REPLACE(answer, 'autumn', 'winter')", SHOWED, "answer"),
    of("erased", "basis = 'because'", "1 = 1", "basis", key="erasure_id"),
    of("erased", "at = '2026-05-05 12:30:15.250000'", "1 = 1", "at", key="item_id"),
    Tampering(
        "a tombstone taken away",
        "SELECT min(erasure_id) FROM erased",
        "DELETE FROM erased WHERE erasure_id = :key AND item_id LIKE 'dec%'",
        "altered",
        "erased",
        "item_id",
    ),
    gone("erased", key="erasure_id"),
    Tampering(
        "a memory emptied with a tombstone of its own",
        "SELECT min(id) FROM memory WHERE status = 'active'",
        "INSERT INTO erased (owner_id, item_id, erasure_id, at, \"by\", basis) SELECT owner_id, :key, 'ers_ffff', "
        'at, "by", basis FROM erased LIMIT 1',
        "extra",
        "erased",
    ),
    of("log_entry", "salt = NULL", "subject_id LIKE 'ers_%'", "salt", key="seq"),
    of("log_entry", "salt = NULL", "owner_id = 'ann'", "salt", key="seq"),
    of("log_entry", "salt = NULL", "owner_id = '' AND action = 'token.created'", "salt", key="seq"),
    # the findings of an audit
    of(
        "memory",
        "content = 'The kiln is fired daily.'",
        "approved_by IS NOT NULL AND status = 'active'",
        "content",
    ),
    of(
        "decision",
        "answer = replace(answer, 'port 8080', 'port 9090')",
        'answer LIKE \'%"excerpt":"%\'',
        "answer",
    ),
    of(
        "memory",
        "approved_by = 'reviewer-mallory'",
        "approved_by IS NOT NULL AND status = 'active'",
        "approved_by",
    ),
    of("pending", "decided_by = 'reviewer-mallory'", "status = 'approved'", "decided_by"),
    of("pending", "note = 'I never saw it.'", "status = 'approved' AND note IS NOT NULL", "note"),
    of("pending", "note = 'It is so.'", "status = 'rejected'", "note"),
    of("pending", "note = 'everybody knows'", "status = 'let_go'", "note"),
    of(
        "pending",
        "content = 'The door is gold.'",
        "status = 'pending' AND snoozed_until IS NOT NULL",
        "content",
    ),
    of("token", "role = 'admin'", "name = 'loader'", "role"),
    gone("decision"),
    # decisions
    of("decision", "principal_id = 'agent-2'", "tier = 'tier_1'", "principal_id"),
    of("decision", "tier = 'tier_1'", "tier = 'tier_3' AND answer <> ''", "tier"),
    of("decision", "rule = 99", "tier = 'tier_1' AND answer <> ''", "rule"),
    of("decision", f"created_at = {LATE}", "tier = 'tier_1'", "created_at"),
    of("decision", "answer = '{}'", "tier = 'tier_2'", "answer"),
    copied("decision", DECISION, id="'dec_ffff'"),
    # what decisions rest on
    of("lineage", "others = 7", "name LIKE 'adr:%'", "", key="decision_id"),
    of("lineage", "harvested = (1 = 1)", "name LIKE 'adr:%'", "", key="decision_id"),
    gone("lineage", "name LIKE 'adr:%'", key="decision_id"),
    Tampering(
        "lineage of another name",
        "SELECT min(decision_id) FROM lineage",
        "UPDATE lineage SET name = 'adr:99' WHERE decision_id = :key AND name LIKE 'adr:%'",
        "missing",
        "lineage",
    ),
    Tampering(
        "lineage added",
        "SELECT min(decision_id) FROM lineage",
        "INSERT INTO lineage SELECT owner_id, 'adr:99', decision_id, harvested, others FROM lineage "
        "WHERE decision_id = :key AND name LIKE 'adr:%'",
        "extra",
        "lineage",
    ),
    Tampering(
        "lineage inserted for no decision",
        "SELECT min(owner_id) FROM lineage",
        "INSERT INTO lineage (owner_id, name, decision_id, harvested, others) "
        "VALUES (:key, 'adr:1', 'dec_ffff', (1 = 2), 0)",
        "extra",
        "lineage",
    ),
    # policies
    of("policy", "document = replace(document, '0.92', '0.10')", RESTED_ON, "document", key="digest"),
    gone("policy", RESTED_ON, key="digest"),
    # what was in force
    of(
        "switch", "document = replace(document, 'observe', 'enforce')", "kind = 'mode'", "document", key="seq"
    ),
    of(
        "switch",
        "document = replace(document, 'true', 'false')",
        "kind = 'stop' AND owner_id = ''",
        "",
        key="seq",
    ),
    of("switch", "kind = 'owner_rules'", "kind = 'policy'", "kind", key="seq"),
    of("switch", "subject = ''", "kind = 'stop' AND owner_id = ''", "subject", key="seq"),
    of("switch", "subject = 'other.example'", "kind = 'publisher'", "subject", key="seq"),
    of("switch", f"at = {LATE}", "kind = 'policy'", "at", key="seq"),
    of("switch", "by = 'mallory'", "kind = 'mode'", "by", key="seq"),
    gone("switch", "kind = 'publisher'", key="seq"),
    gone("switch", "kind = 'stop'", key="seq"),
    Tampering(
        "a switch that nobody made",
        "SELECT max(seq) FROM switch WHERE owner_id = 'ann'",
        "INSERT INTO switch (owner_id, seq, at, kind, subject, document, by) "
        "SELECT owner_id, seq * 10, at, kind, subject, document, by FROM switch WHERE seq = :key AND owner_id = 'ann'",
        "extra",
        "switch",
    ),
    of("memory", "label = 'INFERENCE'", "label = 'UNVOUCHED'", "label"),
    of("memory", "confidence = 'high'", "label = 'UNVOUCHED'", "confidence"),
    of("memory", "label = 'UNVOUCHED'", "label = 'INFERENCE' AND approved_by IS NOT NULL", "label"),
    gone("memory", "label = 'UNVOUCHED'"),
    # memories
    of(
        "memory", "label = 'FACT', confidence = 'high'", "label = 'INFERENCE' AND status <> 'erased'", "label"
    ),
    of("memory", "status = 'active', superseded_by = NULL", "status = 'superseded'", "status"),
    of("memory", "status = 'active', retracted_reason = NULL", "status = 'retracted'", "status"),
    of("memory", "retracted_reason = 'wrong'", "status = 'retracted'", "retracted_reason"),
    of("memory", "status = 'retracted', retracted_reason = 'no'", "status = 'active'", "status"),
    of("memory", "superseded_by = 'mem_other'", "status = 'superseded'", "superseded_by"),
    of("memory", "stale_since = NULL, stale_reason = NULL", "stale_since IS NOT NULL", "stale_since"),
    of("memory", "stale_reason = 'The page is fine.'", "stale_since IS NOT NULL", "stale_reason"),
    of("memory", f"validity_horizon = {LATE}", "validity_horizon IS NOT NULL", "validity_horizon"),
    of("memory", "source_id = 'ADR-009'", "source_id IS NOT NULL", "source_id"),
    of("memory", "details = '{}'", "label = 'INFERENCE' AND status <> 'erased'", "details"),
    gone("memory", "approved_by IS NULL AND status = 'active'"),
    gone("memory", "approved_by IS NOT NULL AND status = 'active'"),
    copied("memory", MEMORY, id="'mem_ffff'"),
    # the queue
    of(
        "pending",
        "status = 'pending', decided_at = NULL, decided_by = NULL, note = NULL",
        "status = 'rejected'",
        "status",
    ),
    of("pending", "status = 'rejected'", "status = 'pending' AND assigned_to IS NOT NULL", "status"),
    of("pending", "status = 'expired'", "status = 'approved' AND removal_of IS NULL", "status"),
    of("pending", "submitted_by = 'agent-2'", "status = 'rejected'", "submitted_by"),
    of("pending", "assigned_to = 'reviewer-mallory'", "assigned_to IS NOT NULL", "assigned_to"),
    of("pending", "question = 'Is it so?'", "question IS NOT NULL", "question"),
    of("pending", f"snoozed_until = {LATE}", "snoozed_until IS NOT NULL", "snoozed_until"),
    of("pending", f"expires_at = {LATE}", "status = 'pending'", "expires_at"),
    of("pending", "version = 7", "status = 'pending'", "version"),
    of("pending", "reason = 'Looks fine'", "status = 'rejected'", "reason"),
    gone("pending", "status = 'pending' AND assigned_to IS NULL AND question IS NULL"),
    gone("pending", "status = 'rejected'"),
    copied("pending", PENDING, id="'rev_ffff'"),
    of("owner", "pending = 0", "pending > 0", "pending", key="owner_id"),
    # votes
    of("vote", "verdict = 'approve'", "verdict = 'object'", "", key="item_id"),
    of("vote", "note = 'not seen'", "verdict = 'approve'", "note", key="item_id"),
    of("vote", "supersede = NULL, person_id = 'per_x'", "verdict = 'object'", "person", key="item_id"),
    gone("vote", key="item_id"),
    Tampering(
        "a vote inserted beside those that counted",
        "SELECT min(item_id) FROM vote WHERE verdict = 'approve'",
        'INSERT INTO vote (owner_id, item_id, version, person_id, verdict, "by", at, acts_for)'
        " SELECT owner_id, item_id, version, 'per_ffff', verdict, \"by\", at, '' FROM vote"
        " WHERE item_id = :key AND verdict = 'approve' LIMIT 1",
        "extra",
        "vote",
    ),
    # people
    of("token", "secret_digest = 'ab'", "name = 'b'", "secret_digest"),
    of("token", "revoked_at = NULL", "name = 'old'", "revoked_at"),
    of("token", "revoked_at = NULL", "name = 'd'", "revoked_at"),
    of("token", f"expires_at = {LATE}", "name = 'loader'", "expires_at"),
    of("token", "person_id = NULL", "name = 'c'", "person_id"),
    gone("token", "name = 'old'"),
    copied("token", TOKEN, id="'ffffffffffffffff'"),
    of("person", "name = 'zoe'", "name = 'bea'", "name"),
    of("person", "ended_at = NULL", "name = 'dora'", "ended_at"),
    gone("person", "name = 'cleo'"),
    gone("membership", "owner_id = 'ann'", key="member_id"),
    gone("membership", "owner_id = 'acme'", key="member_id"),
    of("session", "token_id = 'ffffffffffffffff'", "1 = 1", "token_id", key="digest"),
    of("session", f"expires_at = {LATE}", "1 = 1", "expires_at", key="digest"),
    Tampering(
        "a membership inserted",
        "SELECT min(id) FROM token WHERE name = 'loader'",
        JOINS.format("ann"),
        "extra",
        "membership",
    ),
    Tampering(
        "a membership that ended is there again",
        "SELECT min(id) FROM token WHERE name = 'loader'",
        JOINS.format("acme"),
        "extra",
        "membership",
    ),
    Tampering(
        "a session inserted",
        "SELECT 'ab' FROM token WHERE name = 'b'",
        "INSERT INTO session (digest, token_id, created_at, expires_at) SELECT :key, id, created_at, "
        "'2027-01-01 00:00:00' FROM token WHERE name = 'b'",
        "extra",
        "session",
    ),
    of("membership", f"until = {LATE}", "acts_for <> ''", "until", key="member_id"),
    of("membership", "acts_for = 'per_x'", "acts_for <> ''", "acts_for", key="member_id"),
    gone("membership", "acts_for <> ''", key="member_id"),
    of("membership", f"until = {LATE}", "acts_for = '' AND owner_id = 'ann'", "until", key="member_id"),
    of(
        "membership",
        "acts_for = 'zz'",
        "acts_for = '' AND owner_id = 'ann'",
        "",
        key="member_id",
        kind="missing",
    ),
    Tampering(
        "somebody stands in for good",
        "SELECT min(member_id) FROM membership WHERE owner_id = 'ann' AND acts_for = ''",
        "INSERT INTO membership (member_id, role, owner_id, acts_for, since) SELECT member_id, role, owner_id, "
        "'per_x', since FROM membership WHERE member_id = :key AND owner_id = 'ann' AND acts_for = ''",
        "altered",
        "membership",
    ),
    of("log_key", "verifier = replace(verifier, 'example', 'evil')", "retired_at IS NULL", "verifier"),
    of("log_key", "retired_at = NULL", "retired_at IS NOT NULL", "retired_at"),
    gone("log_key"),
    of("identity", "sub = 'eve'", "1 = 1", "sub", key="token_id"),
    gone("identity", key="token_id"),
    of("mail", "address = 'eve@evil.example'", "1 = 1", "address"),
    gone("mail"),
    of("vote", "acts_for = 'per_x'", "verdict = 'approve'", "acts_for", key="item_id"),
    # what owners said, and what others are told
    of("publisher_trust", "trust = 'trusted'", "trust = 'banned'", "trust", key="publisher"),
    of("publisher_trust", f"until = {LATE}", "trust = 'banned'", "until", key="publisher"),
    gone("publisher_trust", "publisher = 'good.example'", key="publisher"),
    of("spot_check", "verdict = 'wrong'", "verdict = 'right'", "verdict", key="memory_id"),
    of("spot_check", "agent = 'deadbeefdeadbeef'", "verdict = 'right'", "agent", key="memory_id"),
    of("spot_check", "kind = 'commit'", "verdict = 'right'", "kind", key="memory_id"),
    of("spot_check", "publisher = 'evil.example'", "verdict = 'right'", "publisher", key="memory_id"),
    of("spot_check", f"created_at = {LATE}", "verdict = 'right'", "created_at", key="memory_id"),
    gone("spot_check", "verdict IS NOT NULL", key="memory_id"),
    of("standing_ruling", "verdict = 'reject'", "verdict = 'store'", "verdict"),
    of("standing_ruling", "ended_at = NULL, ended_by = NULL", "ended_at IS NOT NULL", "ended_at"),
    gone("standing_ruling"),
    of("standing_ruling_act", "memory_id = 'mem_x'", "memory_id IS NOT NULL", "memory_id", key="decision_id"),
    gone("standing_ruling_act", key="decision_id"),
    of("webhook", "url = 'https://evil.example'", "1 = 1", "url"),
    of("webhook", "secret = 'whsec_AA=='", "1 = 1", "secret"),
    gone("webhook"),
    of("delivery", "place = 'row 99'", "sink = 'shelf' AND op = 'put'", "place"),
    of(
        "delivery",
        "state = 'waiting', last_error = NULL",
        "state = 'skipped' AND last_error LIKE 'Dropped.%'",
        "state",
    ),
    of("delivery", "op = 'remove', state = 'waiting'", IN_FORCE, "op"),
    of("delivery", "op = 'put'", "sink = 'shelf' AND op = 'remove'", "op"),
    of("delivery", "data = '{\"row\": 99}'", "sink = 'shelf' AND op = 'put'", "data"),
    of("delivery", "data = '{\"row\": 99}'", "sink = 'shelf' AND op = 'remove'", "data"),
    of("delivery", "state = 'skipped', last_error = 'no'", IN_FORCE, "state"),
    gone("delivery", "seq = 2", key="seq"),
    of("queue_total", "pending = 999999", "1 = 1", "pending"),
    of("queue_total", "imported = 1", "1 = 1", "imported"),
    gone("queue_total"),
]


# Of those that alter a row, the first of each table.
FIRST = {way.table: way for way in reversed(KINDS) if way.kind == "altered"}


@pytest.mark.on("sqlite")
@pytest.mark.parametrize("way", KINDS, ids=lambda way: way.name)
def test_no_way_of_altering_passes(lived: Store, way: Tampering) -> None:
    passes_not(lived, way)


# Which rows are there is found by the order in which the database gives them. What is read of each is held against the
# log here, as it is in the history that agrees with it on either database.
@pytest.mark.on("postgresql")
@pytest.mark.parametrize(
    "way",
    [way for way in KINDS if way.kind != "altered" or way is FIRST[way.table]],
    ids=lambda way: way.name,
)
def test_nor_does_one_that_another_database_might_let_pass(lived: Store, way: Tampering) -> None:
    passes_not(lived, way)


def passes_not(lived: Store, way: Tampering) -> None:
    """The walk is followed until it comes to what was altered."""
    with writing(lived._engine) as connection:
        key = connection.scalar(text(way.key))
        assert key is not None
        assert connection.execute(text(way.does), {"key": key}).rowcount > 0
        new = (
            "ffff"
            if way.kind == "extra"
            and ("inserted" in way.name or way.table == "erased")
            and way.table not in ("membership", "session")
            else str(key)
        )
        found = []
        for difference in differences(connection):
            found.append(str(difference))
            of_it = (difference.kind, difference.table) == (way.kind, way.table) and new in difference.key
            if of_it and way.column in (difference.column or ""):
                break
        else:
            pytest.fail(f"not found: {found}")
        connection.rollback()


@pytest.mark.on("sqlite")
def test_a_rewrite_of_rows_and_chain_that_agree_passes(lived: Store) -> None:
    with writing(lived._engine) as connection:
        for name in ("update", "delete"):
            connection.execute(text(f"DROP TRIGGER IF EXISTS log_entry_no_{name}"))
        rejected = "SELECT min(id) FROM pending WHERE status = 'rejected' AND owner_id = 'ann'"
        item = connection.scalar(text(rejected))
        connection.execute(text("UPDATE pending SET note = 'forged' WHERE id = :id"), {"id": item})
        assert len(list(differences(connection))) == 1
        log, head = chain.TABLE, "0" * 64
        for row in connection.execute(select(log).where(log.c.owner_id == "ann").order_by(log.c.seq)).all():
            values = dict(row._mapping) | {"previous": head}
            if (row.subject_id, row.action) == (item, "review.rejected"):
                values["content_digest"] = chain.document_of({"item": item, "note": "forged"}).commitment(
                    row.salt
                )
            values["digest"] = head = chain._digest(values)
            connection.execute(
                update(log).where(log.c.owner_id == "ann", log.c.seq == row.seq).values(**values)
            )
        connection.execute(text("UPDATE owner SET log_head = :head WHERE owner_id = 'ann'"), {"head": head})
        assert (list(differences(connection)), chain.verify(connection)) == ([], [])
        connection.rollback()
