"""The tables. Rows are not domain types: `storage` modules turn one into the other.

Every table that belongs to an owner has the owner first in its primary key, so that an engine that shards
by key can keep an owner in one place. Ids are time-ordered, so key order is also age order.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, Index, LargeBinary, SmallInteger, Text
from sqlmodel import Field

from vouchgate.storage.columns import Float32s, RuleNumber, SmallRuleNumber, UtcTime, Words, partial_index
from vouchgate.storage.tables.row import Row

# An index is used only where a query spells its condition alike.
RULED = "action IN ('review.approved', 'review.rejected', 'review.let_go', 'review.voted', 'review.objected')"
LEFT = "action IN ('memory.superseded', 'memory.retracted', 'memory.restored')"


class OwnerRow(Row, table=True):
    """One row per owner: what a writer locks, the end of the owner's log chain, and the queue's count."""

    __tablename__ = "owner"
    owner_id: str = Field(primary_key=True)
    log_seq: int = Field(default=0, sa_type=BigInteger)
    log_head: str = Field(default="0" * 64)
    pending: int = 0
    imported: int = Field(default=0, sa_column_kwargs={"server_default": "0"})  # of these, by imports
    # How often the owner's standing rulings or verdicts on memories changed; see `storage.claims.sayings`.
    said: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    sequenced: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"}
    )  # in the tree
    similar_seq: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"}
    )  # what claims became up to this entry is in `similar_key`
    word_seq: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": "0"}
    )  # the memories that entries up to this one are about are in `memory_words`
    # 32 random hex digits: the owner's name in the leaves of the log
    pseudonym: str = Field(default="", sa_column_kwargs={"server_default": ""})


class QueueTotalRow(Row, table=True):
    """A single row (id 1) that counts what waits over all owners. Locked last, after the owners."""

    __tablename__ = "queue_total"
    id: int = Field(primary_key=True)
    pending: int = 0
    imported: int = Field(default=0, sa_column_kwargs={"server_default": "0"})  # of these, by imports


class MemoryRow(Row, table=True):
    """A stored claim; see `ingest.claims.memory.Memory`."""

    __tablename__ = "memory"
    __table_args__ = (
        Index("memory_by_id", "id"),
        Index("memory_by_decision", "owner_id", "decision_id"),
        partial_index(
            "memory_due", "validity_horizon", where="status = 'active' AND validity_horizon IS NOT NULL"
        ),
        partial_index("memory_replaced", "owner_id", "superseded_by", where="superseded_by IS NOT NULL"),
        partial_index("memory_stale", "owner_id", "id", where="stale_since IS NOT NULL"),
        partial_index("memory_unvouched", "owner_id", "id", where="label = 'UNVOUCHED'"),
        partial_index("memory_lowered", "owner_id", "id", where="lowered_at IS NOT NULL"),
    )
    owner_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    memory_type: str
    content: str = Field(sa_type=Text)
    source: str
    status: str
    confidence: str
    confidence_score: float | None = None
    label: str
    source_id: str | None = None
    created_at: datetime = Field(sa_type=UtcTime)
    validity_horizon: datetime | None = Field(default=None, sa_type=UtcTime)
    decision_id: str
    approved_by: str | None = None
    superseded_by: str | None = None
    retracted_reason: str | None = None
    stale_since: datetime | None = Field(default=None, sa_type=UtcTime)
    stale_reason: str | None = Field(default=None, sa_type=Text)
    lowered_at: datetime | None = Field(default=None, sa_type=UtcTime)
    lowered_reason: str | None = Field(default=None, sa_type=Text)
    confirmed_at: datetime | None = Field(default=None, sa_type=UtcTime)
    confirmed_despite: str | None = Field(default=None, sa_type=Text)
    details: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)  # `metadata` is taken by SQLModel
    # Of a claim that was stored: its keys for `similar_key`, until the writer puts them in.
    bands: bytes | None = Field(default=None, sa_type=LargeBinary)


class PendingRow(Row, table=True):
    """A queued claim; see `ingest.claims.waiting.PendingMemory`."""

    __tablename__ = "pending"
    __table_args__ = (
        Index("pending_by_id", "id"),
        Index("pending_by_status", "owner_id", "status", "id"),
        Index("pending_by_decision", "owner_id", "decision_id"),
        Index("pending_due", "status", "expires_at"),
        Index("pending_by_priority", "owner_id", "status", "priority_at", "id"),
        Index("pending_by_rule", "owner_id", "status", "rule", "priority_at", "id"),
        Index("pending_by_sender", "owner_id", "status", "submitted_by", "priority_at", "id"),
        Index("pending_by_cited", "owner_id", "status", "cited", "priority_at", "id"),
        partial_index("pending_decided", "owner_id", "decided_at", "id", where="decided_at IS NOT NULL"),
        partial_index("pending_became", "owner_id", "memory_id", where="memory_id IS NOT NULL"),
        partial_index("pending_rejected", "owner_id", "words_digest", where="status = 'rejected'"),
        partial_index(
            "pending_places", "submitted_by", "owner_id", where="status = 'pending' AND lane = 'agent'"
        ),
        partial_index(
            "pending_assigned",
            "owner_id",
            "assigned_to",
            where="status = 'pending' AND assigned_to IS NOT NULL",
        ),
        partial_index(
            "pending_away",
            "owner_id",
            "snoozed_until",
            where="status = 'pending' AND (snoozed_until IS NOT NULL OR sent_back_at IS NOT NULL)",
        ),
        partial_index(
            "pending_removals",
            "owner_id",
            "removal_of",
            where="status = 'pending' AND removal_of IS NOT NULL",
        ),
    )
    owner_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    memory_type: str
    content: str = Field(sa_type=Text)
    source: str
    reason: str = Field(sa_type=Text)
    status: str
    version: int = 1
    seen: int = 1
    created_at: datetime = Field(sa_type=UtcTime)
    expires_at: datetime = Field(sa_type=UtcTime)
    decision_id: str
    submitted_by: str
    conflicting_memory_id: str | None = None
    decided_at: datetime | None = Field(default=None, sa_type=UtcTime)
    decided_by: str | None = None
    note: str | None = Field(default=None, sa_type=Text)
    memory_id: str | None = None
    validity_horizon: datetime | None = Field(default=None, sa_type=UtcTime)
    rule: str = Field(sa_type=SmallRuleNumber)
    cited: str | None = None
    priority_at: datetime = Field(sa_type=UtcTime)
    words_digest: str | None = None  # ingest.scoring.priority.words_digest; the domain type does without
    rejected_before: str | None = None
    removal_of: str | None = Field(
        default=None, sa_type=Text
    )  # ingest.claims.decision.Delivery.name of what is to go
    lane: str = Field(
        default="agent", sa_column_kwargs={"server_default": "agent"}
    )  # ingest.claims.waiting.Lane
    snoozed_until: datetime | None = Field(default=None, sa_type=UtcTime)
    assigned_to: str | None = Field(default=None, sa_type=Text)
    viewer: str | None = Field(default=None, sa_type=Text)
    viewing_until: datetime | None = Field(default=None, sa_type=UtcTime)
    question: str | None = Field(default=None, sa_type=Text)
    sent_back_at: datetime | None = Field(default=None, sa_type=UtcTime)
    asked_decision: str | None = Field(default=None, sa_type=Text)
    details: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)


class SavedViewRow(Row, table=True):
    """A reviewer's own name for a query; see `storage.queue.views`."""

    __tablename__ = "saved_view"
    principal_id: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    query: str = Field(sa_type=Text)
    created_at: datetime = Field(sa_type=UtcTime)


