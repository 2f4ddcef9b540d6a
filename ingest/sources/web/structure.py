"""The main text of a page as Markdown has it: headings with signs, a blank line between blocks, marked quotations.

What frames a sentence is seen by that form ("Rejected" above it, "If the flag is set:" before its list), and it ends
where a block ends: without the form a heading is a line like any other, and a lead-in holds for all that follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lxml import etree, html
from trafilatura.xml import xmltotxt

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = frozenset(
    [
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "body",
            "br",
            "caption",
            "center",
            "dd",
            "details",
            "dialog",
        ),
        *(
            "div",
            "dl",
            "dt",
            "fieldset",
            "figcaption",
            "figure",
            "footer",
            "form",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
        ),
        *("header", "hr", "html", "li", "main", "nav", "ol", "option", "p", "pre", "section", "summary"),
        *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
    ]
)
CELLS = frozenset({"td", "th"})
_LINES = frozenset({"br", "dd", "dt", "li", "option", "tbody", "tfoot", "thead", "tr"})  # within a block
_SIGNS = {"li": "- ", **{name: f"{'#' * level} " for level, name in enumerate(HEADINGS, 1)}}
_TABLE_RULE = "|---|"
_CELL, _BLOCK = " | ", "\f"  # what sets cells and blocks apart; no text has a form feed
# A line of code that would be taken for a heading, or make the one above it one. Other code needs no fence, and goes on
# from the words before it: "To start it, run:".
_HEADS = re.compile(r"^[ \t]*(?:#{1,6}[ \t]|={1,6}[ \t]|(?:={2}|-{3}|~{3}|\^{3})|\*\*|__)", re.MULTILINE)
_IN_QUOTE = frozenset({"p", "head", "list", "quote", "table", "code"})


def as_markdown(main: etree._Element) -> str:
    """The text of what trafilatura found. Changes the tree."""
    _mark_headings(main)
    return joined(_blocks(main))


def joined(blocks: Iterable[str]) -> str:
    """Blocks as one text: the one behind a line that leads to it is right behind it."""
    pieces: list[str] = []
    for text in blocks:
        if pieces:
            pieces.append("\n" if pieces[-1].endswith((":", "：")) else "\n\n")
        pieces.append(text)
    return "".join(pieces)


def _mark_headings(main: etree._Element) -> None:
    """The first `h1` is the title of the page, and each one behind it a heading of a part."""
    titled = False
    for heading in main.iter("head"):
        name = heading.get("rend") or ""
        sign = _SIGNS.get("h2" if titled and name == "h1" else name, "## ")
        titled |= name == "h1"
        if next(heading.iterancestors("cell", "item"), None) is None:
            heading.text = sign + (heading.text or "").lstrip()


def _blocks(element: etree._Element) -> Iterator[str]:
    """The text of each child, with the loose text around."""
    yield from _said(element.text)
    for child in element:
        tail, child.tail = child.tail, None
        yield from _block(child)
        yield from _said(tail)


def _block(element: etree._Element) -> Iterator[str]:
    if element.tag == "quote" and any(child.tag in _IN_QUOTE for child in element):
        lines = joined(_blocks(element)).split("\n")
        yield "\n".join(f"> {line}".rstrip() for line in lines)
    elif text := xmltotxt(element, False).strip():
        yield f"```\n{text}\n```" if element.tag == "code" and _HEADS.search(text) else text


def _said(text: str | None) -> Iterator[str]:
    if text and (said := " ".join(text.split())):
        yield said


def body_text(tree: html.HtmlElement) -> str:
    """All that a reader sees, with a blank line between blocks, and tables by rows."""
    pieces: list[str] = []
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        name, opens = element.tag, event == "start"
        if name in CELLS:
            pieces.append(_CELL if opens else "")
        elif name in BLOCKS and not (opens and pieces and pieces[-1] in _SIGNS.values()):
            pieces.append("\n" if name in _LINES else _BLOCK)
        if opens and name in _SIGNS:
            pieces.append(_SIGNS[name])
        elif name == "tr" and not opens and _is_head(element):
            pieces.append(f"{_TABLE_RULE}\n")
        if piece := element.text if opens else element.tail:
            # White space within it is one space, and kept at its ends.
            pieces.append(" ".join(f".{piece}.".split())[1:-1])
    blocks = ("\n".join(_lines(block)) for block in "".join(pieces).split(_BLOCK))
    return joined(filter(None, blocks))


def _is_head(row: html.HtmlElement) -> bool:
    """Whether it is the head of a table."""
    within = row.getparent()
    while within is not None and within.tag in ("thead", "tbody") and within.getprevious() is None:
        within = within.getparent()
    first = row.getprevious() is None and within is not None and within.tag == "table"
    return first and next(row.iter("th"), None) is not None


def _lines(block: str) -> Iterator[str]:
    """The lines that say something; several cells are a row, of one cell a table only arranges the page."""
    before = ""
    for line in block.split("\n"):
        said = " ".join(line.split()).strip("| ")
        row = _CELL in said
        if line == _TABLE_RULE and before.startswith("| "):
            yield line
        elif said.strip("-#"):
            before = f"| {said} |" if row else said
            yield before
