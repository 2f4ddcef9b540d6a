"""Reading JSON lines, and the small words of the command line."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.cli.identity.tokens import lifetime
from vouchgate.cli.output import hint, one_line, say, show_table, visible
from vouchgate.importing.lines import BadLine, Line, read_lines


@given(st.lists(st.binary(max_size=200)))
def test_every_line_of_any_bytes_is_answered_once_and_in_order(raw: list[bytes]) -> None:
    given_lines = [line.replace(b"\n", b"") for line in raw]
    found = list(read_lines(io.BytesIO(b"\n".join(given_lines))))
    given_lines[:1] = [line.removeprefix(b"\xef\xbb\xbf") for line in given_lines[:1]]
    wanted = [number for number, line in enumerate(given_lines, 1) if line.strip()]
    assert [line.number for line in found] == wanted


@given(st.dictionaries(st.text(), st.text(st.characters())))
def test_every_object_is_read_as_it_was_written(fields: dict[str, str]) -> None:
    (line,) = read_lines(io.BytesIO(json.dumps(fields).encode()))
    assert line == Line(1, fields)


def test_surrogates_survive_as_escapes_and_as_bytes() -> None:
    as_bytes = '{"text": "\ud800"}'.encode("utf-8", "surrogatepass")
    assert list(read_lines(io.BytesIO(b'{"text": "\\ud800"}\n' + as_bytes))) == [
        Line(1, {"text": "\ud800"}),
        Line(2, {"text": "\ud800"}),
    ]


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"{", "json_invalid"),
        (b'{"a": Infinity}', "json_invalid"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "json_invalid"),
        (b'{"a": ' + b"[" * 200_000, "json_invalid"),
        (b"\xc3\x28", "json_invalid"),
        (b"null", "not_an_object"),
        (b"[{}]", "not_an_object"),
    ],
)
def test_a_bad_line_says_what_is_wrong(raw: bytes, code: str) -> None:
    (line,) = read_lines(io.BytesIO(raw))
    assert isinstance(line, BadLine)
    assert line.as_json()["error"]["code"] == code
    assert 10 < len(line.message) < 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("90d", timedelta(days=90)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_lifetime_is_a_number_and_a_unit(text: str, expected: timedelta) -> None:
    assert lifetime(text) == expected


@pytest.mark.parametrize("text", ["", "0d", "-1d", "5", "d", "1y", "1.5h", " 1d", "1d ", "٣d", "9999999w"])
def test_anything_else_is_no_lifetime(text: str) -> None:
    with pytest.raises(ValueError, match="30m, 12h, 90d or 2w"):
        lifetime(text)


@given(st.text())
def test_one_line_is_one_printable_line(text: str) -> None:
    assert one_line(text).isprintable()


@given(st.text() | st.text("a \u202e\u2066\u200b\x1b\x07\n\t"))
def test_nothing_that_is_said_acts_on_a_terminal_or_hides(text: str) -> None:
    said, told, shown = io.StringIO(), io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(told):
        say(text)
        hint(text)
    with redirect_stdout(shown):
        show_table(["text"], [[text]])
    for each in (said, told, shown):
        assert each.getvalue().replace("\n", "").replace("\t", "").isprintable()
    assert said.getvalue() == told.getvalue() == f"{visible(text)}\n"
