"""The items of a JSON list in a file of any size, one after another: the file is never held whole."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

MAX_ITEM = 16 * 1024 * 1024  # characters; far over any memory, and bounds what one item can take
_CHUNK = 1 << 16
_SPACE = re.compile(r"[ \t\r\n]*")
# Of an object only the list under one of these names is read: what mem0 and others wrap their memories in.
LIST_NAMES = ("results", "memories", "items", "data")
WRAPPED = re.compile(r'\s*\{\s*"(?:' + "|".join(LIST_NAMES) + r')"\s*:\s*\[')


class NotAList(ValueError):
    """The text is no JSON list, or breaks off in the middle; the message says where."""


def items(stream: BinaryIO) -> Iterator[Any]:
    """Each item of the list that the file is, or that stands first in the object that it is.

    Raises NotAList, perhaps after some items.
    """
    text = _Text(stream)
    text.skip_to_list()
    first = True
    while not text.at("]"):
        if not first:
            text.expect(",")
        if first or not text.at("]"):
            yield text.value()
        first = False


class _Text:
    """What has been read of the file and not been used."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogatepass")
        self._json = json.JSONDecoder(parse_constant=_no_constant)
        self._buffer = ""
        self._at = 0
        self._used = 0
        self._ended = False

    def skip_to_list(self) -> None:
        """Up to behind the bracket that opens the list."""
        if self.at("["):
            self._at += 1
            return
        while (match := WRAPPED.match(self._buffer, self._at)) is None:
            if len(self._buffer) > _CHUNK or not self._more():
                raise NotAList(f"it is neither a JSON list nor an object that begins with {_names()}")
        self._at = match.end()

    def at(self, character: str) -> bool:
        """Whether this is the next character that is no white space."""
        while True:
            match = _SPACE.match(self._buffer, self._at)
            self._at = self._at if match is None else match.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at] == character
            if not self._more():
                raise NotAList(f"the list breaks off at character {self._used + self._at:,}")

    def expect(self, character: str) -> None:
        """Steps over this character, which must be the next one."""
        if not self.at(character):
            raise NotAList(
                f"there is no {character!r} between two items at character {self._used + self._at:,}"
            )
        self._at += 1

    def value(self) -> Any:
        """The next value. While it is not whole, twice as much is read each time: no item is parsed often."""
        self.at("")
        while True:
            try:
                value, end = self._json.raw_decode(self._buffer, self._at)
            except RecursionError as error:
                raise NotAList("an item is nested too deeply") from error
            except ValueError as error:
                if len(self._buffer) - self._at > MAX_ITEM:
                    raise NotAList(
                        f"an item is longer than {MAX_ITEM:,} characters, or is no JSON"
                    ) from error
                if not self._more(max(_CHUNK, len(self._buffer) - self._at)):
                    where = self._used + getattr(error, "pos", self._at)
                    raise NotAList(f"it is no JSON at character {where:,}") from error
            else:
                # A number could go on in what has not been read, but no memory is one.
                self._at = end
                return value

    def _more(self, size: int = _CHUNK) -> bool:
        if self._ended:
            return False
        read = self._stream.read(size)
        self._ended = not read
        try:
            text = self._decoder.decode(read, final=self._ended)
        except UnicodeDecodeError as error:
            raise NotAList("it is not UTF-8") from error
        self._used += self._at
        self._buffer = self._buffer[self._at :] + text
        self._at = 0
        return not self._ended or bool(text)


def _names() -> str:
    return ", ".join(f'"{name}"' for name in LIST_NAMES)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
