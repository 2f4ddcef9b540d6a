"""What a proof in a log of ten million entries costs, to make out of tiles and to check, beside a single signature.

The log is simulated: all its entries are one, so a tile of a level is known without keeping it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from random import Random

from vouchgate.ingest.transparency.note import signing_key
from vouchgate.ingest.transparency.tree import inclusion_proof
from vouchgate.ingest.transparency.verifier import (
    Proof,
    check_consistency,
    check_inclusion,
    check_proof,
    consistency_proof,
    hashes_of_tiles,
    leaf_hash,
    node_hash,
    range_hash,
)

SIZE, EARLIER = 10_000_000, 7_654_321
ROUNDS = 300
KEY = signing_key("gate.example/log", b"L" * 32)


def milliseconds(work: Callable[[], object]) -> float:
    """Of the processor, for one."""
    begun = time.process_time()
    for _ in range(ROUNDS):
        work()
    return (time.process_time() - begun) / ROUNDS * 1e3


def run() -> None:
    """Prints both kinds of proof."""
    full = [leaf_hash(b"entry")]
    for _ in range(24):
        full.append(node_hash(full[-1], full[-1]))

    def read(level: int, number: int, width: int) -> bytes:
        return full[8 * level] * width

    def hashes() -> Callable[[int, int], bytes]:
        return hashes_of_tiles(read, SIZE)  # anew for each proof, as a request has it

    random = Random(1)
    root, before = range_hash(hashes(), 0, SIZE), range_hash(hashes(), 0, EARLIER)
    checkpoint = KEY.sign_checkpoint(SIZE, root).encode()
    index = random.randrange(SIZE)
    proof, growth = inclusion_proof(hashes(), index, SIZE), consistency_proof(hashes(), EARLIER, SIZE)
    receipt = str(Proof(index, tuple(proof), checkpoint)).encode()
    signing = milliseconds(lambda: KEY.sign(checkpoint))
    rows = {
        "an entry is in it: made": lambda: inclusion_proof(hashes(), random.randrange(SIZE), SIZE),
        "an entry is in it: checked": lambda: check_inclusion(index, SIZE, full[0], proof, root),
        "a receipt: checked, with its signature": lambda: check_proof(receipt, b"entry", [KEY.key]),
        "it only grew: made": lambda: consistency_proof(hashes(), EARLIER, SIZE),
        "it only grew: checked": lambda: check_consistency(EARLIER, SIZE, before, root, growth),
    }
    print(f"a log of {SIZE:,} entries; one signature takes {signing:.3f} ms")
    for name, work in rows.items():
        took = milliseconds(work)
        print(f"{name:40} {took:7.3f} ms, {took / signing:5.1f} signatures")
    size = len(b"".join(proof)), len(base64.b64encode(b"".join(proof))), len(receipt)
    print("a proof has {:,} bytes, {:,} as text; with the checkpoint {:,}".format(*size))
