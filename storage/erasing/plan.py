"""What goes with a claim: everything that came of it. Read with nothing locked, so it may take as long as the owner's
decisions are many (each is looked through for the ids); `storage.erasing.apply` sees whether it still holds."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Column, Connection, Table, and_, or_, select

from vouchgate.ingest.citations.kinds.record import PREFIX
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.standing_rulings import fits
from vouchgate.storage.claims import records
from vouchgate.storage.claims.decisions import TABLE as DECISION
from vouchgate.storage.claims.known_keys import TABLE as KEY
from vouchgate.storage.claims.memories import TABLE as MEMORY
from vouchgate.storage.erasing import tombstones
from vouchgate.storage.identity import owners
from vouchgate.storage.ids import ID
from vouchgate.storage.log.chain import TABLE as LOG
from vouchgate.storage.queue import audits
from vouchgate.storage.queue.documents import TABLE as DOCUMENT
from vouchgate.storage.queue.pending import TABLE as PENDING
from vouchgate.storage.sql import among
from vouchgate.storage.tables.claims import StandingRulingRow

RULING: Table = StandingRulingRow.metadata.tables["standing_ruling"]
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CAPTURED = '"capture_time":"'
_FEW = 20
_READ_AT_ONCE = 200  # decisions


@dataclass(slots=True)
class Plan:
    """What is to go. `texts` are the claims' words with their type; `seq` is the last entry of the owner's log that was
    seen."""

    owner_id: str
    seq: int
    memories: set[str] = field(default_factory=set)
    items: set[str] = field(default_factory=set)
    decisions: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)
    # Decisions on other claims that showed it as something near: by id, the answer without that.
    shown_in: dict[str, str] = field(default_factory=dict)
    audited: list[tuple[str, int, bool]] = field(default_factory=list)  # as of `audits.saying`
    texts: set[tuple[str, str]] = field(default_factory=set)
    stated: set[str] = field(default_factory=set)  # of these texts, what a source has to say
    # The claims' times, types and words, by `_captured`. Nothing else links the decisions on a claim that was put into
    # the queue again (`review.trust.requeue`).
    claims: dict[str, set[tuple[str, str, str]]] = field(default_factory=dict)
    source_texts: set[str] = field(default_factory=set)  # digests of those that nothing else rests on
    readings: set[str] = field(default_factory=set)  # keys of the cache of sources
    keys: list[tuple[str, str]] = field(default_factory=list)  # principal and Idempotency-Key
    documents: set[str] = field(default_factory=set)  # whose text or report has it word for word
    rulings: set[str] = field(default_factory=set)  # standing ones that were made of it
    worded: set[str] = field(default_factory=set)  # others, which ended and have its words
    standing: set[str] = field(default_factory=set)  # those that have not ended and have its words
    entries: list[int] = field(default_factory=list)  # numbers of the log entries about it

    @property
    def ids(self) -> set[str]:
        """Of all that is erased whole."""
        return self.memories | self.items | self.decisions | self.records

    def concerns(self, answer: str) -> bool:
        """Whether a decision shows something of this, is on the same claim, or rests on a source text that would go."""
        return bool(
            self.ids.intersection(ID.findall(answer))
            or self.source_texts.intersection(_DIGEST.findall(answer))
            or self.is_on_same(answer)
        )

    def is_on_same(self, answer: str) -> bool:
        """Whether a decision is on one of the claims, though it may name nothing of them."""
        claims = self.claims.get(_captured(answer))
        return claims is not None and _claim_of(from_json(answer)) in claims


def make(connection: Connection, owner_id: str, roots: Collection[str], *, whole: bool = True) -> Plan:
    """What came of the claims of these memories, items and decisions; nothing of those that are not the owner's.
    `whole`: also under another id, as when they were put into the queue again, and in the templates of standing rulings
    that ended."""
    plan = Plan(owner_id, owners.log_end(connection, owner_id))
    known = _linked(connection, owner_id, roots)
    kept = _of(connection, owner_id, roots, records.TABLE.c.id, records.TABLE.c.id, records.TABLE.c.text)
    known |= {row.id for row in kept}
    known -= tombstones.known(connection, owner_id, known)
    plan.memories = {each for each in known if each.startswith("mem_")}
    plan.items = {each for each in known if each.startswith("rev_")}
    plan.records = {each for each in known if each.startswith("rec_")}
    digests: set[str] = set()
    plan.claims = _claims(connection, owner_id, known) if whole else {}
    others = set[str]()
    for decision_id, text in _answers(connection, owner_id):
        found = _shown(known, text)
        others |= {decision_id} - known if plan.is_on_same(text) else set()
        if not found and decision_id not in known:
            continue
        answer = from_json(text)
        if decision_id in known or _is_of(answer, known):
            plan.decisions.add(decision_id)
            digests |= _note(plan, answer)
        else:
            of_these = [each for each in answer["evidence"]["sources"] if _record_in(each) in found]
            digests |= {each["text_digest"] for each in of_these if each.get("text_digest")}
            plan.shown_in[decision_id] = _without(answer, found)
    # An item may have been stored under one that it waits under no more, since that approval was taken back.
    stored = _of(connection, owner_id, plan.decisions - known, MEMORY.c.decision_id, MEMORY.c.decision_id)
    others |= {row.decision_id for row in stored}
    if others - set(roots):
        return make(connection, owner_id, {*roots, *others}, whole=whole)
    if not plan.ids:
        return plan
    for table, ids in ((MEMORY, plan.memories), (PENDING, plan.items)):
        rows = _of(connection, owner_id, ids, table.c.id, table.c.content, table.c.memory_type)
        plan.texts |= {(row.content, row.memory_type) for row in rows if row.content}
    if digests:
        for decision_id, text in _answers(connection, owner_id):
            if decision_id not in plan.decisions:
                digests.difference_update(_DIGEST.findall(plan.shown_in.get(decision_id, text)))
        plan.source_texts = digests
    rows = _of(connection, owner_id, plan.decisions, KEY.c.decision_id, KEY.c.principal_id, KEY.c.key)
    plan.keys = [(row.principal_id, row.key) for row in rows]
    plan.documents = _documents(connection, plan)
    plan.audited = audits.saying(connection, owner_id, {text for text, _ in plan.texts})
    for row in _of(connection, owner_id, plan.items, RULING.c.item_id, RULING.c.id, RULING.c.ended_at):
        plan.rulings.add(row.id)
        if row.ended_at is None:
            plan.standing.add(row.id)
    ended, in_force = _rulings_with(connection, owner_id, {text for text, _ in plan.texts} | plan.stated)
    plan.standing |= in_force
    plan.worded = ended - plan.rulings if whole else set()
    about = plan.ids | plan.shown_in.keys() | plan.rulings | plan.worded
    plan.entries = [row.seq for row in _of(connection, owner_id, about, LOG.c.subject_id, LOG.c.seq)]
    return plan


def _of(
    connection: Connection, owner_id: str, ids: Collection[str], column: Column[Any], *columns: Column[Any]
) -> Any:
    """These columns of the owner's rows that have one of the ids in a column."""
    wanted = select(*columns).where(column.table.c.owner_id == owner_id, among(column, "wanted"))
    return connection.execute(wanted, {"wanted": list(ids)}) if ids else ()


