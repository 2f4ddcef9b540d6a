"""Reviewers' own names for queries. Nobody sees another's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vouchgate.ingest.claims.people import Principal
from vouchgate.review.rules import Act, is_allowed
from vouchgate.storage.identity.names import valid_name
from vouchgate.storage.queue import views
from vouchgate.storage.queue.query import QueryError, parse
from vouchgate.storage.queue.views import SavedView
from vouchgate.storage.store import Store


@dataclass(frozen=True, slots=True)
class TooManyViews:
    """There are as many as one may have (`storage.queue.views.MOST_VIEWS`). Nothing was written."""


def listing(store: Store, principal: Principal) -> list[SavedView]:
    """The reviewer's views by name; none for any other principal."""
    if not is_allowed(principal, Act.READ_REVIEWS):
        return []
    with store.read() as connection:
        return views.listing(connection, principal.id)


def save(
    store: Store, principal: Principal, name: str, query: str, now: datetime
) -> SavedView | TooManyViews:
    """Keeps a query under a name, in place of what had it. Raises QueryError for one that cannot be understood, or a
    name that cannot be shown."""
    view = SavedView(name.strip(), query.strip())
    if not valid_name(view.name) or not parse(view.query, now).terms:
        raise QueryError("A view needs a name in printable characters, and a query that looks for something.")
    kept = store.writer.run((), lambda c: views.save(c, principal.id, view, now)).result()
    return view if kept else TooManyViews()


def remove(store: Store, principal: Principal, name: str) -> bool:
    """Forgets a view; whether there was one."""
    return store.writer.run((), lambda c: views.remove(c, principal.id, name)).result()
