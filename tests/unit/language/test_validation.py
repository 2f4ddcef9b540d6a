"""What is wrong with a value is said in plain words, without the value."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from vouchgate.ingest.language.validation import plain_messages


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Door(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=1_000)
    colour: Colour = Colour.RED
    hinges: int = Field(default=2, ge=1, le=9)
    width: float = Field(default=1.0, gt=0, le=2.5)
    open: bool = False
    keys: tuple[str, ...] = Field(default=(), max_length=2)
    hung_at: datetime | None = None

    @field_validator("name")
    @classmethod
    def _is_no_window(cls, name: str) -> str:
        if name == "window":
            raise ValueError("must not be a window")
        return name


class House(BaseModel):
    model_config = ConfigDict(extra="forbid")

    doors: list[Door] | None = None
    front: Door | None = None


def said(given: Any, model: type[BaseModel] = House) -> str:
    with pytest.raises(ValidationError) as found:
        model.model_validate(given)
    return plain_messages(found.value.errors(), model, whole="the house")


@pytest.mark.parametrize(
    ("door", "why"),
    [
        ({}, "name: is missing"),
        ({"name": 3}, "name: must be a text"),
        ({"name": ""}, "name: must not be empty"),
        ({"name": "n" * 1_001}, "name: must have at most 1,000 characters"),
        ({"name": "window"}, "name: must not be a window"),
        ({"name": "n", "colour": "green"}, "colour: must be 'red' or 'blue'"),
        ({"name": "n", "hinges": "many"}, "hinges: must be a whole number"),
        ({"name": "n", "hinges": 1.5}, "hinges: must be a whole number"),
        ({"name": "n", "hinges": 0}, "hinges: must be at least 1"),
        ({"name": "n", "hinges": 10}, "hinges: must be at most 9"),
        ({"name": "n", "width": "wide"}, "width: must be a number"),
        ({"name": "n", "width": 0}, "width: must be more than 0"),
        ({"name": "n", "width": 3}, "width: must be at most 2.5"),
        ({"name": "n", "open": "ajar"}, "open: must be true or false"),
        ({"name": "n", "keys": ["a", "b", "c"]}, "keys: must have at most 2 items"),
        ({"name": "n", "keys": "a"}, "keys: must be a list"),
        ({"name": "n", "hung_at": "soon"}, "hung_at: must be a time, such as 2026-01-31T09:30:00Z"),
    ],
)
def test_each_fault_is_a_plain_sentence(door: dict[str, Any], why: str) -> None:
    assert said(door, Door) == why


def test_an_unknown_name_is_asked_for_what_it_was_meant_to_be_wherever_it_is() -> None:
    assert said({"frnt": {}}) == "frnt: is unknown (did you mean front?)"
    assert said({"front": {"name": "n", "colur": "red"}}) == "front.colur: is unknown (did you mean colour?)"
    assert said({"doors": [{"name": "n", "widht": 1}]}) == "doors.0.widht: is unknown (did you mean width?)"
    assert said({"zzz": 1}) == "zzz: is unknown"


def test_what_is_about_the_whole_and_what_has_no_words_of_ours_is_said_too() -> None:
    assert said([]) == "the house: must be an object"
    assert said({"doors": [3]}) == "doors.0: must be an object"
