"""DOIs: `10.1145/3292500.3330701`, with or without `doi:` before it, which is not part of the value.

A DOI is compared without regard to case (DOI Handbook, 3.8: case insensitive for ASCII letters).
"""

import re
from collections.abc import Iterator

from vouchgate.ingest.citations.shared import CitationRule, FoundCitation, trim_end
from vouchgate.ingest.claims.types import CitationType

# Registrants have at least four digits, which tells a DOI from a version or a ratio.
_PREFIX = r"10\.\d{4,9}(?:\.\d{1,9}){0,3}/"
# Anything that prints may stand in a suffix; these end one in practice. `<` and `>` occur in old Wiley DOIs
# only, as in 3.0.CO;2-O after a `49:8<693::AID`.
_CHARACTER = r"""[^\s\x00-\x1f"'`|\\{}<>“”„«»‹›—…\u3000-\u303f,;]"""
_LIST = r"[,;](?!(?:doi:|DOI:)?10\.\d{4})"  # two DOIs may have a comma between them and no space
_SICI = r"<(?=[0-9A-Z]{1,9}::)|(?<=[0-9A-Z])>(?=\d\.)"
_SUFFIX = rf"(?:{_CHARACTER}|{_LIST}|{_SICI})+"
# After a slash only where a DOI resolver or a publisher's path says it is one.
_LEFT = r"(?:(?<![\w./\\#@$&+=-])|(?<=doi\.org/)|(?<=/doi/)|(?<=doi=))"
_RUNNING = re.compile(rf"{_LEFT}{_PREFIX}{_SUFFIX}", re.ASCII)
_GIVEN = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi: ?)?(?P<doi>.+)", re.ASCII | re.IGNORECASE)


def _doi(text: str, match: re.Match[str]) -> FoundCitation | None:
    start, end = match.span()
    end = trim_end(text, start, end)
    if not any(map(str.isalnum, text[text.index("/", start) : end])):
        return None
    return FoundCitation(start, end, f"doi:{text[start:end].lower()}")


def _find(text: str) -> Iterator[FoundCitation]:
    for match in _RUNNING.finditer(text):
        found = _doi(text, match)
        if found is not None:
            yield found


def _whole(value: str) -> str | None:
    match = _RUNNING.match(value)
    found = _doi(value, match) if match else None
    return found.key if found and found.end == len(value) else None


def _bare(value: str) -> str | None:
    match = _GIVEN.fullmatch(value)
    return _whole(match["doi"]) if match else None


RULE = CitationRule(
    CitationType.DOI,
    label="DOI",
    needles=("10.",),
    find=_find,
    whole=_whole,
    bare=_bare,
    forms="10.1145/3292500.3330701",
)
