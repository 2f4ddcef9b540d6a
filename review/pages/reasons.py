"""What the pages call the reasons for which claims wait, and the reasons an owner gives most often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vouchgate.ingest.claims.waiting import PendingMemory
from vouchgate.ingest.rules import Rule


@dataclass(frozen=True, slots=True)
class ReasonKind:
    """Why items wait: `slug` names it in the style sheet, `label` to the reader, `group` in a sentence about
    several of them."""

    slug: str
    label: str
    group: str


# What a later version adds is OTHER.
_KINDS: Mapping[str, ReasonKind] = {
    Rule.CONFLICT: ReasonKind("conflict", "Conflict", "conflict with a stored memory"),
    Rule.TECHNICAL_HEDGE: ReasonKind("hedge", "Hedged", "are hedged"),
    Rule.DEDUP_UNKNOWN: ReasonKind(
        "unknown", "Uniqueness unknown", "could not be compared with what is stored"
    ),
    Rule.REFUTED: ReasonKind("refuted", "Citation does not hold", "cite something that does not hold"),
    Rule.UNCOVERED: ReasonKind("uncovered", "Says more than its sources", "say more than their sources"),
    Rule.SPOKEN_OF: ReasonKind("ungrounded", "Only spoken of", "are only spoken of by their sources"),
    Rule.HIDDEN_TEXT: ReasonKind("hidden", "Hidden text", "have text that nobody can see"),
    Rule.INSTRUCTION: ReasonKind("instruction", "Speaks to a model", "give orders to a model"),
    Rule.PERSONAL_DATA: ReasonKind("personal", "Personal data", "hold personal data"),
    Rule.DOUBTED: ReasonKind("doubted", "In doubt", "did not pass a check"),
    Rule.CITATION_UNKNOWN: ReasonKind(
        "unchecked", "Citation not checked yet", "cite something that could not be checked yet"
    ),
    Rule.UNGROUNDED: ReasonKind("ungrounded", "Ungrounded", "have nothing that vouches for them"),
    Rule.ECHO: ReasonKind("echo", "Sent again and again", "were sent again and again"),
    Rule.PLACE_CHANGE: ReasonKind("change", "Change", "would change what is stored"),
    Rule.REMOVAL: ReasonKind("removal", "Removal", "would remove what is stored"),
}
BOTH_WAIT = ReasonKind("conflict", "Conflict, both wait", "conflict with a claim that waits too")
OTHER = ReasonKind("other", "Waits", "wait for another reason")

KNOWN = "Already known in other words"
# Offered in this order; the first five have the keys 1 to 5.
CANNED = (
    "Not true",
    "Out of date",
    "Cannot be verified",
    "Not worth keeping",
    KNOWN,
)


def kind_of_item(item: PendingMemory) -> ReasonKind:
    """What one item is called: a conflict says whether what it conflicts with is stored."""
    if item.rule == Rule.CONFLICT and item.conflicting_memory_id is None:
        return BOTH_WAIT
    return kind_of(item.rule)


def kind_of(rule: str) -> ReasonKind:
    """What an item is called that waits under this rule."""
    return _KINDS.get(rule, OTHER)
