"""For whom a token acts, as a part of statements: its own memberships and its person's, in its own role only."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, Table, and_, select

from vouchgate.storage.tables.claims import TokenRow
from vouchgate.storage.tables.people import MembershipRow

TOKEN: Table = TokenRow.metadata.tables["token"]
MEMBER: Table = MembershipRow.metadata.tables["membership"]
GRANTED = and_(MEMBER.c.role == TOKEN.c.role, MEMBER.c.member_id.in_([TOKEN.c.id, TOKEN.c.person_id]))
# A row for each owner that a token acts for, and one for a token without any.
WITH_OWNERS: Select[Any] = select(TOKEN, MEMBER.c.owner_id).select_from(TOKEN.outerjoin(MEMBER, GRANTED))
