"""Main text, title, date and links of an HTML or XML document.

Pure, but not harmless: the libraries under it can be made to run for minutes or to take all memory by a page
written for that. So a service must not import this: `ingest.sources.web.page_worker`, a process that can be killed,
does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from urllib.parse import urljoin, urlsplit

from htmldate import find_date
from lxml import etree, html
from trafilatura import bare_extraction
from trafilatura.baseline import basic_cleaning
from trafilatura.settings import Document

from vouchgate.ingest.language.frames import banner_of
from vouchgate.ingest.language.words import RUN
from vouchgate.ingest.sources.web.page import (
    TITLE_CHARACTERS,
    Page,
    bounded,
    clean,
    decode,
    media_type,
    one_line,
    plausible,
)
from vouchgate.ingest.sources.web.structure import BLOCKS, CELLS, HEADINGS, as_markdown, body_text
from vouchgate.ingest.sources.web.visitors import drop_visitors, size_of

# Finding the main text takes about 35 µs an element. A document with more, some 2 MB, is read whole instead.
_MOST_ELEMENTS = 40_000
_MOST_LINKS = 200
_MOST_TARGETS = 5_000  # links looked at
_LONGEST_URL = 2_000
_MOST_SCRIPTS = 100  # that may be JSON-LD
_LONGEST_SCRIPT = 100_000  # characters of one
_MODIFIED = re.compile(r"\"dateModified\"\s{0,9}:\s{0,9}\"([^\"]{10,40})\"")
_SHORT = 1_500  # characters
_NOTHING = 150  # with so few a page says nothing by itself
_LONGEST_HEADING = 120  # characters of a line in bold
_REFRESH_SECONDS = 5  # a page that waits longer before it sends a browser on is meant to be read

_REFRESH = re.compile(
    r"\s{0,9}(\d{1,4})(?:\.\d{0,9})?\s{0,9}[;,]\s{0,9}(?:url\s{0,9}=\s{0,9})?[\"']?([^\"']{1,2000})", re.I
)
# Programs and data, what only programs see, and what is asked or offered in forms.
_UNSEEN = frozenset(
    {
        *(
            "audio",
            "canvas",
            "datalist",
            "dialog",
            "iframe",
            "noframes",
            "object",
            "script",
            "select",
            "style",
            "svg",
        ),
        *("template", "textarea", "video"),
    }
)
_STRUCK = frozenset({"del", "s", "strike"})
_PHRASES = frozenset({"b", "code", "em", "i", "kbd", "samp", "small", "span", "strong", "tt", "var"})
# What an <aside> within the main part is called when it is a note to the text and not a column beside it.
_NOTES = re.compile(
    r"note|tip|warn|caution|danger|important|admonition|alert|callout|hint|aside--", re.IGNORECASE
)

_NOTICE = re.compile(
    r"banner|alert|warn|notice|caution|deprecat|outdated|archiv|obsolete|retract|admonition|callout|[at]mbox|announce",
    re.IGNORECASE,
)


def read_html(body: bytes, *, url: str, content_type: str, now: datetime) -> Page:
    """Reads an HTML or XHTML document that was found at `url`. Raises what its libraries raise."""
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False)
    try:
        tree = html.document_fromstring(clean(decode(body, content_type)).encode(), parser=parser)
    except etree.ParserError:  # nothing in it
        return Page()
    title = _title(tree)
    heading = next((text for name in ("h1", "h2") for each in tree.iter(name) if (text := _line(each))), "")
    base = _base(tree, url)
    dated = _date(tree, url, now)
    revised = _revised(tree, now)
    refresh = _refresh(tree, base)
    asks_password = any(each.get("type", "").lower() == "password" for each in tree.iter("input"))
    _drop_unsaid(tree)
    for element in tree.iter("section", "div", "article"):
        _drop_anchor(element)
    drop_visitors(tree)
    banner = _banner(tree)
    whole, targets = _main(tree)
    text, cut = bounded(clean(f"{banner}\n\n{whole}" if banner and banner not in whole else whole))
    return Page(
        title=title or heading,
        text=text,
        cut=cut or _gave_up(parser),
        dated=dated,
        revised=revised,
        links=_links(targets, base),
        heading=heading,
        refresh=refresh,
        asks_password=asks_password,
    )


def read_xml(body: bytes, *, content_type: str) -> Page:
    """The text of all elements of an XML document. Its entities and external parts are not looked at."""
    parser = etree.XMLParser(
        encoding="utf-8",
        recover=True,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
    )
    try:
        root = etree.fromstring(clean(decode(body, content_type)).encode(), parser)
        if root is None:
            return Page()
        etree.strip_tags(root, etree.Entity, etree.Comment, etree.ProcessingInstruction)
        etree.strip_elements(root, "{*}script", "{*}style", "{*}template", with_tail=False)
        lines = [line for text in root.itertext() if (line := " ".join(text.split()))]
    except (etree.XMLSyntaxError, UnicodeDecodeError):  # not XML; or it names characters that do not exist
        return Page()
    first = next((each for each in root.iter("{*}title")), None)
    text, cut = bounded("\n".join(lines))
    return Page(title=_line(first) if first is not None else "", text=text, cut=cut or _gave_up(parser))


def _gave_up(parser: etree.XMLParser | html.HTMLParser) -> bool:
    """Elements nested too deep (256) and the like end the reading of a document there, without an exception."""
    return any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log)


# --- the main text


def _main(tree: html.HtmlElement) -> tuple[str, list[str]]:
    """The main text and what it links to; the text of the whole body when no main text is found."""
    if sum(1 for _ in zip(tree.iter(), range(_MOST_ELEMENTS + 1), strict=False)) <= _MOST_ELEMENTS:
        _prepare(tree)
        found = bare_extraction(tree, include_comments=False, include_links=True)
        if isinstance(found, Document):
            main = found.body
            targets = [each.get("target") or "" for each in main.iter("ref")]
            etree.strip_tags(main, "ref")
            main.tag = "body"  # of a page that is nothing but a link it was the link
            if _lost_form(tree, main):
                tree = basic_cleaning(tree)
            elif text := as_markdown(main):
                return text, targets
    for head in list(tree.iter("head")):
        head.drop_tree()
    return body_text(tree), [each.get("href") or "" for each in tree.iter("a")]


def _banner(tree: html.HtmlElement) -> str:
    """What a box that is called a notice says of the page, for it is often left out of the main text; else nothing."""
    for box in tree.iter("div", "p", "aside", "section"):
        names = f"{box.get('class', '')} {box.get('id', '')} {box.get('role', '')}"
        if _NOTICE.search(names[:500]) and (said := banner_of(_line(box))):
            return said
    return ""


def _lost_form(tree: html.HtmlElement, main: etree._Element) -> bool:
    """Whether trafilatura found no main text and took paragraphs alone, or all as one, as it does of short pages."""
    size = sum(map(len, main.itertext()))
    flat = sum(len(each.text) for each in main if each.tag == "p" and "\n" in (each.text or ""))
    lost = next(main.iter("head"), None) is None and next(tree.iter(*HEADINGS[1:]), None) is not None
    return flat > size / 2 or (size < _SHORT and lost)


def _drop_unsaid(tree: html.HtmlElement) -> None:
    """What is struck out, and what no reader sees. The hidden ones of several tabs are seen by who asks for them."""
    for element in list(tree.iter()):
        element.attrib.pop("data-preloaded", None)  # trafilatura would take it for the text of a forum
        if element.getparent() is not None and (element.tag in _STRUCK or _is_unseen(element)):
            element.drop_tree()
    asides = list(tree.iter("noscript"))
    size = size_of(tree) - sum(map(size_of, asides))
    for element in asides:
        if size < _NOTHING:  # a page that a script fills: who runs none reads what it has for them
            element.drop_tag()
        elif "script" not in _line(element).lower():  # by what asks for a browser such a page is known
            element.drop_tree()


def _is_unseen(element: html.HtmlElement) -> bool:
    if element.tag in _UNSEEN:
        return element.tag != "dialog" or "open" not in element.attrib
    style = "".join((element.get("style") or "").lower().split())
    hidden = "hidden" in element.attrib or re.search(r"display:none|visibility:(?:hidden|collapse)", style)
    return bool(hidden) and element.get("role") != "tabpanel"


def _prepare(tree: html.HtmlElement) -> None:
    """Puts right what the search for the main text would take for something beside it. Each rule is a
    loss measured on documentation pages (docs/checks.md)."""
    for element in [each for each in tree.iter() if each.tag == "nav" or each.get("role") == "navigation"]:
        if element.getparent() is not None:
            element.drop_tree()  # of a short page everything would be taken, and menus with it
    etree.strip_tags(tree, "time", "output")  # words of a sentence, which would lose them
    for element in list(tree.iter("ul", "ol")):
        if _within(element, "td", "th"):
            _flatten_list(element)
    for element in list(tree.iter("div", "p", "span")):
        if element.get("role") == "heading":
            _rename(element, f"h{level}" if (level := element.get("aria-level", "3")) in "23456" else "h3")
    for element in list(tree.iter("aside")):
        names = f"{element.get('class', '')} {element.get('role', '')}"
        if _NOTES.search(names[:500]) and _in_main_part(element):
            _rename(element, "div")
    for element in list(tree.iter("table")):
        if sum(1 for _ in element.iter(*CELLS)) == 1:  # a box drawn with a table
            _rename_all(element, ("table", "caption", "thead", "tbody", "tfoot", "tr", *CELLS), "div")
    _make_paragraphs(tree)


def _make_paragraphs(tree: html.HtmlElement) -> None:
    """Captions, and boxes that hold words and no other box."""
    for element in list(tree.iter("blockquote")):
        if not any(child.tag in BLOCKS and child.tag != "br" for child in element):
            _wrap(element, "p")  # else it could not be told from what stands in <pre>
    for element in list(tree.iter("figure")):
        if _line(element):
            element.tag = "div"
    for element in list(tree.iter("figcaption", "div")):
        box = element.tag == "figcaption" or _has_own_words(element)
        if box and not any(child.tag in BLOCKS for child in element):
            element.tag = "p"
    for element in tree.iter("p"):
        if _is_bold(element):
            element.text = element[0].tail = "**"


def _wrap(element: html.HtmlElement, name: str) -> None:
    """Puts all that an element holds into one of this name."""
    inner = etree.SubElement(element, name)
    inner.text, element.text = element.text, None
    inner.extend(element[:-1])


def _is_bold(element: html.HtmlElement) -> bool:
    """A line in bold and nothing beside it, which is what a heading looks like."""
    bold = len(element) == 1 and element[0].tag in ("b", "strong")
    return bold and not _own_words(element) and 0 < len(_line(element)) <= _LONGEST_HEADING


def _drop_anchor(element: html.HtmlElement) -> None:
    """A section whose id is made from its heading is named for what it says (`cookies`, `sharing`), not for
    its place on the page. Comments are left: their words are not the page's."""
    name = element.get("id")
    if not name or len(name) > 200 or not len(element) or element[0].tag not in HEADINGS:
        return
    words = RUN.findall(name.lower())
    if words and words != ["comments"] and words == RUN.findall(_line(element[0]).lower())[: len(words)]:
        del element.attrib["id"]


