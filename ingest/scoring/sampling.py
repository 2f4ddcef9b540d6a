"""Which of the stored memories their owners are asked about afterwards. Pure."""

from __future__ import annotations

_BITS = 64  # of the digest: a rate is met to one part in 2^64


def is_sampled(decision_digest: str, rate: float) -> bool:
    """Whether the memory that a decision stored is put on the list of spot checks, of which so large a share is (0 to
    1). `decision_digest` is the sha256 (hex) of the decision as it was written, which is in the log: whoever has
    log and policy can draw again. Nobody who sends a claim can choose it, for it covers an id and times that the gate
    makes.
    """
    return int(decision_digest[: _BITS // 4], 16) < rate * (1 << _BITS)
