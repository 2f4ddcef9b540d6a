"""What a user said or a tool returned, as a host put it down: `record:rec_` and 32 hex digits."""

import re

from vouchgate.ingest.citations.kinds import CitationKind, each_match, full_match
from vouchgate.ingest.claims.citation import CitationType

PREFIX = "record:"  # of a key, before the record's id
_ID = r"(?P<id>rec_[0-9a-f]{32})"


def _key(match: re.Match[str]) -> str:
    return PREFIX + match["id"]


KIND = CitationKind(
    name=CitationType.RECORD,
    label="record",
    needles=(PREFIX,),
    find=each_match(re.compile(rf"(?<![\w/:.-]){PREFIX}{_ID}(?![\w-])"), _key),
    whole=full_match(re.compile(PREFIX + _ID), _key),
    bare=full_match(re.compile(f"(?:{PREFIX})?{_ID}"), _key),
    forms=(f"{PREFIX}rec_{'0123456789abcdef' * 2}",),
)
