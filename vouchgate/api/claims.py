"""Where agents send claims."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from vouchgate.api.base import (
    JsonRequest,
    JsonRoute,
    caller,
    erased_or_not_found,
    halted_problem,
    limit_rate,
    metrics_of,
    owner_refused,
    owners_in_scope,
    principal_of,
    problem_response,
    problem_responses,
    require_json,
    token_needed,
)
from vouchgate.api.problems import Problem, ProblemError, invalid, refused, unavailable
from vouchgate.gate.gate import Gate
from vouchgate.gate.incoming import ClaimRefused
from vouchgate.ingest.claims.decision import Outcome, ValidationResult
from vouchgate.ingest.claims.leased import HAND_OVER
from vouchgate.ingest.claims.people import Principal
from vouchgate.ingest.pipeline import Examined
from vouchgate.ingest.rules import Rule
from vouchgate.ingest.support.prepared import PreparedTexts
from vouchgate.review.rules import Act
from vouchgate.review.withheld import metadata, private_pages
from vouchgate.server.answering import answer_repeat
from vouchgate.server.state import service_of
from vouchgate.storage.claims import decisions
from vouchgate.storage.claims.submit import (
    Decided,
    Idempotency,
    KeyReused,
    OwnerRefused,
    Repeated,
    SubmitAnswer,
    TokenGone,
)
from vouchgate.storage.errors import StorageError
from vouchgate.storage.modes import Halted
from vouchgate.storage.queue.capacity import QueueFull
from vouchgate.wire import BatchIn, ClaimIn, WireOut


class SubmitRoute(JsonRoute):
    """The busiest route. It is described by its signature like every other, and answered without FastAPI
    resolving that signature for each request, which costs more than all the checks of a claim."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            require_json(request)
            body = await JsonRequest(request.scope, request.receive).json()
            principal = await principal_of(request, Act.SUBMIT, remembered=True)
            key = request.headers.get("idempotency-key")
            try:
                sent = ClaimIn.model_validate(body)
                _IDEMPOTENCY_KEY.validate_python(key)
            except ValidationError as error:
                place = ("body",) if error.title == ClaimIn.__name__ else ("header", "Idempotency-Key")
                details = error.errors(include_url=False, include_input=False)
                raise RequestValidationError([{**d, "loc": (*place, *d["loc"])} for d in details]) from error
            prefer = ",".join(request.headers.getlist("prefer"))
            return await submit_claim(request, sent, principal, key, prefer)

        return handle


submit_router = APIRouter(prefix="/v1", route_class=SubmitRoute, tags=["claims"])
router = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["claims"])

