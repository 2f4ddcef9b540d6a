"""What reading a memory's sources again comes to, decided without I/O: do they still say what they said, and does the
memory promise more than is shown, as one may that was stored before statements were held against sources one by one?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from vouchgate.ingest.check import shorten
from vouchgate.ingest.checks import statements
from vouchgate.ingest.checks.citations import VERIFY
from vouchgate.ingest.claims.citation import KEPT_BY_OPERATOR
from vouchgate.ingest.claims.claim import Claim, Finding, Verdict
from vouchgate.ingest.claims.decision import Confidence, Decision, Label, ValidationResult
from vouchgate.ingest.claims.likeness import Neighbours
from vouchgate.ingest.claims.memory import Memory
from vouchgate.ingest.claims.source import Found, Held, SourceReading, Stance, Unreachable
from vouchgate.ingest.language.words import RUN_OR_CHARACTER
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Freshness
from vouchgate.ingest.sources.git.adr_text import tells_standing
from vouchgate.ingest.support.holding import text_held

# Of the word triples of the old passage that hold a word of the claim, how many must still be there. Pages change
# their dates, counts and adverts every day, and sentences around the one that matters; when two in five of those
# triples are gone, it was rewritten. A value that changed within a sentence is seen by what the page states.
PASSAGE_KEPT = 0.6
_RUN = 3  # words in a run: two are found anywhere, of four too many are lost with one changed word
_FEWEST = 5  # triples with a word of the claim; with fewer, all triples of the passage count

_RANKS = {Confidence.LOW: 0, Confidence.MEDIUM: 1, Confidence.HIGH: 2}
_NOT_SHOWN = "What it cites is not shown to state it."


Refuted = frozenset[tuple[str, str]]  # (citation key, finding code)


@dataclass(frozen=True, slots=True)
class Shown:
    """What the sources of a claim are shown to say of it now: the label and confidence that this is worth."""

    label: Label
    confidence: Confidence
    why: str  # a sentence for its owner


@dataclass(frozen=True, slots=True)
class SourceChanged:
    """A source went away, is not in force any more, or does not say any more what the claim was held against."""

    reason: str
    learned: tuple[Found, ...]
    shown: Shown | None = None  # `shown_now`


@dataclass(frozen=True, slots=True)
class SourcesUnchanged:
    """All sources were read, and are as they were as far as the claim is concerned."""

    learned: tuple[Found, ...]
    shown: Shown | None = None


@dataclass(frozen=True, slots=True)
class SourcesUnclear:
    """Nothing was found against the memory, but not every source could be read."""

    learned: tuple[Found, ...]
    readings: tuple[SourceReading, ...]  # as read now; a source may have said when to come back


Standings = SourceChanged | SourcesUnchanged | SourcesUnclear


def overdue(rules: Freshness, memory: Memory, kinds: Iterable[str], now: datetime) -> str:
    """Why a memory that rests on sources of these kinds is stale although nothing was found against it, a sentence;
    empty while it was confirmed within the days that the policy gives it."""
    given = [rules.sources.get(kind) for kind in kinds] + [rules.claims.get(memory.memory_type)]
    days = min((each for each in given if each is not None), default=None)
    confirmed = memory.confirmed_at or memory.created_at
    if days is None or now - confirmed <= timedelta(days=days):
        return ""
    return (
        f"Nothing has confirmed it since {confirmed:%Y-%m-%d}; the policy asks for that every {days:g} days."
    )


def refuted(findings: Iterable[Finding]) -> Refuted:
    """What stands against a claim's citations, by citation and kind."""
    return frozenset(
        (finding.citation.key, finding.code)
        for finding in findings
        if finding.citation is not None and finding.verdict in (Verdict.FAIL, Verdict.DOUBT)
    )


