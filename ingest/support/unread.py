"""What a claim says by citing what could not be read: a source that was found beside it states nothing of that.

Whoever stores "RFC 9110 states that sessions last a day" stores who says so, too, and an address or a quotation are
words that nobody has looked up. Only a citation that merely points is left aside: in brackets, after "see", at the end,
or beside the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.support.address import unsaid

_WORD = re.compile(r"[^\W\d_]{2,}")
_RUN = re.compile(r"[^\W\d_]{2,}(?:[-_+ %.][^\W\d_]{2,}){2,20}")
_HOST = re.compile(r"\A\w+://([^/@?#]*@)?[^/?#@]*")
_REACH = 40  # characters before a citation in which what leads to it is looked for
_LEADS = re.compile(
    r"(?:\A|[(\[,;:.!?\n–—-]|\band)\s*(?:(?:also|cf\.?|ref(?:erence)?s?|see(?: also)?|sources?):?\s*)?[<\[(\"'`*_]*\Z",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[>\])\"'`*_]*\s*(?:[)\],;.!?\n]|\Z|and\b)", re.IGNORECASE)


def says_of_unread(content: str, unread: Sequence[Citation], texts: Sequence[str]) -> bool:
    """Whether a claim says more by citing these, which could not be read, than that they are there. `texts` are those
    of the sources that were found for it, whose words an address may have. Linear."""
    if any(citation.quote or not _points(content, citation) for citation in unread):
        return True
    said = content
    for citation in unread:
        said = said.replace(citation.value, " ")
    known = "\n".join((said, *texts)).lower()
    return any(unsaid([each], said, known) or _tells(each.value, known) for each in unread)


def _tells(address: str, known: str) -> bool:
    """Whether an address has a run of words, small ones counted, of which most are not known."""
    for run in _RUN.findall(unquote(_HOST.sub(r"\1 ", address))):
        words = _WORD.findall(run.lower())
        if 2 * sum(word not in known for word in words) > len(words):
            return True
    return False


def _points(content: str, citation: Citation) -> bool:
    if citation.start is None or citation.end is None:
        return True
    before = content[max(0, citation.start - _REACH) : citation.start]
    cut = citation.start > _REACH
    led = _LEADS.search(
        f"x{before}" if cut else before
    )  # the beginning of what is looked at is not that of the text
    return led is not None and _ENDS.match(content, citation.end) is not None
