"""The router's rules by name. Answers, metrics and pages say the name; a database column holds the number.

Until they had names, rules were numbers, in answers that are kept for good. One number had two meanings: 15 was both
the change and the removal of what is at a place, so there the reason of the answer tells which. 4 (a claim or a removal
that waits already), 6 (uniqueness unknown, or a paraphrase) and 14 (an echo, queued or blocked) mean the same as ever:
one name covers both.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field


class Rule(StrEnum):
    """Why a claim went where it went. In no order; `ingest.router` has the order in which they are asked."""

    CREDENTIAL = "credential"
    REMOVAL = "removal"
    SPECULATION = "speculation"
    DUPLICATE = "duplicate"
    ECHO = "echo"
    ALREADY_PENDING = "already_pending"
    PLACE_CHANGE = "place_change"
    CONFLICT = "conflict"
    TECHNICAL_HEDGE = "technical_hedge"
    DEDUP_UNKNOWN = "dedup_unknown"  # also of what may say the same in other words
    REFUTED = "refuted"
    DOUBTED = "doubted"  # by a check that has no rule of its own
    CITATION_VERIFIED = "citation_verified"  # of before sources were held against statements one by one
    HIDDEN_TEXT = "hidden_text"
    INSTRUCTION = "instruction"
    PERSONAL_DATA = "personal_data"
    UNCOVERED = "uncovered"
    STATED = "stated"
    SPOKEN_OF = "spoken_of"
    POINTER = "pointer"
    CORROBORATED = "corroborated"  # by what the gate found for a claim that cites nothing
    STANDING_RULING = "standing_ruling"  # of its owner: claims like this one are stored or rejected
    TRUSTED_SOURCE = "trusted_source"
    STATED_IN_CONVERSATION = "stated_in_conversation"
    CITATION_UNKNOWN = "citation_unknown"
    UNGROUNDED = "ungrounded"


# By which a claim is stored on account of what it cites. The first only in decisions of before there were the others.
BY_CITATION = frozenset(
    {Rule.CITATION_VERIFIED, Rule.STATED, Rule.SPOKEN_OF, Rule.POINTER, Rule.CORROBORATED}
)
CHANGE_REASON = "Changes what is stored"  # by which a 15 that was no removal is known

# The number of each rule in a database column. A new rule takes the next one, and none is used again.
NUMBERS: Mapping[Rule, int] = {
    Rule.SPECULATION: 1,
    Rule.DUPLICATE: 2,
    Rule.CONFLICT: 3,
    Rule.ALREADY_PENDING: 4,
    Rule.TECHNICAL_HEDGE: 5,
    Rule.DEDUP_UNKNOWN: 6,
    Rule.REFUTED: 7,
    Rule.CITATION_VERIFIED: 8,
    Rule.TRUSTED_SOURCE: 9,
    Rule.STATED_IN_CONVERSATION: 10,
    Rule.CITATION_UNKNOWN: 11,
    Rule.UNGROUNDED: 12,
    Rule.CREDENTIAL: 13,
    Rule.ECHO: 14,
    Rule.REMOVAL: 15,
    Rule.PLACE_CHANGE: 16,
    Rule.DOUBTED: 17,
    Rule.HIDDEN_TEXT: 18,
    Rule.INSTRUCTION: 19,
    Rule.UNCOVERED: 20,
    Rule.STATED: 21,
    Rule.SPOKEN_OF: 22,
    Rule.POINTER: 23,
    Rule.CORROBORATED: 24,
    Rule.STANDING_RULING: 25,
    Rule.PERSONAL_DATA: 26,
}
_NAMES = {number: rule for rule, number in NUMBERS.items()}


def rule_of(number: int) -> Rule:
    """The rule with this number. Raises ValueError for a number that is none's."""
    try:
        return _NAMES[number]
    except KeyError:
        raise ValueError(f"no rule has the number {number}") from None


def _named(rule: object) -> object:
    return rule_of(rule) if type(rule) is int else rule


# A rule as an answer has it: one of ours, the name of one that only a newer service knows, or an old number.
RuleName = Annotated[
    Rule | str,
    Field(union_mode="left_to_right", examples=[Rule.STATED, Rule.UNGROUNDED]),
    BeforeValidator(_named),
]