Submitter = Annotated[Principal, Depends(caller(Act.SUBMIT))]
Checker = Annotated[Principal, Depends(caller(Act.CHECK))]
DecisionReader = Annotated[Principal, Depends(caller(Act.READ_DECISION))]
IdempotencyKey = Annotated[
    str | None, Header(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$")
]
Prefer = Annotated[str, Header(description=f"`{HAND_OVER}`: what is stored is answered with its `delivery`.")]
_IDEMPOTENCY_KEY: TypeAdapter[str | None] = TypeAdapter(IdempotencyKey)


# What an agent does about a full queue.
NO_PLACE = (
    "Do not send it again now: tell the user that the review queue is full and who clears it. A claim whose sources "
    "state it is stored without waiting, so cite what says so; what waits already is not lost."
)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A row of a batch, its key, and what it will be answered."""

    claim: ClaimIn
    key: str | None
    answer: asyncio.Future[SubmitAnswer]


class BatchOut(WireOut):
    """One entry a row, in the order sent: what the single call would have answered as its body."""

    results: list[ValidationResult | Problem]


_REPLAYED = {
    "Idempotency-Replayed": {
        "description": "`true` when this was answered before under the same Idempotency-Key.",
        "schema": {"type": "string", "const": "true"},
    }
}


def verdict_response(description: str) -> dict[str, Any]:
    return {"description": description, "model": ValidationResult, "headers": _REPLAYED}


def verdict_or_problem(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "model": ValidationResult,
        "headers": _REPLAYED,
        "content": problem_response(422)["content"],
    }


def status_of(answer: ValidationResult) -> int:
    """The HTTP status that goes with a verdict."""
    match answer.outcome:
        case Outcome.STORED:
            return 201
        case Outcome.QUEUED:
            return 202
        case Outcome.BLOCKED:
            return 409 if answer.rule == Rule.DUPLICATE else 422


def _error_of(answer: KeyReused | QueueFull | TokenGone | OwnerRefused | Halted) -> ProblemError:
    """What to answer when nothing was decided and nothing kept."""
    match answer:
        case KeyReused():
            detail = "This Idempotency-Key came with another body before. Use a new key for a new claim."
            return ProblemError(409, "idempotency_key_reused", detail)
        case QueueFull():
            return _queue_full(answer)
        case TokenGone():
            return token_needed()
        case OwnerRefused():
            return owner_refused(unknown=answer.unknown)
        case Halted():
            return halted_problem(answer)


def _queue_full(full: QueueFull) -> ProblemError:
    """Which limit is reached, who can do something about it, and what the agent does meanwhile."""
    owner = "a reviewer of this owner, who rules on them, lets them go or sends them back"
    cleared_by = "the operator, and every owner's reviewers" if full.which.in_all else owner
    return ProblemError(
        429,
        "queue_full",
        f"{full.sentence[0].upper()}{full.sentence[1:]}. Nothing was kept; send it again later.",
        headers={"Retry-After": str(full.retry_after_seconds)},
        limit=full.which.value,
        waiting=full.limit,
        retry_after=full.retry_after_seconds,  # in a row of a batch, which has no headers
        cleared_by=f"{cleared_by}: /review, or vouchgate review",
        next_step=NO_PLACE,
    )


def _decided(request: Request, principal: Principal, decided: Decided) -> str:
    """The answer as it goes out: as it is kept, with what is handed over, and where a key is set with a promise that
    the log will have it."""
    metrics_of(request).count_decision(decided.answer)
    shown, signer = private_pages.json_for(principal, decided.json), service_of(request).signer
    shown = _with(shown, "delivery", decided.delivery)
    if signer is None or decided.commit is None:
        return shown
    return _with(shown, "promise", signer.promise(decided.commit, decided.index))


def _with(shown: str, name: str, more: BaseModel | None) -> str:
    return shown if more is None else f'{shown[:-1]},"{name}":{more.model_dump_json()}}}'


def respond(request: Request, principal: Principal, answer: SubmitAnswer) -> Response:
    match answer:
        case Decided():
            shown = _decided(request, principal, answer)
            return Response(shown, status_of(answer.answer), media_type="application/json")
        case Repeated():
            stored = ValidationResult.model_validate_json(answer.json)
            headers = {"Idempotency-Replayed": "true"}
            shown = _with(private_pages.json_for(principal, answer.json), "delivery", answer.delivery)
            return Response(shown, status_of(stored), headers, media_type="application/json")
        case KeyReused() | QueueFull() | TokenGone() | OwnerRefused() | Halted():
            raise _error_of(answer)


def _as_json(body: dict[str, Any]) -> str:
    return Problem.model_validate(body).model_dump_json(exclude_none=True)


def _idempotency(gate: Gate, key: str | None, sent: ClaimIn) -> Idempotency | None:
    if key is None:
        return None
    gate.examiner.refuse_secret("Idempotency-Key", key)
    # Of what is kept: from the digest of a text with a short password the password could be guessed.
    kept, *_ = gate.examiner.mask_claim(sent)
    without = (
        {"delivery"} if kept.delivery is None else set[str]()
    )  # bodies sent before there was one keep their digest
    return Idempotency(key, hashlib.sha256(kept.model_dump_json(exclude=without).encode()).hexdigest())


@submit_router.post(
    "/claims",
    response_class=Response,
    responses={
        **problem_responses(429, body=True),
        201: verdict_response("Stored: something other than the model vouches for it."),
        202: verdict_response("Queued for its owner."),
        409: verdict_or_problem("Blocked: a duplicate. As a problem: the Idempotency-Key was used before."),
        422: verdict_or_problem("Blocked. As a problem: the claim cannot be looked at as sent."),
    },
    status_code=201,
)
async def submit_claim(
    request: Request,
    sent: ClaimIn,
    principal: Submitter,
    idempotency_key: IdempotencyKey = None,
    prefer: Prefer = "",
) -> Response:
    """Decides about a claim and keeps what was decided. The answer says where it went and why."""
    limit_rate(request, principal)
    gate = service_of(request).gate
    hand_over = HAND_OVER in (each.strip().lower() for each in prefer.split(","))
    key = _idempotency(gate, idempotency_key, sent)
    answer = await gate.submit(principal, sent, key, hand_over=hand_over)
    if isinstance(answer, Decided) and answer.answer.rule == Rule.ALREADY_PENDING:
        answer = await answer_repeat(service_of(request), principal, sent, answer, idempotency_key)
    return respond(request, principal, answer)


@router.post("/claims/check", responses=problem_responses(429, body=True), status_code=200)
async def check_claim(request: Request, sent: ClaimIn, principal: Checker) -> ValidationResult:
    """What a submit would answer now. Nothing is written."""
    limit_rate(request, principal)
    return private_pages.answer_for(principal, await service_of(request).gate.check(principal, sent))


@router.post(
    "/claims/batch", responses=problem_responses(429, body=True), status_code=200, response_model=BatchOut
)
async def submit_batch(
    request: Request, sent: BatchIn, principal: Submitter, idempotency_key: IdempotencyKey = None
) -> Response:
    """Decides about each row as if they were sent one after another. One bad row spoils no other.

    With an Idempotency-Key every row has a key of its own, so a batch that broke off can be sent again.
    """
    results = await submit_rows(request, principal, sent.claims, idempotency_key)
    return Response(f'{{"results":[{",".join(results)}]}}', media_type="application/json")


async def submit_rows(
    request: Request, principal: Principal, rows: Sequence[JsonValue], idempotency_key: str | None
) -> list[str]:
    """What each row would have been answered with as a submit of its own, as JSON and in order. Raises ClaimRefused
    and ProblemError for what is wrong with all of them together."""
    gate = service_of(request).gate
    if len(rows) > gate.policy.limits.most_rows:
        raise ClaimRefused("batch_too_large", f"at most {gate.policy.limits.most_rows} claims a batch")
    gate.examiner.refuse_secret("Idempotency-Key", idempotency_key)
    limit_rate(request, principal, len(rows))
    texts = PreparedTexts()  # rows of a batch often cite one source

    async def prepare(row: JsonValue) -> tuple[ClaimIn, Examined] | dict[str, Any]:
        try:
            claim = ClaimIn.model_validate(row)
            async with gate.rows.of(claim.user_id or min(principal.owners, default="")):
                await asyncio.sleep(
                    0
                )  # what cites nothing is examined at once, and others are answered in between
                built = gate.examiner.build_claim(principal, claim)
                return claim, await gate.examine(built, texts=texts)
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False), ("body",), ClaimIn)
        except ClaimRefused as error:
            return refused(error)

    prepared = await asyncio.gather(*(prepare(row) for row in rows))
    waiting: list[_Sent | dict[str, Any]] = []
    for number, each in enumerate(prepared):
        if isinstance(each, dict):
            waiting.append(each)
            continue
        # A line break cannot be in a key that was sent, so a row never meets the key of another call.
        key = None if idempotency_key is None else f"{idempotency_key}\n{number}"
        answer = gate.send(principal, each[1], _idempotency(gate, key, each[0]))
        waiting.append(_Sent(each[0], key, answer))
        await asyncio.sleep(0)  # the keys of a long text take milliseconds, and others are answered meanwhile
    return [await _row(request, principal, item) for item in waiting]


async def _row(request: Request, principal: Principal, item: _Sent | dict[str, Any]) -> str:
    if isinstance(item, dict):
        return _as_json(item)
    try:
        answer = await item.answer
    except StorageError as error:
        return _as_json(unavailable(error))
    match answer:
        case Decided():
            answer = await answer_repeat(service_of(request), principal, item.claim, answer, item.key)
            return _decided(request, principal, answer)
        case Repeated():
            return private_pages.json_for(principal, answer.json)
        case KeyReused() | QueueFull() | TokenGone() | OwnerRefused() | Halted():
            return _as_json(_error_of(answer).body)


@router.get(
    "/decisions/{decision_id}", responses=problem_responses(404, 410), response_model=ValidationResult
)
def get_decision(request: Request, decision_id: str, principal: DecisionReader) -> Response:
    """A decision as it was answered, word for word; for an agent without its metadata."""
    with service_of(request).store.read() as connection:
        found = decisions.get(connection, decision_id, owners=owners_in_scope(principal, None))
    if found is None:
        raise erased_or_not_found(request, principal, decision_id, "decision")
    shown = metadata.json_for(principal, private_pages.json_for(principal, found))
    return Response(shown, media_type="application/json")