class DedupKeyRow(Row, table=True):
    """The dedup index: keys of active memories and pending items; see `storage.dedup.index`."""

    __tablename__ = "dedup_key"
    __table_args__ = ({"sqlite_with_rowid": False},)
    owner_id: str = Field(primary_key=True)
    key: int = Field(primary_key=True, sa_type=BigInteger)
    item_id: str = Field(primary_key=True)
    generation: int = Field(sa_type=SmallInteger)  # storage.dedup.builds.Build


class DedupTemplateRow(Row, table=True):
    """A key of the dedup index that was closed: items with it may be under the finer keys of this template."""

    __tablename__ = "dedup_template"
    __table_args__ = ({"sqlite_with_rowid": False},)
    owner_id: str = Field(primary_key=True)
    key: int = Field(primary_key=True, sa_type=BigInteger)
    id: str = Field(primary_key=True)
    words: str = Field(sa_type=Text)  # a JSON array
    generation: int = Field(sa_type=SmallInteger)


class DecisionRow(Row, table=True):
    """The answer that was given, word for word (`ingest.claims.decision.ValidationResult` as JSON)."""

    __tablename__ = "decision"
    __table_args__ = (Index("decision_by_id", "id"),)
    owner_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    created_at: datetime = Field(sa_type=UtcTime)
    principal_id: str
    tier: str
    rule: str = Field(sa_type=RuleNumber)
    policy_digest: str
    answer: str = Field(sa_type=Text)


