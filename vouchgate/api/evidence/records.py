"""Where a host puts down what its users said and its tools returned, for its agents' claims to cite."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from vouchgate.api.base import JsonRoute, caller, limit_rate, problem_responses, refuse_halted
from vouchgate.api.claims import IdempotencyKey
from vouchgate.api.problems import ProblemError
from vouchgate.gate.incoming import ClaimRefused, owner_for
from vouchgate.ingest.citations.kinds.record import PREFIX
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.claims.source import RecordKind
from vouchgate.review.rules import Act
from vouchgate.server.state import service_of
from vouchgate.storage.claims import records
from vouchgate.wire import RecordIn, WireOut

router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["records"])


class RecordOut(WireOut):
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
    responses={**problem_responses(409, 429, body=True), 201: {"description": "Kept.", "model": RecordOut}},
    status_code=201,
    response_model=RecordOut,
)
async def add_record(
    request: Request,
    sent: RecordIn,
    principal: Annotated[Principal, Depends(caller(Act.RECORD))],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Keeps what a user said or a tool returned, so that claims of the same owner may cite it."""
    limit_rate(request, principal, of_records=True)
    service, now = service_of(request), datetime.now(UTC)
    examiner, rules = service.gate.examiner, service.policy.records
    owner_id = owner_for(principal, sent.user_id)
    if len(sent.text) > rules.characters:
        raise ClaimRefused("text_too_long", f"text has more than {rules.characters} characters")
    labels = {"who": sent.who, "conversation": sent.conversation, "idempotency_key": idempotency_key}
    for name, value in labels.items():
        examiner.refuse_secret(name, value)
    await refuse_halted(request, principal, owner_id)
    text = await asyncio.to_thread(examiner.mask_text, sent.text)
    row: dict[str, Any] = {"owner_id": owner_id, "submitted_by": principal.id, "kind": sent.kind, **labels}
    row |= {"said_at": sent.time, "text": text, "masked": text != sent.text}
    writing = service.store.writer.run([owner_id], lambda c: records.add(c, row, rules, now))
    match await asyncio.wrap_future(writing):
        case "key_used":
            detail = "This Idempotency-Key came with another record before. Use a new key for a new record."
            raise ProblemError(409, "idempotency_key_reused", detail)
        case "full":
            detail = (
                f"{rules.kept} records of this owner are kept. Send it again when the time of some is over."
            )
            raise ProblemError(429, "too_many_records", detail)
        case kept, repeated:
            digest = hashlib.sha256(kept["text"].encode()).hexdigest()
            told = {**kept, "time": kept["said_at"], "digest": digest, "cite": PREFIX + kept["id"]}
            headers = {"Idempotency-Replayed": "true"} if repeated else None
            answer = RecordOut.model_validate(told).model_dump_json()
            return Response(answer, 201, headers, media_type="application/json")
