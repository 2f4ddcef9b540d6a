"""arXiv ids: `arXiv:1706.03762v5`, `arXiv 2103.00020`, and the ids used until March 2007, `hep-th/9901001`.

A new id needs the word before it, because versions look the same. The version stays in the key: v1 and v2
of a paper may say different things.
"""

import re
from collections.abc import Iterator

from vouchgate.ingest.citations.shared import CitationRule, FoundCitation, full_match
from vouchgate.ingest.claims.types import CitationType

_WORD = r"[Aa][Rr][Xx][Ii][Vv](?: ?: ?| preprint | )"
_NEW = r"\d\d(?:0[1-9]|1[0-2])\.\d{4,5}(?:v[1-9]\d?)?"  # year, month, number
_OLD = r"[a-z]{2,8}(?:-[a-z]{2,4})?(?:\.[A-Z]{2})?/\d\d(?:0[1-9]|1[0-2])\d{3}(?:v[1-9]\d?)?"
# These archive names mean nothing else, so their ids stand alone; `math/0309136` needs the word.
_ARCHIVES = (
    r"(?:astro-ph|cond-mat|gr-qc|hep-(?:ex|lat|ph|th)|math-ph|nucl-(?:ex|th)|quant-ph)"
    r"/\d\d(?:0[1-9]|1[0-2])\d{3}(?:v[1-9]\d?)?"
)
_RUNNING = re.compile(
    rf"(?<![\w#@$&\\./-])(?:{_WORD}(?P<id>{_NEW}|{_OLD})|(?P<old>{_ARCHIVES}))(?!\w|\.\d|-\d)", re.ASCII
)


def _key(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return f"arxiv:{groups.get('id') or groups['old']}"


def _find(text: str) -> Iterator[FoundCitation]:
    for match in _RUNNING.finditer(text):
        yield FoundCitation(match.start(), match.end(), _key(match))


RULE = CitationRule(
    CitationType.ARXIV,
    label="arXiv paper",
    needles=("arxiv", "-ph/", "-mat/", "-qc/", "-ex/", "-lat/", "-th/"),
    find=_find,
    whole=full_match(re.compile(rf"{_WORD}(?P<id>{_NEW}|{_OLD})|(?P<old>{_ARCHIVES})", re.ASCII), _key),
    bare=full_match(re.compile(rf"(?:{_WORD})?(?P<id>{_NEW}|{_OLD})", re.ASCII), _key),
    forms="arXiv:1706.03762",
)
