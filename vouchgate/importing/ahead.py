"""Reads a file ahead, in a process of its own: what can be said of each row without asking anybody is said there,
while this process looks up citations and writes. Together they take two thirds of the time of one alone.

The process is forked before any thread is started, and begins when it is told for whom (`Ahead.begin`). It ends by
itself when nobody takes what it reads any more.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import io
import multiprocessing
import pickle
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any, Self

from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError
from xxhash import xxh3_64_intdigest

from vouchgate.gate.examiner import Examiner
from vouchgate.gate.incoming import ClaimRefused
from vouchgate.importing.formats import Format, RowFile, Unreadable
from vouchgate.importing.rows import BadRow, Defaults, ImportRow, claim_from_row
from vouchgate.ingest.checks.dedup import tokens
from vouchgate.ingest.claims.types import Citation, Claim, Neighbours, Principal, SourceReading, Tier
from vouchgate.ingest.dedup.signature import SignatureKeys, signature_keys
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.policy import Policy
from vouchgate.storage.claims.known_keys import known_keys
from vouchgate.storage.claims.submit import Idempotency
from vouchgate.storage.dedup import similar
from vouchgate.storage.engine import open_engine, reading

_EXAMINED = tuple(each.name for each in fields(Examined) if each.name != "known")
BATCH = 256  # rows; as many as the writer puts into one transaction
_VERSION = b"import 1\0"  # of the keys; rows of another version are sent again, and found to be duplicates


@dataclass(frozen=True, slots=True)
class ImportContext:
    """For whom the file is read. With a database, rows that this principal sent before are passed over, and what
    storing the others needs is made as well."""

    policy: Policy
    principal: Principal
    defaults: Defaults
    limit: int | None
    database_url: str | None


@dataclass(frozen=True, slots=True)
class PreparedRow:
    """A row as a claim, with all that could be said of it there. `examined` is None where somebody has to be asked
    first; `waits` says, of what is to be sent, that it is queued at best, whatever its owner has stored."""

    place: str
    saved_at: datetime | None
    origin: str | None
    claim: Claim
    key: Idempotency
    examined: Examined | None
    waits: bool
    keys: SignatureKeys
    bands: tuple[int, ...] | None


@dataclass(slots=True)
class Batch:
    """What has become of the next rows. After one with `error`, a sentence on why the rest is not read, comes none."""

    ready: list[PreparedRow] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    before: int = 0  # sent by an earlier run
    position: int = 0  # bytes of the file that were read
    error: str | None = None

    @property
    def rows(self) -> int:
        """All of them."""
        return len(self.ready) + len(self.bad) + self.before


class Keys:
    """The Idempotency-Key of each row: of what it says, and of how many rows before it said the same. So a file that
    was moved, or has grown, has the keys that it had, and equal rows have a key each.

    It is made of the claim as it is kept, in which a credential is masked: a digest of the credential itself could be
    tried out.
    """

    def __init__(self, form: Format) -> None:
        self._salt = _VERSION + form.value.encode() + b"\0"
        self._seen: set[int] = set()
        self._again: Counter[int] = Counter()

    def of(self, claim: Claim) -> Idempotency:
        """The key of the next row, and the digest of its claim."""
        return self.of_text(claim.model_dump_json().encode())

    def of_text(self, text: bytes) -> Idempotency:
        """The same, of the claim as JSON."""
        name, times = xxh3_64_intdigest(text), 0
        if name in self._seen:
            self._again[name] += 1
            times = self._again[name]
        self._seen.add(name)
        digest = hashlib.sha256(self._salt + text).hexdigest()
        return Idempotency(f"import-{times}-{digest}", digest)


class Ahead:
    """The other process. Make it before any thread is started; `begin` it once, and take its batches."""

    def __init__(self, rows: RowFile) -> None:
        context = multiprocessing.get_context("fork")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(rows, theirs, self._ours), name="vouchgate-import", daemon=True
        )
        self._process.start()
        theirs.close()
        self._policy: Policy | None = None

    @property
    def pid(self) -> int | None:
        """Of the other process."""
        return self._process.pid

    def begin(self, order: ImportContext) -> None:
        """Says for whom."""
        self._policy = order.policy
        self._ours.send(order)

    async def batches(self) -> AsyncIterator[Batch]:
        """Each batch in its turn, while the event loop goes on."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                sent = await loop.run_in_executor(None, self._ours.recv_bytes)
            except EOFError:
                yield Batch(error="the process that reads the file has ended")
                return
            batch = _loads(sent, self._policy)
            if batch is None:
                return
            yield batch
            if batch.error is not None:
                return

    def close(self) -> None:
        """Ends it, whatever it does."""
        self._ours.close()
        self._process.terminate()
        self._process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class _Pickler(pickle.Pickler):
    """Leaves the policy out, which both sides have and every claim names."""

    def __init__(self, file: io.BytesIO, policy: Policy) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._policy = policy

    def persistent_id(self, value: Any) -> str | None:
        return "policy" if value is self._policy else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, policy: Policy | None) -> None:
        super().__init__(file)
        self._policy = policy

    def persistent_load(self, name: str) -> Any:
        return self._policy


