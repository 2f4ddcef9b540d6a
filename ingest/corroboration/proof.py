"""The proof of an answer: Markdown made from a template, whose every word about a source is the source's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from vouchgate.ingest.claims.source import Stance
from vouchgate.ingest.corroboration.history import Hit, Outcome, SearchHistory, SearchTask
from vouchgate.ingest.corroboration.hits import BETWEEN
from vouchgate.ingest.corroboration.votes import Verdict, Weighed

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!])")
_ESCAPED = re.compile(rf"\\{_MARKUP.pattern}")
_QUOTED = "  > "  # before a quotation; other lines of the template do not begin so
_SAYS = {
    Stance.STATES: "states it",
    Stance.REFUTES: "says otherwise",
    Stance.SPEAKS: "speaks of it",
    Stance.SILENT: "says nothing of it",
    Stance.UNKNOWN: "could not be read",
}


def proof(task: SearchTask, history: SearchHistory, weighed: Weighed, verdict: Verdict) -> str:
    """The outcome, each source by voice with its own words, what was looked for and not found, and what failed. Text
    of others is escaped, so that it cannot be taken for the proof's own."""
    return "\n".join((*_answer(task, verdict), *_sources(weighed), *_gaps(history))) + "\n"


def _answer(task: SearchTask, verdict: Verdict) -> Iterator[str]:
    why = verdict.why
    outcome = "Not decided" if verdict.outcome is Outcome.INVALID else verdict.outcome.value
    yield f"# {outcome} ({verdict.label.value})"
    yield ""
    yield f"> {plain(task.claim)}"
    yield ""
    dates = f" As of {_day(task.as_of)}." if task.as_of else ""
    window = f" Sources of the {task.window_days} days before it count." if task.window_days else ""
    yield f"{why[:1].upper()}{why[1:]}.{dates}{window}"


def _sources(weighed: Weighed) -> Iterator[str]:
    voices = weighed.voices
    told = [voice for voice in voices if any(hit.stance in (Stance.STATES, Stance.REFUTES) for hit in voice)]
    for number, voice in enumerate(told, 1):
        yield from ("", f"## Voice {number}", "")
        for hit in voice:
            yield from _hit(hit)
    others = [hit for voice in voices if voice not in told for hit in voice]
    for title, hits in (("Read, and no evidence", others), ("Not counted for their dates", weighed.apart)):
        if hits:
            yield from ("", f"## {title}", "")
            for hit in hits:
                yield f"- {_name(hit)}: {_SAYS[hit.stance]}; {_weight(hit)}"


def _gaps(history: SearchHistory) -> Iterator[str]:
    missed = sorted({(one.path, one.query) for one in history.attempts if not one.found})
    if missed or history.failures:
        yield from ("", "## Gaps", "")
        for path, query in missed:
            yield f"- {plain(path)}: nothing for “{plain(query)}”"
        for path, query, reason in sorted({(one.path, one.query, one.why) for one in history.failures}):
            yield f"- {plain(path)}: “{plain(query)}” could not be looked for: {plain(reason)}"


def _hit(hit: Hit) -> Iterator[str]:
    yield f"- {_name(hit)}: {_SAYS[hit.stance]}; {_weight(hit)}, digest {hit.digest[:12]}"
    if hit.quotation:
        yield f"{_QUOTED}{plain(hit.quotation)}"


def _name(hit: Hit) -> str:
    place = hit.url or f"a text without an address ({hit.id[:12]})"
    dated = f", {_day(hit.published)}" if hit.published else ", undated"
    title = f"{plain(hit.title)}, " if hit.title not in ("", place) else ""
    return f"{title}{plain(place)}{dated}"


def _weight(hit: Hit) -> str:
    kind = "official" if hit.official else f"weight {hit.weight / 10:g}"
    read = f", read {_day(hit.read_at)}" if hit.read_at else ""
    return f"{kind}{read}" if hit.verified else f"{kind}, brought by the caller"


def _day(time: datetime | None) -> str:
    return "" if time is None else time.date().isoformat()


def plain(text: str) -> str:
    """A text of others on one line, with nothing in it that Markdown would take for its own."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def unescaped(text: str) -> str:
    """A text of others as it was before `plain`, on one line still."""
    return _ESCAPED.sub(r"\1", text)


def quotations(proof: str) -> tuple[str, ...]:
    """Every stretch that a proof quotes, each once, as its source has it."""
    lines = (unescaped(line[len(_QUOTED) :]) for line in proof.splitlines() if line.startswith(_QUOTED))
    return tuple(dict.fromkeys(part for line in lines for part in line.split(BETWEEN) if part.strip()))


def with_words(proof: str, words: str) -> str:
    """A proof in which a section that quotes the sources stands in place of their quotations, before their list."""
    lines = [line for line in proof.splitlines() if not line.startswith(_QUOTED)]
    at = next((number for number, line in enumerate(lines) if line.startswith("## ")), len(lines))
    return "\n".join((*lines[:at], *words.splitlines(), "", *lines[at:])) + "\n"
