"""`vouchgate corroborate`: what do the sources of each line say of its claim together? Under the built-in policy. No
settings, no I/O but the lines."""

from __future__ import annotations

from pydantic import ValidationError

from vouchgate.cli.lines.answering import Answer, answer_lines
from vouchgate.importing.lines import BadLine, Line
from vouchgate.ingest.corroboration.given import GivenClaim, corroborate
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.policy import Policy

_FIELDS = frozenset(GivenClaim.model_fields)


def run(path: str) -> int:
    """Answers every line in order; 1 when any line was bad."""
    policy = load_policy()
    return answer_lines(path, lambda line: _answer(line, policy))


def _answer(line: Line, policy: Policy) -> Answer:
    sent = sent_in(line)
    if isinstance(sent, BadLine):
        return sent
    return {"id": line.fields.get("id"), **corroborate(sent, policy).model_dump(mode="json")}


def sent_in(line: Line) -> GivenClaim | BadLine:
    """The claim of a line with its sources."""
    try:
        return GivenClaim.model_validate({key: line.fields[key] for key in _FIELDS & line.fields.keys()})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return BadLine(line.number, "fields_invalid", f"{place}: {first['msg']}", line.fields)
