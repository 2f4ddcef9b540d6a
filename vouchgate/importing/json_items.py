"""The items of a JSON list in a file of any size, one after another: the file is never held whole, and an item that is
broken spoils no other."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from vouchgate.importing.rows import Unreadable

MAX_ITEM = 16 * 1024 * 1024  # characters; far over any memory, and bounds what one item can take
_CHUNK = 1 << 16
_SPACE = re.compile(r"[ \t\r\n]*")
# Of an object only the lists under these names are read: what mem0 (`results`), Letta (`blocks`, in older files
# `core_memory`), Zep (`edges`, `facts`), the knowledge-graph server and others wrap their memories in.
LIST_NAMES = (
    *("results", "memories", "items", "data", "blocks", "core_memory", "passages", "edges", "facts"),
    "entities",
)
RELATIONS = "relations"  # beside `entities`; those of mem0 are no sentences
_BEFORE = ("agents", "nodes", "episodes")  # that such objects may begin with
WRAPPED = re.compile(r'\s*\{\s*"(?:' + "|".join((*LIST_NAMES, *_BEFORE)) + r')"\s*:\s*\[')
_OPENING = re.compile(r'\[(\s*)(\{\s*"(?:[^"\\]|\\.){0,80}"|["\[{])?')
_LOOKED_AT = (
    1024  # characters in which an item begins, and over which its beginning is looked for in two readings
)
_UNFINISHED = 16  # characters at the end of what was read that may be half of a word or number
_NO_UTF8 = re.compile("[\udc80-\udcff]")  # what bytes that are no UTF-8 are read as


class NotAList(Unreadable):
    """The file is no JSON list, or breaks off in the middle; the message says where."""

    def __init__(self, message: str) -> None:
        super().__init__(f"the file cannot be read to its end: {message}")


@dataclass(frozen=True, slots=True)
class BadItem:
    """An item that is no JSON, and why; `message` has none of its text."""

    message: str


class _Broken(Unreadable):
    """One value is no JSON; what comes after it can be looked for from the character `start` of the buffer on."""

    def __init__(self, message: str, start: int) -> None:
        super().__init__(message)
        self.start = start


def items(stream: BinaryIO, name: str | None = None, left: list[str] | None = None) -> Iterator[Any]:
    """Each item of the list that the file is, or of those that the object that it is has under LIST_NAMES, or under
    `name`; a BadItem where one is broken. Behind it the reading goes on at the next place that begins as items do.
    `left` gets the names of lists that have items and were passed over.

    Raises NotAList, perhaps after some items.
    """
    text = _Text(stream)
    if text.at("["):
        yield from text.items(wrapped=False)
        if not text.ended and not text.is_end(wrapped=False):
            raise NotAList(f"more stands behind the end of the list, at character {text.place:,}")
        return
    if not text.at("{"):
        raise NotAList("it is neither a JSON list nor a JSON object")
    yield from _items_in_object(text, name, [] if left is None else left)
    if not text.ended:
        text.expect("}")
        if not text.is_end(wrapped=False):
            raise NotAList(
                f"more stands behind the end of the object, at character {text.place:,}; give each object a file"
            )


def _items_in_object(text: _Text, name: str | None, left: list[str]) -> Iterator[Any]:
    """Those of its lists, up to its end or to what is no part of it."""
    text.expect("{")
    read = list[str]()
    while not text.at("}"):
        key = str(text.value())
        text.expect(":")
        if not text.at("["):
            text.value()
        elif key == name if name else key in LIST_NAMES or (key == RELATIONS and "entities" in read):
            read.append(key)
            yield from text.items(wrapped=True)
        else:
            for each in text.items(wrapped=True):
                if isinstance(each, BadItem):
                    yield each
                elif key not in left:
                    left.append(key)
        if text.ended or not text.at(","):
            break
        text.expect(",")
    if not read:
        known = f'"{name}"' if name else "one of " + ", ".join(LIST_NAMES)
        has = f'; its lists are {", ".join(left[:9])} (say list = "NAME" in a file for --map)' if left else ""
        raise NotAList(f"it is a JSON object without a list called {known}{has}")


class _Text:
    """What has been read of the file and not been used."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._json = json.JSONDecoder(parse_constant=_no_constant)
        self._buffer = ""
        self._at = 0
        self._used = 0
        self._read_all = False
        self.ended = False  # behind a broken item nothing was found that could be read

    def items(self, *, wrapped: bool) -> Iterator[Any]:
        """Those of the list that begins here."""
        between, broken = self._between(), False
        self.expect("[")
        if self.at("]"):
            self._at += 1
            return
        while True:
            try:
                yield self._item()
                if not self.at(","):
                    if not self.at("]"):
                        raise _Broken(f"there is no ',' behind it, at character {self.place:,}", self._at)
                    self._at += 1
                    # Behind a broken item this may be the end of a list within it.
                    if not broken or self.is_end(wrapped=wrapped):
                        return
                    raise _Broken(f"a list ends in it at character {self.place:,}", self._at)
                self.expect(",")
                if self.at("]"):
                    self._at += 1
                    return
            except _Broken as error:
                broken = True
                yield BadItem(str(error))
                if not self._find(between, error.start):
                    return

    def _between(self) -> re.Pattern[str]:
        """What stands before an item that is not the first. In a list that is indented items are known by their
        indentation, in any other by their first name."""
        self._look_ahead()
        found = _OPENING.match(self._buffer, self._at)
        space, item = (found[1], found[2] or "{") if found else ("", "{")
        if space.strip("\r\n"):
            return re.compile("," + re.escape(space) + "(?=" + re.escape(item[0]) + ")")
        return re.compile(r",\s*(?=" + re.escape(item) + ")")

    def _find(self, between: re.Pattern[str], start: int) -> bool:
        """Steps to the next item behind `start`, if there is one before the file ends as a list does."""
        self._at = min(start, len(self._buffer))
        while (found := between.search(self._buffer, self._at)) is None:
            self._at = max(self._at, len(self._buffer) - _LOOKED_AT)
            if not self._more():
                self.ended = True
                if not self._buffer.rstrip().endswith(("]", "}")):
                    raise NotAList(f"it breaks off at character {self._used + len(self._buffer):,}")
                return False
        self._at = found.end()
        return True

    def is_end(self, *, wrapped: bool) -> bool:
        """Whether what comes now can stand behind the list."""
        rest = re.compile(r"\s*\}\s*" if wrapped else r"\s*")
        self._look_ahead()
        last = self._read_all and rest.fullmatch(self._buffer, self._at) is not None
        return last or (wrapped and self.at(","))

    def _item(self) -> Any:
        """The next value of a list. Bytes that are no UTF-8 are its own fault."""
        value = self.value()
        if not self._last.isascii() and _NO_UTF8.search(self._last):
            return BadItem("it is not UTF-8")
        return value

    @property
    def place(self) -> int:
        """Characters that were used."""
        return self._used + self._at

    def at(self, character: str) -> bool:
        """Whether this is the next character that is no white space."""
        while True:
            match = _SPACE.match(self._buffer, self._at)
            self._at = self._at if match is None else match.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at] == character
            if not self._more():
                raise NotAList(f"it breaks off at character {self.place:,}")

    def expect(self, character: str) -> None:
        """Steps over this character, which must be the next one."""
        if not self.at(character):
            raise NotAList(f"there is no {character!r} at character {self.place:,}")
        self._at += 1

    def value(self) -> Any:
        """The next value. While it may be not whole, twice as much is read each time: no item is parsed often."""
        self.at("")
        while True:
            try:
                value, end = self._json.raw_decode(self._buffer, self._at)
            except RecursionError as error:
                raise _Broken("it is nested too deeply", self._at + 1) from error
            except json.JSONDecodeError as error:
                size = len(self._buffer) - self._at
                cut = error.msg.startswith("Unterminated") or error.pos >= len(self._buffer) - _UNFINISHED
                if cut and size > MAX_ITEM:
                    message = f"it is longer than {MAX_ITEM:,} characters, or is no JSON"
                    raise _Broken(message, len(self._buffer)) from error
                if cut and self._more(max(_CHUNK, size)):
                    continue
                if error.msg.startswith("Unterminated") or error.pos >= len(self._buffer):
                    raise NotAList(f"it breaks off at character {self._used + error.pos:,}") from error
                # A quotation mark that is missing is found out behind the next one, which may be another item's.
                string = self._buffer.rfind('"', self._at + 1, max(error.pos - 1, self._at + 1))
                message = f"it is no JSON at character {self._used + error.pos:,}"
                raise _Broken(message, self._at + 1 if string < 0 else string) from error
            except ValueError as error:  # NaN, or an integer of thousands of digits
                raise _Broken(f"it is no JSON: {error}", self._at + 1) from error
            else:
                # A number could go on in what has not been read, but no memory is one.
                self._last, self._at = self._buffer[self._at : end], end
                return value

    def _look_ahead(self) -> None:
        while len(self._buffer) - self._at < _LOOKED_AT and self._more():
            pass

    def _more(self, size: int = _CHUNK) -> bool:
        if self._read_all:
            return False
        read = self._stream.read(size)
        self._read_all = not read
        text = self._decoder.decode(read, final=self._read_all)
        self._used += self._at
        self._buffer = self._buffer[self._at :] + text
        self._at = 0
        return not self._read_all or bool(text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
