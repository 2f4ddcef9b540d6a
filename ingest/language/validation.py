"""Why a value does not fit its model, in plain words and without the value, which may be huge, hostile or secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from vouchgate.ingest.language.spelling import did_you_mean

_WHOLE, _NUMBER, _OBJECT, _LIST = (
    "must be a whole number",
    "must be a number",
    "must be an object",
    "must be a list",
)
_TIME = "must be a time, such as 2026-01-31T09:30:00Z"
# By pydantic's types of errors.
_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
    "string_type": "must be a text",
    "string_too_long": "must have at most {max_length:,} characters",
    "string_too_short": "must have at least {min_length:,} characters",
    "too_long": "must have at most {max_length:,} items",
    "too_short": "must have at least {min_length:,} items",
    "path_type": "must be a path",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "union_tag_invalid": "must be of one of the kinds {expected_tags}",
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), _NUMBER),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "dataclass_type"), _OBJECT),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), _LIST),
    **dict.fromkeys(("datetime_type", "datetime_parsing", "datetime_from_date_parsing"), _TIME),
}
# In what pydantic says of the others.
_SHORTER = {
    "Input should ": "must ",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "greater than": "more than",
}


def plain_message(error: Mapping[str, Any], model: Any = None) -> str:
    """What pydantic says of a value, without the subject: "is missing". With the model it ends, of a name that is
    unknown, with the one that it may have been meant for."""
    kind = error["type"]
    if kind == "extra_forbidden":
        *place, name = error["loc"]
        return _WORDS[kind] + did_you_mean(str(name), _fields_at(model, place))
    if error.get("ctx", {}).get("min_length") == 1:
        return "must not be empty"
    if kind in _WORDS:
        return _WORDS[kind].format_map(error.get("ctx", {}))
    said: str = error["msg"]
    if not said.startswith("Input should "):
        return said.removeprefix("Value error, ")  # our own words
    for long, short in _SHORTER.items():
        said = said.replace(long, short)
    return said


def plain_messages(errors: Iterable[Mapping[str, Any]], model: Any = None, *, whole: str) -> str:
    """All of them in a line, each with where it is; `whole` says what the errors without a place are about."""
    return "; ".join(
        f"{'.'.join(map(str, error['loc'])) or whole}: {plain_message(error, model)}" for error in errors
    )


def _fields_at(model: Any, place: Sequence[str | int]) -> Mapping[str, Any]:
    """The fields of what is at a place of a model; none where that cannot be told."""
    for part in place:
        if isinstance(part, str):
            field = _fields_in(model).get(part)
            model = None if field is None else field.annotation
    return _fields_in(model)


def _fields_in(annotation: Any) -> Mapping[str, Any]:
    """The fields of a model, or of the one in a list of it or in what may be none."""
    found: Mapping[str, Any] = getattr(annotation, "model_fields", {})
    return found or next(filter(None, map(_fields_in, get_args(annotation))), {})
