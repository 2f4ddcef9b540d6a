"""CVE ids: `CVE-2020-11008`. A year of four digits and a number of at least four (numbering since 2014)."""

import re
from collections.abc import Iterator

from ingest.citations.shared import Found, Rule, full
from ingest.types import CitationType

_NUMBER = r"(?P<year>(?:19|20)\d\d)[-–](?P<number>\d{4,9})"
_ONE = rf"[Cc][Vv][Ee][\s–-]{_NUMBER}"
_RUNNING = re.compile(rf"(?<![\w#@$&\\]){_ONE}(?!\w|-\d|\.\d)", re.ASCII)


def _key(match: re.Match[str]) -> str:
    return f"cve:CVE-{match['year']}-{match['number']}"


def _find(text: str) -> Iterator[Found]:
    for match in _RUNNING.finditer(text):
        yield Found(match.start(), match.end(), _key(match))


RULE = Rule(
    CitationType.CVE,
    needles=("cve",),
    find=_find,
    whole=full(re.compile(_ONE, re.ASCII), _key),
    bare=full(re.compile(rf"(?:[Cc][Vv][Ee][\s–-])?{_NUMBER}", re.ASCII), _key),
    forms="CVE-2020-11008",
)
