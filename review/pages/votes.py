"""What the page of a claim says of the people who must agree."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vouchgate.ingest.claims.waiting import PendingMemory, ReviewStatus
from vouchgate.review.pages.wording.text import pieces
from vouchgate.review.pages.wording.times import Moment, moment
from vouchgate.review.reading import VoteCount
from vouchgate.storage.queue.votes import Vote


@dataclass(frozen=True, slots=True)
class VoteLine:
    """One vote in words. `counts`: it is for the item as it is."""

    who: str
    words: str
    note: object  # pieces of text
    when: Moment
    counts: bool


@dataclass(frozen=True, slots=True)
class VotesView:
    """How far an item is. `own`: the visitor's approval counts, and can be taken back."""

    title: str
    asked: str
    lines: tuple[VoteLine, ...]
    own: bool


def votes_view(item: PendingMemory, cast: VoteCount, person: str | None, now: datetime) -> VotesView | None:
    """None where one approval is enough, of anybody, and nobody voted."""
    required, waits = cast.required, item.status is ReviewStatus.PENDING
    if required.approvals == 1 and not required.asked and not cast.votes:
        return None
    given = cast.given
    missing = max(0, required.approvals - len(given))
    more = f"; {missing} more {'is' if missing == 1 else 'are'} needed" if waits else ""
    return VotesView(
        f"{len(given)} of {required.approvals} approved{more}",
        ", ".join([*required.asked, *(f"{name} for {absent}" for name, absent in required.stand_ins)]),
        tuple(_line(vote, vote in given, now) for vote in cast.votes),
        waits and person is not None and any(vote.person_id == person for vote in given),
    )


def _line(vote: Vote, counts: bool, now: datetime) -> VoteLine:
    words = "approved" if vote.verdict == "approve" else "objected"
    return VoteLine(vote.name or vote.person_id, words, pieces(vote.note or ""), moment(vote.at, now), counts)
