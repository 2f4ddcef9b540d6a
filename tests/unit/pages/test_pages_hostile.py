"""Whatever others wrote stays in pieces on the page of an item, and a page of hostile text is not slow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.answers import DETECTOR, NOW, SENT, answer_of, claim_of, item_of, policy_with, read, view_of
from vouchgate.ingest.claims.decision import RejectedBefore
from vouchgate.ingest.claims.delivery import OWN_SINK
from vouchgate.ingest.claims.likeness import ItemKind, Neighbour, Neighbours, SimilarMemory
from vouchgate.ingest.claims.source import Standing
from vouchgate.ingest.claims.waiting import ReviewStatus
from vouchgate.ingest.pipeline import inspect
from vouchgate.review.pages.wording.text import MOST_TAGS, UNSEEN, Piece, Pieces

HALF = policy_with(duplicate_threshold=0.51)
HIDDEN = "\u202e\u2066\u200b\ufeff\u00ad\x00\x1b\ue000\U000e0041"
HOSTILE = st.text(
    st.sampled_from(f"{HIDDEN}\r\n\t <>&\"'a7 😀e\u0301—“”"),
    min_size=1,
    max_size=60,
) | st.text(min_size=1, max_size=60)


def strings(value: object, at: str = "") -> Iterator[tuple[str, str]]:
    """Every string of a view outside pieces, with the name of its field."""
    if isinstance(value, Piece) or at == "claim_text":
        return
    if isinstance(value, str):
        assert type(value) is str or at  # an enum's value is as good as a string
        yield at, value
    elif isinstance(value, tuple):
        for one in value:
            yield from strings(one, at)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from strings(getattr(value, field.name), field.name)


def all_pieces(value: object) -> Iterator[Pieces]:
    if isinstance(value, tuple) and value and all(isinstance(one, Piece) for one in value):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from all_pieces(one)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from all_pieces(getattr(value, field.name))


@given(HOSTILE, HOSTILE, st.booleans(), st.sampled_from(Standing))
def test_hostile_text_stays_in_pieces_wherever_it_comes_from(
    claimed: str, other: str, conflicts: bool, standing: Standing
) -> None:
    content = f"{claimed} ADR-7 {other}"
    claim = claim_of(content, metadata={other: claimed})
    readings = read(
        inspect(claim, DETECTOR),
        source_id=other,
        detail=other,
        title=claimed,
        excerpt=other,
        successor=claimed,
    )
    found = [r.model_copy(update={"standing": standing}) for r in readings]
    neighbour = Neighbour(kind=ItemKind.MEMORY, id="mem_1", content=f"{claimed} ADR-7 {other}9")
    dedup = Neighbours(items=(neighbour,) if conflicts else ())
    answer = answer_of(claim, found, dedup, HALF)
    item = item_of(answer, note=other, decided_by=claimed, status=ReviewStatus.REJECTED, decided_at=NOW)
    view = view_of(
        answer,
        item,
        sender=other,
        rejected=RejectedBefore(queue_id="rev_0", reason=other, rejected_at=SENT),
        similar=(SimilarMemory(memory_id="mem_2", similarity=0.6, content=other),),
    )
    for at, shown in strings(view):
        assert set(shown).isdisjoint(HIDDEN), at
    for piece in (piece for shown in all_pieces(view) for piece in shown):
        assert set(piece.text + piece.note).isdisjoint(HIDDEN), piece
    assert view.claim_text == content
    for sink in (other.replace(" ", "_"), OWN_SINK):
        removal = view_of(answer_of(claim), item_of(answer_of(claim), removal_of=f"{sink} {claimed}"))
        assert removal.effect.options
        for at, shown in strings(removal.effect):
            assert set(shown).isdisjoint(HIDDEN), at


@pytest.mark.parametrize(
    "hostile",
    [
        "a\u200b" * 4096,
        "e" + "\u0301" * 8191,
        "\u202e\u2066" * 4096,
        "x" * 8192,
        "maybe " * 1365,
        "ADR-7 " * 90 + "א" * 7000,
        "\n" * 8192,
        "<script>alert(1)</script>" * 300,
    ],
    ids=["zero width", "marks", "bidi", "no space", "hedges", "citations", "lines", "script"],
)
def test_a_page_of_the_largest_hostile_claim_has_a_bounded_number_of_pieces(hostile: str) -> None:
    claim = claim_of(hostile[:8192])
    similar = tuple(
        SimilarMemory(memory_id=f"mem_{n}", similarity=0.6, content=hostile[n:]) for n in range(2)
    )
    view = view_of(answer_of(claim), similar=similar)
    assert view.claim_text == hostile[:8192]
    assert len(view.title) <= 80
    for shown in all_pieces(view):
        assert len(shown) <= 8192
        assert sum(UNSEEN in piece.marks for piece in shown) <= MOST_TAGS + 1
