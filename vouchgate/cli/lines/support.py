"""`vouchgate support`: does each source say what its claim says, statement by statement? The rules of the gate, on the
text and the passages the gate would choose. No settings, no I/O but the lines."""

from __future__ import annotations

from typing import Any

from vouchgate.cli.lines.answering import Answer, answer_lines
from vouchgate.importing.lines import BadLine, Line, text_fields
from vouchgate.ingest.checks.support import SupportVerdict, compare
from vouchgate.ingest.claims.bounds import TEXT_CHARACTERS
from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.source import Found, Held, Standing
from vouchgate.ingest.support.holding import hold
from vouchgate.ingest.support.passages import passages
from vouchgate.ingest.support.record import looks_like_record, read_record

KINDS = ("", "adr", "page")


def run(path: str) -> int:
    """Answers every line in order; 1 when any line was bad."""
    return answer_lines(path, _answer)


def _answer(line: Line) -> Answer:
    texts = text_fields(line, "claim", "source_text", optional=("title", "kind"))
    if isinstance(texts, BadLine):
        return texts
    if (kind := texts[-1]) not in KINDS:
        message = f"kind must be {' or '.join(filter(None, KINDS))}, not {kind[:40]!r}"
        return BadLine(line.number, "kind_invalid", message, line.fields)
    return support_fields(line.fields.get("id"), *texts)


def support_fields(identifier: Any, claim: str, source_text: str, title: str, kind: str) -> dict[str, Any]:
    """What the rules can say, as it is written out. Spans are offsets in the two texts of the line; null where there
    is no such place. Like the gate, it reads the first TEXT_CHARACTERS of the source; a `kind` of "adr" reads it as a
    decision record, as does a text that looks like one."""
    text = source_text[:TEXT_CHARACTERS]
    record = kind == "adr" or (not kind and looks_like_record(text))
    citation = Citation(type="adr" if record else "url", value="", key="")
    found = Found(
        citation=citation,
        source_id="",
        standing=Standing.IN_FORCE,
        detail="",
        title=title or (read_record(text).title if record else ""),
        text=text,
        form="record" if record else "page",
    )
    excerpt = passages(claim, (), found.title, read_record(text).spoken if record else text)
    found = hold(claim, (), found)
    support = compare(claim, excerpt.text, title=found.title, held=found.held)
    held = found.held or ()
    stated = support.verdict is SupportVerdict.STATES
    place = held[0].place if stated else None if support.source is None else excerpt.origin(*support.source)
    return {
        "id": identifier,
        "verdict": support.verdict.value,
        "statements": [_statement(claim, one) for one in held],
        "score": min((one.score for one in held), default=support.score),
        "spans": {"claim": _span(support.claim), "source": _span(place)},
    }


def _statement(claim: str, held: Held) -> dict[str, Any]:
    return {
        "text": claim[held.start : held.end],
        "start": held.start,
        "end": held.end,
        "stance": held.stance.value,
        "score": held.score,
        "missing": list(dict.fromkeys((*held.uncovered, *held.missing))),
        "why": held.why,
        "place": _span(held.place),
    }


def _span(span: tuple[int, int] | None) -> dict[str, int] | None:
    return None if span is None else {"start": span[0], "end": span[1]}
