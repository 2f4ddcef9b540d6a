"""From an HTTP answer to a typed result or an error. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from vouchgate.client.errors import ApiError, OddAnswer, Unreachable, VouchgateError
from vouchgate.client.models import DocumentReport, Problem
from vouchgate.client.steps import Call, HttpReply, NoReply
from vouchgate.ingest.claims.decision import Outcome, ValidationResult

T = TypeVar("T")
Body = TypeVar("Body", bound=BaseModel)

JSON = "application/json"
PROBLEM = "application/problem+json"


def body_reader(kind: type[Body]) -> Callable[[HttpReply], Body]:
    """Reads a body of this type, and leaves out what this client does not know.

    The domain types forbid unknown fields, because what is written must be what was meant. What is *read* may come
    from a newer service, and a field that this client never heard of takes nothing from those it knows. A value that it
    never heard of (a new outcome, say) is an OddAnswer all the same: nobody knows what it means for the caller.
    """
    return lambda answer: _parsed(kind, answer)


def _parsed(kind: type[Body], answer: HttpReply) -> Body:
    try:
        return kind.model_validate_json(answer.body, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise OddAnswer(f"The answer has another shape: {where}: {first['msg']}", answer.status) from None


def verdict(answer: HttpReply) -> ValidationResult:
    """A verdict. One that contradicts itself is an OddAnswer: nobody may take it for a yes."""
    found = _parsed(ValidationResult, answer)
    return require_agreement(found, answer.status)


def document_report(answer: HttpReply) -> DocumentReport:
    """The report of a document. One that contradicts itself is an OddAnswer: nobody may take it for a pass."""
    found = _parsed(DocumentReport, answer)
    if found.passed != (found.status == 0):
        raise OddAnswer("The report contradicts itself: `passed` is not what `status` says", answer.status)
    return found


def submitted(answer: HttpReply) -> ValidationResult:
    """The verdict on a claim that was sent to be kept: the status must say the same, and what was kept has an id."""
    found = verdict(answer)
    if (found.outcome is Outcome.STORED) != (answer.status in (200, 201)):
        raise OddAnswer(
            f"Status {answer.status} does not go with a claim that is {found.outcome}", answer.status
        )
    return require_ids(found, answer.status)


def require_agreement(found: ValidationResult, status: int) -> ValidationResult:
    """The verdict, if `approved` and `outcome` say the same. Raises OddAnswer."""
    if found.approved != (found.outcome is Outcome.STORED):
        raise OddAnswer("The verdict contradicts itself: `approved` is not what `outcome` says", status)
    return found


def require_ids(found: ValidationResult, status: int) -> ValidationResult:
    """The verdict, if it has the id of its decision, and what went through that of its memory. Raises OddAnswer."""
    if found.decision_id is None:
        raise OddAnswer("The verdict names no decision, as if the claim had only been checked", status)
    if found.passed and found.memory_id is None:
        raise OddAnswer("The verdict says that it went through, and names no memory", status)
    return found


def problem_of(answer: HttpReply) -> ApiError | None:
    """The error of a problem document; None when it is none."""
    if answer.media_type != PROBLEM:
        return None
    try:
        found = Problem.model_validate_json(answer.body, extra="ignore")
    except ValidationError:
        return None
    waits = found.retry_after if answer.retry_after is None else answer.retry_after
    return found.model_copy(update={"status": answer.status, "retry_after": waits}).error()


def result_of(call: Call[T], answer: HttpReply) -> T:
    """What the answer to this call means. Raises ApiError, Unreachable or OddAnswer."""
    if answer.media_type == JSON and answer.status in call.statuses:
        return call.read(answer)
    raise error_of(answer)


def error_of(answer: HttpReply | NoReply) -> VouchgateError:
    """The error that an answer without a result is."""
    if isinstance(answer, NoReply):
        return Unreachable(answer.what) if answer.passing else OddAnswer(answer.what)
    if 300 <= answer.status < 400:
        return OddAnswer(
            f"The address answered with a redirect ({answer.status}); give the address it leads to",
            answer.status,
        )
    if (problem := problem_of(answer)) is not None:
        return problem
    if answer.status in (502, 503, 504):
        return Unreachable(f"Something in front of the service answered {answer.status}")
    return OddAnswer(
        f"Status {answer.status} with the media type {answer.media_type[:80] or 'none'!r} is no answer of the service",
        answer.status,
    )
