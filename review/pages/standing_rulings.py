"""The page of an owner's standing rulings, decided: each with what it did, and a new one with its preview."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from vouchgate.ingest.claims.standing_rulings import RulingTerms, StandingRuling
from vouchgate.ingest.claims.trust import RulingVerdict
from vouchgate.ingest.scoring.sampling import NOTHING
from vouchgate.review.trust.standing_rulings import DAYS, Proposal, Ruled, RulingPreview
from vouchgate.review.trust.taking_back import RulingEnded, Then
from vouchgate.storage.claims.standing_rulings import RulingCounts

PATH = "/review/standing-rulings"
CHOICES = (30, 90, 180)  # days that the page offers
AT_FIRST = frozenset({"agent", "kind", "template"})  # terms that a proposal has ticked
LABELS = {
    "agent": "sent by",
    "source": "from the source",
    "memory_type": "of the type",
    "kind": "citing",
    "path": "citing the file or folder",
    "publisher": "citing the publisher",
    "template": "in the words (* is any one word)",
}
VERDICTS = {RulingVerdict.STORE: ("good", "stored"), RulingVerdict.REJECT: ("bad", "rejected")}
RULED = {
    Ruled.SAME: ("good", "ruled the same"),
    Ruled.OTHERWISE: ("bad", "ruled otherwise"),
    Ruled.NOBODY: ("plain", "nobody ruled"),
}


@dataclass(frozen=True, slots=True)
class TermView:
    """One term of a standing ruling; `value` is as the form sends it back."""

    name: str
    label: str
    value: str
    shown: str
    ticked: bool


@dataclass(frozen=True, slots=True)
class RulingView:
    """A standing ruling with what it did. `ways` are the ways to take it back, or further back; `state` is empty while
    it is in force."""

    ruling: StandingRuling
    terms: tuple[TermView, ...]
    did: str
    state: str
    confirmed_by: str
    ways: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NewRulingView:
    """A standing ruling to be, with the preview that was asked for; `problem` says why there is none."""

    proposal: Proposal
    terms: tuple[TermView, ...]
    name: str
    verdict: RulingVerdict | None = None
    seen: RulingPreview | None = None
    sentences: tuple[str, ...] = field(default=())
    problem: str = ""


def term_views(
    terms: RulingTerms, names: Mapping[str, str], ticked: frozenset[str] = frozenset(LABELS)
) -> tuple[TermView, ...]:
    """The terms that are named, with what agents are called."""
    said: dict[str, str] = terms.model_dump(mode="json", exclude_none=True)
    shown = {name: names.get(value, value) if name == "agent" else value for name, value in said.items()}
    if said.get("kind") == NOTHING:
        shown["kind"] = "nothing"
    return tuple(
        TermView(name, LABELS[name], value, shown[name], name in ticked) for name, value in said.items()
    )


def ruling_view(
    ruling: StandingRuling, did: RulingCounts, names: Mapping[str, str], now: datetime
) -> RulingView:
    """One of the list; `names` are those of tokens."""
    over = "over" if ruling.until <= now else ""
    state = over if ruling.ended_at is None else f"taken back {ruling.ended_at:%Y-%m-%d}"
    said = [f"stored {did.stored}, {did.in_force} in force"] if did.stored else []
    said += [f"rejected {did.rejected}"] if did.rejected else []
    said += [f"spot checks: {did.right} right, {did.wrong} wrong"] if did.right or did.wrong else []
    ways = [(Then.KEEP.value, "End it, keep what it did")] if ruling.ended_at is None else []
    ways += [(Then.QUEUE.value, f"Take back: {did.open} to the queue")] if did.open else []
    ways += [(Then.RETRACT.value, f"Take back: retract {did.in_force}")] if did.in_force else []
    return RulingView(
        ruling=ruling,
        terms=term_views(ruling.terms, names),
        did="; ".join(said) or "did nothing yet",
        state=state,
        confirmed_by=names.get(ruling.confirmed_by, ruling.confirmed_by),
        ways=tuple(ways),
    )


def name_of(proposal: Proposal) -> str:
    """What a standing ruling is called unless its owner says otherwise."""
    return f"like “{' '.join(proposal.content.split())[:60]}”"


def sentences_of(verdict: RulingVerdict, seen: RulingPreview) -> tuple[str, ...]:
    """What a standing ruling would have done."""
    looked = f"{'newest ' if seen.cut else ''}{seen.looked_at} decisions of the last {DAYS} days"
    return (
        f"Of the {looked} it would have {VERDICTS[verdict][1]} {seen.would}.",
        f"People ruled the same on {seen.same}, otherwise on {seen.otherwise}; on {seen.nobody} nobody ruled.",
    )


def ended_sentence(ended: RulingEnded) -> str:
    """What came of taking a standing ruling back."""
    said = f"Taken back: {ended.queued} went to the queue, {ended.retracted} memories are retracted."
    more = f" The queue is full, {ended.left} are left: decide others, then take it back again."
    return said + more if ended.full else said
