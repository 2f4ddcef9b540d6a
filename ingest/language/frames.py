"""What a page says under a condition, as a plan, of the past, or in another's mouth: a sentence as it stands there does
not hold by itself.

"## Roadmap", "If the flag is set:", "Draft: …", "| Dark mode | planned |" and "That is wrong." frame what stands below,
behind or before them. A reader sees it by the form of the page. A claim has what is framed from its source when it says
the frame as well: "dark mode is planned" (ADR-0085). The words are in `frames` of `ingest/data/language.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vouchgate.ingest.data import read_data
from vouchgate.ingest.language.asserted import CODE, ITEM, NUMBERING, Line, heading_of, lead_in, lines_of


class Framing(NamedTuple):
    """The words that frame, and those beside them of which one is enough in a claim."""

    said: str
    also: frozenset[str]


class Frame(NamedTuple):
    """A stretch of a text, `text[start:end]`, that holds for a claim with one of the words of its framing."""

    start: int
    end: int
    framing: Framing


_DATA = read_data("language.toml")["frames"]
_NONE = frozenset[str]()
_PAST = frozenset(_DATA["past"]["words"])
_PLAN = frozenset(_DATA["plan"]["words"])


def _either(patterns: Sequence[str]) -> str:
    return "|".join(f"(?:{each})" for each in patterns) or r"(?!)"


def _kinds(*forms: str) -> Sequence[tuple[re.Pattern[str], frozenset[str]]]:
    kinds = [_DATA[name] for name in ("plan", "past", "wrong")]
    return [
        (
            re.compile(_either([each for form in forms for each in kind[form]]), re.IGNORECASE),
            frozenset(kind["words"]),
        )
        for kind in kinds
    ]


_HEADINGS, _LABELS, _CELLS = _kinds("headings"), _kinds("labels"), _kinds("cells")
_TAGS = _kinds("labels", "cells")
_LEADS = re.compile(
    rf"^(?:{_either(_DATA['leads']['first'])})\b|\b(?:{_either(_DATA['leads']['within'])})\b", re.IGNORECASE
)
_LEADS_TO_CODE = re.compile(rf"\b(?:{_either(_DATA['leads']['code'])})\b", re.IGNORECASE)
_LABEL = re.compile(r"[*_]{0,3}([A-Za-z][\w' -]{1,30})[*_]{0,3}[ \t]?[:：][*_]{0,3}(?=\s|$)")
_QUOTE = re.compile(r"(?:[ \t]{0,3}>)+[ \t]?")
_MARK = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)]|[a-z][.)])[ \t]+")
_UNTICKED = re.compile(r"\[[ _]?\][ \t]")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*")
_SPEAKS = re.compile(
    r"\b(?:(?:wrote|said|claim(?:s|ed)|argu(?:es|ed)|believ(?:es|ed)|thinks?|thought)\b[^.!?\n]{0,40}:\s+(?=[\"“«„'])"
    r"|(?:suppose|imagine|assume)\b[^.!?\n]{0,40}:\s)",
    re.IGNORECASE,
)
_BACK = _DATA["taken_back"]
_TAKEN_BACK = re.compile(
    r"[(\s*_]*(?:(?:(?:but|however|actually|in fact),? )?(?:that|this|it|which)(?: (?:statement|claim|part|sentence))? "
    rf"(?:{_either(_BACK['of_that'])})|{_either(_BACK['others'])})(?![-\w]| to\b)",
    re.IGNORECASE,
)
# Within the sentence that it takes back, behind what it says.
_TAKEN_BACK_BEHIND = re.compile(
    rf"(?:;|[\"”]|\s[-–—]|,(?= (?:not|no|but|which) ))\s{_TAKEN_BACK.pattern}", re.IGNORECASE
)
# What a sentence is about, and does not say: "That the office is open is not the case", "Using tar was rejected".
_SPOKEN_OF = re.compile(
    r"\W{0,4}(?:that (?:the|a|an|we|it|they|all|every|our|this|some)\b|[a-z]+ing\b)[^.;:!?\n]{4,300}?"
    rf" (?:{_either(_BACK['subject_does'])}|(?:is|was|are|were|has been|would be)"
    r" (?:(?:simply|just|clearly|also|then|now|a|an|the|\w+ly) ){0,3}"
    rf"(?:{_either(_BACK['subject_is'])}))\b",
    re.IGNORECASE,
)
# With which a sentence begins that holds in another design, or in none.
_OF_ANOTHER = re.compile(
    r"\W{0,4}(?:in|with|under) (?:the|our|an?|its) (?:very )?"
    r"(?:old|older|previous|former|earlier|original|legacy|prior) \w+\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"[(\[]([\w' -]{3,30})[)\]][.!]?\s*$")
_STATUS = re.compile(
    r"---[ \t]*\n(?:[^\n]*\n){0,30}?status:[ \t]*[\"']?"
    r"(superseded|obsolete|rejected|withdrawn|deprecated|archived|outdated)\b",
    re.IGNORECASE,
)
_BANNER = re.compile(
    r"\bth(?:is|e present) (?:page|document|guide|doc|runbook|file|article|paper|post|policy|manual|study)(?: \w+)?"
    r" (?:is|was|has been)(?: \w+){0,2}?"
    r" (?:outdated|out of date|obsolete|superseded|deprecated|withdrawn|archived|retracted|satire|a parody|a hoax"
    r"|no longer (?:maintained|valid|current|true|in use|accurate)"
    r"|not (?:yet )?(?:approved|accepted|in force|implemented))",
    re.IGNORECASE,
)
_RETRACTED = re.compile(
    r"\s*(?:#{1,6} )?[(\[]?(?:retracted|withdrawn)(?: (?:article|chapter|paper|study))?[)\]]?(?:[:：]|(?<=[)\]]))",
    re.IGNORECASE,
)
# What a forge says of a change that is not there: a claim on it says that it is proposed, or was.
_UNMERGED = re.compile(
    r"^(?:Pull|Merge) request \d{1,10} (?:is open|is locked|was closed without being merged)[^.\n]{0,60}\.$",
    re.MULTILINE,
)
_OF_CHANGES = frozenset({"pr", "mr", "closed", "declined", "rejected"})
_LONGEST_BANNER = 299  # characters
_HEAD = 1_500  # characters at the top of a page, where it says what has become of it
_LONGEST = 120  # characters of what leads to a list
_LONGEST_CELL = 40  # characters


def frames(text: str, spans: Sequence[tuple[int, int]], *, settings: bool = False) -> list[Frame]:
    """The frames of a text, of which `spans` are the sentences, in the order in which they begin. In a file of
    `settings` a comment is a heading, and nothing else of a page is there. Linear."""
    lines = list(lines_of(text))
    if settings:
        return sorted((*_under_headings(lines), *_of_sentences(text, spans)))
    return sorted(
        (
            *_of_page(text),
            *_under_headings(lines),
            *_within_lines(lines),
            *_behind_leads(lines),
            *_of_sentences(text, spans),
        )
    )


def banner_of(text: str) -> str:
    """What a short text says of the page that it is on, as "This page is outdated."; empty when it says nothing so."""
    return text if len(text) <= _LONGEST_BANNER and _BANNER.search(text) else ""


def _of_page(text: str) -> Iterator[Frame]:
    for match in (_STATUS.match(text), _RETRACTED.match(text), _BANNER.search(text, 0, _HEAD)):
        if match is not None:
            yield Frame(match.end(), len(text), Framing(match.group(), _PAST))
    if (unmerged := _UNMERGED.search(text, 0, _HEAD)) is not None:
        yield Frame(unmerged.end(), len(text), Framing(unmerged.group(), _PLAN | _PAST | _OF_CHANGES))


def _framing(text: str, kinds: Sequence[tuple[re.Pattern[str], frozenset[str]]]) -> Framing | None:
    return next((Framing(text, also) for pattern, also in kinds if pattern.fullmatch(text)), None)


def _under_headings(lines: Sequence[Line]) -> Iterator[Frame]:
    under: tuple[int, int, Framing] | None = None
    for line in lines:
        if not line.level:
            continue
        if under is not None and line.level <= under[0]:
            yield Frame(under[1], line.start, under[2])
            under = None
        if under is None and (framing := _framing(heading_of(line.shown), _HEADINGS)):
            under = (line.level, line.end, framing)
    if under is not None:
        yield Frame(under[1], lines[-1].end, under[2])


def _within_lines(lines: Sequence[Line]) -> Iterator[Frame]:
    """What a label, an empty box, or a cell of a row frames: up to the next of these, or the end of the paragraph."""
    framing: Framing | None = None
    table, before = False, ""
    for line in lines:
        shown = _unquoted(line.shown)
        plain = shown[mark.end() :] if (mark := _MARK.match(shown)) else shown
        named = _LABEL.match(plain)
        if not shown.strip() or line.level or line.fenced:
            framing, table = None, False
        elif _UNTICKED.match(plain):
            framing = Framing("", _PLAN)
        elif named is not None or ITEM.match(shown):
            framing = _framing(named[1].strip(), _LABELS) if named is not None else None
        table = table or ("|" in before and "|" in shown and _TABLE_RULE.fullmatch(shown) is not None)
        if framing is not None:
            yield Frame(line.start, line.end, framing)
        elif table and (framed := _of_cells(shown)):
            yield Frame(line.start, line.end, framed)
        before = shown


def _of_cells(row: str) -> Framing | None:
    cells = (NUMBERING.sub("", cell.strip(" *_`~")[:_LONGEST_CELL]) for cell in row.split("|"))
    return next((framing for cell in cells if (framing := _framing(cell, _CELLS))), None)


def _unquoted(line: str) -> str:
    return line[mark.end() :] if (mark := _QUOTE.match(line)) else line


def _behind_leads(lines: Sequence[Line]) -> Iterator[Frame]:
    """What a lead-in frames: the list, quotation or code right behind it."""
    lead: Framing | None = None
    of_code = before = False
    said = ""
    for line in lines:
        shown = _unquoted(line.shown).strip()
        if not shown:
            before = False
            continue
        listed = line.fenced or before or line.shown[0] in " \t>" or ITEM.match(line.shown) is not None
        if line.level or not listed:
            lead = None
        if lead is not None and (of_code or not line.fenced):
            yield Frame(line.start, line.end, lead)
        said = f"{said} {shown}"[-_LONGEST:] if before else shown[-_LONGEST:]
        if lead is None and (line.level or not (line.fenced or CODE.match(line.shown))):
            lead, of_code = _led(said)
        before = not line.level


def _led(said: str) -> tuple[Framing | None, bool]:
    """What a lead-in says of what stands behind it, if anything; and whether it says that of code, too."""
    last = lead_in(said)
    of_code = _LEADS_TO_CODE.search(last) is not None
    return (Framing(last, _NONE) if of_code or _LEADS.search(last) else None), of_code


def _of_sentences(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Frame]:
    """What the sentence behind takes back, what a word in brackets at its end says it is, and what somebody said."""
    before: tuple[int, int] | None = None
    for start, end in spans:
        sentence = text[start:end]
        if before is not None and _TAKEN_BACK.match(sentence):
            yield Frame(*before, Framing("", _NONE))
        tag = _TAG.search(sentence) if sentence[-1:] in ")]." else None
        framing = _framing(tag[1].strip(), _TAGS) if tag is not None else None
        if tag is not None and framing is not None:
            alone = before is not None and not sentence[: tag.start()].strip(" *_")
            yield Frame(*(before if alone and before is not None else (start, end)), framing)
        if (behind := _TAKEN_BACK_BEHIND.search(sentence)) is not None:
            yield Frame(start, start + behind.start(), Framing("", _NONE))
        if (spoken := _SPOKEN_OF.match(sentence)) is not None:
            yield Frame(start, start + spoken.end(), Framing(spoken.group(), _NONE))
        if (other := _OF_ANOTHER.match(sentence)) is not None:
            yield Frame(start + other.end(), end, Framing(other.group(), _PAST))
        if ":" in sentence and (told := _SPEAKS.search(sentence)):
            yield Frame(start + told.end(), end, Framing(sentence[: told.end()], _NONE))
        before = (start, end)
