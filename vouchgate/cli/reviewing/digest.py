"""`vouchgate review digest`: what waits for an owner and what happened, for a mail that a timer sends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from vouchgate.cli.output import say, write_json
from vouchgate.cli.review import open_review_session
from vouchgate.ingest.scoring.priority import NEAR_EXPIRY
from vouchgate.review.digest import MOST_SHOWN, DigestFigures, digest_document, digest_text
from vouchgate.settings import Settings
from vouchgate.storage.identity import owners
from vouchgate.storage.outgoing import webhooks
from vouchgate.storage.queue import overview, pending
from vouchgate.storage.queue.pending import QueueFilter


def digest(settings: Settings, *, hours: int, owner: str | None, as_json: bool) -> int:
    """The reviewer's own queue as it is now. It is no failure when something waits."""
    page = None if settings.public_url is None else f"{settings.public_url}/review"
    with open_review_session(settings) as desk, desk.store.read() as connection:
        owner_id = desk.one_owner(owner)
        figures = figures_of(connection, owner_id, hours=hours, page=page, now=datetime.now(UTC))
    if as_json:
        write_json(digest_document(figures))
    else:
        say(digest_text(figures))
    return 0


def figures_of(
    connection: Connection, owner_id: str, *, hours: int, page: str | None, now: datetime
) -> DigestFigures:
    """The figures of one owner, all of the one state that this reading transaction sees."""
    log_seq, waiting = owners.log_ends(connection, [owner_id]).get(owner_id, (0, 0))
    wanted = QueueFilter(owners=frozenset({owner_id}), limit=MOST_SHOWN)
    return DigestFigures(
        owner_id=owner_id,
        at=now,
        hours=hours,
        waiting=waiting,
        by_rule=overview.facets(connection, owner_id, waiting, log_seq, None).by_rule,
        oldest=overview.oldest_wait_since(connection, owner_id),
        expiring=overview.expiring(connection, owner_id, now + NEAR_EXPIRY),
        first=pending.search(connection, wanted),
        happened=overview.count_events(connection, owner_id, now - timedelta(hours=hours), log_seq),
        failing=webhooks.failing(connection, owner_id),
        page=page,
    )
