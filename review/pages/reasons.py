"""What the pages call the reasons for which claims wait, and the reasons an owner gives most often."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasonKind:
    """Why items wait: `slug` names it in the style sheet, `label` to the reader, `group` in a sentence about
    several of them."""

    slug: str
    label: str
    group: str


# By the number of the router's rule, design section 3; what a policy or a later version adds is OTHER.
_KINDS = {
    3: ReasonKind("conflict", "Conflict", "conflict with a stored memory"),
    5: ReasonKind("hedge", "Hedged", "are hedged"),
    6: ReasonKind("unknown", "Uniqueness unknown", "could not be compared with what is stored"),
    7: ReasonKind("refuted", "Citation does not hold", "cite something that does not hold"),
    11: ReasonKind("unchecked", "Citation not checked yet", "cite something that could not be checked yet"),
    12: ReasonKind("ungrounded", "Ungrounded", "have nothing that vouches for them"),
    14: ReasonKind("echo", "Sent again and again", "were sent again and again"),
    15: ReasonKind("change", "Change or removal", "would change or remove what is stored"),
}
OTHER = ReasonKind("other", "Waits", "wait for another reason")

# Offered in this order; the first five have the keys 1 to 5.
CANNED = (
    "Not true",
    "Out of date",
    "Cannot be verified",
    "Not worth keeping",
    "Already known in other words",
)


def kind_of(rule: int) -> ReasonKind:
    """What an item is called that waits under this rule of the router."""
    return _KINDS.get(rule, OTHER)
