"""What the index keeps of a text, worked out once: tests build and look through the index of the same texts again and
again."""

from __future__ import annotations

from functools import lru_cache

from vouchgate.storage.dedup import index, reindex, upkeep

_KEPT = 20_000  # texts


def share_signatures() -> None:
    """From now on the functions of a text alone that build, compare and look through the index remember what they
    returned, which nobody can change."""
    for module in (index, reindex, upkeep):
        for name in ("signature_keys", "tokens"):
            setattr(module, name, lru_cache(_KEPT)(getattr(module, name)))
