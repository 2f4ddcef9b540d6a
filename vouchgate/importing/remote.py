"""Sends the rows of a file to a running service, in requests that are the same however often it is run."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pydantic import ValidationError

from vouchgate.client import Client
from vouchgate.client.calls import as_json
from vouchgate.client.errors import Unsendable, VouchgateError
from vouchgate.importing.batches import what_is_wrong
from vouchgate.importing.feed import reason_of
from vouchgate.importing.formats import RowFile
from vouchgate.importing.rows import BadRow, Defaults, ImportRow, claim_from_row
from vouchgate.importing.run import ImportStopped, Tally
from vouchgate.ingest.claims.decision import ValidationResult

MOST = 50  # rows of a request; a token may send 600 claims a minute by the built-in policy
_LAST = 4  # of 256 first bytes of a row's digest, those after which a request ends
# What the service answers when it takes nothing at the moment, of whatever row.
_NOT_NOW = frozenset({"stopped", "read_only", "rate_limited"})


@dataclass(frozen=True, slots=True)
class _Row:
    place: str
    claim: Mapping[str, Any]
    digest: bytes


@dataclass(slots=True)
class RemoteImport:
    """One run. `done` is how many rows of the file, from its first, need not be sent again. `tell_bad` is called for
    each row that cannot be used, `report` after each request with the bytes of the file that were read. Keys are made
    with the `token`: a plain digest of a row that holds a credential could be tried out."""

    client: Client
    token: str = field(repr=False)
    defaults: Defaults
    tell_bad: Callable[[BadRow], None]
    report: Callable[[Tally, int], None]
    tally: Tally = field(default_factory=Tally)
    done: int = 0
    sent: Counter[str] = field(default_factory=Counter)  # requests with the same rows

    def run(self, rows: RowFile, stopped: Callable[[], bool], *, after: int, limit: int | None) -> None:
        """Sends the rows behind the first `after`, at most `limit`; ends after a request when `stopped` says so.

        Raises ImportStopped, with why no more is sent, and Unreadable.
        """
        self.done = after
        end = None if limit is None else after + limit
        for batch in _batches(self._claim(row) for row in islice(rows, after, end)):
            self._send(batch)
            self.done += len(batch)
            self.report(self.tally, rows.position)
            if stopped():
                break

    def _claim(self, row: ImportRow | BadRow) -> _Row | BadRow:
        """What is sent for a row. A row with credentials goes as it is: the service masks them."""
        if isinstance(row, BadRow):
            return row
        try:
            claim = claim_from_row(row, self.defaults).model_dump(mode="json", exclude_none=True)
            return _Row(row.place, claim, hashlib.sha256(as_json(claim)).digest())
        except ValidationError as error:
            return BadRow(row.place, what_is_wrong(error))
        except Unsendable as error:
            return BadRow(row.place, str(error))

    def _send(self, batch: list[_Row | BadRow]) -> None:
        for bad in batch:
            if isinstance(bad, BadRow):
                self._bad(bad)
        rows = [row for row in batch if isinstance(row, _Row)]
        if not rows:
            return
        said = hmac.digest(self.token.encode(), b"".join(row.digest for row in rows), "sha256").hex()
        key = f"import-{self.sent[said]}-{said}"
        self.sent[said] += 1
        try:
            answers = self.client.save_many([row.claim for row in rows], idempotency_key=key)
        except VouchgateError as error:
            raise ImportStopped(str(error)) from error
        why = None
        for row, answer in zip(rows, answers, strict=True):
            if isinstance(answer, ValidationResult):
                self.tally.decided[answer.outcome, reason_of(answer)] += 1
            elif answer.code == "queue_full":
                self.tally.full[str(row.claim.get("user_id", ""))] += 1
                why = answer.detail
            elif answer.status >= 500 or answer.code in _NOT_NOW:
                why = answer.detail
            else:
                self._bad(BadRow(row.place, f"is refused: {answer.detail}"))
        if why is not None:
            raise ImportStopped(why)

    def _bad(self, row: BadRow) -> None:
        self.tally.bad += 1
        self.tell_bad(row)


def _batches(rows: Iterable[_Row | BadRow]) -> Iterator[list[_Row | BadRow]]:
    """The rows in order. Where a request ends is said by what its last row says: rows that were put in or added change
    the request that they are in, and not those after it."""
    batch: list[_Row | BadRow] = []
    for row in rows:
        batch.append(row)
        if len(batch) == MOST or (isinstance(row, _Row) and row.digest[0] < _LAST):
            yield batch
            batch = []
    if batch:
        yield batch
