"""The tables of what the service keeps beside claims: who is signed in, whom it tells, what it delivers, the documents
that it checks, and records."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, LargeBinary, Text
from sqlmodel import Field

from vouchgate.storage.columns import UtcTime, partial_index
from vouchgate.storage.tables.row import Row


class SessionRow(Row, table=True):
    """A reviewer who is signed in to the pages; see `storage.identity.sessions`. The secret of the cookie is
    nowhere."""

    __tablename__ = "session"
    __table_args__ = (Index("session_due", "expires_at"), Index("session_by_token", "token_id"))
    digest: str = Field(primary_key=True)  # sha256 hex of the cookie
    token_id: str  # the principal: when its token ends, the session does
    created_at: datetime = Field(sa_type=UtcTime)
    expires_at: datetime = Field(sa_type=UtcTime)
    method: str | None = None  # token, link, oidc; of one from before migration 0021 it is not known
    browser: str | None = None  # such as "Firefox on Linux", as it calls itself
    proved_at: datetime | None = Field(
        default=None, sa_type=UtcTime
    )  # when they showed who they are, if known


class SignInFlowRow(Row, table=True):
    """A sign-in at the provider whose cookie was used up; see `storage.identity.identities`. Where it led is not kept
    any more."""

    __tablename__ = "sign_in_flow"
    __table_args__ = (Index("sign_in_flow_due", "expires_at"),)
    digest: str = Field(primary_key=True)  # sha256 hex of the cookie
    next_path: str = Field(sa_type=Text)
    again: bool  # by whoever is signed in, to prove it
    expires_at: datetime = Field(sa_type=UtcTime)


class SignInLinkRow(Row, table=True):
    """A link that signs a reviewer in, once; see `storage.identity.sessions`."""

    __tablename__ = "sign_in_link"
    __table_args__ = (Index("sign_in_link_due", "expires_at"),)
    digest: str = Field(primary_key=True)  # sha256 hex of the code in the link
    token_id: str
    created_at: datetime = Field(sa_type=UtcTime)
    expires_at: datetime = Field(sa_type=UtcTime)
    used_at: datetime | None = Field(default=None, sa_type=UtcTime)


class WebhookRow(Row, table=True):
    """Where an owner is told of which events, and how far in the owner's log what waits has been told; see
    `storage.outgoing.webhooks`."""

    __tablename__ = "webhook"
    __table_args__ = (Index("webhook_due", "due_at"),)
    owner_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    url: str = Field(sa_type=Text)
    secret: str  # signs the messages, so it is kept as it is
    events: str  # values of storage.outgoing.webhooks.Event, with spaces between them
    created_at: datetime = Field(sa_type=UtcTime)
    told_seq: int = Field(sa_type=BigInteger)  # the last log entry that was told
    until_seq: int | None = Field(default=None, sa_type=BigInteger)  # where the message under way ends
    message: str | None = Field(
        default=None, sa_type=Text
    )  # the message under way, as it is sent at every try
    due_at: datetime | None = Field(default=None, sa_type=UtcTime)  # None: given up
    attempts: int = 0  # of the message under way
    lease: str | None = None
    failing_since: datetime | None = Field(default=None, sa_type=UtcTime)
    last_error: str | None = Field(default=None, sa_type=Text)


class MailRow(Row, table=True):
    """An address that gets a digest, of whose queues, and when; see `storage.outgoing.mail`. It may be about several
    owners, so it is in no owner's keys."""

    __tablename__ = "mail"
    __table_args__ = (Index("mail_due", "due_at"),)
    id: str = Field(primary_key=True)  # mail_…
    address: str
    person_id: str | None = None
    owners: list[str] = Field(default_factory=list, sa_type=JSON)
    schedule: dict[str, Any] = Field(sa_type=JSON)  # storage.outgoing.mail_schedule.MailSchedule
    created_at: datetime = Field(sa_type=UtcTime)
    told_at: datetime = Field(sa_type=UtcTime)  # what happened up to then was told, or was nothing
    sent_at: datetime | None = Field(default=None, sa_type=UtcTime)
    due_at: datetime | None = Field(default=None, sa_type=UtcTime)  # None: given up
    attempts: int = 0  # that failed, of the digest that is due
    lease: str | None = None
    failing_since: datetime | None = Field(default=None, sa_type=UtcTime)
    last_error: str | None = Field(default=None, sa_type=Text)