class LineageRow(Row, table=True):
    """One name of something that a decision rests on; see `storage.claims.lineage`."""

    __tablename__ = "lineage"
    __table_args__: ClassVar[dict[str, bool]] = {"sqlite_with_rowid": False}
    owner_id: str = Field(primary_key=True)
    name: str = Field(primary_key=True, sa_type=Text)
    decision_id: str = Field(primary_key=True)
    harvested: bool  # ingest.citations.names.Basis
    others: int


class PolicyRow(Row, table=True):
    """Every policy that ever decided something, by digest, so that its decisions can be made again; and every file of
    owner rules that was in force, as `{"owner_rules": text}`."""

    __tablename__ = "policy"
    digest: str = Field(primary_key=True)
    document: str = Field(sa_type=Text)
    first_used_at: datetime = Field(sa_type=UtcTime)


class SwitchRow(Row, table=True):
    """One change of what is in force; see `storage.switches`. Never altered, never deleted."""

    __tablename__ = "switch"
    __table_args__ = (Index("switch_by_kind", "kind", "owner_id", "subject", "seq"),)
    owner_id: str = Field(primary_key=True)  # whose chain of the log tells of it; empty: the service's own
    seq: int = Field(primary_key=True, sa_type=BigInteger)  # of that entry
    at: datetime = Field(sa_type=UtcTime)
    kind: str  # storage.switches.Kind
    subject: str  # a publisher, or the id of a token or person; empty: all there is in this scope
    document: str = Field(sa_type=Text)  # canonical JSON, to which the entry commits
    by: str  # a principal's id, or "operator"


class IdempotencyRow(Row, table=True):
    """The decision that a principal's Idempotency-Key stands for, and the digest of the body it came with."""

    __tablename__ = "idempotency"
    principal_id: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    body_digest: str
    owner_id: str
    decision_id: str
    created_at: datetime = Field(sa_type=UtcTime)


class LogRow(Row, table=True):
    """The append-only log; see `ingest.claims.log.LogEntry`. Triggers refuse DELETE, and every UPDATE but one
    that erases salts."""

    __tablename__ = "log_entry"
    __table_args__ = (
        partial_index("log_entry_rulings", "owner_id", "at", where=RULED),
        partial_index("log_entry_left", "owner_id", "subject_id", where=LEFT),
    )
    owner_id: str = Field(primary_key=True)
    seq: int = Field(primary_key=True, sa_type=BigInteger)
    at: datetime = Field(sa_type=UtcTime)
    actor: str
    action: str
    subject_id: str
    content_digest: str
    previous: str
    digest: str
    # 16 random bytes that `content_digest` begins with; None of an entry from before migration 0025, or once erased
    salt: bytes | None = Field(default=None, sa_type=LargeBinary)


class TokenRow(Row, table=True):
    """A principal and the digest of its secret. The secret itself is nowhere. Whom it may act for is in
    `storage.tables.people`."""

    __tablename__ = "token"
    id: str = Field(primary_key=True)
    name: str
    role: str
    any_owner: bool = False
    new_owners: bool = False
    person_id: str | None = None
    sources: list[str] = Field(default_factory=list, sa_type=JSON)
    secret_digest: str
    created_at: datetime = Field(sa_type=UtcTime)
    expires_at: datetime | None = Field(default=None, sa_type=UtcTime)
    revoked_at: datetime | None = Field(default=None, sa_type=UtcTime)


