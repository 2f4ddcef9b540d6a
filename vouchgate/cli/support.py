"""`vouchgate support`: does each source speak of its claim? The rules of the gate, on the passages the gate would
choose. No settings, no I/O but the lines."""

from __future__ import annotations

from typing import Any

from vouchgate.cli.input import open_input
from vouchgate.cli.output import FAILED, write_json
from vouchgate.importing.lines import BadLine, Line, read_lines
from vouchgate.ingest.checks.support import compare
from vouchgate.ingest.claims.types import TEXT_CHARACTERS
from vouchgate.ingest.support.passages import passages


def run(path: str) -> int:
    """Answers every line in order; 1 when any line was bad."""
    status = 0
    with open_input(path) as stream:
        for line in read_lines(stream):
            answer = _answer(line)
            if isinstance(answer, BadLine):
                status = FAILED
                answer = answer.as_json()
            write_json(answer)
    return status


def _answer(line: Line | BadLine) -> dict[str, Any] | BadLine:
    if isinstance(line, BadLine):
        return line
    texts = []
    for field in ("claim", "source_text"):
        text = line.fields.get(field)
        if not isinstance(text, str):
            message = f"{field} must be a string" if field in line.fields else f"the field {field} is missing"
            return BadLine(line.number, f"{field}_invalid", message, line.fields)
        texts.append(text)
    return support_fields(line.fields.get("id"), *texts)


def support_fields(identifier: Any, claim: str, source: str) -> dict[str, Any]:
    """What the rules can say, as it is written out. Spans are offsets in the two texts of the line; null where there
    is no such place. Like the gate, it reads the first TEXT_CHARACTERS of the source."""
    excerpt = passages(claim, (), "", source[:TEXT_CHARACTERS])
    support = compare(claim, excerpt.text)
    place = None if support.source is None else excerpt.origin(*support.source)
    return {
        "id": identifier,
        "verdict": support.verdict.value,
        "score": support.score,
        "spans": {"claim": _span(support.claim), "source": _span(place)},
    }


def _span(span: tuple[int, int] | None) -> dict[str, int] | None:
    return None if span is None else {"start": span[0], "end": span[1]}
