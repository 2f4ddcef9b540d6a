"""The rows of a file as claims, some hundred at a time, each with the key that it is sent under. Those that an earlier
run sent are passed over."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from pydantic import ValidationError
from xxhash import xxh3_64_intdigest

from vouchgate.gate.examiner import Examiner
from vouchgate.gate.incoming import ClaimRefused
from vouchgate.importing.formats import Format, RowFile
from vouchgate.importing.rows import BadRow, Defaults, ImportRow, Unreadable, claim_from_row
from vouchgate.ingest.claims.claim import Claim
from vouchgate.ingest.claims.decision import Tier
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.language.validation import plain_message
from vouchgate.ingest.pipeline import Examined
from vouchgate.storage.claims.known_keys import known_keys
from vouchgate.storage.claims.submit import Idempotency
from vouchgate.storage.errors import StorageError
from vouchgate.storage.store import Store

BATCH = 256  # rows; as many as the writer puts into one transaction
_VERSION = b"import 1\0"  # of the keys; rows of another version are sent again, and found to be duplicates


@dataclass(frozen=True, slots=True)
class PreparedRow:
    """A row as a claim."""

    place: str
    saved_at: datetime | None
    origin: str | None
    claim: Claim
    key: Idempotency


def prepared(row: ImportRow, claim: Claim, key: Idempotency) -> PreparedRow:
    """The row as this claim."""
    origin = None if claim.secrets or claim.personal else row.origin  # where it may stand as well
    return PreparedRow(row.place, row.saved_at, origin, claim, key)


@dataclass(slots=True)
class Batch:
    """What has become of the next rows. After one with `error`, a sentence on why the rest is not read, comes none."""

    ready: list[PreparedRow] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)  # of the places of all rows
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
        text = claim.model_dump_json(exclude={"context"}).encode()  # by which earlier versions had no key
        name, times = xxh3_64_intdigest(text), 0
        if name in self._seen:
            self._again[name] += 1
            times = self._again[name]
        self._seen.add(name)
        digest = hashlib.sha256(self._salt + text).hexdigest()
        return Idempotency(f"import-{times}-{digest}", digest)


class Batches:
    """Reads a file for one principal, `limit` rows at most (None: all). With a store, rows that were sent before are
    passed over."""

    def __init__(
        self,
        rows: RowFile,
        examiner: Examiner,
        principal: Principal,
        defaults: Defaults,
        *,
        limit: int | None = None,
        store: Store | None = None,
    ) -> None:
        self._rows = rows
        self._going = islice(iter(rows), limit)
        self._examiner = examiner
        self._principal = principal
        self._defaults = defaults
        self._store = store
        self._keys = Keys(rows.format)
        one = not principal.any_owner and len(principal.owners) == 1
        self._owner_known = one or defaults.owner is not None  # of rows that do not say it

    async def __aiter__(self) -> AsyncIterator[Batch]:
        """Each batch in its turn, while the event loop goes on."""
        while (batch := await asyncio.to_thread(self._next)).rows or batch.error is not None:
            yield batch
            if batch.error is not None:
                return

    def _next(self) -> Batch:
        """The next rows; an empty batch when there are none left."""
        batch, read = Batch(), list[PreparedRow]()
        for row in self._some(batch):
            claim = claim_of(self._examiner, self._principal, row, self._defaults)
            if isinstance(claim, BadRow):
                batch.bad.append(claim)
            else:
                read.append(prepared(row, claim, self._keys.of(claim)))
        batch.position = self._rows.position
        known: frozenset[str] = frozenset()
        if self._store is not None and read:
            try:
                with self._store.read() as connection:
                    known = known_keys(connection, self._principal.id, [row.key.key for row in read])
            except StorageError as error:
                return Batch(position=batch.position, error=str(error))
        batch.ready = [row for row in read if row.key.key not in known]
        batch.before = len(read) - len(batch.ready)
        return batch

    def _some(self, batch: Batch) -> Iterator[ImportRow]:
        """The next rows that can be read, with a note in the batch of those that cannot."""
        try:
            for row in islice(self._going, BATCH):
                batch.order[row.place] = len(batch.order)
                if isinstance(row, BadRow):
                    batch.bad.append(row)
                elif row.owner is None and not self._owner_known:
                    batch.error = (
                        f"{row.place} does not say whose memory it is, and the token acts for several owners; "
                        "give --owner, and rows that say another keep theirs"
                    )
                    return
                else:
                    yield row
        except Unreadable as error:
            batch.error = str(error)


def claim_of(examiner: Examiner, principal: Principal, row: ImportRow, defaults: Defaults) -> Claim | BadRow:
    """The claim in a row, or why there is none. No message has a word of the row."""
    try:
        claim = examiner.build_claim(principal, claim_from_row(row, defaults))
        return claim.model_copy(update={"context": row.context}) if row.context else claim
    except ValidationError as error:
        return BadRow(row.place, what_is_wrong(error))
    except ClaimRefused as error:
        return BadRow(row.place, str(error))


def what_is_wrong(error: ValidationError) -> str:
    """Why a row is no claim, without a word of it."""
    found = error.errors(include_url=False, include_input=False)[:3]
    return "; ".join(f"{item['loc'][0] if item['loc'] else 'row'}: {plain_message(item)}" for item in found)


def must_wait(examined: Examined) -> bool:
    """Whether the claim goes to its owner even when that owner has stored nothing like it."""
    return examined.foreseeing()[1] is Tier.QUEUED