def _has_own_words(element: html.HtmlElement) -> bool:
    """Says something outside its links, as a menu's entries do not."""
    return _own_words(element) or any(child.tag in _PHRASES and _line(child) for child in element)


def _own_words(element: html.HtmlElement) -> bool:
    return any((piece or "").strip() for piece in (element.text, *(child.tail for child in element)))


def _within(element: html.HtmlElement, *names: str) -> bool:
    return next(element.iterancestors(*names), None) is not None


def _in_main_part(element: html.HtmlElement) -> bool:
    return any(
        each.tag in ("main", "article") or each.get("role") == "main" for each in element.iterancestors()
    )


def _rename(element: html.HtmlElement, name: str) -> None:
    element.tag = name
    for attribute in list(element.attrib):
        del element.attrib[attribute]


def _rename_all(element: html.HtmlElement, names: tuple[str, ...], name: str) -> None:
    for each in list(element.iter(*names)):
        _rename(each, name)


def _flatten_list(element: html.HtmlElement) -> None:
    """A list in a table's cell is lost, so it becomes words of the cell: `a; b; c`."""
    for item in element.iter("li"):
        item.tag = "span"
        item.tail = f"; {item.tail or ''}"
    element.tag = "span"
    element.tail = f" {element.tail or ''}"


# --- the rest


