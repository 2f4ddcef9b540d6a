"""The tables of people: who is behind tokens, and for whom they act."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from sqlalchemy import Index, Text, text
from sqlmodel import Field

from vouchgate.storage.columns import UtcTime
from vouchgate.storage.tables.row import Row


class PersonRow(Row, table=True):
    """Somebody behind tokens; see `storage.identity.persons`."""

    __tablename__ = "person"
    __table_args__ = (
        Index(
            "person_by_name",
            "name",
            unique=True,
            sqlite_where=text("ended_at IS NULL"),
            postgresql_where=text("ended_at IS NULL"),
        ),
    )
    id: str = Field(primary_key=True)  # per_…
    name: str
    created_at: datetime = Field(sa_type=UtcTime)
    ended_at: datetime | None = Field(default=None, sa_type=UtcTime)


class IdentityRow(Row, table=True):
    """What a person signs in with elsewhere; see `storage.identity.identities`."""

    __tablename__ = "identity"
    issuer: str = Field(primary_key=True)
    sub: str = Field(primary_key=True)
    token_id: str  # of a token of the person, whose secret nobody has
    linked_at: datetime = Field(sa_type=UtcTime)


class VoteRow(Row, table=True):
    """A person's word on a waiting item in one version; see `storage.queue.votes`."""

    __tablename__ = "vote"
    owner_id: str = Field(primary_key=True)
    item_id: str = Field(primary_key=True)
    version: int = Field(primary_key=True)
    person_id: str = Field(primary_key=True)  # of an objection by a token of nobody, that token's id
    verdict: str  # approve, object
    by: str  # a principal's id
    at: datetime = Field(sa_type=UtcTime)
    note: str | None = Field(default=None, sa_type=Text)
    supersede: bool | None = None
    acts_for: str = ""  # the person in whose stead; empty: in their own right


class OpeningRow(Row, table=True):
    """When a person first had a waiting claim before them on a page; see `storage.queue.rulings`."""

    __tablename__ = "opening"
    __table_args__: ClassVar[dict[str, bool]] = {"sqlite_with_rowid": False}
    owner_id: str = Field(primary_key=True)
    item_id: str = Field(primary_key=True)
    viewer: str = Field(primary_key=True)  # a person's id; of a token of nobody, that token's
    opened_at: datetime = Field(sa_type=UtcTime)


class MembershipRow(Row, table=True):
    """A role of a person or a token for an owner; see `storage.identity.memberships`. The member is first in the key,
    because every request asks whom its token may act for."""

    __tablename__ = "membership"
    __table_args__ = (
        Index("membership_by_owner", "owner_id", "role", "member_id"),
        {"sqlite_with_rowid": False},
    )
    member_id: str = Field(primary_key=True)
    role: str = Field(primary_key=True)  # ingest.claims.people.Role
    owner_id: str = Field(primary_key=True)
    acts_for: str = Field(
        default="", primary_key=True
    )  # the person in whose stead; empty: in their own right
    since: datetime = Field(sa_type=UtcTime)
    until: datetime | None = Field(default=None, sa_type=UtcTime)
