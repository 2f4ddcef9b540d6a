"""Text of files, commits and threads as every store can hold it. Pure."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def plain(text: str) -> str:
    """Text that any store can hold: control characters and lone surrogates become spaces."""
    return _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))


def without_comments(text: str) -> str:
    """Markdown or HTML without its `<!-- comments -->`, which no reader sees."""
    kept: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        end = text.find("-->", start + 4)
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + 3
    kept.append(text[at:])
    return "".join(kept)