def _linked(connection: Connection, owner_id: str, roots: Collection[str]) -> set[str]:
    """Memories, items and decisions of one claim, by what names what: found until nothing is new."""
    found, known = set(roots), set[str]()
    removal = and_(PENDING.c.removal_of.is_not(None), among(PENDING.c.conflicting_memory_id, "ids"))
    of_memory = select(MEMORY.c.id, MEMORY.c.decision_id).where(
        MEMORY.c.owner_id == owner_id, or_(among(MEMORY.c.id, "ids"), among(MEMORY.c.decision_id, "ids"))
    )
    columns = [PENDING.c[name] for name in ("id", "decision_id", "asked_decision", "memory_id")]
    named = [among(column, "ids") for column in columns]
    of_item = select(*columns).where(PENDING.c.owner_id == owner_id, or_(*named, removal))
    edits = _edits(connection, owner_id)
    while True:
        asked = {"ids": list(found)}
        rows = [*connection.execute(of_memory, asked), *connection.execute(of_item, asked)]
        new = {value for row in rows for value in row if value is not None}
        new |= {f"dec_{each[4:]}" for each in new}
        for row in _of(connection, owner_id, found | new, DECISION.c.id, DECISION.c.id, DECISION.c.answer):
            answer = from_json(row.answer) if row.answer else {}
            new |= {row.id, *filter(None, (answer.get("memory_id"), answer.get("queue_id")))}
        new |= {each for edit in edits if edit & (found | new) for each in edit}
        if new <= known:
            return known
        known |= new
        found = set(known)


def _edits(connection: Connection, owner_id: str) -> list[set[str]]:
    """The decision on each wording of a reviewer's own, with the item that it was approved for. Once that approval is
    taken back no row links the two; in the log one entry follows the other."""
    made, ruled = LOG.alias(), LOG.alias()
    wanted = select(made.c.subject_id.label("decision"), ruled.c.subject_id.label("item")).where(
        made.c.owner_id == owner_id,
        made.c.action == Action.REVIEW_EDITED,
        ruled.c.owner_id == owner_id,
        ruled.c.seq == made.c.seq + 1,
        ruled.c.action == Action.REVIEW_APPROVED,
    )
    return [{row.decision, row.item} for row in connection.execute(wanted)]


