"""A structured value as text and back: nothing in it escapes the text, and nothing else comes back."""

from __future__ import annotations

import enum
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.adapters.rendering import (
    Unrenderable,
    Unrestorable,
    labels_of,
    place_of,
    render,
    restore,
)
from vouchgate.ingest.checks.hedge import HedgeDetector, action_of
from vouchgate.ingest.claims.hedges import HedgeAction
from vouchgate.ingest.claims.texts import is_plain_name
from vouchgate.ingest.hedges.lexicon import load_lexicon

PLACE = ("memories", "ada", "123e4567-e89b-12d3-a456-426614174000")

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.isprintable)
keys = st.one_of(
    st.sampled_from(
        [
            "content",
            "kind",
            "notes",
            "a b",
            'say "so"',
            "x.y",
            "x[0]",
            "@place 1",
            "@1",
            "@key 1",
            "@key 1: x",
            "we_should_really_use_redis",
        ]
    ),
    names,
)
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40),
    st.sampled_from(
        [
            "one\ntwo",
            "a\nb: c",
            "\n",
            "x\n",
            "  two",
            "r\r\nn",
            'kind = "x"',
            "@place 1: x",
            "@key 1: x",
            "a: b",
        ]
    ),
)
leaves = st.one_of(
    texts,
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.dictionaries(
    keys,
    st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
        max_leaves=12,
    ),
    min_size=1,
    max_size=5,
)
labels = st.lists(st.one_of(st.sampled_from(["memories", "ada"]), names), min_size=1, max_size=4)


def words_of(value: object) -> list[str]:
    """Every line of every string in a value, its keys included."""
    if isinstance(value, dict):
        return [word for key, part in value.items() for word in [*words_of(key), *words_of(part)]]
    if isinstance(value, list):
        return [word for part in value for word in words_of(part)]
    return value.split("\n") if isinstance(value, str) else []


@given(labels, values)
def test_there_and_back(at: list[str], value: dict[str, Any]) -> None:
    done = render(at, value)
    back = restore(done.place, done.path, done.text)
    assert back == value == done.value
    assert json.dumps(back, sort_keys=True) == json.dumps(value, sort_keys=True)  # 1 is not True, nor 1.0
    assert labels_of(done.place) == tuple(at)


@given(labels, values)
def test_all_text_is_in_the_claim(at: list[str], value: dict[str, Any]) -> None:
    done = render(at, value)
    beside = [label for label in at if is_plain_name(label)]
    if done.path is not None:
        beside += [step for step in done.path if isinstance(step, str)]
        assert all(map(is_plain_name, beside))
    for word in [*at, *words_of(value)]:
        assert word in beside or word in done.text


@given(values, st.permutations(range(5)))
def test_the_text_does_not_depend_on_the_order_of_keys(value: dict[str, Any], order: list[int]) -> None:
    items = list(value.items())
    shuffled = dict(items[at] for at in order if at < len(items))
    assert render(PLACE, shuffled) == render(PLACE, value)


@given(labels, labels)
def test_places_are_equal_for_equal_labels_only(one: list[str], other: list[str]) -> None:
    assert (place_of(one) == place_of(other)) == (one == other)


@given(st.text(), st.one_of(st.none(), st.lists(st.one_of(st.text(), st.integers(), st.none()))), st.text())
def test_what_others_send_restores_or_is_refused(place: str, path: list[Any] | None, text: str) -> None:
    try:
        value = restore(place, path, text)
    except Unrestorable:
        return
    assert json.loads(json.dumps(value)) == value


@given(st.text(st.sampled_from('ab.[]"0: =\n @\\{}'), max_size=40))
def test_lines_that_restore_hold_all_that_comes_back(text: str) -> None:
    try:
        value = restore(place_of(PLACE), None, text)
    except Unrestorable:
        return
    for word in words_of(value):
        assert word in text


