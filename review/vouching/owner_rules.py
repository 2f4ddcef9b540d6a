"""Who is asked about a waiting claim, and how many must agree: lines of a file, of which the last that matches counts.
Pure.

A line has selectors (`*`, or `type:decision path:docs/adr/*`, all of which must match), then who is asked (`@ann`, or
a team that a line `@platform = @ann @bea` names; without any, every reviewer of the owner), then how many must approve
(1 unless it says so). `#` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from vouchgate.ingest.claims.claim import MemoryType, Source
from vouchgate.ingest.claims.decision import Label, ValidationResult
from vouchgate.ingest.claims.source import Found
from vouchgate.ingest.language.spelling import did_you_mean
from vouchgate.ingest.rules import Rule

MOST_APPROVALS = 20
MOST_CHARACTERS = 200_000  # of a file
# How much harm it could do to let a claim pass that waits for this reason. What is in neither is `low`.
HIGH_RISK = frozenset(
    {Rule.CONFLICT, Rule.PLACE_CHANGE, Rule.REMOVAL, Rule.HIDDEN_TEXT, Rule.INSTRUCTION, Rule.REFUTED}
)
MEDIUM_RISK = frozenset(
    {Rule.TECHNICAL_HEDGE, Rule.DEDUP_UNKNOWN, Rule.UNCOVERED, Rule.DOUBTED, Rule.PERSONAL_DATA}
)

# What a claim has under each key; where the values are known beforehand, those.
KEYS: Mapping[str, frozenset[str] | None] = {
    "owner": None,
    "agent": None,
    "path": None,
    "type": frozenset(each.value for each in MemoryType),
    "source": frozenset(each.value for each in Source),
    "label": frozenset(each.value for each in Label),
    "risk": frozenset({"high", "medium", "low"}),
}
_TEAM = re.compile(r"@([A-Za-z0-9][A-Za-z0-9._-]{0,63})\s*=\s*(.*)")
_WHO = re.compile(r"@[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WILD = re.compile(r"[*?\[]")


class OwnerRulesError(ValueError):
    """A file of rules that cannot be used; the message names it, each line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one line."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Required:
    """What it takes to approve a claim. `asked` are names of persons, empty for every reviewer; `rule` is the line that
    says so, with its number (0: there is none). `stand_ins`: who rules in the stead of whom of these, by name."""

    approvals: int = 1
    asked: tuple[str, ...] = ()
    line: int = 0
    rule: str = ""
    stand_ins: tuple[tuple[str, str], ...] = ()


ONE = Required()


@dataclass(frozen=True, slots=True)
class OwnerRule:
    """One line."""

    selectors: tuple[tuple[str, str], ...]  # key and pattern; none: every claim
    required: Required

    def matches(self, claim: Mapping[str, Collection[str]]) -> bool:
        """Whether each selector matches one of what the claim has under its key."""
        return all(_matches(claim.get(key, ()), pattern) for key, pattern in self.selectors)

    def may_match(self, known: Mapping[str, Collection[str]], perhaps: Mapping[str, Collection[str]]) -> bool:
        """The same of claims of which only this is known, and that have one of `perhaps` under its key."""
        asked = [(known.get(key, perhaps.get(key)), pattern) for key, pattern in self.selectors]
        return all(values is None or _matches(values, pattern) for values, pattern in asked)


@dataclass(frozen=True, slots=True)
class OwnerRules:
    """The rules of a file, in its order. `named` are the persons that stand in it, with their lines."""

    rules: tuple[OwnerRule, ...] = ()
    named: Mapping[str, int] = field(default_factory=dict)

    def required(self, claim: Mapping[str, Collection[str]]) -> Required:
        """What it takes to approve a claim with these values by key."""
        return next((rule.required for rule in reversed(self.rules) if rule.matches(claim)), ONE)

    def possible(
        self, known: Mapping[str, Collection[str]], perhaps: Mapping[str, Collection[str]]
    ) -> Iterator[Required]:
        """All that it may take to approve one of the claims that `OwnerRule.may_match` is about."""
        for rule in reversed(self.rules):
            if rule.may_match(known, perhaps):
                yield rule.required
                if all(key in known for key, _ in rule.selectors):
                    return
        yield ONE


def _matches(values: Collection[str], pattern: str) -> bool:
    return any(fnmatchcase(value, pattern) for value in values)


NO_RULES = OwnerRules()


