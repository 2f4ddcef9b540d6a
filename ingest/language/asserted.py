"""What a text has and does not say: what is struck out or hidden in it, what stands under a heading of things not
done, and the items of a list that begins with a denial.

"We do not use:" denies each item below it, and "~~ten years~~" is no period. A reader sees that by the form of the page
and not by the sentence, so it is taken out here, before sentences are looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# What begins and ends with these is hidden, or struck out.
_PAIRS = (("<!--", "-->"), ("<del", "</del>"), ("<s>", "</s>"), ("<strike", "</strike>"))
_STRUCK = re.compile(r"(?<![~\w\\`])~~(?=[^\s~`])|(?<=[^\s~\\`])~~(?![~\w`])")
_BLOCK = re.compile(r"^/{4,20}[ \t]*$", re.MULTILINE)  # of AsciiDoc, around a comment
_COMMENT = re.compile(
    r"\.\. (?![_|\[]|.{0,200}::)"
)  # of reStructuredText, with the lines that are indented below it
_HEADING = re.compile(r"(#{1,6}|={1,6})[ \t]{1,8}(\S.{0,300})|(\*\*|__)([^*_\n]{2,120})(?:\*\*|__):?[ \t]*")
_RULE = re.compile(r"(=|-|~|\^)\1{2,200}[ \t]*")
_UNDER = re.compile(
    r"\b(?:not (?:chosen|selected|accepted|adopted|pursued|in scope|done|planned|supported|to do|doing)"
    r"|(?:we|it|this|they) (?:do|does|did|will|would)(?:n['’]t| not)|won['’]t (?:do|have|fix)|don['’]?ts?$"
    r"|rejected|discarded|dismissed|declined|abandoned|non[- ]goals?|out of scope|anti[- ]?patterns?"
    r"|misconceptions?|myths?|alternatives? (?:considered|that|we)|considered alternatives?|bad examples?|wrong)\b"
    r"|^\W*alternatives?\W*$",
    re.IGNORECASE,
)
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)]|\|)[ \t]")
_DENIES = re.compile(
    r"\b(?:not|never|nobody|no one|none|neither|cannot|no|without|except|excluding|instead of|avoid"
    r"|rejected|discarded|dismissed|declined|forbidden|prohibited)\b|n['’]t\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\([^()]{0,200}\)")
_LONGEST = 300  # characters of a line that lead to a list


def without_unsaid(text: str) -> str:
    """The text with dots for the words of what it does not say. Offsets hold. Linear."""
    spans = sorted((*_hidden(text), *_denied(text)))
    if not spans:
        return text
    pieces, at = list[str](), 0
    for start, end in spans:
        if end > at:
            pieces += (text[at : max(start, at)], re.sub(r"\w", "·", text[max(start, at) : end]))
            at = end
    return "".join((*pieces, text[at:]))


def _hidden(text: str) -> Iterator[tuple[int, int]]:
    """What no reader sees, or sees struck out."""
    low = text.lower() if "<" in text else ""
    for begin, finish in _PAIRS if low else ():
        at = 0
        while (start := low.find(begin, at)) >= 0 and (end := low.find(finish, start)) >= 0:
            yield start, end
            at = end
    for marks in (_STRUCK, _BLOCK):
        start = -1
        for mark in marks.finditer(text):
            if start >= 0 and (marks is _BLOCK or "\n\n" not in text[start : mark.start()]):
                yield start, mark.end()
                start = -1
            else:
                start = mark.start()


def _denied(text: str) -> Iterator[tuple[int, int]]:
    """The lines under a heading of things not done, behind a lead-in that denies, and of comments."""
    under, listed, comment, at = 0, False, False, 0
    lines = text.splitlines(keepends=True)
    for number, whole in enumerate(lines):
        line, start = whole.rstrip("\r\n"), at
        at += len(whole)
        if level := _level(lines, number):
            if not under or level <= under:
                under = level if _UNDER.search(line) else 0
            listed, comment = _denies_list(line), False
            continue
        indented = line[:1] in (" ", "\t")
        comment = bool(_COMMENT.match(line)) or (comment and (indented or not line))
        if line.strip():
            listed = listed and (indented or _ITEM.match(line) is not None)
        if under or listed or comment:
            yield start, at
        elif line.strip():
            listed = _denies_list(line)


def _denies_list(line: str) -> bool:
    return line.rstrip(" *_").endswith(":") and _DENIES.search(_ASIDE.sub("", line[-_LONGEST:])) is not None


def _level(lines: list[str], number: int) -> int:
    """How deep a heading is in this line, from 1; 0 for none."""
    line = lines[number].strip()
    match = _HEADING.fullmatch(line[:400])
    if match is not None:
        return len(match[1]) if match[1] else 7
    if line and number + 1 < len(lines) and _RULE.fullmatch(lines[number + 1].rstrip("\r\n")):
        return 1 if lines[number + 1][0] == "=" else 2
    return 0