def _line(element: html.HtmlElement, longest: int = TITLE_CHARACTERS) -> str:
    """The text of an element on one line, without the ¶ of a permanent link."""
    pieces: list[str] = []
    length = 0
    for piece in element.itertext():
        pieces.append(piece[: longest * 4])
        length += len(pieces[-1])
        if length > longest * 4:
            break
    return one_line("".join(pieces)).rstrip("¶ ")


def _title(tree: html.HtmlElement) -> str:
    for element in tree.iterfind(".//head/title"):
        if line := _line(element):
            return line
    for element in tree.iter("meta"):
        if element.get("property", "").lower() == "og:title" and (
            line := one_line(element.get("content") or "")
        ):
            return line
    return ""


def _revised(tree: html.HtmlElement, now: datetime) -> datetime | None:
    """The latest `dateModified` of its JSON-LD, which the software of a site writes and who edits a page does not."""
    found: list[datetime] = []
    for script in islice(tree.iter("script"), _MOST_SCRIPTS):
        if media_type(script.get("type") or "") != "application/ld+json":
            continue
        for said in _MODIFIED.findall((script.text or "")[:_LONGEST_SCRIPT]):
            try:
                moment = plausible(datetime.fromisoformat(said), now)
            except ValueError:
                continue
            found += [moment] if moment else []
    return max(found, default=None)


