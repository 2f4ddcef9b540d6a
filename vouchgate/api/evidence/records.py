"""Where a host puts down what its users said and its tools returned, for its agents' claims to cite."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel

from vouchgate.api.base import JsonRoute, caller, limit_rate, problem_responses, refuse_halted
from vouchgate.api.claims import IdempotencyKey
from vouchgate.api.problems import ProblemError
from vouchgate.gate.incoming import ClaimRefused, owner_for
from vouchgate.ingest.citations.kinds.record import key_of
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.source import RecordKind
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.storage.claims import records
from vouchgate.storage.claims.records import Kept, NewRecord, NotKept
from vouchgate.wire import RecordIn

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["records"])

Recorder = Annotated[Principal, Depends(caller(Act.RECORD))]


class RecordOut(BaseModel):
    """A record as it is kept. `digest` is the sha256, hex, of the text that is kept, in which credentials and what else
    the policy masks are masked; `cite` is how a claim cites it."""

    id: str
    kind: RecordKind
    time: datetime
    conversation: str | None
    who: str
    digest: str
    masked: bool
    kept_until: datetime
    cite: str


@router.post(
    "/records",
    responses={
        **problem_responses(409, 429, body=True),
        201: {"description": "Kept.", "model": RecordOut},
    },
    status_code=201,
    response_model=RecordOut,
)
async def add_record(
    request: Request, sent: RecordIn, principal: Recorder, idempotency_key: IdempotencyKey = None
) -> Response:
    """Keeps what a user said or a tool returned, so that claims of the same owner may cite it."""
    limit_rate(request, principal, of_records=True)
    service, now = service_of(request), datetime.now(UTC)
    examiner, rules = service.gate.examiner, service.policy.records
    if len(sent.text) > rules.characters:
        message = f"text has {len(sent.text)} characters; the limit is {rules.characters}"
        raise ClaimRefused("text_too_long", message)
    for name, value in (
        ("who", sent.who),
        ("conversation", sent.conversation),
        ("Idempotency-Key", idempotency_key),
    ):
        examiner.refuse_secret(name, value)
    owner_id = owner_for(principal, sent.user_id)
    await refuse_halted(request, principal, owner_id)
    text = await asyncio.to_thread(examiner.mask_text, sent.text)
    new = NewRecord(
        owner_id=owner_id,
        submitted_by=principal.id,
        kind=sent.kind,
        who=sent.who,
        conversation=sent.conversation,
        text=text,
        masked=text != sent.text,
        given_time=sent.time,
        idempotency_key=idempotency_key,
    )
    writing = service.store.writer.run([owner_id], lambda c: records.add(c, new, rules, now))
    match await asyncio.wrap_future(writing):
        case NotKept("key_used"):
            detail = "This Idempotency-Key came with another record before. Use a new key for a new record."
            raise ProblemError(409, "idempotency_key_reused", detail)
        case NotKept():
            detail = (
                f"So many records of this owner are kept: {rules.kept} (`kept` in [records] of the policy)."
            )
            raise ProblemError(
                429, "too_many_records", f"{detail} Send it again when the time of some is over."
            )
        case Kept(row, repeated):
            fields = {
                name: row[name] for name in ("id", "kind", "conversation", "who", "masked", "kept_until")
            }
            digest = hashlib.sha256(row["text"].encode()).hexdigest()
            told = RecordOut(**fields, time=row["said_at"], digest=digest, cite=key_of(row["id"]))
            headers = {"Idempotency-Replayed": "true"} if repeated else None
            return Response(told.model_dump_json(), 201, headers, media_type="application/json")
