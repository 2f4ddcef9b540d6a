"""Names of what code defines, told from everything else with a colon."""

from __future__ import annotations

import pytest

from tests.running.hangs import given_up_after
from vouchgate.ingest.citations import detect_citations, given_citation, parse_citation

FOUND = {
    "There is parse_args (symbol:parse_args).": ("symbol:parse_args", "parse_args"),
    "`symbol:parse_args()` takes none": ("symbol:parse_args()", "parse_args"),
    "per symbol:client.Client.close.": ("symbol:client.Client.close", "client.Client.close"),
    "symbol:Client.__init__, again": ("symbol:Client.__init__", "Client.__init__"),
    "symbol:src/client.py::Client.close: read it": (
        "symbol:src/client.py::Client.close",
        "src/client.py::Client.close",
    ),
    "“symbol:./setup.py::main”": ("symbol:./setup.py::main", "setup.py::main"),
    "symbol:größe's default": ("symbol:größe", "größe"),
    "symbol:gro\u0308ße's": ("symbol:gro\u0308ße", "größe"),
    "symbol:名前 is": ("symbol:名前", "名前"),
}


def test_a_symbol_is_found_in_a_text_and_read_as_given() -> None:
    for text, (value, key) in FOUND.items():
        found = [each for each in detect_citations(text) if each.type == "symbol"]
        assert [(each.value, each.key) for each in found] == [(value, f"symbol:{key}")], text
        given = given_citation("symbol", value.removeprefix("symbol:"))
        assert parse_citation(value).key == given.key == f"symbol:{key}"


def test_what_is_none_is_not_found() -> None:
    for text in (
        "Symbol:AAPL fell, and a symbol: none",
        "symbol:3d, symbol:-e and symbol:--help",
        "symbol:read-only, symbol:a/b, mysymbol:name, x.symbol:name",
        "symbol:src/../etc::name, symbol:/etc/a.py::name, symbol:a//b::name, symbol::name",
        "symbol:std::vector::push and symbol:a.py::",
        "https://example.org/symbol:name",
    ):
        assert [each for each in detect_citations(text) if each.type == "symbol"] == [], text
    for value in (
        "-e",
        "a b",
        "",
        "a..b",
        ".a",
        "a::b::c",
        "../a.py::b",
        "a" * 200,
        "a.py:3",
        ":(top)a",
    ):
        with pytest.raises(ValueError, match="not one symbol citation"):
            given_citation("symbol", value)


def test_long_texts_take_linear_time() -> None:
    many = (
        "symbol:" * 40_000,
        "symbol:" + "a/" * 100_000,
        "symbol:" + "a." * 100_000,
        "symbol:a.py::" * 20_000,
    )
    with given_up_after(5):
        for text in many:
            assert len(detect_citations(text)) <= 1
