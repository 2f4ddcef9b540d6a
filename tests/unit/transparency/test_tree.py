"""The tree and its proofs, with the vectors of RFC 6962's reference implementation."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trees import Log
from vouchgate.ingest.transparency.tree import edge_of, inclusion_proof
from vouchgate.ingest.transparency.verifier import (
    EMPTY_ROOT,
    HASH_BYTES,
    Malformed,
    NotProven,
    check_consistency,
    check_inclusion,
    consistency_proof,
    hashes_of_tiles,
    leaf_hash,
    node_hash,
    range_hash,
    tile_path,
    tile_width,
)

# From the tests of the reference implementation of Certificate Transparency: eight entries, the root over the first
# one, two and so on, and proofs. An index of theirs counts from 1.
ENTRIES = [
    bytes.fromhex(each)
    for each in (
        "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
    )
]  # fmt: skip
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
INCLUSION = {
    (1, 1): [],
    (1, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (6, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (3, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (2, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
CONSISTENCY = {
    (1, 1): [],
    (1, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}


def naive(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, word for word."""
    if len(leaves) < 2:
        return leaves[0] if leaves else EMPTY_ROOT
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return node_hash(naive(leaves[:k]), naive(leaves[k:]))


def test_the_vectors_of_certificate_transparency() -> None:
    log, leaves = Log(), [leaf_hash(entry) for entry in ENTRIES]
    assert log.edge.root == EMPTY_ROOT == hashlib.sha256().digest()
    for leaf, root in zip(leaves, ROOTS, strict=True):
        log.add(leaf)
        assert log.edge.root.hex() == root
    for (number, size), proof in INCLUSION.items():
        assert [each.hex() for each in inclusion_proof(log.get, number - 1, size)] == proof
        check_inclusion(
            number - 1,
            size,
            leaves[number - 1],
            list(map(bytes.fromhex, proof)),
            bytes.fromhex(ROOTS[size - 1]),
        )
    for (old, new), proof in CONSISTENCY.items():
        assert [each.hex() for each in consistency_proof(log.get, old, new)] == proof
        roots = bytes.fromhex(ROOTS[old - 1]), bytes.fromhex(ROOTS[new - 1])
        check_consistency(old, new, *roots, [*map(bytes.fromhex, proof)])


def test_every_proof_of_small_trees_holds_and_no_other_does() -> None:
    log = Log(20)
    for size in range(1, 21):
        assert log.root(size) == naive(log.leaves[:size])
        for index in range(size):
            proof = inclusion_proof(log.get, index, size)
            check_inclusion(index, size, log.leaves[index], proof, log.root(size))
            others = [
                (index, size, leaf_hash(b"other"), proof),
                ((index + 1) % size, size, log.leaves[index], proof)
                if size > 1
                else (1, 1, log.leaves[0], proof),
                (index, size, log.leaves[index], [*proof, EMPTY_ROOT]),
                *([(index, size, log.leaves[index], proof[:-1])] if proof else []),
                *([(index, size, log.leaves[index], proof[::-1])] if proof != proof[::-1] else []),
            ]
            for other in others:
                with pytest.raises(NotProven):
                    check_inclusion(*other, log.root(size))
        for old in range(size + 1):
            proof = consistency_proof(log.get, old, size)
            roots = log.root(old), log.root(size)
            check_consistency(old, size, *roots, proof)
            bad = [
                (old, size, *roots, [*proof, EMPTY_ROOT]),
                (old, size, roots[0], leaf_hash(b"other"), proof)
                if old
                else (old, size, leaf_hash(b"other"), roots[1], proof),
                (old, size, leaf_hash(b"other"), roots[1], proof),
                *([(old, size, roots[0], leaf_hash(b"other"), proof)] if old else []),
                (size, old, roots[1], roots[0], proof) if old < size else (old, size, *roots, [EMPTY_ROOT]),
                *([(old, size, *roots, proof[:-1])] if proof else []),
            ]
            for each in bad:
                with pytest.raises(NotProven):
                    check_consistency(*each)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 700), max_size=4), st.randoms(use_true_random=False))
