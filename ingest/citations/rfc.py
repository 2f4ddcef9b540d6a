"""RFC numbers: `RFC 9110`, `RFC9110`, `RFC-2119`, `rfc 7230`."""

from ingest.citations.shared import numbered
from ingest.types import CitationType

RULE = numbered(
    CitationType.RFC,
    prefix=r"[Rr][Ff][Cc][Ss]?[\s–-]?",
    number=r"\d{1,5}",
    needles=("rfc",),
    forms="RFC 9110",
    tail=r"(?!(?<=\D\d)/\d|(?<=\D\d\d)/\d)",  # [RFC 1/3] counts the patches of a series
)
