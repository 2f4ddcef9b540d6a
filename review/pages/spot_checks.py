"""The page of spot checks, decided: each memory that was drawn with its statements and what its sources do to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.memory import MemoryStatus
from vouchgate.ingest.claims.source import Found, Held, Stance
from vouchgate.ingest.claims.waiting import SpotVerdict
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.scoring.sampling import NOTHING
from vouchgate.ingest.support.holding import by_statement, text_held
from vouchgate.review.pages.history import FilterChoice
from vouchgate.review.pages.source import NEAR, SourceView, source_views
from vouchgate.review.pages.wording.text import MarkedSpan, Pieces, pieces
from vouchgate.review.pages.wording.times import Moment, moment
from vouchgate.review.trust.spot_checks import Drawn, Judged
from vouchgate.storage.queue.spot_checks import OPEN, VerdictCounts

PATH = "/review/spot-checks"

WORDS = {
    SpotVerdict.RIGHT.value: "right",
    SpotVerdict.WRONG.value: "wrong",
    SpotVerdict.CANNOT_TELL.value: "cannot tell",
    OPEN: "not said yet",
}
# The best first: what one source says is not made worse by another that is silent.
_STANCES = {
    Stance.STATES: ("good", "stated by"),
    Stance.SPEAKS: ("doubt", "spoken of by"),
    Stance.REFUTES: ("bad", "refuted by"),
    Stance.SILENT: ("bad", "not in"),
    Stance.UNKNOWN: ("unknown", "could not be held against"),
}
_ORDER = list(_STANCES)
_AROUND = 200  # characters that are shown on each side of a place
_LONGEST = 600  # of the place itself


@dataclass(frozen=True, slots=True)
class StatementView:
    """One statement of a claim, and what the best of its sources does to it. `place` is where this source comes nearest
    to saying it, with what stands around, while its text is kept; `lacking` are words that it has nowhere near."""

    words: Pieces
    kind: str
    does: str
    source: Pieces
    place: Pieces
    lacking: Pieces


@dataclass(frozen=True, slots=True)
class SpotCheckView:
    """A memory that was drawn. `reason` is why it was stored; `verdict` what was said of it before, empty if nothing
    was."""

    memory_id: str
    claim: Pieces
    confidence: str
    memory_type: str
    status: str  # empty while it is in force
    rule: str
    reason: str
    stored: Moment
    verdict: str
    statements: tuple[StatementView, ...]
    sources: tuple[SourceView, ...]


@dataclass(frozen=True, slots=True)
class CountRow:
    """How often which rule was said to be right."""

    rule: str
    counts: str


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """How often an agent, a kind of citation or a publisher was right, with the interval of the share."""

    behind: str
    right: str


def choices(chosen: str) -> list[FilterChoice]:
    """What can be listed."""
    names = [OPEN, *(verdict.value for verdict in SpotVerdict)]
    return [FilterChoice(WORDS[name], address(name, None), name == chosen) for name in names]


def address(chosen: str, after: str | None) -> str:
    """That of a page of the list: `after` is the memory of the last one of the page before."""
    asked = {} if chosen == OPEN else {"verdict": chosen}
    asked |= {} if after is None else {"after": after}
    return PATH + (f"?{urlencode(asked)}" if asked else "")


def count_rows(counts: VerdictCounts) -> list[CountRow]:
    """The counts in words, in the order of the rules' names."""
    return [
        CountRow(rule.value, ", ".join(f"{times[name]} {words}" for name, words in WORDS.items()))
        for rule, times in sorted(counts.items())
    ]


def judged_rows(judged: Sequence[Judged], names: Mapping[str, str]) -> list[JudgedRow]:
    """How often who was right, in words; `names` are those of tokens."""
    words = {"agent": "Sent by", "kind": "Citing", "publisher": "Published by"}
    return [
        JudgedRow(
            f"{words[one.of]} {'nothing' if one.name == NOTHING else names.get(one.name, one.name)}",
            f"{one.right} of {one.right + one.wrong} right: {one.low:.0%} to {one.high:.0%}",
        )
        for one in judged
    ]


def spot_check_view(
    drawn: Drawn, answer: ValidationResult | None, texts: Mapping[str, str], policy: Policy, now: datetime
) -> SpotCheckView:
    """One of the list. `answer` is the decision that stored the memory; None: it cannot be read. `texts` are those of
    its sources that are kept, by digest."""
    memory, check = drawn.memory, drawn.check
    return SpotCheckView(
        memory_id=memory.id,
        claim=pieces(memory.content),
        confidence=memory.confidence.value,
        memory_type=memory.memory_type.value,
        status="" if memory.status is MemoryStatus.ACTIVE else memory.status.value,
        rule=check.rule.value,
        reason="" if answer is None else answer.reason,
        stored=moment(memory.created_at, now),
        verdict="" if check.verdict is None else WORDS[check.verdict.value],
        statements=() if answer is None else statement_views(answer, texts),
        sources=() if answer is None else source_views(answer, policy, now),
    )


def statement_views(answer: ValidationResult, texts: Mapping[str, str]) -> tuple[StatementView, ...]:
    """Every statement that was held against a source, in the order of the claim."""
    content = answer.evidence.claim.content
    found = (source for source in answer.evidence.sources if isinstance(source, Found))
    return tuple(_statement(content, pairs, texts) for pairs in by_statement(found))


def _statement(content: str, pairs: Sequence[tuple[Held, Found]], texts: Mapping[str, str]) -> StatementView:
    held, source = min(pairs, key=lambda pair: (_ORDER.index(pair[0].stance), -pair[0].score))
    kind, does = _STANCES[held.stance]
    return StatementView(
        words=pieces(content[held.start : held.end]),
        kind=kind,
        does=does,
        source=pieces(source.name),
        place=_place(held, source, texts),
        lacking=pieces(", ".join(held.missing)),
    )


def _place(held: Held, source: Found, texts: Mapping[str, str]) -> Pieces:
    """The place in the source's text, marked; nothing where there is none or the text is not kept."""
    whole = texts.get(source.text_digest)
    if held.place is None or whole is None:
        return ()
    text, (start, end) = text_held(source, whole), held.place
    end = min(end, start + _LONGEST)
    first = max(start - _AROUND, 0)
    shown = text[first : end + _AROUND]
    return pieces(
        shown, [MarkedSpan(start - first, end - first, NEAR, "where it comes nearest to the statement")]
    )
