"""What a text has and does not say: what is struck out or hidden in it, what stands under a heading of things not
done, and the items of a list that begins with a denial.

"We do not use:" denies each item below it, and "~~ten years~~" is no period. A reader sees that by the form of the page
and not by the sentence, so it is taken out here, before sentences are looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# What begins and ends with these is hidden, or struck out.
_PAIRS = tuple(
    (re.compile(begin, re.IGNORECASE), re.compile(end, re.IGNORECASE))
    for begin, end in (("<!--", "-->"), ("<del", "</del>"), ("<s>", "</s>"), ("<strike", "</strike>"))
)
_STRUCK = re.compile(r"(?<![~\w\\`])~~(?=[^\s~`])|(?<=[^\s~\\`])~~(?![~\w`])")
_BLOCK = re.compile(r"^/{4,20}[ \t]*$", re.MULTILINE)  # of AsciiDoc, around a comment
_COMMENT = re.compile(
    r"\.\. (?![_|\[]|.{0,200}::)"
)  # of reStructuredText, with the lines that are indented below it
_HEADING = re.compile(r"(#{1,6}|={1,6})[ \t]{1,8}(\S.{0,300})|(\*\*|__)([^*_\n]{2,120})(?:\*\*|__):?[ \t]*")
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
_NUMBERING = re.compile(r"^[\W\d_]+|[\W_]+$")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)]|[a-z][.)]|\|)[ \t]")
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
_CODE = re.compile(
    r"\s*(?:if|elif|while|except|def|class|for|case|return|assert|switch|lambda)\b|.*[=(){}<>]"
)
_SENTENCE = re.compile(r".*[.!?]\s", re.DOTALL)
# What a line begins with that shows how it is not to be.
_SHOWN_WRONG = re.compile(
    r"[ \t]*(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+)?[*_]{0,3}"
    r"(?:[✗✘❌🚫⛔]|\[rejected\]|(?:wrong|incorrect|rejected|don['’]?t)[*_]{0,3}:)",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\([^()]{0,200}\)")
_BOLD = 7  # the depth of a line in bold
_FENCE = re.compile(r" {0,3}(?:`{3}|~{3})")
_LONGEST = 120  # characters of what leads to a list


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
    for begin, finish in _PAIRS if "<" in text else ():
        at = 0
        while (first := begin.search(text, at)) and (last := finish.search(text, first.end())):
            yield first.start(), last.end()
            at = last.end()
    for marks in (_STRUCK, _BLOCK):
        start = -1
        for mark in marks.finditer(text):
            if start >= 0 and (marks is _BLOCK or "\n\n" not in text[start : mark.start()]):
                yield start, mark.end()
                start = -1
            else:
                start = mark.start()


def _denied(text: str) -> Iterator[tuple[int, int]]:
    """The lines under a heading of things not done, behind a lead-in that denies, of comments, and those that show how
    it is not to be."""
    under, listed, comment, fenced, at = 0, False, False, False, 0
    lines, said, before = text.splitlines(keepends=True), "", ""
    for number, whole in enumerate(lines):
        line, start = whole.rstrip("\r\n"), at
        at += len(whole)
        fence = _FENCE.match(line) is not None
        fenced = fenced is not fence
        if not (fenced or fence) and (level := _level(lines, number)):
            if not under or level <= under:
                under = level if level > 1 and _UNDER.fullmatch(_NUMBERING.sub("", line.strip())) else 0
            listed, comment, said = level == _BOLD and _denies_list(line), False, ""
            continue
        indented = line[:1] in (" ", "\t")
        comment = bool(_COMMENT.match(line)) or (comment and (indented or not line))
        if line.strip():  # a line right behind one of an item goes on with it
            listed = listed and (indented or bool(before) or _ITEM.match(line) is not None)
            said = f"{said} {line.strip()}"[-_LONGEST:] if before else line.strip()[-_LONGEST:]
        within = bool(under or listed or comment)
        if within or (_SHOWN_WRONG.match(line) and not fenced):
            yield start, at
        if line.strip() and not (within or fenced or _CODE.match(line)):
            listed = _denies_list(said)
        before = line.strip()


def _denies_list(said: str) -> bool:
    plain = _ASIDE.sub("", said).rstrip(" *_")
    if not plain.endswith((":", "：")):
        return False
    last = _SENTENCE.sub("", plain[:-1])
    return _DENIES.fullmatch(last.strip(" *_—–-")) is not None


def _level(lines: list[str], number: int) -> int:
    """How deep a heading is in this line, from 1; 0 for none."""
    line = lines[number].strip()
    match = _HEADING.fullmatch(line[:400])
    if match is not None:
        return len(match[1]) if match[1] else _BOLD
    following = lines[number + 1].rstrip("\r\n") if line and number + 1 < len(lines) else ""
    if _RULE.fullmatch(following):
        return 1 if following[0] == "=" else 2
    return 0
