"""What an answer of the server behind `vouchgate mcp-gate` shows of a text, and what it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vouchgate.mcp.gate.config import CallWrite, ReadBack
from vouchgate.mcp.gate.reading import (
    fill_arguments,
    fill_place,
    has,
    has_whole,
    pick,
    proves,
    says_missing,
    texts_found,
    unclear_name,
)
from vouchgate.mcp.gate.writes import ServerAnswer, ServerDeclined

TEXT = "The port is 80"


def test_a_text_is_there_as_a_whole_and_not_as_a_part_of_a_longer_one() -> None:
    shown = [
        TEXT,
        f"1. {TEXT}\n   Hash: 12",
        f"- {TEXT}",
        f"Content: {TEXT}\nTags: a",
        f'{{"content": "{TEXT}", "id": 1}}',
        f"# Notes\n\n{TEXT}\n",
        f"{TEXT}.",
        f"* {TEXT} [a, b]",
    ]
    assert [text for text in shown if not has_whole(text, TEXT)] == []
    others = [
        "The port is 8080",
        f"{TEXT}80",
        f"{TEXT}.5",
        f"{TEXT}, I think",
        f"{TEXT} in tests",
        f"Not {TEXT}",
        "",
    ]
    assert [text for text in others if has_whole(text, TEXT)] == []
    assert has_whole(json.dumps({"a": [TEXT]}), [{"x": TEXT}])
    assert not has_whole(json.dumps({"a": [f"{TEXT}80"]}), [{"x": TEXT}])


def found(answer: ServerAnswer, read: dict[str, Any], arguments: dict[str, Any]) -> bool | None:
    """Whether the text is there, as the gate has it: None when it is not shown."""
    back = ReadBack.model_validate({"tool": "t", "arguments": {}, **read})
    asked = fill_arguments(back.arguments, arguments)
    there = pick(texts_found(back, arguments, asked, answer), TEXT)
    return False if there is None or not has(there.text, TEXT) else proves(back, asked, there, TEXT) or None


def test_lists_are_looked_through_also_those_that_are_told_as_text() -> None:
    items = [{"id": 1, "content": f"{TEXT}80"}, {"id": 12, "content": TEXT}]
    read = {"items": "memories", "find": "content"}
    by_id = {**read, "where": {"id": "{id}"}}
    for answer in (
        ServerAnswer("Two memories.", {"memories": items}),
        ServerAnswer(json.dumps({"memories": items}, indent=2), None),
    ):
        assert found(answer, read, {}) is True
        assert found(answer, by_id, {"id": 12}) is True
        assert found(answer, by_id, {"id": 1}) is None  # not 12, which begins so; a longer text shows nothing
    assert found(ServerAnswer(json.dumps(items), None), {"items": "result", "find": "content"}, {}) is True
    assert found(ServerAnswer("", {"memories": []}), read, {}) is False
    echo = {"arguments": {"query": "{text}"}}
    repeated = ServerAnswer("", {"memories": [], "asked": TEXT})
    assert found(repeated, {**read, **echo}, {"text": TEXT}) is False
    assert found(ServerAnswer(f"Nothing for {TEXT}", None), echo, {"text": TEXT}) is None


@pytest.mark.parametrize(
    "said", ["Error: the database is locked", '{"error": "locked"}', '{"memories": 3}', "[" * 5000]
)
def test_an_error_told_as_an_ordinary_answer_does_not_say_that_there_is_nothing(said: str) -> None:
    for read in ({"items": "memories", "find": "content"}, {"find": "memory.content"}):
        with pytest.raises(ServerDeclined, match="shows nothing"):
            found(ServerAnswer(said, None), read, {})
        assert found(ServerAnswer(said, None), {**read, "missing": [said[:9]]}, {}) is False
    assert found(ServerAnswer("", {"memory": None}), {"find": "memory.content"}, {}) is False


def test_a_name_that_a_server_may_read_as_another_is_found_where_it_is_a_place() -> None:
    given = {"entities": [{"name": "quay "}], "path": "a\u200bb", "text": " a text \n"}
    assert unclear_name("e/{entities.0.name}", given) == "quay "
    assert unclear_name("{path}", given) == "a\u200bb"
    assert unclear_name("m/{#text}/{#@found}/{gone}", given) is None


def test_words_for_nothing_are_not_taken_from_the_question() -> None:
    read = ReadBack(tool="t", arguments={}, missing=("not found", "ENOENT"))
    assert says_missing(read, {"query": "a"}, "Resource not found: a")
    assert says_missing(read, {}, "enoent: no such file")
    assert not says_missing(read, {"query": "it was not found"}, "Found: it was not found")
    assert not says_missing(ReadBack(tool="t", arguments={}), {}, "not found")


def test_templates_take_from_lists_and_from_what_was_read_back() -> None:
    arguments = {"entities": [{"name": "Redis"}], "id": 7}
    assert fill_place("e/{entities.0.name}/{entities.1.name}", arguments) == "e/Redis/"
    within = {"memory_id": 12, "content": TEXT}
    assert fill_arguments({"id": "{@memory_id}", "also": "{id}", "no": "{@gone}"}, arguments, within) == {
        "id": 12,
        "also": 7,
    }
    assert fill_place("m/{#@content}", {}, within) == fill_place("m/{#content}", {"content": TEXT})


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"read": {"tool": "t", "arguments": {}, "items": "a"}}, "needs read.find"),
        (
            {"op": "remove", "read": {"tool": "t", "arguments": {}, "items": "a", "find": "b"}},
            "needs read.where",
        ),
        ({"op": "remove", "read": False}, "nobody knows what is there"),
        ({"new": True, "read": False}, "nobody knows what is there"),
        ({}, "read"),
    ],
)
def test_a_tool_that_could_touch_what_nobody_was_shown_is_refused(table: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        CallWrite.model_validate({"kind": "call", "place": "p", **table})