def compare(
    then: ValidationResult, learned: Sequence[Found], now: Examined, texts: Mapping[str, str]
) -> Standings:
    """Holds what was read `now` against the decision that let the memory in.

    `learned` is what earlier checks found of sources that this decision could not read, or that were not in force
    then; the answer has those and what is new. `texts` are the whole texts read now, by citation key. What was refuted
    then already let the owner decide, and is no news; what the decision did not cite says nothing about it.
    """
    later = {found.citation.key: found for found in learned}
    was = {
        reading.citation.key: later.get(reading.citation.key, reading) for reading in then.evidence.sources
    }
    read = {reading.citation.key: reading for reading in now.readings}
    known = refuted(then.findings)
    if not was:  # nothing that could confirm it
        return SourcesUnclear((), ())
    decision = now.knowing(dedup=Neighbours()).decide()
    news = {
        finding.citation.key: finding.message
        for finding in decision.findings
        if finding.citation is not None and _is_news(finding, known, was, read)
    }
    unread = False
    for key, reading in read.items():
        before = was.get(key)
        if before is None or key in news:
            continue
        if isinstance(reading, Unreachable):
            unread = True
        elif isinstance(reading, Found) and isinstance(before, Found):
            change = _change(then.evidence.claim, before, reading, texts.get(key, ""))
            if change is None:
                unread = True
            elif change:
                news[key] = change
            elif not before.vouches and reading.vouches:
                later[key] = reading  # from now on it counts as it is in force
        elif isinstance(reading, Found) and isinstance(before, Unreachable):
            later[key] = reading
    found = tuple(later[key] for key in sorted(later))
    shown = shown_now(then, now.readings, decision)
    if news:
        return SourceChanged(" ".join(news[key] for key in sorted(news)), found, shown)
    return SourcesUnclear(found, now.readings) if unread else SourcesUnchanged(found, shown)


def _is_news(
    finding: Finding, known: Refuted, was: Mapping[str, SourceReading], now: Mapping[str, SourceReading]
) -> bool:
    """Whether a finding against a citation is new, and about what became of the source. What is found of a text that
    has not changed is news about the rules."""
    refutes = refuted([finding])
    if finding.citation is None or not refutes:
        return False
    before, after = was.get(finding.citation.key), now.get(finding.citation.key)
    if isinstance(before, Found) and isinstance(after, Found):
        if finding.check == VERIFY and before.standing is not after.standing:
            return True
        if finding.check != VERIFY and before.digest == after.digest:
            return False
    return before is not None and not refutes <= known


def _change(claim: Claim, before: Found, now: Found, text: str) -> str | None:
    """What a source does not say any more that it said, a sentence; empty when it says it, None when it cannot be told,
    because it has no text any more."""
    name, kept = now.citation.value, now.citation.type in KEPT_BY_OPERATOR
    better = now.vouches and not before.vouches
    if before.digest == now.digest and (before.standing is now.standing or better):
        return ""
    changed = f"{name} was changed since the claim was stored{_marked(before, now.digest)}."
    if kept and not better:
        return changed
    if not before.excerpt or not text:
        return None if before.excerpt else ""
    # An owner may have let in what was only proposed: that it holds now is no change for the worse.
    if kept and not _is_whole(before.excerpt, text):
        return changed
    gone = _gone(claim, before, now, text)
    return gone and f"{name} has changed: {gone}."


def _gone(claim: Claim, before: Found, now: Found, text: str) -> str | None:
    """What of a text is not there any more, a clause; empty when nothing is, None when it cannot be told."""
    says = text_held(now, text)
    there = "".join(says[slice(*one.place)] for one in now.held or () if one.place is not None)
    if lost := _not_stated_any_more(before, now):
        quoted = shorten(claim.content[lost[0].start : lost[0].end])
        return f"it is not shown to state “{quoted}” any more{_marked(before, there)}"
    if share_kept(claim.stated, before.excerpt, text) < PASSAGE_KEPT:
        return f"what the claim was held against is not there any more{_marked(before, there)}"
    stated = any(one.stance is Stance.STATES for one in before.held or ())
    return None if stated and any(one.stance is Stance.UNKNOWN for one in now.held or ()) else ""


