"""A file of settings, read line by line: which keys a setting stands under.

"timeout: 30" below "database:" is `database.timeout`; "[tool.mypy]" is above "strict = true". Keys are told by
indentation, as YAML and printed JSON have it, and by the sections of TOML and INI; any other line stands alone.
Nothing is interpreted: no aliases, no merges, no types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

ENDINGS = (".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".json", ".jsonc", ".properties", ".env")
Span = tuple[int, int]

_LINE = re.compile(r"[^\n]+")
_SECTION = re.compile(r"\[{1,2}(?P<names>[^\]\n]{1,200})\]{1,2}[ \t]*(?:[#;].*)?")
_NAME = re.compile(r"[^\s.\"'\[\]][^.\"'\[\]]*")
_SETTING = r"(?:-[ \t]+)*(?P<mark>[\"']?)(?P<key>[A-Za-z_$@][\w.$/@-]{0,99})(?P=mark)[ \t]*(?::(?=\s|$)|=)"
_KEY = re.compile(_SETTING)
_COMMENTED_OUT = re.compile(rf"^[ \t]*(?:#|;|//)[ \t]*{_SETTING}.*$", re.MULTILINE)
_BLOCK = re.compile(r"[:=][ \t]*(?:[|>][-+\d]{0,2}|(?P<quotes>\"{3}|'{3}))[ \t]*(?:#.*)?$")
_DEEPEST = 12  # keys above a setting


class Setting(NamedTuple):
    """One line, `text[start:end]`, its own key, and where those stand that it is under, the outermost first."""

    start: int
    end: int
    key: str
    above: tuple[Span, ...]


def without_commented_out(text: str) -> str:
    """The text with dots for the words of settings that are comments, and hold nothing. Offsets hold. Linear."""
    return _COMMENTED_OUT.sub(lambda match: re.sub(r"\w", "·", match.group()), text)


def settings_of(text: str) -> Iterator[Setting]:
    """The lines of a file of settings that hold anything, in order. Linear; never raises."""
    section: tuple[Span, ...] = ()
    open_keys: list[tuple[int, Span]] = []  # by indentation
    block: int | None = None  # the indentation of the key whose text goes on over lines, if any
    quotes = ""  # what ends that text
    for match in _LINE.finditer(text):
        line = match.group()
        shown = line.strip()
        if not shown:
            continue
        start = match.start() + line.index(shown[0])
        end, indent = start + len(shown), start - match.start()
        named = None
        if quotes or (block is not None and indent > block):
            quotes = "" if quotes and quotes in shown else quotes
        elif shown[0] not in "#;/":
            block, named = None, _KEY.match(text, start, end)
            if not indent and (head := _SECTION.fullmatch(text, start, end)):
                names = _NAME.finditer(text, *head.span("names"))
                section, open_keys = tuple(name.span() for name in names), []
            at = named.start("key") - match.start() if named is not None else indent + 2 * (shown[0] == "-")
            while open_keys and open_keys[-1][0] >= at:
                open_keys.pop()
        above = (*section, *(span for _, span in open_keys))[:_DEEPEST]
        yield Setting(start, end, named["key"] if named is not None else "", above)
        if named is not None:
            open_keys.append((named.start("key") - match.start(), named.span("key")))
            if begins := _BLOCK.search(text, start, end):
                block, quotes = indent, begins["quotes"] or ""
