"""Citations found in a claim's text or given beside it. Whether what they name exists is asked elsewhere."""

from vouchgate.ingest.citations.detection import (
    RULES,
    TooManyCitations,
    detect_citations,
    given_citation,
    parse_citation,
)

__all__ = ["RULES", "TooManyCitations", "detect_citations", "given_citation", "parse_citation"]
