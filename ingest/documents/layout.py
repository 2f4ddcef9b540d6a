"""What the readers of formats hand on: where the words of a document stand, in what, and what is marked in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from vouchgate.ingest.documents.types import Span


class FlowKind(StrEnum):
    """What a flow of words is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "item"  # of a list
    ROW = "row"  # of a table; its lines are its cells
    NOTE = "note"  # a footnote, or an entry of a list of references that the format knows as one
    CODE = "code"


class MarkKind(StrEnum):
    """What is marked inside a flow."""

    LINK = "link"
    CODE = "code"
    HIDDEN = "hidden"  # signs of the format, and what they hide
    BREAK = "break"  # a line that ends here, whatever its length


class LineEnds(StrEnum):
    """What the end of a line inside a flow is."""

    SPACE = "space"
    SHORT = "short"  # a space, unless the line is too short to have been wrapped
    PLAIN = "plain"  # for the splitter of sentences to judge


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters of a flow that are more than words. A link has its target as it is written, and where the words are
    that a reader sees of it; HIDDEN may stand for a character (`&amp;`)."""

    kind: MarkKind
    start: int
    end: int
    target: str = ""
    shown: Span = (0, 0)


@dataclass(slots=True)
class Flow:
    """Words that are read in one go. `lines` are where they stand, without what the format puts before and after each
    line. `block` is the outermost paragraph, list, table or quotation that it is in, `item` the list item (0: none)."""

    kind: FlowKind
    lines: list[Span]
    block: int
    item: int = 0
    level: int = 0  # of a heading, from 1
    label: str = ""  # of a note; the number of an item
    header: tuple[Span, ...] = ()  # of a row: the cells that name its columns
    marks: list[Mark] = field(default_factory=list)
    ends: LineEnds = LineEnds.SHORT


@dataclass(frozen=True, slots=True)
class Definition:
    """`[label]: target` at the end of a text: what links by that label point at."""

    label: str
    start: int
    end: int
    used: bool


@dataclass(slots=True)
class Layout:
    """A document's flows in the order of its text. What no flow has is markup."""

    flows: list[Flow] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
