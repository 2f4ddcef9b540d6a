"""What source code defines: `symbol:parse_args`, `symbol:client.Client.close`, `symbol:src/client.py::Client.close`."""

import re
import unicodedata

from vouchgate.ingest.citations.kinds import CitationKind, each_match, full_match
from vouchgate.ingest.claims.citation import CitationType

_PART, _NAME = r"[\w+~@-][\w.+~@-]{0,100}+", r"[^\W\d][\w\u0300-\u036f]{0,100}+"
_GIVEN = (
    rf"(?:(?:\./)?(?P<path>(?:{_PART}/){{0,30}}{_PART})::)?(?P<name>{_NAME}(?:\.{_NAME}){{0,15}}+)(?:\(\))?"
)
_RUNNING = rf"(?<![\w/\\.@$&#:=-])symbol:{_GIVEN}(?![\w\u0300-\u036f/\\]|[-.]\w|::)"


def _key(match: re.Match[str]) -> str:
    path = f"{match['path']}::" if match["path"] else ""
    return f"symbol:{path}{unicodedata.normalize('NFC', match['name'])}"


KIND = CitationKind(
    name=CitationType.SYMBOL,
    label="symbol",
    needles=("symbol:",),
    find=each_match(re.compile(_RUNNING), _key),
    whole=full_match(re.compile(f"symbol:{_GIVEN}"), _key),
    bare=full_match(re.compile(f"(?:symbol:)?{_GIVEN}"), _key),
    forms=("symbol:parse_args",),
)
