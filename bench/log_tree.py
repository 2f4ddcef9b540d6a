"""What the log for outsiders costs: a claim (salted commitment, promise), and the tree of many entries made anew.

The first is beside what an entry cost before: the digest of its document. The second takes everything from the chains,
as a service does that gets its tree: read, leaf, hash, rows, tiles, and a signature for each batch.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vouchgate.gate.signing import open_signer
from vouchgate.ingest.claims.log import Action
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.transparency.promises import Commit
from vouchgate.ingest.transparency.tree import inclusion_proof
from vouchgate.settings import Settings
from vouchgate.storage.engine import writing
from vouchgate.storage.identity import owners
from vouchgate.storage.ids import decision_id, new_id_suffix
from vouchgate.storage.log import chain, tree, tree_check
from vouchgate.storage.store import Store
from vouchgate.workers.sequencer import Sequencer

ENTRIES = 1_000_000
OWNERS = 8
AT_ONCE = 5_000
ANSWER = os.urandom(2_000).hex().encode()  # as long as the answer to a claim


def microseconds(work: Callable[[], object], times: int) -> float:
    """Of the processor, for one."""
    begun = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begun) / times * 1e6


def _fill(store: Store, entries: int) -> None:
    now = datetime.now(UTC)
    names = [f"owner-{number}" for number in range(OWNERS)]
    for _ in range(entries // AT_ONCE):
        with writing(store._engine) as connection:
            states = [*owners.lock_owners(connection, names).values()]
            salts = chain.new_salts(AT_ONCE)
            rows = [
                chain.next_entry(
                    states[number % OWNERS],
                    at=now,
                    actor="0123456789abcdef",
                    action=Action.CLAIM_STORED,
                    subject_id=decision_id(new_id_suffix(now)),
                    document=chain.Document(b"answer"),
                    salt=next(salts),
                )
                for number in range(AT_ONCE)
            ]
            chain.write(connection, rows)
            owners.save(connection, states)


def _behind(store: Store) -> bool:
    with store.read() as connection:
        return tree.next_due(connection, signing=True) is not None


def run(entries: int = ENTRIES) -> None:
    """Prints both."""
    plain = microseconds(lambda: hashlib.sha256(ANSWER).hexdigest(), 20_000)
    salts = chain.new_salts(20_000)
    salted = microseconds(lambda: chain.Document(ANSWER).commitment(next(salts)), 20_000)
    print(f"commitment: {plain:.1f} us without a salt, {salted:.1f} us with one")
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/log.db", threshold=load_policy().threshold)
        signer = open_signer(Settings(log_key=f"{folder}/key"), store, datetime.now(UTC))
        assert signer is not None
        for claims in (1, 16, 256):

            def promise(claims: int = claims) -> None:
                commit = Commit([("0" * 32, number, "0" * 64) for number in range(claims)])
                for number in range(claims):
                    signer.promise(commit, number).model_dump_json()

            each = microseconds(promise, 2_000 // claims) / claims
            print(f"promise: {each:.0f} us a claim, of {claims} that are committed together")
        _fill(store, entries)
        size = Path(f"{folder}/log.db").stat().st_size
        began, used = time.perf_counter(), time.process_time()
        sequencer = Sequencer(store, signer)
        while _behind(store):
            asyncio.run(sequencer.job.run_once(datetime.now(UTC) + timedelta(days=1)))
        took, used = time.perf_counter() - began, time.process_time() - used
        grown = (Path(f"{folder}/log.db").stat().st_size - size) / entries
        print(
            f"tree of {entries:,} entries: {took:.1f} s ({used:.1f} s of the processor), {grown:.0f} bytes an entry"
        )
        began = time.process_time()
        with store.read() as connection:
            found = list(tree_check.verify(connection))
            print(f"verified in {time.process_time() - began:.1f} s of the processor: {found or 'whole'}")
            begun, size = time.process_time(), tree.size_of(connection)
            for number in range(200):
                proof = inclusion_proof(tree.hashes(connection, size), number * 4_999 % size, size)
        print(f"proof: {(time.process_time() - begun) * 5:.2f} ms, {len(proof)} hashes")
        store.close()
