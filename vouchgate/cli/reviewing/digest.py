"""`vouchgate review digest`: what waits for an owner and what happened, for a mail that a timer sends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from vouchgate.cli.output import say, write_json
from vouchgate.cli.review import open_review_session
from vouchgate.review.digests.figures import figures_of
from vouchgate.review.digests.text import digest_document, digest_text
from vouchgate.settings import Settings


def digest(settings: Settings, *, hours: int, owner: str | None, as_json: bool) -> int:
    """The reviewer's own queue as it is now. It is no failure when something waits."""
    now = datetime.now(UTC)
    page = None if settings.public_url is None else f"{settings.public_url}/review"
    with open_review_session(settings) as desk, desk.store.read() as connection:
        owner_id = desk.one_owner(owner)
        figures = figures_of(connection, owner_id, since=now - timedelta(hours=hours), page=page, now=now)
    if as_json:
        write_json(digest_document(figures))
    else:
        say(digest_text(figures))
    return 0
