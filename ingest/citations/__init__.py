"""Citations found in a claim's text or given beside it. Whether what they name exists is asked elsewhere."""

from ingest.citations.detection import RULES, detect_citations, given_citation, parse_citation

__all__ = ["RULES", "detect_citations", "given_citation", "parse_citation"]