def _dumps(batch: Batch | None, policy: Policy) -> bytes:
    """As plain tuples: dataclasses take longer to pack than to make."""
    file = io.BytesIO()
    packed = batch and (
        list(map(_packed, batch.ready)),
        [(bad.place, bad.message) for bad in batch.bad],
        batch.before,
        batch.position,
        batch.error,
    )
    _Pickler(file, policy).dump(packed)
    return file.getvalue()


def _loads(sent: bytes, policy: Policy | None) -> Batch | None:
    # From our own child over a pipe that nobody else has.
    packed = _Unpickler(io.BytesIO(sent), policy).load()
    if packed is None:
        return None
    ready, bad, before, position, error = packed
    return Batch(
        [_unpacked(each) for each in ready], [BadRow(*each) for each in bad], before, position, error
    )


def _packed(row: PreparedRow) -> tuple[Any, ...]:
    key, keys, examined = row.key, row.keys, row.examined
    found = examined and tuple(getattr(examined, name) for name in _EXAMINED)
    words = (keys.words, keys.scope, keys.threshold, keys.differ, keys.own, keys.stored, keys.probes)
    return (
        row.place,
        row.saved_at,
        row.origin,
        row.claim,
        key.key,
        key.body_digest,
        found,
        row.waits,
        words,
        row.bands,
    )


def _unpacked(packed: tuple[Any, ...]) -> PreparedRow:
    place, saved_at, origin, claim, key, digest, found, waits, words, bands = packed
    examined = found and Examined(**dict(zip(_EXAMINED, found, strict=True)))
    return PreparedRow(
        place,
        saved_at,
        origin,
        claim,
        Idempotency(key, digest),
        examined,
        waits,
        SignatureKeys(*words),
        bands,
    )


