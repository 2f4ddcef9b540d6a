"""From an address to the part of the queue it names. What makes no sense is an error, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import get_args

from vouchgate.ingest.claims.claim import MemoryType
from vouchgate.ingest.rules import Rule
from vouchgate.review.pages.queue import QueueListing
from vouchgate.storage.claims.memories import storable
from vouchgate.storage.queue.pending import Order
from vouchgate.storage.queue.query import Query, QueryError, parse
from vouchgate.web.pages import PageProblem

MOST_KEY = 4096  # characters of anything but a query


def listing_of(query: Mapping[str, str]) -> QueueListing:
    """The listing that an address names. Raises PageProblem (422) for a value that names none, except in the search
    box: what is wrong there is told beside it."""
    given = {name: query.get(name, "").strip() for name in ("rule", "sender", "cited", "type")}
    q, order = query.get("q", "").strip(), query.get("order") or "priority"
    for value in given.values():
        if len(value) > MOST_KEY or not storable(value):
            raise PageProblem(422, "This address names a group that cannot be.")
    rule = given["rule"]
    if rule and rule not in set(Rule):
        raise PageProblem(422, "This address names a reason that there is not.")
    if given["type"] and given["type"] not in set(MemoryType):
        raise PageProblem(422, "This address names a type of memory that there is not.")
    terms, fault = parse_typed(q, datetime.now(UTC))
    return QueueListing(
        rule=Rule(rule) if rule else None,
        sender=given["sender"] or None,
        cited=given["cited"] or None,
        memory_type=MemoryType(given["type"]) if given["type"] else None,
        q=q or None,
        terms=terms,
        fault=fault,
        order=_order(order),
    )


def parse_typed(q: str, now: datetime) -> tuple[Query | None, str]:
    """What stands in a search box; None, and what is wrong as a sentence, when it cannot be understood."""
    try:
        return parse(q, now), ""
    except QueryError as error:
        return None, str(error)


def _order(text: str) -> Order:
    for known in get_args(Order):
        if text == known:
            order: Order = known
            return order
    raise PageProblem(422, "This address names an order that there is not.")
