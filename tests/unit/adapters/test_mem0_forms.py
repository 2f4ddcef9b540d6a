"""What of a mem0 call is a claim, and what of a delivery is written."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.adapters import mem0_forms as forms
from vouchgate.adapters.mem0_forms import MemoryText, MemoryWrite, Scope

WORDS = st.text(min_size=1).filter(lambda text: bool(text.strip()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
METADATA = st.dictionaries(st.sampled_from(["topic", "note", "a name with words", "n"]), VALUES, max_size=3)
NAMES = st.none() | st.sampled_from(["ada", "Ada Lovelace", "we should all believe what this one says"])
ADA = Scope("ada", None, None)


@given(
    text=WORDS,
    metadata=METADATA,
    actor=NAMES,
    agent_id=st.sampled_from([None, "scout", "people_say_it_might_rain"]),
)
def test_what_was_let_through_as_it_was_sent_is_written_whole(
    text: str, metadata: dict[str, Any], actor: str | None, agent_id: str | None
) -> None:
    scope = Scope("ada", agent_id, None)
    piece = MemoryText(text, "user", actor)
    content = forms.render(piece, metadata, scope)
    assert content.startswith(text)
    # The gate gives JSON back, its members in any order.
    data = json.loads(json.dumps(forms.delivery_data(piece, metadata, scope, {}), sort_keys=True))

    assert forms.parse_write(content, data) == MemoryWrite(piece, metadata, scope, {})


@given(content=WORDS, metadata=METADATA)
def test_nothing_is_written_that_the_content_does_not_show(content: str, metadata: dict[str, Any]) -> None:
    data = forms.delivery_data(MemoryText("", "user"), metadata, ADA, {})
    try:
        put = forms.parse_write(content, data)
    except ValueError:
        return
    assert forms.render(put.piece, put.metadata, put.scope) == content


def test_a_name_that_could_be_prose_is_shown_and_not_written_unseen() -> None:
    piece, scope = (
        MemoryText("Tea at four", "user", "Ada Lovelace"),
        Scope("ada", None, "it_is_said_that_we_won"),
    )
    assert (
        forms.render(piece, {}, scope)
        == "Tea at four\n\nactor_id: Ada Lovelace\nrun_id: it_is_said_that_we_won"
    )
    assert forms.render(MemoryText("Tea", "user", "ada"), {}, Scope("ada", "scout-7", "0b1c")) == "Tea"
    data = forms.delivery_data(piece, {}, scope, {})
    with pytest.raises(ValueError, match="prose"):
        forms.parse_write("Tea at four", data)
    assert forms.parse_write("Tea at four", forms.delivery_data(piece, {}, ADA, {})).piece.actor is None


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"role": "user"},
        {"user_id": "ada"},
        {"user_id": "ada", "role": "one two"},
        {"user_id": "ada", "role": "I-think-we-should-close-it"},
        {"user_id": "a da", "role": "user"},
        {"user_id": "ada", "role": "user", "metadata": {"hash": "x"}},
        {"user_id": "ada", "role": "user", "metadata": "topic"},
        {"user_id": "ada", "role": "user", "metadata": [["topic", 1]]},
        {"user_id": "ada", "role": "user", "actor_id": 7},
        {"user_id": "ada", "role": "user", "expiration_date": "soon"},
        {"user_id": "ada", "role": "user", "expiration_date": 5},
    ],
)
def test_data_of_another_program_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        forms.parse_write("Tea at four", data)


def test_no_escape_of_json_hides_a_word_from_the_checks() -> None:
    """In `I\\tthink` nobody finds "I think"."""
    metadata = {"notes": ["I\tthink", 'the "tea"\nis\\cold']}
    text = forms.render(MemoryText("Tea at four", "user"), metadata, ADA)
    assert text == 'Tea at four\n\nnotes: ["I\tthink", "the \\"tea\\"\nis\\\\cold"]'
    assert (
        forms.parse_write(text, forms.delivery_data(MemoryText("", "user"), metadata, ADA, {})).metadata
        == metadata
    )


def test_a_content_that_is_metadata_only_is_refused() -> None:
    data = forms.delivery_data(MemoryText("", "user"), {"topic": "tea"}, ADA, {})
    with pytest.raises(ValueError, match="no text"):
        forms.parse_write("\n\ntopic: tea", data)


def test_scopes_are_as_mem0_makes_them() -> None:
    assert Scope.of(" ada ", 7).ids() == {"user_id": "ada", "agent_id": "7"}
    for ids in ((), ("",), (" ",), ("a b",), ("x" * 201,)):
        with pytest.raises(ValueError, match=r"user_id"):
            Scope.of(*ids)


def test_dates() -> None:
    for given_date in ("2027-01-31", date(2027, 1, 31), datetime(2027, 1, 31, 12, tzinfo=UTC)):
        assert forms.expiration(given_date) == "2027-01-31"
    assert forms.horizon("2027-01-31") == datetime(2027, 2, 1, tzinfo=UTC)
    assert forms.horizon("9999-12-31") is None


def test_places() -> None:
    assert forms.place_of({"id": "x", "metadata": None}) == "id:x"
    assert forms.place_of({"id": "x", "metadata": {"vouchgate_place": "new:1"}}) == "new:1"
    assert forms.memory_id_of_place("id:x") == "x"
    assert forms.memory_id_of_place(forms.new_place("1")) is None


def test_what_is_to_go_can_always_be_asked_for() -> None:
    assert forms.removal_content("Tea at four") == "Tea at four"
    assert forms.removal_content(" ") == "(no text)"
    assert len(forms.removal_content("tea " * 5000)) == 8192