def test_one_string_under_plain_names_is_the_claim() -> None:
    done = render(PLACE, {"content": "Refunds take 3 days.\nThey start at once."})
    assert (done.text, done.path) == ("Refunds take 3 days.\nThey start at once.", ("content",))
    assert restore(done.place, done.path, "Refunds take 4 days.") == {"content": "Refunds take 4 days."}
    assert render(PLACE, {"kind": {"notes": ["x y"]}}).path == ("kind", "notes", 0)


def test_anything_else_is_lines() -> None:
    value = {
        "notes": ["Refunds take\n3 days.", ""],
        "importance": 3,
        "a b": {"x": None},
        "tags": [],
        "on": True,
    }
    assert render((*PLACE[:2], "what Ada said"), value).text == (
        "@place 3: what Ada said\n@key 1: a b\n@1.x = null\nimportance = 3\nnotes[0]: Refunds take\n  3 days.\n"
        "notes[1]: \non = true\ntags = []"
    )
    assert render(PLACE, {"We should move": "yes"}).text == "@key 1: We should move\n@1: yes"
    both = {"a": [{"x y": 1}], "x y": {"we_should_really_move_it": 2}}
    assert render(PLACE, both).text == (
        "@key 1: x y\n@key 2: we_should_really_move_it\na[0].@1 = 1\n@1.@2 = 2"
    )
    assert render(PLACE, {"content": " "}).text == "content:  "


def test_an_owner_edits_the_lines() -> None:
    done = render(PLACE, {"title": "Refunds", "days": 3, "notes": ["a", "b", "c"]})
    edited = "days = 4\nnotes[0]: a\nnotes[2]: c\n\nand d\n  and e\n".replace("and d\n", "  and d\n")
    assert restore(done.place, done.path, edited) == {"days": 4, "notes": ["a", "c\n\nand d\nand e"]}
    assert restore(done.place, done.path, "title:\ndays = 4\n\n") == {"title": "", "days": 4}
    keys = render(PLACE, {"favourite food": "cod", "favourite drink": "tea"}).text
    assert restore(done.place, None, keys.replace("drink", "cup")) == {
        "favourite food": "cod",
        "favourite cup": "tea",
    }


HEDGED = [
    "I think the pool is too small",
    "To me, it is clearer",
    "Don't know why, but it works",
    'It "is probably" so',
]


@pytest.mark.parametrize("text", HEDGED)
def test_a_hedge_is_found_wherever_in_a_value_it_stands(text: str) -> None:
    detector = HedgeDetector(load_lexicon())
    whole = action_of(detector.detect(text))
    assert whole is not HedgeAction.CONTINUE
    at_home = ("memories", "ada", "one")
    places: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (at_home, {"content": text, "n": 1}),
        (at_home, {"notes": [{"deep": [text]}], "z": "x"}),
        (at_home, {text: "yes"}),
        (at_home, {"notes": [{text: 1}]}),
        (at_home, {"a": {text: {"b": None}}, "c": "Open."}),
        (("memories", text, "one"), {"content": "It opens at nine."}),
        (("memories", text), {"content": "It opens at nine."}),
    ]
    for labels, value in places:
        found = action_of(detector.detect(render(labels, value).text))
        assert found is whole, render(labels, value).text


@pytest.mark.parametrize(
    "text",
    [
        "It is four days now.",
        "days = four",
        "days = NaN",
        "days = 4\ndays = 5",
        "days = 4\ndays.x = 5",
        "notes[0]: a\nnotes.x: b",
        "",
        'days = "\\u0049 think"',
        'days = {"a": "b"}',
        "@1: so",
        "@1: so\n@key 1: too late",
        "@key 1: a\n@key 1: b\n@1: so",
        "@key 1: a\n  b\n@1: so",
        "@key 1: a",
        "@place 2: elsewhere\ndays = 3",
        "[0]: a",
        "notes[9999999]: a",
    ],
)
def test_an_edit_out_of_shape_is_refused(text: str) -> None:
    with pytest.raises(Unrestorable):
        restore(place_of(PLACE), None, text)


