"""What a text has and does not say: what is struck out or hidden in it, what stands under a heading of things not
done, and the items of a list that begins with a denial.

"We do not use:" denies each item below it, and "~~ten years~~" is no period. A reader sees that by the form of the page
and not by the sentence, so it is taken out here, before sentences are looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# An HTML element that is struck out or hidden, or a comment.
_UNSEEN = re.compile(
    r"<!--|<(?:(del|s|strike|template|script|style)(?=[\s>])|(\w{1,20})\b[^<>]{0,500}?\s(?:hidden(?=[\s>=/])"
    r"|style\s{0,3}=\s{0,3}[\"'][^\"'<>]{0,300}?(?:display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden)))",
    re.IGNORECASE,
)
# A link definition that nothing refers to is how Markdown is commented.
_REMARK = re.compile(
    r"^[ ]{0,3}\[[^\]\n]{0,20}\]:[ \t]{0,8}(?:#|<#?>)[ \t]{0,8}[(\"'].{0,2000}$", re.MULTILINE
)
_CHANGE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*(?:diff|patch|udiff)\b.*$", re.IGNORECASE | re.MULTILINE)
_TAKEN_OUT = re.compile(r"^-.*$", re.MULTILINE)
_STRUCK = re.compile(r"(?<![~\w\\`])~~(?=[^\s~`])|(?<=[^\s~\\`])~~(?![~\w`])")
_BLOCK = re.compile(r"^/{4,20}[ \t]*$", re.MULTILINE)  # of AsciiDoc, around a comment
_COMMENT = re.compile(
    r"\.\. (?![_|\[]|.{0,200}::)"
)  # of reStructuredText, with the lines that are indented below it
_HEADING = re.compile(r"(#{1,6}|={1,6})[ \t]{1,8}(\S.{0,300})|(\*\*|__)([^*_\n]{2,120})(?:\*\*|__):?[ \t]*")
# As Markdown may have it, and that of Jira and Textile.
_HTML_HEADING = re.compile(r"<h([1-6])\b[^<>]{0,200}>.{1,300}</h\1>", re.IGNORECASE)
_WIKI_HEADING = re.compile(r"h([1-6])\. (?=\S)")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_RULE = re.compile(r"(=|-|~|\^)\1{2,200}[ \t]*")
_THINGS = r"(?:options?|ideas?|alternatives?|solutions?|approach(?:es)?|designs?|proposals?|variants?)"
_TURNED_DOWN = r"(?:rejected|discarded|dismissed|declined|abandoned|considered)"
# All of a heading, so that "Abandoned carts" and "Wrong prices in the shop" are none of these.
_UNDER = re.compile(
    rf"(?:{_THINGS} )?not (?:chosen|selected|accepted|adopted|pursued|taken|in scope|done|planned|to do)"
    r"|what (?:not to (?:do|use)|(?:we|it|this|they) (?:do|does|did|will|would)(?:n['’]t| not)(?: \w+)?)"
    rf"|{_TURNED_DOWN}(?: (?:and rejected )?{_THINGS})(?: .*)?|(?:rejected|discarded|dismissed|declined)(?::.*)?"
    rf"|{_THINGS} (?:(?:that|which|we) )?(?:(?:we|were|was) )?{_TURNED_DOWN}|(?:other )?alternatives"
    r"|non[- ]goals?|(?:not in|out of) scope|anti[- ]?patterns?|(?:common )?(?:misconceptions?|myths?)|bad examples?"
    r"|never|forbidden|no longer true|do(?:n['’]?t| not)(?: do this)?|won['’]?t (?:do|have|fix)|ideas? for later",
    re.IGNORECASE,
)
NUMBERING = re.compile(r"^[\W\d_]+|[\W_]+$")
ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)]|[a-z][.)]|\|)[ \t]")
# The last sentence before a list, to its colon: that whatever follows is not done, not there, or not allowed.
_WORDS = r"(?: [\w'’/-]+)"
_DENIES = re.compile(
    r"(?:.*[\s,(])?(?:do|does|did|will|would|must|may|can|could|should|shall|is|are|was|were|has|have|had)"
    r"(?:n['’]t| not| never)"
    rf"(?! (?:forget|hesitate|fail|miss|need|just|only|worry|none|null))(?: yet)?{_WORDS}{{0,5}}"
    rf"|(?:.*[\s,(])?cannot(?! (?:only|just)){_WORDS}{{0,3}}|(?:nobody|no one|none of){_WORDS}{{0,5}}"
    rf"|(?:(?:we|it|they|you|users?|agents?) )?never(?! (?:skip|forget|miss|omit)){_WORDS}{{0,3}}"
    r"|(?:rejected|discarded|dismissed|declined|forbidden|prohibited|not allowed|out of scope|non-goals?)"
    rf"{_WORDS}{{0,5}}"
    rf"|the following (?:is|are) (?:forbidden|prohibited|rejected|discouraged|out of scope){_WORDS}{{0,3}}"
    rf"|we (?:decided|chose) against{_WORDS}{{0,3}}|what we (?:refuse|never \w+)|don['’]?ts?",
    re.IGNORECASE,
)
CODE = re.compile(r"\s*(?:if|elif|while|except|def|class|for|case|return|assert|switch|lambda)\b|.*[=(){}<>]")
_SENTENCE = re.compile(r".*[.!?]\s", re.DOTALL)
# What a line begins with that shows how it is not to be.
_SHOWN_WRONG = re.compile(
    r"[ \t]*(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+)?[*_]{0,3}"
    r"(?:[✗✘❌🚫⛔]|\[rejected\]|(?:wrong|incorrect|rejected|don['’]?t|(?:common )?(?:myth|misconception)(?: \d{1,3})?)"
    r"[*_]{0,3}:)",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\([^()]{0,200}\)")
_BOLD = 7  # the depth of a line in bold
_FENCE = re.compile(r" {0,3}(?:`{3}|~{3})")
_LONGEST = 120  # characters of what leads to a list


class Line(NamedTuple):
    """A line of a text, of which it is `text[start:end]` with its end."""

    start: int
    end: int
    shown: str  # without its end
    level: int  # of a heading, from 1; 0 for any other line
    fenced: bool  # of a block of code, with the lines around it


def without_unsaid(text: str) -> str:
    """The text with dots for the words of what it does not say. Offsets hold. Linear."""
    return _dotted(text, sorted((*_hidden(text), *_denied(text))))


def without_hidden(text: str) -> str:
    """As `without_unsaid`, but for what a reader sees: what a text denies may speak against a claim."""
    return _dotted(text, sorted(_hidden(text)))


def _dotted(text: str, spans: Sequence[tuple[int, int]]) -> str:
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
    at, open_ended = 0, set[str]()
    while "<" in text and (first := _UNSEEN.search(text, at)):
        at, name = first.end(), (first[1] or first[2] or "").lower()
        end = 0 if name in open_ended else _closed(text, at, name, nested=first[1] is None)
        if end:
            yield first.start(), end
            at = end
        else:
            open_ended.add(name)
    for remark in _REMARK.finditer(text) if "]:" in text else ():
        yield remark.span()
    for change in _CHANGE.finditer(text):
        close = text.find(f"\n{change[1]}", change.end())
        for line in _TAKEN_OUT.finditer(text, change.end(), len(text) if close < 0 else close):
            yield line.span()
    for marks in (_STRUCK, _BLOCK):
        start = -1
        for mark in marks.finditer(text):
            if start >= 0 and (marks is _BLOCK or "\n\n" not in text[start : mark.start()]):
                yield start, mark.end()
                start = -1
            else:
                start = mark.start()


def _closed(text: str, at: int, name: str, *, nested: bool) -> int:
    """Where an element ends of which the first tag ends at `at`, or a comment, which has no name: behind the last tag
    that ends one, where they do not match; 0 where none does."""
    if not name:
        end = text.find("-->", at)
        return end + 3 if end >= 0 else 0
    depth, end = 1, 0
    for tag in re.compile(rf"<(/?){name}(?:\s[^<>]{{0,500}})?>", re.IGNORECASE).finditer(text, at):
        if tag[1]:
            depth, end = depth - 1, tag.end()
            if not (nested and depth):
                break
        else:
            depth += 1
    return end


def _denied(text: str) -> Iterator[tuple[int, int]]:
    """The lines under a heading of things not done, behind a lead-in that denies, of comments, and those that show how
    it is not to be."""
    under, listed, comment = 0, False, False
    said, before = "", ""
    for start, end, line, level, fenced in lines_of(text):
        if level:
            if not under or level <= under:
                under = level if level > 1 and _UNDER.fullmatch(heading_of(line)) else 0
            listed, comment, said = level == _BOLD and _denies_list(line), False, ""
            continue
        indented = line[:1] in (" ", "\t")
        comment = bool(_COMMENT.match(line)) or (comment and (indented or not line))
        if line.strip():  # a line right behind one of an item goes on with it
            listed = listed and (indented or bool(before) or ITEM.match(line) is not None)
            said = f"{said} {line.strip()}"[-_LONGEST:] if before else line.strip()[-_LONGEST:]
        within = bool(under or listed or comment)
        if within or (_SHOWN_WRONG.match(line) and not fenced):
            yield start, end
        if line.strip() and not (within or fenced or CODE.match(line)):
            listed = _denies_list(said)
        before = line.strip()


def heading_of(line: str) -> str:
    """The words of a line that is a heading."""
    return NUMBERING.sub("", _WIKI_HEADING.sub("", _TAG.sub("", line).strip(), count=1))


def _denies_list(said: str) -> bool:
    return _DENIES.fullmatch(lead_in(_ASIDE.sub("", said))) is not None


def lead_in(said: str) -> str:
    """The last sentence of what stands before a list, without its colon; empty when that is not how it ends."""
    plain = said.rstrip(" *_")
    if not plain.endswith((":", "：")):
        return ""
    before = _SENTENCE.match(plain)
    return plain[before.end() if before is not None else 0 : -1].strip(" *_—–-")


def lines_of(text: str) -> Iterator[Line]:
    """The lines of a text in order."""
    lines, at, fenced = text.splitlines(keepends=True), 0, False
    for number, whole in enumerate(lines):
        line = whole.rstrip("\r\n")
        fence = _FENCE.match(line) is not None
        within = fenced or fence
        fenced = fenced is not fence
        yield Line(at, at + len(whole), line, 0 if within else _level(lines, number), within)
        at += len(whole)


def _level(lines: list[str], number: int) -> int:
    """How deep a heading is in this line, from 1; 0 for none."""
    line = lines[number].strip()
    match = _HEADING.fullmatch(line[:400])
    if match is not None:
        return len(match[1]) if match[1] else _BOLD
    if line.startswith("<") and (tagged := _HTML_HEADING.fullmatch(line[:600])):
        return int(tagged[1])
    if wiki := _WIKI_HEADING.match(line):
        return int(wiki[1])
    following = lines[number + 1].rstrip("\r\n") if line and number + 1 < len(lines) else ""
    if _RULE.fullmatch(following):
        return 1 if following[0] == "=" else 2
    return 0