def _claims(
    connection: Connection, owner_id: str, known: Collection[str]
) -> dict[str, set[tuple[str, str, str]]]:
    claims: dict[str, set[tuple[str, str, str]]] = {}
    for row in _of(connection, owner_id, known, DECISION.c.id, DECISION.c.answer):
        claims.setdefault(_captured(row.answer), set()).add(_claim_of(from_json(row.answer)))
    return claims


def _claim_of(answer: Any) -> tuple[str, str, str]:
    evidence = answer["evidence"]
    claim = evidence["claim"]
    return evidence["capture_time"], claim["memory_type"], claim["content"]


def _captured(text: str) -> str:
    """What answers on one claim have alike, read from the text: the capture time, or what its metadata calls so."""
    start = text.find(_CAPTURED) + len(_CAPTURED)
    return text[start : text.find('"', start)]


def _shown(ids: set[str], text: str) -> set[str]:
    """Those of the ids that stand in a text. A few are looked for one by one, which is quicker."""
    if len(ids) <= _FEW:
        return {each for each in ids if each in text}
    return ids.intersection(ID.findall(text))


def _answers(connection: Connection, owner_id: str) -> Iterator[tuple[str, str]]:
    wanted = select(DECISION.c.id, DECISION.c.answer).where(
        DECISION.c.owner_id == owner_id, DECISION.c.answer != ""
    )
    for row in connection.execute(wanted, execution_options={"yield_per": _READ_AT_ONCE}):
        yield row.id, row.answer


def _is_of(answer: Any, known: set[str]) -> bool:
    """Whether it is a decision on the same claim: it made or repeated one of these, or was blocked as a repeat."""
    return bool(
        known.intersection((answer["memory_id"], answer["queue_id"]))
        or (answer["tier"] == "tier_3" and answer["conflicting_memory_id"] in known)
    )


def _note(plan: Plan, answer: Any) -> set[str]:
    """Notes what goes with a decision; the digests of the source texts that it rests on."""
    evidence, digests = answer["evidence"], set[str]()
    claim = evidence["claim"]
    plan.texts.add((claim["content"], claim["memory_type"]))
    plan.stated.add(claim["content"][claim.get("context", 0) :])
    for source in evidence["sources"]:
        key = source["citation"]["key"]
        plan.readings.add(hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest())
        digests |= {source.get("text_digest") or "", source.get("later_digest") or ""}
    return digests - {""}


def _record_in(part: dict[str, Any]) -> str:
    """The record that a source or a finding is about; of others, what is none."""
    citation = part.get("citation")
    return str(citation["key"]).removeprefix(PREFIX) if isinstance(citation, dict) else ""


def _without(answer: Any, gone: set[str]) -> str:
    """A decision's answer, as JSON, without what it shows of these: their words, and the words in which it differs."""
    for part in _parts(answer):
        if _record_in(part) in gone:
            part.update({name: "Erased." for name in ("detail", "message") if name in part})
            part.update({name: "" for name in ("excerpt", "who", "digest", "text_digest") if name in part})
            part.update({name: left for name, left in (("facts", {}), ("judgement", None)) if name in part})
        facts = part.get("facts")
        if isinstance(facts, dict) and gone.intersection(
            each for each in facts.values() if isinstance(each, str)
        ):
            part["message"], part["facts"] = (
                "Erased.",
                {name: facts[name] for name in ("id", "kind") if name in facts},
            )
        if gone.intersection(filter(None, (part.get(name) for name in ("id", "memory_id", "queue_id")))):
            part.update({name: "" for name in ("content", "reason") if name in part})
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _parts(each)


def _rulings_with(connection: Connection, owner_id: str, texts: Collection[str]) -> tuple[set[str], set[str]]:
    """The owner's standing rulings whose template is that of one of these, whatever they were made of: those that
    ended, and those in force."""
    rows = connection.execute(
        select(RULING.c.id, RULING.c.terms, RULING.c.ended_at).where(RULING.c.owner_id == owner_id)
    )
    found: tuple[set[str], set[str]] = set(), set()
    for row in rows:
        template = row.terms.get("template")
        if template is not None and any(fits(template, text) for text in texts):
            found[row.ended_at is None].add(row.id)
    return found


def _documents(connection: Connection, plan: Plan) -> set[str]:
    words = {
        json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        for text, _ in plan.texts
        for ascii_only in (True, False)
    }
    rows = connection.execute(
        select(DOCUMENT.c.id, DOCUMENT.c.sent, DOCUMENT.c.report).where(DOCUMENT.c.owner_id == plan.owner_id)
    )
    return {row.id for row in rows if any(each in row.sent or each in (row.report or "") for each in words)}
