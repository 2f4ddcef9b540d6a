"""What the router sees, put together from findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vouchgate.ingest.check import Findings
from vouchgate.ingest.claims.citation import Citation, CitationType
from vouchgate.ingest.claims.claim import Finding, MemoryType, Source
from vouchgate.ingest.policy import Policy
from vouchgate.ingest.router import Case, Ruling
from vouchgate.ingest.router import route as route_case

CITED = Citation(type=CitationType.ADR, value="ADR-7", key="adr:7")


@dataclass(frozen=True, slots=True)
class Parts:
    """The findings that are there of each claim, those on what it cites, and `more`."""

    hedge: Finding
    dedup: Finding
    citations: Sequence[Finding] = ()
    score: float | None = None
    source: Source = Source.AI_SYNTHESIS
    memory_type: MemoryType = MemoryType.FACT
    more: Sequence[Finding] = ()
    by_statements: bool = True

    def case(self) -> Case:
        """As the router sees it: every finding by its check, and on a thing cited where it is about one."""
        cited = (each.model_copy(update={"citation": CITED}) for each in self.citations)
        hedge = self.hedge.model_copy(update={"check": "hedge", "citation": None})
        dedup = self.dedup.model_copy(update={"check": "dedup", "citation": None})
        findings = Findings((hedge, *cited, dedup, *self.more))
        return Case(findings, self.score, self.source, self.memory_type, self.by_statements)


def route(parts: Parts, policy: Policy) -> Ruling:
    """What the router makes of them."""
    return route_case(parts.case(), policy)
