"""Citations found in a claim's text or given beside it. Whether what they name exists is asked elsewhere."""

from vouchgate.ingest.citations.detection import (
    BUILT_IN,
    TooManyCitations,
    detect_citations,
    given_citation,
    kinds_in_use,
    label_of,
    parse_citation,
)

__all__ = [
    "BUILT_IN",
    "TooManyCitations",
    "detect_citations",
    "given_citation",
    "kinds_in_use",
    "label_of",
    "parse_citation",
]
