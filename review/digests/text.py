"""The daily digest of an owner's queue, as plain text for a mail and as a document for programs. Pure.

Claims in it are hostile text: they stand in quotes, on lines of their own, cut, and with everything named that nobody
would see. Lines are at most WIDTH columns, so that mail programs leave them as they are.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.scoring.priority import NEAR_EXPIRY, span, span_left
from vouchgate.review.pages.reasons import kind_of
from vouchgate.review.pages.wording.text import plain_line
from vouchgate.storage.outgoing.webhooks import Webhook
from vouchgate.storage.queue.overview import MOST_ENTRIES, EventCounts

WIDTH = 72
MOST_SHOWN = 5  # items, the most pressing first
MOST_CLAIM = 100  # characters of each
_MOST_ERROR = 200
# A dot as in a domain: a version such as 3.11, or the end of a sentence, is none.
_DOT = re.compile(r"(?<=\w)[.\u3002\uff0e\uff61](?=[^\W\d_]{2})")
_JOINERS = "\u200c\u200d"
# Unicode's categories of what goes with the character before it; and of these, what is seen as nothing without it.
_BOUND = frozenset({"Mn", "Mc", "Me", "Cf"})
_UNSEEN_ALONE = frozenset({"Mn", "Me"})

# What a digest tells of, in this order. All else in the log is either a part of one of these or the owner's own act.
_WORDS = {
    Action.CLAIM_STORED: ("stored", "stored"),
    Action.CLAIM_BLOCKED: ("blocked", "blocked"),
    Action.CLAIM_LET_THROUGH: ("let_through", "let through unvouched"),
    Action.CLAIM_QUEUED: ("queued", "queued"),
    Action.CLAIM_PROMOTED: ("promoted", "stored after another check"),
    Action.REVIEW_APPROVED: ("approved", "approved"),
    Action.REVIEW_REJECTED: ("rejected", "rejected"),
    Action.REVIEW_LET_GO: ("let_go", "let go"),
    Action.REVIEW_SENT_BACK: ("sent_back", "sent back to agents"),
    Action.REVIEW_UNDONE: ("undone", "taken back"),
    Action.REVIEW_EXPIRED: ("expired", "expired without a decision"),
    Action.MEMORY_STALE: ("stale", "found stale"),
    Action.MEMORY_RELABELLED: ("relabelled", "found to promise too much"),
}


@dataclass(frozen=True, slots=True)
class DigestFigures:
    """What a digest is made of, as it was at one moment."""

    owner_id: str
    at: datetime
    hours: int  # that `happened` tells of
    waiting: int
    by_rule: Mapping[Rule, int]
    oldest: datetime | None  # since when the oldest item waits
    expiring: int  # within NEAR_EXPIRY
    first: Sequence[PendingMemory]  # the most pressing ones
    happened: EventCounts
    failing: Sequence[Webhook]  # those whose last try failed
    page: str | None  # where the queue can be cleared


def has_news(figures: DigestFigures) -> bool:
    """Whether there is anything to tell: something waits, happened, or is not well."""
    return bool(figures.waiting or figures.failing or any(map(figures.happened.counts.get, _WORDS)))


def digest_text(figures: DigestFigures, *, linked: bool = False) -> str:
    """The digest for people; one line when there is nothing to tell. `linked`: with the address of each item, which may
    be longer than WIDTH, and with nothing in claims that a mail program would make a link of."""
    parts = [
        [_headline(figures)],
        _reasons(figures),
        _first(figures, linked=linked),
        _happened(figures),
        *(_webhook(hook) for hook in figures.failing),
        _where(figures),
    ]
    return "\n\n".join("\n".join(part) for part in map(list, parts) if part)


def _headline(figures: DigestFigures) -> str:
    if not figures.waiting:
        return "Nothing waits for you: the queue is clear."
    one = figures.waiting == 1
    text = f"{figures.waiting:,} claim{' waits' if one else 's wait'} for you."
    if figures.oldest is not None:
        text += f" {'It' if one else 'The oldest'} has waited {span(figures.at - figures.oldest)}."
    if figures.expiring:
        text += (
            f" {figures.expiring:,} expire{'s' if figures.expiring == 1 else ''} within {span(NEAR_EXPIRY)}."
        )
    return _wrapped(text)


def _reasons(figures: DigestFigures) -> Iterator[str]:
    if figures.waiting:
        yield "Why they wait" if figures.waiting > 1 else "Why it waits"
    counts = sorted(figures.by_rule.items(), key=lambda pair: (-pair[1], pair[0]))
    for rule, count in counts:
        yield f"{count:>8,}  {kind_of(rule).label}"


def item_address(figures: DigestFigures, item: PendingMemory) -> str:
    """Where the item is looked at, and ruled on by who is signed in; its id where the pages have no address."""
    return item.id if figures.page is None else f"{figures.page}/items/{item.id}"


def _first(figures: DigestFigures, *, linked: bool) -> Iterator[str]:
    if figures.first:
        yield "First in line"
    for item in figures.first:
        left = item.expires_at - figures.at
        near = f", expires in {span_left(left)}" if left <= NEAR_EXPIRY else ""
        yield ""
        yield f"  {kind_of(item.rule).label}, waits {span(figures.at - item.created_at)}{near}"
        claim = plain_line(item.content, MOST_CLAIM)
        yield _wrapped(f"“{_without_links(claim) if linked else claim}”", "    ")
        yield f"    {item_address(figures, item) if linked else item.id}"


def _without_links(claim: str) -> str:
    """With brackets in what a mail program would make a link of: `https[:]//evil[.]example`. Who reads a digest is to
    follow our links only."""
    return _DOT.sub("[.]", claim.replace("://", "[:]//"))


def _happened(figures: DigestFigures) -> Iterator[str]:
    told = [
        f"{count:,} {words}"
        for action, (_, words) in _WORDS.items()
        if (count := figures.happened.counts.get(action, 0))
    ]
    if not told:
        return
    hours = "hour" if figures.hours == 1 else f"{figures.hours:,} hours"
    yield f"In the last {hours}"
    yield _wrapped(", ".join(told) + ".", "  ")
    if not figures.happened.complete:
        yield _wrapped(
            f"So much happened that only the last {MOST_ENTRIES:,} entries of the log were counted.", "  "
        )


def _webhook(hook: Webhook) -> Iterator[str]:
    since = "" if hook.failing_since is None else f" since {hook.failing_since:%Y-%m-%d %H:%M} UTC"
    state = "It was given up" if hook.due_at is None else "It is tried again"
    yield _wrapped(f"Your webhook at {_host(hook)} has not answered{since}. {state}. The last error:")
    yield _wrapped(plain_line(hook.last_error or "not known", _MOST_ERROR), "  ")
    yield f"  vouchgate webhook test {hook.id}"


def _where(figures: DigestFigures) -> Iterator[str]:
    if figures.waiting and figures.page is not None:
        yield f"Clear the queue: {figures.page}"
    elif figures.waiting:
        yield "Clear the queue on the review page, or with vouchgate review list."


def _host(hook: Webhook) -> str:
    """The host alone: the path of a webhook is often what makes it secret."""
    return plain_line(urlsplit(hook.url).hostname or "an unknown host", 100)


def _wrapped(text: str, indent: str = "") -> str:
    parts = [part for word in text.split() for part in _parts(word, WIDTH - len(indent))]
    return textwrap.fill(
        " ".join(parts),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,  # ids and addresses stay whole where they fit a line
    )


def _parts(word: str, most: int) -> Iterator[str]:
    """A word in parts of at most `most` characters. Nothing that belongs to the character before it, such as an
    accent or a joiner, begins a part: alone on a line it would be seen as nothing."""
    while len(word) > most:
        at = (
            _last_break(word, most, _BOUND)
            or _last_break(word, most, _UNSEEN_ALONE)
            or _last_break(word, most, _UNSEEN_ALONE, "")
            or most
        )
        yield word[:at].rstrip(_JOINERS)
        word = word[at:].lstrip(_JOINERS)  # where all is joined, the end of a line parts it
    yield word


def _last_break(word: str, most: int, bound: frozenset[str], joiners: str = _JOINERS) -> int:
    """The last place up to `most` with nothing of these categories behind it, and no joiner at it; 0 for none."""
    for at in range(most, 0, -1):
        if unicodedata.category(word[at]) not in bound and not {word[at - 1], word[at]} & set(joiners):
            return at
    return 0


def digest_document(figures: DigestFigures) -> dict[str, Any]:
    """The digest for programs; texts are whole."""
    return {
        "owner_id": figures.owner_id,
        "at": figures.at.isoformat(),
        "waiting": figures.waiting,
        "reasons": {kind_of(rule).slug: count for rule, count in sorted(figures.by_rule.items())},
        "oldest_at": None if figures.oldest is None else figures.oldest.isoformat(),
        "expiring": figures.expiring,
        "first": [
            {
                "id": item.id,
                "reason": kind_of(item.rule).slug,
                "content": item.content,
                "created_at": item.created_at.isoformat(),
                "expires_at": item.expires_at.isoformat(),
            }
            for item in figures.first
        ],
        "hours": figures.hours,
        "happened": {name: figures.happened.counts.get(action, 0) for action, (name, _) in _WORDS.items()},
        "complete": figures.happened.complete,
        "webhooks_failing": [
            {
                "id": hook.id,
                "host": _host(hook),
                "since": None if hook.failing_since is None else hook.failing_since.isoformat(),
                "given_up": hook.due_at is None,
                "error": hook.last_error,
            }
            for hook in figures.failing
        ],
        "page": figures.page,
    }