@pytest.mark.parametrize(
    ("labels", "path"),
    [
        (PLACE, ["We should really move to Redis"]),
        (PLACE, []),
        (PLACE, [0]),
        (PLACE, ["notes", 1]),
        (PLACE, ["notes", False]),
        (PLACE, ["notes", None]),
        ((*PLACE, "what Ada said"), ["content"]),
    ],
)
def test_text_beside_the_claim_is_refused(labels: tuple[str, ...], path: list[Any]) -> None:
    with pytest.raises(Unrestorable, match="nobody has looked at"):
        restore(place_of(labels), path, "Refunds take 3 days.")


def test_the_label_of_a_place_stays_as_it_was() -> None:
    done = render(("what Ada said",), {"content": "Refunds take 3 days."})
    assert restore(done.place, done.path, done.text) == {"content": "Refunds take 3 days."}
    for edited in (
        "content: Refunds take 3 days.",
        done.text.replace("Ada", "Bob"),
        done.text + "\n@place 2: x",
        f"{done.text}\n@place 1: what Ada said",
    ):
        with pytest.raises(Unrestorable):
            restore(done.place, done.path, edited)


@pytest.mark.parametrize("place", ["", "[]x", "{}", '["a",1]', '[ "a"]', '["\\u0061"]', "[" * 5000])
def test_a_place_that_was_not_made_here_is_refused(place: str) -> None:
    with pytest.raises(Unrestorable):
        labels_of(place)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "empty"),
        ({"a": b"x"}, "The value at a is bytes"),
        ({"a": [datetime(2026, 1, 1, tzinfo=UTC)]}, "The value at a[0] is datetime"),
        ({"a": float("nan")}, "float out of range"),
        ({"a": 2**64}, "int out of range"),
        ({"a": {"b\nc": 1}}, "A key of the value at a"),
        ({"a": {1: 1}}, "must be a text, and is int"),
        ({"a" * 129: 1}, "1 to 128"),
        ({"a": "\x00"}, "NUL"),
        ({"a": "\ud800"}, "surrogate"),
        ({"a": "x" * 8193}, "8193"),
        ({"a": {"b": set()}}, "a.b is set"),
    ],
)
def test_what_cannot_be_told_is_refused(value: dict[str, Any], said: str) -> None:
    with pytest.raises(Unrenderable) as caught:
        render(PLACE, value)
    assert said in str(caught.value)


def test_depth_is_bounded_also_for_a_value_that_holds_itself() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    with pytest.raises(Unrenderable, match="32 levels"):
        render(PLACE, value)


@pytest.mark.parametrize("labels", [("a\nb",), ("",), ("x" * 129,), ("x" * 120,) * 5])
def test_places_are_bounded(labels: tuple[str, ...]) -> None:
    with pytest.raises(Unrenderable):
        place_of(labels)


def test_the_types_of_python_become_those_of_json() -> None:
    class Kind(enum.StrEnum):
        FACT = "fact"

    class Old(str, enum.Enum):  # noqa: UP042  (as programs older than StrEnum have them)
        FACT = "old fact"

    value = render(PLACE, {"kind": Kind.FACT, "old": Old.FACT, "pair": (1, 2)}).value
    assert value == {"kind": "fact", "old": "old fact", "pair": [1, 2]}
    assert type(value["kind"]) is type(value["old"]) is str


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("content", True),
        ("favourite_food", True),
        ("users/ada@example.org", True),
        ("123e4567-e89b-12d3-a456-426614174000", True),
        ("_type", True),
        ("v2.1", True),
        ("favourite food", False),
        ("we_should_really_use_redis", False),
        ("x" * 65, False),
        ("naïve", False),
        ("a\u200bb", False),
        ("-rf", False),
    ],
)
def test_plain_names(name: str, expected: bool) -> None:
    assert is_plain_name(name) is expected
