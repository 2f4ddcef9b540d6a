"""What a claim cites."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, WithJsonSchema

from vouchgate.ingest.claims.frozen import Frozen


class CitationType(StrEnum):
    """What kind of thing is cited."""

    ADR = "adr"
    COMMIT = "commit"
    URL = "url"
    ISSUE = "issue"
    DOI = "doi"
    ARXIV = "arxiv"
    RFC = "rfc"
    PEP = "pep"
    CVE = "cve"
    PATH = "path"
    SYMBOL = "symbol"
    CORPUS = "corpus"
    RECORD = "record"


# What is looked up in the git repositories, and nowhere else.
IN_REPOSITORIES = frozenset({CitationType.ADR, CitationType.COMMIT, CitationType.PATH, CitationType.SYMBOL})


# What lies where the operator keeps it, and is read anew each time.
KEPT_BY_OPERATOR = IN_REPOSITORIES | {CitationType.CORPUS}


# One of ours, or a kind that an installation added (`ingest.citations.kinds`).
CitationName = Annotated[
    CitationType | Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")],
    Field(union_mode="left_to_right"),
    WithJsonSchema({"type": "string", "examples": [each.value for each in CitationType]}),
]


class Citation(Frozen):
    """A reference found in the text (start and end are set) or given beside it (both are None).

    `value` is the exact substring of the text as sent; `key` is its canonical form, equal for two
    spellings of one thing (`ADR-003` and `adr 3` are both `adr:3`).
    """

    type: CitationName
    value: str
    key: str
    start: int | None = None
    end: int | None = None
    # Words that the caller says stand in it; only of one given beside the text.
    quote: str = Field(default="", exclude_if=lambda quote: not quote)
    # The gate found it for a claim that cites nothing; only of one that is not in the text.
    harvested: bool = Field(default=False, exclude_if=lambda harvested: not harvested)

    @property
    def name(self) -> str:
        """What sentences call it: as the claim wrote it, but for the bare number of a record."""
        bare = self.type is CitationType.ADR and self.value.isdecimal()
        return f"ADR-{int(self.value):03d}" if bare else self.value
