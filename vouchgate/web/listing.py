"""From an address to the part of the queue it names. What makes no sense is an error, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from vouchgate.ingest.claims.types import MemoryType
from vouchgate.ingest.rules import Rule
from vouchgate.review.pages.queue import QueueListing
from vouchgate.storage.claims.memories import storable
from vouchgate.storage.queue.pending import Order
from vouchgate.web.pages import PageProblem

MOST_TEXT = 200  # characters of a search
MOST_KEY = 4096  # of anything else


def listing_of(query: Mapping[str, str]) -> QueueListing:
    """The listing that a query names. Raises PageProblem (422) for a value that names none."""
    given = {name: query.get(name, "").strip() for name in ("rule", "sender", "cited", "type")}
    q, order = query.get("q", "").strip(), query.get("order") or "priority"
    for value in (*given.values(), q):
        if len(value) > MOST_KEY or not storable(value):
            raise PageProblem(422, "This address names a group that cannot be.")
    if len(q) > MOST_TEXT:
        raise PageProblem(422, f"A search has at most {MOST_TEXT} characters.")
    rule = given["rule"]
    if rule and rule not in set(Rule):
        raise PageProblem(422, "This address names a reason that there is not.")
    if given["type"] and given["type"] not in set(MemoryType):
        raise PageProblem(422, "This address names a type of memory that there is not.")
    return QueueListing(
        rule=Rule(rule) if rule else None,
        sender=given["sender"] or None,
        cited=given["cited"] or None,
        memory_type=MemoryType(given["type"]) if given["type"] else None,
        q=q or None,
        order=_order(order),
    )


def _order(text: str) -> Order:
    for known in get_args(Order):
        if text == known:
            order: Order = known
            return order
    raise PageProblem(422, "This address names an order that there is not.")
