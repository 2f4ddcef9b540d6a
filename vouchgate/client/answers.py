"""From an HTTP answer to a typed result or an error. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from vouchgate.client.errors import ApiError, Halted, OddAnswer, QueueFull, Unreachable, VouchgateError
from vouchgate.client.models import DocumentReport, Problem
from vouchgate.client.steps import Call, HttpReply, NoReply
from vouchgate.ingest.claims.decision import Outcome, ValidationResult

T = TypeVar("T")
Body = TypeVar("Body", bound=BaseModel)

JSON = "application/json"
_KINDS: Mapping[str, type[ApiError]] = {"queue_full": QueueFull, "read_only": Halted, "stopped": Halted}
PROBLEM = "application/problem+json"
MOST_SHOWN = 500  # characters of the service's sentence in an error


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
    stored = found.outcome is Outcome.STORED
    if stored != (answer.status in (200, 201)) or found.decision_id is None:
        raise OddAnswer(
            f"Status {answer.status} does not go with a claim that is {found.outcome}", answer.status
        )
    return require_memory_id(found, answer.status)


def require_agreement(found: ValidationResult, status: int) -> ValidationResult:
    """The verdict, if `approved` and `outcome` say the same. Raises OddAnswer."""
    if found.approved != (found.outcome is Outcome.STORED):
        raise OddAnswer("The verdict contradicts itself: `approved` is not what `outcome` says", status)
    return found


def require_memory_id(found: ValidationResult, status: int) -> ValidationResult:
    """The verdict, if what is stored has the id of its memory. Raises OddAnswer."""
    if found.outcome is Outcome.STORED and found.memory_id is None:
        raise OddAnswer("The verdict says stored, and names no memory", status)
    return found


def problem_of(answer: HttpReply) -> ApiError | None:
    """The error of a problem document; None when it is none."""
    if answer.media_type != PROBLEM:
        return None
    try:
        found = Problem.model_validate_json(answer.body, extra="ignore")
    except ValidationError:
        return None
    kind = _KINDS.get(found.code, ApiError)
    detail = found.detail[:MOST_SHOWN]
    step = found.next_step[:MOST_SHOWN]
    return kind(
        answer.status, found.code[:MOST_SHOWN], detail, retry_after=answer.retry_after, next_step=step
    )


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
