"""A text as a reader sees its words: without the marks that HTML, Markdown and keyboards leave within them.

"do&nbsp;not", "don&#39;t", "don´t", "do n<wbr>ot" and "do [not](why.md)" deny as "do not" does. Rules that look for
words find them only where they are written out, so they are, at the same offsets: what is taken out of a word leaves
spaces behind it.
"""

from __future__ import annotations

import re

from vouchgate.ingest.language.normalise import INVISIBLE

_APOSTROPHE = r"[\u00b4\u02b9\u02bc\u2018\u2032\uff07]|&(?:#0?39|#8217|#[xX](?:27|2019)|apos|[lr]squo|prime);"
_STROKE = r"[`](?=(?:t|s|d|m|ve|re|ll)\b)"  # typed for an apostrophe, not a mark of code
_SPACE = r"&(?:nbsp|#160|#[xX][aA]0|ensp|emsp|thinsp);"
_NOTHING = (
    rf"[{INVISIBLE}]+|&(?:shy|#173|#[xX][aA][dD]|ZeroWidthSpace|#8203|zwn?j|#820[45]);"
    r"|</?(?:b|em|font|i|mark|small|span|strong|tt|u|wbr)(?:\s[^<>]{0,100})?/?>"
)
_LETTER = r"[^\W\d_\u02b9\u02bc]"  # these two are letters, and typed as apostrophes
_WITHIN = rf"(?:{_APOSTROPHE}|{_STROKE}|{_SPACE}|{_NOTHING})"
_BEHIND = rf"(?:{_SPACE}|{_NOTHING})"
_WRITTEN = re.compile(rf"(?<!{_LETTER}){_LETTER}++(?:(?:{_WITHIN}{_LETTER}++)+{_BEHIND}*|{_BEHIND}+)")
_PARTS = re.compile(rf"(?P<apostrophe>{_APOSTROPHE}|{_STROKE})|(?P<space>{_SPACE})|(?P<nothing>{_NOTHING})")
# A link, of which the text is read; not a picture, nor a call in code.
_LINK = re.compile(r"(?<![\w!\\])\[([^\[\]\n]{1,200})\]\([^()\s]{1,500}(?:\s\"[^\"\n]{0,200}\")?\)")


def written_out(text: str) -> str:
    """The text with its words written out, and of its links what they are called. As long as it was, and whatever is
    not in such a word or link stays where it is. Linear."""
    if "](" in text:
        text = _LINK.sub(lambda match: f" {match[1]}".ljust(len(match[0])), text)
    return _WRITTEN.sub(_written, text)


def _written(match: re.Match[str]) -> str:
    return _PARTS.sub(_part, match[0]).ljust(len(match[0]))


def _part(match: re.Match[str]) -> str:
    return "'" if match["apostrophe"] else " " if match["space"] else ""
