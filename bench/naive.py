"""What the gate is measured against: the plain way to do the text checks, as one would write it in an hour."""

from __future__ import annotations

import re

HEDGES = re.compile(
    r"\b(i think|i believe|i guess|i suspect|in my opinion|not sure|maybe|perhaps|probably|possibly|might|may|"
    r"could|should|seems?|appears?|usually|typically|often|sometimes|generally|likely|about|around|roughly|"
    r"approximately)\b",
    re.IGNORECASE,
)
CITATIONS = re.compile(
    r"(?P<url>https?://\S+)|(?P<adr>ADR[- ]?\d+)|(?P<issue>#\d+)|(?P<commit>\b[0-9a-f]{7,40}\b)|"
    r"(?P<doi>10\.\d{4,9}/\S+)|(?P<arxiv>arXiv:\S+)|(?P<rfc>RFC ?\d+)|(?P<pep>PEP ?\d+)|(?P<cve>CVE-\d+-\d+)",
    re.IGNORECASE,
)


def check(text: str) -> tuple[list[str], list[tuple[str | None, str]]]:
    """Hedge words and citations by plain patterns."""
    return (
        [match.group() for match in HEDGES.finditer(text)],
        [(match.lastgroup, match.group()) for match in CITATIONS.finditer(text)],
    )
