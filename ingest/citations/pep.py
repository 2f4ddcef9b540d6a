"""Python Enhancement Proposals: `PEP 8`, `PEP8`, `pep-0604`."""

from vouchgate.ingest.citations.shared import numbered_rule
from vouchgate.ingest.claims.types import CitationType

RULE = numbered_rule(
    CitationType.PEP,
    label="PEP",
    prefix=r"[Pp][Ee][Pp][Ss]?[\s–-]?",
    number=r"\d{1,4}",
    needles=("pep",),
    forms="PEP 8",
)
