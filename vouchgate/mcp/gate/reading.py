"""What an answer of the server shows of what was written: the text itself, never the question repeated; and how it is
asked. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from vouchgate.adapters.rendering import render_value
from vouchgate.mcp.gate.config import ReadBack
from vouchgate.mcp.gate.writes import MAX_PLACE, NotAllShown, ServerAnswer, ServerDeclined, digest, texts_in

_NAMED = re.compile(r"\{(#?@?)([\w.]+)\}")
_PATH = re.compile(r"\{[\w.]+\}/")  # begins with a part that may be left out
_ALONE = re.compile(r"\{(@?)([\w.]+)\}")
_SLASHES = re.compile("/{2,}")
# What may stand beside a text that is all of an entry: the edge of a line, a label or bullet, a quotation mark or
# bracket. Beside a letter, a digit or a comma it is a part of a longer one: "port 80" is not in "port 8080".
_BEFORE = r"""(?:\A|[\r\n"'“‘`({\[<|*#:•.!?)\]>-])[ \t]*"""
_AFTER = r"""[ \t]*(?:\Z|[\r\n"'”’`)}\](\[<|\\*]|[.!?](?!\w))"""

Arguments = Mapping[str, Any]


def fill_template(template: str, arguments: Arguments, found: Any = None) -> str:
    """A template with its names put in: arguments, what was found at a path, and digests of either. What stands beside
    a slash is a part of a path, and brings no slashes of its own to its ends."""

    def value(match: re.Match[str]) -> str:
        sign, name = match.groups()
        given = value_at_path(found if "@" in sign else arguments, name)
        if given is None:
            return ""
        if "#" in sign:
            return digest(render_value(given))
        if sign == "@":
            return render_value(given)
        beside = template[: match.start()].endswith("/") or template[match.end() :].startswith("/")
        return render_value(given).strip("/") if beside else render_value(given)

    whole = _NAMED.sub(value, template)
    return whole.lstrip("/") if _PATH.match(template) else whole


def fill_arguments(
    templates: Mapping[str, JsonValue], arguments: Arguments, found: Any = None
) -> dict[str, Any]:
    """Arguments for another tool. One that is only an argument of the write, or only what was found, is left out where
    there is none; a number stays one."""
    filled = dict[str, Any]()
    for name, template in templates.items():
        if not isinstance(template, str):
            filled[name] = template
            continue
        if (alone := _ALONE.fullmatch(template)) is not None:
            value = value_at_path(found if alone[1] else arguments, alone[2])
            if value is None:
                continue
            if isinstance(value, (bool, int, float)):
                filled[name] = value
                continue
        filled[name] = fill_template(template, arguments, found)
    return filled


def fill_place(template: str, arguments: Arguments, found: Any = None) -> str:
    """A place. Parts that are left out leave no gap."""
    place = _SLASHES.sub("/", fill_template(template, arguments, found))
    return place if len(place) <= MAX_PLACE else f"{template[:64]} {digest(place)}"


def unclear_name(template: str, arguments: Arguments) -> str | None:
    """What stands in a place as a name that a server may take for another one, as it takes away white space at the ends
    and what does not print."""
    for sign, name in _NAMED.findall(template):
        value = None if sign else value_at_path(arguments, name)
        if isinstance(value, str) and (value != value.strip() or not value.isprintable()):
            return value
    return None


def value_at_path(found: Any, path: str) -> Any:
    """What stands at a path of names through objects, and of numbers through lists; None when nothing does."""
    for name in path.split("."):
        if isinstance(found, list):
            found = found[int(name)] if name.isdecimal() and int(name) < len(found) else None
        else:
            found = found.get(name) if isinstance(found, Mapping) else None
    return found


@dataclass(frozen=True, slots=True)
class Found:
    """A text that was read, and the object it is a field of; none when it is all that was answered, in words."""

    text: str
    within: Mapping[str, Any] | None


def structured_parts(answer: ServerAnswer) -> Iterator[Mapping[str, Any]]:
    """An answer's structured content, and what its text says as JSON; a list is under `result`, as the protocol has
    it."""
    if answer.structured is not None:
        yield answer.structured
    try:
        said = json.loads(answer.text)
    except (ValueError, RecursionError):
        return
    if isinstance(said, list):
        yield {"result": said}
    elif isinstance(said, Mapping):
        yield said


def texts_found(read: ReadBack, arguments: Arguments, asked: Arguments, answer: ServerAnswer) -> list[Found]:
    """The texts in an answer that are where `read` says: one, or with `items` any number; none when the answer says
    that there is nothing. Raises ServerDeclined for an answer of another shape: from an error that is told as an
    ordinary text nobody knows what is there."""
    if read.find is None:
        missing = says_missing(read, asked, answer.text, lines=False)
        return [] if missing else [Found(answer.text, None)]
    for part in structured_parts(answer):
        if read.items is not None:
            items = value_at_path(part, read.items)
            if isinstance(items, list):
                return [one for item in items if (one := _item(item, read, arguments)) is not None]
            continue
        known, text = _field(part, read.find)
        if isinstance(text, str):
            # Structured content of one text is that text in a wrapping.
            whole = text.strip() == answer.text.strip()
            missing = whole and says_missing(read, asked, text, lines=False)
            return (
                []
                if missing or not _begins_so(read, part, arguments)
                else [Found(text, None if whole else part)]
            )
        if known and text is None:
            return []
    if says_missing(read, asked, answer.text):
        return []
    raise ServerDeclined(f"{read.tool} answered what shows nothing: {answer.text[:200]}")


def _field(found: object, path: str) -> tuple[bool, object]:
    """Whether an object says what stands at a path, be it that nothing does, and what."""
    for name in path.split("."):
        if found is None:
            return True, None
        if not isinstance(found, Mapping) or name not in found:
            return False, None
        found = found[name]
    return True, found


def _begins_so(read: ReadBack, part: Mapping[str, Any], arguments: Arguments) -> bool:
    return all(
        str(value_at_path(part, path)).startswith(fill_template(template, arguments))
        for path, template in read.where.items()
    )


def _item(item: object, read: ReadBack, arguments: Arguments) -> Found | None:
    text = value_at_path(item, read.find or "")
    if read.find == ".":
        text = json.dumps(item, ensure_ascii=False)
    same = (
        str(value_at_path(item, path)) == fill_template(template, arguments)
        for path, template in read.where.items()
    )
    return Found(text, item) if isinstance(item, Mapping) and isinstance(text, str) and all(same) else None


def pick(found: list[Found], wanted: object) -> Found | None:
    """The one that is what was written, or else has it, as a whole or in a longer text; None when none has."""
    exact = (one for one in found if isinstance(wanted, str) and one.text.strip() == wanted.strip())
    whole = (one for one in found if has_whole(one.text, wanted))
    return (
        next(exact, None) or next(whole, None) or next((one for one in found if has(one.text, wanted)), None)
    )


def choose(
    read: ReadBack, answer: ServerAnswer, wanted: object, found: list[Found], *, surely: bool
) -> Found | None:
    """Of the texts in an answer the one that has what is wanted; None when there is none. `surely` raises
    NotAllShown where the list is full, and may go on behind what is shown."""
    if read.items is None:
        return next(iter(found), None)
    one = pick(found, wanted)
    if surely and one is None and read.most is not None:
        for part in structured_parts(answer):
            items = value_at_path(part, read.items)
            if isinstance(items, list) and len(items) >= read.most:
                raise NotAllShown(
                    f"{read.tool} shows {read.most} things at most, and it may be another: look at it by hand."
                )
    return one


def has(text: str, wanted: object) -> bool:
    """Whether a text that was read has what was written: it itself, or of lists and objects each text in them."""
    if isinstance(wanted, str):
        return wanted.strip() in text
    return all(
        leaf in text or json.dumps(leaf, ensure_ascii=False)[1:-1] in text for leaf in texts_in(wanted)
    )


def has_whole(text: str, wanted: object) -> bool:
    """The same, and not as a part of a longer text."""
    if isinstance(wanted, str):
        whole = wanted.strip()
        return not whole or re.search(f"{_BEFORE}{re.escape(whole)}{_AFTER}", text) is not None
    return all(json.dumps(leaf, ensure_ascii=False) in text for leaf in texts_in(wanted))


def proves(read: ReadBack, asked: Arguments, found: Found, wanted: object) -> bool:
    """Whether a text that was read and has what was written shows that it is there, as a whole. What was asked with the
    text itself comes back with it whether it is there or not, so then only a field of a structured answer counts that
    is the text, and is not named like an argument."""
    if not has_whole(found.text, wanted):
        return False
    parts, texts = [leaf.strip() for leaf in texts_in(wanted) if leaf.strip()], list(texts_in(asked))
    if not parts:  # that something was read is all there is to go by
        return read.find is not None or bool(read.missing)
    if not all(any(part in sent for sent in texts) for part in parts):
        return True
    if read.find is None or found.within is None or read.find.rsplit(".", 1)[-1] in asked:
        return False
    return read.expect is not None or (isinstance(wanted, str) and found.text.strip() == wanted.strip())


def says_missing(read: ReadBack, asked: Arguments, said: str, *, lines: bool = True) -> bool:
    """Whether an answer says that there is nothing, in words that are not those it was asked with. Without `lines`, in
    a single line: a longer text may hold these words as what was written."""
    words = (read.missing,) if isinstance(read.missing, str) else read.missing
    for sent in texts_in(asked):
        if words and len(sent) >= min(map(len, words)):  # a shorter one cannot have brought them
            said = said.replace(sent, "")
    missing = any(each.casefold() in said.casefold() for each in words)
    return missing and (lines or "\n" not in said.strip())