class MetaRow(Row, table=True):
    """Facts about the database itself, such as what the dedup index was built with."""

    __tablename__ = "meta"
    name: str = Field(primary_key=True)
    value: str


class SimilarKeyRow(Row, table=True):
    """`ingest.dedup.similar` keys of active memories: what may contradict a claim, and what is shown beside it. What
    was stored after `owner.similar_seq` is not in it yet.

    A memory's rows are found again by its keys, so there is no index by memory, which would double the
    table. Ids grow with time: the end of a key's rows are its newest memories.
    """

    __tablename__ = "similar_key"
    __table_args__: ClassVar[dict[str, bool]] = {"sqlite_with_rowid": False}
    owner_id: str = Field(primary_key=True)
    key: int = Field(primary_key=True, sa_type=BigInteger)
    memory_id: str = Field(primary_key=True)


class MemoryWordsRow(Row, table=True):
    """The words that a memory is found by, whatever became of it; see `storage.claims.word_index`. Each begins with a
    mark of its owner, so that nobody's search reads, or is ranked by, what is another's."""

    __tablename__ = "memory_words"
    __table_args__ = (
        partial_index("memory_words_by_number", "number", where="number IS NOT NULL"),
        # Without a list of what is not in yet, which every search would read through.
        Index(
            "memory_words_found", "words", postgresql_using="gin", postgresql_with={"fastupdate": "off"}
        ).ddl_if(dialect="postgresql"),
    )
    owner_id: str = Field(primary_key=True)
    memory_id: str = Field(primary_key=True)
    words: str = Field(sa_type=Words)
    number: int | None = Field(default=None, sa_type=BigInteger)  # on SQLite, of its row in `memory_fts`


class EmbeddingRow(Row, table=True):
    """The vectors of active memories and pending items; empty unless the policy asks for them. See
    `storage.dedup.vectors`."""

    __tablename__ = "embedding"
    owner_id: str = Field(primary_key=True)
    item_id: str = Field(primary_key=True)
    kind: str  # ingest.claims.likeness.ItemKind
    model: str  # ingest.claims.likeness.Embedding
    vector: bytes = Field(sa_type=Float32s)


class SourceRow(Row, table=True):
    """What was read of a cited thing outside the repositories, kept for a while; see `storage.claims.source_cache`. It
    belongs to no owner: two that cite one page share what was read of it."""

    __tablename__ = "source"
    __table_args__ = (Index("source_due", "expires_at"),)
    key: str = Field(primary_key=True)  # sha256 hex of the citation's canonical form
    reading: str = Field(sa_type=Text)  # ingest.claims.source.Found or Missing as JSON
    text: str = Field(sa_type=Text)
    checked_at: datetime = Field(sa_type=UtcTime)
    expires_at: datetime = Field(sa_type=UtcTime)


class RecheckRow(Row, table=True):
    """A pending item or memory whose sources are to be read again; see `storage.queue.rechecks`."""

    __tablename__ = "recheck"
    __table_args__ = (Index("recheck_due", "kind", "due_at"),)
    owner_id: str = Field(primary_key=True)
    item_id: str = Field(primary_key=True)
    kind: str  # ingest.claims.likeness.ItemKind
    due_at: datetime = Field(sa_type=UtcTime)  # while it is leased: when the lease ends
    attempts: int = 0  # since the last that found something out
    lease: str | None = None  # whose work it is; once the lease has ended, anybody may take it
    # Of a memory: what was found later of sources that its decision could not read, as ingest.claims.source.Found in
    # JSON.
    readings: str | None = Field(default=None, sa_type=Text)


class SourceTextRow(Row, table=True):
    """The whole text of a source that decisions of an owner rest on; see `storage.claims.source_texts`."""

    __tablename__ = "source_text"
    __table_args__ = (Index("source_text_due", "kept_until"),)
    owner_id: str = Field(primary_key=True)
    digest: str = Field(primary_key=True)  # ingest.claims.source.PackedText
    body: bytes = Field(sa_type=LargeBinary)
    kept_until: datetime = Field(sa_type=UtcTime)


