"""The page of publishers that an owner trusts or bans, decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from vouchgate.ingest.claims.trust import PublisherTrust, Trust
from vouchgate.review.pages.wording.text import Pieces, pieces
from vouchgate.review.pages.wording.times import Moment, moment
from vouchgate.review.trust.publishers import Preview

PATH = "/review/publishers"
DAYS = (30, 90, 365)  # that the page offers, the last one first chosen
WORDS = {Trust.TRUSTED: "trusted", Trust.BANNED: "banned"}


@dataclass(frozen=True, slots=True)
class PublisherView:
    """A publisher of which the owner says something. `name` is as the form sends it back."""

    name: str
    shown: Pieces
    kind: str
    word: str
    since: Moment
    until: str
    impact_href: str


@dataclass(frozen=True, slots=True)
class PreviewView:
    """A publisher on which the owner may say something, and what that would bear on."""

    name: str
    shown: Pieces
    sentences: tuple[str, ...]
    impact_href: str


def href_of(publisher: str) -> str:
    """Where an owner trusts or bans this publisher."""
    return f"{PATH}?{urlencode({'publisher': publisher})}"


def impact_href(source: str) -> str:
    """Where an owner sees what rests on a source."""
    return f"/review/memories?{urlencode({'source': source, 'state': 'all'})}"


def publisher_views(said: Sequence[PublisherTrust], now: datetime) -> list[PublisherView]:
    """The list, by name."""
    return [
        PublisherView(
            name=one.publisher,
            shown=pieces(one.publisher),
            kind="good" if one.trust is Trust.TRUSTED else "bad",
            word=WORDS[one.trust],
            since=moment(one.created_at, now),
            until=f"{one.until:%Y-%m-%d}",
            impact_href=impact_href(f"site:{one.publisher}"),
        )
        for one in said
    ]


def preview_view(publisher: str, seen: Preview) -> PreviewView:
    """What is known before an owner decides."""
    waiting = _counted(seen.waiting, "waiting claim cites it", "waiting claims cite it")
    stored = _counted(seen.would_store, "would have been stored", "would have been stored")
    rest = _counted(seen.memories, "stored memory rests on it", "stored memories rest on it")
    return PreviewView(
        name=publisher,
        shown=pieces(publisher),
        sentences=(
            f"{waiting}; had you trusted it, {stored}. What waits goes on waiting for you.",
            f"{rest}. Under a ban they are marked as stale when their sources are read again.",
        ),
        impact_href=impact_href(f"site:{publisher}"),
    )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