def _marked(before: Found, says: str) -> str:
    """What tells one change of a source from the next in a sentence, so that an owner who confirms a memory in spite of
    one is told of the next. Of a page in a private network it gives nothing away."""
    if not says:
        return ""
    mark = hashlib.sha256(f"{before.digest}\n{says}".encode(errors="replace")).hexdigest()[:8]
    return f"; its text is {mark} now"


def _not_stated_any_more(before: Found, now: Found) -> list[Held]:
    """The statements that a source stated, and is not shown to state now."""
    less = {
        (one.start, one.end)
        for one in now.held or ()
        if one.stance in (Stance.SPEAKS, Stance.SILENT, Stance.REFUTES)
    }
    return [one for one in before.held or () if one.stance is Stance.STATES and (one.start, one.end) in less]


def _is_whole(passage: str, text: str) -> bool:
    """Whether all of a record's passage is still there, but for lines on where the record stands."""
    words = _words(text)
    there = {run for length in range(1, _RUN + 1) for run in _runs(words, length)}
    lines = (line for line in passage.splitlines() if not tells_standing(line))
    return all(run in there for line in lines for run in _runs(_words(line)))


def share_kept(claim: str, passage: str, text: str) -> float:
    """How much of a passage is still in a text, 0 to 1: the share of its runs of three words, of those with a
    word of the claim. 1 for a passage without words. Linear in the lengths of all three."""
    words = _words(passage)
    if not words:
        return 1.0
    runs = set(_runs(words))
    telling = {word for word in _words(claim) if len(word) > 3 or any(map(str.isdigit, word))}
    about = {run for run in runs if not telling.isdisjoint(run)}
    wanted = about if len(about) >= _FEWEST else runs
    there = wanted.intersection(_runs(_words(text), min(_RUN, len(words))))
    return len(there) / len(wanted)


def _words(text: str) -> list[str]:
    return RUN_OR_CHARACTER.findall(text.casefold())


def _runs(words: Sequence[str], length: int | None = None) -> Iterator[tuple[str, ...]]:
    """Every run of three words, or of all there are."""
    size = min(_RUN, len(words)) if length is None else length
    return zip(*(islice(words, start, None) for start in range(size)), strict=False)


def shown_now(then: ValidationResult, readings: tuple[SourceReading, ...], now: Decision) -> Shown | None:
    """What is shown `now`, by sources just read, of a claim that was decided `then`. None when that decision held every
    statement against its sources already, and when not every source could be read: nothing is known then.

    Where every statement is stated, confidence stays as it was: a score may fall with nothing but time.
    """
    before = [source for source in then.evidence.sources if isinstance(source, Found) and source.held is None]
    if not before or not all(isinstance(reading, Found) for reading in readings):
        return None
    found = next((finding for finding in now.findings if finding.check == statements.CHECK), None)
    if found is not None and found.code == "stated":
        return Shown(now.label, Confidence.HIGH, "No official source states all of it by itself.")
    return Shown(now.label, now.confidence, _NOT_SHOWN if found is None else found.message)


def lowered(memory: Memory, shown: Shown) -> tuple[Label, Confidence] | None:
    """The label and confidence that the memory is left with; None when it promises no more than is shown. What its
    owner approved is held with medium confidence at least."""
    if memory.label is Label.UNVOUCHED:
        return None
    label = shown.label if memory.label is Label.FACT else memory.label
    least = Confidence.LOW if memory.approved_by is None else Confidence.MEDIUM
    worth = max(shown.confidence, least, key=_RANKS.__getitem__)
    confidence = min(memory.confidence, worth, key=_RANKS.__getitem__)
    return None if (label, confidence) == (memory.label, memory.confidence) else (label, confidence)
