"""Rows joined by columns are the rows that one process finds one after the other."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vouchgate.importing import nearest as one_process
from vouchgate.importing.bulk.joining import Keyed, Pairs, components, joined, met, nearest, sharing
from vouchgate.importing.nearest import EarlierTexts
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source

ROW = st.tuples(
    st.integers(0, 5), st.sets(st.integers(-4, 6), min_size=1, max_size=3)
)  # a text, and its keys


def claim(text: int) -> Claim:
    return Claim(
        content=f"text {text}",
        memory_type=MemoryType.FACT,
        asserted_source=Source.USER,
        source=Source.USER,
        owner_id="ada",
    )


def keyed(rows: list[tuple[int, tuple[int, ...]]], numbers: list[int]) -> Keyed:
    entries = [(key, number, rows[number][0]) for number in numbers for key in rows[number][1]]
    return Keyed(*np.array(entries, np.int64).reshape(-1, 3).T)


@given(st.lists(ROW, max_size=60), st.integers(1, 4), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_nearest_do_not_depend_on_who_joins(drawn, most, places, random) -> None:  # type: ignore[no-untyped-def]
    """Equal texts have equal keys, as they have in a file."""
    keys = {text: tuple(sorted(of)) for text, of in reversed(drawn)}
    rows = [(text, keys[text]) for text, _ in drawn]
    shuffled = random.sample(range(len(rows)), len(rows))
    with (
        patch.object(one_process, "CANDIDATES", most),
        patch("vouchgate.importing.bulk.joining.CANDIDATES", most),
        patch.object(one_process, "keys_of", lambda claim: keys[int(claim.content.split()[1])]),
    ):
        earlier = EarlierTexts()
        expected = [
            (number, other.number)
            for number, (text, _) in enumerate(rows)
            for other in earlier.of(number, claim(text), None)
        ]
        whole = keyed(rows, shuffled)
        found = nearest(
            joined([met(whole.of_place(place, places)) for place in range(places)]), max(1, len(rows))
        )
    assert list(zip(found.row.tolist(), found.other.tolist(), strict=True)) == expected


@given(st.lists(st.sets(st.integers(0, 40), min_size=1, max_size=2), max_size=40), st.integers(1, 4))
def test_rows_that_share_a_key_are_together(sets: list[set[int]], places: int) -> None:
    rows = [(0, tuple(each)) for each in sets]
    whole = keyed(rows, list(range(len(rows))))
    root = components(joined([sharing(whole.of_place(place, places)) for place in range(places)]), len(rows))
    expected = list(range(len(rows)))
    changed = True
    while changed:
        before = list(expected)
        for one, other in ((a, b) for a in range(len(rows)) for b in range(a) if sets[a] & sets[b]):
            expected[one] = expected[other] = min(expected[one], expected[other])
        changed = before != expected
    assert root.tolist() == expected


def test_a_long_chain_is_one() -> None:
    size = 5000
    order = np.random.default_rng(7).permutation(size)
    root = components(Pairs(order[1:], order[:-1]), size)
    assert not root.any()
