"""For whom a token acts, as a part of statements: its own memberships and its person's, in its own role only."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, Table, and_, bindparam, or_, select

from vouchgate.storage.columns import UtcTime
from vouchgate.storage.tables.claims import TokenRow
from vouchgate.storage.tables.people import MembershipRow

TOKEN: Table = TokenRow.metadata.tables["token"]
MEMBER: Table = MembershipRow.metadata.tables["membership"]
GRANTED = and_(MEMBER.c.role == TOKEN.c.role, MEMBER.c.member_id.in_([TOKEN.c.id, TOKEN.c.person_id]))
OWN = MEMBER.c.acts_for == ""
LASTS = or_(MEMBER.c.until.is_(None), MEMBER.c.until > bindparam("now", type_=UtcTime))
# A row for each owner that a token acts for, and one for a token without any.
WITH_OWNERS: Select[Any] = select(TOKEN, MEMBER.c.owner_id).select_from(
    TOKEN.outerjoin(MEMBER, and_(GRANTED, LASTS))
)
# The same without those for whom its person stands in.
WITH_OWN: Select[Any] = select(TOKEN, MEMBER.c.owner_id).select_from(
    TOKEN.outerjoin(MEMBER, and_(GRANTED, OWN))
)
