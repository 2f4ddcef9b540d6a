"""A structured value as the text of a claim, and back. Pure.

Stores behind the gate hold values, the gate judges text. `render` makes a text of everything in a value that a reader
of the store would read, so that nothing gets past the checks; `restore` makes the value of the text that the owner
let through, edited or not. What `restore` gives holds no text that was not in the claim: the rest of a rendering, its
place and its path, is made of plain names (`is_plain_name`), and anything else in them is part of the text too.

A value with one string and nothing else, under plain names, is that string. Any other value is one line a leaf,
names in alphabetical order:

    @place 2: what Ada said
    @key 1: favourite food
    importance = 3
    notes[0]: Refunds take three days.
      They start when the parcel is back.
    @1.main: bacalhau

`:` stands before a string, written as it is, and ` = ` before any other JSON value. A string's further lines are
indented by two spaces. A key that is not plain has a line of its own, where the checks read it as they read any
sentence (in quotes or brackets it could pass for code), and is called `@1` from there on; so has a label of the place.
Plain names that are many words together are no lone path, and labels of a place that are have lines, all of them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from vouchgate.ingest.claims.texts import is_plain_name, words_in_name
from vouchgate.ingest.policy import MAX_CONTENT_CHARACTERS

MAX_PLACE_CHARACTERS = 512  # of `Delivery.place`, as the API takes it
MAX_NAME_CHARACTERS = 128  # of a key, or of a label of a place: more is no name
MAX_DEPTH = 32  # levels of a value, as of a claim's metadata
_WHOLE_NUMBERS = range(-(2**63), 2**64)  # what JSON stores hold exactly
_PLAIN_WORDS = 4  # of letters; a sentence has more
_PLACE_WORDS = 8  # of all labels of a place together: a sentence can be cut into them
_ESCAPE = re.compile(r'\\(?:["\\bfnrt]|u[0-9a-f]{4})')  # those that JSON of Python's has
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")  # a key that can stand in a path as it is
_NAME = rf"(?:{_BARE.pattern}|@[0-9]{{1,6}})"
_STEP = re.compile(rf"({_BARE.pattern})|@([0-9]{{1,6}})|\[([0-9]{{1,6}})\]")
_LINE = re.compile(rf"({_NAME}(?:\.{_NAME}|\[[0-9]{{1,6}}\])*)(?:: ?| (=) )(.*)", re.DOTALL)
_PLACE_LINE = re.compile(r"@place [0-9]+:.*", re.DOTALL)
_KEY_LINE = re.compile(r"@key ([0-9]{1,6}): ?(.*)", re.DOTALL)

Path = tuple[str | int, ...]
Leaf = (
    str | int | float | bool | None | dict[str, JsonValue] | list[JsonValue]
)  # the containers are empty ones


class Unrenderable(ValueError):
    """The value or its place cannot be told as text, so that the gate could not judge it."""


class Unrestorable(ValueError):
    """A text that was let through cannot be made the value of its place: it was edited out of shape, or it comes
    from another program."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """`text` is the claim. `path` is where in the value it belongs when it is the only leaf; None for lines."""

    text: str
    place: str
    path: Path | None
    value: dict[str, JsonValue]  # as it will be written: plain JSON types, tuples as lists


def render_value(value: object) -> str:
    """A value as a part of a claim: a text as it is, anything else as JSON whose white space stands as it is. An escape
    would join the words at its sides, and the checks would read other words. `json.loads(…, strict=False)` reads it."""
    if isinstance(value, str):
        return value
    return _ESCAPE.sub(_unescaped, json.dumps(value, ensure_ascii=False, sort_keys=True))


def _unescaped(escape: re.Match[str]) -> str:
    whole: str = escape[0]
    return whole if whole[1] in '"\\' else str(json.loads(f'"{whole}"'))


def place_of(labels: Sequence[str]) -> str:
    """The place of these labels (a namespace and a key, say): equal for equal labels only. Raises Unrenderable."""
    for label in labels:
        _check_name(label, "A label of the place")
    place = json.dumps(list(labels), ensure_ascii=False)
    if len(place) > MAX_PLACE_CHARACTERS:
        raise Unrenderable(
            f"The place has {len(place)} characters; at most {MAX_PLACE_CHARACTERS} can be told."
        )
    return place


def labels_of(place: str) -> tuple[str, ...]:
    """The labels that `place_of` was given. Raises Unrestorable."""
    try:
        labels = json.loads(place)
        if not isinstance(labels, list) or place_of(labels) != place:
            raise Unrestorable(f"{place} is not written as a place is.")
    except (ValueError, RecursionError) as error:
        raise Unrestorable(f"{place} is not a place: {error}") from error
    return tuple(labels)


def render(labels: Sequence[str], value: Mapping[str, object]) -> Rendering:
    """The text of a value at a place. Raises Unrenderable for what is no JSON value, and for more text than a claim
    may have."""
    place = place_of(labels)
    clean = _clean(value, (), 1)
    assert isinstance(clean, dict)  # noqa: S101  (a mapping becomes a dict)
    leaves = list(_leaves(clean, ()))
    if not clean:
        raise Unrenderable("The value is empty: there is no claim in it.")
    named = _place_lines(labels)
    path, only = leaves[0]
    if len(leaves) == 1 and not named and isinstance(only, str) and only.strip() and _plain_path(path):
        text, lone = only, path
    else:
        text, lone = "\n".join([*named, *_value_lines(leaves)]), None
    if len(text) > MAX_CONTENT_CHARACTERS:
        raise Unrenderable(
            f"The value has {len(text)} characters of text; a claim may have {MAX_CONTENT_CHARACTERS}."
        )
    return Rendering(text, place, lone, clean)


def without_kind(value: Mapping[str, object]) -> Mapping[str, object] | None:
    """What langmem's manager saves, as the gate is shown it; None for any other value. The name of a schema is no
    statement, and is rendered as the name of what it holds."""
    kind, held = value.get("kind"), value.get("content")
    named = len(value) == 2 and isinstance(kind, str) and kind != "" and isinstance(held, Mapping)
    return {str(kind): held} if named else None


def restore(place: str, path: Sequence[object] | None, text: str) -> dict[str, JsonValue]:
    """The value that `text` gives at a place. Raises Unrestorable.

    Lines that an owner removed are left out of the value. A line that is not of the form above, the same leaf twice,
    and a changed label of the place are errors.
    """
    named = set(_place_lines(labels_of(place)))
    if path is not None:
        lone = _path_of(path)
        if named or lone is None or not _plain_path(lone):
            raise Unrestorable("Its place or path holds text that nobody has looked at.")
        leaves: list[tuple[Path, JsonValue]] = [(lone, text)]
    else:
        lines = list(_lines(text))
        told = [line for line in lines if _PLACE_LINE.fullmatch(line)]
        if len(told) != len(named) or set(told) != named:
            raise Unrestorable("The text does not name the place that it is for, or names another one.")
        leaves = _read_lines([line for line in lines if line not in named])
    tree: dict[str | int, object] = {}
    for where, leaf in leaves:
        _insert(tree, where, leaf)
    if not tree:
        raise Unrestorable("Nothing is left of the value.")
    try:
        value = _clean(_build_value(tree), (), 1)
    except Unrenderable as error:
        raise Unrestorable(str(error)) from error
    assert isinstance(value, dict)  # noqa: S101  (a path begins with a name)
    return value


def _check_name(name: object, what: str) -> None:
    if not isinstance(name, str):
        raise Unrenderable(f"{what} must be a text, and is {type(name).__name__}.")
    if not (1 <= len(name) <= MAX_NAME_CHARACTERS and name.isprintable()):
        raise Unrenderable(
            f"{what} must have 1 to {MAX_NAME_CHARACTERS} printable characters: {name[:40]!r} has not."
        )


def _clean(value: object, path: Path, depth: int) -> JsonValue:
    where = f"The value at {_format_path(path)}" if path else "The value"
    if depth > MAX_DEPTH:
        raise Unrenderable(f"The value is nested deeper than {MAX_DEPTH} levels.")
    if isinstance(value, Mapping):
        for key in value:
            _check_name(key, f"A key of {where[0].lower()}{where[1:]}")
        return {str.__str__(key): _clean(value[key], (*path, key), depth + 1) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_clean(part, (*path, at), depth + 1) for at, part in enumerate(value)]
    if isinstance(value, str):
        if "\x00" in value or not _encodable(value):
            raise Unrenderable(f"{where} has a NUL or half a surrogate pair in it.")
        return str.__str__(value)  # of an enumeration, the text it stands for
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value in _WHOLE_NUMBERS:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    raise Unrenderable(
        f"{where} is {type(value).__name__} {'out of range' if isinstance(value, int | float) else ''}".rstrip()
        + ": only texts, finite numbers of 64 bits, booleans, nulls, lists and mappings can be checked."
    )


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _leaves(value: JsonValue, path: Path) -> Iterator[tuple[Path, Leaf]]:
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _leaves(part, (*path, key))
    elif isinstance(value, list) and value:
        for at, part in enumerate(value):
            yield from _leaves(part, (*path, at))
    else:
        yield path, value


def _place_lines(labels: Sequence[str]) -> list[str]:
    long = sum(map(words_in_name, labels)) > _PLACE_WORDS
    return [f"@place {at}: {label}" for at, label in enumerate(labels, 1) if long or not is_plain_name(label)]


def _value_lines(leaves: Sequence[tuple[Path, Leaf]]) -> list[str]:
    numbers: dict[str, int] = {}
    lines = [_line(path, leaf, numbers) for path, leaf in leaves]
    return [*(f"@key {number}: {key}" for key, number in numbers.items()), *lines]


def _line(path: Path, leaf: Leaf, numbers: dict[str, int]) -> str:
    where = _path_text(path, numbers)
    if isinstance(leaf, str):
        return f"{where}: " + leaf.replace("\n", "\n  ")
    return f"{where} = {json.dumps(leaf)}"


def _path_text(path: Path, numbers: dict[str, int]) -> str:
    """The path as it stands in a line. `numbers` gives keys that are not plain their numbers, and gets new ones."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
            continue
        name = step
        if not (is_plain_name(step) and _BARE.fullmatch(step)):
            name = f"@{numbers.setdefault(step, len(numbers) + 1)}"
        text += f".{name}" if text else name
    return text


