"""CVE ids: `CVE-2020-11008`. A year of four digits and a number of at least four (numbering since 2014)."""

import re
from collections.abc import Iterator

from vouchgate.ingest.citations.shared import CitationRule, FoundCitation, full_match
from vouchgate.ingest.claims.types import CitationType

_NUMBER = r"(?P<year>(?:19|20)\d\d)[-–](?P<number>\d{4,9})"
_ONE = rf"[Cc][Vv][Ee][\s–-]{_NUMBER}"
_RUNNING = re.compile(rf"(?<![\w#@$&\\]){_ONE}(?!\w|-\d|\.\d)", re.ASCII)


def _key(match: re.Match[str]) -> str:
    return f"cve:CVE-{match['year']}-{match['number']}"


def _find(text: str) -> Iterator[FoundCitation]:
    for match in _RUNNING.finditer(text):
        yield FoundCitation(match.start(), match.end(), _key(match))


RULE = CitationRule(
    CitationType.CVE,
    label="CVE",
    needles=("cve",),
    find=_find,
    whole=full_match(re.compile(_ONE, re.ASCII), _key),
    bare=full_match(re.compile(rf"(?:[Cc][Vv][Ee][\s–-])?{_NUMBER}", re.ASCII), _key),
    forms="CVE-2020-11008",
)
