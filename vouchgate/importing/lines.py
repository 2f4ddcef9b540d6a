"""JSON lines in: one value a line, bad lines told apart from good ones, nothing kept."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

MAX_LINE_BYTES = 16 * 1024 * 1024  # far over any claim; bounds the memory that one line can take


@dataclass(frozen=True, slots=True)
class Line:
    """One JSON object, with the number of its line in the input (from 1)."""

    number: int
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be used. `fields` is what could be read of it."""

    number: int
    code: str
    message: str
    fields: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The error object that stands in the output where the line's answer would."""
        answer: dict[str, Any] = {
            "error": {"code": self.code, "message": self.message},
            "line": self.number,
        }
        if "id" in self.fields:
            answer["id"] = self.fields["id"]
        return answer


def text_fields(line: Line, *names: str, optional: tuple[str, ...] = ()) -> list[str] | BadLine:
    """The texts of these fields, empty for an `optional` one that is not there; the line as a bad one when one of them
    is no text, or is missing."""
    texts = []
    for name in (*names, *optional):
        text = line.fields.get(name)
        if text is None and name in optional:
            text = ""
        if not isinstance(text, str):
            message = f"{name} must be a string" if name in line.fields else f"the field {name} is missing"
            return BadLine(line.number, f"{name}_invalid", message, line.fields)
        texts.append(text)
    return texts


def read_lines(
    stream: BinaryIO, until: int | None = None, before: int = 0, only: Container[int] | None = None
) -> Iterator[Line | BadLine]:
    """Each line as soon as it is there; blank lines are skipped but counted. Of a part of a file those that begin
    before the byte `until`, with so many lines `before` them; `only` those of these numbers."""
    number = before
    while (until is None or stream.tell() < until) and (raw := stream.readline(MAX_LINE_BYTES + 1)):
        number += 1
        long = len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n")
        while long and raw and not raw.endswith(b"\n"):
            raw = stream.readline(MAX_LINE_BYTES)
        if only is not None and number not in only:
            continue
        if long:
            yield BadLine(number, "line_too_long", f"a line has at most {MAX_LINE_BYTES} bytes", {})
            continue
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield _parse(number, raw)


def _parse(number: int, raw: bytes) -> Line | BadLine:
    try:
        # Lone surrogates written as bytes are kept, as those written as \ud800 are.
        value = json.loads(raw.decode("utf-8", "surrogatepass"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        return BadLine(number, "json_invalid", "the line is not UTF-8", {})
    except RecursionError:
        return BadLine(number, "json_invalid", "the line is nested too deeply", {})
    except json.JSONDecodeError as error:
        message = f"the line is not JSON: {error.msg} at character {error.pos + 1}"
        return BadLine(number, "json_invalid", message, {})
    except ValueError as error:  # NaN, or an integer of thousands of digits
        return BadLine(number, "json_invalid", f"the line is not JSON: {error}", {})
    if not isinstance(value, dict):
        return BadLine(number, "not_an_object", "the line must be one JSON object", {})
    return Line(number, value)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