def _format_path(path: Path) -> str:
    """For messages."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:60]}" for step in path)
    return text.removeprefix(".")


def _path_of(steps: Sequence[object]) -> Path | None:
    """The path of an only leaf, which is the first in every list above it; None for what is none."""
    path: list[str | int] = []
    for step in steps:
        if isinstance(step, str):
            path.append(step)
        elif type(step) is int and step == 0:  # False is no number here
            path.append(0)
        else:
            return None
    return tuple(path) if path and isinstance(path[0], str) and len(path) < MAX_DEPTH else None


def _plain_path(path: Path) -> bool:
    names = [step for step in path if isinstance(step, str)]
    return all(map(is_plain_name, names)) and sum(map(words_in_name, names)) <= _PLAIN_WORDS


def _lines(text: str) -> Iterator[str]:
    """Each line with those that continue it, without their indents."""
    line: str | None = None
    for part in text.rstrip("\n").split("\n"):  # an editor adds line ends; no rendering has one at its end
        if line is not None and (part.startswith("  ") or not part):
            line += "\n" + part[2:]
            continue
        if line is not None:
            yield line
        line = part
    if line is not None:
        yield line


def _read_lines(lines: Sequence[str]) -> list[tuple[Path, JsonValue]]:
    keys: dict[str, str] = {}
    leaves: list[tuple[Path, JsonValue]] = []
    for line in lines:
        if found := _KEY_LINE.fullmatch(line):
            number, key = found.groups()
            if keys.setdefault(number, key) != key:
                raise Unrestorable(f"@key {number} is there twice.")
        else:
            leaves.append(_read(line, keys))
    return leaves


def _read(line: str, keys: Mapping[str, str]) -> tuple[Path, JsonValue]:
    found = _LINE.fullmatch(line)
    if found is None:
        raise Unrestorable(f"A line must be like `name: text` or `name = 3`, not {line[:60]!r}.")
    path, other, rest = found.groups()
    steps: list[str | int] = []
    for name, number, index in _STEP.findall(path):
        if number and number not in keys:
            raise Unrestorable(f"{path} stands for nothing: there is no line `@key {number}` before it.")
        steps.append(name or (keys[number] if number else int(index)))
    if not other:
        return tuple(steps), rest
    try:
        leaf = json.loads(rest)
    except (ValueError, RecursionError) as error:
        raise Unrestorable(f"{path} must be a number, true, false or null, not {rest[:60]!r}.") from error
    if leaf and isinstance(leaf, str | dict | list):  # an escape in it would hide what it stands for
        raise Unrestorable(f"{path} holds a text, which is written as `{path}: text`.")
    return tuple(steps), leaf


def _insert(tree: dict[str | int, object], path: Path, leaf: JsonValue) -> None:
    """Places a leaf; branches are dicts, and a leaf is kept in a tuple, which tells it from a branch."""
    for step in path[:-1]:
        branch = tree.setdefault(step, {})
        if not isinstance(branch, dict):
            raise Unrestorable(f"{_format_path(path)} lies within something that has a value itself.")
        tree = branch
    if path[-1] in tree:
        raise Unrestorable(f"{_format_path(path)} is there twice.")
    tree[path[-1]] = (leaf,)


def _build_value(tree: object) -> JsonValue:
    if isinstance(tree, tuple):
        leaf: JsonValue = tree[0]
        return leaf
    assert isinstance(tree, dict)  # noqa: S101  (`_insert` makes nothing else)
    if all(isinstance(step, int) for step in tree):
        return [_build_value(tree[step]) for step in sorted(tree)]
    if any(isinstance(step, int) for step in tree):
        raise Unrestorable("One thing cannot have both names and numbers.")
    return {step: _build_value(part) for step, part in tree.items()}
