"""Python Enhancement Proposals: `PEP 8`, `PEP8`, `pep-0604`."""

from ingest.citations.shared import numbered
from ingest.types import CitationType

RULE = numbered(
    CitationType.PEP,
    prefix=r"[Pp][Ee][Pp][Ss]?[\s–-]?",
    number=r"\d{1,4}",
    needles=("pep",),
    forms="PEP 8",
)
