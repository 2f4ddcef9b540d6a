"""RFC numbers: `RFC 9110`, `RFC9110`, `RFC-2119`, `rfc 7230`."""

from vouchgate.ingest.citations.shared import numbered_rule
from vouchgate.ingest.claims.types import CitationType

RULE = numbered_rule(
    CitationType.RFC,
    label="RFC",
    prefix=r"[Rr][Ff][Cc][Ss]?[\s–-]?",
    number=r"\d{1,5}",
    needles=("rfc",),
    forms="RFC 9110",
    tail=r"(?!(?<=\D\d)/\d|(?<=\D\d\d)/\d)",  # [RFC 1/3] counts the patches of a series
)