def test_in_whatever_steps_a_log_grows(steps: list[int], random: object) -> None:
    log, size = Log(*steps), sum(steps)
    assert log.edge.root == naive(log.leaves) == (log.root(size) if size else EMPTY_ROOT)
    assert log.edge == edge_of(size, log.tiles) and set(map(len, log.tiles.values())) <= set(
        range(32, 8193, 32)
    )
    assert log.tiles == Log(size).tiles
    for (level, number), tile in log.tiles.items():
        assert len(tile) == tile_width(level, number, size) * HASH_BYTES
    for old in {size // 3, size // 2, size - 1} & set(range(1, size)):
        check_consistency(old, size, log.root(old), log.root(size), consistency_proof(log.get, old, size))
        check_inclusion(old, size, log.leaves[old], inclusion_proof(log.get, old, size), log.root(size))
        assert edge_of(old, log.tiles) == Log(old).edge  # out of longer tiles than it had then


def test_a_tree_of_seventy_thousand_has_the_tiles_of_the_specification() -> None:
    log = Log(70_000)
    widths: dict[int, list[int]] = {}
    for (level, _), tile in sorted(log.tiles.items()):
        widths.setdefault(level, []).append(len(tile) // HASH_BYTES)
    assert widths == {0: [256] * 273 + [112], 1: [256, 17], 2: [1]}
    assert {level: tile_width(level, 999, 70_000) for level in range(3)} == {0: 0, 1: 0, 2: 0}
    paths = {
        tile_path(0, 1_234_067): "tile/0/x001/x234/067",
        tile_path(0, 0): "tile/0/000",
        tile_path(2, 0, 1): "tile/2/000.p/1",
        tile_path(63, 1_000, 112): "tile/63/x001/000.p/112",
    }
    assert all(made == said for made, said in paths.items())


def test_a_proof_in_ten_million_entries_is_small() -> None:
    """Simulated: every full subtree of a level has the same hash, so the tree needs no room."""
    same = [leaf_hash(b"same")]
    for _ in range(24):
        same.append(node_hash(same[-1], same[-1]))
    size, read = 10_000_000, []

    def get(level: int, index: int) -> bytes:
        assert (index + 1) << level <= size
        read.append((level, index))
        return same[level]

    root = range_hash(get, 0, size)
    for index in (0, 4_999_999, 8_388_608, 9_999_999):
        read.clear()
        proof = inclusion_proof(get, index, size)
        assert len(read) < 48 and len(b"".join(proof)) < 1_000
        check_inclusion(index, size, same[0], proof, root)
    check_consistency(
        7_654_321, size, range_hash(get, 0, 7_654_321), root, consistency_proof(get, 7_654_321, size)
    )


def test_what_is_hostile_is_refused() -> None:
    log = Log(5)
    root, leaf = log.root(5), log.leaves[2]
    proof = inclusion_proof(log.get, 2, 5)
    for index, size in ((-1, 5), (5, 5), (0, 0), (2, 2**63), (2**70, 2**71)):
        with pytest.raises(NotProven):
            check_inclusion(index, size, leaf, proof, root)
    for hashes in ([root] * 64, [b"short"], [root + b"1"]):
        with pytest.raises(Malformed):
            check_inclusion(2, 5, leaf, hashes, root)
        with pytest.raises(Malformed):
            check_consistency(2, 5, root, root, hashes)
    with pytest.raises(NotProven):
        check_consistency(2, 2**64, root, root, proof)
    with pytest.raises(NotProven):
        check_consistency(2, 5, log.root(2), root, [])
    with pytest.raises(Malformed):  # a tile that was cut
        hashes_of_tiles(lambda level, number, width: b"", 5)(0, 1)
    for call in (
        lambda: hashes_of_tiles(lambda level, number, width: b"", 5)(1, 2),
        lambda: inclusion_proof(log.get, 5, 5),
        lambda: consistency_proof(log.get, 6, 5),
        lambda: edge_of(5, {(0, 0): b""}),
    ):
        with pytest.raises(ValueError, match="tree"):
            call()