def _date(tree: html.HtmlElement, url: str, now: datetime) -> datetime | None:
    """The last change the page states, else when it was published. Marked dates, dates beside words such as
    "updated" and whole dates in ISO form count; years of a copyright line and the like are guesses and do not."""
    try:
        found = find_date(
            tree,
            extensive_search=False,
            original_date=False,
            url=url[:_LONGEST_URL],
            deferred_url_extractor=True,
            min_date="1991-01-01",
            max_date=f"{now:%Y-%m-%d}",
        )
        return plausible(datetime.fromisoformat(found), now) if found else None
    except Exception:  # noqa: BLE001  (a date it chokes on is no date; the text may still be read)
        return None


def _base(tree: html.HtmlElement, url: str) -> str:
    for element in tree.iter("base"):
        if href := element.get("href"):
            return _absolute(href, url) or url
    return url


def _absolute(target: str, base: str) -> str | None:
    """An http(s) URL; None for any other."""
    try:
        joined = urljoin(base, target[:_LONGEST_URL].strip())
        parts = urlsplit(joined)
    except ValueError:
        return None
    return joined if parts.scheme in ("http", "https") and parts.hostname else None


def _refresh(tree: html.HtmlElement, base: str) -> str:
    for element in tree.iter("meta"):
        if element.get("http-equiv", "").lower() == "refresh":
            match = _REFRESH.match(element.get("content", "")[:_LONGEST_URL])
            if match and int(match[1]) <= _REFRESH_SECONDS:
                return _absolute(match[2], base) or ""
    return ""


def _links(targets: Iterable[str], base: str) -> tuple[str, ...]:
    """One URL for each host and account linked to (the first part of the path is the account on a hosting platform)."""
    found: dict[tuple[str, str], str] = {}
    for link in _absolutes(targets, base):
        parts = urlsplit(link)
        found.setdefault((parts.netloc.lower(), parts.path.strip("/").partition("/")[0].lower()), link)
        if len(found) >= _MOST_LINKS:
            break
    return tuple(found.values())


def _absolutes(targets: Iterable[str], base: str) -> Iterator[str]:
    for target, _ in zip(targets, range(_MOST_TARGETS), strict=False):
        if target and (link := _absolute(clean(target), base)):
            yield link
