"""`vouchgate detect`: hedges and citations of each text, and nothing else. No settings, no I/O but the lines."""

from __future__ import annotations

from typing import Any

from vouchgate.cli.lines.answering import Answer, answer_lines
from vouchgate.importing.lines import BadLine, Line, text_fields
from vouchgate.ingest.checks.hedge import HedgeDetector, action_of
from vouchgate.ingest.citations import detect_citations
from vouchgate.ingest.hedges.lexicon import load_lexicon


def run(path: str) -> int:
    """Answers every line in order; 1 when any line was bad."""
    detector = HedgeDetector(load_lexicon())
    return answer_lines(path, lambda line: _answer(line, detector))


def _answer(line: Line, detector: HedgeDetector) -> Answer:
    texts = text_fields(line, "text")
    if isinstance(texts, BadLine):
        return texts
    return detection_fields(line.fields.get("id"), *texts, detector=detector)


def detection_fields(identifier: Any, text: str, *, detector: HedgeDetector) -> dict[str, Any]:
    """What is in the text, as it is written out. Other fields of the line are the caller's own."""
    matches = detector.detect(text)
    return {
        "id": identifier,
        "hedge": {
            "action": action_of(matches).value,
            "matches": [
                {"category": m.category.value, "text": m.text, "start": m.start, "end": m.end}
                for m in matches
            ],
        },
        "citations": [
            {"type": c.type, "value": c.value, "start": c.start, "end": c.end} for c in detect_citations(text)
        ],
    }