class SpotCheckRow(Row, table=True):
    """A memory that was drawn for its owner to judge; see `storage.queue.spot_checks`."""

    __tablename__ = "spot_check"
    __table_args__ = (
        partial_index("spot_check_open", "owner_id", "memory_id", where="verdict IS NULL"),
        Index("spot_check_by_rule", "rule", "verdict"),
        partial_index("spot_check_said", "owner_id", "decided_at", where="decided_at IS NOT NULL"),
    )
    owner_id: str = Field(primary_key=True)
    memory_id: str = Field(primary_key=True)
    rule: str = Field(sa_type=SmallRuleNumber)
    agent: str | None = (
        None  # a principal's id; None, as the kind, where the decision of old could not be read
    )
    kind: str | None = None  # of the first thing it cites
    publisher: str | None = None  # of that, if it is a page
    created_at: datetime = Field(sa_type=UtcTime)
    verdict: str | None = None  # ingest.claims.waiting.SpotVerdict
    decided_at: datetime | None = Field(default=None, sa_type=UtcTime)
    decided_by: str | None = None


class PublisherTrustRow(Row, table=True):
    """An owner's word on one publisher; see `storage.claims.publishers`."""

    __tablename__ = "publisher_trust"
    owner_id: str = Field(primary_key=True)
    publisher: str = Field(primary_key=True)
    trust: str  # ingest.claims.trust.Trust
    until: datetime = Field(sa_type=UtcTime)
    created_at: datetime = Field(sa_type=UtcTime)
    decided_by: str


class StandingRulingRow(Row, table=True):
    """What an owner has ruled of all claims like one; see `storage.claims.standing_rulings`."""

    __tablename__ = "standing_ruling"
    owner_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    name: str = Field(sa_type=Text)
    verdict: str  # ingest.claims.trust.RulingVerdict
    terms: dict[str, Any] = Field(sa_type=JSON)  # ingest.claims.standing_rulings.RulingTerms
    created_at: datetime = Field(sa_type=UtcTime)
    until: datetime = Field(sa_type=UtcTime)
    confirmed_by: str
    item_id: str | None = None
    ended_at: datetime | None = Field(default=None, sa_type=UtcTime)
    ended_by: str | None = None


class StandingRulingActRow(Row, table=True):
    """A claim that a standing ruling stored (then it has a memory) or rejected."""

    __tablename__ = "standing_ruling_act"
    owner_id: str = Field(primary_key=True)
    ruling_id: str = Field(primary_key=True)
    decision_id: str = Field(primary_key=True)
    memory_id: str | None = None
    settled: bool = False  # when the ruling was taken back this was taken back with it


class JudgeDayRow(Row, table=True):
    """How many questions the judge was asked on one day (UTC), over all processes."""

    __tablename__ = "judge_day"
    day: str = Field(primary_key=True)  # 2026-11-21
    asked: int = 0


class EchoRow(Row, table=True):
    """How often one claim was submitted, in the same or nearly the same words; see `storage.claims.echoes`."""

    __tablename__ = "echo"
    __table_args__: ClassVar[dict[str, bool]] = {"sqlite_with_rowid": False}
    owner_id: str = Field(primary_key=True)
    key: str = Field(primary_key=True)  # a digest
    count: int
    first_at: datetime = Field(sa_type=UtcTime)
    last_at: datetime = Field(sa_type=UtcTime)
    first_by: str  # a principal's id
    agents: list[str] = Field(default_factory=list, sa_type=JSON)  # ids of principals, the first twenty
    sources: list[str] = Field(default_factory=list, sa_type=JSON)  # asserted ones


class ErasedRow(Row, table=True):
    """A memory, item or decision whose text is gone for good, and why; see `storage.erasing`. Its own row stays."""

    __tablename__ = "erased"
    __table_args__ = (Index("erased_by_id", "item_id"), Index("erased_together", "owner_id", "erasure_id"))
    owner_id: str = Field(primary_key=True)
    item_id: str = Field(primary_key=True)  # mem_…, rev_…, dec_…
    erasure_id: str  # of all that went together: ers_…
    at: datetime = Field(sa_type=UtcTime)
    by: str  # a principal's id, or who the service says it was
    basis: str = Field(sa_type=Text)  # the legal basis that was given
