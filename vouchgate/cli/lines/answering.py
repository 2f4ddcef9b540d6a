"""Each JSON line of a file answered by one JSON line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vouchgate.cli.input import open_input
from vouchgate.cli.output import FAILED, write_json
from vouchgate.importing.lines import BadLine, Line, read_lines

Answer = dict[str, Any] | BadLine


def answer_lines(path: str, answer_to: Callable[[Line], Answer]) -> int:
    """Answers every line in order; 1 when any line was bad."""
    status = 0
    with open_input(path) as stream:
        for line in read_lines(stream):
            answer = line if isinstance(line, BadLine) else answer_to(line)
            if isinstance(answer, BadLine):
                status = FAILED
                answer = answer.as_json()
            write_json(answer)
    return status
