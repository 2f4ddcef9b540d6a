"""What a user said or a tool returned, as a host put it down: `record:rec_` and 32 hex digits."""

import re

from vouchgate.ingest.citations.kinds import CitationKind, each_match, full_match
from vouchgate.ingest.claims.citation import CitationType

_PREFIX = "record:"
_ID = r"(?P<id>rec_[0-9a-f]{32})"
_ONE = re.compile(_PREFIX + _ID)
_RUNNING = re.compile(rf"(?<![\w/:.-]){_PREFIX}{_ID}(?![\w-])")


def _key(match: re.Match[str]) -> str:
    return key_of(match["id"])


def key_of(name: str) -> str:
    """The key of the record with this id, which also is how it is cited."""
    return _PREFIX + name


def record_id(key: str) -> str | None:
    """The id of the record with this key; None for another's key."""
    match = _ONE.fullmatch(key)
    return None if match is None else match["id"]


KIND = CitationKind(
    name=CitationType.RECORD,
    label="record",
    needles=(_PREFIX,),
    find=each_match(_RUNNING, _key),
    whole=full_match(_ONE, _key),
    bare=full_match(re.compile(f"(?:{_PREFIX})?{_ID}"), _key),
    forms=(f"{_PREFIX}rec_{'0123456789abcdef' * 2}",),
)