class SinkConsumerRow(Row, table=True):
    """The agent's token that serves a sink which claims name; see `storage.outgoing.sink_consumers`."""

    __tablename__ = "sink_consumer"
    __table_args__ = (Index("sink_consumer_by_token", "sink", "token_id"),)
    owner_id: str = Field(primary_key=True)
    sink: str = Field(primary_key=True)
    token_id: str
    since: datetime = Field(sa_type=UtcTime)


class DeliveryRow(Row, table=True):
    """One thing that a store behind the gate is to be told, written in the transaction of what it tells of; see
    `storage.outgoing.outbox`, which writes rows, and `storage.outgoing.deliveries`, which hands them out. Rows are
    kept."""

    __tablename__ = "delivery"
    __table_args__ = (
        Index("delivery_by_id", "id", unique=True),
        Index("delivery_by_place", "owner_id", "sink", "place", "seq"),
        Index("delivery_by_memory", "owner_id", "memory_id"),
        partial_index("delivery_waiting", "owner_id", "sink", "seq", where="state = 'waiting'"),
        Index("delivery_due", "state", "due_at"),
    )
    owner_id: str = Field(primary_key=True)
    seq: int = Field(primary_key=True, sa_type=BigInteger)  # 1, 2, … of one owner, over all sinks
    id: str  # dlv_…: the idempotency key
    sink: str  # a name that the claim gave, or the id of a webhook
    place: str = Field(sa_type=Text)  # where in the sink; of a webhook, the id of the memory
    op: str  # put, remove
    memory_id: str | None = None  # None: what is to go was never the gate's
    data: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)  # what the sink needs besides the text
    created_at: datetime = Field(sa_type=UtcTime)
    state: str = "waiting"  # storage.outgoing.deliveries.DeliveryState
    attempts: int = 0  # that failed
    due_at: datetime = Field(sa_type=UtcTime)  # of a try; while it is leased, when the lease ends
    lease: str | None = None
    delivered_at: datetime | None = Field(default=None, sa_type=UtcTime)
    last_error: str | None = Field(default=None, sa_type=Text)


class DocumentRow(Row, table=True):
    """A document that is to be checked, or was; see `storage.queue.documents`."""

    __tablename__ = "document"
    __table_args__ = (
        Index("document_by_id", "id"),
        partial_index("document_due", "due_at", where="state = 'waiting'"),
        partial_index("document_old", "kept_until", where="kept_until IS NOT NULL"),
    )
    owner_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)  # doc_…
    submitted_by: str  # a principal's id
    created_at: datetime = Field(sa_type=UtcTime)
    sent: str = Field(sa_type=Text)  # vouchgate.wire.DocumentIn as JSON; empty once it was checked
    sent_digest: str
    idempotency_key: str | None = None
    state: str = "waiting"  # storage.queue.documents.DocumentState
    due_at: datetime | None = Field(default=None, sa_type=UtcTime)  # while it is leased, when the lease ends
    attempts: int = 0  # begun
    lease: str | None = None
    done_at: datetime | None = Field(default=None, sa_type=UtcTime)
    kept_until: datetime | None = Field(default=None, sa_type=UtcTime)  # None while it waits
    report: str | None = Field(default=None, sa_type=Text)  # JSON
    html: str | None = Field(default=None, sa_type=Text)
    sarif: str | None = Field(default=None, sa_type=Text)


_KEY = ("owner_id", "submitted_by", "idempotency_key")


class RecordRow(Row, table=True):
    """What a user said or a tool returned; see `storage.claims.records`. The row stays when its words go."""

    __tablename__ = "record"
    __table_args__ = (
        partial_index("record_kept", "owner_id", where="salt IS NOT NULL"),
        partial_index("record_due", "kept_until", where="salt IS NOT NULL"),
        partial_index("record_by_key", *_KEY, where="idempotency_key IS NOT NULL"),
    )
    owner_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)  # rec_…
    kind: str  # ingest.claims.source.RecordKind
    said_at: datetime = Field(sa_type=UtcTime)
    created_at: datetime = Field(sa_type=UtcTime)
    kept_until: datetime = Field(sa_type=UtcTime)
    submitted_by: str  # a principal's id
    digest: str  # of who, conversation, text and masked, under the salt
    salt: bytes | None = Field(default=None, sa_type=LargeBinary)  # None: the words are gone
    who: str = Field(sa_type=Text)
    conversation: str | None = Field(default=None, sa_type=Text)
    text: str = Field(sa_type=Text)
    masked: bool
    idempotency_key: str | None = None
