"""A query over pending items, in SQL for both databases.

What a database can tell is asked of it, in the order of the listing. Words are held against the texts here, row by row:
neither database brings English words to their stems as the other does. What it is asked to leave out first, by parts of
the words, is most of what would not do.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import ColumnElement, Select, Table, func, or_, select

from vouchgate.ingest.citations import names
from vouchgate.ingest.claims.waiting import Lane
from vouchgate.storage.claims import lineage
from vouchgate.storage.queue.query import (
    AssignedTo,
    ByAgent,
    ByReason,
    BySource,
    Is,
    Phrase,
    Query,
    SentAfter,
    SentBefore,
    Standing,
    Term,
    Word,
    needed_parts,
    text_test,
)
from vouchgate.storage.tables.claims import PendingRow, TokenRow

TABLE: Table = PendingRow.metadata.tables["pending"]
_TOKEN: Table = TokenRow.metadata.tables["token"]

Condition = ColumnElement[bool]


def is_listed(now: datetime) -> Condition:
    """Whether an item stands in the list: neither snoozed nor sent back."""
    awake = or_(TABLE.c.snoozed_until.is_(None), TABLE.c.snoozed_until <= now)
    return TABLE.c.sent_back_at.is_(None) & awake


def conditions(query: Query, *, me: str, now: datetime) -> list[Condition]:
    """What a database can tell of a query. `me` is the principal that asks: what is assigned to another token
    of the same person is theirs."""
    parts = [
        TABLE.c.content.icontains(part, autoescape=True) for part in dict.fromkeys(needed_parts(query.texts))
    ]
    return parts + [c for term in query.terms if (c := _condition(term, me, now)) is not None]


def text_filter(query: Query) -> Callable[[str], bool] | None:
    """What is left to be held against each text; None when nothing is."""
    return text_test(query.texts) if query.texts else None


def _condition(term: Term, me: str, now: datetime) -> Condition | None:
    found: Condition | None
    match term:
        case Word() | Phrase():
            found = None
        case ByAgent(named):
            found = _is_token(TABLE.c.submitted_by, named)
        case ByReason(rule):
            found = TABLE.c.rule == rule
        case BySource(named):
            found = _cites(named)
        case SentBefore(at):
            found = TABLE.c.created_at < at
        case SentAfter(at):
            found = TABLE.c.created_at >= at
        case Is(standing):
            found = _stands(standing, now)
        case AssignedTo("me"):
            found = or_(TABLE.c.assigned_to == me, TABLE.c.assigned_to.in_(_of_same_person(me)))
        case AssignedTo("nobody"):
            found = TABLE.c.assigned_to.is_(None)
        case AssignedTo(named):
            found = _is_token(TABLE.c.assigned_to, named)
    return found


def _stands(standing: Standing, now: datetime) -> Condition:
    match standing:
        case Standing.SNOOZED:
            return TABLE.c.snoozed_until > now
        case Standing.SENT_BACK:
            return TABLE.c.sent_back_at.is_not(None)
        case Standing.ANSWERED:
            return TABLE.c.question.is_not(None) & TABLE.c.sent_back_at.is_(None)
        case Standing.IMPORTED:
            return TABLE.c.lane == Lane.IMPORT.value


def _of_same_person(token_id: str) -> Select[tuple[str]]:
    person = select(_TOKEN.c.person_id).where(_TOKEN.c.id == token_id).scalar_subquery()
    return select(_TOKEN.c.id).where(_TOKEN.c.person_id == person)


def _is_token(column: ColumnElement[str | None], named: str) -> Condition:
    of_name = select(_TOKEN.c.id).where(func.lower(_TOKEN.c.name) == named.lower())
    return or_(column == named, column.in_(of_name))


def _cites(named: str) -> Condition:
    return or_(
        TABLE.c.content.icontains(named, autoescape=True), lineage.rests_on(TABLE, names.wanted(named), None)
    )