def _serve(rows: RowFile, ours: Connection[Any, Any], theirs: Connection[Any, Any]) -> None:
    """The life of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C is the other's to hear, who then takes no more
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.set_threshold(20_000, 50, 50)  # rows come and go by the hundred; as in `tune_interpreter`
    theirs.close()  # so that the other's end shows here
    with suppress(EOFError, OSError):  # nobody takes what is read any more
        order: ImportContext = ours.recv()
        try:
            for batch in _Reader(order, rows.format).batches(rows):
                ours.send_bytes(_dumps(batch, order.policy))
            ours.send_bytes(_dumps(None, order.policy))
        except DBAPIError as error:
            ours.send_bytes(_dumps(Batch(error=f"the database cannot be read: {error.orig}"), order.policy))


class _Nobody:
    """No source: what would have to be asked is left to the other process."""

    async def read(self, citation: Citation, *, fresh: bool = False) -> SourceReading:
        raise NotImplementedError(citation)


class _Reader:
    """Makes batches of rows."""

    def __init__(self, order: ImportContext, form: Format) -> None:
        self._order = order
        self._examiner = Examiner(order.policy, _Nobody())
        self._keys = Keys(form)
        principal = order.principal
        one = not principal.any_owner and len(principal.owners) == 1
        self._owner_known = one or order.defaults.owner is not None  # of rows that do not say it
        self._engine = None if order.database_url is None else open_engine(order.database_url)

    def batches(self, rows: RowFile) -> Iterator[Batch]:
        """The rows in order, as many as are asked for."""
        waiting: Iterable[ImportRow | BadRow] = iter(rows)
        if self._order.limit is not None:
            waiting = islice(waiting, self._order.limit)
        going = iter(waiting)
        while True:
            batch, claims = Batch(), list[tuple[ImportRow, Claim]]()
            ended = self._take(going, batch, claims)
            batch.position = rows.position
            if claims or batch.bad or batch.error is not None:
                self._fill(batch, claims)
                yield batch
            if ended or batch.error is not None:
                return

    def _take(
        self, going: Iterator[ImportRow | BadRow], batch: Batch, claims: list[tuple[ImportRow, Claim]]
    ) -> bool:
        """The next rows as claims; True when these are the last."""
        for _ in range(BATCH):
            try:
                row = next(going)
            except StopIteration:
                return True
            except Unreadable as error:
                batch.error = str(error)
                return True
            claim = row if isinstance(row, BadRow) else self._claim(row)
            if isinstance(claim, BadRow):
                batch.bad.append(claim)
            elif isinstance(row, ImportRow) and claim is not None:
                claims.append((row, claim))
            else:
                message = (
                    f"{row.place} does not say whose memory it is, and the token acts for several owners"
                )
                batch.error = f"{message}; give --owner, and rows that say another keep theirs"
                return True
        return False

    def _claim(self, row: ImportRow) -> Claim | BadRow | None:
        """The claim in a row, or why there is none; None when nobody knows whose it is."""
        if row.owner is None and not self._owner_known:
            return None
        return claim_of(self._examiner, self._order.principal, row, self._order.defaults)

    def _fill(self, batch: Batch, claims: Sequence[tuple[ImportRow, Claim]]) -> None:
        keyed = [(row, claim, self._keys.of(claim)) for row, claim in claims]
        known: frozenset[str] = frozenset()
        if self._engine is not None and keyed:
            with reading(self._engine) as connection:
                known = known_keys(connection, self._order.principal.id, [key.key for _, _, key in keyed])
        batch.before = len(known)
        for row, claim, key in keyed:
            if key.key not in known:
                made = self._ready(row, claim, key)
                if isinstance(made, BadRow):
                    batch.bad.append(made)
                else:
                    batch.ready.append(made)

    def _ready(self, row: ImportRow, claim: Claim, key: Idempotency) -> PreparedRow | BadRow:
        try:
            examined = self._examiner.examine_text(claim)
        except ClaimRefused as error:
            return BadRow(row.place, str(error))
        sends = self._engine is not None
        waits = sends and examined is not None and must_wait(examined)
        keys = signature_keys(tokens(claim.content), claim.memory_type.value, self._order.policy.threshold)
        bands = None
        if sends and examined is not None and not waits:
            bands = similar.keys_of(claim.content, claim.memory_type.value)
        origin = None if claim.secrets else row.origin  # where it may stand as well
        return PreparedRow(row.place, row.saved_at, origin, claim, key, examined, waits, keys, bands)


def claim_of(examiner: Examiner, principal: Principal, row: ImportRow, defaults: Defaults) -> Claim | BadRow:
    """The claim in a row, or why there is none. No message has a word of the row."""
    try:
        return examiner.build_claim(principal, claim_from_row(row, defaults))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)[:3]
        what = "; ".join(f"{item['loc'][0] if item['loc'] else 'row'}: {item['msg']}" for item in found)
        return BadRow(row.place, what)
    except ClaimRefused as error:
        return BadRow(row.place, str(error))


def must_wait(examined: Examined) -> bool:
    """Whether the claim goes to its owner even when that owner has stored nothing like it."""
    return examined.knowing(dedup=Neighbours()).decide().tier is Tier.QUEUED
