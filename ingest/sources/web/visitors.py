"""What visitors write below a page: comments, notes and reviews. It stands on the page of a publisher and is not its
word.

They are known by what the page calls them. A page that is little else, as a thread of a forum, is left as it is: there
the address says who writes (`ingest.scoring.reputation`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import html

_CALLED = ("id", "class", "aria-label", "itemprop", "itemtype", "data-drupal-selector")
_LONGEST_NAME = 300  # characters of an attribute
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# A word of a name that says it, or one of each of the next two.
_SAYS = frozenset({"comments", "commentlist", "usernotes", "usercomments", "disqus", "guestbook"})
_WHOSE = frozenset({"user", "users", "reader", "readers", "customer", "customers", "visitor", "visitors"})
_WHAT = frozenset({"comment", "contributed", "review", "reviews", "response", "responses", "replies"})
_TYPES = frozenset({"comment", "review", "usercomments"})  # of schema.org
# That a page has them, or how many, or may: said of what is no comment.
_STATES = frozenset(
    {"has", "no", "with", "count", "open", "closed", "link", "toggle", "enabled", "disabled", "button"}
)
_ALONE = frozenset({"article", "li"})  # are one comment when they are called so
_BOXES = frozenset({"article", "aside", "details", "div", "dl", "li", "ol", "section", "ul"})
_KINDS = r"(?:comments|responses|replies|reviews)"
_HEADING = re.compile(
    rf"\d{{1,6}} (?:comment|response|reply|review|{_KINDS})|{_KINDS} ?\(\d{{1,6}}\)"
    rf"|(?:all )?(?:reader|user|customer|visitor)s?['’]?s? (?:{_KINDS}|contributed notes)(?: ?\(?\d{{1,6}}.{{0,20}})?",
    re.IGNORECASE,
)
_HEADINGS = ("h2", "h3", "h4", "h5", "h6")
_LEAST = 150  # characters that are left of a page: with less it is no page that they stand below


def drop_visitors(tree: html.HtmlElement) -> None:
    """Takes out of a page what visitors wrote below it. Nothing that holds the heading of the page is taken for it."""
    named = {each for each in tree.iter() if _is_called_so(each)} | set(_headed(tree))
    found = [each for each in named if each.getparent() is not None and next(each.iter("h1"), None) is None]
    outer = [each for each in found if named.isdisjoint(each.iterancestors())]
    if outer and size_of(tree) - sum(map(size_of, outer)) >= _LEAST:
        for element in outer:
            element.drop_tree()


def _is_called_so(element: html.HtmlElement) -> bool:
    if element.tag not in _BOXES:
        return isinstance(element.tag, str) and "-" in element.tag and _says(element.tag)
    for attribute in _CALLED:
        value = element.get(attribute)
        if not value:
            continue
        names = value[:_LONGEST_NAME].split()
        if attribute in ("itemprop", "itemtype"):
            said = any(name.rpartition("/")[2].lower() in _TYPES for name in names)
        else:
            said = any(map(_says, names)) or (element.tag in _ALONE and "comment" in names)
        if said:
            return True
    return False


def _says(name: str) -> bool:
    words = {word.lower() for word in _WORD.findall(name)}
    if not words.isdisjoint(_SAYS):
        return len(words) <= 3 and words.isdisjoint(_STATES)
    return not words.isdisjoint(_WHOSE) and not words.isdisjoint(_WHAT)


def _headed(tree: html.HtmlElement) -> Iterator[html.HtmlElement]:
    """The part under a heading that says it: the box that begins with it, or what follows up to the next heading."""
    for heading in tree.iter(*_HEADINGS):
        if _HEADING.fullmatch(" ".join(heading.text_content()[:200].split())) is None:
            continue
        box = heading.getparent()
        if box is not None and box.tag in _BOXES and box[0] is heading:
            yield box
            continue
        yield heading
        for following in heading.itersiblings():
            if following.tag in _HEADINGS and following.tag <= heading.tag:
                break
            yield following


def size_of(element: html.HtmlElement) -> int:
    """How many characters it shows."""
    return len(" ".join(element.text_content().split()))