def facts_of(answer: ValidationResult, agents: Collection[str]) -> Mapping[str, Collection[str]]:
    """What rules may select a claim by; `agents` are the names of who sent it."""
    claim, sources = answer.evidence.claim, answer.evidence.sources
    cited = {citation.value for citation in claim.citations}
    for reading in sources:
        cited |= {reading.citation.value, reading.citation.key.partition(":")[2]}
        if isinstance(reading, Found):  # the file that defines what is cited
            cited.add(reading.source_id.partition("::")[0])
    return {
        "owner": (claim.owner_id,),
        "agent": agents,
        "type": (claim.memory_type.value,),
        "source": (claim.source.value,),
        "path": cited,
        "label": (answer.evidence.label.value,),
        "risk": (risk_of(answer.rule),),
    }


def risk_of(rule: str) -> str:
    """`high`, `medium` or `low`."""
    return "high" if rule in HIGH_RISK else "medium" if rule in MEDIUM_RISK else "low"


def parse(text: str) -> tuple[OwnerRules, list[Fault]]:
    """The rules of a text, and what is wrong with its lines, which are left out."""
    if len(text) > MOST_CHARACTERS:
        return OwnerRules(), [Fault(1, f"A file has at most {MOST_CHARACTERS} characters.")]
    lines = [
        (number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), start=1)
    ]
    reading = _Reading()
    reading.read_teams(lines)
    rules = [rule for number, line in lines if (rule := reading.read_rule(number, line)) is not None]
    faults = sorted(reading.faults, key=lambda fault: fault.line)
    return OwnerRules(tuple(rules), reading.named), faults


class _Reading:
    """The teams that are known by now, and the faults."""

    def __init__(self) -> None:
        self.teams: dict[str, tuple[str, ...]] = {}
        self.named: dict[str, int] = {}
        self.faults: list[Fault] = []

    def read_teams(self, lines: Iterable[tuple[int, str]]) -> None:
        for number, line in lines:
            match = _TEAM.fullmatch(line)
            if match is None:
                continue
            name, members = match[1], match[2].replace(",", " ").split()
            wrong = [each for each in members if _WHO.fullmatch(each) is None]
            if wrong or not members:
                self._fault(number, f"A team is names like @ann, not {wrong[0] if wrong else 'nobody'!r}.")
            elif name in self.teams:
                self._fault(number, f"There is a team @{name} in a line above.")
            else:
                self.teams[name] = tuple(each[1:] for each in members)
                for each in self.teams[name]:
                    self.named.setdefault(each, number)

    def read_rule(self, number: int, line: str) -> OwnerRule | None:
        """The rule of a line; None for one that is empty, a team, or wrong."""
        words = line.replace(",", " ").split()
        if not words or _TEAM.fullmatch(line):
            return None
        before = len(self.faults)
        who = [each[1:] for each in words if each.startswith("@")]
        counts = [each for each in words if each.isdecimal()]
        places = [each for each in words if not each.startswith("@") and not each.isdecimal()]
        asked = tuple(dict.fromkeys(name for each in who for name in self.teams.get(each, (each,))))
        approvals = int(counts[0][:4]) if counts else 1
        if len(counts) > 1 or not 1 <= approvals <= MOST_APPROVALS:
            self._fault(number, f"How many must approve is one number from 1 to {MOST_APPROVALS}.")
        elif asked and len(asked) < approvals:
            self._fault(number, f"{approvals} must approve, but {len(asked)} are asked: nobody ever could.")
        for each in who:
            if _WHO.fullmatch(f"@{each}") is None:
                self._fault(number, f"@{each} is no name of a person or team.")
            elif each not in self.teams:
                self.named.setdefault(each, number)
        if not places:
            self._fault(number, "The line does not say for which claims: begin it with * for all.")
        selectors = tuple(each for place in places for each in self._selector(number, place))
        if len(self.faults) > before:
            return None
        return OwnerRule(selectors, Required(approvals, asked, number, line))

    def _selector(self, number: int, word: str) -> Iterator[tuple[str, str]]:
        if word == "*":
            return
        key, colon, pattern = word.partition(":")
        if not colon or not pattern or key not in KEYS:
            known = ", ".join(KEYS)
            self._fault(
                number,
                f"{word!r} is no selector like type:decision; known are {known}{did_you_mean(key, KEYS)}.",
            )
            return
        values = KEYS[key]
        if values is not None and not any(fnmatchcase(value, pattern) for value in values):
            meant = "" if _WILD.search(pattern) else did_you_mean(pattern, values)
            self._fault(number, f"No claim has {key}:{pattern}; it is {', '.join(sorted(values))}{meant}.")
            return
        yield key, pattern

    def _fault(self, line: int, message: str) -> None:
        self.faults.append(Fault(line, message))


def unknown_persons(rules: OwnerRules, persons: Collection[str]) -> list[Fault]:
    """The names in the rules that no person has who is there."""
    return [
        Fault(line, f"There is no person {name}{did_you_mean(name, persons)}.")
        for name, line in rules.named.items()
        if name not in persons
    ]
