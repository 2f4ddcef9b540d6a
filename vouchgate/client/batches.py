"""Many claims in as few requests as the service takes. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from vouchgate.client import answers, calls
from vouchgate.client.calls import (
    ClaimMapping,
    ClaimOptions,
    SaveOptions,
    as_json,
    checked_key,
    claim_of,
    listed,
)
from vouchgate.client.errors import ApiError, OddAnswer, Unsendable, VouchgateError
from vouchgate.client.exchange import MOST_WAITED, backoff, exchange
from vouchgate.client.models import Problem
from vouchgate.client.steps import Call, HttpReply, Operation, Pause
from vouchgate.ingest.claims.decision import ValidationResult
from vouchgate.ingest.claims.frozen import Frozen
from vouchgate.ingest.claims.leased import HAND_OVER

MOST_ROWS = 500  # docs/api.md; a policy may say less
MOST_BYTES = 1024 * 1024  # of a body, docs/api.md
# Seconds that a row may add: the service reads the sources of 16 rows at once, each within 10 s unless its policy says
# more.
PATIENCE = 0.7

VerdictOrProblem = ValidationResult | Problem
_OF_THE_CALLER = ("role_not_allowed", "rate_limited")  # and no fault of the claim's
_HEAD, _TAIL = b'{"claims":[', b"]}"


@dataclass(frozen=True, slots=True)
class IndexedClaim:
    """A claim as JSON, and where it stood in the list."""

    place: int
    body: bytes


class _Results(Frozen):
    results: list[ValidationResult | Problem]


_RESULTS = answers.body_reader(_Results)


def save_many(
    claims: Sequence[str | ClaimMapping], options: SaveOptions, retries: int
) -> Operation[list[VerdictOrProblem]]:
    """Sends all claims, in order; one result each. `options` hold for each claim that does not say otherwise, their
    `idempotency_key` for the list.

    A row that no JSON can hold, or that is larger than a body may be, is a Problem like any other bad row. Raises
    TypeError for what is no list, and VouchgateError with the key: what was decided before stays decided, and the
    whole list sent again with that key is answered the same.
    """
    claims = listed(claims, "claims")
    key = checked_key(options.get("idempotency_key"))
    prefer = HAND_OVER if options.get("hand_over") and len(claims) == 1 else None
    common = {name: value for name, value in options.items() if name not in ("idempotency_key", "hand_over")}
    found: dict[int, VerdictOrProblem] = {}
    rows: list[IndexedClaim] = []
    for place, claim in enumerate(claims):
        row = _row(place, claim, common)
        if isinstance(row, Problem):
            found[place] = row
        else:
            rows.append(row)
    waiting = list(batches(rows))
    try:
        while waiting:
            batch = waiting.pop(0)
            try:
                results = yield from _send(batch, key, retries, prefer)
            except ApiError as error:
                if error.code != "batch_too_large" or len(batch) == 1:
                    raise
                half = len(batch) // 2
                waiting[:0] = [batch[:half], batch[half:]]
                continue
            found.update((row.place, result) for row, result in zip(batch, results, strict=True))
    except VouchgateError as error:
        error.idempotency_key = key
        raise
    return [found[place] for place in range(len(claims))]


def _row(place: int, claim: str | ClaimMapping, common: ClaimMapping) -> IndexedClaim | Problem:
    try:
        said: dict[str, Any] = {**common, **({"content": claim} if isinstance(claim, str) else claim)}
        if "idempotency_key" in said:
            raise TypeError("a list of claims has one idempotency_key, and its claims none of their own")
        content = said.pop("content", None)
        body = as_json(claim_of(content, cast(ClaimOptions, said))[0])
    except (Unsendable, TypeError) as error:
        return Problem(status=422, code="invalid_request", detail=f"{error}. It was not sent.")
    if len(_HEAD) + len(body) + len(_TAIL) > MOST_BYTES:
        return Problem(
            status=413, code="body_too_large", detail=f"It is over {MOST_BYTES} bytes. It was not sent."
        )
    return IndexedClaim(place, body)


def batches(rows: Sequence[IndexedClaim]) -> Iterator[list[IndexedClaim]]:
    """The rows in order, as many in each batch as fit."""
    batch: list[IndexedClaim] = []
    size = len(_HEAD) + len(_TAIL)
    for row in rows:
        if batch and (len(batch) == MOST_ROWS or size + 1 + len(row.body) > MOST_BYTES):
            yield batch
            batch, size = [], len(_HEAD) + len(_TAIL)
        batch.append(row)
        size += len(row.body) + (len(batch) > 1)
    if batch:
        yield batch


def _send(
    batch: Sequence[IndexedClaim], key: str, retries: int, prefer: str | None
) -> Operation[list[VerdictOrProblem]]:
    """One batch. Rows that the database did not take now are sent again, with the others, under the same key: those
    that are decided are only answered again."""
    call, tries, waited = _call(batch, key, prefer), 0, 0.0
    while True:
        try:
            results = yield from exchange(call, retries)
        except ApiError as error:
            if len(batch) > 1 or error.status == 401 or error.code in _OF_THE_CALLER:
                raise
            said = {name: getattr(error, name) for name in Problem.model_fields}
            return [Problem(**said)]
        seconds = backoff(tries, 1.0)
        taken = all(not isinstance(result, Problem) or result.status != 503 for result in results)
        if taken or tries >= retries or waited + seconds > MOST_WAITED:
            return results
        yield Pause(seconds)
        tries, waited = tries + 1, waited + seconds


def _call(batch: Sequence[IndexedClaim], key: str, prefer: str | None) -> Call[list[VerdictOrProblem]]:
    body = _HEAD + b",".join(row.body for row in batch) + _TAIL
    # Of the whole list's key and of what is in this batch, so that the same list sent again has the same keys. And of
    # where it stands in the list: two batches that hold the same are still two.
    digest = hashlib.sha256(f"{key}\n{batch[0].place}\n".encode() + body).hexdigest()

    if len(batch) == 1:  # the way of `save`, which is faster
        return Call(
            "POST",
            "/v1/claims",
            lambda answer: [answers.submitted(answer)],
            calls.VERDICTS,
            body=batch[0].body,
            key=f"batch-{digest}",
            prefer=prefer,
        )

    def read(answer: HttpReply) -> list[VerdictOrProblem]:
        results = _RESULTS(answer).results
        if len(results) != len(batch):
            raise OddAnswer(f"{len(batch)} claims were sent, and {len(results)} answered", answer.status)
        for result in results:
            if isinstance(result, ValidationResult):
                answers.require_ids(answers.require_agreement(result, answer.status), answer.status)
        return results

    patience = PATIENCE * len(batch)
    return Call("POST", "/v1/claims/batch", read, body=body, key=f"batch-{digest}", patience=patience)
