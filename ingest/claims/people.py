"""Who calls, and for whom."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from vouchgate.ingest.claims.claim import Source
from vouchgate.ingest.claims.frozen import Frozen


class Role(StrEnum):
    """What a principal is for. Only REVIEWER may approve or reject."""

    AGENT = "agent"
    RECORDER = "recorder"  # puts down what users said and tools returned; neither claims nor rules
    REVIEWER = "reviewer"
    AUDITOR = "auditor"
    ADMIN = "admin"


class Principal(Frozen):
    """Who calls. `owners` are the owners it may act for; `any_owner` lifts that limit to every owner there is, and
    `new_owners` to those that nobody has made yet. `person` is the id of the person behind it, if that is known."""

    id: str
    name: str
    role: Role
    owners: frozenset[str] = frozenset()
    any_owner: bool = False
    sources: frozenset[Source] = frozenset()
    new_owners: bool = False
    person: str | None = None

    def may_act_for(self, owner_id: str) -> bool:
        """Whether this principal may see or write this owner's data at all."""
        return self.any_owner or owner_id in self.owners


class Person(Frozen):
    """Somebody behind tokens and sessions. Commands and rules call them by `name`, which no two share who are there."""

    id: str
    name: str
    created_at: datetime
    ended_at: datetime | None = None


class Membership(Frozen):
    """The role that a person, or a single token, has for an owner: in their own right, or, `until` a time, in the stead
    of the person whose id `acts_for` is."""

    owner_id: str
    member_id: str  # of a person or a token
    role: Role
    since: datetime
    acts_for: str = Field(default="", exclude_if=lambda absent: not absent)
    until: datetime | None = Field(default=None, exclude_if=lambda end: end is None)
