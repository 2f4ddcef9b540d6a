"""Source score, label and confidence: pure functions of what was read, the same in any order of sources."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.policy import ScoreWeights
from ingest.types import Confidence, Found, Label, Standing

HIGH_SCORE = 0.8  # from here a claim is held with high confidence; design section 3


def source_score(source: Found, weights: ScoreWeights) -> float:
    """Score of one source that was found, 0 to 1.

    The grounding repository's own record is its own reputation, and as long as it is in force its age says
    nothing against it: both terms are 1. Any other kind of source has no verifier yet and scores 0, so that
    nothing is stored on its account.
    """
    if not source.official or source.standing is not Standing.IN_FORCE:
        return 0.0
    without_judge = weights.reachable + weights.reputation + weights.freshness
    return 1.0 if without_judge > 0 else 0.0


def claim_score(sources: Sequence[Found], weights: ScoreWeights) -> float | None:
    """The lowest score among the sources of a claim; None when it has none."""
    return min((source_score(source, weights) for source in sources), default=None)


def label_of(sources: Sequence[Found]) -> Label:
    """FACT when one of the verified sources is official; all else is INFERENCE."""
    verified = [source for source in sources if source.standing is Standing.IN_FORCE]
    return Label.FACT if any(source.official for source in verified) else Label.INFERENCE


def confidence_of(label: Label, score: float | None, *, vouched: bool) -> Confidence:
    """High for a FACT or a score of 0.8 and more, medium when something vouches for the claim, else low.

    `vouched` means: one verified source, a trusted source, or the owner's approval.
    """
    if label is Label.FACT or (score is not None and score >= HIGH_SCORE):
        return Confidence.HIGH
    return Confidence.MEDIUM if vouched else Confidence.LOW
