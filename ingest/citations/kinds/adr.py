"""ADR numbers: `ADR-003`, `ADR 3`, `adr-0003`, `ADRs 0003 and 0004` (the first of a list only)."""

from vouchgate.ingest.citations.shared import numbered_kind
from vouchgate.ingest.claims.citation import CitationType

# Glued to its number the word counts in capitals only: `adr3` is a variable.
KIND = numbered_kind(
    CitationType.ADR,
    label="ADR",
    prefix=r"(?:[Aa][Dd][Rr][Ss]?(?:[\s_:–—-]|\s?#)|ADR)",
    number=r"\d{1,5}",
    forms=("ADR-003", "ADR 3"),
)
