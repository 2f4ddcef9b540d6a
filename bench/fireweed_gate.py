"""fireweed-mcp beside this gate: its `remember` admits a claim when the evidence that goes with it says so.

Asked are the checks of the evidence that `remember` makes first, and not what its store thinks of a claim afterwards:
that only refuses more. Its extra `semantic`, a model, is not installed.
"""

from __future__ import annotations

from collections.abc import Callable

# Whether a claim is admitted on this evidence.
Admits = Callable[[str, str], bool]


def load_fireweed() -> Admits | None:
    """Its answer to a claim and the evidence for it; None, and a line that says so, where it is not installed."""
    try:
        from fireweed.grounding import GROUNDED_VERBATIM, classify, predicate_grounded
    except ImportError:
        print("fireweed-mcp is not installed, and not compared: pip install 'vouchgate[bench]'")
        return None

    def admits(claim: str, evidence: str) -> bool:
        if not evidence.strip() or classify(claim, evidence) != GROUNDED_VERBATIM:
            return False
        return bool(predicate_grounded(claim, evidence))

    return admits
