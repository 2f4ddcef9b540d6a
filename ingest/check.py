"""What a check is, what it is given, and what all of them together concluded.

A check is one file of `ingest/checks/`, which says all of this about itself in its `CHECKS`; `ingest.registry` finds it
there. Nothing else has to be told of a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vouchgate.ingest.claims.citation import Citation
from vouchgate.ingest.claims.claim import Claim, Finding, SecretMatch, Verdict
from vouchgate.ingest.claims.hedges import HedgeMatch
from vouchgate.ingest.claims.likeness import (
    AtPlace,
    DedupFacts,
    DedupUnavailable,
    EchoFacts,
    Neighbour,
    Neighbours,
    ParaphraseFacts,
)
from vouchgate.ingest.claims.source import Found, SourceReading
from vouchgate.ingest.claims.texts import CONTENT
from vouchgate.ingest.claims.trust import AppliedRuling, Track
from vouchgate.ingest.dedup.compare import Comparisons
from vouchgate.ingest.policy import Policy

NOT_LOOKED_UP = DedupUnavailable(detail="Earlier claims were not looked up.")
NOTHING_NEAR = Neighbours()  # of most claims
_MOST_SHOWN = 5  # places named in one sentence


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a claim beside its text and its sources, by the names that evidence has for it. Whoever has
    access to it gathers it; a fact that nobody gathered is unknown, and never "there is none"."""

    dedup: DedupFacts = NOT_LOOKED_UP
    paraphrases: ParaphraseFacts | None = None  # None: nobody looked, see `ingest.dedup.paraphrase.weigh`
    at_place: AtPlace | None = None  # of the place that the claim names, when anything is known of it
    echo: EchoFacts | None = None  # how often it was sent, when that was more than once
    standing_ruling: AppliedRuling | None = None  # of its owner, that bears on it
    track: Track | None = None  # how often such claims were right; None: nobody judged any


NO_FACTS = Facts()
FACTS = tuple(Facts.__dataclass_fields__)


class Findings(Mapping[str, tuple[Finding, ...]]):
    """Findings by check, in the order in which an answer has them (`every`). A check that said nothing is no key."""

    __slots__ = ("_by_check", "every")

    def __init__(self, every: Iterable[Finding] = ()) -> None:
        self.every = tuple(every)
        self._by_check: dict[str, tuple[Finding, ...]] = {}
        for finding in self.every:
            self._by_check[finding.check] = (*self._by_check.get(finding.check, ()), finding)

    def __getitem__(self, check: str) -> tuple[Finding, ...]:
        return self._by_check[check]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_check)

    def __len__(self) -> int:
        return len(self._by_check)

    def of(self, check: str) -> tuple[Finding, ...]:
        """What a check said; nothing, perhaps."""
        return self._by_check.get(check, ())

    def one(self, check: str) -> Finding | None:
        """The first thing that a check said, if it said anything."""
        found = self._by_check.get(check)
        return found[0] if found else None

    @property
    def cited(self) -> tuple[Finding, ...]:
        """Those on the things cited: whether each is there, and what it has to say of the claim."""
        return tuple(finding for finding in self.every if finding.citation is not None)


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """What a check is asked about: a claim with what its text holds, and what was read of the things it cites."""

    claim: Claim
    hedges: tuple[HedgeMatch, ...]
    citations: tuple[Citation, ...]  # those in the text, then those given beside it
    readings: tuple[SourceReading, ...]
    policy: Policy
    by_statements: bool = True  # as of `ingest.pipeline.examine`

    def naming(self, key: str) -> tuple[Citation, ...]:
        """Every citation of the thing with this key."""
        return tuple(citation for citation in self.citations if citation.key == key)


class Known(Protocol):
    """A claim with all that is known of it, as `ingest.pipeline.Examined` is."""

    @property
    def claim(self) -> Claim: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def known(self) -> Comparisons | None: ...  # what it was compared with before


def _code(finding: Finding) -> str:
    if finding.citation is not None:
        return f"{finding.code}: {finding.citation.value}"
    return f"{finding.code}: {finding.facts['id']}" if "id" in finding.facts else finding.code


@dataclass(frozen=True, slots=True)
class Check:
    """One question. It has exactly one of the four judges, all pure; one that has nothing to say finds nothing.

    `codes` is what its findings can say, each with its verdict. A finding that is no PASS is weighed by the rule of the
    router that is about this check; where none is, the claim waits for its owner (`doubted`)."""

    name: str
    title: str  # on the pages, over what it says
    codes: Mapping[str, Verdict | tuple[Verdict, ...]]
    order: int = 100  # among its like, in the order of the answer
    judge: Callable[[ReadClaim], Iterable[Finding]] | None = None
    # Asked of each source that is there and holds: against any other there is enough.
    judge_source: Callable[[ReadClaim, Found], Finding | None] | None = None
    # Asked last of a claim's text and sources, with what the others found.
    judge_findings: Callable[[ReadClaim, Findings], Iterable[Finding]] | None = None
    # With facts, whose names are `needs`: under the owner's lock, when a claim is decided.
    judge_facts: Callable[[Known], Finding | None] | None = None
    needs: frozenset[str] = frozenset()
    of_removals: bool = False  # also asked of a claim that only wants something removed
    label: Callable[[Finding], str] = _code  # a finding in `checks_passed` and `checks_failed`
    # What the claim repeats or would change, by a finding of this check.
    nearest: Callable[[Known, Finding], Neighbour | None] | None = field(default=None)

    def __post_init__(self) -> None:
        judges = (self.judge, self.judge_source, self.judge_findings, self.judge_facts)
        if sum(judge is not None for judge in judges) != 1:
            raise ValueError(f"the check {self.name} must have one judge")
        if bool(self.needs) != (self.judge_facts is not None) or not self.needs <= set(FACTS):
            raise ValueError(
                f"the check {self.name} may need {', '.join(FACTS)}, of which judge_facts is told"
            )


def shorten(text: str, most: int = 80) -> str:
    """The text on one line, for a message: cut when it has more than so many characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def describe_matches(found: Sequence[SecretMatch]) -> str:
    """What was found and where it stood, for a message: the first few, and how many more there are."""
    named = [
        f"{each.kind} in {'its text' if each.where == CONTENT else each.where} (characters {each.start} to {each.end})"
        for each in found[:_MOST_SHOWN]
    ]
    return ", ".join(named + ([f"{len(found) - _MOST_SHOWN} more"] if len(found) > _MOST_SHOWN else []))
